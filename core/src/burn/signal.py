"""Signals: windows, Fourier transforms on pairs of real tensors, and spectra over time.

A complex tensor is a pair (re, im) of real ones here, so that everything has gradients, and works
on backends without complex numbers.
"""

from burn.functions.real_fourier import ComplexPair, cfft, icfft, irfft, rfft
from burn.functions.stft import istft, stft
from burn.functions.windows import blackman_window, hamming_window, hann_window

__all__ = [
    "ComplexPair",
    "blackman_window",
    "cfft",
    "hamming_window",
    "hann_window",
    "icfft",
    "irfft",
    "istft",
    "rfft",
    "stft",
]


def __dir__() -> list[str]:
    return __all__
