"""Python numbers as the bits that kernels take as parameters."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from burn_opencl.dtypes import c_type_of

if TYPE_CHECKING:
    from burn.plugin_api import DType, Scalar

__all__ = ["as_signed", "rounded", "scalar_bits", "signed_scalar_bits", "storage_bits"]


def rounded(number: Scalar, dtype: DType) -> Any:
    """A number rounded to a dtype, as a NumPy scalar."""
    with np.errstate(all="ignore"):
        return dtype.numpy.type(number)


def scalar_bits(number: Scalar, dtype: DType) -> int:
    """Bits of a number rounded to a dtype, in the C type that the dtype is computed in."""
    if dtype.is_float:
        value = float(rounded(number, dtype))
        is_double = c_type_of(dtype) == "double"
        packed = struct.pack("=d", value) if is_double else struct.pack("=fI", value, 0)
        return int.from_bytes(packed, "little")
    return int(number) & 0xFFFFFFFFFFFFFFFF  # type: ignore[arg-type]  # it is an integer or a bool


def signed_scalar_bits(number: Scalar, dtype: DType) -> int:
    """The result of `scalar_bits` as a signed integer of 64 bits."""
    return as_signed(scalar_bits(number, dtype))


def as_signed(bits: int) -> int:
    """64 bits read as a signed integer."""
    return bits - (1 << 64) if bits >> 63 else bits


def storage_bits(number: Scalar, dtype: DType) -> int:
    """Bits of a number as an element of a dtype is stored."""
    return int.from_bytes(np.asarray(rounded(number, dtype)).tobytes(), "little")
