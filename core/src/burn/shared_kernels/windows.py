"""Launches of the kernels on windows that slide along spatial axes (``sources/windows.c``)."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

from burn.aliases import Primitive
from burn.dtype import DType
from burn.ops import Windows, lowest_value
from burn.shared_kernels.elements import (
    DTYPE_CODES,
    SCALAR_CODE,
    WORD_CODES,
    c_type_of,
    divider,
    signed_scalar_bits,
)
from burn.shared_kernels.launching import KernelLauncher

__all__ = ["fits_windows", "launch_columns", "launch_fold", "launch_max_pool"]

_SPATIAL_AXES: Final = 3
"""Spatial axes of the kernels; fewer are padded with axes of length 1 in front."""

_LIMIT: Final = 1 << 31
_MAX_ELEMENTS_PER_CPU_ITEM: Final = 4096
_MIN_CPU_ITEMS_PER_UNIT: Final = 8

_ONE_ITEM: Final = {"WINDOW_ITEMS": 1}
_GROUP_ITEMS: Final = {"WINDOW_ITEMS": "GROUP_ITEMS"}
"""Items of a group: one of a CPU that computes many results."""


def fits_windows(plan: Sequence[Windows]) -> bool:
    """Whether the kernels have room for these axes."""
    elements = math.prod([axis.length for axis in plan])
    windows = math.prod([axis.count * axis.kernel for axis in plan])
    return len(plan) <= _SPATIAL_AXES and max(elements, windows) < _LIMIT


def launch_max_pool(
    launcher: KernelLauncher,
    x: Primitive,
    plan: Sequence[Windows],
    out: Primitive,
    indices: Primitive | None,
    index_dtype: DType | None,
) -> None:
    """Write the maxima of windows of a dense tensor, and their indices where wanted."""
    dtype = launcher.dtype_of(x)
    target = SCALAR_CODE if index_dtype is None else DTYPE_CODES[index_dtype.name]
    codes = DTYPE_CODES[dtype.name], target
    fixes_sizes = launcher.fixes_sizes(math.prod(out.shape))
    windows = _launch("max_pool", tuple(plan), codes, fixes_sizes=fixes_sizes)
    lowest = _lowest(dtype)
    rows = math.prod(out.shape[: len(out.shape) - len(plan)])
    for start, stop in _ranges(rows, windows.count):
        offsets = launcher.offset_of(x) + start * windows.elements, start * windows.count
        n = (stop - start) * windows.count
        arrays, most = (x, out, indices), _MAX_ELEMENTS_PER_CPU_ITEM
        windows.run(launcher, arrays, n, offsets, c_type_of(dtype), lowest, most=most)


def launch_columns(
    launcher: KernelLauncher,
    x: Primitive,
    plan: Sequence[Windows],
    out: Primitive,
    *,
    channels: int = 1,
    images: int = 0,
) -> None:
    """Write the elements of each window of a dense tensor as a column of a matrix.

    Parameters
    ----------
    launcher : KernelLauncher
        The device.
    x : Primitive, shape (..., *lengths)
        The images.
    plan : sequence of Windows
        The windows along each of the last axes.
    out : Primitive, shape (..., *kernel, *counts)
        The matrices.
    channels, images : int
        If there are images, one matrix (channels, *kernel, images, *counts) for all of them.
    """
    size, code = math.prod(out.shape), WORD_CODES[launcher.dtype_of(x).itemsize]
    if not size:
        return
    windows = _launch("columns", tuple(plan), (code, code))
    offset = launcher.offset_of(x)
    if launcher.is_cpu:  # an item writes rows of windows
        row = windows.axes[-1].count
        most = max(1, _MAX_ELEMENTS_PER_CPU_ITEM // row)
        windows.run(launcher, (x, out), size // row, (offset, 0), "ulong", most=most)
        return
    each, fours = windows.taps * windows.count, -(-windows.count // 4)
    for start, stop in _ranges(size // each, 1 if images else each):
        offsets = offset + start * windows.elements, start * each
        n = (stop - start) * windows.taps * fours
        windows.run(launcher, (x, out), n, offsets, "ulong", channels=channels, images=images)


def launch_fold(
    launcher: KernelLauncher,
    x: Primitive,
    plan: Sequence[Windows],
    bias: Primitive | None,
    out: Primitive,
    *,
    channels: int = 1,
) -> None:
    """Add dense columns of windows up in the images that they come from.

    A bias has an element for each of the `channels`.
    """
    source, target = launcher.dtype_of(x), launcher.dtype_of(out)
    codes = DTYPE_CODES[source.name], DTYPE_CODES[target.name]
    windows = _launch("fold", tuple(plan), codes)
    each, elements = windows.taps * windows.count, windows.elements
    rows = math.prod(out.shape) // max(elements, 1)
    for start, stop in _ranges(rows, elements, channels):
        x_offset = launcher.offset_of(x) + start * each
        offsets = x_offset, launcher.offset_of(out) + start * elements
        n = (stop - start) * elements
        has_bias = int(bias is not None)
        arrays, c_type = (x, bias, out), c_type_of(source)
        windows.run(launcher, arrays, n, offsets, c_type, 0, has_bias, channels)


@functools.cache
def _lowest(dtype: DType) -> int:
    """The lowest element as a parameter."""
    return signed_scalar_bits(lowest_value(dtype), dtype)


def _ranges(rows: int, each: int, multiple: int = 1) -> Iterator[tuple[int, int]]:
    """Ranges of rows of so many elements each that a launch computes; a multiple of rows each."""
    multiple = max(multiple, 1)
    step = max(multiple, (_LIMIT - 1) // max(each, 1) // multiple * multiple)
    for start in range(0, rows, step):
        yield start, min(start + step, rows)


class _Launch:
    """Launches of a kernel on windows along some axes, with codes of two dtypes."""

    def __init__(
        self,
        entry: str,
        plan: tuple[Windows, ...],
        codes: tuple[int, int],
        *,
        fixes_sizes: bool = False,
    ) -> None:
        self._entry = entry
        self._codes = codes
        none = Windows(1, 1, 1, 0, 0, 1, 1)
        self.axes = (*[none] * (_SPATIAL_AXES - len(plan)), *plan)
        self._table = _table(self.axes)
        self.elements = math.prod([axis.length for axis in plan])
        self.taps = math.prod([axis.kernel for axis in plan])
        self.count = math.prod([axis.count for axis in plan])
        self._types = {"TYPE": codes[0], "TARGET": codes[1], "AXES": len(plan)}
        if fixes_sizes:
            self._types |= {f"K{number}": axis.kernel for number, axis in enumerate(self.axes)}
            self._types |= {f"D{number}": axis.dilation for number, axis in enumerate(self.axes)}

    def run(
        self,
        launcher: KernelLauncher,
        arrays: tuple[Any, ...],
        n: int,
        offsets: tuple[int, int],
        c_type: str,
        lowest: int = 0,
        has_bias: int = 0,
        channels: int = 1,
        images: int = 0,
        most: int = 1,
    ) -> None:
        """Compute n results; an item of a CPU up to `most` of them."""
        per_item = 1
        if launcher.is_cpu:
            per_item = min(most, max(1, n // (_MIN_CPU_ITEMS_PER_UNIT * launcher.units)))
        group = 1 if per_item > 1 else 0
        definitions = _ONE_ITEM if group else _GROUP_ITEMS
        kernel = launcher.shared_kernel(
            self._entry, "windows.c", c_type, definitions, self._types, n
        )
        numbers = (n, per_item, *offsets, *self._codes, lowest, has_bias, channels, images)
        launcher.start(kernel, (*numbers, *self._table), arrays, -(-n // per_item), group)


_launch = functools.lru_cache(maxsize=1024)(_Launch)


@functools.lru_cache(maxsize=1024)
def _table(axes: tuple[Windows, ...]) -> tuple[int, ...]:
    """The members of the kernels' struct from ``lengths`` on."""
    fields = ("length", "kernel", "stride", "before", "dilation", "count")
    numbers = [getattr(axis, field) for field in fields for axis in axes]
    counts, widths = [axis.count for axis in axes], [axis.kernel for axis in axes]
    fours = -(-math.prod(counts) // 4)
    numbers += map(divider, (*counts, *widths, math.prod(widths), fours))
    return *numbers, fours
