"""Creation of tensors from numbers.

The table adds to each of these the keyword `device`, a DeviceId, before it calls the backend.
"""

from __future__ import annotations

from burn.dtype import DType, Kind, int32
from burn.errors import ArgumentError
from burn.ops.op import Tag, op
from burn.ops.shapes import check_shape
from burn.ops.signature import FillValue, Integer, Meta, Number, Primitive, TargetDType, TargetShape
from burn.ops.table import OpTable

_CREATION = Tag.CREATION | Tag.NO_GRADIENT


@op(_CREATION, fuses="number")
def full(*, shape: TargetShape, fill_value: FillValue, dtype: TargetDType) -> Meta:
    """Every element `fill_value`, which `dtype` represents."""
    return Meta(check_shape(shape), dtype)


@op(_CREATION, fuses="range")
def arange(*, start: Number, step: Number, length: Integer, dtype: TargetDType) -> Meta:
    """The numbers ``start + i * step`` for i from 0 to ``length - 1``, computed in `dtype`."""
    if dtype.kind not in Kind.NUMERIC:
        raise ArgumentError(f"a range of {dtype} is not defined")
    return Meta(check_shape((length,)), dtype)


@op(_CREATION)
def eye(*, rows: Integer, columns: Integer, offset: Integer, dtype: TargetDType) -> Meta:
    """1 where ``column - row == offset``, else 0: shape (rows, columns)."""
    return Meta(check_shape((rows, columns)), dtype)


@eye.decomposition
def _(ops: OpTable, *, rows: int, columns: int, offset: int, dtype: DType) -> Primitive:
    column = ops.arange(start=0, step=1, length=columns, dtype=int32)
    row = ops.arange(start=offset, step=1, length=rows, dtype=int32)
    return ops.cast(ops.equal(column, ops.reshape(row, shape=(rows, 1))), dtype=dtype)
