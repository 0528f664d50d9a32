"""PureBackend: the ops that burn requires of a backend, and no others.

Each method first asks the definition of its op for the shape and dtype of the result. The
definition refuses wrong operands, so a method never reads beyond the memory of a tensor.
"""

from __future__ import annotations

import functools
import math
import operator
from array import array
from collections.abc import Callable
from itertools import repeat
from typing import Any, TypeAlias

import numpy as np

from burn.plugin_api import (
    REGISTRY,
    Backend,
    DeviceId,
    DType,
    DTypeUsage,
    Meta,
    RealScalar,
    Scalar,
    Shape,
    Slices,
    TensorData,
    index_error,
)
from burn_pure import USAGE, arithmetic
from burn_pure.buffer import Buffer, element_offsets, row_major
from burn_pure.formats import blank, round_to_odd, rounded

__all__ = ["PureBackend"]

Operand: TypeAlias = Buffer | Scalar


class PureBackend(Backend):
    """Backend on Python's own numbers."""

    def name(self, device: DeviceId) -> str:
        return "pure"

    def native_dtype(self, dtype: DType) -> object | None:
        return dtype if dtype in USAGE else None

    def dtype_usage(self, device: DeviceId, dtype: DType) -> DTypeUsage:
        return USAGE.get(dtype, DTypeUsage.NONE)

    def device_count(self, type_id: int) -> int:
        return 1 if type_id == 0 else 0

    def sync(self, device: DeviceId) -> None:
        """Nothing to wait for: every op is done when its method returns."""

    # Host data: copied as bytes; NumPy is used for nothing else.

    def from_data(self, data: TensorData, device: DeviceId) -> Buffer:
        memory = blank(data.dtype, 0)
        memory.frombytes(data.array.tobytes())
        return Buffer(memory, Meta(data.shape, data.dtype))

    def to_data(self, x: Buffer) -> TensorData:
        return TensorData(np.ndarray(x.shape, x.dtype.numpy, x.packed().tobytes()))

    def device_of(self, x: object) -> DeviceId | None:
        return DeviceId(0, 0) if isinstance(x, Buffer) else None

    def full(self, *, shape: Shape, fill_value: Scalar, dtype: DType, device: DeviceId) -> Buffer:
        result = infer("full", shape=shape, fill_value=fill_value, dtype=dtype)
        return constant(fill_value, dtype).expanded(result.shape)

    def arange(
        self, *, start: RealScalar, step: RealScalar, length: int, dtype: DType, device: DeviceId
    ) -> Buffer:
        result = infer("arange", start=start, step=step, length=length, dtype=dtype)
        return Buffer.of([start + index * step for index in range(length)], result)

    def cast(self, x: Buffer, *, dtype: DType) -> Buffer:
        result = infer("cast", x, dtype=dtype)
        if dtype is x.dtype:
            return x
        numbers = x.numbers()
        if dtype.is_bool:
            numbers = list(map(bool, numbers))
        elif dtype.is_integer and x.dtype.is_float:
            low, high = dtype.integer_range
            numbers = [arithmetic.truncate(number, low, high) for number in numbers]
        elif dtype.is_float and x.dtype.is_integer:
            numbers = [round_to_odd(number, dtype) for number in numbers]
        return Buffer.of(numbers, result)

    # Layout: other strides over the same memory, or copies of elements.

    def reshape(self, x: Buffer, *, shape: Shape) -> Buffer:
        return Buffer(x.packed(), infer("reshape", x, shape=shape))

    def permute(self, x: Buffer, *, axes: tuple[int, ...]) -> Buffer:
        infer("permute", x, axes=axes)
        return x.permuted(axes)

    def expand(self, x: Buffer, *, shape: Shape) -> Buffer:
        return x.expanded(infer("expand", x, shape=shape).shape)

    def slice(self, x: Buffer, *, slices: Slices) -> Buffer:
        infer("slice", x, slices=slices)
        return x.sliced(slices)

    def slice_assign(self, x: Buffer, value: Operand, *, slices: Slices) -> Buffer:
        result = Buffer(x.packed()[:], infer("slice_assign", x, value, slices=slices))
        target = result.sliced(slices)
        if not isinstance(value, Buffer):
            value = constant(value, x.dtype)
        target.assign(value.expanded(target.shape))
        return result

    def concat(self, tensors: list[Buffer], *, axis: int) -> Buffer:
        result = Buffer.blank(
            infer("concat", tuple([tensor.meta for tensor in tensors]), axis=axis)
        )
        start = 0
        for tensor in tensors:
            slices = [(0, length, 1) for length in tensor.shape]
            slices[axis] = (start, tensor.shape[axis], 1)
            result.sliced(tuple(slices)).assign(tensor)
            start += tensor.shape[axis]
        return result

    # Indexing.

    def gather(self, x: Buffer, indices: Buffer, *, axis: int) -> Buffer:
        result = infer("gather", x, indices, axis=axis)
        found = indexed(indices, x.shape, x.strides, x.offset, axis)
        return Buffer(array(x.memory.typecode, [x.memory[offset] for offset in found]), result)

    def scatter_add(self, x: Buffer, indices: Buffer, value: Buffer, *, axis: int) -> Buffer:
        result = infer("scatter_add", x, indices, value, axis=axis)
        sums = x.numbers()
        found = indexed(indices, x.shape, row_major(x.shape), 0, axis)
        for offset, number in zip(found, value.numbers(), strict=True):
            sums[offset] += number
        return Buffer.of(sums, result)

    # Elementwise.

    def where(self, condition: Buffer, x1: Operand, x2: Operand) -> Buffer:
        return elementwise("where", lambda c, a, b: a if c else b, condition, x1, x2)

    def equal(self, x1: Operand, x2: Operand) -> Buffer:
        return elementwise("equal", operator.eq, x1, x2)

    def less(self, x1: Operand, x2: Operand) -> Buffer:
        return elementwise("less", operator.lt, x1, x2)

    def add(self, x1: Operand, x2: Operand) -> Buffer:
        return elementwise("add", operator.add, x1, x2)

    def subtract(self, x1: Operand, x2: Operand) -> Buffer:
        return elementwise("subtract", operator.sub, x1, x2)

    def multiply(self, x1: Operand, x2: Operand) -> Buffer:
        return elementwise("multiply", operator.mul, x1, x2)

    def divide(self, x1: Operand, x2: Operand) -> Buffer:
        return elementwise("divide", arithmetic.divide, x1, x2)

    def floor_divide(self, x1: Operand, x2: Operand) -> Buffer:
        return elementwise("floor_divide", arithmetic.floor_divide, x1, x2)

    def remainder(self, x1: Operand, x2: Operand) -> Buffer:
        return elementwise("remainder", arithmetic.remainder, x1, x2)

    def pow(self, x1: Operand, x2: Operand) -> Buffer:
        return elementwise("pow", arithmetic.power, x1, x2)

    def bitwise_left_shift(self, x1: Operand, x2: Operand) -> Buffer:
        return elementwise("bitwise_left_shift", arithmetic.left_shift, x1, x2)

    def bitwise_right_shift(self, x1: Operand, x2: Operand) -> Buffer:
        return elementwise("bitwise_right_shift", arithmetic.right_shift, x1, x2)

    def bitwise_and(self, x1: Operand, x2: Operand) -> Buffer:
        return elementwise("bitwise_and", operator.and_, x1, x2)

    def bitwise_or(self, x1: Operand, x2: Operand) -> Buffer:
        return elementwise("bitwise_or", operator.or_, x1, x2)

    def bitwise_xor(self, x1: Operand, x2: Operand) -> Buffer:
        return elementwise("bitwise_xor", operator.xor, x1, x2)

    def bitwise_not(self, x: Buffer) -> Buffer:
        return elementwise("bitwise_not", operator.not_ if x.dtype.is_bool else operator.inv, x)

    def abs(self, x: Buffer) -> Buffer:
        return elementwise("abs", abs, x)

    def exp(self, x: Buffer) -> Buffer:
        return elementwise("exp", arithmetic.exp, x)

    def log(self, x: Buffer) -> Buffer:
        return elementwise("log", arithmetic.log, x)

    def log1p(self, x: Buffer) -> Buffer:
        return elementwise("log1p", arithmetic.log1p, x)

    def sqrt(self, x: Buffer) -> Buffer:
        return elementwise("sqrt", arithmetic.sqrt, x)

    def sin(self, x: Buffer) -> Buffer:
        return elementwise("sin", arithmetic.sin, x)

    def cos(self, x: Buffer) -> Buffer:
        return elementwise("cos", arithmetic.cos, x)

    def tanh(self, x: Buffer) -> Buffer:
        return elementwise("tanh", math.tanh, x)

    def atan(self, x: Buffer) -> Buffer:
        return elementwise("atan", math.atan, x)

    def floor(self, x: Buffer) -> Buffer:
        return elementwise("floor", arithmetic.floor, x)

    def round(self, x: Buffer) -> Buffer:
        return elementwise("round", arithmetic.round_half_even, x)

    # Reductions, sorting, matrix products.

    def sum(
        self, x: Buffer, *, axis: tuple[int, ...], keepdims: bool = False, dtype: DType
    ) -> Buffer:
        result = infer("sum", x, axis=axis, keepdims=keepdims, dtype=dtype)
        return Buffer.of(map(sum, rows(self.cast(x, dtype=dtype), axis)), result)

    def prod(
        self, x: Buffer, *, axis: tuple[int, ...], keepdims: bool = False, dtype: DType
    ) -> Buffer:
        result = infer("prod", x, axis=axis, keepdims=keepdims, dtype=dtype)
        return Buffer.of(map(math.prod, rows(self.cast(x, dtype=dtype), axis)), result)

    def max(self, x: Buffer, *, axis: tuple[int, ...], keepdims: bool = False) -> Buffer:
        result = infer("max", x, axis=axis, keepdims=keepdims)
        return Buffer.of([max(row, key=order) for row in rows(x, axis)], result)

    def argsort(self, x: Buffer, *, axis: int, descending: bool = False, dtype: DType) -> Buffer:
        result = infer("argsort", x, axis=axis, descending=descending, dtype=dtype)
        found: list[int] = []
        for row in rows(x, (axis,)):
            keys = list(map(order, row))
            # Python's sort is stable in both directions.
            found += sorted(range(len(keys)), key=keys.__getitem__, reverse=descending)
        # The rows lie along the last axis: move it back to `axis`.
        *others, last = range(len(x.shape))
        moved = Meta((*result.shape[:axis], *result.shape[axis + 1 :], result.shape[axis]), dtype)
        return Buffer.of(found, moved).permuted([*others[:axis], last, *others[axis:]])

    def matmul(self, x1: Buffer, x2: Buffer) -> Buffer:
        result = infer("matmul", x1, x2)
        *batch, height, width = result.shape
        *axes, row, column = range(len(result.shape))
        left = x1.expanded((*batch, *x1.shape[-2:]))
        right = x2.expanded((*batch, *x2.shape[-2:])).permuted((*axes, column, row))
        first, second = rows(left, (column,)), rows(right, (column,))
        return Buffer.of(
            [
                sum(map(operator.mul, values, other))
                for matrix in range(math.prod(batch))
                for values in first[matrix * height : (matrix + 1) * height]
                for other in second[matrix * width : (matrix + 1) * width]
            ],
            result,
        )


