"""Kernel: launches a compiled function, with arguments that are packed into one buffer."""

from __future__ import annotations

import ctypes
import functools
import struct
import sys
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

_MAX_SHARED_SIZE: Final = 8
"""The driver's CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES."""

_PLAIN_SHARED_BYTES: Final = 48 << 10
"""Shared memory that a launch may ask for without that attribute."""

_PROGRAMMATIC: Final = 6
"""The driver's CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION."""

_launch: Final = driver.launchKernel


class _Attribute(ctypes.Structure):
    """An attribute of a launch: CUlaunchAttribute."""

    _fields_ = (
        ("number", ctypes.c_int),
        ("padding", ctypes.c_char * 4),
        ("value", ctypes.c_int),
        ("rest", ctypes.c_char * 60),
    )


class _Configuration(ctypes.Structure):
    """The configuration of a launch: CUlaunchConfig."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("count", ctypes.c_uint),
    )


@functools.cache
def _extended_launch() -> Any:
    """The driver's cuLaunchKernelEx; None where it has none."""
    try:
        library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        function = library.cuLaunchKernelEx
    except (OSError, AttributeError):
        return None
    function.argtypes = (ctypes.c_void_p,) * 4
    return function


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
        self.attribute = _Attribute(_PROGRAMMATIC, b"", 1, b"")
        self.configuration = _Configuration(attributes=ctypes.pointer(self.attribute), count=1)


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

    __slots__ = ("_function", "_handle", "_layout", "_shared", "_space")

    def __init__(self, function: Any, space: Space) -> None:
        self._function = function
        self._handle = int(function.ptr)
        self._space = space
        self._layout: struct.Struct | None = None
        self._shared = _PLAIN_SHARED_BYTES

    def __call__(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        arguments: tuple[Any, ...],
        shared: int = 0,
    ) -> None:
        """Launch it with arrays, integers of 64 bits, floats of 64 bits, and `Packed` numbers.

        Parameters
        ----------
        grid, block : tuple of int
            Blocks, and threads of a block, along up to three axes.
        arguments : tuple
            The arguments.
        shared : int
            Bytes of dynamic shared memory of a block.
        """
        self._allow(shared)
        words = [
            argument.address if argument.__class__ is Array else argument for argument in arguments
        ]
        x, y, z = (*grid, 1, 1)[:3]
        width, height, depth = (*block, 1, 1)[:3]
        layout = self._layout or self._learn(words)
        stream = get_current_stream().ptr
        buffer, extras = self._space.parts
        extra = extras[layout.size]
        # From here to the launch nothing is allocated, which could run other code of this thread.
        layout.pack_into(buffer, 0, *words)
        _launch(self._handle, x, y, z, width, height, depth, shared, stream, 0, extra)

    def early(
        self, grid: tuple[int], block: tuple[int], arguments: tuple[Any, ...], shared: int = 0
    ) -> None:
        """Launch it so that its blocks may start before the kernel before it is done.

        The kernel waits for that itself, by ``griddepcontrol.wait``, which GPUs have from compute
        capability 9.0 on. The arguments are those of a call.
        """
        function = _extended_launch()
        if function is None:
            self(grid, block, arguments, shared)
            return
        self._allow(shared)
        words = [
            argument.address if argument.__class__ is Array else argument for argument in arguments
        ]
        layout = self._layout or self._learn(words)
        stream = get_current_stream().ptr
        space = self._space
        buffer, extras = space.parts
        extra = extras[layout.size]
        own = space.configuration
        layout.pack_into(buffer, 0, *words)  # see above
        own.grid[:] = (*grid, 1, 1)
        own.block[:] = (*block, 1, 1)
        own.shared, own.stream = shared, stream
        status = function(ctypes.addressof(own), self._handle, None, extra)
        if status:
            raise driver.CUDADriverError(status)

    def _allow(self, shared: int) -> None:
        """Let launches have so much shared memory."""
        if shared > self._shared:
            driver.funcSetAttribute(self._handle, _MAX_SHARED_SIZE, shared)
            self._shared = shared

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
            "d" if word.__class__ is float else f"{len(word)}s" if isinstance(word, bytes) else "q"
            for word in words
        ]
        self._layout = struct.Struct("=" + "".join(letters))
        return self._layout
