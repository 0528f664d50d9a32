"""Discrete Fourier transforms (extension "Fourier transform" of the array API standard).

The ops transform tensors of real and of imaginary parts, which have gradients; here they become
complex tensors, which have none. `irfft` and `hfft` of a real tensor have gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from burn.docstrings import documented_as
from burn.dtype import float32
from burn.errors import (
    ArgumentError,
    BurnError,
    DTypeError,
    OperandTypeError,
    ShapeError,
    UnsupportedOpError,
)
from burn.functions import calls
from burn.functions.creation import zeros_like
from burn.functions.elementwise import complex, conj, imag, negative, real
from burn.functions.fourier.real_fourier import MAX_LENGTH, ComplexPair, Norm, norm_factor, scaled
from burn.functions.normalize import (
    as_float,
    check_tensor,
    normalize_axes,
    normalize_axis,
    rank_of,
)
from burn.functions.quantization import numbers_of
from burn.ops.arguments import as_integer
from burn.public_calls import public_operation, shown_value

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "fft",
    "fftn",
    "hfft",
    "ifft",
    "ifftn",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftn",
]


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
        ``"forward"`` divides transforms into frequencies by the number of elements, ``"backward"``
        their inverses, ``"ortho"`` both by its square root.

    Returns
    -------
    Tensor
        Complex, with `n` frequencies along `axis`.

    Raises
    ------
    ArgumentError
        If `norm` is another string.
    AxisError
        If `x` has no such axis.
    DTypeError
        If the device has no complex numbers; `burn.signal` has transforms to pairs of real tensors.
    ShapeError
        If the length is less than 1.

    Examples
    --------
    >>> import burn
    >>> burn.fft.fft(burn.asarray([1.0, 2.0], device="cpu")).tolist()
    [(3+0j), (-1+0j)]
    """
    return _transform(x, [(n, axis)], norm, "fft", inverse=False)


