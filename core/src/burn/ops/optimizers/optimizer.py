"""Steps of optimizers: the next parameters and states from the current ones and gradients.

All parameters of a group are updated by one call. The operands are lists: the tensors at one index
belong to one parameter and have its shape. A state that a variant of an optimizer does not have is
an empty list.
"""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypedDict, Unpack

from burn.errors import ArgumentError, OperandTypeError, ShapeError
from burn.ops._precision import in_float32
from burn.ops.arguments import as_integer, real_number
from burn.ops.batching import leading_axes
from burn.ops.op import op
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
    "AdamAttributes",
    "Donated",
    "SgdAttributes",
    "adam_rates",
    "adam_step",
    "check_lists",
    "check_momentum",
    "check_numbers",
    "for_each_parameter",
    "mean",
    "sgd_step",
]


class Donated(list[Any]):
    """Parameters or states that a step may overwrite: those to which nothing else refers.

    The methods of a backend get such lists from `burn.optim` if `Backend.overwrites_donated` is
    true. They may overwrite the memory of an item, and return it, if reference counts show that
    only the list and `references` attributes of other objects refer to it.

    Attributes
    ----------
    references : int
        The number of attributes that refer to each item; all of them are given the result.
    tensor_type : TensorType
        What tensors of the items have beside them. Core reads it.
    """

    __slots__ = ("references", "tensor_type")

    def __init__(self, items: Iterable[Primitive], references: int, tensor_type: Any) -> None:
        super().__init__(items)
        self.references = references
        self.tensor_type = tensor_type


def check_lists(*lists: Sequence[Primitive], optional: Sequence[Sequence[Primitive]] = ()) -> None:
    """See that lists fit: one length, and one shape at each index; they do not broadcast.

    Parameters
    ----------
    *lists : sequence
        The parameters, their gradients and states.
    optional : sequence
        States of which each may be an empty list.

    Raises
    ------
    OperandTypeError
        If there are no parameters, or another number of tensors in one of the lists.
    ShapeError
        If a gradient or a state has another shape than the parameter.
    """
    first = lists[0]
    if not first:
        raise OperandTypeError(
            "there are no parameters", hint="Leave out the step where there is nothing to update"
        )
    shapes = [tensor.shape for tensor in first]
    for other in (*lists[1:], *[item for item in optional if item]):
        if len(other) != len(first):
            raise OperandTypeError(
                f"there are {len(first)} parameters, but {len(other)} gradients or states"
            )
        if [tensor.shape for tensor in other] != shapes:
            for index, (tensor, shape) in enumerate(zip(other, shapes, strict=True)):
                if tensor.shape != shape:
                    raise ShapeError(
                        f"parameter {index} has shape {tuple(shape)}, "
                        f"but its gradient or state {tuple(tensor.shape)}"
                    )


def check_momentum(momentum: float, velocities: Sequence[Primitive]) -> None:
    """Raise OperandTypeError if there is momentum and no velocities."""
    if not velocities and not is_zero(momentum):
        raise OperandTypeError("momentum needs velocities", hint="Begin with zeros")


def is_zero(number: Any) -> bool:
    """Whether a number is known to be 0; one that each run of a program gets anew is not."""
    return isinstance(number, numbers.Real) and not number


def check_numbers(**numbers: Any) -> None:
    """See that the numbers of a step are in their ranges.

    Raises
    ------
    ArgumentError
        If one is not.
    """
    for name, value in numbers.items():
        if name == "step":
            if as_integer(value, name) < 1:
                raise ArgumentError(f"step is {value}", hint="Count steps from 1")
            continue
        least, below = _BOUNDS[name]
        if value.__class__ is not float or not least <= value < below:  # else there is no need
            real_number(value, name, **_RANGES[name])


_FINITE: Final[Mapping[str, Any]] = {"above": -math.inf, "below": math.inf}
_NOT_NEGATIVE: Final[Mapping[str, Any]] = {"least": 0.0, "below": math.inf}
_FRACTION: Final[Mapping[str, Any]] = {"least": 0.0, "below": 1.0}

_RANGES: Final[Mapping[str, Mapping[str, Any]]] = {
    "learning_rate": _FINITE,
    "learning_rate_decay": _NOT_NEGATIVE,
    "momentum": _NOT_NEGATIVE,
    "dampening": _FINITE,
    "weight_decay": _NOT_NEGATIVE,
    "epsilon": _NOT_NEGATIVE,
    "alpha": _FRACTION,
    "beta1": _FRACTION,
    "beta2": _FRACTION,
    "beta3": _FRACTION,
}

_BOUNDS: Final = {
    name: (limits.get("least", -sys.float_info.max), limits["below"])
    for name, limits in _RANGES.items()
}
"""The same for a quick test of floats."""


def for_each_parameter(
    ops: OpTable,
    function: Callable[..., Any],
    lists: Sequence[list[Primitive]],
    /,
    **attributes: Any,
) -> tuple[Primitive, ...]:
    """Run a step for each parameter.

    Parameters
    ----------
    ops : OpTable
        What computes.
    function : callable
        ``function(ops, *operands, **attributes)``: the new parameter and the new states of one
        parameter, as a tuple. A state from an empty list is None, and is not returned.
    lists : sequence of list
        The operands of the op.
    **attributes
        Its attributes.

    Returns
    -------
    tuple of primitives
        The outputs of the op.
    """
    columns = [operand or [None] * len(lists[0]) for operand in lists]
    results = [function(ops, *operands, **attributes) for operands in zip(*columns, strict=True)]
    return tuple([item for output in zip(*results, strict=True) for item in output])


class SgdAttributes(TypedDict):
    """The attributes of `sgd_step`."""

    learning_rate: RuntimeNumber
    momentum: RuntimeNumber
    dampening: RuntimeNumber
    weight_decay: Number
    nesterov: Flag


