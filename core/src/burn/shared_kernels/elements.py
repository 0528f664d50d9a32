"""Elements as the shared kernels know them: codes of dtypes, C types, and the bits of numbers."""

from __future__ import annotations

import struct
from typing import Any, Final

import numpy as np

from burn.aliases import Scalar
from burn.dtype import DType, Kind, complex128

__all__ = [
    "COMPLEX_TYPES",
    "DTYPE_CODES",
    "SCALAR_CODE",
    "WORD_CODES",
    "accumulator_dtype",
    "as_signed",
    "c_type_of",
    "divider",
    "rounded",
    "scalar_bits",
    "signed_scalar_bits",
    "storage_bits",
]

_CODED: Final = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "no dtype", "complex64", "complex128"),
)

DTYPE_CODES: Final = {name: code for code, name in enumerate(_CODED)}
"""Codes of the dtypes in the kernels (``sources/common.c``)."""

SCALAR_CODE: Final = DTYPE_CODES.pop("no dtype")
"""Stands for the dtype of an operand that is a number, or that is absent."""

WORD_CODES: Final = {
    1: DTYPE_CODES["uint8"],
    2: DTYPE_CODES["uint16"],
    4: DTYPE_CODES["uint32"],
    8: DTYPE_CODES["uint64"],
}
"""Codes of the dtypes as which elements of so many bytes are moved unchanged."""

COMPLEX_TYPES: Final = frozenset({"float2", "double2"})
"""C types of complex numbers."""

_DIVIDER_LIMIT: Final = 1 << 31

_DOUBLE: Final = struct.Struct("=d")
_FLOAT: Final = struct.Struct("=fI")
_WORD: Final = struct.Struct("=q")
_FLOAT_LIMIT: Final = 3.4e38
"""Numbers below this limit are finite in float32."""

_ACCUMULATORS: Final = {
    "float": "float32",
    "double": "float64",
    "long": "int64",
    "ulong": "uint64",
    "float2": "complex64",
    "double2": "complex128",
}


def c_type_of(dtype: DType) -> str:
    """C type in which elements are computed: float, double, long, ulong, float2 or double2."""
    if dtype.is_complex:
        return "double2" if dtype is complex128 else "float2"
    if dtype.is_float:
        return "double" if dtype.itemsize == 8 else "float"
    return "long" if dtype.kind is Kind.INT else "ulong"


def accumulator_dtype(dtype: DType) -> DType:
    """Dtype that keeps intermediate results of a dtype without rounding: that of its C type."""
    return DType.of(_ACCUMULATORS[c_type_of(dtype)])


def rounded(number: Scalar, dtype: DType) -> Any:
    """A number rounded to a dtype, as a NumPy scalar."""
    with np.errstate(all="ignore"):
        return dtype.numpy.type(number)


def scalar_bits(number: Scalar, dtype: DType) -> int:
    """Bits of a number rounded to a dtype, in the C type that the dtype is computed in."""
    return signed_scalar_bits(number, dtype) & 0xFFFFFFFFFFFFFFFF


def signed_scalar_bits(number: Scalar, dtype: DType) -> int:
    """The result of `scalar_bits` as a signed integer of 64 bits."""
    if not dtype.is_float:
        return as_signed(int(number) & 0xFFFFFFFFFFFFFFFF)  # type: ignore[arg-type]  # see Scalar
    if dtype.itemsize == 8:
        packed = _DOUBLE.pack(number)
    else:
        if dtype.itemsize == 2 or not -_FLOAT_LIMIT < number < _FLOAT_LIMIT:  # type: ignore[operator]
            number = float(rounded(number, dtype))
        packed = _FLOAT.pack(number, 0)
    bits: int = _WORD.unpack(packed)[0]
    return bits


def as_signed(bits: int) -> int:
    """64 bits read as a signed integer."""
    return bits - (1 << 64) if bits >> 63 else bits


def storage_bits(number: Scalar, dtype: DType) -> int:
    """Bits of a number as an element of a dtype is stored."""
    return int.from_bytes(np.asarray(rounded(number, dtype)).tobytes(), "little")


def divider(length: int) -> int:
    """The divider of a length for `quotient_by` in the kernels: the shift above the factor."""
    if not 0 < length < _DIVIDER_LIMIT:
        return 0  # kernels with 64-bit indices do not use it
    shift = (length - 1).bit_length()
    return shift << 32 | ((1 << 32) * ((1 << shift) - length) // length + 1)
