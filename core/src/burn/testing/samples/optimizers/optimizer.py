"""Samples of steps of gradient descent and of Adam."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from burn.errors import ArgumentError, OperandTypeError, ShapeError
from burn.testing.arrays import floats, strided, transposed
from burn.testing.op_samples import Array, error, reference, sample

__all__ = ["LAYOUTS", "SHAPES", "for_each", "moments", "states"]

SHAPES: Final = [(2, 3), (), (5,), (0, 2), (300,)]
"""Shapes of parameters that one call updates."""

LAYOUTS: Final = [transposed(floats(3, 4)), strided(floats(3, 4)), floats(3, 4, phase=0.2)]
"""Parameters of one shape and of several layouts."""


def states(*shapes: tuple[int, ...], count: int = 3) -> list[list[Array]]:
    """Lists of parameters, of their gradients, and of states of any sign."""
    return [
        [floats(*shape, phase=0.3 * index + 0.1 * number) for number, shape in enumerate(shapes)]
        for index in range(count)
    ]


def moments(*shapes: tuple[int, ...], count: int = 1) -> list[list[Array]]:
    """Lists of states that are positive."""
    return [
        [
            floats(*shape, low=0.1, high=1.0, phase=0.7 + 0.2 * index + 0.1 * number)
            for number, shape in enumerate(shapes)
        ]
        for index in range(count)
    ]


def for_each(function: Callable[..., tuple[Array, ...]]) -> Callable[..., tuple[Array, ...]]:
    """The reference of an op by that of one parameter; of an empty list it gets None."""

    def call(*lists: list[Array], **attributes: Any) -> tuple[Array, ...]:
        columns: list[list[Any]] = [operand or [None] * len(lists[0]) for operand in lists]
        results = [function(*operands, **attributes) for operands in zip(*columns, strict=True)]
        return tuple(item for output in zip(*results, strict=True) for item in output)

    return call


def _sgd_step(
    parameter: Array,
    gradient: Array,
    velocity: Array | None,
    *,
    learning_rate: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
) -> tuple[Array, ...]:
    direction = gradient + weight_decay * parameter
    following = direction
    if momentum and velocity is not None:
        following = momentum * velocity + (1 - dampening) * direction
    step = direction + momentum * following if nesterov else following
    parameter = parameter - learning_rate * step
    return (parameter,) if velocity is None else (parameter, following)


def _sgd(
    learning_rate: float = 0.125,
    *,
    momentum: float = 0.9,
    dampening: float = 0.0,
    weight_decay: float = 0.01,
    nesterov: bool = False,
) -> dict[str, Any]:
    return {
        "learning_rate": learning_rate,
        "momentum": momentum,
        "dampening": dampening,
        "weight_decay": weight_decay,
        "nesterov": nesterov,
    }


_ONE: Final = [floats(3)]

reference(
    "sgd_step",
    samples=[
        sample("plain", *states((2, 3)), **_sgd(momentum=0.0, weight_decay=0.0)),
        sample("momentum", *states((2, 3)), **_sgd(weight_decay=0.0)),
        sample("weight decay", *states((2, 3)), **_sgd(momentum=0.0)),
        sample("dampening", *states((2, 3)), **_sgd(dampening=0.25)),
        sample("everything", *states((2, 3)), **_sgd(dampening=0.5, nesterov=True)),
        sample("no velocity", *states((2, 3), count=2), [], **_sgd(momentum=0.0)),
        sample("several", *states(*SHAPES), **_sgd(nesterov=True)),
        sample("several without velocity", *states(*SHAPES, count=2), [], **_sgd(momentum=0.0)),
        sample("0-d", *states(()), **_sgd()),
        sample("empty", *states((0, 2)), **_sgd()),
        sample("layouts", LAYOUTS, LAYOUTS[::-1], LAYOUTS, **_sgd()),
    ],
    errors=[
        error("gradient of another shape", ShapeError, _ONE, [floats(2)], _ONE, **_sgd()),
        error("velocity of another shape", ShapeError, _ONE, _ONE, [floats(1)], **_sgd()),
        error("second of another shape", ShapeError, _ONE * 2, [*_ONE, floats()], [], **_sgd()),
        error("no parameters", OperandTypeError, [], [], [], **_sgd()),
        error("a gradient too few", OperandTypeError, _ONE * 2, _ONE, _ONE * 2, **_sgd()),
        error("a velocity too few", OperandTypeError, _ONE * 2, _ONE * 2, _ONE, **_sgd()),
        error("momentum without velocity", OperandTypeError, _ONE, _ONE, [], **_sgd()),
        error("no attributes", OperandTypeError, *[_ONE] * 3),
        error(
            "learning rate None",
            OperandTypeError,
            *[_ONE] * 3,
            **{**_sgd(), "learning_rate": None},
        ),
        error("learning rate of NaN", ArgumentError, *[_ONE] * 3, **_sgd(math.nan)),
        error("negative momentum", ArgumentError, *[_ONE] * 3, **_sgd(momentum=-0.5)),
        error("infinite dampening", ArgumentError, *[_ONE] * 3, **_sgd(dampening=math.inf)),
    ],
)(for_each(_sgd_step))


def _adam_step(
    parameter: Array,
    gradient: Array,
    first_moment: Array,
    second_moment: Array,
    largest_moment: Array | None,
    *,
    step: int,
    learning_rate: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    weight_decay: float,
    decoupled: bool,
) -> tuple[Array, ...]:
    if decoupled:
        parameter = parameter - learning_rate * weight_decay * parameter
    else:
        gradient = gradient + weight_decay * parameter
    first_moment = beta1 * first_moment + (1 - beta1) * gradient
    second_moment = beta2 * second_moment + (1 - beta2) * gradient**2
    kept: tuple[Array, ...] = (first_moment, second_moment)
    if largest_moment is not None:
        kept = (*kept, np.maximum(largest_moment, second_moment))
    unbiased_first = first_moment / (1 - beta1**step)
    unbiased_second = kept[-1] / (1 - beta2**step)
    change = learning_rate * unbiased_first / (np.sqrt(unbiased_second) + epsilon)
    return parameter - change, *kept


def _moments(*shapes: tuple[int, ...]) -> list[list[Array]]:
    return [*states(*shapes), *moments(*shapes), []]


def _amsgrad(*shapes: tuple[int, ...]) -> list[list[Array]]:
    return [*states(*shapes), *moments(*shapes, count=2)]


def _adam(
    step: float = 2,
    learning_rate: float = 0.1,
    *,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    weight_decay: float = 0.0,
    decoupled: bool = True,
) -> dict[str, Any]:
    return {
        "step": step,
        "learning_rate": learning_rate,
        "beta1": beta1,
        "beta2": beta2,
        "epsilon": epsilon,
        "weight_decay": weight_decay,
        "decoupled": decoupled,
    }


_ZEROS: Final = [np.zeros(3)]
_FIRST: Final = [*[_ZEROS] * 4, []]

reference(
    "adam_step",
    samples=[
        sample(
            "first step",
            [floats(2, 3)],
            [floats(2, 3, low=2.0, high=3.0)],
            *[[np.zeros((2, 3))]] * 2,
            [],
            **_adam(1, 0.01),
        ),
        sample("later step", *_moments((2, 3)), **_adam(10, 0.01)),
        sample("much later", *_moments((2, 3)), **_adam(100_000, 0.01)),
        sample("no learning rate", *_moments((2, 3)), **_adam(3, 0.0)),
        sample("weight decay", *_moments((2, 3)), **_adam(weight_decay=0.01)),
        sample("L2", *_moments((2, 3)), **_adam(weight_decay=0.01, decoupled=False)),
        sample("AMSGrad", *_amsgrad((2, 3)), **_adam(weight_decay=0.01)),
        sample(
            "other rates",
            *_moments((2, 3)),
            **_adam(3, beta1=0.5, beta2=0.75, epsilon=0.125),
        ),
        sample("nothing to do", [floats(3)], *[_ZEROS] * 3, [], **_adam(1), differentiable=False),
        sample(
            "NaN in the gradient",
            [floats(2)],
            [np.array([math.nan, 1.0])],
            *_moments((2,))[2:],
            **_adam(),
        ),
        sample("several", *_moments(*SHAPES), **_adam(weight_decay=0.5)),
        sample("several, AMSGrad", *_amsgrad(*SHAPES), **_adam(weight_decay=0.5, decoupled=False)),
        sample("0-d", *_moments(()), **_adam()),
        sample("empty", *_moments((0, 2)), **_adam()),
        sample(
            "layouts",
            LAYOUTS,
            LAYOUTS[::-1],
            LAYOUTS,
            [strided(floats(3, 4, low=0.1)), *moments((3, 4))[0], transposed(*moments((3, 4))[0])],
            [],
            **_adam(),
        ),
    ],
    errors=[
        error("step 0", ArgumentError, *_FIRST, **_adam(0)),
        error("step of NaN", OperandTypeError, *_FIRST, **_adam(math.nan)),
        error("infinite learning rate", ArgumentError, *_FIRST, **_adam(1, math.inf)),
        error("beta1 of 1", ArgumentError, *_FIRST, **_adam(1, beta1=1.0)),
        error("beta2 of 2", ArgumentError, *_FIRST, **_adam(1, beta2=2.0)),
        error("negative epsilon", ArgumentError, *_FIRST, **_adam(1, epsilon=-1.0)),
        error("moment of another shape", ShapeError, *[_ZEROS] * 3, [floats(2)], [], **_adam(1)),
        error("largest of another shape", ShapeError, *[_ZEROS] * 4, [floats(2)], **_adam(1)),
        error("no parameters", OperandTypeError, *[[]] * 5, **_adam(1)),
        error("no moments", OperandTypeError, *[_ZEROS] * 2, [], [], [], **_adam(1)),
        error("a largest moment too few", OperandTypeError, *[_ZEROS * 2] * 4, _ZEROS, **_adam(1)),
    ],
)(for_each(_adam_step))
