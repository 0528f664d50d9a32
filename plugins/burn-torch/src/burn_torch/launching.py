"""Launches of kernels that torch compiled, in a tenth of the time that torch's own call takes."""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any, Final

import torch

__all__ = ["Launch"]

_ARGUMENTS: Final[list[Any]] = [ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3]
"""Of `cuLaunchKernel`: function, grid and block, shared memory, stream, parameters, and null."""


class Launch:
    """A kernel on one device.

    Parameters
    ----------
    kernel : object
        What `torch.cuda._compile_kernel` returns.
    device : torch.device
        A CUDA device with an index.
    threads : int
        Threads of a block.
    """

    def __init__(self, kernel: Any, device: torch.device, threads: int) -> None:
        self._kernel = kernel
        self._index = device.index
        self._threads = threads
        self._function = getattr(kernel, "func", None)
        self._raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)

    def __call__(self, blocks: int, arguments: list[Any]) -> None:
        """Launch it on the current stream of the current device, which has to be its own."""
        launch = _driver_launch()
        if launch is None or self._function is None or self._raw_stream is None:
            self._kernel(grid=(blocks, 1, 1), block=(self._threads, 1, 1), args=arguments)
            return
        count = len(arguments)
        # A kernel reads of each 8 bytes as many as its parameter has.
        values = (ctypes.c_uint64 * count)(
            *[
                argument if argument.__class__ is int else argument.data_ptr()
                for argument in arguments
            ]
        )
        start = ctypes.addressof(values)
        pointers = (ctypes.c_void_p * count)(*range(start, start + 8 * count, 8))
        stream = self._raw_stream(self._index)
        code = launch(self._function, blocks, 1, 1, self._threads, 1, 1, 0, stream, pointers, None)
        if code:
            raise RuntimeError(f"CUDA error {code} at the launch of a kernel")


@functools.cache
def _driver_launch() -> Any:
    """The driver's function; None where it, or the order of bytes, is another."""
    if sys.byteorder != "little":
        return None
    try:
        library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return None
    launch = library.cuLaunchKernel
    launch.argtypes = _ARGUMENTS
    launch.restype = ctypes.c_int
    return launch
