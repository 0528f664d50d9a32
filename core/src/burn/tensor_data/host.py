"""TensorData: values on the host, as they enter and leave a backend."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from burn.dtype import DType, Kind
from burn.errors import (
    ArgumentError,
    DTypeError,
    OperandTypeError,
    ScalarRangeError,
    ShapeError,
)
from burn.public_calls import shown_value
from burn.tensor_data._comparison import TOLERANCES, difference

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from burn.quant_scheme import QuantScheme
    from burn.tensor_data.quantized import QuantizedData

__all__ = ["TensorData", "check_unmasked"]


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


def _refuse_large(array: np.ndarray[Any, Any]) -> None:
    """Raise ScalarRangeError if all objects in an array are integers, which fit no dtype then."""
    numbers = array.ravel().tolist() if array.dtype.kind == "O" else []
    if numbers and all(isinstance(number, int) for number in numbers):
        largest = shown_value(max(numbers, key=abs))
        raise ScalarRangeError(
            f"the integer {largest} fits no dtype",
            hint="Pass floats: uint64 holds the largest integers",
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
            is_ragged = "inhomogeneous" in str(error)  # NumPy says so of lengths that differ
            reason = "its sequences have different lengths" if is_ragged else error
            raise ShapeError(
                f"cannot make a tensor of {type(values).__name__}: {reason}",
                hint="Nested sequences must have the same length at every level",
            ) from None
        except TypeError as error:
            raise OperandTypeError(
                f"cannot make a tensor of {type(values).__name__}: {error}"
            ) from None
        if array.dtype.kind not in "biufcV":
            _refuse_large(array)
            raise OperandTypeError(
                f"cannot make a tensor of {type(values).__name__} with elements of {array.dtype}",
                hint="A tensor holds numbers or booleans",
            )
        return cls(array) if dtype is None else cls(array)._converted(dtype, "TensorData.of")

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
        if any(not isinstance(length, (int, np.integer)) or length < 0 for length in lengths):
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
        from burn.tensor_data.quantized import quantized_data  # which imports this module

        return quantized_data(codes, shape, scheme, scales, global_scale)

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
        return self._converted(dtype, "TensorData.astype")

    def _converted(self, dtype: DType | str, operation: str) -> TensorData:
        dtype = DType.of(dtype)
        if dtype is self.dtype:
            return self
        array = self._numbers("astype")
        if self.dtype.is_complex and not (dtype.is_complex or dtype.is_bool):
            raise DTypeError(
                f"{self.dtype} does not become {dtype}, which has no imaginary parts",
                hint="Take .array.real or abs(.array)",
                operation=operation,
            )
        if dtype.is_integer and not self.dtype.is_bool and array.size:
            low, high = dtype.integer_range
            for value in (array.min().item(), array.max().item()):  # NaN if there is one
                if not math.isfinite(value) or not low <= int(value) <= high:
                    raise ScalarRangeError(
                        f"{value} does not fit {dtype}, which holds {low} to {high}",
                        hint="Take a wider dtype",
                        operation=operation,
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
        defaults = TOLERANCES.get(self.dtype, (0.0, 0.0))
        bounds = [
            default if given is None else given
            for given, default in zip((rtol, atol), defaults, strict=True)
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
        if self.dtype.kind is Kind.QUANTIZED:
            found = "" if self == other else f"{self} has other codes or scales than expected"
        else:
            found = difference(self.array, other.array, rtol, atol)
        if found:
            raise AssertionError(found)

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
