"""Slices: elements at regular distances along the axes, views of them, and writes to them."""

from __future__ import annotations

from burn.aliases import Slices
from burn.errors import AxisError, ShapeError
from burn.ops.arrays.layout import sum_to_shape
from burn.ops.batching import BatchedCall, expanded, with_rank
from burn.ops.op import Context, Tag, op
from burn.ops.shapes import broadcast_shapes, check_axis, check_distinct
from burn.ops.sharding import whole_axes
from burn.ops.signature import (
    AnyOperand,
    AnyOrScalar,
    Axes,
    Axis,
    AxisSlices,
    Cotangent,
    Gradients,
    Integer,
    Meta,
    Part,
    Primitive,
    Shape,
)
from burn.ops.table import OpTable


@op(Tag.VIEW)
def slice(x: AnyOperand, *, slices: AxisSlices) -> Meta:
    """A strided slice: per axis (start, length, step), where the step is not 0."""
    return Meta(_check_slices(x, slices), x.dtype)


slice.sharding(whole_axes)


@slice.gradient()
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    return (Part(g, ctx.attrs["slices"]),)


@slice.inverse_write
def _(ops: OpTable, x: Primitive, value: Primitive, *, slices: Slices) -> Primitive:
    return ops.slice_assign(x, value, slices=slices)


@op(Tag.SELECTION, fuses="parts")
def slice_assign(x: AnyOperand, value: AnyOrScalar, *, slices: AxisSlices) -> Meta:
    """`x` with other elements in a strided slice, to which `value` broadcasts."""
    target = _check_slices(x, slices)
    shape = value.shape if isinstance(value, Meta) else ()
    if broadcast_shapes(shape, target) != target:
        raise ShapeError(f"cannot assign a value of shape {shape} to a slice of shape {target}")
    return x


@slice_assign.gradient(saves=("value.shape",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    (shape,) = ctx.saved
    slices = ctx.attrs["slices"]
    to_value = None
    if ctx.needs[1]:
        to_value = ops.slice(g, slices=slices)
        if tuple(to_value.shape) != tuple(shape):
            to_value = sum_to_shape(ops, to_value, shape)
    return ops.slice_assign(g, 0.0, slices=slices) if ctx.needs[0] else None, to_value


@slice_assign.batching
def _(
    ops: OpTable, batch: BatchedCall, x: Primitive, value: Primitive, *, slices: Slices
) -> Primitive:
    x = expanded(ops, batch, x, batch.is_batched[0])
    if batch.is_batched[1]:
        value = with_rank(ops, value, len(slices))
    return ops.slice_assign(x, value, slices=((0, batch.size, 1), *slices))


def _check_slices(x: Meta, slices: Slices) -> Shape:
    if len(slices) != len(x.shape):
        raise ShapeError(f"{len(slices)} slices for a tensor with {len(x.shape)} axes")
    for axis, ((start, length, step), extent) in enumerate(zip(slices, x.shape, strict=True)):
        if step == 0 or length < 0:
            raise ShapeError(f"a slice of length {length} and step {step} along axis {axis}")
        last = start + (length - 1) * step
        if length and not (0 <= start < extent and 0 <= last < extent):
            raise AxisError(f"elements {start} to {last} of axis {axis}, which has length {extent}")
    return tuple(length for _, length, _ in slices)


@op(Tag.VIEW)
def index_axis(x: AnyOperand, *, axis: Axis, index: Integer) -> Meta:
    """The elements at one index of an axis, which the output lacks."""
    check_axis(axis, len(x.shape))
    if not 0 <= index < x.shape[axis]:
        raise AxisError(f"index {index} of axis {axis}, which has length {x.shape[axis]}")
    return Meta((*x.shape[:axis], *x.shape[axis + 1 :]), x.dtype)


@index_axis.decomposition
def _(ops: OpTable, x: Primitive, *, axis: int, index: int) -> Primitive:
    shape = tuple(x.shape)
    if axis < 0 or index < 0:
        raise AxisError(f"index {index} of axis {axis}")
    part = ops.slice(x, slices=_at(shape, axis, index))
    return ops.reshape(part, shape=(*shape[:axis], *shape[axis + 1 :]))


@index_axis.gradient()
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    return (_at_index(ops, ctx.shape(0), g, **ctx.attrs),)


@index_axis.inverse_write
def _(ops: OpTable, x: Primitive, value: Primitive, *, axis: int, index: int) -> Primitive:
    part, slices = _at_index(ops, tuple(x.shape), value, axis, index)
    return ops.slice_assign(x, part, slices=slices)


def _at_index(ops: OpTable, shape: Shape, value: Primitive, axis: int, index: int) -> Part:
    """What the output of `index_axis` is of an operand of a shape."""
    part = ops.reshape(value, shape=(*shape[:axis], 1, *shape[axis + 1 :]))
    return Part(part, _at(shape, axis, index))


def _at(shape: Shape, axis: int, index: int) -> Slices:
    """The slices that select one index of an axis."""
    slices = [(0, length, 1) for length in shape]
    slices[axis] = (index, 1, 1)
    return tuple(slices)


@op(Tag.VIEW)
def flip(x: AnyOperand, *, axes: Axes) -> Meta:
    """Elements in reverse order along `axes`, each named once."""
    for axis in axes:
        check_axis(axis, len(x.shape))
    return x


@flip.requirement
def _(*, axes: tuple[int, ...]) -> None:
    check_distinct(axes)


@flip.decomposition
def _(ops: OpTable, x: Primitive, *, axes: tuple[int, ...]) -> Primitive:
    for axis in axes:
        check_axis(axis, len(x.shape))
    slices = tuple(
        (max(length - 1, 0), length, -1) if axis in axes else (0, length, 1)
        for axis, length in enumerate(x.shape)
    )
    return ops.slice(x, slices=slices)


@flip.gradient()
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    return (ops.flip(g, axes=ctx.attrs["axes"]),)


@flip.inverse_write
def _(ops: OpTable, x: Primitive, value: Primitive, *, axes: tuple[int, ...]) -> Primitive:
    del x
    return ops.flip(value, axes=axes)
