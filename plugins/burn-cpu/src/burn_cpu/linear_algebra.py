"""Matrix products and affine maps through BLAS."""

from __future__ import annotations

import math

import numpy as np

from burn_cpu.base import Array, CpuOps


class LinearAlgebraOps(CpuOps):
    """Products of matrices."""

    def matmul(self, x1: Array, x2: Array) -> Array:
        """16-bit floats are multiplied in float32: NumPy has no BLAS for them."""
        dtype = x1.dtype
        if dtype.kind in "fV" and dtype.itemsize < 4:
            wide = self.matmul(x1.astype(np.float32), x2.astype(np.float32))
            return wide.astype(dtype)
        if x1.ndim == x2.ndim == 2:
            return x1.dot(x2)  # a third of the overhead of numpy.matmul
        if x1.ndim < 2 or x2.ndim < 2:
            raise ValueError("matrices have two axes or more")
        if x2.ndim == 2 and x1.ndim > 2 and x1.size:
            # One matrix for the whole batch: numpy.matmul would call BLAS for each matrix of it.
            rows = x1.reshape(-1, x1.shape[-1]).dot(x2)
            return rows.reshape(*x1.shape[:-1], x2.shape[-1])
        return np.matmul(x1, x2)

    def linear(
        self, x: Array, weight: Array, bias: Array | None, *, transposed: bool = False
    ) -> Array:
        """One product for the whole batch; the bias is added to it in place."""
        if transposed:
            weight = weight.T
        if weight.ndim != 2 or not x.shape or (bias is not None and bias.shape != weight.shape[1:]):
            raise ValueError(f"x {x.shape}, weight {weight.shape}")
        dtype = x.dtype
        if dtype.itemsize < 4:
            wide = [
                None if tensor is None else tensor.astype(np.float32)
                for tensor in (x, weight, bias)
            ]
            return self.linear(*wide).astype(dtype)
        if x.shape[-1] != weight.shape[0]:
            raise ValueError(f"x {x.shape}, weight {weight.shape}")
        shape = (*x.shape[:-1], weight.shape[1])
        rows = x if x.ndim <= 2 else x.reshape(-1, x.shape[-1]) if x.size else None
        output = np.zeros(shape, dtype) if rows is None else rows.dot(weight)
        if bias is not None:
            output += bias
        return output.reshape(shape)

    def linear_grad(self, x: Array, g: Array, *, transposed: bool = False) -> tuple[Array, Array]:
        """A product for the whole batch, and a sum."""
        if not x.ndim or x.shape[:-1] != g.shape[:-1]:
            raise ValueError(f"x {x.shape}, g {g.shape}")
        dtype = x.dtype
        if dtype.itemsize < 4:
            x, g = x.astype(np.float32), g.astype(np.float32)
            weight, bias = self.linear_grad(x, g, transposed=transposed)
            return weight.astype(dtype), bias.astype(dtype)
        if x.ndim != 2:
            rows = math.prod(x.shape[:-1])
            x, g = x.reshape(rows, x.shape[-1]), g.reshape(rows, g.shape[-1])
        return g.T.dot(x) if transposed else x.T.dot(g), np.add.reduce(g, 0)
