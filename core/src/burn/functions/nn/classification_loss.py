"""Losses of predicted classes: the negative log-likelihood of labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.docstrings import documented_as
from burn.errors import ArgumentError
from burn.functions import calls
from burn.functions.elementwise import isinf, maximum, not_equal
from burn.functions.indexing import take
from burn.functions.nn.loss import (
    Reduction,
    check_class_weights,
    check_same_shape,
    reduce_losses,
)
from burn.functions.nn.softmax import log_softmax
from burn.functions.normalize import as_flag, check_tensor, normalize_axis, number_dtype
from burn.functions.searching import where
from burn.functions.statistical import sum
from burn.ops.arguments import as_integer, real_number

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["cross_entropy", "ctc_loss", "nll_loss"]


def nll_loss(
    log_probs: Tensor,
    targets: Tensor,
    /,
    *,
    axis: int = -1,
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Negative log-likelihood of the target classes.

    Parameters
    ----------
    log_probs : Tensor, shape (..., C, ...)
        Logarithms of probabilities, as `log_softmax` gives them; classes lie along `axis`.
    targets : Tensor
        Class of each example, an integer in [0, C), in the shape of `log_probs` without `axis`.
    axis : int
        Axis of the classes (the last by default).
    weight : Tensor, shape (C,), optional
        Factor of each class.
    ignore_index : int, optional
        A target that does not count; it need not be a class, and may be negative.
    reduction : {"mean", "sum", "none"}
        Whether the losses are averaged, added up or returned as they are. The mean is that of the
        examples that count, weighted by `weight`; NaN if none counts.

    Returns
    -------
    Tensor
        The loss in nats: 0-d; one per example without a reduction.

    Raises
    ------
    ShapeError
        If the shapes do not fit each other.
    OutOfRangeError
        If a target is no class, such as a negative one; on an asynchronous device at the next read.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> log_probs = burn.asarray([[-1.0, -2.0], [-3.0, -4.0]], device="cpu")
    >>> F.nll_loss(log_probs, burn.asarray([1, 0], device="cpu")).item()
    2.5
    """
    number = normalize_axis(log_probs, axis, "nll_loss")
    targets, kept = _without_ignored(targets, ignore_index, "nll_loss")
    losses = calls.nll_loss(log_probs, targets, axis=number)
    factor = _class_weights(weight, targets, log_probs.shape[number], "nll_loss")
    if factor is not None:
        losses = losses * factor
    return _mean_over_kept(losses, factor, kept, reduction, "nll_loss")


