"""Samples of random numbers, and Philox4x32-10 once more, in plain Python.

The known answers are those of Random123 (https://github.com/DEShawResearch/random123, file
tests/kat_vectors), the library of the generator's authors.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from burn.aliases import Shape
from burn.dtype import (
    DType,
    Kind,
    bfloat16,
    float16,
    float32,
    float64,
    int8,
    int32,
    int64,
    uint32,
    uint64,
)
from burn.errors import ArgumentError, DTypeError, ShapeError
from burn.testing.op_samples import TESTED_DTYPE, Array, Sample, error, reference, sample

__all__ = ["KNOWN_ANSWERS", "philox_words"]

_WORD_MASK: Final = 0xFFFFFFFF
_PI: Final = 0x299F31D0_A4093822
_PI_COUNTER: Final = 0x03707344_13198A2E_85A308D3_243F6A88

KNOWN_ANSWERS: Final = {
    "zeros": (0, 0, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    "ones": ((1 << 64) - 1, (1 << 128) - 1, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    "digits of pi": (_PI, _PI_COUNTER, (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
}
"""Seed (the key), offset (the counter) and the four words of that block."""


def philox_words(seed: int, offset: int, count: int) -> list[int]:
    """`count` words of the blocks from `offset` on, as section 3.3 of the paper has them."""
    words: list[int] = []
    for block in range(offset, offset + -(-count // 4)):
        counter = [block >> shift & _WORD_MASK for shift in (0, 32, 64, 96)]
        key = [seed & _WORD_MASK, seed >> 32 & _WORD_MASK]
        for _ in range(10):
            high = [0xD2511F53 * counter[0] >> 32, 0xCD9E8D57 * counter[2] >> 32]
            low = [0xD2511F53 * counter[0] & _WORD_MASK, 0xCD9E8D57 * counter[2] & _WORD_MASK]
            counter = [
                high[1] ^ counter[1] ^ key[0],
                low[1],
                high[0] ^ counter[3] ^ key[1],
                low[0],
            ]
            key = [(key[0] + 0x9E3779B9) & _WORD_MASK, (key[1] + 0xBB67AE85) & _WORD_MASK]
        words += counter
    return words[:count]


def _bits(note: str, seed: int, offset: int, count: int) -> list[Sample]:
    attributes: dict[str, Any] = {"seed": seed, "offset": offset, "count": count}
    return [
        sample(f"{note}, {dtype}", kinds=dtype.kind, dtype=dtype, **attributes)
        for dtype in (uint32, int32)
    ]


@reference(
    "random_bits",
    kinds=Kind.INTEGER,
    samples=[
        bit
        for arguments in [
            *[(note, seed, offset, 4) for note, (seed, offset, _) in KNOWN_ANSWERS.items()],
            ("no words", 1, 0, 0),
            ("one word", 1, 0, 1),
            ("part of a block", 0x0123456789ABCDEF, 5, 7),
            ("many blocks", 42, 1000, 1000),
            ("second word counts on", 42, (1 << 32) - 2, 21),
            ("third word counts on", 42, (1 << 64) - 1, 9),
            ("fourth word counts on", 42, (1 << 96) - 1, 9),
        ]
        for bit in _bits(*arguments)
    ],
    errors=[
        error("of another dtype", DTypeError, seed=0, offset=0, count=4, dtype=int64),
        error("negative count", ShapeError, seed=0, offset=0, count=-1, dtype=uint32),
    ],
)
def _(*, seed: int, offset: int, count: int, dtype: DType) -> Array:
    del dtype
    return np.array(philox_words(seed, offset, count), np.uint64)


_STREAM: Final[dict[str, Any]] = {"seed": 42, "offset": 7, "dtype": TESTED_DTYPE}


def _fractions(count: int, seed: int, offset: int, dtype: DType) -> Array:
    """Uniform numbers in [0, 1), which the dtype holds exactly."""
    if dtype is float64:
        words = philox_words(seed, offset, 2 * count)
        numbers = [
            ((high >> 5 << 26) + (low >> 6)) * 2.0**-53
            for high, low in zip(words[::2], words[1::2], strict=True)
        ]
    else:
        bits = {float32: 24, float16: 11, bfloat16: 8}[dtype]
        words = philox_words(seed, offset, count)
        numbers = [(word >> (32 - bits)) * 2.0**-bits for word in words]
    return np.array(numbers, np.float64)


def _uniform(note: str, shape: Shape, low: float, high: float, **attributes: Any) -> Sample:
    return sample(note, shape=shape, low=low, high=high, **{**_STREAM, **attributes})


@reference(
    "random_uniform",
    kinds=Kind.FLOAT,
    samples=[
        _uniform("from 0 to 1", (3, 5), 0.0, 1.0),
        _uniform("0-d", (), 0.0, 1.0),
        _uniform("none", (0, 2), 0.0, 1.0),
        _uniform("range", (100,), -3.0, 5.0),
        _uniform("range that rounds", (100,), 0.1, 0.7),
        _uniform("narrow range far from 0", (200,), 1000.0, 1000.5),
        _uniform("a point", (3,), 2.5, 2.5),
        _uniform("many", (900,), 0.0, 1.0),
        _uniform("second word counts on", (9,), 0.0, 1.0, offset=(1 << 32) - 1),
        _uniform("large seed", (9,), 0.0, 1.0, seed=(1 << 64) - 1),
    ],
    errors=[
        error("integers", DTypeError, shape=(2,), low=0.0, high=1.0, **{**_STREAM, "dtype": int32}),
        error(
            "no range",
            ArgumentError,
            shape=(2,),
            low=1.0,
            high=0.0,
            **{**_STREAM, "dtype": float32},
        ),
        error(
            "infinite range",
            ArgumentError,
            shape=(2,),
            low=0.0,
            high=math.inf,
            **{**_STREAM, "dtype": float32},
        ),
        error(
            "negative length",
            ShapeError,
            shape=(-2,),
            low=0.0,
            high=1.0,
            **{**_STREAM, "dtype": float32},
        ),
    ],
    exact=True,
)
def _(*, shape: Shape, low: float, high: float, seed: int, offset: int, dtype: DType) -> Array:
    number = dtype.numpy.type
    numbers = _fractions(math.prod(shape), seed, offset, dtype).astype(dtype.numpy)
    if (low, high) != (0.0, 1.0):
        numbers = numbers * number(high - low) + number(low)
        below = np.nextafter(number(high), number(-math.inf))
        numbers = np.minimum(numbers, max(below, number(low)))
    return numbers.astype(np.float64).reshape(shape)


def _normal(note: str, shape: Shape, mean: float, std: float, **attributes: Any) -> Sample:
    return sample(note, shape=shape, mean=mean, std=std, **{**_STREAM, **attributes})


@reference(
    "random_normal",
    kinds=Kind.FLOAT,
    samples=[
        _normal("standard", (3, 4), 0.0, 1.0),
        _normal("odd count", (7,), 0.0, 1.0),
        _normal("0-d", (), 0.0, 1.0),
        _normal("none", (0,), 0.0, 1.0),
        _normal("mean and deviation", (100,), -2.0, 0.5),
        _normal("no deviation", (3,), 1.5, 0.0),
        _normal("many", (500,), 0.0, 1.0),
    ],
    errors=[
        error("integers", DTypeError, shape=(2,), mean=0.0, std=1.0, **{**_STREAM, "dtype": int32}),
        error(
            "negative deviation",
            ArgumentError,
            shape=(2,),
            mean=0.0,
            std=-1.0,
            **{**_STREAM, "dtype": float32},
        ),
        error(
            "infinite mean",
            ArgumentError,
            shape=(2,),
            mean=math.inf,
            std=1.0,
            **{**_STREAM, "dtype": float32},
        ),
    ],
)
def _(*, shape: Shape, mean: float, std: float, seed: int, offset: int, dtype: DType) -> Array:
    count = math.prod(shape)
    half = -(-count // 2)
    wide = float64 if dtype is float64 else float32
    fractions = _fractions(2 * half, seed, offset, wide)
    # The angle is a product in the dtype of the computation; what follows rounds as it likes.
    angles = (fractions[half:].astype(wide.numpy) * wide.numpy.type(2.0 * math.pi)).tolist()
    radii = [math.sqrt(-2.0 * math.log1p(-u)) for u in fractions[:half].tolist()]
    numbers = [r * math.cos(angle) for r, angle in zip(radii, angles, strict=True)]
    numbers += [r * math.sin(angle) for r, angle in zip(radii, angles, strict=True)]
    return np.array([mean + std * number for number in numbers[:count]]).reshape(shape)


def _integers(note: str, kinds: Kind, shape: Shape, low: int, high: int, **other: Any) -> Sample:
    return sample(note, kinds=kinds, shape=shape, low=low, high=high, **{**_STREAM, **other})


@reference(
    "random_integers",
    kinds=Kind.INTEGER,
    samples=[
        _integers("dice", Kind.INTEGER, (4, 5), 1, 7),
        _integers("0-d", Kind.INTEGER, (), 0, 100),
        _integers("none", Kind.INTEGER, (2, 0), 0, 100),
        _integers("one value", Kind.INTEGER, (3,), 5, 6),
        _integers("many", Kind.INTEGER, (900,), 0, 128),
        _integers("negative", Kind.INT, (100,), -128, 128),
        _integers("all of int32", Kind.INT, (50,), -(1 << 31), 1 << 31, dtype=int32),
        _integers("all of uint32", Kind.UINT, (50,), 0, 1 << 32, dtype=uint32),
        _integers("32 bits of int64", Kind.INT, (50,), 10, 10 + (1 << 32), dtype=int64),
        _integers("most of 32 bits", Kind.INT, (50,), -7, 3_000_000_000, dtype=int64),
        _integers("over 32 bits", Kind.INT, (50,), -5, 1 << 33, dtype=int64),
        _integers("63 bits", Kind.INT, (50,), 0, (1 << 63) - 1, dtype=int64),
        _integers("63 bits and a sign", Kind.INT, (50,), -(1 << 63) + 3, 1 << 63, dtype=int64),
        _integers("all of int64", Kind.INT, (50,), -(1 << 63), 1 << 63, dtype=int64),
        _integers("over 63 bits", Kind.UINT, (50,), 7, (1 << 64) - 9, dtype=uint64),
        _integers("all of uint64", Kind.UINT, (50,), 0, 1 << 64, dtype=uint64),
    ],
    errors=[
        error("floats", DTypeError, shape=(2,), low=0, high=2, **{**_STREAM, "dtype": float32}),
        error("no range", ArgumentError, shape=(2,), low=3, high=3, **{**_STREAM, "dtype": int32}),
        error(
            "beyond the dtype",
            ArgumentError,
            shape=(2,),
            low=0,
            high=129,
            **{**_STREAM, "dtype": int8},
        ),
    ],
)
def _(*, shape: Shape, low: int, high: int, seed: int, offset: int, dtype: DType) -> Array:
    count, span = math.prod(shape), high - low
    if span <= 1 << 32:
        numbers = [word * span >> 32 for word in philox_words(seed, offset, count)]
    else:
        words = philox_words(seed, offset, 2 * count)
        pairs = zip(words[::2], words[1::2], strict=True)
        numbers = [(first << 32 | second) * span >> 64 for first, second in pairs]
    kind = np.uint64 if dtype.kind is Kind.UINT else np.int64
    return np.array([low + number for number in numbers], kind).reshape(shape)
