"""What schedules share: the values of nodes, reductions, and the loops that they need."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

from burn.dtype import Kind
from burn.kernels.kernel import (
    Apply,
    Extent,
    Index,
    Kernel,
    Literal,
    Load,
    Node,
    Reduce,
    Scalar,
    Store,
)
from burn.kernels.writer import Value, Writer

__all__ = [
    "Loop",
    "Schedule",
    "columns_are_neighbours",
    "columns_of",
    "kept_of",
    "line_and_part",
    "loops_of",
    "operands_of",
    "position",
    "product",
]

W = TypeVar("W", bound=Writer)


class Schedule(Generic[W]):
    """A schedule at work: the values of nodes at an item, or at a row and a column."""

    def __init__(self, writer: W, kernel: Kernel) -> None:
        self.writer = writer
        self.kernel = kernel
        self.values: dict[int, Value] = {}
        """Values of nodes in the current block."""

    def spread(self, index: Value, axes: range) -> dict[int, Value]:
        """The index along each of several axes, from that along all of them."""
        writer, indices = self.writer, {}
        for axis in reversed(axes[1:]):
            length = writer.integer(self.kernel.space[axis])
            indices[axis] = writer.remainder(index, length)
            index = writer.divide(index, length)
        if axes:
            indices[axes[0]] = index
        return indices

    def position(
        self, offset: Extent, strides: Sequence[Extent], indices: dict[int, Value]
    ) -> Value:
        """The index of an element."""
        return position(self.writer, offset, strides, indices)

    def columns_of(self, rows: dict[int, Value]) -> Value:
        """The number of columns of a row at these indices."""
        return columns_of(self.writer, self.kernel, rows)

    def compute(self, wanted: Iterable[int], indices: dict[int, Value]) -> None:
        """Write the nodes that are wanted, and those that they need, unless they are known."""
        for number in self.needed(wanted):
            self.values[number] = self.value(self.kernel.body[number], indices)

    def needed(self, wanted: Iterable[int]) -> list[int]:
        """The nodes that are wanted, and those that they need, in order, which are not known."""
        found: set[int] = set()
        left = list(wanted)
        while left:
            number = left.pop()
            if number not in found and number not in self.values:
                found.add(number)
                left += operands_of(self.kernel.body[number])
        return sorted(found)

    def value(self, node: Node, indices: dict[int, Value]) -> Value:
        """Write a node."""
        writer, values = self.writer, self.values
        if isinstance(node, Load):
            index = self.position(node.offset, node.strides, indices)
            for gather, stride in node.gathers:
                gathered = writer.index_of(values[gather], self.kernel.body[gather].dtype)
                index = writer.add(index, writer.multiply(gathered, writer.integer(stride)))
            guard = None if node.guard is None else values[node.guard]
            return writer.load(node.input, index, node.dtype, guard)
        if isinstance(node, Index):
            return writer.value_of(indices[node.axis], node.dtype)
        if isinstance(node, Literal):
            return writer.literal(node.value, node.dtype)
        if isinstance(node, Scalar):
            return writer.scalar(node.number, node.dtype)
        if isinstance(node, Apply):
            operands = tuple([values[operand] for operand in node.operands])
            of = self.kernel.body[node.operands[-1]].dtype
            return writer.apply(node.function, operands, node.dtype, of)
        raise TypeError(f"{node} is computed by a loop")

    @contextlib.contextmanager
    def nested(self) -> Iterator[None]:
        """Context in which values are those of an inner block, too."""
        outer = self.values
        self.values = dict(outer)
        yield
        self.values = outer

    def store(self, store: Store, indices: dict[int, Value]) -> None:
        """Write an element of an output."""
        index = self.position(store.offset, store.strides, indices)
        dtype = self.kernel.outputs[store.output][0]
        self.writer.store(store.output, index, self.values[store.node], dtype)

    def combined(self, number: int, x: Value, y: Value) -> Value:
        """Two values of a reduction as one."""
        node = self.reduction(number)
        names = _MASKS if node.dtype.is_bool else _FUNCTIONS
        return self.writer.apply(names[node.kind], (x, y), node.dtype, node.dtype)

    def accumulated(self, number: int, total: Value) -> Value:
        """The total of a reduction so far with the current value of what it reduces.

        A product that nothing else reads is added by a fused multiply-add, where the language says
        how, unless the language may contract what it likes.
        """
        kernel, node = self.kernel, self.reduction(number)
        fused = getattr(self.writer, "multiply_add", None)
        if fused is not None and node.operand in kernel.terms and not kernel.relaxed:
            factors = [self.values[operand] for operand in operands_of(kernel.body[node.operand])]
            found = fused(*factors, total, node.dtype)
            if found is not None:
                return found
        return self.combined(number, total, self.values[node.operand])

    def neutral(self, number: int) -> Value:
        """What changes no value of a reduction."""
        node = self.reduction(number)
        return self.writer.literal(_neutral(node), node.dtype)

    def reduction(self, number: int) -> Reduce:
        """A node that is a reduction."""
        node = self.kernel.body[number]
        if not isinstance(node, Reduce):
            raise TypeError(f"{node} is no reduction")
        return node


def operands_of(node: Node) -> tuple[int, ...]:
    """The nodes that a node needs."""
    if isinstance(node, Apply):
        return node.operands
    if isinstance(node, Reduce):
        return (node.operand,)
    if isinstance(node, Load):
        gathers = tuple([gather for gather, _ in node.gathers])
        return gathers if node.guard is None else (*gathers, node.guard)
    return ()


def product(writer: Any, lengths: Iterable[Extent]) -> Value:
    """The product of lengths as an index."""
    found = writer.integer(1)
    for length in lengths:
        found = writer.multiply(found, writer.integer(length))
    return found


def line_and_part(
    writer: Any, index: Value, parts: Value, axes: Sequence[int]
) -> tuple[Value, Value]:
    """The line and the part of it that an index of parts is; the lines are those of some axes."""
    if not axes:
        return writer.integer(0), index
    return writer.divide(index, parts), writer.remainder(index, parts)


def position(
    writer: Writer, offset: Extent, strides: Sequence[Extent], indices: Mapping[int, Value]
) -> Value:
    """The index of the element at the indices along all axes."""
    index = writer.integer(offset)
    for axis, stride in enumerate(strides):
        if stride:
            index = writer.add(index, writer.multiply(indices[axis], writer.integer(stride)))
    return index


def columns_of(writer: Writer, kernel: Kernel, indices: Mapping[int, Value]) -> Value:
    """The number of columns of the row at some indices."""
    columns = product(writer, kernel.space[kernel.rows :])
    if kernel.ragged is None:
        return columns
    before = writer.multiply(indices[0], columns)
    rest = writer.add(writer.integer(kernel.ragged), writer.multiply(before, writer.integer(-1)))
    return writer.minimum(columns, rest)


class Loop(NamedTuple):
    """A loop over the columns, for reductions or for what is stored."""

    reductions: tuple[int, ...]
    wanted: tuple[int, ...]


def loops_of(kernel: Kernel) -> list[Loop]:
    """The loops over the columns; each needs what the reductions before gave."""
    body = kernel.body
    phases: list[int] = []
    found: dict[int, list[int]] = {}
    for number, node in enumerate(body):
        phase = max([phases[operand] for operand in operands_of(node)], default=0)
        if isinstance(node, Reduce):
            found.setdefault(phase, []).append(number)
            phase += 1
        phases.append(phase)
    loops = [
        Loop(tuple(numbers), tuple([operands_of(body[number])[0] for number in numbers]))
        for _, numbers in sorted(found.items())
    ]
    stored = [store.node for store in kernel.stores if not kernel.is_of_rows(store)]
    return [*loops, Loop((), tuple(stored))] if stored else loops


def kept_of(kernel: Kernel, loops: list[Loop]) -> tuple[list[int], dict[int, int]]:
    """Nodes that a later loop over the columns needs of an earlier one; the first loop of each."""
    first: dict[int, int] = {}
    kept: set[int] = set()
    for count, loop in enumerate(loops):
        seen: set[int] = set()
        left = list(loop.wanted)
        while left:
            number = left.pop()
            if kernel.is_row_level[number] or number in seen:
                continue
            seen.add(number)
            if first.setdefault(number, count) < count:
                kept.add(number)
            else:
                left += operands_of(kernel.body[number])
    return sorted(kept), first


def columns_are_neighbours(kernel: Kernel) -> bool:
    """Whether more is contiguous along the columns than along the rows."""
    rows = columns = 0
    split = kernel.rows
    for node, is_row_level in zip(kernel.body, kernel.is_row_level, strict=True):
        if isinstance(node, Load) and not is_row_level:
            columns += node.strides[-1] == 1
            rows += split > 0 and node.strides[split - 1] == 1
    return columns > rows


_FUNCTIONS: Final = {"sum": "add", "product": "multiply", "max": "maximum", "min": "minimum"}
_MASKS: Final = {"max": "bitwise_or", "min": "bitwise_and"}


def _neutral(node: Reduce) -> bool | int | float:
    kind, _, dtype = node
    if kind in {"sum", "product"}:
        return int(kind == "product")
    if dtype.is_bool:
        return kind == "min"
    if dtype.is_float:
        return -math.inf if kind == "max" else math.inf
    bits = 8 * dtype.itemsize - (dtype.kind is Kind.INT)
    if kind == "min":
        return (1 << bits) - 1
    return -(1 << bits) if dtype.kind is Kind.INT else 0
