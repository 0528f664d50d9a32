"""The schedule for work groups of kernels without reductions, and vectors of neighbours."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from burn.kernels.indices import Arithmetic, Formula, quotient_up
from burn.kernels.kernel import Extent, Kernel, Load, Store
from burn.kernels.schedule import Schedule, line_and_part, product
from burn.kernels.writer import Value

if TYPE_CHECKING:
    from burn.kernels.groups import GroupWriter

__all__ = ["Items", "is_contiguous", "vector_width"]

_VECTOR_BYTES: Final = 16
"""Bytes of one access to memory."""


class Items(Schedule["GroupWriter"]):
    """A kernel without reductions: a lane computes an item, or some neighbours."""

    def __init__(self, writer: GroupWriter, kernel: Kernel, lanes: int) -> None:
        super().__init__(writer, kernel)
        self.lanes = lanes

    def write(self) -> tuple[Formula, int]:
        """Write the kernel."""
        kernel, writer = self.kernel, self.writer
        width = self.width()
        item = writer.add(
            writer.multiply(writer.group_index(), writer.integer(self.lanes)), writer.lane_index()
        )
        count = self.count(writer, width)
        with writer.when(writer.less(item, count)):
            if width == 1:
                self.write_item(self.spread(item, range(len(kernel.space))))
            else:
                self.write_vectors(item, width)
        numbers = Arithmetic()
        groups = quotient_up(numbers, self.count(numbers, width), self.lanes)
        return Formula(groups), self.lanes

    def count(self, writer: Any, width: int) -> Value:
        """The number of items."""
        *others, last = self.kernel.space or (1,)
        parts = quotient_up(writer, writer.integer(last), width)
        return writer.multiply(product(writer, others), parts)

    def write_item(self, indices: dict[int, Value]) -> None:
        """Write the computation of one element of each output."""
        self.compute([store.node for store in self.kernel.stores], indices)
        for store in self.kernel.stores:
            self.store(store, indices)

    def write_vectors(self, item: Value, width: int) -> None:
        """Write neighbours along the last axis: vectors are loaded, computed by parts, stored.

        Those that are left at the end of an axis are computed one by one.
        """
        kernel, writer = self.kernel, self.writer
        last = len(kernel.space) - 1
        length = writer.integer(kernel.space[last])
        parts = quotient_up(writer, length, width)
        line, part = line_and_part(writer, item, parts, range(last))
        indices = self.spread(line, range(last))
        first = writer.multiply(part, writer.integer(width))
        fixed = dataclasses.replace(kernel, rows=last).is_row_level
        wanted = self.needed([store.node for store in kernel.stores])
        self.compute([number for number in wanted if fixed[number]], indices)
        if is_multiple(kernel.space[last], width):
            self.write_vector({**indices, last: first}, fixed, wanted, width)
            return
        is_whole = writer.less(first, writer.add(length, writer.integer(1 - width)))
        with writer.when(is_whole), self.nested():
            self.write_vector({**indices, last: first}, fixed, wanted, width)
        is_part = writer.less(length, writer.add(first, writer.integer(width)))
        with writer.when(is_part), writer.loop(first, length) as index, self.nested():
            self.write_item({**indices, last: index})

    def write_vector(
        self, indices: dict[int, Value], fixed: Sequence[bool], wanted: Sequence[int], width: int
    ) -> None:
        """Write a whole vector."""
        kernel, writer = self.kernel, self.writer
        last, vectors = len(kernel.space) - 1, {}
        first = indices[last]
        for number in wanted:
            node = kernel.body[number]
            if isinstance(node, Load) and not fixed[number] and is_contiguous(node):
                index = self.position(node.offset, node.strides, indices)
                vectors[number] = writer.load_vector(node.input, index, width, node.dtype)
        results = [writer.vector(width, kernel.outputs[s.output][0]) for s in kernel.stores]
        zero, end = writer.integer(0), writer.integer(width)
        with writer.loop(zero, end, kind="unrolled") as part, self.nested():
            for number, vector in vectors.items():
                self.values[number] = writer.element(vector, part)
            inner = {**indices, last: writer.add(first, part)}
            self.compute([store.node for store in kernel.stores], inner)
            for store, result in zip(kernel.stores, results, strict=True):
                writer.set_element(result, part, self.values[store.node])
        for store, result in zip(kernel.stores, results, strict=True):
            index = self.position(store.offset, store.strides, indices)
            writer.store_vector(store.output, index, result, width)

    def width(self) -> int:
        """Number of neighbours that a lane computes."""
        kernel = self.kernel
        loads = [node for node in kernel.body if isinstance(node, Load)]
        accesses: list[Load | Store] = [*[n for n in loads if not n.gathers], *kernel.stores]
        if not kernel.space or any(access.strides[-1] not in {0, 1} for access in accesses):
            return 1
        lengths = [] if len(kernel.space) == 1 else [kernel.space[-1]]
        return vector_width(kernel, [*loads, *kernel.stores], lengths)


def vector_width(
    kernel: Kernel, accesses: Sequence[Load | Store], lengths: Sequence[Extent]
) -> int:
    """Elements of a vector that divides lengths, and all steps between neighbours in memory."""
    steps, sizes = list(lengths), [1]
    for access in accesses:
        dtype = access.dtype if isinstance(access, Load) else kernel.outputs[access.output][0]
        sizes.append(dtype.itemsize)
        if is_contiguous(access):
            steps += [access.offset, *access.strides[:-1]]
    width = min(_VECTOR_BYTES // max(sizes), 8)
    while not all(is_multiple(step, width) for step in steps):
        width //= 2
    return width


def is_multiple(extent: Extent, width: int) -> bool:
    """Whether it is known that a width divides a length."""
    return not (extent if isinstance(extent, int) else extent.multiple) % width


def is_contiguous(access: Load | Store) -> bool:
    """Whether neighbours along the last axis are neighbours in memory, and all are accessed."""
    plain = isinstance(access, Store) or (not access.gathers and access.guard is None)
    return plain and access.strides[-1] == 1
