"""Binary search in sorted tensors, and indices of nonzero elements."""

from __future__ import annotations

from typing import Any

from burn.plugin_api import REGISTRY, DType, bool_, check_index_dtype, int64
from burn_opencl.buffers import Buffer
from burn_opencl.dtypes import DTYPE_CODES, c_type_of, check_dtypes
from burn_opencl.elementwise import ElementwiseOps
from burn_opencl.limits import MAX_KERNEL_AXES
from burn_opencl.scan import ScanOps

__all__ = ["SearchingOps"]


class SearchingOps(ScanOps, ElementwiseOps):
    """Searches."""

    def searchsorted(self, x1: Buffer, x2: Buffer, *, right: bool = False, dtype: DType) -> Buffer:
        """An item for each element of `x2`."""
        check_index_dtype(dtype)
        (length,) = x1.shape
        check_dtypes("searchsorted", x1, x2)
        launcher = self.launcher
        x1, x2 = launcher.dense(x1), launcher.dense(x2)
        out = launcher.empty(x2.shape, dtype)
        kernel = launcher.kernel("search_sorted", "searching.cl", c_type_of(x1.dtype))
        codes = (DTYPE_CODES[x1.dtype.name], int(right), DTYPE_CODES[dtype.name])
        parameters = (out.size, length, x1.offset, x2.offset, *codes)
        launcher.run(kernel, out.size, parameters, (x1.memory, x2.memory, out.memory))
        return out

    def argwhere(self, x: Buffer, *, dtype: DType) -> Buffer:
        """Reads the number of nonzero elements from the device, and nothing else."""
        check_index_dtype(dtype)
        rank = len(x.shape)
        if rank > MAX_KERNEL_AXES or not x.size:
            on_host: Any = REGISTRY["argwhere"].host
            result: Buffer = on_host(self.ops, x, dtype=dtype)
            return result
        launcher = self.launcher
        mask = launcher.dense(x if x.dtype.is_bool else self.cast(x, dtype=bool_))
        flat = mask.viewed((x.size,), (1,))
        counts = launcher.dense(self.cumsum(self.cast(flat, dtype=int64), axis=0))
        last = counts.viewed((1,), (1,), counts.offset + x.size - 1)
        count = int(self.to_data(last).array[0])
        out = launcher.empty((count, rank), dtype)
        if out.size:
            kernel = launcher.kernel("nonzero_indices", "searching.cl", "ulong")
            parameters = (x.size, rank, mask.offset, DTYPE_CODES[dtype.name], *x.shape)
            padding = [0] * (MAX_KERNEL_AXES - rank)
            memories = (mask.memory, counts.memory, out.memory)
            launcher.run(kernel, x.size, (*parameters, *padding), memories)
        return out
