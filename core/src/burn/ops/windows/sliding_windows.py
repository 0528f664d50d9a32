"""Windows that slide along the spatial axes of a tensor: their number and positions."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from burn.errors import ArgumentError, ShapeError
from burn.ops.shapes import check_shape
from burn.ops.signature import Flag, Pairs, Shape, Sizes

__all__ = [
    "AvgPoolAttributes",
    "MaxPoolAttributes",
    "Pairs",
    "PatchAttributes",
    "Sizes",
    "SlidingAttributes",
    "Windows",
    "check_pooled",
    "pool_windows",
    "pooled_shape",
    "split_spatial_axes",
    "unpooled_shape",
]


class SlidingAttributes(TypedDict):
    """How windows slide."""

    stride: Sizes
    padding: Pairs
    dilation: Sizes


class PatchAttributes(SlidingAttributes):
    """How windows of a given size slide."""

    kernel_size: Sizes


class MaxPoolAttributes(PatchAttributes):
    """The windows of `max_pool`."""

    ceil_mode: Flag


class AvgPoolAttributes(TypedDict):
    """The windows of `avg_pool`."""

    kernel_size: Sizes
    stride: Sizes
    padding: Pairs
    ceil_mode: Flag


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows along one axis.

    Window i holds the indices ``i * stride - before + j * dilation`` for j below `kernel`; those
    outside [0, length) are padding.
    """

    length: int
    kernel: int
    stride: int
    before: int
    after: int
    dilation: int
    count: int

    @property
    def span(self) -> int:
        """Number of positions from the first to the last element of a window."""
        return self.dilation * (self.kernel - 1) + 1

    @property
    def is_apart(self) -> bool:
        """Whether one window begins where another one ends, if there is another one."""
        return self.dilation == 1 and (self.stride == self.kernel or self.count == 1)

    @property
    def reach(self) -> int:
        """Length of the padded axis up to the end of the last window."""
        return (self.count - 1) * self.stride + self.span

    @property
    def missing(self) -> int:
        """Number of elements that the last window needs after the end of the axis."""
        return max(self.reach - self.before - self.length, 0)


def pool_windows(
    shape: Shape,
    *,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Pairs,
    dilation: Sizes | None = None,
    ceil_mode: bool = False,
) -> tuple[Windows, ...]:
    """The windows along the last axes of a shape, one for each number in `kernel_size`.

    Raises
    ------
    ShapeError
        If the shape has too few axes, or a window does not fit; it gives the formula.
    ArgumentError
        If a number is out of its range.
    """
    if dilation is None:
        dilation = (1,) * len(kernel_size)
    _check_counts(kernel_size, stride=stride, padding=padding, dilation=dilation)
    lead, lengths = split_spatial_axes(shape, len(kernel_size))
    return tuple(
        [
            _along(length, kernel, step, before, after, spread, ceil_mode, len(lead) + number)
            for number, (length, kernel, step, (before, after), spread) in enumerate(
                zip(lengths, kernel_size, stride, padding, dilation, strict=True)
            )
        ]
    )


def pooled_shape(shape: Shape, plan: Sequence[Windows]) -> Shape:
    """Shape with one element for each window along the last axes."""
    return (*shape[: len(shape) - len(plan)], *[axis.count for axis in plan])


def split_spatial_axes(shape: Shape, count: int) -> tuple[Shape, Shape]:
    """Lengths of the leading axes and of the last `count` ones, of which none may be 0."""
    lead = len(shape) - count
    if count < 1 or lead < 0:
        raise ShapeError(
            f"{count} spatial axes of a tensor with {len(shape)} axes, of shape {shape}",
            hint="The spatial axes are the last ones; batch and channels come before them",
        )
    if 0 in shape[lead:]:
        raise ShapeError(
            f"axis {lead + shape[lead:].index(0)} of {shape} is spatial and has no elements",
            hint="Only axes before the spatial ones may be empty",
        )
    return shape[:lead], shape[lead:]


def unpooled_shape(shape: Shape, input_size: Sizes) -> Shape:
    """Shape of a pooled tensor with the lengths of the operand's spatial axes."""
    if not 0 < len(input_size) <= len(shape):
        raise ShapeError(f"an input_size of {input_size} for a gradient of shape {shape}")
    whole = (*shape[: len(shape) - len(input_size)], *input_size)
    split_spatial_axes(check_shape(whole), len(input_size))
    return whole


def check_pooled(shape: Shape, input_size: Sizes, plan: Sequence[Windows]) -> None:
    """Raise ShapeError unless a gradient has one element for each window."""
    expected = pooled_shape(unpooled_shape(shape, input_size), plan)
    if shape != expected:
        raise ShapeError(
            f"a gradient of shape {shape} where the windows of {input_size} give {expected}"
        )


def _check_counts(kernel_size: Sizes, **others: Sequence[object]) -> None:
    for name, values in others.items():
        if len(values) != len(kernel_size):
            raise ArgumentError(
                f"{len(values)} values of {name} for a kernel with {len(kernel_size)} axes",
                hint="Give one for each spatial axis",
            )


@functools.lru_cache(maxsize=1024)
def _along(
    length: int,
    kernel: int,
    stride: int,
    before: int,
    after: int,
    dilation: int,
    ceil_mode: bool,
    axis: int,
) -> Windows:
    for name, value in (("kernel_size", kernel), ("stride", stride), ("dilation", dilation)):
        if value < 1:
            raise ArgumentError(f"{name} is {value} along axis {axis}", hint="Use 1 or more")
    if not (0 <= before <= kernel // 2 and 0 <= after <= kernel // 2):
        raise ArgumentError(
            f"padding is {(before, after)} along axis {axis} where the kernel has {kernel}",
            hint=f"Padding is at least 0 and at most half the kernel, {kernel // 2}",
        )
    room = length + before + after - dilation * (kernel - 1) - 1
    count = (room + (stride - 1 if ceil_mode else 0)) // stride + 1
    if ceil_mode and (count - 1) * stride >= length + before:
        count -= 1  # the last window would start in the padding after the axis
    if count < 1:
        rounded = "ceil" if ceil_mode else "floor"
        raise ShapeError(
            f"no window fits axis {axis}: {rounded}((length + padding - dilation * (kernel - 1) "
            f"- 1) / stride) + 1 = {rounded}(({length} + {before + after} - {dilation} * "
            f"({kernel} - 1) - 1) / {stride}) + 1 = {count}",
            hint="Use a smaller kernel or dilation",
        )
    # A dilated window may step over a short axis, from the padding before it to that after it.
    for number in range(min(count, -(-before // stride)) if dilation > length else 0):
        if (number * stride - before) % dilation >= length:
            raise ShapeError(
                f"window {number} along axis {axis} holds nothing but padding: its indices "
                f"{number} * stride - padding + j * dilation = {number * stride - before} + j * "
                f"{dilation} for j < {kernel} miss all of [0, {length})",
                hint="Use less padding or dilation",
            )
    return Windows(length, kernel, stride, before, after, dilation, count)
