"""Kernels of codes and scales of quantized tensors, which take contiguous arrays of one axis.

They give the bits of burn's decompositions: no operation is reordered or replaced. A run is some
successive elements that share a scale.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from burn_cpu.base import Array
from burn_cpu.compiled_base import ZERO, compiled_strictly, float32

_NAN: Final = float32(np.nan)
_INFINITY_BITS: Final = np.uint32(0x7F80_0000)


@compiled_strictly
def _float(code: Any, mantissa: Any, exponent: Any) -> Any:
    """The float of the bits of a sign, an exponent and a mantissa, all of which are numbers."""
    width = np.uint32(mantissa + exponent)
    magnitude = np.uint32(code & np.uint32((np.uint32(1) << width) - np.uint32(1)))
    number = np.uint32(magnitude << np.uint32(23 - mantissa)).view(np.float32)
    # The same exponent means more in float32; the product is exact, also of subnormal numbers.
    factor = np.uint32(np.uint32(255 - (1 << (exponent - 1))) << np.uint32(23)).view(np.float32)
    bits = np.float32(number * factor).view(np.uint32)
    sign = np.uint32(np.uint32(code >> width) << np.uint32(31))
    return np.uint32(bits | sign).view(np.float32)


@compiled_strictly
def _float_or_infinity(code: Any, mantissa: Any, exponent: Any) -> Any:
    """`_float`, where the largest exponent is that of infinities and NaN."""
    bits = np.float32(_float(code, mantissa, exponent)).view(np.uint32)
    top = np.uint32(np.uint32((1 << exponent) - 1) << mantissa)
    if np.uint32(code & top) == top:
        bits = np.uint32(bits | _INFINITY_BITS)
    return np.uint32(bits).view(np.float32)


@compiled_strictly
def _e4m3(code: Any) -> Any:
    number = _float(code, np.uint32(3), np.uint32(4))
    return _NAN if np.uint32(code & np.uint32(0x7F)) == np.uint32(0x7F) else number


@compiled_strictly
def _ue8m0(code: Any) -> Any:
    # 2**-127 is subnormal.
    bits = np.uint32(code << np.uint32(23)) if code else np.uint32(1 << 22)
    return _NAN if code == np.uint32(0xFF) else np.uint32(bits).view(np.float32)


@compiled_strictly
def decode_scales(scales: Array, mantissa: int, out: Array) -> None:
    """Scales as float32 of their bits, which are unsigned integers.

    `mantissa` says what they are: bits of float32 have 23, of float16 10, of bfloat16 7, of UE4M3
    3 and of UE8M0 none.
    """
    if mantissa >= 7 and mantissa != 10:  # bits of float32, or the highest of them
        for i in range(len(scales)):
            out[i] = np.uint32(np.uint32(scales[i]) << np.uint32(23 - mantissa)).view(np.float32)
    elif mantissa == 10:
        for i in range(len(scales)):
            out[i] = _float_or_infinity(np.uint32(scales[i]), np.uint32(10), np.uint32(5))
    elif mantissa == 3:
        for i in range(len(scales)):
            out[i] = _e4m3(np.uint32(scales[i]))
    else:
        for i in range(len(scales)):
            out[i] = _ue8m0(np.uint32(scales[i]))


@compiled_strictly
def decode_floats(codes: Array, mantissa: int, out: Array) -> None:
    """The numbers of E4M3, E5M2 or E2M1, by the bits of their mantissa: 3, 2 or 1."""
    if mantissa == 3:
        for i in range(len(codes)):
            out[i] = _e4m3(np.uint32(codes[i]))
    elif mantissa == 2:
        for i in range(len(codes)):
            out[i] = _float_or_infinity(np.uint32(codes[i]), np.uint32(2), np.uint32(5))
    else:
        for i in range(len(codes)):
            out[i] = _float(np.uint32(codes[i]), np.uint32(1), np.uint32(2))


@compiled_strictly
def restore(codes: Array, scales: Array, length: int, out: Array) -> None:
    """Numbers times the scales of their runs."""
    for run in range(len(scales)):
        scale = scales[run]
        source, target = codes[run * length :][:length], out[run * length :][:length]
        for i in range(len(target)):
            target[i] = out.dtype.type(source[i]) * scale


@compiled_strictly
def encode_integers(
    x: Array, scales: Array, length: int, low: float, high: float, out: Array
) -> None:
    """``clamp(round(x / scale), low, high)`` as int8; 0 of NaN and of a scale of 0."""
    zero = x.dtype.type(0)
    least, most = x.dtype.type(low), x.dtype.type(high)
    for run in range(len(scales)):
        scale = scales[run]
        source, target = x[run * length :][:length], out[run * length :][:length]
        is_zero = scale == zero
        for i in range(len(target)):
            number = np.rint(source[i] / scale)
            number = zero if is_zero or number != number else number  # noqa: PLR0124 — NaN
            target[i] = np.int8(np.int32(min(max(number, least), most)))


@compiled_strictly
def encode_floats(
    x: Array, scales: Array, length: int, mantissa: int, least: int, high: float, out: Array
) -> None:
    """The nearest floats of few bits of float32 numbers by their scales; see `encode_integers`.

    Their smallest normal number is two to the power of `least`, and `high` the largest.
    """
    top = np.uint32(8 - 1 if mantissa > 1 else 4 - 1)  # where the sign goes
    shift = np.uint32(23 - mantissa)
    half = np.uint32((np.uint32(1) << np.uint32(22 - mantissa)) - np.uint32(1))
    below = np.uint32(np.uint32(126 + least) << np.uint32(mantissa))
    normal = np.uint32(np.uint32(127 + least) << np.uint32(23)).view(np.float32)
    units = np.uint32(np.uint32(127 + mantissa - least) << np.uint32(23)).view(np.float32)
    most = np.float32(high)
    for run in range(len(scales)):
        scale = scales[run]
        source, target = x[run * length :][:length], out[run * length :][:length]
        is_zero = scale == ZERO
        for i in range(len(target)):
            number = source[i] / scale
            number = ZERO if is_zero or number != number else number  # noqa: PLR0124 — NaN
            magnitude = np.float32(min(abs(number), most))
            bits = magnitude.view(np.uint32)
            even = np.uint32(np.uint32(bits >> shift) & np.uint32(1))
            code = np.uint32(np.uint32(np.uint32(bits + half + even) >> shift) - below)
            small = np.uint32(np.int32(np.rint(min(magnitude, normal) * units)))
            code = small if magnitude < normal else code
            sign = np.uint32(np.uint32(np.float32(number).view(np.uint32) >> np.uint32(31)) << top)
            target[i] = np.uint8(code | sign)


@compiled_strictly
def magnitudes(x: Array, length: int, out: Array) -> None:
    """The largest magnitude of each run, or NaN where it has one; of float32 numbers.

    It is found among the bits as integers, as LLVM vectorizes no maximum of numbers that may be
    NaN.
    """
    bits = x.view(np.int32)
    for run in range(len(out)):
        top, part = np.int32(0), bits[run * length :][:length]
        for i in range(len(part)):
            top = max(top, np.int32(part[i] & np.int32(0x7FFF_FFFF)))
        out[run] = np.int32(top).view(np.float32)


@compiled_strictly
def pack(codes: Array, bits: int, out: Array) -> None:
    """Codes of 4 or 2 bits, bytes each, in the bytes of which they take a part."""
    if bits == 4:
        for i in range(len(out)):
            low, high = np.uint32(codes[2 * i]), np.uint32(codes[2 * i + 1])
            out[i] = np.uint8(np.uint32(low & np.uint32(15)) | np.uint32(high << np.uint32(4)))
    else:
        for i in range(len(out)):
            first, second = np.uint32(codes[4 * i]), np.uint32(codes[4 * i + 1])
            third, fourth = np.uint32(codes[4 * i + 2]), np.uint32(codes[4 * i + 3])
            low = np.uint32(first & np.uint32(3)) | np.uint32((second & np.uint32(3)) << 2)
            high = np.uint32(third & np.uint32(3)) | np.uint32((fourth & np.uint32(3)) << 2)
            out[i] = np.uint8(np.uint32(low) | np.uint32(np.uint32(high) << np.uint32(4)))


@compiled_strictly
def unpack(packed: Array, bits: int, is_signed: bool, out: Array) -> None:
    """Codes of 4 or 2 bits, bytes each, of the bytes that they share."""
    low = np.int32(1 << (bits - 1)) if is_signed else np.int32(0)
    if bits == 4:
        for i in range(len(packed)):
            byte = np.int32(packed[i])
            out[2 * i] = ((byte & 15) ^ low) - low
            out[2 * i + 1] = ((byte >> 4) ^ low) - low
    else:
        for i in range(len(packed)):
            byte = np.int32(packed[i])
            out[4 * i] = ((byte & 3) ^ low) - low
            out[4 * i + 1] = (((byte >> 2) & 3) ^ low) - low
            out[4 * i + 2] = (((byte >> 4) & 3) ^ low) - low
            out[4 * i + 3] = ((byte >> 6) ^ low) - low
