"""Windows: what the segments of a signal are multiplied by before their spectra are taken."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from burn.docstrings import documented_as
from burn.dtype import float32
from burn.errors import ArgumentError
from burn.functions.common import DeviceLike, DTypeLike
from burn.functions.creation import arange, full, ones, zeros
from burn.functions.elementwise import cos, exp, i0, minimum, sin, sqrt, square
from burn.functions.normalize import as_dtype, as_flag, find_device
from burn.ops.arguments import as_integer, real_number
from burn.public_calls import shown_value

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "bartlett_window",
    "blackman_window",
    "cosine_window",
    "exponential_window",
    "gaussian_window",
    "general_cosine_window",
    "general_hamming_window",
    "hamming_window",
    "hann_window",
    "kaiser_window",
    "nuttall_window",
]

_PART: Final = 1 << 24
"""Elements that are computed at a time: Ctrl-C ends a call between two parts."""

_LARGEST_BETA: Final = 80.0
"""Of a Kaiser window: beyond it `i0` comes near to the largest number of float32."""


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
        If a number is out of its range, or `dtype` no float dtype.

    Examples
    --------
    >>> import burn
    >>> burn.signal.hann_window(3, periodic=False, device="cpu").tolist()
    [0.0, 1.0, 0.0]
    """
    return _cosine_sum((0.5, 0.5), size, dtype, device, "hann_window", periodic=periodic)


@documented_as(hann_window)
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

    The parameters are those of `hann_window`.

    Examples
    --------
    >>> import burn
    >>> window = burn.signal.hamming_window(3, periodic=False, device="cpu")
    >>> burn.allclose(window, burn.asarray([4 / 46, 1.0, 4 / 46], device="cpu"))
    True
    """
    weights = (25.0 / 46.0, 21.0 / 46.0)
    return _cosine_sum(weights, size, dtype, device, "hamming_window", periodic=periodic)


@documented_as(hann_window)
def blackman_window(
    size: int,
    /,
    *,
    periodic: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """The window of Blackman: ``0.42 - 0.5 cos(2 pi j / n) + 0.08 cos(4 pi j / n)``.

    The parameters are those of `hann_window`.

    Examples
    --------
    >>> import burn
    >>> window = burn.signal.blackman_window(3, periodic=False, device="cpu")
    >>> burn.allclose(window, burn.asarray([0.0, 1.0, 0.0], device="cpu"), atol=1e-6)
    True
    """
    weights = (0.42, 0.5, 0.08)
    return _cosine_sum(weights, size, dtype, device, "blackman_window", periodic=periodic)


@documented_as(hann_window)
def bartlett_window(
    size: int,
    /,
    *,
    periodic: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """The window of Bartlett, a triangle: ``1 - abs(2 j / n - 1)``.

    The parameters are those of `hann_window`.

    Examples
    --------
    >>> import burn
    >>> burn.signal.bartlett_window(5, periodic=False, device="cpu").tolist()
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return _window(
        lambda index, count: index * (2.0 / count),
        size,
        dtype,
        device,
        "bartlett_window",
        periodic=periodic,
    )


