"""Reductions, scans and order on NumPy arrays."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from burn.plugin_api import DType, bool_, float32, float64, specializing
from burn_cpu.base import LARGE, Array, CpuOps

_LONG = 128
"""Elements of a row among which NumPy finds the largest faster than generated kernels do."""

# As Any: NumPy's stubs know a ufunc's methods only with a literal for keepdims.
_add: Any = np.add
_multiply: Any = np.multiply
_maximum: Any = np.maximum
_minimum: Any = np.minimum
_logical_or: Any = np.logical_or
_logical_and: Any = np.logical_and


def ordered(x: Array) -> Array:
    """`x` in a dtype that NumPy can sort: bfloat16 as float32, which has every value of it."""
    return x.astype(np.float32) if x.dtype.kind == "V" else x


def _total(backend: CpuOps, name: str, function: Any) -> Callable[..., Array]:
    """The sum or product, in float32 of 16-bit floats; one float dtype needs the fewest checks."""
    reduce = function.reduce  # found once, which makes up for the test of the size

    def by_numpy(x: Array, *, axis: tuple[int, ...], keepdims: bool, dtype: DType) -> Array:
        if dtype.is_float and dtype.itemsize < float32.itemsize:
            wide = reduce(x.astype(np.float32), axis=axis, keepdims=keepdims)
            return wide.astype(dtype.numpy)
        # Without a dtype NumPy adds integers up in 64 bits.
        return reduce(x, axis=axis, dtype=dtype.numpy, keepdims=keepdims)

    def total(x: Array, *, axis: tuple[int, ...], keepdims: bool = False, dtype: DType) -> Array:
        if x.size >= LARGE and x.flags.c_contiguous:
            return backend.large(name, by_numpy)(x, axis=axis, keepdims=keepdims, dtype=dtype)
        if dtype.itemsize < float32.itemsize:
            return by_numpy(x, axis=axis, keepdims=keepdims, dtype=dtype)
        return reduce(x, axis, dtype.numpy, None, keepdims)

    def for_dtype(own: DType) -> Callable[..., Array]:
        if own not in (float32, float64):
            return total

        def total_of_floats(
            x: Array, *, axis: tuple[int, ...], keepdims: bool = False, dtype: DType
        ) -> Array:
            if dtype is not own or x.size >= LARGE:
                return total(x, axis=axis, keepdims=keepdims, dtype=dtype)
            return reduce(x, axis, None, None, keepdims)

        return total_of_floats

    return specializing(total, for_dtype)


def _by_numpy(name: str, reduce: Callable[..., Array]) -> Callable[..., Array]:
    """The method of a reduction that NumPy computes of few elements."""

    def method(self: CpuOps, x: Array, *, axis: tuple[int, ...], keepdims: bool = False) -> Array:
        if x.size < LARGE or not x.flags.c_contiguous:
            return reduce(x, axis=axis, keepdims=keepdims)
        return self.large(name, reduce)(x, axis=axis, keepdims=keepdims)

    method.__name__ = name
    return method


def _index_by_numpy(name: str, find: Any) -> Callable[..., Array]:
    """The method of an index, which NumPy is slow to find in rows that are short or strided."""

    def by_numpy(x: Array, *, axis: int, keepdims: bool = False, dtype: DType) -> Array:
        return find(ordered(x), axis=axis, keepdims=keepdims).astype(dtype.numpy, copy=False)

    def method(self: CpuOps, x: Array, *, axis: int, keepdims: bool = False, dtype: DType) -> Array:
        is_long = axis == x.ndim - 1 and x.shape[axis] >= _LONG
        if x.size < LARGE or is_long or not x.flags.c_contiguous:
            return by_numpy(x, axis=axis, keepdims=keepdims, dtype=dtype)
        return self.large(name, by_numpy)(x, axis=axis, keepdims=keepdims, dtype=dtype)

    method.__name__ = name
    return method


def _mean(x: Array, *, axis: tuple[int, ...], keepdims: bool = False) -> Array:
    """The sum over the count; 16-bit floats in float32."""
    count = math.prod([x.shape[number] for number in axis])
    if x.dtype.itemsize < float32.itemsize:
        wide = _add.reduce(x.astype(np.float32), axis=axis, keepdims=keepdims)
        return (wide / np.float32(count)).astype(x.dtype)
    return _add.reduce(x, axis=axis, keepdims=keepdims) / x.dtype.type(count)


class ReductionOps(CpuOps):
    """Reductions through the methods of universal functions, without NumPy's Python layer."""

    # NumPy's maximum and minimum propagate NaN. Numbers are read as booleans without a mask.
    mean = _by_numpy("mean", _mean)
    max = _by_numpy("max", _maximum.reduce)
    min = _by_numpy("min", _minimum.reduce)
    any = _by_numpy("any", functools.partial(_logical_or.reduce, dtype=bool_.numpy))
    all = _by_numpy("all", functools.partial(_logical_and.reduce, dtype=bool_.numpy))

    def __init__(self) -> None:
        super().__init__()
        for name, function in (("sum", _add), ("prod", _multiply)):
            setattr(self, name, _total(self, name, function))

    # NumPy takes the first of equals, and NaN as the largest or smallest.
    argmax = _index_by_numpy("argmax", np.argmax)
    argmin = _index_by_numpy("argmin", np.argmin)

    def argsort(self, x: Array, *, axis: int, descending: bool = False, dtype: DType) -> Array:
        """Stable descending order is the ascending one of the reversed elements, reversed."""
        x = ordered(x)
        last = x.shape[axis] - 1  # raises for a scalar, which NumPy would sort
        if not descending:
            return np.argsort(x, axis=axis, stable=True).astype(dtype.numpy)
        indices = np.argsort(np.flip(x, axis), axis=axis, stable=True)
        return (last - np.flip(indices, axis)).astype(dtype.numpy)

    def cumsum(self, x: Array, *, axis: int) -> Array:
        """16-bit floats add up in float32."""
        return _accumulate(_add, x, axis)

    def cumprod(self, x: Array, *, axis: int) -> Array:
        """16-bit floats are multiplied in float32."""
        return _accumulate(_multiply, x, axis)

    def cummax(self, x: Array, *, axis: int) -> Array:
        """NumPy's maximum propagates NaN."""
        return _maximum.accumulate(ordered(x), axis=axis).astype(x.dtype, copy=False)

    def cummin(self, x: Array, *, axis: int) -> Array:
        """NumPy's minimum propagates NaN."""
        return _minimum.accumulate(ordered(x), axis=axis).astype(x.dtype, copy=False)

    def sort(self, x: Array, *, axis: int, descending: bool = False) -> Array:
        """Values need no stable sort; NumPy's default is several times as fast."""
        result = np.sort(ordered(x), axis=axis).astype(x.dtype, copy=False)
        return np.flip(result, axis) if descending else result

    def searchsorted(self, x1: Array, x2: Array, *, right: bool = False, dtype: DType) -> Array:
        """NumPy takes NaN as largest too."""
        if x1.ndim != 1:
            raise ValueError(f"a search in an array of {x1.ndim} axes")
        indices: Any = np.searchsorted(ordered(x1), ordered(x2), "right" if right else "left")
        return indices.astype(dtype.numpy)


def _accumulate(function: Any, x: Array, axis: int) -> Array:
    if x.dtype.kind in "fV" and x.dtype.itemsize < float32.itemsize:
        return function.accumulate(x.astype(np.float32), axis=axis).astype(x.dtype)
    return function.accumulate(x, axis=axis, dtype=x.dtype)
