"""Work on large arrays in blocks that stay in a core's cache, on all cores.

NumPy releases Python's lock while it computes, so several threads work at a time. The result of a
block depends on the block alone, so results do not depend on the number of threads.
"""

from __future__ import annotations

import collections
import functools
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from burn_cpu.constants import FLOAT32, constant
from burn_cpu.threads import in_parallel, thread_count

__all__ = [
    "BLOCK_ELEMENTS",
    "MIN_ELEMENTS_FOR_BLOCKS",
    "bound",
    "in_blocks",
    "map_along",
    "map_elements",
    "map_rows",
    "packed",
    "row_products",
    "row_sums",
    "wide_dtype",
]

Array = Any

# As Any: NumPy's stubs know a ufunc's methods only with a literal for keepdims.
_add: Any = np.add

_empty = np.empty  # a look-up less for small arrays

BLOCK_ELEMENTS: Final = 1 << 17
"""Elements of a block: 512 KiB of float32. In smaller blocks the overhead of NumPy's calls exceeds
what the cache gains."""

MIN_ELEMENTS_FOR_BLOCKS: Final = 4096
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


def map_elements(kernel: Callable[..., None], *operands: Array, widen: bool = True) -> Array:
    """Apply ``kernel(*elements, out)`` to blocks of elements, or to all elements at once.

    All operands have one shape; the result has the dtype of the first. 16-bit floats reach the
    kernel as float32 unless `widen` is False.
    """
    return _map(kernel, operands, (-1,), BLOCK_ELEMENTS, widen=widen)


def map_rows(kernel: Callable[..., None], *operands: Array) -> Array:
    """Apply ``kernel(*rows, out)`` to blocks of rows, which lie along the last axis.

    See `map_elements`.
    """
    length = operands[0].shape[-1]
    return _map(kernel, operands, (-1, length), _rows_per_block(length), widen=True)


def _rows_per_block(length: int) -> int:
    return max(1, BLOCK_ELEMENTS // max(1, length))


def packed(
    kernel: Callable[..., None],
    x: Array,
    g: Array | None = None,
    *,
    length: int = 1,
    parameters: Any = (),
) -> Array:
    """Apply a compiled ``kernel(*operands, *parameters, out)`` to contiguous arrays of one axis.

    They are float32, and blocks of whole rows of `length` elements. The result is like `x`.
    """
    result = _empty(x.shape, x.dtype)
    size = result.size
    if not size:
        return result
    if size <= BLOCK_ELEMENTS and x.dtype is FLOAT32:
        if g is None:
            kernel(x.ravel(), *parameters, result.ravel())
        else:
            kernel(x.ravel(), g.ravel(), *parameters, result.ravel())
        return result
    sources = [tensor.reshape(-1) for tensor in (x, g) if tensor is not None]
    target = result.reshape(-1)

    def work(start: int, stop: int) -> None:
        parts = [np.ascontiguousarray(source[start:stop], FLOAT32) for source in sources]
        part = target[start:stop]
        out = part if part.dtype is FLOAT32 else np.empty(part.shape, FLOAT32)
        kernel(*parts, *parameters, out)
        if out is not part:
            part[...] = out

    in_blocks(work, size, length * _rows_per_block(length))
    return result


def _map(
    kernel: Callable[..., None],
    operands: tuple[Array, ...],
    layout: tuple[int, ...],
    step: int,
    *,
    widen: bool,
) -> Array:
    shape, dtype = operands[0].shape, operands[0].dtype
    result = np.empty(shape, dtype)
    if not result.size:
        return result
    is_one_block = result.size <= BLOCK_ELEMENTS and shape
    if is_one_block and (dtype.itemsize >= 4 or not widen):
        kernel(*operands, result)
        return result
    sources = [operand.reshape(layout) for operand in operands]
    target = result.reshape(layout)

    def work(start: int, stop: int) -> None:
        parts = [source[start:stop] for source in sources]
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
    # A block is a part of the inner axis, or several whole ones along the outer if it is short.
    width = min(inner, max(1, BLOCK_ELEMENTS // length))
    parts = -(-inner // width)

    def work(start: int, stop: int) -> None:
        first, part = divmod(start, parts)
        last = stop if parts == 1 else first + 1
        block = (slice(first, last), slice(None), slice(part * width, (part + 1) * width))
        rows = [source[block].swapaxes(1, 2) for source in sources]
        _call(kernel, rows, target[block].swapaxes(1, 2), widen=True)

    in_blocks(work, outer * parts, max(1, BLOCK_ELEMENTS // (length * inner)) if parts == 1 else 1)
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
    """A number as the bound of `numpy.minimum` or `numpy.maximum` on `x`.

    For a large vector it is an array, with which they take half the time that a number takes.
    """
    if x.ndim == 1 and x.size > MIN_ELEMENTS_FOR_BLOCKS:
        return _repeated(value, BLOCK_ELEMENTS, x.dtype)[: x.size]
    return constant(value, x.dtype)


def row_sums(rows: Array) -> Array:
    """Sums along the last axis, kept with length 1: by BLAS, in half the time of NumPy's sum."""
    if rows.size < MIN_ELEMENTS_FOR_BLOCKS or not _suits_blas(rows):
        return _add.reduce(rows, axis=-1, keepdims=True)
    return np.vecdot(rows, _repeated(1.0, rows.shape[-1], rows.dtype))[..., None]


def row_products(rows: Array, others: Array) -> Array:
    """Sums of products along the last axis, kept with length 1."""
    if not _suits_blas(rows):
        return _add.reduce(rows * others, axis=-1, keepdims=True)
    return np.vecdot(rows, others)[..., None]


def _suits_blas(rows: Array) -> bool:
    return bool(rows.shape[-1] <= _MAX_ELEMENTS_FOR_DOT and rows.strides[-1] == rows.itemsize)
