"""Work on large arrays in blocks that stay in a core's cache, on all cores.

NumPy releases Python's lock while it computes, so several threads work at a time. The result of a
block depends on the block alone, so results do not depend on the number of threads.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from burn_cpu.constants import FLOAT32
from burn_cpu.threads import in_parallel, thread_count

__all__ = [
    "BLOCK_ELEMENTS",
    "in_blocks",
    "row_products",
    "row_sums",
    "wide_dtype",
]

Array = Any

# As Any: NumPy's stubs know a ufunc's methods only with a literal for keepdims.
_add: Any = np.add

BLOCK_ELEMENTS: Final = 1 << 17
"""Elements of a block: 512 KiB of float32. In smaller blocks the overhead of NumPy's calls exceeds
what the cache gains."""

_MIN_ELEMENTS_FOR_DOT: Final = 4096
"""Elements from which the work dominates; for fewer the form with the fewest calls is fastest."""

_MAX_ELEMENTS_FOR_DOT: Final = 8192
"""Elements of a row for `numpy.vecdot`: for longer ones BLAS starts threads of its own."""


def in_blocks(work: Callable[[int, int], object], count: int, step: int) -> None:
    """Call ``work(start, stop)`` for all parts of a range, several at a time on threads.

    Parameters
    ----------
    work : callable
        Writes to elements that no other part writes to, and has no other effect.
    count : int
        Length of the range.
    step : int
        Length of a part.
    """
    starts = collections.deque(range(0, count, step))

    def take_parts(_: int) -> None:
        while starts:
            try:
                start = starts.popleft()
            except IndexError:  # another thread took the last part after the test above
                return
            try:
                work(start, min(start + step, count))
            except BaseException:
                starts.clear()
                raise

    workers = min(thread_count(), len(starts)) if len(starts) > 1 else 1
    in_parallel(take_parts, range(workers))


def wide_dtype(dtype: Any) -> Any:
    """The dtype to compute in: float32 for 16-bit floats, else the dtype itself."""
    return FLOAT32 if dtype.itemsize < 4 else dtype


@functools.lru_cache(maxsize=64)
def _repeated(value: float, length: int, dtype: Any) -> Array:
    result = np.full(length, value, dtype)
    result.flags.writeable = False
    return result


def row_sums(rows: Array) -> Array:
    """Sums along the last axis, kept with length 1: by BLAS, in half the time of NumPy's sum."""
    if rows.size < _MIN_ELEMENTS_FOR_DOT or not _suits_blas(rows):
        return _add.reduce(rows, axis=-1, keepdims=True)
    return np.vecdot(rows, _repeated(1.0, rows.shape[-1], rows.dtype))[..., None]


def row_products(rows: Array, others: Array) -> Array:
    """Sums of products along the last axis, kept with length 1."""
    if not _suits_blas(rows):
        return _add.reduce(rows * others, axis=-1, keepdims=True)
    return np.vecdot(rows, others)[..., None]


def _suits_blas(rows: Array) -> bool:
    return bool(rows.shape[-1] <= _MAX_ELEMENTS_FOR_DOT and rows.strides[-1] == rows.itemsize)
