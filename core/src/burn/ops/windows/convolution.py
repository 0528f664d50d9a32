"""Convolutions over any number of spatial axes, and the ops of their gradients.

The layout is (N, C, *spatial): a batch of examples, channels, and one spatial axis or more. As in
every library of the field the kernel is not flipped: it is a cross-correlation. The three ops here
are the derivatives of one trilinear form, so the gradients of each are the other two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Unpack

from burn.ops._attributes import without
from burn.ops._precision import in_float32
from burn.ops.batching import BatchedCall, BatchingRule, first_of, merging
from burn.ops.op import Context, Tag, op
from burn.ops.shapes import size
from burn.ops.signature import (
    Cotangent,
    FloatOperand,
    Gradients,
    Meta,
    OptionalFloat,
    Pairs,
    Primitive,
)
from burn.ops.table import OpTable
from burn.ops.windows.convolution_shapes import (
    ConvAttributes,
    ConvGeometry,
    ConvTransposeAttributes,
    ConvWeightGradAttributes,
    check_conv_bias,
    conv_geometry,
    conv_transpose_geometry,
    conv_weight_grad_geometry,
)
from burn.ops.windows.sliding_windows import Windows
from burn.ops.windows.unfolding import columns

__all__ = ["flipped_padding"]


@op(Tag.COMPUTE_BOUND)
def conv(
    x: FloatOperand,
    weight: FloatOperand,
    bias: OptionalFloat,
    **attributes: Unpack[ConvAttributes],
) -> Meta:
    """Convolution of (N, C, *spatial) with a weight (O, C / groups, *kernel), plus a bias (O,).

    ``output[n, o, i] = bias[o] + sum over c and k of
    weight[o, c, k] * x[n, c, i * stride - padding_before + k * dilation]``, where i and k have a
    number for each spatial axis, elements outside `x` are 0, and c runs over the channels of the
    group of o. Along each axis there are ``floor((in + padding_before + padding_after -
    dilation * (kernel - 1) - 1) / stride) + 1`` elements. 16-bit floats add up in float32.
    """
    plan = conv_geometry(x.shape, weight.shape, **attributes)
    check_conv_bias(bias, plan.outputs)
    return Meta(plan.output_shape, x.dtype)


@conv.decomposition
@in_float32
def _(
    ops: OpTable,
    x: Primitive,
    weight: Primitive,
    bias: Primitive | None,
    **attributes: Unpack[ConvAttributes],
) -> Primitive:
    plan = conv_geometry(tuple(x.shape), tuple(weight.shape), **attributes)
    check_conv_bias(bias, plan.outputs)
    matrices = ops.reshape(weight, shape=(plan.groups, plan.outputs // plan.groups, plan.terms))
    output = ops.matmul(matrices, _grouped_columns(ops, x, plan))
    output = ops.reshape(output, shape=plan.output_shape)
    if bias is None:
        return output
    column = (plan.outputs, *[1] * len(plan.axes))
    return ops.add(output, ops.reshape(bias, shape=column))


@conv.gradient(saves={"x": ("weight",), "weight": ("x",)})
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    x, weight = ctx.saved
    to_x = to_weight = None
    if ctx.needs[0]:
        rest = conv_geometry(ctx.shape(0), tuple(weight.shape), **ctx.attrs).output_padding
        to_x = ops.conv_transpose(g, weight, None, output_padding=rest, **ctx.attrs)
    if ctx.needs[1]:
        to_weight = ops.conv_weight_grad(x, g, kernel_size=tuple(ctx.shape(1)[2:]), **ctx.attrs)
    return to_x, to_weight, _summed(ops, g) if ctx.needs[2] else None


@op(Tag.COMPUTE_BOUND)
def conv_transpose(
    x: FloatOperand,
    weight: FloatOperand,
    bias: OptionalFloat,
    **attributes: Unpack[ConvTransposeAttributes],
) -> Meta:
    """Transposed convolution of (N, C, *spatial) by (C, O / groups, *kernel), plus a bias (O,).

    The adjoint of `conv` with the same weight and numbers: each element of `x` is spread over a
    window of the output. Along each axis there are ``(in - 1) * stride - padding_before -
    padding_after + dilation * (kernel - 1) + output_padding + 1`` elements; `output_padding`, less
    than the stride, says which of the lengths that `conv` takes to the same one is meant. 16-bit
    floats add up in float32.
    """
    plan = conv_transpose_geometry(x.shape, weight.shape, **attributes)
    check_conv_bias(bias, plan.inputs)
    return Meta(plan.input_shape, x.dtype)


@conv_transpose.decomposition
@in_float32
def _(
    ops: OpTable,
    x: Primitive,
    weight: Primitive,
    bias: Primitive | None,
    **attributes: Unpack[ConvTransposeAttributes],
) -> Primitive:
    # A convolution with the flipped kernel and a stride of 1 over the elements of x, a stride
    # apart with zeros between them.
    plan = conv_transpose_geometry(tuple(x.shape), tuple(weight.shape), **attributes)
    check_conv_bias(bias, plan.inputs)
    ends = flipped_padding(plan.axes)
    if max(attributes["stride"]) > 1 or min(map(min, ends)) < 0:
        x = _interleaved_with_zeros(ops, x, plan.axes, ends)
        ends = ((0, 0),) * len(ends)
    return ops.conv(
        x,
        _flipped(ops, weight, plan.groups),
        bias,
        stride=(1,) * len(ends),
        padding=ends,
        dilation=attributes["dilation"],
        groups=plan.groups,
    )


@conv_transpose.cost
def _(output: Meta, x: Meta, weight: Meta, bias: Meta | None, **attributes: Any) -> int:
    # Without the zeros between the elements, by which the decomposition multiplies.
    products = size(x.shape) * size(weight.shape[1:])
    return 2 * products + (0 if bias is None else size(output.shape))


@conv_transpose.gradient(saves={"x": ("weight",), "weight": ("x",)})
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    x, weight = ctx.saved
    attrs = without(ctx.attrs, "output_padding")
    to_weight = None
    if ctx.needs[1]:
        to_weight = ops.conv_weight_grad(g, x, kernel_size=tuple(ctx.shape(1)[2:]), **attrs)
    return (
        ops.conv(g, weight, None, **attrs) if ctx.needs[0] else None,
        to_weight,
        _summed(ops, g) if ctx.needs[2] else None,
    )


@op(Tag.COMPUTE_BOUND, outputs=("gradient",))
def conv_weight_grad(
    x: FloatOperand,
    g: FloatOperand,
    **attributes: Unpack[ConvWeightGradAttributes],
) -> Meta:
    """Gradient of `conv` by its weight: `x` is its operand, `g` the gradient of its output."""
    plan = conv_weight_grad_geometry(x.shape, g.shape, **attributes)
    return Meta(plan.weight_shape, x.dtype)


@conv_weight_grad.decomposition
@in_float32
def _(
    ops: OpTable, x: Primitive, g: Primitive, **attributes: Unpack[ConvWeightGradAttributes]
) -> Primitive:
    plan = conv_weight_grad_geometry(tuple(x.shape), tuple(g.shape), **attributes)
    # One long sum over the batch and all windows.
    features, count = plan.outputs // plan.groups, size(plan.counts)
    total = plan.batch * count
    rows = ops.permute(_grouped_columns(ops, x, plan), axes=(1, 0, 3, 2))
    rows = ops.reshape(rows, shape=(plan.groups, total, plan.terms))
    g = ops.reshape(g, shape=(plan.batch, plan.groups, features, count))
    g = ops.reshape(ops.permute(g, axes=(1, 2, 0, 3)), shape=(plan.groups, features, total))
    return ops.reshape(ops.matmul(g, rows), shape=plan.weight_shape)


@conv_weight_grad.gradient(saves={"x": ("g",), "g": ("x",)})
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    # `g` is the gradient of a weight here, and so a weight itself.
    x, output = ctx.saved
    attrs = without(ctx.attrs, "kernel_size")
    to_x = None
    if ctx.needs[0]:
        rest = conv_geometry(ctx.shape(0), tuple(g.shape), **attrs).output_padding
        to_x = ops.conv_transpose(output, g, None, output_padding=rest, **attrs)
    return to_x, ops.conv(x, g, None, **attrs) if ctx.needs[1] else None


def _in_groups(rule: BatchingRule) -> BatchingRule:
    """A rule in which the channels of each example are groups of their own."""

    def call(ops: OpTable, batch: BatchedCall, *operands: Primitive, **attributes: Any) -> Any:
        groups = attributes["groups"] * batch.size
        return rule(ops, batch, *operands, **{**attributes, "groups": groups})

    return call


_of_layers: Final = first_of(merging(x=0), _in_groups(merging(x=1, weight=0, bias=0, outputs=(1,))))
conv.batching(_of_layers)
conv_transpose.batching(_of_layers)
conv_weight_grad.batching(_in_groups(merging(x=1, g=1)))


def _grouped_columns(ops: OpTable, x: Primitive, plan: ConvGeometry) -> Primitive:
    """The windows as matrices for each example and group: a column per window."""
    shape = (plan.batch, plan.groups, plan.terms, size(plan.counts))
    return ops.reshape(columns(ops, x, plan.axes), shape=shape)


def _summed(ops: OpTable, g: Primitive) -> Primitive:
    """Gradient of a bias: the sum over all axes but that of the channels."""
    axis = (0, *range(2, len(g.shape)))
    return ops.sum(g, axis=axis, keepdims=False, dtype=ops.dtype(g))


def _flipped(ops: OpTable, weight: Primitive, groups: int) -> Primitive:
    """The weight of a convolution with a stride of 1 that is the adjoint of another."""
    outputs, inputs, *kernel = weight.shape
    parts = ops.reshape(weight, shape=(groups, outputs // groups, inputs, *kernel))
    axes = (0, 2, 1, *range(3, 3 + len(kernel)))
    merged = (groups * inputs, outputs // groups, *kernel)
    swapped = ops.reshape(ops.permute(parts, axes=axes), shape=merged)
    return ops.flip(swapped, axes=tuple(range(2, 2 + len(kernel))))


def flipped_padding(axes: Sequence[Windows]) -> Pairs:
    """Padding of the convolution that is the adjoint of one with a stride of 1.

    With a larger stride it is the padding around the elements a stride apart. Where it is negative,
    elements at that end are dropped.
    """
    return tuple(
        [
            (
                axis.span - 1 - axis.before,
                axis.length - 1 + axis.before - (axis.count - 1) * axis.stride,
            )
            for axis in axes
        ]
    )


def _interleaved_with_zeros(
    ops: OpTable, x: Primitive, axes: Sequence[Windows], ends: Pairs
) -> Primitive:
    """Elements a stride apart with zeros between them, padded or cropped at both ends."""
    batch, channels = x.shape[:2]
    targets = [(0, batch, 1), (0, channels, 1)]
    kept = list(targets)
    shape = [batch, channels]
    for axis, (before, after) in zip(axes, ends, strict=True):
        length = before + (axis.count - 1) * axis.stride + 1 + after
        first = -(min(before, 0) // axis.stride)
        start = before + first * axis.stride
        count = max(0, min(axis.count - first, (length - 1 - start) // axis.stride + 1))
        kept.append((first if count else 0, count, 1))
        targets.append((start if count else 0, count, axis.stride))
        shape.append(length)
    zeros = ops.full(shape=tuple(shape), fill_value=0.0, dtype=ops.dtype(x))
    return ops.slice_assign(zeros, ops.slice(x, slices=tuple(kept)), slices=tuple(targets))
