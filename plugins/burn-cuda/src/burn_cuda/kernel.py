"""Kernel: launches a compiled function, with arguments that are packed into one buffer."""

from __future__ import annotations

import ctypes
import struct
import threading
from typing import Any, Final

from cupy.cuda import driver, get_current_stream, runtime

from burn_cuda.array import Array
from burn_cuda.kernels import THREADS

__all__ = ["Kernel", "Space"]

_MAX_BYTES: Final = 32764
"""Bytes of the arguments of a launch, on GPUs and drivers that take the most."""

_BUFFER_POINTER: Final = 1
_BUFFER_SIZE: Final = 2
"""The driver's CU_LAUNCH_PARAM_BUFFER_POINTER and CU_LAUNCH_PARAM_BUFFER_SIZE."""

_launch: Final = driver.launchKernel


class _Extras(dict[int, int]):
    """From a number of bytes to the address of what tells the driver of a buffer of so many."""

    def __init__(self, address: int) -> None:
        super().__init__()
        self._address = address
        self._kept: list[Any] = []

    def __missing__(self, size: int) -> int:
        cell = ctypes.c_size_t(size)
        words = (_BUFFER_POINTER, self._address, _BUFFER_SIZE, ctypes.addressof(cell), None)
        extra = (ctypes.c_void_p * len(words))(*words)
        self._kept += [cell, extra]
        found = self[size] = ctypes.addressof(extra)
        return found


class Space(threading.local):
    """Memory of each thread for the arguments of a launch on one GPU; the driver copies them.

    Parameters
    ----------
    index : int
        The GPU, which is made the current one of the thread that launches first.
    """

    def __init__(self, index: int) -> None:
        runtime.setDevice(index)  # a new thread has no context yet
        buffer = ctypes.create_string_buffer(_MAX_BYTES)
        self.parts = buffer, _Extras(ctypes.addressof(buffer))


class Kernel:
    """A function of a GPU.

    CuPy's launch takes the host 1 us more, and 2 us more for arguments that are addresses.

    Parameters
    ----------
    function : object
        CuPy's function, which keeps its module loaded.
    space : Space
        Memory for arguments.
    """

    __slots__ = ("_function", "_handle", "_layout", "_space")

    def __init__(self, function: Any, space: Space) -> None:
        self._function = function
        self._handle = int(function.ptr)
        self._space = space
        self._layout: struct.Struct | None = None

    def __call__(
        self, grid: tuple[int, ...], block: tuple[int, ...], arguments: tuple[Any, ...]
    ) -> None:
        """Launch it with arrays, integers of 64 bits, floats of 64 bits, and `Packed` numbers."""
        words = [one.address if one.__class__ is Array else one for one in arguments]
        x, y, z = (*grid, 1, 1)[:3]
        width, height, depth = (*block, 1, 1)[:3]
        layout = self._layout or self._learn(words)
        stream = get_current_stream().ptr
        buffer, extras = self._space.parts
        extra = extras[layout.size]
        # From here to the launch nothing is allocated, which could run other code of this thread.
        layout.pack_into(buffer, 0, *words)
        _launch(self._handle, x, y, z, width, height, depth, 0, stream, 0, extra)

    def launch(self, blocks: int, *words: Any) -> None:
        """Launch blocks of `THREADS` threads with addresses instead of arrays."""
        layout = self._layout or self._learn(words)
        stream = get_current_stream().ptr
        buffer, extras = self._space.parts
        extra = extras[layout.size]
        layout.pack_into(buffer, 0, *words)  # see above
        _launch(self._handle, blocks, 1, 1, THREADS, 1, 1, 0, stream, 0, extra)

    def _learn(self, words: Any) -> struct.Struct:
        """How the arguments are packed, as those of the first launch tell: all have 8 bytes."""
        letters = [
            "d" if one.__class__ is float else f"{len(one)}s" if isinstance(one, bytes) else "q"
            for one in words
        ]
        self._layout = struct.Struct("=" + "".join(letters))
        return self._layout
