"""Fourier transforms: the extension of the array API standard."""

from burn.functions.fft import *
from burn.functions.fft import __all__


def __dir__() -> list[str]:
    return __all__
