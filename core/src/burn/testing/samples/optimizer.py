"""Samples of steps of optimizers."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from burn.errors import ArgumentError, OperandTypeError, ShapeError
from burn.testing.arrays import floats, strided, transposed
from burn.testing.op_samples import Array, error, reference, sample


def _state(*shape: int) -> tuple[Array, Array, Array]:
    """A parameter, its gradient, and a first state."""
    return floats(*shape), floats(*shape, phase=0.1), floats(*shape, phase=0.3)


def _sgd_step(
    parameter: Array,
    gradient: Array,
    velocity: Array,
    *,
    learning_rate: float,
    momentum: float,
    weight_decay: float,
    nesterov: bool,
) -> tuple[Array, Array]:
    direction = gradient + weight_decay * parameter
    velocity = momentum * velocity + direction
    step = direction + momentum * velocity if nesterov else velocity
    return parameter - learning_rate * step, velocity


def _sgd(
    learning_rate: float = 0.125,
    *,
    momentum: float = 0.9,
    weight_decay: float = 0.01,
    nesterov: bool = False,
) -> dict[str, Any]:
    return {
        "learning_rate": learning_rate,
        "momentum": momentum,
        "weight_decay": weight_decay,
        "nesterov": nesterov,
    }


reference(
    "sgd_step",
    samples=[
        sample("plain", *_state(2, 3), **_sgd(momentum=0.0, weight_decay=0.0)),
        sample("momentum", *_state(2, 3), **_sgd(weight_decay=0.0)),
        sample("weight decay", *_state(2, 3), **_sgd(momentum=0.0)),
        sample("everything", *_state(2, 3), **_sgd(nesterov=True)),
        sample("0-d", *_state(), **_sgd()),
        sample("empty", *_state(0, 2), **_sgd()),
        sample("layouts", transposed(floats(3, 4)), strided(floats(3, 4)), floats(3, 4), **_sgd()),
    ],
    errors=[
        error("gradient of another shape", ShapeError, floats(3), floats(2), floats(3), **_sgd()),
        error("velocity of another shape", ShapeError, floats(3), floats(3), floats(1), **_sgd()),
        error("no attributes", OperandTypeError, floats(3), floats(3), floats(3)),
        error(
            "learning rate None",
            OperandTypeError,
            *[floats(3)] * 3,
            **{**_sgd(), "learning_rate": None},
        ),
        error("learning rate of NaN", ArgumentError, *[floats(3)] * 3, **_sgd(math.nan)),
        error("negative momentum", ArgumentError, *[floats(3)] * 3, **_sgd(momentum=-0.5)),
    ],
)(_sgd_step)


def _adam_step(
    parameter: Array,
    gradient: Array,
    first_moment: Array,
    second_moment: Array,
    *,
    step: int,
    learning_rate: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    weight_decay: float,
) -> tuple[Array, Array, Array]:
    parameter = parameter - learning_rate * weight_decay * parameter
    first_moment = beta1 * first_moment + (1 - beta1) * gradient
    second_moment = beta2 * second_moment + (1 - beta2) * gradient**2
    unbiased_first = first_moment / (1 - beta1**step)
    unbiased_second = second_moment / (1 - beta2**step)
    change = learning_rate * unbiased_first / (np.sqrt(unbiased_second) + epsilon)
    return parameter - change, first_moment, second_moment


def _moments(*shape: int) -> tuple[Array, Array, Array, Array]:
    return *_state(*shape), floats(*shape, low=0.1, high=1.0, phase=0.7)


def _adam(
    step: float = 2,
    learning_rate: float = 0.1,
    *,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    weight_decay: float = 0.0,
) -> dict[str, Any]:
    return {
        "step": step,
        "learning_rate": learning_rate,
        "beta1": beta1,
        "beta2": beta2,
        "epsilon": epsilon,
        "weight_decay": weight_decay,
    }


_ZEROS: Final = np.zeros(3)

reference(
    "adam_step",
    samples=[
        sample(
            "first step",
            floats(2, 3),
            floats(2, 3, low=2.0, high=3.0),
            *[np.zeros((2, 3))] * 2,
            **_adam(1, 0.01),
        ),
        sample("later step", *_moments(2, 3), **_adam(10, 0.01)),
        sample("much later", *_moments(2, 3), **_adam(100_000, 0.01)),
        sample("weight decay", *_moments(2, 3), **_adam(weight_decay=0.01)),
        sample(
            "other rates",
            *_moments(2, 3),
            **_adam(3, beta1=0.5, beta2=0.75, epsilon=0.125),
        ),
        sample(
            "nothing to do",
            floats(3),
            _ZEROS,
            _ZEROS,
            _ZEROS,
            **_adam(1),
            differentiable=False,
        ),
        sample(
            "NaN in the gradient",
            floats(2),
            np.array([math.nan, 1.0]),
            *_moments(2)[2:],
            **_adam(),
        ),
        sample("0-d", *_moments(), **_adam()),
        sample("empty", *_moments(0, 2), **_adam()),
        sample(
            "layouts",
            transposed(floats(3, 4)),
            strided(floats(3, 4)),
            transposed(floats(3, 4)),
            strided(floats(3, 4, low=0.1)),
            **_adam(),
        ),
    ],
    errors=[
        error("step 0", ArgumentError, *[_ZEROS] * 4, **_adam(0)),
        error("step of NaN", OperandTypeError, *[_ZEROS] * 4, **_adam(math.nan)),
        error("infinite learning rate", ArgumentError, *[_ZEROS] * 4, **_adam(1, math.inf)),
        error("beta1 of 1", ArgumentError, *[_ZEROS] * 4, **_adam(1, beta1=1.0)),
        error("beta2 of 2", ArgumentError, *[_ZEROS] * 4, **_adam(1, beta2=2.0)),
        error(
            "negative epsilon",
            ArgumentError,
            *[_ZEROS] * 4,
            **_adam(1, epsilon=-1.0),
        ),
        error(
            "moment of another shape",
            ShapeError,
            *[_ZEROS] * 3,
            floats(2),
            **_adam(1),
        ),
    ],
)(_adam_step)
