"""Losses of predicted numbers and probabilities."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeAlias

from burn.backend.invalid_values import InvalidValue
from burn.docstrings import documented_as
from burn.errors import ArgumentError, DTypeError, ShapeError
from burn.functions._value_checks import require
from burn.functions.elementwise import abs, clip, equal, exp, log, subtract
from burn.functions.nn.activation import softplus
from burn.functions.normalize import as_flag, check_tensor, number_dtype
from burn.functions.quantization import numbers_of
from burn.functions.searching import where
from burn.functions.statistical import mean, sum
from burn.ops.arguments import real_number
from burn.public_calls import shown_value

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "binary_cross_entropy_with_logits",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "lp_loss",
    "mse_loss",
    "smooth_l1_loss",
]

Reduction: TypeAlias = Literal["mean", "sum", "none"]


def mse_loss(prediction: Tensor, target: Tensor, /, *, reduction: Reduction = "mean") -> Tensor:
    """Squared error, ``(prediction - target) ** 2``.

    Parameters
    ----------
    prediction, target : Tensor
        Real tensors of one shape.
    reduction : {"mean", "sum", "none"}
        Whether the losses are averaged, added up or returned as they are.

    Returns
    -------
    Tensor
        0-d; in the shape of the operands without a reduction.

    Raises
    ------
    ShapeError
        If the shapes differ.
    DTypeError
        If one is complex.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x, y = burn.asarray([1.0, 2.0], device="cpu"), burn.asarray([1.0, 4.0], device="cpu")
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
    return reduce_losses(difference * difference, reduction, "mse_loss")


def l1_loss(prediction: Tensor, target: Tensor, /, *, reduction: Reduction = "mean") -> Tensor:
    """Absolute error, ``abs(prediction - target)``.

    Parameters
    ----------
    prediction, target : Tensor
        Tensors of one shape.
    reduction : {"mean", "sum", "none"}
        Whether the losses are averaged, added up or returned as they are.

    Returns
    -------
    Tensor
        0-d; in the shape of the operands without a reduction.

    Raises
    ------
    ShapeError
        If the shapes differ.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x, y = burn.asarray([1.0, 2.0], device="cpu"), burn.asarray([1.0, 4.0], device="cpu")
    >>> F.l1_loss(x, y).item()
    1.0
    """
    return reduce_losses(abs(_difference(prediction, target, "l1_loss")), reduction, "l1_loss")


@documented_as(l1_loss)
def lp_loss(
    prediction: Tensor, target: Tensor, /, p: float, *, reduction: Reduction = "mean"
) -> Tensor:
    """Power of the absolute error, ``abs(prediction - target) ** p``.

    The other parameters are those of `l1_loss`.

    Parameters
    ----------
    p : float
        The exponent, positive. Below 1 the gradient of equal elements is infinite.

    Raises
    ------
    ArgumentError
        If `p` is not positive and finite.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x, y = burn.asarray([1.0, 2.0], device="cpu"), burn.asarray([1.0, 4.0], device="cpu")
    >>> F.lp_loss(x, y, 3.0).item()
    4.0
    """
    exponent = real_number(p, "p", "lp_loss", above=0.0, below=math.inf)
    losses = abs(_difference(prediction, target, "lp_loss")) ** exponent
    return reduce_losses(losses, reduction, "lp_loss")


@documented_as(l1_loss)
def huber_loss(
    prediction: Tensor, target: Tensor, /, *, delta: float = 1.0, reduction: Reduction = "mean"
) -> Tensor:
    """Huber's loss (1964): quadratic for small errors, linear for large ones.

    With ``d = prediction - target``: ``d**2 / 2`` where ``abs(d)`` is up to `delta`, otherwise
    ``delta * (abs(d) - delta / 2)``.

    The parameter `reduction` is that of `l1_loss`.

    Parameters
    ----------
    prediction, target : Tensor
        Real tensors of one shape.
    delta : float
        Largest error of which the square counts, positive.

    Raises
    ------
    ArgumentError
        If `delta` is not positive.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x, y = burn.asarray([1.0, 2.0], device="cpu"), burn.asarray([1.0, 5.0], device="cpu")
    >>> F.huber_loss(x, y, reduction="none").tolist()
    [0.0, 2.5]
    """
    threshold = real_number(delta, "delta", "huber_loss", above=0.0)
    losses = _huber(_difference(prediction, target, "huber_loss"), threshold)
    return reduce_losses(losses, reduction, "huber_loss")


