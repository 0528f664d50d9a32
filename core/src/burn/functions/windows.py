"""Windows: what a part of a signal is multiplied by before its spectrum is taken."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from burn.dtype import DType, float32
from burn.errors import ArgumentError
from burn.functions.common import DeviceLike, DTypeLike
from burn.functions.creation import arange, ones
from burn.functions.elementwise import cos, minimum
from burn.functions.normalize import find_device
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
        Where to make it; the default device if left out.

    Examples
    --------
    >>> import burn
    >>> burn.signal.hann_window(3, periodic=False, device="cpu").tolist()
    [0.0, 1.0, 0.0]
    """
    return _cosines((0.5, 0.5), size, dtype, device, "hann_window", periodic=periodic)


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
    NumPy, SciPy and PyTorch round them to 0.54 and 0.46. See `hann_window` for the parameters.
    """
    return _cosines(
        (25.0 / 46.0, 21.0 / 46.0), size, dtype, device, "hamming_window", periodic=periodic
    )


def blackman_window(
    size: int,
    /,
    *,
    periodic: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """The window of Blackman: ``0.42 - 0.5 cos(2 pi j / n) + 0.08 cos(4 pi j / n)``.

    See `hann_window` for the parameters.
    """
    return _cosines((0.42, 0.5, 0.08), size, dtype, device, "blackman_window", periodic=periodic)


def _cosines(
    weights: tuple[float, ...],
    size: int,
    dtype: DTypeLike | None,
    device: DeviceLike | None,
    operation: str,
    *,
    periodic: bool,
) -> Tensor:
    """Weighted cosines of alternating signs, computed in float32 or better."""
    where = find_device(device)
    wanted = where.settings.float_dtype if dtype is None else DType.of(dtype)
    if not wanted.is_float:
        raise ArgumentError(f"a window of {wanted}", hint="It is of floats", operation=operation)
    length = as_integer(size, "size", operation, least=0)
    wide = float32 if wanted.itemsize < float32.itemsize else wanted
    if length < 2:
        return ones(length, dtype=wanted, device=where)
    place = arange(length, dtype=wide, device=where)
    # By symmetry no angle has to be beyond pi, where rounding would show most.
    count = length if periodic else length - 1
    place = minimum(place, count - place)
    result = place * 0.0 + weights[0]
    for order, weight in enumerate(weights[1:], start=1):
        result = result + (-1) ** order * weight * cos(place * (2.0 * math.pi * order / count))
    return result.astype(wanted)
