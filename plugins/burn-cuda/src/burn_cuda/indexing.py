"""Writing at indices, by atomic updates."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

import burn.plugin_api as core
from burn.plugin_api import DType, Kind, Update, float32, float64, int32, uint32
from burn_cuda.base import Array, CudaOps
from burn_cuda.kernels import WORDS, c_type

__all__ = ["IndexingOps", "word_type"]


_MAX_UPDATES_IN_FLOAT64: Final = 1 << 20
"""Number of float32 values up to which sums are accumulated in float64.

The sum then hardly ever depends on the order of the atomic additions.
"""

_COMBINERS: Final = {"multiply": "Product", "max": "Maximum", "min": "Minimum"}


def word_type(x: Array) -> str:
    """C++ type for moving elements without computing."""
    return WORDS[x.dtype.itemsize]


class IndexingOps(CudaOps, core.IndexingOps):
    """Indexing by integer tensors.

    Atomic operations on floats, which OpenCL lacks, take one kernel, where sorted segments take
    many.
    """

    def update_dtype(self, dtype: DType, update: str, count: int) -> DType:
        """Dtype of the accumulators: atomic operations exist for 32 and 64 bits.

        Threads add in any order. Rounding a float64 sum to float32 removes the differences, except
        for sums that are within a float64 rounding error of the midpoint of two float32 numbers.
        """
        if update == "assign":
            return dtype
        if dtype is float32 and update == "add" and count <= _MAX_UPDATES_IN_FLOAT64:
            return float64
        if dtype.itemsize >= 4:
            return dtype
        if dtype.is_float:
            return float32
        return uint32 if dtype.kind is Kind.UINT else int32

    def update_dense(self, out: Array, indices: Array, values: Array, rule: Update) -> None:
        """One thread for each value."""
        launcher = self.launcher
        if rule.update == "assign":
            self._assign(out, indices, values, rule)
            return
        definitions = self._definitions(indices, rule)
        if rule.update != "add":
            definitions["JOIN"] = _COMBINERS[rule.update]
        dtype = launcher.dtypes[out.dtype]
        kernel = launcher.kernel("scatter", "indexing.cu", E=c_type(dtype), **definitions)
        launcher.run(kernel, values.size, out, indices, values, *self._numbers(values, rule))

    def _assign(self, out: Array, indices: Array, values: Array, rule: Update) -> None:
        """Finds the last value of each element, then writes it."""
        launcher = self.launcher
        writers = launcher.empty((max(out.size, 1),), np.dtype(np.uint64))
        launcher.runtime.zero(writers)
        definitions = {"E": word_type(out), **self._definitions(indices, rule)}
        kernel = launcher.kernel("find_writers", "assignment.cu", **definitions)
        launcher.run(kernel, values.size, writers, indices, *self._numbers(values, rule))
        kernel = launcher.kernel("assign", "assignment.cu", **definitions)
        launcher.run(kernel, out.size, out, writers, values, out.size)

    def embedding_grad(self, g: Array, indices: Array, *, count: int) -> Array:
        """Atomic additions to zeros."""
        launcher = self.launcher
        dtype = launcher.dtypes[g.dtype]
        if not g.size or g.shape[:-1] != indices.shape or not dtype.is_float:
            result: Array = self.ops.decomposed("embedding_grad", g, indices, count=count)
            return result
        length, number = g.shape[-1], math.prod(indices.shape)
        wide = self.update_dtype(dtype, "add", g.size)
        out = launcher.new((count, length), wide)
        launcher.runtime.zero(out)
        rule = Update(
            "embedding_grad", "add", 1, count, number, length, is_select=True, is_label=True
        )
        definitions = {"V": c_type(dtype), **self._definitions(indices, rule)}
        kernel = launcher.kernel("scatter", "indexing.cu", E=c_type(wide), **definitions)
        memory = (out, launcher.dense(indices), launcher.dense(g))
        launcher.run(kernel, g.size, *memory, *self._numbers(g, rule))
        return self.cast(out, dtype=dtype)

    def _definitions(self, indices: Array, rule: Update) -> dict[str, str | int]:
        definitions: dict[str, str | int] = {"I": c_type(self.launcher.dtypes[indices.dtype])}
        definitions |= {"SELECTS": int(rule.is_select), "PARTS": rule.parts}
        if rule.is_label:
            definitions["LABELS"] = 1
        return definitions

    def _numbers(self, values: Array, rule: Update) -> tuple[int, ...]:
        """The last arguments of the kernels."""
        sizes = (rule.length, rule.count, rule.inner, values.size)
        return *sizes, *self.launcher.flag(rule.op)
