"""Means of windows that slide over signals, images and volumes, or that cover them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.docstrings import documented_as
from burn.functions import calls
from burn.functions.nn._spatial_arguments import OutputSize, Padding, PerAxis, adaptive_sizes
from burn.functions.nn._window_means import window_means
from burn.functions.spatial_words import SIGNALS, VOLUMES

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
]


def avg_pool2d(
    x: Tensor,
    /,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: Padding = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    dilation: PerAxis = 1,
) -> Tensor:
    """Mean of each window of images.

    Parameters
    ----------
    x : Tensor, shape (..., H, W)
        Images, of floats.
    kernel_size : int or tuple of int
        Height and width of a window.
    stride : int or tuple of int, optional
        Distance between neighbouring windows; `kernel_size` by default.
    padding : int, or tuple of int or of pairs of int
        Number of zeros at both ends of each axis, at most half of `kernel_size`; a pair has those
        before and after.
    ceil_mode : bool
        Whether a last window that exceeds the padded image counts, if it starts within the image
        or the padding before it.
    count_include_pad : bool
        Whether a mean counts the padding. Elements beyond the padding never count.
    divisor_override : int, optional
        What sums are divided by, in place of the number of elements that count.
    dilation : int or tuple of int
        Distance between neighbouring elements of a window.

    Returns
    -------
    Tensor, shape (..., rows, columns)
        Along each axis ``floor((length + padding - dilation * (kernel_size - 1) - 1) / stride) +
        1`` elements, rounded up with `ceil_mode`; padding is that of both ends.

    Raises
    ------
    ShapeError
        If no window fits, or one has padding only.
    ArgumentError
        If a number is out of its range.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.asarray([[1.0, 2.0], [3.0, 6.0]], device="cpu")
    >>> F.avg_pool2d(x, 2).tolist()
    [[3.0]]
    """
    return window_means(
        "avg_pool2d",
        2,
        x,
        kernel_size,
        stride,
        padding,
        ceil_mode,
        count_include_pad,
        divisor_override,
        dilation,
    )


@documented_as(avg_pool2d, SIGNALS)
def avg_pool1d(
    x: Tensor,
    /,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: Padding = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    dilation: PerAxis = 1,
) -> Tensor:
    """Mean of each window of signals.

    The parameters are those of `avg_pool2d`, with `x` of shape (..., L).

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> F.avg_pool1d(burn.asarray([1.0, 3.0, 2.0, 0.0], device="cpu"), 2).tolist()
    [2.0, 1.0]
    """
    return window_means(
        "avg_pool1d",
        1,
        x,
        kernel_size,
        stride,
        padding,
        ceil_mode,
        count_include_pad,
        divisor_override,
        dilation,
    )


@documented_as(avg_pool2d, VOLUMES)
def avg_pool3d(
    x: Tensor,
    /,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: Padding = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    dilation: PerAxis = 1,
) -> Tensor:
    """Mean of each window of volumes.

    The parameters are those of `avg_pool2d`, with `x` of shape (..., D, H, W).

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.reshape(burn.arange(8.0, device="cpu"), (2, 2, 2))
    >>> F.avg_pool3d(x, 2).tolist()
    [[[3.5]]]
    """
    return window_means(
        "avg_pool3d",
        3,
        x,
        kernel_size,
        stride,
        padding,
        ceil_mode,
        count_include_pad,
        divisor_override,
        dilation,
    )


def adaptive_avg_pool2d(x: Tensor, /, output_size: OutputSize) -> Tensor:
    """Means of a given number of windows that together cover images.

    Parameters
    ----------
    x : Tensor, shape (..., H, W)
        Images, of floats.
    output_size : int, or tuple of int or None
        Number of rows and columns; None keeps that of `x`.

    Returns
    -------
    Tensor, shape (..., rows, columns)
        Window i of n along an axis of length L has the elements from ``floor(i * L / n)`` up to,
        but without, ``ceil((i + 1) * L / n)``.

    Raises
    ------
    ShapeError
        If `x` has too few axes.
    ArgumentError
        If `output_size` has another number of values, or a negative one.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.asarray([[1.0, 2.0, 3.0], [3.0, 4.0, 5.0]], device="cpu")
    >>> F.adaptive_avg_pool2d(x, (1, 2)).tolist()
    [[2.5, 3.5]]
    """
    return _adaptive(x, output_size, 2, "adaptive_avg_pool2d")


@documented_as(adaptive_avg_pool2d, SIGNALS)
def adaptive_avg_pool1d(x: Tensor, /, output_size: OutputSize) -> Tensor:
    """Means of a given number of windows that together cover signals.

    The parameters are those of `adaptive_avg_pool2d`, with `x` of shape (..., L).

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> F.adaptive_avg_pool1d(burn.asarray([1.0, 2.0, 3.0], device="cpu"), 2).tolist()
    [1.5, 2.5]
    """
    return _adaptive(x, output_size, 1, "adaptive_avg_pool1d")


@documented_as(adaptive_avg_pool2d, VOLUMES)
def adaptive_avg_pool3d(x: Tensor, /, output_size: OutputSize) -> Tensor:
    """Means of a given number of windows that together cover volumes.

    The parameters are those of `adaptive_avg_pool2d`, with `x` of shape (..., D, H, W).

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.reshape(burn.arange(8.0, device="cpu"), (2, 2, 2))
    >>> F.adaptive_avg_pool3d(x, 1).tolist()
    [[[3.5]]]
    """
    return _adaptive(x, output_size, 3, "adaptive_avg_pool3d")


def _adaptive(x: Tensor, output_size: OutputSize, axis_count: int, operation: str) -> Tensor:
    sizes = adaptive_sizes(x, output_size, axis_count, operation)
    return calls.adaptive_avg_pool(x, output_size=sizes)
