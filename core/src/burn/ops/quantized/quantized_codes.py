"""Codes and scales of quantized tensors by ops: floats of few bits, packed words, blocks.

All results are exact, or rounded once as IEEE 754 says: they are the same bits on every backend.
"""

from __future__ import annotations

import sys
from typing import Final, NamedTuple

from burn.aliases import Primitive, Shape
from burn.dtype import DType, float32, float64, int8, int32, uint8
from burn.ops.table import OpTable
from burn.quant_scheme import QuantScheme, QuantValue, ScaleDType

__all__ = [
    "decode_codes",
    "decode_scales",
    "encode_codes",
    "encode_scales",
    "greatest_codes",
    "pack",
    "split_shapes",
    "unpack",
]


class _Format(NamedTuple):
    """A float of few bits, as the OCP formats define it.

    Attributes
    ----------
    mantissa : int
        Bits of the mantissa.
    exponent : int
        Bits of the exponent.
    least : int
        The exponent of the smallest normal number.
    """

    mantissa: int
    exponent: int
    least: int

    @property
    def steps(self) -> tuple[int, ...]:
        """Powers of two whose sums are the numbers of `exponent` bits, the largest first."""
        return tuple(1 << bit for bit in reversed(range(self.exponent)))


_E4M3: Final = _Format(3, 4, -6)
_FORMATS: Final = {
    QuantValue.E4M3: _E4M3,
    QuantValue.E5M2: _Format(2, 5, -14),
    QuantValue.E2M1: _Format(1, 2, 0),
}

_ROUNDINGS: Final = {
    ScaleDType.F32: (24, 2.0**-149),
    ScaleDType.F16: (11, 2.0**-24),
    ScaleDType.BF16: (8, 2.0**-133),
}
"""Bits of the significand, and the smallest positive number, of the floats that scales may be."""

_LARGEST: Final = {float32: (2.0 - 2.0**-23) * 2.0**127, float64: sys.float_info.max}
"""The largest finite numbers of the dtypes in which numbers are quantized."""

_UE8M0_BIAS: Final = 127
_NAN: Final = {ScaleDType.UE8M0: 0xFF, ScaleDType.UE4M3: 0x7F}
_E8M0_STEPS: Final = (64, 32, 16, 8, 4, 2, 1)


def split_shapes(scheme: QuantScheme, shape: Shape) -> tuple[Shape, Shape, tuple[int, ...]]:
    """Shapes of a tensor and of its scales in which these broadcast, and the axes of a block.

    Each axis of several blocks becomes two: the blocks, and the elements of one.
    """
    split: list[int] = []
    scales: list[int] = []
    axes: list[int] = []
    for length, block in zip(shape, scheme.blocks(shape), strict=True):
        count = length // block if scheme.level.block else 1
        if count != 1 and block != 1:
            split.append(count)
            scales.append(count)
        if block == 1 and count != 1:
            split.append(length)
            scales.append(length)
        else:
            axes.append(len(split))
            split.append(length if count == 1 else block)
            scales.append(1)
    return tuple(split), tuple(scales), tuple(axes)


def decode_scales(
    ops: OpTable, scales: Primitive, global_scale: Primitive | None, scheme: QuantScheme, to: DType
) -> Primitive:
    """Scales as floats, times the global one: that product is rounded once to the dtype."""
    kind = scheme.scale_dtype
    if kind is ScaleDType.UE8M0:
        code = ops.subtract(ops.cast(scales, dtype=int32), _UE8M0_BIAS)
        found = _power_of_two(ops, code, _E8M0_STEPS, to)
        found = ops.where(ops.equal(code, _NAN[kind] - _UE8M0_BIAS), float("nan"), found)
    elif kind is ScaleDType.UE4M3:
        code = ops.cast(scales, dtype=int32)
        found = ops.where(ops.equal(code, _NAN[kind]), float("nan"), _decode(ops, code, _E4M3, to))
    else:
        found = ops.cast(scales, dtype=to)
    if global_scale is None:
        return found
    factor = ops.cast(global_scale, dtype=to)
    return ops.multiply(found, ops.reshape(factor, shape=(1,) * len(found.shape)))


