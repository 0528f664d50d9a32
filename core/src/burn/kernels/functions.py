"""The scalar functions that expressions are made of: what the writer of a language has to spell."""

from __future__ import annotations

from typing import Final, NamedTuple

from burn.dtype import Kind

__all__ = ["FUNCTIONS", "Function"]


class Function(NamedTuple):
    """A scalar function.

    Attributes
    ----------
    operands : int
        Number of operands.
    kinds : Kind
        The kinds of dtypes that it takes. All operands have one dtype, except those of ``where``,
        whose first one is bool.
    gives_bool : bool
        Whether the result is bool; otherwise it has the dtype of the operands.
    """

    operands: int
    kinds: Kind
    gives_bool: bool = False


_FLOAT: Final = Kind.FLOAT

FUNCTIONS: Final[dict[str, Function]] = {
    "add": Function(2, Kind.NUMERIC),
    "subtract": Function(2, Kind.NUMERIC),
    "multiply": Function(2, Kind.NUMERIC),
    "divide": Function(2, _FLOAT),
    "floor_divide": Function(2, Kind.INTEGER),  # by 0 it is 0
    "remainder": Function(2, Kind.NUMERIC),  # has the sign of the divisor; of integers by 0 it is 0
    "fmod": Function(2, Kind.NUMERIC),  # has the sign of the dividend; of integers by 0 it is 0
    "negative": Function(1, Kind.NUMERIC),
    "abs": Function(1, Kind.NUMERIC),
    "maximum": Function(2, Kind.NUMERIC),  # NaN if an operand is
    "minimum": Function(2, Kind.NUMERIC),  # NaN if an operand is
    "pow": Function(2, Kind.NUMERIC),
    "equal": Function(2, Kind.REAL, gives_bool=True),
    "not_equal": Function(2, Kind.REAL, gives_bool=True),
    "less": Function(2, Kind.REAL, gives_bool=True),
    "less_equal": Function(2, Kind.REAL, gives_bool=True),
    "greater": Function(2, Kind.REAL, gives_bool=True),
    "greater_equal": Function(2, Kind.REAL, gives_bool=True),
    "where": Function(3, Kind.REAL),
    "cast": Function(1, Kind.REAL),  # to the dtype of the node
    "bitwise_and": Function(2, Kind.INTEGRAL),
    "bitwise_or": Function(2, Kind.INTEGRAL),
    "bitwise_xor": Function(2, Kind.INTEGRAL),
    "bitwise_not": Function(1, Kind.INTEGRAL),
    "bitwise_left_shift": Function(2, Kind.INTEGER),  # by the width or more it is 0
    "bitwise_right_shift": Function(2, Kind.INTEGER),  # by the width or more it is 0, or -1
    "copysign": Function(2, _FLOAT),
    "atan2": Function(2, _FLOAT),
    "hypot": Function(2, _FLOAT),
    "floor": Function(1, _FLOAT),
    "ceil": Function(1, _FLOAT),
    "trunc": Function(1, _FLOAT),
    "round": Function(1, _FLOAT),  # halves to the even number
    "sqrt": Function(1, _FLOAT),
    "exp": Function(1, _FLOAT),
    "expm1": Function(1, _FLOAT),
    "log": Function(1, _FLOAT),
    "log1p": Function(1, _FLOAT),
    "log2": Function(1, _FLOAT),
    "log10": Function(1, _FLOAT),
    "sin": Function(1, _FLOAT),
    "cos": Function(1, _FLOAT),
    "tan": Function(1, _FLOAT),
    "asin": Function(1, _FLOAT),
    "acos": Function(1, _FLOAT),
    "atan": Function(1, _FLOAT),
    "sinh": Function(1, _FLOAT),
    "cosh": Function(1, _FLOAT),
    "tanh": Function(1, _FLOAT),
    "asinh": Function(1, _FLOAT),
    "acosh": Function(1, _FLOAT),
    "atanh": Function(1, _FLOAT),
    "erf": Function(1, _FLOAT),
}
"""By their names, which are those of the ops that they compute."""
