"""Elementwise ops in kernels that know several of them: the expressions of core in OpenCL C.

The operands are ``x0``, ``x1``, ..., in the type `C` that the kernel computes in: float, double,
long or ulong. Those of complex numbers, float2 or double2, are here: core has none. Their functions
are in ``kernels/complex_numbers.cl``.
"""

from __future__ import annotations

import functools
from typing import Final, NamedTuple

from burn.plugin_api import (
    COMPLEX_TYPES,
    REGISTRY,
    DType,
    Expression,
    Kind,
    bool_,
    expression,
    float32,
    float64,
    int64,
    uint64,
)
from burn_opencl.dialect import OpenClWriter, VectorizedWriter
from burn_opencl.programs import text_of

__all__ = ["CASES", "CASE_CODES", "Case", "ComplexExpression", "function_source"]


class ComplexExpression(NamedTuple):
    """An op of complex numbers in C.

    Attributes
    ----------
    text : str
        The result, of the type `C`.
    gives_bool : bool
        Whether the result is a bool, in its real part.
    """

    text: str
    gives_bool: bool = False


class Case(NamedTuple):
    """An op in C.

    Attributes
    ----------
    op : str
        Name of the op.
    choice : str or None
        Value of its attribute that is a choice.
    group : str
        Expressions of one group are cases of one kernel, which is compiled as a whole.
    """

    op: str
    choice: str | None
    group: str

    def form(self, kind: Kind) -> Expression | ComplexExpression | None:
        """The expression for operands of a kind."""
        if kind is Kind.COMPLEX:
            return _COMPLEX.get(self.op)
        return None if self.op in _COMPLEX_ONLY else expression(self.op, kind, self.choice)

    def result(self, dtype: DType) -> DType | None:
        """The dtype of the result for operands of a dtype; None if there is no expression."""
        form = self.form(dtype.kind)
        if form is None:
            return None
        if form.gives_bool:
            return bool_
        return dtype.component if self.op == "abs" else dtype


_GROUPS: Final = {
    "arithmetic": "real add subtract multiply divide floor_divide remainder fmod pow maximum "
    "minimum clip negative abs sign square reciprocal equal not_equal less less_equal greater "
    "greater_equal isnan isinf isfinite signbit where bitwise_and bitwise_or bitwise_xor "
    "bitwise_not bitwise_left_shift bitwise_right_shift copysign sqrt floor ceil trunc round relu "
    "relu_grad prelu leaky_relu hard_swish hard_sigmoid hardtanh softsign shrink threshold "
    "trunc_divide heaviside lerp",
    "functions": "exp expm1 log log1p log2 log10 sin cos tan tanh sinh cosh asin acos atan asinh "
    "acosh atanh erf exp2 rsqrt cbrt logit",
    "activations": "atan2 hypot logaddexp sigmoid log_sigmoid silu mish tanhshrink softplus elu "
    "gelu.none gelu.tanh gelu_grad.none gelu_grad.tanh binary_cross_entropy xlogy",
    # Long series, each a kernel of its own.
    **{name: name for name in ("erfc", "erfinv", "lgamma", "digamma", "i0", "i1", "sinc")},
}

_COMPLEX_ONLY: Final = ("conj", "complex")
"""Ops that are no kernels for real numbers."""

CASES: Final = {
    name: Case(name.partition(".")[0], name.partition(".")[2] or None, group)
    for group, names in _GROUPS.items()
    for name in names.split()
} | {name: Case(name, None, "arithmetic") for name in _COMPLEX_ONLY}
"""By the name of the op, with that of its choice if it has one."""

CASE_CODES: Final = {name: code for code, name in enumerate(CASES)}
"""Codes by which a kernel selects one of its expressions."""

_COMPLEX: Final = {
    "real": ComplexExpression("x0"),
    "add": ComplexExpression("x0 + x1"),
    "subtract": ComplexExpression("x0 - x1"),
    "multiply": ComplexExpression("product(x0, x1)"),
    "divide": ComplexExpression("quotient(x0, x1)"),
    "pow": ComplexExpression("complex_pow(x0, x1)"),
    "negative": ComplexExpression("-x0"),
    "abs": ComplexExpression("(C)(magnitude(x0), NUMBER(0.0))"),
    "sign": ComplexExpression("sign_of(x0)"),
    "square": ComplexExpression("product(x0, x0)"),
    "reciprocal": ComplexExpression("quotient((C)(NUMBER(1.0), NUMBER(0.0)), x0)"),
    "equal": ComplexExpression("TRUTH(x0.x == x1.x && x0.y == x1.y)", gives_bool=True),
    "not_equal": ComplexExpression("TRUTH(x0.x != x1.x || x0.y != x1.y)", gives_bool=True),
    "isnan": ComplexExpression("TRUTH(has_nan(x0))", gives_bool=True),
    "isinf": ComplexExpression("TRUTH(has_infinity(x0))", gives_bool=True),
    "isfinite": ComplexExpression("TRUTH(is_finite(x0))", gives_bool=True),
    "round": ComplexExpression("rint(x0)"),
    "sqrt": ComplexExpression("complex_sqrt(x0)"),
    "conj": ComplexExpression("conjugate(x0)"),
    "complex": ComplexExpression("(C)(x0.x, x1.x)"),
    **{
        name: ComplexExpression(f"complex_{name}(x0)")
        for name in _GROUPS["functions"].split()
        if Kind.COMPLEX in REGISTRY[name].operands["x"].kinds
    },
}
"""By the name of the op; ``real`` is the number itself, of which its real part may be written."""

_COMPUTED: Final = {"float": float32, "double": float64, "long": int64, "ulong": uint64}
"""The dtype of each type that kernels compute in."""


@functools.cache
def function_source(c_type: str, operands: int, group: str, *, is_cpu: bool) -> str:
    """Source of a function ``applied(op, x0, ...)`` with a case for each expression of a group."""
    parameters = ", ".join([f"C x{k}" for k in range(operands)])
    if c_type in COMPLEX_TYPES:
        lines = "\n".join(
            [
                f"case {CASE_CODES[name]}: return {value.text};"
                for name, value in _COMPLEX.items()
                if CASES[name].group == group and len(REGISTRY[name].operands) == operands
            ]
        )
        return f"{text_of('complex_numbers.cl')}\n{_applied('', parameters, lines)}"
    writer = (VectorizedWriter if is_cpu else OpenClWriter)()
    dtype = _COMPUTED[c_type]
    for name, case in CASES.items():
        moves_words = name == "where"  # by a condition, which is a word too
        form = None if moves_words and c_type != "ulong" else case.form(dtype.kind)
        if (
            case.group == group
            and isinstance(form, Expression)
            and len(form.parameters) == operands
        ):
            with writer.block(f"case {CASE_CODES[name]}:"):
                values = {parameter: f"x{k}" for k, parameter in enumerate(form.parameters)}
                writer.line(f"return (C)({form.write(writer, values, dtype)});")
    return _applied(f"{writer.functions}\n", parameters, writer.body)


def _applied(functions: str, parameters: str, cases: str) -> str:
    return (
        f"{functions}inline C applied(int op, {parameters}) {{\n"
        f"    switch (op) {{\n{cases}\n    }}\n    return x0;\n}}\n"
    )
