"""Signals: windows, Fourier transforms on pairs of real tensors, and spectra over time.

A complex tensor is a pair (re, im) of real ones here, so that everything has gradients, and works
on backends without complex numbers.
"""

from burn.functions.fourier.real_fourier import ComplexPair, cfft, icfft, irfft, rfft
from burn.functions.fourier.stft import istft, stft
from burn.functions.fourier.windows import (
    bartlett_window,
    blackman_window,
    cosine_window,
    exponential_window,
    gaussian_window,
    general_cosine_window,
    general_hamming_window,
    hamming_window,
    hann_window,
    kaiser_window,
    nuttall_window,
)
from burn.public_calls import exports

__all__ = [
    "ComplexPair",
    "bartlett_window",
    "blackman_window",
    "cfft",
    "cosine_window",
    "exponential_window",
    "gaussian_window",
    "general_cosine_window",
    "general_hamming_window",
    "hamming_window",
    "hann_window",
    "icfft",
    "irfft",
    "istft",
    "kaiser_window",
    "nuttall_window",
    "rfft",
    "stft",
]

exports(globals())


def __dir__() -> list[str]:
    return __all__