@documented_as(hann_window)
def kaiser_window(
    size: int,
    /,
    *,
    beta: float = 12.0,
    periodic: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """The window of Kaiser: ``i0(beta sqrt(1 - (2 j / n - 1)**2)) / i0(beta)``.

    The other parameters are those of `hann_window`.

    Parameters
    ----------
    beta : float
        How narrow the window is: 0 makes all elements 1, larger numbers give lower side lobes and a
        wider main lobe.

    Notes
    -----
    J. F. Kaiser and R. W. Schafer, "On the use of the I0-sinh window for spectrum analysis" (1980).

    Examples
    --------
    >>> import burn
    >>> burn.signal.kaiser_window(3, beta=2.0, periodic=False, device="cpu")
    Tensor([0.43867627, 1.        , 0.43867627], device='cpu:0')
    """
    beta = real_number(beta, "beta", "kaiser_window", least=-_LARGEST_BETA, most=_LARGEST_BETA)

    def bell(index: Tensor, count: int) -> Tensor:
        # 1 - (2 j / n - 1)**2 without a difference of numbers that are nearly equal
        height = sqrt(index * (count - index)) * (2.0 / count)
        return i0(height * beta) / i0(full((), beta, dtype=index.dtype, device=index.device))

    return _window(bell, size, dtype, device, "kaiser_window", periodic=periodic)


@documented_as(hann_window)
def cosine_window(
    size: int,
    /,
    *,
    periodic: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Half a wave: ``sin(pi (j + 1/2) / (n + 1))``.

    The parameters are those of `hann_window`.

    Examples
    --------
    >>> import burn
    >>> window = burn.signal.cosine_window(3, periodic=False, device="cpu")
    >>> burn.allclose(window, burn.asarray([0.5, 1.0, 0.5], device="cpu"))
    True
    """

    def arch(index: Tensor, count: int) -> Tensor:
        return sin((index + 0.5) * (math.pi / (count + 1)))

    return _window(arch, size, dtype, device, "cosine_window", periodic=periodic)


@documented_as(hann_window)
def exponential_window(
    size: int,
    /,
    *,
    tau: float = 1.0,
    periodic: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Exponential decay on both sides: ``exp(-abs(j - n / 2) / tau)``.

    The other parameters are those of `hann_window`.

    Parameters
    ----------
    tau : float
        Number of elements in which the window falls to 1 / e; positive.

    Examples
    --------
    >>> import burn
    >>> window = burn.signal.exponential_window(3, tau=0.5, periodic=False, device="cpu")
    >>> burn.allclose(window, burn.exp(burn.asarray([-2.0, 0.0, -2.0], device="cpu")))
    True
    """
    tau = real_number(tau, "tau", "exponential_window", above=0.0, below=math.inf)

    def decay(index: Tensor, count: int) -> Tensor:
        return exp((index - count / 2.0) / tau)

    return _window(decay, size, dtype, device, "exponential_window", periodic=periodic)


@documented_as(hann_window)
def gaussian_window(
    size: int,
    /,
    *,
    std: float = 1.0,
    periodic: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """The window of Gauss: ``exp(-((j - n / 2) / std)**2 / 2)``.

    The other parameters are those of `hann_window`.

    Parameters
    ----------
    std : float
        The standard deviation, in elements; positive.

    Examples
    --------
    >>> import burn
    >>> window = burn.signal.gaussian_window(3, std=0.5, periodic=False, device="cpu")
    >>> burn.allclose(window, burn.exp(burn.asarray([-2.0, 0.0, -2.0], device="cpu")))
    True
    """
    std = real_number(std, "std", "gaussian_window", above=0.0, below=math.inf)

    def bell(index: Tensor, count: int) -> Tensor:
        return exp(-0.5 * square((index - count / 2.0) / std))

    return _window(bell, size, dtype, device, "gaussian_window", periodic=periodic)


@documented_as(hann_window)
def general_cosine_window(
    size: int,
    /,
    *,
    weights: Sequence[float],
    periodic: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Weighted cosines: ``w[0] - w[1] cos(2 pi j / n) + w[2] cos(4 pi j / n) - ...``.

    The other parameters are those of `hann_window`.

    Parameters
    ----------
    weights : sequence of float
        The weights w, whose signs alternate in the sum; one or more.

    Examples
    --------
    >>> import burn
    >>> weights = [0.5, 0.5]
    >>> burn.signal.general_cosine_window(
    ...     3, weights=weights, periodic=False, device="cpu"
    ... ).tolist()
    [0.0, 1.0, 0.0]
    """
    operation = "general_cosine_window"
    if not isinstance(weights, (list, tuple)) or not weights:
        raise ArgumentError(
            f"weights are {shown_value(weights)}",
            hint="Give a list of one number or more",
            operation=operation,
        )
    amounts = tuple(
        real_number(weight, "a weight", operation, above=-math.inf, below=math.inf)
        for weight in weights
    )
    return _cosine_sum(amounts, size, dtype, device, operation, periodic=periodic)


@documented_as(hann_window)
def general_hamming_window(
    size: int,
    /,
    *,
    alpha: float = 0.54,
    periodic: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """A raised cosine: ``alpha - (1 - alpha) cos(2 pi j / n)``.

    The other parameters are those of `hann_window`.

    Parameters
    ----------
    alpha : float
        The weight of the constant: 0.5 gives Hann's window.

    Examples
    --------
    >>> import burn
    >>> burn.signal.general_hamming_window(3, alpha=0.5, periodic=False, device="cpu").tolist()
    [0.0, 1.0, 0.0]
    """
    operation = "general_hamming_window"
    alpha = real_number(alpha, "alpha", operation, above=-math.inf, below=math.inf)
    return _cosine_sum((alpha, 1.0 - alpha), size, dtype, device, operation, periodic=periodic)


@documented_as(hann_window)
def nuttall_window(
    size: int,
    /,
    *,
    periodic: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """The window of Nuttall: four weighted cosines with sidelobes below -98 dB.

    The parameters are those of `hann_window`.

    Notes
    -----
    A. H. Nuttall, "Some windows with very good sidelobe behavior" (1981): four terms.

    Examples
    --------
    >>> import burn
    >>> window = burn.signal.nuttall_window(3, periodic=False, device="cpu")
    >>> burn.allclose(window, burn.asarray([0.0003628, 1.0, 0.0003628], device="cpu"))
    True
    """
    weights = (0.3635819, 0.4891775, 0.1365995, 0.0106411)
    return _cosine_sum(weights, size, dtype, device, "nuttall_window", periodic=periodic)


def _cosine_sum(
    weights: tuple[float, ...],
    size: int,
    dtype: DTypeLike | None,
    device: DeviceLike | None,
    operation: str,
    *,
    periodic: bool,
) -> Tensor:
    """Weighted cosines of alternating signs."""

    def waves(index: Tensor, count: int) -> Tensor:
        result = index * 0.0 + weights[0]
        for order, weight in enumerate(weights[1:], start=1):
            result = result + (-1) ** order * weight * cos(index * (2.0 * math.pi * order / count))
        return result

    return _window(waves, size, dtype, device, operation, periodic=periodic)


def _window(
    formula: Callable[[Tensor, int], Tensor],
    size: int,
    dtype: DTypeLike | None,
    device: DeviceLike | None,
    operation: str,
    *,
    periodic: bool,
) -> Tensor:
    """A symmetric function of the index j and of n, computed in float32 or better."""
    device = find_device(device, operation)
    dtype = device.settings.float_dtype if dtype is None else as_dtype(dtype, operation)
    if not dtype.is_float:
        raise ArgumentError(f"a window of {dtype}", hint="It is of floats", operation=operation)
    length = as_integer(size, "size", operation, least=0)
    periodic = as_flag(periodic, "periodic", operation)
    if length < 2:
        return ones(length, dtype=dtype, device=device)
    wide = float32 if dtype.itemsize < float32.itemsize else dtype
    count = length if periodic else length - 1

    def part(start: int, stop: int) -> Tensor:
        index = arange(start, stop, dtype=wide, device=device)
        # By symmetry no index has to be beyond the middle, where rounding would show most.
        return formula(minimum(index, count - index), count).astype(dtype)

    if length <= _PART:
        return part(0, length)
    result = zeros(length, dtype=dtype, device=device)  # a size that no memory holds ends here
    for start in range(0, length, _PART):
        stop = min(start + _PART, length)
        result[start:stop] = part(start, stop)
    return result
