"""Scans: a thread along each line where there are many, else a block along each part of a row."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from burn.dtype import DType, float32
from burn_cuda.kernels import c_type, computed_type

if TYPE_CHECKING:
    from burn_cuda.launcher import Launcher

__all__ = ["ScanOps"]

Array = Any

_MANY_LINES: Final = 1 << 14
_FEW_ELEMENTS: Final = 16
_BLOCKS: Final = 4224
_CHUNK: Final = 4096
"""Elements that a block takes at once."""


class ScanOps:
    """What accumulates along an axis."""

    launcher: Launcher

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
        if not 0 <= axis < len(x.shape):
            raise IndexError(f"axis {axis} of {len(x.shape)}")
        if not x.size:
            return x
        n = x.shape[axis]
        inner = math.prod(x.shape[axis + 1 :])
        lines = x.size // n
        kernel = self._scan_kernel("scan_lines", operation, dtype)
        if lines >= _MANY_LINES or n <= _FEW_ELEMENTS:
            out = launcher.empty(x.shape, x.dtype)
            launcher.run(kernel, lines, launcher.dense(x), out, n, inner, lines)
            return out
        order = (*[number for number in range(len(x.shape)) if number != axis], axis)
        moved = launcher.dense(x.transpose(order))
        out = launcher.empty(moved.shape, x.dtype)
        self._scan_rows(operation, dtype, moved, out, lines, n)
        return out.transpose(tuple([order.index(number) for number in range(len(order))]))

    def _scan_kernel(self, name: str, operation: str, dtype: DType) -> Any:
        return self.launcher.kernel(
            name, "scan.cu", T=c_type(dtype), S=computed_type(dtype), OPERATION=operation
        )

    def _scan_rows(
        self, operation: str, dtype: DType, x: Array, out: Array, rows: int, n: int
    ) -> None:
        """In one go, or with what the parts before came to."""
        launcher = self.launcher
        parts = max(1, min(_BLOCKS // rows, n // (4 * _CHUNK)))
        chunk = -(-n // parts)
        chunk = _CHUNK * -(-chunk // _CHUNK)
        parts = -(-n // chunk)
        wide = float32 if dtype.is_float and dtype.itemsize < 4 else dtype
        before = launcher.empty((rows, parts), wide.numpy)
        if parts > 1:
            totals = launcher.empty((rows, parts), wide.numpy)
            kernel = self._scan_kernel("part_totals", operation, dtype)
            launcher.run_blocks(kernel, rows * parts, x, totals, n, parts, chunk)
            self._scan_rows(operation, wide, totals, before, rows, parts)
        kernel = self._scan_kernel("scan_rows", operation, dtype)
        launcher.run_blocks(kernel, rows * parts, x, out, before, n, parts, chunk)
