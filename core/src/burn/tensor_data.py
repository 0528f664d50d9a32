"""TensorData: values on the host, as they enter and leave a backend."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from burn.dtype import DType, float32
from burn.errors import ArgumentError, OperandTypeError, ShapeError
from burn.quant_scheme import QDType, QuantScheme, ScaleDType

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

__all__ = ["QuantizedData", "TensorData", "check_unmasked"]


def __dir__() -> list[str]:
    return __all__


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
    """

    __slots__ = ("array", "dtype")

    def __init__(self, array: npt.NDArray[Any]) -> None:
        if array.__class__ is not np.ndarray:
            check_unmasked(array)
        self.dtype = dtype = DType.of(array.dtype)
        if array.dtype is not dtype.numpy:  # NumPy has several names for a dtype, such as longlong
            native = dtype.numpy
            array = array.view(native) if array.dtype.isnative else array.astype(native)
        self.array = array

    @classmethod
    def of(cls, values: object, dtype: DType | None = None) -> TensorData:
        """Host data from nested sequences, numbers, or anything NumPy reads.

        Parameters
        ----------
        values : object
            A number, a nested sequence of numbers, or an array on the host.
        dtype : DType, optional
            The dtype to convert to. By default that which NumPy chooses.

        Raises
        ------
        ShapeError
            If nested sequences are ragged.
        OperandTypeError
            If an element is neither a number nor a boolean.
        ArgumentError
            If an array has masked elements.
        OverflowError
            If a number does not fit `dtype`.
        """
        check_unmasked(values)
        try:
            array = np.asarray(values, dtype=None if dtype is None else dtype.numpy)
        except OverflowError:
            raise
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
        return cls(array)

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

    def __repr__(self) -> str:
        return f"TensorData(shape={self.shape}, dtype={self.dtype})"


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

    __hash__ = None  # type: ignore[assignment]  # arrays change

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
