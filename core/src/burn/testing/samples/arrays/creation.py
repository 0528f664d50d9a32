"""Samples of tensors made of nothing but a few numbers."""

from __future__ import annotations

import math

import numpy as np

from burn.aliases import Scalar, Shape
from burn.dtype import DType, Kind, bool_
from burn.errors import ArgumentError, ShapeError
from burn.testing.op_samples import TESTED_DTYPE, Array, Sample, error, reference, sample


def _full(note: str, kinds: Kind, shape: Shape, value: Scalar) -> Sample:
    return sample(note, kinds=kinds, shape=shape, fill_value=value, dtype=TESTED_DTYPE)


@reference(
    "full",
    samples=[
        _full("0-d", Kind.FLOAT, (), 1.5),
        _full("matrix", Kind.FLOAT, (2, 3), -2.5),
        _full("empty", Kind.FLOAT, (2, 0), 1.0),
        _full("zero", Kind.FLOAT, (2,), 0.0),
        _full("minus zero", Kind.FLOAT, (2,), -0.0),
        _full("NaN", Kind.FLOAT, (2,), math.nan),
        _full("minus infinity", Kind.FLOAT, (2,), -math.inf),
        _full("integers", Kind.INTEGER, (2, 1, 3), 100),
        _full("negative integers", Kind.INT, (3,), -128),
        _full("integers, zero", Kind.INTEGER, (3,), 0),
        _full("integers, 0-d", Kind.INTEGER, (), 7),
        _full("true", Kind.BOOL, (2, 3), True),  # noqa: FBT003 — a value
        _full("false", Kind.BOOL, (), False),  # noqa: FBT003 — a value
    ],
    errors=[
        error("negative length", ShapeError, shape=(2, -1), fill_value=0, dtype=bool_),
        error("too many elements", ShapeError, shape=(1 << 32, 1 << 32), fill_value=0, dtype=bool_),
    ],
    exact=True,
)
def _(*, shape: Shape, fill_value: Scalar, dtype: DType) -> Array:
    del dtype
    result = np.empty(shape, type(fill_value))
    result[...] = fill_value
    return result


def _arange(note: str, kinds: Kind, start: Scalar, step: Scalar, length: int) -> Sample:
    return sample(note, kinds=kinds, start=start, step=step, length=length, dtype=TESTED_DTYPE)


@reference(
    "arange",
    kinds=Kind.NUMERIC,
    samples=[
        _arange("from 0", Kind.NUMERIC, 0, 1, 7),
        _arange("from 5 by 3", Kind.NUMERIC, 5, 3, 6),
        _arange("downwards", Kind.INT | Kind.FLOAT, 2, -4, 5),
        _arange("empty", Kind.NUMERIC, 3, 1, 0),
        _arange("one", Kind.NUMERIC, 3, 1, 1),
        _arange("up to the largest int8", Kind.NUMERIC, 0, 1, 128),
        _arange("fractions", Kind.FLOAT, -1.5, 0.25, 9),
        _arange("downwards in fractions", Kind.FLOAT, 0.5, -0.125, 9),
        _arange("long", Kind.FLOAT, 0.0, 0.5, 500),
        _arange("long in tenths", Kind.FLOAT, 0.0, 0.1, 1000),
    ],
    errors=[
        error("booleans", ArgumentError, start=0, step=1, length=2, dtype=bool_),
        error("negative length", ShapeError, start=0, step=1, length=-1, dtype=DType.of("int32")),
    ],
)
def _(*, start: Scalar, step: Scalar, length: int, dtype: DType) -> Array:
    del dtype
    return np.array([start + index * step for index in range(length)])


def _eye(note: str, rows: int, columns: int, offset: int) -> Sample:
    return sample(
        note, kinds=Kind.REAL, rows=rows, columns=columns, offset=offset, dtype=TESTED_DTYPE
    )


@reference(
    "eye",
    samples=[
        _eye("square", 3, 3, 0),
        _eye("wide", 2, 4, 1),
        _eye("tall", 4, 2, -1),
        _eye("offset beyond the matrix", 2, 2, 5),
        _eye("no rows", 0, 3, 0),
        _eye("no columns", 3, 0, 0),
    ],
    errors=[
        error("negative rows", ShapeError, rows=-1, columns=2, offset=0, dtype=DType.of("int32"))
    ],
    exact=True,
)
def _(*, rows: int, columns: int, offset: int, dtype: DType) -> Array:
    del dtype
    return np.array(
        [[column - row == offset for column in range(columns)] for row in range(rows)]
    ).reshape(rows, columns)