@op(outputs=("parameters", "velocities"))
def sgd_step(
    parameters: FloatList,
    gradients: FloatList,
    velocities: FloatList,
    **attributes: Unpack[SgdAttributes],
) -> tuple[Meta, ...]:
    """One step of gradient descent with momentum (Sutskever et al., 2013, as PyTorch has it).

    With ``d = gradient + weight_decay * parameter``:
    ``velocity = momentum * velocity + (1 - dampening) * d`` and
    ``parameter -= learning_rate * velocity``, where `nesterov` replaces ``velocity`` by
    ``d + momentum * velocity``. Without momentum the velocity is ``d``, and the list of velocities
    may be empty.
    """
    check_lists(parameters, gradients, optional=[velocities])
    check_momentum(attributes["momentum"], velocities)
    return *parameters, *velocities


@sgd_step.requirement
def _(*, nesterov: bool, **numbers: float) -> None:
    del nesterov
    check_numbers(**numbers)


@sgd_step.decomposition
def _(
    ops: OpTable, *lists: list[Primitive], **attributes: Unpack[SgdAttributes]
) -> tuple[Primitive, ...]:
    sgd_step.rule(*lists, **attributes)
    return for_each_parameter(ops, _sgd_step, lists, **attributes)


@in_float32
def _sgd_step(
    ops: OpTable,
    parameter: Primitive,
    gradient: Primitive,
    velocity: Primitive | None,
    *,
    learning_rate: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
) -> tuple[Primitive, ...]:
    if weight_decay:
        gradient = ops.add(gradient, ops.multiply(parameter, weight_decay))
    direction = following = gradient
    if not is_zero(momentum):
        added = gradient if is_zero(dampening) else ops.multiply(gradient, 1.0 - dampening)
        direction = following = ops.add(ops.multiply(velocity, momentum), added)
    if nesterov:
        direction = ops.add(gradient, ops.multiply(following, momentum))
    parameter = ops.subtract(parameter, ops.multiply(direction, learning_rate))
    return (parameter,) if velocity is None else (parameter, following)


sgd_step.batching(leading_axes)


class AdamAttributes(TypedDict):
    """The attributes of `adam_step`."""

    step: RuntimeInteger
    learning_rate: RuntimeNumber
    beta1: Number
    beta2: Number
    epsilon: Number
    weight_decay: Number
    decoupled: Flag


@op(outputs=("parameters", "first_moments", "second_moments", "largest_moments"))
def adam_step(
    parameters: FloatList,
    gradients: FloatList,
    first_moments: FloatList,
    second_moments: FloatList,
    largest_moments: FloatList,
    **attributes: Unpack[AdamAttributes],
) -> tuple[Meta, ...]:
    """One step of Adam (Kingma and Ba, 2015, arXiv:1412.6980, algorithm 1).

    `step` counts from 1. A `decoupled` weight decay multiplies the parameter by
    ``1 - learning_rate * weight_decay`` before the step (Loshchilov and Hutter, 2019,
    arXiv:1711.05101); one that is not adds ``weight_decay * parameter`` to the gradient.
    `largest_moments` makes it AMSGrad (Reddi et al., 2018, arXiv:1904.09237): the largest of all
    second moments so far replaces the second moment. Without it the list is empty.
    """
    del attributes
    lists = parameters, gradients, first_moments, second_moments
    check_lists(*lists, optional=[largest_moments])
    return *parameters, *first_moments, *second_moments, *largest_moments


@adam_step.requirement
def _(*, decoupled: bool, **numbers: Any) -> None:
    del decoupled
    check_numbers(**numbers)


@adam_step.decomposition
def _(
    ops: OpTable, *lists: list[Primitive], **attributes: Unpack[AdamAttributes]
) -> tuple[Primitive, ...]:
    adam_step.rule(*lists, **attributes)
    return for_each_parameter(ops, _adam_step, lists, **attributes)


@in_float32
def _adam_step(
    ops: OpTable,
    parameter: Primitive,
    gradient: Primitive,
    first_moment: Primitive,
    second_moment: Primitive,
    largest_moment: Primitive | None,
    *,
    step: int,
    learning_rate: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    weight_decay: float,
    decoupled: bool,
) -> tuple[Primitive, ...]:
    if weight_decay and decoupled:
        parameter = ops.multiply(parameter, 1.0 - learning_rate * weight_decay)
    elif weight_decay:
        gradient = ops.add(gradient, ops.multiply(parameter, weight_decay))
    first_moment = mean(ops, first_moment, gradient, beta1)
    second_moment = mean(ops, second_moment, ops.multiply(gradient, gradient), beta2)
    states = [first_moment, second_moment]
    if largest_moment is not None:
        states.append(ops.maximum(largest_moment, second_moment))
    rate, scale = adam_rates(step, learning_rate, beta1, beta2)
    spread = ops.add(ops.multiply(ops.sqrt(states[-1]), scale), epsilon)
    change = ops.multiply(ops.divide(first_moment, spread), rate)
    return ops.subtract(parameter, change), *states


adam_step.batching(leading_axes)


def mean(ops: OpTable, old: Primitive, new: Primitive, factor: float) -> Primitive:
    """Running mean: ``factor * old + (1 - factor) * new``."""
    return ops.add(ops.multiply(old, factor), ops.multiply(new, 1.0 - factor))


def adam_rates(step: int, learning_rate: float, beta1: float, beta2: float) -> tuple[float, float]:
    """Learning rate, and factor of the second moment's root, with the bias correction of a step."""
    return learning_rate / (1.0 - beta1**step), 1.0 / (1.0 - beta2**step) ** 0.5
