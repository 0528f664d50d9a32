"""TensorData: values on the host, as they enter and leave a backend."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn.dtype import DType, bfloat16, complex64, complex128, float16, float32, float64
from burn.errors import (
    ArgumentError,
    DTypeError,
    OperandTypeError,
    ScalarRangeError,
    ShapeError,
    UnsupportedOpError,
)
from burn.quant_scheme import QDType, QuantScheme, ScaleDType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

__all__ = ["QuantizedData", "TensorData", "check_unmasked"]


_TOLERANCES: Final = {
    float64: (1e-7, 1e-7),
    float32: (1.3e-6, 1e-5),
    float16: (1e-3, 1e-5),
    bfloat16: (1.6e-2, 1e-5),
    complex64: (1.3e-6, 1e-5),
    complex128: (1e-7, 1e-7),
}
"""Relative and absolute tolerance of each dtype, as in ``torch.testing.assert_close``."""


def __dir__() -> list[str]:
    return __all__


def _check_array(array: object) -> None:
    """Refuse what is no array of NumPy, or has masked elements."""
    if not isinstance(array, (np.ndarray, np.generic)):
        raise OperandTypeError(
            f"an object of type {type(array).__name__} is no array of NumPy",
            hint="TensorData.of() takes numbers, nested sequences and what NumPy reads",
            operation="TensorData",
        )
    check_unmasked(array)


def check_unmasked(values: object) -> None:
    """Check that a NumPy array has no masked elements, which a tensor cannot represent.

    Raises
    ------
    ArgumentError
        If an element is masked.
    """
    masked = sys.modules.get("numpy.ma")  # NumPy imports it lazily; without it no array is masked
    if masked is not None and isinstance(values, masked.MaskedArray) and masked.is_masked(values):
        raise ArgumentError(
            "a tensor has no mask, and elements of this array are masked",
            hint="Call .filled(value), or pass .data and keep .mask as a tensor of its own",
        )


class TensorData:
    """Values on the host.

    ``==`` is true for the same dtype, shape and bits: a NaN equals itself there, and 0.0 does not
    equal -0.0. `assert_equal` and `assert_allclose` compare numbers, and say where they differ.

    Parameters
    ----------
    array : numpy.ndarray
        The values. They are shared, not copied, if they have the native byte order.

    Attributes
    ----------
    array : numpy.ndarray
        The values.
    dtype : DType
        Their dtype.

    Raises
    ------
    OperandTypeError
        If `array` is no array of NumPy, or has elements that are no numbers.

    Examples
    --------
    >>> import burn
    >>> data = burn.asarray([[1.0, 2.5]], device="cpu").data()
    >>> data, data.tolist()
    (TensorData(shape=(1, 2), dtype=float32), [[1.0, 2.5]])
    >>> data.astype("int64").tolist()
    [[1, 2]]
    >>> burn.TensorData.frombuffer(data.tobytes(), data.shape, data.dtype) == data
    True
    """

    __slots__ = ("array", "dtype")

    def __init__(self, array: npt.NDArray[Any]) -> None:
        if array.__class__ is not np.ndarray:
            _check_array(array)
        self.dtype = dtype = DType.of(array.dtype)
        if array.dtype is not dtype.numpy:  # NumPy has several names for a dtype, such as longlong
            native = dtype.numpy
            array = array.view(native) if array.dtype.isnative else array.astype(native)
        self.array = array

    @classmethod
    def of(cls, values: object, dtype: DType | str | None = None) -> TensorData:
        """Host data from nested sequences, numbers, or anything NumPy reads.

        Parameters
        ----------
        values : object
            A number, a nested sequence of numbers, or an array on the host.
        dtype : DType or str, optional
            The dtype to convert to, as `astype` does. By default that which NumPy chooses.

        Raises
        ------
        ShapeError
            If nested sequences are ragged.
        OperandTypeError
            If an element is neither a number nor a boolean.
        ArgumentError
            If an array has masked elements.
        ScalarRangeError
            If a number does not fit `dtype`. It is an `OverflowError`.

        Examples
        --------
        >>> import burn
        >>> burn.TensorData.of([[1, 2], [3, 4]], "float32").tolist()
        [[1.0, 2.0], [3.0, 4.0]]
        """
        check_unmasked(values)
        try:
            array = np.asarray(values)
        except ValueError as error:
            raise ShapeError(
                f"cannot make a tensor of {type(values).__name__}: {error}",
                hint="Nested sequences must have the same length at every level",
            ) from None
        except TypeError as error:
            raise OperandTypeError(
                f"cannot make a tensor of {type(values).__name__}: {error}"
            ) from None
        if array.dtype.kind not in "biufcV":
            raise OperandTypeError(
                f"cannot make a tensor of {type(values).__name__} with elements of {array.dtype}",
                hint="A tensor holds numbers or booleans",
            )
        return cls(array) if dtype is None else cls(array).astype(dtype)

    @classmethod
    def frombuffer(
        cls,
        buffer: bytes | bytearray | memoryview,
        shape: int | Sequence[int],
        dtype: DType | str,
    ) -> TensorData:
        """Host data in the memory of a buffer, which is shared, not copied.

        Parameters
        ----------
        buffer : bytes, or any other buffer
            The elements in row-major order, in the native byte order; `tobytes` gives them.
        shape : int or sequence of int
            Length of each axis.
        dtype : DType or str
            The dtype of the elements.

        Raises
        ------
        OperandTypeError
            If `buffer` is no buffer.
        ShapeError
            If it has more or fewer bytes than the elements of a tensor of that shape and dtype.
        DTypeError
            If there is no such dtype.

        Examples
        --------
        >>> import burn
        >>> burn.TensorData.frombuffer(bytes([1, 2, 3, 4]), (2, 2), "uint8").tolist()
        [[1, 2], [3, 4]]
        """
        dtype, operation = DType.of(dtype), "TensorData.frombuffer"
        native = dtype.numpy
        try:
            view = memoryview(buffer)
            octets = np.asarray(view.cast("B")) if view.nbytes else np.empty(0, np.uint8)
        except (TypeError, ValueError, BufferError) as error:
            raise OperandTypeError(
                f"an object of type {type(buffer).__name__} is no contiguous buffer: {error}",
                hint="TensorData.of() takes numbers, nested sequences and arrays",
                operation=operation,
            ) from None
        lengths = tuple(shape) if isinstance(shape, Iterable) else (shape,)
        if any(not isinstance(one, (int, np.integer)) or one < 0 for one in lengths):
            raise ShapeError(
                f"shape is {lengths}",
                hint="Lengths of axes are integers, and not negative",
                operation=operation,
            )
        expected = math.prod(map(int, lengths)) * dtype.itemsize
        if octets.size != expected:
            raise ShapeError(
                f"a buffer of {octets.size} bytes for {dtype} of shape {lengths}, "
                f"which takes {expected}",
                operation=operation,
            )
        if dtype.is_bool and octets.size and octets.max() > 1:
            raise ArgumentError(
                f"a buffer of booleans has a byte {octets.max()}",
                hint="Each byte is 0 or 1",
                operation=operation,
            )
        return cls(octets.view(native).reshape(lengths))

    @staticmethod
    def quantized(
        codes: npt.ArrayLike,
        shape: Sequence[int],
        scheme: QuantScheme,
        scales: npt.ArrayLike,
        global_scale: float | None = None,
    ) -> QuantizedData:
        """Host data of a quantized tensor.

        Parameters
        ----------
        codes : array_like
            The codes in row-major order, an element for each: integers, or of float values their
            bits. They are packed as the scheme says.
        shape : sequence of int
            Shape of the tensor.
        scheme : QuantScheme
            How it is stored.
        scales : array_like
            The scales in row-major order: numbers, or bits as uint8 of the 8-bit dtypes.
        global_scale : float, optional
            The scale of the tensor beside those of its blocks.

        Raises
        ------
        ShapeError
            If the numbers of codes or scales are not those of the shape.
        ArgumentError
            If a code is out of range, or the global scale is missing or not the scheme's.

        Examples
        --------
        >>> from burn.quantization import QuantScheme, QuantValue
        >>> scheme = QuantScheme(QuantValue.Q4S)
        >>> data = TensorData.quantized(list(range(-7, 1)), [8], scheme, [0.5])
        >>> data.array.shape, data.codes.tolist()
        ((1,), [-7, -6, -5, -4, -3, -2, -1, 0])
        """
        target = tuple(shape)
        scheme.check(target)
        stored = _packed(_checked_codes(codes, target, scheme), scheme)
        parts = [stored, _checked_scales(scales, target, scheme)]
        if (global_scale is not None) is not scheme.level.is_global:
            raise ArgumentError(
                f"global_scale is {global_scale} for {scheme}",
                hint="Two levels have one, QuantLevel.two_level; other schemes have none",
                operation="TensorData.quantized",
            )
        if global_scale is not None:
            parts.append(np.full(1, global_scale, dtype=float32.numpy))
        return QuantizedData(parts, scheme)

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        return self.array.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def flat(self) -> Iterator[Any]:
        """The elements in row-major order, as Python numbers."""
        return map(operator.methodcaller("item"), self._numbers("flat").flat)

    def tolist(self) -> Any:
        """The values as nested lists of Python numbers; a number without axes."""
        return self._numbers("tolist").tolist()

    def tobytes(self) -> bytes:
        """The elements in row-major order, in the native byte order; `frombuffer` reads them."""
        return self._numbers("tobytes").tobytes()

    def _numbers(self, operation: str) -> npt.NDArray[Any]:
        """The values as numbers, for an operation."""
        del operation
        return self.array

    def astype(self, dtype: DType | str) -> TensorData:
        """The values in another dtype; the same object where it has that dtype.

        Parameters
        ----------
        dtype : DType or str
            The dtype. Floats become integers without their fractions.

        Raises
        ------
        ScalarRangeError
            If a number does not fit an integer dtype. It is an `OverflowError`.
        DTypeError
            If complex numbers would lose their imaginary parts, or there is no such dtype.
        """
        dtype = DType.of(dtype)
        if dtype is self.dtype:
            return self
        array = self._numbers("astype")
        if self.dtype.is_complex and not (dtype.is_complex or dtype.is_bool):
            raise DTypeError(
                f"{self.dtype} does not become {dtype}, which has no imaginary parts",
                hint="Take .array.real or abs(.array)",
                operation="TensorData.astype",
            )
        if dtype.is_integer and not self.dtype.is_bool and array.size:
            low, high = dtype.integer_range
            for value in (array.min().item(), array.max().item()):  # NaN if there is one
                if not math.isfinite(value) or not low <= int(value) <= high:
                    raise ScalarRangeError(
                        f"{value} does not fit {dtype}, which holds {low} to {high}",
                        hint="Take a wider dtype",
                        operation="TensorData.astype",
                    )
        with np.errstate(all="ignore"):
            return TensorData(array.astype(dtype.numpy))

    def assert_equal(self, expected: object) -> None:
        """Check that the values are equal: the same shape and dtype, and numbers that are equal.

        NaN equals NaN here, and 0.0 equals -0.0.

        Parameters
        ----------
        expected : TensorData, array_like
            The values. Python numbers are taken in the dtype of this one, if that is a float dtype.

        Raises
        ------
        AssertionError
            If they differ; it says how many do, and where the first one is.

        Examples
        --------
        >>> import burn
        >>> burn.arange(3, device="cpu").data().assert_equal([0, 1, 3])
        Traceback (most recent call last):
            ...
        AssertionError: 1 of 3 elements differ: at (2,) it is 2, not 3
        """
        self._compare(expected, 0.0, 0.0)

    def assert_allclose(
        self, expected: object, *, rtol: float | None = None, atol: float | None = None
    ) -> None:
        """Check that the values are close: ``abs(x - expected) <= atol + rtol * abs(expected)``.

        They have the same shape and dtype. NaN is close to NaN, and an infinity to itself.

        Parameters
        ----------
        expected : TensorData, array_like
            The values. Python numbers are taken in the dtype of this one, if that is a float dtype.
        rtol, atol : float, optional
            Relative and absolute tolerance. By default those of `torch.testing.assert_close`:
            1.3e-6 and 1e-5 in float32, 1e-7 and 1e-7 in float64, 1e-3 and 1e-5 in float16, 1.6e-2
            and 1e-5 in bfloat16, those of its parts in a complex dtype, and 0 in others.

        Raises
        ------
        AssertionError
            If they differ; it says how many do, and where the largest difference is.
        ArgumentError
            If a tolerance is negative or NaN.

        Examples
        --------
        >>> import burn
        >>> x = burn.asarray([1.0, 2.0], device="cpu").data()
        >>> x.assert_allclose([1.0, 2.0000001])
        >>> x.assert_allclose([1.0, 2.5], rtol=0.1)
        Traceback (most recent call last):
            ...
        AssertionError: 1 of 2 elements differ by more than 1e-05 + 0.1 * abs(expected): ...
        """
        defaults = _TOLERANCES.get(self.dtype, (0.0, 0.0))
        bounds = [
            one if given is None else given
            for given, one in zip((rtol, atol), defaults, strict=True)
        ]
        for bound in bounds:
            if not isinstance(bound, (int, float)) or not bound >= 0:
                raise ArgumentError(
                    f"a tolerance is {bound!r}",
                    hint="Tolerances are numbers, 0 or more",
                    operation="TensorData.assert_allclose",
                )
        self._compare(expected, *bounds)

    def _compare(self, expected: object, rtol: float, atol: float) -> None:
        """Raise an AssertionError that says how the values differ from others, if they do."""
        other = expected if isinstance(expected, TensorData) else TensorData.of(expected)
        has_dtype = isinstance(expected, (TensorData, np.ndarray, np.generic))
        if not has_dtype and (
            self.dtype.is_complex or (self.dtype.is_float and not other.dtype.is_complex)
        ):
            other = other.astype(self.dtype)
        if self.shape != other.shape or (has_dtype and self.dtype is not other.dtype):
            raise AssertionError(f"{self} does not have the shape and dtype of {other}")
        if isinstance(self, QuantizedData):
            if self != other:
                raise AssertionError(f"{self} has other codes or scales than expected")
            return
        x, y = self.array, other.array
        wide = np.complex128 if self.dtype.is_complex else np.float64
        wide_x, wide_y = x.astype(wide), y.astype(wide)
        with np.errstate(all="ignore"):
            is_same = (x == y) | (np.isnan(wide_x) & np.isnan(wide_y))
            error = np.where(is_same, 0.0, np.abs(wide_x - wide_y))
            is_close = is_same
            if rtol or atol:  # large integers that differ may be the same float64
                is_near = error <= atol + rtol * np.abs(wide_y)
                is_close = is_same | (np.isfinite(wide_y) & is_near)
        if not is_close.all():
            raise AssertionError(_difference(x, y, is_close, error, rtol, atol))

    def __eq__(self, other: object) -> bool:
        """Whether dtype, shape and bits are the same."""
        if not isinstance(other, TensorData):
            return NotImplemented
        return (
            self.dtype is other.dtype
            and self.shape == other.shape
            and self.array.tobytes() == other.array.tobytes()
        )

    __hash__ = None  # type: ignore[assignment]  # arrays change

    def __repr__(self) -> str:
        return f"TensorData(shape={self.shape}, dtype={self.dtype})"


def _difference(
    x: npt.NDArray[Any],
    expected: npt.NDArray[Any],
    is_close: npt.NDArray[Any],
    error: npt.NDArray[Any],
    rtol: float,
    atol: float,
) -> str:
    """How many elements differ, and which one most."""
    excess = np.where(is_close, -1.0, np.where(np.isnan(error), np.inf, error))
    index = np.unravel_index(np.argmax(excess), x.shape)
    bound = f" by more than {atol:g} + {rtol:g} * abs(expected)" if rtol or atol else ""
    count = x.size - np.count_nonzero(is_close)
    return (
        f"{count} of {x.size} elements differ{bound}: at {tuple(map(int, index))} it is "
        f"{x[index]}, not {expected[index]}"
    )


class QuantizedData(TensorData):
    """Codes and scales of a quantized tensor on the host.

    Parameters
    ----------
    parts : sequence of numpy.ndarray
        The stored codes, the stored scales and, in two levels, the global scale.
    scheme : QuantScheme
        How they are stored.

    Attributes
    ----------
    array : numpy.ndarray
        The stored codes; `codes` has an element for each.
    scales : numpy.ndarray
        The stored scales.
    global_scale : numpy.ndarray or None
        The global scale, of shape (1,).
    dtype : QDType
        The dtype, which has the scheme.
    """

    __slots__ = ("global_scale", "scales")

    def __init__(self, parts: Sequence[npt.NDArray[Any]], scheme: QuantScheme) -> None:
        self.dtype = QDType(scheme)
        self.array, self.scales, *rest = parts
        self.global_scale = rest[0] if rest else None

    @property
    def scheme(self) -> QuantScheme:
        """How the tensor is stored."""
        scheme: QuantScheme = self.dtype.scheme
        return scheme

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis of the tensor."""
        return self.scheme.logical_shape(self.array.shape)

    def _numbers(self, operation: str) -> npt.NDArray[Any]:
        raise UnsupportedOpError(
            "the numbers of a quantized tensor are products of codes and scales",
            hint="Read tensor.dequantize(), or .codes and .scales here",
            operation=f"QuantizedData.{operation}",
        )

    @property
    def parts(self) -> list[TensorData]:
        """Codes, scales and, if there is one, the global scale, as host data."""
        arrays = [self.array, self.scales]
        if self.global_scale is not None:
            arrays.append(self.global_scale)
        return [TensorData(one) for one in arrays]

    @property
    def codes(self) -> npt.NDArray[Any]:
        """The codes, an element for each: int8, of float values uint8."""
        scheme = self.scheme
        if scheme.per_word == 1:
            return self.array
        bits = scheme.value.bits
        axis = self.array.ndim + scheme.store.axis
        shifts = np.arange(scheme.per_word, dtype=self.array.dtype) * np.uint8(bits)
        shifts = shifts.reshape(-1, *[1] * (self.array.ndim - axis - 1))
        codes: npt.NDArray[Any] = np.expand_dims(self.array, axis + 1) >> shifts.astype(
            self.array.dtype
        )
        codes = (codes & ((1 << bits) - 1)).astype(np.uint8).reshape(self.shape)
        if scheme.value.is_float:
            return codes
        unused = 8 - bits
        signed: npt.NDArray[Any] = (codes << unused).astype(np.uint8).view(np.int8)
        return signed >> unused

    def __eq__(self, other: object) -> bool:
        """Whether codes, scales and scheme are the same bits."""
        if not isinstance(other, QuantizedData):
            return NotImplemented
        return self.dtype is other.dtype and all(
            a.array.shape == b.array.shape and a.array.tobytes() == b.array.tobytes()
            for a, b in zip(self.parts, other.parts, strict=True)
        )

    __hash__ = None

    def __repr__(self) -> str:
        return f"QuantizedData(shape={self.shape}, dtype={self.dtype})"


