"""The schedule for work groups: kernels for GPUs, whose lanes share memory and wait for each other.

An item of a kernel without reductions is computed by one lane, or a few neighbours are, where they
are neighbours in memory too. A row of a kernel with reductions is computed by a *team* of lanes of
one group, of which each takes every n-th column and combines its own first. Neighbouring lanes are
a team where columns are neighbours in memory, and neighbouring rows where rows are. What a later
loop over the columns needs of an earlier one is kept in registers if there are few columns, and is
computed again if there are many.

A group computes each row as a whole. So few rows with many columns leave most of a GPU idle:
`burn.compiler` makes two kernels of such a reduction, or leaves it to the device's own op.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol

from burn.dtype import DType
from burn.kernels.kernel import Kernel, Load, Reduce, Store
from burn.kernels.schedule import (
    Loop,
    Schedule,
    columns_are_neighbours,
    kept_of,
    loops_of,
)
from burn.kernels.writer import Value, Writer

__all__ = ["Geometry", "GroupWriter", "write_groups"]

_VECTOR_BYTES: Final = 16
"""Bytes of one access to memory."""

_KEPT_VALUES: Final = 32
"""Values that a lane keeps in registers from one loop over the columns to the next."""

_COLUMNS_PER_LANE: Final = 4
"""Columns that a lane of a team computes, where there are lanes enough."""

_STEPS_PER_LANE: Final = 16
"""Columns that a lane computes where neighbouring lanes have neighbouring rows."""

_GROUP_LANES: Final = 256
"""Lanes of a group with several rows."""

_WARP: Final = 32
"""Lanes that access memory together."""


class GroupWriter(Writer, Protocol):
    """A writer for devices with work groups."""

    def group_index(self) -> Value:
        """The number of the group, as an index."""

    def lane_index(self) -> Value:
        """The number of the lane in its group, as an index."""

    def shared_array(self, count: int, dtype: DType) -> Any:
        """An array that the lanes of a group share, for `element` and `set_element`."""

    def barrier(self) -> None:
        """Wait for all lanes of the group, and for what they wrote to shared arrays."""

    def exchanged(self, value: Value, distance: int, dtype: DType) -> Value | None:
        """The value of the lane whose number differs by a power of two, below 32, in one bit.

        None if the language has no such step.
        """

    def vector(self, count: int, dtype: DType) -> Any:
        """A new array for `store_vector`, which `element` and `set_element` take too."""

    def load_vector(self, input: int, index: Value, count: int, dtype: DType) -> Any:
        """An array of so many neighbours of an input, from a multiple of their number on."""

    def store_vector(self, output: int, index: Value, array: Any, count: int) -> None:
        """Write an array of `vector` to neighbours of an output, from a multiple on."""


class Geometry(NamedTuple):
    """A launch: number of groups, and of lanes in each."""

    groups: int
    lanes: int


def write_groups(writer: GroupWriter, kernel: Kernel, lanes: int) -> Geometry:
    """Write a kernel.

    Parameters
    ----------
    writer : GroupWriter
        The language.
    kernel : Kernel
        What is written; the axes of its space may be merged before, by `collapsed`.
    lanes : int
        Number of lanes that a group has at most, a power of two.

    Returns
    -------
    Geometry
        The launch that computes the kernel.
    """
    has_reductions = any(isinstance(node, Reduce) for node in kernel.body)
    schedule = _Rows if has_reductions else _Items
    return schedule(writer, kernel, lanes).write()


class _Items(Schedule[GroupWriter]):
    """A kernel without reductions: a lane computes an item, or some neighbours."""

    def __init__(self, writer: GroupWriter, kernel: Kernel, lanes: int) -> None:
        super().__init__(writer, kernel)
        self.lanes = lanes

    def write(self) -> Geometry:
        """Write the kernel."""
        kernel, writer = self.kernel, self.writer
        count = math.prod(kernel.space)
        width = self.width()
        item = writer.add(
            writer.multiply(writer.group_index(), writer.integer(self.lanes)), writer.lane_index()
        )
        with writer.when(writer.less(item, writer.integer(count // width))):
            if width == 1:
                indices = self.spread(item, range(len(kernel.space)))
                self.compute([store.node for store in kernel.stores], indices)
                for store in kernel.stores:
                    self.store(store, indices)
            else:
                self.write_vectors(item, width)
        return Geometry(-(-count // width // self.lanes), self.lanes)

    def write_vectors(self, item: Value, width: int) -> None:
        """Write neighbours along the last axis: vectors are loaded, computed by parts, stored."""
        kernel, writer = self.kernel, self.writer
        last = len(kernel.space) - 1
        parts = kernel.space[last] // width
        indices = self.spread(writer.divide(item, parts), range(last))
        first = writer.multiply(writer.remainder(item, parts), writer.integer(width))
        fixed = dataclasses.replace(kernel, rows=last).is_row_level
        wanted = self.needed([store.node for store in kernel.stores])
        self.compute([number for number in wanted if fixed[number]], indices)
        indices[last] = first
        vectors = {}
        for number in wanted:
            node = kernel.body[number]
            if isinstance(node, Load) and not fixed[number] and _is_contiguous(node):
                index = self.position(node.offset, node.strides, indices)
                vectors[number] = writer.load_vector(node.input, index, width, node.dtype)
        results = [writer.vector(width, kernel.outputs[store.output][0]) for store in kernel.stores]
        zero, end = writer.integer(0), writer.integer(width)
        with writer.loop(zero, end, kind="unrolled") as part, self.nested():
            for number, vector in vectors.items():
                self.values[number] = writer.element(vector, part)
            indices[last] = writer.add(first, part)
            self.compute([store.node for store in kernel.stores], indices)
            for store, result in zip(kernel.stores, results, strict=True):
                writer.set_element(result, part, self.values[store.node])
        indices[last] = first
        for store, result in zip(kernel.stores, results, strict=True):
            index = self.position(store.offset, store.strides, indices)
            writer.store_vector(store.output, index, result, width)

    def width(self) -> int:
        """Number of neighbours that a lane computes."""
        kernel = self.kernel
        loads = [node for node in kernel.body if isinstance(node, Load)]
        accesses: list[Load | Store] = [
            *[load for load in loads if not load.gathers],
            *kernel.stores,
        ]
        if not kernel.space or any(access.strides[-1] not in {0, 1} for access in accesses):
            return 1
        vectors = [access for access in accesses if _is_contiguous(access)]
        steps = [kernel.space[-1]]
        for vector in vectors:
            steps += [vector.offset, *vector.strides[:-1]]
        sizes = [load.dtype.itemsize for load in loads] + [
            output.itemsize for output, _ in kernel.outputs
        ]
        width = min(_VECTOR_BYTES // max(sizes), 8)
        while any(step % width for step in steps):
            width //= 2
        return width


def _is_contiguous(one: Load | Store) -> bool:
    """Whether neighbours along the last axis are neighbours in memory, and all are accessed."""
    plain = isinstance(one, Store) or (not one.gathers and one.guard is None)
    return plain and one.strides[-1] == 1


class _Rows(Schedule[GroupWriter]):
    """A kernel with reductions: a team of lanes computes a row."""

    def __init__(self, writer: GroupWriter, kernel: Kernel, lanes: int) -> None:
        super().__init__(writer, kernel)
        self.is_row_level = kernel.is_row_level
        columns, rows = kernel.column_count, kernel.row_count
        self.columns_are_neighbours = columns_are_neighbours(kernel)
        if self.columns_are_neighbours:
            self.team = min(_power_of_two(-(-columns // _COLUMNS_PER_LANE)), lanes)
            together = min(lanes, _GROUP_LANES) // self.team
        else:
            together = min(_WARP, lanes)
            self.team = min(_power_of_two(-(-columns // _STEPS_PER_LANE)), lanes // together)
        self.rows_together = min(max(together, 1), _power_of_two(rows))
        self.steps = -(-columns // self.team)
        self.shared: dict[tuple[DType, int], Any] = {}

    def write(self) -> Geometry:
        """Write the kernel."""
        kernel, writer = self.kernel, self.writer
        lanes = self.rows_together * self.team
        lane = writer.lane_index()
        if self.columns_are_neighbours:
            self.member = writer.remainder(lane, self.team)
            row = writer.divide(lane, self.team)
        else:
            self.member = writer.divide(lane, self.rows_together)
            row = writer.remainder(lane, self.rows_together)
        self.lane = lane
        start = writer.multiply(writer.group_index(), writer.integer(self.rows_together))
        self.row = writer.add(start, row)
        inside = writer.minimum(self.row, writer.integer(kernel.row_count - 1))
        self.rows = self.spread(inside, range(kernel.rows))
        loops = loops_of(kernel)
        kept, first = kept_of(kernel, loops)
        if self.steps * len(kept) > _KEPT_VALUES:
            kept = []
        arrays = {number: writer.array(self.steps, kernel.body[number].dtype) for number in kept}
        for count, loop in enumerate(loops):
            ready = {number: arrays[number] for number in kept if first[number] < count}
            made = {number: arrays[number] for number in kept if first[number] == count}
            self.write_loop(loop, ready, made)
        self.store_rows()
        return Geometry(-(-kernel.row_count // self.rows_together), lanes)

    def write_loop(self, loop: Loop, ready: dict[int, Any], made: dict[int, Any]) -> None:
        """Write a loop over the columns, and combine what the lanes of a team found."""
        kernel, writer = self.kernel, self.writer
        with self.nested():
            self.values.update(dict.fromkeys(ready))
            needed = self.needed(loop.wanted)
        wanted = [number for number in needed if self.is_row_level[number]]
        self.compute(wanted, self.rows)
        variables = [
            writer.variable(self.neutral(number), kernel.body[number].dtype)
            for number in loop.reductions
        ]
        columns = self.columns(is_unrolled=bool(ready or made))
        with self.valid_rows(), columns as (step, column), self.nested():
            for name, array in ready.items():
                self.values[name] = writer.element(array, step)
            axes = range(kernel.rows, len(kernel.space))
            indices = {**self.rows, **self.spread(column, axes)}
            self.compute(loop.wanted, indices)
            for name, array in made.items():
                writer.set_element(array, step, self.values[name])
            for number, variable in zip(loop.reductions, variables, strict=True):
                writer.set(variable, self.accumulated(number, writer.get(variable)))
            if not loop.reductions:
                for stored in kernel.stores:
                    if not kernel.is_of_rows(stored):
                        self.store(stored, indices)
        totals = [writer.get(variable) for variable in variables]
        self.values.update(zip(loop.reductions, self.of_team(loop.reductions, totals), strict=True))

    @contextlib.contextmanager
    def valid_rows(self) -> Iterator[None]:
        """Context of statements for lanes whose row exists."""
        count = self.kernel.row_count
        if count % self.rows_together:
            with self.writer.when(self.writer.less(self.row, self.writer.integer(count))):
                yield
        else:
            yield

    @contextlib.contextmanager
    def columns(self, *, is_unrolled: bool) -> Iterator[tuple[Value, Value]]:
        """Loop over the columns of a lane; it gives their number in the lane, and in the row."""
        writer, count = self.writer, self.kernel.column_count
        if not is_unrolled:
            with writer.loop(self.member, writer.integer(count), self.team) as column:
                yield column, column
            return
        with writer.loop(writer.integer(0), writer.integer(self.steps), kind="unrolled") as step:
            column = writer.add(writer.multiply(step, writer.integer(self.team)), self.member)
            if count % self.team:
                with writer.when(writer.less(column, writer.integer(count))):
                    yield step, column
            else:
                yield step, column

    def of_team(self, numbers: Sequence[int], values: list[Value]) -> list[Value]:
        """The values of all lanes of a team combined, in each of them."""
        writer = self.writer
        distance = 1
        while self.columns_are_neighbours and distance < min(self.team, _WARP):
            others = [
                writer.exchanged(value, distance, self.kernel.body[number].dtype)
                for number, value in zip(numbers, values, strict=True)
            ]
            if None in others:
                break
            values = [self.combined(*three) for three in zip(numbers, values, others, strict=True)]
            distance *= 2
        if distance == self.team:
            return values
        unit = 1 if self.columns_are_neighbours else self.rows_together
        arrays = []
        for slot, (number, value) in enumerate(zip(numbers, values, strict=True)):
            dtype = self.kernel.body[number].dtype
            if (dtype, slot) not in self.shared:
                size = self.rows_together * self.team
                self.shared[dtype, slot] = writer.shared_array(size, dtype)
            arrays.append(self.shared[dtype, slot])
            writer.set_element(arrays[-1], self.lane, value)
        writer.barrier()
        half = self.team // 2
        while half >= distance:
            with writer.when(writer.less(self.member, writer.integer(half))):
                other = writer.add(self.lane, writer.integer(half * unit))
                for number, array in zip(numbers, arrays, strict=True):
                    parts = writer.element(array, self.lane), writer.element(array, other)
                    writer.set_element(array, self.lane, self.combined(number, *parts))
            writer.barrier()
            half //= 2
        back = writer.multiply(self.member, writer.integer(-unit))
        results = [writer.element(array, writer.add(self.lane, back)) for array in arrays]
        writer.barrier()  # before the arrays are used again
        return results

    def store_rows(self) -> None:
        """Write the values of rows, by the first lane of each team."""
        writer = self.writer
        stores = [store for store in self.kernel.stores if self.kernel.is_of_rows(store)]
        if not stores:
            return
        self.compute([store.node for store in stores], self.rows)
        if self.kernel.overwrites and self.team > 1:
            writer.barrier()  # all lanes have read
        with self.valid_rows(), writer.when(writer.less(self.member, writer.integer(1))):
            for store in stores:
                self.store(store, self.rows)


def _power_of_two(n: int) -> int:
    """The smallest power of two that is at least `n`."""
    return 1 << (n - 1).bit_length()
