"""Places of elements: in an order, by halving, and of those that are true."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from burn.dtype import DType, int64
from burn.ops import REGISTRY, OpTable
from burn.ops.sorting import check_place_dtype
from burn_opencl.buffers import Buffer
from burn_opencl.expressions import CODES, class_of

if TYPE_CHECKING:
    from burn_opencl.launcher import Launcher

__all__ = ["SearchingOps"]

_AXES: Final = 8
"""So many axes a kernel is told of."""


class SearchingOps:
    """Searches."""

    launcher: Launcher
    table: OpTable
    cast: Any
    cumsum: Any
    not_equal: Any
    to_data: Any

    def searchsorted(self, x1: Buffer, x2: Buffer, *, right: bool = False, dtype: DType) -> Buffer:
        """An item for each element that is searched for."""
        check_place_dtype(dtype)
        (length,) = x1.shape
        if x1.dtype is not x2.dtype:
            raise TypeError(f"{x2.dtype} among {x1.dtype}")
        launcher = self.launcher
        x1, x2 = launcher.dense(x1), launcher.dense(x2)
        out = launcher.empty(x2.shape, dtype)
        kernel = launcher.kernel("search_sorted", "searching.cl", class_of(x1.dtype))
        codes = (CODES[x1.dtype.name], int(right), CODES[dtype.name])
        numbers = (out.size, length, x1.offset, x2.offset, *codes)
        launcher.run(kernel, out.size, numbers, (x1.memory, x2.memory, out.memory))
        return out

    def argwhere(self, x: Buffer, *, dtype: DType) -> Buffer:
        """Only how many there are is read."""
        check_place_dtype(dtype)
        rank = len(x.shape)
        if rank > _AXES or not x.size:
            on_host: Any = REGISTRY["argwhere"].host
            return on_host(self.table, x, dtype=dtype)  # type: ignore[no-any-return]  # a Buffer
        launcher = self.launcher
        mask = launcher.dense(x if x.dtype.is_bool else self.not_equal(x, 0))
        flat = mask.viewed((x.size,), (1,))
        numbers = launcher.dense(self.cumsum(self.cast(flat, dtype=int64), axis=0))
        last = numbers.viewed((1,), (1,), numbers.offset + x.size - 1)
        count = int(self.to_data(last).array[0])
        out = launcher.empty((count, rank), dtype)
        if out.size:
            kernel = launcher.kernel("places_where", "searching.cl", "ulong")
            told = (x.size, rank, mask.offset, CODES[dtype.name], *x.shape, *[0] * (_AXES - rank))
            launcher.run(kernel, x.size, told, (mask.memory, numbers.memory, out.memory))
        return out
