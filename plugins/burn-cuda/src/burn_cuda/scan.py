"""Scans: one thread for each of many lines, else one pass of blocks over rows."""

from __future__ import annotations

import math
from typing import Any, Final

from burn.plugin_api import DType, int64
from burn_cuda.base import Array, CudaOps
from burn_cuda.complex_numbers import on_parts, slice_axis
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


class ScanOps(CudaOps):
    """Cumulative ops."""

    def cumsum(self, x: Array, *, axis: int) -> Array:
        """16-bit floats add up in float32."""
        return self._scan("Sum", x, axis)

    def cumprod(self, x: Array, *, axis: int) -> Array:
        """16-bit floats are multiplied in float32."""
        return self._scan("Product", x, axis)

    def cummax(self, x: Array, *, axis: int) -> Array:
        """NaN propagates."""
        return self._scan("Maximum", x, axis)

    def cummin(self, x: Array, *, axis: int) -> Array:
        """NaN propagates."""
        return self._scan("Minimum", x, axis)

    def _scan(self, operation: str, x: Array, axis: int) -> Array:
        launcher = self.launcher
        dtype = launcher.dtypes[x.dtype]
        if dtype.is_bool:
            raise TypeError(f"{operation} of bool")
        if dtype.is_complex:
            return self._scan_complex(operation, x, axis, dtype)
        if not 0 <= axis < len(x.shape):
            raise IndexError(f"axis {axis} of {len(x.shape)}")
        if not x.size:
            return x
        n = x.shape[axis]
        inner = math.prod(x.shape[axis + 1 :])
        lines = x.size // n
        many = lines >= _MIN_LINES_FOR_THREADS and (inner > 1 or n < _MAX_CONTIGUOUS_LINE_OF_THREAD)
        if many or n <= _MAX_LINE_OF_THREAD:
            kernel = self._scan_kernel("scan_lines", operation, dtype)
            out = launcher.empty(x.shape, x.dtype)
            launcher.run(kernel, lines, launcher.dense(x), out, n, inner, lines)
            return out
        order = (*[number for number in range(len(x.shape)) if number != axis], axis)
        moved = launcher.dense(x.transpose(order))
        out = launcher.empty(moved.shape, x.dtype)
        self._scan_rows(operation, dtype, moved, out, lines, n)
        return out.transpose(tuple([order.index(number) for number in range(len(order))]))

    def _scan_complex(self, operation: str, x: Array, axis: int, dtype: DType) -> Array:
        """Sums by real and imaginary parts, products in steps of doubled distance."""
        if not 0 <= axis < len(x.shape):
            raise IndexError(f"axis {axis} of {len(x.shape)}")
        if operation == "Sum":
            return on_parts(
                self.launcher, lambda parts: self._scan(operation, parts, axis), x, dtype
            )
        if operation == "Product":
            return self._complex_products(x, axis)
        raise TypeError("complex numbers have no order")

    def _complex_products(self, x: Array, axis: int) -> Array:
        """The product of each element and those before it, in steps of doubled distance.

        W. D. Hillis and G. L. Steele, "Data parallel algorithms" (1986).
        """
        length = x.shape[axis]
        step = 1
        while step < length:
            later = slice_axis(x, axis, step, length)
            earlier = slice_axis(x, axis, 0, length - step)
            first = slice_axis(x, axis, 0, step)
            x = self.concat([first, self.multiply(later, earlier)], axis=axis)
            step *= 2
        return x

    def _scan_kernel(self, name: str, operation: str, dtype: DType, **tile: int) -> Any:
        types = {"T": c_type(dtype), "S": computed_type(dtype), "OPERATION": operation}
        return self.launcher.kernel(name, "scan.cu", **types, **tile)

    def _scan_rows(
        self, operation: str, dtype: DType, x: Array, out: Array, rows: int, n: int
    ) -> None:
        """One pass, in which each tile waits for the totals of the tiles before it."""
        launcher = self.launcher
        width = _PACK_BYTES // dtype.itemsize
        packs = next(
            item
            for item in _PACKS
            if THREADS * width * item >= n
            or 2 * item * width > _MAX_ELEMENTS_OF_THREAD
            or item == _PACKS[-1]
        )
        tiles = -(-n // (THREADS * width * packs))
        row_words = words = 0
        if tiles > 1:
            halves = 2 if dtype.itemsize > _WORD_VALUE_BYTES else 1
            row_words = halves * (tiles + tiles // _GROUP_TILES + tiles // _GROUP_TILES**2 + 2)
            words = rows * row_words
        known = launcher.empty((words,), int64.numpy)
        launcher.runtime.zero(known)
        kernel = self._scan_kernel("scan_rows", operation, dtype, PACKS=packs, WIDTH=width)
        launcher.run_blocks(kernel, rows * tiles, x, out, known, n, tiles, row_words)
