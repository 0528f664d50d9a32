"""Sorting along an axis, and indices in sorted order.

NaN is larger than everything. Sorts are stable in both directions.
"""

from __future__ import annotations

from burn.dtype import DType, Kind
from burn.errors import ArgumentError, DTypeError, ShapeError
from burn.ops.batching import leading_axes, leading_axes_of
from burn.ops.index_arithmetic import index_dtype, narrow
from burn.ops.op import Context, Tag, op
from burn.ops.shapes import check_axis, size
from burn.ops.signature import (
    Axis,
    Cotangent,
    Flag,
    Gradients,
    Integer,
    Meta,
    Primitive,
    RealOperand,
    TargetDType,
)
from burn.ops.table import OpTable
from burn.public_calls import shown_value

_ORDER = Tag.COMPUTE_BOUND | Tag.NO_GRADIENT


@op(_ORDER)
def argsort(x: RealOperand, *, axis: Axis, descending: Flag = False, dtype: TargetDType) -> Meta:
    """Indices that sort the elements along `axis`, as `dtype`.

    The sort is stable in both directions, and NaN is larger than everything.
    """
    check_axis(axis, len(x.shape))
    check_index_dtype(dtype)
    return Meta(x.shape, dtype)


argsort.batching(leading_axes)


@op(Tag.COMPUTE_BOUND | Tag.SELECTION)
def sort(x: RealOperand, *, axis: Axis, descending: Flag = False) -> Meta:
    """The elements in sorted order along `axis`; NaN is larger than everything.

    Equal elements are the same but for zeros of both signs, which come in any order. Their
    gradients go to the elements in the order of a stable sort.
    """
    check_axis(axis, len(x.shape))
    return x


@sort.decomposition
def _(ops: OpTable, x: Primitive, *, axis: int, descending: bool = False) -> Primitive:
    indices = ops.argsort(x, axis=axis, descending=descending, dtype=index_dtype(ops))
    return ops.gather(x, indices, axis=axis)


@sort.gradient(saves=("x",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    (x,) = ctx.saved
    axis = ctx.attrs["axis"]
    descending = ctx.attrs.get("descending", False)
    indices = ops.argsort(x, axis=axis, descending=descending, dtype=index_dtype(ops))
    zeros = ops.full(shape=ctx.shape(0), fill_value=0.0, dtype=ops.dtype(g))
    return (ops.scatter_add(zeros, indices, g, axis=axis),)


sort.batching(leading_axes)


@op(_ORDER)
def argtopk(
    x: RealOperand, *, k: Integer, axis: Axis, largest: Flag = True, dtype: TargetDType
) -> Meta:
    """Indices of the `k` largest (or smallest) elements along `axis`, the most extreme first.

    Of equal elements the first come first; NaN is larger than everything.
    """
    check_axis(axis, len(x.shape))
    check_index_dtype(dtype)
    if not 0 <= k <= x.shape[axis]:
        raise ArgumentError(
            f"k is {shown_value(k)} for an axis of length {x.shape[axis]}",
            hint="Use a number from 0 to the length",
        )
    return Meta((*x.shape[:axis], k, *x.shape[axis + 1 :]), dtype)


@argtopk.decomposition
def _(
    ops: OpTable, x: Primitive, *, k: int, axis: int, largest: bool = True, dtype: DType
) -> Primitive:
    indices = ops.argsort(x, axis=axis, descending=largest, dtype=dtype)
    return narrow(ops, indices, axis, 0, k)


argtopk.batching(leading_axes)


@op(_ORDER)
def searchsorted(
    x1: RealOperand, x2: RealOperand, *, right: Flag = False, dtype: TargetDType
) -> Meta:
    """Indices in the sorted vector `x1` before which the elements of `x2` keep it sorted.

    It is the first such index, ``x1[i - 1] < x2 <= x1[i]``, or the last if `right`,
    ``x1[i - 1] <= x2 < x1[i]``. NaN is larger than everything and equal to itself.
    """
    if len(x1.shape) != 1:
        raise ShapeError(f"x1 must have one axis, not shape {x1.shape}")
    check_index_dtype(dtype)
    return Meta(x2.shape, dtype)


@searchsorted.decomposition
def _(
    ops: OpTable, x1: Primitive, x2: Primitive, *, right: bool = False, dtype: DType
) -> Primitive:
    (length,) = x1.shape
    shape = tuple(x2.shape)
    counting = index_dtype(ops)
    low = ops.full(shape=shape, fill_value=0, dtype=counting)
    high = ops.full(shape=shape, fill_value=length, dtype=counting)
    for _ in range(length.bit_length()):
        middle = ops.bitwise_right_shift(ops.add(low, high), 1)
        active = ops.less(low, high)
        probe = ops.reshape(ops.where(active, middle, 0), shape=(size(shape),))
        found = ops.reshape(ops.select(x1, probe, axis=0), shape=shape)
        before = _before(ops, found, x2)
        if right:
            before = ops.bitwise_not(_before(ops, x2, found))
        beyond = ops.bitwise_and(active, before)
        stop = ops.bitwise_and(active, ops.bitwise_not(beyond))
        low = ops.where(beyond, ops.add(middle, 1), low)
        high = ops.where(stop, middle, high)
    return ops.cast(low, dtype=dtype)


searchsorted.batching(leading_axes_of("x2"))


def _before(ops: OpTable, x1: Primitive, x2: Primitive) -> Primitive:
    """Whether `x1` comes before `x2` in a sort: NaN comes last."""
    less = ops.less(x1, x2)
    if not ops.dtype(x1).is_float:
        return less
    only_second = ops.bitwise_and(ops.isnan(x2), ops.bitwise_not(ops.isnan(x1)))
    return ops.bitwise_or(less, only_second)


def check_index_dtype(dtype: DType) -> None:
    """Raise DTypeError unless a dtype of indices is one of integers."""
    if dtype.kind not in Kind.INTEGER:
        raise DTypeError(f"indices are integers, not {dtype}")
