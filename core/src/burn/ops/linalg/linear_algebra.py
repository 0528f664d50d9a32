"""Products of two tensors, and norms."""

from __future__ import annotations

import math
from typing import Any

from burn.errors import ArgumentError, ShapeError
from burn.ops._precision import in_float32
from burn.ops.op import Context, Tag, op
from burn.ops.shapes import broadcast_shapes, check_axis, reduce_shape, size
from burn.ops.sharding import Sharded, ShardedCall
from burn.ops.signature import (
    Axes,
    BroadcastAxis,
    Cotangent,
    Flag,
    Gradients,
    InexactOperand,
    Meta,
    Number,
    NumberOperand,
    Primitive,
    Shape,
)
from burn.ops.table import OpTable


@op(Tag.CONTRACTION | Tag.COMPUTE_BOUND, fuses="product")
def matmul(x1: NumberOperand, x2: NumberOperand) -> Meta:
    """Matrix product over the last two axes; those before broadcast. Both have two axes or more.

    ``(..., n, k) @ (..., k, m)`` gives ``(..., n, m)``. float16 and bfloat16 add up in float32;
    integers wrap around.
    """
    if len(x1.shape) < 2 or len(x2.shape) < 2:
        raise ShapeError(f"matrices have two axes or more, got {x1.shape} and {x2.shape}")
    if x1.shape[-1] != x2.shape[-2]:
        raise ShapeError(
            f"cannot multiply {x1.shape} by {x2.shape}: "
            f"{x1.shape[-1]} columns meet {x2.shape[-2]} rows",
            hint="The last length of the first must equal the last but one of the second",
        )
    batch = broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    return Meta((*batch, x1.shape[-2], x2.shape[-1]), x1.dtype)


@matmul.sharding
def _(call: ShardedCall) -> Sharded | None:
    ranks = [len(operand.shape) for operand in call.operands]
    last = call.axis - ranks[call.operand]  # -1 or -2, or an axis of batches
    if last == (-2 if call.operand else -1):
        return Sharded((ranks[0] - 1, ranks[1] - 2), None, "sum")
    axis = max(ranks) + last
    if last >= -2:
        return Sharded((None, call.axis) if call.operand else (call.axis, None), axis)
    axes = tuple(
        [
            rank + last if rank + last >= 0 and operand.shape[last] != 1 else None
            for operand, rank in zip(call.operands, ranks, strict=True)
        ]
    )
    return Sharded(axes, axis) if axes[call.operand] is not None else None


@matmul.gradient(saves={"x1": ("x2",), "x2": ("x1",)})
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    x1, x2 = ctx.saved
    to_first = ops.matmul(g, transpose_matrices(ops, x2)) if ctx.needs[0] else None
    to_second = None
    if ctx.needs[1]:
        if len(ctx.shape(1)) == 2 and len(x1.shape) > 2:
            # One matrix for the whole batch: one long product instead of a sum over it.
            x1 = _rows(ops, x1)
            g = _rows(ops, g)
        to_second = ops.matmul(transpose_matrices(ops, x1), g)
    return to_first, to_second


@matmul.cost
def _(output: Meta, x1: Meta, x2: Meta) -> int:
    return 2 * size(output.shape) * x1.shape[-1]


@op(Tag.CONTRACTION | Tag.COMPUTE_BOUND, fuses="decomposition")
def vecdot(x1: NumberOperand, x2: NumberOperand, *, axis: BroadcastAxis) -> Meta:
    """Sum of products along an axis of the broadcast shape, where both have the same length.

    Of complex numbers the first is conjugated. float16 and bfloat16 add up in float32; integers
    wrap around.
    """
    shape = _broadcast_along(x1.shape, x2.shape, axis)
    return Meta(reduce_shape(shape, (axis,), keepdims=False), x1.dtype)


@vecdot.decomposition
@in_float32
def _(ops: OpTable, x1: Primitive, x2: Primitive, *, axis: int) -> Primitive:
    _broadcast_along(tuple(x1.shape), tuple(x2.shape), axis)
    dtype = ops.dtype(x1)
    if dtype.is_complex:
        x1 = ops.conj(x1)
    return ops.sum(ops.multiply(x1, x2), axis=(axis,), keepdims=False, dtype=dtype)


@vecdot.gradient(saves={"x1": ("x2",), "x2": ("x1",)})
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    x1, x2 = ctx.saved
    axis = ctx.attrs["axis"]
    g = ops.reshape(g, shape=(*g.shape[:axis], 1, *g.shape[axis:]))
    return (
        ops.multiply(g, x2) if ctx.needs[0] else None,
        ops.multiply(g, x1) if ctx.needs[1] else None,
    )


@op(Tag.CONTRACTION)
def cross(x1: NumberOperand, x2: NumberOperand, *, axis: BroadcastAxis) -> Meta:
    """Vector product along an axis of the broadcast shape, along which both have 3 elements."""
    shape = _broadcast_along(x1.shape, x2.shape, axis)
    if shape[axis] != 3:
        raise ShapeError(
            f"axis {axis} of {shape} has length {shape[axis]}", hint="It must have length 3"
        )
    return Meta(shape, x1.dtype)


