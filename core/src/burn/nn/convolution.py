"""Convolutions of signals, images and volumes, transposed and in deformed windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias

from burn.docstrings import documented_as
from burn.errors import ArgumentError
from burn.functions.rearranging import pad
from burn.functions.spatial_words import SIGNALS, VOLUMES
from burn.nn import functional as F, init
from burn.nn.module import Module
from burn.ops.arguments import as_integer

if TYPE_CHECKING:
    from collections.abc import Callable

    from burn.functions.common import DeviceLike, DTypeLike
    from burn.tensor.tensor import Tensor

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "DeformConv2d",
]

PerAxis: TypeAlias = int | tuple[int, ...]
Padding: TypeAlias = int | tuple[int | tuple[int, int], ...]
PaddingMode: TypeAlias = Literal["zeros", "reflect", "replicate", "circular"]

_PAD_MODES: Final = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
"""Names of `burn.pad` for modes of padding."""


class _Convolution(Module):
    """What convolutions share."""

    _axis_count: ClassVar[int]
    _function: ClassVar[Callable[..., Tensor]]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: PerAxis,
        stride: PerAxis = 1,
        padding: Padding | Literal["same", "valid"] = 0,
        dilation: PerAxis = 1,
        groups: int = 1,
        *,
        bias: bool = True,
        padding_mode: PaddingMode = "zeros",
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
    ) -> None:
        operation = f"nn.{type(self).__name__}"
        if padding_mode != "zeros" and padding_mode not in _PAD_MODES:
            raise ArgumentError(
                f"padding_mode is {padding_mode!r}",
                hint=f"Use one of zeros, {', '.join(_PAD_MODES)}",
                operation=operation,
            )
        strides = stride if isinstance(stride, (tuple, list)) else (stride,)
        if padding_mode != "zeros" and padding == "same" and any(stride != 1 for stride in strides):
            raise ArgumentError(
                f"the padding 'same' of mode {padding_mode!r} for a stride of {stride}",
                hint="Say how many elements are added; or use zeros, or a stride of 1",
                operation=operation,
            )
        kernel = _kernel(kernel_size, self._axis_count, operation)
        _check_groups(in_channels, out_channels, groups, operation)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.dilation, self.groups, self.padding_mode = dilation, groups, padding_mode
        shape = out_channels, in_channels // groups, *kernel
        self.weight, self.bias = init.weight_and_bias(
            shape, out_channels, bias=bias, dtype=dtype, device=device
        )

    def forward(self, x: Tensor) -> Tensor:
        """Shape (N, out_channels, ...) for an input of shape (N, in_channels, ...)."""
        padding = self.padding
        if self.padding_mode != "zeros" and padding != "valid":
            x, padding = self._padded(x), 0
        return self._function(
            x,
            self.weight,
            self.bias,
            stride=self.stride,
            padding=padding,
            dilation=self.dilation,
            groups=self.groups,
        )

    def _padded(self, x: Tensor) -> Tensor:
        """The input with the elements at its ends that `padding_mode` says."""
        if isinstance(self.padding, str):
            spread = self.dilation
            spreads = spread if isinstance(spread, (tuple, list)) else (spread,) * self._axis_count
            total = [
                step * (length - 1)
                for step, length in zip(spreads, self.weight.shape[2:], strict=True)
            ]
            pairs = [(number // 2, number - number // 2) for number in total]
        else:
            padding = self.padding
            given = padding if isinstance(padding, (tuple, list)) else (padding,) * self._axis_count
            pairs = [pair if isinstance(pair, (tuple, list)) else (pair, pair) for pair in given]
        return pad(x, ((0, 0), (0, 0), *pairs), _PAD_MODES[self.padding_mode])


@documented_as(F.conv2d)
class Conv2d(_Convolution):
    """Convolution of images, of shape (N, C, H, W); the kernel is not flipped.

    The other parameters are those of `burn.nn.functional.conv2d`.

    Parameters
    ----------
    in_channels, out_channels : int
        Numbers of channels of the input and of the output.
    kernel_size : int or tuple of int
        Lengths of the window along the spatial axes.
    padding : int, or tuple of int or of pairs of int, or {"same", "valid"}
        Number of elements added at both ends of each axis; a pair has those before and after.
        ``"valid"`` is none, ``"same"`` as many as give ``ceil(length / stride)`` windows.
    bias : bool
        Whether there is one.
    padding_mode : {"zeros", "reflect", "replicate", "circular"}
        What is added at the ends: zeros, the input mirrored, its nearest element, or the input
        repeated.
    dtype : DType, optional
        Of the parameters.
    device : Device or str, optional
        Where they are.

    Attributes
    ----------
    weight : Tensor, shape (out_channels, in_channels / groups, *kernel_size)
        As in PyTorch; uniform within ``1 / sqrt(fan_in)`` at first.
    bias : Tensor, shape (out_channels,), or None
        Added to each output channel; starts like the weight.

    Raises
    ------
    ArgumentError
        If `groups` does not divide both numbers of channels, or an argument has another number of
        axes.

    Examples
    --------
    >>> import burn
    >>> layer = burn.nn.Conv2d(3, 16, 3, padding=1, bias=False)
    >>> layer
    Conv2d(3, 16, 3, padding=1, bias=False)
    >>> layer(burn.ones((8, 3, 32, 32))).shape
    (8, 16, 32, 32)
    """

    _axis_count = 2
    _function = staticmethod(F.conv2d)


@documented_as(Conv2d, SIGNALS)
class Conv1d(_Convolution):
    """Convolution of signals, of shape (N, C, L); its arguments are those of `Conv2d`.

    Examples
    --------
    >>> import burn
    >>> burn.nn.Conv1d(3, 16, 5, padding="same")(burn.ones((8, 3, 20))).shape
    (8, 16, 20)
    """

    _axis_count = 1
    _function = staticmethod(F.conv1d)


@documented_as(Conv2d, VOLUMES)
class Conv3d(_Convolution):
    """Convolution of volumes, of shape (N, C, D, H, W); its arguments are those of `Conv2d`.

    Examples
    --------
    >>> import burn
    >>> burn.nn.Conv3d(3, 4, 2, stride=2)(burn.ones((2, 3, 8, 8, 8))).shape
    (2, 4, 4, 4, 4)
    """

    _axis_count = 3
    _function = staticmethod(F.conv3d)


class _TransposedConvolution(Module):
    """What transposed convolutions share."""

    _axis_count: ClassVar[int]
    _function: ClassVar[Callable[..., Tensor]]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: PerAxis,
        stride: PerAxis = 1,
        padding: Padding = 0,
        output_padding: PerAxis = 0,
        groups: int = 1,
        dilation: PerAxis = 1,
        *,
        bias: bool = True,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
    ) -> None:
        operation = f"nn.{type(self).__name__}"
        kernel = _kernel(kernel_size, self._axis_count, operation)
        _check_groups(in_channels, out_channels, groups, operation)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.output_padding, self.groups, self.dilation = output_padding, groups, dilation
        shape = in_channels, out_channels // groups, *kernel
        self.weight, self.bias = init.weight_and_bias(
            shape, out_channels, bias=bias, dtype=dtype, device=device
        )

    def forward(self, x: Tensor) -> Tensor:
        """Shape (N, out_channels, ...) for an input of shape (N, in_channels, ...)."""
        return self._function(
            x,
            self.weight,
            self.bias,
            stride=self.stride,
            padding=self.padding,
            output_padding=self.output_padding,
            dilation=self.dilation,
            groups=self.groups,
        )


@documented_as(F.conv_transpose2d)
class ConvTranspose2d(_TransposedConvolution):
    """Transposed convolution of images: each element is spread over a window of the output.

    The other parameters are those of `burn.nn.functional.conv_transpose2d`.

    Parameters
    ----------
    in_channels, out_channels : int
        Numbers of channels of the input and of the output.
    kernel_size : int or tuple of int
        Lengths of the window along the spatial axes.
    dilation : int or tuple of int
        Distance between the elements of a window. It comes after `groups`, as in PyTorch.
    bias : bool
        Whether there is one.
    dtype : DType, optional
        Of the parameters.
    device : Device or str, optional
        Where they are.

    Attributes
    ----------
    weight : Tensor, shape (in_channels, out_channels / groups, *kernel_size)
        As in PyTorch; uniform within ``1 / sqrt(fan_in)`` at first, where ``fan_in`` is the number
        of output channels of a group times the number of elements of the window.
    bias : Tensor, shape (out_channels,), or None
        Added to each output channel; starts like the weight.

    Raises
    ------
    ArgumentError
        If `groups` does not divide both numbers of channels, or an argument has another number of
        axes.

    Examples
    --------
    >>> import burn
    >>> layer = burn.nn.ConvTranspose2d(16, 3, 4, stride=2, padding=1)
    >>> layer(burn.ones((8, 16, 16, 16))).shape
    (8, 3, 32, 32)
    """

    _axis_count = 2
    _function = staticmethod(F.conv_transpose2d)


@documented_as(ConvTranspose2d, SIGNALS)
class ConvTranspose1d(_TransposedConvolution):
    """Transposed convolution of signals; its arguments are those of `ConvTranspose2d`.

    Examples
    --------
    >>> import burn
    >>> burn.nn.ConvTranspose1d(16, 3, 4, stride=2, padding=1)(burn.ones((8, 16, 10))).shape
    (8, 3, 20)
    """

    _axis_count = 1
    _function = staticmethod(F.conv_transpose1d)


@documented_as(ConvTranspose2d, VOLUMES)
class ConvTranspose3d(_TransposedConvolution):
    """Transposed convolution of volumes; its arguments are those of `ConvTranspose2d`.

    Examples
    --------
    >>> import burn
    >>> burn.nn.ConvTranspose3d(4, 3, 2, stride=2)(burn.ones((2, 4, 4, 4, 4))).shape
    (2, 3, 8, 8, 8)
    """

    _axis_count = 3
    _function = staticmethod(F.conv_transpose3d)


@documented_as(F.deform_conv2d)
class DeformConv2d(Module):
    """Convolution of images in deformed windows; see `burn.nn.functional.deform_conv2d`.

    The other parameters are those of the function.

    Parameters
    ----------
    in_channels, out_channels : int
        Numbers of channels of the input and of the output.
    kernel_size : int or tuple of int
        Height and width of the window.
    groups : int
        Number of groups of channels that are convolved separately.
    bias : bool
        Whether there is one.
    dtype : DType, optional
        Of the parameters.
    device : Device or str, optional
        Where they are.

    Attributes
    ----------
    weight : Tensor, shape (out_channels, in_channels / groups, *kernel_size)
        As in torchvision; uniform within ``1 / sqrt(fan_in)`` at first.
    bias : Tensor, shape (out_channels,), or None
        Added to each output channel; starts like the weight.

    Raises
    ------
    ArgumentError
        If `groups` or `offset_groups` does not divide the numbers of channels.

    Examples
    --------
    >>> import burn
    >>> layer = burn.nn.DeformConv2d(3, 16, 3, padding=1)
    >>> layer(burn.ones((8, 3, 5, 5)), burn.zeros((8, 18, 5, 5))).shape
    (8, 16, 5, 5)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: PerAxis,
        stride: PerAxis = 1,
        padding: Padding = 0,
        dilation: PerAxis = 1,
        groups: int = 1,
        offset_groups: int = 1,
        *,
        bias: bool = True,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
    ) -> None:
        kernel = _kernel(kernel_size, 2, "nn.DeformConv2d")
        _check_groups(in_channels, out_channels, groups, "nn.DeformConv2d")
        _check_groups(in_channels, 0, offset_groups, "nn.DeformConv2d", "offset_groups")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.dilation, self.groups, self.offset_groups = dilation, groups, offset_groups
        shape = out_channels, in_channels // groups, *kernel
        self.weight, self.bias = init.weight_and_bias(
            shape, out_channels, bias=bias, dtype=dtype, device=device
        )

    def forward(self, x: Tensor, offset: Tensor, mask: Tensor | None = None) -> Tensor:
        """Shape (N, out_channels, rows, columns) for images, offsets and factors of samples."""
        return F.deform_conv2d(
            x,
            offset,
            self.weight,
            mask,
            self.bias,
            stride=self.stride,
            padding=self.padding,
            dilation=self.dilation,
            weight_groups=self.groups,
            offset_groups=self.offset_groups,
        )


def _kernel(size: PerAxis, axis_count: int, operation: str) -> tuple[int, ...]:
    """The length of the window along each axis."""
    lengths = size if isinstance(size, (tuple, list)) else (size,) * axis_count
    kernel = tuple([as_integer(length, "kernel_size", operation) for length in lengths])
    if len(kernel) != axis_count or any(number < 1 for number in kernel):
        raise ArgumentError(
            f"kernel_size is {size!r}",
            hint=f"Give a positive number, or {axis_count}: one for each spatial axis",
            operation=operation,
        )
    return kernel


def _check_groups(
    in_channels: int, out_channels: int, groups: int, operation: str, name: str = "groups"
) -> None:
    as_integer(in_channels, "in_channels", operation)
    as_integer(out_channels, "out_channels", operation)
    as_integer(groups, name, operation)
    if groups < 1 or in_channels % groups or out_channels % groups:
        raise ArgumentError(
            f"{name} is {groups} for {in_channels} and {out_channels} channels",
            hint="It divides the numbers of channels of the input and of the output",
            operation=operation,
        )