@documented_as(fft)
def ifft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """The signal along an axis that a spectrum belongs to: the inverse of `fft`.

    The parameters are those of `fft`.

    Returns
    -------
    Tensor
        Complex, with `n` samples along `axis`.

    Examples
    --------
    >>> import burn
    >>> burn.fft.ifft(burn.asarray([3.0, -1.0], device="cpu")).tolist()
    [(1+0j), (2+0j)]
    """
    return _transform(x, [(n, axis)], norm, "ifft", inverse=True)


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
        Length of each transform: an axis is cropped to it, or padded with zeros at its end.
    axes : sequence of int, optional
        The axes to transform; without it the last ones as many as `s` has lengths, or all.
    norm : {"backward", "ortho", "forward"}
        ``"forward"`` divides transforms into frequencies by the number of elements, ``"backward"``
        their inverses, ``"ortho"`` both by its square root.

    Returns
    -------
    Tensor
        Complex, with as many frequencies along each axis as its length in `s`.

    Raises
    ------
    ArgumentError
        If there is not one length for each axis, or `norm` is another string.
    AxisError
        If `x` has no such axis, or one is named twice.
    DTypeError
        If the device has no complex numbers; `burn.signal` has transforms to pairs of real tensors.
    ShapeError
        If a length is less than 1.

    Examples
    --------
    >>> import burn
    >>> burn.fft.fftn(burn.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")).tolist()
    [[(10+0j), (-2+0j)], [(-4+0j), 0j]]
    """
    return _transform(x, _lengths(x, s, axes, "fftn"), norm, "fftn", inverse=False)


@documented_as(fftn)
def ifftn(
    x: Tensor,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """The signal along several axes that a spectrum belongs to: the inverse of `fftn`.

    The parameters are those of `fftn`.

    Returns
    -------
    Tensor
        Complex, with as many samples along each axis as its length in `s`.

    Examples
    --------
    >>> import burn
    >>> burn.fft.ifftn(burn.asarray([[10.0, -2.0], [-4.0, 0.0]], device="cpu")).tolist()
    [[(1+0j), (2+0j)], [(3+0j), (4+0j)]]
    """
    return _transform(x, _lengths(x, s, axes, "ifftn"), norm, "ifftn", inverse=True)


def rfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Half of the spectrum of a real signal along an axis: frequencies 0 to ``n // 2``.

    The other half is the conjugate of this one.

    Parameters
    ----------
    x : Tensor
        Real tensor.
    n : int, optional
        Length of the transform: the axis is cropped to it, or padded with zeros at its end.
    axis : int
        The axis to transform.
    norm : {"backward", "ortho", "forward"}
        ``"forward"`` divides transforms into frequencies by the number of elements, ``"backward"``
        their inverses, ``"ortho"`` both by its square root.

    Returns
    -------
    Tensor
        Complex, with ``n // 2 + 1`` frequencies along `axis`.

    Raises
    ------
    ArgumentError
        If `norm` is another string.
    AxisError
        If `x` has no such axis.
    DTypeError
        If `x` is complex, or the device has no complex numbers; `burn.signal` has transforms to
        pairs of real tensors.
    ShapeError
        If the length is less than 1.

    Examples
    --------
    >>> import burn
    >>> burn.fft.rfft(burn.asarray([1.0, 2.0, 3.0, 4.0], device="cpu")).tolist()
    [(10+0j), (-2+2j), (-2+0j)]
    """
    return _assembled(*_real_spectrum(x, n, axis, norm, "rfft"), "rfft")


def irfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """The real signal that half of a spectrum belongs to: the inverse of `rfft`.

    Parameters
    ----------
    x : Tensor
        Complex tensor of the frequencies 0 to ``n // 2``, or a real one.
    n : int, optional
        Length of the signal; ``2 * (frequencies - 1)`` if left out. Signals of odd lengths need it.
    axis : int
        The axis to transform.
    norm : {"backward", "ortho", "forward"}
        ``"forward"`` divides transforms into frequencies by the number of elements, ``"backward"``
        their inverses, ``"ortho"`` both by its square root.

    Returns
    -------
    Tensor
        Real, with `n` samples along `axis`.

    Raises
    ------
    ArgumentError
        If `norm` is another string.
    AxisError
        If `x` has no such axis.
    ShapeError
        If the length is less than 1.

    Examples
    --------
    >>> import burn
    >>> burn.fft.irfft(burn.asarray([10.0, -2 + 2j, -2.0], device="cpu")).tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    return _real_signal(_parts(x, "irfft"), n, axis, norm, "irfft")


@documented_as(fftn)
def rfftn(
    x: Tensor,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """Spectrum of a real signal along several axes, of which the last is halved as by `rfft`.

    The other parameters are those of `fftn`.

    Parameters
    ----------
    x : Tensor
        Real tensor.

    Returns
    -------
    Tensor
        Complex, with ``n // 2 + 1`` frequencies along the last axis for the length n of it.

    Raises
    ------
    DTypeError
        If `x` is complex, or the device has no complex numbers; `burn.signal` has transforms to
        pairs of real tensors.

    Examples
    --------
    >>> import burn
    >>> burn.fft.rfftn(burn.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")).tolist()
    [[(10+0j), (-2+0j)], [(-4+0j), 0j]]
    """
    *others, (length, axis) = _lengths(x, s, axes, "rfftn")
    pair = _real_spectrum(x, length, axis, norm, "rfftn")
    for length, axis in others:
        pair = _transform_pair(pair, length, axis, norm, "rfftn", inverse=False)
    return _assembled(*pair, "rfftn")


def irfftn(
    x: Tensor,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """The real signal along several axes that a halved spectrum belongs to: the inverse of `rfftn`.

    Parameters
    ----------
    x : Tensor
        Complex tensor, halved along the last of the axes, or a real one.
    s : sequence of int, optional
        Length of the signal along each axis; along the last it is ``2 * (frequencies - 1)`` if left
        out.
    axes : sequence of int, optional
        The axes to transform; without it the last ones as many as `s` has lengths, or all.
    norm : {"backward", "ortho", "forward"}
        ``"forward"`` divides transforms into frequencies by the number of elements, ``"backward"``
        their inverses, ``"ortho"`` both by its square root.

    Returns
    -------
    Tensor
        Real, with as many samples along each axis as its length in `s`.

    Raises
    ------
    ArgumentError
        If there is not one length for each axis, or `norm` is another string.
    AxisError
        If `x` has no such axis, or one is named twice.

    ShapeError
        If a length is less than 1.

    Examples
    --------
    >>> import burn
    >>> burn.fft.irfftn(burn.asarray([[10.0, -2.0], [-4.0, 0.0]], device="cpu")).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    *others, (last_length, last_axis) = _lengths(x, s, axes, "irfftn")
    pair = _parts(x, "irfftn")
    for length, axis in others:
        pair = _transform_pair(pair, length, axis, norm, "irfftn", inverse=True)
    return _real_signal(pair, last_length, last_axis, norm, "irfftn")


@documented_as(irfft)
def hfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """The real spectrum of a signal whose reverse is its conjugate, given half of it.

    The other parameters are those of `irfft`.

    Parameters
    ----------
    x : Tensor
        Complex tensor of the samples 0 to ``n // 2``, or a real one.
    n : int, optional
        Length of the spectrum; ``2 * (samples - 1)`` if left out. Spectra of odd lengths need it.

    Returns
    -------
    Tensor
        Real, with `n` frequencies along `axis`.

    Examples
    --------
    >>> import burn
    >>> burn.fft.hfft(burn.asarray([1.0, 2.0, 3.0], device="cpu")).tolist()
    [8.0, -2.0, 0.0, -2.0]
    """
    re, im = _parts(x, "hfft")
    return _real_signal(ComplexPair(re, negative(im)), n, axis, _opposite(norm), "hfft")


@documented_as(rfft)
def ihfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Half of the signal that a real spectrum belongs to: the inverse of `hfft`.

    The parameters are those of `rfft`.

    Returns
    -------
    Tensor
        Complex, with ``n // 2 + 1`` samples along `axis`.

    Examples
    --------
    >>> import burn
    >>> burn.fft.ihfft(burn.asarray([8.0, -2.0, 0.0, -2.0], device="cpu")).tolist()
    [(1-0j), (2-0j), (3-0j)]
    """
    pair = _real_spectrum(x, n, axis, _opposite(norm), "ihfft")
    return conj(_assembled(*pair, "ihfft"))


def _parts(x: Tensor, operation: str) -> ComplexPair:
    """Real and imaginary parts of a tensor, in float32 or float64."""
    check_tensor(x, "x", operation)
    if x.dtype.is_complex:
        return ComplexPair(real(x), imag(x))
    x = numbers_of(as_float(x, operation))
    if x.dtype.itemsize < float32.itemsize:
        x = x.astype(float32)
    return ComplexPair(x, zeros_like(x))


def _assembled(re: Tensor, im: Tensor, operation: str) -> Tensor:
    """A complex tensor of its parts; where there is none, the error names the transform."""
    try:
        return complex(re, im)
    except BurnError as error:
        if isinstance(error, UnsupportedOpError) and (re.is_tracked or im.is_tracked):
            error.hint = (
                "burn.signal.rfft, cfft and icfft give real and imaginary parts, which have "
                "gradients; .detach() drops that of the operand"
            )
        error.operation = public_operation(operation)
        raise


def check_length(n: Any, operation: str) -> int:
    length = as_integer(n, "n", operation, most=MAX_LENGTH)
    if length < 1:
        raise ShapeError(f"n is {length}", hint="Use a length of 1 or more", operation=operation)
    return length


def _lengths(
    x: Tensor, s: Sequence[int] | None, axes: Sequence[int] | None, operation: str
) -> Sequence[tuple[int | None, int]]:
    """Length and axis of each transform of several."""
    rank = rank_of(x, operation)
    lengths = None if s is None else _as_tuple(s, "s", operation)
    if axes is not None:
        numbers = normalize_axes(x, _as_tuple(axes, "axes", operation), operation)
    else:
        numbers = tuple(range(0 if lengths is None else max(rank - len(lengths), 0), rank))
    if not numbers or (lengths is not None and len(lengths) != len(numbers)):
        raise ArgumentError(
            f"{len(lengths or ())} lengths for axes {numbers} of a tensor of {rank} axes",
            hint="Give a length for each axis",
            operation=operation,
        )
    return list(zip(lengths or [None] * len(numbers), numbers, strict=True))


def _as_tuple(value: Sequence[int], name: str, operation: str) -> tuple[int, ...]:
    try:
        return tuple(value)
    except TypeError:
        raise OperandTypeError(
            f"{name} must be a sequence of integers, not {shown_value(value)}", operation=operation
        ) from None


def _transform(
    x: Tensor,
    lengths: Sequence[tuple[int | None, int]],
    norm: Norm,
    operation: str,
    *,
    inverse: bool,
) -> Tensor:
    """Complex transforms along some axes, each with its length."""
    pair = _parts(x, operation)
    for length, axis in lengths:
        pair = _transform_pair(pair, length, axis, norm, operation, inverse=inverse)
    return _assembled(*pair, operation)


def _transform_pair(
    pair: ComplexPair, n: int | None, axis: int, norm: Norm, operation: str, *, inverse: bool
) -> ComplexPair:
    number = normalize_axis(pair.re, axis, operation)
    length = check_length(pair.re.shape[number] if n is None else n, operation)
    factor = norm_factor(norm, length, operation, inverse=inverse)
    re, im = calls.cfft(*pair, axis=number, n=length, inverse=inverse)
    return ComplexPair(scaled(re, factor), scaled(im, factor))


def _real_spectrum(x: Tensor, n: int | None, axis: int, norm: Norm, operation: str) -> ComplexPair:
    """Half of the spectrum of a real tensor."""
    number = normalize_axis(x, axis, operation)
    if x.dtype.is_complex:
        raise DTypeError(
            f"takes real tensors, got {x.dtype}",
            hint="Use burn.fft.fft for complex ones",
            operation=operation,
        )
    length = check_length(x.shape[number] if n is None else n, operation)
    factor = norm_factor(norm, length, operation, inverse=False)
    re, im = calls.rfft(x, axis=number, n=length)
    return ComplexPair(scaled(re, factor), scaled(im, factor))


def _real_signal(pair: ComplexPair, n: int | None, axis: int, norm: Norm, operation: str) -> Tensor:
    """The real tensor that half of a spectrum belongs to."""
    number = normalize_axis(pair.re, axis, operation)
    length = check_length(2 * (pair.re.shape[number] - 1) if n is None else n, operation)
    # The op itself divides by n.
    factor = norm_factor(norm, length, operation, inverse=True, divided=True)
    return scaled(calls.irfft(*pair, axis=number, n=length), factor)


def _opposite(norm: Norm) -> Norm:
    """The norm of the inverse transform; of no norm itself, which is refused later."""
    if not isinstance(norm, str):
        return norm
    return {"backward": "forward", "forward": "backward"}.get(norm, norm)  # type: ignore[return-value]  # a Norm
