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
from burn.kernels.kernel import Store
from burn.kernels.writer import Value

if TYPE_CHECKING:
    from burn.kernels.serial import Serial, VectorWriter

__all__ = ["Statements"]

_RESIDENT: Final = 8
"""Vectors of columns that stay in registers from one reduction to the next."""

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
        length = kernel.column_count
        columns = [node for node in needed if not levels[node]]
        size = sum(cost_of(self._body[node], 1.0, 1.0) for node in columns)
        vectors = -(-length // schedule.lanes)
        self._is_resident = (
            not schedule.by_row
            and schedule.vector != NO_AXIS
            and len(self._columns) == 1
            and vectors <= _RESIDENT
            and vectors * size <= _MAX_CODE
        )
        by_column = not schedule.by_row and schedule.vector != NO_AXIS
        keeps = by_column and not self._is_resident and length <= _MAX_KEPT
        if keeps:
            self._kept = self._chosen()

    # --- items ---

    def write(self) -> None:
        """Loops over the items."""
        schedule, writer = self._schedule, self._writer
        if not schedule.by_row:
            with self._loop(writer.start, writer.stop) as item:
                self._rows(self._tiles(item))
            return
        full, rest = divmod(self._kernel.space[schedule.vector], schedule.step)
        zero, main = writer.integer(0), chunks_of(schedule.step, schedule.lanes)
        last, rest_chunks = writer.integer(full * schedule.step), chunks_of(rest, schedule.lanes)
        if not schedule.splits_vector:
            with self._loop(writer.start, writer.stop) as item:
                tiles = self._tiles(item)
                if full:
                    with self._loop(zero, writer.integer(full * schedule.step), schedule.step) as i:
                        self._part(tiles, i, main)
                if rest:
                    self._part(tiles, last, rest_chunks)
            return
        if full:
            stop = writer.minimum(writer.stop, writer.integer(full))
            with self._loop(writer.start, stop) as i, self._all_tiles() as tiles:
                self._part(tiles, writer.multiply(i, writer.integer(schedule.step)), main)
        if rest:
            is_last = writer.less(writer.integer(full), writer.stop)
            with writer.when(is_last), self._all_tiles() as tiles:
                self._part(tiles, last, rest_chunks)

    @contextlib.contextmanager
    def _loop(self, start: Value, stop: Value, step: int = 1) -> Iterator[Value]:
        """A loop; values that are computed within it are unknown after it."""
        with self._writer.loop(start, stop, step) as index, self._scope():
            yield index

    @contextlib.contextmanager
    def _all_tiles(self) -> Iterator[list[Point]]:
        """All rows but for the axis of the vectors."""
        count = math.prod(count for _, count in self._schedule.outer)
        if count == 1:
            yield self._tiles(self._writer.integer(0))
            return
        with self._loop(self._writer.integer(0), self._writer.integer(count)) as item:
            yield self._tiles(item)

    def _tiles(self, item: Value) -> list[Point]:
        """The rows of an item, but for the axis of the vectors."""
        schedule, writer = self._schedule, self._writer
        points, rest = [Point({}, {}, None)], item
        for position in reversed(range(len(schedule.outer))):
            axis, count = schedule.outer[position]
            index = writer.remainder(rest, count) if position else rest
            rest = writer.divide(rest, count) if position else rest
            if axis != schedule.tile_axis or schedule.tile == 1:
                points = [point.at(axis, index) for point in points]
                continue
            last = self._kernel.space[axis] - schedule.tile  # the last tiles may overlap
            start = writer.multiply(index, writer.integer(schedule.tile))
            first = writer.minimum(start, writer.integer(last))
            points = [
                point.at(axis, writer.add(first, writer.integer(key)), key)
                for point in points
                for key in range(schedule.tile)
            ]
        return points

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
        cost = sum(cost_of(self._body[number], 1.0, 1.0) for number in order)
        unrolled = UNROLLED if reduces and len(points) == 1 and cost < _EXPENSIVE else 1
        step = unrolled * lanes
        stop = self._kernel.space[axis] // step * step
        variables = {
            (reduce, number, u): self._variable(reduce, lanes)
            for reduce in reduces
            for number in range(len(points))
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
        with self._loops(points, [column for column in self._columns if column != axis]) as rows:
            if stop:
                with self._loop(writer.integer(0), writer.integer(stop), step) as i:
                    part(rows, i, chunks_of(step, lanes))
            rest = chunks_of(self._kernel.space[axis] - stop, lanes)
            with self._scope():
                widened = [
                    Chunk(chunk.offset, lanes, chunk.active or chunk.lanes) for chunk in rest
                ]
                part(rows, writer.integer(stop), widened)
        for reduce, (number, point) in itertools.product(reduces, enumerate(points)):
            values = [writer.get(variables[reduce, number, u]) for u in range(unrolled)]
            total = writer.total(*self._combined(reduce, values))
            self._scopes[-1][self._key(reduce, point)] = total

    def _make_arrays(self, points: list[Point]) -> None:
        """Memory for what the pass is the first to compute, and later ones read."""
        for name, phase in self._kept.items():
            if phase == self._phase:
                for point in points:
                    array = self._writer.array(self._kernel.column_count, self._body[name].dtype)
                    self._arrays[self._key(name, point)] = array

    def _resident_pass(
        self, row: Point, order: list[int], reduces: list[int], stores: list[Store]
    ) -> None:
        """A pass over a row that stays in registers."""
        writer, axis = self._writer, self._columns[0]
        parts: dict[int, dict[int, list[Value]]] = {reduce: {} for reduce in reduces}
        for u, chunk in enumerate(chunks_of(self._kernel.space[axis], self._schedule.lanes)):
            index = self._lanes_of(writer.integer(0), chunk)
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
                stop = self._writer.integer(self._kernel.space[axis])
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
