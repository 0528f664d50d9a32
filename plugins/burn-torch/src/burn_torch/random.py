"""Philox4x32-10 on integer tensors, with words generated ahead.

The generator is counter-based: words generated ahead equal those that a later call generates.
torch's own generators are not used.
"""

from __future__ import annotations

import functools
from typing import Final

import torch

from burn.plugin_api import (
    PHILOX_KEY_STEPS,
    PHILOX_MULTIPLIERS,
    PHILOX_ROUNDS,
    UNIFORM_BITS,
    DeviceId,
    DType,
    Shape,
    float64,
    largest_below,
    size,
    uint32,
    uniform_words,
)
from burn_torch.base import TorchOps
from burn_torch.dtypes import TORCH_DTYPES, Tensor

_WORD_MASK: Final = 0xFFFFFFFF
_WORDS_AHEAD: Final = 1 << 16
_COUNTERS_PER_BLOCK: Final = 1 << 15
"""Philox counters of a block on the CPU, whose temporaries stay in its cache."""


class _Ahead:
    """Words of one seed from a counter on, as int64, and float32 numbers in [0, 1) of them."""

    def __init__(self, seed: int, first_block: int, device: torch.device) -> None:
        self.seed = seed
        self.first_block = first_block
        self.words = _philox(seed, first_block, _WORDS_AHEAD // 4, device)

    @functools.cached_property
    def fractions(self) -> Tensor:
        """Made once: most small draws are of float32."""
        return _fractions(self.words, torch.float32, 24)


class RandomOps(TorchOps):
    """Random numbers. The words generated ahead are one object, which threads replace whole."""

    _ahead: _Ahead | None = None

    def random_bits(
        self, *, seed: int, offset: int, count: int, dtype: DType, device: DeviceId
    ) -> Tensor:
        """Words generated ahead, or new words."""
        del device
        bits = self._words(seed, offset, count).to(torch.int32)
        return bits.view(torch.uint32) if dtype is uint32 else bits

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
    ) -> Tensor:
        """The arithmetic of the op, in one tensor."""
        del device
        count, native = size(shape), TORCH_DTYPES[dtype]
        if native is torch.float32 and count < _WORDS_AHEAD:
            ahead, start = self._store(seed, offset, count)
            numbers = ahead.fractions[start : start + count].clone()
        else:
            words = self._words(seed, offset, uniform_words(count, dtype))
            if dtype is float64:
                numbers = (words[0::2] >> 5).to(native)
                numbers *= 2.0**26
                numbers += words[1::2] >> 6
                numbers *= 2.0**-53
            else:
                numbers = _fractions(words, native, UNIFORM_BITS[dtype])
        numbers = numbers.reshape(shape)
        if (low, high) != (0.0, 1.0):
            number = dtype.numpy.type  # torch does not round a number to the dtype
            numbers *= float(number(high - low))
            numbers += float(number(low))
            numbers.clamp_(max=largest_below(high, low, dtype))
        return numbers

    def random_integers(
        self,
        *,
        shape: Shape,
        low: int,
        high: int,
        seed: int,
        offset: int,
        dtype: DType,
        device: DeviceId,
    ) -> Tensor:
        """The high words of products, for ranges of up to 32 bits."""
        del device
        span, count = high - low, size(shape)
        if span > _WORD_MASK + 1 or not dtype.is_integer:
            return self.decomposed(
                "random_integers",
                shape=shape,
                low=low,
                high=high,
                seed=seed,
                offset=offset,
                dtype=dtype,
            )
        numbers = self._words(seed, offset, count) * span
        numbers = (numbers >> 32).bitwise_and_(_WORD_MASK)
        numbers += low - (1 << 64) if low >= 1 << 63 else low
        native = TORCH_DTYPES[dtype]
        if native is torch.uint64:
            numbers = numbers.view(native)
        return numbers.reshape(shape).to(native)

    def _words(self, seed: int, offset: int, count: int) -> Tensor:
        """Read-only words from counter `offset` on, as int64."""
        if count >= _WORDS_AHEAD:
            return _philox(seed, offset, -(-count // 4), self.torch_device)[:count]
        ahead, start = self._store(seed, offset, count)
        return ahead.words[start : start + count]

    def _store(self, seed: int, offset: int, count: int) -> tuple[_Ahead, int]:
        """The store that has `count` words from counter `offset` on, and their first position."""
        ahead = self._ahead
        if ahead is not None and ahead.seed == seed:
            start = 4 * (offset - ahead.first_block)
            if 0 <= start <= _WORDS_AHEAD - count:
                return ahead, start
        ahead = self._ahead = _Ahead(seed, offset, self.torch_device)
        return ahead, 0


def _fractions(words: Tensor, dtype: torch.dtype, width: int) -> Tensor:
    """Uniform numbers in [0, 1) from the highest bits of the words."""
    numbers = (words >> (32 - width)).to(torch.float32)
    numbers *= 2.0**-width
    return numbers.to(dtype)


def _philox(seed: int, offset: int, blocks: int, device: torch.device) -> Tensor:
    """The words of `blocks` counters from `offset` on, as int64."""
    words = torch.empty((blocks, 4), dtype=torch.int64, device=device)
    step = _COUNTERS_PER_BLOCK if device.type == "cpu" else max(blocks, 1)
    for start in range(0, blocks, step):
        stop = min(start + step, blocks)
        _philox_blocks(seed, offset + start, words[start:stop])
    return words.reshape(-1)


def _philox_blocks(seed: int, offset: int, words: Tensor) -> None:
    """Ten rounds.

    A product may exceed 63 bits and become negative; only its bits are used.
    """
    counter = []
    carry = torch.arange(len(words), dtype=torch.int64, device=words.device)
    for shift in (0, 32, 64, 96):
        carry = carry + (offset >> shift & _WORD_MASK)
        counter.append(carry & _WORD_MASK)
        carry = carry >> 32
    c0, c1, c2, c3 = counter
    product0, product1 = torch.empty_like(c0), torch.empty_like(c0)
    k0, k1 = seed & _WORD_MASK, seed >> 32 & _WORD_MASK
    for _ in range(PHILOX_ROUNDS):
        torch.mul(c0, PHILOX_MULTIPLIERS[0], out=product0)
        torch.mul(c2, PHILOX_MULTIPLIERS[1], out=product1)
        torch.bitwise_right_shift(product1, 32, out=c0)
        c0.bitwise_xor_(c1).bitwise_xor_(k0).bitwise_and_(_WORD_MASK)
        torch.bitwise_right_shift(product0, 32, out=c2)
        c2.bitwise_xor_(c3).bitwise_xor_(k1).bitwise_and_(_WORD_MASK)
        torch.bitwise_and(product1, _WORD_MASK, out=c1)
        torch.bitwise_and(product0, _WORD_MASK, out=c3)
        k0, k1 = (k0 + PHILOX_KEY_STEPS[0]) & _WORD_MASK, (k1 + PHILOX_KEY_STEPS[1]) & _WORD_MASK
    for column, word in enumerate((c0, c1, c2, c3)):
        words[:, column] = word
