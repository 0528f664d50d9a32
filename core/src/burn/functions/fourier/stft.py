"""Short-time Fourier transforms: spectra of the segments of a signal, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from burn.errors import ArgumentError, ShapeError
from burn.functions import calls
from burn.functions.creation import arange, ones, zeros, zeros_like
from burn.functions.fourier.real_fourier import (
    MAX_LENGTH,
    ComplexPair,
    Norm,
    cfft,
    icfft,
    irfft,
    rfft,
)
from burn.functions.manipulation import concat, flip, reshape
from burn.functions.normalize import as_flag, as_float, rank_of
from burn.functions.quantization import numbers_of
from burn.functions.views import independent
from burn.ops.arguments import as_integer

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["istft", "stft"]

_MIN_ENVELOPE: Final = 1e-11
"""Samples at which the squares of the windows add up to less cannot be restored."""


def stft(
    x: Tensor,
    /,
    *,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool = True,
) -> ComplexPair:
    """Spectra of overlapping segments of a signal.

    Parameters
    ----------
    x : Tensor, shape (..., samples)
        Real signals.
    n_fft : int
        Length of a segment.
    hop_length : int, optional
        Distance between the starts of two segments; ``n_fft // 4`` if left out.
    win_length : int, optional
        Length of the window, which lies in the middle of a segment; `n_fft` if left out.
    window : Tensor, shape (win_length,), optional
        What each segment is multiplied by; ones if left out.
    center : bool
        Whether the middle of the first segment is the first sample: the signal is then mirrored by
        ``n_fft // 2`` samples at both ends.
    normalized : bool
        Whether to divide by the root of `n_fft`.
    onesided : bool
        Whether to return only the frequencies 0 to ``n_fft // 2``, which determine the others of a
        real signal.

    Returns
    -------
    re, im : Tensor, shape (..., frequencies, segments)
        Real and imaginary parts of the spectra.

    Raises
    ------
    ArgumentError
        If a length is less than 1, or the window longer than a segment.
    ShapeError
        If the signal is shorter than a segment, or too short to be mirrored.

    Examples
    --------
    >>> import burn
    >>> re, im = burn.signal.stft(burn.ones(8, device="cpu"), n_fft=4, center=False)
    >>> re.shape, re[:, 0].tolist()
    ((3, 5), [4.0, 0.0, 0.0])
    """
    if rank_of(x, "stft") < 1:
        raise ShapeError("a 0-d tensor is no signal", operation="stft")
    center = as_flag(center, "center", "stft")
    norm: Norm = "ortho" if as_flag(normalized, "normalized", "stft") else "backward"
    onesided = as_flag(onesided, "onesided", "stft")
    x = numbers_of(as_float(x, "stft"))
    plan = _Plan.of(n_fft, hop_length, win_length, "stft")
    weights = plan.weights(window, x, "stft")
    if center:
        x = _mirrored(x, plan.length // 2)
    samples = x.shape[-1]
    if samples < plan.length:
        raise ShapeError(
            f"{samples} samples are less than a segment of {plan.length}", operation="stft"
        )
    count = 1 + (samples - plan.length) // plan.hop
    segments = calls.select(x, plan.sample_indices(count, x), axis=x.ndim - 1)
    segments = reshape(segments, (*x.shape[:-1], count, plan.length)) * weights
    pair = (
        rfft(segments, norm=norm) if onesided else cfft(segments, zeros_like(segments), norm=norm)
    )
    return ComplexPair(independent(pair.re.mT), independent(pair.im.mT))


def istft(
    re: Tensor,
    im: Tensor,
    /,
    *,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool = True,
    length: int | None = None,
) -> Tensor:
    """The signal that spectra of its segments belong to, in the sense of least squares.

    D. Griffin and J. Lim, "Signal estimation from modified short-time Fourier transform" (IEEE
    Transactions on Acoustics, Speech and Signal Processing 32, 1984), equation 6.

    Parameters
    ----------
    re, im : Tensor, shape (..., frequencies, segments)
        What `stft` returned.
    n_fft, hop_length, win_length : int
        As given to `stft`.
    window : Tensor, shape (win_length,), optional
        As given to `stft`.
    center, normalized, onesided : bool
        As given to `stft`.
    length : int, optional
        Number of samples to return: the signal is cropped or padded with zeros.

    Returns
    -------
    Tensor, shape (..., samples)
        The signals.

    Raises
    ------
    ArgumentError
        If the windows leave samples out, which cannot be restored.
    ShapeError
        If the frequencies are not those of `n_fft`, or there is no segment.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], device="cpu")
    >>> re, im = burn.signal.stft(x, n_fft=4)
    >>> burn.allclose(burn.signal.istft(re, im, n_fft=4), x, atol=1e-5)
    True
    """
    if min(rank_of(re, "istft", "re"), rank_of(im, "istft", "im")) < 2:
        raise ShapeError(
            f"spectra have two axes or more, got {re.shape} and {im.shape}", operation="istft"
        )
    center = as_flag(center, "center", "istft")
    norm: Norm = "ortho" if as_flag(normalized, "normalized", "istft") else "backward"
    onesided = as_flag(onesided, "onesided", "istft")
    re, im = numbers_of(as_float(re, "istft")), numbers_of(as_float(im, "istft"))
    plan = _Plan.of(n_fft, hop_length, win_length, "istft")
    frequencies = plan.length // 2 + 1 if onesided else plan.length
    if re.shape[-2] != frequencies or not re.shape[-1]:
        raise ShapeError(
            f"{re.shape[-2]} frequencies of {re.shape[-1]} segments",
            hint=f"n_fft={plan.length} has {frequencies}, of one segment at least",
            operation="istft",
        )
    weights = plan.weights(window, re, "istft")
    if onesided:
        segments = irfft(re.mT, im.mT, n=plan.length, norm=norm)
    else:
        segments = icfft(re.mT, im.mT, norm=norm).re
    count = re.shape[-1]
    samples = plan.length + plan.hop * (count - 1)
    indices = plan.sample_indices(count, re)
    batch = re.shape[:-2]
    flat = reshape(segments * weights, (*batch, count * plan.length))
    blank = zeros((*batch, samples), dtype=flat.dtype, device=flat.device)
    signal = calls.select_add(blank, indices, flat, axis=len(batch))
    squares = weights * weights
    rows = reshape(squares * ones((count, 1), dtype=squares.dtype, device=squares.device), (-1,))
    blank = zeros(samples, dtype=squares.dtype, device=squares.device)
    envelope = calls.select_add(blank, indices, rows, axis=0)
    start = plan.length // 2 if center else 0
    stop = samples - start
    if length is not None:
        length = as_integer(length, "length", "istft", least=0)
        stop = min(start + length, samples)
    signal, envelope = signal[..., start:stop], envelope[start:stop]
    if envelope.size and float(envelope.min()) <= _MIN_ENVELOPE:
        raise ArgumentError(
            "the windows leave samples out",
            hint="Use a smaller hop_length, or center=True, or another window",
            operation="istft",
        )
    signal = signal / envelope
    if length is not None and length > stop - start:
        missing = (*batch, length - (stop - start))
        signal = concat([signal, zeros(missing, dtype=signal.dtype, device=signal.device)], axis=-1)
    return signal


class _Plan(NamedTuple):
    """Lengths of the segments of a signal."""

    length: int
    hop: int
    window_length: int

    @classmethod
    def of(
        cls, n_fft: int, hop_length: int | None, win_length: int | None, operation: str
    ) -> _Plan:
        length = as_integer(n_fft, "n_fft", operation, least=1, most=MAX_LENGTH)
        hop = max(length // 4, 1) if hop_length is None else hop_length
        window_length = length if win_length is None else win_length
        window_length = as_integer(window_length, "win_length", operation, least=1)
        if window_length > length:
            raise ArgumentError(
                f"win_length is {window_length}",
                hint=f"A window is not longer than n_fft, {length}",
                operation=operation,
            )
        return cls(length, as_integer(hop, "hop_length", operation, least=1), window_length)

    def weights(self, window: Tensor | None, like: Tensor, operation: str) -> Tensor:
        """The window in the middle of a segment, with zeros beside it."""
        if window is None:
            window = ones(self.window_length, dtype=like.dtype, device=like.device)
        if rank_of(window, operation, "window") != 1 or window.shape[0] != self.window_length:
            raise ShapeError(
                f"a window of shape {window.shape}",
                hint=f"It has win_length elements, {self.window_length}",
                operation=operation,
            )
        window = numbers_of(as_float(window, operation))
        missing = self.length - self.window_length
        if not missing:
            return window
        before = zeros(missing // 2, dtype=window.dtype, device=window.device)
        after = zeros(missing - missing // 2, dtype=window.dtype, device=window.device)
        return concat([before, window, after])

    def sample_indices(self, count: int, like: Tensor) -> Tensor:
        """Indices of the samples of each segment, one segment after the other."""
        dtype, device = like.device.settings.int_dtype, like.device
        starts = arange(count, dtype=dtype, device=device) * self.hop
        offsets = arange(self.length, dtype=dtype, device=device)
        return reshape(reshape(starts, (count, 1)) + offsets, (-1,))


def _mirrored(x: Tensor, count: int) -> Tensor:
    """A signal continued by its mirror image at both ends."""
    samples = x.shape[-1]
    if samples <= count:
        raise ShapeError(
            f"{samples} samples cannot be mirrored by {count}",
            hint="Use a longer signal, or center=False",
            operation="stft",
        )
    if not count:
        return x
    before = flip(x[..., 1 : count + 1], axis=-1)
    after = flip(x[..., samples - count - 1 : samples - 1], axis=-1)
    return concat([before, x, after], axis=-1)
