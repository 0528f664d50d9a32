"""Work on large arrays: in blocks that stay in a core's cache, on all cores.

NumPy lets other threads run while it computes, so that several of them work at a time. What is
computed for a block depends on nothing but the block: results are the same whatever the number of
threads, and from run to run.
"""

from __future__ import annotations

import collections
import functools
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from burn_cpu.constants import constant
from burn_cpu.threads import in_parallel, thread_count

__all__ = [
    "BLOCK",
    "bound",
    "in_blocks",
    "map_along",
    "map_elements",
    "map_rows",
    "row_products",
    "row_sums",
    "wide_dtype",
]

Array = Any

# As Any: NumPy's stubs know a ufunc's methods only with a literal for keepdims.
_add: Any = np.add

BLOCK: Final = 1 << 17
"""Elements that are worked on together: 512 KiB of float32. Of fewer the calls of NumPy cost more
than what the cache gains."""

_FEW: Final = 4096
"""Up to that many elements what costs the least calls is the fastest."""

_LONGEST_DOT: Final = 8192
"""From some length on BLAS would divide a product of two vectors among threads of its own."""


def in_blocks(work: Callable[[int, int], object], count: int, step: int) -> None:
    """Call ``work(start, stop)`` for all parts of a range, several at a time.

    Parameters
    ----------
    work : callable
        Writes to places of its own, and has no other effect.
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
            except IndexError:  # another thread took the last one meanwhile
                return
            try:
                work(start, min(start + step, count))
            except BaseException:
                starts.clear()
                raise

    helpers = min(thread_count(), len(starts)) if len(starts) > 1 else 1
    in_parallel(take_parts, range(helpers))


def wide_dtype(dtype: Any) -> Any:
    """What is computed in: float32 for 16-bit floats."""
    return np.dtype(np.float32) if dtype.itemsize < 4 else dtype


def map_elements(
    kernel: Callable[..., None], *operands: Array, widen: bool = True, packed: bool = False
) -> Array:
    """Apply ``kernel(*elements, out)`` to blocks of elements, or to all of them at once.

    All operands have one shape, and the result has the dtype of the first. 16-bit floats reach the
    kernel as float32 unless `widen` is false. If it wants them `packed`, they are always blocks, of
    one axis, in which elements lie side by side.
    """
    return _map(kernel, operands, (-1,), BLOCK, widen=widen, packed=packed)


def map_rows(kernel: Callable[..., None], *operands: Array, packed: bool = False) -> Array:
    """Apply ``kernel(*rows, out)`` to blocks of rows, which lie along the last axis.

    If it wants them `packed`, they are always blocks, of two axes; see `map_elements`.
    """
    length = operands[0].shape[-1]
    step = max(1, BLOCK // max(1, length))
    return _map(kernel, operands, (-1, length), step, widen=True, packed=packed)


def _map(
    kernel: Callable[..., None],
    operands: tuple[Array, ...],
    layout: tuple[int, ...],
    step: int,
    *,
    widen: bool,
    packed: bool,
) -> Array:
    shape, dtype = operands[0].shape, operands[0].dtype
    result = np.empty(shape, dtype)
    if not result.size:
        return result
    at_once = result.size <= BLOCK and shape and not packed
    if at_once and (dtype.itemsize >= 4 or not widen):
        kernel(*operands, result)
        return result
    sources = [operand.reshape(layout) for operand in operands]
    target = result.reshape(layout)

    def work(start: int, stop: int) -> None:
        parts = [one[start:stop] for one in sources]
        if packed:
            parts = [np.ascontiguousarray(part) for part in parts]
        _call(kernel, parts, target[start:stop], widen=widen)

    in_blocks(work, len(target), step)
    return result


def map_along(kernel: Callable[..., None], *operands: Array, axis: int) -> Array:
    """Apply a kernel of rows to rows that lie along any axis; see `map_rows`."""
    shape = operands[0].shape
    if axis == len(shape) - 1:
        return map_rows(kernel, *operands)
    result = np.empty(shape, operands[0].dtype)
    if not result.size:
        return result
    length = shape[axis]
    layout = (math.prod(shape[:axis]), length, -1)
    sources = [operand.reshape(layout) for operand in operands]
    target = result.reshape(layout)
    outer, _, inner = target.shape
    # Parts of the last axis, or several of the first if that is short.
    width = min(inner, max(1, BLOCK // length))
    parts = -(-inner // width)

    def work(start: int, stop: int) -> None:
        first, part = divmod(start, parts)
        last = stop if parts == 1 else first + 1
        place = (slice(first, last), slice(None), slice(part * width, (part + 1) * width))
        rows = [one[place].swapaxes(1, 2) for one in sources]
        _call(kernel, rows, target[place].swapaxes(1, 2), widen=True)

    in_blocks(work, outer * parts, max(1, BLOCK // (length * inner)) if parts == 1 else 1)
    return result


def _call(kernel: Callable[..., None], sources: list[Array], target: Array, *, widen: bool) -> None:
    """Run a kernel on one block."""
    wide = wide_dtype(target.dtype)
    if wide is target.dtype or not widen:
        kernel(*sources, target)
        return
    out = np.empty(target.shape, wide)
    kernel(*[source.astype(wide) for source in sources], out)
    target[...] = out


@functools.lru_cache(maxsize=64)
def _repeated(value: float, length: int, dtype: Any) -> Array:
    result = np.full(length, value, dtype)
    result.flags.writeable = False
    return result


def bound(value: float, x: Array) -> Array:
    """A number for `numpy.minimum` and its like, which take many in half the time of one."""
    if x.ndim == 1 and x.size > _FEW:
        return _repeated(value, BLOCK, x.dtype)[: x.size]
    return constant(value, x.dtype)


def row_sums(rows: Array) -> Array:
    """Sums along the last axis, which stays with length 1: by BLAS, in half the time."""
    if rows.size < _FEW or not _suits_blas(rows):
        return _add.reduce(rows, axis=-1, keepdims=True)
    return np.vecdot(rows, _repeated(1.0, rows.shape[-1], rows.dtype))[..., None]


def row_products(rows: Array, others: Array) -> Array:
    """Sums of products along the last axis, which stays with length 1."""
    if not _suits_blas(rows):
        return _add.reduce(rows * others, axis=-1, keepdims=True)
    return np.vecdot(rows, others)[..., None]


def _suits_blas(rows: Array) -> bool:
    return bool(rows.shape[-1] <= _LONGEST_DOT and rows.strides[-1] == rows.itemsize)
