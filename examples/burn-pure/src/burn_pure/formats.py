"""Numbers of each dtype in memory: rounded or wrapped when they are written, and read back.

Arithmetic uses Python's numbers, and rounds once, when a result is written. Python's floats are
float64, whose 53 bits are at least twice the 24 of float32 plus two: so a sum, product, quotient or
square root of float32 numbers is rounded as if it had been computed exactly (Figueroa, 1995, "When
is double rounding innocuous?").
"""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from burn.plugin_api import DType, bfloat16, float16, float64

__all__ = ["Memory", "blank", "read", "round_to_odd", "rounded", "write"]

Memory: TypeAlias = "array[Any]"
"""A block of memory, with elements of one size."""

_CODES: Final = (
    {"bool": "B", "int8": "b", "int16": "h", "int32": "i", "int64": "q"}
    | {"uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q"}
    # Python has no arrays of 16-bit floats: their bits are stored as integers.
    | {"float16": "H", "bfloat16": "H", "float32": "f", "float64": "d"}
)


def blank(dtype: DType, count: int) -> Memory:
    """Memory for `count` elements, all bits 0."""
    return array(_CODES[dtype.name], bytes(count * dtype.itemsize))


def write(numbers: Iterable[Any], dtype: DType) -> Memory:
    """New memory with these numbers: floats rounded to nearest, integers wrapped around."""
    numbers = list(numbers)
    code = _CODES[dtype.name]
    if dtype is float16:
        return array(code, struct.pack(f"{len(numbers)}e", *map(_within_float16, numbers)))
    if dtype is bfloat16:
        return array(code, map(_upper_half, array("I", array("f", numbers).tobytes())))
    try:
        return array(code, numbers)
    except OverflowError:
        low, high = dtype.integer_range
        return array(code, [(number - low) % (high - low + 1) + low for number in numbers])


def read(memory: Memory, dtype: DType) -> list[Any]:
    """The numbers in memory; booleans are read as 0 and 1."""
    if dtype is float16:
        return list(struct.unpack(f"{len(memory)}e", memory))
    if dtype is bfloat16:
        return array("f", array("I", [bits << 16 for bits in memory]).tobytes()).tolist()
    return memory.tolist()


def rounded(number: Any, dtype: DType) -> Any:
    """A number as it is read back from memory."""
    return read(write([number], dtype), dtype)[0]


def round_to_odd(number: int, dtype: DType) -> float:
    """An integer as a float64 that later rounds to the float nearest to the integer.

    Rounded to the nearest float64, an integer of 64 bits may lie half-way between two float32
    numbers and then round the wrong way. So the bits that do not fit are cut off, and the last bit
    is set if any of them was (Boldo and Melquiond, 2008, "Emulation of FMA and correctly rounded
    sums").
    """
    excess = number.bit_length() - 53
    if excess <= 0 or dtype is float64:
        return float(number)
    lost = number & ((1 << excess) - 1)
    return math.ldexp(float(number >> excess | bool(lost)), excess)


def _within_float16(number: float) -> float:
    """The number, or infinity where it rounds to infinity, which `struct` refuses."""
    return number if -65520.0 < number < 65520.0 else number * math.inf


def _upper_half(bits: int) -> int:
    """The bits of the bfloat16 nearest to the float32 with these bits; ties to even."""
    if bits & 0x7FFFFFFF > 0x7F800000:
        return 0x7FC0  # rounding would carry some NaN into infinity
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
