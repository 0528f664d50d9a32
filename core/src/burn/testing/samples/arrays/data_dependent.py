"""Samples of ops whose output shape depends on data."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from burn.dtype import DType, float32, int32
from burn.errors import ArgumentError, DTypeError, ShapeError
from burn.testing.arrays import (
    LIMITS,
    SPECIAL,
    booleans,
    expanded,
    floats,
    integers,
    reversed_view,
    strided,
    transposed,
)
from burn.testing.op_samples import INDEX_DTYPE, Array, error, reference, sample
from burn.testing.samples.elementwise.elementwise_samples import is_nan

_INDEX: Final[dict[str, Any]] = {"dtype": INDEX_DTYPE}


@reference(
    "argwhere",
    samples=[
        sample("booleans", booleans(3, 4), **_INDEX),
        sample("vector", booleans(9), **_INDEX),
        sample("three axes", booleans(2, 3, 4), **_INDEX),
        sample("0-d, true", np.array(True), **_INDEX),  # noqa: FBT003 — a value
        sample("0-d, false", np.array(False), **_INDEX),  # noqa: FBT003 — a value
        sample("none", np.zeros((2, 3), np.bool_), **_INDEX),
        sample("all", np.ones((2, 3), np.bool_), **_INDEX),
        sample("empty", booleans(0, 3), **_INDEX),
        sample("transposed", transposed(booleans(3, 4)), **_INDEX),
        sample("strided", strided(booleans(3, 4)), **_INDEX),
        sample("expanded", expanded(booleans(4), 3, 4), **_INDEX),
        sample("special floats", SPECIAL, **_INDEX),
        sample("integers", reversed_view(integers(3, 4, low=0, high=3)), **_INDEX),
        sample("as int32", booleans(5), dtype=int32),
    ],
    errors=[error("float indices", DTypeError, booleans(3), dtype=float32, lenient=True)],
)
def _(x: Array, *, dtype: DType) -> Array:
    del dtype
    indices = [index for index in np.ndindex(x.shape) if x[index]]
    return np.array(indices, np.int64).reshape(len(indices), x.ndim)


@reference(
    "unique_indices",
    samples=[
        sample("floats", np.trunc(floats(4, 5)), **_INDEX),
        sample("0-d", floats(), **_INDEX),
        sample("empty", floats(0, 3), **_INDEX),
        sample("NaN", np.array([math.nan, 1.0, math.nan, math.inf, 1.0]), **_INDEX),
        sample("zeros of both signs", np.array([0.0, -0.0, 0.0]), **_INDEX),
        sample("views", transposed(np.trunc(floats(4, 5))), **_INDEX),
        sample("integers", strided(integers(4, 5, low=-3, high=3)), **_INDEX),
        sample("integer limits", np.concatenate([LIMITS, LIMITS]), **_INDEX),
        sample("booleans", booleans(9), **_INDEX),
        sample("as int32", integers(9), dtype=int32),
    ],
    errors=[error("float indices", DTypeError, floats(3), dtype=float32, lenient=True)],
)
def _(x: Array, *, dtype: DType) -> tuple[Array, Array, Array]:
    del dtype
    values = x.reshape(-1).tolist()
    order = sorted(
        range(len(values)), key=lambda index: (is_nan(values[index]), *_comparable(values[index]))
    )
    first: list[int] = []
    counts: list[int] = []
    inverse = np.zeros(len(values), np.int64)
    for index in order:
        if not first or values[first[-1]] != values[index]:
            first.append(index)
            counts.append(0)
        counts[-1] += 1
        inverse[index] = len(first) - 1
    return np.array(first, np.int64), inverse.reshape(x.shape), np.array(counts, np.int64)


def _comparable(value: Any) -> tuple[Any, ...]:
    return () if is_nan(value) else (value.real, value.imag)


_ROWS: Final = np.array([[1.0, 2.0], [0.0, 5.0], [1.0, -2.0], [1.0, 2.0], [0.0, 5.0]])
_WITH_NAN: Final = np.array([[math.nan, 1.0], [2.0, math.nan], [math.nan, 1.0], [2.0, 0.0]])


@reference(
    "unique_rows_indices",
    samples=[
        sample("floats", _ROWS, **_INDEX),
        sample("one column", np.trunc(floats(9, 1)), **_INDEX),
        sample("many columns", np.repeat(booleans(5, 40), 2, axis=0), **_INDEX),
        sample("empty", floats(0, 3), **_INDEX),
        sample("rows of nothing", floats(3, 0), **_INDEX),
        sample("NaN", _WITH_NAN, **_INDEX),
        sample("equal NaN", _WITH_NAN, equal_nan=True, **_INDEX),
        sample("zeros of both signs", np.array([[0.0, 1.0], [-0.0, 1.0]]), **_INDEX),
        sample("views", transposed(np.trunc(floats(4, 2))), **_INDEX),
        sample("integers", strided(integers(8, 2, low=-1, high=2)), **_INDEX),
        sample("integer limits", np.concatenate([LIMITS, LIMITS]).reshape(-1, 1), **_INDEX),
        sample("equal NaN of integers", integers(4, 2, low=0, high=2), equal_nan=True, **_INDEX),
        sample("booleans", booleans(9, 2), **_INDEX),
        sample("as int32", integers(9, 1), dtype=int32),
    ],
    errors=[
        error("a vector", ShapeError, floats(3), dtype=int32),
        error("float indices", DTypeError, floats(3, 1), dtype=float32, lenient=True),
    ],
)
def _(x: Array, *, equal_nan: bool = False, dtype: DType) -> tuple[Array, Array, Array]:
    del dtype
    rows = x.tolist()
    keys = [tuple((is_nan(item), *_comparable(item)) for item in row) for row in rows]
    first: list[int] = []
    counts: list[int] = []
    inverse = np.zeros(len(rows), np.int64)
    for index in sorted(range(len(rows)), key=keys.__getitem__):
        is_equal = bool(first) and keys[first[-1]] == keys[index]
        if not is_equal or (not equal_nan and any(map(is_nan, rows[index]))):
            first.append(index)
            counts.append(0)
        counts[-1] += 1
        inverse[index] = len(first) - 1
    return np.array(first, np.int64), inverse, np.array(counts, np.int64)


@reference(
    "repeat_indices",
    samples=[
        sample("some", np.array([2, 0, 1, 3]), **_INDEX),
        sample("none", np.zeros(3, np.int64), **_INDEX),
        sample("empty", np.zeros(0, np.int64), **_INDEX),
        sample("a view", reversed_view(np.array([2, 0, 1])), **_INDEX),
        sample("uint8", np.array([200, 1], np.uint8), **_INDEX),
        sample("as int32", np.array([2, 0, 1]), dtype=int32),
    ],
    errors=[
        error("a matrix", ShapeError, np.array([[1]]), dtype=int32),
        error("a negative count", ArgumentError, np.array([1, -1]), dtype=int32, in_data=True),
        error("float counts", DTypeError, floats(2), dtype=int32),
        error("float indices", DTypeError, np.array([1]), dtype=float32, lenient=True),
    ],
)
def _(counts: Array, *, dtype: DType) -> Array:
    del dtype
    return np.array(
        [index for index, count in enumerate(counts.tolist()) for _ in range(count)], np.int64
    )
