"""Images resized, padded, cut into patches, and their channels made pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from burn.docstrings import documented_as
from burn.errors import ArgumentError, ShapeError
from burn.functions.normalize import as_integers
from burn.functions.rearranging import pad
from burn.nn import functional as F
from burn.nn.module import Module

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "Fold",
    "Interpolate",
    "PixelShuffle",
    "PixelUnshuffle",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "Unfold",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]

PerAxis: TypeAlias = int | tuple[int, ...]
Padding: TypeAlias = int | tuple[int | tuple[int, int], ...]


@documented_as(F.interpolate)
class Interpolate(Module):
    """Signals, images or volumes resized by interpolation; see `burn.nn.functional.interpolate`.

    Examples
    --------
    >>> import burn
    >>> burn.nn.Interpolate(scale_factor=2, mode="bilinear")(burn.ones((8, 3, 4, 5))).shape
    (8, 3, 8, 10)
    """

    def __init__(
        self,
        size: PerAxis | None = None,
        scale_factor: float | tuple[float, ...] | None = None,
        mode: str = "nearest",
        *,
        align_corners: bool = False,
        recompute_scale_factor: bool = False,
        antialias: bool = False,
    ) -> None:
        self.size, self.scale_factor = size, scale_factor
        self.mode: Any = mode
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor
        self.antialias = antialias

    def forward(self, x: Tensor) -> Tensor:
        """Shape (N, C, ...), with the new lengths."""
        return F.interpolate(
            x,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            self.recompute_scale_factor,
            self.antialias,
        )


@documented_as(F.pixel_shuffle)
class PixelShuffle(Module):
    """Channels that become pixels; see `burn.nn.functional.pixel_shuffle`.

    Examples
    --------
    >>> import burn
    >>> burn.nn.PixelShuffle(2)(burn.ones((8, 12, 4, 5))).shape
    (8, 3, 8, 10)
    """

    def __init__(self, upscale_factor: int) -> None:
        self.upscale_factor = upscale_factor

    def forward(self, x: Tensor) -> Tensor:
        """Shape (..., C, H * r, W * r) for an input of shape (..., C * r * r, H, W)."""
        return F.pixel_shuffle(x, self.upscale_factor)


@documented_as(F.pixel_unshuffle)
class PixelUnshuffle(Module):
    """Pixels that become channels; see `burn.nn.functional.pixel_unshuffle`.

    Examples
    --------
    >>> import burn
    >>> burn.nn.PixelUnshuffle(2)(burn.ones((8, 3, 8, 10))).shape
    (8, 12, 4, 5)
    """

    def __init__(self, downscale_factor: int) -> None:
        self.downscale_factor = downscale_factor

    def forward(self, x: Tensor) -> Tensor:
        """Shape (..., C * r * r, H, W) for an input of shape (..., C, H * r, W * r)."""
        return F.pixel_unshuffle(x, self.downscale_factor)


@documented_as(F.unfold4d)
class Unfold(Module):
    """Windows of images as the columns of matrices; see `burn.nn.functional.unfold4d`.

    Examples
    --------
    >>> import burn
    >>> burn.nn.Unfold(2)(burn.ones((8, 3, 4, 4))).shape
    (8, 12, 9)
    """

    def __init__(
        self,
        kernel_size: PerAxis,
        dilation: PerAxis = 1,
        padding: Padding = 0,
        stride: PerAxis = 1,
    ) -> None:
        self.kernel_size, self.dilation = kernel_size, dilation
        self.padding, self.stride = padding, stride

    def forward(self, x: Tensor) -> Tensor:
        """Shape (N, C * kernel height * kernel width, windows) for images (N, C, H, W)."""
        return F.unfold4d(
            x,
            self.kernel_size,
            stride=self.stride,
            padding=self.padding,
            dilation=self.dilation,
        )


@documented_as(F.fold4d)
class Fold(Module):
    """Images to which the columns of `Unfold` add up; see `burn.nn.functional.fold4d`.

    The other parameters are those of the function.

    Parameters
    ----------
    padding : int, or tuple of int or of pairs of int
        Number of elements cut off at both ends of each axis.

    Examples
    --------
    >>> import burn
    >>> burn.nn.Fold(4, 2)(burn.ones((8, 12, 9))).shape
    (8, 3, 4, 4)
    """

    def __init__(
        self,
        output_size: PerAxis,
        kernel_size: PerAxis,
        dilation: PerAxis = 1,
        padding: Padding = 0,
        stride: PerAxis = 1,
    ) -> None:
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def forward(self, x: Tensor) -> Tensor:
        """Images (N, C, H, W) for shape (N, C * kernel height * kernel width, windows)."""
        return F.fold4d(
            x,
            self.output_size,
            self.kernel_size,
            stride=self.stride,
            padding=self.padding,
            dilation=self.dilation,
        )


class _Pad(Module):
    """What layers of padding share."""

    _axis_count: ClassVar[int]
    _mode: ClassVar[str]

    def __init__(self, padding: PerAxis) -> None:
        is_one = not isinstance(padding, (tuple, list))
        numbers = as_integers(padding, "padding", f"nn.{type(self).__name__}")
        self.padding: PerAxis = numbers[0] if is_one and len(numbers) == 1 else numbers
        if not isinstance(self.padding, int) and len(numbers) != 2 * self._axis_count:
            raise ArgumentError(
                f"padding is {padding!r}",
                hint=f"Give a number, or {2 * self._axis_count}: two for each axis, the last first",
                operation=f"nn.{type(self).__name__}",
            )

    def forward(self, x: Tensor) -> Tensor:
        """With more elements along the last axes."""
        return self._padded(x, 0.0)

    def _padded(self, x: Tensor, value: float) -> Tensor:
        given, count = self.padding, self._axis_count
        if len(x.shape) < count:
            raise ShapeError(
                f"an input of shape {x.shape} has fewer than {count} axes",
                operation=f"nn.{type(self).__name__}",
            )
        ends = [given] * 2 * count if isinstance(given, int) else given
        pairs = [(ends[2 * axis], ends[2 * axis + 1]) for axis in reversed(range(count))]
        widths = ((0, 0),) * (len(x.shape) - count) + tuple(pairs)
        return pad(x, widths, self._mode, constant_values=value)


class _ConstantPad(_Pad):
    """What layers share that add a number."""

    _mode = "constant"

    def __init__(self, padding: PerAxis, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, x: Tensor) -> Tensor:
        """With more elements along the last axes."""
        return self._padded(x, self.value)


class ConstantPad1d(_ConstantPad):
    """`ConstantPad2d` of the last axis: (before, behind)."""

    _axis_count = 1


class ConstantPad2d(_ConstantPad):
    """A number added at the ends of the last two axes.

    Parameters
    ----------
    padding : int or tuple of int
        How many elements: at each end, or (left, right, top, bottom) as in PyTorch, where
        `burn.pad` has pairs in the order of the axes.
    value : float
        The number.

    Examples
    --------
    >>> import burn
    >>> burn.nn.ConstantPad2d((1, 0, 2, 0), 0.5)(burn.ones((8, 3, 4, 4))).shape
    (8, 3, 6, 5)
    """

    _axis_count = 2


class ConstantPad3d(_ConstantPad):
    """`ConstantPad2d` of three axes: (left, right, top, bottom, front, back)."""

    _axis_count = 3


class ZeroPad1d(_Pad):
    """`ZeroPad2d` of the last axis: (before, behind)."""

    _axis_count, _mode = 1, "constant"


class ZeroPad2d(_Pad):
    """Zeros added at the ends of the last two axes.

    Parameters
    ----------
    padding : int or tuple of int
        How many elements: at each end, or (left, right, top, bottom).

    Examples
    --------
    >>> import burn
    >>> burn.nn.ZeroPad2d(1)(burn.ones((8, 3, 4, 4))).shape
    (8, 3, 6, 6)
    """

    _axis_count, _mode = 2, "constant"


class ZeroPad3d(_Pad):
    """`ZeroPad2d` of three axes: (left, right, top, bottom, front, back)."""

    _axis_count, _mode = 3, "constant"


class ReflectionPad1d(_Pad):
    """`ReflectionPad2d` of the last axis: (before, behind)."""

    _axis_count, _mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """The input mirrored at the ends of the last two axes, without its edges.

    Parameters
    ----------
    padding : int or tuple of int
        How many elements: at each end, or (left, right, top, bottom).

    Examples
    --------
    >>> import burn
    >>> burn.nn.ReflectionPad2d(1)(burn.ones((8, 3, 4, 4))).shape
    (8, 3, 6, 6)
    """

    _axis_count, _mode = 2, "reflect"


class ReflectionPad3d(_Pad):
    """`ReflectionPad2d` of three axes: (left, right, top, bottom, front, back)."""

    _axis_count, _mode = 3, "reflect"


class ReplicationPad1d(_Pad):
    """`ReplicationPad2d` of the last axis: (before, behind)."""

    _axis_count, _mode = 1, "edge"


class ReplicationPad2d(_Pad):
    """The nearest elements repeated at the ends of the last two axes.

    Parameters
    ----------
    padding : int or tuple of int
        How many elements: at each end, or (left, right, top, bottom).

    Examples
    --------
    >>> import burn
    >>> burn.nn.ReplicationPad2d(1)(burn.ones((8, 3, 4, 4))).shape
    (8, 3, 6, 6)
    """

    _axis_count, _mode = 2, "edge"


class ReplicationPad3d(_Pad):
    """`ReplicationPad2d` of three axes: (left, right, top, bottom, front, back)."""

    _axis_count, _mode = 3, "edge"


class CircularPad1d(_Pad):
    """`CircularPad2d` of the last axis: (before, behind)."""

    _axis_count, _mode = 1, "wrap"


class CircularPad2d(_Pad):
    """The input repeated at the ends of the last two axes.

    Parameters
    ----------
    padding : int or tuple of int
        How many elements: at each end, or (left, right, top, bottom).

    Examples
    --------
    >>> import burn
    >>> burn.nn.CircularPad2d(1)(burn.ones((8, 3, 4, 4))).shape
    (8, 3, 6, 6)
    """

    _axis_count, _mode = 2, "wrap"


class CircularPad3d(_Pad):
    """`CircularPad2d` of three axes: (left, right, top, bottom, front, back)."""

    _axis_count, _mode = 3, "wrap"
