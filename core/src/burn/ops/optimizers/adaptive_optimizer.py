"""Steps of optimizers other than gradient descent and Adam; their operands are lists as there."""

from __future__ import annotations

from typing import TypedDict, Unpack

from burn.ops._precision import in_float32
from burn.ops.batching import leading_axes
from burn.ops.op import op
from burn.ops.optimizers.optimizer import (
    adam_rates,
    check_lists,
    check_momentum,
    check_numbers,
    for_each_parameter,
    mean,
)
from burn.ops.signature import (
    Flag,
    FloatList,
    Meta,
    Number,
    Primitive,
    RuntimeInteger,
    RuntimeNumber,
)
from burn.ops.table import OpTable

__all__ = [
    "AdagradAttributes",
    "AdanAttributes",
    "LionAttributes",
    "RmspropAttributes",
    "adagrad_step",
    "adan_rate",
    "adan_step",
    "lion_step",
    "rmsprop_step",
]


class AdagradAttributes(TypedDict):
    """The attributes of `adagrad_step`."""

    step: RuntimeInteger
    learning_rate: RuntimeNumber
    learning_rate_decay: Number
    epsilon: Number
    weight_decay: Number


@op(outputs=("parameters", "sums"))
def adagrad_step(
    parameters: FloatList,
    gradients: FloatList,
    sums: FloatList,
    **attributes: Unpack[AdagradAttributes],
) -> tuple[Meta, ...]:
    """One step of Adagrad (Duchi et al., 2011, JMLR 12, as PyTorch has it).

    With ``d = gradient + weight_decay * parameter``: ``sum += d**2`` and
    ``parameter -= rate * d / (sqrt(sum) + epsilon)``, where
    ``rate = learning_rate / (1 + (step - 1) * learning_rate_decay)``.
    """
    del attributes
    check_lists(parameters, gradients, sums)
    return *parameters, *sums


@adagrad_step.requirement
def _(**numbers: float) -> None:
    check_numbers(**numbers)


@adagrad_step.decomposition
def _(
    ops: OpTable, *lists: list[Primitive], **attributes: Unpack[AdagradAttributes]
) -> tuple[Primitive, ...]:
    check_lists(*lists)
    return for_each_parameter(ops, _adagrad_step, lists, **attributes)


@in_float32
def _adagrad_step(
    ops: OpTable,
    parameter: Primitive,
    gradient: Primitive,
    total: Primitive,
    *,
    step: int,
    learning_rate: float,
    learning_rate_decay: float,
    epsilon: float,
    weight_decay: float,
) -> tuple[Primitive, ...]:
    if weight_decay:
        gradient = ops.add(gradient, ops.multiply(parameter, weight_decay))
    total = ops.add(total, ops.multiply(gradient, gradient))
    rate = learning_rate / (1.0 + (step - 1) * learning_rate_decay)
    change = ops.divide(gradient, ops.add(ops.sqrt(total), epsilon))
    return ops.subtract(parameter, ops.multiply(change, rate)), total


adagrad_step.batching(leading_axes)


class RmspropAttributes(TypedDict):
    """The attributes of `rmsprop_step`."""

    learning_rate: RuntimeNumber
    alpha: Number
    epsilon: Number
    weight_decay: Number
    momentum: Number


@op(outputs=("parameters", "second_moments", "velocities", "first_moments"))
def rmsprop_step(
    parameters: FloatList,
    gradients: FloatList,
    second_moments: FloatList,
    velocities: FloatList,
    first_moments: FloatList,
    **attributes: Unpack[RmspropAttributes],
) -> tuple[Meta, ...]:
    """One step of RMSprop (Hinton et al., 2012, lecture 6e; Graves, 2013, arXiv:1308.0850).

    With ``d = gradient + weight_decay * parameter`` and the running means of ``d**2`` and ``d``,
    of which `alpha` is the decay: ``velocity = momentum * velocity + d / (sqrt(s) + epsilon)`` and
    ``parameter -= learning_rate * velocity``. Here ``s`` is the second moment, and with
    `first_moments` the second moment less the square of the first. Without momentum the list of
    velocities may be empty; that of first moments is empty where the step is not centered.
    """
    lists = parameters, gradients, second_moments
    check_lists(*lists, optional=[velocities, first_moments])
    check_momentum(attributes["momentum"], velocities)
    return *parameters, *second_moments, *velocities, *first_moments


@rmsprop_step.requirement
def _(**numbers: float) -> None:
    check_numbers(**numbers)


@rmsprop_step.decomposition
def _(
    ops: OpTable, *lists: list[Primitive], **attributes: Unpack[RmspropAttributes]
) -> tuple[Primitive, ...]:
    rmsprop_step.rule(*lists, **attributes)
    return for_each_parameter(ops, _rmsprop_step, lists, **attributes)


@in_float32
def _rmsprop_step(
    ops: OpTable,
    parameter: Primitive,
    gradient: Primitive,
    second_moment: Primitive,
    velocity: Primitive | None,
    first_moment: Primitive | None,
    *,
    learning_rate: float,
    alpha: float,
    epsilon: float,
    weight_decay: float,
    momentum: float,
) -> tuple[Primitive, ...]:
    if weight_decay:
        gradient = ops.add(gradient, ops.multiply(parameter, weight_decay))
    spread = second_moment = mean(ops, second_moment, ops.multiply(gradient, gradient), alpha)
    if first_moment is not None:
        first_moment = mean(ops, first_moment, gradient, alpha)
        spread = ops.subtract(second_moment, ops.multiply(first_moment, first_moment))
    direction = ops.divide(gradient, ops.add(ops.sqrt(spread), epsilon))
    if velocity is not None:
        velocity = ops.add(ops.multiply(velocity, momentum), direction) if momentum else direction
        direction = velocity
    parameter = ops.subtract(parameter, ops.multiply(direction, learning_rate))
    states = [second_moment, velocity, first_moment]
    return parameter, *[state for state in states if state is not None]


