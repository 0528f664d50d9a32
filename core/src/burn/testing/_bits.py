"""Bits: whether two results are the same to the last bit, where a device repeats itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from burn.dtype import DType
from burn.testing.op_samples import Array

__all__ = ["bits", "differing_bits", "varies"]

_REPEATS: Final = 100
"""Eager calls in which an order of additions that differs from call to call shows."""


def bits(array: Array) -> tuple[DType, tuple[int, ...], bytes]:
    """Dtype, shape and bytes."""
    return DType.of(array.dtype), array.shape, array.tobytes()


def varies(eager: Callable[[], Sequence[Array]], index: int, expected: Array) -> bool:
    """Whether an output of eager calls has not the same bits each time.

    GPUs add up floats at equal indices in the order in which they come, and a library may choose
    another algorithm after the first call.
    """
    return any(bits(eager()[index]) != bits(expected) for _ in range(_REPEATS))


def differing_bits(
    found: Sequence[Array],
    expected: Sequence[Array],
    eager: Callable[[], Sequence[Array]],
) -> int | None:
    """Index of the first array with other bits than eager calls have each time; None if none is."""
    for index, pair in enumerate(zip(found, expected, strict=True)):
        if bits(pair[0]) != bits(pair[1]) and not varies(eager, index, pair[1]):
            return index
    return None
