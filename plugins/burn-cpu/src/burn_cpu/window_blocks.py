"""The windows of a convolution, copied into a contiguous buffer block by block."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from burn.plugin_api import ConvGeometry, Windows
from burn_cpu.threads import in_parallel, shares, single_threaded_blas, thread_count

__all__ = ["Block", "Layout", "Part", "inside", "layout", "padded", "windows"]

Array = Any

_Result = TypeVar("_Result")

_BLOCK_ELEMENTS: Final = 1 << 19
"""2 MiB of float32."""

_MIN_WINDOWS_PER_BLOCK: Final = 256
"""With fewer BLAS is slow."""

_NS_PER_COPY: Final = 0.4
_NS_PER_PRODUCT: Final = 0.025
"""Nanoseconds to copy an element, and to multiply it by one weight."""

_MIN_NS_FOR_THREADS: Final = 1e6
"""Nanoseconds of work from which it is divided among threads; less is faster on one."""


class Block(NamedTuple):
    """Windows that one product takes.

    Attributes
    ----------
    images : slice
        The images.
    part : slice
        The windows of each image.
    windows : array
        A view of the elements, of shape (images, C, *kernel, *windows), or by rows
        (images, *windows, *kernel, C).
    """

    images: slice
    part: slice
    windows: Array


class Part(NamedTuple):
    """Windows that one thread takes: those of some images, or some along the first axis."""

    images: slice
    lines: slice


class Layout:
    """How images are padded and divided into blocks of windows; it depends on shapes alone.

    Parameters
    ----------
    plan : Convolution
        The windows.
    by_rows : bool
        Whether the channels come last, in the padded images and in the windows.
    """

    def __init__(self, plan: ConvGeometry, *, by_rows: bool) -> None:
        axes = plan.axes
        lengths = [axis.before + axis.length + axis.after for axis in axes]
        first, *others = plan.counts
        self.axes = axes
        self.by_rows = by_rows
        self.batch = plan.batch
        self.first = first
        self.rest = math.prod(others)
        line = max(plan.inputs * math.prod(plan.kernel) * self.rest, 1)
        self.images = min(max(1, _BLOCK_ELEMENTS // (line * first)), max(plan.batch, 1))
        alone = max(_BLOCK_ELEMENTS // line, -(-_MIN_WINDOWS_PER_BLOCK // self.rest))
        self.lines = first if self.images > 1 else min(alone, first)
        windows = plan.batch * math.prod(plan.counts)
        ns_per_element = plan.groups * _NS_PER_COPY + plan.outputs * _NS_PER_PRODUCT
        self.nanoseconds = windows * plan.terms * ns_per_element
        self.order = (0, *range(2, 2 + len(axes)), 1)
        self.lead = 1 if by_rows else 2
        self.is_padded = any(axis.before or axis.after for axis in axes)
        self.needs_buffer = self.is_padded or by_rows
        self.shape = (self.images, *lengths, plan.inputs)
        if not by_rows:
            self.shape = (self.images, plan.inputs, *lengths)
        self.inside = (slice(None),) * self.lead + inside(axes)
        self.skipped = (slice(None),) * (1 if by_rows else 2 + len(axes))

    def run(self, work: Callable[[Part], _Result], *, only_images: bool = False) -> list[_Result]:
        """Call ``work(part)`` for all windows: at once if they are few, else a part per thread.

        A part is a range of images, or of windows along the first axis unless `only_images`.
        """
        every = Part(slice(0, self.batch), slice(0, self.first))
        if self.nanoseconds < _MIN_NS_FOR_THREADS:
            with single_threaded_blas():
                return [work(every)]
        count = thread_count()
        if self.batch >= count:
            parts = [every._replace(images=share) for share in shares(self.batch, count)]
        elif only_images:
            parts = [every]
        else:
            parts = [every._replace(lines=share) for share in shares(self.first, count)]
        return in_parallel(work, parts)

    def blocks(self, x: Array, dtype: Any, part: Part) -> Iterator[Block]:
        """The blocks of a part of images (N, C, *spatial), converted to a dtype."""
        if self.by_rows:
            x = x.transpose(self.order)
        buffer = None
        if self.needs_buffer or x.dtype != dtype:
            buffer = (np.zeros if self.is_padded else np.empty)(self.shape, dtype)
        for start in range(part.images.start, part.images.stop, self.images):
            images = x[start : min(start + self.images, part.images.stop)]
            chosen = slice(start, start + len(images))
            if buffer is not None:
                block = buffer[: len(images)]
                block[self.inside] = images
                images = block
            every = windows(images, self.axes, by_rows=self.by_rows)
            for line in range(part.lines.start, part.lines.stop, self.lines):
                stop = min(line + self.lines, part.lines.stop)
                some = every
                if stop - line < self.first:
                    some = every[(*self.skipped, slice(line, stop))]
                yield Block(chosen, slice(line * self.rest, stop * self.rest), some)


@functools.lru_cache(maxsize=512)
def layout(plan: ConvGeometry, *, by_rows: bool) -> Layout:
    """The `Layout` of a convolution, cached."""
    return Layout(plan, by_rows=by_rows)


def windows(x: Array, axes: Sequence[Windows], *, by_rows: bool = False) -> Array:
    """A view of the elements of each window of padded images; see `Block`."""
    kernel = [axis.kernel for axis in axes]
    counts = [axis.count for axis in axes]
    steps = x.strides[1:-1] if by_rows else x.strides[2:]
    within = [axis.dilation * step for axis, step in zip(axes, steps, strict=True)]
    between = [axis.stride * step for axis, step in zip(axes, steps, strict=True)]
    if by_rows:
        shape = (len(x), *counts, *kernel, x.shape[-1])
        return _view(x, shape, (x.strides[0], *between, *within, x.strides[-1]))
    return _view(x, (*x.shape[:2], *kernel, *counts), (*x.strides[:2], *within, *between))


def _view(x: Array, shape: Sequence[int], strides: Sequence[int]) -> Array:
    """A strided view; the constructor is faster than `numpy.lib.stride_tricks.as_strided`."""
    if x.flags.c_contiguous and x.dtype.kind != "V":  # bfloat16 (kind V) has no buffer
        return np.ndarray(shape, x.dtype, x, 0, strides)
    return np.lib.stride_tricks.as_strided(x, shape, strides)


def padded(x: Array, axes: Sequence[Windows]) -> Array:
    """Images padded with zeros."""
    if not any(axis.before or axis.after for axis in axes):
        return x
    lengths = [axis.before + axis.length + axis.after for axis in axes]
    result = np.zeros((*x.shape[:2], *lengths), x.dtype)
    result[(slice(None), slice(None), *inside(axes))] = x
    return result


def inside(axes: Sequence[Windows]) -> tuple[slice, ...]:
    """Slices of the images within the padded ones."""
    return tuple([slice(axis.before, axis.before + axis.length) for axis in axes])
