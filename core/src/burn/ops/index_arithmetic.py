"""What the ops that compute indices share: a dtype to count in, ranges, positions, labels."""

from __future__ import annotations

from collections.abc import Sequence

from burn.backend.refusal import Refusal, refused_index
from burn.dtype import DType, DTypeUsage, Kind, int32, int64
from burn.ops.signature import Primitive
from burn.ops.table import OpTable

__all__ = ["index_dtype", "mark_invalid_labels", "narrow", "positions", "wrap_negative_indices"]


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


def wrap_negative_indices(ops: OpTable, indices: Primitive, length: int) -> Primitive:
    """Indices in [-n, n) counted from the front, in the dtype of places; others as they are."""
    indices = ops.cast(indices, dtype=index_dtype(ops))
    return ops.where(ops.less(indices, 0), ops.add(indices, length), indices)


def mark_invalid_labels(ops: OpTable, indices: Primitive, *, blank: int | None = None) -> Primitive:
    """Indices that name a class or a row, as `gather` and its like take them.

    None of them counts from the end: a negative one is out of range, as is the blank, which is no
    label.
    """
    if ops.dtype(indices).kind is Kind.UINT and blank is None:
        return indices
    dtype = index_dtype(ops)
    indices = ops.cast(indices, dtype=dtype)
    marked = ops.where(ops.less(indices, 0), refused_index(dtype, Refusal.LABEL), indices)
    if blank is None:
        return marked
    return ops.where(ops.equal(indices, blank), refused_index(dtype, Refusal.BLANK), marked)
