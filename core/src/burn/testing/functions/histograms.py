"""Samples of counts: in bins, and of each integer."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from burn.errors import ArgumentError, DTypeError, OperandTypeError, OutOfRangeError, ShapeError
from burn.testing.arrays import booleans, floats, integers
from burn.testing.function_samples import call, function_reference, wrong
from burn.testing.op_samples import Array

_EDGES: Final = np.array([-1.5, -0.5, 0.25, 1.5])
_HALVES: Final = np.array([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, math.nan, math.inf])


@function_reference(
    "histogram",
    samples=[
        call("bins of a range", _HALVES, 4, range=(-1.0, 1.0), differentiable=False),
        call("bins between the extrema", floats(3, 8), 5, differentiable=False),
        call("ten bins", floats(20), differentiable=False),
        call("equal elements", np.full(4, 0.5), 2, differentiable=False),
        call("no elements", floats(0), 3, differentiable=False),
        call("edges in a list", _HALVES, [-1.0, 0.0, 0.5, 2.0], differentiable=False),
        call("edges in a tensor", floats(3, 7), _EDGES, differentiable=False),
        call("an empty bin", floats(9), [-1.0, 0.0, 0.0, 1.0], differentiable=False),
        call("one edge", floats(5), [0.0], differentiable=False),
        call(
            "weights",
            np.array([0.5, 1.5, 0.5, 3.0]),
            [0.0, 1.0, 2.0],
            weights=floats(4),
            differentiable=False,
        ),
        call("density", floats(9), 3, range=(-2.0, 2.0), density=True, differentiable=False),
        call("integers", integers(30), 4, range=(-9, 9)),
        call("integers between integers", integers(30), [-5, 0, 3]),
    ],
    errors=[
        wrong("no bins", ArgumentError, floats(3), 0),
        wrong("a number of bins with a fraction", OperandTypeError, floats(3), 2.5),
        wrong("edges that descend", ArgumentError, floats(3), [1.0, 0.0]),
        wrong(
            "edges that descend in a tensor",
            OutOfRangeError,
            floats(3),
            np.array([1.0, 0.0]),
            in_data=True,
        ),
        wrong("edges in a matrix", ShapeError, floats(3), floats(2, 2)),
        wrong("a range that descends", ArgumentError, floats(3), 2, range=(1.0, 0.0)),
        wrong("an infinite range", ArgumentError, floats(3), 2, range=(0.0, math.inf)),
        wrong("a range of one", OperandTypeError, floats(3), 2, range=(0.0,)),
        wrong("elements without a range", OutOfRangeError, _HALVES, 2, in_data=True),
        wrong("weights of another shape", ShapeError, floats(3), 2, weights=floats(2)),
    ],
    magnitude=lambda x, *_, **__: np.abs(x[np.isfinite(x)]).max(initial=1.0),
)
def _(
    x: Array,
    bins: Any = 10,
    *,
    range: Any = None,
    weights: Array | None = None,
    density: bool = False,
) -> tuple[Array, Array]:
    counts, edges = np.histogram(x, bins, range=range, weights=weights, density=density)
    return counts, np.asarray(edges)


_POINTS: Final = floats(9, 2)


@function_reference(
    "histogramdd",
    samples=[
        call("bins between the extrema", _POINTS, 3, differentiable=False),
        call("bins of each", _POINTS, [2, 4], range=[(-1.0, 1.0), None], differentiable=False),
        call("edges", floats(7, 2), [_EDGES, [-1.0, 0.0, 2.0]], differentiable=False),
        call("density", _POINTS, 2, range=[(-2.0, 2.0)] * 2, density=True, differentiable=False),
        call("weights", _POINTS, 2, weights=floats(9), differentiable=False),
        call("one coordinate", floats(8, 1), 4, differentiable=False),
        call("no points", floats(0, 3), 2, differentiable=False),
        call("integers", integers(20, 3), 2, range=[(-9, 9)] * 3),
    ],
    errors=[
        wrong("no bins", ArgumentError, _POINTS, 0),
        wrong("a vector", ShapeError, floats(3), 2),
        wrong("bins of one coordinate", ShapeError, _POINTS, [2]),
        wrong("a range of one coordinate", ShapeError, _POINTS, 2, range=[(0.0, 1.0)]),
        wrong("weights of another length", ShapeError, _POINTS, 2, weights=floats(2)),
    ],
)
def _(
    x: Array,
    bins: Any = 10,
    *,
    range: Any = None,
    weights: Array | None = None,
    density: bool = False,
) -> Any:
    counts, edges = np.histogramdd(x, bins, range, density, weights)
    if weights is None and not density:
        counts = counts.astype(np.int64)
    return counts, tuple(np.asarray(edge) for edge in edges)


@function_reference(
    "bincount",
    samples=[
        call("some", np.array([3, 0, 3, 1])),
        call("a least length", np.array([1, 1]), minlength=5),
        call("none", np.zeros(0, np.int64), minlength=2),
        call("nothing", np.zeros(0, np.int64)),
        call("booleans", booleans(7)),
        call("weights", np.array([2, 0, 2, 5]), weights=floats(4)),
    ],
    errors=[
        wrong("a negative element", ArgumentError, np.array([1, -1])),
        wrong("floats", DTypeError, floats(3)),
        wrong("a matrix", ShapeError, integers(2, 3, low=0)),
        wrong("weights of another shape", ShapeError, np.array([1, 2]), weights=floats(3)),
        wrong("a negative length", ArgumentError, np.array([1]), minlength=-1),
    ],
    transforms=False,
)
def _(x: Array, *, weights: Array | None = None, minlength: int = 0) -> Array:
    return np.bincount(x, weights=weights, minlength=minlength)


@function_reference(
    "bucketize",
    samples=[
        call("left", _HALVES, np.array([-1.0, 0.5, 0.5, 1.5])),
        call("right", _HALVES, np.array([-1.0, 0.5, 0.5, 1.5]), right=True),
        call("a list", floats(2, 3), [-0.5, 0.5]),
        call("no boundaries", floats(3), []),
        call("a number", 0.25, floats(3, low=0.0, high=1.0)[:1]),
        call("integers", integers(2, 4), np.array([-3, 0, 4]), right=True),
    ],
    errors=[
        wrong("a matrix", ShapeError, floats(3), floats(2, 2)),
        wrong("boundaries that descend", ArgumentError, floats(3), [1.0, 0.0]),
        wrong("words", OperandTypeError, floats(3), ["low"]),
    ],
)
def _(x: Array, boundaries: Any, *, right: bool = False) -> Array:
    return np.searchsorted(np.asarray(boundaries), x, side="right" if right else "left")
