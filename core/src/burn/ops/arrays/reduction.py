"""Reductions over axes.

``axis`` is a tuple of distinct axes in [0, rank), or one such axis for the ops that return indices.
Every attribute has a value here; defaults belong to the public functions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from burn.dtype import DType, Kind, bool_, float32
from burn.errors import DTypeError, ShapeError
from burn.ops._precision import in_float32
from burn.ops.index_arithmetic import narrow, positions
from burn.ops.op import Context, Tag, op
from burn.ops.shapes import check_conversion, reduce_shape, size
from burn.ops.signature import (
    AnyOperand,
    Axes,
    Axis,
    Cotangent,
    Flag,
    FloatOperand,
    Gradients,
    InexactOperand,
    Meta,
    NumberOperand,
    Primitive,
    RealOperand,
    TargetDType,
)
from burn.ops.table import OpTable

_REDUCTION = Tag.REDUCTION | Tag.COMPUTE_BOUND


def _keepdims(ops: OpTable, x: Primitive, shape: Sequence[int], axis: Sequence[int]) -> Primitive:
    """Insert the axes that a reduction of `shape` over `axis` dropped, with length 1."""
    return ops.reshape(x, shape=reduce_shape(tuple(shape), axis, keepdims=True))


def _check_not_empty(x: Meta, axis: Sequence[int], name: str) -> None:
    if 0 in [x.shape[number] for number in axis]:
        raise ShapeError(f"{name} of no elements is not defined (axis {tuple(axis)} of {x})")


@op(_REDUCTION, combines="sum")
def sum(x: NumberOperand, *, axis: Axes, keepdims: Flag = False, dtype: TargetDType) -> Meta:
    """Sum over `axis`, computed in and returned as `dtype`; float16 and bfloat16 add up in float32.

    Over no elements it is 0.
    """
    check_conversion(x.dtype, dtype)
    return Meta(reduce_shape(x.shape, axis, keepdims=keepdims), dtype)


@sum.gradient(saves=("x.dtype",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    (dtype,) = ctx.saved
    shape = ctx.shape(0)
    if not ctx.attrs.get("keepdims", False):
        g = _keepdims(ops, g, shape, ctx.attrs["axis"])
    if ctx.attrs["dtype"] is not dtype:
        g = ops.cast(g, dtype=dtype)
    return (ops.expand(g, shape=shape),)


@op(_REDUCTION, combines="mean")
def mean(x: InexactOperand, *, axis: Axes, keepdims: Flag = False) -> Meta:
    """Arithmetic mean over `axis`; of no elements it is NaN."""
    return Meta(reduce_shape(x.shape, axis, keepdims=keepdims), x.dtype)


@mean.decomposition
def _(ops: OpTable, x: Primitive, *, axis: tuple[int, ...], keepdims: bool = False) -> Primitive:
    count = size([x.shape[number] for number in axis])
    dtype = ops.dtype(x)
    # float16 and bfloat16 would overflow or round the sum: divide in float32.
    wide = float32 if dtype.itemsize < 4 else dtype
    total = ops.sum(x, axis=axis, keepdims=keepdims, dtype=wide)
    return ops.cast(ops.divide(total, float(count)), dtype=dtype)


@mean.gradient()
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    shape, axis = ctx.shape(0), ctx.attrs["axis"]
    # Of no elements there is no gradient; dividing by 1 keeps NaN out of the second one.
    g = ops.divide(g, float(size([shape[number] for number in axis]) or 1))
    if not ctx.attrs.get("keepdims", False):
        g = _keepdims(ops, g, shape, axis)
    return (ops.expand(g, shape=shape),)


@op(_REDUCTION, combines="product")
def prod(x: NumberOperand, *, axis: Axes, keepdims: Flag = False, dtype: TargetDType) -> Meta:
    """Product over `axis`, computed in and returned as `dtype`. Over no elements it is 1."""
    check_conversion(x.dtype, dtype)
    return Meta(reduce_shape(x.shape, axis, keepdims=keepdims), dtype)


@prod.gradient(saves=("x",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    # The slope by an element is the product of all others: of those before it times those after
    # it. No division, so zeros need no special case, and second derivatives hold.
    (x,) = ctx.saved
    axis, shape = ctx.attrs["axis"], ctx.shape(0)
    kept = [number for number in range(len(shape)) if number not in axis]
    order = (*kept, *axis)
    rows = ops.permute(x, axes=order)
    moved = rows.shape
    last = len(kept)
    rows = ops.reshape(rows, shape=(*moved[:last], size(moved[last:])))
    before = _product_of_earlier(ops, rows, last)
    after = ops.flip(_product_of_earlier(ops, ops.flip(rows, axes=(last,)), last), axes=(last,))
    others = ops.reshape(ops.multiply(before, after), shape=moved)
    inverse = tuple(order.index(number) for number in range(len(order)))
    others = ops.permute(others, axes=inverse)
    if not ctx.attrs.get("keepdims", False):
        g = _keepdims(ops, g, shape, axis)
    g = ops.cast(g, dtype=ops.dtype(x))
    return (ops.multiply(others, g),)


def _product_of_earlier(ops: OpTable, x: Primitive, axis: int) -> Primitive:
    """For each element the product of those before it along `axis`, the last."""
    if x.shape[axis] == 0:
        return x
    ones = ops.full(shape=(*x.shape[:axis], 1), fill_value=1.0, dtype=ops.dtype(x))
    shorter = narrow(ops, x, axis, 0, x.shape[axis] - 1)
    return ops.cumprod(ops.concat([ones, shorter], axis=axis), axis=axis)


@op(_REDUCTION | Tag.SELECTION, combines="max")
def max(x: RealOperand, *, axis: Axes, keepdims: Flag = False) -> Meta:
    """Largest element over `axis`. NaN propagates; equal elements share the gradient."""
    shape = reduce_shape(x.shape, axis, keepdims=keepdims)
    _check_not_empty(x, axis, "max")
    return Meta(shape, x.dtype)


@op(_REDUCTION | Tag.SELECTION, combines="min")
def min(x: RealOperand, *, axis: Axes, keepdims: Flag = False) -> Meta:
    """Smallest element over `axis`. NaN propagates; equal elements share the gradient."""
    shape = reduce_shape(x.shape, axis, keepdims=keepdims)
    _check_not_empty(x, axis, "min")
    return Meta(shape, x.dtype)


@min.decomposition
def _(ops: OpTable, x: Primitive, *, axis: tuple[int, ...], keepdims: bool = False) -> Primitive:
    return _reversed_order(ops, ops.max(_reversed_order(ops, x), axis=axis, keepdims=keepdims))


def _reversed_order(ops: OpTable, x: Primitive) -> Primitive:
    """The same elements in reverse order; for integers ``-1 - x``, which cannot overflow."""
    return ops.negative(x) if ops.dtype(x).is_float else ops.bitwise_not(x)


def _extremum_gradient(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    x, output = ctx.saved
    axis = ctx.attrs["axis"]
    if not ctx.attrs.get("keepdims", False):
        g = _keepdims(ops, g, x.shape, axis)
        output = _keepdims(ops, output, x.shape, axis)
    dtype = ops.dtype(x)
    chosen = ops.cast(ops.equal(x, output), dtype=dtype)
    count = ops.sum(chosen, axis=axis, keepdims=True, dtype=dtype)
    return (ops.multiply(chosen, ops.divide(g, count)),)


max.gradient(saves=("x", "output"))(_extremum_gradient)
min.gradient(saves=("x", "output"))(_extremum_gradient)


@op(_REDUCTION | Tag.NO_GRADIENT, combines="max")
def any(x: AnyOperand, *, axis: Axes, keepdims: Flag = False) -> Meta:
    """Whether any element over `axis` is true (not 0), as bool. Over no elements: false."""
    return Meta(reduce_shape(x.shape, axis, keepdims=keepdims), bool_)


@any.decomposition
def _(ops: OpTable, x: Primitive, *, axis: tuple[int, ...], keepdims: bool = False) -> Primitive:
    truth = x if ops.dtype(x).is_bool else ops.not_equal(x, 0)
    if size([x.shape[number] for number in axis]) == 0:
        shape = reduce_shape(tuple(x.shape), axis, keepdims=keepdims)
        return ops.full(shape=shape, fill_value=False, dtype=bool_)
    return ops.max(truth, axis=axis, keepdims=keepdims)


@op(_REDUCTION | Tag.NO_GRADIENT, combines="min")
def all(x: AnyOperand, *, axis: Axes, keepdims: Flag = False) -> Meta:
    """Whether all elements over `axis` are true (not 0), as bool. Over no elements: true."""
    return Meta(reduce_shape(x.shape, axis, keepdims=keepdims), bool_)


@all.decomposition
def _(ops: OpTable, x: Primitive, *, axis: tuple[int, ...], keepdims: bool = False) -> Primitive:
    false = ops.bitwise_not(x) if ops.dtype(x).is_bool else ops.equal(x, 0)
    return ops.bitwise_not(ops.any(false, axis=axis, keepdims=keepdims))


@op(_REDUCTION | Tag.NO_GRADIENT)
def argmax(x: RealOperand, *, axis: Axis, keepdims: Flag = False, dtype: TargetDType) -> Meta:
    """Index of the largest element along `axis`, the first of equals; NaN is the largest."""
    return _index_of_extremum(x, axis, keepdims, dtype, "argmax")


@argmax.decomposition
def _(ops: OpTable, x: Primitive, *, axis: int, keepdims: bool = False, dtype: DType) -> Primitive:
    found = ops.equal(x, ops.max(x, axis=(axis,), keepdims=True))
    if ops.dtype(x).is_float:  # the largest is NaN where an element is
        found = ops.bitwise_or(found, ops.not_equal(x, x))
    indices = ops.where(found, positions(ops, x.shape, axis), x.shape[axis] - 1)
    return ops.cast(ops.min(indices, axis=(axis,), keepdims=keepdims), dtype=dtype)


@op(_REDUCTION | Tag.NO_GRADIENT)
def argmin(x: RealOperand, *, axis: Axis, keepdims: Flag = False, dtype: TargetDType) -> Meta:
    """Index of the smallest element along `axis`, the first of equals; NaN is the smallest."""
    return _index_of_extremum(x, axis, keepdims, dtype, "argmin")


@argmin.decomposition
def _(ops: OpTable, x: Primitive, *, axis: int, keepdims: bool = False, dtype: DType) -> Primitive:
    return ops.argmax(_reversed_order(ops, x), axis=axis, keepdims=keepdims, dtype=dtype)


def _index_of_extremum(x: Meta, axis: int, keepdims: bool, dtype: DType, name: str) -> Meta:
    shape = reduce_shape(x.shape, (axis,), keepdims=keepdims)
    _check_not_empty(x, (axis,), name)
    if dtype.kind not in Kind.INTEGER:
        raise DTypeError(f"indices are integers, not {dtype}")
    return Meta(shape, dtype)


@op(_REDUCTION)
def logsumexp(x: FloatOperand, *, axis: Axes, keepdims: Flag = False) -> Meta:
    """``log(sum(exp(x)))`` over `axis`, without overflow. Over no elements it is -inf."""
    return Meta(reduce_shape(x.shape, axis, keepdims=keepdims), x.dtype)


@logsumexp.decomposition
@in_float32
def _(ops: OpTable, x: Primitive, *, axis: tuple[int, ...], keepdims: bool = False) -> Primitive:
    dtype = ops.dtype(x)
    shape = reduce_shape(tuple(x.shape), axis, keepdims=keepdims)
    if 0 in [x.shape[number] for number in axis]:
        return ops.full(shape=shape, fill_value=-math.inf, dtype=dtype)
    peak = ops.max(x, axis=axis, keepdims=True)
    # A shift by infinity would give NaN; without it the logarithm is infinite, as it should be.
    peak = ops.where(ops.equal(ops.abs(peak), math.inf), 0.0, peak)
    total = ops.sum(ops.exp(ops.subtract(x, peak)), axis=axis, keepdims=True, dtype=dtype)
    return ops.reshape(ops.add(ops.log(total), peak), shape=shape)


@logsumexp.gradient(saves=("x", "output"))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    x, output = ctx.saved
    if not ctx.attrs.get("keepdims", False):
        g = _keepdims(ops, g, x.shape, ctx.attrs["axis"])
        output = _keepdims(ops, output, x.shape, ctx.attrs["axis"])
    # The share of an element in the sum: that of -inf is 0, that of inf is 1.
    output = ops.where(ops.equal(output, -math.inf), 0.0, output)
    share = ops.where(ops.equal(x, math.inf), 1.0, ops.exp(ops.subtract(x, output)))
    return (ops.multiply(g, share),)
