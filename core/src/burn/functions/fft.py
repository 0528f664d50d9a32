"""Discrete Fourier transforms (extension "Fourier transform" of the array API standard).

The ops transform tensors of real and of imaginary parts, which have gradients; here they become
complex tensors, which have none. A result that is real (`irfft`, `hfft`) of complex tensors has
none either.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from burn.dtype import DType
from burn.errors import ArgumentError, DTypeError, ShapeError
from burn.functions.common import Axis, DeviceLike, DTypeLike, dispatch
from burn.functions.creation import arange
from burn.functions.elementwise import complex, conj, imag, multiply, real
from burn.functions.manipulation import concat
from burn.functions.normalize import normalize_axes, normalize_axis, rank_of
from burn.functions.views import independent
from burn.ops.arguments import as_integer, real_number

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]

Norm: TypeAlias = Literal["backward", "ortho", "forward"]


def fft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Spectrum along an axis: ``X[k] = sum over j of x[j] exp(-2 pi i j k / n)``.

    Parameters
    ----------
    x : Tensor
        Complex tensor, or a real one.
    n : int, optional
        Length of the transform: the axis is cropped to it, or padded with zeros at its end.
    axis : int
        The axis to transform.
    norm : {"backward", "ortho", "forward"}
        Which direction divides by n: the inverse, this one, or both by its square root.

    Returns
    -------
    Tensor
        Complex, with `n` frequencies along `axis`.

    Examples
    --------
    >>> import burn
    >>> burn.fft.fft(burn.asarray([1.0, 2.0], device="cpu")).tolist()
    [(3+0j), (-1+0j)]
    """
    return _transform(_numbers(x, "fft"), n, axis, norm, "fft", inverse=False)


def ifft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """The signal along an axis that a spectrum belongs to: the inverse of `fft`."""
    return _transform(_numbers(x, "ifft"), n, axis, norm, "ifft", inverse=True)


