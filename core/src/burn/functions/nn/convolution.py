"""Convolutions of signals, images and volumes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from burn.docstrings import documented_as
from burn.errors import ArgumentError
from burn.functions import calls
from burn.functions.nn._spatial_arguments import (
    Padding,
    PerAxis,
    as_padding,
    check_batch,
    per_axis,
)
from burn.functions.normalize import rank_of
from burn.functions.spatial_words import SIGNALS, VOLUMES
from burn.ops.arguments import as_integer
from burn.public_calls import shown_value

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["conv1d", "conv2d", "conv3d"]

NamedPadding: TypeAlias = Padding | Literal["same", "valid"]


def conv2d(
    x: Tensor,
    weight: Tensor,
    /,
    bias: Tensor | None = None,
    *,
    stride: PerAxis = 1,
    padding: NamedPadding = 0,
    dilation: PerAxis = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution of images; the kernel is not flipped (cross-correlation).

    Parameters
    ----------
    x : Tensor, shape (N, C, H, W)
        A batch of images, float.
    weight : Tensor, shape (O, C / groups, kernel height, kernel width)
        A kernel for each output channel and each channel of its group.
    bias : Tensor, shape (O,), optional
        Added to each output channel.
    stride : int or tuple of int
        Distance between neighbouring windows.
    padding : int, or tuple of int or of pairs of int, or {"same", "valid"}
        Number of zeros at both ends of each axis; a pair has those before and after. ``"valid"``
        is none, ``"same"`` as many as give ``ceil(length / stride)`` windows, an odd one at the
        end.
    dilation : int or tuple of int
        Distance between the elements of a window.
    groups : int
        Number of groups of channels that are convolved separately.

    Returns
    -------
    Tensor, shape (N, O, rows, columns)
        Along each axis ``floor((length + padding - dilation * (kernel - 1) - 1) / stride) + 1``
        elements, where padding is that of both ends. float16 and bfloat16 add up in float32.

    Raises
    ------
    ShapeError
        If the shapes do not fit each other, or the kernel is longer than the padded image.
    ArgumentError
        If a number is out of its range.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.reshape(burn.arange(9.0, device="cpu"), (1, 1, 3, 3))
    >>> F.conv2d(x, burn.ones((1, 1, 2, 2), device="cpu")).tolist()
    [[[[8.0, 12.0], [20.0, 24.0]]]]
    """
    return _convolve("conv2d", 2, x, weight, bias, stride, padding, dilation, groups)


@documented_as(conv2d, SIGNALS)
def conv1d(
    x: Tensor,
    weight: Tensor,
    /,
    bias: Tensor | None = None,
    *,
    stride: PerAxis = 1,
    padding: NamedPadding = 0,
    dilation: PerAxis = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution of signals; the kernel is not flipped (cross-correlation).

    The parameters are those of `conv2d`, with `x` of shape (N, C, L).

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.asarray([[[1.0, 2.0, 4.0]]], device="cpu")
    >>> F.conv1d(x, burn.ones((1, 1, 2), device="cpu")).tolist()
    [[[3.0, 6.0]]]
    """
    return _convolve("conv1d", 1, x, weight, bias, stride, padding, dilation, groups)


@documented_as(conv2d, VOLUMES)
def conv3d(
    x: Tensor,
    weight: Tensor,
    /,
    bias: Tensor | None = None,
    *,
    stride: PerAxis = 1,
    padding: NamedPadding = 0,
    dilation: PerAxis = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution of volumes; the kernel is not flipped (cross-correlation).

    The parameters are those of `conv2d`, with `x` of shape (N, C, D, H, W).

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.ones((1, 1, 2, 2, 2), device="cpu")
    >>> F.conv3d(x, burn.ones((1, 1, 2, 2, 1), device="cpu")).tolist()
    [[[[[4.0, 4.0]]]]]
    """
    return _convolve("conv3d", 3, x, weight, bias, stride, padding, dilation, groups)


def _convolve(
    operation: str,
    axis_count: int,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: PerAxis,
    padding: NamedPadding,
    dilation: PerAxis,
    groups: int,
) -> Tensor:
    check_batch(operation, axis_count, x)
    strides = per_axis(stride, axis_count, "stride", operation)
    dilations = per_axis(dilation, axis_count, "dilation", operation)
    if isinstance(padding, str):
        rank = rank_of(weight, operation, "weight")
        kernel = weight.shape[2:] if rank == axis_count + 2 else (1,) * axis_count
        pairs = _named_padding(padding, x.shape[2:], kernel, strides, dilations, operation)
    else:
        pairs = as_padding(padding, axis_count, operation)
    return calls.conv(
        x,
        weight,
        bias,
        stride=strides,
        padding=pairs,
        dilation=dilations,
        groups=as_integer(groups, "groups", operation),
    )


def _named_padding(
    padding: str,
    lengths: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    operation: str,
) -> tuple[tuple[int, int], ...]:
    """The padding of each axis that a name stands for."""
    if padding == "valid":
        return ((0, 0),) * len(lengths)
    if padding != "same":
        raise ArgumentError(
            f"padding is {shown_value(padding)}",
            hint='Use numbers, "same" or "valid"',
            operation=operation,
        )
    pairs = []
    for length, size, stride, dilation in zip(lengths, kernel, strides, dilations, strict=True):
        windows = -(-length // max(stride, 1))
        missing = max(0, (windows - 1) * stride + dilation * (size - 1) + 1 - length)
        pairs.append((missing // 2, missing - missing // 2))
    return tuple(pairs)
