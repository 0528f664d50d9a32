"""Samples of smooth activation functions."""

from __future__ import annotations

import math

import numpy as np

from burn.errors import ArgumentError, AxisError, ShapeError
from burn.testing.arrays import LONG_LENGTH, SPECIAL, expanded, floats, long, strided, transposed
from burn.testing.op_samples import Array, error, reference, sample
from burn.testing.samples.elementwise.elementwise_samples import (
    ORDERED,
    each,
    each_with_attributes,
    unary_calls,
    unary_floats,
)


def _exp(x: float) -> float:
    """The exponential, which overflows to infinity."""
    return math.exp(x) if x < 700.0 else math.inf if x == x else x  # noqa: PLR0124 — NaN


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


def _softplus(x: float, *, beta: float = 1.0) -> float:
    scaled = x * beta
    return x if scaled > 50.0 else math.log1p(_exp(scaled)) / beta


reference(
    "softplus",
    samples=[
        *unary_calls(-4.0, 4.0),
        sample("steep", floats(8), beta=5.0),
        sample("flat", floats(8, low=-9.0, high=9.0), beta=0.25),
        sample("at 0", np.array([0.0, -0.0])),
    ],
    errors=[
        error("beta 0", ArgumentError, floats(3), beta=0.0),
        error("negative beta", ArgumentError, floats(3), beta=-1.0),
        error("infinite beta", ArgumentError, floats(3), beta=math.inf),
    ],
)(each_with_attributes(_softplus))

reference("log_sigmoid", samples=[*unary_calls(-4.0, 4.0), sample("at 0", np.array([0.0, -0.0]))])(
    each(lambda x: -_softplus(-x))
)

reference("silu", samples=unary_calls(-4.0, 4.0))(each(lambda x: x * _sigmoid(x)))


def _mish(x: float) -> float:
    return x * math.tanh(_softplus(x))


reference("mish", samples=unary_calls(-4.0, 4.0))(each(_mish))


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
        sample("largest floats", np.array([3.3e38, -3.3e38, math.nan])),
        sample("tanh", floats(10, 5, low=-4.0, high=4.0), approximate="tanh"),
        sample("tanh, 0-d", floats(), approximate="tanh"),
        sample("tanh, far", np.array([-100.0, -8.0, -3.0, 5.0, 100.0]), approximate="tanh"),
        sample("tanh, special floats", long(ORDERED), approximate="tanh"),
    ],
    errors=[
        error("unknown form", ArgumentError, floats(3), approximate="erf"),
    ],
)
def _(x: Array, *, approximate: str = "none") -> Array:
    result: Array = each(_gelu_tanh if approximate == "tanh" else _gelu)(x)
    return result


def _gelu_slope(x: float) -> float:
    if not math.isfinite(x):
        return math.nan  # as it is computed: a product of infinity and 0
    area = 0.5 * math.erfc(-x * math.sqrt(0.5))
    return area + x * math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)


def _gelu_tanh_slope(x: float) -> float:
    if not math.isfinite(x):
        return math.nan
    scale = math.sqrt(2.0 / math.pi)
    t = math.tanh(scale * (x + 0.044715 * x**3))
    return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * scale * (1.0 + 3.0 * 0.044715 * x * x)


@reference(
    "gelu_grad",
    samples=[
        sample("0-d", floats(), floats(phase=0.1)),
        sample("vector", floats(LONG_LENGTH, low=-4.0, high=4.0), floats(LONG_LENGTH, phase=0.1)),
        sample("special floats", long(SPECIAL), floats(LONG_LENGTH, phase=0.1)),
        sample("broadcast g", floats(3, 4), floats(4, phase=0.1)),
        sample("broadcast x", floats(4), floats(3, 4, phase=0.1)),
        sample("empty", floats(0), floats(0)),
        sample("layouts", transposed(floats(3, 4)), strided(floats(3, 4, phase=0.1))),
        sample("expanded", expanded(floats(3), 2, 3), floats(2, 3, phase=0.1)),
        sample("far", np.array([-100.0, -8.0, -5.0, 5.0, 8.0, 100.0]), np.array(2.0)),
        sample(
            "tanh",
            floats(LONG_LENGTH, low=-4.0, high=4.0),
            floats(LONG_LENGTH, phase=0.1),
            approximate="tanh",
        ),
        sample(
            "tanh, special floats",
            long(SPECIAL),
            floats(LONG_LENGTH, phase=0.1),
            approximate="tanh",
        ),
        sample(
            "tanh, far",
            np.array([-100.0, -8.0, -3.0, 5.0, 100.0]),
            np.array(2.0),
            approximate="tanh",
        ),
    ],
    errors=[
        error("unknown form", ArgumentError, floats(3), floats(3), approximate="erf"),
        error("shapes do not broadcast", ShapeError, floats(3), floats(2)),
    ],
)
def _(x: Array, g: Array, *, approximate: str = "none") -> Array:
    slope = _gelu_tanh_slope if approximate == "tanh" else _gelu_slope
    result: Array = each(lambda x, g: g * slope(x))(x, g)
    return result


reference("softsign", samples=unary_calls(-4.0, 4.0))(
    each(lambda x: x / (1.0 + abs(x)) if math.isfinite(x) else math.nan)
)

reference("tanhshrink", samples=unary_calls(-4.0, 4.0))(each(lambda x: x - math.tanh(x)))


@reference(
    "glu",
    samples=[
        sample("last axis", floats(3, 4), axis=1),
        sample("first axis", floats(4, 3), axis=0),
        sample("middle axis", floats(2, 6, 2), axis=1),
        sample("vector", floats(8, low=-9.0, high=9.0), axis=0),
        sample("empty halves", floats(2, 0), axis=1),
        sample("empty other axis", floats(0, 4), axis=1),
        sample("transposed", transposed(floats(3, 4)), axis=1),
        sample("strided", strided(floats(3, 4)), axis=1),
        sample("expanded", expanded(floats(4), 3, 4), axis=1),
        sample("far gates", np.array([1.0, 2.0, -1000.0, 1000.0]), axis=0),
    ],
    errors=[
        error("odd length", ShapeError, floats(2, 3), axis=1),
        error("axis out of range", AxisError, floats(4), axis=1),
        error("0-d", AxisError, floats(), axis=0),
    ],
)
def _(x: Array, *, axis: int) -> Array:
    rows = np.moveaxis(x, axis, -1)
    half = rows.shape[-1] // 2
    result = np.empty((*rows.shape[:-1], half))
    for index in np.ndindex(result.shape):
        gate = rows[(*index[:-1], half + index[-1])]
        result[index] = rows[index] * _sigmoid(float(gate))
    return np.moveaxis(result, -1, axis)
