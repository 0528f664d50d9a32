"""Images and volumes sampled at the points of a grid, and the grids of affine maps.

A point has a coordinate for each spatial axis, the last axis first (across, down, and in depth),
that goes from -1 to 1 over the image: from the middle of the first element to that of the last
with `align_corners`, else from edge to edge.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from burn.errors import ArgumentError, ShapeError
from burn.ops._attributes import check_choice
from burn.ops._axis_maps import Array, constant
from burn.ops._precision import in_float32
from burn.ops.batching import merging
from burn.ops.index_arithmetic import index_dtype, narrow
from burn.ops.op import Tag, op
from burn.ops.shapes import check_shape, size
from burn.ops.signature import Flag, FloatOperand, Meta, Primitive, Role, Shape, Sizes
from burn.ops.table import OpTable
from burn.ops.windows.resampling import CUBIC_COEFFICIENT

_MODES: Final = {"nearest": (0,), "bilinear": (0, 1), "bicubic": (-1, 0, 1, 2)}
"""Offsets of the elements that a value is interpolated from, from the one before its point."""

SamplingMode: TypeAlias = Annotated[Literal["nearest", "bilinear", "bicubic"], Role.CHOICE]
VolumeMode: TypeAlias = Annotated[Literal["nearest", "bilinear"], Role.CHOICE]
SamplingPadding: TypeAlias = Annotated[Literal["zeros", "border", "reflection"], Role.CHOICE]


@op(Tag.COMPUTE_BOUND)
def grid_sample_2d(
    x: FloatOperand,
    grid: FloatOperand,
    *,
    mode: SamplingMode = "bilinear",
    padding_mode: SamplingPadding = "zeros",
    align_corners: Flag = False,
) -> Meta:
    """Values of images `x` (N, C, H, W) at the points `grid` (N, rows, columns, 2).

    `mode` is ``nearest`` (of two it is the even one), ``bilinear`` or ``bicubic`` (cubic
    convolution with a = -0.75). `padding_mode` says what lies beyond an image: ``zeros``; the
    nearest element of its ``border``; or its ``reflection``, at the middle of the outermost
    elements with `align_corners`, else at their edges. A coordinate that is NaN gives NaN.
    """
    return Meta(_sampled_shape(x.shape, grid.shape, mode, padding_mode), x.dtype)


@grid_sample_2d.decomposition
@in_float32
def _(
    ops: OpTable,
    x: Primitive,
    grid: Primitive,
    *,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> Primitive:
    shape = _sampled_shape(tuple(x.shape), tuple(grid.shape), mode, padding_mode)
    return _sampled(
        ops, x, grid, shape, mode=mode, padding_mode=padding_mode, align_corners=align_corners
    )


grid_sample_2d.batching(merging(x=0, grid=0))


@op(Tag.COMPUTE_BOUND)
def grid_sample_3d(
    x: FloatOperand,
    grid: FloatOperand,
    *,
    mode: VolumeMode = "bilinear",
    padding_mode: SamplingPadding = "zeros",
    align_corners: Flag = False,
) -> Meta:
    """Values of volumes `x` (N, C, D, H, W) at the points `grid` (N, planes, rows, columns, 3).

    As `grid_sample_2d`, but without the mode ``bicubic``; ``bilinear`` is linear along each of the
    three axes.
    """
    return Meta(_sampled_volume_shape(x.shape, grid.shape, mode, padding_mode), x.dtype)


@grid_sample_3d.decomposition
@in_float32
def _(
    ops: OpTable,
    x: Primitive,
    grid: Primitive,
    *,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> Primitive:
    shape = _sampled_volume_shape(tuple(x.shape), tuple(grid.shape), mode, padding_mode)
    return _sampled(
        ops, x, grid, shape, mode=mode, padding_mode=padding_mode, align_corners=align_corners
    )


grid_sample_3d.batching(merging(x=0, grid=0))


def _sampled(
    ops: OpTable,
    x: Primitive,
    grid: Primitive,
    shape: Shape,
    *,
    mode: str,
    padding_mode: str,
    align_corners: bool,
) -> Primitive:
    """Values interpolated along one spatial axis after the other."""
    images, channels, *lengths = tuple(x.shape)
    count = size(shape[2:])
    flat = ops.reshape(x, shape=(images, channels, size(lengths)))
    grid = ops.reshape(grid, shape=(images, count, len(lengths)))
    neighbours = [
        _neighbours(
            ops,
            ops.reshape(narrow(ops, grid, 2, number, 1), shape=(images, 1, count)),
            length,
            mode=mode,
            padding_mode=padding_mode,
            align_corners=align_corners,
        )
        for number, length in enumerate(reversed(lengths))
    ]

    def interpolated(start: Primitive | None, axis: int) -> Primitive:
        """The sum over neighbours along an axis, and along those after it."""
        total = None
        for neighbour in neighbours[len(lengths) - 1 - axis]:
            index = neighbour.index if start is None else ops.add(start, neighbour.index)
            if axis == len(lengths) - 1:
                wide = ops.expand(index, shape=(images, channels, count))
                value = ops.gather(flat, wide, axis=2)
            else:
                value = interpolated(ops.multiply(index, lengths[axis + 1]), axis + 1)
            total = _added(ops, total, value, neighbour)
        return total

    return ops.reshape(interpolated(None, 0), shape=shape)


class _Neighbour(NamedTuple):
    """An element near each point, along one axis."""

    index: Primitive
    weight: Primitive
    outside: Primitive | None
    """Whether it is beyond the image, or None if it never is; `index` is in range even there."""


def _added(
    ops: OpTable, total: Primitive | None, value: Primitive, neighbour: _Neighbour
) -> Primitive:
    """Add values times their weights, but for those beyond the image."""
    term = ops.multiply(value, neighbour.weight)
    if neighbour.outside is not None:
        term = ops.where(neighbour.outside, 0.0, term)
    return term if total is None else ops.add(total, term)


def _neighbours(
    ops: OpTable,
    coordinate: Primitive,
    length: int,
    *,
    mode: str,
    padding_mode: str,
    align_corners: bool,
) -> list[_Neighbour]:
    """The elements along an axis from which the values at some coordinates are interpolated."""
    last = float(length - 1)
    if align_corners:
        position = ops.multiply(ops.add(coordinate, 1.0), last / 2.0)
        low, high = 0.0, last
    else:
        position = ops.subtract(ops.multiply(ops.add(coordinate, 1.0), length / 2.0), 0.5)
        low, high = -0.5, last + 0.5
    reflects = padding_mode == "reflection" and low < high
    if mode == "bicubic":
        position = _cubic_position(ops, position, last, low, high, reflects=reflects)
    else:
        if reflects:
            position = _reflected(ops, position, low, high)
        bounds = _beyond(last) if padding_mode == "zeros" else (0.0, last)
        position = ops.clip(position, *bounds)
    if mode == "nearest":
        first = ops.round(position)
        weights = [ops.add(ops.multiply(position, 0.0), 1.0)]  # NaN for a coordinate of NaN
    else:
        first = ops.floor(position)
        t = ops.subtract(position, first)
        weights = _cubic_weights(ops, t) if mode == "bicubic" else [ops.subtract(1.0, t), t]
    always_inside = padding_mode != "zeros" and mode != "bilinear"
    result = []
    for offset, weight in zip(_MODES[mode], weights, strict=True):
        element = ops.add(first, float(offset)) if offset else first
        if mode == "bicubic" and reflects:
            element = _reflected(ops, element, low, high)
        inside = ops.clip(element, 0.0, last)
        outside = None
        if not always_inside:
            outside = ops.bitwise_or(ops.less(element, 0.0), ops.greater(element, last))
        result.append(_Neighbour(ops.cast(inside, dtype=index_dtype(ops)), weight, outside))
    return result


def _cubic_position(
    ops: OpTable, position: Primitive, last: float, low: float, high: float, *, reflects: bool
) -> Primitive:
    """An equivalent position near the image, whose elements are reflected one by one."""
    if not reflects:
        return ops.clip(position, *_beyond(last))
    period = 2.0 * (high - low)
    return ops.add(ops.remainder(ops.subtract(position, low), period), low)


def _beyond(last: float) -> tuple[float, float]:
    """Bounds beyond which all weights are 0; they replace infinity, which has no weights."""
    return -4.0, last + 4.0


def _reflected(ops: OpTable, position: Primitive, low: float, high: float) -> Primitive:
    """Positions reflected at `low` and `high` until they are between them."""
    period = 2.0 * (high - low)
    position = ops.remainder(ops.subtract(position, low), period)
    back = ops.subtract(period, position)
    return ops.add(ops.where(ops.greater(position, high - low), back, position), low)


def _cubic_weights(ops: OpTable, t: Primitive) -> list[Primitive]:
    """Weights of the elements at -1, 0, 1 and 2 for a point at `t`."""
    a = CUBIC_COEFFICIENT

    def near(distance: Primitive) -> Primitive:
        inner = ops.subtract(ops.multiply(distance, a + 2.0), a + 3.0)
        return ops.add(ops.multiply(inner, ops.multiply(distance, distance)), 1.0)

    def far(distance: Primitive) -> Primitive:
        inner = ops.add(ops.multiply(ops.subtract(distance, 5.0), ops.multiply(distance, a)), 8 * a)
        return ops.subtract(ops.multiply(inner, distance), 4.0 * a)

    rest = ops.subtract(1.0, t)
    return [far(ops.add(t, 1.0)), near(t), near(rest), far(ops.add(rest, 1.0))]


def _sampled_shape(shape: Shape, grid: Shape, mode: str, padding_mode: str) -> Shape:
    check_choice("mode", mode, _MODES)
    check_choice("padding_mode", padding_mode, grid_sample_2d.attributes["padding_mode"].choices)
    if len(shape) != 4 or len(grid) != 4 or grid[3] != 2 or shape[0] != grid[0]:
        raise ShapeError(
            f"images of shape {shape} and a grid of shape {grid}",
            hint="They are (N, C, H, W) and (N, rows, columns, 2)",
        )
    _check_elements(shape)
    return check_shape((*shape[:2], *grid[1:3]))


def _sampled_volume_shape(shape: Shape, grid: Shape, mode: str, padding_mode: str) -> Shape:
    check_choice("mode", mode, grid_sample_3d.attributes["mode"].choices)
    check_choice("padding_mode", padding_mode, grid_sample_3d.attributes["padding_mode"].choices)
    if len(shape) != 5 or len(grid) != 5 or grid[4] != 3 or shape[0] != grid[0]:
        raise ShapeError(
            f"volumes of shape {shape} and a grid of shape {grid}",
            hint="They are (N, C, D, H, W) and (N, planes, rows, columns, 3)",
        )
    _check_elements(shape)
    return check_shape((*shape[:2], *grid[1:4]))


def _check_elements(shape: Shape) -> None:
    if 0 in shape[2:]:
        raise ShapeError(f"x of shape {shape} has no elements to sample")


@op(Tag.COMPUTE_BOUND)
def affine_grid_2d(theta: FloatOperand, *, output_size: Sizes, align_corners: Flag = False) -> Meta:
    """Grid of `output_size` (rows, columns) points under affine maps `theta` (N, 2, 3).

    The result (N, rows, columns, 2) is a grid for `grid_sample_2d`: ``theta @ [x, y, 1]`` for the
    coordinates x and y of each element of an image of that size.
    """
    return Meta(_grid_shape(theta.shape, output_size), theta.dtype)


@affine_grid_2d.decomposition
@in_float32
def _(
    ops: OpTable, theta: Primitive, *, output_size: Sizes, align_corners: bool = False
) -> Primitive:
    _grid_shape(tuple(theta.shape), output_size)
    return _affine_grid(ops, theta, output_size, align_corners=align_corners)


affine_grid_2d.batching(merging(theta=0))


@op(Tag.COMPUTE_BOUND)
def affine_grid_3d(theta: FloatOperand, *, output_size: Sizes, align_corners: Flag = False) -> Meta:
    """Grid of `output_size` (planes, rows, columns) points under affine maps `theta` (N, 3, 4).

    The result (N, planes, rows, columns, 3) is a grid for `grid_sample_3d`: ``theta @ [x, y, z,
    1]`` for the coordinates x, y and z of each element of a volume of that size.
    """
    return Meta(_volume_grid_shape(theta.shape, output_size), theta.dtype)


@affine_grid_3d.decomposition
@in_float32
def _(
    ops: OpTable, theta: Primitive, *, output_size: Sizes, align_corners: bool = False
) -> Primitive:
    _volume_grid_shape(tuple(theta.shape), output_size)
    return _affine_grid(ops, theta, output_size, align_corners=align_corners)


affine_grid_3d.batching(merging(theta=0))


def _affine_grid(
    ops: OpTable, theta: Primitive, output_size: Sizes, *, align_corners: bool
) -> Primitive:
    axes = len(output_size)
    points = np.ones((*output_size, axes + 1))
    for axis, count in enumerate(output_size):
        centers = _element_centers(count, align_corners)
        points[..., axes - 1 - axis] = centers.reshape(-1, *[1] * (axes - 1 - axis))
    flat = constant(ops, points.reshape(size(output_size), axes + 1), ops.dtype(theta))
    grid = ops.matmul(flat, ops.permute(theta, axes=(0, 2, 1)))
    return ops.reshape(grid, shape=(theta.shape[0], *output_size, axes))


def _element_centers(count: int, align_corners: bool) -> Array:
    """Coordinates of the middles of `count` elements; 0 if there is one."""
    spread = (2.0 * np.arange(count) + 1.0) / max(count, 1) - 1.0
    if align_corners and count > 1:
        spread = 2.0 * np.arange(count) / (count - 1) - 1.0
    return spread


def _grid_shape(theta: Shape, output_size: Sizes) -> Shape:
    if len(theta) != 3 or theta[1:] != (2, 3):
        raise ShapeError(f"affine maps of shape {theta}", hint="They are (N, 2, 3)")
    if len(output_size) != 2:
        raise ArgumentError(f"output_size is {output_size}", hint="Use (rows, columns)")
    return check_shape((theta[0], *output_size, 2))


def _volume_grid_shape(theta: Shape, output_size: Sizes) -> Shape:
    if len(theta) != 3 or theta[1:] != (3, 4):
        raise ShapeError(f"affine maps of shape {theta}", hint="They are (N, 3, 4)")
    if len(output_size) != 3:
        raise ArgumentError(f"output_size is {output_size}", hint="Use (planes, rows, columns)")
    return check_shape((theta[0], *output_size, 3))
