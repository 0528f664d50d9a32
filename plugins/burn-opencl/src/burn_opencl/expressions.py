"""Elementwise ops as expressions of C, for each kind of dtype that they take.

``x0``, ``x1``, ... are the operands, in the type `C` that the kernel computes in: float, double,
long or ulong. The functions are those of OpenCL C, and of ``kernels/functions.cl``.
"""

from __future__ import annotations

import functools
from typing import Final, NamedTuple

from burn.plugin_api import Kind
from burn_opencl.programs import text_of

__all__ = ["EXPRESSIONS", "EXPRESSION_CODES", "Expression", "function_source"]

_BOOL: Final = Kind.BOOL
_INT: Final = Kind.INT
_UINT: Final = Kind.UINT
_INTEGER: Final = Kind.INTEGER
_FLOAT: Final = Kind.FLOAT
_NUMERIC: Final = Kind.NUMERIC
_REAL: Final = Kind.REAL


class Expression(NamedTuple):
    """An op in C.

    Attributes
    ----------
    operands : int
        Number of operands, numbers among the op's attributes included.
    forms : tuple
        Kinds of dtypes, and the expression for them.
    mask : bool
        Whether the result is of dtype bool.
    group : str
        Expressions of one group are cases of one kernel, which is compiled as a whole.
    """

    operands: int
    forms: tuple[tuple[Kind, str], ...]
    mask: bool = False
    group: str = "arithmetic"

    def form(self, kind: Kind) -> str | None:
        """The expression for operands of a kind."""
        return next((text for kinds, text in self.forms if kind in kinds), None)


def _one(text: str, kinds: Kind = _FLOAT, *, mask: bool = False) -> Expression:
    return Expression(1, ((kinds, text),), mask)


def _function(text: str) -> Expression:
    return Expression(1, ((_FLOAT, text),), group="functions")


def _two(*forms: tuple[Kind, str], mask: bool = False) -> Expression:
    return Expression(2, forms, mask)


def _activation(text: str, operands: int = 1) -> Expression:
    return Expression(operands, ((_FLOAT, text),), group="activations")


