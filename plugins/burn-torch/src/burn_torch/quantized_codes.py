"""Codes and scales of quantized tensors by torch: packed words, and the numbers of codes."""

from __future__ import annotations

import sys
from typing import Any, Final, NamedTuple

import torch

from burn.plugin_api import QuantScheme, QuantValue, ScaleDType
from burn_torch.dtypes import Tensor

__all__ = [
    "FLOAT8",
    "READS_WORDS",
    "codes_as_bytes",
    "converts_float8",
    "factor_of",
    "numbers_of_codes",
    "numbers_of_scales",
    "packed",
    "unpacked",
    "write_field",
    "write_numbers",
]

READS_WORDS: Final = sys.byteorder == "little"
"""Whether the bytes of a word have the order of its codes, which the functions here assume."""

FLOAT8: Final[dict[QuantValue, torch.dtype]] = {
    QuantValue.E4M3: torch.float8_e4m3fn,
    QuantValue.E5M2: torch.float8_e5m2,
}
"""Values that are dtypes of torch."""

_SCALES: Final[dict[ScaleDType, Any]] = {
    ScaleDType.UE8M0: getattr(torch, "float8_e8m0fnu", None),  # since torch 2.7
    ScaleDType.UE4M3: torch.float8_e4m3fn,
}


class _Format(NamedTuple):
    """How the bits of a float of few bits become those of a float16.

    Attributes
    ----------
    sign : int
        The bit of the sign.
    shift : int
        From the other bits to the exponent and mantissa of a float16.
    factor : float
        From that float16 to the number: a power of two, as the biases of the exponents differ.
    """

    sign: int
    shift: int
    factor: float


_FORMATS: Final = {
    QuantValue.E4M3: _Format(0x80, 7, 2.0**8),
    QuantValue.E5M2: _Format(0x80, 8, 1.0),
    QuantValue.E2M1: _Format(0x08, 9, 2.0**14),
}
_SIGN_OF_BYTE: Final = 0x80
_SIGN_OF_FLOAT16: Final = 0x8000

_NAN_OF_E4M3: Final = 0x7F


def codes_as_bytes(values: Tensor, scheme: QuantScheme) -> Tensor:
    """Words that are packed along the last axis as bytes, in the same memory if it is dense."""
    return _dense(values).view(torch.uint8 if scheme.value.is_float else torch.int8)


def unpacked(values: Tensor, scheme: QuantScheme) -> Tensor:
    """The codes, an element for each."""
    if scheme.per_word == 1:
        return values
    axis, bits = scheme.store.axis, scheme.value.bits
    words = codes_as_bytes(values.movedim(axis, -1), scheme)
    if bits == 8:
        return words.movedim(-1, axis)
    codes = words.new_empty((*words.shape, 8 // bits))
    for position in range(8 // bits):
        write_field(words, position, bits, codes[..., position])
    return codes.flatten(-2).movedim(-1, axis)


def write_field(words: Tensor, position: int, bits: int, out: Tensor) -> None:
    """Write the codes at one position of all bytes; those of integers with their signs."""
    if words.dtype is torch.uint8:
        torch.bitwise_right_shift(words, bits * position, out=out)
        out.bitwise_and_((1 << bits) - 1)
        return
    later = 8 - bits * (position + 1)  # bits of the codes that follow
    if later:
        words = torch.bitwise_left_shift(words, later, out=out)
    torch.bitwise_right_shift(words, 8 - bits, out=out)  # keeps the sign


def packed(codes: Tensor, scheme: QuantScheme) -> Tensor:
    """Codes as the scheme stores them."""
    if scheme.per_word == 1:
        return codes
    axis, bits = scheme.store.axis, scheme.value.bits
    words = _dense(codes.movedim(axis, -1)).view(torch.uint8)
    if bits < 8:
        parts = (
            words.view(*words.shape[:-1], words.shape[-1] * bits // 8, 8 // bits)
            .bitwise_and((1 << bits) - 1)
            .unbind(-1)
        )
        words = parts[0].clone()
        for position, part in enumerate(parts[1:], 1):
            words.bitwise_or_(part.bitwise_left_shift(bits * position))
    if scheme.store.kind == "packed_u32":
        words = _as_uint32(words)
    return words.movedim(-1, axis)


def _dense(x: Tensor) -> Tensor:
    """A tensor in whose last axis elements are neighbours, as views of another size need it."""
    return x if x.stride(-1) == 1 else x.clone(memory_format=torch.contiguous_format)


def _as_uint32(words: Tensor) -> Tensor:
    """Bytes as words of four, in the same memory if each lies at a multiple of four."""
    size = torch.uint32.itemsize
    if not words.numel():
        shape = (*words.shape[:-1], words.shape[-1] // size)
        return torch.empty(shape, dtype=torch.uint32, device=words.device)
    if any(item % size for item in (words.storage_offset(), *words.stride()[:-1])):
        words = words.clone(memory_format=torch.contiguous_format)
    return words.view(torch.uint32)


def factor_of(value: QuantValue) -> float:
    """What `write_numbers` leaves out: a power of two."""
    return _FORMATS[value].factor if value.is_float else 1.0


def write_numbers(codes: Tensor, value: QuantValue, out: Tensor) -> None:
    """Write the numbers of codes divided by `factor_of`, in float32 or float64.

    Torch converts float8 one by one on a CPU, and float16 in vectors.
    """
    if not value.is_float:
        out.copy_(codes)
        return
    sign, shift, _ = _FORMATS[value]
    if sign == _SIGN_OF_BYTE:
        bits = codes.view(torch.int8).to(torch.int16)  # copies the sign to the bits above
    else:
        bits = codes.to(torch.int16).bitwise_xor_(sign).sub_(sign)  # likewise
    bits.bitwise_left_shift_(shift)
    above = _SIGN_OF_FLOAT16 - (sign << shift)  # bits between the sign and the exponent
    if above:
        bits.bitwise_and_(~above)
    out.copy_(bits.view(torch.float16))
    if value is QuantValue.E4M3 and codes.numel():
        magnitudes = codes.bitwise_and(_NAN_OF_E4M3)
        if int(magnitudes.amax()) == _NAN_OF_E4M3:
            out.masked_fill_(magnitudes == _NAN_OF_E4M3, torch.nan)


def numbers_of_codes(codes: Tensor, value: QuantValue, dtype: torch.dtype) -> Tensor:
    """The numbers of codes, an element for each, as float32 or float64."""
    if value in FLOAT8 and codes.is_cuda:
        return codes.view(FLOAT8[value]).to(dtype)
    result = torch.empty(codes.shape, dtype=dtype, device=codes.device)
    write_numbers(codes, value, result)
    factor = factor_of(value)
    return result if factor == 1.0 else result.mul_(factor)


def numbers_of_scales(scales: Tensor, kind: ScaleDType, dtype: torch.dtype) -> Tensor | None:
    """Scales as float32 or float64; None for a dtype that torch does not have on the device."""
    if kind not in _SCALES:
        return scales.to(dtype)
    found = _SCALES[kind]
    if found is None or not converts_float8(scales):
        return None
    return scales.view(found).to(torch.float32).to(dtype)


def converts_float8(x: Tensor) -> bool:
    """Whether torch converts floats of 8 bits on the device of a tensor."""
    return x.is_cpu or x.is_cuda
