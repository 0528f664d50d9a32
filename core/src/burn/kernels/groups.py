"""The schedule for work groups: kernels for GPUs, whose lanes share memory and wait for each other.

An item of a kernel without reductions is computed by one lane, or a few neighbours are, where they
are neighbours in memory too. A row of a kernel with reductions is computed by a *team* of lanes of
one group, of which each takes every n-th column, or vector of columns, and combines its own first.
Neighbouring lanes are a team where columns are neighbours in memory, and neighbouring rows where
rows are. What a later loop over the columns needs of an earlier one is kept in registers if there
are few columns, and is computed again if there are many.

A group computes each row as a whole. So few rows with many columns leave most of a GPU idle:
`burn.compiler` makes two kernels of such a reduction, or leaves it to the device's own op.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol

from burn.dtype import DType
from burn.kernels._group_items import Items, is_contiguous, vector_width
from burn.kernels.indices import Arithmetic, Formula, quotient_up
from burn.kernels.kernel import Extent, Kernel, Load, Reduce, Store, bounds
from burn.kernels.schedule import (
    Loop,
    Schedule,
    columns_are_neighbours,
    kept_of,
    loops_of,
    product,
)
from burn.kernels.writer import Value, Writer

__all__ = ["Geometry", "GroupWriter", "write_groups"]

_KEPT_VALUES: Final = 32
"""Values that a lane keeps in registers from one loop over the columns to the next."""

_COLUMNS_PER_LANE: Final = 8
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
    """A launch: number of groups, a formula of its scalars, and of lanes in each."""

    groups: Formula
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
    schedule = _Rows if has_reductions else Items
    return Geometry(*schedule(writer, kernel, lanes).write())


class _Rows(Schedule[GroupWriter]):
    """A kernel with reductions: a team of lanes computes a row."""

    def __init__(self, writer: GroupWriter, kernel: Kernel, lanes: int) -> None:
        super().__init__(writer, kernel)
        self.is_row_level = kernel.is_row_level
        self.column_stores = [store for store in kernel.stores if not kernel.is_of_rows(store)]
        columns = bounds(kernel.space[kernel.rows :])[1]
        rows = bounds(kernel.space[: kernel.rows])[1]
        self.columns_are_neighbours = columns_are_neighbours(kernel)
        self.width = self.common_width() if self.columns_are_neighbours else 1
        if self.columns_are_neighbours:
            self.team = _power_of_two(columns / max(_COLUMNS_PER_LANE, self.width), lanes)
            together = min(lanes, _GROUP_LANES) // self.team
        else:
            together = min(_WARP, lanes)
            self.team = _power_of_two(columns / _STEPS_PER_LANE, lanes // together)
        self.rows_together = _power_of_two(rows, max(together, 1))
        together = self.team * self.width
        self.steps = columns if math.isinf(columns) else -(-columns // together)
        self.shared: dict[tuple[DType, int], Any] = {}

    def write(self) -> tuple[Formula, int]:
        """Write the kernel."""
        kernel, writer = self.kernel, self.writer
        lanes = self.rows_together * self.team
        lane = writer.lane_index()
        team, together = writer.integer(self.team), writer.integer(self.rows_together)
        if self.columns_are_neighbours:
            self.member, row = writer.remainder(lane, team), writer.divide(lane, team)
        else:
            self.member, row = writer.divide(lane, together), writer.remainder(lane, together)
        self.lane = lane
        self.row = writer.add(writer.multiply(writer.group_index(), together), row)
        self.row_count = product(writer, kernel.space[: kernel.rows])
        inside = writer.minimum(self.row, writer.add(self.row_count, writer.integer(-1)))
        self.rows = self.spread(inside, range(kernel.rows))
        self.column_count = self.columns_of(self.rows)
        loops = loops_of(kernel)
        kept, first = kept_of(kernel, loops)
        if kept and self.steps * self.width * len(kept) > _KEPT_VALUES:
            kept = []
        arrays = {
            number: writer.array(int(self.steps) * self.width, kernel.body[number].dtype)
            for number in kept
        }
        for count, loop in enumerate(loops):
            ready = {number: arrays[number] for number in kept if first[number] < count}
            made = {number: arrays[number] for number in kept if first[number] == count}
            self.write_loop(loop, ready, made)
        self.store_rows()
        numbers = Arithmetic()
        rows = product(numbers, kernel.space[: kernel.rows])
        return Formula(quotient_up(numbers, rows, self.rows_together)), lanes

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
        with self.valid_rows(), columns as (step, first), self.nested():
            vectors = self.load_vectors(needed, first)
            results = {} if loop.reductions else self.new_vectors()
            with self.parts() as part, self.nested():
                slot = writer.add(writer.multiply(step, writer.integer(self.width)), part)
                for number, array in vectors.items():
                    self.values[number] = writer.element(array, part)
                for number, array in ready.items():
                    self.values[number] = writer.element(array, slot)
                axes = range(kernel.rows, len(kernel.space))
                indices = {**self.rows, **self.spread(writer.add(first, part), axes)}
                self.compute(loop.wanted, indices)
                for number, array in made.items():
                    writer.set_element(array, slot, self.values[number])
                for number, variable in zip(loop.reductions, variables, strict=True):
                    writer.set(variable, self.accumulated(number, writer.get(variable)))
                for store in self.column_stores if not loop.reductions else ():
                    if store in results:
                        writer.set_element(results[store], part, self.values[store.node])
                    else:
                        self.store(store, indices)
            for store, result in results.items():
                index = self.position(store.offset, store.strides, self.at(first))
                writer.store_vector(store.output, index, result, self.width)
        totals = [writer.get(variable) for variable in variables]
        self.values.update(zip(loop.reductions, self.of_team(loop.reductions, totals), strict=True))

    def common_width(self) -> int:
        """Neighbours of a row that a lane loads and stores at a time."""
        kernel = self.kernel
        if len(kernel.space) != kernel.rows + 1:
            return 1
        lengths = [kernel.space[-1], *([] if kernel.ragged is None else [kernel.ragged])]
        loads = [
            node
            for node, is_row_level in zip(kernel.body, self.is_row_level, strict=True)
            if isinstance(node, Load) and not is_row_level
        ]
        return vector_width(kernel, [*loads, *self.column_stores], lengths)

    def at(self, column: Value) -> dict[int, Value]:
        """The indices of a column, where there is one axis of columns."""
        return {**self.rows, self.kernel.rows: column}

    def load_vectors(self, numbers: Iterable[int], first: Value) -> dict[int, Any]:
        """Vectors of what is loaded from neighbours, from a column on."""
        found = {}
        for number in numbers if self.width > 1 else ():
            node = self.kernel.body[number]
            if isinstance(node, Load) and not self.is_row_level[number] and is_contiguous(node):
                index = self.position(node.offset, node.strides, self.at(first))
                found[number] = self.writer.load_vector(node.input, index, self.width, node.dtype)
        return found

    def new_vectors(self) -> dict[Store, Any]:
        """Vectors of what is stored to neighbours."""
        return {
            store: self.writer.vector(self.width, self.kernel.outputs[store.output][0])
            for store in self.column_stores
            if self.width > 1 and is_contiguous(store)
        }

    @contextlib.contextmanager
    def parts(self) -> Iterator[Value]:
        """Loop over the columns of a vector."""
        writer = self.writer
        if self.width == 1:
            yield writer.integer(0)
            return
        with writer.loop(writer.integer(0), writer.integer(self.width), kind="unrolled") as part:
            yield part

    @contextlib.contextmanager
    def valid_rows(self) -> Iterator[None]:
        """Context of statements for lanes whose row exists."""
        if self.rows_together == 1 or _divides(
            self.kernel.space[: self.kernel.rows], self.rows_together
        ):
            yield
        else:
            with self.writer.when(self.writer.less(self.row, self.row_count)):
                yield

    @contextlib.contextmanager
    def columns(self, *, is_unrolled: bool) -> Iterator[tuple[Value, Value]]:
        """Loop over the vectors of a lane; it gives their number, and that of the first column."""
        writer, kernel = self.writer, self.kernel
        width, together = writer.integer(self.width), self.team * self.width
        if not is_unrolled:
            start = writer.multiply(self.member, width)
            with writer.loop(start, self.column_count, together) as column:
                yield writer.integer(0), column
            return
        zero, steps = writer.integer(0), writer.integer(int(self.steps))
        with writer.loop(zero, steps, kind="unrolled") as step:
            number = writer.add(writer.multiply(step, writer.integer(self.team)), self.member)
            column = writer.multiply(number, width)
            if kernel.ragged is None and _divides(kernel.space[kernel.rows :], together):
                yield step, column
            else:
                with writer.when(writer.less(column, self.column_count)):
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


def _power_of_two(length: float, most: int) -> int:
    """The smallest power of two that is at least a length, but another one at most."""
    return most if length >= most else 1 << (math.ceil(length) - 1).bit_length()


def _divides(extents: Sequence[Extent], number: int) -> bool:
    """Whether a number divides the product of lengths that are known."""
    low, high = bounds(extents)
    return low == high and not low % number
