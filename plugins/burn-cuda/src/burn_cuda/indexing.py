"""Gather and scatter. Kernels check indices and report those out of range in the flag."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from burn.plugin_api import (
    DType,
    Kind,
    Shape,
    check_gather_operands,
    complex64,
    complex128,
    float32,
    float64,
    int32,
    uint32,
)
from burn_cuda.base import Array, CudaOps
from burn_cuda.kernels import WORDS, c_type

__all__ = ["IndexingOps", "word_type"]


_MAX_UPDATES_IN_FLOAT64: Final = 1 << 20
"""Number of float32 values up to which sums are accumulated in float64.

The sum then hardly ever depends on the order of the atomic additions.
"""

_DOUBLE_WIDTH: Final = {float32: float64, complex64: complex128}
_COMBINERS: Final = {"multiply": "Product", "max": "Maximum", "min": "Minimum"}


def word_type(x: Array) -> str:
    """C++ type for moving elements without computing."""
    return WORDS[x.dtype.itemsize]


def _update_dtype(dtype: DType, update: str, count: int) -> DType:
    """Dtype of the accumulators: atomic operations exist for 32 and 64 bits.

    Threads add in any order. Rounding a float64 sum to float32 removes the differences, except for
    sums that are within a float64 rounding error of the midpoint of two float32 numbers.
    """
    if dtype in _DOUBLE_WIDTH and update == "add" and count <= _MAX_UPDATES_IN_FLOAT64:
        return _DOUBLE_WIDTH[dtype]
    if dtype.itemsize >= 4:
        return dtype
    if dtype.is_float:
        return float32
    return uint32 if dtype.kind is Kind.UINT else int32


def _outer_length_inner(shape: Shape, axis: int) -> tuple[int, int, int]:
    """Products of the lengths before an axis, of the axis, and of those behind it."""
    if not 0 <= axis < len(shape):
        raise IndexError(f"axis {axis} of {len(shape)}")
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


class IndexingOps(CudaOps):
    """Indexing by integer tensors."""

    def gather(self, x: Array, indices: Array, *, axis: int) -> Array:
        """One thread for each index."""
        check_gather_operands(x, indices, axis)
        return self._gather("gather", x, indices, axis, indices.shape)

    def select(self, x: Array, indices: Array, *, axis: int) -> Array:
        """One thread for each element of the result."""
        _check_vector(indices)
        shape = (*x.shape[:axis], indices.shape[0], *x.shape[axis + 1 :])
        if 0 in shape:  # a kernel checks the index of each element
            result: Array = self.ops.decomposed("select", x, indices, axis=axis)
            return result
        return self._gather("select", x, indices, axis, shape)

    def _gather(self, op: str, x: Array, indices: Array, axis: int, shape: Shape) -> Array:
        launcher = self.launcher
        _, length, inner = _outer_length_inner(x.shape, axis)
        out = launcher.empty(shape, x.dtype)
        kernel = launcher.kernel(
            "gather",
            "indexing.cu",
            E=word_type(x),
            I=c_type(launcher.dtypes[indices.dtype]),
            SELECTS=int(op == "select"),
            GATHERS=1,
        )
        launcher.run(
            kernel,
            out.size,
            launcher.dense(x),
            launcher.dense(indices),
            out,
            length,
            shape[axis],
            inner,
            out.size,
            *launcher.flag(op),
        )
        return out

    def embedding(self, weight: Array, indices: Array) -> Array:
        """One thread for each element of the result."""
        if len(weight.shape) != 2 or not weight.shape[1]:
            result: Array = self.ops.decomposed("embedding", weight, indices)
            return result
        launcher = self.launcher
        rows, length = weight.shape
        out = launcher.empty((*indices.shape, length), weight.dtype)
        types: dict[str, str | int] = {
            "E": word_type(weight),
            "I": c_type(launcher.dtypes[indices.dtype]),
        }
        kernel = launcher.kernel("gather", "indexing.cu", **types, SELECTS=1, LABELS=1, GATHERS=1)
        numbers = (rows, indices.size, length, out.size, *launcher.flag("embedding"))
        memory = (launcher.dense(weight), launcher.dense(indices), out)
        launcher.run(kernel, out.size, *memory, *numbers)
        return out

    def embedding_grad(self, g: Array, indices: Array, *, count: int) -> Array:
        """Atomic additions to zeros."""
        launcher = self.launcher
        dtype = launcher.dtypes[g.dtype]
        if not g.size or g.shape[:-1] != indices.shape or not dtype.is_float:
            result: Array = self.ops.decomposed("embedding_grad", g, indices, count=count)
            return result
        length = g.shape[-1]
        wide = _update_dtype(dtype, "add", g.size)
        out = launcher.empty((count, length), wide.numpy)
        launcher.runtime.zero(out)
        types: dict[str, str | int] = {
            "E": c_type(wide),
            "V": c_type(dtype),
            "I": c_type(launcher.dtypes[indices.dtype]),
        }
        kernel = launcher.kernel("scatter", "indexing.cu", **types, SELECTS=1, LABELS=1)
        numbers = (count, indices.size, length, g.size, *launcher.flag("embedding_grad"))
        memory = (out, launcher.dense(indices), launcher.dense(g))
        launcher.run(kernel, g.size, *memory, *numbers)
        return self.cast(out, dtype=dtype)

    def scatter_add(self, x: Array, indices: Array, value: Array, *, axis: int) -> Array:
        """Atomic additions."""
        check_gather_operands(x, indices, axis, value)
        return self._update("scatter_add", x, indices, value, axis, "add")

    def select_add(self, x: Array, indices: Array, value: Array, *, axis: int) -> Array:
        """Atomic additions."""
        _check_selection(x, indices, value, axis)
        if not value.size:  # a kernel checks the index of each element
            result: Array = self.ops.decomposed("select_add", x, indices, value, axis=axis)
            return result
        return self._update("select_add", x, indices, value, axis, "add")

    def scatter(self, x: Array, indices: Array, value: Array, *, axis: int, update: str) -> Array:
        """Atomic updates."""
        check_gather_operands(x, indices, axis, value)
        return self._update("scatter", x, indices, value, axis, update)

    def select_assign(
        self, x: Array, indices: Array, value: Array, *, axis: int, update: str
    ) -> Array:
        """Atomic updates."""
        _check_selection(x, indices, value, axis)
        if not value.size:  # as in select_add
            result: Array = self.ops.decomposed(
                "select_assign", x, indices, value, axis=axis, update=update
            )
            return result
        return self._update("select_assign", x, indices, value, axis, update)

    def _update(
        self, op: str, x: Array, indices: Array, value: Array, axis: int, update: str
    ) -> Array:
        launcher = self.launcher
        dtype = launcher.dtypes[x.dtype]
        if value.dtype is not x.dtype or (dtype.is_bool and update in ("add", "multiply")):
            raise TypeError(f"{update} of {value.dtype} to {x.dtype}")
        if dtype.is_complex and update not in ("add", "assign"):
            if update != "multiply":
                raise TypeError("complex numbers have no order")
            # There is no atomic operation on 16 bytes.
            name = op if op == "select_assign" else "scatter"
            return self.ops.decomposed(name, x, indices, value, axis=axis, update=update)
        _, length, inner = _outer_length_inner(x.shape, axis)
        definitions: dict[str, str | int] = {
            "I": c_type(launcher.dtypes[indices.dtype]),
            "SELECTS": int(op.startswith("select")),
        }
        indices = launcher.dense(indices)
        n = value.size
        numbers = (length, value.shape[axis], inner, n, *launcher.flag(op))
        if update == "assign":
            return self._assign(x, indices, value, numbers, definitions)
        if update != "add":
            definitions["JOIN"] = _COMBINERS[update]
        wide = _update_dtype(dtype, update, n)
        out = launcher.copied(x) if wide is dtype else self.cast(x, dtype=wide)
        values = launcher.dense(self.cast(value, dtype=wide))
        kernel = launcher.kernel("scatter", "indexing.cu", E=c_type(wide), **definitions)
        launcher.run(kernel, n, out, indices, values, *numbers)
        return self.cast(out, dtype=dtype)

    def _assign(
        self,
        x: Array,
        indices: Array,
        value: Array,
        numbers: tuple[int, ...],
        definitions: dict[str, str | int],
    ) -> Array:
        launcher = self.launcher
        out = launcher.copied(x)
        writers = launcher.empty((max(x.size, 1),), np.dtype(np.uint64))
        launcher.runtime.zero(writers)
        definitions["E"] = word_type(x)
        kernel = launcher.kernel("find_writers", "assignment.cu", **definitions)
        launcher.run(kernel, value.size, writers, indices, *numbers)
        kernel = launcher.kernel("assign", "assignment.cu", **definitions)
        launcher.run(kernel, x.size, out, writers, launcher.dense(value), x.size)
        return out


def _check_vector(indices: Array) -> None:
    if len(indices.shape) != 1:
        raise ValueError(f"indices with {len(indices.shape)} axes")


def _check_selection(x: Array, indices: Array, value: Array, axis: int) -> None:
    _check_vector(indices)
    if value.shape != (*x.shape[:axis], indices.shape[0], *x.shape[axis + 1 :]):
        raise ValueError(f"a value of shape {value.shape} for {indices.shape[0]} indices")
