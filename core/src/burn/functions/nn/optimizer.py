"""Steps of optimizers, of one parameter or of a list of them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from burn.dispatch import call_on_lists
from burn.docstrings import documented_as
from burn.errors import DTypeError, OperandTypeError
from burn.functions import calls
from burn.functions.common import dispatch
from burn.functions.normalize import as_flag
from burn.ir import ScalarIr
from burn.ops import REGISTRY, Donated
from burn.ops.arguments import as_integer, real_number
from burn.ops.signature import Role

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "adagrad_step",
    "adam_step",
    "adan_step",
    "amsgrad_step",
    "lion_step",
    "rmsprop_step",
    "sgd_step",
]

_Tensors = TypeVar("_Tensors", "Tensor", "Sequence[Tensor]")


def sgd_step(
    parameter: _Tensors,
    gradient: _Tensors,
    velocity: _Tensors | None = None,
    /,
    *,
    learning_rate: float,
    momentum: float = 0.0,
    dampening: float = 0.0,
    weight_decay: float = 0.0,
    nesterov: bool = False,
) -> tuple[_Tensors, _Tensors]:
    """One step of gradient descent with momentum, as in PyTorch.

    With ``d = gradient + weight_decay * parameter``:
    ``velocity = momentum * velocity + (1 - dampening) * d`` and
    ``parameter = parameter - learning_rate * velocity``; without momentum the velocity is ``d``.

    Parameters
    ----------
    parameter : Tensor or list of Tensor
        Float tensor of any shape. A list is of all parameters that one call updates, which have one
        dtype and one device; then the other operands are lists of as many tensors.
    gradient : Tensor or list of Tensor
        Gradient with respect to the parameter, in its shape.
    velocity : Tensor or list of Tensor, optional
        In the shape of the parameter; zeros before the first step. It may be None if there is no
        momentum.
    learning_rate : float
        Factor of the step, finite.
    momentum : float
        Factor of the old velocity, at least 0.
    dampening : float
        What momentum takes from the factor 1 of the gradient. PyTorch's first step has none.
    weight_decay : float
        Factor of the parameter that is added to the gradient, at least 0.
    nesterov : bool
        Whether the step is along ``d + momentum * velocity`` (Sutskever et al., ICML 2013).

    Returns
    -------
    parameter, velocity : Tensor or list of Tensor
        New tensors, those after the step; no velocity (None) if there was none.

    Raises
    ------
    ShapeError
        If the shapes differ.
    ArgumentError
        If a number is out of its range.
    DTypeError
        If the parameters of a list have several dtypes.
    OperandTypeError
        If lists are empty or of several lengths, or momentum has no velocity.

    Examples
    --------
    >>> import burn
    >>> x, g = burn.asarray([1.0], device="cpu"), burn.asarray([2.0], device="cpu")
    >>> x, velocity = burn.optim.sgd_step(x, g, burn.zeros_like(x), learning_rate=0.25)
    >>> x.tolist(), velocity.tolist()
    ([0.5], [2.0])
    >>> (x, y), _ = burn.optim.sgd_step([x, g], [g, x], learning_rate=0.25)
    >>> x.tolist(), y.tolist()
    ([0.0], [1.875])
    """
    return _stepped(
        "sgd_step",
        (parameter, gradient, velocity),
        learning_rate=learning_rate,
        momentum=momentum,
        dampening=dampening,
        weight_decay=weight_decay,
        nesterov=nesterov,
    )


def adam_step(
    parameter: _Tensors,
    gradient: _Tensors,
    first_moment: _Tensors,
    second_moment: _Tensors,
    /,
    *,
    step: int,
    learning_rate: float = 1e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    weight_decay: float = 0.0,
    decoupled: bool = True,
) -> tuple[_Tensors, _Tensors, _Tensors]:
    """One step of Adam (Kingma and Ba, 2015, arXiv:1412.6980, algorithm 1).

    Parameters
    ----------
    parameter : Tensor or list of Tensor
        Float tensor of any shape. A list is of all parameters that one call updates, which have one
        dtype and one device; then the other operands are lists of as many tensors.
    gradient : Tensor or list of Tensor
        Gradient with respect to the parameter, in its shape.
    first_moment, second_moment : Tensor or list of Tensor
        Running means of the gradient and of its square, in the shape of the parameter; zeros before
        the first step.
    step : int
        Number of the step, counted from 1.
    learning_rate : float
        Factor of the step, finite.
    beta1, beta2 : float
        Decay of the moments, in [0, 1).
    epsilon : float
        Added to the square root of the second moment, at least 0.
    weight_decay : float
        Weight decay, at least 0.
    decoupled : bool
        Whether the weight decay multiplies the parameter by ``1 - learning_rate * weight_decay``
        (AdamW; Loshchilov and Hutter, 2019, arXiv:1711.05101). Else ``weight_decay * parameter`` is
        added to the gradient, as in ``torch.optim.Adam``.

    Returns
    -------
    parameter, first_moment, second_moment : Tensor or list of Tensor
        New tensors, those after the step.

    Raises
    ------
    ShapeError
        If the shapes differ.
    ArgumentError
        If a number is out of its range.
    DTypeError
        If the parameters of a list have several dtypes.
    OperandTypeError
        If lists are empty or of several lengths.

    Examples
    --------
    >>> import burn
    >>> x, g = burn.asarray([1.0], device="cpu"), burn.asarray([2.0], device="cpu")
    >>> zeros = burn.zeros_like(x)
    >>> x, m, v = burn.optim.adam_step(x, g, zeros, zeros, step=1, learning_rate=0.25)
    >>> x.tolist()
    [0.75]
    """
    return _stepped(
        "adam_step",
        (parameter, gradient, first_moment, second_moment, None),
        step=step,
        learning_rate=learning_rate,
        beta1=beta1,
        beta2=beta2,
        epsilon=epsilon,
        weight_decay=weight_decay,
        decoupled=decoupled,
    )[:3]


@documented_as(adam_step)
def amsgrad_step(
    parameter: _Tensors,
    gradient: _Tensors,
    first_moment: _Tensors,
    second_moment: _Tensors,
    largest_moment: _Tensors,
    /,
    *,
    step: int,
    learning_rate: float = 1e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    weight_decay: float = 0.0,
    decoupled: bool = True,
) -> tuple[_Tensors, _Tensors, _Tensors, _Tensors]:
    """One step of AMSGrad (Reddi et al., 2018, arXiv:1904.09237): Adam with larger second moments.

    The largest of all second moments so far divides the first moment. The op is `adam_step`.

    The other parameters are those of `adam_step`.

    Parameters
    ----------
    largest_moment : Tensor or list of Tensor
        The largest second moments so far; zeros before the first step.
    decoupled : bool
        As of `adam_step`.

    Returns
    -------
    parameter, first_moment, second_moment, largest_moment : Tensor or list of Tensor
        New tensors, those after the step.

    Examples
    --------
    >>> import burn
    >>> x, g = burn.asarray([1.0], device="cpu"), burn.asarray([2.0], device="cpu")
    >>> states = [burn.zeros_like(x)] * 3
    >>> x, *states = burn.optim.amsgrad_step(x, g, *states, step=1, learning_rate=0.25)
    >>> x.tolist()
    [0.75]
    """
    return _stepped(
        "adam_step",
        (parameter, gradient, first_moment, second_moment, largest_moment),
        step=step,
        learning_rate=learning_rate,
        beta1=beta1,
        beta2=beta2,
        epsilon=epsilon,
        weight_decay=weight_decay,
        decoupled=decoupled,
    )


@documented_as(adam_step)
def adagrad_step(
    parameter: _Tensors,
    gradient: _Tensors,
    total: _Tensors,
    /,
    *,
    step: int,
    learning_rate: float = 1e-2,
    learning_rate_decay: float = 0.0,
    epsilon: float = 1e-10,
    weight_decay: float = 0.0,
) -> tuple[_Tensors, _Tensors]:
    """One step of Adagrad (Duchi et al., 2011, JMLR 12), as in PyTorch.

    With ``d = gradient + weight_decay * parameter``: ``total = total + d**2`` and
    ``parameter = parameter - rate * d / (sqrt(total) + epsilon)``, where
    ``rate = learning_rate / (1 + (step - 1) * learning_rate_decay)``.

    The other parameters are those of `adam_step`.

    Parameters
    ----------
    total : Tensor or list of Tensor
        Sum of the squares of all gradients, in the shape of the parameter; before the first step
        zeros, or another first value.
    learning_rate_decay : float
        How fast the learning rate falls, at least 0.
    epsilon : float
        Added to the square root of the sum, at least 0.
    weight_decay : float
        Factor of the parameter that is added to the gradient, at least 0.

    Returns
    -------
    parameter, total : Tensor or list of Tensor
        New tensors, those after the step.

    Examples
    --------
    >>> import burn
    >>> x, g = burn.asarray([1.0], device="cpu"), burn.asarray([2.0], device="cpu")
    >>> zeros = burn.zeros_like(x)
    >>> x, total = burn.optim.adagrad_step(x, g, zeros, step=1, learning_rate=0.25)
    >>> x.tolist(), total.tolist()
    ([0.75], [4.0])
    """
    return _stepped(
        "adagrad_step",
        (parameter, gradient, total),
        step=step,
        learning_rate=learning_rate,
        learning_rate_decay=learning_rate_decay,
        epsilon=epsilon,
        weight_decay=weight_decay,
    )


@documented_as(sgd_step)
def rmsprop_step(
    parameter: _Tensors,
    gradient: _Tensors,
    second_moment: _Tensors,
    velocity: _Tensors | None = None,
    first_moment: _Tensors | None = None,
    /,
    *,
    learning_rate: float = 1e-2,
    alpha: float = 0.99,
    epsilon: float = 1e-8,
    weight_decay: float = 0.0,
    momentum: float = 0.0,
) -> tuple[_Tensors, _Tensors, _Tensors, _Tensors]:
    """One step of RMSprop (Hinton et al., 2012, lecture 6e), as in PyTorch.

    With ``d = gradient + weight_decay * parameter``:
    ``velocity = momentum * velocity + d / (sqrt(s) + epsilon)`` and
    ``parameter = parameter - learning_rate * velocity``, where ``s`` is the second moment.

    The other parameters are those of `sgd_step`.

    Parameters
    ----------
    second_moment : Tensor or list of Tensor
        Running mean of the square of ``d``, in the shape of the parameter; zeros before the first
        step.
    first_moment : Tensor or list of Tensor, optional
        Running mean of ``d``. If there is one the step is centered (Graves, 2013,
        arXiv:1308.0850): ``s`` is the second moment less the square of the first.
    alpha : float
        Decay of the moments, in [0, 1).
    epsilon : float
        Added to the square root, at least 0.

    Returns
    -------
    parameter, second_moment, velocity, first_moment : Tensor or list of Tensor
        New tensors, those after the step; None for a state that was None.

    Examples
    --------
    >>> import burn
    >>> x, g = burn.asarray([1.0], device="cpu"), burn.asarray([2.0], device="cpu")
    >>> zeros = burn.zeros_like(x)
    >>> x, s, *_ = burn.optim.rmsprop_step(x, g, zeros, learning_rate=0.25, alpha=0.75)
    >>> x.tolist(), s.tolist()
    ([0.5], [1.0])
    """
    return _stepped(
        "rmsprop_step",
        (parameter, gradient, second_moment, velocity, first_moment),
        learning_rate=learning_rate,
        alpha=alpha,
        epsilon=epsilon,
        weight_decay=weight_decay,
        momentum=momentum,
    )


@documented_as(adam_step)
def adan_step(
    parameter: _Tensors,
    gradient: _Tensors,
    previous_gradient: _Tensors,
    first_moment: _Tensors,
    difference: _Tensors,
    second_moment: _Tensors,
    /,
    *,
    step: int,
    learning_rate: float = 1e-3,
    beta1: float = 0.98,
    beta2: float = 0.92,
    beta3: float = 0.99,
    epsilon: float = 1e-8,
    weight_decay: float = 0.0,
    proximal: bool = True,
) -> tuple[_Tensors, _Tensors, _Tensors, _Tensors]:
    """One step of Adan (Xie et al., 2022, arXiv:2208.06677, algorithm 1).

    The other parameters are those of `adam_step`.

    Parameters
    ----------
    previous_gradient : Tensor or list of Tensor
        That of the step before; before the first step the gradient itself.
    first_moment, difference, second_moment : Tensor or list of Tensor
        Running means of the gradient, of its difference from the previous one, and of
        ``(gradient + beta2 * (gradient - previous_gradient))**2``; zeros before the first step.
    beta1, beta2, beta3 : float
        Decay of the three means, in [0, 1); the paper writes them as ``1 - beta``.
    proximal : bool
        Whether the weight decay divides the parameter by ``1 + learning_rate * weight_decay`` after
        the step. Else it multiplies it by ``1 - learning_rate * weight_decay`` before.

    Returns
    -------
    parameter, first_moment, difference, second_moment : Tensor or list of Tensor
        New tensors, those after the step.

    Examples
    --------
    >>> import burn
    >>> x, g = burn.asarray([1.0], device="cpu"), burn.asarray([2.0], device="cpu")
    >>> states = [burn.zeros_like(x)] * 3
    >>> x, *states = burn.optim.adan_step(x, g, g, *states, step=1, learning_rate=0.25)
    >>> x.tolist()
    [0.75]
    """
    return _stepped(
        "adan_step",
        (parameter, gradient, previous_gradient, first_moment, difference, second_moment),
        step=step,
        learning_rate=learning_rate,
        beta1=beta1,
        beta2=beta2,
        beta3=beta3,
        epsilon=epsilon,
        weight_decay=weight_decay,
        proximal=proximal,
    )


@documented_as(adam_step)
def lion_step(
    parameter: _Tensors,
    gradient: _Tensors,
    moment: _Tensors,
    /,
    *,
    learning_rate: float = 1e-4,
    beta1: float = 0.9,
    beta2: float = 0.99,
    weight_decay: float = 0.0,
) -> tuple[_Tensors, _Tensors]:
    """One step of Lion (Chen et al., 2023, arXiv:2302.06675, algorithm 2).

    The parameter is multiplied by ``1 - learning_rate * weight_decay`` and moves by `learning_rate`
    against the sign of ``beta1 * moment + (1 - beta1) * gradient``.

    Parameters
    ----------
    moment : Tensor or list of Tensor
        Running mean of the gradient, in the shape of the parameter; zeros before the first step.
    learning_rate : float
        Size of the step, finite.
    beta1 : float
        Factor of the moment in the step, in [0, 1).
    beta2 : float
        Decay of the moment, in [0, 1).
    weight_decay : float
        Decoupled weight decay, at least 0.

    Returns
    -------
    parameter, moment : Tensor or list of Tensor
        New tensors, those after the step.

    Examples
    --------
    >>> import burn
    >>> x, g = burn.asarray([1.0], device="cpu"), burn.asarray([2.0], device="cpu")
    >>> zeros = burn.zeros_like(x)
    >>> x, m = burn.optim.lion_step(x, g, zeros, learning_rate=0.25, beta2=0.75)
    >>> x.tolist(), m.tolist()
    ([0.75], [0.5])
    """
    return _stepped(
        "lion_step",
        (parameter, gradient, moment),
        learning_rate=learning_rate,
        beta1=beta1,
        beta2=beta2,
        weight_decay=weight_decay,
    )


def _stepped(operation: str, operands: Sequence[Any], **attributes: Any) -> tuple[Any, ...]:
    """The outputs of a step: tensors if the operands are tensors, lists if they are lists.

    The output of the name of an operand that is None is None. Where the parameters are `Donated`,
    all lists are of primitives of its type.
    """
    is_list = isinstance(operands[0], (list, tuple))
    lists = [_as_list(operand, operation, is_list=is_list) for operand in operands]
    if is_list and lists[0].__class__ is not Donated:
        _check_parameters(lists[0], operation)
    definition = REGISTRY[operation]
    numbers = _numbers_of(operation)
    for name, value in attributes.items():
        if value.__class__ is not float or name not in numbers:
            role = definition.attributes[name].role
            attributes[name] = _as_attribute(value, role, name, operation)
    found: Any
    if lists[0].__class__ is Donated:
        found = call_on_lists(dispatch, operation, lists, lists[0].tensor_type, attributes)
    else:
        found = getattr(calls, operation)(*lists, **attributes)
    if not is_list and len(found) == len(definition.outputs):
        return found  # type: ignore[no-any-return]  # a tuple of tensors
    by_name = dict(zip(definition.operands, lists, strict=True))
    outputs: list[Any] = []
    start = 0
    for name in definition.outputs:
        end = start + len(by_name[name])
        outputs.append(found[start:end])
        start = end
    if is_list:
        return tuple([list(output) or None for output in outputs])
    return tuple([output[0] if output else None for output in outputs])


def _check_parameters(parameters: list[Any], operation: str) -> None:
    """Raise unless there are parameters, of one dtype."""
    if not parameters:
        raise OperandTypeError(
            "there are no parameters",
            hint="Leave out the step where there is nothing to update",
            operation=operation,
        )
    dtypes = {getattr(parameter, "dtype", None) for parameter in parameters}
    if len(dtypes) > 1:
        raise DTypeError(
            f"the parameters have several dtypes: {', '.join(sorted(map(str, dtypes)))}",
            hint="Update those of each dtype by a call of their own",
            operation=operation,
        )


def _as_list(operand: Any, operation: str, *, is_list: bool) -> list[Any]:
    """What an op takes for a tensor, a list of tensors, or None."""
    if operand is None:
        return []
    if isinstance(operand, (list, tuple)) is not is_list:
        raise OperandTypeError(
            "some operands are lists of tensors and others are not",
            hint="Pass a tensor or a list for each of parameter, gradient and state",
            operation=operation,
        )
    if not is_list:
        return [operand]
    return operand if operand.__class__ is Donated else list(operand)


@functools.cache
def _numbers_of(operation: str) -> frozenset[str]:
    """The attributes of an op that are floats."""
    roles = Role.NUMBER, Role.RUNTIME_NUMBER
    attributes = REGISTRY[operation].attributes
    return frozenset([name for name, attribute in attributes.items() if attribute.role in roles])


_MAX_STEP = 2**63 - 1
"""The largest number of a step, which int64 holds."""


def _as_attribute(value: Any, role: Role, name: str, operation: str) -> Any:
    """What an op takes for a flag or a number, of which it checks the range.

    A runtime number may be the scalar of a program.
    """
    if role is Role.FLAG:
        return as_flag(value, name, operation)
    if role is Role.RUNTIME_INTEGER:
        if value.__class__ is ScalarIr and value.kind is int:
            return value
        return as_integer(value, name, operation, most=_MAX_STEP)
    if role is Role.RUNTIME_NUMBER and value.__class__ is ScalarIr:
        return value
    return real_number(value, name, operation)
