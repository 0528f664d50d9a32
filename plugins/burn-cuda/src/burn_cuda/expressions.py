"""What elementwise ops compute, as C++ for each kind of dtype that they take.

``x0``, ``x1``, ... are the operands and ``r0`` is the result; ``C`` is the type that is computed
in, ``T`` that of the elements. The functions are those of CUDA, and of ``kernels/functions.cuh``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from burn.plugin_api import Kind

__all__ = ["EXPRESSIONS", "Expression"]

_BOOL: Final = Kind.BOOL
_INTEGER: Final = Kind.INTEGER
_FLOAT: Final = Kind.FLOAT
_NUMERIC: Final = Kind.NUMERIC
_REAL: Final = Kind.REAL
_COMPLEX: Final = Kind.COMPLEX
_INEXACT: Final = Kind.INEXACT


class Expression(NamedTuple):
    """The C++ of an op by kinds of dtype, and whether its result is a mask.

    Where it gives a part, the result of complex numbers is of the dtype of their parts.
    """

    operands: int
    forms: tuple[tuple[Kind, str], ...]
    mask: bool = False
    parameters: tuple[str, ...] = ()
    gives_part: bool = False

    def form(self, kind: Kind) -> str:
        """The expression for operands of a kind; a TypeError where there is none."""
        for kinds, text in self.forms:
            if kind in kinds:
                return text
        raise TypeError(f"no form for operands of kind {kind!r}")


def _one(text: str, kinds: Kind = _FLOAT, *, mask: bool = False) -> Expression:
    return Expression(1, ((kinds, text),), mask)


def _two(*forms: tuple[Kind, str], mask: bool = False) -> Expression:
    return Expression(2, forms, mask)


def _with(text: str, *parameters: str) -> Expression:
    return Expression(1, ((_FLOAT, text),), parameters=parameters)


EXPRESSIONS: Final[dict[str, Expression]] = {
    # Arithmetic
    "add": _two((Kind.NUMBER, "x0 + x1")),
    "subtract": _two((Kind.NUMBER, "x0 - x1")),
    "multiply": _two((_INEXACT, "x0 * x1"), (_INTEGER, "(T)((uint64)x0 * (uint64)x1)")),
    "divide": _two((_INEXACT, "x0 / x1")),
    "floor_divide": _two(
        (_FLOAT, "floor_quotient(x0, x1)"), (_INTEGER, "integer_quotient(x0, x1)")
    ),
    "remainder": _two((_FLOAT, "floor_rest(x0, x1)"), (_INTEGER, "integer_rest(x0, x1)")),
    "fmod": _two((_FLOAT, "fmod(x0, x1)"), (_INTEGER, "integer_truncated_rest(x0, x1)")),
    "pow": _two((_INEXACT, "pow(x0, x1)"), (_INTEGER, "integer_power(x0, x1)")),
    "maximum": _two((_NUMERIC, "larger(x0, x1)")),
    "minimum": _two((_NUMERIC, "smaller(x0, x1)")),
    "clip": Expression(3, ((_NUMERIC, "smaller(larger(x0, x1), x2)"),)),
    "negative": _one("(C)(-x0)", Kind.NUMBER),
    "abs": Expression(
        1,
        (
            (_FLOAT, "fabs(x0)"),
            (Kind.INT, "(T)(x0 < 0 ? 0 - (uint64)x0 : (uint64)x0)"),
            (Kind.UINT, "x0"),
            (_COMPLEX, "magnitude(x0)"),
        ),
        gives_part=True,
    ),
    "sign": Expression(
        1,
        (
            (_NUMERIC, "x0 != x0 ? x0 : (C)((x0 > (C)0) - (x0 < (C)0))"),
            (_COMPLEX, "direction(x0)"),
        ),
    ),
    "square": Expression(1, ((_INEXACT, "x0 * x0"), (_INTEGER, "(T)((uint64)x0 * (uint64)x0)"))),
    "reciprocal": _one("(C)1 / x0", _INEXACT),
    # Comparison, choice and bits
    "equal": _two((Kind.ANY, "x0 == x1"), mask=True),
    "not_equal": _two((Kind.ANY, "x0 != x1"), mask=True),
    "less": _two((_REAL, "x0 < x1"), mask=True),
    "less_equal": _two((_REAL, "x0 <= x1"), mask=True),
    "greater": _two((_REAL, "x0 > x1"), mask=True),
    "greater_equal": _two((_REAL, "x0 >= x1"), mask=True),
    "isnan": _one("x0 != x0", _INEXACT, mask=True),
    "isinf": Expression(
        1,
        ((_FLOAT, "fabs(x0) == bits_as_float(0x7f800000u)"), (_COMPLEX, "is_infinite(x0)")),
        mask=True,
    ),
    "isfinite": Expression(
        1,
        ((_FLOAT, "fabs(x0) < bits_as_float(0x7f800000u)"), (_COMPLEX, "is_finite(x0)")),
        mask=True,
    ),
    "signbit": _one("copysign((C)1, x0) < (C)0", mask=True),
    "bitwise_and": _two((Kind.INTEGRAL, "x0 & x1")),
    "bitwise_or": _two((Kind.INTEGRAL, "x0 | x1")),
    "bitwise_xor": _two((Kind.INTEGRAL, "x0 ^ x1")),
    "bitwise_not": Expression(1, ((_BOOL, "!x0"), (_INTEGER, "~x0"))),
    "bitwise_left_shift": _two((_INTEGER, "shifted_left(x0, x1)")),
    "bitwise_right_shift": _two((_INTEGER, "shifted_right(x0, x1)")),
    # Functions
    "exp": _one("exp(x0)", _INEXACT),
    "expm1": _one("expm1(x0)", _INEXACT),
    "log": _one("log(x0)", _INEXACT),
    "log1p": _one("log1p(x0)", _INEXACT),
    "log2": _one("log2(x0)", _INEXACT),
    "log10": _one("log10(x0)", _INEXACT),
    "sqrt": _one("sqrt(x0)", _INEXACT),
    "sin": _one("sin(x0)", _INEXACT),
    "cos": _one("cos(x0)", _INEXACT),
    "tan": _one("tan(x0)", _INEXACT),
    "tanh": _one("tanh(x0)", _INEXACT),
    "sinh": _one("sinh(x0)", _INEXACT),
    "cosh": _one("cosh(x0)", _INEXACT),
    "asin": _one("asin(x0)", _INEXACT),
    "acos": _one("acos(x0)", _INEXACT),
    "atan": _one("atan(x0)", _INEXACT),
    "asinh": _one("asinh(x0)", _INEXACT),
    "acosh": _one("acosh(x0)", _INEXACT),
    "atanh": _one("atanh(x0)", _INEXACT),
    "erf": _one("erf(x0)"),
    "floor": _one("floor(x0)"),
    "ceil": _one("ceil(x0)"),
    "trunc": _one("trunc(x0)"),
    "round": _one("rint(x0)", _INEXACT),
    "copysign": _two((_FLOAT, "copysign(x0, x1)")),
    "atan2": _two((_FLOAT, "atan2(x0, x1)")),
    "hypot": _two((_FLOAT, "hypot(x0, x1)")),
    "logaddexp": _two((_FLOAT, "log_of_sum(x0, x1)")),
    # Activation functions
    "sigmoid": _one("sigmoid(x0)"),
    "log_sigmoid": _one("smaller(x0, (C)0) - log1p(exp(-fabs(x0)))"),
    "silu": _one("x0 * sigmoid(x0)"),
    "mish": _one("x0 * tanh(softplus(x0))"),
    "softsign": _one("x0 / ((C)1 + fabs(x0))"),
    "tanhshrink": _one("x0 - tanh(x0)"),
    "relu": _one("larger(x0, (C)0)"),
    "relu_grad": _two((_FLOAT, "x0 > (C)0 ? x1 : (C)0")),
    "prelu": _two((_FLOAT, "x0 > (C)0 ? x0 : x0 * x1")),
    "hard_swish": _one("x0 * smaller(larger(x0 / (C)6 + (C)0.5, (C)0), (C)1)"),
    "leaky_relu": _with("x0 > (C)0 ? x0 : x0 * slope", "slope"),
    "elu": _with("x0 > (C)0 ? x0 * scale : expm1(x0 * inner) * factor", "factor", "scale", "inner"),
    "hard_sigmoid": _with("smaller(larger(x0 * alpha + beta, (C)0), (C)1)", "alpha", "beta"),
    "softplus": _with("larger(x0, (C)0) + log1p(exp(-fabs(x0) * beta)) / beta", "beta"),
    "gelu": _one("(x0 * (C)0.5) * ((C)1 + erf(x0 * (C)0.7071067811865476))"),
    "gelu_tanh": _one("(x0 * (C)0.5) * ((C)1 + tanh(gelu_inner(x0)))"),
    "gelu_grad": _two((_FLOAT, "x1 * gelu_slope(x0)")),
    "gelu_tanh_grad": _two((_FLOAT, "x1 * gelu_tanh_slope(x0)")),
}
"""By the name of the op; beside them the other form of `gelu`."""
