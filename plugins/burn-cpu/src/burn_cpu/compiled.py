"""Kernels compiled by numba where it is installed (``burn-cpu[jit]``); otherwise NumPy computes.

They replace many passes of NumPy over a block by one or two, and many calls on few elements by one.
Which of both computes follows from dtypes and shapes alone, never from earlier calls, and so do the
bits of a result. Numba is imported for the first op that has a kernel, which takes half a second,
and caches compiled kernels on disk. ``BURN_CPU_JIT=0`` turns them off.
"""

from __future__ import annotations

import functools
import importlib
import logging
import os
from typing import Any

from burn_cpu.constants import FLOAT32

__all__ = ["kernels", "kernels_for"]

_log = logging.getLogger("burn")


def kernels_for(dtype: Any, family: str) -> Any | None:
    """The compiled kernels of a family for a float dtype; None where NumPy computes.

    Kernels take contiguous arrays of float32, and 16-bit floats are converted.
    """
    return kernels(family) if dtype is FLOAT32 or dtype.itemsize <= 4 else None


@functools.cache
def kernels(family: str) -> Any | None:
    """The module ``burn_cpu.compiled_<family>``; None without a numba that works with NumPy."""
    if os.environ.get("BURN_CPU_JIT", "1") == "0":
        return None
    try:
        return importlib.import_module(f"burn_cpu.compiled_{family}")
    except Exception as error:  # noqa: BLE001 — NumPy computes whatever is wrong with numba
        _log.debug("burn-cpu runs without compiled kernels: %s", error)
        return None
