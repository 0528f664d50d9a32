"""Pooling: largest and mean elements of windows that slide over images, signals and volumes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from burn.dispatch import unary
from burn.functions.common import dispatch
from burn.functions.nn._spatial_arguments import Padding, PerAxis, as_padding, per_axis
from burn.functions.normalize import rank_of
from burn.functions.searching import ValuesAndIndices

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
]

Lengths: TypeAlias = int | tuple[int | None, ...]

_max_pool = unary(dispatch, "max_pool")
_avg_pool = unary(dispatch, "avg_pool")
_adaptive_avg_pool = unary(dispatch, "adaptive_avg_pool")


def max_pool1d(
    x: Tensor,
    /,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: Padding = 0,
    dilation: PerAxis = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """Largest element of each window of signals (..., L); see `max_pool2d`."""
    plan = _Plan("max_pool1d", 1, kernel_size, stride, padding, ceil_mode)
    return _max_pool(x, **plan.dilated(dilation))


def max_pool2d(
    x: Tensor,
    /,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: Padding = 0,
    dilation: PerAxis = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """Largest element of each window.

    Parameters
    ----------
    x : Tensor, shape (..., H, W)
        Images, of floats or integers.
    kernel_size : int or tuple of int
        Height and width of a window.
    stride : int or tuple of int, optional
        Distances of the windows; `kernel_size` if left out.
    padding : int, or tuple of int or of pairs of int
        How much there is around an image, at most half of `kernel_size`; a pair says how much
        before and after. It is never the largest.
    dilation : int or tuple of int
        Distances of the places within a window.
    ceil_mode : bool
        Whether there is also a window that does not fit, if it starts in the image or in the
        padding before it.

    Returns
    -------
    Tensor, shape (..., rows, columns)
        Along each axis ``floor((length + padding - dilation * (kernel_size - 1) - 1) / stride) +
        1``, with `ceil_mode` rounded up. NaN is the largest; of equal elements the first has the
        gradient.

    Raises
    ------
    ShapeError
        If no window fits, or one holds nothing but padding.
    ArgumentError
        If a number is out of its range.

    Examples
    --------
    >>> import burn
    >>> from burn.nn import functional as F
    >>> x = burn.reshape(burn.arange(16, device="cpu"), (1, 1, 4, 4))
    >>> F.max_pool2d(x, 2).tolist()
    [[[[5, 7], [13, 15]]]]
    """
    plan = _Plan("max_pool2d", 2, kernel_size, stride, padding, ceil_mode)
    return _max_pool(x, **plan.dilated(dilation))


def max_pool3d(
    x: Tensor,
    /,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: Padding = 0,
    dilation: PerAxis = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """Largest element of each window of volumes (..., D, H, W); see `max_pool2d`."""
    plan = _Plan("max_pool3d", 3, kernel_size, stride, padding, ceil_mode)
    return _max_pool(x, **plan.dilated(dilation))


def max_pool1d_with_indices(
    x: Tensor,
    /,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: Padding = 0,
    dilation: PerAxis = 1,
    ceil_mode: bool = False,
) -> ValuesAndIndices:
    """Largest element of each window of signals (..., L) and its place; see `max_pool2d`."""
    plan = _Plan("max_pool1d_with_indices", 1, kernel_size, stride, padding, ceil_mode)
    return _with_indices(x, plan.operation, plan.dilated(dilation))


def max_pool2d_with_indices(
    x: Tensor,
    /,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: Padding = 0,
    dilation: PerAxis = 1,
    ceil_mode: bool = False,
) -> ValuesAndIndices:
    """Largest element of each window, and its place in the image; see `max_pool2d`.

    Returns
    -------
    ValuesAndIndices
        Places are numbered by rows, ``row * W + column``, in the device's default integer dtype.

    Examples
    --------
    >>> import burn
    >>> from burn.nn import functional as F
    >>> x = burn.asarray([[1.0, 3.0], [3.0, 2.0]], device="cpu")
    >>> F.max_pool2d_with_indices(x, 2).indices.tolist()
    [[1]]
    """
    plan = _Plan("max_pool2d_with_indices", 2, kernel_size, stride, padding, ceil_mode)
    return _with_indices(x, plan.operation, plan.dilated(dilation))


def max_pool3d_with_indices(
    x: Tensor,
    /,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: Padding = 0,
    dilation: PerAxis = 1,
    ceil_mode: bool = False,
) -> ValuesAndIndices:
    """Largest element of each window of volumes (..., D, H, W) and its place.

    See `max_pool2d`, and `max_pool2d_with_indices`.
    """
    plan = _Plan("max_pool3d_with_indices", 3, kernel_size, stride, padding, ceil_mode)
    return _with_indices(x, plan.operation, plan.dilated(dilation))


def avg_pool1d(
    x: Tensor,
    /,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: Padding = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Mean of each window of signals (..., L); see `avg_pool2d`."""
    plan = _Plan("avg_pool1d", 1, kernel_size, stride, padding, ceil_mode)
    return _avg_pool(x, count_include_pad=bool(count_include_pad), **plan.attributes)


