"""Sorts of samples: what is special about the operands and attributes of one, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from burn.testing.op_samples import Array, Sample

__all__ = ["LARGE", "sorts_of"]

LARGE: Final = "floats whose exponential is too large"
"""The sort of samples in which float64 may differ from float32 by more than its precision."""

_MANY_AXES: Final = 4
"""Axes of a tensor that are many."""

_THREE: Final = 3
"""Axes to reduce beyond which libraries have no other code."""

_FAR: Final = 1e30
"""Floats that a product of two of them in float32 cannot hold."""

_LARGE: Final = 88.8
"""Floats whose exponential float32 cannot hold."""

_SEVERAL: Final = ("several axes", "three axes")
"""Sorts by how many axes an op reduces."""

_NOTED: Final = ("wrap around", "powers of integers")
"""What the note of a sample says where only its result is special."""

_NOT_ONE: Final = ("dilation", "groups", "stride", "output_padding")
"""Attributes that most calls leave at 1, or at 0."""


def sorts_of(one: Sample) -> frozenset[str]:
    """What is special about a sample.

    Examples
    --------
    >>> from burn.testing.op_samples import sample
    >>> import numpy as np
    >>> sorted(sorts_of(sample("a window", np.full((2, 1, 4, 4), np.nan), dilation=(2, 2))))
    ['NaN', 'dilation', 'many axes']
    """
    found = {sort for array in _arrays(one.operands) for sort in _of_array(array)}
    for name, value in one.attributes.items():
        found.update(_of_attribute(name, value))
    found.update([f"NaN along {axes}" for axes in _SEVERAL if {"NaN", axes} <= found])
    found.update([words for words in _NOTED if words in one.note])
    return frozenset(found)


def _arrays(operands: Any) -> Iterator[Array]:
    for operand in operands:
        if isinstance(operand, list):
            yield from _arrays(operand)
        elif isinstance(operand, (np.ndarray, int, float)):
            yield np.asarray(operand)


def _of_array(array: Array) -> Iterator[str]:
    if array.ndim >= _MANY_AXES:
        yield "many axes"
    if not array.size:
        yield "no elements"
        return
    if not array.flags.c_contiguous:
        yield "strides"
    if array.dtype.kind == "f":
        yield from _of_floats(array)
    elif array.dtype.kind == "i":
        yield from _of_integers(array)


def _of_floats(array: Array) -> Iterator[str]:
    if np.isnan(array).any():
        yield "NaN"
    if np.isinf(array).any():
        yield "infinities"
    finite = array[np.isfinite(array)].astype(float)
    if (np.abs(finite) > _FAR).any():
        yield "large exponents"
    if (finite > _LARGE).any():
        yield LARGE


def _of_integers(array: Array) -> Iterator[str]:
    floats = array.astype(float)
    if (np.abs(floats) >= 1 << 31).any():
        yield "64 bits"
    if np.unique(floats).size < np.unique(array).size:
        yield "integers that are one as floats"


def _of_attribute(name: str, value: Any) -> Iterator[str]:
    values = value if isinstance(value, tuple) else (value,)
    numbers = [value for value in values if type(value) is int]
    if name in ("axis", "axes") and len(numbers) > 1:
        yield "several axes"
        if len(numbers) >= _THREE:
            yield "three axes"
    if name in _NOT_ONE and any(
        number > 1 or (number and name == "output_padding") for number in numbers
    ):
        yield name
    if type(value) is bool and value:
        yield f"{name} is true"
    if isinstance(value, str):
        yield f"{name} {value}"
