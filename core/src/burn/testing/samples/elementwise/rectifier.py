"""Samples of activation functions made of pieces."""

from __future__ import annotations

import math

import numpy as np

from burn.errors import ArgumentError, OperandTypeError, ShapeError
from burn.testing.arrays import SPECIAL, floats, long, pairs, strided, transposed
from burn.testing.op_samples import Array, Sample, error, reference, sample
from burn.testing.samples.elementwise.elementwise_samples import (
    ORDERED,
    each,
    each_with_attributes,
    unary_calls,
    unary_floats,
)


def _without_special(samples: list[Sample]) -> list[Sample]:
    return [sample for sample in samples if sample.note != "special floats"]


@reference(
    "relu",
    samples=[
        *_without_special(unary_floats()),
        sample("special floats", long(ORDERED)),
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
        sample("special floats", *pairs(np.append(SPECIAL, [1.5, -2.5]))),
    ],
    errors=[error("shapes do not broadcast", ShapeError, floats(3), floats(2))],
    exact=True,
)
def _(output: Array, g: Array) -> Array:
    output, g = np.broadcast_arrays(output, g)
    result = np.zeros(g.shape)
    result[output > 0.0] = g[output > 0.0]
    return result


def _leaky_relu(x: float, *, negative_slope: float) -> float:
    return x if x > 0.0 else negative_slope * x


reference(
    "leaky_relu",
    samples=[
        *unary_calls(-2.0, 2.0, negative_slope=0.01),
        sample("steep", floats(7), negative_slope=3.0),
        sample("mirrored", floats(7), negative_slope=-1.0),
        sample(
            "slope of the negative side at 0",
            np.array([0.0, 1.0, -1.0]),
            negative_slope=0.25,
            differentiable=False,
            gradients=(np.array([0.25, 1.0, 0.25]),),
        ),
    ],
)(each_with_attributes(_leaky_relu))


@reference(
    "prelu",
    samples=[
        sample("0-d", floats(), floats(phase=0.1)),
        sample("slope for each", floats(3, 4), floats(3, 4, phase=0.1)),
        sample("slope for each channel", floats(2, 3, 4), floats(3, 1, phase=0.1)),
        sample("one slope", floats(2, 3), floats(1, phase=0.1)),
        sample("slopes for one number", floats(), floats(4, phase=0.1)),
        sample("empty", floats(0, 3), floats(3, phase=0.1)),
        sample("layouts", transposed(floats(3, 4)), strided(floats(3, 4, phase=0.1))),
        sample("special floats", long(SPECIAL), np.array(0.25)),
        sample(
            "at 0",
            np.array([0.0, -2.0]),
            np.array([0.5, 3.0]),
            differentiable=False,
            gradients=(np.array([0.5, 3.0]), np.array([0.0, -2.0])),
        ),
    ],
    errors=[error("shapes do not broadcast", ShapeError, floats(3), floats(2))],
)
def _(x: Array, alpha: Array) -> Array:
    result: Array = each(lambda x, alpha: x if x > 0.0 else alpha * x)(x, alpha)
    return result


def _elu(x: float, *, alpha: float, scale: float = 1.0, input_scale: float = 1.0) -> float:
    return scale * x if x > 0.0 else scale * alpha * math.expm1(input_scale * x)


reference(
    "elu",
    samples=[
        *unary_calls(-3.0, 3.0, alpha=1.0),
        sample("near 0", np.array([1e-4, -1e-4, -1e-3]), alpha=2.0),
        sample("CELU", floats(8, low=-3.0, high=3.0), alpha=2.0, input_scale=0.5),
        sample("SELU", floats(8, low=-3.0, high=3.0), alpha=1.6732632423543772, scale=1.05070098),
        sample(
            "at 0",
            np.array([0.0, 1.0]),
            alpha=0.5,
            differentiable=False,
            gradients=(np.array([0.5, 1.0]),),
        ),
    ],
)(each_with_attributes(_elu))


