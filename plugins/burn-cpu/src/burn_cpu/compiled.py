"""Kernels compiled by numba where it is installed (``burn-cpu[jit]``); otherwise NumPy computes.

They replace many passes of NumPy over a block by one or two. Numba is imported for the first large
array, and caches compiled kernels on disk. ``BURN_CPU_JIT=0`` turns them off.
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

_MIN_ELEMENTS_FOR_JIT: Final = 1 << 15
"""Elements from which a compiled kernel is used: to import numba takes half a second."""


def compiled(name: str, x: Any) -> Callable[..., None] | None:
    """The compiled kernel `name` for an array like `x`; None where NumPy should compute.

    Kernels compute in float32 and take contiguous arrays of two axes, elementwise ones of one axis.
    """
    if x.size < _MIN_ELEMENTS_FOR_JIT or wide_dtype(x.dtype) != np.float32:
        return None
    kernels = _kernels()
    return None if kernels is None else getattr(kernels, name)


@functools.cache
def _kernels() -> Any | None:
    """The module of kernels; None without a numba that works with the installed NumPy."""
    if os.environ.get("BURN_CPU_JIT", "1") == "0":
        return None
    try:
        from burn_cpu import compiled_kernels
    except Exception as error:  # noqa: BLE001 — NumPy computes whatever is wrong with numba
        _log.debug("burn-cpu runs without compiled kernels: %s", error)
        return None
    return compiled_kernels
