"""Fourier transforms: the extension of the array API standard."""

from burn.functions import fft as _fft, fft_frequencies as _fft_frequencies
from burn.functions.fft import *
from burn.functions.fft_frequencies import *

__all__ = _fft.__all__ + _fft_frequencies.__all__


def __dir__() -> list[str]:
    return __all__
