"""Steps of optimizers: the next parameters and states from the current ones and gradients.

All parameters of a group are updated by one call. The operands are lists: the tensors at one index
belong to one parameter and have its shape. A state that a variant of an optimizer does not have is
an empty list. What becomes of one element says the expression of the op, from which all else is
derived (see `burn.ops.optimizers.expressions`).
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
from burn.ops.op import Op, op
from burn.ops.optimizers.expressions import StepFormula, step_formula
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
    "STEPS",
    "Donated",
    "adagrad_step",
    "adam_step",
    "adan_step",
    "check_numbers",
    "lion_step",
    "rmsprop_step",
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


class _Rate(TypedDict):
    """What every step has."""

    learning_rate: RuntimeNumber
    weight_decay: Number


class _Counted(_Rate):
    """What steps have that count, from 1, and divide."""

    step: RuntimeInteger
    epsilon: Number


class _Moments(TypedDict):
    """Factors of old running means."""

    beta1: Number
    beta2: Number


class SgdAttributes(_Rate):
    """The attributes of `sgd_step`."""

    momentum: RuntimeNumber
    dampening: RuntimeNumber
    nesterov: Flag


class AdamAttributes(_Counted, _Moments):
    """The attributes of `adam_step`."""

    decoupled: Flag


class AdagradAttributes(_Counted):
    """The attributes of `adagrad_step`."""

    learning_rate_decay: Number


class RmspropAttributes(_Rate):
    """The attributes of `rmsprop_step`."""

    alpha: Number
    epsilon: Number
    momentum: Number


class AdanAttributes(_Counted, _Moments):
    """The attributes of `adan_step`."""

    beta3: Number
    proximal: Flag


class LionAttributes(_Rate, _Moments):
    """The attributes of `lion_step`."""


# Checks


def _check_lists(*lists: Sequence[Primitive], optional: Sequence[Sequence[Primitive]] = ()) -> None:
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
    shapes = [x.shape for x in first]
    for other in (*lists[1:], *[given for given in optional if given]):
        if len(other) != len(first):
            raise OperandTypeError(
                f"there are {len(first)} parameters, but {len(other)} gradients or states"
            )
        if [x.shape for x in other] != shapes:
            for index, (x, shape) in enumerate(zip(other, shapes, strict=True)):
                if x.shape != shape:
                    raise ShapeError(
                        f"parameter {index} has shape {tuple(shape)}, "
                        f"but its gradient or state {tuple(x.shape)}"
                    )


def _check_momentum(momentum: Any, velocities: Sequence[Primitive]) -> None:
    """Raise OperandTypeError if there is momentum and no velocities."""
    is_zero = isinstance(momentum, numbers.Real) and not momentum  # one of a program is not known
    if not velocities and not is_zero:
        raise OperandTypeError("momentum needs velocities", hint="Begin with zeros")


def check_numbers(**attributes: Any) -> None:
    """See that the numbers of a step are in their ranges.

    Raises
    ------
    ArgumentError
        If one is not.
    """
    for name, value in attributes.items():
        if name == "step" and as_integer(value, name) < 1:
            raise ArgumentError(f"step is {value}", hint="Count steps from 1")
        if name not in _BOUNDS:
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


# Definitions

STEPS: Final[dict[str, Op]] = {}
"""The ops of this module, by their names."""


def _step(outputs: Sequence[str], expression: str) -> Callable[[Callable[..., Any]], Op]:
    """Decorator: a step; the rule has its operands and attributes, and checks nothing."""

    def define(rule: Callable[..., Any]) -> Op:
        made = STEPS[rule.__name__] = op(outputs=outputs, expression=expression)(rule)
        made.requirement(check_numbers)

        @made.decomposition
        def _(ops: OpTable, *lists: list[Primitive], **attributes: Any) -> tuple[Primitive, ...]:
            made.rule(*lists, **attributes)
            formula = step_formula(made.name, lists, attributes)
            numbers = formula.numbers(attributes)
            columns = [lists[index] for index in formula.operands]
            found = [
                _composed(ops, *operands, formula=formula, numbers=numbers)
                for operands in zip(*columns, strict=True)
            ]
            return tuple([tensor for output in zip(*found, strict=True) for tensor in output])

        made.batching(leading_axes)
        return made

    return define


@in_float32
def _composed(
    ops: OpTable, *operands: Primitive, formula: StepFormula, numbers: tuple[Any, ...]
) -> tuple[Primitive, ...]:
    """The next parameter and states of one parameter."""
    apply = lambda function, *values: getattr(ops, function)(*values)  # noqa: E731
    return tuple(formula.run(apply, operands, numbers))


@_step(
    ("parameters", "velocities"),
    """
    slope = gradients + weight_decay * parameters if weight_decay else gradients
    added = (1.0 - dampening) * slope if dampening else slope
    velocities = momentum * velocities + added if momentum else slope
    direction = slope + momentum * velocities if nesterov else velocities
    parameters = parameters - learning_rate * direction
    """,
)
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
    _check_lists(parameters, gradients, optional=[velocities])
    _check_momentum(attributes["momentum"], velocities)
    return *parameters, *velocities


@_step(
    ("parameters", "first_moments", "second_moments", "largest_moments"),
    """
    rate = learning_rate / (1.0 - beta1**step)
    scale = 1.0 / (1.0 - beta2**step) ** 0.5
    decay = learning_rate * weight_decay
    kept = (1.0 - decay) * parameters if decoupled and weight_decay else parameters
    slope = gradients if decoupled or not weight_decay else gradients + weight_decay * parameters
    first_moments = beta1 * first_moments + (1.0 - beta1) * slope
    second_moments = beta2 * second_moments + (1.0 - beta2) * (slope * slope)
    greatest = maximum(largest_moments, second_moments) if largest_moments else second_moments
    largest_moments = greatest
    parameters = kept - first_moments / (scale * sqrt(greatest) + epsilon) * rate
    """,
)
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
    _check_lists(*lists, optional=[largest_moments])
    return *parameters, *first_moments, *second_moments, *largest_moments


@_step(
    ("parameters", "sums"),
    """
    slope = gradients + weight_decay * parameters if weight_decay else gradients
    sums = sums + slope * slope
    rate = learning_rate / (1.0 + (step - 1) * learning_rate_decay)
    parameters = parameters - slope / (sqrt(sums) + epsilon) * rate
    """,
)
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
    _check_lists(parameters, gradients, sums)
    return *parameters, *sums


@_step(
    ("parameters", "second_moments", "velocities", "first_moments"),
    """
    slope = gradients + weight_decay * parameters if weight_decay else gradients
    second_moments = alpha * second_moments + (1.0 - alpha) * (slope * slope)
    first_moments = alpha * first_moments + (1.0 - alpha) * slope if first_moments else slope
    variance = second_moments - first_moments * first_moments if first_moments else second_moments
    direction = slope / (sqrt(variance) + epsilon)
    velocities = momentum * velocities + direction if momentum else direction
    parameters = parameters - learning_rate * velocities
    """,
)
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
    _check_lists(*lists, optional=[velocities, first_moments])
    _check_momentum(attributes["momentum"], velocities)
    return *parameters, *second_moments, *velocities, *first_moments


@_step(
    ("parameters", "first_moments", "differences", "second_moments"),
    """
    decay = learning_rate * weight_decay
    change = gradients - previous_gradients
    first_moments = beta1 * first_moments + (1.0 - beta1) * gradients
    differences = beta2 * differences + (1.0 - beta2) * change
    extrapolated = gradients + beta2 * change
    second_moments = beta3 * second_moments + (1.0 - beta3) * (extrapolated * extrapolated)
    rate = learning_rate / (1.0 - beta1**step)
    difference_rate = learning_rate * beta2 / (1.0 - beta2**step)
    scale = 1.0 / (1.0 - beta3**step) ** 0.5
    direction = rate * first_moments + difference_rate * differences
    kept = (1.0 - decay) * parameters if weight_decay and not proximal else parameters
    moved = kept - direction / (scale * sqrt(second_moments) + epsilon)
    parameters = moved / (1.0 + decay) if weight_decay and proximal else moved
    """,
)
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
    lists = parameters, gradients, previous_gradients, first_moments, differences, second_moments
    _check_lists(*lists)
    return *parameters, *first_moments, *differences, *second_moments


@_step(
    ("parameters", "moments"),
    """
    direction = sign(beta1 * moments + (1.0 - beta1) * gradients)
    kept = (1.0 - learning_rate * weight_decay) * parameters if weight_decay else parameters
    parameters = kept - learning_rate * direction
    moments = beta2 * moments + (1.0 - beta2) * gradients
    """,
)
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
    _check_lists(parameters, gradients, moments)
    return *parameters, *moments
