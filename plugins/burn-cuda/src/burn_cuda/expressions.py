"""The C++ expressions of elementwise ops, by the kind of dtype.

``x0``, ``x1``, ... are the operands; ``T`` is the type of the elements, and ``C`` the type in which
they are computed. The functions are those of CUDA and of ``kernels/functions.cuh``.
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
    """The C++ of an elementwise op.

    Attributes
    ----------
    operands : int
        Number of operands.
    forms : tuple of (Kind, str)
        The expression for each kind of dtype.
    mask : bool
        Whether the result is bool.
    parameters : tuple of str
        Names of the attributes, each a double.
    returns_component : bool
        Whether the result of complex operands has the dtype of their real part.
    """

    operands: int
    forms: tuple[tuple[Kind, str], ...]
    mask: bool = False
    parameters: tuple[str, ...] = ()
    returns_component: bool = False

    def form(self, kind: Kind) -> str:
        """The expression for operands of a kind; raises TypeError where there is none."""
        for kinds, text in self.forms:
            if kind in kinds:
                return text
        raise TypeError(f"no form for operands of kind {kind!r}")


def _unary(text: str, kinds: Kind = _FLOAT, *, mask: bool = False) -> Expression:
    return Expression(1, ((kinds, text),), mask)


def _binary(*forms: tuple[Kind, str], mask: bool = False) -> Expression:
    return Expression(2, forms, mask)


def _with_parameters(text: str, *parameters: str) -> Expression:
    return Expression(1, ((_FLOAT, text),), parameters=parameters)


EXPRESSIONS: Final[dict[str, Expression]] = {
    # Arithmetic
    "add": _binary((Kind.NUMBER, "x0 + x1")),
    "subtract": _binary((Kind.NUMBER, "x0 - x1")),
    "multiply": _binary((_INEXACT, "x0 * x1"), (_INTEGER, "(T)((uint64)x0 * (uint64)x1)")),
    "divide": _binary((_INEXACT, "x0 / x1")),
    "floor_divide": _binary(
        (_FLOAT, "floor_divide(x0, x1)"), (_INTEGER, "integer_floor_divide(x0, x1)")
    ),
    "remainder": _binary((_FLOAT, "floor_mod(x0, x1)"), (_INTEGER, "integer_floor_mod(x0, x1)")),
    "fmod": _binary((_FLOAT, "fmod(x0, x1)"), (_INTEGER, "integer_fmod(x0, x1)")),
    "pow": _binary((_INEXACT, "pow(x0, x1)"), (_INTEGER, "integer_power(x0, x1)")),
    "maximum": _binary((_NUMERIC, "maximum(x0, x1)")),
    "minimum": _binary((_NUMERIC, "minimum(x0, x1)")),
    "clip": Expression(3, ((_NUMERIC, "minimum(maximum(x0, x1), x2)"),)),
    "negative": _unary("(C)(-x0)", Kind.NUMBER),
    "abs": Expression(
        1,
        (
            (_FLOAT, "fabs(x0)"),
            (Kind.INT, "(T)(x0 < 0 ? 0 - (uint64)x0 : (uint64)x0)"),
            (Kind.UINT, "x0"),
            (_COMPLEX, "magnitude(x0)"),
        ),
        returns_component=True,
    ),
    "sign": Expression(
        1,
        (
            (_NUMERIC, "x0 != x0 ? x0 : (C)((x0 > (C)0) - (x0 < (C)0))"),
            (_COMPLEX, "sign_of(x0)"),
        ),
    ),
    "square": Expression(1, ((_INEXACT, "x0 * x0"), (_INTEGER, "(T)((uint64)x0 * (uint64)x0)"))),
    "reciprocal": _unary("(C)1 / x0", _INEXACT),
    # Comparison, choice and bits
    "equal": _binary((Kind.ANY, "x0 == x1"), mask=True),
    "not_equal": _binary((Kind.ANY, "x0 != x1"), mask=True),
    "less": _binary((_REAL, "x0 < x1"), mask=True),
    "less_equal": _binary((_REAL, "x0 <= x1"), mask=True),
    "greater": _binary((_REAL, "x0 > x1"), mask=True),
    "greater_equal": _binary((_REAL, "x0 >= x1"), mask=True),
    "isnan": _unary("x0 != x0", _INEXACT, mask=True),
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
    "signbit": _unary("copysign((C)1, x0) < (C)0", mask=True),
    "bitwise_and": _binary((Kind.INTEGRAL, "x0 & x1")),
    "bitwise_or": _binary((Kind.INTEGRAL, "x0 | x1")),
    "bitwise_xor": _binary((Kind.INTEGRAL, "x0 ^ x1")),
    "bitwise_not": Expression(1, ((_BOOL, "!x0"), (_INTEGER, "~x0"))),
    "bitwise_left_shift": _binary((_INTEGER, "shift_left(x0, x1)")),
    "bitwise_right_shift": _binary((_INTEGER, "shift_right(x0, x1)")),
    # Functions
    "exp": _unary("exp(x0)", _INEXACT),
    "expm1": _unary("expm1(x0)", _INEXACT),
    "log": _unary("log(x0)", _INEXACT),
    "log1p": _unary("log1p(x0)", _INEXACT),
    "log2": _unary("log2(x0)", _INEXACT),
    "log10": _unary("log10(x0)", _INEXACT),
    "sqrt": _unary("sqrt(x0)", _INEXACT),
    "sin": _unary("sin(x0)", _INEXACT),
    "cos": _unary("cos(x0)", _INEXACT),
    "tan": _unary("tan(x0)", _INEXACT),
    "tanh": _unary("tanh(x0)", _INEXACT),
    "sinh": _unary("sinh(x0)", _INEXACT),
    "cosh": _unary("cosh(x0)", _INEXACT),
    "asin": _unary("asin(x0)", _INEXACT),
    "acos": _unary("acos(x0)", _INEXACT),
    "atan": _unary("atan(x0)", _INEXACT),
    "asinh": _unary("asinh(x0)", _INEXACT),
    "acosh": _unary("acosh(x0)", _INEXACT),
    "atanh": _unary("atanh(x0)", _INEXACT),
    "erf": _unary("erf(x0)"),
    "floor": _unary("floor(x0)"),
    "ceil": _unary("ceil(x0)"),
    "trunc": _unary("trunc(x0)"),
    "round": _unary("rint(x0)", _INEXACT),
    "copysign": _binary((_FLOAT, "copysign(x0, x1)")),
    "atan2": _binary((_FLOAT, "atan2(x0, x1)")),
    "hypot": _binary((_FLOAT, "hypot(x0, x1)")),
    "logaddexp": _binary((_FLOAT, "logaddexp(x0, x1)")),
    # Activation functions
    "sigmoid": _unary("sigmoid(x0)"),
    "log_sigmoid": _unary("minimum(x0, (C)0) - log1p(exp(-fabs(x0)))"),
    "silu": _unary("x0 * sigmoid(x0)"),
    "mish": _unary("x0 * tanh(softplus(x0))"),
    "softsign": _unary("x0 / ((C)1 + fabs(x0))"),
    "tanhshrink": _unary("x0 - tanh(x0)"),
    "relu": _unary("maximum(x0, (C)0)"),
    "relu_grad": _binary((_FLOAT, "x0 > (C)0 ? x1 : (C)0")),
    "prelu": _binary((_FLOAT, "x0 > (C)0 ? x0 : x0 * x1")),
    "hard_swish": _unary("x0 * minimum(maximum(x0 / (C)6 + (C)0.5, (C)0), (C)1)"),
    "leaky_relu": _with_parameters("x0 > (C)0 ? x0 : x0 * slope", "slope"),
    "elu": _with_parameters(
        "x0 > (C)0 ? x0 * scale : expm1(x0 * inner) * factor", "factor", "scale", "inner"
    ),
    "hard_sigmoid": _with_parameters(
        "minimum(maximum(x0 * alpha + beta, (C)0), (C)1)", "alpha", "beta"
    ),
    "softplus": _with_parameters("maximum(x0, (C)0) + log1p(exp(-fabs(x0) * beta)) / beta", "beta"),
    "gelu": _unary("(x0 * (C)0.5) * ((C)1 + erf(x0 * (C)0.7071067811865476))"),
    "gelu_tanh": _unary("(x0 * (C)0.5) * ((C)1 + tanh(gelu_inner(x0)))"),
    "gelu_grad": _binary((_FLOAT, "x1 * gelu_gradient(x0)")),
    "gelu_tanh_grad": _binary((_FLOAT, "x1 * gelu_tanh_gradient(x0)")),
}
"""By the name of the op; ``gelu_tanh`` is `gelu` with ``approximate="tanh"``."""
