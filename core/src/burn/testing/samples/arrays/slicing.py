"""Samples of slices, of views of them, and of writes to them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from burn.aliases import Slices
from burn.errors import AxisError, ShapeError
from burn.testing.arrays import (
    booleans,
    expanded,
    floats,
    integers,
    strided,
    transposed,
)
from burn.testing.op_samples import Array, error, reference, sample
from burn.testing.samples.arrays.layout import each_layout


def _indices(slices: Slices) -> Any:
    """Index that takes what `slices` say, from their definition."""
    return np.ix_(
        *[[start + index * step for index in range(length)] for start, length, step in slices]
    )


@reference(
    "slice",
    samples=[
        *each_layout(slices=((0, 2, 2), (1, 3, 1))),
        sample("backwards", floats(5, 3), slices=((4, 5, -1), (2, 2, -2))),
        sample("backwards to the first", floats(6), slices=((5, 3, -2),)),
        sample("one element", floats(3, 4), slices=((2, 1, 1), (0, 1, -1))),
        sample("all", floats(2, 3), slices=((0, 2, 1), (0, 3, 1))),
        sample("none", floats(3, 4), slices=((1, 0, 1), (0, 4, 1))),
        sample("none, backwards", floats(3), slices=((0, 0, -1),)),
        sample("none, from before the first", floats(3), slices=((-1, 0, -1),)),
        sample("none, from behind the last", floats(3), slices=((3, 0, 1),)),
        sample("of none", floats(0, 2), slices=((0, 0, 1), (0, 2, 1))),
        sample("0-d", floats(), slices=()),
        sample("three axes", integers(2, 3, 4), slices=((1, 1, 1), (2, 3, -1), (0, 2, 3))),
    ],
    errors=[
        error("too few slices", ShapeError, floats(2, 3), slices=((0, 2, 1),)),
        error("step 0", ShapeError, floats(3), slices=((0, 1, 0),)),
        error("negative length", ShapeError, floats(3), slices=((0, -1, 1),)),
        error("beyond the end", AxisError, floats(3), slices=((1, 3, 1),)),
        error("before the beginning", AxisError, floats(3), slices=((1, 3, -1),)),
        error("start out of range", AxisError, floats(3), slices=((3, 1, 1),)),
    ],
)
def _(x: Array, *, slices: Slices) -> Array:
    return np.array(x[_indices(slices)]) if slices else x


@reference(
    "index_axis",
    samples=[
        *each_layout(axis=0, index=2),
        sample("last axis", transposed(floats(3, 4)), axis=1, index=0),
        sample("axis between others", integers(2, 3, 4), axis=1, index=2),
        sample("one axis", floats(3), axis=0, index=1),
        sample("axis of length 1", floats(1, 3), axis=0, index=0),
        sample("empty", floats(3, 0), axis=0, index=1),
    ],
    errors=[
        error("0-d", AxisError, floats(), axis=0, index=0),
        error("axis out of range", AxisError, floats(2, 3), axis=2, index=0),
        error("negative axis", AxisError, floats(2, 3), axis=-1, index=0),
        error("index out of range", AxisError, floats(2, 3), axis=1, index=3),
        error("negative index", AxisError, floats(2, 3), axis=0, index=-1),
        error("of none", AxisError, floats(0, 2), axis=0, index=0),
    ],
)
def _(x: Array, *, axis: int, index: int) -> Array:
    rows = np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis])
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    return np.array([row[index] for row in rows], x.dtype).reshape(shape)


@reference(
    "slice_assign",
    samples=[
        sample("floats", floats(3, 4), floats(2, 3, phase=0.1), slices=((0, 2, 2), (1, 3, 1))),
        sample("0-d value", floats(3, 4), floats(phase=0.1), slices=((1, 2, 1), (3, 2, -2))),
        sample("broadcast value", floats(3, 4), floats(2, 1), slices=((0, 2, 1), (0, 4, 1))),
        sample("number", floats(3, 4), 0.5, slices=((0, 2, 2), (1, 3, 1))),
        sample("minus zero", floats(3), -0.0, slices=((1, 2, 1),)),
        sample("NaN", floats(3), math.nan, slices=((1, 1, 1),)),
        sample("backwards", floats(5), floats(3, phase=0.1), slices=((4, 3, -2),)),
        sample("nothing", floats(3), floats(1), slices=((1, 0, 1),)),
        sample("nothing, from before the first", floats(3), 9.0, slices=((-1, 0, -1),)),
        sample("empty", floats(0), 1.0, slices=((0, 0, 1),)),
        sample("0-d", floats(), floats(phase=0.1), slices=()),
        sample(
            "transposed",
            transposed(floats(3, 4)),
            strided(floats(2, 2)),
            slices=((1, 2, 1), (0, 2, 3)),
        ),
        sample("expanded", expanded(floats(4), 3, 4), 7.0, slices=((1, 1, 1), (1, 2, 1))),
        sample("integers", integers(3, 4), integers(2, 4), slices=((1, 2, 1), (0, 4, 1))),
        sample("integers, number", integers(5), 7, slices=((0, 3, 2),)),
        sample("booleans", booleans(4), booleans(2, phase=0.2), slices=((1, 2, 1),)),
        sample("booleans, number", booleans(4), True, slices=((0, 4, 1),)),  # noqa: FBT003 — value
    ],
    errors=[
        error("value too large", ShapeError, floats(4), floats(3), slices=((0, 2, 1),)),
        error("value with more axes", ShapeError, floats(4), floats(2, 2), slices=((0, 2, 1),)),
        error("beyond the end", AxisError, floats(3), 1.0, slices=((2, 2, 1),)),
        error("too many slices", ShapeError, floats(3), 1.0, slices=((0, 1, 1), (0, 1, 1))),
    ],
    exact=True,
)
def _(x: Array, value: Any, *, slices: Slices) -> Array:
    if not slices:
        return np.asarray(value)
    result = np.array(x)
    result[_indices(slices)] = value
    return result


@reference(
    "flip",
    samples=[
        *each_layout(axes=(0, 1)),
        sample("one axis", floats(2, 3, 2), axes=(1,)),
        sample("no axis", floats(2, 3), axes=()),
        sample("0-d", floats(), axes=()),
        sample("empty", floats(0, 2), axes=(0, 1)),
        sample("length 1", floats(1, 2), axes=(0,)),
    ],
    errors=[
        error("axis out of range", AxisError, floats(2, 3), axes=(2,)),
        error("negative axis", AxisError, floats(2, 3), axes=(-1,)),
        error("axis twice", AxisError, floats(2, 3), axes=(1, 1)),
    ],
)
def _(x: Array, *, axes: tuple[int, ...]) -> Array:
    for axis in axes:
        x = np.take(x, range(x.shape[axis])[::-1], axis=axis)
    return x
