"""Steps of optimizers, block by block, so that what one pass writes is in cache for the next.

A step is a function of arrays without an axis of its own; see `burn_cpu.stepping`.
"""

from __future__ import annotations

import functools
from typing import Any, Final, Unpack

import numpy as np

from burn.plugin_api import (
    AdagradAttributes,
    AdamAttributes,
    AdanAttributes,
    LionAttributes,
    RmspropAttributes,
    SgdAttributes,
    adam_rates,
    adan_rate,
    check_lists,
    check_momentum,
)
from burn_cpu.base import Array, CpuOps
from burn_cpu.compiled import kernels_for
from burn_cpu.constants import constant
from burn_cpu.stepping import stepped

__all__ = ["OptimizerOps"]

_LEAST_RATE: Final = 1e-30
"""Magnitude of a learning rate; dividing by a smaller one may overflow float32."""


class OptimizerOps(CpuOps):
    """Steps that write to new arrays, and to those that are donated."""

    overwrites_donated = True

    def sgd_step(
        self,
        parameters: list[Array],
        gradients: list[Array],
        velocities: list[Array],
        **attributes: Unpack[SgdAttributes],
    ) -> tuple[Array, ...]:
        """The formula of the op."""
        check_lists(parameters, gradients, optional=[velocities])
        check_momentum(attributes["momentum"], velocities)
        step = functools.partial(_sgd, **attributes)
        return stepped(step, [parameters, gradients, velocities], (0, 2))

    def adam_step(
        self,
        parameters: list[Array],
        gradients: list[Array],
        first_moments: list[Array],
        second_moments: list[Array],
        largest_moments: list[Array],
        **attributes: Unpack[AdamAttributes],
    ) -> tuple[Array, ...]:
        """The formula of the op."""
        lists = [parameters, gradients, first_moments, second_moments]
        check_lists(*lists, optional=[largest_moments])
        step = functools.partial(_adam, **attributes)
        return stepped(step, [*lists, largest_moments], (0, 2, 3, 4))

    def adagrad_step(
        self,
        parameters: list[Array],
        gradients: list[Array],
        sums: list[Array],
        **attributes: Unpack[AdagradAttributes],
    ) -> tuple[Array, ...]:
        """The formula of the op."""
        check_lists(parameters, gradients, sums)
        step = functools.partial(_adagrad, **attributes)
        return stepped(step, [parameters, gradients, sums], (0, 2))

    def rmsprop_step(
        self,
        parameters: list[Array],
        gradients: list[Array],
        second_moments: list[Array],
        velocities: list[Array],
        first_moments: list[Array],
        **attributes: Unpack[RmspropAttributes],
    ) -> tuple[Array, ...]:
        """The formula of the op."""
        lists = [parameters, gradients, second_moments, velocities, first_moments]
        check_lists(*lists[:3], optional=lists[3:])
        check_momentum(attributes["momentum"], velocities)
        step = functools.partial(_rmsprop, **attributes)
        return stepped(step, lists, (0, 2, 3, 4))

    def adan_step(
        self,
        parameters: list[Array],
        gradients: list[Array],
        previous_gradients: list[Array],
        first_moments: list[Array],
        differences: list[Array],
        second_moments: list[Array],
        **attributes: Unpack[AdanAttributes],
    ) -> tuple[Array, ...]:
        """The formula of the op."""
        lists = [parameters, gradients, previous_gradients]
        lists += [first_moments, differences, second_moments]
        check_lists(*lists)
        return stepped(functools.partial(_adan, **attributes), lists, (0, 3, 4, 5))

    def lion_step(
        self,
        parameters: list[Array],
        gradients: list[Array],
        moments: list[Array],
        **attributes: Unpack[LionAttributes],
    ) -> tuple[Array, ...]:
        """The formula of the op."""
        check_lists(parameters, gradients, moments)
        step = functools.partial(_lion, **attributes)
        return stepped(step, [parameters, gradients, moments], (0, 2))


def _mean(old: Array, new: Array, factor: float, out: Array, work: Array) -> None:
    """Running mean: ``factor * old + (1 - factor) * new``."""
    np.multiply(old, constant(factor, old.dtype), out=out)
    out += np.multiply(new, constant(1.0 - factor, old.dtype), out=work)


def _decayed(gradient: Array, parameter: Array, weight_decay: float) -> Array:
    """The gradient with that of an L2 penalty."""
    if not weight_decay:
        return gradient
    decayed: Array = parameter * constant(weight_decay, parameter.dtype)
    decayed += gradient
    return decayed


def _move(parameter: Array, change: Array, factor: float, out: Array) -> None:
    """``factor * parameter - change``."""
    if factor != 1.0:
        parameter = np.multiply(parameter, parameter.dtype.type(factor), out=out)
    np.subtract(parameter, change, out=out)


def _sgd(
    operands: list[Any],
    results: list[Array],
    buffers: Array,
    *,
    learning_rate: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
) -> None:
    work, _ = buffers
    parameter, gradient, velocity = operands
    number = parameter.dtype.type
    gradient = _decayed(gradient, parameter, weight_decay)
    following = gradient
    if velocity is not None:
        following = results[1]
        if momentum:
            np.multiply(velocity, constant(momentum, parameter.dtype), out=following)
            rest = number(1.0 - dampening)
            following += np.multiply(gradient, rest, out=work) if dampening else gradient
        else:
            following[...] = gradient
    direction = following
    if nesterov:
        direction = np.multiply(following, constant(momentum, parameter.dtype), out=work)
        direction += gradient
    np.subtract(parameter, np.multiply(direction, number(learning_rate), out=work), out=results[0])


