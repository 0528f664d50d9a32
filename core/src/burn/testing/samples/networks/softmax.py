"""Samples of the softmax and its like."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from burn.errors import AxisError, ShapeError
from burn.testing.arrays import expanded, floats, strided, transposed
from burn.testing.op_samples import Array, Sample, error, reference, sample


def _rows(**attributes: Any) -> list[Sample]:
    return [
        sample("last axis", floats(3, 4), axis=1, **attributes),
        sample("first axis", floats(3, 4), axis=0, **attributes),
        sample("middle axis", floats(2, 3, 2), axis=1, **attributes),
        sample("vector", floats(7, low=-8.0, high=8.0), axis=0, **attributes),
        sample("many", floats(4, 100, low=-8.0, high=8.0), axis=1, **attributes),
        sample("large", np.array([[1000.0, 1001.0, 999.0], [-1000.0, -999.0, -1001.0]]), axis=1),
        sample("all equal", np.full((2, 4), 3.0), axis=1),
        sample("one far above", np.array([0.0, -2.0, 60.0]), axis=0),
        sample("minus infinity", np.array([-math.inf, 0.0, 1.0]), axis=0),
        sample("nothing but minus infinity", np.full((2, 3), -math.inf), axis=1),
        sample("NaN", np.array([[math.nan, 0.0], [1.0, 0.0]]), axis=1),
        sample("length 1", floats(3, 1), axis=1),
        sample("empty axis", floats(2, 0), axis=1),
        sample("empty other axis", floats(0, 3), axis=1),
        sample("transposed", transposed(floats(3, 4)), axis=1),
        sample("strided", strided(floats(3, 4)), axis=0),
        sample("expanded", expanded(floats(4), 3, 4), axis=1),
    ]


_ROW_ERRORS: Final = (
    error("axis out of range", AxisError, floats(3), axis=1),
    error("negative axis", AxisError, floats(3), axis=-1, lenient=True),
    error("0-d", AxisError, floats(), axis=0),
)


def _log_softmax(x: Array, *, axis: int) -> Array:
    result = np.empty(x.shape)
    rows, results = np.moveaxis(x, axis, -1), np.moveaxis(result, axis, -1)
    for row in np.ndindex(rows.shape[:-1]):
        values = rows[row]
        if values.size:
            # Where a NaN comes first, Python's max would not find it.
            largest = math.nan if np.isnan(values).any() else max(values.tolist())
            powers = [math.exp(value - largest) for value in values.tolist()]
            results[row] = values - largest - math.log(math.fsum(powers))
    return result


reference("log_softmax", samples=_rows(), errors=_ROW_ERRORS)(_log_softmax)


@reference("softmax", samples=_rows(), errors=_ROW_ERRORS)
def _(x: Array, *, axis: int) -> Array:
    return np.exp(_log_softmax(x, axis=axis))


@reference(
    "quiet_softmax",
    samples=[
        *_rows(),
        sample("all far below 0", np.array([[-800.0, -900.0], [-30.0, -20.0]]), axis=1),
        sample("nothing chosen", np.full((2, 3), -math.inf), axis=1),
    ],
    errors=_ROW_ERRORS,
)
def _(x: Array, *, axis: int) -> Array:
    # The softmax of the row and a zero.
    shape = list(x.shape)
    shape[axis] = 1
    longer = np.concatenate([x, np.zeros(shape)], axis=axis)
    whole = np.exp(_log_softmax(longer, axis=axis))
    return np.take(whole, range(x.shape[axis]), axis=axis)


_GRADIENTS: Final = {
    "last axis": (floats(3, 4), floats(3, 4, phase=0.1), 1),
    "first axis": (floats(3, 4), floats(3, 4, phase=0.1), 0),
    "middle axis": (floats(2, 3, 2), floats(2, 3, 2, phase=0.1), 1),
    "vector": (floats(5), floats(5, phase=0.1), 0),
    "many": (floats(4, 60, low=-1.0, high=1.0), floats(4, 60, phase=0.1), 1),
    "empty axis": (floats(2, 0), floats(2, 0), 1),
    "empty other axis": (floats(0, 3), floats(0, 3), 1),
    "transposed": (transposed(floats(3, 4)), strided(floats(3, 4, phase=0.1)), 1),
    "expanded": (expanded(floats(4), 3, 4), expanded(floats(), 3, 4), 1),
}
"""An output, the gradient that reaches it, and the axis."""

_GRADIENT_ERRORS: Final = (
    error("g of another shape", ShapeError, floats(2, 3), floats(3), axis=1),
    error("axis out of range", AxisError, floats(3), floats(3), axis=1),
)


def _summed(rows: Array, axis: int) -> Array:
    """Sums along an axis, exact, kept."""
    moved = np.moveaxis(rows, axis, -1)
    result = np.empty((*moved.shape[:-1], 1))
    for row in np.ndindex(moved.shape[:-1]):
        result[row] = math.fsum(moved[row].tolist())
    return np.moveaxis(result, -1, axis)


@reference(
    "softmax_grad",
    samples=[sample(note, y, g, axis=axis) for note, (y, g, axis) in _GRADIENTS.items()],
    errors=_GRADIENT_ERRORS,
    terms=lambda output, g, axis: (
        output.shape[axis],
        np.abs(output * g) + np.abs(output) * _summed(np.abs(output * g), axis),
    ),
)
def _(output: Array, g: Array, *, axis: int) -> Array:
    return np.asarray(output * (g - _summed(output * g, axis)))


@reference(
    "log_softmax_grad",
    samples=[sample(note, y, g, axis=axis) for note, (y, g, axis) in _GRADIENTS.items()],
    errors=_GRADIENT_ERRORS,
    terms=lambda output, g, axis: (
        output.shape[axis],
        np.abs(g) + np.exp(output) * _summed(np.abs(g), axis),
    ),
)
def _(output: Array, g: Array, *, axis: int) -> Array:
    return np.asarray(g - np.exp(output) * _summed(g, axis))
