"""Steps of optimizers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burn.functions.common import dispatch
from burn.functions.normalize import as_flag
from burn.ir import ScalarIr
from burn.ops.arguments import as_integer, real_number

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["adam_step", "sgd_step"]


def sgd_step(
    parameter: Tensor,
    gradient: Tensor,
    velocity: Tensor,
    /,
    *,
    learning_rate: float,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    nesterov: bool = False,
) -> tuple[Tensor, Tensor]:
    """One step of gradient descent with momentum, as in PyTorch.

    With ``d = gradient + weight_decay * parameter``: ``velocity = momentum * velocity + d`` and
    ``parameter = parameter - learning_rate * velocity``.

    Parameters
    ----------
    parameter : Tensor
        Float tensor of any shape.
    gradient : Tensor
        Gradient with respect to the parameter, in its shape.
    velocity : Tensor
        In the shape of the parameter; zeros before the first step.
    learning_rate : float
        Factor of the step, finite.
    momentum : float
        Factor of the old velocity, at least 0.
    weight_decay : float
        Factor of the parameter that is added to the gradient, at least 0.
    nesterov : bool
        Whether the step is along ``d + momentum * velocity`` (Sutskever et al., ICML 2013).

    Returns
    -------
    parameter, velocity : Tensor
        New tensors, those after the step.

    Raises
    ------
    ShapeError
        If the shapes differ.
    ArgumentError
        If a number is out of its range.

    Examples
    --------
    >>> import burn
    >>> x, g = burn.asarray([1.0], device="cpu"), burn.asarray([2.0], device="cpu")
    >>> x, velocity = burn.optim.sgd_step(x, g, burn.zeros_like(x), learning_rate=0.25)
    >>> x.tolist(), velocity.tolist()
    ([0.5], [2.0])
    """
    operation = "sgd_step"
    return dispatch.execute(  # type: ignore[no-any-return]  # two outputs
        operation,
        parameter,
        gradient,
        velocity,
        learning_rate=_as_rate(learning_rate, operation),
        momentum=_as_float(momentum, "momentum", operation),
        weight_decay=_as_float(weight_decay, "weight_decay", operation),
        nesterov=as_flag(nesterov, "nesterov", operation),
    )


def adam_step(
    parameter: Tensor,
    gradient: Tensor,
    first_moment: Tensor,
    second_moment: Tensor,
    /,
    *,
    step: int,
    learning_rate: float = 1e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    weight_decay: float = 0.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """One step of Adam (Kingma and Ba, 2015, arXiv:1412.6980, algorithm 1).

    Parameters
    ----------
    parameter : Tensor
        Float tensor of any shape.
    gradient : Tensor
        Gradient with respect to the parameter, in its shape.
    first_moment, second_moment : Tensor
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
        Decoupled weight decay (Loshchilov and Hutter, 2019, arXiv:1711.05101).

    Returns
    -------
    parameter, first_moment, second_moment : Tensor
        New tensors, those after the step.

    Raises
    ------
    ShapeError
        If the shapes differ.
    ArgumentError
        If a number is out of its range.

    Examples
    --------
    >>> import burn
    >>> x, g = burn.asarray([1.0], device="cpu"), burn.asarray([2.0], device="cpu")
    >>> zeros = burn.zeros_like(x)
    >>> x, m, v = burn.optim.adam_step(x, g, zeros, zeros, step=1, learning_rate=0.25)
    >>> x.tolist()
    [0.75]
    """
    operation = "adam_step"
    return dispatch.execute(  # type: ignore[no-any-return]  # three outputs
        operation,
        parameter,
        gradient,
        first_moment,
        second_moment,
        step=_as_step(step, operation),
        learning_rate=_as_rate(learning_rate, operation),
        beta1=_as_float(beta1, "beta1", operation),
        beta2=_as_float(beta2, "beta2", operation),
        epsilon=_as_float(epsilon, "epsilon", operation),
        weight_decay=_as_float(weight_decay, "weight_decay", operation),
    )


def _as_step(step: Any, operation: str) -> Any:
    """The number of a step, or the scalar of a program for it."""
    if step.__class__ is int or (step.__class__ is ScalarIr and step.kind is int):
        return step
    return as_integer(step, "step", operation)


def _as_rate(rate: Any, operation: str) -> Any:
    """A learning rate as a float, or the scalar of a program for it."""
    if rate.__class__ is ScalarIr:
        return rate
    return _as_float(rate, "learning_rate", operation)


def _as_float(value: float, name: str, operation: str) -> float:
    """A number as a float; the op checks its range."""
    return value if value.__class__ is float else real_number(value, name, operation)