@documented_as(l1_loss)
def smooth_l1_loss(
    prediction: Tensor, target: Tensor, /, *, beta: float = 1.0, reduction: Reduction = "mean"
) -> Tensor:
    """`huber_loss` divided by its threshold (Girshick, 2015, arXiv:1504.08083).

    With ``d = prediction - target``: ``d**2 / (2 * beta)`` where ``abs(d)`` is up to `beta`,
    otherwise ``abs(d) - beta / 2``.

    The parameter `reduction` is that of `l1_loss`.

    Parameters
    ----------
    prediction, target : Tensor
        Real tensors of one shape.
    beta : float
        Largest error of which the square counts, at least 0; with 0 it is `l1_loss`.

    Raises
    ------
    ArgumentError
        If `beta` is negative.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x, y = burn.asarray([1.0, 2.0], device="cpu"), burn.asarray([1.0, 6.0], device="cpu")
    >>> F.smooth_l1_loss(x, y, beta=2.0, reduction="none").tolist()
    [0.0, 3.0]
    """
    threshold = real_number(beta, "beta", "smooth_l1_loss", least=0.0)
    if threshold == 0.0:
        return l1_loss(prediction, target, reduction=reduction)
    losses = _huber(_difference(prediction, target, "smooth_l1_loss"), threshold) / threshold
    return reduce_losses(losses, reduction, "smooth_l1_loss")


