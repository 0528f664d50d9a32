"""Fourier transforms through `numpy.fft`."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn_cpu.base import Array, CpuOps


class SignalOps(CpuOps):
    """NumPy transforms float32 in float32; 16-bit floats are widened to it."""

    def rfft(self, x: Array, *, axis: int, n: int) -> tuple[Array, Array]:
        """`numpy.fft.rfft`."""
        return _parts(np.fft.rfft(_wide(x), n, axis), x.dtype)

    def irfft(self, re: Array, im: Array, *, axis: int, n: int) -> Array:
        """`numpy.fft.irfft`, whose result is uninitialized for an empty spectrum."""
        if not re.shape[axis]:
            re = im = np.zeros((*re.shape[:axis], 1, *re.shape[axis + 1 :]), re.dtype)
        return np.fft.irfft(_complex(re, im), n, axis).astype(re.dtype, copy=False)

    def cfft(
        self, re: Array, im: Array, *, axis: int, n: int, inverse: bool = False
    ) -> tuple[Array, Array]:
        """`numpy.fft.fft`, and `numpy.fft.ifft` without its division."""
        signal = _complex(re, im)
        if inverse:
            return _parts(np.fft.ifft(signal, n, axis, norm="forward"), re.dtype)
        return _parts(np.fft.fft(signal, n, axis), re.dtype)


def _wide(x: Array) -> Array:
    return x.astype(np.float32) if x.dtype.itemsize < 4 else x


def _complex(re: Array, im: Array) -> Array:
    if re.shape != im.shape:  # the assignment below would broadcast
        raise ValueError("real and imaginary parts have different shapes")
    result = np.empty(re.shape, np.complex128 if re.dtype.itemsize == 8 else np.complex64)
    result.real = re
    result.imag = im
    return result


def _parts(spectrum: Array, dtype: Any) -> tuple[Array, Array]:
    return spectrum.real.astype(dtype), spectrum.imag.astype(dtype)
