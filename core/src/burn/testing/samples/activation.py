"""Samples of activation functions."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from burn.errors import ArgumentError, AxisError, ShapeError
from burn.testing.arrays import expanded, floats, strided, transposed
from burn.testing.sample import Array, Sample, error, reference, sample
from burn.testing.samples._elementwise import ORDERED, each, unary_floats


def _without_special(samples: list[Sample]) -> list[Sample]:
    return [one for one in samples if one.note != "special floats"]


@reference(
    "relu",
    samples=[
        *_without_special(unary_floats()),
        sample("special floats", ORDERED),
        sample(
            "slope 0 at 0",
            np.array([0.0, 1.0, -1.0]),
            differentiable=False,
            gradients=(np.array([0.0, 1.0, 0.0]),),
        ),
    ],
    exact=True,
)
def _(x: Array) -> Array:
    return np.where(x <= 0.0, 0.0, x)


@reference(
    "relu_grad",
    samples=[
        sample("0-d", floats(), floats(phase=0.1)),
        sample("matrix", floats(3, 4), floats(3, 4, phase=0.1)),
        sample("broadcast g", floats(3, 4), floats(4, phase=0.1)),
        sample("broadcast output", floats(4), floats(3, 4, phase=0.1)),
        sample("empty", floats(0), floats(0)),
        sample("layouts", transposed(floats(3, 4)), strided(floats(3, 4, phase=0.1))),
        sample(
            "output 0 stops it", np.array([0.0, 1.0]), np.array([2.0, 3.0]), differentiable=False
        ),
        sample("NaN is stopped", np.array([0.0, 1.0]), np.array([math.nan, math.inf])),
    ],
    errors=[error("shapes do not broadcast", ShapeError, floats(3), floats(2))],
    exact=True,
)
def _(output: Array, g: Array) -> Array:
    output, g = np.broadcast_arrays(output, g)
    result = np.zeros(g.shape)
    result[output > 0.0] = g[output > 0.0]
    return result


def _sigmoid(x: float) -> float:
    if math.isnan(x):
        return x
    return 1.0 / (1.0 + math.exp(-x)) if x > -700.0 else math.exp(max(x, -800.0))


reference(
    "sigmoid",
    samples=[
        *unary_floats(-5.0, 5.0),
        sample("far", np.array([-1000.0, -100.0, -20.0, -9.0, 9.0, 20.0, 1000.0])),
        sample("zeros of both signs", np.array([0.0, -0.0])),
    ],
)(each(_sigmoid))


def _gelu(x: float) -> float:
    return x * 0.5 * math.erfc(-x * math.sqrt(0.5)) if math.isfinite(x) else _limit(x)


def _gelu_tanh(x: float) -> float:
    if not math.isfinite(x):
        return _limit(x)
    return x * 0.5 * (1.0 + math.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


def _limit(x: float) -> float:
    """``x * Phi(x)`` as it is computed where it is a product with infinity: inf * 0 is NaN."""
    return x if x > 0.0 else math.nan


@reference(
    "gelu",
    samples=[
        *unary_floats(-4.0, 4.0),
        sample("far", np.array([-100.0, -8.0, -5.0, -3.0, 5.0, 8.0, 100.0])),
        sample("tanh", floats(10, 5, low=-4.0, high=4.0), approximate="tanh"),
        sample("tanh, 0-d", floats(), approximate="tanh"),
        sample("tanh, far", np.array([-100.0, -8.0, -3.0, 5.0, 100.0]), approximate="tanh"),
        sample("tanh, special floats", ORDERED, approximate="tanh"),
    ],
    errors=[
        error("unknown form", ArgumentError, floats(3), approximate="erf"),
    ],
)
def _(x: Array, *, approximate: str = "none") -> Array:
    result: Array = each(_gelu_tanh if approximate == "tanh" else _gelu)(x)
    return result


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
