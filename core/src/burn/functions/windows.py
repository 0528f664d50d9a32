"""Windows: what the segments of a signal are multiplied by before their spectra are taken."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from burn.dtype import float32
from burn.errors import ArgumentError
from burn.functions.common import DeviceLike, DTypeLike
from burn.functions.creation import arange, ones
from burn.functions.elementwise import cos, minimum
from burn.functions.normalize import as_dtype, as_flag, find_device
from burn.ops.arguments import as_integer

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["blackman_window", "hamming_window", "hann_window"]


def hann_window(
    size: int,
    /,
    *,
    periodic: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """The window of Hann: ``0.5 - 0.5 cos(2 pi j / n)``.

    Parameters
    ----------
    size : int
        Number of elements.
    periodic : bool
        Whether n is `size`, for spectra, or ``size - 1``, which makes both ends equal.
    dtype : DType, optional
        A float dtype; the default one of the device if left out.
    device : Device or str, optional
        Device of the result; the default device if left out.

    Returns
    -------
    Tensor, shape (size,)
        The window.

    Raises
    ------
    ArgumentError
        If `size` is negative, or `dtype` no float dtype.

    Examples
    --------
    >>> import burn
    >>> burn.signal.hann_window(3, periodic=False, device="cpu").tolist()
    [0.0, 1.0, 0.0]
    """
    return _cosine_sum((0.5, 0.5), size, dtype, device, "hann_window", periodic=periodic)


def hamming_window(
    size: int,
    /,
    *,
    periodic: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """The window of Hamming: ``25/46 - 21/46 cos(2 pi j / n)``.

    These are the exact weights (Harris, "On the use of windows for harmonic analysis with the
    discrete Fourier transform", 1978), as in ONNX (HammingWindow-17) and in the Rust original;
    NumPy, SciPy and PyTorch round them to 0.54 and 0.46.

    Parameters
    ----------
    size : int
        Number of elements.
    periodic : bool
        Whether n is `size`, for spectra, or ``size - 1``, which makes both ends equal.
    dtype : DType, optional
        A float dtype; the default one of the device if left out.
    device : Device or str, optional
        Device of the result; the default device if left out.

    Returns
    -------
    Tensor, shape (size,)
        The window.

    Raises
    ------
    ArgumentError
        If `size` is negative, or `dtype` no float dtype.

    Examples
    --------
    >>> import burn
    >>> window = burn.signal.hamming_window(3, periodic=False, device="cpu")
    >>> burn.allclose(window, burn.asarray([4 / 46, 1.0, 4 / 46], device="cpu"))
    True
    """
    weights = (25.0 / 46.0, 21.0 / 46.0)
    return _cosine_sum(weights, size, dtype, device, "hamming_window", periodic=periodic)


def blackman_window(
    size: int,
    /,
    *,
    periodic: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """The window of Blackman: ``0.42 - 0.5 cos(2 pi j / n) + 0.08 cos(4 pi j / n)``.

    Parameters
    ----------
    size : int
        Number of elements.
    periodic : bool
        Whether n is `size`, for spectra, or ``size - 1``, which makes both ends equal.
    dtype : DType, optional
        A float dtype; the default one of the device if left out.
    device : Device or str, optional
        Device of the result; the default device if left out.

    Returns
    -------
    Tensor, shape (size,)
        The window.

    Raises
    ------
    ArgumentError
        If `size` is negative, or `dtype` no float dtype.

    Examples
    --------
    >>> import burn
    >>> window = burn.signal.blackman_window(3, periodic=False, device="cpu")
    >>> burn.allclose(window, burn.asarray([0.0, 1.0, 0.0], device="cpu"), atol=1e-6)
    True
    """
    weights = (0.42, 0.5, 0.08)
    return _cosine_sum(weights, size, dtype, device, "blackman_window", periodic=periodic)


def _cosine_sum(
    weights: tuple[float, ...],
    size: int,
    dtype: DTypeLike | None,
    device: DeviceLike | None,
    operation: str,
    *,
    periodic: bool,
) -> Tensor:
    """Weighted cosines of alternating signs, computed in float32 or better."""
    device = find_device(device, operation)
    dtype = device.settings.float_dtype if dtype is None else as_dtype(dtype, operation)
    if not dtype.is_float:
        raise ArgumentError(f"a window of {dtype}", hint="It is of floats", operation=operation)
    length = as_integer(size, "size", operation, least=0)
    periodic = as_flag(periodic, "periodic", operation)
    if length < 2:
        return ones(length, dtype=dtype, device=device)
    wide = float32 if dtype.itemsize < float32.itemsize else dtype
    index = arange(length, dtype=wide, device=device)
    # By symmetry no angle has to be beyond pi, where rounding would show most.
    count = length if periodic else length - 1
    index = minimum(index, count - index)
    result = index * 0.0 + weights[0]
    for order, weight in enumerate(weights[1:], start=1):
        result = result + (-1) ** order * weight * cos(index * (2.0 * math.pi * order / count))
    return result.astype(dtype)