def _hardtanh(x: float, *, low: float, high: float) -> float:
    return x if math.isnan(x) else min(max(x, low), high)


reference(
    "hardtanh",
    samples=[
        *unary_calls(-2.0, 2.0, low=-1.0, high=1.0),
        sample("ReLU6", floats(9, low=-3.0, high=9.0), low=0.0, high=6.0),
        sample(
            "slope 0 at the bounds",
            np.array([-1.0, 0.5, 2.0]),
            low=-1.0,
            high=2.0,
            differentiable=False,
            gradients=(np.array([0.0, 1.0, 0.0]),),
        ),
        sample("equal bounds", floats(9), low=1.0, high=1.0, differentiable=False),
        sample("infinite bounds", floats(9), low=-math.inf, high=math.inf),
    ],
    errors=[
        error("bounds the wrong way round", ArgumentError, floats(3), low=1.0, high=-1.0),
        error("a bound of NaN", ArgumentError, floats(3), low=math.nan, high=1.0),
        error("no bound", OperandTypeError, floats(3), low=-1.0, high=None),
    ],
)(each_with_attributes(_hardtanh))


def _hard_sigmoid(x: float, *, alpha: float, beta: float) -> float:
    value = alpha * x + beta
    return value if math.isnan(value) else min(max(value, 0.0), 1.0)


reference(
    "hard_sigmoid",
    samples=[
        *unary_calls(-4.0, 4.0, alpha=1.0 / 6.0, beta=0.5),
        sample("steep", floats(8), alpha=2.0, beta=0.25),
        sample(
            "slope 0 at the bounds",
            np.array([-2.0, 0.0, 2.0]),
            alpha=0.25,
            beta=0.5,
            differentiable=False,
            gradients=(np.array([0.0, 0.25, 0.0]),),
        ),
    ],
)(each_with_attributes(_hard_sigmoid))

reference(
    "hard_swish",
    samples=[
        *unary_calls(-4.0, 4.0),
        sample(
            "at the bounds",
            np.array([-3.0, 0.0, 3.0]),
            differentiable=False,
            gradients=(np.array([0.0, 0.5, 1.0]),),
        ),
    ],
)(each(lambda x: x * _hard_sigmoid(x, alpha=1.0 / 6.0, beta=0.5)))


def _shrink(x: float, *, lambd: float, bias: float = 0.0) -> float:
    if -lambd <= x <= lambd:
        return 0.0
    return x - bias if x > 0.0 else x + bias


reference(
    "shrink",
    samples=[
        *unary_calls(-2.0, 2.0, lambd=0.5),
        sample("soft", floats(9), lambd=0.5, bias=0.5),
        sample("away from 0", floats(9), lambd=1.0, bias=-0.25),
        sample("nothing within", floats(9), lambd=0.0, bias=0.1),
        sample(
            "slope 0 at the bounds",
            np.array([-0.5, 0.5, 0.75]),
            lambd=0.5,
            differentiable=False,
            gradients=(np.array([0.0, 0.0, 1.0]),),
        ),
    ],
    errors=[
        error("negative threshold", ArgumentError, floats(3), lambd=-0.5),
        error("threshold of NaN", ArgumentError, floats(3), lambd=math.nan),
    ],
)(each_with_attributes(_shrink))


def _threshold(x: float, *, threshold: float, value: float) -> float:
    return value if x <= threshold else x


reference(
    "threshold",
    samples=[
        *unary_calls(-2.0, 2.0, threshold=0.5, value=0.0),
        sample("another value", floats(9), threshold=-0.5, value=7.0),
        sample(
            "slope 0 at the threshold",
            np.array([1.0, 2.0]),
            threshold=1.0,
            value=5.0,
            differentiable=False,
            gradients=(np.array([0.0, 1.0]),),
        ),
    ],
)(each_with_attributes(_threshold))
