"""Matrix products through BLAS."""

from __future__ import annotations

import numpy as np

from burn_cpu.base import Array, CpuOps


class LinearAlgebraOps(CpuOps):
    """Contractions."""

    def matmul(self, x1: Array, x2: Array) -> Array:
        """16-bit floats are multiplied in float32: NumPy has no BLAS for them."""
        dtype = x1.dtype
        if dtype.kind in "fV" and dtype.itemsize < 4:
            wide = self.matmul(x1.astype(np.float32), x2.astype(np.float32))
            return wide.astype(dtype)
        if x1.ndim == x2.ndim == 2:
            return x1.dot(x2)  # the same BLAS call, with a third of the overhead of matmul
        if x1.ndim < 2 or x2.ndim < 2:
            raise ValueError("matrices have two axes or more")
        if x2.ndim == 2 and x1.ndim > 2 and x1.size:
            # One matrix for a whole batch: NumPy would call BLAS once per matrix of the batch.
            rows = x1.reshape(-1, x1.shape[-1]).dot(x2)
            return rows.reshape(*x1.shape[:-1], x2.shape[-1])
        return np.matmul(x1, x2)
