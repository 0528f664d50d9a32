"""Spread of the elements over axes: ``axis`` is a tuple of distinct axes in [0, rank)."""

from __future__ import annotations

from typing import Any

from burn.ops._precision import in_float32
from burn.ops.op import Context, Tag, op
from burn.ops.shapes import reduce_shape, size
from burn.ops.signature import (
    Axes,
    Cotangent,
    Flag,
    FloatOperand,
    Gradients,
    Meta,
    Number,
    Primitive,
)
from burn.ops.table import OpTable

_REDUCTION = Tag.REDUCTION | Tag.COMPUTE_BOUND


@op(_REDUCTION)
def var(x: FloatOperand, *, axis: Axes, keepdims: Flag = False, correction: Number = 0.0) -> Meta:
    """Variance over `axis`: the sum of squared distances from the mean over ``n - correction``.

    The divisor is 0 at least, so that too few elements give infinity or NaN.
    """
    return Meta(reduce_shape(x.shape, axis, keepdims=keepdims), x.dtype)


@var.decomposition
@in_float32
def _(
    ops: OpTable,
    x: Primitive,
    *,
    axis: tuple[int, ...],
    keepdims: bool = False,
    correction: float = 0.0,
) -> Primitive:
    distance = ops.subtract(x, ops.mean(x, axis=axis, keepdims=True))
    squares = ops.multiply(distance, distance)
    total = ops.sum(squares, axis=axis, keepdims=keepdims, dtype=ops.dtype(x))
    return ops.divide(total, _divisor(tuple(x.shape), axis, correction))


@var.gradient(saves=("x",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    (x,) = ctx.saved
    axis, shape = ctx.attrs["axis"], ctx.shape(0)
    g = ops.reshape(g, shape=reduce_shape(shape, axis, keepdims=True))
    divisor = _divisor(shape, axis, ctx.attrs.get("correction", 0.0))
    # Of no elements there is no gradient; dividing by 1 keeps NaN out of the second one.
    g = ops.divide(ops.multiply(g, 2.0), divisor if size(shape) else 1.0)
    return (ops.multiply(ops.subtract(x, ops.mean(x, axis=axis, keepdims=True)), g),)


@op(_REDUCTION)
def std(x: FloatOperand, *, axis: Axes, keepdims: Flag = False, correction: Number = 0.0) -> Meta:
    """Standard deviation over `axis`, the square root of `var`. Where it is 0, so is the gradient.

    Elsewhere the slope is ``(x - mean) / (std * (n - correction))``.
    """
    return Meta(reduce_shape(x.shape, axis, keepdims=keepdims), x.dtype)


@std.decomposition
@in_float32
def _(
    ops: OpTable,
    x: Primitive,
    *,
    axis: tuple[int, ...],
    keepdims: bool = False,
    correction: float = 0.0,
) -> Primitive:
    return ops.sqrt(ops.var(x, axis=axis, keepdims=keepdims, correction=correction))


@std.gradient(saves=("x", "output"))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    x, output = ctx.saved
    axis, shape = ctx.attrs["axis"], ctx.shape(0)
    kept = reduce_shape(shape, axis, keepdims=True)
    g, output = ops.reshape(g, shape=kept), ops.reshape(output, shape=kept)
    flat = ops.equal(output, 0.0)
    divisor = ops.multiply(
        ops.where(flat, 1.0, output), _divisor(shape, axis, ctx.attrs.get("correction", 0.0))
    )
    slope = ops.divide(ops.subtract(x, ops.mean(x, axis=axis, keepdims=True)), divisor)
    return (ops.where(flat, 0.0, ops.multiply(slope, g)),)


def _flops(output: Meta, x: Meta, **attributes: Any) -> int:
    """The mean, the distances from it, their squares, and the sum of these."""
    return 4 * size(x.shape)


var.cost(_flops)
std.cost(_flops)


def _divisor(shape: tuple[int, ...], axis: tuple[int, ...], correction: float) -> float:
    return max(size([shape[number] for number in axis]) - correction, 0.0)
