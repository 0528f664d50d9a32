"""Steps of optimizers, block by block, so that what one pass writes is in cache for the next.

A step is a function of arrays without an axis of its own: ``step(operands, results, work)``. Small
parameters are joined to one array before it, as the calls of NumPy would take longer than they
compute.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, Unpack

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
from burn_cpu.constants import constant
from burn_cpu.joined import concatenated, joined_parameters

__all__ = ["OptimizerOps"]

_BLOCK: Final = 32768
"""Elements that a step computes at a time: eight such arrays of float32 fit the L2 cache."""

_LEAST_RATE: Final = 1e-30
"""Magnitude of a learning rate; dividing by a smaller one may overflow float32."""

_Step: TypeAlias = Callable[[list[Any], list[Array], Array], None]


class OptimizerOps(CpuOps):
    """Steps that write to new arrays only."""

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
        return _stepped(step, [parameters, gradients, velocities], (0, 2))

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
        return _stepped(step, [*lists, largest_moments], (0, 2, 3, 4))

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
        return _stepped(step, [parameters, gradients, sums], (0, 2))

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
        return _stepped(step, lists, (0, 2, 3, 4))

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
        return _stepped(functools.partial(_adan, **attributes), lists, (0, 3, 4, 5))

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
        return _stepped(step, [parameters, gradients, moments], (0, 2))


def _stepped(step: _Step, lists: list[list[Array]], outputs: Sequence[int]) -> tuple[Array, ...]:
    """The results of a step: for each list of `outputs` that is not empty as many arrays."""
    outputs = [index for index in outputs if lists[index]]
    if len(lists[0]) == 1:
        return tuple(_run_whole(step, [one[0] if one else None for one in lists], outputs))
    joined = joined_parameters(tuple([one.shape for one in lists[0]]))
    results: list[list[Any]] = [[None] * len(lists[0]) for _ in outputs]
    if joined.indices:
        operands = [
            concatenated([one[index] for index in joined.indices]) if one else None for one in lists
        ]
        for found, flat in zip(results, _run(step, operands, outputs), strict=True):
            for index, array in zip(joined.indices, joined.split(flat), strict=True):
                found[index] = array
    for index in joined.others:
        operands = [one[index] if one else None for one in lists]
        for found, array in zip(results, _run_whole(step, operands, outputs), strict=True):
            found[index] = array
    return tuple([array for found in results for array in found])


def _run_whole(step: _Step, operands: list[Any], outputs: Sequence[int]) -> list[Array]:
    """A step of one parameter, whose results have its layout."""
    parameter = operands[0]
    if parameter.flags.f_contiguous and not parameter.flags.c_contiguous:
        turned = [None if one is None else one.T for one in operands]
        return [one.T for one in _run_whole(step, turned, outputs)]
    flat = [None if one is None else one.reshape(-1) for one in operands]
    return [one.reshape(parameter.shape) for one in _run(step, flat, outputs)]


def _run(step: _Step, operands: list[Any], outputs: Sequence[int]) -> list[Array]:
    """A step of arrays with one axis, block by block; 16-bit floats are computed in float32."""
    parameter = operands[0]
    size, dtype = parameter.size, parameter.dtype
    wide = np.dtype(np.float32) if dtype.itemsize < 4 else dtype
    results = [np.empty(size, dtype) for _ in outputs]
    work = np.empty(min(size, _BLOCK), wide)
    if wide is dtype and size <= _BLOCK:
        step(operands, results, work)
        return results
    for start in range(0, size, _BLOCK):
        block = slice(start, start + _BLOCK)
        parts: list[Any] = [
            None if one is None else one[block].astype(wide, copy=False) for one in operands
        ]
        if wide is dtype:
            step(parts, [one[block] for one in results], work[: parts[0].size])
            continue
        found = [np.empty_like(parts[0]) for _ in results]
        step(parts, found, work[: parts[0].size])
        for one, part in zip(results, found, strict=True):
            one[block] = part
    return results


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
    work: Array,
    *,
    learning_rate: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
) -> None:
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
    work: Array,
    *,
    step: int,
    learning_rate: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    weight_decay: float,
    decoupled: bool,
) -> None:
    parameter, gradient, first_moment, second_moment, largest_moment = operands
    out, first, second, *largest = results
    number = parameter.dtype.type
    gradient = gradient if decoupled else _decayed(gradient, parameter, weight_decay)
    _mean(first_moment, gradient, beta1, first, work)
    square = np.multiply(gradient, gradient, out=out)
    _mean(second_moment, square, beta2, second, work)
    root = second if largest_moment is None else np.maximum(largest_moment, second, out=largest[0])
    rate, scale = adam_rates(step, learning_rate, beta1, beta2)
    # rate * m / (scale * sqrt(v) + epsilon); dividing the divisor by the rate saves a pass
    inner = rate if abs(rate) >= _LEAST_RATE else 1.0
    np.sqrt(root, out=work)
    work *= number(scale / inner)
    work += number(epsilon / inner)
    np.divide(first, work, out=work)
    if inner != rate:
        work *= number(rate)
    _move(parameter, work, 1.0 - learning_rate * weight_decay if decoupled else 1.0, out)


def _adagrad(
    operands: list[Any],
    results: list[Array],
    work: Array,
    *,
    step: int,
    learning_rate: float,
    learning_rate_decay: float,
    epsilon: float,
    weight_decay: float,
) -> None:
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
    work: Array,
    *,
    learning_rate: float,
    alpha: float,
    epsilon: float,
    weight_decay: float,
    momentum: float,
) -> None:
    parameter, gradient, second_moment, velocity, first_moment = operands
    out, second, *others = results
    number = parameter.dtype.type
    gradient = _decayed(gradient, parameter, weight_decay)
    _mean(second_moment, np.multiply(gradient, gradient, out=out), alpha, second, work)
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
    work: Array,
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
    work: Array,
    *,
    learning_rate: float,
    beta1: float,
    beta2: float,
    weight_decay: float,
) -> None:
    parameter, gradient, moment = operands
    out, following = results
    _mean(moment, gradient, beta1, following, work)
    change = np.sign(following, out=following)
    change *= parameter.dtype.type(learning_rate)
    _move(parameter, change, 1.0 - learning_rate * weight_decay, out)
    _mean(moment, gradient, beta2, following, work)
