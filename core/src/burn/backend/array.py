"""ArrayBackend: a backend over any namespace that follows the Python array API standard.

Most required ops are functions of the standard. This module implements the others. A subclass
overrides what its library does better, and adds further ops.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from burn.backend._slicing import check_gather_operands, check_sliced, python_slices
from burn.backend.base import Backend
from burn.backend.dlpack import import_host
from burn.backend.invalid_values import index_error
from burn.backend.tensor_ops import is_implemented
from burn.device_id import DeviceId
from burn.dtype import (
    DType,
    DTypeUsage,
    Kind,
    bool_,
    complex64,
    float32,
    int32,
    int64,
    promote,
    uint8,
)
from burn.tensor_data import TensorData

if TYPE_CHECKING:
    from types import ModuleType

    from burn.aliases import Primitive, RealScalar, Scalar, Shape, Slices

__all__ = ["ArrayBackend"]

STANDARD: Final = (
    *("abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and"),
    *("bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "copysign"),
    *("cos", "cosh", "divide", "equal", "exp", "expm1", "floor", "floor_divide", "greater"),
    *("greater_equal", "hypot", "isfinite", "isinf", "isnan", "less", "less_equal", "log", "log10"),
    *("log1p", "log2", "logaddexp", "matmul", "maximum", "minimum", "multiply", "negative"),
    *("not_equal", "pow", "reciprocal", "remainder", "round", "sign", "signbit"),
    *("sin", "sinh", "sqrt", "subtract", "tan", "tanh", "trunc", "where"),
)
"""Ops that the standard has under the same name and with the same meaning."""

_ORDER_COMPARISONS: Final = ("greater", "greater_equal", "less", "less_equal")
"""Comparisons that the standard has for numbers only, and burn for booleans too."""

_NUMBERS: Final = frozenset([bool, int, float, complex])


class ArrayBackend(Backend):
    """Base of backends over an array library.

    Parameters
    ----------
    xp : module
        A namespace of the array API standard, 2024.12 or later. Ops of which it has no function
        have their default; a required one is a method of the subclass.

    Notes
    -----
    A subclass defines `name`. The other members fit a library that computes on the host, on one
    device, and synchronously. For another library, override `device_count`, `dtype_usage`, `sync`,
    `native_device`, `from_data` and `to_data` as well.
    """

    orders_booleans: ClassVar[bool] = False
    """Whether the comparisons of the namespace take booleans, which the standard leaves open."""

    def __init__(self, xp: ModuleType | Any) -> None:
        self.xp = xp
        self._dtypes = {self.native_dtype(dtype): dtype for dtype in DType.members()}
        for name in STANDARD:
            if not is_implemented(getattr(type(self), name, None)):
                function = getattr(xp, name, None)
                if function is None:  # the op's default runs, or the backend has a method
                    continue
                if name in _ORDER_COMPARISONS and not self.orders_booleans:
                    function = self._of_numbers(function)
                setattr(self, name, function)

    def _of_numbers(self, function: Callable[..., Primitive]) -> Callable[..., Primitive]:
        """A comparison of numbers that takes booleans as 0 and 1."""

        def call(x1: Primitive | Scalar, x2: Primitive | Scalar) -> Primitive:
            return function(self._numeric(x1), self._numeric(x2))

        return call

    def _numeric(self, x: Primitive | Scalar) -> Primitive | Scalar:
        """Booleans as 0 and 1; their order is the same."""
        if x.__class__ is bool:
            return int(x)
        is_bool = x.__class__ not in _NUMBERS and x.dtype == self.native_dtype(bool_)  # type: ignore[union-attr]  # no number
        return self.xp.astype(x, self.native_dtype(uint8)) if is_bool else x

    def native_dtype(self, dtype: DType) -> object | None:
        """The dtype object of the namespace with the same name, or for bool with ``bool_``."""
        return getattr(self.xp, dtype.name, getattr(self.xp, f"{dtype.name}_", None))

    def device_count(self, type_id: int) -> int:
        """One device of the first type."""
        return 1 if type_id == 0 else 0

    def dtype_usage(self, device: DeviceId, dtype: DType) -> DTypeUsage:
        """`DTypeUsage.GENERAL` for each dtype that the namespace has."""
        del device
        has = self.native_dtype(dtype) is not None
        return DTypeUsage.GENERAL if has else DTypeUsage.NONE

    def is_out_of_memory(self, error: Exception) -> bool:
        """A MemoryError, or NumPy's ValueError for more bytes than an address can reach."""
        return isinstance(error, MemoryError) or (
            isinstance(error, ValueError)
            and ("array is too big" in str(error) or "Maximum allowed dimension" in str(error))
        )

    def sync(self, device: DeviceId) -> None:
        """Nothing to wait for."""
        del device

    def quiet(self) -> contextlib.AbstractContextManager[Any]:
        """NumPy's error state ignores overflow and NaN; many namespaces compute with NumPy."""
        return np.errstate(all="ignore")

    def from_data(self, data: TensorData, device: DeviceId) -> Primitive:
        """`asarray` of the standard, of a copy: the library may read it later, or keep it."""
        return self.xp.asarray(
            np.array(data.array),
            dtype=self.native_dtype(data.dtype),
            device=self.native_device(device),
        )

    def to_data(self, x: Primitive) -> TensorData:
        """Through DLPack; of bfloat16, which NumPy does not import, by its bits."""
        if not hasattr(x, "__dlpack__"):  # a scalar of NumPy
            x = self.xp.asarray(x)
        try:
            return TensorData(np.from_dlpack(x))
        except (BufferError, RuntimeError):
            return import_host(x)

    def native_device(self, device: DeviceId) -> Any:
        """The ``device`` argument of the namespace; None for the default of the library."""
        del device
        return None

    def device_of(self, x: object) -> DeviceId | None:
        """The device of the first type whose `native_device` is that of an array.

        The first one for an array that has no device, as while a library traces a function.
        """
        namespace = getattr(x, "__array_namespace__", None)
        if namespace is None or isinstance(x, type) or namespace() is not self.xp:
            return None
        own = getattr(x, "device", None)
        for index in range(self.device_count(0)):
            device = DeviceId(0, index)
            if own is None or self.native_device(device) in (None, own):
                return device
        return None

    def full(
        self, *, shape: Shape, fill_value: Scalar, dtype: DType, device: DeviceId
    ) -> Primitive:
        """`full` of the standard."""
        return self.xp.full(
            shape, fill_value, dtype=self.native_dtype(dtype), device=self.native_device(device)
        )

    def arange(
        self, *, start: RealScalar, step: RealScalar, length: int, dtype: DType, device: DeviceId
    ) -> Primitive:
        """`arange` of the standard for the indices; the rest is arithmetic in the dtype."""
        count = self.xp.arange(
            length, dtype=self.native_dtype(dtype), device=self.native_device(device)
        )
        scaled = count if step == 1 else count * step
        return scaled if start == 0 else scaled + start

    def dtype(self, x: Primitive) -> DType:
        """DType of an array."""
        return self._dtypes[x.dtype]

    def cast(self, x: Primitive, *, dtype: DType) -> Primitive:
        """`astype` of the standard; floats are first clipped to the range of an integer dtype."""
        source = self.dtype(x)
        if source is dtype:
            return x
        if dtype.is_bool:
            return self.xp.not_equal(x, 0)
        if dtype.is_integer and source.is_float:
            return self._saturate(x, dtype)
        return self.xp.astype(x, self.native_dtype(dtype))

    def _saturate(self, x: Primitive, dtype: DType) -> Primitive:
        """Float to integer: truncated, clipped to the range, NaN to 0."""
        xp = self.xp
        low, high = dtype.integer_range
        native = self.native_dtype(dtype)
        if self.dtype(x).itemsize < 4:  # float16 cannot represent the bounds
            x = self.cast(x, dtype=float32)
        # Both bounds are powers of two or 0, which float32 and wider dtypes represent exactly.
        above = xp.greater_equal(x, float(high + 1))
        below = xp.less(x, float(low))
        unsafe = xp.logical_or(xp.logical_or(above, below), xp.isnan(x))
        whole = xp.astype(xp.where(unsafe, xp.zeros_like(x), x), native)
        whole = xp.where(above, xp.full_like(whole, high), whole)
        return xp.where(below, xp.full_like(whole, low), whole)

    def real(self, x: Primitive) -> Primitive:
        """`real` of the standard; a real array is returned as it is."""
        return self.xp.real(x) if self.dtype(x).is_complex else x

    def imag(self, x: Primitive) -> Primitive:
        """`imag` of the standard; 0 for a real number."""
        return self.xp.imag(x) if self.dtype(x).is_complex else self.xp.zeros_like(x)

    def conj(self, x: Primitive) -> Primitive:
        """`conj` of the standard; a real array is returned as it is."""
        return self.xp.conj(x) if self.dtype(x).is_complex else x

    def complex(self, real: Primitive, imag: Primitive) -> Primitive:
        """On the host: ``real + 1j * imag`` of the standard gives NaN for infinite parts."""
        parts = [self.to_data(part).array for part in (real, imag)]
        dtype = promote(self.dtype(real), complex64)
        result = np.empty(np.broadcast_shapes(*[part.shape for part in parts]), dtype.numpy)
        result.real, result.imag = parts
        return self.xp.asarray(result, dtype=self.native_dtype(dtype), device=real.device)

    def reshape(self, x: Primitive, *, shape: Shape) -> Primitive:
        """`reshape` of the standard."""
        return self.xp.reshape(x, shape)

    def permute(self, x: Primitive, *, axes: tuple[int, ...]) -> Primitive:
        """`permute_dims` of the standard."""
        return self.xp.permute_dims(x, axes)

    def expand(self, x: Primitive, *, shape: Shape) -> Primitive:
        """`broadcast_to` of the standard."""
        return self.xp.broadcast_to(x, shape)

    def slice(self, x: Primitive, *, slices: Slices) -> Primitive:
        """Indexing with slices."""
        result = x[python_slices(slices)]
        check_sliced(result.shape, slices)
        return result

    def slice_assign(self, x: Primitive, value: Primitive | Scalar, *, slices: Slices) -> Primitive:
        """A copy, assigned to through slices; by `where`, if arrays cannot be assigned to."""
        result = self.xp.asarray(x, copy=True)
        key = python_slices(slices)
        check_sliced(result[key].shape, slices)
        try:
            result[key] = value
        except TypeError:  # arrays never change, as those of JAX
            return self._replaced(x, value, slices)
        return result

    def _replaced(self, x: Primitive, value: Primitive | Scalar, slices: Slices) -> Primitive:
        """Elements of `value` in the slices, else those of `x`: each axis chooses by an index."""
        xp, lengths = self.xp, tuple([length for _, length, _ in slices])
        if 0 in lengths:
            return x
        device = getattr(x, "device", None)  # a traced array may have none
        is_number = value.__class__ in _NUMBERS
        result: Any = xp.full_like(x, value) if is_number else xp.broadcast_to(value, lengths)
        mask: Any = None
        for axis, (start, length, step) in enumerate(slices):
            chosen = np.full(x.shape[axis], -1, int32.numpy)
            chosen[start + step * np.arange(length)] = np.arange(length)
            if not is_number:
                indices = xp.asarray(np.maximum(chosen, 0), device=device)
                result = xp.take(result, indices, axis=axis)
            shape = (-1, *[1] * (len(lengths) - axis - 1))
            is_inside = xp.asarray((chosen >= 0).reshape(shape), device=device)
            mask = is_inside if mask is None else xp.logical_and(mask, is_inside)
        return result if mask is None else xp.where(mask, result, x)

    def concat(self, tensors: list[Primitive], *, axis: int) -> Primitive:
        """`concat` of the standard."""
        return self.xp.concat(tensors, axis=axis)

    def pow(self, x1: Primitive | Scalar, x2: Primitive | Scalar) -> Primitive:
        """`pow` of the standard, which leaves negative integer exponents undefined."""
        xp = self.xp
        if isinstance(x2, (int, float, complex)):
            return self._powers(x1, xp.full_like(x1, x2)) if x2 == 0.5 else xp.pow(x1, x2)
        if self.dtype(x2).kind is not Kind.INT:
            return self._powers(x1, x2) if self.dtype(x2).is_float else xp.pow(x1, x2)
        negative = xp.less(x2, 0)
        one, zero = xp.ones_like(x2), xp.zeros_like(x2)
        powers = xp.pow(x1, xp.where(negative, zero, x2))
        # The truncated reciprocal of 1 is 1, of -1 alternates, of any other base is 0.
        base = xp.full_like(x2, x1) if x1.__class__ in _NUMBERS else x1
        sign = one - 2 * xp.bitwise_and(x2, one)
        inverse = xp.where(xp.equal(base, 1), one, xp.where(xp.equal(base, -1), sign, zero))
        return xp.where(negative, inverse, powers)

    def _powers(self, x1: Any, x2: Any) -> Primitive:
        """`pow` of the standard with an exponent for each base.

        For a single exponent of 0.5 NumPy takes square roots, which are wrong for -0.0 and -inf.
        """
        bases = () if x1.__class__ in _NUMBERS else x1.shape
        shape = np.broadcast_shapes(bases, x2.shape)
        exponents = self.xp.asarray(self.xp.broadcast_to(x2, shape or (1,)), copy=True)
        return self.xp.reshape(self.xp.pow(x1, exponents), shape)

    def nextafter(self, x1: Primitive | Scalar, x2: Primitive | Scalar) -> Primitive:
        """`nextafter` of the standard; libraries differ in the sign of zero between equal zeros."""
        return self.xp.where(x1 == x2, x2, self.xp.nextafter(x1, x2))

    def matmul(self, x1: Primitive, x2: Primitive) -> Primitive:
        """`matmul` of the standard, for matrices only."""
        if len(x1.shape) < 2 or len(x2.shape) < 2:
            raise ValueError("matrices have two axes or more")
        return self.xp.matmul(x1, x2)

    def where(
        self, condition: Primitive, x1: Primitive | Scalar, x2: Primitive | Scalar
    ) -> Primitive:
        """`where` of the standard; two numbers are refused, as the dtype is unknown."""
        if x1.__class__ in _NUMBERS and x2.__class__ in _NUMBERS:
            raise TypeError("a choice between two numbers")
        return self.xp.where(condition, x1, x2)

    def bitwise_left_shift(self, x1: Primitive | Scalar, x2: Primitive | Scalar) -> Primitive:
        """`bitwise_left_shift` of the standard, by a count that is not negative."""
        return self.xp.bitwise_left_shift(x1, _shift_count(x2))

    def bitwise_right_shift(self, x1: Primitive | Scalar, x2: Primitive | Scalar) -> Primitive:
        """`bitwise_right_shift` of the standard, by a count that is not negative."""
        return self.xp.bitwise_right_shift(x1, _shift_count(x2))

    def bitwise_not(self, x: Primitive) -> Primitive:
        """`bitwise_invert` of the standard."""
        return self.xp.bitwise_invert(x)

    def gather(self, x: Primitive, indices: Primitive, *, axis: int) -> Primitive:
        """`take_along_axis` of the standard, indices checked."""
        check_gather_operands(x, indices, axis)
        return self.xp.take_along_axis(x, self._checked(indices, x.shape[axis]), axis=axis)

    def scatter_add(
        self, x: Primitive, indices: Primitive, value: Primitive, *, axis: int
    ) -> Primitive:
        """Compares each index with all positions: the standard has no indexed assignment."""
        xp = self.xp
        check_gather_operands(x, indices, axis, value)
        length, dtype = x.shape[axis], self.dtype(x)
        wide = float32 if dtype.is_float and dtype.itemsize < 4 else dtype
        x, value = self.cast(x, dtype=wide), self.cast(value, dtype=wide)
        indices = xp.moveaxis(self._checked(indices, length), axis, -1)[..., None, :]
        value = xp.moveaxis(value, axis, -1)[..., None, :]
        positions = xp.arange(length, dtype=indices.dtype, device=x.device)[:, None]
        addends = xp.where(indices == positions, value, xp.zeros_like(value))
        sums = xp.sum(addends, axis=-1, dtype=x.dtype)
        return self.cast(x + xp.moveaxis(sums, -1, axis), dtype=dtype)

    def _checked(self, indices: Primitive, length: int) -> Primitive:
        """Indices in [0, length), in a dtype that holds the length.

        Raises
        ------
        OutOfRangeError
            If one is not in [-length, length).
        """
        xp = self.xp
        if 0 in indices.shape:
            return indices
        low, high = int(xp.min(indices)), int(xp.max(indices))
        if low < -length or high >= length:
            raise index_error(high if high >= length else low, length)
        if length > self.dtype(indices).integer_range[1]:
            wide = int32 if length <= int32.integer_range[1] else int64  # a device may lack int64
            indices = xp.astype(indices, self.native_dtype(wide))
        return indices if low >= 0 else xp.where(indices < 0, indices + length, indices)

    def sum(
        self, x: Primitive, *, axis: tuple[int, ...], keepdims: bool = False, dtype: DType
    ) -> Primitive:
        """`sum` of the standard, 16-bit floats through float32."""
        return self._fold(self.xp.sum, x, axis, dtype, keepdims=keepdims)

    def prod(
        self, x: Primitive, *, axis: tuple[int, ...], keepdims: bool = False, dtype: DType
    ) -> Primitive:
        """`prod` of the standard, 16-bit floats through float32."""
        return self._fold(self.xp.prod, x, axis, dtype, keepdims=keepdims)

    def _fold(
        self,
        function: Callable[..., Primitive],
        x: Primitive,
        axis: tuple[int, ...],
        dtype: DType,
        *,
        keepdims: bool,
    ) -> Primitive:
        wide = float32 if dtype.is_float and dtype.itemsize < 4 else dtype
        x = self.cast(x, dtype=wide)
        total = function(x, axis=axis, keepdims=keepdims, dtype=self.native_dtype(wide))
        return self.cast(total, dtype=dtype)

    def max(self, x: Primitive, *, axis: tuple[int, ...], keepdims: bool = False) -> Primitive:
        """`max` of the standard; for booleans it is `any`."""
        if x.dtype == self.native_dtype(bool_):
            if 0 in [x.shape[number] for number in axis]:
                raise ValueError("max of no elements")
            return self.xp.any(x, axis=axis, keepdims=keepdims)
        return self.xp.max(x, axis=axis, keepdims=keepdims)

    def argmax(self, x: Primitive, *, axis: int, keepdims: bool = False, dtype: DType) -> Primitive:
        """`argmax` of the standard."""
        indices = self.xp.argmax(self._numeric(x), axis=axis, keepdims=keepdims)
        return self.cast(indices, dtype=dtype)

    def argsort(
        self, x: Primitive, *, axis: int, descending: bool = False, dtype: DType
    ) -> Primitive:
        """`argsort` of the standard, ascending: descending order is not stable in every library."""
        xp = self.xp
        x = self._numeric(x)
        last = x.shape[axis] - 1
        if not descending:
            return self.cast(xp.argsort(x, axis=axis, stable=True), dtype=dtype)
        indices = xp.argsort(xp.flip(x, axis=axis), axis=axis, stable=True)
        return self.cast(last - xp.flip(indices, axis=axis), dtype=dtype)


def _shift_count(count: Primitive | Scalar) -> Primitive | Scalar:
    if count.__class__ is int and count < 0:
        raise ValueError(f"a shift by {count} bits")
    return count
