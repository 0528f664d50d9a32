"""Spectra of the parts of a signal, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from burn.errors import ArgumentError, ShapeError
from burn.functions.common import dispatch
from burn.functions.creation import arange, ones, zeros
from burn.functions.manipulation import concat, flip, reshape
from burn.functions.normalize import as_float, rank_of
from burn.functions.real_fourier import ComplexPair, Norm, cfft, icfft, irfft, rfft
from burn.functions.views import independent
from burn.ops.arguments import as_integer

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["istft", "stft"]

_ENVELOPE = 1e-11
"""Where the squares of the windows add up to less, nothing is left of a signal."""


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
    """Spectra of overlapping parts of a signal.

    Parameters
    ----------
    x : Tensor, shape (..., samples)
        Real signals.
    n_fft : int
        Length of a part.
    hop_length : int, optional
        Distance of the starts of two parts; ``n_fft // 4`` if left out.
    win_length : int, optional
        Length of the window, which stands in the middle of a part; `n_fft` if left out.
    window : Tensor, shape (win_length,), optional
        What each part is multiplied by; ones if left out.
    center : bool
        Whether the middle of the first part is the first sample: the signal is then mirrored by
        ``n_fft // 2`` samples at both ends.
    normalized : bool
        Whether to divide by the root of `n_fft`.
    onesided : bool
        Whether to return the frequencies 0 to ``n_fft // 2`` alone, which tell all of a real
        signal.

    Returns
    -------
    ComplexPair, shape (..., frequencies, parts)

    Raises
    ------
    ShapeError
        If the signal is shorter than a part, or too short to be mirrored.
    """
    if rank_of(x, "stft") < 1:
        raise ShapeError("a number is no signal", operation="stft")
    x = as_float(x, "stft")
    plan = _Plan.of(n_fft, hop_length, win_length, "stft")
    shape = plan.window(window, x, "stft")
    if center:
        x = _mirrored(x, plan.length // 2)
    samples = x.shape[-1]
    if samples < plan.length:
        raise ShapeError(
            f"{samples} samples are less than a part of {plan.length}", operation="stft"
        )
    count = 1 + (samples - plan.length) // plan.hop
    parts = dispatch.execute("select", x, plan.places(count, x), axis=x.ndim - 1)
    parts = reshape(parts, (*x.shape[:-1], count, plan.length)) * shape
    norm: Norm = "ortho" if normalized else "backward"
    pair = rfft(parts, norm=norm) if onesided else cfft(parts, parts * 0.0, norm=norm)
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
    """The signal that spectra of its parts belong to, in the sense of least squares.

    D. Griffin and J. Lim, "Signal estimation from modified short-time Fourier transform" (1984).

    Parameters
    ----------
    re, im : Tensor, shape (..., frequencies, parts)
        What `stft` returned.
    n_fft, hop_length, win_length, window, center, normalized, onesided
        As given to `stft`.
    length : int, optional
        Number of samples to return: the signal is cropped or padded with zeros.

    Returns
    -------
    Tensor, shape (..., samples)

    Raises
    ------
    ArgumentError
        If the windows leave samples out, so that nothing is known of them.
    """
    if rank_of(re, "istft") < 2 or rank_of(im, "istft") < 2:
        raise ShapeError(
            f"spectra have two axes or more, got {re.shape} and {im.shape}", operation="istft"
        )
    re, im = as_float(re, "istft"), as_float(im, "istft")
    plan = _Plan.of(n_fft, hop_length, win_length, "istft")
    wanted = plan.length // 2 + 1 if onesided else plan.length
    if re.shape[-2] != wanted or not re.shape[-1]:
        raise ShapeError(
            f"{re.shape[-2]} frequencies of {re.shape[-1]} parts",
            hint=f"There are {wanted} for n_fft={plan.length}, and one part at least",
            operation="istft",
        )
    shape = plan.window(window, re, "istft")
    norm: Norm = "ortho" if normalized else "backward"
    if onesided:
        parts = irfft(re.mT, im.mT, n=plan.length, norm=norm)
    else:
        parts = icfft(re.mT, im.mT, norm=norm).re
    count = re.shape[-1]
    samples = plan.length + plan.hop * (count - 1)
    places = plan.places(count, re)
    batch = re.shape[:-2]
    flat = reshape(parts * shape, (*batch, count * plan.length))
    blank = zeros((*batch, samples), dtype=flat.dtype, device=flat.device)
    signal: Tensor = dispatch.execute("select_add", blank, places, flat, axis=len(batch))
    squares = shape * shape
    rows = reshape(squares * ones((count, 1), dtype=squares.dtype, device=squares.device), (-1,))
    blank = zeros(samples, dtype=squares.dtype, device=squares.device)
    envelope: Tensor = dispatch.execute("select_add", blank, places, rows, axis=0)
    start = plan.length // 2 if center else 0
    stop = samples - start
    if length is not None:
        stop = min(start + as_integer(length, "length", "istft", least=0), samples)
    signal, envelope = signal[..., start:stop], envelope[start:stop]
    if envelope.size and float(envelope.min()) <= _ENVELOPE:
        raise ArgumentError(
            "the windows leave samples out",
            hint="Use a smaller hop_length, or center=True, or another window",
            operation="istft",
        )
    signal = signal / envelope
    if length is not None and length > stop - start:
        rest = (*batch, length - (stop - start))
        signal = concat([signal, zeros(rest, dtype=signal.dtype, device=signal.device)], axis=-1)
    return signal


class _Plan(NamedTuple):
    """Lengths of the parts of a signal."""

    length: int
    hop: int
    window_length: int

    @classmethod
    def of(
        cls, n_fft: int, hop_length: int | None, win_length: int | None, operation: str
    ) -> _Plan:
        length = as_integer(n_fft, "n_fft", operation, least=1)
        hop = max(length // 4, 1) if hop_length is None else hop_length
        inner = (
            length
            if win_length is None
            else as_integer(win_length, "win_length", operation, least=1)
        )
        if inner > length:
            raise ArgumentError(
                f"win_length is {inner}",
                hint=f"A window is not longer than n_fft, {length}",
                operation=operation,
            )
        return cls(length, as_integer(hop, "hop_length", operation, least=1), inner)

    def window(self, window: Tensor | None, like: Tensor, operation: str) -> Tensor:
        """The window in the middle of a part."""
        if window is None:
            window = ones(self.window_length, dtype=like.dtype, device=like.device)
        if rank_of(window, operation) != 1 or window.shape[0] != self.window_length:
            raise ShapeError(
                f"a window of shape {window.shape}",
                hint=f"It has win_length elements, {self.window_length}",
                operation=operation,
            )
        window = as_float(window, operation)
        missing = self.length - self.window_length
        if not missing:
            return window
        before = zeros(missing // 2, dtype=window.dtype, device=window.device)
        after = zeros(missing - missing // 2, dtype=window.dtype, device=window.device)
        return concat([before, window, after])

    def places(self, count: int, like: Tensor) -> Tensor:
        """Which samples are in each part, one after the other."""
        dtype, device = like.device.settings.int_dtype, like.device
        start = arange(count, dtype=dtype, device=device) * self.hop
        inside = arange(self.length, dtype=dtype, device=device)
        return reshape(reshape(start, (count, 1)) + inside, (-1,))


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
