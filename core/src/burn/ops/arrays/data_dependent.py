"""Indices whose number depends on data: read, computed by NumPy, uploaded.

The ops that take these indices (`select`, `gather_nd`) have gradients; the indices have none.
"""

from __future__ import annotations

import numpy as np

from burn.dtype import DType
from burn.errors import ArgumentError, ShapeError
from burn.ops.arrays.sorting import check_index_dtype
from burn.ops.op import Tag, op
from burn.ops.signature import AnyOperand, Flag, IndexOperand, Meta, Primitive, TargetDType
from burn.ops.table import OpTable
from burn.tensor_data import TensorData

_INDICES = Tag.DATA_DEPENDENT | Tag.COMPUTE_BOUND | Tag.NO_GRADIENT


@op(_INDICES)
def argwhere(x: AnyOperand, *, dtype: TargetDType) -> Meta:
    """Indices of the elements that are true (not 0) in row-major order, a row for each.

    The shape is (number of them, number of axes).
    """
    check_index_dtype(dtype)
    return Meta((None, len(x.shape)), dtype)  # type: ignore[arg-type]  # known at run time alone


@argwhere.on_host
def _(ops: OpTable, x: Primitive, *, dtype: DType) -> Primitive:
    indices = np.argwhere(ops.backend.to_data(x).array != 0)
    return ops.backend.from_data(TensorData(indices.astype(dtype.numpy)), ops.device)


@op(_INDICES, outputs=("indices", "inverse", "counts"))
def unique_indices(x: AnyOperand, *, dtype: TargetDType) -> tuple[Meta, Meta, Meta]:
    """Indices of the distinct elements in ascending order, and how often each of them occurs.

    The first output has the index of the first of each among all elements in row-major order, the
    second for each element its index among the distinct ones, the third their counts. Every NaN is
    distinct from all others. Zeros of both signs are equal.
    """
    check_index_dtype(dtype)
    some = Meta((None,), dtype)  # type: ignore[arg-type]  # known at run time alone
    return some, Meta(x.shape, dtype), some


@unique_indices.on_host
def _(ops: OpTable, x: Primitive, *, dtype: DType) -> tuple[Primitive, Primitive, Primitive]:
    array = ops.backend.to_data(x).array
    if array.dtype.kind == "V":  # bfloat16: NumPy orders it as float32, which holds every value
        array = array.astype(np.float32)
    _, *found = np.unique(
        array.reshape(-1),
        return_index=True,
        return_inverse=True,
        return_counts=True,
        equal_nan=False,
    )
    found[1] = found[1].reshape(array.shape)
    indices, inverse, counts = [
        ops.backend.from_data(TensorData(item.astype(dtype.numpy)), ops.device) for item in found
    ]
    return indices, inverse, counts


@op(_INDICES, outputs=("indices", "inverse", "counts"))
def unique_rows_indices(
    x: AnyOperand, *, equal_nan: Flag = False, dtype: TargetDType
) -> tuple[Meta, Meta, Meta]:
    """Indices of the distinct rows of a matrix in lexicographic order, and how often each occurs.

    The outputs are those of `unique_indices`, for rows. NaN is larger than everything, and equals
    itself if `equal_nan`. Zeros of both signs are equal; complex numbers are in the order of their
    real parts, and then of their imaginary ones.
    """
    _check_matrix(x.shape)
    check_index_dtype(dtype)
    some = Meta((None,), dtype)  # type: ignore[arg-type]  # known at run time alone
    return some, Meta(x.shape[:1], dtype), some


@unique_rows_indices.on_host
def _(
    ops: OpTable, x: Primitive, *, equal_nan: bool = False, dtype: DType
) -> tuple[Primitive, Primitive, Primitive]:
    array = ops.backend.to_data(x).array
    _check_matrix(array.shape)
    if array.dtype.kind == "V":  # bfloat16: NumPy orders it as float32, which holds every value
        array = array.astype(np.float32)
    count, width = array.shape
    # The last key is the first to order by; a row of nothing equals all others.
    order = np.lexsort(array.T[::-1]) if width else np.arange(count)
    ordered = array[order]
    is_new = np.ones(count, bool)
    same = ordered[1:] == ordered[:-1]
    if equal_nan:
        same |= np.isnan(ordered[1:]) & np.isnan(ordered[:-1])
    is_new[1:] = ~same.all(axis=1)
    inverse = np.empty(count, np.int64)
    inverse[order] = np.cumsum(is_new) - 1
    starts = np.flatnonzero(is_new)
    found = (order[is_new], inverse, np.diff(starts, append=count))
    indices, inverse, counts = [
        ops.backend.from_data(TensorData(item.astype(dtype.numpy)), ops.device) for item in found
    ]
    return indices, inverse, counts


def _check_matrix(shape: tuple[int, ...]) -> None:
    if len(shape) != 2:
        raise ShapeError(f"x must be a matrix, not of shape {shape}", hint="Reshape it")


@op(_INDICES)
def repeat_indices(counts: IndexOperand, *, dtype: TargetDType) -> Meta:
    """Each index of a vector of counts, repeated so often: [2, 0, 1] gives [0, 0, 2]."""
    if len(counts.shape) != 1:
        raise ShapeError(f"counts must have one axis, not shape {counts.shape}")
    check_index_dtype(dtype)
    return Meta((None,), dtype)  # type: ignore[arg-type]  # known at run time alone


@repeat_indices.on_host
def _(ops: OpTable, counts: Primitive, *, dtype: DType) -> Primitive:
    array = ops.backend.to_data(counts).array
    if array.ndim != 1:
        raise ShapeError(f"counts must have one axis, not shape {array.shape}")
    if array.size and array.min() < 0:
        raise ArgumentError(f"a count is {array.min()}", hint="A count is 0 or more")
    indices = np.repeat(np.arange(array.size, dtype=dtype.numpy), array.astype(np.int64))
    return ops.backend.from_data(TensorData(indices), ops.device)
