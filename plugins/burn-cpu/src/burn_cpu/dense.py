"""Dense layers through BLAS."""

from __future__ import annotations

import numpy as np

from burn_cpu.base import Array, CpuOps


class DenseOps(CpuOps):
    """Affine maps."""

    def linear(self, x: Array, weight: Array, bias: Array | None) -> Array:
        """One product for a whole batch, and the bias added to it in place."""
        if weight.ndim != 2 or not x.shape or (bias is not None and bias.shape != weight.shape[1:]):
            raise ValueError(f"x {x.shape}, weight {weight.shape}")
        dtype = x.dtype
        if dtype.itemsize < 4:
            wide = [None if one is None else one.astype(np.float32) for one in (x, weight, bias)]
            return self.linear(*wide).astype(dtype)
        if x.shape[-1] != weight.shape[0]:
            raise ValueError(f"x {x.shape}, weight {weight.shape}")
        shape = (*x.shape[:-1], weight.shape[1])
        rows = x if x.ndim <= 2 else x.reshape(-1, x.shape[-1]) if x.size else None
        output = np.zeros(shape, dtype) if rows is None else rows.dot(weight)
        if bias is not None:
            output += bias
        return output.reshape(shape)
