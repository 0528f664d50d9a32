"""Binary search in sorted tensors, and indices of nonzero elements."""

from __future__ import annotations

import math
from typing import Any

from burn.aliases import Primitive
from burn.dtype import DType, bool_, int64
from burn.ops import REGISTRY, check_index_dtype
from burn.shared_kernels.elements import DTYPE_CODES, c_type_of
from burn.shared_kernels.launching import MAX_KERNEL_AXES, SharedOps

__all__ = ["SearchingOps"]


class SearchingOps(SharedOps):
    """Searches."""

    def searchsorted(
        self, x1: Primitive, x2: Primitive, *, right: bool = False, dtype: DType
    ) -> Primitive:
        """A work item for each element of `x2`."""
        check_index_dtype(dtype)
        (length,) = x1.shape
        launcher = self.launcher
        source = self.check_dtypes("searchsorted", x1, x2)
        x1, x2 = launcher.dense(x1), launcher.dense(x2)
        out, size = launcher.new(x2.shape, dtype), math.prod(x2.shape)
        types = {"TYPE": DTYPE_CODES[source.name], "TARGET": DTYPE_CODES[dtype.name]}
        c_type = c_type_of(source)
        kernel = launcher.shared_kernel("search_sorted", "searching.c", c_type, {}, types)
        offsets = launcher.offset_of(x1), launcher.offset_of(x2)
        parameters = (size, length, *offsets, int(right), *types.values())
        launcher.start(kernel, parameters, (x1, x2, out), size)
        return out

    def argwhere(self, x: Primitive, *, dtype: DType) -> Primitive:
        """Reads the number of nonzero elements from the device, and nothing else."""
        check_index_dtype(dtype)
        rank, size = len(x.shape), math.prod(x.shape)
        if rank > MAX_KERNEL_AXES or not size:
            on_host: Any = REGISTRY["argwhere"].host
            return on_host(self.ops, x, dtype=dtype)
        launcher, ops = self.launcher, self.ops
        mask = launcher.dense(self.cast(x, dtype=bool_))
        numbers = ops.cast(ops.reshape(mask, shape=(size,)), dtype=int64)
        counts = launcher.dense(ops.cumsum(numbers, axis=0))
        last = ops.slice(counts, slices=((size - 1, 1, 1),))
        out = launcher.new((int(self.to_data(last).array[0]), rank), dtype)
        if out.shape[0] and rank:
            kernel = launcher.shared_kernel("nonzero_indices", "searching.c", "ulong")
            padding = [0] * (MAX_KERNEL_AXES - rank)
            offset, code = launcher.offset_of(mask), DTYPE_CODES[dtype.name]
            parameters = (size, rank, offset, code, *x.shape, *padding)
            launcher.start(kernel, parameters, (mask, counts, out), size)
        return out
