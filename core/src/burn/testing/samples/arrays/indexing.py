"""Samples of reading and writing at indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn.errors import AxisError, DTypeError, OutOfRangeError, ShapeError
from burn.testing.arrays import (
    LIMITS,
    booleans,
    expanded,
    floats,
    integers,
    reversed_view,
    strided,
    transposed,
)
from burn.testing.op_samples import Array, error, reference, sample

_ROWS = np.array([[2, 0, 1, 2], [0, 0, -1, -3]])
"""Indices along an axis of length 3: repeated, the last from behind, and the first from behind."""


_ONE_WRONG = np.append(np.zeros(999, np.int64), 3)
"""More indices than a kernel looks at in one of its groups, of which the last is out of range."""


@reference(
    "gather",
    samples=[
        sample("vector", floats(5), np.array([4, 0, 0, -5, -1]), axis=0),
        sample("first axis", floats(3, 4), _ROWS, axis=0),
        sample("last axis", floats(4, 3), _ROWS.T, axis=1),
        sample("middle axis", floats(2, 3, 2), integers(2, 5, 2, low=-3, high=3), axis=1),
        sample("more than there are", floats(2, 1), np.zeros((2, 4), np.int64), axis=1),
        sample("no indices", floats(3, 4), np.zeros((0, 4), np.int64), axis=0),
        sample("empty tensor, no indices", floats(0, 4), np.zeros((0, 4), np.int64), axis=0),
        sample("transposed", transposed(floats(3, 4)), transposed(_ROWS), axis=0),
        sample("strided", strided(floats(3, 4)), reversed_view(_ROWS), axis=0),
        sample("expanded indices", floats(3, 4), expanded(np.array([[2], [-2]]), 2, 4), axis=0),
        sample("indices of int32", floats(3, 4), _ROWS.astype(np.int32), axis=0),
        sample("indices of int8", floats(3, 4), _ROWS.astype(np.int8), axis=0),
        sample("indices of uint8", floats(3, 4), abs(_ROWS % 3).astype(np.uint8), axis=0),
        sample("longer than int8", floats(200), np.array([-1, -128, 127], np.int8), axis=0),
        sample("special floats", np.array([np.nan, -0.0, np.inf]), np.array([1, 0, 2, 0]), axis=0),
        sample("integers", integers(3, 4), _ROWS, axis=0),
        sample("integer limits", LIMITS, np.array([-1, 3, 0]), axis=0),
        sample("booleans", booleans(3, 4), _ROWS, axis=0),
    ],
    errors=[
        error("rank differs", ShapeError, floats(3, 4), np.array([0]), axis=0),
        error("other lengths differ", ShapeError, floats(3, 4), np.array([[0, 1]]), axis=0),
        error("axis out of range", AxisError, floats(3), np.array([0]), axis=1),
        error("no axis", AxisError, floats(), np.array(0), axis=0),
        error("float indices", DTypeError, floats(3), floats(2), axis=0),
        error("index n", OutOfRangeError, floats(3), np.array([0, 3]), axis=0, in_data=True),
        error("index n after many", OutOfRangeError, floats(3), _ONE_WRONG, axis=0, in_data=True),
        error("index -n-1", OutOfRangeError, floats(3), np.array([-4, 0]), axis=0, in_data=True),
        error("empty axis", OutOfRangeError, floats(0), np.array([0]), axis=0, in_data=True),
    ],
    exact=True,
)
def _(x: Array, indices: Array, *, axis: int) -> Array:
    result = np.empty(indices.shape, x.dtype)
    for index in np.ndindex(indices.shape):
        result[index] = x[_moved(index, indices, axis)]
    return result


def _moved(index: tuple[int, ...], indices: Array, axis: int) -> tuple[int, ...]:
    """An index of the output with the index into `axis` that `indices` has for it."""
    return (*index[:axis], int(indices[index]), *index[axis + 1 :])


def _scatter_add(x: Array, indices: Array, value: Array, *, axis: int) -> Array:
    result = np.array(x)
    for index in np.ndindex(indices.shape):
        result[_moved(index, indices, axis)] += value[index]
    return result


def _scatter_terms(x: Array, indices: Array, value: Array, *, axis: int) -> tuple[Any, Any]:
    count = _scatter_add(np.ones(x.shape), indices, np.ones(value.shape), axis=axis)
    return count, _scatter_add(abs(x), indices, abs(value), axis=axis)


reference(
    "scatter_add",
    samples=[
        sample("vector", floats(5), np.array([4, 0, -5]), floats(3, phase=0.1), axis=0),
        sample("first axis", floats(3, 4), _ROWS, floats(2, 4, phase=0.1), axis=0),
        sample("last axis", floats(4, 3), _ROWS.T, floats(4, 2, phase=0.1), axis=1),
        sample(
            "middle axis",
            floats(2, 3, 2),
            integers(2, 5, 2, low=-3, high=3),
            floats(2, 5, 2, phase=0.1),
            axis=1,
        ),
        sample(
            "all at one index",
            floats(2),
            np.zeros(300, np.int64),
            floats(300, low=0.0, high=1.0),
            axis=0,
        ),
        sample(
            "ones that 16-bit addition would lose",
            np.zeros(2),
            np.ones(900, np.int64),
            np.ones(900),
            axis=0,
        ),
        sample("no indices", floats(3), np.zeros(0, np.int64), floats(0), axis=0),
        sample(
            "longer than int8",
            floats(300),
            np.array([1, 5, 127], np.int8),
            floats(3, phase=0.1),
            axis=0,
        ),
        sample(
            "special floats",
            np.array([np.nan, np.inf, 1.0]),
            np.array([1, 2]),
            np.array([1.0, np.nan]),
            axis=0,
        ),
        sample("empty", floats(0, 4), np.zeros((0, 4), np.int64), floats(0, 4), axis=0),
        sample(
            "transposed",
            transposed(floats(3, 4)),
            transposed(_ROWS),
            strided(floats(2, 4, phase=0.1)),
            axis=0,
        ),
        sample(
            "expanded",
            expanded(floats(4), 3, 4),
            expanded(np.array([[2], [-2]]), 2, 4),
            expanded(floats(1, 4), 2, 4),
            axis=0,
        ),
        sample("indices of int32", floats(3, 4), _ROWS.astype(np.int32), floats(2, 4), axis=0),
        sample("integers", integers(3, 4), _ROWS, integers(2, 4, phase=0.1), axis=0),
        sample(
            "integers wrap around",
            LIMITS,
            np.arange(LIMITS.size) // 2,
            reversed_view(LIMITS),
            axis=0,
        ),
    ],
    errors=[
        error("value of another shape", ShapeError, floats(3), np.array([0, 1]), floats(3), axis=0),
        error("rank differs", ShapeError, floats(3, 2), np.array([0]), floats(1), axis=0),
        error("axis out of range", AxisError, floats(3), np.array([0]), floats(1), axis=1),
        error("booleans", DTypeError, booleans(3), np.array([0]), booleans(1), axis=0),
        error(
            "index n",
            OutOfRangeError,
            floats(3),
            np.array([3]),
            floats(1),
            axis=0,
            in_data=True,
        ),
        error(
            "index -n-1",
            OutOfRangeError,
            floats(3),
            np.array([-4]),
            floats(1),
            axis=0,
            in_data=True,
        ),
        error(
            "index n after many",
            OutOfRangeError,
            floats(3),
            _ONE_WRONG,
            floats(1000),
            axis=0,
            in_data=True,
        ),
    ],
    terms=_scatter_terms,
)(_scatter_add)

_LINES = np.array([2, 0, 0, -1])


@reference(
    "select",
    samples=[
        sample("vector", floats(5), np.array([4, 0, 0, -5, -1]), axis=0),
        sample("first axis", floats(3, 4), _LINES, axis=0),
        sample("last axis", floats(4, 3), _LINES, axis=1),
        sample("middle axis", floats(2, 3, 2), _LINES, axis=1),
        sample("no indices", floats(3, 4), np.zeros(0, np.int64), axis=0),
        sample("empty other axis", floats(3, 0), _LINES, axis=0),
        sample("transposed", transposed(floats(3, 4)), strided(_LINES), axis=0),
        sample("reversed", reversed_view(floats(3, 4)), reversed_view(_LINES), axis=0),
        sample("indices of int32", floats(3, 4), _LINES.astype(np.int32), axis=0),
        sample("indices of uint8", floats(3, 4), np.array([2, 0], np.uint8), axis=0),
        sample("integers", integers(3, 4), _LINES, axis=0),
        sample("booleans", booleans(3, 4), _LINES, axis=0),
        sample("special floats", np.array([np.nan, -0.0, np.inf]), _LINES, axis=0),
    ],
    errors=[
        error("indices with two axes", ShapeError, floats(3), np.array([[0]]), axis=0),
        error("axis out of range", AxisError, floats(3), np.array([0]), axis=1),
        error("bool indices", DTypeError, floats(3), booleans(3), axis=0),
        error("index n", OutOfRangeError, floats(2, 3), np.array([3]), axis=1, in_data=True),
        error("index n after many", OutOfRangeError, floats(3), _ONE_WRONG, axis=0, in_data=True),
        error("index -n-1", OutOfRangeError, floats(2, 3), np.array([-4]), axis=1, in_data=True),
        error(
            "index n of empty rows",
            OutOfRangeError,
            floats(3, 0),
            np.array([3]),
            axis=0,
            in_data=True,
        ),
    ],
    exact=True,
)
def _(x: Array, indices: Array, *, axis: int) -> Array:
    lines = [np.moveaxis(x, axis, 0)[int(index)] for index in indices]
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    return np.moveaxis(np.array(lines, x.dtype).reshape(len(lines), *shape), 0, axis)


def _select_add(x: Array, indices: Array, value: Array, *, axis: int) -> Array:
    result = np.moveaxis(np.array(x), axis, 0)
    for index, line in zip(indices, np.moveaxis(value, axis, 0), strict=True):
        result[int(index)] += line
    return np.moveaxis(result, 0, axis)


def _select_terms(x: Array, indices: Array, value: Array, *, axis: int) -> tuple[Any, Any]:
    count = _select_add(np.ones(x.shape), indices, np.ones(value.shape), axis=axis)
    return count, _select_add(abs(x), indices, abs(value), axis=axis)


reference(
    "select_add",
    samples=[
        sample("vector", floats(5), np.array([4, 0, 0]), floats(3, phase=0.1), axis=0),
        sample("first axis", floats(3, 4), _LINES, floats(4, 4, phase=0.1), axis=0),
        sample("last axis", floats(2, 3), _LINES, floats(2, 4, phase=0.1), axis=1),
        sample("middle axis", floats(2, 3, 2), _LINES, floats(2, 4, 2), axis=1),
        sample(
            "ones that 16-bit addition would lose",
            np.zeros((2, 2)),
            np.ones(450, np.int64),
            np.ones((450, 2)),
            axis=0,
        ),
        sample("no indices", floats(3, 2), np.zeros(0, np.int64), floats(0, 2), axis=0),
        sample("transposed", transposed(floats(3, 4)), _LINES, transposed(floats(4, 4)), axis=0),
        sample("indices of int32", floats(3), np.array([2, 2], np.int32), floats(2), axis=0),
        sample("integers", integers(3, 4), _LINES, integers(4, 4, phase=0.1), axis=0),
        sample("integers wrap around", LIMITS, np.array([3, 3]), LIMITS[3:5], axis=0),
    ],
    errors=[
        error("value of another shape", ShapeError, floats(3), np.array([0]), floats(2), axis=0),
        error("indices with two axes", ShapeError, floats(3), np.array([[0]]), floats(1), axis=0),
        error("booleans", DTypeError, booleans(3), np.array([0]), booleans(1), axis=0),
        error(
            "index n",
            OutOfRangeError,
            floats(3),
            np.array([3]),
            floats(1),
            axis=0,
            in_data=True,
        ),
        error(
            "index n of empty rows",
            OutOfRangeError,
            floats(3, 0),
            np.array([3]),
            floats(1, 0),
            axis=0,
            in_data=True,
        ),
    ],
    terms=_select_terms,
)(_select_add)
