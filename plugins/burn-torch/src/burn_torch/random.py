"""Philox4x32-10 in the integers of torch, generated ahead.

The generator is counter-based, so words that were generated ahead are those that a later call
would have made: nobody can tell. torch's own generators, and their seeds, are not touched.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

import torch

from burn.dtype import float64, uint32
from burn.ops.random import (
    MULTIPLIERS,
    ROUNDS,
    UNIFORM_BITS,
    WEYL,
    largest_below,
    uniform_words,
)
from burn.ops.shapes import size
from burn_torch.defaults import DefaultOps
from burn_torch.dtypes import TORCH, Tensor

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn.device_id import DeviceId
    from burn.dtype import DType

_WORD: Final = 0xFFFFFFFF
_WORDS_AHEAD: Final = 1 << 16
_BLOCKS_AT_ONCE: Final = 1 << 15
"""128-bit blocks worked on together on the CPU, so that they stay in its cache."""


class _Ahead:
    """Words from a block on, of one seed, as int64; and the float32 numbers in [0, 1) they make."""

    def __init__(self, seed: int, first_block: int, place: torch.device) -> None:
        self.seed = seed
        self.first_block = first_block
        self.words = _philox(seed, first_block, _WORDS_AHEAD // 4, place)

    @functools.cached_property
    def fractions(self) -> Tensor:
        """Made once for all small draws: most of them want these."""
        return _fractions(self.words, torch.float32, 24)


class RandomOps(DefaultOps):
    """Random numbers. The last words generated ahead are kept, in one object that is replaced."""

    _ahead: _Ahead | None = None

    def random_bits(
        self, *, seed: int, offset: int, count: int, dtype: DType, device: DeviceId
    ) -> Tensor:
        """Words from the store, or generated."""
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
        """The arithmetic of the op, in place."""
        del device
        count, native = size(shape), TORCH[dtype]
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
            number = dtype.numpy.type  # torch computes with a number before it is rounded
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
        if span > _WORD + 1 or not dtype.is_integer:
            return self.decomposed(  # type: ignore[no-any-return]  # a primitive
                "random_integers",
                shape=shape,
                low=low,
                high=high,
                seed=seed,
                offset=offset,
                dtype=dtype,
            )
        numbers = self._words(seed, offset, count) * span
        numbers = (numbers >> 32).bitwise_and_(_WORD)
        numbers += low - (1 << 64) if low >= 1 << 63 else low
        native = TORCH[dtype]
        if native is torch.uint64:
            numbers = numbers.view(native)
        return numbers.reshape(shape).to(native)

    def _words(self, seed: int, offset: int, count: int) -> Tensor:
        """Words from block `offset` on, as int64; not to be written to."""
        if count >= _WORDS_AHEAD:
            return _philox(seed, offset, -(-count // 4), self.place)[:count]
        ahead, start = self._store(seed, offset, count)
        return ahead.words[start : start + count]

    def _store(self, seed: int, offset: int, count: int) -> tuple[_Ahead, int]:
        """The store that has `count` words from block `offset` on, and where they begin in it."""
        ahead = self._ahead
        if ahead is not None and ahead.seed == seed:
            start = 4 * (offset - ahead.first_block)
            if 0 <= start <= _WORDS_AHEAD - count:
                return ahead, start
        ahead = self._ahead = _Ahead(seed, offset, self.place)
        return ahead, 0


def _fractions(words: Tensor, dtype: torch.dtype, width: int) -> Tensor:
    """Uniform numbers in [0, 1) from the highest bits of the words."""
    numbers = (words >> (32 - width)).to(torch.float32)
    numbers *= 2.0**-width
    return numbers.to(dtype)


def _philox(seed: int, offset: int, blocks: int, place: torch.device) -> Tensor:
    """The words of `blocks` blocks from `offset` on, as int64."""
    words = torch.empty((blocks, 4), dtype=torch.int64, device=place)
    at_once = _BLOCKS_AT_ONCE if place.type == "cpu" else max(blocks, 1)
    for start in range(0, blocks, at_once):
        stop = min(start + at_once, blocks)
        _philox_blocks(seed, offset + start, words[start:stop])
    return words.reshape(-1)


def _philox_blocks(seed: int, offset: int, words: Tensor) -> None:
    """Ten rounds, in place.

    A product may exceed 63 bits: its bits are right, and the sign that they make is not used.
    """
    counter = []
    carry = torch.arange(len(words), dtype=torch.int64, device=words.device)
    for shift in (0, 32, 64, 96):
        carry = carry + (offset >> shift & _WORD)
        counter.append(carry & _WORD)
        carry = carry >> 32
    c0, c1, c2, c3 = counter
    product0, product1 = torch.empty_like(c0), torch.empty_like(c0)
    k0, k1 = seed & _WORD, seed >> 32 & _WORD
    for _ in range(ROUNDS):
        torch.mul(c0, MULTIPLIERS[0], out=product0)
        torch.mul(c2, MULTIPLIERS[1], out=product1)
        torch.bitwise_right_shift(product1, 32, out=c0)
        c0.bitwise_xor_(c1).bitwise_xor_(k0).bitwise_and_(_WORD)
        torch.bitwise_right_shift(product0, 32, out=c2)
        c2.bitwise_xor_(c3).bitwise_xor_(k1).bitwise_and_(_WORD)
        torch.bitwise_and(product1, _WORD, out=c1)
        torch.bitwise_and(product0, _WORD, out=c3)
        k0, k1 = (k0 + WEYL[0]) & _WORD, (k1 + WEYL[1]) & _WORD
    for column, word in enumerate((c0, c1, c2, c3)):
        words[:, column] = word
