"""Statements of the schedule for one thread of a CPU, in the language of a writer."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from burn.dtype import DType
from burn.kernels._serial_nodes import (
    NO_AXIS,
    UNROLLED,
    Chunk,
    chunks_of,
    closure,
    cost_of,
    kept_nodes,
)
from burn.kernels._serial_values import Point, Values
from burn.kernels.kernel import Length, Store, bounds, known
from burn.kernels.schedule import columns_of, line_and_part
from burn.kernels.writer import Value, Writer

if TYPE_CHECKING:
    from burn.kernels.serial import Serial, VectorWriter

__all__ = ["Statements"]

_RESIDENT: Final = 8
"""Vectors of columns that stay in registers from one reduction to the next."""

_MASKED: Final = 4
"""The same where the number of columns is known in a row alone, and each vector may be empty."""

_MAX_CODE: Final = 200.0
"""What the statements of a row cost that stays in registers: they are written for each vector."""

_EXPENSIVE: Final = 20.0
"""Cost of a pass from which the processor itself overlaps its iterations."""

_MAX_KEPT: Final = 8192
"""Columns up to which expensive values are kept for the next pass over a row."""


class Statements(Values):
    """The statements of a schedule in one language."""

    def __init__(self, schedule: Serial, writer: VectorWriter) -> None:
        super().__init__(schedule, writer)
        kernel, levels = self._kernel, self._levels
        stored = [store for store in kernel.stores if not kernel.is_of_rows(store)]
        phases = {schedule.phases[store.node] for store in stored}
        phases |= {schedule.phases[self._operand(reduce)] for reduce in schedule.reduces}
        last = max(phases, default=0)
        self._passes: dict[int, tuple[list[int], list[Store]]] = {
            phase: (
                [i for i in schedule.reduces if schedule.phases[self._operand(i)] == phase],
                # What a later pass reads must not be overwritten before.
                [
                    store
                    for store in stored
                    if phase == (last if kernel.overwrites else schedule.phases[store.node])
                ],
            )
            for phase in sorted(phases)
        }
        needed = closure(kernel, [store.node for store in kernel.stores], through_reduces=True)
        self._row_level = [number for number in needed if levels[number]]
        length = bounds(kernel.space[kernel.rows :])[1]
        columns = [node for node in needed if not levels[node]]
        size = sum([cost_of(self._body[node], 1.0, 1.0) for node in columns])
        vectors = math.inf if math.isinf(length) else -(-length // schedule.lanes)
        by_column = not schedule.by_row and schedule.vector != NO_AXIS
        self._is_resident = (
            by_column
            and len(self._columns) == 1
            and vectors <= (_MASKED if self._is_open(self._columns[0]) else _RESIDENT)
            and vectors * size <= _MAX_CODE
        )
        if by_column and not self._is_resident and length <= _MAX_KEPT:
            self._kept = self._chosen()

    # --- items ---

    def write(self) -> None:
        """Loops over the items."""
        schedule, writer = self._schedule, self._writer
        with self._loop(writer.start, writer.stop) as item:
            if not schedule.by_row:
                self._rows(self._tiles(item))
            elif schedule.block is None:
                length = writer.integer(self._kernel.space[schedule.vector])
                self._parts(self._tiles(item), writer.integer(0), length)
            else:
                parts, block = schedule.parts(writer), writer.integer(schedule.block)
                line, part = line_and_part(writer, item, parts, schedule.others)
                start = writer.multiply(part, block)
                self._parts(self._tiles(line), start, writer.add(start, block))

    @contextlib.contextmanager
    def _loop(self, start: Value, stop: Value, step: int = 1) -> Iterator[Value]:
        """A loop; values that are computed within it are unknown after it."""
        with self._writer.loop(start, stop, step) as index, self._scope():
            yield index

    def _tiles(self, item: Value) -> list[Point]:
        """The rows of an item, but for the axis of the vectors."""
        schedule, writer = self._schedule, self._writer
        points, rest = [Point({}, {}, None)], item
        counts = schedule.counts(writer)
        for number in reversed(range(len(counts))):
            axis, count = schedule.others[number], counts[number]
            index = writer.remainder(rest, count) if number else rest
            rest = writer.divide(rest, count) if number else rest
            if axis != schedule.tile_axis or schedule.tile == 1:
                points = [point.at(axis, index) for point in points]
                continue
            # The last tiles may overlap.
            length = writer.integer(self._kernel.space[axis])
            last = writer.add(length, writer.integer(-schedule.tile))
            start = writer.multiply(index, writer.integer(schedule.tile))
            first = writer.minimum(start, last)
            points = [
                point.at(axis, writer.add(first, writer.integer(key)), key)
                for point in points
                for key in range(schedule.tile)
            ]
        return points

    def _parts(self, tiles: list[Point], start: Value, stop: Value) -> None:
        """Rows from an index on along the axis of the vectors, to another one or the last."""
        schedule, writer = self._schedule, self._writer
        extents = self._kernel.space[schedule.vector : schedule.vector + 1]
        count = writer.integer(extents[0])
        if isinstance(extents[0], Length):
            stop = writer.minimum(stop, count)
            if bounds(extents)[1] >= schedule.step:
                start = self._full_parts(tiles, start, stop, schedule.step)
            vectors = range(0, schedule.rest, schedule.lanes)
            with self._loop(start, stop, schedule.rest) as index:
                self._part(tiles, index, [self._masked(index, stop, n) for n in vectors])
            return
        full = self._whole(count, schedule.step)
        if extents[0] >= schedule.step:
            self._full_parts(tiles, start, writer.minimum(stop, full), schedule.step)
        if rest := chunks_of(writer, known(extents)[0] % schedule.step, schedule.lanes):
            with writer.when(writer.less(full, stop)), self._scope():
                self._part(tiles, full, rest)

    def _full_parts(self, tiles: list[Point], start: Value, stop: Value, step: int) -> Value:
        """Parts of one length; the index behind them."""
        writer = self._writer
        length = writer.add(stop, writer.multiply(start, writer.integer(-1)))
        end = writer.add(start, self._whole(length, step))
        chunks = chunks_of(writer, step, self._schedule.lanes)
        with self._loop(start, end, step) as index:
            self._part(tiles, index, chunks)
        return end

    def _whole(self, length: Value, step: int) -> Value:
        """The part of a length that consists of whole steps."""
        writer, number = self._writer, self._writer.integer(step)
        return writer.multiply(writer.divide(length, number), number)

    def _columns_along(self, axis: int, row: Point) -> Value:
        """The length of an axis of columns in a row."""
        if self._kernel.ragged is not None:
            return columns_of(self._writer, self._kernel, row.indices)
        return self._writer.integer(self._kernel.space[axis])

    def _is_open(self, axis: int) -> bool:
        """Whether the length of an axis of columns is known in a row alone."""
        return isinstance(self._kernel.space[axis], Length) or self._kernel.ragged is not None

    def _masked(self, start: Value, length: Value, offset: int = 0) -> Chunk:
        """A vector of which the last lanes may be behind the end."""
        writer = self._writer
        index = writer.add(start, writer.integer(offset))
        active = writer.add(length, writer.multiply(index, writer.integer(-1)))
        return Chunk(offset, self._schedule.lanes, active)

    def _part(self, tiles: list[Point], start: Value, chunks: list[Chunk]) -> None:
        """Rows along the axis of the vectors."""
        axis = self._schedule.vector
        points = [
            tile.at(axis, self._lanes_of(start, chunk), key, chunk.active)
            for tile in tiles
            for key, chunk in enumerate(chunks)
        ]
        self._rows(points)

    def _lanes_of(self, start: Value, chunk: Chunk) -> Value:
        index = self._writer.add(start, self._writer.integer(chunk.offset))
        return self._writer.vector(index, chunk.lanes)

    # --- rows ---

    def _rows(self, points: list[Point]) -> None:
        """Compute rows: passes over the columns, and between them what each row has once."""
        self._arrays.clear()
        phases = self._schedule.phases
        with self._scope():
            for phase in range(max(phases) + 1):
                order = [number for number in self._row_level if phases[number] == phase]
                for point in points:
                    self._evaluate(order, point)
                if phase in self._passes:
                    self._phase = phase
                    self._pass(points, *self._passes[phase])
            for store in self._kernel.stores:
                if self._kernel.is_of_rows(store):
                    for point in points:
                        self._store(store, point)

    def _pass(self, points: list[Point], reduces: list[int], stores: list[Store]) -> None:
        """A pass over all columns."""
        targets = [*map(self._operand, reduces), *[store.node for store in stores]]
        order = closure(
            self._kernel, targets, {n for n, p in self._kept.items() if p < self._phase}
        )
        if self._is_resident:
            for point in points:
                self._resident_pass(point, order, reduces, stores)
        elif self._schedule.by_row or self._schedule.vector == NO_AXIS:
            self._scalar_pass(points, order, reduces, stores)
        else:
            self._vector_pass(points, order, reduces, stores)

    def _scalar_pass(
        self, points: list[Point], order: list[int], reduces: list[int], stores: list[Store]
    ) -> None:
        """A pass in which each iteration has one column, of several rows."""
        variables = {
            (reduce, number): self._variable(reduce, self._width(point))
            for reduce in reduces
            for number, point in enumerate(points)
        }
        with self._loops(points, self._columns) as inner:
            for number, point in enumerate(inner):
                self._evaluate(order, point)
                for reduce in reduces:
                    self._accumulate(reduce, variables[reduce, number], point, self._width(point))
            for point in inner:
                for store in stores:
                    self._store(store, point)
        for (item, number), variable in variables.items():
            self._scopes[-1][self._key(item, points[number])] = self._writer.get(variable)

    def _vector_pass(
        self, points: list[Point], order: list[int], reduces: list[int], stores: list[Store]
    ) -> None:
        """A pass in which each iteration has several vectors of columns."""
        writer, lanes, axis = self._writer, self._schedule.lanes, self._schedule.vector
        cost = sum([cost_of(self._body[node], 1.0, 1.0) for node in order])
        unrolled = UNROLLED if reduces and len(points) == 1 and cost < _EXPENSIVE else 1
        step = unrolled * lanes
        variables = {
            (number, row, u): self._variable(number, lanes)
            for number in reduces
            for row in range(len(points))
            for u in range(unrolled)
        }

        def part(rows: list[Point], start: Value, chunks: list[Chunk]) -> None:
            for (u, chunk), (number, row) in itertools.product(enumerate(chunks), enumerate(rows)):
                point = row.at(axis, self._lanes_of(start, chunk), u, chunk.active)
                self._evaluate(order, point)
                for reduce in reduces:
                    self._accumulate(reduce, variables[reduce, number, u], point, lanes)
                for store in stores:
                    self._store(store, point)

        self._make_arrays(points)
        extents = self._kernel.space[axis : axis + 1]
        with self._loops(points, [column for column in self._columns if column != axis]) as rows:
            count = self._columns_along(axis, rows[0])
            stop = self._whole(count, step)
            if bounds(extents)[1] >= step:
                with self._loop(writer.integer(0), stop, step) as i:
                    part(rows, i, chunks_of(writer, step, lanes))
            if self._is_open(axis):
                with self._loop(stop, count, lanes) as i:
                    part(rows, i, [self._masked(i, count)])
            else:
                rest = chunks_of(writer, known(extents)[0] % step, lanes)
                with self._scope():
                    part(rows, stop, [_widened(writer, chunk, lanes) for chunk in rest])
        for reduce, (number, point) in itertools.product(reduces, enumerate(points)):
            values = [writer.get(variables[reduce, number, u]) for u in range(unrolled)]
            total = writer.total(*self._combined(reduce, values))
            self._scopes[-1][self._key(reduce, point)] = total

    def _make_arrays(self, points: list[Point]) -> None:
        """Memory for what the pass is the first to compute, and later ones read."""
        most = bounds(self._kernel.space[self._kernel.rows :])[1]
        for number, phase in self._kept.items():
            if phase == self._phase:
                for point in points:
                    array = self._writer.array(int(most), self._body[number].dtype)
                    self._arrays[self._key(number, point)] = array

    def _resident_pass(
        self, row: Point, order: list[int], reduces: list[int], stores: list[Store]
    ) -> None:
        """A pass over a row that stays in registers."""
        writer, axis = self._writer, self._columns[0]
        parts: dict[int, dict[int, list[Value]]] = {reduce: {} for reduce in reduces}
        zero, length, lanes = writer.integer(0), self._kernel.space[axis], self._schedule.lanes
        if self._is_open(axis):
            count, most = self._columns_along(axis, row), int(bounds([length])[1])
            chunks = [self._masked(zero, count, offset) for offset in range(0, most, lanes)]
        else:
            chunks = chunks_of(writer, known((length,))[0], lanes)
        for u, chunk in enumerate(chunks):
            index = self._lanes_of(zero, chunk)
            point = row.at(axis, index, u, chunk.active)
            self._evaluate(order, point)
            for reduce in reduces:
                kind, dtype = self._kind(reduce)
                value = self._value(self._operand(reduce), point)
                value = writer.active(kind, value, dtype, chunk.lanes)
                parts[reduce].setdefault(chunk.lanes, []).append(value)
            for store in stores:
                self._store(store, point)
        writer.restrict(None)
        for name, by_lanes in parts.items():
            totals = [writer.total(*self._combined(name, values)) for values in by_lanes.values()]
            totals = totals or [writer.identity(*self._kind(name), 1)]
            self._scopes[-1][self._key(name, row)] = self._combined(name, totals)[1]

    @contextlib.contextmanager
    def _loops(self, points: list[Point], axes: Sequence[int]) -> Iterator[list[Point]]:
        """Loops over axes."""
        with contextlib.ExitStack() as loops:
            for axis in axes:
                stop = self._columns_along(axis, points[0])
                index = loops.enter_context(self._loop(self._writer.integer(0), stop))
                points = [point.at(axis, index) for point in points]
            yield points

    # --- reductions ---

    def _width(self, point: Point) -> int:
        """Lanes of a value at a point."""
        vector = self._schedule.vector
        if vector not in point.indices:
            return 1
        return int(point.indices[vector].lanes)

    def _variable(self, reduce: int, lanes: int) -> Any:
        kind, dtype = self._kind(reduce)
        return self._writer.variable(self._writer.identity(kind, dtype, lanes), dtype)

    def _accumulate(self, reduce: int, variable: Any, point: Point, lanes: int) -> None:
        writer, (kind, dtype) = self._writer, self._kind(reduce)
        value = self._value(self._operand(reduce), point)
        # Lanes of rows are separate; those of columns are reduced.
        if not self._schedule.by_row:
            writer.restrict(point.active)
            value = writer.active(kind, value, dtype, lanes)
        writer.set(variable, writer.combine(kind, writer.get(variable), value, dtype))

    def _combined(self, reduce: int, values: list[Value]) -> tuple[str, Value, DType]:
        kind, dtype = self._kind(reduce)
        while len(values) > 1:
            pairs = zip(values[::2], values[1::2], strict=False)
            rest = values[-1:] if len(values) % 2 else []
            values = [self._writer.combine(kind, a, b, dtype) for a, b in pairs] + rest
        return kind, values[0], dtype

    def _chosen(self) -> dict[int, int]:
        """What is computed once for several passes."""
        passes = {
            phase: ([*map(self._operand, reduces)], stores)
            for phase, (reduces, stores) in self._passes.items()
        }
        return kept_nodes(self._kernel, passes)


def _widened(writer: Writer, chunk: Chunk, lanes: int) -> Chunk:
    """A vector with all lanes, of which as many are used."""
    active = writer.integer(chunk.lanes) if chunk.active is None else chunk.active
    return Chunk(chunk.offset, lanes, active)
