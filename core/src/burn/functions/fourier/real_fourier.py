"""Fourier transforms on pairs of real tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from burn.docstrings import documented_as
from burn.functions import calls
from burn.functions.normalize import check_choice, check_tensor, normalize_axis
from burn.ops.arguments import as_integer

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "MAX_LENGTH",
    "ComplexPair",
    "Norm",
    "cfft",
    "icfft",
    "irfft",
    "norm_factor",
    "rfft",
    "scaled",
]

MAX_LENGTH: Final = 2**31 - 1
"""The longest transform: what libraries take, which hold lengths in int32."""

Norm: TypeAlias = Literal["backward", "ortho", "forward"]

_NORMS: Final = ("backward", "ortho", "forward")


class ComplexPair(NamedTuple):
    """Real and imaginary parts."""

    re: Tensor
    im: Tensor


def rfft(
    x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward"
) -> ComplexPair:
    """Half of the spectrum of a real signal: frequencies 0 to ``n // 2``.

    ``X[k] = sum over j of x[j] exp(-2 pi i j k / n)``; the other half is the conjugate of this one.

    Parameters
    ----------
    x : Tensor
        Real tensor.
    n : int, optional
        Length of the signal, to which it is cropped or padded with zeros; any, but best without
        large prime factors.
    axis : int
        The axis to transform.
    norm : {"backward", "ortho", "forward"}
        ``"forward"`` divides transforms into frequencies by the number of elements, ``"backward"``
        their inverses, ``"ortho"`` both by its square root.

    Returns
    -------
    re, im : Tensor
        Real and imaginary parts, of the float dtype of `x`, with ``n // 2 + 1`` frequencies along
        `axis`.

    Raises
    ------
    ArgumentError
        If `n` is less than 1, or `norm` another string.
    AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> import burn
    >>> re, im = burn.signal.rfft(burn.asarray([1.0, 2.0, 3.0, 4.0], device="cpu"))
    >>> re.tolist()
    [10.0, -2.0, -2.0]
    """
    number = normalize_axis(x, axis, "rfft")
    length = _length(n, x.shape[number], "rfft")
    factor = norm_factor(norm, length, "rfft", inverse=False)
    re, im = calls.rfft(x, axis=number, n=length)
    return ComplexPair(scaled(re, factor), scaled(im, factor))


def irfft(
    re: Tensor,
    im: Tensor,
    /,
    *,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = "backward",
) -> Tensor:
    """The real signal that half of a spectrum belongs to: the inverse of `rfft`.

    Parameters
    ----------
    re, im : Tensor
        Real and imaginary parts of frequencies 0 to ``n // 2``.
    n : int, optional
        Length of the signal; ``2 * (frequencies - 1)`` if left out. Spectra of signals of odd
        lengths need it.
    axis : int
        The axis to transform.
    norm : {"backward", "ortho", "forward"}
        ``"forward"`` divides transforms into frequencies by the number of elements, ``"backward"``
        their inverses, ``"ortho"`` both by its square root.

    Returns
    -------
    Tensor
        The signal, of the float dtype of `re` and `im`, with `n` samples along `axis`.

    Raises
    ------
    ArgumentError
        If `n` is less than 1, or `norm` another string.
    AxisError
        If `re` has no such axis.

    Examples
    --------
    >>> import burn
    >>> re, im = burn.signal.rfft(burn.asarray([1.0, 2.0, 3.0, 4.0], device="cpu"))
    >>> burn.signal.irfft(re, im).tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    number = _axis_of_pair(re, im, axis, "irfft")
    length = _length(n, 2 * (re.shape[number] - 1), "irfft")
    # The op itself divides by n.
    factor = norm_factor(norm, length, "irfft", inverse=True, divided=True)
    return scaled(calls.irfft(re, im, axis=number, n=length), factor)


@documented_as(irfft)
def cfft(
    re: Tensor,
    im: Tensor,
    /,
    *,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = "backward",
) -> ComplexPair:
    """Spectrum of a complex signal, given as real and imaginary parts.

    ``X[k] = sum over j of (re[j] + i im[j]) exp(-2 pi i j k / n)``.

    The other parameters are those of `irfft`.

    Parameters
    ----------
    re, im : Tensor
        Real and imaginary parts of the signal.
    n : int, optional
        Length of the signal, to which it is cropped or padded with zeros; any, but best without
        large prime factors.

    Returns
    -------
    re, im : Tensor
        Real and imaginary parts of the spectrum, with `n` frequencies along `axis`.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([1.0, 2.0], device="cpu")
    >>> re, im = burn.signal.cfft(x, burn.zeros_like(x))
    >>> re.tolist(), im.tolist()
    ([3.0, -1.0], [0.0, 0.0])
    """
    return _transform(re, im, n, axis, norm, "cfft", inverse=False)


@documented_as(irfft)
def icfft(
    re: Tensor,
    im: Tensor,
    /,
    *,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = "backward",
) -> ComplexPair:
    """The complex signal that a spectrum belongs to: the inverse of `cfft`.

    The other parameters are those of `irfft`.

    Parameters
    ----------
    re, im : Tensor
        Real and imaginary parts of the spectrum.
    n : int, optional
        Length of the spectrum, to which it is cropped or padded with zeros.

    Returns
    -------
    re, im : Tensor
        Real and imaginary parts of the signal, with `n` samples along `axis`.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([3.0, -1.0], device="cpu")
    >>> re, im = burn.signal.icfft(x, burn.zeros_like(x))
    >>> re.tolist(), im.tolist()
    ([1.0, 2.0], [0.0, 0.0])
    """
    return _transform(re, im, n, axis, norm, "icfft", inverse=True)


def norm_factor(
    norm: Norm, n: int, operation: str, *, inverse: bool, divided: bool = False
) -> float:
    """What a transform of length n is multiplied by; `divided` if its op divides by n."""
    check_choice(norm, _NORMS, "norm", operation)
    power = 0.5 if norm == "ortho" else float((norm == "backward") is inverse)
    exponent = divided - power
    return float(n) ** exponent if exponent else 1.0


def scaled(x: Tensor, factor: float) -> Tensor:
    """A tensor times a factor, which often is 1."""
    return x if factor == 1.0 else x * factor


def _axis_of_pair(re: Tensor, im: Tensor, axis: int, operation: str) -> int:
    check_tensor(re, "re", operation)
    check_tensor(im, "im", operation)
    return normalize_axis(re, axis, operation)


def _length(n: int | None, default: int, operation: str) -> int:
    length = default if n is None else n
    return as_integer(length, "n", operation, least=1, most=MAX_LENGTH)


def _transform(
    re: Tensor, im: Tensor, n: int | None, axis: int, norm: Norm, operation: str, *, inverse: bool
) -> ComplexPair:
    number = _axis_of_pair(re, im, axis, operation)
    length = _length(n, re.shape[number], operation)
    factor = norm_factor(norm, length, operation, inverse=inverse)
    re, im = calls.cfft(re, im, axis=number, n=length, inverse=inverse)
    return ComplexPair(scaled(re, factor), scaled(im, factor))
