"""Samples of reading and writing at computed indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from burn.dtype import Kind
from burn.errors import ArgumentError, AxisError, DTypeError, OutOfRangeError, ShapeError
from burn.testing.arrays import booleans, floats, integers
from burn.testing.function_samples import (
    FunctionCall,
    WrongCall,
    call,
    function_reference,
    wrong,
)
from burn.testing.op_samples import Array

_X: Final = floats(4, 3)
_TWO: Final = np.array([[3, 0], [0, -1], [3, 3]])
"""Indices along the first axis of a (4, 3) matrix, of its first two columns."""

_VALUES: Final = floats(3, 2, phase=0.1)
_JOIN: Final[dict[str, Callable[[Any], Any]]] = {
    "assign": lambda values: values[-1],
    "add": np.sum,
    "multiply": np.prod,
    "min": np.min,
    "max": np.max,
    "mean": np.mean,
}


@function_reference(
    "take",
    samples=[
        call("rows", _X, np.array([2, 0, -1]), axis=0),
        call("of a vector", floats(4), np.array([3, 0, 3])),
        call("a matrix of indices", floats(2, 4, 2), np.array([[0, 3], [-1, 1]]), axis=1),
        call("one index", _X, np.array(2), axis=0),
        call("no indices", _X, np.zeros((0, 2), np.int64), axis=1),
        call("of integers", integers(5), np.array([[4, 0]]), kinds=Kind.INTEGER),
    ],
    errors=[
        wrong("no axis", AxisError, _X, np.array([0])),
        wrong("float indices", DTypeError, _X, floats(2), axis=0),
        wrong("index n", OutOfRangeError, _X, np.array([[0, 4]]), axis=0, in_data=True),
    ],
    exact=True,
)
def _(x: Array, indices: Array, *, axis: int | None = None) -> Array:
    return np.take(x, indices, axis=axis)


@function_reference(
    "gather",
    samples=[
        call("as long", _X, np.array([[3, 0, 1]]), axis=0),
        call("shorter", _X, _TWO, axis=0),
        call("shorter, the last axis", floats(2, 3, 4), integers(1, 3, 5, low=-4, high=4), axis=2),
        call("none", _X, np.zeros((2, 0), np.int64), axis=0),
    ],
    errors=[
        wrong("longer", ShapeError, _X, np.zeros((1, 4), np.int64), axis=0),
        wrong("another rank", ShapeError, _X, np.zeros(2, np.int64), axis=0),
        wrong("index n", OutOfRangeError, _X, np.array([[4]]), axis=0, in_data=True),
    ],
    exact=True,
)
def _(x: Array, indices: Array, *, axis: int) -> Array:
    region = [slice(length) for length in indices.shape]
    region[axis] = slice(None)
    return np.take_along_axis(x[tuple(region)], indices, axis=axis)


@function_reference(
    "gather_nd",
    samples=[
        call("rows", _X, np.array([[0], [2]])),
        call("one batch axis", floats(2, 3, 2), np.array([[[2], [0]], [[-1], [1]]]), batch_dims=1),
        call("a row each", floats(2, 3, 4), np.array([[2, 3], [0, -4]]), batch_dims=1),
        call("two batch axes", floats(2, 2, 3), integers(2, 2, 1, low=0, high=3), batch_dims=2),
    ],
    errors=[
        wrong("too many batch axes", ArgumentError, _X, np.array([[0]]), batch_dims=2),
        wrong("a negative number", ArgumentError, _X, np.array([[0]]), batch_dims=-1),
        wrong("another batch", ShapeError, _X, np.array([[0], [1]]), batch_dims=1),
        wrong(
            "index n",
            OutOfRangeError,
            _X,
            np.array([[0], [1], [2], [3]]),
            batch_dims=1,
            in_data=True,
        ),
    ],
    exact=True,
)
def _(x: Array, indices: Array, *, batch_dims: int = 0) -> Array:
    if batch_dims:
        pairs = zip(x, indices, strict=True)
        return np.stack([_gathered(pair, index, batch_dims - 1) for pair, index in pairs])
    return _gathered(x, indices, 0)


def _gathered(x: Array, indices: Array, batch_dims: int) -> Array:
    if batch_dims:
        pairs = zip(x, indices, strict=True)
        return np.stack([_gathered(pair, index, batch_dims - 1) for pair, index in pairs])
    return np.asarray(x[tuple(np.moveaxis(indices, -1, 0))])


def _scattered(
    x: Array,
    indices: Array,
    value: Any,
    *,
    axis: int,
    update: str = "assign",
    include_self: bool = True,
) -> Array:
    values = np.broadcast_to(value, indices.shape) if np.ndim(value) == 0 else value
    written: dict[tuple[int, ...], list[Any]] = {}
    for index in np.ndindex(indices.shape):
        target = (*index[:axis], int(indices[index]) % x.shape[axis], *index[axis + 1 :])
        written.setdefault(target, []).append(values[index])
    result = np.array(x)
    for target, found in written.items():
        joined = _JOIN[update]([x[target], *found] if include_self else found)
        result[target] = np.floor(joined) if x.dtype.kind == "i" else joined
    return result


_SAMPLES: Final[list[FunctionCall]] = [
    call("fewer indices", _X, _TWO, _VALUES, axis=0),
    call("fewer rows of indices", floats(3, 4), np.array([[3, 0, 0]]), floats(1, 3), axis=1),
    call("fewer than values", _X, _TWO, floats(4, 4), axis=0),
    call("a number", _X, _TWO, 0.5, axis=0),
    call("none", _X, np.zeros((0, 2), np.int64), floats(0, 2), axis=0),
    call("integers", integers(4, 3), _TWO, integers(3, 2), axis=0),
]
_ERRORS: Final[list[WrongCall]] = [
    wrong("longer indices", ShapeError, _X, np.zeros((1, 4), np.int64), floats(1, 4), axis=0),
    wrong("fewer values", ShapeError, _X, _TWO, floats(2, 2), axis=0),
    wrong("values of another rank", ShapeError, _X, _TWO, floats(3), axis=0),
    wrong("an axis out of range", AxisError, _X, _TWO, _VALUES, axis=2),
    wrong("index n", OutOfRangeError, _X, np.array([[4]]), floats(1, 1), axis=0, in_data=True),
]


@function_reference("scatter_add", samples=_SAMPLES, errors=_ERRORS, magnitude=lambda *_, **__: 8.0)
def _(x: Array, indices: Array, value: Any, *, axis: int) -> Array:
    return _scattered(x, indices, value, axis=axis, update="add")


function_reference(
    "scatter",
    samples=[
        *_SAMPLES,
        *[
            call(f"{update}, {how}", _X, _TWO, _VALUES, axis=0, update=update, include_self=own)
            for update in _JOIN
            for own, how in ((True, "with the element"), (False, "without it"))
        ],
        *[
            call(
                f"{update} of integers",
                integers(4, 3),
                _TWO,
                integers(3, 2),
                axis=0,
                update=update,
                include_self=False,
                kinds=Kind.INT,
            )
            for update in ("min", "max", "mean")
        ],
        call(
            "booleans",
            booleans(4, 3),
            _TWO,
            booleans(3, 2),
            axis=0,
            update="max",
            include_self=False,
        ),
    ],
    errors=[
        *_ERRORS,
        wrong("another update", ArgumentError, _X, _TWO, _VALUES, axis=0, update="sum"),
        wrong(
            "a mean of booleans",
            DTypeError,
            booleans(4, 3),
            _TWO,
            booleans(3, 2),
            axis=0,
            update="mean",
        ),
    ],
    magnitude=lambda *_, **__: 8.0,
)(_scattered)
