"""The C++ of elementwise ops: the expressions of core for real numbers, and those of complex ones.

``x0``, ``x1``, ... are the operands. Functions of complex numbers are in ``kernels/complex.cuh``.
"""

from __future__ import annotations

from typing import ClassVar, Final, NamedTuple

from burn.plugin_api import (
    REGISTRY,
    CWriter,
    DType,
    Kind,
    Tag,
    bool_,
    expression,
    float32,
)
from burn_cuda.kernels import C_TYPES
from burn_cuda.kernels.elementwise import Program

__all__ = ["EXPRESSIONS", "Expression"]


class _Writer(CWriter):
    """The function of an element."""

    types: ClassVar = C_TYPES
    function = "__device__ __forceinline__"


class Expression(NamedTuple):
    """The C++ of an elementwise op.

    Attributes
    ----------
    op : str
        Name of the op.
    choice : str or None
        Value of its attribute that is a choice.
    operands : int
        Number of operands.
    parameters : tuple of str
        Names of the attributes that are numbers, each a double.
    """

    op: str
    choice: str | None
    operands: int
    parameters: tuple[str, ...]

    def takes(self, kind: Kind) -> bool:
        """Whether there is an expression for operands of a kind."""
        if kind == Kind.COMPLEX:
            return all(kind in operand.kinds for operand in REGISTRY[self.op].operands.values())
        return expression(self.op, kind, self.choice) is not None

    def program(self, dtype: DType, scalars: tuple[bool, ...]) -> Program:
        """What a kernel for operands of a dtype computes, some of which are Python numbers.

        Raises
        ------
        TypeError
            If there is no expression for them.
        """
        if not self.takes(dtype.kind):
            raise TypeError(f"{self.op} of {dtype}")
        inputs, functions = (dtype,) * self.operands, ""
        form = None if dtype.is_complex else expression(self.op, dtype.kind, self.choice)
        if form is None:
            body = f"r0 = {_COMPLEX.get(self.op, f'{self.op}(x0)')};"
            output = bool_ if self.op in _QUESTIONS else dtype
            output = dtype.component if self.op == "abs" else output
        else:
            writer = _Writer()
            names = [f"x{number}" for number in range(self.operands)]
            values = dict(zip(form.parameters, (*names, *self.parameters), strict=True))
            computed = float32 if dtype.is_float and dtype.itemsize == 2 else dtype
            result = form.write(writer, values, computed)
            functions, body = writer.functions, f"{writer.body}\n    r0 = {result};"
            output = bool_ if form.gives_bool else dtype
        return Program(body, inputs, scalars, (output,), self.parameters, functions)


_COMPLEX: Final = {
    "add": "x0 + x1",
    "subtract": "x0 - x1",
    "multiply": "x0 * x1",
    "divide": "x0 / x1",
    "pow": "pow(x0, x1)",
    "negative": "(C)(-x0)",
    "abs": "magnitude(x0)",
    "sign": "sign_of(x0)",
    "square": "x0 * x0",
    "reciprocal": "(C)1 / x0",
    "equal": "x0 == x1",
    "not_equal": "x0 != x1",
    "isnan": "x0 != x0",
    "isinf": "is_infinite(x0)",
    "isfinite": "is_finite(x0)",
    "round": "rint(x0)",
}
"""Expressions of complex numbers; a function of one that is not here has the name of its op."""

_QUESTIONS: Final = frozenset({"equal", "not_equal", "isnan", "isinf", "isfinite"})
"""Ops that give bool of complex numbers."""

_ELSEWHERE: Final = frozenset({"where", "real", "imag", "conj"})
"""Elementwise ops with methods of their own."""

_KINDS: Final = (Kind.FLOAT, Kind.INT, Kind.UINT, Kind.BOOL)
"""The kinds of real numbers."""


def _all() -> dict[str, Expression]:
    found = {}
    for name, op in REGISTRY.items():
        if Tag.ELEMENTWISE in op.tags and name not in _ELSEWHERE:
            numbers = tuple(
                [attribute.name for attribute in op.attributes.values() if not attribute.choices]
            )
            choices: list[str | None] = []
            for attribute in op.attributes.values():
                choices += attribute.choices
            for choice in choices or [None]:
                if all(expression(name, kind, choice) is None for kind in _KINDS):
                    continue  # its decomposition is computed, as of an op that a plugin adds
                key = name if choice is None else f"{name}.{choice}"
                found[key] = Expression(name, choice, len(op.operands), numbers)
    return found


EXPRESSIONS: Final[dict[str, Expression]] = _all()
"""By the name of the op, with that of its choice if it has one."""
