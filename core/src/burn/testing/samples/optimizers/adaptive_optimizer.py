"""Samples of steps of optimizers other than gradient descent and Adam."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from burn.errors import ArgumentError, OperandTypeError, ShapeError
from burn.testing.arrays import floats
from burn.testing.op_samples import Array, error, reference, sample
from burn.testing.samples.optimizers.optimizer import LAYOUTS, SHAPES, for_each, moments, states

_ONE: Final = [floats(3)]
_OTHER: Final = [floats(2)]


def _adagrad_step(
    parameter: Array,
    gradient: Array,
    total: Array,
    *,
    step: int,
    learning_rate: float,
    learning_rate_decay: float,
    epsilon: float,
    weight_decay: float,
) -> tuple[Array, ...]:
    gradient = gradient + weight_decay * parameter
    total = total + gradient**2
    rate = learning_rate / (1 + (step - 1) * learning_rate_decay)
    return parameter - rate * gradient / (np.sqrt(total) + epsilon), total


def _sums(*shapes: tuple[int, ...]) -> list[list[Array]]:
    return [*states(*shapes, count=2), *moments(*shapes)]


def _adagrad(
    step: int = 2,
    learning_rate: float = 0.1,
    *,
    learning_rate_decay: float = 0.0,
    epsilon: float = 1e-10,
    weight_decay: float = 0.0,
) -> dict[str, Any]:
    return {
        "step": step,
        "learning_rate": learning_rate,
        "learning_rate_decay": learning_rate_decay,
        "epsilon": epsilon,
        "weight_decay": weight_decay,
    }


reference(
    "adagrad_step",
    samples=[
        sample("plain", *_sums((2, 3)), **_adagrad()),
        sample("decay of the rate", *_sums((2, 3)), **_adagrad(9, learning_rate_decay=0.125)),
        sample("weight decay", *_sums((2, 3)), **_adagrad(weight_decay=0.01)),
        sample("epsilon", *_sums((2, 3)), **_adagrad(epsilon=0.5)),
        sample("several", *_sums(*SHAPES), **_adagrad(3, weight_decay=0.01)),
        sample("0-d", *_sums(()), **_adagrad()),
        sample("empty", *_sums((0, 2)), **_adagrad()),
        sample("layouts", LAYOUTS, LAYOUTS[::-1], moments(*[(3, 4)] * 3)[0], **_adagrad()),
    ],
    errors=[
        error("step 0", ArgumentError, *[_ONE] * 3, **_adagrad(0)),
        error("negative decay", ArgumentError, *[_ONE] * 3, **_adagrad(learning_rate_decay=-1.0)),
        error("sum of another shape", ShapeError, _ONE, _ONE, _OTHER, **_adagrad()),
        error("no parameters", OperandTypeError, [], [], [], **_adagrad()),
        error("no sums", OperandTypeError, _ONE, _ONE, [], **_adagrad()),
    ],
)(for_each(_adagrad_step))


def _rmsprop_step(
    parameter: Array,
    gradient: Array,
    second_moment: Array,
    velocity: Array | None,
    first_moment: Array | None,
    *,
    learning_rate: float,
    alpha: float,
    epsilon: float,
    weight_decay: float,
    momentum: float,
) -> tuple[Array, ...]:
    gradient = gradient + weight_decay * parameter
    second_moment = alpha * second_moment + (1 - alpha) * gradient**2
    variance = second_moment
    if first_moment is not None:
        first_moment = alpha * first_moment + (1 - alpha) * gradient
        variance = second_moment - first_moment**2
    direction = gradient / (np.sqrt(variance) + epsilon)
    if velocity is not None:
        direction = velocity = momentum * velocity + direction
    kept = [array for array in (second_moment, velocity, first_moment) if array is not None]
    return parameter - learning_rate * direction, *kept


def _rmsprop_states(
    *shapes: tuple[int, ...], velocity: bool = False, centered: bool = False
) -> list[list[Array]]:
    parameters, gradients, others = states(*shapes)
    second = [floats(*shape, low=1.5, high=3.0) for shape in shapes]
    return [parameters, gradients, second, others * velocity, others * centered]


def _rmsprop(
    learning_rate: float = 0.1,
    *,
    alpha: float = 0.75,
    epsilon: float = 1e-8,
    weight_decay: float = 0.0,
    momentum: float = 0.0,
) -> dict[str, Any]:
    return {
        "learning_rate": learning_rate,
        "alpha": alpha,
        "epsilon": epsilon,
        "weight_decay": weight_decay,
        "momentum": momentum,
    }


_HEAVY: Final = _rmsprop(momentum=0.9, weight_decay=0.01)

reference(
    "rmsprop_step",
    samples=[
        sample("plain", *_rmsprop_states((2, 3)), **_rmsprop()),
        sample("weight decay", *_rmsprop_states((2, 3)), **_rmsprop(weight_decay=0.01)),
        sample("momentum", *_rmsprop_states((2, 3), velocity=True), **_HEAVY),
        sample("unused velocity", *_rmsprop_states((2, 3), velocity=True), **_rmsprop()),
        sample("centered", *_rmsprop_states((2, 3), centered=True), **_rmsprop(epsilon=0.125)),
        sample("everything", *_rmsprop_states((2, 3), velocity=True, centered=True), **_HEAVY),
        sample("several", *_rmsprop_states(*SHAPES), **_rmsprop()),
        sample(
            "several, everything",
            *_rmsprop_states(*SHAPES, velocity=True, centered=True),
            **_HEAVY,
        ),
        sample("0-d", *_rmsprop_states((), velocity=True), **_HEAVY),
        sample("empty", *_rmsprop_states((0, 2), centered=True), **_rmsprop()),
        sample("layouts", LAYOUTS, LAYOUTS[::-1], moments(*[(3, 4)] * 3)[0], [], [], **_rmsprop()),
    ],
    errors=[
        error("alpha of 1", ArgumentError, *[_ONE] * 3, [], [], **_rmsprop(alpha=1.0)),
        error("no velocity", OperandTypeError, *[_ONE] * 3, [], [], **_HEAVY),
        error("velocity of another shape", ShapeError, *[_ONE] * 3, _OTHER, [], **_HEAVY),
        error("mean of another shape", ShapeError, *[_ONE] * 3, [], _OTHER, **_rmsprop()),
        error("no parameters", OperandTypeError, *[[]] * 5, **_rmsprop()),
        error("no second moments", OperandTypeError, _ONE, _ONE, [], [], [], **_rmsprop()),
        error("infinite rate", ArgumentError, *[_ONE] * 3, [], [], **_rmsprop(math.inf)),
    ],
)(for_each(_rmsprop_step))


def _adan_step(
    parameter: Array,
    gradient: Array,
    previous_gradient: Array,
    first_moment: Array,
    difference: Array,
    second_moment: Array,
    *,
    step: int,
    learning_rate: float,
    beta1: float,
    beta2: float,
    beta3: float,
    epsilon: float,
    weight_decay: float,
    proximal: bool,
) -> tuple[Array, ...]:
    change = gradient - previous_gradient
    first_moment = beta1 * first_moment + (1 - beta1) * gradient
    difference = beta2 * difference + (1 - beta2) * change
    second_moment = beta3 * second_moment + (1 - beta3) * (gradient + beta2 * change) ** 2
    spread = np.sqrt(second_moment / (1 - beta3**step)) + epsilon
    direction = first_moment / (1 - beta1**step) + beta2 * difference / (1 - beta2**step)
    moved = parameter - learning_rate * direction / spread
    if proximal:
        moved = moved / (1 + learning_rate * weight_decay)
    else:
        moved = moved - learning_rate * weight_decay * parameter
    return moved, first_moment, difference, second_moment


def _adan_states(*shapes: tuple[int, ...]) -> list[list[Array]]:
    return [*states(*shapes, count=5), *moments(*shapes)]


def _adan(
    step: int = 2,
    learning_rate: float = 0.1,
    *,
    beta1: float = 0.75,
    beta2: float = 0.5,
    beta3: float = 0.875,
    epsilon: float = 1e-8,
    weight_decay: float = 0.0,
    proximal: bool = True,
) -> dict[str, Any]:
    return {
        "step": step,
        "learning_rate": learning_rate,
        "beta1": beta1,
        "beta2": beta2,
        "beta3": beta3,
        "epsilon": epsilon,
        "weight_decay": weight_decay,
        "proximal": proximal,
    }


reference(
    "adan_step",
    samples=[
        sample("plain", *_adan_states((2, 3)), **_adan()),
        sample(
            "first step",
            [floats(2, 3)],
            *[[floats(2, 3, low=2.0, high=3.0)]] * 2,
            *[[np.zeros((2, 3))]] * 3,
            **_adan(1, 0.01),
        ),
        sample("proximal", *_adan_states((2, 3)), **_adan(weight_decay=0.5)),
        sample("decoupled", *_adan_states((2, 3)), **_adan(weight_decay=0.5, proximal=False)),
        sample("much later", *_adan_states((2, 3)), **_adan(100_000, epsilon=0.125)),
        sample("several", *_adan_states(*SHAPES), **_adan(3, weight_decay=0.25)),
        sample("0-d", *_adan_states(()), **_adan()),
        sample("empty", *_adan_states((0, 2)), **_adan()),
        sample(
            "layouts",
            LAYOUTS,
            *[LAYOUTS[::-1], LAYOUTS] * 2,
            moments(*[(3, 4)] * 3)[0],
            **_adan(),
        ),
    ],
    errors=[
        error("step 0", ArgumentError, *[_ONE] * 6, **_adan(0)),
        error("beta3 of 1", ArgumentError, *[_ONE] * 6, **_adan(beta3=1.0)),
        error("difference of another shape", ShapeError, *[_ONE] * 4, _OTHER, _ONE, **_adan()),
        error("no parameters", OperandTypeError, *[[]] * 6, **_adan()),
        error("no previous gradients", OperandTypeError, *[_ONE] * 2, [], *[_ONE] * 3, **_adan()),
    ],
)(for_each(_adan_step))


def _lion_step(
    parameter: Array,
    gradient: Array,
    moment: Array,
    *,
    learning_rate: float,
    beta1: float,
    beta2: float,
    weight_decay: float,
) -> tuple[Array, ...]:
    direction = np.sign(beta1 * moment + (1 - beta1) * gradient)
    parameter = parameter - learning_rate * weight_decay * parameter
    return parameter - learning_rate * direction, beta2 * moment + (1 - beta2) * gradient


def _lion(
    learning_rate: float = 0.1,
    *,
    beta1: float = 0.75,
    beta2: float = 0.5,
    weight_decay: float = 0.0,
) -> dict[str, Any]:
    return {
        "learning_rate": learning_rate,
        "beta1": beta1,
        "beta2": beta2,
        "weight_decay": weight_decay,
    }


reference(
    "lion_step",
    samples=[
        sample("plain", *states((2, 3)), **_lion()),
        sample("weight decay", *states((2, 3)), **_lion(weight_decay=0.5)),
        sample("nothing to do", _ONE, *[[np.zeros(3)]] * 2, **_lion(), differentiable=False),
        sample(
            "NaN in the gradient", [floats(2)], [np.array([math.nan, 1.0])], [floats(2)], **_lion()
        ),
        sample("several", *states(*SHAPES), **_lion(weight_decay=0.25)),
        sample("0-d", *states(()), **_lion()),
        sample("empty", *states((0, 2)), **_lion()),
        sample("layouts", LAYOUTS, LAYOUTS[::-1], LAYOUTS, **_lion()),
    ],
    errors=[
        error("learning rate of NaN", ArgumentError, *[_ONE] * 3, **_lion(math.nan)),
        error("beta1 of 1", ArgumentError, *[_ONE] * 3, **_lion(beta1=1.0)),
        error("moment of another shape", ShapeError, _ONE, _ONE, _OTHER, **_lion()),
        error("no parameters", OperandTypeError, [], [], [], **_lion()),
        error("no moments", OperandTypeError, _ONE, _ONE, [], **_lion()),
    ],
)(for_each(_lion_step))
