"""CudaRecorder: programs as CUDA graphs, and what changes from one run of them to the next."""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Final

from burn.plugin_api import int64
from burn_cuda.base import Array
from burn_cuda.kernels import THREADS
from burn_cuda.launcher import Packed

if TYPE_CHECKING:
    from burn_cuda.backend import CudaBackend

__all__ = ["CudaRecorder"]

_MAX_WORDS: Final = 448
"""Words that a launch brings; its arguments have up to 4096 bytes on every GPU."""

_MIN_WORDS: Final = 16
_COPY: Final = struct.Struct("=qqq")
"""Source, target and bytes of a copy."""

_BYTES_PER_BLOCK: Final = 16 * THREADS
_MAX_BLOCKS: Final = 256


class CudaRecorder:
    """Captures a program of one device. See `burn.compiler.replay.Recorder`.

    Parameters
    ----------
    backend : CudaBackend
        The device.
    count : int
        How many numbers of 8 bytes the program reads.

    Attributes
    ----------
    numbers : array
        Where it reads them.
    pending : bytes
        Those of the next run.
    """

    def __init__(self, backend: CudaBackend, count: int) -> None:
        self._launcher = backend.launcher
        self._runtime = backend.runtime
        self.is_unused = backend.is_unused
        self.numbers: Array = backend.launcher.empty((count,), int64.numpy)
        self.pending = b""
        self._address = backend.runtime.address(self.numbers)
        self._kernels: dict[int, tuple[Any, bytearray]] = {}
        self._stream: Any = None

    def follow(self) -> None:
        """Wait for the device where a call has another stream than the call before it."""
        stream = self._runtime.stream()
        if stream != self._stream:
            if self._stream is not None:
                self._runtime.synchronize()
            self._stream = stream

    def keys(self, primitives: Sequence[Array]) -> list[Hashable]:
        """Addresses; with the strides of arrays that are not dense."""
        address, is_dense = self._runtime.address, self._launcher.is_dense
        return [
            address(primitive) if is_dense(primitive) else (address(primitive), primitive.strides)
            for primitive in primitives
        ]

    def size(self, x: Array) -> int:
        """Bytes of the elements."""
        return int(x.nbytes)

    def write(self, targets: Sequence[Array], sources: Sequence[Array]) -> None:
        """One kernel for all dense arrays and the numbers."""
        numbers, self.pending = self.pending, b""
        if not (targets or numbers):
            return
        address, is_dense = self._runtime.address, self._launcher.is_dense
        copies, largest = b"", 1
        for target, source in zip(targets, sources, strict=True):
            if is_dense(source) and is_dense(target):
                size = int(target.nbytes)
                copies += _COPY.pack(address(source), address(target), size)
                largest = max(largest, size)
            else:
                self._launcher.write(target, source)
        if len(numbers) + len(copies) <= 8 * _MAX_WORDS:
            self._refresh(numbers, copies, largest)
            return
        for start in range(0, len(numbers), 8 * _MAX_WORDS):
            self._refresh(numbers[start : start + 8 * _MAX_WORDS], b"", 1, start)
        step = 8 * _MAX_WORDS // _COPY.size * _COPY.size
        for start in range(0, len(copies), step):
            self._refresh(b"", copies[start : start + step], largest)

    def _refresh(self, numbers: bytes, copies: bytes, largest: int, start: int = 0) -> None:
        """Launch the kernel for so much as its arguments hold."""
        count, pairs, size = len(numbers) // 8, len(copies) // _COPY.size, len(numbers + copies)
        kernel, words = self._kernel(max(1 << (size - 1).bit_length(), 8 * _MIN_WORDS))
        words[:size] = numbers + copies
        blocks = min(max(-(-largest // _BYTES_PER_BLOCK), 1), _MAX_BLOCKS)
        grid, block = (blocks, pairs + 1), (THREADS,)
        kernel(grid, block, (Packed(words), self._address + start, count))

    def _kernel(self, size: int) -> tuple[Any, bytearray]:
        """The kernel for so many bytes, and memory for them."""
        found = self._kernels.get(size)
        if found is None:
            count = min(size // 8, _MAX_WORDS)
            kernel = self._launcher.kernel("refresh", "refresh.cu", WORDS=count)
            found = self._kernels[size] = kernel, bytearray(8 * count)
        return found

    def duplicate(self, x: Array) -> Array:
        """A dense copy."""
        return self._launcher.copied(x)

    def capture(
        self, run: Callable[..., tuple[Array, ...]], arguments: Sequence[Any]
    ) -> tuple[Callable[[], None], tuple[Array, ...]]:
        """A CUDA graph of what a function launches."""
        return self._runtime.capture(lambda: run(*arguments))
