"""What the ops that compute places share: a dtype to count in, runs of elements, positions."""

from __future__ import annotations

from collections.abc import Sequence

from burn.dtype import DType, DTypeUsage, int32, int64
from burn.ops.signature import Primitive
from burn.ops.table import OpTable

__all__ = ["from_front", "index_dtype", "narrow", "positions"]


def index_dtype(ops: OpTable) -> DType:
    """The dtype in which a decomposition counts: int64, or int32 where there are no 64 bits."""
    usage = ops.backend.dtype_usage(ops.device, int64)
    return int64 if DTypeUsage.GENERAL in usage else int32


def narrow(ops: OpTable, x: Primitive, axis: int, start: int, length: int) -> Primitive:
    """`length` neighbours along an axis."""
    slices = tuple(
        (start, length, 1) if number == axis else (0, extent, 1)
        for number, extent in enumerate(x.shape)
    )
    return ops.slice(x, slices=slices)


def positions(ops: OpTable, shape: Sequence[int], axis: int, *, start: int = 0) -> Primitive:
    """Places along an axis, counted from `start`, with length 1 along all others."""
    length = shape[axis]
    count = ops.arange(start=start, step=1, length=length, dtype=index_dtype(ops))
    column = tuple(length if number == axis else 1 for number in range(len(shape)))
    return ops.reshape(count, shape=column)


def from_front(ops: OpTable, indices: Primitive, length: int) -> Primitive:
    """Indices in [-n, n) counted from the front, in the dtype of places; others as they are."""
    indices = ops.cast(indices, dtype=index_dtype(ops))
    return ops.where(ops.less(indices, 0), ops.add(indices, length), indices)
