"""The gradient of max pooling: a block adds the elements of an image in shared memory."""

from __future__ import annotations

import math
from typing import Final

import burn.plugin_api as core
from burn.plugin_api import Sizes, check_pool_indices
from burn_cuda.base import Array, CudaOps
from burn_cuda.kernels import c_type

__all__ = ["PoolingOps"]

_ADDS_DOUBLES: Final = (6, 0)
"""Compute capability from which on threads add to a float64."""

_MAX_SUMS: Final = 4096
"""Sums in float64 that fit into the shared memory of a block on every GPU."""


class PoolingOps(CudaOps, core.PoolingOps):
    """Max pooling."""

    def max_pool_grad(self, g: Array, indices: Array, *, input_size: Sizes) -> Array:
        """Atomic additions to shared memory, which OpenCL has for no floats; else a scatter."""
        launcher = self.launcher
        shape = check_pool_indices(g.shape, indices.shape, input_size)
        spatial, positions = (
            math.prod(input_size),
            math.prod(g.shape[len(g.shape) - len(input_size) :]),
        )
        dtype = launcher.dtypes[g.dtype]
        adds_doubles = launcher.runtime.capability >= _ADDS_DOUBLES
        if not (adds_doubles and dtype.is_float and 0 < spatial <= _MAX_SUMS):
            return self.ops.decomposed("max_pool_grad", g, indices, input_size=input_size)
        out = launcher.empty(shape, g.dtype)
        kernel = launcher.kernel(
            "max_pool_grad",
            "pooling_gradient.cu",
            T=c_type(dtype),
            I=c_type(launcher.dtypes[indices.dtype]),
            SUMS=1 << (spatial - 1).bit_length(),
        )
        given = (launcher.dense(g), launcher.dense(indices), out, positions, spatial)
        launcher.run_blocks(kernel, out.size // spatial, *given, *launcher.flag("max_pool_grad"))
        return out
