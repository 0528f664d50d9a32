"""Writer: what a language does for a kernel; schedules call it statement by statement.

A schedule decides in which order elements are computed (`burn.kernels.serial` for one thread of a
CPU, `burn.kernels.groups` for the work groups of a GPU) and calls a writer for each statement. So a
language is a writer, and has no loops of its own. `burn.kernels.c.CWriter` is the writer of
languages like C; another one of them derives from it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol, TypeAlias

from burn.dtype import DType
from burn.kernels.kernel import Extent

__all__ = ["LoopKind", "Value", "Writer"]

Value: TypeAlias = Any
"""A value in the language of a writer: a name in a text, or an object of a compiler library."""

LoopKind: TypeAlias = Literal["serial", "vector", "unrolled"]
"""How a loop runs. The iterations of a vector loop are independent, except for reductions into
variables, whose order is free."""


class Writer(Protocol):
    """Statements and expressions of a language, in the order in which a schedule needs them.

    Each float function is rounded by itself: code has no fused multiply-add where the kernel has a
    product and a sum, and no product with the reciprocal instead of a quotient, unless
    `Kernel.relaxed` permits it. A writer may have ``multiply_add(a, b, c, dtype)``, the fused
    ``a * b + c``, by which sums over the columns add products; None where there is none.

    Indices are of the writer's integer type for indices. A value of float16 or bfloat16 is float32
    here; `load` and `store` convert.
    """

    def literal(self, value: bool | float, dtype: DType) -> Value:
        """A constant."""

    def integer(self, value: Extent) -> Value:
        """A constant of the type of indices, or a number that each launch is given."""

    def scalar(self, number: int, dtype: DType) -> Value:
        """A number that each launch is given, converted to a dtype."""

    def apply(self, function: str, operands: tuple[Value, ...], dtype: DType, of: DType) -> Value:
        """A scalar function, one of `burn.kernels.functions.FUNCTIONS`.

        `dtype` is that of the result, and `of` that of the operands (the last one's for `where`).
        """

    def index_of(self, value: Value, dtype: DType) -> Value:
        """A value of an integer dtype as an index."""

    def value_of(self, index: Value, dtype: DType) -> Value:
        """An index as a value of an integer dtype."""

    def add(self, a: Value, b: Value) -> Value:
        """The sum of two indices."""

    def multiply(self, a: Value, b: Value) -> Value:
        """The product of two indices."""

    def divide(self, a: Value, b: Value) -> Value:
        """The quotient of an index, which is not negative, by a positive one."""

    def remainder(self, a: Value, b: Value) -> Value:
        """The remainder of an index, which is not negative, by a positive one."""

    def minimum(self, a: Value, b: Value) -> Value:
        """The smaller one of two indices."""

    def less(self, a: Value, b: Value) -> Value:
        """Whether an index is less than another one, as a condition for `when`."""

    def load(self, input: int, index: Value, dtype: DType, guard: Value | None = None) -> Value:
        """An element of an input; 0 where a guard, a value of bool, is false."""

    def store(self, output: int, index: Value, value: Value, dtype: DType) -> None:
        """Write an element of an output."""

    def variable(self, initial: Value, dtype: DType) -> Any:
        """A new variable, which `get` and `set` take."""

    def get(self, variable: Any) -> Value:
        """The value of a variable now."""

    def set(self, variable: Any, value: Value) -> None:
        """Assign to a variable."""

    def array(self, count: int, dtype: DType) -> Any:
        """A small array in registers or on the stack, which `element` and `set_element` take."""

    def element(self, array: Any, index: Value) -> Value:
        """An element of a small array."""

    def set_element(self, array: Any, index: Value, value: Value) -> None:
        """Assign to an element of a small array."""

    def loop(
        self, start: Value, stop: Value, step: int = 1, kind: LoopKind = "serial"
    ) -> AbstractContextManager[Value]:
        """Context whose statements are the body of a loop; it gives the index."""

    def when(self, condition: Value) -> AbstractContextManager[None]:
        """Context whose statements run if a condition of `less`, or a value of bool, is true."""
