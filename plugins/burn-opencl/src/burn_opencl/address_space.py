"""What the limit of this process on its address space leaves (``ulimit -v``)."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from pathlib import Path
from typing import Final

from burn_opencl.failures import compiler_memory_error

__all__ = ["bytes_left", "has_room_for_binaries", "require_room_to_compile"]

_COMPILER_BYTES: Final = 1 << 27
"""What PoCL takes to build the first program of a process. After it lacked some, it may hang."""

_BINARY_BYTES: Final = 1 << 29
"""Twice what PoCL takes to make a binary. Where it lacks some, it ends the process."""


def bytes_left() -> int | None:
    """Bytes that the process may still map; None where there is no limit, or none is known."""
    try:
        import resource  # not on Windows

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit == resource.RLIM_INFINITY:
            return None
        pages = int(Path("/proc/self/statm").read_text("ascii").partition(" ")[0])
    except (ImportError, AttributeError, OSError, ValueError):  # not Linux
        return None
    return max(limit - pages * mmap.PAGESIZE, 0)


def has_room_for_binaries() -> bool:
    """Whether a driver in this process can be asked for the binary of a program."""
    left = bytes_left()
    return left is None or left >= _BINARY_BYTES


def require_room_to_compile(device: str, relieve: Callable[[], None]) -> None:
    """Raise if the compiler of a driver in this process would lack memory.

    Parameters
    ----------
    device : str
        Its name, for the error.
    relieve : callable
        Frees memory that is not in use.

    Raises
    ------
    OutOfMemoryError
        If too little is left after that as well.
    """
    left = bytes_left()
    if left is not None and left < _COMPILER_BYTES:
        relieve()
        left = bytes_left()
    if left is not None and left < _COMPILER_BYTES:
        raise compiler_memory_error(device, _COMPILER_BYTES, left)
