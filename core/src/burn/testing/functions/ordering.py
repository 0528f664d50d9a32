"""Samples of what sorts, searches and tells elements apart."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from burn.dtype import Kind
from burn.errors import ArgumentError, AxisError, ShapeError
from burn.testing.arrays import booleans, floats, integers
from burn.testing.function_samples import call, function_reference, wrong
from burn.testing.op_samples import Array

_REPEATED: Final = integers(4, 7, low=-2, high=2)
_NAN: Final = np.array([[math.nan, 1.0, math.nan, 1.0, 0.5], [2.0, math.nan, 0.0, 1.0, math.inf]])
_ROWS: Final = np.array([[1.0, 2.0], [0.0, 5.0], [1.0, -2.0], [1.0, 2.0]])


@function_reference(
    "kthvalue",
    samples=[
        call("of rows", floats(3, 5), 2),
        call("the largest of columns", floats(3, 5), 3, axis=0, keepdims=True),
        call("with ties", _REPEATED, 4, axis=1),
        call("with NaN", _NAN, 4, differentiable=False),
    ],
    errors=[
        wrong("k of 0", ArgumentError, floats(3), 0),
        wrong("k above the length", ArgumentError, floats(2, 3), 4),
        wrong("an axis out of range", AxisError, floats(3), 1, axis=1),
        wrong("a number", AxisError, floats(), 1),
    ],
    exact=True,
)
def _(x: Array, k: int, *, axis: int = -1, keepdims: bool = False) -> tuple[Array, Array]:
    indices = np.argsort(x, axis=axis, stable=True).take([k - 1], axis=axis)
    return _at(x, indices, axis, keepdims=keepdims)


@function_reference(
    "mode",
    samples=[
        call("of rows", _REPEATED, kinds=Kind.REAL),
        call("of columns", _REPEATED, axis=0, keepdims=True),
        call("of floats", floats(2, 4)),
        call("of one", floats(3, 1)),
        call("of NaN", _NAN, differentiable=False),
        call("of booleans", booleans(3, 4)),
    ],
    errors=[
        wrong("of nothing", ShapeError, floats(2, 0)),
        wrong("an axis out of range", AxisError, floats(3), axis=1),
    ],
    exact=True,
)
def _(x: Array, *, axis: int = -1, keepdims: bool = False) -> tuple[Array, Array]:
    rows = np.moveaxis(x, axis, -1)
    indices = np.empty(rows.shape[:-1], np.int64)
    for index in np.ndindex(indices.shape):
        row = rows[index]
        values, first, counts = np.unique(row, return_index=True, return_counts=True)
        del values
        indices[index] = first[np.argmax(counts)]
    return _at(x, np.expand_dims(indices, axis), axis, keepdims=keepdims)


def _at(x: Array, indices: Array, axis: int, *, keepdims: bool) -> tuple[Array, Array]:
    values = np.take_along_axis(x, indices, axis=axis)
    return (values, indices) if keepdims else (values.squeeze(axis), indices.squeeze(axis))


@function_reference(
    "searchsorted",
    samples=[
        call("right", np.array([1.0, 2.0, 3.0]), floats(4, low=0.0, high=4.0), side="right"),
        call("a sorter", np.array([2.0, 1.0, 3.0]), floats(4), sorter=np.array([1, 0, 2])),
        call("a number", np.array([1, 2, 2, 3]), 2),
        call("in rows", np.sort(abs(_REPEATED)), integers(4, 3, low=0, high=4), kinds=Kind.REAL),
        call("in rows, right", np.sort(_REPEATED), integers(4, 3, low=-3, high=3), side="right"),
        call("a sorter of rows", floats(2, 5), floats(2, 3), sorter=np.argsort(floats(2, 5))),
        call("in rows of a batch", np.sort(floats(2, 2, 4)), floats(2, 2, 1)),
        call("in rows with NaN", np.sort(_NAN), _NAN),
        call("in empty rows", floats(2, 0), floats(2, 3)),
    ],
    errors=[
        wrong("another side", ArgumentError, floats(3), floats(2), side="middle"),
        wrong("in a number", ShapeError, floats(), floats(2)),
        wrong("no row for each", ShapeError, floats(2, 3), floats(3, 2)),
        wrong("a number in rows", ShapeError, floats(2, 3), 1.0),
    ],
)
def _(x1: Array, x2: Any, *, side: Any = "left", sorter: Array | None = None) -> Array:
    if x1.ndim == 1:
        return np.asarray(np.searchsorted(x1, x2, side=side, sorter=sorter))
    if sorter is not None:
        x1 = np.take_along_axis(x1, sorter, axis=-1)
    result = np.empty(x2.shape, np.int64)
    for index in np.ndindex(x1.shape[:-1]):
        result[index] = np.searchsorted(x1[index], x2[index], side=side)
    return result


@function_reference(
    "unique",
    samples=[
        call("elements", _REPEATED, kinds=Kind.REAL),
        call("everything", _REPEATED, return_index=True, return_inverse=True, return_counts=True),
        call("rows", _ROWS, axis=0, return_inverse=True, differentiable=False),
        call("columns", booleans(2, 9), axis=-1, return_index=True, return_counts=True),
        call("matrices", floats(3, 2, 2), axis=0, return_inverse=True),
        call("NaN once", _NAN, return_counts=True, differentiable=False),
        call("nothing", floats(0, 3)),
        call("a number", floats()),
    ],
    errors=[wrong("an axis out of range", AxisError, floats(3), axis=1)],
    transforms=False,
    exact=True,
)
def _(x: Array, **options: Any) -> Any:
    return np.unique(x, **options)


@function_reference(
    "unique_consecutive",
    samples=[
        call("elements", _REPEATED, kinds=Kind.REAL),
        call("everything", np.array([3, 3, 1, 1, 1, 3]), return_inverse=True, return_counts=True),
        call("rows", _ROWS[[0, 3, 1, 0]], axis=0, return_counts=True, differentiable=False),
        call("columns", booleans(2, 9), axis=-1, return_inverse=True, return_counts=True),
        call("NaN is distinct", _NAN[:, :1], return_counts=True, differentiable=False),
        call("nothing", floats(0, 3), return_inverse=True, return_counts=True),
        call("empty rows", floats(3, 0), axis=0, return_counts=True),
        call("a number", floats(), return_inverse=True),
    ],
    errors=[wrong("an axis out of range", AxisError, floats(3), axis=1)],
    transforms=False,
    exact=True,
)
def _(
    x: Array, *, axis: int | None = None, return_inverse: bool = False, return_counts: bool = False
) -> Any:
    rows = x.reshape(-1, 1) if axis is None else np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1)
    begins = np.ones(len(rows), np.bool_)
    begins[1:] = (rows[1:] != rows[:-1]).any(1)
    indices = np.flatnonzero(begins)
    inverse = np.cumsum(begins) - 1
    values = x.reshape(-1)[indices] if axis is None else x.take(indices, axis)
    found = [values]
    if return_inverse:
        found.append(inverse.reshape(x.shape) if axis is None else inverse)
    if return_counts:
        found.append(np.diff(np.append(indices, len(rows)) if len(rows) else indices))
    return tuple(found) if len(found) > 1 else values
