"""The schedule for items of one lane: kernels for CPUs whose compiler makes vectors of loops.

An item computes a chunk of neighbours, or of rows. Where the columns of a row are neighbours in
memory, a row is reduced by several accumulators, one for each element of a vector. Where rows are
neighbours, the rows of a chunk are reduced together, with an accumulator for each of them.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, Final

from burn.kernels.groups import Geometry, GroupWriter
from burn.kernels.indices import Arithmetic, Formula, quotient_up
from burn.kernels.kernel import Kernel, Reduce, bounds
from burn.kernels.schedule import (
    Loop,
    Schedule,
    columns_are_neighbours,
    kept_of,
    line_and_part,
    loops_of,
    product,
)
from burn.kernels.writer import Value

__all__ = ["write_chunks"]

_CHUNK: Final = 8192
"""Elements that an item computes, about."""

_WIDTH: Final = 64
"""Accumulators of a row whose columns are neighbours."""

_ROWS: Final = 1024
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
    elif columns_are_neighbours(kernel) or kernel.rows <= (kernel.ragged is not None):
        schedule = _Rows(writer, kernel)
    else:
        schedule = _RowsTogether(writer, kernel)
    return Geometry(Formula(schedule.write()), 1)


class _Chunks(Schedule[GroupWriter]):
    """A kernel, whose items are chunks."""

    def write(self) -> str:
        """Write the kernel, and return the number of items, by `Arithmetic`."""
        raise NotImplementedError

    @contextlib.contextmanager
    def rows(self, count: Callable[[Any], Value], size: Callable[[Any], Value]) -> Iterator[Value]:
        """Loop over the rows of an item.

        Their number, and that of the elements of each, are computed by a writer, and by
        `Arithmetic`.
        """
        writer, numbers = self.writer, Arithmetic()
        together = self.together(numbers, size)
        rest = numbers.add(together, "-1")
        self.items = numbers.divide(numbers.add(count(numbers), rest), together)
        together = self.together(writer, size)
        first = writer.multiply(writer.group_index(), together)
        end = writer.minimum(writer.add(first, together), count(writer))
        with writer.loop(first, end) as row, self.nested():
            yield row

    def together(self, writer: Any, size: Callable[[Any], Value]) -> Value:
        """Rows of an item."""
        chunk = writer.integer(_CHUNK)
        return writer.divide(chunk, writer.minimum(_positive(writer, size(writer)), chunk))

    @contextlib.contextmanager
    def each(self, start: Value, stop: Value) -> Iterator[Value]:
        """Loop over independent elements."""
        with self.writer.loop(start, stop, kind="vector") as index, self.nested():
            yield index


class _Items(_Chunks):
    """A kernel without reductions: an item computes a part of a line, or some lines."""

    def write(self) -> str:
        """Write the kernel."""
        kernel, writer = self.kernel, self.writer
        last = max(len(kernel.space) - 1, 0)
        fixed = dataclasses.replace(kernel, rows=last).is_row_level
        chunk = writer.integer(_CHUNK)
        with self.rows(self.parts_of_all, self.length) as item:
            parts = _positive(writer, self.parts(writer))
            line, part = line_and_part(writer, item, parts, range(last))
            start = writer.multiply(part, chunk)
            end = writer.minimum(writer.add(start, chunk), self.length(writer))
            indices = self.spread(line, range(last))
            wanted = self.needed([store.node for store in kernel.stores])
            self.compute([number for number in wanted if fixed[number]], indices)
            with self.each(start, end) as index:
                if kernel.space:
                    indices[last] = index
                self.compute(wanted, indices)
                for store in kernel.stores:
                    self.store(store, indices)
        return self.items

    def length(self, writer: Any) -> Value:
        """The length of a line."""
        return product(writer, self.kernel.space[-1:])

    def parts(self, writer: Any) -> Value:
        """Parts of a line."""
        return quotient_up(writer, self.length(writer), _CHUNK)

    def parts_of_all(self, writer: Any) -> Value:
        """Parts of all lines."""
        return writer.multiply(product(writer, self.kernel.space[:-1]), self.parts(writer))


class _Rows(_Chunks):
    """A kernel with reductions along neighbours: an item computes some rows."""

    def write(self) -> str:
        """Write the kernel."""
        kernel = self.kernel
        loops = loops_of(kernel)
        kept, first = kept_of(kernel, loops)
        rows, columns = kernel.space[: kernel.rows], kernel.space[kernel.rows :]
        self.least, most = bounds(columns)
        self.is_open = most > self.least
        if kept and most * len(kept) > _KEPT_VALUES:
            kept = []
        with self.rows(lambda w: product(w, rows), lambda w: product(w, columns)) as row:
            self.row = self.spread(row, range(kernel.rows))
            self.count = self.columns_of(self.row)
            arrays = {
                number: self.writer.array(int(most), kernel.body[number].dtype) for number in kept
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
        zero = writer.integer(0)
        if not loop.reductions:
            with self.each(zero, self.count) as column:
                indices = self.column(loop, column)
                for store in kernel.stores:
                    if not kernel.is_of_rows(store):
                        self.store(store, indices)
            return
        lanes = min(_WIDTH, 1 << max(self.least.bit_length() - 1, 2 * self.is_open))
        width = writer.integer(lanes)
        sums = [writer.array(lanes, kernel.body[number].dtype) for number in loop.reductions]
        with self.each(zero, width) as lane:
            for number, array in zip(loop.reductions, sums, strict=True):
                writer.set_element(array, lane, self.neutral(number))
        rest = writer.remainder(self.count, width)
        whole = writer.add(self.count, writer.multiply(rest, writer.integer(-1)))
        with writer.loop(zero, whole, lanes) as start, self.each(zero, width) as lane:
            self.add(loop, sums, lane, writer.add(start, lane))
        with self.each(zero, rest) as lane:
            self.add(loop, sums, lane, writer.add(whole, lane))
        half = lanes // 2
        while half:
            with self.each(zero, writer.integer(half)) as lane:
                other = writer.add(lane, writer.integer(half))
                for number, array in zip(loop.reductions, sums, strict=True):
                    pair = writer.element(array, lane), writer.element(array, other)
                    writer.set_element(array, lane, self.combined(number, *pair))
            half //= 2
        for number, array in zip(loop.reductions, sums, strict=True):
            self.values[number] = writer.element(array, zero)

    def column(self, loop: Loop, column: Value) -> dict[int, Value]:
        """Compute what a loop wants in a column; the indices there."""
        kernel, writer = self.kernel, self.writer
        for number, array in self.ready.items():
            self.values[number] = writer.element(array, column)
        indices = {**self.row, **self.spread(column, range(kernel.rows, len(kernel.space)))}
        self.compute(loop.wanted, indices)
        for number, array in self.made.items():
            writer.set_element(array, column, self.values[number])
        return indices

    def add(self, loop: Loop, sums: list[Any], lane: Value, column: Value) -> None:
        """Combine the values of a column with the accumulators of a lane."""
        self.column(loop, column)
        for number, array in zip(loop.reductions, sums, strict=True):
            before = self.writer.element(array, lane)
            self.writer.set_element(array, lane, self.accumulated(number, before))


class _RowsTogether(_Chunks):
    """A kernel with reductions whose rows are neighbours: an item computes a chunk of them."""

    def write(self) -> str:
        """Write the kernel."""
        kernel, writer = self.kernel, self.writer
        last = kernel.rows - 1
        length = writer.integer(kernel.space[last])
        parts = _positive(writer, self.parts(writer))
        item = writer.group_index()
        together, zero = writer.integer(_ROWS), writer.integer(0)
        line, part = line_and_part(writer, item, parts, range(last))
        self.start = writer.multiply(part, together)
        end = writer.minimum(writer.add(self.start, together), length)
        self.count = writer.add(end, writer.multiply(self.start, writer.integer(-1)))
        self.line = self.spread(line, range(last))
        self.sums: dict[int, Any] = {}
        columns_in_all = self.columns_of(self.line)
        for loop in loops_of(kernel):
            made = {
                number: writer.array(_ROWS, kernel.body[number].dtype) for number in loop.reductions
            }
            with self.each(zero, self.count) as lane:
                for number, array in made.items():
                    writer.set_element(array, lane, self.neutral(number))
            with writer.loop(zero, columns_in_all) as column, self.nested():
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
        numbers = Arithmetic()
        return numbers.multiply(product(numbers, kernel.space[:last]), self.parts(numbers))

    def parts(self, writer: Any) -> Value:
        """Chunks along the last axis of the rows."""
        return quotient_up(writer, writer.integer(self.kernel.space[self.kernel.rows - 1]), _ROWS)

    def at(self, lane: Value) -> dict[int, Value]:
        """The indices of a row of the chunk, whose reductions so far become known."""
        for number, array in self.sums.items():
            self.values[number] = self.writer.element(array, lane)
        return {**self.line, self.kernel.rows - 1: self.writer.add(self.start, lane)}


def _positive(writer: Any, index: Value) -> Value:
    """An index that is not negative, but at least 1."""
    is_positive = writer.minimum(index, writer.integer(1))
    return writer.add(
        index, writer.add(writer.integer(1), writer.multiply(is_positive, writer.integer(-1)))
    )