@cross.decomposition
@in_float32
def _(ops: OpTable, x1: Primitive, x2: Primitive, *, axis: int) -> Primitive:
    shape = _broadcast_along(tuple(x1.shape), tuple(x2.shape), axis)
    if shape[axis] != 3:
        raise ShapeError(f"axis {axis} of {shape} has length {shape[axis]}, not 3")
    from_end = axis - len(shape)
    a, b, c = (_element(ops, x1, from_end, index) for index in range(3))
    d, e, f = (_element(ops, x2, from_end, index) for index in range(3))
    parts = [
        ops.subtract(ops.multiply(b, f), ops.multiply(c, e)),
        ops.subtract(ops.multiply(c, d), ops.multiply(a, f)),
        ops.subtract(ops.multiply(a, e), ops.multiply(b, d)),
    ]
    return ops.concat(parts, axis=axis)


@cross.gradient(saves={"x1": ("x2",), "x2": ("x1",)})
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    x1, x2 = ctx.saved
    axis = ctx.attrs["axis"]
    return (
        ops.cross(x2, g, axis=axis) if ctx.needs[0] else None,
        ops.cross(g, x1, axis=axis) if ctx.needs[1] else None,
    )


@op(Tag.REDUCTION | Tag.COMPUTE_BOUND)
def lp_norm(x: InexactOperand, *, axis: Axes, ord: Number, keepdims: Flag = False) -> Meta:
    """``sum(abs(x) ** ord) ** (1 / ord)`` over `axis`; `ord` is finite and not 0.

    Over no elements it is 0 (inf for a negative `ord`). It is real, also of complex numbers. The
    gradient where the norm is 0 is 0.
    """
    _check_order(ord)
    return Meta(reduce_shape(x.shape, axis, keepdims=keepdims), x.dtype.component)


@lp_norm.decomposition
@in_float32
def _(
    ops: OpTable, x: Primitive, *, axis: tuple[int, ...], ord: float, keepdims: bool = False
) -> Primitive:
    _check_order(ord)
    dtype = ops.dtype(x).component
    if ord == 2.0:
        squares = ops.multiply(x, x) if ops.dtype(x) is dtype else _squared_magnitude(ops, x)
        return ops.sqrt(ops.sum(squares, axis=axis, keepdims=keepdims, dtype=dtype))
    powers = ops.abs(x) if ord == 1.0 else ops.pow(ops.abs(x), ord)
    total = ops.sum(powers, axis=axis, keepdims=keepdims, dtype=dtype)
    return total if ord == 1.0 else ops.pow(total, 1.0 / ord)


@lp_norm.gradient(saves=("x", "output"))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    # The slope is sign(x) * (abs(x) / norm) ** (ord - 1).
    x, norm = ctx.saved
    axis, order = ctx.attrs["axis"], ctx.attrs["ord"]
    shape = reduce_shape(tuple(x.shape), axis, keepdims=True)
    g, norm = ops.reshape(g, shape=shape), ops.reshape(norm, shape=shape)
    ratio = ops.divide(x, ops.where(ops.equal(norm, 0.0), 1.0, norm))
    if order == 1.0:
        slope = ops.sign(x)
    elif order == 2.0:
        slope = ratio
    else:
        slope = ops.multiply(ops.sign(x), ops.pow(ops.abs(ratio), order - 1.0))
    return (ops.multiply(slope, g),)


@lp_norm.cost
def _(output: Meta, x: Meta, **attributes: Any) -> int:
    return 2 * size(x.shape)  # a power and a sum


def _squared_magnitude(ops: OpTable, x: Primitive) -> Primitive:
    """Squares of the magnitudes of complex numbers, without a square root."""
    return ops.add(ops.square(ops.real(x)), ops.square(ops.imag(x)))


def _check_order(order: float) -> None:
    if order == 0.0 or not math.isfinite(order):
        raise ArgumentError(
            f"ord is {order}", hint="Use a number other than 0, or the functions for limits"
        )


def _broadcast_along(shape1: Shape, shape2: Shape, axis: int) -> Shape:
    """Broadcast shape of two operands whose lengths along `axis` of it are equal."""
    shape = broadcast_shapes(shape1, shape2)
    check_axis(axis, len(shape))
    from_end = axis - len(shape)
    if min(len(shape1), len(shape2)) < -from_end or shape1[from_end] != shape2[from_end]:
        raise ShapeError(
            f"shapes {shape1} and {shape2} differ along axis {from_end}",
            hint="Both need the axis, with equal lengths",
        )
    return shape


def _element(ops: OpTable, x: Primitive, from_end: int, index: int) -> Primitive:
    """One slice of length 1 along an axis that is counted from the end."""
    axis = from_end + len(x.shape)
    slices = tuple(
        (index, 1, 1) if number == axis else (0, length, 1) for number, length in enumerate(x.shape)
    )
    return ops.slice(x, slices=slices)


def transpose_matrices(ops: OpTable, x: Primitive) -> Primitive:
    """Swap the last two axes."""
    rank = len(x.shape)
    return ops.permute(x, axes=(*range(rank - 2), rank - 1, rank - 2))


def adjoint(ops: OpTable, x: Primitive) -> Primitive:
    """Swap the last two axes, and conjugate complex numbers."""
    swapped = transpose_matrices(ops, x)
    return ops.conj(swapped) if ops.dtype(x).is_complex else swapped


def _rows(ops: OpTable, x: Primitive) -> Primitive:
    count = 1
    for length in x.shape[:-1]:
        count *= length
    return ops.reshape(x, shape=(count, x.shape[-1]))
