"""Philox4x32-10 by native code or NumPy, in blocks that stay in the cache, and ahead.

The generator is counter-based: words generated ahead equal those that a later call generates.
"""

from __future__ import annotations

import functools
from typing import Final

import numpy as np

from burn.plugin_api import (
    PHILOX_KEY_STEPS,
    PHILOX_MULTIPLIERS,
    PHILOX_ROUNDS,
    UNIFORM_BITS,
    DeviceId,
    DType,
    Shape,
    float32,
    float64,
    largest_below,
    size,
    uint32,
    uniform_words,
)
from burn_cpu.base import Array, CpuOps
from burn_cpu.compilation import compiler

_WORD_MASK: Final = 0xFFFFFFFF
_WORDS_AHEAD: Final = 1 << 16
_COUNTERS_PER_BLOCK: Final = 1 << 14
"""Philox counters of a block: its six temporaries fill 768 KiB and stay in the cache."""

_WORDS_PER_BLOCK: Final = 1 << 15
"""Words converted to floats at a time, for the same reason."""


class _Ahead:
    """Words of one seed from a counter on, and the float32 numbers in [0, 1) made of them."""

    def __init__(self, seed: int, first_block: int) -> None:
        self.seed = seed
        self.first_block = first_block
        self.words = _philox(seed, first_block, _WORDS_AHEAD // 4)

    @functools.cached_property
    def fractions(self) -> Array:
        """Made once: most small draws are of float32."""
        return _fractions(self.words, float32)


class RandomOps(CpuOps):
    """Random numbers. The words generated ahead are one object, which threads replace whole."""

    _ahead: _Ahead | None = None

    def random_bits(
        self, *, seed: int, offset: int, count: int, dtype: DType, device: DeviceId
    ) -> Array:
        """A copy of words generated ahead, or new words."""
        del device
        words = self._words(seed, offset, count)
        return words.copy() if dtype is uint32 else words.view(np.int32).copy()

    def random_uniform(
        self,
        *,
        shape: Shape,
        low: float,
        high: float,
        seed: int,
        offset: int,
        dtype: DType,
        device: DeviceId,
    ) -> Array:
        """The arithmetic of the op, in one array."""
        del device
        count = size(shape)
        if dtype is float32 and count < _WORDS_AHEAD:
            ahead, start = self._store(seed, offset, count)
            numbers = ahead.fractions[start : start + count].copy().reshape(shape)
        else:
            words = self._words(seed, offset, uniform_words(count, dtype))
            numbers = _fractions(words, dtype).reshape(shape)
        if (low, high) != (0.0, 1.0):
            number = dtype.numpy.type
            numbers *= number(high - low)
            numbers += number(low)
            np.minimum(numbers, number(largest_below(high, low, dtype)), out=numbers)
        return numbers

    def _words(self, seed: int, offset: int, count: int) -> Array:
        """Read-only words from counter `offset` on."""
        if count >= _WORDS_AHEAD:
            return _philox(seed, offset, -(-count // 4))[:count]
        ahead, start = self._store(seed, offset, count)
        return ahead.words[start : start + count]

    def _store(self, seed: int, offset: int, count: int) -> tuple[_Ahead, int]:
        """The store that has `count` words from counter `offset` on, and their first position."""
        ahead = self._ahead
        if ahead is not None and ahead.seed == seed:
            start = 4 * (offset - ahead.first_block)
            if 0 <= start <= _WORDS_AHEAD - count:
                return ahead, start
        ahead = self._ahead = _Ahead(seed, offset)
        return ahead, 0


def _fractions(words: Array, dtype: DType) -> Array:
    """Uniform numbers in [0, 1) from the highest bits of the words."""
    if dtype is float64:
        high = (words[0::2] >> np.uint32(5)).astype(np.float64)
        high *= 2.0**26
        high += words[1::2] >> np.uint32(6)
        high *= 2.0**-53
        return high
    width = UNIFORM_BITS[dtype]
    shift, scale = np.uint32(32 - width), np.float32(2.0**-width)
    numbers = np.empty(len(words), np.float32)
    work = np.empty(min(len(words), _WORDS_PER_BLOCK), np.uint32)
    for start in range(0, len(words), _WORDS_PER_BLOCK):
        part = words[start : start + _WORDS_PER_BLOCK]
        target = numbers[start : start + _WORDS_PER_BLOCK]
        target[...] = np.right_shift(part, shift, out=work[: len(part)])
        target *= scale
    return numbers if dtype is float32 else numbers.astype(dtype.numpy)


def _philox(seed: int, offset: int, blocks: int) -> Array:
    """The words of `blocks` counters from `offset` on, as uint32."""
    machine = compiler()
    if machine is not None:
        from burn_cpu.native_random import philox

        return philox(machine, seed, offset, blocks)
    words = np.empty((blocks, 4), np.uint32)
    for start in range(0, blocks, _COUNTERS_PER_BLOCK):
        stop = min(start + _COUNTERS_PER_BLOCK, blocks)
        _philox_blocks(seed, offset + start, words[start:stop])
    return words.reshape(-1)


def _philox_blocks(seed: int, offset: int, words: Array) -> None:
    """Ten rounds on words held in 64 bits, so that a product is one multiplication."""
    count = len(words)
    index = np.arange(count, dtype=np.uint64)
    low = index + np.uint64(offset & _WORD_MASK)
    counter = [low & np.uint64(_WORD_MASK)]
    carry = low >> np.uint64(32)
    for shift in (32, 64, 96):
        word = carry + np.uint64(offset >> shift & _WORD_MASK)
        counter.append(word & np.uint64(_WORD_MASK))
        carry = word >> np.uint64(32)
    c0, c1, c2, c3 = counter
    product0, product1 = np.empty_like(c0), np.empty_like(c0)
    k0, k1 = seed & _WORD_MASK, seed >> 32 & _WORD_MASK
    mask, half = np.uint64(_WORD_MASK), np.uint64(32)
    for _ in range(PHILOX_ROUNDS):
        np.multiply(c0, np.uint64(PHILOX_MULTIPLIERS[0]), out=product0)
        np.multiply(c2, np.uint64(PHILOX_MULTIPLIERS[1]), out=product1)
        np.right_shift(product1, half, out=c0)
        c0 ^= c1
        c0 ^= np.uint64(k0)
        np.right_shift(product0, half, out=c2)
        c2 ^= c3
        c2 ^= np.uint64(k1)
        np.bitwise_and(product1, mask, out=c1)
        np.bitwise_and(product0, mask, out=c3)
        k0, k1 = (k0 + PHILOX_KEY_STEPS[0]) & _WORD_MASK, (k1 + PHILOX_KEY_STEPS[1]) & _WORD_MASK
    for column, word in enumerate((c0, c1, c2, c3)):
        words[:, column] = word
