"""Arithmetic on indices: their dtype, ranges, negative indices, labels."""

from __future__ import annotations

from collections.abc import Sequence

from burn.backend.invalid_values import InvalidValue, invalid_value_index
from burn.dtype import DType, DTypeUsage, Kind, int32, int64
from burn.ops.signature import Primitive
from burn.ops.table import OpTable

__all__ = ["index_dtype", "mark_invalid_labels", "narrow", "positions", "wrap_negative_indices"]


def index_dtype(ops: OpTable) -> DType:
    """The dtype of indices in a decomposition: int64, or int32 on a device without it."""
    usage = ops.backend.dtype_usage(ops.device, int64)
    return int64 if DTypeUsage.GENERAL in usage else int32


def narrow(ops: OpTable, x: Primitive, axis: int, start: int, length: int) -> Primitive:
    """`length` elements along an axis, from `start`."""
    slices = tuple(
        (start, length, 1) if number == axis else (0, extent, 1)
        for number, extent in enumerate(x.shape)
    )
    return ops.slice(x, slices=slices)


def positions(ops: OpTable, shape: Sequence[int], axis: int, *, start: int = 0) -> Primitive:
    """``start + i`` for each index i along an axis, with length 1 along all others."""
    length = shape[axis]
    count = ops.arange(start=start, step=1, length=length, dtype=index_dtype(ops))
    column = tuple(length if number == axis else 1 for number in range(len(shape)))
    return ops.reshape(count, shape=column)


def wrap_negative_indices(ops: OpTable, indices: Primitive, length: int) -> Primitive:
    """Indices in [-n, n) as indices in [0, n), in `index_dtype`; others as they are."""
    indices = ops.cast(indices, dtype=index_dtype(ops))
    return ops.where(ops.less(indices, 0), ops.add(indices, length), indices)


def mark_invalid_labels(ops: OpTable, indices: Primitive, *, blank: int | None = None) -> Primitive:
    """Labels as indices for `gather`, in which invalid ones are replaced by indices out of range.

    A negative label is invalid, as it does not count from the end; so is the blank.
    """
    if ops.dtype(indices).kind is Kind.UINT and blank is None:
        return indices
    dtype = index_dtype(ops)
    indices = ops.cast(indices, dtype=dtype)
    marked = ops.where(
        ops.less(indices, 0), invalid_value_index(dtype, InvalidValue.LABEL), indices
    )
    if blank is None:
        return marked
    return ops.where(
        ops.equal(indices, blank), invalid_value_index(dtype, InvalidValue.BLANK), marked
    )
