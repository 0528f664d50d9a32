"""Losses of scores and embeddings that stay apart by a margin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.docstrings import documented_as
from burn.errors import ArgumentError, ShapeError
from burn.functions import calls
from burn.functions._spread import accumulation_dtype
from burn.functions.creation import arange
from burn.functions.data_type import result_type
from burn.functions.elementwise import equal, less, minimum, not_equal, sqrt
from burn.functions.indexing import take
from burn.functions.manipulation import astype, expand_dims
from burn.functions.nn.activation import softplus
from burn.functions.nn.distance import pairwise_distance
from burn.functions.nn.loss import (
    Reduction,
    as_float_like,
    check_class_weights,
    check_same_shape,
    reduce_losses,
)
from burn.functions.nn.rectifier import relu
from burn.functions.normalize import as_flag, as_float, check_tensor, rank_of
from burn.functions.searching import where
from burn.functions.statistical import sum
from burn.ops.arguments import real_number

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "cosine_embedding_loss",
    "hinge_embedding_loss",
    "margin_ranking_loss",
    "multi_margin_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
]

_LEAST_SQUARE = 1e-12
"""Added to the squares of lengths, so that cosines have finite gradients; PyTorch's number."""


def cosine_embedding_loss(
    x1: Tensor,
    x2: Tensor,
    target: Tensor,
    /,
    *,
    margin: float = 0.0,
    reduction: Reduction = "mean",
) -> Tensor:
    """``1 - cos(x1, x2)`` of vectors that belong together, ``max(cos(x1, x2) - margin, 0)`` else.

    Parameters
    ----------
    x1, x2 : Tensor, shape (..., D)
        Vectors, of one shape.
    target : Tensor, shape (...)
        1 for vectors that belong together, -1 for those that do not.
    margin : float
        The cosine up to which other vectors count as different.
    reduction : {"mean", "sum", "none"}
        Whether the losses are averaged, added up or returned as they are.

    Returns
    -------
    Tensor
        0-d; one per pair without a reduction.

    Raises
    ------
    ShapeError
        If the shapes do not fit each other.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.asarray([[1.0, 0.0], [1.0, 0.0]], device="cpu")
    >>> y = burn.asarray([[0.0, 1.0], [1.0, 0.0]], device="cpu")
    >>> target = burn.asarray([1, -1], device="cpu")
    >>> F.cosine_embedding_loss(x, y, target, reduction="none").tolist()
    [1.0, 1.0]
    """
    operation = "cosine_embedding_loss"
    check_same_shape(x1, x2, operation)
    x1, x2 = as_float(x1, operation), as_float(x2, operation)
    check_tensor(target, "target", operation)
    if not x1.ndim or target.shape != x1.shape[:-1]:
        raise ShapeError(
            f"target has shape {target.shape} for vectors of shape {x1.shape}",
            hint="It has one number for each vector along the last axis",
            operation=operation,
        )
    distance = real_number(margin, "margin", operation)
    cosine = _cosine(x1, x2)
    together = where(equal(target, 1), 1.0 - cosine, 0.0)
    losses = together + where(equal(target, -1), _hinge(cosine - distance), 0.0)
    return reduce_losses(losses, reduction, operation)


def _cosine(x1: Tensor, x2: Tensor) -> Tensor:
    """Cosines along the last axis, 0 of vectors of zeros; in float32 of 16-bit floats."""
    dtype = result_type(x1, x2)
    x1, x2 = [astype(x, accumulation_dtype(x)) for x in (x1, x2)]
    lengths = [sqrt(sum(x * x, axis=-1) + _LEAST_SQUARE) for x in (x1, x2)]
    return astype(sum(x1 * x2, axis=-1) / lengths[0] / lengths[1], dtype)


def hinge_embedding_loss(
    x: Tensor,
    target: Tensor,
    /,
    *,
    margin: float = 1.0,
    reduction: Reduction = "mean",
) -> Tensor:
    """Distances of what belongs together, and ``max(margin - distance, 0)`` of what does not.

    Parameters
    ----------
    x : Tensor
        Distances.
    target : Tensor
        1 for what belongs together, -1 for what does not; in the shape of `x`.
    margin : float
        The distance from which on a loss is 0.
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
    >>> x, y = burn.asarray([0.5, 0.25], device="cpu"), burn.asarray([1, -1], device="cpu")
    >>> F.hinge_embedding_loss(x, y, reduction="none").tolist()
    [0.5, 0.75]
    """
    operation = "hinge_embedding_loss"
    check_same_shape(x, target, operation)
    x = as_float(x, operation)
    distance = real_number(margin, "margin", operation)
    apart = where(not_equal(target, 1), _hinge(distance - x), 0.0)
    return reduce_losses(apart + where(not_equal(target, -1), x, 0.0), reduction, operation)


@documented_as(hinge_embedding_loss)
def margin_ranking_loss(
    x1: Tensor,
    x2: Tensor,
    target: Tensor,
    /,
    *,
    margin: float = 0.0,
    reduction: Reduction = "mean",
) -> Tensor:
    """``max(margin - target * (x1 - x2), 0)``: of two scores, one is the larger by a margin.

    The parameter `reduction` is that of `hinge_embedding_loss`.

    Parameters
    ----------
    x1, x2 : Tensor
        Scores, of one shape.
    target : Tensor
        1 where `x1` is to be the larger, -1 where `x2` is; in the same shape.
    margin : float
        The difference from which on a loss is 0.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x, y = burn.asarray([1.0, 1.0], device="cpu"), burn.asarray([3.0, 0.0], device="cpu")
    >>> F.margin_ranking_loss(x, y, burn.asarray([1, 1], device="cpu")).item()
    1.0
    """
    operation = "margin_ranking_loss"
    check_same_shape(x1, x2, operation)
    check_same_shape(x1, target, operation)
    difference = as_float(x1, operation) - as_float(x2, operation)
    distance = real_number(margin, "margin", operation)
    losses = _hinge(distance - as_float_like(target, difference) * difference)
    return reduce_losses(losses, reduction, operation)


