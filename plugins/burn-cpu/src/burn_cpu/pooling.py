"""Pooling axis by axis and block by block of images.

Intermediate results stay in the cache, and a window costs the sum of its lengths, not the product.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, Unpack

import numpy as np

from burn.plugin_api import (
    AvgPoolAttributes,
    DType,
    MaxPoolAttributes,
    Sizes,
    Windows,
    average_pool_divisors,
    check_pool_index_dtype,
    check_pool_indices,
    check_pooled,
    pool_windows,
    pooled_shape,
    unpooled_shape,
)
from burn_cpu.base import Array, CpuOps
from burn_cpu.indexing import out_of_range
from burn_cpu.threads import in_parallel, shares, thread_count

_MOST_ELEMENTS: Final = 32
"""Elements of a window for each of which a kernel has code."""

_BLOCK_ELEMENTS: Final = 1 << 18
"""1 MiB of float32."""


class PoolingOps(CpuOps):
    """Largest and mean elements of windows, and their gradients."""

    def max_pool(self, x: Array, **attributes: Unpack[MaxPoolAttributes]) -> Array:
        """Kernels; without a compiler by NumPy, in half the time of `max_pool_with_indices`."""
        if math.prod(attributes["kernel_size"]) > _MOST_ELEMENTS:
            return self._max_pool(x, **attributes)
        return self.large("max_pool", self._max_pool)(x, **attributes)

    def _max_pool(self, x: Array, **attributes: Unpack[MaxPoolAttributes]) -> Array:
        plan = pool_windows(x.shape, **attributes)
        bottom = _lowest(x)
        result = np.empty(pooled_shape(x.shape, plan), x.dtype)

        def work(scratch: _Scratch, block: Array, output: Array) -> None:
            padded = _padded(block, plan, bottom, scratch)
            np.copyto(output, _reduced(np.maximum, padded, plan, scratch), casting="unsafe")

        _in_blocks(work, len(plan), x, result)
        return result

    def max_pool_with_indices(
        self, x: Array, *, index_dtype: DType, **attributes: Unpack[MaxPoolAttributes]
    ) -> tuple[Array, Array]:
        """Kernels; without a compiler by NumPy."""
        search: Callable[..., tuple[Array, Array]] = self._max_pool_with_indices
        if math.prod(attributes["kernel_size"]) <= _MOST_ELEMENTS:
            search = self.large("max_pool_with_indices", search)
        return search(x, index_dtype=index_dtype, **attributes)

    def _max_pool_with_indices(
        self, x: Array, *, index_dtype: DType, **attributes: Unpack[MaxPoolAttributes]
    ) -> tuple[Array, Array]:
        """Searches with positions within windows, small integers, and adds the offsets last."""
        plan = pool_windows(x.shape, **attributes)
        check_pool_index_dtype(plan, index_dtype)
        bottom = _lowest(x)
        starts, offsets = _window_offsets(plan, index_dtype.numpy)
        result = np.empty(pooled_shape(x.shape, plan), x.dtype)
        indices = np.empty(result.shape, index_dtype.numpy)

        def work(scratch: _Scratch, block: Array, output: Array, found: Array) -> None:
            padded = _padded(block, plan, bottom, scratch)
            values, code = _searched(padded, plan, scratch, ordered=True)
            if values.dtype.kind == "f" and np.isnan(values).any():
                values, code = _searched(padded, plan, scratch, ordered=False)
            np.copyto(output, values, casting="unsafe")
            np.take(offsets, code, out=found, mode="clip")
            np.add(found, starts, out=found)

        _in_blocks(work, len(plan), x, result, indices)
        return result, indices

    def max_pool_grad(self, g: Array, indices: Array, *, input_size: Sizes) -> Array:
        """Added up in float64."""
        shape = check_pool_indices(g.shape, indices.shape, input_size)
        result = np.empty(shape, g.dtype)
        count = math.prod(input_size)

        def work(_: _Scratch, block: Array, found: Array, output: Array) -> None:
            first = np.arange(len(block)).reshape(-1, *[1] * len(input_size)) * count
            flat = (first + _checked(found, count)).reshape(-1)
            total = np.bincount(flat, block.reshape(-1), len(block) * count)
            output[...] = total.reshape(output.shape)

        _in_blocks(work, len(input_size), g, indices, result)
        return result

    def avg_pool_grad(
        self,
        g: Array,
        *,
        input_size: Sizes,
        count_include_pad: bool,
        **attributes: Unpack[AvgPoolAttributes],
    ) -> Array:
        """16-bit floats in float32."""
        plan = pool_windows(input_size, **attributes)
        check_pooled(g.shape, input_size, plan)
        counts = _divisors(plan, g, count_include_pad=count_include_pad)
        result = np.empty(unpooled_shape(g.shape, input_size), g.dtype)

        def work(scratch: _Scratch, block: Array, output: Array) -> None:
            share = scratch.array("share", block.shape, counts.dtype)
            np.divide(block, counts, out=share)
            np.copyto(output, _spread(share, plan, scratch), casting="unsafe")

        _in_blocks(work, len(plan), g, result)
        return result


def _in_blocks(work: Callable[..., None], count: int, *arrays: Array) -> None:
    """Call ``work(scratch, *parts)`` for all blocks of arrays, several at a time on threads.

    The arrays may differ in their last `count` axes. The axes before these count as one, and a
    block is a range along it. Each thread has its own scratch.
    """
    planes = math.prod(arrays[0].shape[: arrays[0].ndim - count])
    flat = [array.reshape(planes, *array.shape[array.ndim - count :]) for array in arrays]
    size = max(math.prod(tensor.shape[1:]) for tensor in flat)
    step = max(1, _BLOCK_ELEMENTS // size)

    def take(share: slice) -> None:
        scratch = _Scratch()
        for start in range(share.start, share.stop, step):
            part = slice(start, min(start + step, share.stop))
            work(scratch, *[item[part] for item in flat])

    threads = thread_count() if planes * size > _BLOCK_ELEMENTS else 1
    in_parallel(take, shares(planes, threads))


class _Scratch:
    """Arrays reused for each block: to allocate memory costs more than the work on it."""

    def __init__(self) -> None:
        self._arrays: dict[Any, Array] = {}

    def array(
        self, name: str, shape: Sequence[int], dtype: Any, value: float | None = None
    ) -> Array:
        """The array `name`, filled with `value` when it is made."""
        key = name, tuple(shape), dtype
        found = self._arrays.get(key)
        if found is None:
            found = np.empty(shape, dtype) if value is None else np.full(shape, value, dtype)
            self._arrays[key] = found
        return found


def _padded(block: Array, plan: Sequence[Windows], value: float, scratch: _Scratch) -> Array:
    """A block with its padding, 16-bit floats as float32."""
    narrow = block.dtype.kind in "fV" and block.dtype.itemsize < 4
    dtype = np.dtype(np.float32) if narrow else block.dtype
    if not any(axis.before or axis.missing for axis in plan):
        return block.astype(dtype, copy=False)
    lengths = [axis.before + axis.length + axis.missing for axis in plan]
    result = scratch.array("padded", (len(block), *lengths), dtype, value)
    result[(slice(None), *[slice(axis.before, axis.before + axis.length) for axis in plan])] = block
    return result


def _parts(x: Array, axis: Windows, number: int) -> list[Array]:
    """For each position in the windows along an axis, a view of the elements there."""
    lead = (slice(None),) * number
    last = (axis.count - 1) * axis.stride + 1
    steps = range(0, axis.kernel * axis.dilation, axis.dilation)
    return [x[(*lead, slice(step, step + last, axis.stride))] for step in steps]


def _reduced(function: Any, x: Array, plan: Sequence[Windows], scratch: _Scratch) -> Array:
    """Reduce each window axis by axis, from the first, whose steps read contiguous memory."""
    for number, axis in enumerate(plan, start=1):
        x, *rest = _parts(x, axis, number)
        out = scratch.array(f"reduced {number}", x.shape, x.dtype)
        for part in rest:
            x = function(x, part, out=out)
    return x


def _searched(
    x: Array, plan: Sequence[Windows], scratch: _Scratch, *, ordered: bool
) -> tuple[Array, Array]:
    """Largest element of each window, and its position in the window as a number.

    It goes from the last axis to the first, and so finds the first of equals in row-major order.
    With `ordered` False there may be NaN.
    """
    numbers = np.min_scalar_type(math.prod([axis.kernel for axis in plan]) - 1)
    code = scratch.array("initial codes", x.shape, numbers, 0)
    unit = 1
    for number in range(len(plan), 0, -1):
        axis = plan[number - 1]
        parts, codes = _parts(x, axis, number), _parts(code, axis, number)
        x = scratch.array(f"values {number}", parts[0].shape, x.dtype)
        code, own = (
            scratch.array(f"{name} {number}", x.shape, numbers) for name in ("codes", "own code")
        )
        larger = scratch.array(f"larger {number}", x.shape, np.bool_)
        _start(x, code, parts, codes, axis, number, unit)
        for position in range(0 if axis.before else 1, axis.kernel):
            part = _packed(parts[position], scratch)
            if ordered:
                np.greater(part, x, out=larger)
                np.maximum(x, part, out=x)
            else:
                np.logical_not(np.less_equal(part, x, out=larger), out=larger)
                larger &= ~np.isnan(x)
                np.copyto(x, part, where=larger)
            np.add(codes[position], numbers.type(position * unit), out=own)
            _choose(code, own, larger)
        unit *= axis.kernel
    return x, code


def _start(
    x: Array,
    code: Array,
    parts: Sequence[Array],
    codes: Sequence[Array],
    axis: Windows,
    number: int,
    unit: int,
) -> None:
    """Set values and codes to those of the first element of each window that is not padding."""
    np.copyto(x, parts[0])
    np.copyto(code, codes[0])
    lead = (slice(None),) * number
    for window in range(min(axis.count, -(-axis.before // axis.stride))):
        position = -(-(axis.before - window * axis.stride) // axis.dilation)
        x[(*lead, window)] = parts[position][(*lead, window)]
        code[(*lead, window)] = codes[position][(*lead, window)]
        code[(*lead, window)] += code.dtype.type(position * unit)


def _packed(part: Array, scratch: _Scratch) -> Array:
    """A contiguous copy: strided elements take longer to read twice."""
    if part.strides[-1] == part.itemsize:
        return part
    packed = scratch.array("packed", part.shape, part.dtype)
    np.copyto(packed, part)
    return packed


def _choose(code: Array, own: Array, larger: Array) -> None:
    """Set `code` to `own` where `larger`, by bits: forty times as fast as by a mask."""
    mask = np.negative(larger.view(np.uint8).astype(code.dtype, copy=False))
    own ^= code
    own &= mask
    code ^= own


def _window_offsets(plan: Sequence[Windows], dtype: Any) -> tuple[Array, Array]:
    """Flat index of the start of each window, and offsets of the elements from there."""
    starts: Array = np.zeros((), dtype)
    offsets: Array = np.zeros((), dtype)
    for axis in plan:
        start = np.arange(axis.count) * axis.stride - axis.before
        starts = (starts[..., None] * axis.length + start).astype(dtype)
        step = np.arange(axis.kernel) * axis.dilation
        offsets = (offsets[..., None] * axis.length + step).astype(dtype)
    return starts, offsets.reshape(-1)


def _checked(indices: Array, count: int) -> Array:
    """Indices in [-count, count) as indices in [0, count)."""
    if indices.size and (indices.max() >= count or indices.min() < 0):
        if indices.max() >= count or indices.min() < -count:
            raise out_of_range(indices, count)
        indices = indices.astype(np.intp)
        indices = np.where(indices < 0, indices + count, indices)
    return indices.astype(np.intp, copy=False)


def _spread(x: Array, plan: Sequence[Windows], scratch: _Scratch) -> Array:
    """Add each element to all elements of its window, axis by axis from the last."""
    for number in range(len(plan), 0, -1):
        axis = plan[number - 1]
        shape = list(x.shape)
        shape[number] = max(axis.before + axis.length, axis.reach)
        result = scratch.array(f"spread {number}", shape, x.dtype)
        result.fill(0)
        for position, part in enumerate(_parts(result, axis, number)):
            if position < axis.stride:
                np.copyto(part, x)
            else:
                np.add(part, x, out=part)
        lead = (slice(None),) * number
        x = result[(*lead, slice(axis.before, axis.before + axis.length))]
    return x


def _lowest(x: Array) -> float:
    """The smallest value of the dtype."""
    return -math.inf if x.dtype.kind in "fV" else int(np.iinfo(x.dtype).min)


def _divisors(plan: tuple[Windows, ...], x: Array, *, count_include_pad: bool) -> Array:
    """Number of elements of each window, in the dtype to compute in."""
    counts = average_pool_divisors(plan, count_include_pad=count_include_pad)
    return counts.astype(np.float32 if x.dtype.itemsize < 4 else x.dtype)
