"""Casts, and ops that rearrange elements: reshape, permute, expand, concatenate, pad, unfold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

from burn.dtype import DType
from burn.errors import ArgumentError, AxisError, OperandTypeError, ShapeError
from burn.ops._attributes import check_choice
from burn.ops.batching import BatchedCall, aligned_axes, leading_axes, with_rank
from burn.ops.index_arithmetic import index_dtype
from burn.ops.op import Context, Tag, op
from burn.ops.shapes import (
    broadcast_shapes,
    check_axis,
    check_bitcast,
    check_conversion,
    check_shape,
    size,
)
from burn.ops.sharding import Sharded, ShardedCall
from burn.ops.signature import (
    AnyOperand,
    Axes,
    Axis,
    AxisPairs,
    Cotangent,
    FillValue,
    Gradients,
    Integer,
    Meta,
    NumericOperand,
    Primitive,
    Role,
    Scalar,
    Shape,
    TargetDType,
    TargetShape,
    TensorList,
)
from burn.ops.table import OpTable
from burn.tensor_data import TensorData


@op(fuses="elementwise")
def cast(x: AnyOperand, *, dtype: TargetDType) -> Meta:
    """The elements as another dtype.

    A float becomes an integer by truncation; what is out of range becomes the nearest value of
    the dtype, and NaN becomes 0. An integer becomes a narrower one by wrapping around. To bool:
    whether it is not 0. A complex number becomes no real one.
    """
    return Meta(x.shape, check_conversion(x.dtype, dtype))


@cast.gradient(saves=("x.dtype",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    return (ops.cast(g, dtype=ctx.saved[0]),)


cast.batching(aligned_axes)


@op(Tag.NO_GRADIENT | Tag.UNTRACKED)
def bitcast(x: NumericOperand, *, dtype: TargetDType) -> Meta:
    """The bits of each element as an element of another dtype of the same size."""
    return Meta(x.shape, check_bitcast(x.dtype, dtype))


@bitcast.on_host
def _(ops: OpTable, x: Primitive, *, dtype: DType) -> Primitive:
    check_bitcast(ops.dtype(x), dtype)
    array = ops.backend.to_data(x).array.view(dtype.numpy)
    return ops.backend.from_data(TensorData(array), ops.device)


bitcast.batching(aligned_axes)


@bitcast.cost
def _(output: Meta, x: Meta, *, dtype: DType) -> int:
    """None: it moves bits."""
    return 0


@op(Tag.VIEW)
def reshape(x: AnyOperand, *, shape: TargetShape) -> Meta:
    """The same elements in row-major order under another shape of the same size."""
    if size(check_shape(shape)) != size(x.shape):
        raise ShapeError(
            f"cannot reshape {size(x.shape)} elements {x.shape} into {tuple(shape)}, "
            f"which has {size(shape)}",
            hint="One length may be -1, to be worked out",
        )
    return Meta(tuple(shape), x.dtype)


@reshape.sharding
def _(call: ShardedCall) -> Sharded | None:
    # It stays if it has its length and as many elements before it.
    (x,), target = call.operands, call.attributes["shape"]
    before = size(x.shape[: call.axis])
    for axis, length in enumerate(target):
        if size(target[:axis]) == before and length == x.shape[call.axis] != 1:
            return Sharded((call.axis,), axis)
    return None


@reshape.gradient()
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    return (ops.reshape(g, shape=ctx.shape(0)),)


@reshape.inverse_write
def _(ops: OpTable, x: Primitive, value: Primitive, *, shape: Shape) -> Primitive:
    del shape
    return ops.reshape(value, shape=tuple(x.shape))


@op(Tag.VIEW)
def permute(x: AnyOperand, *, axes: Axes) -> Meta:
    """Axes in another order: output axis i is input axis ``axes[i]``."""
    if sorted(axes) != list(range(len(x.shape))):
        raise AxisError(
            f"axes {tuple(axes)} are no permutation of the {len(x.shape)} axes of {x}",
            hint="Name each axis once",
        )
    return Meta(tuple(x.shape[axis] for axis in axes), x.dtype)


@permute.sharding
def _(call: ShardedCall) -> Sharded:
    return Sharded((call.axis,), call.attributes["axes"].index(call.axis))


@permute.gradient()
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    return (ops.permute(g, axes=_inverse(ctx.attrs["axes"])),)


@permute.batching
def _(ops: OpTable, batch: BatchedCall, x: Primitive, *, axes: tuple[int, ...]) -> Primitive:
    del batch
    return ops.permute(x, axes=(0, *[axis + 1 for axis in axes]))


@permute.inverse_write
def _(ops: OpTable, x: Primitive, value: Primitive, *, axes: tuple[int, ...]) -> Primitive:
    del x
    return ops.permute(value, axes=_inverse(axes))


def _inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    """The permutation that undoes one."""
    return tuple([axes.index(axis) for axis in range(len(axes))])


@op(Tag.VIEW)
def expand(x: AnyOperand, *, shape: TargetShape) -> Meta:
    """Repeat axes of length 1, and new leading axes, up to `shape`."""
    if broadcast_shapes(x.shape, check_shape(shape)) != tuple(shape):
        raise ShapeError(
            f"cannot expand {x.shape} to {tuple(shape)}",
            hint="Only axes of length 1 can be expanded",
        )
    return Meta(tuple(shape), x.dtype)


@expand.sharding
def _(call: ShardedCall) -> Sharded | None:
    (x,), target = call.operands, call.attributes["shape"]
    axis = call.axis + len(target) - len(x.shape)
    return Sharded((call.axis,), axis) if x.shape[call.axis] != 1 else None


@expand.gradient()
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    return (sum_to_shape(ops, g, ctx.shape(0)),)


@expand.batching
def _(ops: OpTable, batch: BatchedCall, x: Primitive, *, shape: Shape) -> Primitive:
    return ops.expand(with_rank(ops, x, len(shape)), shape=(batch.size, *shape))


def sum_to_shape(ops: OpTable, g: Primitive, shape: Sequence[int]) -> Primitive:
    """Undo broadcasting: sum a gradient over the axes along which `shape` was repeated."""
    lead = len(g.shape) - len(shape)
    axis = tuple(range(lead)) + tuple(
        lead + i for i, length in enumerate(shape) if length == 1 and g.shape[lead + i] != 1
    )
    total = ops.sum(g, axis=axis, keepdims=not lead, dtype=ops.dtype(g))
    return total if len(total.shape) == len(shape) else ops.reshape(total, shape=tuple(shape))


@op(Tag.SELECTION, fuses="parts")
def concat(tensors: TensorList, *, axis: Axis) -> Meta:
    """Join tensors along an axis that they have; their other lengths are equal."""
    if not tensors:
        raise OperandTypeError("needs at least one tensor")
    first = tensors[0]
    check_axis(axis, len(first.shape))
    for position, tensor in enumerate(tensors):
        if len(tensor.shape) != len(first.shape) or any(
            length != expected and number != axis
            for number, (length, expected) in enumerate(zip(tensor.shape, first.shape, strict=True))
        ):
            raise ShapeError(
                f"tensor {position} of shape {tensor.shape} does not fit the first, {first.shape}",
                hint=f"All lengths but that of axis {axis} must be equal",
            )
    total = sum(tensor.shape[axis] for tensor in tensors)
    return Meta((*first.shape[:axis], total, *first.shape[axis + 1 :]), first.dtype)


@concat.gradient(saves=("tensors.shape",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    axis = ctx.attrs["axis"]
    gradients: list[Primitive | None] = []
    start = 0
    for shape, needed in zip(ctx.saved[0], ctx.needs[0], strict=True):
        part = None
        if needed:
            slices = [(0, length, 1) for length in g.shape]
            slices[axis] = (start, shape[axis], 1)
            part = ops.slice(g, slices=tuple(slices))
        gradients.append(part)
        start += shape[axis]
    return (gradients,)


concat.batching(leading_axes)


PadMode: TypeAlias = Annotated[
    Literal["constant", "edge", "reflect", "symmetric", "wrap"], Role.CHOICE
]


@op()
def pad(
    x: AnyOperand,
    *,
    padding: AxisPairs,
    mode: PadMode = "constant",
    value: FillValue = 0,
) -> Meta:
    """More elements before and after those of `x`: a pair of numbers of them for each axis.

    `mode` selects their values: ``constant`` (`value`), ``edge`` (the nearest element), ``wrap``
    (the tensor again), ``reflect`` and ``symmetric`` (mirrored, without and with its edge).
    """
    _check_padding(x.shape, padding, mode)
    shape = [
        before + length + after for length, (before, after) in zip(x.shape, padding, strict=True)
    ]
    return Meta(check_shape(shape), x.dtype)


@pad.decomposition
def _(
    ops: OpTable,
    x: Primitive,
    *,
    padding: tuple[tuple[int, int], ...],
    mode: str = "constant",
    value: Scalar = 0,
) -> Primitive:
    shape = tuple(x.shape)
    _check_padding(shape, padding, mode)
    pairs = list(zip(shape, padding, strict=True))
    if mode == "constant":
        longer = tuple([before + length + after for length, (before, after) in pairs])
        filled = ops.full(shape=longer, fill_value=value, dtype=ops.dtype(x))
        slices = tuple([(before, length, 1) for length, (before, _) in pairs])
        return ops.slice_assign(filled, x, slices=slices)
    for axis, (length, (before, after)) in enumerate(pairs):
        if before or after:
            indices = _padded_indices(ops, length, before, after, mode)
            x = ops.select(x, indices, axis=axis)
    return x


pad.batching(leading_axes)


def _padded_indices(ops: OpTable, length: int, before: int, after: int, mode: str) -> Primitive:
    """Index along an axis of each element of the padded axis."""
    indices = ops.arange(
        start=-before, step=1, length=before + length + after, dtype=index_dtype(ops)
    )
    if mode == "wrap":
        return ops.remainder(indices, length)
    if mode == "edge" or length == 1:
        return ops.clip(indices, 0, length - 1)
    # Mirrored: a period is the axis forwards and backwards.
    period = 2 * length - (2 if mode == "reflect" else 0)
    indices = ops.remainder(indices, period)
    back = ops.subtract(period if mode == "reflect" else period - 1, indices)
    return ops.where(ops.less(indices, length), indices, back)


def _check_padding(shape: Shape, padding: Sequence[tuple[int, int]], mode: str) -> None:
    check_choice("mode", mode, pad.attributes["mode"].choices)
    if len(padding) != len(shape):
        raise ShapeError(f"{len(padding)} pairs of padding for a tensor with {len(shape)} axes")
    for axis, (length, (before, after)) in enumerate(zip(shape, padding, strict=True)):
        if before < 0 or after < 0:
            raise ShapeError(
                f"padding {(before, after)} along axis {axis} is negative",
                hint="Slice the tensor to make it shorter",
            )
        if not length and (before or after) and mode != "constant":
            raise ShapeError(f"axis {axis} has no elements to pad it with (mode {mode!r})")


@op(Tag.VIEW, fuses="view")
def unfold(x: AnyOperand, *, axis: Axis, size: Integer, step: Integer = 1) -> Meta:
    """Windows of `size` elements along `axis`, `step` apart, each along a new last axis."""
    count = _windows(x.shape, axis, size, step)
    return Meta((*x.shape[:axis], count, *x.shape[axis + 1 :], size), x.dtype)


@unfold.decomposition
def _(ops: OpTable, x: Primitive, *, axis: int, size: int, step: int = 1) -> Primitive:
    shape = tuple(x.shape)
    count = _windows(shape, axis, size, step)
    dtype = index_dtype(ops)
    start = ops.arange(start=0, step=step, length=count, dtype=dtype)
    within = ops.arange(start=0, step=1, length=size, dtype=dtype)
    indices = ops.add(ops.reshape(start, shape=(count, 1)), within)
    chosen = ops.select(x, ops.reshape(indices, shape=(count * size,)), axis=axis)
    chosen = ops.reshape(chosen, shape=(*shape[:axis], count, size, *shape[axis + 1 :]))
    rest = [number for number in range(len(shape) + 1) if number != axis + 1]
    return ops.permute(chosen, axes=(*rest, axis + 1))


def _windows(shape: Shape, axis: int, size: int, step: int) -> int:
    """Number of windows along an axis."""
    check_axis(axis, len(shape))
    if not 0 < size <= shape[axis]:
        raise ShapeError(f"a window of {size} elements along an axis of length {shape[axis]}")
    if step < 1:
        raise ArgumentError(f"the step between windows is {step}", hint="Use 1 or more")
    return (shape[axis] - size) // step + 1
