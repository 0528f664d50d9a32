"""Maximum pooling.

The spatial axes are the last ones, as many as `kernel_size` has numbers; the axes before them are
batch and channels. Padding is never the largest.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from burn.dtype import DType
from burn.errors import DTypeError, ShapeError
from burn.ops._axis_maps import Array, constant
from burn.ops.batching import leading_axes
from burn.ops.index_arithmetic import index_dtype as counting_dtype
from burn.ops.op import Context, Tag, op
from burn.ops.shapes import size
from burn.ops.signature import (
    Cotangent,
    FloatOperand,
    Gradients,
    IndexOperand,
    Meta,
    NumericOperand,
    Primitive,
    Scalar,
    Shape,
    Sizes,
    TargetDType,
)
from burn.ops.table import OpTable
from burn.ops.windows.sliding_windows import (
    MaxPoolAttributes,
    Windows,
    pool_windows,
    pooled_shape,
    unpooled_shape,
)

__all__ = ["check_pool_index_dtype", "check_pool_indices", "lowest_value"]


@op(Tag.COMPUTE_BOUND)
def max_pool(
    x: NumericOperand,
    **attributes: Unpack[MaxPoolAttributes],
) -> Meta:
    """Largest element of each window; NaN propagates, and the gradient goes to the first of equals.

    Window i along an axis holds the indices ``i * stride - padding + j * dilation`` for j below
    `kernel_size`. There are as many windows as fit between the ends of the padding; with
    `ceil_mode` also one that does not, if it starts in the tensor or in the padding before it.
    """
    plan = pool_windows(x.shape, **attributes)
    return Meta(pooled_shape(x.shape, plan), x.dtype)


@max_pool.decomposition
def _(ops: OpTable, x: Primitive, **attributes: Unpack[MaxPoolAttributes]) -> Primitive:
    # Under autodiff the other op runs, whose indices its gradient rule needs.
    output, _ = ops.max_pool_with_indices(x, index_dtype=counting_dtype(ops), **attributes)
    return output


max_pool.batching(leading_axes)


@max_pool.cost
def _(output: Meta, x: Meta, *, kernel_size: Sizes, **attributes: Any) -> int:
    return size(output.shape) * size(kernel_size)


@op(Tag.COMPUTE_BOUND, outputs=("output", "indices"))
def max_pool_with_indices(
    x: NumericOperand,
    *,
    index_dtype: TargetDType,
    **attributes: Unpack[MaxPoolAttributes],
) -> tuple[Meta, Meta]:
    """Largest element of each window, and its flat index over the spatial axes in row-major order.

    See `max_pool` for the windows. Of equal elements it is the first, and of several NaN.
    """
    plan = pool_windows(x.shape, **attributes)
    check_pool_index_dtype(plan, index_dtype)
    shape = pooled_shape(x.shape, plan)
    return Meta(shape, x.dtype), Meta(shape, index_dtype)


@max_pool_with_indices.decomposition
def _(
    ops: OpTable, x: Primitive, *, index_dtype: DType, **attributes: Unpack[MaxPoolAttributes]
) -> tuple[Primitive, Primitive]:
    plan = pool_windows(tuple(x.shape), **attributes)
    check_pool_index_dtype(plan, index_dtype)
    dtype = ops.dtype(x)
    shape = pooled_shape(tuple(x.shape), plan)
    lead = shape[: len(shape) - len(plan)]
    edges = ((0, 0),) * len(lead) + tuple([(axis.before, axis.missing) for axis in plan])
    padded = ops.pad(x, padding=edges, mode="constant", value=lowest_value(dtype))
    counting = counting_dtype(ops)
    start, distances = [constant(ops, array, counting) for array in _flat_starts(plan)]
    output = ops.full(shape=shape, fill_value=lowest_value(dtype), dtype=dtype)
    for steps in itertools.product(
        *[range(0, axis.dilation * axis.kernel, axis.dilation) for axis in plan]
    ):
        slices = tuple([(0, length, 1) for length in lead]) + tuple(
            [(step, axis.count, axis.stride) for step, axis in zip(steps, plan, strict=True)]
        )
        value = ops.slice(padded, slices=slices)
        larger = ops.bitwise_not(ops.less_equal(value, output))  # so is a NaN
        if dtype.is_float:
            larger = ops.bitwise_and(larger, ops.equal(output, output))  # but the first one stays
        distance = sum(step * stride for step, stride in zip(steps, _strides(plan), strict=True))
        output = ops.where(larger, value, output)
        distances = ops.where(larger, distance, distances)
    return output, ops.cast(ops.add(start, distances), dtype=index_dtype)


max_pool_with_indices.batching(leading_axes)


@max_pool_with_indices.cost
def _(outputs: tuple[Meta, Meta], x: Meta, *, kernel_size: Sizes, **attributes: Any) -> int:
    return size(outputs[0].shape) * size(kernel_size)


def _flat_starts(plan: Sequence[Windows]) -> tuple[Array, Array]:
    """Flat index at which each window starts, and from there to its first one beyond padding."""
    total = first = np.zeros((), np.int64)
    for number, (axis, stride) in enumerate(zip(plan, _strides(plan), strict=True)):
        start = np.arange(axis.count) * axis.stride - axis.before
        beyond = np.where(start < 0, start % axis.dilation, start) - start
        shape = (-1, *[1] * (len(plan) - number - 1))
        total = total + (start * stride).reshape(shape)
        first = first + (beyond * stride).reshape(shape)
    return total, first


def _strides(plan: Sequence[Windows]) -> list[int]:
    """Row-major stride of each spatial axis, in elements."""
    lengths = [axis.length for axis in plan]
    return [math.prod(lengths[number + 1 :]) for number in range(len(lengths))]


@max_pool_with_indices.gradient(saves=("indices",))
def _(ops: OpTable, ctx: Context, g: Cotangent, g_indices: Cotangent) -> Gradients:
    (indices,) = ctx.saved
    spatial = ctx.shape(0)[-len(ctx.attrs["kernel_size"]) :]
    return (ops.max_pool_grad(g, indices, input_size=spatial),)


@op(Tag.COMPUTE_BOUND | Tag.CHECKS_INDICES, outputs=("gradient",))
def max_pool_grad(g: FloatOperand, indices: IndexOperand, *, input_size: Sizes) -> Meta:
    """Gradient of `max_pool`: each element of `g` added at its flat index over the spatial axes.

    `indices` are those of `max_pool_with_indices`; `input_size` has the lengths of the spatial axes
    of its operand.
    """
    return Meta(check_pool_indices(g.shape, indices.shape, input_size), g.dtype)


@max_pool_grad.decomposition
def _(ops: OpTable, g: Primitive, indices: Primitive, *, input_size: Sizes) -> Primitive:
    shape = check_pool_indices(tuple(g.shape), tuple(indices.shape), input_size)
    lead = shape[: len(shape) - len(input_size)]
    flat = (*lead, size(g.shape[len(lead) :]))
    zeros = ops.full(shape=(*lead, size(input_size)), fill_value=0.0, dtype=ops.dtype(g))
    total = ops.scatter_add(
        zeros, ops.reshape(indices, shape=flat), ops.reshape(g, shape=flat), axis=len(lead)
    )
    return ops.reshape(total, shape=shape)


@max_pool_grad.gradient(saves=("indices",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    (indices,) = ctx.saved
    shape, spatial = tuple(indices.shape), ctx.attrs["input_size"]
    lead = shape[: len(shape) - len(spatial)]
    flat = ops.reshape(indices, shape=(*lead, size(shape[len(lead) :])))
    chosen = ops.gather(ops.reshape(g, shape=(*lead, size(spatial))), flat, axis=len(lead))
    return ops.reshape(chosen, shape=shape), None


max_pool_grad.batching(leading_axes)


def lowest_value(dtype: DType) -> Scalar:
    """The lowest number of a dtype."""
    return -math.inf if dtype.is_float else dtype.integer_range[0]


def check_pool_index_dtype(plan: Sequence[Windows], dtype: DType) -> None:
    """Raise DTypeError unless a dtype represents every flat index over the spatial axes."""
    last = math.prod([axis.length for axis in plan]) - 1
    if not dtype.is_integer or dtype.integer_range[1] < last:
        raise DTypeError(
            f"{dtype} does not hold indices up to {last}",
            hint="Use int64, or int32 if that is enough",
        )


def check_pool_indices(shape: Shape, indices: Shape, input_size: Sizes) -> Shape:
    """Shape of the operand of a pooling, from those of its gradient and of its indices."""
    if shape != indices:
        raise ShapeError(f"indices of shape {indices} for a gradient of shape {shape}")
    return unpooled_shape(shape, input_size)
