"""Steps of optimizers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.functions.common import dispatch

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
    """One step of gradient descent with momentum.

    Parameters
    ----------
    parameter, gradient, velocity : Tensor
        Of one shape. The velocity starts as zeros.
    learning_rate : float
        Length of the step.
    momentum : float
        What is kept of the velocity.
    weight_decay : float
        Factor of the parameter that is added to the gradient.
    nesterov : bool
        Whether to look ahead (Sutskever et al., 2013).

    Returns
    -------
    parameter, velocity : Tensor
        Those after the step.
    """
    return dispatch.execute(  # type: ignore[no-any-return]  # two outputs
        "sgd_step",
        parameter,
        gradient,
        velocity,
        learning_rate=learning_rate,
        momentum=momentum,
        weight_decay=weight_decay,
        nesterov=nesterov,
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
    """One step of Adam (Kingma and Ba, 2015, arXiv:1412.6980).

    Parameters
    ----------
    parameter, gradient, first_moment, second_moment : Tensor
        Of one shape. The moments start as zeros.
    step : int
        Number of the step, counted from 1.
    learning_rate, beta1, beta2, epsilon : float
        As in the paper.
    weight_decay : float
        Decoupled weight decay (Loshchilov and Hutter, 2019, arXiv:1711.05101).

    Returns
    -------
    parameter, first_moment, second_moment : Tensor
        Those after the step.
    """
    return dispatch.execute(  # type: ignore[no-any-return]  # three outputs
        "adam_step",
        parameter,
        gradient,
        first_moment,
        second_moment,
        step=step,
        learning_rate=learning_rate,
        beta1=beta1,
        beta2=beta2,
        epsilon=epsilon,
        weight_decay=weight_decay,
    )
