"""Interpolation of images, signals and volumes to another size.

The spatial axes are the last ones, as many as `output_size` has numbers; the axes before them are
batch and channels. Each spatial axis is interpolated by itself.
"""

from __future__ import annotations

import functools
import math
from typing import Annotated, Final, Literal, TypeAlias, TypedDict, Unpack

import numpy as np

from burn.errors import ArgumentError, ShapeError
from burn.ops._attributes import check_choice, without
from burn.ops._axis_maps import Array, AxisMap, apply_axis_map
from burn.ops._precision import in_float32
from burn.ops.batching import leading_axes
from burn.ops.op import Context, Tag, op
from burn.ops.shapes import check_shape
from burn.ops.signature import (
    Cotangent,
    Flag,
    FloatOperand,
    Gradients,
    Meta,
    OptionalSpatialNumbers,
    Primitive,
    Role,
    Shape,
    Sizes,
)
from burn.ops.table import OpTable
from burn.ops.windows.sliding_windows import split_spatial_axes, unpooled_shape

__all__ = ["CUBIC_COEFFICIENT", "InterpolateAttributes", "interpolation_maps"]

_NEAREST: Final = ("nearest", "nearest-exact")

InterpolationMode: TypeAlias = Annotated[
    Literal["nearest", "nearest-exact", "linear", "cubic", "lanczos3"], Role.CHOICE
]

CUBIC_COEFFICIENT: Final = -0.75
"""The free parameter of cubic convolution, as in PyTorch and OpenCV."""

Scale: TypeAlias = tuple[float, ...] | None
"""Output length over input length along each spatial axis; None for that of the shapes."""


class InterpolateAttributes(TypedDict):
    """The attributes that `interpolate` and its gradient share."""

    mode: InterpolationMode
    align_corners: Flag
    scale: OptionalSpatialNumbers


@op(Tag.COMPUTE_BOUND)
def interpolate(
    x: FloatOperand,
    *,
    output_size: Sizes,
    **attributes: Unpack[InterpolateAttributes],
) -> Meta:
    """Values of `x` at `output_size` positions, spaced evenly over its spatial axes.

    Output i of n along an axis of length L is at ``(i + 0.5) * L / n - 0.5``; with `align_corners`
    at ``i * (L - 1) / (n - 1)``, so that both ends of the axis are kept. `scale` replaces
    ``n / L``. `mode` selects the value there:

    ``nearest``
        element ``floor(i * L / n)``
    ``nearest-exact``
        element ``floor((i + 0.5) * L / n)``
    ``linear``
        the line between the two neighbours; the first and the last element beyond them
    ``cubic``
        cubic convolution of four (R. G. Keys, 1981, doi:10.1109/TASSP.1981.1163711) with
        a = -0.75; the first and the last element are repeated
    ``lanczos3``
        six elements weighted by ``sinc(d) * sinc(d / 3)`` of the distance d; those that are not
        there are left out, and the weights are divided by their sum (C. E. Duchon, 1979)
    """
    return Meta(_resized(x.shape, output_size, **attributes), x.dtype)


@interpolate.decomposition
@in_float32
def _(
    ops: OpTable,
    x: Primitive,
    *,
    output_size: Sizes,
    **attributes: Unpack[InterpolateAttributes],
) -> Primitive:
    shape = _resized(tuple(x.shape), output_size, **attributes)
    lead = len(shape) - len(output_size)
    for number, axis_map in enumerate(
        interpolation_maps(tuple(x.shape)[lead:], output_size, **attributes)
    ):
        x = apply_axis_map(ops, x, axis_map, lead + number)
    return x


@interpolate.gradient()
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    spatial = ctx.shape(0)[-len(ctx.attrs["output_size"]) :]
    attributes = without(ctx.attrs, "output_size")
    return (ops.interpolate_grad(g, input_size=spatial, **attributes),)


interpolate.batching(leading_axes)


@op(Tag.COMPUTE_BOUND, outputs=("gradient",))
def interpolate_grad(
    g: FloatOperand,
    *,
    input_size: Sizes,
    **attributes: Unpack[InterpolateAttributes],
) -> Meta:
    """Gradient of `interpolate` of a tensor with spatial axes of lengths `input_size`."""
    return Meta(_original(g.shape, input_size, **attributes), g.dtype)


@interpolate_grad.decomposition
@in_float32
def _(
    ops: OpTable,
    g: Primitive,
    *,
    input_size: Sizes,
    **attributes: Unpack[InterpolateAttributes],
) -> Primitive:
    shape = _original(tuple(g.shape), input_size, **attributes)
    lead = len(shape) - len(input_size)
    for number, axis_map in enumerate(
        interpolation_maps(input_size, tuple(g.shape)[lead:], **attributes)
    ):
        g = apply_axis_map(ops, g, axis_map.transposed, lead + number)
    return g


