"""Reading and adding at indices that a tensor holds.

An index is in [-n, n) for an axis of length n. Any other raises `OutOfRangeError`, at the latest
when a result is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from burn.dtype import bool_
from burn.errors import ShapeError
from burn.ops.batching import BatchedCall, leading_axes, leading_axes_of
from burn.ops.op import Context, Tag, op
from burn.ops.shapes import check_axis, size
from burn.ops.signature import (
    AnyOperand,
    Axis,
    Cotangent,
    Gradients,
    IndexOperand,
    Meta,
    NumericOperand,
    Primitive,
    Shape,
)
from burn.ops.table import OpTable


@op(Tag.CHECKS_INDICES | Tag.SELECTION, fuses="gather")
def gather(x: AnyOperand, indices: IndexOperand, *, axis: Axis) -> Meta:
    """One element of `x` for each index, which replaces the position along ``axis``.

    ``output[i, j, k] = x[i, indices[i, j, k], k]`` for axis 1. All other lengths are equal.
    """
    check_gather_shapes(x.shape, indices.shape, axis)
    return Meta(indices.shape, x.dtype)


@gather.gradient(saves=("indices",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    zeros = ops.full(shape=ctx.shape(0), fill_value=0.0, dtype=ops.dtype(g))
    return ops.scatter_add(zeros, ctx.saved[0], g, axis=ctx.attrs["axis"]), None


gather.batching(leading_axes)


@op(Tag.COMPUTE_BOUND | Tag.CHECKS_INDICES, fuses="add")
def scatter_add(
    x: NumericOperand, indices: IndexOperand, value: NumericOperand, *, axis: Axis
) -> Meta:
    """`x` with each element of `value` added where the index replaces the position along ``axis``.

    An index may occur more than once: all its values are added.
    """
    check_gather_shapes(x.shape, indices.shape, axis)
    check_same_shape("value", value.shape, indices.shape)
    return x


@scatter_add.gradient(saves=("indices",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    (indices,) = ctx.saved
    to_value = ops.gather(g, indices, axis=ctx.attrs["axis"]) if ctx.needs[2] else None
    return g, None, to_value


scatter_add.batching(leading_axes)


@scatter_add.cost
def _(output: Meta, x: Meta, indices: Meta, value: Meta, **attributes: Any) -> int:
    return size(value.shape)


@op(Tag.CHECKS_INDICES | Tag.SELECTION, fuses="decomposition")
def select(x: AnyOperand, indices: IndexOperand, *, axis: Axis) -> Meta:
    """Whole slices of `x` along `axis`, one for each of a 1-d tensor of indices."""
    return Meta(check_selection(x.shape, indices.shape, axis), x.dtype)


@select.decomposition
def _(ops: OpTable, x: Primitive, indices: Primitive, *, axis: int) -> Primitive:
    return ops.gather(x, spread(ops, indices, x.shape, axis), axis=axis)


@select.gradient(saves=("indices",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    zeros = ops.full(shape=ctx.shape(0), fill_value=0.0, dtype=ops.dtype(g))
    return ops.select_add(zeros, ctx.saved[0], g, axis=ctx.attrs["axis"]), None


@select.batching
def _(ops: OpTable, batch: BatchedCall, x: Primitive, indices: Primitive, *, axis: int) -> Any:
    if batch.is_batched == (True, False):
        return ops.select(x, indices, axis=axis + 1)
    if batch.is_batched == (True, True):
        return NotImplemented
    # All examples select from one tensor.
    _, count = indices.shape
    chosen = ops.select(x, ops.reshape(indices, shape=(batch.size * count,)), axis=axis)
    shape = (*x.shape[:axis], batch.size, count, *x.shape[axis + 1 :])
    order = (axis, *[number for number in range(len(shape)) if number != axis])
    return ops.permute(ops.reshape(chosen, shape=shape), axes=order)


@op(Tag.COMPUTE_BOUND | Tag.CHECKS_INDICES, fuses="decomposition")
def select_add(
    x: NumericOperand, indices: IndexOperand, value: NumericOperand, *, axis: Axis
) -> Meta:
    """`x` with slices of `value` added at the indices along `axis` in a 1-d tensor."""
    check_same_shape("value", value.shape, check_selection(x.shape, indices.shape, axis))
    return x


@select_add.decomposition
def _(ops: OpTable, x: Primitive, indices: Primitive, value: Primitive, *, axis: int) -> Primitive:
    return ops.scatter_add(x, spread(ops, indices, x.shape, axis), value, axis=axis)


@select_add.gradient(saves=("indices",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    (indices,) = ctx.saved
    to_value = ops.select(g, indices, axis=ctx.attrs["axis"]) if ctx.needs[2] else None
    return g, None, to_value


select_add.batching(leading_axes_of("x", "value"))


def spread(ops: OpTable, indices: Primitive, shape: Sequence[int], axis: int) -> Primitive:
    """Repeat a 1-d tensor of indices along all other axes of `shape`.

    Where that leaves none, because another axis has no elements, the indices are checked here.
    """
    target = check_selection(tuple(shape), tuple(indices.shape), axis)
    if indices.shape[0] and not size(target):
        ops.gather(ops.full(shape=(shape[axis],), fill_value=False, dtype=bool_), indices, axis=0)
    column = [1] * len(shape)
    column[axis] = target[axis]
    return ops.expand(ops.reshape(indices, shape=tuple(column)), shape=target)


def check_selection(shape: Shape, indices: Shape, axis: int) -> Shape:
    """Shape of the slices that a 1-d tensor of indices selects."""
    check_axis(axis, len(shape))
    if len(indices) != 1:
        raise ShapeError(
            f"indices must have one axis, not shape {indices}",
            hint="gather takes one index per element",
        )
    return (*shape[:axis], indices[0], *shape[axis + 1 :])


def check_gather_shapes(shape: Shape, indices: Shape, axis: int) -> None:
    """Raise ShapeError unless indices have the shape of the tensor but for `axis`."""
    check_axis(axis, len(shape))
    if len(shape) != len(indices) or any(
        length != expected and number != axis
        for number, (length, expected) in enumerate(zip(indices, shape, strict=True))
    ):
        raise ShapeError(
            f"indices of shape {indices} do not fit {shape}",
            hint=f"All lengths but that of axis {axis} must be equal",
        )


def check_same_shape(name: str, shape: Shape, expected: Shape) -> None:
    """Raise ShapeError unless a shape is the expected one."""
    if shape != expected:
        raise ShapeError(f"{name} has shape {shape} where {expected} is needed")
