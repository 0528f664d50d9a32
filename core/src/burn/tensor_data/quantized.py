"""QuantizedData: codes and scales on the host, as they enter and leave a backend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from burn.dtype import float32
from burn.errors import ArgumentError, ShapeError, UnsupportedOpError
from burn.quant_scheme import QDType, QuantScheme, ScaleDType
from burn.tensor_data.host import TensorData

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

__all__ = ["QuantizedData", "quantized_data"]


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
        return [TensorData(array) for array in arrays]

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


def quantized_data(
    codes: npt.ArrayLike,
    shape: Sequence[int],
    scheme: QuantScheme,
    scales: npt.ArrayLike,
    global_scale: float | None,
) -> QuantizedData:
    """Host data of a quantized tensor; see `TensorData.quantized`."""
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
