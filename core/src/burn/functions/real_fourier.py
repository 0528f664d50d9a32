"""Fourier transforms on pairs of real tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from burn.errors import ArgumentError
from burn.functions.common import dispatch
from burn.functions.normalize import normalize_axis
from burn.ops.arguments import as_integer

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["ComplexPair", "Norm", "cfft", "icfft", "irfft", "rfft"]

Norm: TypeAlias = Literal["backward", "ortho", "forward"]


class ComplexPair(NamedTuple):
    """Real and imaginary parts."""

    re: Tensor
    im: Tensor


def rfft(
    x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward"
) -> ComplexPair:
    """Half of the spectrum of a real signal: frequencies 0 to ``n // 2``.

    Parameters
    ----------
    x : Tensor
        Real tensor.
    n : int, optional
        Length of the signal, to which it is cropped or padded with zeros; any, but best without
        large prime factors.
    axis : int
        The axis to transform.
    norm : "backward", "ortho" or "forward"
        Whether the inverse divides by n, both by its root, or this one by n.

    Returns
    -------
    ComplexPair
        Real and imaginary parts, of the float dtype of `x`.

    Examples
    --------
    >>> import burn
    >>> re, im = burn.signal.rfft(burn.asarray([1.0, 2.0, 3.0, 4.0], device="cpu"))
    >>> re.tolist()
    [10.0, -2.0, -2.0]
    """
    number = normalize_axis(x, axis, "rfft")
    length = x.shape[number] if n is None else as_integer(n, "n", "rfft", least=1)
    pair = dispatch.execute("rfft", x, axis=number, n=length)
    return _scaled(pair, length, norm, "rfft", forward=True)


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
    axis, norm
        As in `rfft`.
    """
    number = normalize_axis(re, axis, "irfft")
    length = 2 * (re.shape[number] - 1) if n is None else as_integer(n, "n", "irfft", least=1)
    signal = dispatch.execute("irfft", re, im, axis=number, n=length)
    return _scale(signal, length, norm, "irfft", forward=False, done=True)


def cfft(
    re: Tensor,
    im: Tensor,
    /,
    *,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = "backward",
) -> ComplexPair:
    """Spectrum of a complex signal, given as real and imaginary parts; see `rfft`."""
    number = normalize_axis(re, axis, "cfft")
    length = re.shape[number] if n is None else as_integer(n, "n", "cfft", least=1)
    pair = dispatch.execute("cfft", re, im, axis=number, n=length)
    return _scaled(pair, length, norm, "cfft", forward=True)


def icfft(
    re: Tensor,
    im: Tensor,
    /,
    *,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = "backward",
) -> ComplexPair:
    """The complex signal that a spectrum belongs to: the inverse of `cfft`."""
    number = normalize_axis(re, axis, "icfft")
    length = re.shape[number] if n is None else as_integer(n, "n", "icfft", least=1)
    pair = dispatch.execute("cfft", re, im, axis=number, n=length, inverse=True)
    return _scaled(pair, length, norm, "icfft", forward=False)


def _scaled(
    pair: tuple[Tensor, Tensor], n: int, norm: Norm, operation: str, *, forward: bool
) -> ComplexPair:
    return ComplexPair(*[_scale(part, n, norm, operation, forward=forward) for part in pair])


def _scale(
    x: Tensor, n: int, norm: Norm, operation: str, *, forward: bool, done: bool = False
) -> Tensor:
    """Divide by n or its root where this direction has to; `done` if it was divided by n."""
    if norm not in ("backward", "ortho", "forward"):
        raise ArgumentError(
            f"norm is {norm!r}",
            hint='It is "backward", "ortho" or "forward"',
            operation=operation,
        )
    power = 0.5 if norm == "ortho" else float((norm == "forward") == forward)
    if done:
        power -= 1.0
    return x if power == 0.0 else x * float(n) ** -power
