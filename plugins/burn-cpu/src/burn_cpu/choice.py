"""Selection by a mask without branches, up to ten times as fast as `numpy.where`.

It computes on the bits of the elements as integers, which a mask of 0 and 1 keeps or clears.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from burn_cpu.base import Array
from burn_cpu.blocks import MIN_ELEMENTS_FOR_BLOCKS, map_elements

_BITS: Final[dict[int, Any]] = {2: np.dtype(np.int16), 4: np.dtype(np.int32), 8: np.dtype(np.int64)}


def choose(condition: Array, x1: Any, x2: Any) -> Array:
    """`numpy.where` of arrays of one dtype, or of an array and a number."""
    arrays = [tensor for tensor in (x1, x2) if isinstance(tensor, np.ndarray)]
    if (
        condition.size < MIN_ELEMENTS_FOR_BLOCKS
        or not arrays
        or arrays[0].dtype.kind == "c"
        or any(array.shape != condition.shape for array in arrays)
        or arrays[0].dtype.itemsize not in _BITS
    ):
        if len(arrays) == 1:  # a number does not widen it, whatever NumPy makes of bfloat16 and it
            x1, x2 = (np.asarray(tensor, arrays[0].dtype) for tensor in (x1, x2))
        return np.where(condition, x1, x2)
    bits = _BITS[arrays[0].dtype.itemsize]
    if len(arrays) == 2:
        return map_elements(_either, x1, condition, x2, widen=False)
    number = np.asarray(x2 if arrays[0] is x1 else x1, arrays[0].dtype).view(bits)[()]
    takes_array = arrays[0] is x1

    def array_or_number(x: Array, condition: Array, out: Array) -> None:
        target = out.view(bits)
        mask = condition if takes_array else np.logical_not(condition)
        if number == 0:
            np.multiply(x.view(bits), mask, out=target)
            return
        np.bitwise_xor(x.view(bits), number, out=target)
        target *= mask
        target ^= number

    return map_elements(array_or_number, arrays[0], condition, widen=False)


def _either(x1: Array, condition: Array, x2: Array, out: Array) -> None:
    bits = _BITS[out.itemsize]
    target = out.view(bits)
    np.bitwise_xor(x1.view(bits), x2.view(bits), out=target)
    target *= condition
    target ^= x2.view(bits)


def fill(x: Array, mask: Array, value: float) -> None:
    """Write a number to the elements of `x` where `mask` is true."""
    bits = _BITS[x.itemsize]
    number = np.asarray(value, x.dtype).view(bits)[()]
    target = x.view(bits)
    target ^= number
    target *= np.logical_not(mask)
    target ^= number
