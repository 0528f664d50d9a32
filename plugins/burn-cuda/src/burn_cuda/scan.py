"""Scans: a thread along each line where there are many, else one pass of blocks over the rows."""

from __future__ import annotations

import math
from typing import Any, Final

from burn.plugin_api import DType, int64
from burn_cuda.base import Array, CudaOps
from burn_cuda.complex_numbers import on_parts, slice_axis
from burn_cuda.kernels import THREADS, c_type, computed_type

__all__ = ["ScanOps"]


_MANY_LINES: Final = 1 << 14
_FEW_ELEMENTS: Final = 16
_SHORT_ROW: Final = 128
_PACK_BYTES: Final = 16
_PACKS: Final = (1, 2, 4, 8)
_MOST_VALUES: Final = 32
"""So many elements a thread holds."""

_HALF_WORD: Final = 4
_FAN: Final = 32
"""Tiles in a group, and groups in what is above."""


class ScanOps(CudaOps):
    """What accumulates along an axis."""

    def cumsum(self, x: Array, *, axis: int) -> Array:
        """16-bit floats add up in float32."""
        return self._scan("Sum", x, axis)

    def cumprod(self, x: Array, *, axis: int) -> Array:
        """16-bit floats are multiplied in float32."""
        return self._scan("Product", x, axis)

    def cummax(self, x: Array, *, axis: int) -> Array:
        """NaN propagates."""
        return self._scan("Larger", x, axis)

    def cummin(self, x: Array, *, axis: int) -> Array:
        """NaN propagates."""
        return self._scan("Smaller", x, axis)

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
        many = lines >= _MANY_LINES and (inner > 1 or n < _SHORT_ROW)
        if many or n <= _FEW_ELEMENTS:
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
        """Sums of both parts, and products of neighbours."""
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
        """In one pass, which looks back at what the tiles before came to."""
        launcher = self.launcher
        width = _PACK_BYTES // dtype.itemsize
        packs = next(
            one
            for one in _PACKS
            if THREADS * width * one >= n or 2 * one * width > _MOST_VALUES or one == _PACKS[-1]
        )
        tiles = -(-n // (THREADS * width * packs))
        words_of_row = words = 0
        if tiles > 1:
            halves = 2 if dtype.itemsize > _HALF_WORD else 1
            words_of_row = halves * (tiles + tiles // _FAN + tiles // _FAN**2 + 2)
            words = rows * words_of_row
        known = launcher.empty((words,), int64.numpy)
        launcher.runtime.zero(known)
        kernel = self._scan_kernel("scan_rows", operation, dtype, PACKS=packs, WIDTH=width)
        launcher.run_blocks(kernel, rows * tiles, x, out, known, n, tiles, words_of_row)
