"""Samples of losses that are ops of their own."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from burn.errors import AxisError, DTypeError, OutOfRangeError, ShapeError
from burn.testing.arrays import (
    LONG_LENGTH,
    SPECIAL,
    booleans,
    floats,
    integers,
    long,
    strided,
    transposed,
)
from burn.testing.op_samples import Array, ErrorSample, error, reference, sample

_CALLS: Final = {
    "batch": (floats(4, 3, low=-3.0, high=3.0), integers(4, low=0, high=3), 1),
    "classes first": (floats(3, 4), integers(4, low=0, high=3), 0),
    "classes in the middle": (floats(2, 5, 3), integers(2, 3, low=0, high=5), 1),
    "one example": (floats(5), np.array(3), 0),
    "same target twice": (floats(3, 2), np.array([1, 1, 0]), 1),
    "one class": (floats(3, 1), np.zeros(3, np.int64), 1),
    "targets of int8": (floats(2, 200), np.array([127, 0], np.int8), 1),
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


def _errors(*extra: Array) -> list[ErrorSample]:
    """Calls that each op of targets refuses; `extra` is what comes behind these."""
    scores, labels = floats(2, 3), np.zeros(2, np.int64)
    wrong = {
        "target n": np.array([0, 3]),
        "target -1": np.array([-1, 0]),
        "target -n": np.array([0, -3]),
        "target -n-1": np.array([-4, 0]),
        "least target of int8": np.array([0, -128], np.int8),
        "least target of int64": np.array([-(1 << 63), 0]),
    }
    return [
        error("targets of another shape", ShapeError, scores, np.zeros(3, int), *extra, axis=1),
        error("targets per class", ShapeError, scores, integers(2, 3), *extra, axis=1),
        error("axis out of range", AxisError, scores, labels, *extra, axis=2),
        error("float targets", DTypeError, scores, floats(2), *extra, axis=1),
        error("bool targets", DTypeError, scores, booleans(2), *extra, axis=1),
        *[
            error(note, OutOfRangeError, scores, targets, *extra, axis=1, in_data=True)
            for note, targets in wrong.items()
        ],
    ]


def _bounded(x: Array) -> Array:
    """Logarithms, of 0 too, which are -100 at least."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.maximum(np.log(x), -100.0)


@reference(
    "binary_cross_entropy",
    samples=[
        sample("probabilities", floats(3, 4, low=0.05, high=0.95), floats(3, 4, low=0.0, high=1.0)),
        sample("one broadcasts", floats(3, 1, low=0.2, high=0.9), floats(4, low=0.1, high=0.8)),
        sample(
            "certain",
            np.array([0.0, 0.0, 1.0, 1.0, 0.0, 1.0]),
            np.array([0.0, 1.0, 0.0, 1.0, 0.5, 0.5]),
            differentiable=False,
        ),
        sample(
            "special floats",
            long(SPECIAL),
            floats(LONG_LENGTH, low=0.1, high=0.9),
            differentiable=False,
        ),
        sample("no elements", floats(0, 3), floats(0, 3)),
        sample(
            "layouts",
            transposed(floats(3, 4, low=0.1, high=0.9)),
            strided(floats(4, low=0.1, high=0.9)),
        ),
    ],
    errors=[error("shapes that do not broadcast", ShapeError, floats(3), floats(4))],
)
def _(x: Array, target: Array) -> Array:
    return -(target * _bounded(x) + (1.0 - target) * _bounded(1.0 - x))


@reference(
    "nll_loss",
    exact=True,
    samples=[
        sample(note, log_probs, targets, axis=axis)
        for note, (log_probs, targets, axis) in _CALLS.items()
    ],
    errors=_errors(),
)
def _(log_probs: Array, targets: Array, *, axis: int) -> Array:
    column = np.expand_dims(targets.astype(np.int64), axis)
    return -np.take_along_axis(log_probs, column, axis).reshape(targets.shape)


@reference(
    "cross_entropy",
    samples=[
        sample(note, logits, targets, axis=axis) for note, (logits, targets, axis) in _CALLS.items()
    ],
    errors=_errors(),
)
def _(logits: Array, targets: Array, *, axis: int) -> Array:
    rows = np.moveaxis(logits, axis, -1)
    result = np.empty(targets.shape)
    for index in np.ndindex(targets.shape):
        row = rows[index].tolist()
        largest = max(row)
        total = math.fsum(math.exp(value - largest) for value in row)
        result[index] = math.log(total) + largest - row[int(targets[index])]
    return result


@reference(
    "cross_entropy_grad",
    samples=[
        sample(note, logits, targets, floats(*targets.shape, phase=0.1), axis=axis)
        for note, (logits, targets, axis) in _CALLS.items()
    ],
    errors=[
        *_errors(floats(2)),
        error(
            "g of another shape",
            ShapeError,
            floats(2, 3),
            np.zeros(2, np.int64),
            floats(3),
            axis=1,
        ),
    ],
)
def _(logits: Array, targets: Array, g: Array, *, axis: int) -> Array:
    rows = np.moveaxis(logits, axis, -1)
    result = np.empty(rows.shape)
    for index in np.ndindex(targets.shape):
        slope = np.array(_softmax(rows[index].tolist()))
        slope[int(targets[index])] -= 1.0
        result[index] = g[index] * slope
    return np.moveaxis(result, -1, axis)