@interpolate_grad.gradient()
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    resized = ctx.shape(0)[-len(ctx.attrs["input_size"]) :]
    attributes = without(ctx.attrs, "input_size")
    return (ops.interpolate(g, output_size=resized, **attributes),)


interpolate_grad.batching(leading_axes)


def _resized(
    shape: Shape, output_size: Sizes, **attributes: Unpack[InterpolateAttributes]
) -> Shape:
    lead, spatial = split_spatial_axes(shape, len(output_size))
    _check_options(len(output_size), **attributes)
    scale = attributes["scale"]
    if any(length < 1 for length in output_size):
        raise ShapeError(
            f"cannot interpolate {shape} to the size {output_size}",
            hint="Each length of the output is 1 or more",
        )
    for length, count, number in zip(spatial, output_size, scale or (), strict=scale is not None):
        if count - 0.5 > length * number:
            raise ArgumentError(
                f"a scale of {number} does not make {count} elements of {length}",
                hint="Leave it out, or use floor(length * scale) elements",
            )
    return check_shape((*lead, *output_size))


def _original(
    shape: Shape, input_size: Sizes, **attributes: Unpack[InterpolateAttributes]
) -> Shape:
    original = unpooled_shape(shape, input_size)
    _resized(original, shape[len(shape) - len(input_size) :], **attributes)
    return original


def _check_options(count: int, *, mode: str, align_corners: bool, scale: Scale) -> None:
    check_choice("mode", mode, interpolate.attributes["mode"].choices)
    if align_corners and mode in _NEAREST:
        raise ArgumentError(
            f"align_corners has no meaning in the mode {mode!r}",
            hint="Use it in modes that interpolate",
        )
    if scale is not None and (
        len(scale) != count or not all(0.0 < number < math.inf for number in scale)
    ):
        raise ArgumentError(
            f"scale is {scale} for {count} spatial axes",
            hint="Use a positive number for each of them",
        )


def interpolation_maps(
    input_size: Sizes, output_size: Sizes, mode: str, align_corners: bool, scale: Scale
) -> list[AxisMap]:
    """The map of `interpolate` along each axis; equal arguments give the identical objects."""
    scales = (None,) * len(input_size) if scale is None else scale
    return [
        _interpolation(length, count, mode, align_corners, scale)
        for length, count, scale in zip(input_size, output_size, scales, strict=True)
    ]


@functools.lru_cache(maxsize=256)
def _interpolation(
    length: int, count: int, mode: str, align_corners: bool, scale: float | None
) -> AxisMap:
    """The map to an axis of `count` elements."""
    output: Array = np.arange(count)
    position: Array
    weights: Array
    if mode in _NEAREST:
        # In halves, so that it is exact in integers.
        halves = 2 * output + (1 if mode == "nearest-exact" else 0)
        if scale is None:
            nearest = halves * length // (2 * count)
        else:
            nearest = np.floor(halves / 2.0 / scale).astype(np.int64)
        return AxisMap(length, np.minimum(nearest, length - 1)[:, None])
    if align_corners:
        position = output * (length - 1) / max(count - 1, 1)
    elif scale is None:
        position = (2 * output + 1) * length / (2 * count) - 0.5
    else:
        position = (output + 0.5) / scale - 0.5
    if mode == "linear":
        position = np.clip(position, 0.0, length - 1.0)
    first = np.floor(position)
    t = position - first
    if mode == "linear":
        offsets, weights = np.arange(2), np.stack([1.0 - t, t], axis=-1)
    elif mode == "cubic":
        offsets = np.arange(-1, 3)
        weights = np.stack([_cubic(np.abs(t - offset)) for offset in offsets], axis=-1)
    else:
        offsets = np.arange(-2, 4)
        weights = _lanczos(t[:, None] - offsets)
    indices = first[:, None].astype(np.int64) + offsets
    inside = np.clip(indices, 0, length - 1)
    if mode == "lanczos3":
        weights = np.where(inside == indices, weights, 0.0)
        weights = weights / np.sum(weights, axis=1, keepdims=True)
    present = weights != 0.0
    used = present.any(axis=0)
    return AxisMap(length, inside[:, used], weights[:, used], present[:, used])


def _cubic(distance: Array) -> Array:
    """Weight of an element in cubic convolution, by its distance in [0, 2]."""
    a = CUBIC_COEFFICIENT
    near = ((a + 2.0) * distance - (a + 3.0)) * distance * distance + 1.0
    far = ((a * distance - 5.0 * a) * distance + 8.0 * a) * distance - 4.0 * a
    return np.where(distance <= 1.0, near, far)


def _lanczos(distance: Array) -> Array:
    weights = np.sinc(distance) * np.sinc(distance / 3.0)
    # A whole number away the weight is 0, which the sine of a rounded multiple of pi is not.
    return np.where((distance == np.round(distance)) & (distance != 0.0), 0.0, weights)
