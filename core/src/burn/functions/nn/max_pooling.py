"""Largest elements of windows that slide over signals, images and volumes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burn.docstrings import documented_as
from burn.functions import calls
from burn.functions.nn._spatial_arguments import Padding, PerAxis, pooling_attributes
from burn.functions.normalize import check_tensor
from burn.functions.searching import ValuesAndIndices
from burn.functions.spatial_words import SIGNALS, VOLUMES

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
]


def max_pool2d(
    x: Tensor,
    /,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: Padding = 0,
    dilation: PerAxis = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """Largest element of each window of images.

    Parameters
    ----------
    x : Tensor, shape (..., H, W)
        Images, of floats or integers.
    kernel_size : int or tuple of int
        Height and width of a window.
    stride : int or tuple of int, optional
        Distance between neighbouring windows; `kernel_size` by default.
    padding : int, or tuple of int or of pairs of int
        Number of elements added at both ends of each axis, at most half of `kernel_size`; a pair
        has those before and after. They are less than every element.
    dilation : int or tuple of int
        Distance between the elements of a window.
    ceil_mode : bool
        Whether a last window that exceeds the padded image counts, if it starts within the image
        or the padding before it.

    Returns
    -------
    Tensor, shape (..., rows, columns)
        Along each axis ``floor((length + padding - dilation * (kernel_size - 1) - 1) / stride) +
        1`` elements, rounded up with `ceil_mode`; padding is that of both ends. NaN is the
        largest, and of equal elements the first has the gradient.

    Raises
    ------
    ShapeError
        If no window fits, or one has padding only.
    ArgumentError
        If a number is out of its range.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.reshape(burn.arange(16, device="cpu"), (1, 1, 4, 4))
    >>> F.max_pool2d(x, 2).tolist()
    [[[[5, 7], [13, 15]]]]
    """
    return _max_pool("max_pool2d", 2, x, kernel_size, stride, padding, dilation, ceil_mode)


@documented_as(max_pool2d, SIGNALS)
def max_pool1d(
    x: Tensor,
    /,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: Padding = 0,
    dilation: PerAxis = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """Largest element of each window of signals.

    The parameters are those of `max_pool2d`, with `x` of shape (..., L).

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> F.max_pool1d(burn.asarray([1.0, 3.0, 2.0, 0.0], device="cpu"), 2).tolist()
    [3.0, 2.0]
    """
    return _max_pool("max_pool1d", 1, x, kernel_size, stride, padding, dilation, ceil_mode)


@documented_as(max_pool2d, VOLUMES)
def max_pool3d(
    x: Tensor,
    /,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: Padding = 0,
    dilation: PerAxis = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """Largest element of each window of volumes.

    The parameters are those of `max_pool2d`, with `x` of shape (..., D, H, W).

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.reshape(burn.arange(8, device="cpu"), (2, 2, 2))
    >>> F.max_pool3d(x, 2).tolist()
    [[[7]]]
    """
    return _max_pool("max_pool3d", 3, x, kernel_size, stride, padding, dilation, ceil_mode)


@documented_as(max_pool2d)
def max_pool2d_with_indices(
    x: Tensor,
    /,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: Padding = 0,
    dilation: PerAxis = 1,
    ceil_mode: bool = False,
) -> ValuesAndIndices:
    """Largest element of each window of images, and its index.

    The parameters are those of `max_pool2d`.

    Returns
    -------
    ValuesAndIndices
        ``values`` as `max_pool2d` gives them, and ``indices`` of their shape, in the default
        integer dtype of the device: ``row * W + column``.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.asarray([[1.0, 3.0], [3.0, 2.0]], device="cpu")
    >>> F.max_pool2d_with_indices(x, 2).indices.tolist()
    [[1]]
    """
    return _max_pool_with_indices(
        "max_pool2d_with_indices", 2, x, kernel_size, stride, padding, dilation, ceil_mode
    )


@documented_as(max_pool2d_with_indices, SIGNALS)
def max_pool1d_with_indices(
    x: Tensor,
    /,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: Padding = 0,
    dilation: PerAxis = 1,
    ceil_mode: bool = False,
) -> ValuesAndIndices:
    """Largest element of each window of signals, and its index.

    The parameters are those of `max_pool2d`, with `x` of shape (..., L).

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.asarray([1.0, 3.0, 2.0, 0.0], device="cpu")
    >>> F.max_pool1d_with_indices(x, 2).indices.tolist()
    [1, 2]
    """
    return _max_pool_with_indices(
        "max_pool1d_with_indices", 1, x, kernel_size, stride, padding, dilation, ceil_mode
    )


@documented_as(max_pool2d_with_indices, VOLUMES)
def max_pool3d_with_indices(
    x: Tensor,
    /,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: Padding = 0,
    dilation: PerAxis = 1,
    ceil_mode: bool = False,
) -> ValuesAndIndices:
    """Largest element of each window of volumes, and its index.

    The parameters are those of `max_pool2d`, with `x` of shape (..., D, H, W).

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.reshape(burn.arange(8, device="cpu"), (2, 2, 2))
    >>> F.max_pool3d_with_indices(x, 2).indices.tolist()
    [[[7]]]
    """
    return _max_pool_with_indices(
        "max_pool3d_with_indices", 3, x, kernel_size, stride, padding, dilation, ceil_mode
    )


def _max_pool(operation: str, axis_count: int, x: Tensor, *arguments: Any) -> Tensor:
    return calls.max_pool(x, **_attributes(operation, axis_count, *arguments))


def _max_pool_with_indices(
    operation: str, axis_count: int, x: Tensor, *arguments: Any
) -> ValuesAndIndices:
    attributes = _attributes(operation, axis_count, *arguments)
    check_tensor(x, "x", operation)
    dtype = x.device.settings.int_dtype
    pooled = calls.max_pool_with_indices(x, index_dtype=dtype, **attributes)
    return ValuesAndIndices(*pooled)


def _attributes(
    operation: str,
    axis_count: int,
    kernel_size: PerAxis,
    stride: PerAxis | None,
    padding: Padding,
    dilation: PerAxis,
    ceil_mode: bool,
) -> dict[str, Any]:
    return pooling_attributes(
        operation, axis_count, kernel_size, stride, padding, ceil_mode, dilation=dilation
    )
