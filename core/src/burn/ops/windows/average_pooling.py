"""Average pooling.

The spatial axes are the last ones, as many as `kernel_size` or `output_size` has numbers; the axes
before them are batch and channels.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final, Unpack

import numpy as np

from burn.errors import ArgumentError
from burn.ops._attributes import without
from burn.ops._axis_maps import Array, AxisMap, apply_axis_map, constant, range_sum_map
from burn.ops._precision import in_float32
from burn.ops.batching import leading_axes
from burn.ops.index_arithmetic import narrow
from burn.ops.op import Context, Tag, op
from burn.ops.shapes import check_shape, size
from burn.ops.signature import (
    Cotangent,
    Flag,
    FloatOperand,
    Gradients,
    Meta,
    Primitive,
    Shape,
    Sizes,
)
from burn.ops.table import OpTable
from burn.ops.windows.sliding_windows import (
    AvgPoolAttributes,
    Windows,
    check_pooled,
    pool_windows,
    pooled_shape,
    split_spatial_axes,
    unpooled_shape,
)

__all__ = [
    "adaptive_window_bounds",
    "average_pool_divisors",
    "window_element_counts",
    "window_sum_map",
]


_FEW: Final = 16
"""Elements along an axis of a window up to which they are added one by one."""

_SHORT: Final = 4
"""The same for windows that do not overlap."""


@op(Tag.COMPUTE_BOUND)
def avg_pool(
    x: FloatOperand,
    *,
    count_include_pad: Flag,
    **attributes: Unpack[AvgPoolAttributes],
) -> Meta:
    """Mean of each window; see `max_pool` for the windows, which are not dilated here.

    With `count_include_pad` padding counts as elements that are 0; what lies beyond it does not.
    """
    plan = pool_windows(x.shape, **attributes)
    return Meta(pooled_shape(x.shape, plan), x.dtype)


@avg_pool.decomposition
@in_float32
def _(
    ops: OpTable, x: Primitive, *, count_include_pad: bool, **attributes: Unpack[AvgPoolAttributes]
) -> Primitive:
    plan = pool_windows(tuple(x.shape), **attributes)
    if all(axis.kernel <= _FEW or axis.is_apart for axis in plan):
        total = _added(ops, x, plan)
    else:
        total = _summed(ops, x, [window_sum_map(axis) for axis in plan])
    return _divided(ops, total, average_pool_divisors(plan, count_include_pad=count_include_pad))


@avg_pool.gradient()
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    spatial = ctx.shape(0)[-len(ctx.attrs["kernel_size"]) :]
    return (ops.avg_pool_grad(g, input_size=spatial, **ctx.attrs),)


avg_pool.batching(leading_axes)


@avg_pool.cost
def _(output: Meta, x: Meta, *, kernel_size: Sizes, **attributes: Any) -> int:
    return size(output.shape) * size(kernel_size)


@op(Tag.COMPUTE_BOUND, outputs=("gradient",))
def avg_pool_grad(
    g: FloatOperand,
    *,
    input_size: Sizes,
    count_include_pad: Flag,
    **attributes: Unpack[AvgPoolAttributes],
) -> Meta:
    """Gradient of `avg_pool`: each element of `g` spread evenly over its window.

    `input_size` has the lengths of the spatial axes of the operand of `avg_pool`.
    """
    plan = pool_windows(input_size, **attributes)
    check_pooled(g.shape, input_size, plan)
    return Meta(unpooled_shape(g.shape, input_size), g.dtype)


@avg_pool_grad.decomposition
@in_float32
def _(
    ops: OpTable,
    g: Primitive,
    *,
    input_size: Sizes,
    count_include_pad: bool,
    **attributes: Unpack[AvgPoolAttributes],
) -> Primitive:
    plan = pool_windows(input_size, **attributes)
    check_pooled(tuple(g.shape), input_size, plan)
    share = _divided(ops, g, average_pool_divisors(plan, count_include_pad=count_include_pad))
    return _summed(ops, share, [window_sum_map(axis).transposed for axis in plan])


@avg_pool_grad.gradient()
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    return (ops.avg_pool(g, **without(ctx.attrs, "input_size")),)


avg_pool_grad.batching(leading_axes)


@avg_pool_grad.cost
def _(output: Meta, g: Meta, *, kernel_size: Sizes, **attributes: Any) -> int:
    return size(g.shape) * size(kernel_size)


@op(Tag.COMPUTE_BOUND)
def adaptive_avg_pool(x: FloatOperand, *, output_size: Sizes) -> Meta:
    """Means of `output_size` windows along each spatial axis, which together hold all elements.

    Window i of n along an axis of length L holds the elements from ``floor(i * L / n)`` up to, but
    without, ``ceil((i + 1) * L / n)``.
    """
    return Meta(_adapted_shape(x.shape, output_size), x.dtype)


@adaptive_avg_pool.decomposition
@in_float32
def _(ops: OpTable, x: Primitive, *, output_size: Sizes) -> Primitive:
    lead = len(_adapted_shape(tuple(x.shape), output_size)) - len(output_size)
    maps, counts = _adaptive(tuple(x.shape)[lead:], output_size)
    return _divided(ops, _summed(ops, x, maps), counts)


@adaptive_avg_pool.gradient()
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    spatial = ctx.shape(0)[-len(ctx.attrs["output_size"]) :]
    return (ops.adaptive_avg_pool_grad(g, input_size=spatial),)


adaptive_avg_pool.batching(leading_axes)


@adaptive_avg_pool.cost
def _(output: Meta, x: Meta, *, output_size: Sizes) -> int:
    return _adaptive_flops(x.shape, output_size)


@op(Tag.COMPUTE_BOUND, outputs=("gradient",))
def adaptive_avg_pool_grad(g: FloatOperand, *, input_size: Sizes) -> Meta:
    """Gradient of `adaptive_avg_pool` of a tensor with spatial axes of lengths `input_size`."""
    return Meta(unpooled_shape(g.shape, input_size), g.dtype)


@adaptive_avg_pool_grad.decomposition
@in_float32
def _(ops: OpTable, g: Primitive, *, input_size: Sizes) -> Primitive:
    lead = len(unpooled_shape(tuple(g.shape), input_size)) - len(input_size)
    maps, counts = _adaptive(input_size, tuple(g.shape)[lead:])
    return _summed(ops, _divided(ops, g, counts), [axis_map.transposed for axis_map in maps])


@adaptive_avg_pool_grad.gradient()
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    pooled = ctx.shape(0)[-len(ctx.attrs["input_size"]) :]
    return (ops.adaptive_avg_pool(g, output_size=pooled),)


adaptive_avg_pool_grad.batching(leading_axes)


@adaptive_avg_pool_grad.cost
def _(output: Meta, g: Meta, *, input_size: Sizes) -> int:
    return _adaptive_flops(output.shape, g.shape[len(output.shape) - len(input_size) :])


def _adaptive_flops(shape: Shape, output_size: Sizes) -> int:
    """Number of elements of all adaptive windows of a tensor."""
    lead, spatial = split_spatial_axes(shape, len(output_size))
    counts = []
    for length, count in zip(spatial, output_size, strict=True):
        starts, stops = adaptive_window_bounds(length, count)
        counts.append(int(np.sum(stops - starts)))
    return size(lead) * size(counts)


def _adapted_shape(shape: Shape, output_size: Sizes) -> Shape:
    if any(count < 0 for count in output_size):
        raise ArgumentError(f"output_size is {output_size}", hint="Use lengths of 0 or more")
    lead, _ = split_spatial_axes(shape, len(output_size))
    return check_shape((*lead, *output_size))


@functools.lru_cache(maxsize=256)
def average_pool_divisors(plan: tuple[Windows, ...], *, count_include_pad: bool) -> Array:
    """Divisor of the sum of each window; 0-d if all windows have the same."""
    counts = [window_element_counts(axis, count_include_pad=count_include_pad) for axis in plan]
    return _products(counts)


def _products(counts: Sequence[Array]) -> Array:
    """Outer product of the numbers along each axis; 0-d if all its elements are equal."""
    table: Array = functools.reduce(np.multiply.outer, counts)
    if table.size and bool((table == table.flat[0]).all()):
        table = np.array(table.flat[0])
    table.flags.writeable = False
    return table


def window_element_counts(axis: Windows, *, count_include_pad: bool) -> Array:
    """Number of elements of each window along an axis that count in its mean."""
    starts = np.arange(axis.count) * axis.stride - axis.before
    stops = starts + axis.kernel
    if count_include_pad:
        return np.minimum(stops, axis.length + axis.after) - starts
    return np.minimum(stops, axis.length) - np.maximum(starts, 0)


@functools.lru_cache(maxsize=256)
def window_sum_map(axis: Windows) -> AxisMap:
    """The sums of the windows along an axis."""
    starts = np.arange(axis.count) * axis.stride - axis.before
    stops = np.minimum(starts + axis.kernel, axis.length)
    return range_sum_map(axis.length, np.maximum(starts, 0), stops)


@functools.lru_cache(maxsize=256)
def _adaptive(input_size: Sizes, output_size: Sizes) -> tuple[list[AxisMap], Array]:
    """The window sums along each axis, and the number of elements of each window."""
    ends = [
        adaptive_window_bounds(*lengths) for lengths in zip(input_size, output_size, strict=True)
    ]
    maps = [range_sum_map(length, *both) for length, both in zip(input_size, ends, strict=True)]
    return maps, _products([stops - starts for starts, stops in ends])


def adaptive_window_bounds(length: int, count: int) -> tuple[Array, Array]:
    """Starts and stops of `count` adaptive windows along an axis."""
    window = np.arange(count)
    return window * length // max(count, 1), -(-(window + 1) * length // max(count, 1))


def _added(ops: OpTable, x: Primitive, plan: Sequence[Windows]) -> Primitive:
    """The sums of the windows by slices: element j of all windows along an axis is one.

    Long windows that do not overlap are rows of a sum.
    """
    lead = len(x.shape) - len(plan)
    edges = [(0, 0)] * lead + [(axis.before, axis.missing) for axis in plan]
    if any(before or after for before, after in edges):
        x = ops.pad(x, padding=tuple(edges), mode="constant", value=0.0)
    for number, axis in enumerate(plan, lead):
        before, after = x.shape[:number], x.shape[number + 1 :]
        if axis.kernel > _SHORT and axis.is_apart:
            rows = narrow(ops, x, number, 0, axis.count * axis.kernel)
            rows = ops.reshape(rows, shape=(*before, axis.count, axis.kernel, *after))
            x = ops.sum(rows, axis=(number + 1,), dtype=ops.dtype(x))
            continue
        slices = [(0, length, 1) for length in x.shape]
        parts = []
        for step in range(axis.kernel):
            slices[number] = (step, axis.count, axis.stride)
            parts.append(ops.slice(x, slices=tuple(slices)))
        x = functools.reduce(ops.add, parts)
    return x


def _summed(ops: OpTable, x: Primitive, maps: Sequence[AxisMap]) -> Primitive:
    """Apply a map along each of the last axes."""
    for axis, axis_map in enumerate(maps, start=len(x.shape) - len(maps)):
        x = apply_axis_map(ops, x, axis_map, axis)
    return x


def _divided(ops: OpTable, x: Primitive, counts: Array) -> Primitive:
    """Divide by an array along the last axes, or by one number if it is 0-d."""
    if not counts.ndim:
        return ops.divide(x, float(counts))
    return ops.divide(x, constant(ops, counts, ops.dtype(x)))