EXPRESSIONS: Final[dict[str, Expression]] = {
    "copy": _one("x0", _REAL),
    # Arithmetic
    "add": _two((_NUMERIC, "x0 + x1")),
    "subtract": _two((_NUMERIC, "x0 - x1")),
    "multiply": _two((_NUMERIC, "x0 * x1")),
    "divide": _two((_FLOAT, "x0 / x1")),
    "floor_divide": _two((_NUMERIC, "floor_divide(x0, x1)")),
    "remainder": _two((_NUMERIC, "floor_mod(x0, x1)")),
    "fmod": _two((_FLOAT, "fmod(x0, x1)"), (_INTEGER, "truncated_mod(x0, x1)")),
    "pow": _two((_FLOAT, "pow(x0, x1)"), (_INTEGER, "integer_power(x0, x1)")),
    "maximum": _two((_NUMERIC, "maximum(x0, x1)")),
    "minimum": _two((_NUMERIC, "minimum(x0, x1)")),
    "clip": Expression(3, ((_NUMERIC, "minimum(maximum(x0, x1), x2)"),)),
    "negative": _one("-x0", _NUMERIC),
    "abs": Expression(1, ((_FLOAT, "fabs(x0)"), (_INT, "(x0 < 0 ? -x0 : x0)"), (_UINT, "x0"))),
    "sign": _one("(x0 != x0 ? x0 : (C)((x0 > (C)0) - (x0 < (C)0)))", _NUMERIC),
    "square": _one("x0 * x0", _NUMERIC),
    "reciprocal": _one("(C)1 / x0"),
    # Comparison, choice and bits
    "equal": _two((_REAL, "x0 == x1"), mask=True),
    "not_equal": _two((_REAL, "x0 != x1"), mask=True),
    "less": _two((_REAL, "x0 < x1"), mask=True),
    "less_equal": _two((_REAL, "x0 <= x1"), mask=True),
    "greater": _two((_REAL, "x0 > x1"), mask=True),
    "greater_equal": _two((_REAL, "x0 >= x1"), mask=True),
    "isnan": _one("x0 != x0", mask=True),
    "isinf": _one("fabs(x0) == (C)INFINITY", mask=True),
    "isfinite": _one("fabs(x0) < (C)INFINITY", mask=True),
    "signbit": _one("copysign((C)1, x0) < (C)0", mask=True),
    "where": Expression(3, ((_UINT, "(x0 ? x1 : x2)"),)),
    "bitwise_and": _two((Kind.INTEGRAL, "x0 & x1")),
    "bitwise_or": _two((Kind.INTEGRAL, "x0 | x1")),
    "bitwise_xor": _two((Kind.INTEGRAL, "x0 ^ x1")),
    "bitwise_not": _one("~x0", _INTEGER),
    "logical_not": _one("!x0", _BOOL),
    "bitwise_left_shift": _two((_INTEGER, "shift_left(x0, x1)")),
    "bitwise_right_shift": _two((_INTEGER, "shift_right(x0, x1)")),
    "copysign": _two((_FLOAT, "copysign(x0, x1)")),
    "sqrt": _one("sqrt(x0)"),
    "floor": _one("floor(x0)"),
    "ceil": _one("ceil(x0)"),
    "trunc": _one("trunc(x0)"),
    "round": _one("rint(x0)"),
    "relu": _one("maximum(x0, (C)0)"),
    "relu_grad": _two((_FLOAT, "(x0 > (C)0 ? x1 : (C)0)")),
    "prelu": _two((_FLOAT, "(x0 > (C)0 ? x0 : x0 * x1)")),
    "leaky_relu": _two((_FLOAT, "(x0 > (C)0 ? x0 : x0 * x1)")),
    "hard_swish": _one("x0 * minimum(maximum(x0 / (C)6 + (C)0.5f, (C)0), (C)1)"),
    "hard_sigmoid": Expression(3, ((_FLOAT, "minimum(maximum(x0 * x1 + x2, (C)0), (C)1)"),)),
    "softsign": _one("x0 / ((C)1 + fabs(x0))"),
    # Functions
    "exp": _function("exp(x0)"),
    "expm1": _function("burn_expm1(x0)"),
    "log": _function("burn_log(x0)"),
    "log1p": _function("burn_log1p(x0)"),
    "log2": _function("log2(x0)"),
    "log10": _function("log10(x0)"),
    "sin": _function("sin(x0)"),
    "cos": _function("cos(x0)"),
    "tan": _function("tan(x0)"),
    "tanh": _function("burn_tanh(x0)"),
    "sinh": _function("sinh(x0)"),
    "cosh": _function("cosh(x0)"),
    "asin": _function("asin(x0)"),
    "acos": _function("acos(x0)"),
    "atan": _function("atan(x0)"),
    "asinh": _function("asinh(x0)"),
    "acosh": _function("acosh(x0)"),
    "atanh": _function("atanh(x0)"),
    "erf": _function("burn_erf(x0)"),
    "atan2": _activation("atan2(x0, x1)", 2),
    "hypot": _activation("hypot(x0, x1)", 2),
    "logaddexp": _activation("log_add_exp(x0, x1)", 2),
    # Activation functions
    "sigmoid": _activation("sigmoid(x0)"),
    "log_sigmoid": _activation("minimum(x0, (C)0) - burn_log1p(exp(-fabs(x0)))"),
    "silu": _activation("x0 * sigmoid(x0)"),
    "mish": _activation("x0 * tanh_of_softplus(x0)"),
    "tanhshrink": _activation("x0 - burn_tanh(x0)"),
    "softplus": _activation("softplus(x0, x1)", 2),
    "elu": _activation("(x0 > (C)0 ? x0 * x2 : burn_expm1(x0 * x3) * x1)", 4),
    "gelu": _activation("(x0 * (C)0.5f) * ((C)1 + burn_erf(x0 * SQRT_HALF))"),
    "gelu_tanh": _activation("x0 * sigmoid((C)2 * gelu_inner(x0))"),
    "gelu_grad": _activation("x1 * gelu_derivative(x0)", 2),
    "gelu_tanh_grad": _activation("x1 * gelu_tanh_derivative(x0)", 2),
}
"""By the name of the op, or of a variant of one."""

EXPRESSION_CODES: Final = {name: code for code, name in enumerate(EXPRESSIONS)}
"""Codes by which a kernel selects one of its expressions."""


_KINDS: Final = {"float": (_FLOAT,), "double": (_FLOAT,), "long": (_INT,), "ulong": (_UINT, _BOOL)}


@functools.cache
def function_source(c_type: str, operands: int, group: str) -> str:
    """Source of a function ``applied(op, x0, ...)`` with a case for each expression of a group."""
    cases = []
    for name, expression in EXPRESSIONS.items():
        if (expression.operands, expression.group) != (operands, group):
            continue
        forms = [expression.form(kind) for kind in _KINDS[c_type]]
        text = next((form for form in forms if form is not None), None)
        if text is not None:
            cases.append(f"        case {EXPRESSION_CODES[name]}: return (C)({text});")
    parameters = ", ".join([f"C x{k}" for k in range(operands)])
    newline = "\n"
    return (
        f"{text_of('functions.cl')}\ninline C applied(int op, {parameters}) {{\n"
        f"    switch (op) {{\n{newline.join(cases)}\n    }}\n    return x0;\n}}\n"
    )
