"""Steps of optimizers: the next parameter and state from the current ones and a gradient."""

from __future__ import annotations

import math
from typing import TypedDict, Unpack

from burn.errors import ArgumentError, ShapeError
from burn.ops._precision import in_float32
from burn.ops.arguments import as_integer, real_number
from burn.ops.batching import leading_axes
from burn.ops.op import op
from burn.ops.signature import (
    Flag,
    FloatOperand,
    Meta,
    Number,
    Primitive,
    RuntimeInteger,
    RuntimeNumber,
)
from burn.ops.table import OpTable


class SgdAttributes(TypedDict):
    """The attributes of `sgd_step`."""

    learning_rate: RuntimeNumber
    momentum: Number
    weight_decay: Number
    nesterov: Flag


class AdamAttributes(TypedDict):
    """The attributes of `adam_step`."""

    step: RuntimeInteger
    learning_rate: RuntimeNumber
    beta1: Number
    beta2: Number
    epsilon: Number
    weight_decay: Number


def check_same_shapes(first: Primitive, *others: Primitive) -> None:
    """Raise ShapeError unless all operands of a step have one shape: they do not broadcast."""
    for other in others:
        if other.shape != first.shape:
            raise ShapeError(
                f"the parameter has shape {first.shape}, but its gradient or state {other.shape}"
            )


@op(outputs=("parameter", "velocity"))
def sgd_step(
    parameter: FloatOperand,
    gradient: FloatOperand,
    velocity: FloatOperand,
    **attributes: Unpack[SgdAttributes],
) -> tuple[Meta, Meta]:
    """One step of gradient descent with momentum (Sutskever et al., 2013, as PyTorch has it).

    With ``d = gradient + weight_decay * parameter``: ``velocity = momentum * velocity + d`` and
    ``parameter -= learning_rate * velocity``, where `nesterov` replaces ``velocity`` by
    ``d + momentum * velocity``.
    """
    check_same_shapes(parameter, gradient, velocity)
    return parameter, parameter


@sgd_step.requirement
def _(
    *,
    learning_rate: float,
    momentum: float,
    weight_decay: float,
    nesterov: bool,
) -> None:
    del nesterov
    if (
        learning_rate.__class__ is momentum.__class__ is weight_decay.__class__ is float
        and -math.inf < learning_rate < math.inf
        and 0.0 <= momentum < math.inf
        and 0.0 <= weight_decay < math.inf
    ):
        return  # the common case, without function calls
    real_number(learning_rate, "learning_rate", above=-math.inf, below=math.inf)
    real_number(momentum, "momentum", least=0.0, below=math.inf)
    real_number(weight_decay, "weight_decay", least=0.0, below=math.inf)


@sgd_step.decomposition
@in_float32
def _(
    ops: OpTable,
    parameter: Primitive,
    gradient: Primitive,
    velocity: Primitive,
    *,
    learning_rate: float,
    momentum: float,
    weight_decay: float,
    nesterov: bool,
) -> tuple[Primitive, Primitive]:
    check_same_shapes(parameter, gradient, velocity)
    if weight_decay:
        gradient = ops.add(gradient, ops.multiply(parameter, weight_decay))
    velocity = ops.add(ops.multiply(velocity, momentum), gradient) if momentum else gradient
    direction = ops.add(gradient, ops.multiply(velocity, momentum)) if nesterov else velocity
    return ops.subtract(parameter, ops.multiply(direction, learning_rate)), velocity


sgd_step.batching(leading_axes)


@op(outputs=("parameter", "first_moment", "second_moment"))
def adam_step(
    parameter: FloatOperand,
    gradient: FloatOperand,
    first_moment: FloatOperand,
    second_moment: FloatOperand,
    **attributes: Unpack[AdamAttributes],
) -> tuple[Meta, Meta, Meta]:
    """One step of Adam (Kingma and Ba, 2015, arXiv:1412.6980, algorithm 1).

    `step` counts from 1. A `weight_decay` is decoupled from the gradient (Loshchilov and Hutter,
    2019, arXiv:1711.05101): the parameter is first multiplied by
    ``1 - learning_rate * weight_decay``.
    """
    check_same_shapes(parameter, gradient, first_moment, second_moment)
    return parameter, parameter, parameter


@adam_step.requirement
def _(
    *,
    step: int,
    learning_rate: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    weight_decay: float,
) -> None:
    if (
        step.__class__ is int
        and learning_rate.__class__ is beta1.__class__ is beta2.__class__ is float
        and epsilon.__class__ is weight_decay.__class__ is float
        and step >= 1
        and 0.0 <= beta1 < 1.0
        and 0.0 <= beta2 < 1.0
        and -math.inf < learning_rate < math.inf
        and 0.0 <= epsilon < math.inf
        and 0.0 <= weight_decay < math.inf
    ):
        return  # the common case, without function calls
    if as_integer(step, "step") < 1:
        raise ArgumentError(f"step is {step}", hint="Count steps from 1")
    real_number(learning_rate, "learning_rate", above=-math.inf, below=math.inf)
    real_number(beta1, "beta1", least=0.0, below=1.0)
    real_number(beta2, "beta2", least=0.0, below=1.0)
    real_number(epsilon, "epsilon", least=0.0, below=math.inf)
    real_number(weight_decay, "weight_decay", least=0.0, below=math.inf)


@adam_step.decomposition
@in_float32
def _(
    ops: OpTable,
    parameter: Primitive,
    gradient: Primitive,
    first_moment: Primitive,
    second_moment: Primitive,
    *,
    step: int,
    learning_rate: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    weight_decay: float,
) -> tuple[Primitive, Primitive, Primitive]:
    check_same_shapes(parameter, gradient, first_moment, second_moment)
    if weight_decay:
        parameter = ops.multiply(parameter, 1.0 - learning_rate * weight_decay)
    first_moment = ops.add(ops.multiply(first_moment, beta1), ops.multiply(gradient, 1.0 - beta1))
    second_moment = ops.add(
        ops.multiply(second_moment, beta2),
        ops.multiply(ops.multiply(gradient, gradient), 1.0 - beta2),
    )
    rate, scale = adam_rates(step, learning_rate, beta1, beta2)
    spread = ops.add(ops.multiply(ops.sqrt(second_moment), scale), epsilon)
    change = ops.multiply(ops.divide(first_moment, spread), rate)
    return ops.subtract(parameter, change), first_moment, second_moment


adam_step.batching(leading_axes)


def adam_rates(step: int, learning_rate: float, beta1: float, beta2: float) -> tuple[float, float]:
    """Learning rate, and factor of the second moment's root, with the bias correction of a step."""
    return learning_rate / (1.0 - beta1**step), 1.0 / math.sqrt(1.0 - beta2**step)
