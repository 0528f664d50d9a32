"""Losses of numbers: how far predictions are from what they should be."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeAlias

from burn.backend.refusal import Refusal
from burn.errors import ArgumentError, DTypeError, ShapeError
from burn.functions.elementwise import abs, clip, equal, exp, log, subtract
from burn.functions.nn.activation import softplus
from burn.functions.normalize import rank_of
from burn.functions.searching import where
from burn.functions.statistical import mean, sum
from burn.functions.value_checks import require
from burn.ops.arguments import real_number

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "binary_cross_entropy_with_logits",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "smooth_l1_loss",
]

Reduction: TypeAlias = Literal["mean", "sum", "none"]


def mse_loss(prediction: Tensor, target: Tensor, /, *, reduction: Reduction = "mean") -> Tensor:
    """Squared difference ``(prediction - target) ** 2``.

    Parameters
    ----------
    prediction, target : Tensor
        Of one shape.
    reduction : {"mean", "sum", "none"}
        What becomes of the losses of the elements.

    Raises
    ------
    ShapeError
        If the shapes differ.
    DTypeError
        If one is complex.

    Examples
    --------
    >>> import burn
    >>> from burn.nn import functional as F
    >>> x, y = (burn.asarray(one, device="cpu") for one in ([1.0, 2.0], [1.0, 4.0]))
    >>> F.mse_loss(x, y).item()
    2.0
    """
    difference = _difference(prediction, target, "mse_loss")
    if difference.dtype.is_complex:
        raise DTypeError(
            "the square of a complex difference is no loss",
            hint="Take burn.nn.functional.l1_loss, or the losses of real and imaginary parts",
            operation="mse_loss",
        )
    return reduced(difference * difference, reduction, "mse_loss")


def l1_loss(prediction: Tensor, target: Tensor, /, *, reduction: Reduction = "mean") -> Tensor:
    """Absolute difference ``abs(prediction - target)``; see `mse_loss` for the parameters."""
    return reduced(abs(_difference(prediction, target, "l1_loss")), reduction, "l1_loss")


def huber_loss(
    prediction: Tensor, target: Tensor, /, *, delta: float = 1.0, reduction: Reduction = "mean"
) -> Tensor:
    """Half of the squared difference d up to `delta`, beyond it ``delta * (abs(d) - delta / 2)``.

    (Huber, 1964.) See `mse_loss` for the other parameters.

    Raises
    ------
    ArgumentError
        If `delta` is not positive.
    """
    number = _positive(delta, "delta", "huber_loss")
    losses = _huber(_difference(prediction, target, "huber_loss"), number)
    return reduced(losses, reduction, "huber_loss")


def smooth_l1_loss(
    prediction: Tensor, target: Tensor, /, *, beta: float = 1.0, reduction: Reduction = "mean"
) -> Tensor:
    """`huber_loss` over `beta`: ``d**2 / (2 * beta)`` up to `beta`, beyond ``abs(d) - beta / 2``.

    (Girshick, 2015, arXiv:1504.08083.) With `beta` 0 it is `l1_loss`.
    """
    number = real_number(beta, "beta", "smooth_l1_loss")
    if number == 0.0:
        return l1_loss(prediction, target, reduction=reduction)
    number = _positive(number, "beta", "smooth_l1_loss")
    losses = _huber(_difference(prediction, target, "smooth_l1_loss"), number) / number
    return reduced(losses, reduction, "smooth_l1_loss")


def _huber(difference: Tensor, delta: float) -> Tensor:
    near = clip(difference, -delta, delta)
    return near * (difference - near * 0.5)


def binary_cross_entropy_with_logits(
    logits: Tensor,
    targets: Tensor,
    /,
    *,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """``-(y * log(sigmoid(x)) + (1 - y) * log(1 - sigmoid(x)))``, without overflow.

    Parameters
    ----------
    logits : Tensor
        Logarithms x of the odds, float.
    targets : Tensor
        Probabilities y of the same shape, in [0, 1].
    weight : Tensor, optional
        Factor of the losses, which broadcasts with them.
    pos_weight : Tensor, optional
        Factor of the first term, which broadcasts with it: more than 1 for what is rare.
    reduction : {"mean", "sum", "none"}
        What becomes of the losses of the elements.

    Returns
    -------
    Tensor
        The loss in nats: 0-d, or one per element.

    Raises
    ------
    ShapeError
        If the shapes of logits and targets differ.
    OutOfRangeError
        If a target is not in [0, 1]; on an asynchronous device at the next read.
    """
    operation = "binary_cross_entropy_with_logits"
    check_same_shape(logits, targets, operation)
    fault = None
    if not targets.dtype.is_bool:
        fault = require(equal(clip(targets, 0, 1), targets), Refusal.PROBABILITY)
    targets = _as_float_like(targets, logits)
    # Both terms are small where the prediction is right: nothing cancels.
    hit = targets * softplus(-logits)
    losses = (hit if pos_weight is None else hit * pos_weight) + (1.0 - targets) * softplus(logits)
    result = reduced(losses if weight is None else losses * weight, reduction, operation)
    return result if fault is None else result + fault.astype(result.dtype).reshape(())


def kl_div(
    log_probs: Tensor,
    target: Tensor,
    /,
    *,
    log_target: bool = False,
    reduction: Literal["mean", "batchmean", "sum", "none"] = "mean",
) -> Tensor:
    """Kullback-Leibler divergence ``target * (log(target) - log_probs)``.

    Parameters
    ----------
    log_probs : Tensor
        Logarithms of the predicted probabilities.
    target : Tensor
        Probabilities of the same shape. Where they are 0, so is the loss.
    log_target : bool
        Whether `target` holds logarithms.
    reduction : {"mean", "batchmean", "sum", "none"}
        What becomes of the losses of the elements; ``"batchmean"`` is the sum over the length of
        the first axis, which is the divergence of the distributions in a batch.

    Returns
    -------
    Tensor
        The divergence in nats: 0-d, or one term per element.
    """
    rank = rank_of(log_probs, "kl_div")
    check_same_shape(log_probs, target, "kl_div")
    if log_target:
        impossible = equal(target, -math.inf)
        logarithm = where(impossible, 0.0, target)
        probability = where(impossible, 0.0, exp(logarithm))
    else:
        probability = _as_float_like(target, log_probs)
        impossible = equal(probability, 0.0)
        logarithm = log(where(impossible, 1.0, probability))
    # Also before the product, which would make NaN of the gradient of 0 times infinity.
    losses = probability * (logarithm - where(impossible, 0.0, log_probs))
    if reduction == "batchmean":
        if not rank:
            raise ShapeError("a 0-d tensor has no batch", operation="kl_div")
        return sum(losses) / log_probs.shape[0]
    return reduced(losses, reduction, "kl_div")


def reduced(losses: Tensor, reduction: str, operation: str) -> Tensor:
    """What becomes of the losses of elements."""
    if reduction == "mean":
        return mean(losses)
    if reduction == "sum":
        return sum(losses)
    if reduction == "none":
        return losses
    raise ArgumentError(
        f"reduction is {reduction!r}", hint='Use "mean", "sum" or "none"', operation=operation
    )


def _difference(prediction: Tensor, target: Tensor, operation: str) -> Tensor:
    """``prediction - target``, as floats."""
    check_same_shape(prediction, target, operation)
    prediction, target = _as_float(prediction), _as_float(target)
    return subtract(prediction, target)


def _as_float(x: Tensor) -> Tensor:
    if x.dtype.is_integer or x.dtype.is_bool:
        return x.astype(x.device.settings.float_dtype)
    return x


def _as_float_like(x: Tensor, other: Tensor) -> Tensor:
    """Integers and booleans in the dtype of floats that they meet."""
    return x.astype(other.dtype) if other.dtype.is_float and not x.dtype.is_float else _as_float(x)


def check_same_shape(x: Tensor, y: Tensor, operation: str) -> None:
    """Refuse shapes that would broadcast, which is hardly ever what is meant."""
    rank_of(x, operation)
    rank_of(y, operation)
    if x.shape != y.shape:
        raise ShapeError(
            f"shapes {x.shape} and {y.shape} differ",
            hint="Losses do not broadcast: reshape one of them if that is what is meant",
            operation=operation,
        )


def _positive(value: float, name: str, operation: str) -> float:
    number = real_number(value, name, operation)
    if not number > 0.0:
        raise ArgumentError(f"{name} is {number}", hint="It must be positive", operation=operation)
    return number
