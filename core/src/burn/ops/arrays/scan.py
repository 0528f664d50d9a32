"""Scans along one axis: cumulative sums, products and extrema."""

from __future__ import annotations

from typing import Any

from burn.ops._precision import in_float32
from burn.ops.batching import leading_axes
from burn.ops.index_arithmetic import narrow, positions
from burn.ops.op import Context, Tag, op
from burn.ops.shapes import check_axis, size
from burn.ops.signature import (
    Axis,
    Cotangent,
    FloatOperand,
    Gradients,
    Meta,
    NumberOperand,
    NumericOperand,
    Primitive,
)
from burn.ops.table import OpTable


def _flops(output: Meta, x: Meta, **attributes: Any) -> int:
    """Each element is combined with those before it once."""
    return size(x.shape)


def _scan(ops: OpTable, x: Primitive, axis: int, combine: str) -> Primitive:
    """Inclusive scan in log2(n) steps (Hillis and Steele, 1986)."""
    length = x.shape[axis]
    step = 1
    while step < length:
        head = narrow(ops, x, axis, 0, step)
        tail = narrow(ops, x, axis, step, length - step)
        earlier = narrow(ops, x, axis, 0, length - step)
        x = ops.concat([head, getattr(ops, combine)(tail, earlier)], axis=axis)
        step *= 2
    return x


@op(Tag.COMPUTE_BOUND)
def cumsum(x: NumberOperand, *, axis: Axis) -> Meta:
    """Sum of the elements up to each one along `axis`, in the dtype of `x`."""
    check_axis(axis, len(x.shape))
    return x


@cumsum.decomposition
@in_float32
def _(ops: OpTable, x: Primitive, *, axis: int) -> Primitive:
    return _scan(ops, x, axis, "add")


@cumsum.gradient()
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    axis = ctx.attrs["axis"]
    return (ops.flip(ops.cumsum(ops.flip(g, axes=(axis,)), axis=axis), axes=(axis,)),)


cumsum.batching(leading_axes)
cumsum.cost(_flops)


@op(Tag.COMPUTE_BOUND)
def cumprod(x: NumberOperand, *, axis: Axis) -> Meta:
    """Product of the elements up to each one along `axis`, in the dtype of `x`.

    It has no gradient rule: the gradients of its decomposition hold where elements are 0.
    """
    check_axis(axis, len(x.shape))
    return x


@cumprod.decomposition
@in_float32
def _(ops: OpTable, x: Primitive, *, axis: int) -> Primitive:
    return _scan(ops, x, axis, "multiply")


cumprod.batching(leading_axes)
cumprod.cost(_flops)


@op(Tag.COMPUTE_BOUND)
def cummax(x: NumericOperand, *, axis: Axis) -> Meta:
    """Largest of the elements up to each one along `axis`. NaN propagates.

    The gradient goes to the element that is the largest so far, the last of equals.
    """
    check_axis(axis, len(x.shape))
    return x


@cummax.decomposition
def _(ops: OpTable, x: Primitive, *, axis: int) -> Primitive:
    return _scan(ops, x, axis, "maximum")


@op(Tag.COMPUTE_BOUND)
def cummin(x: NumericOperand, *, axis: Axis) -> Meta:
    """Smallest of the elements up to each one along `axis`. NaN propagates.

    The gradient goes to the element that is the smallest so far, the last of equals.
    """
    check_axis(axis, len(x.shape))
    return x


@cummin.decomposition
def _(ops: OpTable, x: Primitive, *, axis: int) -> Primitive:
    return _scan(ops, x, axis, "minimum")


def _extremum_gradient(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    x, output = ctx.saved
    axis, shape = ctx.attrs["axis"], ctx.shape(0)
    # Every element that equals the extremum so far holds it from then on, and so does every NaN.
    holds = ops.bitwise_or(ops.equal(x, output), ops.isnan(x))
    position = ops.where(holds, positions(ops, shape, axis), 0)
    holder = ops.cummax(position, axis=axis)
    zeros = ops.full(shape=shape, fill_value=0.0, dtype=ops.dtype(g))
    return (ops.scatter_add(zeros, holder, g, axis=axis),)


cummax.gradient(saves=("x", "output"))(_extremum_gradient)


cummax.batching(leading_axes)
cummax.cost(_flops)
cummin.gradient(saves=("x", "output"))(_extremum_gradient)


cummin.batching(leading_axes)
cummin.cost(_flops)


@op(Tag.COMPUTE_BOUND)
def logcumsumexp(x: FloatOperand, *, axis: Axis) -> Meta:
    """``log(cumsum(exp(x)))`` along `axis`, without overflow.

    It has no gradient rule: the gradients of its decomposition hold for all elements, however far
    apart they are.
    """
    check_axis(axis, len(x.shape))
    return x


@logcumsumexp.decomposition
@in_float32
def _(ops: OpTable, x: Primitive, *, axis: int) -> Primitive:
    return _scan(ops, x, axis, "logaddexp")


logcumsumexp.batching(leading_axes)
logcumsumexp.cost(_flops)
