"""Pooling: the maximum, mean or norm of windows, or of as many parts as are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from burn.docstrings import documented_as
from burn.nn import functional as F
from burn.nn.module import Module

if TYPE_CHECKING:
    from collections.abc import Callable

    from burn.tensor.tensor import Tensor

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]

PerAxis: TypeAlias = int | tuple[int, ...]
Padding: TypeAlias = int | tuple[int | tuple[int, int], ...]


class _MaxPool(Module):
    """What layers of maxima share."""

    _function: ClassVar[Callable[..., Tensor]]
    _with_indices: ClassVar[Callable[..., Any]]

    def __init__(
        self,
        kernel_size: PerAxis,
        stride: PerAxis | None = None,
        padding: Padding = 0,
        dilation: PerAxis = 1,
        *,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        self.kernel_size, self.stride = kernel_size, stride
        self.padding, self.dilation = padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, x: Tensor) -> Any:
        """The maxima; a named tuple of values and indices with `return_indices`."""
        function = self._with_indices if self.return_indices else self._function
        return function(
            x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode
        )


class MaxPool1d(_MaxPool):
    """`MaxPool2d` of signals, of shape (N, C, L).

    Examples
    --------
    >>> import burn
    >>> burn.nn.MaxPool1d(2)(burn.ones((8, 3, 6))).shape
    (8, 3, 3)
    """

    _function = staticmethod(F.max_pool1d)
    _with_indices = staticmethod(F.max_pool1d_with_indices)


@documented_as(F.max_pool2d)
class MaxPool2d(_MaxPool):
    """The maximum of each window of images, of shape (N, C, H, W).

    The other parameters are those of `burn.nn.functional.max_pool2d`.

    Parameters
    ----------
    return_indices : bool
        Whether the indices of the maxima are returned, too.

    Examples
    --------
    >>> import burn
    >>> burn.nn.MaxPool2d(3, stride=2, padding=1)(burn.ones((8, 3, 6, 6))).shape
    (8, 3, 3, 3)
    """

    _function = staticmethod(F.max_pool2d)
    _with_indices = staticmethod(F.max_pool2d_with_indices)


class MaxPool3d(_MaxPool):
    """`MaxPool2d` of volumes, of shape (N, C, D, H, W).

    Examples
    --------
    >>> import burn
    >>> burn.nn.MaxPool3d(2)(burn.ones((8, 3, 4, 4, 4))).shape
    (8, 3, 2, 2, 2)
    """

    _function = staticmethod(F.max_pool3d)
    _with_indices = staticmethod(F.max_pool3d_with_indices)


class _MaxUnpool(Module):
    """What layers share that put maxima back."""

    _function: ClassVar[Callable[..., Tensor]]

    def __init__(
        self, kernel_size: PerAxis, stride: PerAxis | None = None, padding: Padding = 0
    ) -> None:
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def forward(
        self, x: Tensor, indices: Tensor, output_size: tuple[int, ...] | None = None
    ) -> Tensor:
        """The maxima at their indices, and zeros; `output_size` is the shape before the pooling."""
        return self._function(x, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpool):
    """`MaxUnpool2d` of signals, of shape (N, C, L).

    Examples
    --------
    >>> import burn
    >>> pooled = burn.nn.MaxPool1d(2, return_indices=True)(burn.ones((8, 3, 6)))
    >>> burn.nn.MaxUnpool1d(2)(*pooled).shape
    (8, 3, 6)
    """

    _function = staticmethod(F.max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """The inverse of `MaxPool2d` but for the elements that were no maximum, which are 0.

    Parameters
    ----------
    kernel_size, stride, padding
        As of the `MaxPool2d`, which returns the indices too.

    Examples
    --------
    >>> import burn
    >>> pooled = burn.nn.MaxPool2d(2, return_indices=True)(burn.ones((8, 3, 6, 7)))
    >>> burn.nn.MaxUnpool2d(2)(*pooled, output_size=(6, 7)).shape
    (8, 3, 6, 7)
    """

    _function = staticmethod(F.max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """`MaxUnpool2d` of volumes, of shape (N, C, D, H, W).

    Examples
    --------
    >>> import burn
    >>> pooled = burn.nn.MaxPool3d(2, return_indices=True)(burn.ones((8, 3, 4, 4, 4)))
    >>> burn.nn.MaxUnpool3d(2)(*pooled).shape
    (8, 3, 4, 4, 4)
    """

    _function = staticmethod(F.max_unpool3d)


class _LPPool(Module):
    """What layers of norms share."""

    _function: ClassVar[Callable[..., Tensor]]

    def __init__(
        self,
        norm_type: float,
        kernel_size: PerAxis,
        stride: PerAxis | None = None,
        *,
        ceil_mode: bool = False,
    ) -> None:
        self.norm_type, self.kernel_size = norm_type, kernel_size
        self.stride, self.ceil_mode = stride, ceil_mode

    def forward(self, x: Tensor) -> Tensor:
        """The norms."""
        return self._function(x, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class LPPool1d(_LPPool):
    """`LPPool2d` of signals, of shape (N, C, L).

    Examples
    --------
    >>> import burn
    >>> burn.nn.LPPool1d(2, 3)(burn.ones((8, 3, 6))).shape
    (8, 3, 2)
    """

    _function = staticmethod(F.lp_pool1d)


@documented_as(F.lp_pool2d)
class LPPool2d(_LPPool):
    """The norm of each window of images, of shape (N, C, H, W); see `burn.nn.functional.lp_pool2d`.

    Examples
    --------
    >>> import burn
    >>> burn.nn.LPPool2d(2, 3, stride=2)(burn.ones((8, 3, 7, 5))).shape
    (8, 3, 3, 2)
    """

    _function = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPool):
    """`LPPool2d` of volumes, of shape (N, C, D, H, W).

    Examples
    --------
    >>> import burn
    >>> burn.nn.LPPool3d(2, 2)(burn.ones((8, 3, 4, 4, 4))).shape
    (8, 3, 2, 2, 2)
    """

    _function = staticmethod(F.lp_pool3d)


class _AvgPool(Module):
    """What layers of means share."""

    _function: ClassVar[Callable[..., Tensor]]

    def __init__(
        self,
        kernel_size: PerAxis,
        stride: PerAxis | None = None,
        padding: Padding = 0,
        *,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
        dilation: PerAxis = 1,
    ) -> None:
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad
        self.divisor_override, self.dilation = divisor_override, dilation

    def forward(self, x: Tensor) -> Tensor:
        """The means."""
        return self._function(
            x,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
            self.dilation,
        )


class AvgPool1d(_AvgPool):
    """`AvgPool2d` of signals, of shape (N, C, L).

    Examples
    --------
    >>> import burn
    >>> burn.nn.AvgPool1d(2)(burn.ones((8, 3, 6))).shape
    (8, 3, 3)
    """

    _function = staticmethod(F.avg_pool1d)


@documented_as(F.avg_pool2d)
class AvgPool2d(_AvgPool):
    """The mean of each window of images, of shape (N, C, H, W).

    The other parameters are those of `burn.nn.functional.avg_pool2d`.

    Examples
    --------
    >>> import burn
    >>> burn.nn.AvgPool2d(2)(burn.ones((8, 3, 6, 6))).shape
    (8, 3, 3, 3)
    """

    _function = staticmethod(F.avg_pool2d)


class AvgPool3d(_AvgPool):
    """`AvgPool2d` of volumes, of shape (N, C, D, H, W).

    Examples
    --------
    >>> import burn
    >>> burn.nn.AvgPool3d(2)(burn.ones((8, 3, 4, 4, 4))).shape
    (8, 3, 2, 2, 2)
    """

    _function = staticmethod(F.avg_pool3d)


class _AdaptivePool(Module):
    """What layers share that give a number of windows."""

    _function: ClassVar[Callable[..., Tensor]]

    def __init__(self, output_size: Any) -> None:
        self.output_size = output_size

    def forward(self, x: Tensor) -> Tensor:
        """Shape (N, C, *output_size)."""
        return self._function(x, self.output_size)


class AdaptiveAvgPool1d(_AdaptivePool):
    """`AdaptiveAvgPool2d` of signals, of shape (N, C, L).

    Examples
    --------
    >>> import burn
    >>> burn.nn.AdaptiveAvgPool1d(2)(burn.ones((8, 3, 7))).shape
    (8, 3, 2)
    """

    _function = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptivePool):
    """The means of as many windows of images, of shape (N, C, H, W), as are asked for.

    Parameters
    ----------
    output_size : int or tuple of int
        Number of windows along the spatial axes.

    Examples
    --------
    >>> import burn
    >>> burn.nn.AdaptiveAvgPool2d(1)(burn.ones((8, 3, 7, 5))).shape
    (8, 3, 1, 1)
    """

    _function = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptivePool):
    """`AdaptiveAvgPool2d` of volumes, of shape (N, C, D, H, W).

    Examples
    --------
    >>> import burn
    >>> burn.nn.AdaptiveAvgPool3d((1, 2, 2))(burn.ones((8, 3, 4, 4, 4))).shape
    (8, 3, 1, 2, 2)
    """

    _function = staticmethod(F.adaptive_avg_pool3d)


class _AdaptiveMaxPool(Module):
    """What layers share that give a number of maxima."""

    _function: ClassVar[Callable[..., Tensor]]
    _with_indices: ClassVar[Callable[..., Any]]

    def __init__(self, output_size: Any, *, return_indices: bool = False) -> None:
        self.output_size, self.return_indices = output_size, return_indices

    def forward(self, x: Tensor) -> Any:
        """Shape (N, C, *output_size); a named tuple of values and indices with `return_indices`."""
        function = self._with_indices if self.return_indices else self._function
        return function(x, self.output_size)


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """`AdaptiveMaxPool2d` of signals, of shape (N, C, L).

    Examples
    --------
    >>> import burn
    >>> burn.nn.AdaptiveMaxPool1d(2)(burn.ones((8, 3, 7))).shape
    (8, 3, 2)
    """

    _function = staticmethod(F.adaptive_max_pool1d)
    _with_indices = staticmethod(F.adaptive_max_pool1d_with_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The maxima of as many windows of images, of shape (N, C, H, W), as are asked for.

    Parameters
    ----------
    output_size : int or tuple of int
        Number of windows along the spatial axes.
    return_indices : bool
        Whether the indices of the maxima are returned, too.

    Examples
    --------
    >>> import burn
    >>> burn.nn.AdaptiveMaxPool2d((2, 1))(burn.ones((8, 3, 7, 5))).shape
    (8, 3, 2, 1)
    """

    _function = staticmethod(F.adaptive_max_pool2d)
    _with_indices = staticmethod(F.adaptive_max_pool2d_with_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """`AdaptiveMaxPool2d` of volumes, of shape (N, C, D, H, W).

    Examples
    --------
    >>> import burn
    >>> burn.nn.AdaptiveMaxPool3d(1)(burn.ones((8, 3, 4, 4, 4))).shape
    (8, 3, 1, 1, 1)
    """

    _function = staticmethod(F.adaptive_max_pool3d)
    _with_indices = staticmethod(F.adaptive_max_pool3d_with_indices)
