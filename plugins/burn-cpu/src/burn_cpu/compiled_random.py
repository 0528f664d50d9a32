"""Philox4x32-10, which numba compiles."""

from __future__ import annotations

from typing import Final

import numpy as np

from burn.plugin_api import PHILOX_KEY_STEPS, PHILOX_MULTIPLIERS, PHILOX_ROUNDS
from burn_cpu.base import Array
from burn_cpu.compiled_base import compiled_exactly

__all__ = ["philox"]

_ROUNDS: Final = PHILOX_ROUNDS
_MULTIPLIER_0, _MULTIPLIER_1 = map(np.uint64, PHILOX_MULTIPLIERS)
_STEP_0, _STEP_1 = map(np.uint64, PHILOX_KEY_STEPS)
_MASK, _HALF, _CARRY = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(1)


@compiled_exactly
def philox(key: Array, counter: Array, words: Array) -> None:
    """Write four words for each counter from one on.

    Parameters
    ----------
    key : array of uint64, shape (2,)
        The words of the seed.
    counter : array of uint64, shape (2,)
        The lower and the upper 64 bits of the first counter.
    words : array of uint32, shape (count, 4)
        The words.
    """
    low, high = counter[0], counter[1]
    for i in range(len(words)):
        c0, c1, c2, c3 = low & _MASK, low >> _HALF, high & _MASK, high >> _HALF
        k0, k1 = key[0], key[1]
        for _ in range(_ROUNDS):
            product0, product1 = c0 * _MULTIPLIER_0, c2 * _MULTIPLIER_1
            c0, c1 = (product1 >> _HALF) ^ c1 ^ k0, product1 & _MASK
            c2, c3 = (product0 >> _HALF) ^ c3 ^ k1, product0 & _MASK
            k0, k1 = (k0 + _STEP_0) & _MASK, (k1 + _STEP_1) & _MASK
        line = words[i]
        line[0], line[1], line[2], line[3] = (
            np.uint32(c0),
            np.uint32(c1),
            np.uint32(c2),
            np.uint32(c3),
        )
        low += _CARRY
        if low == np.uint64(0):
            high += _CARRY
