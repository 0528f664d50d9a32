"""Schedule of a kernel for one thread of a CPU, which computes a range of its items with vectors.

One axis is that of the vectors: an axis of the rows, if most loads are contiguous along it (as in
sums of columns, products, elementwise work), else one of the columns, whose lanes are reduced at
the end (softmax, normalizations). The rest of an axis that no vector fills is one with fewer lanes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Protocol

from burn.aliases import Shape
from burn.dtype import DType
from burn.kernels._serial_nodes import NO_AXIS, UNROLLED, cost_of, dependencies, phases_of
from burn.kernels._serial_statements import Statements
from burn.kernels.kernel import Kernel, Load, Reduce, Store
from burn.kernels.layout import collapsed
from burn.kernels.writer import Value, Writer

__all__ = ["Serial", "VectorWriter", "strided_copy"]

_TILE: Final = 4
"""Rows that share what they load for a product."""

_MIN_OUTER: Final = 8
"""Rows from which they are divided among threads, and not the axis of the vectors."""


class VectorWriter(Writer, Protocol):
    """What a schedule needs beside the statements of `Writer`.

    Values and indices may have several lanes. One of a single lane is the same for all lanes of
    others.
    """

    @property
    def lanes(self) -> int:
        """Number of lanes of a vector."""

    @property
    def start(self) -> Value:
        """Index of the first item that is computed."""

    @property
    def stop(self) -> Value:
        """Index behind the last item that is computed."""

    def vector(self, start: Value, lanes: int) -> Value:
        """The indices from `start` on, one for each lane."""

    def restrict(self, active: int | None) -> None:
        """From here on load and store the first lanes only; None for all."""

    def identity(self, kind: str, dtype: DType, lanes: int) -> Value:
        """What `combine` does not change, in each lane."""

    def combine(self, kind: str, a: Value, b: Value, dtype: DType) -> Value:
        """The sum, product, maximum or minimum of two values."""

    def term(self, a: Value, b: Value, *, dtype: DType) -> Value:
        """A product that sums alone read: it and a sum may be one fused multiply-add."""

    def active(self, kind: str, value: Value, dtype: DType, lanes: int) -> Value:
        """A value in each lane, with the identity in those that `restrict` excludes."""

    def total(self, kind: str, value: Value, dtype: DType) -> Value:
        """The combination of all lanes."""


class Serial:
    """A schedule.

    Parameters
    ----------
    kernel : Kernel
        What is computed. Its space may have axes of length 0.
    lanes : int
        Number of lanes of a vector.

    Attributes
    ----------
    items : int
        Number of independent items; a call computes a range of them.
    work : float
        Nanoseconds that all items take, about.
    """

    def __init__(self, kernel: Kernel, lanes: int) -> None:
        self.kernel = kernel = collapsed(kernel)
        self.lanes = lanes
        self.axes = dependencies(kernel)
        self.phases = phases_of(kernel)
        self.reduces = [i for i, node in enumerate(kernel.body) if isinstance(node, Reduce)]
        self.vector = self._vector_axis()
        self.by_row = NO_AXIS < self.vector < kernel.rows
        others = [axis for axis in range(kernel.rows) if axis != self.vector]
        self.tile_axis, self.tile = self._tiled(others)
        self.outer = [
            (axis, -(-kernel.space[axis] // (self.tile if axis == self.tile_axis else 1)))
            for axis in others
        ]
        outer = math.prod(count for _, count in self.outer)
        self.unrolled = 1
        if self.reduces:
            self.unrolled = UNROLLED // 2 if self.tile > 1 and lanes < 16 else UNROLLED
        self.step = lanes * self.unrolled
        parts = 1
        if self.by_row:
            parts = -(-kernel.space[self.vector] // self.step)
        self.splits_vector = outer < min(_MIN_OUTER, parts)
        self.items = parts if self.splits_vector else outer
        filled = 1.0 if self.vector == NO_AXIS else self._filled(self.vector) * lanes
        elements = math.prod(kernel.space)
        self.work = 0.2 * sum(cost_of(node, elements, elements / filled) for node in kernel.body)

    def _filled(self, axis: int) -> float:
        """The part of the lanes that are used."""
        length = self.kernel.space[axis]
        return length / (-(-length // self.lanes) * self.lanes)

    def _vector_axis(self) -> int:
        """The axis of the vectors: few lanes are empty, and few loads and stores not contiguous."""
        kernel = self.kernel
        loads = [node for node in kernel.body if isinstance(node, Load)]

        def cost(axis: int) -> float:
            stores = [s for s in kernel.stores if axis < kernel.rows or not kernel.is_of_rows(s)]
            bad = sum(load.strides[axis] not in {0, 1} for load in loads)
            bad += sum(store.strides[axis] != 1 for store in stores)
            return (1 + 3 * bad) / self._filled(axis)

        axes = [axis for axis, length in enumerate(kernel.space) if length > 1]
        return min(reversed(axes), key=cost, default=NO_AXIS)

    def _tiled(self, others: Sequence[int]) -> tuple[int | None, int]:
        """The axis of rows of which several are computed at a time, and how many.

        They share a load. Where an output overwrites an input no row may be computed twice.
        """
        kernel = self.kernel
        passes = max([self.phases[store.node] for store in kernel.stores], default=0)
        if not others or passes != 1 or kernel.overwrites or self.vector == NO_AXIS:
            return None, 1
        if not all(kernel.is_of_rows(store) for store in kernel.stores):
            return None, 1
        axis, levels = others[-1], kernel.is_row_level
        loads = [
            node
            for node, level in zip(kernel.body, levels, strict=True)
            if isinstance(node, Load) and not level
        ]
        shared = any(not load.strides[axis] and load.strides[self.vector] for load in loads)
        if not shared or not any(load.strides[axis] for load in loads):
            return None, 1
        return axis, min(_TILE, kernel.space[axis])

    def write(self, writer: VectorWriter) -> None:
        """Write the statements that compute the items from `writer.start` to `writer.stop`.

        Parameters
        ----------
        writer : VectorWriter
            The language.
        """
        if self.items:
            Statements(self, writer).write()


def strided_copy(shape: Shape, offset: int, strides: tuple[int, ...], dtype: DType) -> Kernel:
    """A kernel that copies a view to row-major order.

    Parameters
    ----------
    shape : tuple of int
        Length of each axis.
    offset : int
        Index of the first element in the memory of the view.
    strides : tuple of int
        Elements from one index of each axis to the next.
    dtype : DType
        Dtype of the elements.
    """
    own = tuple([math.prod(shape[axis + 1 :]) for axis in range(len(shape))])
    body, stores = (Load(0, offset, strides, dtype),), (Store(0, 0, 0, own),)
    outputs = ((dtype, math.prod(shape)),)
    return Kernel(shape, len(shape), (dtype,), (), outputs, body, stores)
