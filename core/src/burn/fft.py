"""Fourier transforms: the extension of the array API standard, and transforms over two axes."""

from burn.functions.fourier import (
    fft as _fft,
    fft_frequencies as _fft_frequencies,
    planar_fft as _planar,
)
from burn.functions.fourier.fft import *
from burn.functions.fourier.fft_frequencies import *
from burn.functions.fourier.planar_fft import *
from burn.public_calls import exports

__all__ = _fft.__all__ + _fft_frequencies.__all__ + _planar.__all__

exports(globals())


def __dir__() -> list[str]:
    return __all__
