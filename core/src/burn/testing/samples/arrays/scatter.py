"""Samples of writing at indices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from burn.errors import (
    ArgumentError,
    AxisError,
    DTypeError,
    OperandTypeError,
    OutOfRangeError,
    ShapeError,
)
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
from burn.testing.op_samples import Array, ErrorSample, Sample, error, reference, sample

_ROWS: Final = np.array([[2, 0, 1, 2], [0, 0, -1, -3], [2, -3, 1, -1]])
"""Indices along an axis of length 3, most of them repeated."""

_NONE: Final = np.zeros(0, np.int64)
_UPDATES: Final = ("assign", "add", "multiply", "min", "max")
_JOIN: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "assign": lambda _, new: new,
    "add": lambda old, new: old + new,
    "multiply": lambda old, new: old * new,
    "min": np.minimum,
    "max": np.maximum,
}


def _updated(x: Array, indices: list[tuple[Any, ...]], values: list[Any], update: str) -> Array:
    result = np.array(x)
    with np.errstate(all="ignore"):
        for index, value in zip(indices, values, strict=True):
            result[index] = _JOIN[update](result[index], value)
    return result


def _scatter(x: Array, indices: Array, value: Array, *, axis: int, update: str) -> Array:
    every = list(np.ndindex(indices.shape))
    positions = [(*pair[:axis], int(indices[pair]), *pair[axis + 1 :]) for pair in every]
    return _updated(x, positions, [value[pair] for pair in every], update)


def _scatter_samples(update: str) -> list[Sample]:
    how: dict[str, Any] = {"update": update}
    samples = [
        sample(
            f"{update} vector",
            floats(5),
            np.array([4, 0, -5, 0]),
            floats(4, phase=0.1),
            axis=0,
            **how,
        ),
        sample(f"{update} first axis", floats(3, 4), _ROWS, floats(3, 4, phase=0.1), axis=0, **how),
        sample(
            f"{update} last axis", floats(4, 3), _ROWS.T, floats(4, 3, phase=0.1), axis=1, **how
        ),
        sample(
            f"{update} middle axis",
            floats(2, 3, 2),
            integers(2, 5, 2, low=-3, high=3),
            floats(2, 5, 2, phase=0.1),
            axis=1,
            **how,
        ),
        sample(
            f"{update} one index", floats(3), np.array([1]), floats(1, phase=0.1), axis=0, **how
        ),
        sample(f"{update} no indices", floats(3), _NONE, floats(0), axis=0, **how),
        sample(
            f"{update} empty", floats(0, 4), np.zeros((0, 4), np.int64), floats(0, 4), axis=0, **how
        ),
        sample(
            f"{update} views",
            transposed(floats(3, 4)),
            reversed_view(_ROWS),
            strided(floats(3, 4, phase=0.1)),
            axis=0,
            **how,
        ),
        sample(
            f"{update} expanded",
            expanded(floats(4), 3, 4),
            expanded(np.array([[2], [-2]]), 2, 4),
            floats(2, 4, phase=0.1),
            axis=0,
            **how,
        ),
        sample(
            f"{update} indices of int8",
            floats(3, 4),
            _ROWS.astype(np.int8),
            floats(3, 4),
            axis=0,
            differentiable=update == "assign",
            **how,
        ),
        sample(
            f"{update} integers", integers(3, 4), _ROWS, integers(3, 4, phase=0.1), axis=0, **how
        ),
        sample(
            f"{update} integer limits",
            LIMITS,
            np.arange(LIMITS.size) // 2,
            LIMITS[::-1],
            axis=0,
            **how,
        ),
    ]
    if update not in ("add", "multiply"):
        samples.append(
            sample(
                f"{update} booleans",
                booleans(3, 4),
                _ROWS,
                booleans(3, 4, phase=0.2),
                axis=0,
                **how,
            )
        )
    return samples


_ZEROS: Final = np.array([2.0, 0.0, 3.0])
_FACTORS: Final = np.array([0.0, 3.0, 0.0, 2.0, 4.0])


reference(
    "scatter",
    samples=[
        *[scatter_sample for update in _UPDATES for scatter_sample in _scatter_samples(update)],
        sample(
            "multiply zeros", _ZEROS, np.array([0, 0, 1, 1, 2]), _FACTORS, axis=0, update="multiply"
        ),
        sample(
            "multiply two zeros",
            _ZEROS,
            np.array([0, 1, 0, 1, 0]),
            _FACTORS,
            axis=0,
            update="multiply",
        ),
        sample(
            "ties share the gradient",
            np.array([2.0, 0.0]),
            np.array([0, 0, 0, 1]),
            np.array([2.0, 1.0, 2.0, 0.0]),
            axis=0,
            update="max",
            differentiable=False,
            gradients=(np.array([1 / 3, 0.5]), None, np.array([1 / 3, 0.0, 1 / 3, 0.5])),
        ),
        sample(
            "NaN",
            np.array([math.nan, 1.0]),
            np.array([1, 1, 0]),
            np.array([2.0, math.nan, 1.0]),
            axis=0,
            update="max",
        ),
        sample(
            "the last NaN wins",
            floats(2),
            np.array([1, 1]),
            np.array([2.0, math.nan]),
            axis=0,
            update="assign",
        ),
    ],
    errors=[
        error(
            "value of another shape",
            ShapeError,
            floats(3),
            np.array([0, 1]),
            floats(3),
            axis=0,
            update="max",
        ),
        error(
            "rank differs",
            ShapeError,
            floats(3, 2),
            np.array([0]),
            floats(1),
            axis=0,
            update="assign",
        ),
        error(
            "axis out of range",
            AxisError,
            floats(3),
            np.array([0]),
            floats(1),
            axis=1,
            update="min",
        ),
        error(
            "another update",
            ArgumentError,
            floats(3),
            np.array([0]),
            floats(1),
            axis=0,
            update="mean",
        ),
        error(
            "booleans are not added",
            DTypeError,
            booleans(3),
            np.array([0]),
            booleans(1),
            axis=0,
            update="add",
        ),
        error(
            "complex numbers have no order",
            DTypeError,
            np.array([1j, 2.0]),
            np.array([0]),
            np.array([1j]),
            axis=0,
            update="max",
            lenient=True,
        ),
        *[
            error(
                f"index {index}, {update}",
                OutOfRangeError,
                floats(3),
                np.array([0, index]),
                floats(2),
                axis=0,
                update=update,
                in_data=True,
            )
            for index in (3, -4)
            for update in _UPDATES
        ],
    ],
)(_scatter)

_LINES: Final = np.array([2, 0, 0, -1])


def _select_samples(update: str) -> list[Sample]:
    how: dict[str, Any] = {"update": update}
    return [
        sample(
            f"{update} vector", floats(5), np.array([4, 0, 0]), floats(3, phase=0.1), axis=0, **how
        ),
        sample(
            f"{update} first axis", floats(3, 4), _LINES, floats(4, 4, phase=0.1), axis=0, **how
        ),
        sample(
            f"{update} last axis",
            transposed(floats(2, 3)),
            _LINES,
            floats(2, 4, phase=0.1),
            axis=1,
            **how,
        ),
        sample(f"{update} no indices", floats(3, 2), _NONE, floats(0, 2), axis=0, **how),
        sample(
            f"{update} integers", integers(3, 4), _LINES, integers(4, 4, phase=0.1), axis=0, **how
        ),
    ]


@reference(
    "select_assign",
    samples=[
        *[select_sample for update in _UPDATES for select_sample in _select_samples(update)],
        sample("booleans", booleans(3, 4), _LINES, booleans(4, 4, phase=0.1), axis=0, update="max"),
    ],
    errors=[
        error(
            "value of another shape",
            ShapeError,
            floats(3),
            np.array([0]),
            floats(2),
            axis=0,
            update="assign",
        ),
        error(
            "indices with two axes",
            ShapeError,
            floats(3),
            np.array([[0]]),
            floats(1),
            axis=0,
            update="assign",
        ),
        error(
            "another update",
            ArgumentError,
            floats(3),
            np.array([0]),
            floats(1),
            axis=0,
            update="mean",
        ),
        error(
            "index n",
            OutOfRangeError,
            floats(3),
            np.array([3]),
            floats(1),
            axis=0,
            update="max",
            in_data=True,
        ),
        error(
            "index n of empty rows",
            OutOfRangeError,
            floats(3, 0),
            np.array([3]),
            floats(1, 0),
            axis=0,
            update="assign",
            in_data=True,
        ),
    ],
)
def _(x: Array, indices: Array, value: Array, *, axis: int, update: str) -> Array:
    before = (slice(None),) * axis
    positions = [(*before, int(index)) for index in indices]
    return _updated(x, positions, list(np.moveaxis(value, axis, 0)), update)


_PAIRS: Final = np.array([[[0, 1], [2, -1]], [[-3, 1], [1, 0]], [[2, 3], [2, 3]]])
"""Indices of elements of a (3, 4) matrix, some repeated, in three rows of two."""


@reference(
    "gather_nd",
    samples=[
        sample("all axes", floats(3, 4), _PAIRS),
        sample("first axis", floats(3, 4), np.array([[2], [0], [-1]])),
        sample("two of three axes", floats(3, 4, 2), _PAIRS),
        sample("one index", floats(3, 4), np.array([1, -2])),
        sample("no axis", floats(3, 4), np.zeros((2, 0), np.int64)),
        sample("0-d", floats(), np.zeros((2, 0), np.int64)),
        sample("no indices", floats(3, 4), np.zeros((0, 2), np.int64)),
        sample("of nothing", floats(0, 4), np.zeros((0, 2), np.int64)),
        sample("parts of nothing", floats(3, 0), np.array([[2], [0]])),
        sample("views", transposed(floats(3, 4)), reversed_view(_PAIRS)),
        sample("indices of int8", floats(3, 4), _PAIRS.astype(np.int8)),
        sample("special floats", np.array([math.nan, -0.0, math.inf]), np.array([[1], [0], [2]])),
        sample("integers", integers(3, 4), _PAIRS),
        sample("booleans", booleans(3, 4), _PAIRS),
    ],
    errors=[
        error("more indices than axes", ShapeError, floats(3), np.array([[0, 0]])),
        error("0-d indices", ShapeError, floats(3), np.array(0)),
        error("float indices", DTypeError, floats(3), floats(2, 1)),
        error("index n", OutOfRangeError, floats(3, 4), np.array([[2, 4]]), in_data=True),
        error("index n before", OutOfRangeError, floats(3, 4), np.array([[3, -4]]), in_data=True),
        error("index -n-1", OutOfRangeError, floats(3, 4), np.array([[1, -5]]), in_data=True),
        error("in nothing", OutOfRangeError, floats(0, 4), np.array([[0, 0]]), in_data=True),
        error(
            "index n of empty rows", OutOfRangeError, floats(3, 0), np.array([[3]]), in_data=True
        ),
    ],
    exact=True,
)
def _(x: Array, indices: Array) -> Array:
    lead = indices.shape[:-1]
    result = np.empty((*lead, *x.shape[indices.shape[-1] :]), x.dtype)
    for index in np.ndindex(lead):
        result[index] = x[tuple(indices[index].tolist())]
    return result


def _nd_samples(update: str) -> list[Sample]:
    how: dict[str, Any] = {"update": update}
    return [
        sample(f"{update} all axes", floats(3, 4), _PAIRS, floats(3, 2, phase=0.1), **how),
        sample(
            f"{update} first axis",
            floats(3, 4),
            np.array([[2], [0], [-1]]),
            floats(3, 4, phase=0.1),
            **how,
        ),
        sample(
            f"{update} two of three axes",
            floats(3, 4, 2),
            _PAIRS,
            floats(3, 2, 2, phase=0.1),
            **how,
        ),
        sample(
            f"{update} one index",
            transposed(floats(3, 4)),
            np.array([1, -2]),
            floats(phase=0.1),
            **how,
        ),
        sample(
            f"{update} no axis",
            floats(3),
            np.zeros((2, 0), np.int64),
            floats(2, 3, phase=0.1),
            **how,
        ),
        sample(f"{update} no indices", floats(3, 4), np.zeros((0, 2), np.int64), floats(0), **how),
        sample(f"{update} integers", integers(3, 4), _PAIRS, integers(3, 2, phase=0.1), **how),
    ]


_ND_ERRORS: Final[list[ErrorSample]] = [
    error(
        "value of another shape", ShapeError, floats(3), np.array([[0]]), floats(2), update="assign"
    ),
    error(
        "more indices than axes", ShapeError, floats(3), np.array([[0, 0]]), floats(1), update="add"
    ),
    error("another update", ArgumentError, floats(3), np.array([[0]]), floats(1), update="mean"),
    error("a number", OperandTypeError, floats(3), np.array([[0]]), 1.0, update="assign"),
    error(
        "index n",
        OutOfRangeError,
        floats(3, 4),
        np.array([[2, 4]]),
        floats(1),
        update="assign",
        in_data=True,
    ),
    error(
        "index n of empty rows",
        OutOfRangeError,
        floats(3, 0),
        np.array([[3]]),
        floats(1, 0),
        update="assign",
        in_data=True,
    ),
    error(
        "index -n-1",
        OutOfRangeError,
        floats(3, 4),
        np.array([[-4, 0]]),
        floats(1),
        update="max",
        in_data=True,
    ),
]


@reference(
    "scatter_nd",
    samples=[
        *[nd_sample for update in _UPDATES for nd_sample in _nd_samples(update)],
        sample("booleans", booleans(3, 4), _PAIRS, booleans(3, 2, phase=0.1), update="assign"),
    ],
    errors=_ND_ERRORS,
)
def _(x: Array, indices: Array, value: Array, *, update: str) -> Array:
    lead = list(np.ndindex(indices.shape[:-1]))
    positions = [tuple(indices[pair].tolist()) for pair in lead]
    return _updated(x, positions, [value[pair] for pair in lead], update)
