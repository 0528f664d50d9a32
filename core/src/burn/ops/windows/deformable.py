"""Convolutions with deformed windows: an offset moves each position in each window.

J. Dai et al., "Deformable convolutional networks" (2017, arXiv:1703.06211); with a mask, X. Zhu et
al., "Deformable ConvNets v2" (2019, arXiv:1811.11168). Layouts are those of torchvision.

The channels are in `offset_groups` groups with the same offsets. An offset has the shape
(N, 2 * offset_groups * kernel height * kernel width, rows, columns): for each group and position in
the kernel the distance down, and the distance across. A mask, of half as many channels, has the
factor of each value.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import NamedTuple, Unpack

from burn.ops._axis_maps import constant
from burn.ops._precision import in_float32
from burn.ops.batching import merging
from burn.ops.index_arithmetic import index_dtype, narrow
from burn.ops.op import Context, Tag, op
from burn.ops.shapes import size
from burn.ops.signature import (
    Cotangent,
    FloatOperand,
    Gradients,
    Integer,
    Meta,
    OptionalFloat,
    Primitive,
)
from burn.ops.table import OpTable
from burn.ops.windows.convolution_shapes import check_conv_bias, conv_geometry
from burn.ops.windows.deformable_shapes import (
    DeformableAttributes,
    DeformableGeometry,
    check_deformable_gradient,
    deformable_geometry,
    undeformed_positions,
)
from burn.ops.windows.sliding_windows import SlidingAttributes


@op(Tag.COMPUTE_BOUND)
def deform_conv2d(
    x: FloatOperand,
    offset: FloatOperand,
    weight: FloatOperand,
    mask: OptionalFloat,
    bias: OptionalFloat,
    *,
    weight_groups: Integer,
    offset_groups: Integer,
    **attributes: Unpack[SlidingAttributes],
) -> Meta:
    """Convolution of images (N, C, H, W) by (O, C / weight_groups, *kernel) in deformed windows.

    As `conv`, but with the values that `deform_unfold4d` samples at the moved positions.
    """
    plan = conv_geometry(x.shape, weight.shape, groups=weight_groups, **attributes)
    check_conv_bias(bias, plan.outputs)
    deformable_geometry(
        x, offset, mask, kernel_size=plan.kernel, offset_groups=offset_groups, **attributes
    )
    return Meta(plan.output_shape, x.dtype)


@deform_conv2d.decomposition
@in_float32
def _(
    ops: OpTable,
    x: Primitive,
    offset: Primitive,
    weight: Primitive,
    mask: Primitive | None,
    bias: Primitive | None,
    *,
    weight_groups: int,
    offset_groups: int,
    **attributes: Unpack[SlidingAttributes],
) -> Primitive:
    plan = conv_geometry(tuple(x.shape), tuple(weight.shape), groups=weight_groups, **attributes)
    check_conv_bias(bias, plan.outputs)
    columns = ops.deform_unfold4d(
        x, offset, mask, kernel_size=plan.kernel, offset_groups=offset_groups, **attributes
    )
    columns = ops.reshape(columns, shape=(plan.batch, weight_groups, plan.terms, size(plan.counts)))
    matrices = ops.reshape(weight, shape=(weight_groups, plan.outputs // weight_groups, plan.terms))
    output = ops.reshape(ops.matmul(matrices, columns), shape=plan.output_shape)
    if bias is None:
        return output
    return ops.add(output, ops.reshape(bias, shape=(plan.outputs, 1, 1)))


deform_conv2d.batching(merging(x=0, offset=0, mask=0))


@op(Tag.COMPUTE_BOUND)
def deform_unfold4d(
    x: FloatOperand,
    offset: FloatOperand,
    mask: OptionalFloat,
    **attributes: Unpack[DeformableAttributes],
) -> Meta:
    """Deformed windows of images (N, C, H, W) as columns (N, C * kernel, windows).

    As `unfold4d`, but each position is moved by its offset, and the value is the bilinear
    interpolation of the four elements around it, of which those outside the image are 0.
    An offset that is NaN gives NaN.
    """
    plan = deformable_geometry(x, offset, mask, **attributes)
    return Meta(plan.column_shape, x.dtype)


@deform_unfold4d.decomposition
@in_float32
def _(
    ops: OpTable,
    x: Primitive,
    offset: Primitive,
    mask: Primitive | None,
    **attributes: Unpack[DeformableAttributes],
) -> Primitive:
    plan = deformable_geometry(x, offset, mask, **attributes)
    terms = []
    plane = ops.reshape(x, shape=plan.plane_shape)
    for corner in _corners(ops, offset, plan):
        value = ops.gather(plane, ops.expand(corner.index, shape=plan.sample_shape), axis=3)
        product = ops.multiply(value, ops.multiply(corner.down, corner.across))
        terms.append(ops.where(corner.outside, 0.0, product))
    columns = functools.reduce(ops.add, terms)
    if mask is not None:
        columns = ops.multiply(columns, ops.reshape(mask, shape=plan.group_shape))
    return ops.reshape(columns, shape=plan.column_shape)


@deform_unfold4d.gradient(saves=("x", "offset", "mask"))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    gradients = ops.deform_unfold4d_grad(*ctx.saved, g, **ctx.attrs)
    return tuple(
        gradient if needed else None for gradient, needed in zip(gradients, ctx.needs, strict=True)
    )


deform_unfold4d.batching(merging(x=0, offset=0, mask=0))


@op(Tag.COMPUTE_BOUND, outputs=("x_gradient", "offset_gradient", "mask_gradient"))
def deform_unfold4d_grad(
    x: FloatOperand,
    offset: FloatOperand,
    mask: OptionalFloat,
    g: FloatOperand,
    **attributes: Unpack[DeformableAttributes],
) -> tuple[Meta, Meta, Meta]:
    """Gradients of `deform_unfold4d` by its operands; without a mask, that of a mask of ones.

    At an element the slope is that of the side where the coordinate is larger.
    """
    plan = deformable_geometry(x, offset, mask, **attributes)
    check_deformable_gradient(g, plan)
    return x, offset, Meta(plan.mask_shape, x.dtype)


@deform_unfold4d_grad.decomposition
@in_float32
def _(
    ops: OpTable,
    x: Primitive,
    offset: Primitive,
    mask: Primitive | None,
    g: Primitive,
    **attributes: Unpack[DeformableAttributes],
) -> tuple[Primitive, Primitive, Primitive]:
    plan = deformable_geometry(x, offset, mask, **attributes)
    check_deformable_gradient(g, plan)
    dtype = ops.dtype(x)
    plane = ops.reshape(x, shape=plan.plane_shape)
    g = ops.reshape(g, shape=plan.sample_shape)
    shared = None if mask is None else ops.reshape(mask, shape=plan.group_shape)
    masked = g if shared is None else ops.multiply(g, shared)
    to_x = ops.full(shape=plan.plane_shape, fill_value=0.0, dtype=dtype)
    sums: list[list[Primitive]] = [[], [], []]
    for corner in _corners(ops, offset, plan):
        index = ops.expand(corner.index, shape=plan.sample_shape)
        weight = ops.multiply(corner.down, corner.across)
        share = ops.where(corner.outside, 0.0, ops.multiply(masked, weight))
        to_x = ops.scatter_add(to_x, index, share, axis=3)
        products = ops.multiply(g, ops.gather(plane, index, axis=3))
        slope = ops.sum(products, axis=(2,), keepdims=True, dtype=dtype)
        factors = (
            ops.multiply(corner.across, corner.down_slope),
            ops.multiply(corner.down, corner.across_slope),
            weight,
        )
        for terms, factor in zip(sums, factors, strict=True):
            terms.append(ops.where(corner.outside, 0.0, ops.multiply(slope, factor)))
    down, across, to_mask = [functools.reduce(ops.add, terms) for terms in sums]
    moved = [
        ops.reshape(item if shared is None else ops.multiply(item, shared), shape=plan.tap_shape)
        for item in (down, across)
    ]
    return (
        ops.reshape(to_x, shape=plan.image_shape),
        ops.reshape(ops.concat(moved, axis=3), shape=plan.offset_shape),
        ops.reshape(to_mask, shape=plan.mask_shape),
    )


deform_unfold4d_grad.batching(merging(x=0, offset=0, mask=0, g=0))


class _Corner(NamedTuple):
    """One of the four elements around each moved position, shared by the channels of a group.

    Attributes
    ----------
    index : primitive
        Its index in the flat image, of another element where it is `outside`.
    outside : primitive
        Whether it lies outside the image.
    down, across : primitive
        Its weight in the interpolation, as a product of two.
    down_slope, across_slope : float
        The derivatives of both by the coordinate.
    """

    index: Primitive
    outside: Primitive
    down: Primitive
    across: Primitive
    down_slope: float
    across_slope: float


def _corners(ops: OpTable, offset: Primitive, plan: DeformableGeometry) -> Iterator[_Corner]:
    pairs = ops.reshape(offset, shape=(*plan.tap_shape[:3], 2, plan.windows))
    coordinates = []
    for number, start in enumerate(undeformed_positions(plan)):
        moved = ops.reshape(narrow(ops, pairs, 3, number, 1), shape=plan.group_shape)
        coordinates.append(ops.add(moved, constant(ops, start, ops.dtype(offset))))
    down, across = coordinates
    for row in _sides(ops, down, plan.rows.length):
        for column in _sides(ops, across, plan.columns.length):
            index = ops.add(ops.multiply(row.index, plan.columns.length), column.index)
            outside = ops.bitwise_or(row.outside, column.outside)
            yield _Corner(index, outside, row.weight, column.weight, row.slope, column.slope)


class _Side(NamedTuple):
    """The element before or behind a coordinate, along one axis."""

    index: Primitive
    outside: Primitive
    weight: Primitive
    slope: float


def _sides(ops: OpTable, coordinate: Primitive, length: int) -> list[_Side]:
    before = ops.floor(coordinate)
    fraction = ops.subtract(coordinate, before)
    sides = []
    for position, weight, slope in (
        (before, ops.subtract(1.0, fraction), -1.0),
        (ops.add(before, 1.0), fraction, 1.0),
    ):
        # NaN is neither: the weight is NaN then.
        outside = ops.bitwise_or(
            ops.less(position, 0.0), ops.greater_equal(position, float(length))
        )
        inside = ops.minimum(ops.maximum(position, 0.0), float(length - 1))
        index = ops.cast(inside, dtype=index_dtype(ops))
        sides.append(_Side(index, outside, weight, slope))
    return sides