def encode_scales(ops: OpTable, scales: Primitive, scheme: QuantScheme) -> Primitive:
    """Scales rounded up to their dtype, its largest number at most; infinities are NaN in bytes."""
    kind = scheme.scale_dtype
    storage = kind.storage
    if ops.dtype(scales) is storage:
        return scales
    scales = ops.where(ops.isinf(scales), scales, ops.minimum(scales, kind.largest))
    if kind is ScaleDType.UE8M0:
        invalid = ops.bitwise_or(ops.isnan(scales), ops.isinf(scales))
        scales = ops.where(invalid, 0.0, scales)
        exponent, rest = _normalized(ops, scales)
        code = ops.add(exponent, ops.cast(ops.greater(rest, 1.0), dtype=int32))
        code = ops.where(invalid, _NAN[kind], ops.add(code, _UE8M0_BIAS))
        return ops.cast(code, dtype=uint8)
    if kind is ScaleDType.UE4M3:
        invalid = ops.bitwise_not(ops.less_equal(scales, kind.largest))
        code = _encode(ops, ops.where(invalid, 0.0, scales), _E4M3, "ceil")
        return ops.cast(ops.where(invalid, _NAN[kind], code), dtype=uint8)
    nearest = ops.cast(scales, dtype=storage)
    bits, smallest = _ROUNDINGS[kind]
    back = ops.cast(nearest, dtype=ops.dtype(scales))
    # More than half a unit in the last digit above `back`, and less than one and a half.
    above = ops.maximum(
        ops.multiply(back, 1.0 + 2.0**-bits + 2.0 ** -(bits + 4)), ops.add(back, smallest)
    )
    raised = ops.where(ops.less(back, scales), above, back)
    return ops.cast(raised, dtype=storage)


def greatest_codes(ops: OpTable, scales: Primitive, scheme: QuantScheme) -> Primitive:
    """The greatest number of a code for each scale whose product with it is not infinite.

    Scales near the largest number are rounded up, and numbers to the nearest code, so the greatest
    code may stand for more than that.
    """
    dtype = ops.dtype(scales)
    low, high = scheme.value.range
    most = float(max(-low, high))
    usual = ops.full(shape=tuple(scales.shape), fill_value=most, dtype=dtype)
    largest = ops.full(shape=tuple(scales.shape), fill_value=_LARGEST[dtype], dtype=dtype)
    room = ops.divide(largest, ops.abs(scales))
    room = ops.where(ops.greater(room, 0.0), ops.minimum(room, usual), usual)  # also where NaN
    if scheme.value.is_float:
        form = _FORMATS[scheme.value]
        code = _encode(ops, room, form, "floor")
        steps = [
            _decode(ops, ops.maximum(ops.add(code, step), 0), form, dtype) for step in (1, 0, -1)
        ]
    else:
        code = ops.floor(room)
        steps = [ops.maximum(ops.add(code, float(step)), 0.0) for step in (1, 0, -1)]
    above, own, below = steps  # the quotient may be rounded to the next code
    found = ops.where(ops.isinf(ops.multiply(own, scales)), below, own)
    return ops.minimum(ops.where(ops.isinf(ops.multiply(above, scales)), found, above), usual)


def encode_codes(
    ops: OpTable, x: Primitive, scheme: QuantScheme, most: Primitive | None = None
) -> Primitive:
    """The nearest codes of numbers, halves to the even one; NaN becomes 0.

    The magnitudes of their numbers are `most` at most.
    """
    low, high = scheme.value.range
    x = ops.where(ops.isnan(x), 0.0, x)
    if not scheme.value.is_float:
        codes = ops.clip(ops.round(x), float(low), float(high))
        if most is not None:
            codes = ops.maximum(ops.minimum(codes, most), ops.negative(most))
        return ops.cast(codes, dtype=int8)
    form = _FORMATS[scheme.value]
    bound = float(high) if most is None else most
    magnitude = _encode(ops, ops.minimum(ops.abs(x), bound), form, "round")
    sign = ops.cast(ops.signbit(x), dtype=int32)
    sign = ops.multiply(sign, 1 << (form.mantissa + form.exponent))
    return ops.cast(ops.add(magnitude, sign), dtype=uint8)


def decode_codes(ops: OpTable, codes: Primitive, scheme: QuantScheme, to: DType) -> Primitive:
    """The numbers of codes that are stored natively."""
    if not scheme.value.is_float:
        return ops.cast(codes, dtype=to)
    form = _FORMATS[scheme.value]
    bits = form.mantissa + form.exponent
    codes = ops.cast(codes, dtype=int32)
    magnitude = ops.bitwise_and(codes, (1 << bits) - 1)
    found = _decode(ops, magnitude, form, to)
    # Of E4M3 all bits are NaN, of E5M2 the largest exponent is an infinity or NaN.
    if scheme.value is QuantValue.E4M3:
        found = ops.where(ops.equal(magnitude, 0x7F), float("nan"), found)
    elif scheme.value is QuantValue.E5M2:
        found = ops.where(ops.equal(magnitude, 0x7C), float("inf"), found)
        found = ops.where(ops.greater(magnitude, 0x7C), float("nan"), found)
    return ops.where(ops.equal(magnitude, codes), found, ops.negative(found))


