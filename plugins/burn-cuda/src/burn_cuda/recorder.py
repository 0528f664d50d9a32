"""CudaRecorder: programs as CUDA graphs, and what changes from one run of them to the next."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn_cuda.base import Array
from burn_cuda.kernels import THREADS
from burn_cuda.launcher import packed

if TYPE_CHECKING:
    from burn_cuda.backend import CudaBackend

__all__ = ["CudaRecorder"]

_MAX_WORDS: Final = 448
"""Words that a launch brings; its arguments have up to 4096 bytes on every GPU."""

_MIN_WORDS: Final = 16
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
    pending : array of int64
        Those of the next run.
    """

    def __init__(self, backend: CudaBackend, count: int) -> None:
        self._launcher = backend.launcher
        self._runtime = backend.runtime
        self.is_unused = backend.is_unused
        self.capture_launches = backend.runtime.capture
        self.numbers: Array = backend.launcher.empty((count,), np.int64)
        self.pending = np.zeros(0, np.int64)
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
            address(one) if is_dense(one) else (address(one), one.strides) for one in primitives
        ]

    def size(self, x: Array) -> int:
        """Bytes of the elements."""
        return int(x.nbytes)

    def write(self, targets: Sequence[Array], sources: Sequence[Array]) -> None:
        """One kernel for all dense arrays and the numbers."""
        if not (targets or len(self.pending)):
            return
        address, is_dense = self._runtime.address, self._launcher.is_dense
        triples: list[tuple[int, int, int]] = []
        for target, source in zip(targets, sources, strict=True):
            if is_dense(source) and is_dense(target):
                triples.append((address(source), address(target), int(target.nbytes)))
            else:
                self._launcher.write(target, source)
        numbers, self.pending = self.pending, self.pending[:0]
        start = 0
        while start < len(numbers) or triples:
            part = numbers[start : start + _MAX_WORDS]
            room = (_MAX_WORDS - len(part)) // 3
            self._refresh(part, start, triples[:room])
            start, triples = start + len(part), triples[room:]

    def _refresh(
        self, numbers: np.ndarray[Any, Any], start: int, copies: list[tuple[int, int, int]]
    ) -> None:
        """Launch the kernel for so much as its arguments hold."""
        count = len(numbers) + 3 * len(copies)
        words = np.zeros(max(1 << (count - 1).bit_length(), _MIN_WORDS), np.int64)[:_MAX_WORDS]
        words[: len(numbers)] = numbers
        words[len(numbers) : count] = np.array(copies, np.int64).reshape(-1)
        largest = max([size for *_, size in copies], default=1)
        blocks = min(max(-(-largest // _BYTES_PER_BLOCK), 1), _MAX_BLOCKS)
        launcher = self._launcher
        kernel = launcher.kernel("refresh", "refresh.cu", WORDS=len(words))
        where = self._runtime.address(self.numbers) + 8 * start
        kernel((blocks, len(copies) + 1), (THREADS,), (packed(words), where, len(numbers)))

    def duplicate(self, x: Array) -> Array:
        """A dense copy."""
        return self._launcher.copied(x)

    def capture(
        self, run: Callable[..., tuple[Array, ...]], arguments: Sequence[Any]
    ) -> tuple[Callable[[], None], tuple[Array, ...]]:
        """A CUDA graph of what a function launches."""
        return self.capture_launches(lambda: run(*arguments))
