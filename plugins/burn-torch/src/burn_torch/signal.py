"""Fourier transforms."""

from __future__ import annotations

import torch

from burn_torch.base import TorchOps
from burn_torch.dtypes import Tensor
from burn_torch.precision import in_float32


class SignalOps(TorchOps):
    """`torch.fft` on pairs of real and imaginary parts."""

    @in_float32
    def rfft(self, x: Tensor, *, axis: int, n: int) -> tuple[Tensor, Tensor]:
        """`torch.fft.rfft`."""
        _check(x, axis, n)
        if not x.numel():
            return self.decomposed("rfft", x, axis=axis, n=n)
        spectrum = torch.fft.rfft(x, n, axis)
        return spectrum.real, spectrum.imag

    @in_float32
    def irfft(self, re: Tensor, im: Tensor, *, axis: int, n: int) -> Tensor:
        """`torch.fft.irfft`; imaginary parts that it must ignore are set to 0."""
        _check(re, axis, n)
        if re.shape != im.shape or not re.numel():
            return self.decomposed("irfft", re, im, axis=axis, n=n)
        half = n // 2 + 1
        spectrum = torch.complex(re, im).narrow(axis, 0, min(half, re.shape[axis]))
        imag = spectrum.imag
        imag.select(axis, 0).zero_()
        if not n % 2 and spectrum.shape[axis] == half:
            imag.select(axis, half - 1).zero_()
        result: Tensor = torch.fft.irfft(spectrum, n, axis)
        return result

    @in_float32
    def cfft(
        self, re: Tensor, im: Tensor, *, axis: int, n: int, inverse: bool = False
    ) -> tuple[Tensor, Tensor]:
        """`torch.fft.fft`, and `torch.fft.ifft` without its division."""
        _check(re, axis, n)
        if re.shape != im.shape or not re.numel():
            return self.decomposed("cfft", re, im, axis=axis, n=n, inverse=inverse)
        signal = torch.complex(re, im)
        if inverse:
            spectrum = torch.fft.ifft(signal, n, axis, norm="forward")
        else:
            spectrum = torch.fft.fft(signal, n, axis)
        return spectrum.real, spectrum.imag


def _check(x: Tensor, axis: int, n: int) -> None:
    if not 0 <= axis < x.dim() or n < 1:
        raise ValueError(f"a transform of {n} elements along axis {axis} of {x.shape}")
