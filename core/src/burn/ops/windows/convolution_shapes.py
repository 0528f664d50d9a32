"""The geometry of convolutions: shapes and windows, and the checks of both."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from burn.errors import ArgumentError, ShapeError
from burn.ops.shapes import check_shape
from burn.ops.signature import Integer, Pairs, Shape, Sizes
from burn.ops.windows.sliding_windows import SlidingAttributes, Windows
from burn.public_calls import shown_value

__all__ = [
    "ConvAttributes",
    "ConvGeometry",
    "ConvTransposeAttributes",
    "ConvWeightGradAttributes",
    "check_conv_bias",
    "conv_geometry",
    "conv_transpose_geometry",
    "conv_weight_grad_geometry",
    "patch_windows",
]


class ConvAttributes(SlidingAttributes):
    """The attributes of `conv`."""

    groups: Integer


class ConvTransposeAttributes(ConvAttributes):
    """The attributes of `conv_transpose`."""

    output_padding: Sizes


class ConvWeightGradAttributes(ConvAttributes):
    """The attributes of `conv_weight_grad`."""

    kernel_size: Sizes


@dataclass(frozen=True, eq=False)
class ConvGeometry:
    """Shapes and windows of a convolution. Equal arguments give the identical object.

    Attributes
    ----------
    batch : int
        Number of examples.
    inputs, outputs : int
        Number of channels of the operand and of the result.
    groups : int
        Number of groups of channels; each is convolved alone.
    axes : tuple of Windows
        The windows along each spatial axis.
    """

    batch: int
    inputs: int
    outputs: int
    groups: int
    axes: tuple[Windows, ...]

    @functools.cached_property
    def kernel(self) -> Shape:
        """Length of the kernel along each spatial axis."""
        return tuple([axis.kernel for axis in self.axes])

    @functools.cached_property
    def counts(self) -> Shape:
        """Number of windows along each spatial axis."""
        return tuple([axis.count for axis in self.axes])

    @functools.cached_property
    def input_shape(self) -> Shape:
        """Shape of the operand."""
        return (self.batch, self.inputs, *[axis.length for axis in self.axes])

    @functools.cached_property
    def output_shape(self) -> Shape:
        """Shape of the result."""
        return (self.batch, self.outputs, *self.counts)

    @functools.cached_property
    def weight_shape(self) -> Shape:
        """Shape of the weight."""
        return (self.outputs, self.inputs // self.groups, *self.kernel)

    @functools.cached_property
    def output_padding(self) -> Shape:
        """Length of the part of each padded axis after the last window."""
        return tuple([axis.length + axis.before + axis.after - axis.reach for axis in self.axes])

    @functools.cached_property
    def terms(self) -> int:
        """Number of products that are added up for an element of the result."""
        return self.inputs // self.groups * math.prod(self.kernel)


@functools.lru_cache(maxsize=1024)
def conv_geometry(
    shape: Shape, weight: Shape, *, stride: Sizes, padding: Pairs, dilation: Sizes, groups: int
) -> ConvGeometry:
    """The convolution of a tensor (N, C, *spatial) with a weight (O, C / groups, *kernel).

    Raises
    ------
    ShapeError
        If the shapes do not fit each other, or the kernel is longer than the padded axis.
    ArgumentError
        If a number is out of its range.
    """
    _check_ranks(shape, weight, len(stride), "(O, C / groups, *kernel)")
    axes = patch_windows(
        shape, kernel_size=weight[2:], stride=stride, padding=padding, dilation=dilation
    )
    per_group = _per_group(shape[1], groups, "C")
    if weight[1] != per_group:
        raise ShapeError(
            f"weight of shape {weight} has {weight[1]} channels where C / groups = "
            f"{shape[1]} / {groups} = {per_group}",
            hint="A weight has the shape (O, C / groups, *kernel)",
        )
    _per_group(weight[0], groups, "O")
    plan = ConvGeometry(shape[0], shape[1], weight[0], groups, axes)
    check_shape(plan.output_shape)
    return plan


@functools.lru_cache(maxsize=1024)
def conv_transpose_geometry(
    shape: Shape,
    weight: Shape,
    *,
    stride: Sizes,
    padding: Pairs,
    output_padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> ConvGeometry:
    """The convolution whose adjoint takes (N, C, *spatial), by a weight (C, O / groups, *kernel).

    Its operand has the shape of the adjoint's result, and the other way round.

    Raises
    ------
    ShapeError
        If the shapes do not fit each other, or nothing is left of an axis.
    ArgumentError
        If a number is out of its range.
    """
    _check_ranks(shape, weight, len(stride), "(C, O / groups, *kernel)")
    _check_numbers(weight[2:], stride, padding, dilation)
    if len(output_padding) != len(stride):
        raise ArgumentError(f"{len(output_padding)} numbers of output_padding for {len(stride)}")
    if weight[0] != shape[1]:
        raise ShapeError(
            f"weight of shape {weight} has {weight[0]} channels where x of shape {shape} has "
            f"{shape[1]}",
            hint="A transposed weight has the shape (C, O / groups, *kernel)",
        )
    _per_group(shape[1], groups, "C")
    axes = []
    for number, (count, kernel, step, (before, after), extra, spread) in enumerate(
        zip(shape[2:], weight[2:], stride, padding, output_padding, dilation, strict=True), 2
    ):
        if not 0 <= extra < step:
            raise ArgumentError(
                f"output_padding is {extra} along axis {number} where the stride is {step}",
                hint="It is at least 0 and less than the stride; burn.pad makes the result longer",
            )
        length = (count - 1) * step - before - after + spread * (kernel - 1) + extra + 1
        if length < 1:
            raise ShapeError(
                f"nothing is left of axis {number}: out = (in - 1)*stride - pad_left - pad_right + "
                f"dilation*(kernel - 1) + output_padding + 1 = ({count} - 1)*{step} - {before} - "
                f"{after} + {spread}*({kernel} - 1) + {extra} + 1 = {length}",
                hint="Use less padding",
            )
        axes.append(Windows(length, kernel, step, before, after, spread, count))
    plan = ConvGeometry(shape[0], weight[1] * groups, shape[1], groups, tuple(axes))
    check_shape(plan.input_shape)
    return plan


def conv_weight_grad_geometry(
    shape: Shape, output: Shape, *, kernel_size: Sizes, groups: int, **numbers: Any
) -> ConvGeometry:
    """The convolution of a tensor of one shape to one of another, by a kernel of a given size.

    Raises
    ------
    ShapeError
        If the shapes do not fit each other.
    ArgumentError
        If a number is out of its range.
    """
    if len(output) != len(shape) or len(shape) < 2:
        raise ShapeError(f"g has shape {output} where x has shape {shape}")
    weight = (output[1], _per_group(shape[1], groups, "C"), *kernel_size)
    plan = conv_geometry(shape, weight, groups=groups, **numbers)
    if output != plan.output_shape:
        raise ShapeError(f"g has shape {output} where the convolution gives {plan.output_shape}")
    return plan


def check_conv_bias(bias: Any, outputs: int) -> None:
    """Raise ShapeError unless a bias is None or has one element for each output channel."""
    if bias is not None and tuple(bias.shape) != (outputs,):
        raise ShapeError(f"bias has shape {tuple(bias.shape)} where ({outputs},) is needed")


def patch_windows(
    shape: Shape, *, kernel_size: Sizes, stride: Sizes, padding: Pairs, dilation: Sizes
) -> tuple[Windows, ...]:
    """The windows along the spatial axes of a shape (N, C, *spatial).

    Raises
    ------
    ShapeError
        If an axis is empty or shorter, with its padding, than the kernel.
    ArgumentError
        If a number is out of its range.
    """
    _check_numbers(kernel_size, stride, padding, dilation)
    _check_not_empty(shape)
    axes = []
    for number, (length, kernel, step, (before, after), spread) in enumerate(
        zip(shape[2:], kernel_size, stride, padding, dilation, strict=True), 2
    ):
        count = (length + before + after - spread * (kernel - 1) - 1) // step + 1
        if count < 1:
            raise ShapeError(
                f"no window fits axis {number}: out = floor((in + pad_left + pad_right - "
                f"dilation*(kernel - 1) - 1)/stride) + 1 = floor(({length} + {before} + {after} - "
                f"{spread}*({kernel} - 1) - 1)/{step}) + 1 = {count}",
                hint="The kernel may not be longer than the padded axis",
            )
        axes.append(Windows(length, kernel, step, before, after, spread, count))
    return tuple(axes)


def _check_ranks(shape: Shape, weight: Shape, spatial: int, layout: str) -> None:
    if spatial < 1 or len(shape) != spatial + 2:
        raise ShapeError(
            f"x has shape {shape} where {spatial} spatial axes follow batch and channels",
            hint="Its layout is (N, C, *spatial); x[None] adds a batch of one",
        )
    if len(weight) != spatial + 2:
        raise ShapeError(f"weight has shape {weight} where {layout} has {spatial + 2} axes")
    _check_not_empty(shape)


def _check_not_empty(shape: Shape) -> None:
    if 0 in shape[2:]:
        raise ShapeError(
            f"axis {2 + shape[2:].index(0)} of {shape} is spatial and has no elements",
            hint="Only the batch and the channels may be empty",
        )


def _check_numbers(kernel: Sizes, stride: Sizes, padding: Pairs, dilation: Sizes) -> None:
    named: dict[str, Sequence[object]] = {"stride": stride, "padding": padding}
    for name, values in {**named, "dilation": dilation}.items():
        if len(values) != len(kernel):
            raise ArgumentError(
                f"{len(values)} values of {name} for a kernel with {len(kernel)} axes",
                hint="Give one for each spatial axis",
            )
    for name, numbers in {"kernel": kernel, "stride": stride, "dilation": dilation}.items():
        if min(numbers) < 1:
            raise ArgumentError(f"{name} is {tuple(numbers)}", hint="Use 1 or more")
    if min(map(min, padding)) < 0:
        raise ArgumentError(
            f"padding is {tuple(padding)}", hint="Use 0 or more; slice x to make it shorter"
        )


def _per_group(channels: int, groups: int, name: str) -> int:
    if groups < 1:
        raise ArgumentError(f"groups is {shown_value(groups)}", hint="Use 1 or more")
    if channels % groups:
        raise ShapeError(
            f"{channels} channels {name} are no multiple of {shown_value(groups)} groups",
            hint="Each group has equally many",
        )
    return channels // groups
