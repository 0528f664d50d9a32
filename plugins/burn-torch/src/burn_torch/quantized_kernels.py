"""Kernels for quantized tensors on CUDA, which torch compiles with NVRTC when they are first used.

Torch's own functions take five passes to quantize, and multiply codes and scales of different
dtypes slowly: more time than a product in few bits saves.
"""

from __future__ import annotations

import functools
import threading
from importlib import resources
from typing import Any, Final

import torch

from burn.plugin_api import QuantScheme, QuantValue, ScaleDType
from burn_torch.dtypes import Tensor
from burn_torch.launching import Launch

__all__ = ["QuantizedKernels"]

_compile: Final[Any] = getattr(torch.cuda, "_compile_kernel", None)  # since torch 2.9

_FEW_ROWS: Final = {8: 8, 4: 4, 2: 2}
"""For the bits of a code, the most rows of which a product by warps takes less time than one of a
restored weight. Measured on an H200."""

_FLOATS: Final = {torch.float32: (32, 0), torch.float16: (16, 0), torch.bfloat16: (16, 1)}
"""Dtypes of numbers: their bits, and whether they are bfloat16."""

_FLOAT8: Final = {QuantValue.E4M3: "e4m3", QuantValue.E5M2: "e5m2"}
"""Floats that instructions of the device convert."""

_FLOAT8_CAPABILITY: Final = (8, 9)
"""The first compute capability with these instructions."""

_CAPABILITY: Final = (8, 0)
"""The first compute capability with an instruction that rounds to bfloat16."""

_THREADS: Final = 256
"""Of a block: THREADS of the kernels."""

_WARP: Final = 32
"""Threads that run in step."""

_WIDTH: Final = 8
"""Numbers that a thread reads at once: WIDTH of the kernels."""

_ALIGNMENT: Final = 16
"""Of an address from which a thread reads, in bytes."""

_TWO_READS: Final = 4
"""The most rows of a product for which a thread reads twice 16 bytes at once."""

_LEAST_LENGTH: Final = 256
"""Numbers in a row for which a block of threads is worth its launch."""

_SHARED_LENGTH: Final = 4096
"""Numbers for a block of threads where all share a scale."""

_INT32_MAX: Final = 2**31 - 1

_ROWS, _LARGEST, _FROM_LARGEST, _GIVEN_ONE, _GIVEN_ROWS = range(5)
"""MODE of the kernel `quantize`."""