@documented_as(hinge_embedding_loss)
def soft_margin_loss(x: Tensor, target: Tensor, /, *, reduction: Reduction = "mean") -> Tensor:
    """``log(1 + exp(-target * x))``, without overflow.

    The parameter `reduction` is that of `hinge_embedding_loss`.

    Parameters
    ----------
    x : Tensor
        Scores: logarithms of odds.
    target : Tensor
        1 or -1; in the shape of `x`.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x, y = burn.asarray([0.0, 99.0], device="cpu"), burn.asarray([1, -1], device="cpu")
    >>> burn.round(F.soft_margin_loss(x, y, reduction="none")).tolist()
    [1.0, 99.0]
    """
    check_same_shape(x, target, "soft_margin_loss")
    x = as_float(x, "soft_margin_loss")
    losses = softplus(-as_float_like(target, x) * x)
    return reduce_losses(losses, reduction, "soft_margin_loss")


def multi_margin_loss(
    x: Tensor,
    target: Tensor,
    /,
    *,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Mean over the classes of ``max(margin - x[target] + x[class], 0) ** p``, but of the target.

    Parameters
    ----------
    x : Tensor, shape (..., C)
        Scores of classes, float.
    target : Tensor, shape (...)
        Class of each example, an integer in [0, C).
    p : {1, 2}
        The power.
    margin : float
        The difference of scores from which on a loss is 0.
    weight : Tensor, shape (C,), optional
        Factor of the losses of examples of each class.
    reduction : {"mean", "sum", "none"}
        Whether the losses are averaged, added up or returned as they are.

    Returns
    -------
    Tensor
        0-d; one per example without a reduction.

    Raises
    ------
    ShapeError
        If the shapes do not fit each other.
    ArgumentError
        If `p` is neither 1 nor 2.
    OutOfRangeError
        If a target is no class, such as a negative one; on an asynchronous device at the next read.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.asarray([[3.0, 2.5, 0.0, 0.0]], device="cpu")
    >>> F.multi_margin_loss(x, burn.asarray([0], device="cpu")).item()
    0.125
    """
    operation = "multi_margin_loss"
    check_tensor(target, "target", operation)
    rank = rank_of(x, operation)
    if not rank or target.shape != x.shape[:-1]:
        raise ShapeError(
            f"target has shape {target.shape} for scores of shape {x.shape}",
            hint="It has one class for each row along the last axis",
            operation=operation,
        )
    power = real_number(p, "p", operation)
    if power not in (1.0, 2.0):
        raise ArgumentError(f"p is {p}", hint="Use 1 or 2", operation=operation)
    distance = real_number(margin, "margin", operation)
    # The negative score of the target class, which checks the classes too.
    negative = calls.nll_loss(x, target, axis=rank - 1)
    count = x.shape[-1]
    excess = relu(distance + expand_dims(negative, axis=-1) + x)
    if power == 2.0:
        excess = excess * excess
    if weight is not None:
        check_class_weights(weight, count, operation)
        factor = take(weight, target.reshape((-1,)), axis=0).reshape((*target.shape, 1))
        excess = excess * factor
    classes = arange(count, dtype=target.dtype, device=x.device)
    is_target = equal(classes, expand_dims(target, axis=-1))
    losses = sum(where(is_target, 0.0, excess), axis=-1) / count
    return reduce_losses(losses, reduction, operation)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    /,
    *,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: Reduction = "mean",
) -> Tensor:
    """``max(d(anchor, positive) - d(anchor, negative) + margin, 0)`` for a distance d.

    Parameters
    ----------
    anchor, positive, negative : Tensor, shape (..., D)
        Vectors, of one shape: of those that are like the anchor, and of those that are not.
    margin : float
        The difference of distances from which on a loss is 0.
    p : float
        The norm of the distance, as in `pairwise_distance`.
    eps : float
        Added to each difference of the vectors.
    swap : bool
        Whether ``d(positive, negative)`` counts, where it is less than ``d(anchor, negative)``
        (Balntas et al., 2016, "Learning shallow convolutional feature descriptors with triplet
        losses").
    reduction : {"mean", "sum", "none"}
        Whether the losses are averaged, added up or returned as they are.

    Returns
    -------
    Tensor
        0-d; one per triplet without a reduction.

    Raises
    ------
    ShapeError
        If the shapes differ.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> a, p, n = (burn.asarray([[x, 0.0]], device="cpu") for x in (0.0, 2.0, 3.0))
    >>> F.triplet_margin_loss(a, p, n, margin=2.0, p=1).item()
    1.0
    """
    operation = "triplet_margin_loss"
    check_same_shape(anchor, positive, operation)
    check_same_shape(anchor, negative, operation)
    distance = real_number(margin, "margin", operation)
    near = pairwise_distance(anchor, positive, p, eps=eps)
    far = pairwise_distance(anchor, negative, p, eps=eps)
    if as_flag(swap, "swap", operation):
        far = minimum(far, pairwise_distance(positive, negative, p, eps=eps))
    return reduce_losses(_hinge(near - far + distance), reduction, operation)


def _hinge(x: Tensor) -> Tensor:
    """``max(x, 0)``, whose slope at 0 is 1, as in PyTorch."""
    return where(less(x, 0.0), 0.0, x)