def _packed(codes: npt.NDArray[Any], scheme: QuantScheme) -> npt.NDArray[Any]:
    """Codes as the scheme stores them."""
    count = scheme.per_word
    if count == 1:
        return np.ascontiguousarray(codes)
    axis = codes.ndim + scheme.store.axis
    stored = scheme.storage_dtype.numpy
    bits = scheme.value.bits
    shape = (*codes.shape[:axis], codes.shape[axis] // count, count, *codes.shape[axis + 1 :])
    fields = (codes.view(np.uint8) & ((1 << bits) - 1)).astype(stored).reshape(shape)
    shifts = (np.arange(count) * bits).astype(stored)
    shifts = shifts.reshape(-1, *[1] * (codes.ndim - axis - 1))
    packed: npt.NDArray[Any] = np.bitwise_or.reduce(fields << shifts, axis=axis + 1)
    return packed


def _checked_codes(
    codes: npt.ArrayLike, shape: tuple[int, ...], scheme: QuantScheme
) -> npt.NDArray[Any]:
    """Codes of a shape, int8 or, of float values, uint8."""
    array = np.asarray(codes)
    low, high = (0, (1 << scheme.value.bits) - 1) if scheme.value.is_float else scheme.value.range
    if array.size != np.prod(shape, dtype=int):
        raise ShapeError(
            f"{array.size} codes for a tensor of shape {shape}", operation="TensorData.quantized"
        )
    if array.size and not (array.dtype.kind in "iu" and low <= array.min() and array.max() <= high):
        raise ArgumentError(
            f"codes of {scheme.value.name} are integers in [{low}, {high}]",
            operation="TensorData.quantized",
        )
    native = np.uint8 if scheme.value.is_float else np.int8
    return array.astype(native).reshape(shape)


def _checked_scales(
    scales: npt.ArrayLike, shape: tuple[int, ...], scheme: QuantScheme
) -> npt.NDArray[Any]:
    """Stored scales of a tensor of a shape."""
    array = np.asarray(scales)
    expected = scheme.scales_shape(shape)
    if array.size != np.prod(expected, dtype=int):
        raise ShapeError(
            f"{array.size} scales for a tensor of shape {shape} and {scheme}",
            hint=f"It has scales of shape {expected}",
            operation="TensorData.quantized",
        )
    is_bits = scheme.scale_dtype in {ScaleDType.UE8M0, ScaleDType.UE4M3}
    if is_bits and array.dtype != np.uint8:
        raise ArgumentError(
            f"scales of {scheme.scale_dtype.name} are their bits as uint8, got {array.dtype}",
            operation="TensorData.quantized",
        )
    return array.astype(scheme.scale_dtype.storage.numpy).reshape(expected)
