"""Convolutions, transposed ones, and those in deformed windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from burn.errors import ArgumentError, ShapeError
from burn.functions.common import dispatch
from burn.functions.nn._spatial_arguments import Counts, Padding, pairs_per_axis, per_axis
from burn.functions.normalize import rank_of
from burn.functions.rearranging import pad

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "deform_conv2d",
]

NamedPadding: TypeAlias = Padding | Literal["same", "valid"]

_LAYOUTS = {1: "(N, C, L)", 2: "(N, C, H, W)", 3: "(N, C, D, H, W)"}


def conv1d(
    x: Tensor,
    weight: Tensor,
    /,
    bias: Tensor | None = None,
    *,
    stride: Counts = 1,
    padding: NamedPadding = 0,
    dilation: Counts = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution of signals (N, C, L) by a weight (O, C / groups, kernel); see `conv2d`."""
    return _convolved("conv1d", 1, x, weight, bias, stride, padding, dilation, groups)


def conv2d(
    x: Tensor,
    weight: Tensor,
    /,
    bias: Tensor | None = None,
    *,
    stride: Counts = 1,
    padding: NamedPadding = 0,
    dilation: Counts = 1,
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
        What is added to each output channel.
    stride : int or tuple of int
        Distances of the windows.
    padding : int, or tuple of int or of pairs of int, or {"same", "valid"}
        How many zeros there are around an image; a pair says how many before and after.
        ``"valid"`` is none, ``"same"`` as many as give ``ceil(length / stride)`` windows, of which
        the odd one is at the end.
    dilation : int or tuple of int
        Distances of the places within a window.
    groups : int
        In how many parts the channels are, each of which is convolved alone.

    Returns
    -------
    Tensor, shape (N, O, rows, columns)
        Along each axis ``floor((length + padding - dilation * (kernel - 1) - 1) / stride) + 1``.
        float16 and bfloat16 add up in float32.

    Raises
    ------
    ShapeError
        If the shapes do not fit each other, or the kernel is longer than the padded image.
    ArgumentError
        If a number is out of its range.

    Examples
    --------
    >>> import burn
    >>> from burn.nn import functional as F
    >>> x = burn.reshape(burn.arange(9.0, device="cpu"), (1, 1, 3, 3))
    >>> F.conv2d(x, burn.ones((1, 1, 2, 2), device="cpu")).tolist()
    [[[[8.0, 12.0], [20.0, 24.0]]]]
    """
    return _convolved("conv2d", 2, x, weight, bias, stride, padding, dilation, groups)


def conv3d(
    x: Tensor,
    weight: Tensor,
    /,
    bias: Tensor | None = None,
    *,
    stride: Counts = 1,
    padding: NamedPadding = 0,
    dilation: Counts = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution of volumes (N, C, D, H, W) by a weight (O, C / groups, *kernel); see `conv2d`."""
    return _convolved("conv3d", 3, x, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(
    x: Tensor,
    weight: Tensor,
    /,
    bias: Tensor | None = None,
    *,
    stride: Counts = 1,
    padding: Padding = 0,
    output_padding: Counts = 0,
    dilation: Counts = 1,
    groups: int = 1,
) -> Tensor:
    """Transposed convolution of signals (N, C, L) by (C, O / groups, kernel).

    See `conv_transpose2d`.
    """
    return _transposed(
        "conv_transpose1d", 1, x, weight, bias, stride, padding, output_padding, dilation, groups
    )


def conv_transpose2d(
    x: Tensor,
    weight: Tensor,
    /,
    bias: Tensor | None = None,
    *,
    stride: Counts = 1,
    padding: Padding = 0,
    output_padding: Counts = 0,
    dilation: Counts = 1,
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
        What is added to each output channel.
    stride : int or tuple of int
        Distances of the windows in the output.
    padding : int, or tuple of int or of pairs of int
        How much is cut off around the output; a pair says how much before and after.
    output_padding : int or tuple of int
        By how much the output is longer at its end; less than the stride or the dilation.
    dilation : int or tuple of int
        Distances of the places within a window.
    groups : int
        In how many parts the channels are, each of which is convolved alone.

    Returns
    -------
    Tensor, shape (N, O, rows, columns)
        Along each axis ``(length - 1) * stride - padding + dilation * (kernel - 1) +
        output_padding + 1``, where the padding of both ends counts.

    Raises
    ------
    ShapeError
        If the shapes do not fit each other, or nothing is left of an axis.
    ArgumentError
        If a number is out of its range.

    Examples
    --------
    >>> import burn
    >>> from burn.nn import functional as F
    >>> x = burn.asarray([[[[1.0, 2.0]]]], device="cpu")
    >>> F.conv_transpose2d(x, burn.ones((1, 1, 1, 3), device="cpu"), stride=(1, 2)).tolist()
    [[[[1.0, 1.0, 3.0, 2.0, 2.0]]]]
    """
    return _transposed(
        "conv_transpose2d", 2, x, weight, bias, stride, padding, output_padding, dilation, groups
    )


def conv_transpose3d(
    x: Tensor,
    weight: Tensor,
    /,
    bias: Tensor | None = None,
    *,
    stride: Counts = 1,
    padding: Padding = 0,
    output_padding: Counts = 0,
    dilation: Counts = 1,
    groups: int = 1,
) -> Tensor:
    """Transposed convolution of volumes (N, C, D, H, W) by (C, O / groups, *kernel).

    See `conv_transpose2d`.
    """
    return _transposed(
        "conv_transpose3d", 3, x, weight, bias, stride, padding, output_padding, dilation, groups
    )


def deform_conv2d(
    x: Tensor,
    offset: Tensor,
    weight: Tensor,
    /,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    stride: Counts = 1,
    padding: Padding = 0,
    dilation: Counts = 1,
    weight_groups: int = 1,
    offset_groups: int = 1,
) -> Tensor:
    """Convolution of images in deformed windows.

    J. Dai et al., "Deformable convolutional networks" (2017, arXiv:1703.06211); with a mask, X. Zhu
    et al., "Deformable ConvNets v2" (2019, arXiv:1811.11168).

    Parameters
    ----------
    x : Tensor, shape (N, C, H, W)
        A batch of images, float. Between its elements lies their bilinear interpolation, and
        outside zeros.
    offset : Tensor, shape (N, 2 * offset_groups * kernel height * kernel width, rows, columns)
        For each group, place of the kernel and window: by how much the place is moved down, and
        then across, in elements.
    weight : Tensor, shape (O, C / weight_groups, kernel height, kernel width)
        A kernel for each output channel and each channel of its group.
    mask : Tensor, shape (N, offset_groups * kernel height * kernel width, rows, columns), optional
        What each value is multiplied by; ones if left out.
    bias : Tensor, shape (O,), optional
        What is added to each output channel.
    stride, padding, dilation
        As in `conv2d`.
    weight_groups : int
        In how many parts the channels are, each of which is convolved alone.
    offset_groups : int
        In how many parts the channels are that move alike.

    Returns
    -------
    Tensor, shape (N, O, rows, columns)
        As many as `conv2d` gives.

    Raises
    ------
    ShapeError
        If the shapes do not fit each other, or the kernel is longer than the padded image.
    ArgumentError
        If a number is out of its range.

    Examples
    --------
    >>> import burn
    >>> from burn.nn import functional as F
    >>> x = burn.asarray([[[[1.0, 3.0]]]], device="cpu")
    >>> across = burn.asarray([[[[0.0, 0.0]], [[0.5, 0.5]]]], device="cpu")
    >>> F.deform_conv2d(x, across, burn.ones((1, 1, 1, 1), device="cpu")).tolist()
    [[[[2.0, 1.5]]]]
    """
    _check_batch("deform_conv2d", 2, x)
    return dispatch.execute(  # type: ignore[no-any-return]  # one output
        "deform_conv2d",
        x,
        offset,
        weight,
        mask,
        bias,
        stride=per_axis(stride, 2, "stride", "deform_conv2d"),
        padding=pairs_per_axis(padding, 2, "deform_conv2d"),
        dilation=per_axis(dilation, 2, "dilation", "deform_conv2d"),
        weight_groups=_number(weight_groups, "weight_groups", "deform_conv2d"),
        offset_groups=_number(offset_groups, "offset_groups", "deform_conv2d"),
    )


def _convolved(
    operation: str,
    count: int,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Counts,
    padding: NamedPadding,
    dilation: Counts,
    groups: int,
) -> Tensor:
    _check_batch(operation, count, x)
    steps = per_axis(stride, count, "stride", operation)
    spread = per_axis(dilation, count, "dilation", operation)
    if isinstance(padding, str):
        kernel = weight.shape[2:] if rank_of(weight, operation) == count + 2 else (1,) * count
        pairs = _named(padding, x.shape[2:], kernel, steps, spread, operation)
    else:
        pairs = pairs_per_axis(padding, count, operation)
    return dispatch.execute(  # type: ignore[no-any-return]  # one output
        "conv",
        x,
        weight,
        bias,
        stride=steps,
        padding=pairs,
        dilation=spread,
        groups=_number(groups, "groups", operation),
    )


def _named(
    padding: str,
    lengths: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    operation: str,
) -> tuple[tuple[int, int], ...]:
    """What a name for padding means."""
    if padding == "valid":
        return ((0, 0),) * len(lengths)
    if padding != "same":
        raise ArgumentError(
            f"padding is {padding!r}", hint='Use numbers, "same" or "valid"', operation=operation
        )
    pairs = []
    for length, places, step, spread in zip(lengths, kernel, stride, dilation, strict=True):
        windows = -(-length // max(step, 1))
        missing = max(0, (windows - 1) * step + spread * (places - 1) + 1 - length)
        pairs.append((missing // 2, missing - missing // 2))
    return tuple(pairs)


def _transposed(
    operation: str,
    count: int,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Counts,
    padding: Padding,
    output_padding: Counts,
    dilation: Counts,
    groups: int,
) -> Tensor:
    _check_batch(operation, count, x)
    steps = per_axis(stride, count, "stride", operation)
    spread = per_axis(dilation, count, "dilation", operation)
    extra = per_axis(output_padding, count, "output_padding", operation)
    # A length that the stride cannot mean is that of a tensor with zeros at its end. Under a
    # dilation larger than the stride the output may be longer by so much.
    behind = [
        more // step if 1 <= step <= more < wide else 0
        for step, more, wide in zip(steps, extra, spread, strict=True)
    ]
    if any(behind):
        x = pad(x, ((0, 0), (0, 0), *[(0, places) for places in behind]))
        extra = tuple(
            [more - places * step for more, places, step in zip(extra, behind, steps, strict=True)]
        )
    return dispatch.execute(  # type: ignore[no-any-return]  # one output
        "conv_transpose",
        x,
        weight,
        bias,
        stride=steps,
        padding=pairs_per_axis(padding, count, operation),
        output_padding=extra,
        dilation=spread,
        groups=_number(groups, "groups", operation),
    )


def _check_batch(operation: str, count: int, x: Tensor) -> None:
    """Refuse a tensor that is no batch."""
    rank = rank_of(x, operation)
    if rank == count + 2:
        return
    hint = "x[None] adds a batch of one" if rank == count + 1 else ""
    raise ShapeError(
        f"x has shape {tuple(x.shape)} where a batch {_LAYOUTS[count]} is needed",
        hint=hint,
        operation=operation,
    )


def _number(value: int, name: str, operation: str) -> int:
    return per_axis(value, 1, name, operation)[0]
