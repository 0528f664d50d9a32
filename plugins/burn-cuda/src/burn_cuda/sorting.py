"""Sorting: elements are mapped to unsigned integers of the same order, for a radix sort."""

from __future__ import annotations

from typing import Final

import numpy as np

from burn.plugin_api import DType, int64
from burn_cuda.base import Array, CudaOps
from burn_cuda.indexing import word_type
from burn_cuda.kernels import WORDS, c_type

__all__ = ["SortingOps"]


_WIDE_KEY_BYTES: Final = 8
"""Bytes of an element that leave no room for its row in a key."""

_KEYS: Final = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


class SortingOps(CudaOps):
    """Stable sorts."""

    def argsort(self, x: Array, *, axis: int, descending: bool = False, dtype: DType) -> Array:
        """One sort of all rows by (row, element)."""
        launcher = self.launcher
        if not 0 <= axis < len(x.shape):
            raise IndexError(f"axis {axis} of {len(x.shape)}")
        order = (*[number for number in range(len(x.shape)) if number != axis], axis)
        moved = launcher.dense(x.transpose(order))
        out = launcher.empty(moved.shape, dtype.numpy)
        if out.size:
            self._sort(moved, out, dtype, descending=descending)
        back = tuple([order.index(number) for number in range(len(order))])
        return out.transpose(back)

    def _sort(self, rows: Array, out: Array, dtype: DType, *, descending: bool) -> None:
        launcher = self.launcher
        runtime, n, length = launcher.runtime, rows.size, rows.shape[-1]
        itemsize = rows.dtype.itemsize
        one_row = n == length
        macros = self._key_macros(rows, equal_zeros=True)
        if one_row or itemsize == 8:
            keys = launcher.empty((n,), _KEYS[itemsize])
            kernel = launcher.kernel("make_keys", "sorting.cu", **macros)
            launcher.run(kernel, n, rows, keys, int(descending), n)
            order = runtime.argsort_rows(keys)
            if not one_row:
                order = self._then_by_rows(order, length, n)
        else:
            keys = launcher.empty((n,), np.dtype(np.uint64))
            kernel = launcher.kernel("make_row_keys", "sorting.cu", **macros)
            launcher.run(kernel, n, rows, keys, int(descending), length, n)
            order = runtime.argsort_rows(keys)
        kernel = launcher.kernel("indices_in_rows", "sorting.cu", O=c_type(dtype))
        launcher.run(kernel, n, order, out, length, n)

    def _then_by_rows(self, order: Array, length: int, n: int) -> Array:
        """A second, stable sort of an order by rows."""
        launcher = self.launcher
        rows = launcher.empty((n,), np.dtype(np.uint64))
        launcher.run(launcher.kernel("rows_of", "sorting.cu", O="int64"), n, order, rows, length, n)
        second = launcher.runtime.argsort_rows(rows)
        compose_orders = launcher.empty((n,), np.dtype(np.int64))
        kernel = launcher.kernel("compose_orders", "sorting.cu", O="int64")
        launcher.run(kernel, n, order, second, compose_orders, n)
        return compose_orders

    def sort(self, x: Array, *, axis: int, descending: bool = False) -> Array:
        """Sorts keys and converts them back to elements."""
        launcher = self.launcher
        rank = len(x.shape)
        if not 0 <= axis < rank:
            raise IndexError(f"axis {axis} of {rank}")
        itemsize, n, length = x.dtype.itemsize, x.size, x.shape[axis]
        if itemsize == _WIDE_KEY_BYTES and n != length:
            indices = self.argsort(x, axis=axis, descending=descending, dtype=int64)
            return self.gather(x, indices, axis=axis)
        order = (*[number for number in range(rank) if number != axis], axis)
        rows = launcher.dense(x.transpose(order))
        out = launcher.empty(rows.shape, x.dtype)
        if n:
            one_row = n == length
            macros = self._key_macros(rows, equal_zeros=False)
            keys = launcher.empty((n,), _KEYS[itemsize if one_row else _WIDE_KEY_BYTES])
            name, numbers = ("make_keys", (n,)) if one_row else ("make_row_keys", (length, n))
            macros["KEYS"] = WORDS[keys.dtype.itemsize]
            kernel = launcher.kernel(name, "sorting.cu", **macros)
            launcher.run(kernel, n, rows, keys, int(descending), *numbers)
            launcher.runtime.sort_keys(keys)
            kernel = launcher.kernel("from_keys", "sorting.cu", **macros)
            launcher.run(kernel, n, keys, out, int(descending), n)
        return out.transpose(tuple([order.index(number) for number in range(rank)]))

    def _key_macros(self, rows: Array, *, equal_zeros: bool) -> dict[str, str | int]:
        """Macros of the kernels of keys; with `equal_zeros`, zeros of both signs have one key."""
        dtype = self.launcher.dtypes[rows.dtype]
        macros: dict[str, str | int] = {"T": c_type(dtype), "K": word_type(rows), "KEYS": "uint64"}
        macros["EQUAL_ZEROS"] = int(equal_zeros)
        if dtype.is_float:
            macros["FLOATING"] = 1
        return macros
