"""Elementwise ops in kernels that know several of them: the expressions of core in OpenCL C.

The operands are ``x0``, ``x1``, ..., in the type `C` that the kernel computes in: float, double,
long or ulong.
"""

from __future__ import annotations

import functools
from typing import Final, NamedTuple

from burn.plugin_api import Expression, Kind, expression, float32, float64, int64, uint64
from burn_opencl.dialect import OpenClWriter, VectorizedWriter

__all__ = ["CASES", "CASE_CODES", "Case", "function_source"]


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

    def form(self, kind: Kind) -> Expression | None:
        """The expression for operands of a kind."""
        return expression(self.op, kind, self.choice)


_GROUPS: Final = {
    "arithmetic": "real add subtract multiply divide floor_divide remainder fmod pow maximum "
    "minimum clip negative abs sign square reciprocal equal not_equal less less_equal greater "
    "greater_equal isnan isinf isfinite signbit where bitwise_and bitwise_or bitwise_xor "
    "bitwise_not bitwise_left_shift bitwise_right_shift copysign sqrt floor ceil trunc round relu "
    "relu_grad prelu leaky_relu hard_swish hard_sigmoid hardtanh softsign shrink threshold",
    "functions": "exp expm1 log log1p log2 log10 sin cos tan tanh sinh cosh asin acos atan asinh "
    "acosh atanh erf",
    "activations": "atan2 hypot logaddexp sigmoid log_sigmoid silu mish tanhshrink softplus elu "
    "gelu.none gelu.tanh gelu_grad.none gelu_grad.tanh binary_cross_entropy",
}

CASES: Final = {
    name: Case(name.partition(".")[0], name.partition(".")[2] or None, group)
    for group, names in _GROUPS.items()
    for name in names.split()
}
"""By the name of the op, with that of its choice if it has one."""

CASE_CODES: Final = {name: code for code, name in enumerate(CASES)}
"""Codes by which a kernel selects one of its expressions."""

_COMPUTED: Final = {"float": float32, "double": float64, "long": int64, "ulong": uint64}
"""The dtype of each type that kernels compute in."""


@functools.cache
def function_source(c_type: str, operands: int, group: str, *, is_cpu: bool) -> str:
    """Source of a function ``applied(op, x0, ...)`` with a case for each expression of a group."""
    writer = (VectorizedWriter if is_cpu else OpenClWriter)()
    dtype = _COMPUTED[c_type]
    for name, case in CASES.items():
        moves_words = name == "where"  # by a condition, which is a word too
        form = None if moves_words and c_type != "ulong" else case.form(dtype.kind)
        if case.group == group and form is not None and len(form.parameters) == operands:
            with writer.block(f"case {CASE_CODES[name]}:"):
                values = {one: f"x{k}" for k, one in enumerate(form.parameters)}
                writer.line(f"return (C)({form.write(writer, values, dtype)});")
    parameters = ", ".join([f"C x{k}" for k in range(operands)])
    return (
        f"{writer.functions}\ninline C applied(int op, {parameters}) {{\n"
        f"    switch (op) {{\n{writer.body}\n    }}\n    return x0;\n}}\n"
    )
