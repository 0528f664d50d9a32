"""Pooling, one axis after the other, and a block of images after the other.

What is between two steps stays in the cache that way, and windows of any size cost the sum of
their lengths and not the product.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Unpack

import numpy as np

from burn.ops.average_pooling import divisors
from burn.ops.max_pooling import check_index_dtype, check_indices
from burn.ops.pooling_windows import (
    Sizes,
    WindowRule,
    Windows,
    check_pooled,
    pooled_shape,
    unpooled_shape,
    windows,
)
from burn_cpu.base import Array, CpuOps
from burn_cpu.indexing import out_of_range
from burn_cpu.threads import in_parallel, shares, thread_count

if TYPE_CHECKING:
    from burn.dtype import DType

_BLOCK: Final = 1 << 18
"""Elements that are worked on together."""


class PoolingOps(CpuOps):
    """Largest and mean elements of windows, and what their gradients are made of."""

    def max_pool(self, x: Array, **rule: Unpack[WindowRule]) -> Array:
        """No places: half the time of `max_pool_with_indices`."""
        plan = windows(x.shape, **rule)
        bottom = _lowest(x)
        result = np.empty(pooled_shape(x.shape, plan), x.dtype)

        def work(scratch: _Scratch, block: Array, output: Array) -> None:
            padded = _padded(block, plan, bottom, scratch)
            np.copyto(output, _reduced(np.maximum, padded, plan, scratch), casting="unsafe")

        _in_blocks(work, len(plan), x, result)
        return result

    def max_pool_with_indices(
        self, x: Array, *, index_dtype: DType, **rule: Unpack[WindowRule]
    ) -> tuple[Array, Array]:
        """The place in a window is a small number until the end."""
        plan = windows(x.shape, **rule)
        check_index_dtype(plan, index_dtype)
        bottom = _lowest(x)
        starts, steps = _places(plan, index_dtype.numpy)
        result = np.empty(pooled_shape(x.shape, plan), x.dtype)
        indices = np.empty(result.shape, index_dtype.numpy)

        def work(scratch: _Scratch, block: Array, output: Array, places: Array) -> None:
            padded = _padded(block, plan, bottom, scratch)
            values, code = _searched(padded, plan, scratch, ordered=True)
            if values.dtype.kind == "f" and np.isnan(values).any():
                values, code = _searched(padded, plan, scratch, ordered=False)
            np.copyto(output, values, casting="unsafe")
            np.take(steps, code, out=places, mode="clip")
            np.add(places, starts, out=places)

        _in_blocks(work, len(plan), x, result, indices)
        return result, indices

    def max_pool_grad(self, g: Array, indices: Array, *, input_size: Sizes) -> Array:
        """Added up in float64."""
        shape = check_indices(g.shape, indices.shape, input_size)
        result = np.empty(shape, g.dtype)
        count = math.prod(input_size)

        def work(_: _Scratch, block: Array, places: Array, output: Array) -> None:
            first = np.arange(len(block)).reshape(-1, *[1] * len(input_size)) * count
            flat = (first + _checked(places, count)).reshape(-1)
            total = np.bincount(flat, block.reshape(-1), len(block) * count)
            output[...] = total.reshape(output.shape)

        _in_blocks(work, len(input_size), g, indices, result)
        return result

    def avg_pool(
        self, x: Array, *, count_include_pad: bool = True, **rule: Unpack[WindowRule]
    ) -> Array:
        """16-bit floats in float32."""
        plan = windows(x.shape, **rule)
        counts = _divisors(plan, x, count_include_pad=count_include_pad)
        result = np.empty(pooled_shape(x.shape, plan), x.dtype)

        def work(scratch: _Scratch, block: Array, output: Array) -> None:
            total = _reduced(np.add, _padded(block, plan, 0.0, scratch), plan, scratch)
            np.divide(total, counts, out=output, casting="unsafe")

        _in_blocks(work, len(plan), x, result)
        return result

    def avg_pool_grad(
        self,
        g: Array,
        *,
        input_size: Sizes,
        count_include_pad: bool = True,
        **rule: Unpack[WindowRule],
    ) -> Array:
        """16-bit floats in float32."""
        plan = windows(input_size, **rule)
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
    """Call ``work(scratch, *parts)`` for all blocks of arrays, several at a time.

    They differ in their last `count` axes alone; the others are one axis, along which a block is a
    part. Each thread has its own scratch.
    """
    planes = math.prod(arrays[0].shape[: arrays[0].ndim - count])
    flat = [one.reshape(planes, *one.shape[one.ndim - count :]) for one in arrays]
    size = max(math.prod(one.shape[1:]) for one in flat)
    step = max(1, _BLOCK // size)

    def take(share: slice) -> None:
        scratch = _Scratch()
        for start in range(share.start, share.stop, step):
            place = slice(start, min(start + step, share.stop))
            work(scratch, *[one[place] for one in flat])

    threads = thread_count() if planes * size > _BLOCK else 1
    in_parallel(take, shares(planes, threads))


class _Scratch:
    """Arrays that are filled again for each block: fresh memory costs more than the work on it."""

    def __init__(self) -> None:
        self._arrays: dict[Any, Array] = {}

    def array(
        self, name: str, shape: Sequence[int], dtype: Any, value: float | None = None
    ) -> Array:
        """The array of that name; one with a value has it where nobody wrote to."""
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
    """Views of the elements at each place of the windows along an axis."""
    lead = (slice(None),) * number
    last = (axis.count - 1) * axis.stride + 1
    steps = range(0, axis.kernel * axis.dilation, axis.dilation)
    return [x[(*lead, slice(step, step + last, axis.stride))] for step in steps]


def _reduced(function: Any, x: Array, plan: Sequence[Windows], scratch: _Scratch) -> Array:
    """Join the elements of each window, the first axis first: its neighbours lie side by side."""
    for number, axis in enumerate(plan, start=1):
        x, *rest = _parts(x, axis, number)
        out = scratch.array(f"reduced {number}", x.shape, x.dtype)
        for part in rest:
            x = function(x, part, out=out)
    return x


def _searched(
    x: Array, plan: Sequence[Windows], scratch: _Scratch, *, ordered: bool
) -> tuple[Array, Array]:
    """Largest element of each window, and the number of its place in the window.

    The last axis comes first, so that the first of equals in row-major order is found. Elements
    that are not `ordered` are NaN here and there.
    """
    numbers = np.min_scalar_type(math.prod([axis.kernel for axis in plan]) - 1)
    code = scratch.array("no codes", x.shape, numbers, 0)
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
        for place in range(0 if axis.before else 1, axis.kernel):
            part = _packed(parts[place], scratch)
            if ordered:
                np.greater(part, x, out=larger)
                np.maximum(x, part, out=x)
            else:
                np.logical_not(np.less_equal(part, x, out=larger), out=larger)
                larger &= ~np.isnan(x)
                np.copyto(x, part, where=larger)
            np.add(codes[place], numbers.type(place * unit), out=own)
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
    """Set values and codes to those of the first element of each window that is no padding."""
    np.copyto(x, parts[0])
    np.copyto(code, codes[0])
    lead = (slice(None),) * number
    for window in range(min(axis.count, -(-axis.before // axis.stride))):
        place = -(-(axis.before - window * axis.stride) // axis.dilation)
        x[(*lead, window)] = parts[place][(*lead, window)]
        code[(*lead, window)] = codes[place][(*lead, window)]
        code[(*lead, window)] += code.dtype.type(place * unit)


def _packed(part: Array, scratch: _Scratch) -> Array:
    """The same elements side by side: to read them twice in steps takes longer."""
    if part.strides[-1] == part.itemsize:
        return part
    packed = scratch.array("packed", part.shape, part.dtype)
    np.copyto(packed, part)
    return packed


def _choose(code: Array, own: Array, larger: Array) -> None:
    """Set `code` to `own` where it holds; in bits, which is forty times as fast as by a mask."""
    mask = np.negative(larger.view(np.uint8).astype(code.dtype, copy=False))
    own ^= code
    own &= mask
    code ^= own


def _places(plan: Sequence[Windows], dtype: Any) -> tuple[Array, Array]:
    """Place at which each window starts, and how far from there each of its elements is."""
    starts: Array = np.zeros((), dtype)
    steps: Array = np.zeros((), dtype)
    for axis in plan:
        start = np.arange(axis.count) * axis.stride - axis.before
        starts = (starts[..., None] * axis.length + start).astype(dtype)
        step = np.arange(axis.kernel) * axis.dilation
        steps = (steps[..., None] * axis.length + step).astype(dtype)
    return starts, steps.reshape(-1)


def _checked(places: Array, count: int) -> Array:
    """Indices in [-count, count) from the front."""
    if places.size and (places.max() >= count or places.min() < 0):
        if places.max() >= count or places.min() < -count:
            raise out_of_range(places, count)
        places = places.astype(np.intp)
        places = np.where(places < 0, places + count, places)
    return places.astype(np.intp, copy=False)


def _spread(x: Array, plan: Sequence[Windows], scratch: _Scratch) -> Array:
    """Add the elements up at all places of their windows, the last axis first."""
    for number in range(len(plan), 0, -1):
        axis = plan[number - 1]
        shape = list(x.shape)
        shape[number] = max(axis.before + axis.length, axis.reach)
        result = scratch.array(f"spread {number}", shape, x.dtype)
        result.fill(0)
        for place, part in enumerate(_parts(result, axis, number)):
            if place < axis.stride:
                np.copyto(part, x)
            else:
                np.add(part, x, out=part)
        lead = (slice(None),) * number
        x = result[(*lead, slice(axis.before, axis.before + axis.length))]
    return x


def _lowest(x: Array) -> float:
    """The number that no element is below."""
    return -math.inf if x.dtype.kind in "fV" else int(np.iinfo(x.dtype).min)


def _divisors(plan: tuple[Windows, ...], x: Array, *, count_include_pad: bool) -> Array:
    """How many elements there are in each window, in the dtype that is computed with."""
    counts = divisors(plan, count_include_pad=count_include_pad)
    return counts.astype(np.float32 if x.dtype.itemsize < 4 else x.dtype)
