"""Random numbers as a function of (seed, offset): the same on every backend.

The generator is Philox4x32-10 of J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, "Parallel
random numbers: as easy as 1, 2, 3" (SC11, 2011). The 64-bit seed is its key; the offset counts its
128-bit blocks. Core keeps both per device (`burn.generator`); backends are stateless.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from burn.dtype import (
    DType,
    DTypeUsage,
    bfloat16,
    float16,
    float32,
    float64,
    int32,
    int64,
    uint32,
)
from burn.errors import ArgumentError, DTypeError
from burn.ops.op import Tag, op
from burn.ops.shapes import check_shape, size
from burn.ops.signature import (
    Integer,
    Meta,
    Number,
    Primitive,
    RuntimeInteger,
    Shape,
    TargetDType,
    TargetShape,
)
from burn.ops.table import OpTable
from burn.public_calls import shown_value

__all__ = [
    "PHILOX_KEY_STEPS",
    "PHILOX_MULTIPLIERS",
    "PHILOX_ROUNDS",
    "UNIFORM_BITS",
    "largest_below",
    "philox_state",
    "signed_word",
    "uniform_words",
]

PHILOX_ROUNDS: Final = 10
PHILOX_MULTIPLIERS: Final = (0xD2511F53, 0xCD9E8D57)
PHILOX_KEY_STEPS: Final = (0x9E3779B9, 0xBB67AE85)

_RANDOM: Final = Tag.CREATION | Tag.RANDOM | Tag.NO_GRADIENT
_WORD_MASK: Final = 0xFFFFFFFF
_HALF_MASK: Final = 0xFFFF
_INT64_SIGN_BIT: Final = 1 << 63

UNIFORM_BITS: Final = {float16: 11, bfloat16: 8, float32: 24, float64: 53}
"""Random bits in a uniform number of each dtype: as many as its significand holds."""


def signed_word(number: int) -> int:
    """The signed integer of 64 bits that has the lowest bits of a number, as kernels take it."""
    return (number + _INT64_SIGN_BIT) % (2 * _INT64_SIGN_BIT) - _INT64_SIGN_BIT


def philox_state(seed: int, offset: int) -> tuple[int, int, int]:
    """The key, and the lower and upper half of the counter, as signed integers of 64 bits."""
    return signed_word(seed), signed_word(offset), signed_word(offset >> 64)


def uniform_words(count: int, dtype: DType) -> int:
    """32-bit words that `count` uniform numbers of a dtype consume."""
    return 2 * count if dtype is float64 else count


def normal_words(count: int, dtype: DType) -> int:
    """32-bit words that `count` normal numbers of a dtype consume: two uniforms for each pair."""
    return uniform_words(2 * -(-count // 2), dtype)


def integer_words(count: int, low: int, high: int) -> int:
    """32-bit words that `count` integers from a range consume."""
    return count if high - low <= _WORD_MASK + 1 else 2 * count


@op(_RANDOM)
def random_bits(
    *, seed: RuntimeInteger, offset: RuntimeInteger, count: Integer, dtype: TargetDType
) -> Meta:
    """`count` random 32-bit words as uint32, or as int32 with the same bits.

    They are the words of the Philox blocks from `offset` on, in order.
    """
    if dtype not in (uint32, int32):
        raise DTypeError(f"random bits are uint32 or int32, not {dtype}")
    return Meta(check_shape((count,)), dtype)


@random_bits.decomposition
def _(ops: OpTable, *, seed: int, offset: int, count: int, dtype: DType) -> Primitive:
    blocks = -(-count // 4)
    bits = _Bits(ops, dtype)
    counter = bits.counter(offset, blocks)
    key = [seed & _WORD_MASK, seed >> 32 & _WORD_MASK]
    for _ in range(PHILOX_ROUNDS):
        c0, c1, c2, c3 = counter
        high0, low0 = bits.product(c0, PHILOX_MULTIPLIERS[0])
        high1, low1 = bits.product(c2, PHILOX_MULTIPLIERS[1])
        counter = [
            bits.xor(ops.bitwise_xor(high1, c1), key[0]),
            low1,
            bits.xor(ops.bitwise_xor(high0, c3), key[1]),
            low0,
        ]
        key = [(word + weyl) & _WORD_MASK for word, weyl in zip(key, PHILOX_KEY_STEPS, strict=True)]
    columns = [ops.reshape(word, shape=(blocks, 1)) for word in counter]
    words = ops.reshape(ops.concat(columns, axis=1), shape=(4 * blocks,))
    return ops.slice(words, slices=((0, count, 1),))


class _Bits:
    """Arithmetic on 32-bit words held as uint32 or int32, through products of 16-bit halves."""

    def __init__(self, ops: OpTable, dtype: DType) -> None:
        self.ops = ops
        self.dtype = dtype

    def constant(self, word: int) -> int:
        """The Python number that has these bits in the dtype."""
        return word - (1 << 32) if self.dtype is int32 and word >> 31 else word

    def counter(self, offset: int, blocks: int) -> list[Primitive]:
        """The four words of the block numbers ``offset + i``."""
        ops, low = self.ops, offset & _WORD_MASK
        index = ops.arange(start=0, step=1, length=blocks, dtype=self.dtype)
        words = [ops.add(index, self.constant(low))]
        wraps_at = _WORD_MASK + 1 - low
        for shift in (32, 64, 96):
            word = offset >> shift & _WORD_MASK
            same = ops.full(shape=(blocks,), fill_value=self.constant(word), dtype=self.dtype)
            if wraps_at < blocks:
                next_word = self.constant((offset + wraps_at) >> shift & _WORD_MASK)
                same = ops.where(ops.less(index, wraps_at), same, next_word)
            words.append(same)
        return words

    def xor(self, x: Primitive, word: int) -> Primitive:
        """Exclusive or with a constant."""
        return self.ops.bitwise_xor(x, self.constant(word))

    def wide(self, x: Primitive) -> Primitive:
        """A word as int64; the sign that an int32 word carries is not extended."""
        return self.ops.bitwise_and(self.ops.cast(x, dtype=int64), _WORD_MASK)

    def cast(self, x: Primitive, dtype: DType) -> Primitive:
        """A word as a number of another integer dtype, modulo its range."""
        return self.ops.cast(self.wide(x) if dtype.itemsize > 4 else x, dtype=dtype)

    def top(self, x: Primitive, count: int) -> Primitive:
        """The highest `count` bits as a number."""
        shifted = self.ops.bitwise_right_shift(x, 32 - count)
        return self.ops.bitwise_and(shifted, (1 << count) - 1)

    def product(self, x: Primitive, factor: int) -> tuple[Primitive, Primitive]:
        """High and low word of the 64-bit product with a 32-bit constant."""
        ops = self.ops
        low, high = factor & _HALF_MASK, factor >> 16
        x_low = ops.bitwise_and(x, _HALF_MASK)
        x_high = self.top(x, 16)
        lowest = ops.multiply(x_low, low)
        cross = ops.add(ops.multiply(x_high, low), self.top(lowest, 16))
        other = ops.add(ops.multiply(x_low, high), ops.bitwise_and(cross, _HALF_MASK))
        top = ops.add(ops.multiply(x_high, high), self.top(cross, 16))
        return ops.add(top, self.top(other, 16)), ops.multiply(x, self.constant(factor))


def _bits(ops: OpTable, seed: int, offset: int, count: int) -> tuple[_Bits, Primitive]:
    has_words = DTypeUsage.GENERAL in ops.backend.dtype_usage(ops.device, uint32)
    dtype = uint32 if has_words else int32
    words = ops.random_bits(seed=seed, offset=offset, count=count, dtype=dtype)
    return _Bits(ops, dtype), words


@op(_RANDOM)
def random_uniform(
    *,
    shape: TargetShape,
    low: Number,
    high: Number,
    seed: RuntimeInteger,
    offset: RuntimeInteger,
    dtype: TargetDType,
) -> Meta:
    """Uniform numbers in [low, high).

    The highest bits of a word, as many as the significand of the dtype holds, over their number
    (two words for float64: 27 bits of the first, 26 of the second).
    """
    if dtype not in UNIFORM_BITS:
        raise DTypeError(f"uniform numbers are floats, not {dtype}")
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ArgumentError(
            f"the range from {low} to {high}", hint="It must be finite, low <= high"
        )
    return Meta(check_shape(shape), dtype)


@random_uniform.decomposition
def _(
    ops: OpTable, *, shape: Shape, low: float, high: float, seed: int, offset: int, dtype: DType
) -> Primitive:
    count = size(shape)
    bits, words = _bits(ops, seed, offset, uniform_words(count, dtype))
    if dtype is float64:
        pairs = ops.reshape(words, shape=(count, 2))
        first = bits.top(ops.slice(pairs, slices=((0, count, 1), (0, 1, 1))), 27)
        second = bits.top(ops.slice(pairs, slices=((0, count, 1), (1, 1, 1))), 26)
        fraction = ops.add(
            ops.multiply(ops.cast(first, dtype=dtype), 2.0**-27),
            ops.multiply(ops.cast(second, dtype=dtype), 2.0**-53),
        )
    else:
        width = UNIFORM_BITS[dtype]
        fraction = ops.multiply(ops.cast(bits.top(words, width), dtype=dtype), 2.0**-width)
    fraction = ops.reshape(fraction, shape=shape)
    if (low, high) == (0.0, 1.0):
        return fraction
    scaled = ops.add(_product(ops, fraction, high - low), low)
    return ops.minimum(scaled, largest_below(high, low, dtype))


def _product(ops: OpTable, x: Primitive, number: float) -> Primitive:
    """A product rounded to its dtype, also by programs: these round 16-bit floats only by casts."""
    dtype = ops.dtype(x)
    if dtype.itemsize > 2:
        return ops.multiply(x, number)
    wide = ops.multiply(ops.cast(x, dtype=float32), float(dtype.numpy.type(number)))
    return ops.cast(wide, dtype=dtype)


def largest_below(high: float, low: float, dtype: DType) -> float:
    """Largest value of a dtype below `high`: rounding must not reach the open end of a range."""
    kind = dtype.numpy.type
    below = float(np.nextafter(kind(high), kind(-math.inf)))
    return max(below, float(kind(low)))


@op(_RANDOM)
def random_normal(
    *,
    shape: TargetShape,
    mean: Number,
    std: Number,
    seed: RuntimeInteger,
    offset: RuntimeInteger,
    dtype: TargetDType,
) -> Meta:
    """Normal numbers by the transform of Box and Muller (1958).

    With uniform numbers u in [0, 1), those of the first half of the pairs and v, those of the
    second: ``sqrt(-2 log(1 - u))`` times ``cos(2 pi v)``, then times ``sin(2 pi v)``. float16 and
    bfloat16 are computed in float32.
    """
    if dtype not in UNIFORM_BITS:
        raise DTypeError(f"normal numbers are floats, not {dtype}")
    if not (0 <= std < math.inf and math.isfinite(mean)):
        raise ArgumentError(
            f"mean {mean} and standard deviation {std}",
            hint="Both must be finite, and the deviation must not be negative",
        )
    return Meta(check_shape(shape), dtype)


@random_normal.decomposition
def _(
    ops: OpTable, *, shape: Shape, mean: float, std: float, seed: int, offset: int, dtype: DType
) -> Primitive:
    count = size(shape)
    half = -(-count // 2)
    wide = float32 if dtype.itemsize < 4 else dtype
    uniform = ops.random_uniform(
        shape=(2 * half,), low=0.0, high=1.0, seed=seed, offset=offset, dtype=wide
    )
    u = ops.slice(uniform, slices=((0, half, 1),))
    v = ops.slice(uniform, slices=((half, half, 1),))
    radius = ops.sqrt(ops.multiply(ops.log(ops.subtract(1.0, u)), -2.0))
    angle = ops.multiply(v, 2.0 * math.pi)
    pairs = [ops.multiply(radius, ops.cos(angle)), ops.multiply(radius, ops.sin(angle))]
    numbers = ops.slice(ops.concat(pairs, axis=0), slices=((0, count, 1),))
    numbers = ops.add(ops.multiply(numbers, std), mean)
    return ops.cast(ops.reshape(numbers, shape=shape), dtype=dtype)


@op(_RANDOM)
def random_integers(
    *,
    shape: TargetShape,
    low: Integer,
    high: Integer,
    seed: RuntimeInteger,
    offset: RuntimeInteger,
    dtype: TargetDType,
) -> Meta:
    """Integers in [low, high): the high word of a random word times the length of the range."""
    smallest, largest = dtype.integer_range if dtype.is_integer else (0, 0)
    if not dtype.is_integer:
        raise DTypeError(f"random integers are integers, not {dtype}")
    if not smallest <= low < high <= largest + 1:
        raise ArgumentError(
            f"the range from {shown_value(low)} to {shown_value(high)} for {dtype}",
            hint=f"It must hold a number and lie in {smallest} to {largest + 1}",
        )
    return Meta(check_shape(shape), dtype)


@random_integers.decomposition
def _(
    ops: OpTable, *, shape: Shape, low: int, high: int, seed: int, offset: int, dtype: DType
) -> Primitive:
    span, count = high - low, size(shape)
    bits, words = _bits(ops, seed, offset, integer_words(count, low, high))
    if span <= _WORD_MASK:
        numbers = bits.cast(bits.product(words, span)[0], dtype)
    elif span == _WORD_MASK + 1:
        numbers = bits.cast(words, dtype)
    else:
        numbers = _wide_product(ops, bits, words, span, dtype)
    return ops.reshape(ops.add(numbers, low), shape=shape)


def _wide_product(
    ops: OpTable, bits: _Bits, words: Primitive, span: int, dtype: DType
) -> Primitive:
    """High 64 bits of a random 64-bit number times `span`, which is 2**64 at most."""
    pairs = ops.reshape(words, shape=(words.shape[0] // 2, 2))
    rows = words.shape[0] // 2
    wide = bits.wide

    def part(column: int) -> Primitive:
        chosen = ops.slice(pairs, slices=((0, rows, 1), (column, 1, 1)))
        return ops.reshape(chosen, shape=(rows,))

    high, low = part(0), part(1)
    if span >> 64:  # every number of 64 bits
        return ops.cast(ops.add(ops.bitwise_left_shift(wide(high), 32), wide(low)), dtype=dtype)
    span_high, span_low = span >> 32, span & _WORD_MASK
    ll_high, _ = bits.product(low, span_low)
    lh_high, lh_low = bits.product(low, span_high)
    hl_high, hl_low = bits.product(high, span_low)
    hh_high, hh_low = bits.product(high, span_high)
    carry = ops.add(ops.add(wide(ll_high), wide(lh_low)), wide(hl_low))
    middle = ops.add(ops.add(wide(lh_high), wide(hl_high)), wide(hh_low))
    middle = ops.add(middle, ops.bitwise_right_shift(carry, 32))
    top = ops.bitwise_left_shift(wide(hh_high), 32)
    return ops.cast(ops.add(top, middle), dtype=dtype)
