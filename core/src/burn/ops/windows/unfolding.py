"""Patches of images as columns of a matrix, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from burn.errors import ShapeError
from burn.ops._attributes import without
from burn.ops._precision import in_float32
from burn.ops.batching import merging
from burn.ops.op import Context, Tag, op
from burn.ops.shapes import check_shape, size
from burn.ops.signature import Cotangent, FloatOperand, Gradients, Meta, Primitive, Shape, Sizes
from burn.ops.table import OpTable
from burn.ops.windows.convolution_shapes import patch_windows
from burn.ops.windows.sliding_windows import PatchAttributes, Windows

__all__ = ["check_columns", "columns", "image_windows"]


@op()
def unfold4d(x: FloatOperand, **attributes: Unpack[PatchAttributes]) -> Meta:
    """Windows of images (N, C, H, W) as columns (N, C * kernel height * kernel width, windows).

    Rows are the channels and then the positions in a window, columns the windows in row-major
    order; elements outside an image are 0.
    """
    axes = image_windows(x.shape, **attributes)
    return Meta(_column_shape(x.shape, axes), x.dtype)


@unfold4d.decomposition
def _(ops: OpTable, x: Primitive, **attributes: Unpack[PatchAttributes]) -> Primitive:
    shape = tuple(x.shape)
    axes = image_windows(shape, **attributes)
    return ops.reshape(columns(ops, x, axes), shape=_column_shape(shape, axes))


@unfold4d.gradient()
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    return (ops.fold4d(g, output_size=tuple(ctx.shape(0)[2:]), **ctx.attrs),)


unfold4d.batching(merging(x=0))


@op(Tag.COMPUTE_BOUND)
def fold4d(x: FloatOperand, *, output_size: Sizes, **attributes: Unpack[PatchAttributes]) -> Meta:
    """Images (N, C, *output_size) in which the columns that `unfold4d` gives are added up.

    The adjoint of `unfold4d`: where windows overlap, an element is the sum of what they hold.
    16-bit floats add up in float32.
    """
    shape, _ = check_columns(x.shape, output_size, **attributes)
    return Meta(shape, x.dtype)


@fold4d.decomposition
@in_float32
def _(
    ops: OpTable, x: Primitive, *, output_size: Sizes, **attributes: Unpack[PatchAttributes]
) -> Primitive:
    shape, axes = check_columns(tuple(x.shape), output_size, **attributes)
    counts = [axis.count for axis in axes]
    x = ops.reshape(x, shape=(*shape[:2], *[axis.kernel for axis in axes], *counts))
    for number in reversed(range(len(axes))):
        x = _added_up(ops, x, axes[number], 2 + number, 2 + 2 * number + 1)
    return x


@fold4d.cost
def _(output: Meta, x: Meta, **attributes: Any) -> int:
    return size(x.shape)


@fold4d.gradient()
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    return (ops.unfold4d(g, **without(ctx.attrs, "output_size")),)


fold4d.batching(merging(x=0))


def columns(ops: OpTable, x: Primitive, axes: Sequence[Windows]) -> Primitive:
    """The windows of a tensor (N, C, *spatial), as (N, C, *kernel, *counts)."""
    if any(axis.before or axis.after for axis in axes):
        pairs = [(axis.before, axis.after) for axis in axes]
        x = ops.pad(x, padding=((0, 0), (0, 0), *pairs), mode="constant", value=0.0)
    for number, axis in enumerate(axes):
        x = _stacked(ops, x, axis, 2 + number, 2 + 2 * number)
    return x


def _stacked(ops: OpTable, x: Primitive, axis: Windows, position: int, spatial: int) -> Primitive:
    """Windows along the axis `spatial`, their elements along a new axis at `position`."""
    parts = []
    for start in range(0, axis.span, axis.dilation):
        slices = tuple(
            (start, axis.count, axis.stride) if number == spatial else (0, length, 1)
            for number, length in enumerate(x.shape)
        )
        part = ops.slice(x, slices=slices)
        parts.append(ops.reshape(part, shape=(*part.shape[:position], 1, *part.shape[position:])))
    return parts[0] if len(parts) == 1 else ops.concat(parts, axis=position)


def _added_up(ops: OpTable, x: Primitive, axis: Windows, position: int, spatial: int) -> Primitive:
    """The adjoint of `_stacked`, whose result is cropped to the axis without its padding."""
    rest = [number for number in range(len(x.shape)) if number not in (position, spatial)]
    x = ops.permute(x, axes=(*rest, position, spatial))
    lead = tuple(x.shape[:-2])
    whole = [(0, length, 1) for length in lead]
    # A row for each element of the kernel, with its values a stride apart and zeros after them.
    # Read as rows that are shorter by the dilation, each row is shifted by it.
    length = axis.reach + axis.dilation
    rows = ops.full(shape=(*lead, axis.kernel, length), fill_value=0.0, dtype=ops.dtype(x))
    targets = (*whole, (0, axis.kernel, 1), (0, axis.count, axis.stride))
    rows = ops.reshape(
        ops.slice_assign(rows, x, slices=targets), shape=(*lead, axis.kernel * length)
    )
    rows = ops.slice(rows, slices=(*whole, (0, axis.kernel * axis.reach, 1)))
    rows = ops.reshape(rows, shape=(*lead, axis.kernel, axis.reach))
    total = ops.sum(rows, axis=(len(lead),), keepdims=False, dtype=ops.dtype(x))
    covered = max(0, min(axis.reach - axis.before, axis.length))
    total = ops.slice(total, slices=(*whole, (axis.before if covered else 0, covered, 1)))
    if covered < axis.length:
        ends = ((0, 0),) * len(lead)
        total = ops.pad(
            total, padding=(*ends, (0, axis.length - covered)), mode="constant", value=0.0
        )
    back = list(range(len(lead)))
    back.insert(spatial - 1, len(lead))
    return ops.permute(total, axes=tuple(back))


def image_windows(shape: Shape, **attributes: Unpack[PatchAttributes]) -> tuple[Windows, ...]:
    """The windows of images (N, C, H, W)."""
    if len(shape) != 4 or len(attributes["kernel_size"]) != 2:
        raise ShapeError(
            f"a tensor of shape {shape} and a kernel with {len(attributes['kernel_size'])} axes",
            hint="It is for images, (N, C, H, W); x[None] adds a batch of one",
        )
    return patch_windows(shape, **attributes)


def _column_shape(shape: Shape, axes: Sequence[Windows]) -> Shape:
    taps, count = size([axis.kernel for axis in axes]), size([axis.count for axis in axes])
    return check_shape((shape[0], shape[1] * taps, count))


def check_columns(
    shape: Shape, output_size: Sizes, **attributes: Unpack[PatchAttributes]
) -> tuple[Shape, tuple[Windows, ...]]:
    """Shape of the images from which columns come, and their windows.

    Raises
    ------
    ShapeError
        If the columns have another shape than those of such images.
    """
    if len(shape) != 3:
        raise ShapeError(
            f"columns of shape {shape}", hint="They have three axes, (N, C * kernel, windows)"
        )
    taps = size(attributes["kernel_size"])
    if taps < 1 or shape[1] % taps:
        raise ShapeError(
            f"{shape[1]} rows of columns of shape {shape} are no multiple of the {taps} elements "
            f"of a kernel {attributes['kernel_size']}"
        )
    images = check_shape((shape[0], shape[1] // taps, *output_size))
    axes = image_windows(images, **attributes)
    if shape != _column_shape(images, axes):
        raise ShapeError(
            f"{shape[2]} columns where images of {tuple(output_size)} have "
            f"{' * '.join(str(axis.count) for axis in axes)} windows"
        )
    return images, axes
