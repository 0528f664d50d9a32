"""Scans of long rows: one pass of blocks, in which each waits for the totals of those before it."""

from __future__ import annotations

from typing import Final

import burn.plugin_api as core
from burn.plugin_api import int64
from burn_cuda.base import Array, CudaOps
from burn_cuda.kernels import THREADS, c_type, computed_type

__all__ = ["ScanOps"]


_MIN_LINES_FOR_THREADS: Final = 1 << 14
"""Lines that keep a GPU busy with one thread each."""

_MAX_LINE_OF_THREAD: Final = 16
"""Length up to which a thread scans a line, however few lines there are."""

_MAX_CONTIGUOUS_LINE_OF_THREAD: Final = 128
"""Length up to which a thread scans a line whose elements are adjacent: threads then load apart."""

_PACK_BYTES: Final = 16
_PACKS: Final = (1, 2, 4, 8)
"""Packs of a thread that the kernel is compiled for."""

_MAX_ELEMENTS_OF_THREAD: Final = 32
"""Elements that a thread keeps in registers."""

_WORD_VALUE_BYTES: Final = 4
"""Bytes of a value in a word of 8 bytes, beside the bit that marks it as valid."""

_GROUP_TILES: Final = 32
"""Tiles of a group, and groups of a group of groups; GROUP_SIZE in the kernel."""

_STRUCTS: Final = {"sum": "Sum", "prod": "Product", "max": "Maximum", "min": "Minimum"}
"""The operations in the kernel."""


class ScanOps(CudaOps, core.ScanOps):
    """Cumulative ops.

    Blocks of CUDA start in the order of their indices, so one may wait for those before it: a row
    is read once. OpenCL promises no order, so there it is read twice.
    """

    def scans_by_items(self, rows: int, n: int, inner: int) -> bool:
        """Whether each line has a thread."""
        is_near = inner > 1 or n < _MAX_CONTIGUOUS_LINE_OF_THREAD
        return n <= _MAX_LINE_OF_THREAD or (rows >= _MIN_LINES_FOR_THREADS and is_near)

    def scan_rows(self, operation: str, x: Array, out: Array, rows: int, n: int) -> None:
        """One pass, in which each tile waits for the totals of the tiles before it."""
        launcher = self.launcher
        dtype = launcher.dtypes[x.dtype]
        width = _PACK_BYTES // dtype.itemsize
        packs = next(
            count
            for count in _PACKS
            if THREADS * width * count >= n
            or 2 * count * width > _MAX_ELEMENTS_OF_THREAD
            or count == _PACKS[-1]
        )
        tiles = -(-n // (THREADS * width * packs))
        row_words = words = 0
        if tiles > 1:
            halves = 2 if dtype.itemsize > _WORD_VALUE_BYTES else 1
            row_words = halves * (tiles + tiles // _GROUP_TILES + tiles // _GROUP_TILES**2 + 2)
            words = rows * row_words
        known = launcher.empty((words,), int64.numpy)
        launcher.runtime.zero(known)
        types = {"T": c_type(dtype), "S": computed_type(dtype), "OPERATION": _STRUCTS[operation]}
        kernel = launcher.kernel("scan_rows", "scan.cu", **types, PACKS=packs, WIDTH=width)
        launcher.run_blocks(kernel, rows * tiles, x, out, known, n, tiles, row_words)
