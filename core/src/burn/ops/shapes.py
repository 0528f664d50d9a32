"""Rules for shapes and dtypes that several ops share."""

from __future__ import annotations

import math
from collections.abc import Sequence

from burn.dtype import DType, Kind
from burn.errors import AxisError, DTypeError, OperandTypeError, ShapeError
from burn.ops.signature import Meta, Scalar, Shape
from burn.public_calls import shown_value

__all__ = [
    "broadcast",
    "broadcast_shapes",
    "check_axis",
    "check_bitcast",
    "check_conversion",
    "check_distinct",
    "check_shape",
    "elementwise",
    "reduce_shape",
    "size",
]


def size(shape: Sequence[int]) -> int:
    """Number of elements."""
    return math.prod(shape)


def broadcast_shapes(*shapes: Shape) -> Shape:
    """Shape that operands of these shapes broadcast to (NumPy's rule).

    Raises
    ------
    ShapeError
        If they do not broadcast; it names the axis and the lengths.
    """
    rank = max(map(len, shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for axis, length in enumerate(shape, start=rank - len(shape)):
            if result[axis] == 1:
                result[axis] = length
            elif length not in (1, result[axis]):
                raise ShapeError(
                    f"shapes {' and '.join(map(shown_value, shapes))} do not broadcast: axis "
                    f"{axis - rank} has lengths {shown_value(result[axis])} and "
                    f"{shown_value(length)}",
                    hint="Lengths must be equal or 1, counted from the last axis",
                )
    return tuple(result)


def broadcast(*operands: Meta | Scalar) -> Shape:
    """Broadcast shape of operands; a Python number has no axes."""
    return broadcast_shapes(*[meta.shape for meta in operands if isinstance(meta, Meta)])


def elementwise(*operands: Meta | Scalar, dtype: DType | None = None) -> Meta:
    """Output of an elementwise op: the broadcast shape, the dtype of the operands or `dtype`."""
    metas = [meta for meta in operands if isinstance(meta, Meta)]
    if not metas:
        raise OperandTypeError("at least one operand must be a tensor")
    return Meta(broadcast(*metas), dtype or metas[0].dtype)


def check_axis(axis: int, rank: int) -> int:
    """An axis; raises AxisError unless it is in [0, rank)."""
    if not 0 <= axis < rank:
        raise AxisError(
            f"axis {axis} is out of range for a tensor with {rank} axes",
            hint=f"Use an axis from {-rank} to {rank - 1}" if rank else "A 0-d tensor has no axis",
        )
    return axis


def check_distinct(axes: Sequence[int]) -> None:
    """Raise AxisError if an axis is named twice."""
    if len(set(axes)) != len(axes):
        raise AxisError(f"axis {tuple(axes)} names an axis twice", hint="Name each axis once")


def check_shape(shape: Sequence[int]) -> Shape:
    """A shape; raises ShapeError for a negative length, or more elements than int64 counts."""
    if shape and min(shape) < 0:
        raise ShapeError(f"shape {shown_value(tuple(shape))} has a negative length")
    if size(shape) >= 1 << 63:
        raise ShapeError(f"shape {shown_value(tuple(shape))} has more than 2**63 - 1 elements")
    return tuple(shape)


def check_bitcast(source: DType, dtype: DType) -> DType:
    """The dtype that bits are read as; raises DTypeError if it has not the size of their own."""
    for item in (source, dtype):
        if item.kind not in Kind.NUMERIC:
            raise DTypeError(f"bits of {item}", hint="Bits are those of integers and floats")
    if source.itemsize != dtype.itemsize:
        raise DTypeError(
            f"{source} has {8 * source.itemsize} bits, and {dtype} {8 * dtype.itemsize}",
            hint="Use a dtype of the same size",
        )
    return dtype


def check_conversion(source: DType, dtype: DType) -> DType:
    """The target of a cast; raises DTypeError if imaginary parts would be dropped."""
    if source.is_complex and dtype.kind in Kind.NUMERIC:
        raise DTypeError(
            f"{source} does not become {dtype}, which has no imaginary parts",
            hint="Take burn.real() or burn.abs() of it",
        )
    return dtype


def reduce_shape(shape: Shape, axis: Sequence[int], *, keepdims: bool) -> Shape:
    """Shape after reducing over `axis`."""
    for number in axis:
        check_axis(number, len(shape))
    check_distinct(axis)
    if keepdims:
        return tuple(1 if i in axis else length for i, length in enumerate(shape))
    return tuple(length for i, length in enumerate(shape) if i not in axis)
