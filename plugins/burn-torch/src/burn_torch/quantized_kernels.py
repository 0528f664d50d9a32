"""Codes and scales of rows on CUDA, by one kernel that torch compiles with NVRTC.

Torch's own kernels take five passes for the same: more time than a product of float8 saves.
"""

from __future__ import annotations

import functools
from importlib import resources
from typing import Any, Final

import torch

from burn.plugin_api import QuantScheme, QuantValue, ScaleDType
from burn_torch.dtypes import Tensor

__all__ = ["RowQuantizer"]

_compile: Final[Any] = getattr(torch.cuda, "_compile_kernel", None)  # since torch 2.9

_NAME: Final = "quantized_rows"
_INPUTS: Final = {torch.float32: (32, 0), torch.float16: (16, 0), torch.bfloat16: (16, 1)}
"""Dtypes of numbers: their bits, and whether they are bfloat16."""

_CONVERSIONS: Final = {
    QuantValue.E4M3: "cvt.rn.satfinite.e4m3x2.f32",
    QuantValue.E5M2: "cvt.rn.satfinite.e5m2x2.f32",
}
_CONVERTING_CAPABILITY: Final = (8, 9)
"""The first compute capability with these instructions."""

_THREADS: Final = 256
"""Of a block: THREADS of the kernel."""

_WIDTH: Final = 8
"""Numbers that a thread reads at once: WIDTH of the kernel."""

_ALIGNMENT: Final = 16
"""Of an address from which a thread reads, in bytes."""

_LEAST_LENGTH: Final = 256
"""Numbers in a row for which a block is worth its launch."""

_SHARED_LENGTH: Final = 4096
"""Numbers for a block where all share a scale."""

_INT32_MAX: Final = 2**31 - 1


class RowQuantizer:
    """Kernels for one device, compiled when they are first used.

    Parameters
    ----------
    device : torch.device
        A CUDA device.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._kernels: dict[tuple[torch.dtype, QuantValue], Any] = {}
        self._is_there = _compile is not None and device.type == "cuda" and not torch.version.hip

    def dynamic(self, x: Tensor, scheme: QuantScheme) -> tuple[Tensor, Tensor] | None:
        """The codes, an element for each, and scales of rows; None where another way is needed."""
        if not self._takes(x, scheme) or not _shares_rows(scheme, tuple(x.shape)):
            return None
        scales = torch.empty((*x.shape[:-1], 1), dtype=torch.float32, device=x.device)
        codes = self._launched(x, scales, scheme, x.shape[-1], -1)
        return None if codes is None else (codes, scales)

    def with_scales(self, x: Tensor, scales: Tensor, scheme: QuantScheme) -> Tensor | None:
        """The codes, an element for each, for scales of rows or of the tensor; or None."""
        if not self._takes(x, scheme) or scheme.level.is_global:
            return None
        scales = scales.contiguous()
        if scales.numel() == 1:
            return self._launched(x, scales, scheme, _SHARED_LENGTH, 0)
        if not _shares_rows(scheme, tuple(x.shape)):
            return None
        return self._launched(x, scales, scheme, x.shape[-1], 1)

    def _takes(self, x: Tensor, scheme: QuantScheme) -> bool:
        return (
            self._is_there
            and scheme.scale_dtype is ScaleDType.F32
            and x.dtype in _INPUTS
            and x.is_contiguous()
            and 0 < x.numel() <= _INT32_MAX - _SHARED_LENGTH
            and not x.numel() % _WIDTH
            and not x.data_ptr() % _ALIGNMENT
        )

    def _launched(
        self, x: Tensor, scales: Tensor, scheme: QuantScheme, length: int, stride: int
    ) -> Tensor | None:
        """The codes by the kernel; None where it cannot be compiled."""
        dtype = torch.uint8 if scheme.value.is_float else torch.int8
        codes = torch.empty(x.shape, dtype=dtype, device=x.device)
        key = x.dtype, scheme.value
        with torch.cuda.device(self._device):
            if key not in self._kernels:
                self._kernels[key] = self._compiled(*key)
            kernel = self._kernels[key]
            if kernel is None:
                return None
            kernel(
                grid=(-(-x.numel() // length), 1, 1),
                block=(_THREADS, 1, 1),
                args=[x, codes, scales, length, x.numel(), stride],
            )
        return codes

    def _compiled(self, dtype: torch.dtype, value: QuantValue) -> Any:
        source = _source(dtype, value)
        capability = torch.cuda.get_device_capability(self._device)
        if source is None or (value in _CONVERSIONS and capability < _CONVERTING_CAPABILITY):
            return None
        try:
            return _compile(source, _NAME)
        except Exception:  # noqa: BLE001 — without NVRTC, whatever that raises, torch's own kernels compute
            return None


def _shares_rows(scheme: QuantScheme, shape: tuple[int, ...]) -> bool:
    """Whether the elements of a row share a scale, and no others do."""
    return (
        not scheme.level.is_global
        and bool(scheme.level.block)
        and shape[-1] >= _LEAST_LENGTH
        and not shape[-1] % _WIDTH
        and scheme.scales_shape(shape) == (*shape[:-1], 1)
    )


def _source(dtype: torch.dtype, value: QuantValue) -> str | None:
    """The kernel for a dtype of numbers and a value; None for floats of 4 bits."""
    if value.is_float and value not in _CONVERSIONS:
        return None
    bits, is_bfloat16 = _INPUTS[dtype]
    low, high = value.range
    lines = [
        f"#define INPUT_BITS {bits}",
        f"#define IS_BFLOAT16 {is_bfloat16}",
        f"#define LOW {float(low)}f",
        f"#define HIGH {float(high)}f",
    ]
    if value in _CONVERSIONS:
        lines.append(f'#define CONVERSION "{_CONVERSIONS[value]}"')
    return "\n".join([*lines, _text()])


@functools.cache
def _text() -> str:
    return (resources.files("burn_torch") / "kernels" / f"{_NAME}.cu").read_text("utf-8")
