"""Arrays for samples: values that are the same in each run, and views of every layout."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from burn.testing.op_samples import Array

__all__ = [
    "LIMITS",
    "LONG_LENGTH",
    "NEIGHBOURS",
    "SPECIAL",
    "booleans",
    "complexes",
    "expanded",
    "floats",
    "integers",
    "long",
    "matrix_transposed",
    "pairs",
    "reversed_view",
    "strided",
    "transposed",
]

_GOLDEN_RATIO: Final = (math.sqrt(5.0) - 1.0) / 2.0

SPECIAL: Final = np.array([math.nan, math.inf, -math.inf, 0.0, -0.0])
"""NaN, infinities and zeros of both signs."""

LIMITS: Final = np.array(
    [
        0,
        1,
        -1,
        2,
        -(2**60) - 1,
        2**53 + 1,
        127,
        -128,
        255,
        32767,
        -32768,
        2**31 - 1,
        -(2**31),
        2**63 - 1,
        -(2**63),
    ]
)
"""Integers that, wrapped around, are the smallest and largest of some dtype.

Two others are those that no float64 holds.
"""

LONG_LENGTH: Final = 2 * 64 + 15
"""Elements of any dtype that fill two of the widest vector registers, and leave a remainder.

Libraries have other code for what fills their registers than for the elements that are left over,
and often for two registers at a time. The widest are of 64 bytes, the narrowest dtypes of one.
"""

NEIGHBOURS: Final = np.array([2**53 + 1, 2**53 + 2, 2**53, 2**53 + 1])
"""Integers of which two have the same float64."""


def long(values: Array) -> Array:
    """`values` again and again, `LONG_LENGTH` elements of them."""
    return np.resize(values, LONG_LENGTH)


def pairs(values: Array) -> tuple[Array, Array]:
    """Each value with each other, as two arrays of one length, `LONG_LENGTH` at least."""
    length = max(LONG_LENGTH, values.size**2)
    first, second = np.repeat(values, values.size), np.tile(values, values.size)
    return np.resize(first, length), np.resize(second, length)


def floats(*shape: int, low: float = -2.0, high: float = 2.0, phase: float = 0.3) -> Array:
    """Distinct float64 values between `low` and `high`, spread evenly and in no order."""
    count = math.prod(shape)
    fraction = (phase + np.arange(count) * _GOLDEN_RATIO) % 1.0
    return np.asarray((low + fraction * (high - low)).reshape(shape))


def complexes(*shape: int, low: float = -2.0, high: float = 2.0, phase: float = 0.3) -> Array:
    """Distinct complex128 values with parts between `low` and `high`."""
    real = floats(*shape, low=low, high=high, phase=phase)
    return np.asarray(real + 1j * floats(*shape, low=low, high=high, phase=phase + 0.37))


def integers(*shape: int, low: int = -9, high: int = 10, phase: float = 0.3) -> Array:
    """Values of int64 from `low` up to, but without, `high`, in no order."""
    return np.asarray(np.floor(floats(*shape, low=low, high=high, phase=phase)), np.int64)


def booleans(*shape: int, phase: float = 0.3) -> Array:
    """True and false in no order."""
    return np.asarray(floats(*shape, low=0.0, high=1.0, phase=phase) < 0.5)


def strided(array: Array) -> Array:
    """The same values as every second element of a longer array, along every axis."""
    longer = np.full([2 * length for length in array.shape], array.dtype.type(99))
    view = longer[(slice(None, None, 2),) * array.ndim]
    view[...] = array
    return view


def reversed_view(array: Array) -> Array:
    """The same values in memory backwards: strides are negative."""
    return np.flip(np.ascontiguousarray(np.flip(array)))


def transposed(array: Array) -> Array:
    """The same values, the first axis the fastest in memory."""
    return np.asfortranarray(array)


def matrix_transposed(array: Array) -> Array:
    """The same values, each matrix of the last two axes stored by columns."""
    return np.ascontiguousarray(array.swapaxes(-1, -2)).swapaxes(-1, -2)


def expanded(array: Array, *shape: int) -> Array:
    """Repeated without a copy: strides are 0."""
    return np.broadcast_to(array, shape)
