"""Draws of ops that make tensors."""

from __future__ import annotations

import math

from burn.dtype import Kind, int32, uint32
from burn.testing.draws._draw import Draw, Sort, draws
from burn.testing.op_samples import TESTED_DTYPE, Sample, sample

_OFFSETS = ((1 << 32) - 3, (1 << 64) - 2, (1 << 33) + 5, (1 << 96) - 1, 12)
"""Counters that carry into the next word after a few blocks, and that need more than one."""


@draws("full")
def _(draw: Draw) -> Sample | None:
    shape = draw.shape()
    return sample("", shape=shape, fill_value=draw.among(3, 1, 0), dtype=TESTED_DTYPE)


@draws("random_uniform", "random_normal")
def _(draw: Draw) -> Sample | None:
    """Odd numbers of elements, seeds of 64 bits, and counters that carry."""
    if draw.op.name == "random_uniform":
        interval = dict(zip(("low", "high"), draw.among((0.0, 1.0), (-2.0, 3.0)), strict=True))
    else:  # far from 0, where a sum with the mean cancels no digits
        interval = dict(zip(("mean", "std"), draw.among((0.0, 1.0), (64.0, 3.0)), strict=True))
    shape = (70_001,) if draw.sort is Sort.HUGE else draw.shape()
    return sample(
        "",
        shape=shape if math.prod(shape) else (3,),
        seed=draw.random.getrandbits(64),
        offset=_OFFSETS[draw.number % len(_OFFSETS)],
        dtype=TESTED_DTYPE,
        **interval,
    )


@draws("random_bits")
def _(draw: Draw) -> Sample | None:
    """Many blocks, from counters that carry."""
    return sample(
        "",
        seed=draw.random.getrandbits(64),
        offset=_OFFSETS[draw.number % len(_OFFSETS)],
        count=70_001 if draw.sort is Sort.HUGE else draw.among(5001, 1025, 4096, 7),
        dtype=int32 if draw.kind is Kind.INT else uint32,
    )


@draws("random_integers")
def _(draw: Draw) -> Sample | None:
    low, high = draw.among((0, 7), (3, 100))
    return sample(
        "",
        shape=draw.shape(),
        low=low,
        high=high,
        seed=draw.random.getrandbits(64),
        offset=_OFFSETS[draw.number % len(_OFFSETS)],
        dtype=TESTED_DTYPE,
    )