rmsprop_step.batching(leading_axes)


class AdanAttributes(TypedDict):
    """The attributes of `adan_step`."""

    step: RuntimeInteger
    learning_rate: RuntimeNumber
    beta1: Number
    beta2: Number
    beta3: Number
    epsilon: Number
    weight_decay: Number
    proximal: Flag


@op(outputs=("parameters", "first_moments", "differences", "second_moments"))
def adan_step(
    parameters: FloatList,
    gradients: FloatList,
    previous_gradients: FloatList,
    first_moments: FloatList,
    differences: FloatList,
    second_moments: FloatList,
    **attributes: Unpack[AdanAttributes],
) -> tuple[Meta, ...]:
    """One step of Adan (Xie et al., 2022, arXiv:2208.06677, algorithm 1).

    The states are running means: of the gradient, of its difference from the previous gradient,
    and of ``(gradient + beta2 * difference)**2``. Where the paper has a factor `b` of what is new,
    the factor of the old mean is ``beta = 1 - b`` here, as in Adam. `step` counts from 1; before
    the first step the previous gradient is the gradient. A `proximal` weight decay divides the
    parameter by ``1 + learning_rate * weight_decay`` after the step; any other multiplies it by
    ``1 - learning_rate * weight_decay`` before.
    """
    del attributes
    check_lists(
        parameters, gradients, previous_gradients, first_moments, differences, second_moments
    )
    return *parameters, *first_moments, *differences, *second_moments


@adan_step.requirement
def _(*, proximal: bool, **numbers: float) -> None:
    del proximal
    check_numbers(**numbers)


@adan_step.decomposition
def _(
    ops: OpTable, *lists: list[Primitive], **attributes: Unpack[AdanAttributes]
) -> tuple[Primitive, ...]:
    check_lists(*lists)
    return for_each_parameter(ops, _adan_step, lists, **attributes)


@in_float32
def _adan_step(
    ops: OpTable,
    parameter: Primitive,
    gradient: Primitive,
    previous_gradient: Primitive,
    first_moment: Primitive,
    difference: Primitive,
    second_moment: Primitive,
    *,
    step: int,
    learning_rate: float,
    beta1: float,
    beta2: float,
    beta3: float,
    epsilon: float,
    weight_decay: float,
    proximal: bool,
) -> tuple[Primitive, ...]:
    change = ops.subtract(gradient, previous_gradient)
    first_moment = mean(ops, first_moment, gradient, beta1)
    difference = mean(ops, difference, change, beta2)
    extrapolated = ops.add(gradient, ops.multiply(change, beta2))
    second_moment = mean(ops, second_moment, ops.multiply(extrapolated, extrapolated), beta3)
    rate, scale = adam_rates(step, learning_rate, beta1, beta3)
    spread = ops.add(ops.multiply(ops.sqrt(second_moment), scale), epsilon)
    direction = ops.add(
        ops.multiply(first_moment, rate),
        ops.multiply(difference, adan_rate(step, learning_rate, beta2)),
    )
    if weight_decay and not proximal:
        parameter = ops.multiply(parameter, 1.0 - learning_rate * weight_decay)
    parameter = ops.subtract(parameter, ops.divide(direction, spread))
    if weight_decay and proximal:
        parameter = ops.divide(parameter, 1.0 + learning_rate * weight_decay)
    return parameter, first_moment, difference, second_moment


adan_step.batching(leading_axes)


def adan_rate(step: int, learning_rate: float, beta2: float) -> float:
    """Factor of the mean of differences in the direction of a step of Adan."""
    return learning_rate * beta2 / (1.0 - beta2**step)


class LionAttributes(TypedDict):
    """The attributes of `lion_step`."""

    learning_rate: RuntimeNumber
    beta1: Number
    beta2: Number
    weight_decay: Number


@op(outputs=("parameters", "moments"))
def lion_step(
    parameters: FloatList,
    gradients: FloatList,
    moments: FloatList,
    **attributes: Unpack[LionAttributes],
) -> tuple[Meta, ...]:
    """One step of Lion (Chen et al., 2023, arXiv:2302.06675, algorithm 2).

    The parameter is multiplied by ``1 - learning_rate * weight_decay``, and moves by
    `learning_rate` against the sign of ``beta1 * moment + (1 - beta1) * gradient``; then
    ``moment = beta2 * moment + (1 - beta2) * gradient``.
    """
    del attributes
    check_lists(parameters, gradients, moments)
    return *parameters, *moments


@lion_step.requirement
def _(**numbers: float) -> None:
    check_numbers(**numbers)


@lion_step.decomposition
def _(
    ops: OpTable, *lists: list[Primitive], **attributes: Unpack[LionAttributes]
) -> tuple[Primitive, ...]:
    check_lists(*lists)
    return for_each_parameter(ops, _lion_step, lists, **attributes)


@in_float32
def _lion_step(
    ops: OpTable,
    parameter: Primitive,
    gradient: Primitive,
    moment: Primitive,
    *,
    learning_rate: float,
    beta1: float,
    beta2: float,
    weight_decay: float,
) -> tuple[Primitive, ...]:
    direction = ops.sign(mean(ops, moment, gradient, beta1))
    if weight_decay:
        parameter = ops.multiply(parameter, 1.0 - learning_rate * weight_decay)
    parameter = ops.subtract(parameter, ops.multiply(direction, learning_rate))
    return parameter, mean(ops, moment, gradient, beta2)


lion_step.batching(leading_axes)
