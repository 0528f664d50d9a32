"""Max pooling: the maximum of each window, and its index in the image."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Unpack

from burn.aliases import Primitive
from burn.dtype import DType
from burn.ops import (
    MaxPoolAttributes,
    Sizes,
    Windows,
    check_pool_index_dtype,
    check_pool_indices,
    pool_windows,
    pooled_shape,
)
from burn.shared_kernels.elements import DTYPE_CODES, c_type_of
from burn.shared_kernels.launching import SharedOps
from burn.shared_kernels.windows import fits_windows, launch_max_pool

__all__ = ["PoolingOps"]


class PoolingOps(SharedOps):
    """Max pooling over up to three spatial axes; the defaults pool over more."""

    def max_pool(self, x: Primitive, **rule: Unpack[MaxPoolAttributes]) -> Primitive:
        """Without indices."""
        plan = pool_windows(x.shape, **rule)
        if not fits_windows(plan):
            return self.ops.decomposed("max_pool", x, **rule)
        return self._max_pool(x, plan, None)[0]

    def max_pool_with_indices(
        self, x: Primitive, *, index_dtype: DType, **rule: Unpack[MaxPoolAttributes]
    ) -> tuple[Primitive, Primitive]:
        """Indices of the first of equal elements, and of the first NaN."""
        plan = pool_windows(x.shape, **rule)
        if not fits_windows(plan):
            both: tuple[Primitive, Primitive] = self.ops.decomposed(
                "max_pool_with_indices", x, index_dtype=index_dtype, **rule
            )
            return both
        check_pool_index_dtype(plan, index_dtype)
        return self._max_pool(x, plan, index_dtype)

    def _max_pool(
        self, x: Primitive, plan: Sequence[Windows], index_dtype: DType | None
    ) -> tuple[Primitive, Primitive]:
        launcher = self.launcher
        dtype = launcher.dtype_of(x)
        if not (dtype.is_float or dtype.is_integer):
            raise TypeError(f"max_pool of {dtype}")
        shape = pooled_shape(x.shape, plan)
        out = launcher.new(shape, dtype)
        indices = None if index_dtype is None else launcher.new(shape, index_dtype)
        launch_max_pool(launcher, launcher.dense(x), plan, out, indices, index_dtype)
        return out, indices

    def max_pool_grad(self, g: Primitive, indices: Primitive, *, input_size: Sizes) -> Primitive:
        """An item of a CPU computes a whole image; else the default, which scatters."""
        launcher = self.launcher
        shape = check_pool_indices(g.shape, indices.shape, input_size)
        dtype, index_dtype = launcher.dtype_of(g), launcher.dtype_of(indices)
        if not launcher.is_cpu or not dtype.is_float or dtype.itemsize == 2:
            return self.ops.decomposed("max_pool_grad", g, indices, input_size=input_size)
        if not index_dtype.is_integer:
            raise TypeError(f"indices of {index_dtype}")
        out = launcher.new(shape, dtype)
        size, elements = math.prod(shape), math.prod(input_size)
        if size:
            g, indices = launcher.dense(g), launcher.dense(indices)
            error, op = launcher.index_error("max_pool_grad")
            codes = DTYPE_CODES[dtype.name], DTYPE_CODES[index_dtype.name]
            types = {"TYPE": codes[0], "INDEX_TYPE": codes[1]}
            kernel = launcher.shared_kernel(
                "max_pool_grad", "pooling_gradient.c", c_type_of(dtype), {}, types, size
            )
            windows = math.prod(g.shape[len(g.shape) - len(input_size) :])
            offsets = launcher.offset_of(g), launcher.offset_of(indices)
            parameters = (size // elements, elements, windows, *offsets, *codes, op)
            launcher.start(kernel, parameters, (g, indices, out, error), size // elements)
        return out
