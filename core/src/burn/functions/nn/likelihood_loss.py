"""Losses of predicted distributions of numbers: negative logarithms of likelihoods."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from burn.errors import ShapeError
from burn.functions import calls
from burn.functions.creation import full_like
from burn.functions.elementwise import exp, greater, log, maximum
from burn.functions.manipulation import expand_dims
from burn.functions.nn.loss import (
    Reduction,
    as_float_like,
    check_same_shape,
    reduce_losses,
)
from burn.functions.normalize import as_flag, as_float, check_tensor
from burn.functions.quantization import numbers_of
from burn.functions.searching import where
from burn.ops.arguments import as_python, real_number

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["binary_cross_entropy", "gaussian_nll_loss", "poisson_nll_loss"]


def binary_cross_entropy(
    probabilities: Tensor,
    targets: Tensor,
    /,
    *,
    weight: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """``-(y * log(x) + (1 - y) * log(1 - x))``, with logarithms of -100 at least.

    `binary_cross_entropy_with_logits` is more accurate, where there are logits.

    Parameters
    ----------
    probabilities : Tensor
        Predictions x in [0, 1], float. Others give NaN.
    targets : Tensor
        Probabilities y of the same shape, in [0, 1].
    weight : Tensor, optional
        Factor of the losses, with which it broadcasts.
    reduction : {"mean", "sum", "none"}
        Whether the losses are averaged, added up or returned as they are.

    Returns
    -------
    Tensor
        The loss in nats: 0-d; one per element without a reduction. Its slope is
        ``(x - y) / max(x * (1 - x), 1e-12)``, and finite where the prediction is 0 or 1.

    Raises
    ------
    ShapeError
        If the shapes of probabilities and targets differ.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x, y = burn.asarray([0.0, 0.5], device="cpu"), burn.asarray([1.0, 1.0], device="cpu")
    >>> [round(loss, 3) for loss in F.binary_cross_entropy(x, y, reduction="none").tolist()]
    [100.0, 0.693]
    """
    operation = "binary_cross_entropy"
    check_same_shape(probabilities, targets, operation)
    losses = calls.binary_cross_entropy(probabilities, as_float_like(targets, probabilities))
    if weight is not None:
        check_tensor(weight, "weight", operation)
        losses = losses * weight
    return reduce_losses(losses, reduction, operation)


def poisson_nll_loss(
    prediction: Tensor,
    target: Tensor,
    /,
    *,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: Reduction = "mean",
) -> Tensor:
    """Negative log-likelihood of counts under Poisson distributions of predicted means.

    Parameters
    ----------
    prediction : Tensor
        Logarithms x of the means, float: the loss is ``exp(x) - target * x``. Without `log_input`
        the means themselves: it is ``x - target * log(x + eps)``.
    target : Tensor
        Counts of the same shape.
    log_input : bool
        Whether `prediction` holds logarithms.
    full : bool
        Whether Stirling's approximation of the logarithm of the factorial of the counts is added,
        ``target * log(target) - target + log(2 * pi * target) / 2``, for counts above 1.
    eps : float
        Added to the means before the logarithm, at least 0.
    reduction : {"mean", "sum", "none"}
        Whether the losses are averaged, added up or returned as they are.

    Returns
    -------
    Tensor
        The loss in nats: 0-d; one per element without a reduction.

    Raises
    ------
    ShapeError
        If the shapes differ.
    ArgumentError
        If `eps` is negative.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.asarray([0.0, 0.0], device="cpu")
    >>> F.poisson_nll_loss(x, burn.asarray([3.0, 1.0], device="cpu")).item()
    1.0
    """
    operation = "poisson_nll_loss"
    check_same_shape(prediction, target, operation)
    prediction = as_float(prediction, operation)
    target = as_float_like(target, prediction)
    offset = real_number(eps, "eps", operation, least=0.0)
    if as_flag(log_input, "log_input", operation):
        losses = exp(prediction) - target * prediction
    else:
        losses = prediction - target * log(prediction + offset)
    if as_flag(full, "full", operation):
        # Replaced before the logarithm, whose gradient at 0 times 0 would be NaN.
        is_large = greater(target, 1.0)
        count = where(is_large, target, 1.0)
        stirling = count * log(count) - count + log(count * (2.0 * math.pi)) * 0.5
        losses = losses + where(is_large, stirling, 0.0)
    return reduce_losses(losses, reduction, operation)


def gaussian_nll_loss(
    prediction: Tensor,
    target: Tensor,
    variance: Tensor | float,
    /,
    *,
    full: bool = False,
    eps: float = 1e-6,
    reduction: Reduction = "mean",
) -> Tensor:
    """Negative log-likelihood of numbers under normal distributions of predicted moments.

    Parameters
    ----------
    prediction : Tensor
        Means of the distributions.
    target : Tensor
        Numbers of the same shape.
    variance : Tensor or float
        Variances v of the same shape; with a last axis of length 1, or without it, one for all of
        that axis. The loss is ``(log(v) + (prediction - target)**2 / v) / 2``.
    full : bool
        Whether the constant ``log(2 * pi) / 2`` is added.
    eps : float
        Smaller variances count as `eps`, which is positive; gradients are as if they did not.
    reduction : {"mean", "sum", "none"}
        Whether the losses are averaged, added up or returned as they are.

    Returns
    -------
    Tensor
        The loss in nats: 0-d; one per element without a reduction.

    Raises
    ------
    ShapeError
        If the shapes do not fit each other.
    ArgumentError
        If `eps` is not positive.

    Notes
    -----
    Nix and Weigend, "Estimating the mean and variance of the target probability distribution",
    ICNN 1994.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x, y = burn.asarray([1.0, 2.0], device="cpu"), burn.asarray([1.0, 4.0], device="cpu")
    >>> F.gaussian_nll_loss(x, y, 1.0).item()
    1.0
    """
    operation = "gaussian_nll_loss"
    check_same_shape(prediction, target, operation)
    prediction = numbers_of(as_float(prediction, operation))
    target = as_float_like(target, prediction)
    least = real_number(eps, "eps", operation, above=0.0)
    variance = as_python(variance)
    if isinstance(variance, (int, float)):
        variance = full_like(prediction, variance)
    variance = _fitting_variance(as_float(variance, operation, "variance"), prediction, operation)
    variance = variance + (maximum(variance, least) - variance).detach()
    difference = prediction - target
    losses = (log(variance) + difference * difference / variance) * 0.5
    if as_flag(full, "full", operation):
        losses = losses + 0.5 * math.log(2.0 * math.pi)
    return reduce_losses(losses, reduction, operation)


def _fitting_variance(variance: Tensor, prediction: Tensor, operation: str) -> Tensor:
    shape = prediction.shape
    if variance.shape in (shape, (*shape[:-1], 1)):
        return variance
    if variance.shape == shape[:-1]:
        return expand_dims(variance, axis=-1)
    raise ShapeError(
        f"variance has shape {variance.shape} for a prediction of shape {shape}",
        hint="Give one for each element, or one for all of the last axis",
        operation=operation,
    )
