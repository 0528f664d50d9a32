"""Frequencies of spectra, and their order (extension "Fourier transform" of the standard)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from burn.docstrings import documented_as
from burn.errors import ArgumentError, DTypeError
from burn.functions.common import Axis, DeviceLike, DTypeLike
from burn.functions.creation import arange
from burn.functions.fourier.fft import check_length
from burn.functions.manipulation import concat
from burn.functions.normalize import as_dtype, normalize_axes
from burn.functions.views import independent
from burn.ops.arguments import real_number

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]


def fftfreq(
    n: int, /, *, d: float = 1.0, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """Frequency of each element of a spectrum, in cycles per unit of `d`.

    Parameters
    ----------
    n : int
        Length of the transform.
    d : float
        Distance of neighbours in the signal.
    dtype : DType, optional
        A float dtype; the default one of the device if left out.
    device : Device or str, optional
        Device of the result; the default device if left out.

    Returns
    -------
    Tensor, shape (n,)
        0 and the positive frequencies, then the negative ones.

    Raises
    ------
    ArgumentError
        If `d` is 0 or not finite.
    DTypeError
        If `dtype` is no float dtype.
    ShapeError
        If `n` is less than 1.

    Examples
    --------
    >>> import burn
    >>> burn.fft.fftfreq(4, device="cpu").tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    n = check_length(n, "fftfreq")
    positive = (n + 1) // 2
    first = arange(positive, device=device)
    second = arange(positive - n, 0, device=device)
    return _frequencies(concat([first, second]), n, d, dtype, "fftfreq")


@documented_as(fftfreq)
def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """Frequency of each element of a halved spectrum, in cycles per unit of `d`.

    The parameters are those of `fftfreq`.

    Returns
    -------
    Tensor, shape (n // 2 + 1,)
        The frequencies in ascending order, from 0.

    Examples
    --------
    >>> import burn
    >>> burn.fft.rfftfreq(4, device="cpu").tolist()
    [0.0, 0.25, 0.5]
    """
    n = check_length(n, "rfftfreq")
    return _frequencies(arange(n // 2 + 1, device=device), n, d, dtype, "rfftfreq")


def fftshift(x: Tensor, /, *, axes: Axis = None) -> Tensor:
    """A spectrum with frequency 0 in the middle.

    Parameters
    ----------
    x : Tensor
        Tensor of any dtype, with frequency 0 first along the axes, as `fftfreq` has it.
    axes : int, tuple of int or None
        The axes to shift; None for all.

    Returns
    -------
    Tensor
        In the shape and dtype of `x`.

    Raises
    ------
    AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> import burn
    >>> burn.fft.fftshift(burn.fft.fftfreq(4, device="cpu")).tolist()
    [-0.5, -0.25, 0.0, 0.25]
    """
    return _rolled(x, axes, "fftshift", inverse=False)


@documented_as(fftshift)
def ifftshift(x: Tensor, /, *, axes: Axis = None) -> Tensor:
    """A spectrum with frequency 0 first again: the inverse of `fftshift`.

    The parameter `axes` is that of `fftshift`.

    Parameters
    ----------
    x : Tensor
        Tensor of any dtype, with frequency 0 in the middle of the axes.

    Examples
    --------
    >>> import burn
    >>> burn.fft.ifftshift(burn.asarray([-0.5, -0.25, 0.0, 0.25], device="cpu")).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    return _rolled(x, axes, "ifftshift", inverse=True)


def _frequencies(
    counts: Tensor, n: int, d: float, dtype: DTypeLike | None, operation: str
) -> Tensor:
    if dtype is None:
        dtype = counts.device.settings.float_dtype
    dtype = as_dtype(dtype, operation)
    if not dtype.is_float:
        raise DTypeError(f"frequencies are floats, not {dtype}", operation=operation)
    distance = real_number(d, "d", operation, above=-math.inf, below=math.inf)
    if distance == 0.0:
        raise ArgumentError("d is 0", hint="Neighbours are apart", operation=operation)
    return counts.astype(dtype) / (n * distance)


def _rolled(x: Tensor, axes: Axis, operation: str, *, inverse: bool) -> Tensor:
    for axis in normalize_axes(x, axes, operation):
        half = x.shape[axis] // 2
        start = half if inverse else x.shape[axis] - half
        if start not in (0, x.shape[axis]):
            before = (slice(None),) * axis
            x = concat(
                [x[(*before, slice(start, None))], x[(*before, slice(None, start))]], axis=axis
            )
    return independent(x)
