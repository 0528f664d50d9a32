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
    cost : int
        What it costs on a GPU, in additions.
    """

    operands: int
    kinds: Kind
    gives_bool: bool = False
    cost: int = 1


_FLOAT: Final = Kind.FLOAT

FUNCTIONS: Final[dict[str, Function]] = {
    "add": Function(2, Kind.NUMERIC),
    "subtract": Function(2, Kind.NUMERIC),
    "multiply": Function(2, Kind.NUMERIC),
    "divide": Function(2, _FLOAT, cost=4),
    "floor_divide": Function(2, Kind.INTEGER, cost=10),  # by 0 it is 0
    # The sign is that of the divisor, and then of the dividend; integers by 0 give 0.
    "remainder": Function(2, Kind.NUMERIC, cost=10),
    "fmod": Function(2, Kind.NUMERIC, cost=10),
    "negative": Function(1, Kind.NUMERIC),
    "abs": Function(1, Kind.NUMERIC),
    "maximum": Function(2, Kind.NUMERIC),  # NaN if an operand is
    "minimum": Function(2, Kind.NUMERIC),  # NaN if an operand is
    "pow": Function(2, Kind.NUMERIC, cost=10),
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
    "atan2": Function(2, _FLOAT, cost=10),
    "hypot": Function(2, _FLOAT, cost=10),
    "floor": Function(1, _FLOAT),
    "ceil": Function(1, _FLOAT),
    "trunc": Function(1, _FLOAT),
    "round": Function(1, _FLOAT),  # halves to the even number
    "sqrt": Function(1, _FLOAT, cost=4),
    "exp": Function(1, _FLOAT, cost=10),
    "expm1": Function(1, _FLOAT, cost=10),
    "log": Function(1, _FLOAT, cost=10),
    "log1p": Function(1, _FLOAT, cost=10),
    "log2": Function(1, _FLOAT, cost=10),
    "log10": Function(1, _FLOAT, cost=10),
    "sin": Function(1, _FLOAT, cost=10),
    "cos": Function(1, _FLOAT, cost=10),
    "tan": Function(1, _FLOAT, cost=10),
    "asin": Function(1, _FLOAT, cost=10),
    "acos": Function(1, _FLOAT, cost=10),
    "atan": Function(1, _FLOAT, cost=10),
    "sinh": Function(1, _FLOAT, cost=10),
    "cosh": Function(1, _FLOAT, cost=10),
    "tanh": Function(1, _FLOAT, cost=10),
    "asinh": Function(1, _FLOAT, cost=10),
    "acosh": Function(1, _FLOAT, cost=10),
    "atanh": Function(1, _FLOAT, cost=10),
    "erf": Function(1, _FLOAT, cost=10),
}
"""By their names, which are those of the ops that they compute."""
