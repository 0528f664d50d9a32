"""Transposed convolutions of signals, images and volumes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.docstrings import documented_as
from burn.functions import calls
from burn.functions.nn._spatial_arguments import Padding, PerAxis, as_padding, check_batch, per_axis
from burn.functions.rearranging import pad
from burn.functions.spatial_words import SIGNALS, VOLUMES
from burn.ops.arguments import as_integer

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]


def conv_transpose2d(
    x: Tensor,
    weight: Tensor,
    /,
    bias: Tensor | None = None,
    *,
    stride: PerAxis = 1,
    padding: Padding = 0,
    output_padding: PerAxis = 0,
    dilation: PerAxis = 1,
    groups: int = 1,
) -> Tensor:
    """Transposed convolution of images: each element is spread over a window of the output.

    It is the adjoint of `conv2d` with the same weight and numbers, and so its gradient.

    Parameters
    ----------
    x : Tensor, shape (N, C, H, W)
        A batch of images, float.
    weight : Tensor, shape (C, O / groups, kernel height, kernel width)
        A kernel for each channel and each output channel of its group.
    bias : Tensor, shape (O,), optional
        Added to each output channel.
    stride : int or tuple of int
        Distance between neighbouring windows in the output.
    padding : int, or tuple of int or of pairs of int
        Number of elements cut off at both ends of each axis of the output; a pair has those before
        and after.
    output_padding : int or tuple of int
        Number of elements by which the output is longer at its end; less than the stride or the
        dilation.
    dilation : int or tuple of int
        Distance between the elements of a window.
    groups : int
        Number of groups of channels that are convolved separately.

    Returns
    -------
    Tensor, shape (N, O, rows, columns)
        Along each axis ``(length - 1) * stride - padding + dilation * (kernel - 1) +
        output_padding + 1`` elements, where padding is that of both ends.

    Raises
    ------
    ShapeError
        If the shapes do not fit each other, or no element is left of an axis.
    ArgumentError
        If a number is out of its range.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.asarray([[[[1.0, 2.0]]]], device="cpu")
    >>> F.conv_transpose2d(x, burn.ones((1, 1, 1, 3), device="cpu"), stride=(1, 2)).tolist()
    [[[[1.0, 1.0, 3.0, 2.0, 2.0]]]]
    """
    return _convolve_transposed(
        "conv_transpose2d", 2, x, weight, bias, stride, padding, output_padding, dilation, groups
    )


@documented_as(conv_transpose2d, SIGNALS)
def conv_transpose1d(
    x: Tensor,
    weight: Tensor,
    /,
    bias: Tensor | None = None,
    *,
    stride: PerAxis = 1,
    padding: Padding = 0,
    output_padding: PerAxis = 0,
    dilation: PerAxis = 1,
    groups: int = 1,
) -> Tensor:
    """Transposed convolution of signals: each element is spread over a window of the output.

    It is the adjoint of `conv1d` with the same weight and numbers, and so its gradient.

    The parameters are those of `conv_transpose2d`, with `x` of shape (N, C, L).

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.asarray([[[1.0, 2.0]]], device="cpu")
    >>> F.conv_transpose1d(x, burn.ones((1, 1, 3), device="cpu"), stride=2).tolist()
    [[[1.0, 1.0, 3.0, 2.0, 2.0]]]
    """
    return _convolve_transposed(
        "conv_transpose1d", 1, x, weight, bias, stride, padding, output_padding, dilation, groups
    )


@documented_as(conv_transpose2d, VOLUMES)
def conv_transpose3d(
    x: Tensor,
    weight: Tensor,
    /,
    bias: Tensor | None = None,
    *,
    stride: PerAxis = 1,
    padding: Padding = 0,
    output_padding: PerAxis = 0,
    dilation: PerAxis = 1,
    groups: int = 1,
) -> Tensor:
    """Transposed convolution of volumes: each element is spread over a window of the output.

    It is the adjoint of `conv3d` with the same weight and numbers, and so its gradient.

    The parameters are those of `conv_transpose2d`, with `x` of shape (N, C, D, H, W).

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.asarray([[[[[1.0, 2.0]]]]], device="cpu")
    >>> F.conv_transpose3d(x, burn.ones((1, 1, 1, 1, 3), device="cpu")).tolist()
    [[[[[1.0, 3.0, 3.0, 2.0]]]]]
    """
    return _convolve_transposed(
        "conv_transpose3d", 3, x, weight, bias, stride, padding, output_padding, dilation, groups
    )


def _convolve_transposed(
    operation: str,
    axis_count: int,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: PerAxis,
    padding: Padding,
    output_padding: PerAxis,
    dilation: PerAxis,
    groups: int,
) -> Tensor:
    check_batch(operation, axis_count, x)
    strides = per_axis(stride, axis_count, "stride", operation)
    dilations = per_axis(dilation, axis_count, "dilation", operation)
    extra = per_axis(output_padding, axis_count, "output_padding", operation)
    # The op takes an output padding below the stride. One below the dilation is allowed here, too:
    # whole strides of it are zeros at the end of x.
    zeros = [
        more // step if 1 <= step <= more < spread else 0
        for step, more, spread in zip(strides, extra, dilations, strict=True)
    ]
    if any(zeros):
        x = pad(x, ((0, 0), (0, 0), *[(0, count) for count in zeros]))
        extra = tuple(
            [more - count * step for more, count, step in zip(extra, zeros, strides, strict=True)]
        )
    return calls.conv_transpose(
        x,
        weight,
        bias,
        stride=strides,
        padding=as_padding(padding, axis_count, operation),
        output_padding=extra,
        dilation=dilations,
        groups=as_integer(groups, "groups", operation),
    )