def _adam(
    operands: list[Any],
    results: list[Array],
    buffers: Array,
    *,
    step: int,
    learning_rate: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    weight_decay: float,
    decoupled: bool,
) -> None:
    work, spare = buffers
    parameter, gradient, first_moment, second_moment, largest_moment = operands
    out, first, second, *largest = results
    number = parameter.dtype.type
    gradient = gradient if decoupled else _decayed(gradient, parameter, weight_decay)
    rate, scale = adam_rates(step, learning_rate, beta1, beta2)
    decay = 1.0 - learning_rate * weight_decay if decoupled else 1.0
    kernels = kernels_for(parameter.dtype, "optimizer")
    if kernels is not None and largest_moment is None:
        for result, operand in zip(results, (parameter, first_moment, second_moment), strict=True):
            if result is not operand:
                result[...] = operand
        kernels.adam(out, gradient, first, second, beta1, beta2, rate, scale, epsilon, decay)
        return
    _mean(first_moment, gradient, beta1, first, work)
    square = np.multiply(gradient, gradient, out=spare)
    _mean(second_moment, square, beta2, second, work)
    root = second if largest_moment is None else np.maximum(largest_moment, second, out=largest[0])
    # rate * m / (scale * sqrt(v) + epsilon); dividing the divisor by the rate saves a pass
    inner = rate if abs(rate) >= _LEAST_RATE else 1.0
    np.sqrt(root, out=work)
    work *= number(scale / inner)
    work += number(epsilon / inner)
    np.divide(first, work, out=work)
    if inner != rate:
        work *= number(rate)
    _move(parameter, work, decay, out)


def _adagrad(
    operands: list[Any],
    results: list[Array],
    buffers: Array,
    *,
    step: int,
    learning_rate: float,
    learning_rate_decay: float,
    epsilon: float,
    weight_decay: float,
) -> None:
    work, _ = buffers
    parameter, gradient, old = operands
    out, total = results
    number = parameter.dtype.type
    gradient = _decayed(gradient, parameter, weight_decay)
    np.add(old, np.multiply(gradient, gradient, out=work), out=total)
    np.sqrt(total, out=work)
    work += constant(epsilon, parameter.dtype)
    np.divide(gradient, work, out=work)
    work *= number(learning_rate / (1.0 + (step - 1) * learning_rate_decay))
    np.subtract(parameter, work, out=out)


def _rmsprop(
    operands: list[Any],
    results: list[Array],
    buffers: Array,
    *,
    learning_rate: float,
    alpha: float,
    epsilon: float,
    weight_decay: float,
    momentum: float,
) -> None:
    work, spare = buffers
    parameter, gradient, second_moment, velocity, first_moment = operands
    out, second, *others = results
    number = parameter.dtype.type
    gradient = _decayed(gradient, parameter, weight_decay)
    _mean(second_moment, np.multiply(gradient, gradient, out=spare), alpha, second, work)
    if first_moment is None:
        np.sqrt(second, out=work)
    else:
        first = others[-1]
        _mean(first_moment, gradient, alpha, first, work)
        np.multiply(first, first, out=work)
        np.sqrt(np.subtract(second, work, out=work), out=work)
    work += constant(epsilon, parameter.dtype)
    direction = np.divide(gradient, work, out=work)
    if velocity is not None:
        following = np.multiply(velocity, constant(momentum, parameter.dtype), out=others[0])
        direction = np.add(following, direction, out=following)
    np.subtract(parameter, np.multiply(direction, number(learning_rate), out=work), out=out)


def _adan(
    operands: list[Any],
    results: list[Array],
    buffers: Array,
    *,
    step: int,
    learning_rate: float,
    beta1: float,
    beta2: float,
    beta3: float,
    epsilon: float,
    weight_decay: float,
    proximal: bool,
) -> None:
    work, _ = buffers
    parameter, gradient, previous, first_moment, old_difference, second_moment = operands
    out, first, difference, second = results
    number = parameter.dtype.type
    change = np.subtract(gradient, previous)
    _mean(first_moment, gradient, beta1, first, work)
    _mean(old_difference, change, beta2, difference, work)
    change *= constant(beta2, parameter.dtype)
    change += gradient
    _mean(second_moment, np.multiply(change, change, out=change), beta3, second, work)
    rate, scale = adam_rates(step, learning_rate, beta1, beta3)
    direction = np.multiply(first, number(rate), out=change)
    direction += np.multiply(difference, number(adan_rate(step, learning_rate, beta2)), out=work)
    np.sqrt(second, out=work)
    work *= number(scale)
    work += constant(epsilon, parameter.dtype)
    direction /= work
    decay = learning_rate * weight_decay
    _move(parameter, direction, 1.0 if proximal else 1.0 - decay, out)
    if proximal and decay:
        out /= number(1.0 + decay)


def _lion(
    operands: list[Any],
    results: list[Array],
    buffers: Array,
    *,
    learning_rate: float,
    beta1: float,
    beta2: float,
    weight_decay: float,
) -> None:
    work, change = buffers
    parameter, gradient, moment = operands
    out, following = results
    _mean(moment, gradient, beta1, change, work)
    np.sign(change, out=change)
    change *= parameter.dtype.type(learning_rate)
    _move(parameter, change, 1.0 - learning_rate * weight_decay, out)
    _mean(moment, gradient, beta2, following, work)