def fftn(
    x: Tensor,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """Spectrum along several axes; along all if none are named.

    Parameters
    ----------
    x : Tensor
        Complex tensor, or a real one.
    s : sequence of int, optional
        Length of each transform, as `n` of `fft`; along the last axes if `axes` is left out.
    axes : sequence of int, optional
        The axes to transform.
    norm : {"backward", "ortho", "forward"}
        As in `fft`.
    """
    x = _numbers(x, "fftn")
    for length, axis in _lengths(x, s, axes, "fftn"):
        x = _transform(x, length, axis, norm, "fftn", inverse=False)
    return x


def ifftn(
    x: Tensor,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """The signal along several axes that a spectrum belongs to: the inverse of `fftn`."""
    x = _numbers(x, "ifftn")
    for length, axis in _lengths(x, s, axes, "ifftn"):
        x = _transform(x, length, axis, norm, "ifftn", inverse=True)
    return x


def rfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Half of the spectrum of a real signal along an axis: frequencies 0 to ``n // 2``.

    The other half is the conjugate of this one. See `fft` for the parameters.
    """
    _refuse_complex(x, "rfft")
    number = normalize_axis(x, axis, "rfft")
    length = _length(x, n, number, "rfft")
    re, im = dispatch.execute("rfft", x, axis=number, n=length)
    return _scaled(complex(re, im), _scale(length, norm, "rfft", inverse=False))


def irfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """The real signal that half of a spectrum belongs to: the inverse of `rfft`.

    `n` is the length of the signal, an even one if left out. See `fft` for the parameters.
    """
    x = _numbers(x, "irfft")
    number = normalize_axis(x, axis, "irfft")
    length = 2 * (x.shape[number] - 1) if n is None else _length(x, n, number, "irfft")
    _check_length(length, "irfft")
    signal: Tensor = dispatch.execute("irfft", real(x), imag(x), axis=number, n=length)
    # The op divides by n, as the inverse does by default.
    return _scaled(signal, _scale(length, norm, "irfft", inverse=True) * length)


def rfftn(
    x: Tensor,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """Spectrum of a real signal along several axes, of which the last is halved as by `rfft`."""
    _refuse_complex(x, "rfftn")
    *others, (length, axis) = _lengths(x, s, axes, "rfftn")
    spectrum = rfft(x, n=length, axis=axis, norm=norm)
    for length, axis in others:
        spectrum = _transform(spectrum, length, axis, norm, "rfftn", inverse=False)
    return spectrum


def irfftn(
    x: Tensor,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """The real signal along several axes that a halved spectrum belongs to: see `rfftn`."""
    x = _numbers(x, "irfftn")
    *others, (length, axis) = _lengths(x, s, axes, "irfftn")
    for other_length, other in others:
        x = _transform(x, other_length, other, norm, "irfftn", inverse=True)
    return irfft(x, n=length if s is not None else None, axis=axis, norm=norm)


def hfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """The real spectrum of a signal that is the conjugate of its own reverse, given half of it.

    `n` is the length of the spectrum, an even one if left out. See `fft` for the parameters.
    """
    x = _numbers(x, "hfft")
    return irfft(conj(x), n=n, axis=axis, norm=_opposite(norm, "hfft"))


def ihfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Half of the signal that a real spectrum belongs to: the inverse of `hfft`."""
    _refuse_complex(x, "ihfft")
    return conj(rfft(x, n=n, axis=axis, norm=_opposite(norm, "ihfft")))


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
        Where to make it.

    Returns
    -------
    Tensor, shape (n,)
        0 and the positive frequencies, then the negative ones.

    Examples
    --------
    >>> import burn
    >>> burn.fft.fftfreq(4, device="cpu").tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    n = _check_length(n, "fftfreq")
    positive = (n + 1) // 2
    first = arange(positive, device=device)
    second = arange(positive - n, 0, device=device)
    return _frequencies(concat([first, second]), n, d, dtype, "fftfreq")


def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """Frequency of each element of a halved spectrum; see `fftfreq` for the parameters."""
    n = _check_length(n, "rfftfreq")
    return _frequencies(arange(n // 2 + 1, device=device), n, d, dtype, "rfftfreq")


def fftshift(x: Tensor, /, *, axes: Axis = None) -> Tensor:
    """A spectrum with frequency 0 in the middle, along axes; along all if none are named."""
    return _rolled(x, axes, "fftshift", inverse=False)


def ifftshift(x: Tensor, /, *, axes: Axis = None) -> Tensor:
    """A spectrum with frequency 0 first again: the inverse of `fftshift`."""
    return _rolled(x, axes, "ifftshift", inverse=True)


def _numbers(x: Tensor, operation: str) -> Tensor:
    """A tensor as one of a complex dtype."""
    rank_of(x, operation)
    if x.dtype.is_complex:
        return x
    return x + 0j


def _refuse_complex(x: Tensor, operation: str) -> None:
    rank_of(x, operation)
    if x.dtype.is_complex:
        raise DTypeError(
            f"takes real tensors, got {x.dtype}",
            hint="Use burn.fft.fft for complex ones",
            operation=operation,
        )


def _check_length(n: Any, operation: str) -> int:
    number = as_integer(n, "the length", operation)
    if number < 1:
        raise ShapeError(f"a transform of length {number}", operation=operation)
    return number


def _length(x: Tensor, n: int | None, axis: int, operation: str) -> int:
    return _check_length(x.shape[axis] if n is None else n, operation)


def _lengths(
    x: Tensor, s: Sequence[int] | None, axes: Sequence[int] | None, operation: str
) -> list[tuple[int | None, int]]:
    """Length and axis of each transform of several."""
    rank = rank_of(x, operation)
    if axes is None:
        numbers = tuple(range(0 if s is None else max(rank - len(s), 0), rank))
    else:
        numbers = normalize_axes(x, tuple(axes), operation)
    if not numbers or (s is not None and len(s) != len(numbers)):
        raise ArgumentError(
            f"{0 if s is None else len(s)} lengths for axes {numbers} of a tensor of {rank} axes",
            hint="Give a length for each axis",
            operation=operation,
        )
    return list(zip([None] * len(numbers) if s is None else s, numbers, strict=True))


def _transform(
    x: Tensor, n: int | None, axis: int, norm: Norm, operation: str, *, inverse: bool
) -> Tensor:
    number = normalize_axis(x, axis, operation)
    length = _length(x, n, number, operation)
    re, im = dispatch.execute("cfft", real(x), imag(x), axis=number, n=length, inverse=inverse)
    return _scaled(complex(re, im), _scale(length, norm, operation, inverse=inverse))


def _scale(n: int, norm: Norm, operation: str, *, inverse: bool) -> float:
    if norm == "ortho":
        return 1.0 / math.sqrt(n)
    if norm not in ("backward", "forward"):
        raise ArgumentError(
            f"norm is {norm!r}",
            hint='Use "backward", "ortho" or "forward"',
            operation=operation,
        )
    return 1.0 / n if (norm == "backward") is inverse else 1.0


def _opposite(norm: Norm, operation: str) -> Norm:
    _scale(1, norm, operation, inverse=False)
    if norm == "ortho":
        return norm
    return "forward" if norm == "backward" else "backward"


def _scaled(x: Tensor, factor: float) -> Tensor:
    return x if factor == 1.0 else multiply(x, factor)


def _frequencies(
    counts: Tensor, n: int, d: float, dtype: DTypeLike | None, operation: str
) -> Tensor:
    wanted = counts.device.settings.float_dtype if dtype is None else DType.of(dtype)
    if not wanted.is_float:
        raise DTypeError(f"frequencies are floats, not {wanted}", operation=operation)
    distance = real_number(d, "d", operation, above=-math.inf, below=math.inf)
    if distance == 0.0:
        raise ArgumentError("d is 0", hint="Neighbours are apart", operation=operation)
    return counts.astype(wanted) / (n * distance)


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
