"""Activation functions, losses and optimizer steps of neural networks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from burn.dispatch import unary
from burn.errors import ArgumentError
from burn.tensor import statistical_functions
from burn.tensor.dispatcher import dispatch, normalize_axis, of_one

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

_softmax = unary(dispatch, "softmax")
_log_softmax = unary(dispatch, "log_softmax")
_gelu = unary(dispatch, "gelu")

relu = of_one("relu")
sigmoid = of_one("sigmoid")


def gelu(x: Tensor, /, *, approximate: Literal["none", "tanh"] = "none") -> Tensor:
    """Gaussian error linear unit, ``x * (1 + erf(x / sqrt(2))) / 2``.

    Parameters
    ----------
    x : Tensor
        Float tensor.
    approximate : {"none", "tanh"}
        ``"tanh"`` for ``x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2``
        (Hendrycks and Gimpel, 2016, arXiv:1606.08415).
    """
    return _gelu(x, approximate=approximate)


def softmax(x: Tensor, /, *, axis: int = -1) -> Tensor:
    """``exp(x) / sum(exp(x))`` along an axis, without overflow."""
    return _softmax(x, axis=normalize_axis(x, axis, "softmax"))


def log_softmax(x: Tensor, /, *, axis: int = -1) -> Tensor:
    """Logarithm of `softmax`, computed as ``x - log(sum(exp(x)))`` without overflow."""
    return _log_softmax(x, axis=normalize_axis(x, axis, "log_softmax"))


def cross_entropy(
    logits: Tensor,
    targets: Tensor,
    /,
    *,
    axis: int = -1,
    reduction: Literal["mean", "sum", "none"] = "mean",
) -> Tensor:
    """Negative log-likelihood of the target classes under ``softmax(logits)``.

    Parameters
    ----------
    logits : Tensor, shape (..., C, ...)
        Unnormalized log-probabilities, float; classes lie along `axis`.
    targets : Tensor
        Class of each example, an integer in [0, C); the shape of `logits` without `axis`.
    axis : int
        Axis of the classes (the last by default).
    reduction : {"mean", "sum", "none"}
        What becomes of the losses of the examples.

    Returns
    -------
    Tensor
        The loss in nats: 0-d, or one per example.

    Raises
    ------
    ShapeError
        If the shapes do not belong together.
    OutOfRangeError
        If a target is no class.
    """
    number = normalize_axis(logits, axis, "cross_entropy")
    losses: Tensor = dispatch.execute("cross_entropy", logits, targets, axis=number)
    if reduction == "mean":
        return statistical_functions.mean(losses)
    if reduction == "sum":
        return statistical_functions.sum(losses)
    if reduction == "none":
        return losses
    raise ArgumentError(
        f"reduction is {reduction!r}",
        hint='Use "mean", "sum" or "none"',
        operation="cross_entropy",
    )


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
