"""The schedule for items of one lane: kernels for CPUs whose compiler makes vectors of loops.

An item computes a chunk of neighbours, or of rows. Where the columns of a row are neighbours in
memory, a row is reduced by several accumulators, one for each element of a vector. Where rows are
neighbours, the rows of a chunk are reduced together, with an accumulator for each of them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator
from typing import Any, Final

from burn.kernels.groups import Geometry, GroupWriter
from burn.kernels.kernel import Kernel, Reduce
from burn.kernels.schedule import Loop, Schedule, columns_are_neighbours, kept_of, loops_of
from burn.kernels.writer import Value

__all__ = ["write_chunks"]

_CHUNK: Final = 8192
"""Elements that an item computes, about."""

_WIDTH: Final = 16
"""Accumulators of a row whose columns are neighbours."""

_ROWS: Final = 64
"""Rows that are reduced together where rows are neighbours."""

_KEPT_VALUES: Final = 4096
"""Values of a row that an item keeps from one loop over the columns to the next."""


def write_chunks(writer: GroupWriter, kernel: Kernel) -> Geometry:
    """Write a kernel.

    Parameters
    ----------
    writer : GroupWriter
        The language.
    kernel : Kernel
        What is written; the axes of its space may be merged before, by `collapsed`.

    Returns
    -------
    Geometry
        The launch that computes the kernel: groups of one lane.
    """
    if not any(isinstance(node, Reduce) for node in kernel.body):
        schedule: _Chunks = _Items(writer, kernel)
    elif columns_are_neighbours(kernel) or not kernel.rows:
        schedule = _Rows(writer, kernel)
    else:
        schedule = _RowsTogether(writer, kernel)
    return Geometry(schedule.write(), 1)


class _Chunks(Schedule[GroupWriter]):
    """A kernel, whose items are chunks."""

    def write(self) -> int:
        """Write the kernel, and return the number of items."""
        raise NotImplementedError

    @contextlib.contextmanager
    def rows(self, count: int, size: int) -> Iterator[Value]:
        """Loop over the rows of an item, of which each has so many elements."""
        writer = self.writer
        together = max(1, _CHUNK // max(size, 1))
        self.items = -(-count // together)
        first = writer.multiply(writer.group_index(), writer.integer(together))
        end = writer.minimum(writer.add(first, writer.integer(together)), writer.integer(count))
        with writer.loop(first, end) as row, self.nested():
            yield row

    @contextlib.contextmanager
    def each(self, start: Value, stop: Value) -> Iterator[Value]:
        """Loop over independent elements."""
        with self.writer.loop(start, stop, kind="vector") as index, self.nested():
            yield index


class _Items(_Chunks):
    """A kernel without reductions: an item computes a part of a line, or some lines."""

    def write(self) -> int:
        """Write the kernel."""
        kernel, writer = self.kernel, self.writer
        last = len(kernel.space) - 1
        length = kernel.space[last] if kernel.space else 1
        lines, parts = math.prod(kernel.space[:last]) if kernel.space else 1, -(-length // _CHUNK)
        fixed = dataclasses.replace(kernel, rows=max(last, 0)).is_row_level
        with self.rows(lines * parts, -(-length // max(parts, 1))) as part:
            start = writer.multiply(writer.remainder(part, max(parts, 1)), writer.integer(_CHUNK))
            end = writer.minimum(writer.add(start, writer.integer(_CHUNK)), writer.integer(length))
            line = writer.divide(part, max(parts, 1))
            indices = self.spread(line, range(max(last, 0)))
            wanted = self.needed([store.node for store in kernel.stores])
            self.compute([number for number in wanted if fixed[number]], indices)
            with self.each(start, end) as index:
                if kernel.space:
                    indices[last] = index
                self.compute(wanted, indices)
                for store in kernel.stores:
                    self.store(store, indices)
        return self.items


class _Rows(_Chunks):
    """A kernel with reductions along neighbours: an item computes some rows."""

    def write(self) -> int:
        """Write the kernel."""
        kernel, writer = self.kernel, self.writer
        loops = loops_of(kernel)
        kept, first = kept_of(kernel, loops)
        if kernel.column_count * len(kept) > _KEPT_VALUES:
            kept = []
        with self.rows(kernel.row_count, kernel.column_count) as row:
            self.row = self.spread(row, range(kernel.rows))
            arrays = {
                number: writer.array(kernel.column_count, kernel.body[number].dtype)
                for number in kept
            }
            for count, loop in enumerate(loops):
                self.ready = {number: arrays[number] for number in kept if first[number] < count}
                self.made = {number: arrays[number] for number in kept if first[number] == count}
                self.write_loop(loop)
            stores = [store for store in kernel.stores if kernel.is_of_rows(store)]
            self.compute([store.node for store in stores], self.row)
            for store in stores:
                self.store(store, self.row)
        return self.items

    def write_loop(self, loop: Loop) -> None:
        """Write a loop over the columns."""
        kernel, writer = self.kernel, self.writer
        with self.nested():
            self.values.update(dict.fromkeys(self.ready))
            needed = self.needed(loop.wanted)
        self.compute([number for number in needed if kernel.is_row_level[number]], self.row)
        count = kernel.column_count
        zero, end = writer.integer(0), writer.integer(count)
        if not loop.reductions:
            with self.each(zero, end) as column:
                indices = self.column(loop, column)
                for store in kernel.stores:
                    if not kernel.is_of_rows(store):
                        self.store(store, indices)
            return
        width = min(_WIDTH, 1 << max(count.bit_length() - 1, 0))
        sums = [writer.array(width, kernel.body[reduction].dtype) for reduction in loop.reductions]
        with self.each(zero, writer.integer(width)) as lane:
            for number, array in zip(loop.reductions, sums, strict=True):
                writer.set_element(array, lane, self.neutral(number))
        whole = writer.integer(count - count % width)
        with (
            writer.loop(zero, whole, width) as start,
            self.each(zero, writer.integer(width)) as lane,
        ):
            self.add(loop, sums, lane, writer.add(start, lane))
        with self.each(zero, writer.integer(count % width)) as lane:
            self.add(loop, sums, lane, writer.add(whole, lane))
        for number, array in zip(loop.reductions, sums, strict=True):
            parts = [writer.element(array, writer.integer(lane)) for lane in range(width)]
            while len(parts) > 1:
                half = len(parts) // 2
                pairs = zip(parts[:half], parts[half:], strict=True)
                parts = [self.combined(number, *pair) for pair in pairs]
            self.values[number] = parts[0]

    def column(self, loop: Loop, column: Value) -> dict[int, Value]:
        """Compute what a loop wants in a column; the indices there."""
        kernel, writer = self.kernel, self.writer
        for name, array in self.ready.items():
            self.values[name] = writer.element(array, column)
        indices = {**self.row, **self.spread(column, range(kernel.rows, len(kernel.space)))}
        self.compute(loop.wanted, indices)
        for name, array in self.made.items():
            writer.set_element(array, column, self.values[name])
        return indices

    def add(self, loop: Loop, sums: list[Any], lane: Value, column: Value) -> None:
        """Combine the values of a column with the accumulators of a lane."""
        self.column(loop, column)
        for number, array in zip(loop.reductions, sums, strict=True):
            before = self.writer.element(array, lane)
            self.writer.set_element(array, lane, self.accumulated(number, before))


class _RowsTogether(_Chunks):
    """A kernel with reductions whose rows are neighbours: an item computes a chunk of them."""

    def write(self) -> int:
        """Write the kernel."""
        kernel, writer = self.kernel, self.writer
        last = kernel.rows - 1
        length = kernel.space[last]
        lines, parts = math.prod(kernel.space[:last]), -(-length // _ROWS)
        item = writer.group_index()
        self.start = writer.multiply(writer.remainder(item, max(parts, 1)), writer.integer(_ROWS))
        end = writer.minimum(writer.add(self.start, writer.integer(_ROWS)), writer.integer(length))
        self.count = writer.add(end, writer.multiply(self.start, writer.integer(-1)))
        self.line = self.spread(writer.divide(item, max(parts, 1)), range(last))
        self.sums: dict[int, Any] = {}
        zero = writer.integer(0)
        for loop in loops_of(kernel):
            made = {
                reduction: writer.array(_ROWS, kernel.body[reduction].dtype)
                for reduction in loop.reductions
            }
            with self.each(zero, writer.integer(_ROWS)) as lane:
                for number, array in made.items():
                    writer.set_element(array, lane, self.neutral(number))
            with writer.loop(zero, writer.integer(kernel.column_count)) as column, self.nested():
                columns = self.spread(column, range(kernel.rows, len(kernel.space)))
                with self.each(zero, self.count) as lane:
                    indices = {**self.at(lane), **columns}
                    self.compute(loop.wanted, indices)
                    for number, array in made.items():
                        before = writer.element(array, lane)
                        writer.set_element(array, lane, self.accumulated(number, before))
                    if not loop.reductions:
                        for store in kernel.stores:
                            if not kernel.is_of_rows(store):
                                self.store(store, indices)
            self.sums.update(made)
        stores = [store for store in kernel.stores if kernel.is_of_rows(store)]
        with self.each(zero, self.count) as lane:
            indices = self.at(lane)
            self.compute([store.node for store in stores], indices)
            for store in stores:
                self.store(store, indices)
        return lines * parts

    def at(self, lane: Value) -> dict[int, Value]:
        """The indices of a row of the chunk, whose reductions so far become known."""
        for number, array in self.sums.items():
            self.values[number] = self.writer.element(array, lane)
        return {**self.line, self.kernel.rows - 1: self.writer.add(self.start, lane)}
