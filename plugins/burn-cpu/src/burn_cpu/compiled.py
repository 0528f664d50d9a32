"""Kernels compiled by numba, where it is installed (``burn-cpu[jit]``); NumPy's are used otherwise.

What NumPy does in passes over a block they do in one or two. Numba is imported when the first
large array meets one of them, and keeps what it compiled on disk. ``BURN_CPU_JIT=0`` turns them
off.
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from burn_cpu.blocks import wide_dtype

__all__ = ["compiled"]

_log = logging.getLogger("burn")

_LARGE: Final = 1 << 15
"""Elements from which on numba may be imported, which takes half a second."""


def compiled(name: str, x: Any) -> Callable[..., None] | None:
    """The compiled kernel of that name for an array; None if NumPy's is to be used.

    They compute in float32, and take arrays of two axes (one, where it is elementwise) whose
    elements lie side by side.
    """
    if x.size < _LARGE or wide_dtype(x.dtype) != np.float32:
        return None
    kernels = _kernels()
    return None if kernels is None else getattr(kernels, name)


@functools.cache
def _kernels() -> Any | None:
    """The module of the kernels, if there is numba and it works with this NumPy."""
    if os.environ.get("BURN_CPU_JIT", "1") == "0":
        return None
    try:
        from burn_cpu import compiled_kernels
    except Exception as error:  # noqa: BLE001 — whatever is wrong with numba, there is NumPy
        _log.debug("burn-cpu runs without compiled kernels: %s", error)
        return None
    return compiled_kernels