def avg_pool2d(
    x: Tensor,
    /,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: Padding = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Mean of each window.

    Parameters
    ----------
    x : Tensor, shape (..., H, W)
        Images, of floats.
    kernel_size, stride, padding, ceil_mode
        As in `max_pool2d`.
    count_include_pad : bool
        Whether padding counts as elements that are 0, or not at all. What a window holds beyond
        the padding never counts.

    Returns
    -------
    Tensor, shape (..., rows, columns)
        As many as `max_pool2d` gives without dilation.

    Examples
    --------
    >>> import burn
    >>> from burn.nn import functional as F
    >>> x = burn.asarray([[1.0, 2.0], [3.0, 6.0]], device="cpu")
    >>> F.avg_pool2d(x, 2).tolist()
    [[3.0]]
    """
    plan = _Plan("avg_pool2d", 2, kernel_size, stride, padding, ceil_mode)
    return _avg_pool(x, count_include_pad=bool(count_include_pad), **plan.attributes)


def avg_pool3d(
    x: Tensor,
    /,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: Padding = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Mean of each window of volumes (..., D, H, W); see `avg_pool2d`."""
    plan = _Plan("avg_pool3d", 3, kernel_size, stride, padding, ceil_mode)
    return _avg_pool(x, count_include_pad=bool(count_include_pad), **plan.attributes)


def adaptive_avg_pool1d(x: Tensor, /, output_size: Lengths) -> Tensor:
    """Means of `output_size` windows over signals (..., L); see `adaptive_avg_pool2d`."""
    return _adapted(x, output_size, 1, "adaptive_avg_pool1d")


def adaptive_avg_pool2d(x: Tensor, /, output_size: Lengths) -> Tensor:
    """Means of as many windows as asked for, which together hold all elements.

    Parameters
    ----------
    x : Tensor, shape (..., H, W)
        Images, of floats.
    output_size : int, or tuple of int or None
        Number of rows and columns; None keeps that of `x`.

    Returns
    -------
    Tensor, shape (..., rows, columns)
        Window i of n along an axis of length L holds the places from ``floor(i * L / n)`` up to,
        but without, ``ceil((i + 1) * L / n)``.

    Examples
    --------
    >>> import burn
    >>> from burn.nn import functional as F
    >>> x = burn.asarray([[1.0, 2.0, 3.0], [3.0, 4.0, 5.0]], device="cpu")
    >>> F.adaptive_avg_pool2d(x, (1, 2)).tolist()
    [[2.5, 3.5]]
    """
    return _adapted(x, output_size, 2, "adaptive_avg_pool2d")


def adaptive_avg_pool3d(x: Tensor, /, output_size: Lengths) -> Tensor:
    """Means of as many windows as asked for over volumes (..., D, H, W).

    See `adaptive_avg_pool2d`.
    """
    return _adapted(x, output_size, 3, "adaptive_avg_pool3d")


def _with_indices(x: Tensor, operation: str, attributes: dict[str, Any]) -> ValuesAndIndices:
    rank_of(x, operation)
    dtype = x.device.settings.int_dtype
    found = dispatch.execute("max_pool_with_indices", x, index_dtype=dtype, **attributes)
    return ValuesAndIndices(*found)


def _adapted(x: Tensor, output_size: Lengths, count: int, operation: str) -> Tensor:
    rank = rank_of(x, operation)
    wanted: Any = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * count
    if len(wanted) == count <= rank:
        spatial = x.shape[rank - count :]
        wanted = [
            length if one is None else one for one, length in zip(wanted, spatial, strict=True)
        ]
    sizes = per_axis(tuple(wanted), count, "output_size", operation)
    return _adaptive_avg_pool(x, output_size=sizes)


class _Plan:
    """What a user says of windows, as attributes of an op: numbers for each spatial axis."""

    def __init__(
        self,
        operation: str,
        count: int,
        kernel_size: PerAxis,
        stride: PerAxis | None,
        padding: Padding,
        ceil_mode: bool,
    ) -> None:
        self.operation = operation
        self.count = count
        kernel = per_axis(kernel_size, count, "kernel_size", operation)
        self.attributes: dict[str, Any] = {
            "kernel_size": kernel,
            "stride": kernel if stride is None else per_axis(stride, count, "stride", operation),
            "padding": as_padding(padding, count, operation),
            "ceil_mode": bool(ceil_mode),
        }

    def dilated(self, dilation: PerAxis) -> dict[str, Any]:
        """The attributes, and how far apart the places of a window are."""
        spread = per_axis(dilation, self.count, "dilation", self.operation)
        return {**self.attributes, "dilation": spread}
