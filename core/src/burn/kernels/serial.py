"""Schedule of a kernel for one thread of a CPU, which computes a range of its items with vectors.

One axis is that of the vectors: an axis of the rows, if most loads are contiguous along it (as in
sums of columns, products, elementwise work), else one of the columns, whose lanes are reduced at
the end (softmax, normalizations). The rest of an axis that no vector fills is one with fewer lanes.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Final, Protocol

from burn.aliases import Shape
from burn.dtype import DType
from burn.kernels._serial_nodes import NO_AXIS, UNROLLED, cost_of, dependencies, phases_of
from burn.kernels._serial_statements import Statements
from burn.kernels.indices import Arithmetic, Formula, quotient_up
from burn.kernels.kernel import Extent, Kernel, Length, Load, Reduce, Store, bounds
from burn.kernels.layout import collapsed
from burn.kernels.schedule import product
from burn.kernels.writer import Value, Writer

__all__ = ["Serial", "VectorWriter", "strided_copy"]

_TILE: Final = 4
"""Rows that share what they load for a product."""

_FAR: Final[dict[Extent, float]] = {0: 0.0, 1: 0.0, 2: 0.3, -1: 0.2}
"""What a load costs by the stride along the axis of the vectors, of one of elements anywhere."""

_MIN_OUTER: Final = 8
"""Rows from which they are divided among threads, and not the axis of the vectors."""

_CHEAP: Final = 8.0
"""Cost of a column up to which more rows are reduced at a time."""

_BLOCK: Final = 2048
"""Elements of an item of a kernel without reductions where the axis of the vectors is divided."""


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

    def restrict(self, active: Value | None) -> None:
        """From here on load and store the first lanes only, an index; None for all."""

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
    items : Formula
        Number of independent items; a call computes a range of them.
    work : Formula
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
        self.others = [axis for axis in range(kernel.rows) if axis != self.vector]
        self.tile_axis, self.tile = self._tiled()
        self.step = lanes * self._unrolled()
        self.rest = self._rest()
        self.block = self._block()
        numbers = Arithmetic()
        self.items = Formula(numbers.multiply(self.outer(numbers), self.parts(numbers)))
        filled = 1.0 if self.vector == NO_AXIS else self._filled(self.vector) * lanes
        cost = 0.2 * sum([cost_of(node, 1.0, 1.0 / filled) for node in kernel.body])
        self.work = Formula(f"{cost:.6g} * {product(numbers, kernel.space)}")

    def _unrolled(self) -> int:
        """Vectors of rows that are computed at a time.

        Those of cheap reductions are as many as registers hold: what is read of a column then is
        long enough for the processor to fetch ahead.
        """
        if not self.reduces:
            return 1
        if self.tile > 1:
            return UNROLLED if self.lanes >= 16 else UNROLLED // 2
        cost = sum([cost_of(node, 1.0, 1.0) for node in self.kernel.body])
        return self.lanes if len(self.reduces) == 1 and cost < _CHEAP else UNROLLED

    def _rest(self) -> int:
        """Rows that are computed at a time where less than a step is left, some of them masked."""
        dtypes = [*self.kernel.inputs, *[dtype for dtype, _ in self.kernel.outputs]]
        has_masks = self.lanes >= 16 or all(dtype.itemsize >= 4 for dtype in dtypes)
        most = bounds([self.kernel.space[self.vector]] if self.by_row else [])[1]
        is_long = has_masks and most > self.lanes
        return max(self.lanes, self.step // 2 if is_long else 0)

    def _block(self) -> int | None:
        """Rows along the axis of the vectors that an item computes; None for all of them."""
        if not self.by_row:
            return None
        length = self.kernel.space[self.vector]
        least = bounds([self.kernel.space[axis] for axis in self.others])[0]
        block = self.step if self.reduces else max(self.step, _BLOCK)
        is_whole = bounds([length])[1] <= block or (isinstance(length, int) and least >= _MIN_OUTER)
        return None if is_whole else block

    def counts(self, writer: Any) -> list[Value]:
        """How many tiles, or rows, the axes have that are not the axis of the vectors."""
        return [
            quotient_up(
                writer,
                writer.integer(self.kernel.space[axis]),
                self.tile if axis == self.tile_axis else 1,
            )
            for axis in self.others
        ]

    def outer(self, writer: Any) -> Value:
        """The product of `counts`."""
        return functools.reduce(writer.multiply, self.counts(writer), writer.integer(1))

    def parts(self, writer: Any) -> Value:
        """Parts of the axis of the vectors, each for an item."""
        if self.block is None:
            return writer.integer(1)
        return quotient_up(writer, writer.integer(self.kernel.space[self.vector]), self.block)

    def _filled(self, axis: int) -> float:
        """The part of the lanes that are used."""
        length = self.kernel.space[axis]
        if isinstance(length, Length):
            return 1.0 if length.most is None or length.most > self.lanes else 0.5
        return length / (-(-length // self.lanes) * self.lanes)

    def _vector_axis(self) -> int:
        """The axis of the vectors: few lanes are empty, and few loads and stores not contiguous."""
        kernel = self.kernel
        loads = [node for node in kernel.body if isinstance(node, Load)]

        def cost(axis: int) -> float:
            stores = [s for s in kernel.stores if axis < kernel.rows or not kernel.is_of_rows(s)]
            bad = sum([_FAR.get(load.strides[axis], 1.0) for load in loads])
            bad += sum(store.strides[axis] != 1 for store in stores)
            return (1 + 3 * bad) / self._filled(axis)

        axes = [axis for axis, length in enumerate(kernel.space) if length not in {0, 1}]
        if kernel.ragged is not None:
            axes = [axis for axis in axes if axis]
        return min(reversed(axes), key=cost, default=NO_AXIS)

    def _tiled(self) -> tuple[int | None, int]:
        """The axis of rows of which several are computed at a time, and how many.

        They share a load. Where an output overwrites an input no row may be computed twice.
        """
        kernel = self.kernel
        passes = max([self.phases[store.node] for store in kernel.stores], default=0)
        if not self.others or passes != 1 or kernel.overwrites or self.vector == NO_AXIS:
            return None, 1
        if not all(kernel.is_of_rows(store) for store in kernel.stores):
            return None, 1
        axis, levels = self.others[-1], kernel.is_row_level
        if kernel.ragged is not None and not axis:
            return None, 1
        loads = [
            node
            for node, level in zip(kernel.body, levels, strict=True)
            if isinstance(node, Load) and not level
        ]
        shared = any(not load.strides[axis] and load.strides[self.vector] for load in loads)
        if not shared or not any(load.strides[axis] for load in loads):
            return None, 1
        return axis, max(1, min(_TILE, bounds([kernel.space[axis]])[0]))

    def write(self, writer: VectorWriter) -> None:
        """Write the statements that compute the items from `writer.start` to `writer.stop`.

        Parameters
        ----------
        writer : VectorWriter
            The language.
        """
        if self.items.text != "0":
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
