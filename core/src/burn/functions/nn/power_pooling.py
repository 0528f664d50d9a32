"""Norms of windows that slide over signals, images and volumes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from burn.docstrings import documented_as
from burn.dtype import float32
from burn.functions import calls
from burn.functions.elementwise import abs, equal
from burn.functions.nn._spatial_arguments import PerAxis, pooling_attributes
from burn.functions.normalize import as_float
from burn.functions.quantization import numbers_of
from burn.functions.searching import where
from burn.functions.spatial_words import SIGNALS, VOLUMES
from burn.ops.arguments import real_number

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["lp_pool1d", "lp_pool2d", "lp_pool3d"]


def lp_pool2d(
    x: Tensor,
    /,
    norm_type: float,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """``sum(abs(x) ** norm_type) ** (1 / norm_type)`` of each window of images.

    Parameters
    ----------
    x : Tensor, shape (..., H, W)
        Images; integers give the default float dtype.
    norm_type : float
        The order of the norm, above 0 and finite: with 1 the result is the sum of magnitudes.
    kernel_size : int or tuple of int
        Height and width of a window.
    stride : int or tuple of int, optional
        Distance between neighbouring windows; `kernel_size` by default.
    ceil_mode : bool
        Whether a last window that exceeds the image counts, if it starts within it. As in PyTorch
        its sum is scaled to the number of elements of a whole window.

    Returns
    -------
    Tensor, shape (..., rows, columns)
        Along each axis ``floor((length - kernel_size) / stride) + 1`` elements, rounded up with
        `ceil_mode`. The gradient of a window of zeros is 0.

    Raises
    ------
    ShapeError
        If no window fits.
    ArgumentError
        If a number is out of its range.

    Notes
    -----
    PyTorch does not take magnitudes, so that odd orders of negative numbers give other results, or
    NaN.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> F.lp_pool2d(burn.asarray([[1.0, 2.0], [4.0, -2.0]], device="cpu"), 2, 2).tolist()
    [[5.0]]
    """
    return _lp_pool(x, norm_type, kernel_size, stride, ceil_mode, 2)


@documented_as(lp_pool2d, SIGNALS)
def lp_pool1d(
    x: Tensor,
    /,
    norm_type: float,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """``sum(abs(x) ** norm_type) ** (1 / norm_type)`` of each window of signals.

    The parameters are those of `lp_pool2d`, with `x` of shape (..., L).

    Notes
    -----
    PyTorch does not take magnitudes, so that odd orders of negative numbers give other results, or
    NaN.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> F.lp_pool1d(burn.asarray([3.0, -4.0, 5.0, 12.0], device="cpu"), 2, 2).tolist()
    [5.0, 13.0]
    """
    return _lp_pool(x, norm_type, kernel_size, stride, ceil_mode, 1)


@documented_as(lp_pool2d, VOLUMES)
def lp_pool3d(
    x: Tensor,
    /,
    norm_type: float,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """``sum(abs(x) ** norm_type) ** (1 / norm_type)`` of each window of volumes.

    The parameters are those of `lp_pool2d`, with `x` of shape (..., D, H, W).

    Notes
    -----
    PyTorch does not take magnitudes, so that odd orders of negative numbers give other results, or
    NaN.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> F.lp_pool3d(burn.ones((1, 2, 2), device="cpu"), 2, (1, 2, 2)).tolist()
    [[[2.0]]]
    """
    return _lp_pool(x, norm_type, kernel_size, stride, ceil_mode, 3)


def _lp_pool(
    x: Tensor,
    norm_type: float,
    kernel_size: PerAxis,
    stride: PerAxis | None,
    ceil_mode: bool,
    axis_count: int,
) -> Tensor:
    operation = f"lp_pool{axis_count}d"
    x = numbers_of(as_float(x, operation))
    order = real_number(norm_type, "norm_type", operation, above=0.0, below=math.inf)
    windows = pooling_attributes(operation, axis_count, kernel_size, stride, 0, ceil_mode)
    dtype = x.dtype
    if dtype.itemsize < float32.itemsize:
        x = x.astype(float32)  # powers leave the range of 16 bits
    powers = x * x if order == 2.0 else abs(x) if order == 1.0 else abs(x) ** order
    means = calls.avg_pool(powers, count_include_pad=True, **windows)
    total = means * math.prod(windows["kernel_size"])
    if order != 1.0:
        zero = equal(total, 0.0)  # where the slope of the root is infinite
        total = where(zero, 0.0, where(zero, 1.0, total) ** (1.0 / order))
    result: Tensor = total.astype(dtype, copy=False)
    return result