def _encode(ops: OpTable, x: Primitive, form: _Format, rounding: str) -> Primitive:
    """Bits, as int32, of numbers in [0, max], without a sign."""
    scale = 2.0 ** (form.mantissa - form.least)
    rest = ops.multiply(ops.maximum(x, 2.0**form.least), 2.0**-form.least)  # in [1, ...)
    units = ops.multiply(x, scale)
    exponent = None
    for step in form.steps:
        is_above = ops.greater_equal(rest, 2.0**step)
        rest = ops.where(is_above, ops.multiply(rest, 2.0**-step), rest)
        units = ops.where(is_above, ops.multiply(units, 2.0**-step), units)
        part = ops.multiply(ops.cast(is_above, dtype=int32), step << form.mantissa)
        exponent = part if exponent is None else ops.add(exponent, part)
    # A mantissa that is rounded to the next power of two carries into the exponent.
    return ops.add(exponent, ops.cast(getattr(ops, rounding)(units), dtype=int32))


def _decode(ops: OpTable, code: Primitive, form: _Format, to: DType) -> Primitive:
    """Numbers of bits, as int32, without a sign."""
    exponent = ops.bitwise_right_shift(code, form.mantissa)
    mantissa = ops.bitwise_and(code, (1 << form.mantissa) - 1)
    is_normal = ops.cast(ops.greater(exponent, 0), dtype=int32)
    significand = ops.add(mantissa, ops.multiply(is_normal, 1 << form.mantissa))
    found = ops.multiply(ops.cast(significand, dtype=to), 2.0 ** (form.least - form.mantissa))
    power = _power_of_two(ops, ops.subtract(exponent, is_normal), form.steps, to)
    return ops.multiply(found, power)


def _power_of_two(
    ops: OpTable, exponent: Primitive, steps: tuple[int, ...], to: DType
) -> Primitive:
    """2 to the power of integers whose magnitudes are sums of the steps."""
    magnitude = ops.abs(exponent)
    is_negative = ops.less(exponent, 0)
    result = None
    for step in steps:
        has = ops.equal(ops.bitwise_and(magnitude, step), step)
        factor = ops.where(is_negative, *_numbers(ops, exponent, 2.0**-step, 2.0**step, to))
        factor = ops.where(has, factor, 1.0)
        result = factor if result is None else ops.multiply(result, factor)
    return result


def _numbers(
    ops: OpTable, like: Primitive, first: float, second: float, to: DType
) -> tuple[Primitive, float]:
    """Two numbers of which one is a tensor, so that it has the dtype."""
    return ops.full(shape=tuple(like.shape), fill_value=first, dtype=to), second


def _normalized(ops: OpTable, x: Primitive) -> tuple[Primitive, Primitive]:
    """Exponent, at least -127, and rest in [1, 2) of positive numbers; of 0 it is -127 and 0."""
    exponent = ops.full(shape=tuple(x.shape), fill_value=0, dtype=int32)
    for step in _E8M0_STEPS:
        is_above = ops.greater_equal(x, 2.0**step)
        x = ops.where(is_above, ops.multiply(x, 2.0**-step), x)
        exponent = ops.add(exponent, ops.multiply(ops.cast(is_above, dtype=int32), step))
    for step in _E8M0_STEPS:
        is_below = ops.less(x, 2.0 ** (1 - step))
        x = ops.where(is_below, ops.multiply(x, 2.0**step), x)
        exponent = ops.subtract(exponent, ops.multiply(ops.cast(is_below, dtype=int32), step))
    return exponent, x


def pack(ops: OpTable, codes: Primitive, scheme: QuantScheme) -> Primitive:
    """Codes in words along the packed axis, the first in the lowest bits."""
    count = scheme.per_word
    if count == 1:
        return codes
    axis = len(codes.shape) + scheme.store.axis
    length = codes.shape[axis] // count
    mask = (1 << scheme.value.bits) - 1
    whole = [(0, item, 1) for item in codes.shape]
    words = None
    for position in range(count):
        whole[axis] = (position if length else 0, length, count)
        part = ops.cast(ops.slice(codes, slices=tuple(whole)), dtype=int32)
        part = ops.multiply(ops.bitwise_and(part, mask), 1 << (position * scheme.value.bits))
        words = part if words is None else ops.bitwise_or(words, part)
    return ops.cast(words, dtype=scheme.storage_dtype)


def unpack(ops: OpTable, values: Primitive, scheme: QuantScheme) -> Primitive:
    """The codes of words, an element for each."""
    count = scheme.per_word
    if count == 1:
        return values
    bits = scheme.value.bits
    shape = tuple(values.shape)
    axis = len(shape) + scheme.store.axis
    values = ops.reshape(
        ops.cast(values, dtype=int32), shape=(*shape[: axis + 1], 1, *shape[axis + 1 :])
    )
    parts = []
    for position in range(count):
        part = ops.bitwise_right_shift(values, position * bits) if position else values
        part = ops.bitwise_and(part, (1 << bits) - 1)
        if not scheme.value.is_float:  # the highest bit is the sign
            half = 1 << (bits - 1)
            part = ops.subtract(ops.bitwise_xor(part, half), half)
        parts.append(ops.cast(part, dtype=uint8 if scheme.value.is_float else int8))
    joined = ops.concat(parts, axis=axis + 1)
    return ops.reshape(joined, shape=scheme.logical_shape(shape))
