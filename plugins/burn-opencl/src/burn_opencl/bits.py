"""Python numbers as the bits that kernels are told."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from burn.dtype import DType
from burn_opencl.expressions import class_of

if TYPE_CHECKING:
    from burn.aliases import Scalar

__all__ = ["number_bits", "rounded", "signed", "signed_bits", "word_bits"]


def rounded(number: Scalar, dtype: DType) -> Any:
    """A number as the dtype has it."""
    with np.errstate(all="ignore"):
        return dtype.numpy.type(number)


def number_bits(number: Scalar, dtype: DType) -> int:
    """A number as the kernels are told it: in the type that they compute in."""
    computed = class_of(dtype)
    if dtype.is_float:
        value = float(rounded(number, dtype))
        packed = struct.pack("=fI", value, 0) if computed == "float" else struct.pack("=d", value)
        return int.from_bytes(packed, "little")
    return int(number) & 0xFFFFFFFFFFFFFFFF  # type: ignore[arg-type]  # it is an integer or a bool


def signed_bits(number: Scalar, dtype: DType) -> int:
    """What `number_bits` gives as an integer of 64 bits with a sign."""
    return signed(number_bits(number, dtype))


def signed(bits: int) -> int:
    """64 bits as an integer with a sign."""
    return bits - (1 << 64) if bits >> 63 else bits


def word_bits(number: Scalar, dtype: DType) -> int:
    """The bits of a number in a dtype."""
    return int.from_bytes(np.asarray(rounded(number, dtype)).tobytes(), "little")
