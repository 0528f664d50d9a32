"""Max pooling, and sampling of images at the points of a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, Unpack

import numpy as np

from burn.plugin_api import (
    REGISTRY,
    DType,
    MaxPoolAttributes,
    Meta,
    Sizes,
    Windows,
    check_pool_index_dtype,
    check_pool_indices,
    pool_windows,
    pooled_shape,
)
from burn_cuda.base import Array, CudaOps
from burn_cuda.kernels import c_type
from burn_cuda.launcher import divider, packed

__all__ = ["PoolingOps"]


_MODES: Final = {"nearest": 0, "bilinear": 1, "bicubic": 2}
_PADDING: Final = {"zeros": 0, "border": 1, "reflection": 2}
_MIN_THREADS: Final = 1 << 17
"""Threads that keep a GPU busy; with fewer points, several threads share the channels of one."""


_ADDS_DOUBLES: Final = (6, 0)
"""Compute capability from which on threads add to a float64."""

_MAX_SUMS: Final = 4096
"""Sums in float64 that fit into the shared memory of a block on every GPU."""


class PoolingOps(CudaOps):
    """One thread for each window, or for each point of a grid."""

    def max_pool(self, x: Array, **rule: Unpack[MaxPoolAttributes]) -> Array:
        """Without indices."""
        plan = pool_windows(x.shape, **rule)
        return self._max_pool(x, plan, None)[0]

    def max_pool_with_indices(
        self, x: Array, *, index_dtype: DType, **rule: Unpack[MaxPoolAttributes]
    ) -> tuple[Array, Array]:
        """The first of equal elements, and the first NaN."""
        plan = pool_windows(x.shape, **rule)
        check_pool_index_dtype(plan, index_dtype)
        output, indices = self._max_pool(x, plan, index_dtype)
        return output, indices

    def _max_pool(
        self, x: Array, plan: Sequence[Windows], index_dtype: DType | None
    ) -> tuple[Array, Array]:
        launcher = self.launcher
        dtype = launcher.dtypes[x.dtype]
        if not (dtype.is_float or dtype.is_integer):
            raise TypeError(f"max_pool of {dtype}")
        shape = pooled_shape(x.shape, plan)
        out = launcher.empty(shape, x.dtype)
        indices: Array = 0
        if index_dtype is not None:
            indices = launcher.empty(shape, index_dtype.numpy)
        kernel = launcher.kernel(
            "max_pool",
            "pooling.cu",
            T=c_type(dtype),
            I="int64" if index_dtype is None else c_type(index_dtype),
            D=len(plan),
            INDICES=int(index_dtype is not None),
        )
        names = ("length", "kernel", "stride", "before", "dilation", "count")
        table = [getattr(axis, name) for name in names for axis in plan]
        table += [divider(axis.count) for axis in plan]
        layout = packed(np.array(table, np.int64))
        spatial, positions = (
            math.prod(item[len(shape) - len(plan) :]) for item in (x.shape, shape)
        )
        rows = out.size // positions if positions else 0
        x = launcher.dense(x).reshape(rows, spatial)
        flat = out.reshape(rows, positions)
        most = max(1, ((1 << 31) - 1) // max(positions, 1))
        for start in range(0, rows, most):
            stop = min(start + most, rows)
            threads = (stop - start) * positions
            own = indices if index_dtype is None else indices.reshape(rows, positions)[start:stop]
            given = (x[start:stop], flat[start:stop], own, layout)
            launcher.run(kernel, threads, *given, spatial, threads)
        return out, indices

    def max_pool_grad(self, g: Array, indices: Array, *, input_size: Sizes) -> Array:
        """A block for each image, which adds in shared memory; large images are scattered."""
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

    def grid_sample_2d(
        self,
        x: Array,
        grid: Array,
        *,
        mode: str = "bilinear",
        padding_mode: str = "zeros",
        align_corners: bool = False,
    ) -> Array:
        """A thread finds the neighbours of a point once for all channels."""
        launcher = self.launcher
        dtype = launcher.dtypes[x.dtype]
        if not dtype.is_float or grid.dtype is not x.dtype:
            raise TypeError(f"images of {x.dtype} and a grid of {grid.dtype}")
        infer: Any = REGISTRY["grid_sample_2d"].infer
        operands = Meta(x.shape, dtype), Meta(grid.shape, dtype)
        shape = infer(*operands, mode=mode, padding_mode=padding_mode).shape
        out = launcher.empty(shape, x.dtype)
        if out.size:
            images, channels, height, width = x.shape
            count = shape[2] * shape[3]
            channel_parts = min(channels, -(-_MIN_THREADS // (images * count)))
            kernel = launcher.kernel(
                "grid_sample",
                "sampling.cu",
                T=c_type(dtype),
                MODE=_MODES[mode],
                PADDING=_PADDING[padding_mode],
                CORNERS=int(align_corners),
            )
            threads = images * count * channel_parts
            given = (launcher.dense(x), launcher.dense(grid), out)
            numbers = (channels, height, width, count, channel_parts, threads)
            launcher.run(kernel, threads, *given, *numbers)
        return out