@documented_as(nll_loss)
def cross_entropy(
    logits: Tensor,
    targets: Tensor,
    /,
    *,
    axis: int = -1,
    weight: Tensor | None = None,
    label_smoothing: float = 0.0,
    ignore_index: int | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Negative log-likelihood of the target classes under ``softmax(logits)``.

    The other parameters are those of `nll_loss`.

    Parameters
    ----------
    logits : Tensor, shape (..., C, ...)
        Unnormalized log-probabilities, float; classes lie along `axis`.
    targets : Tensor
        Class of each example, an integer in [0, C), in the shape of `logits` without `axis`; or, as
        floats in the shape of `logits`, the probability of each class.
    label_smoothing : float
        Share of each target, in [0, 1], that is spread evenly over all classes (Szegedy et al.,
        2016, arXiv:1512.00567).
    reduction : {"mean", "sum", "none"}
        Whether the losses are averaged, added up or returned as they are. The mean is that of the
        examples that count, weighted by `weight`; NaN if none counts. Where targets are
        probabilities, it is the sum divided by the number of examples.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> logits = burn.asarray([[0.0, 0.0], [9.0, 0.0]], device="cpu")
    >>> round(F.cross_entropy(logits, burn.asarray([1, 0], device="cpu")).item(), 4)
    0.3466
    """
    number = normalize_axis(logits, axis, "cross_entropy")
    check_tensor(targets, "targets", "cross_entropy")
    if targets.dtype.is_float:
        return _cross_entropy_of_probabilities(
            logits, targets, number, weight, label_smoothing, ignore_index, reduction
        )
    share = _smoothing(label_smoothing)
    if weight is None and share == 0.0 and ignore_index is None:
        losses = calls.cross_entropy(logits, targets, axis=number)
        return reduce_losses(losses, reduction, "cross_entropy")
    targets, kept = _without_ignored(targets, ignore_index, "cross_entropy")
    losses = calls.cross_entropy(logits, targets, axis=number)
    factor = _class_weights(weight, targets, logits.shape[number], "cross_entropy")
    if factor is not None:
        losses = losses * factor
    if share:
        log_probs = _weighted_log_probs(logits, number, weight)
        uniform = sum(log_probs, axis=number) * (-share / logits.shape[number])
        losses = losses * (1.0 - share) + uniform
    return _mean_over_kept(losses, factor, kept, reduction, "cross_entropy")


def _cross_entropy_of_probabilities(
    logits: Tensor,
    targets: Tensor,
    axis: int,
    weight: Tensor | None,
    label_smoothing: float,
    ignore_index: int | None,
    reduction: Reduction,
) -> Tensor:
    check_same_shape(logits, targets, "cross_entropy")
    if ignore_index is not None:
        raise ArgumentError(
            "ignore_index is for targets that are classes",
            hint="Give probabilities of 0 to examples that do not count",
            operation="cross_entropy",
        )
    share = _smoothing(label_smoothing)
    if share:
        targets = targets * (1.0 - share) + share / logits.shape[axis]
    losses = -sum(targets * _weighted_log_probs(logits, axis, weight), axis=axis)
    return reduce_losses(losses, reduction, "cross_entropy")


def _weighted_log_probs(logits: Tensor, axis: int, weight: Tensor | None) -> Tensor:
    """Log-probabilities, each times the weight of its class."""
    log_probs = log_softmax(logits, axis=axis)
    if weight is None:
        return log_probs
    count = logits.shape[axis]
    check_class_weights(weight, count, "cross_entropy")
    return log_probs * weight.reshape((count, *[1] * (logits.ndim - 1 - axis)))


def _smoothing(label_smoothing: float) -> float:
    return real_number(label_smoothing, "label_smoothing", "cross_entropy", least=0.0, most=1.0)


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    /,
    *,
    blank: int = 0,
    zero_infinity: bool = False,
    reduction: Reduction = "mean",
) -> Tensor:
    """Connectionist temporal classification: labels whose alignment with time is unknown.

    Parameters
    ----------
    log_probs : Tensor, shape (T, N, C)
        Logarithms of the probabilities of C classes in T frames, as `log_softmax` gives them.
    targets : Tensor, shape (N, S)
        Labels, integers in [0, C) other than `blank`; those beyond the length of a target are not
        read.
    input_lengths : Tensor, shape (N,)
        Number of frames of each example, an integer up to T.
    target_lengths : Tensor, shape (N,)
        Number of labels of each target, an integer up to S.
    blank : int
        Class of frames without a label.
    zero_infinity : bool
        Whether the loss of a target that does not fit its frames is 0 in place of infinity. Its
        gradient is 0 in either case.
    reduction : {"mean", "sum", "none"}
        Whether the losses are averaged, added up or returned as they are. Before a mean each is
        divided by the length of its target, or by 1 if that is empty.

    Returns
    -------
    Tensor
        The loss in nats: 0-d; one per target without a reduction.

    Raises
    ------
    ShapeError
        If the shapes do not fit each other.
    OutOfRangeError
        If a label is no class or the blank, or a length too large or negative.

    Notes
    -----
    Graves et al., "Connectionist Temporal Classification", ICML 2006. The gradient with respect to
    `log_probs` is the negative of the probability that a frame emits a class. PyTorch adds the
    gradient of a softmax that it assumes before the loss; through a `log_softmax` both agree.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> log_probs = burn.log(burn.asarray([[[0.5, 0.5]]], device="cpu"))
    >>> targets, one = burn.asarray([[1]], device="cpu"), burn.asarray([1], device="cpu")
    >>> round(F.ctc_loss(log_probs, targets, one, one).item(), 4)
    0.6931
    """
    losses = calls.ctc_loss(
        log_probs,
        targets,
        input_lengths,
        target_lengths,
        blank=as_integer(blank, "blank", "ctc_loss"),
    )
    if as_flag(zero_infinity, "zero_infinity", "ctc_loss"):
        losses = where(isinf(losses), 0.0, losses)
    if _is_mean(reduction):
        losses = losses / maximum(target_lengths, 1).astype(number_dtype(losses))
    return reduce_losses(losses, reduction, "ctc_loss")


def _mean_over_kept(
    losses: Tensor,
    factor: Tensor | None,
    kept: Tensor | None,
    reduction: str,
    operation: str,
) -> Tensor:
    """Reduce weighted losses; those of ignored targets do not count."""
    if kept is not None:
        losses = where(kept, losses, 0.0)
        if factor is not None:
            factor = where(kept, factor, 0.0)
        elif _is_mean(reduction):
            factor = kept.astype(number_dtype(losses))
    if factor is not None and _is_mean(reduction):
        return sum(losses) / sum(factor)
    return reduce_losses(losses, reduction, operation)


def _without_ignored(
    targets: Tensor, ignore_index: int | None, operation: str
) -> tuple[Tensor, Tensor | None]:
    """Targets with class 0 in place of ignored ones, and a mask of those that count."""
    check_tensor(targets, "targets", operation)
    if ignore_index is None:
        return targets, None
    kept = not_equal(targets, as_integer(ignore_index, "ignore_index", operation))
    return where(kept, targets, 0), kept


def _class_weights(
    weight: Tensor | None, targets: Tensor, count: int, operation: str
) -> Tensor | None:
    """Weight of the class of each target."""
    if weight is None:
        return None
    check_class_weights(weight, count, operation)
    return take(weight, targets.reshape((-1,)), axis=0).reshape(targets.shape)


def _is_mean(reduction: str) -> bool:
    return isinstance(reduction, str) and reduction == "mean"