def _huber(difference: Tensor, threshold: float) -> Tensor:
    near = clip(difference, -threshold, threshold)
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
        Factor of the losses, with which it broadcasts.
    pos_weight : Tensor, optional
        Factor of the first term, with which it broadcasts: above 1 for rare positives.
    reduction : {"mean", "sum", "none"}
        Whether the losses are averaged, added up or returned as they are.

    Returns
    -------
    Tensor
        The loss in nats: 0-d; one per element without a reduction.

    Raises
    ------
    ShapeError
        If the shapes of logits and targets differ.
    OutOfRangeError
        If a target is not in [0, 1]; on an asynchronous device at the next read.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x, y = burn.asarray([0.0, 99.0], device="cpu"), burn.asarray([1.0, 0.0], device="cpu")
    >>> burn.round(F.binary_cross_entropy_with_logits(x, y, reduction="none")).tolist()
    [1.0, 99.0]
    """
    operation = "binary_cross_entropy_with_logits"
    check_same_shape(logits, targets, operation)
    for name, factor in (("weight", weight), ("pos_weight", pos_weight)):
        if factor is not None:
            check_tensor(factor, name, operation)
    fault = None
    targets = numbers_of(targets)
    if not targets.dtype.is_bool:
        fault = require(equal(clip(targets, 0, 1), targets), InvalidValue.PROBABILITY)
    targets = as_float_like(targets, logits)
    # Both terms are small where the prediction is right, so nothing cancels.
    positive = targets * softplus(-logits)
    if pos_weight is not None:
        positive = positive * pos_weight
    losses = positive + (1.0 - targets) * softplus(logits)
    if weight is not None:
        losses = losses * weight
    result = reduce_losses(losses, reduction, operation)
    return result if fault is None else result + fault.astype(number_dtype(result)).reshape(())


def kl_div(
    log_probs: Tensor,
    target: Tensor,
    /,
    *,
    log_target: bool = False,
    reduction: Literal["mean", "batchmean", "sum", "none"] = "mean",
) -> Tensor:
    """Kullback-Leibler divergence, ``target * (log(target) - log_probs)``.

    Parameters
    ----------
    log_probs : Tensor
        Logarithms of the predicted probabilities, float.
    target : Tensor
        Probabilities of the same shape. Where they are 0, so is the loss.
    log_target : bool
        Whether `target` holds logarithms.
    reduction : {"mean", "batchmean", "sum", "none"}
        Whether the losses are averaged, added up or returned as they are; ``"batchmean"`` is the
        sum divided by the length of the first axis: the mean divergence of the distributions in a
        batch.

    Returns
    -------
    Tensor
        The divergence in nats: 0-d; one term per element without a reduction.

    Raises
    ------
    ShapeError
        If the shapes differ, or a 0-d tensor is to be reduced by ``"batchmean"``.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> p = burn.asarray([0.5, 0.5], device="cpu")
    >>> F.kl_div(burn.log(p), p, reduction="sum").item()
    0.0
    """
    check_same_shape(log_probs, target, "kl_div")
    if as_flag(log_target, "log_target", "kl_div"):
        is_zero = equal(target, -math.inf)
        logarithm = where(is_zero, 0.0, target)
        probability = where(is_zero, 0.0, exp(logarithm))
    else:
        probability = as_float_like(target, log_probs)
        is_zero = equal(probability, 0.0)
        logarithm = log(where(is_zero, 1.0, probability))
    # Replaced before the product too, where the gradient of 0 times infinity would be NaN.
    losses = probability * (logarithm - where(is_zero, 0.0, log_probs))
    if isinstance(reduction, str) and reduction == "batchmean":
        if not log_probs.ndim:
            raise ShapeError("a 0-d tensor has no batch", operation="kl_div")
        return sum(losses) / log_probs.shape[0]
    return reduce_losses(losses, reduction, "kl_div")


def reduce_losses(losses: Tensor, reduction: str, operation: str) -> Tensor:
    """The mean or the sum of the losses of elements, or the losses themselves."""
    if isinstance(reduction, str):
        if reduction == "mean":
            return mean(losses)
        if reduction == "sum":
            return sum(losses)
        if reduction == "none":
            return losses
    raise ArgumentError(
        f"reduction is {shown_value(reduction)}",
        hint='Use "mean", "sum" or "none"',
        operation=operation,
    )


def check_same_shape(x: Tensor, y: Tensor, operation: str) -> None:
    """Raise ShapeError for shapes that would broadcast, which is hardly ever meant."""
    check_tensor(x, "x", operation)
    check_tensor(y, "y", operation)
    if x.shape != y.shape:
        raise ShapeError(
            f"shapes {x.shape} and {y.shape} differ",
            hint="Losses do not broadcast: reshape one of them if that is what is meant",
            operation=operation,
        )


def check_class_weights(weight: Tensor, count: int, operation: str) -> None:
    """Raise ShapeError unless there is a weight for each class."""
    check_tensor(weight, "weight", operation)
    if weight.shape != (count,):
        raise ShapeError(
            f"weight has shape {weight.shape}, and there are {count} classes",
            hint="It has one element for each class",
            operation=operation,
        )


def _difference(prediction: Tensor, target: Tensor, operation: str) -> Tensor:
    """``prediction - target``, as floats."""
    check_same_shape(prediction, target, operation)
    return subtract(_as_float(prediction), _as_float(target))


def _as_float(x: Tensor) -> Tensor:
    if x.dtype.is_integer or x.dtype.is_bool:
        return x.astype(x.device.settings.float_dtype)
    return x


def as_float_like(x: Tensor, other: Tensor) -> Tensor:
    """Integers and booleans in the float dtype of another tensor."""
    if other.dtype.is_float and not x.dtype.is_float:
        return x.astype(number_dtype(other))
    return _as_float(x)