class QuantizedKernels:
    """The kernels on one device. Each method returns None for what it does not take.

    Parameters
    ----------
    device : torch.device
        The device; if it is not one of CUDA, there are no kernels.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._kernels: dict[tuple[Any, ...], Any] = {}
        self._threads = threading.local()
        self._capability: tuple[int, int] = (0, 0)
        if _compile is not None and device.type == "cuda" and not torch.version.hip:
            self._capability = torch.cuda.get_device_capability(device)
        self._is_there = self._capability >= _CAPABILITY

    def quantize_dynamic(self, x: Tensor, scheme: QuantScheme) -> tuple[Tensor, Tensor] | None:
        """The codes, an element for each, and scales of rows or of the tensor."""
        if not self._quantizes(x, scheme):
            return None
        if _shares_rows(scheme, tuple(x.shape)):
            scales = torch.empty((*x.shape[:-1], 1), dtype=torch.float32, device=x.device)
            codes = self._quantized(x, scales, scales, scheme, x.shape[-1], _ROWS)
        elif not scheme.level.block:
            scales = torch.empty(1, dtype=torch.float32, device=x.device)
            largest = torch.zeros(1, dtype=torch.int32, device=x.device)
            if self._quantized(x, scales, largest, scheme, _SHARED_LENGTH, _LARGEST) is None:
                return None
            codes = self._quantized(x, scales, largest, scheme, _SHARED_LENGTH, _FROM_LARGEST)
        else:
            return None
        return None if codes is None else (codes, scales)

    def quantize(self, x: Tensor, scales: Tensor, scheme: QuantScheme) -> Tensor | None:
        """The codes, an element for each, for scales of rows or of the tensor."""
        if not self._quantizes(x, scheme):
            return None
        scales = scales.contiguous()
        if scales.numel() == 1:
            return self._quantized(x, scales, scales, scheme, _SHARED_LENGTH, _GIVEN_ONE)
        if not _shares_rows(scheme, tuple(x.shape)):
            return None
        return self._quantized(x, scales, scales, scheme, x.shape[-1], _GIVEN_ROWS)

    def dequantize(
        self, words: Tensor, scale: Tensor, scheme: QuantScheme, dtype: torch.dtype
    ) -> Tensor | None:
        """The numbers of words that are packed along the last axis, for float32 scales."""
        block = self._block(words, scale, scheme, dtype, _WIDTH)
        if block is None:
            return None
        shape = scheme.logical_shape(tuple(words.shape))
        result = torch.empty(shape, dtype=dtype, device=words.device)
        total = result.numel()
        is_launched = self._launch(
            "dequantize",
            self._defines(dtype, scheme.value),
            -(-total // (_THREADS * _WIDTH)),
            [words, scale.contiguous(), result, shape[-1], block, total],
        )
        return result if is_launched else None

    def few_rows(
        self, x: Tensor, words: Tensor, scale: Tensor, scheme: QuantScheme, bias: Tensor | None
    ) -> Tensor | None:
        """The product of a matrix of few rows and the transpose of words, shape (outer, inner)."""
        codes = 128 // scheme.value.bits  # of the 16 bytes that a thread reads
        if not 0 < x.shape[0] <= _FEW_ROWS[scheme.value.bits]:
            return None
        block = self._block(words, scale, scheme, x.dtype, codes)
        if block is None:
            return None
        x = x.contiguous()
        if x.data_ptr() % _ALIGNMENT:
            return None
        count, outer = x.shape[0], words.shape[0]
        # More registers cost more than a second read under way gains.
        shares_rows = block in (0, x.shape[1])
        reads = 2 if 1 < count <= _TWO_READS or (count == 1 and shares_rows) else 1
        result = torch.empty((count, outer), dtype=x.dtype, device=x.device)
        is_launched = self._launch(
            "few_rows",
            (
                *self._defines(x.dtype, scheme.value),
                f"#define ROWS {count}",
                f"#define READS {reads}",
            ),
            -(-outer * _WARP // _THREADS),
            [
                x,
                words,
                scale.contiguous(),
                _or_null(bias, result),
                result,
                x.shape[1],
                block,
                outer,
            ],
        )
        return result if is_launched else None

    def scaled_sums(
        self,
        sums: Tensor,
        of_rows: Tensor,
        of_columns: Tensor,
        bias: Tensor | None,
        dtype: torch.dtype,
    ) -> Tensor | None:
        """Sums of int32 times float32 scales, shape (rows or 1, 1) and (1, columns or 1)."""
        columns, total = sums.shape[1], sums.numel()
        if (
            not self._is_there
            or dtype not in _FLOATS
            or columns % _WIDTH
            or not 0 < total <= _INT32_MAX
            or not sums.is_contiguous()
        ):
            return None
        result = torch.empty(sums.shape, dtype=dtype, device=sums.device)
        strides = [int(tensor.numel() > 1) for tensor in (of_rows, of_columns)]
        scales = [tensor.contiguous() for tensor in (of_rows, of_columns)]
        is_launched = self._launch(
            "scaled_sums",
            self._defines(dtype, QuantValue.Q8S),
            -(-total // (_THREADS * _WIDTH)),
            [sums, *scales, _or_null(bias, result), result, columns, *strides, total],
        )
        return result if is_launched else None

    def _quantizes(self, x: Tensor, scheme: QuantScheme) -> bool:
        return (
            self._is_there
            and self._knows(scheme.value)
            and scheme.scale_dtype is ScaleDType.F32
            and not scheme.level.is_global
            and x.dtype in _FLOATS
            and x.is_contiguous()
            and 0 < x.numel() <= _INT32_MAX - _SHARED_LENGTH
            and not x.numel() % _WIDTH
            and not x.data_ptr() % _ALIGNMENT
        )

    def _knows(self, value: QuantValue) -> bool:
        """Whether kernels know a value."""
        return not value.is_float or (value in _FLOAT8 and self._capability >= _FLOAT8_CAPABILITY)

    def _block(
        self, words: Tensor, scale: Tensor, scheme: QuantScheme, dtype: torch.dtype, width: int
    ) -> int | None:
        """The columns that share a scale, 0 if all of the tensor does.

        None unless `width` columns always share one, and kernels read the words.
        """
        shape = scheme.logical_shape(tuple(words.shape))
        if (
            not self._is_there
            or not shape
            or not self._knows(scheme.value)
            or dtype not in _FLOATS
            or scale.dtype is not torch.float32
            or (scheme.per_word > 1 and scheme.store.axis != -1)
            or (scheme.value.bits < 8 and scheme.per_word == 1)  # a byte for each code
            or not words.is_contiguous()
            or words.data_ptr() % _ALIGNMENT
            or not 0 < words.numel() * scheme.per_word <= _INT32_MAX
            or shape[-1] % width
        ):
            return None
        if scale.numel() == 1:
            return 0
        block = scheme.blocks(shape)
        if any(length != 1 for length in block[:-1]) or block[-1] % width:
            return None
        return block[-1]

    def _quantized(
        self,
        x: Tensor,
        scales: Tensor,
        largest: Tensor,
        scheme: QuantScheme,
        length: int,
        mode: int,
    ) -> Tensor | None:
        """The codes by the kernel, which may write scales or the largest magnitude."""
        dtype = torch.uint8 if scheme.value.is_float else torch.int8
        codes = scales if mode == _LARGEST else torch.empty(x.shape, dtype=dtype, device=x.device)
        low, high = scheme.value.range
        defines = (
            *self._defines(x.dtype, scheme.value),
            f"#define LOW {float(low)}f",
            f"#define HIGH {float(high)}f",
            f"#define MODE {mode}",
        )
        arguments = [x, codes, scales, largest, length, x.numel()]
        is_launched = self._launch("quantize", defines, -(-x.numel() // length), arguments)
        return codes if is_launched else None

    @staticmethod
    @functools.cache
    def _defines(dtype: torch.dtype, value: QuantValue) -> tuple[str, ...]:
        bits, is_bfloat16 = _FLOATS[dtype]
        lines = [
            f"#define FLOAT_BITS {bits}",
            f"#define IS_BFLOAT16 {is_bfloat16}",
            f"#define CODE_BITS {value.bits}",
        ]
        if value in _FLOAT8:
            lines.append(f'#define FLOAT8 "{_FLOAT8[value]}"')
            lines.append(f"#define MANTISSA {_FLOAT8[value][-1]}")
        return tuple(lines)

    def _launch(
        self, name: str, defines: tuple[str, ...], blocks: int, arguments: list[Any]
    ) -> bool:
        """Launch a kernel; False where it cannot be compiled."""
        if torch.cuda.current_device() != self._device.index:
            with torch.cuda.device(self._device):
                return self._launch_here(name, defines, blocks, arguments)
        return self._launch_here(name, defines, blocks, arguments)

    def _launch_here(
        self, name: str, defines: tuple[str, ...], blocks: int, arguments: list[Any]
    ) -> bool:
        """Launch a kernel on the current device."""
        if not hasattr(self._threads, "has_context"):
            # A kernel of torch makes the context of the device that of the thread.
            torch.zeros(1, device=self._device)
            self._threads.has_context = True
        key = name, defines
        if key not in self._kernels:
            kernel = _compiled(name, defines)
            self._kernels[key] = kernel and Launch(kernel, self._device, _THREADS)
        launch = self._kernels[key]
        if launch is None:
            return False
        launch(blocks, arguments)
        return True


def _or_null(x: Tensor | None, like: Tensor) -> Tensor:
    """A tensor, or an empty one, whose address is 0."""
    return like.new_empty(0) if x is None else x.contiguous()


def _shares_rows(scheme: QuantScheme, shape: tuple[int, ...]) -> bool:
    """Whether the elements of a row share a scale, and no others do."""
    return (
        bool(scheme.level.block)
        and shape[-1] >= _LEAST_LENGTH
        and not shape[-1] % _WIDTH
        and scheme.scales_shape(shape) == (*shape[:-1], 1)
    )


def _compiled(name: str, defines: tuple[str, ...]) -> Any:
    """A kernel for the current device, or None."""
    try:
        return _compile(source(name, defines), name)
    except Exception:  # noqa: BLE001 — without NVRTC, whatever that raises, torch's functions compute
        return None


def source(name: str, defines: tuple[str, ...]) -> str:
    """The text of a kernel."""
    return "\n".join([*defines, _text("numbers.cuh"), _text(f"{name}.cu")])


@functools.cache
def _text(name: str) -> str:
    return (resources.files("burn_torch") / "kernels" / name).read_text("utf-8")
