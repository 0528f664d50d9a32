"""Quantization in float64, by its formulas alone: codes, words, scales and what they stand for.

Nothing here uses `burn.ops`, so that the ops of quantization have something to be compared with.
A number of 8 or fewer bits, and a scale of 16, is looked up in a table of all numbers of its
format. A quotient or product in float32 is that of float64, rounded: as float64 has more than
twice the digits, that is what IEEE 754 demands of float32.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Final, NamedTuple

import numpy as np

from burn.aliases import Shape
from burn.dtype import DType
from burn.quant_scheme import QuantScheme, QuantValue, ScaleDType
from burn.testing.op_samples import Array

__all__ = [
    "Quantized",
    "dequantize",
    "encode",
    "numbers_of",
    "pack",
    "quantize",
    "quantize_values",
    "round_up",
    "scale_numbers",
    "scales_of",
    "unpack",
]

_FORMATS: Final = {QuantValue.E4M3: (4, 3), QuantValue.E5M2: (5, 2), QuantValue.E2M1: (2, 1)}
"""Bits of the exponent and of the mantissa."""

_RANGES: Final = {
    QuantValue.Q8F: (-128, 127),
    QuantValue.Q8S: (-127, 127),
    QuantValue.Q4F: (-8, 7),
    QuantValue.Q4S: (-7, 7),
    QuantValue.Q2F: (-2, 1),
    QuantValue.Q2S: (-1, 1),
    QuantValue.E4M3: (-448, 448),
    QuantValue.E5M2: (-57344, 57344),
    QuantValue.E2M1: (-6, 6),
}
"""The least and the greatest number."""

_BITS: Final = {"Q8": 8, "Q4": 4, "Q2": 2, "E4": 8, "E5": 8, "E2": 4}
"""Bits of a code, by the first letters of the name of a value."""

_WORD: Final = {"packed_u32": 32, "packed_native": 8}
"""Bits of a stored element, by the kind of a store."""

_SMALLEST_NORMAL: Final = 2.0**-126
"""The smallest normal float32: a global scale is no smaller."""


class Quantized(NamedTuple):
    """A quantized tensor on the host.

    Attributes
    ----------
    values : array
        The stored codes.
    scales : array
        The stored scales: bit patterns, in a scheme with scales of 8 bits.
    global_scale : array or None
        The global scale of a scheme of two levels.
    """

    values: Array
    scales: Array
    global_scale: Array | None = None


def quantize(x: Array, scheme: QuantScheme) -> Quantized:
    """A tensor in a scheme, with the range from its minimum to its maximum."""
    scales, global_scale = scales_of(x, scheme)
    codes = quantize_values(x, scales, global_scale, scheme)
    return Quantized(pack(codes, scheme), scales, global_scale)


def scales_of(x: Array, scheme: QuantScheme) -> tuple[Array, Array | None]:
    """The scales of a tensor of floats, and the global scale of two levels."""
    low, high = _RANGES[scheme.value]
    wide = _wide(x.dtype)
    magnitudes = _largest_magnitudes(x.astype(np.float64), scheme)
    scales = _rounded(magnitudes / ((high - low) / 2), wide)
    if not scheme.level.is_global:
        return round_up(scales, scheme.scale_dtype), None
    greatest = scale_numbers(scheme.scale_dtype)[-1]
    largest = _rounded(scales.max(initial=0.0) / greatest, np.float32)
    global_scale = np.maximum(largest, _SMALLEST_NORMAL).reshape(1)
    with np.errstate(all="ignore"):
        relative = _rounded(scales / global_scale, wide)
    return round_up(relative, scheme.scale_dtype), global_scale.astype(np.float32)


def quantize_values(
    x: Array, scales: Array, global_scale: Array | None, scheme: QuantScheme
) -> Array:
    """A code for each element of `x`: int8, or uint8 bit patterns of floats; not packed."""
    wide = _wide(x.dtype)
    divisors = _factors(scales, global_scale, scheme, x.shape, wide)
    with np.errstate(all="ignore"):
        quotients = _rounded(x.astype(np.float64) / divisors, wide)
    quotients = np.where(divisors == 0.0, 0.0, quotients)
    if np.isfinite(_rounded(divisors * max(map(abs, _RANGES[scheme.value])), wide)).all():
        return encode(quotients, scheme.value)
    most = _greatest_numbers(divisors, scheme.value, wide)
    codes = encode(quotients, scheme.value)
    numbers = numbers_of(scheme.value, codes)
    return encode(np.copysign(np.minimum(np.abs(numbers), most), numbers), scheme.value)


def _greatest_numbers(divisors: Array, value: QuantValue, wide: Any) -> Array:
    """The greatest number of a code whose product with a scale is not infinite."""
    low, high = _RANGES[value]
    is_float = value in _FORMATS
    codes = np.arange(1 << _BITS[value.name[:2]]) if is_float else np.arange(low, high + 1)
    numbers = np.abs(numbers_of(value, codes))
    numbers = np.unique(numbers[np.isfinite(numbers) & (numbers <= max(-low, high))])
    with np.errstate(all="ignore"):
        products = _rounded(numbers * divisors[..., None], wide)
    return np.asarray(numbers[np.maximum((~np.isinf(products)).sum(axis=-1) - 1, 0)])


def dequantize(quantized: Quantized, scheme: QuantScheme, dtype: DType) -> Array:
    """The tensor that codes and scales stand for, in a float dtype."""
    codes = unpack(quantized.values, scheme)
    wide = _wide(dtype.numpy)
    factors = _factors(quantized.scales, quantized.global_scale, scheme, codes.shape, wide)
    with np.errstate(all="ignore"):
        numbers = _rounded(numbers_of(scheme.value, codes) * factors, wide)
        return numbers.astype(wide).astype(dtype.numpy)


# Formats of numbers.


@functools.cache
def _float_table(exponent_bits: int, mantissa_bits: int) -> Array:
    """The positive numbers of a format, by their bit patterns; all of them finite."""
    bias = 2 ** (exponent_bits - 1) - 1
    numbers = []
    for exponent in range(2**exponent_bits):
        for mantissa in range(2**mantissa_bits):
            fraction = mantissa / 2**mantissa_bits + (exponent > 0)
            numbers.append(math.ldexp(fraction, max(exponent, 1) - bias))
    return np.array(numbers)


def numbers_of(value: QuantValue, codes: Array) -> Array:
    """The numbers that codes stand for, in float64."""
    if value not in _FORMATS:
        return codes.astype(np.float64)
    exponent_bits, mantissa_bits = _FORMATS[value]
    table = _float_table(exponent_bits, mantissa_bits).copy()
    if value is QuantValue.E4M3:
        table[-1] = math.nan
    if value is QuantValue.E5M2:
        table[-4:] = math.inf, math.nan, math.nan, math.nan
    sign_bit = table.size
    number = table[codes % sign_bit]
    return np.asarray(np.where(codes & sign_bit, -number, number))


def encode(numbers: Array, value: QuantValue) -> Array:
    """The codes of the representable numbers that are nearest; of two, the one that is even."""
    low, high = _RANGES[value]
    numbers = np.clip(np.where(np.isnan(numbers), 0.0, numbers), low, high)
    if value not in _FORMATS:
        return np.asarray(np.rint(numbers), np.int8)
    table = _float_table(*_FORMATS[value])
    finite = table[table <= high]
    magnitude = np.abs(numbers)
    above = np.minimum(np.searchsorted(finite, magnitude), finite.size - 1)
    below = np.maximum(above - 1, 0)
    to_above, to_below = finite[above] - magnitude, magnitude - finite[below]
    is_above = (to_above < to_below) | ((to_above == to_below) & (above % 2 == 0))
    code = np.where(is_above, above, below)
    return np.where(np.signbit(numbers), code | table.size, code).astype(np.uint8)


@functools.cache
def scale_numbers(dtype: ScaleDType) -> Array:
    """The numbers of a dtype of scales that are not negative, in float64, in order."""
    if dtype is ScaleDType.UE8M0:
        return np.ldexp(1.0, np.arange(255) - 127)
    if dtype is ScaleDType.UE4M3:
        return _float_table(4, 3)[:-1]
    infinity = int(np.array(np.inf, dtype.storage.numpy).view(np.uint16))
    patterns = np.arange(infinity, dtype=np.uint16).view(dtype.storage.numpy)
    return np.asarray(patterns.astype(np.float64))


def scale_numbers_at(scales: Array, dtype: ScaleDType) -> Array:
    """The numbers that stored scales stand for, in float64."""
    if dtype.storage.numpy != np.uint8:
        return scales.astype(np.float64)
    table: Array = np.append(scale_numbers(dtype), math.nan)  # the last pattern is NaN
    return np.asarray(table[scales & 0x7F if dtype is ScaleDType.UE4M3 else scales])


def round_up(scales: Array, dtype: ScaleDType) -> Array:
    """The least numbers of a dtype of scales that are no smaller, as they are stored.

    What is larger than all of them is the largest; infinities are NaN in a dtype of 8 bits.
    """
    scales = scales.astype(np.float64)
    if dtype is ScaleDType.F32:
        largest = np.finfo(np.float32).max
        bounded = np.where(np.isinf(scales), scales, np.minimum(scales, float(largest)))
        with np.errstate(all="ignore"):
            nearest = bounded.astype(np.float32)
            above = np.nextafter(nearest, np.float32(np.inf))
        return np.where(nearest < bounded, above, nearest)
    table = scale_numbers(dtype)
    index = np.minimum(np.searchsorted(table, scales), table.size - 1)
    index = np.where(np.isfinite(scales), index, table.size)
    if dtype.storage.numpy == np.uint8:
        return index.astype(np.uint8)
    numbers = np.append(table, math.inf)[index]
    return np.where(np.isnan(scales), math.nan, numbers).astype(dtype.storage.numpy)


# Words.


def pack(codes: Array, scheme: QuantScheme) -> Array:
    """Codes as a scheme stores them: the first in the lowest bits of a word."""
    count, bits = _per_word(scheme)
    if count == 1:
        return codes
    axis = scheme.store.axis
    fields = np.moveaxis(codes, axis, -1).astype(np.int64) & (2**bits - 1)
    fields = fields.reshape(*fields.shape[:-1], fields.shape[-1] // count, count)
    words = np.zeros(fields.shape[:-1], np.int64)
    for position in range(count):
        words += fields[..., position] * 2 ** (bits * position)
    return np.moveaxis(words, -1, axis).astype(_word_dtype(scheme))


def unpack(values: Array, scheme: QuantScheme) -> Array:
    """The codes of words, an element each."""
    count, bits = _per_word(scheme)
    if count == 1:
        return values
    words = np.moveaxis(values, scheme.store.axis, -1).astype(np.int64)
    fields = np.stack(
        [words // 2 ** (bits * position) % 2**bits for position in range(count)], axis=-1
    )
    if scheme.value not in _FORMATS:
        fields = np.where(fields >= 2 ** (bits - 1), fields - 2**bits, fields)
    codes = fields.reshape(*words.shape[:-1], words.shape[-1] * count)
    dtype = np.uint8 if scheme.value in _FORMATS else np.int8
    return np.moveaxis(codes, -1, scheme.store.axis).astype(dtype)


def _per_word(scheme: QuantScheme) -> tuple[int, int]:
    """How many codes a stored element has, and the bits of each."""
    bits = _BITS[scheme.value.name[:2]]
    return max(_WORD.get(scheme.store.kind, bits) // bits, 1), bits


def _word_dtype(scheme: QuantScheme) -> Any:
    return np.uint32 if scheme.store.kind == "packed_u32" else np.uint8


# Blocks.


def _largest_magnitudes(x: Array, scheme: QuantScheme) -> Array:
    """The largest magnitude of each block, NaN where there is one; of no elements, 0."""
    lengths = scheme.level.block
    if not lengths:
        return np.full(1, np.abs(x).max(initial=0.0))
    lengths = (1,) * (x.ndim - len(lengths)) + lengths
    for axis, length in enumerate(lengths):
        whole = x.shape[axis]
        block = max(whole, 1) if length == -1 else length
        parts = (*x.shape[:axis], whole // block, block, *x.shape[axis + 1 :])
        x = np.abs(x.reshape(parts)).max(axis=axis + 1, initial=0.0)
    return x


def _factors(
    scales: Array, global_scale: Array | None, scheme: QuantScheme, shape: Shape, wide: Any
) -> Array:
    """The number that the code of each element is to be multiplied by, in float64."""
    numbers = scale_numbers_at(scales, scheme.scale_dtype)
    if global_scale is not None:
        with np.errstate(all="ignore"):
            numbers = _rounded(numbers * global_scale.astype(np.float64), wide)
    if not scheme.level.block:
        return np.broadcast_to(numbers.reshape(()), shape)
    for axis, length in enumerate(shape):
        numbers = np.repeat(numbers, length // max(numbers.shape[axis], 1), axis)
    return numbers


def _wide(dtype: Any) -> Any:
    """The dtype in which numbers of a dtype are quantized and restored."""
    return np.float64 if dtype == np.float64 else np.float32


def _rounded(numbers: Any, dtype: Any) -> Array:
    """Numbers of a dtype, as float64."""
    with np.errstate(all="ignore"):
        return np.asarray(numbers).astype(dtype).astype(np.float64)
