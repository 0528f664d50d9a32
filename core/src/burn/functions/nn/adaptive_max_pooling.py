"""Largest elements of windows that together cover signals, images and volumes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from burn.docstrings import documented_as
from burn.errors import ArgumentError, ShapeError
from burn.functions import calls
from burn.functions.creation import asarray
from burn.functions.indexing import take
from burn.functions.nn._spatial_arguments import OutputSize, adaptive_sizes
from burn.functions.normalize import check_tensor
from burn.functions.quantization import numbers_of
from burn.functions.searching import ValuesAndIndices
from burn.functions.spatial_words import SIGNALS, VOLUMES
from burn.ops.shapes import check_shape

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
]


def adaptive_max_pool2d(x: Tensor, /, output_size: OutputSize) -> Tensor:
    """Largest elements of a given number of windows that together cover images.

    Parameters
    ----------
    x : Tensor, shape (..., H, W)
        Images, of floats or integers.
    output_size : int, or tuple of int or None
        Number of rows and columns; None keeps that of `x`.

    Returns
    -------
    Tensor, shape (..., rows, columns)
        Window i of n along an axis of length L has the elements from ``floor(i * L / n)`` up to,
        but without, ``ceil((i + 1) * L / n)``. NaN is the largest, and of equal elements the first
        has the gradient.

    Raises
    ------
    ShapeError
        If `x` has too few axes, or the images are empty.
    ArgumentError
        If `output_size` has another number of values, or one less than 1.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.asarray([[1.0, 2.0, 3.0], [3.0, 4.0, 5.0]], device="cpu")
    >>> F.adaptive_max_pool2d(x, (1, 2)).tolist()
    [[4.0, 5.0]]
    """
    return _adaptive(x, output_size, 2, "adaptive_max_pool2d")


@documented_as(adaptive_max_pool2d, SIGNALS)
def adaptive_max_pool1d(x: Tensor, /, output_size: OutputSize) -> Tensor:
    """Largest elements of a given number of windows that together cover signals.

    The parameters are those of `adaptive_max_pool2d`, with `x` of shape (..., L).

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> F.adaptive_max_pool1d(burn.asarray([1.0, 2.0, 3.0], device="cpu"), 2).tolist()
    [2.0, 3.0]
    """
    return _adaptive(x, output_size, 1, "adaptive_max_pool1d")


@documented_as(adaptive_max_pool2d, VOLUMES)
def adaptive_max_pool3d(x: Tensor, /, output_size: OutputSize) -> Tensor:
    """Largest elements of a given number of windows that together cover volumes.

    The parameters are those of `adaptive_max_pool2d`, with `x` of shape (..., D, H, W).

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> F.adaptive_max_pool3d(burn.reshape(burn.arange(8, device="cpu"), (2, 2, 2)), 1).tolist()
    [[[7]]]
    """
    return _adaptive(x, output_size, 3, "adaptive_max_pool3d")


@documented_as(adaptive_max_pool2d)
def adaptive_max_pool2d_with_indices(x: Tensor, /, output_size: OutputSize) -> ValuesAndIndices:
    """Largest elements of a given number of windows that cover images, and their indices.

    The parameters are those of `adaptive_max_pool2d`.

    Returns
    -------
    ValuesAndIndices
        ``values`` as `adaptive_max_pool2d` gives them, and ``indices`` of their shape
        (..., rows, columns), in the default integer dtype of the device: ``row * W + column``.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.asarray([[1.0, 2.0, 3.0], [3.0, 4.0, 5.0]], device="cpu")
    >>> F.adaptive_max_pool2d_with_indices(x, (1, 2)).indices.tolist()
    [[4, 5]]
    """
    return _adaptive_with_indices(x, output_size, 2, "adaptive_max_pool2d_with_indices")


@documented_as(adaptive_max_pool2d_with_indices, SIGNALS)
def adaptive_max_pool1d_with_indices(x: Tensor, /, output_size: OutputSize) -> ValuesAndIndices:
    """Largest elements of a given number of windows that cover signals, and their indices.

    The parameters are those of `adaptive_max_pool2d`, with `x` of shape (..., L).

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.asarray([1.0, 2.0, 3.0], device="cpu")
    >>> F.adaptive_max_pool1d_with_indices(x, 2).indices.tolist()
    [1, 2]
    """
    return _adaptive_with_indices(x, output_size, 1, "adaptive_max_pool1d_with_indices")


@documented_as(adaptive_max_pool2d_with_indices, VOLUMES)
def adaptive_max_pool3d_with_indices(x: Tensor, /, output_size: OutputSize) -> ValuesAndIndices:
    """Largest elements of a given number of windows that cover volumes, and their indices.

    The parameters are those of `adaptive_max_pool2d`, with `x` of shape (..., D, H, W).

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.reshape(burn.arange(8, device="cpu"), (2, 2, 2))
    >>> F.adaptive_max_pool3d_with_indices(x, 1).indices.tolist()
    [[[7]]]
    """
    return _adaptive_with_indices(x, output_size, 3, "adaptive_max_pool3d_with_indices")


def _adaptive(x: Tensor, output_size: OutputSize, axis_count: int, operation: str) -> Tensor:
    x, _, windows = _side_by_side(x, output_size, axis_count, operation)
    return calls.max_pool(x, **windows)


def _adaptive_with_indices(
    x: Tensor, output_size: OutputSize, axis_count: int, operation: str
) -> ValuesAndIndices:
    check_tensor(x, "x", operation)
    lengths = x.shape[x.ndim - axis_count :] if x.ndim >= axis_count else ()
    wide, chosen, windows = _side_by_side(x, output_size, axis_count, operation)
    dtype = x.device.settings.int_dtype
    values, indices = calls.max_pool_with_indices(wide, index_dtype=dtype, **windows)
    if any(tensor is not None for tensor in chosen):
        # Indices of the windows side by side become those of `x`, axis by axis.
        rest, stride = indices, 1
        total: Tensor | None = None
        wide_lengths = wide.shape[wide.ndim - axis_count :]
        for length, wide_length, tensor in reversed(
            list(zip(lengths, wide_lengths, chosen, strict=True))
        ):
            number, rest = rest % wide_length, rest // wide_length
            if tensor is not None:
                number = take(tensor, number)
            total = number * stride if total is None else total + number * stride
            stride *= length
        indices = indices if total is None else total
    return ValuesAndIndices(values, indices)


def _side_by_side(
    x: Tensor, output_size: OutputSize, axis_count: int, operation: str
) -> tuple[Tensor, list[Tensor | None], dict[str, Any]]:
    """A tensor whose windows have one length and do not overlap.

    Also the index in `x` of each index along a spatial axis of it, or None for the same; and the
    windows, as attributes of a pooling.
    """
    sizes = adaptive_sizes(x, output_size, axis_count, operation)
    lead = x.ndim - axis_count
    if lead < 0 or 0 in x.shape[lead:]:
        raise ShapeError(
            f"x has shape {x.shape}",
            hint=f"It needs {axis_count} axes at the end, with elements",
            operation=operation,
        )
    if min(sizes) < 1:
        raise ArgumentError(
            f"output_size is {sizes}", hint="There is a window at least", operation=operation
        )
    check_shape((*x.shape[:lead], *sizes))
    x = numbers_of(x)
    kernel: list[int] = []
    indices_of_axes: list[Tensor | None] = []
    for axis, (length, count) in enumerate(zip(x.shape[lead:], sizes, strict=True), lead):
        width, chosen = length // count, None
        if length % count:
            indices = _window_indices(length, count)
            width = indices.shape[1]
            dtype = x.device.settings.int_dtype
            chosen = asarray(indices.reshape(-1), dtype=dtype, device=x.device.hardware)
            x = calls.select(x, chosen, axis=axis)
        kernel.append(width)
        indices_of_axes.append(chosen)
    windows = {
        "kernel_size": tuple(kernel),
        "stride": tuple(kernel),
        "padding": ((0, 0),) * axis_count,
        "dilation": (1,) * axis_count,
        "ceil_mode": False,
    }
    return x, indices_of_axes, windows


def _window_indices(length: int, count: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """The indices of each window, a row; a shorter one repeats its last element."""
    number = np.arange(count)[:, None]
    start, stop = number * length // count, -(-(number + 1) * length // count)
    return np.minimum(start + np.arange((stop - start).max()), stop - 1)
