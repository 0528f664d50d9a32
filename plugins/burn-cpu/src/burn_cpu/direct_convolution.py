"""Convolutions by compiled kernels that read the windows where they are in padded images.

`burn_cpu.compiled_convolution` has the kernels. Here is when they are used, and the tables that
they take, which depend on shapes alone.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from burn.plugin_api import ConvGeometry, Windows
from burn_cpu.base import Array
from burn_cpu.compiled import kernels_for
from burn_cpu.threads import in_parallel, shares, thread_count

__all__ = ["Direct", "direct"]

_MIN_PRODUCTS: Final = 1 << 20
"""Multiplications from which a compiled kernel is used: for fewer NumPy takes less than 0.1 ms."""

_MIN_COLUMNS: Final = 12
"""Channels of the result; of fewer most columns of a tile would be unused."""

_MIN_WINDOWS: Final = 64
"""Windows in all images; for fewer it takes longer to arrange the weight than to multiply by it."""

_MIN_PRODUCTS_FOR_THREADS: Final = 1 << 24

_CANVAS_WINDOWS: Final = 240
"""Windows for which a canvas has images enough."""

_SPARE: Final = 8
"""Windows of a tile that is not full."""

_ALONE: Final = Windows(1, 1, 1, 0, 0, 1, 1)
"""An axis that a convolution of fewer than three spatial axes lacks."""


def direct(plan: ConvGeometry, dtype: Any, columns: int) -> Direct | None:
    """The compiled kernels for a convolution whose product has so many columns; None without."""
    if plan.groups > 1 or len(plan.axes) > 3 or columns < _MIN_COLUMNS:
        return None
    windows = plan.batch * math.prod(plan.counts)
    if windows < _MIN_WINDOWS or windows * plan.terms * plan.outputs < _MIN_PRODUCTS:
        return None
    kernels = kernels_for(dtype, "convolution")
    return None if kernels is None else Direct(plan, kernels)


class Direct:
    """A convolution with one group of channels, and both of its gradients."""

    def __init__(self, plan: ConvGeometry, kernels: Any) -> None:
        self._plan = plan
        self._kernels = kernels

    def convolved(self, x: Array, weight: Array, bias: Array | None) -> Array:
        """The convolution of (N, C, *spatial) by (O, C, *kernel)."""
        plan = self._plan
        panels = self._panels(plan.outputs, plan.terms)
        self._kernels.pack_by_outputs(_contiguous(weight).reshape(plan.outputs, -1), panels)
        result = np.empty(plan.output_shape, np.float32)
        table = _tables(plan, plan.inputs)
        self._multiply(_images(x), table, [panels], bias, result)
        return result

    def spread(self, x: Array, weight: Array, bias: Array | None) -> Array:
        """The adjoint: of (N, O, *counts), by the same weight."""
        plan = self._plan
        parts = _adjoint_tables(plan)
        weight = _contiguous(weight).reshape(plan.outputs, plan.inputs, -1)
        every = []
        for taps in parts.kernels:
            panels = self._panels(plan.inputs, plan.outputs * len(taps))
            self._kernels.pack_by_inputs(weight, taps, panels)
            every.append(panels)
        result = np.empty(plan.input_shape, np.float32)
        self._multiply(_images(x), parts, every, bias, result)
        return result

    def weight_gradient(self, x: Array, g: Array) -> Array:
        """The gradient by the weight (O, C, *kernel), given that by the output."""
        plan, table = self._plan, _tables(self._plan, self._plan.inputs)
        (phase,) = table.phases
        columns = self._columns(plan.outputs)
        rows = self._kernels.ROWS_BY_COLUMNS[columns]
        taps = np.zeros(-(-plan.terms // rows) * rows, np.int64)
        taps[: plan.terms] = phase.taps
        images, slopes = _images(x), _contiguous(g).reshape(plan.batch, plan.outputs, -1)

        def work(part: slice) -> Array:
            sums = np.zeros((-(-plan.outputs // columns), len(taps), columns), np.float32)
            canvas = np.zeros(table.canvas, np.float32)
            self._kernels.weigh(
                images,
                table.before,
                canvas,
                phase.starts,
                taps,
                slopes,
                sums,
                part.start,
                part.stop,
            )
            return sums

        total, *others = self._run(work, plan.batch)
        for other in others:
            total += other
        result = np.empty((plan.outputs, plan.terms), np.float32)
        self._kernels.unpack(total, result)
        return result.reshape(plan.weight_shape)

    def _columns(self, count: int) -> int:
        """Columns of the tiles for a matrix of so many: those of which the fewest are unused."""
        narrow, wide = self._kernels.ROWS_BY_COLUMNS
        return int(narrow if -count % narrow < -count % wide else wide)

    def _panels(self, count: int, terms: int) -> Array:
        columns = self._columns(count)
        return np.empty((-(-count // columns), terms, columns), np.float32)

    def _multiply(
        self,
        x: Array,
        tables: _Tables,
        panels: Sequence[Array],
        bias: Array | None,
        result: Array,
    ) -> None:
        shift = np.zeros(panels[0].shape[0] * panels[0].shape[2], np.float32)
        if bias is not None:
            shift[: len(bias)] = bias
        out = result.reshape(*result.shape[:2], -1)

        def work(part: slice) -> None:
            canvas = np.zeros(tables.canvas, np.float32)
            for phase, panel in zip(tables.phases, panels, strict=True):
                self._kernels.convolve(
                    x,
                    tables.before,
                    canvas,
                    phase.starts,
                    phase.targets,
                    phase.taps,
                    panel,
                    shift,
                    out,
                    part.start,
                    part.stop,
                )

        self._run(work, len(x))

    def _run(self, work: Callable[[slice], Any], images: int) -> list[Any]:
        plan = self._plan
        products = plan.batch * math.prod(plan.counts) * plan.terms * plan.outputs
        if products < _MIN_PRODUCTS_FOR_THREADS:
            return [work(slice(0, images))]
        return in_parallel(work, shares(images, thread_count()))


class _Phase(NamedTuple):
    """Windows with the same taps; see `compiled_convolution.convolve`."""

    starts: Array
    targets: Array
    taps: Array


class _Tables(NamedTuple):
    """What the kernels take of a convolution.

    Attributes
    ----------
    before : array
        Where the images begin in the canvas.
    canvas : tuple of int
        Its shape.
    phases : list of _Phase
        The windows.
    kernels : list of array
        For each phase the elements of the kernel that are its taps.
    """

    before: Array
    canvas: tuple[int, ...]
    phases: list[_Phase]
    kernels: list[Array]


@functools.lru_cache(maxsize=256)
def _tables(plan: ConvGeometry, channels: int) -> _Tables:
    """Those of a convolution: one phase."""
    axes = _three(plan.axes)
    lengths = [max(axis.before + axis.length, axis.reach) for axis in axes]
    starts = [np.arange(axis.count) * axis.stride for axis in axes]
    taps = [np.arange(axis.kernel) * axis.dilation for axis in axes]
    canvas = _canvas(plan, channels, lengths, math.prod(plan.counts))
    phase = _phase(canvas, starts, taps, np.arange(math.prod(plan.counts)))
    return _Tables(np.array([axis.before for axis in axes]), canvas, [phase], [])


@functools.lru_cache(maxsize=256)
def _adjoint_tables(plan: ConvGeometry) -> _Tables:
    """Those of the adjoint: a phase for each position of an element between two windows.

    Element i of an axis is number ``t`` of the window ``(i + before - t * dilation) / stride``, for
    each t for which that is an integer. Elements of one phase, a stride apart, have the same t.
    """
    axes = _three(plan.axes)
    every = [_axis_phases(axis) for axis in axes]
    before = [max(0, *[-int(parts[2].min(initial=0)) for parts in found]) for found in every]
    ends = [
        max([len(parts[0]) + int(parts[2].max(initial=0)) for parts in found]) for found in every
    ]
    lengths = [
        first + max(axis.count, end) for first, axis, end in zip(before, axes, ends, strict=True)
    ]
    largest = math.prod([max(len(parts[0]) for parts in found) for found in every])
    canvas = _canvas(plan, plan.outputs, lengths, largest)
    phases, kernels = [], []
    for chosen in itertools.product(*every):
        elements, kernel, windows = zip(*chosen, strict=True)
        starts = [
            np.arange(len(element)) + first for element, first in zip(elements, before, strict=True)
        ]
        targets = _flat(elements, [axis.length for axis in axes])
        phases.append(_phase(canvas, starts, list(windows), targets))
        kernels.append(_flat(kernel, [axis.kernel for axis in axes]))
    return _Tables(np.array(before), canvas, phases, kernels)


def _axis_phases(axis: Windows) -> list[tuple[Array, Array, Array]]:
    """For each phase of an axis: its elements, its t, and the window of each t at the first one."""
    found = []
    for first in range(min(axis.stride, axis.length)):
        elements = np.arange(first, axis.length, axis.stride)
        position = first + axis.before - np.arange(axis.kernel) * axis.dilation
        (kernel,) = np.nonzero(position % axis.stride == 0)
        found.append((elements, kernel, position[kernel] // axis.stride))
    return found


def _canvas(
    plan: ConvGeometry, channels: int, lengths: Sequence[int], windows: int
) -> tuple[int, ...]:
    images = max(1, min(plan.batch, -(-_CANVAS_WINDOWS // windows)))
    return images, channels, *lengths


def _phase(
    canvas: tuple[int, ...], starts: Sequence[Array], taps: Sequence[Array], targets: Array
) -> _Phase:
    """The tables, from where windows start and taps are along each axis."""
    images, channels, *lengths = canvas
    first = _flat([np.arange(images), np.zeros(1, np.int64), *starts], canvas)
    offsets = _flat([np.arange(channels), *taps], [channels, *lengths])
    return _Phase(np.concatenate([first, np.zeros(_SPARE, np.int64)]), targets, offsets)


def _flat(indices: Sequence[Array], lengths: Sequence[int]) -> Array:
    """Flat indices of all combinations of indices along axes of some lengths, in order."""
    flat = np.zeros(1, np.int64)
    for index, length in zip(indices, lengths, strict=True):
        flat = (flat[:, None] * length + index).reshape(-1)
    return flat


def _three(axes: Sequence[Windows]) -> list[Windows]:
    return [*[_ALONE] * (3 - len(axes)), *axes]


def _contiguous(x: Array) -> Array:
    """A contiguous array of float32 that may be written: compiled kernels are for one type."""
    x = np.ascontiguousarray(x, np.float32)
    return x if x.flags.writeable else x.copy()


def _images(x: Array) -> Array:
    """With three spatial axes."""
    lead = x.shape[:2]
    return _contiguous(x).reshape(*lead, *[1] * (5 - x.ndim), *x.shape[2:])
