"""Samples of losses that are ops of their own."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from burn.errors import AxisError, DTypeError, OutOfRangeError, ShapeError
from burn.testing.arrays import booleans, floats, integers, strided, transposed
from burn.testing.op_samples import Array, error, reference, sample

_CALLS: Final = {
    "batch": (floats(4, 3, low=-3.0, high=3.0), integers(4, low=0, high=3), 1),
    "classes first": (floats(3, 4), integers(4, low=0, high=3), 0),
    "classes in the middle": (floats(2, 5, 3), integers(2, 3, low=0, high=5), 1),
    "one example": (floats(5), np.array(3), 0),
    "same target twice": (floats(3, 2), np.array([1, 1, 0]), 1),
    "one class": (floats(3, 1), np.zeros(3, np.int64), 1),
    "negative targets": (floats(2, 3), np.array([-1, -3]), 1),
    "large logits": (np.array([[1000.0, 0.0], [0.0, 1000.0]]), np.array([0, 1]), 1),
    "excluded class": (np.array([[-math.inf, 0.0, 1.0]]), np.array([2]), 1),
    "no examples": (floats(0, 3), np.zeros(0, np.int64), 1),
    "transposed": (transposed(floats(4, 3)), strided(integers(4, low=0, high=3)), 1),
    "many classes": (floats(4, 200, low=-8.0, high=8.0), integers(4, low=0, high=200), 1),
    "targets of int32": (floats(2, 3), np.array([2, 0], np.int32), 1),
    "targets of uint8": (floats(2, 3), np.array([2, 0], np.uint8), 1),
}


def _softmax(row: list[float]) -> list[float]:
    largest = max(row)
    powers = [math.exp(value - largest) for value in row]
    total = math.fsum(powers)
    return [power / total for power in powers]


@reference(
    "cross_entropy",
    samples=[
        sample(note, logits, targets, axis=axis) for note, (logits, targets, axis) in _CALLS.items()
    ],
    errors=[
        error("targets of another shape", ShapeError, floats(2, 3), np.zeros(3, np.int64), axis=1),
        error("targets per logit", ShapeError, floats(2, 3), integers(2, 3), axis=1),
        error("axis out of range", AxisError, floats(2, 3), np.array([0, 0]), axis=2),
        error("float targets", DTypeError, floats(2, 3), floats(2), axis=1),
        error("bool targets", DTypeError, floats(2, 3), booleans(2), axis=1),
        error("target n", OutOfRangeError, floats(2, 3), np.array([0, 3]), axis=1, in_data=True),
        error(
            "target -n-1", OutOfRangeError, floats(2, 3), np.array([-4, 0]), axis=1, in_data=True
        ),
    ],
)
def _(logits: Array, targets: Array, *, axis: int) -> Array:
    rows = np.moveaxis(logits, axis, -1)
    result = np.empty(targets.shape)
    for place in np.ndindex(targets.shape):
        row = rows[place].tolist()
        largest = max(row)
        total = math.fsum(math.exp(value - largest) for value in row)
        result[place] = math.log(total) + largest - row[int(targets[place])]
    return result


@reference(
    "cross_entropy_grad",
    samples=[
        sample(note, logits, targets, floats(*targets.shape, phase=0.1), axis=axis)
        for note, (logits, targets, axis) in _CALLS.items()
    ],
    errors=[
        error(
            "g of another shape",
            ShapeError,
            floats(2, 3),
            np.zeros(2, np.int64),
            floats(3),
            axis=1,
        ),
        error(
            "targets of another shape",
            ShapeError,
            floats(2, 3),
            np.zeros(3, np.int64),
            floats(3),
            axis=1,
        ),
        error(
            "target n",
            OutOfRangeError,
            floats(2, 3),
            np.array([0, 3]),
            floats(2),
            axis=1,
            in_data=True,
        ),
    ],
)
def _(logits: Array, targets: Array, g: Array, *, axis: int) -> Array:
    rows = np.moveaxis(logits, axis, -1)
    result = np.empty(rows.shape)
    for place in np.ndindex(targets.shape):
        slope = np.array(_softmax(rows[place].tolist()))
        slope[int(targets[place])] -= 1.0
        result[place] = g[place] * slope
    return np.moveaxis(result, -1, axis)