def infer(name: str, *operands: Any, **attributes: Any) -> Meta:
    """Shape and dtype of the result of an op; raises for operands that the op refuses."""
    metas = [operand.meta if isinstance(operand, Buffer) else operand for operand in operands]
    return _inferred(name, *metas, **attributes)


@functools.lru_cache(maxsize=1024, typed=True)
def _inferred(name: str, *operands: Any, **attributes: Any) -> Meta:
    """The result of `infer`, cached: programs call ops with the same shapes again and again."""
    result: Meta = REGISTRY[name].infer(*operands, **attributes)
    return result


def constant(number: Scalar, dtype: DType) -> Buffer:
    """A number, rounded to a dtype, as a tensor without axes."""
    return Buffer.of([number], Meta((), dtype))


def elementwise(name: str, function: Callable[..., Any], *operands: Operand) -> Buffer:
    """Apply a function to the elements of operands that broadcast."""
    result = infer(name, *operands)
    # Of the last tensor: the first operand of `where` is its condition.
    dtype = [operand.dtype for operand in operands if isinstance(operand, Buffer)][-1]
    numbers = [
        operand.expanded(result.shape).numbers()
        if isinstance(operand, Buffer)
        else repeat(rounded(operand, dtype))
        for operand in operands
    ]
    return Buffer.of(map(function, *numbers), result)


def rows(x: Buffer, axis: tuple[int, ...]) -> list[list[Any]]:
    """The numbers along some axes, as a list for each position along the others."""
    kept = [number for number in range(len(x.shape)) if number not in axis]
    numbers = x.permuted((*kept, *axis)).numbers()
    count = math.prod([x.shape[number] for number in kept])
    length = math.prod([x.shape[number] for number in axis])
    return [numbers[row * length : (row + 1) * length] for row in range(count)]


def order(number: Any) -> tuple[bool, Any]:
    """Sort key of a number: NaN, which is not equal to itself, is largest."""
    return number != number, number  # noqa: PLR0124


def indexed(
    indices: Buffer, shape: Shape, strides: tuple[int, ...], offset: int, axis: int
) -> list[int]:
    """Offsets of the elements that `indices` select along `axis`, one for each index."""
    length, stride = shape[axis], strides[axis]
    others = [0 if number == axis else stride for number, stride in enumerate(strides)]
    starts = element_offsets(indices.shape, others, offset)
    numbers = indices.numbers()
    for index in numbers:
        if not -length <= index < length:
            raise index_error(index, length)
    return [start + index % length * stride for start, index in zip(starts, numbers, strict=True)]
