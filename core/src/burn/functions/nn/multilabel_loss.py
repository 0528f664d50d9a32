"""Losses of scores of examples that belong to several classes at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.errors import DTypeError, ShapeError
from burn.functions.creation import arange
from burn.functions.cumulative import cumulative_prod
from burn.functions.elementwise import greater_equal, logical_and, logical_not
from burn.functions.indexing import take_along_axis
from burn.functions.manipulation import expand_dims
from burn.functions.nn.activation import log_sigmoid
from burn.functions.nn.loss import (
    Reduction,
    as_float_like,
    check_class_weights,
    check_same_shape,
    reduce_losses,
)
from burn.functions.nn.rectifier import relu
from burn.functions.normalize import as_float, check_tensor
from burn.functions.quantization import numbers_of
from burn.functions.searching import where
from burn.functions.statistical import mean, sum
from burn.functions.utility import any

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["multilabel_margin_loss", "multilabel_soft_margin_loss"]


def multilabel_soft_margin_loss(
    x: Tensor,
    targets: Tensor,
    /,
    *,
    weight: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Mean over the classes of the binary cross-entropy of scores, for each example.

    Parameters
    ----------
    x : Tensor, shape (..., C)
        Scores of the classes, float.
    targets : Tensor
        1 for a class to which an example belongs, else 0; of the same shape.
    weight : Tensor, shape (C,), optional
        Factors of the classes.
    reduction : {"mean", "sum", "none"}
        Whether the losses are averaged, added up or returned as they are.

    Returns
    -------
    Tensor
        The loss in nats: 0-d; one per example without a reduction.

    Raises
    ------
    ShapeError
        If the shapes do not fit each other.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.zeros((2, 3), device="cpu")
    >>> round(F.multilabel_soft_margin_loss(x, burn.ones_like(x)).item(), 4)
    0.6931
    """
    operation = "multilabel_soft_margin_loss"
    check_same_shape(x, targets, operation)
    _check_classes(x, operation)
    x = numbers_of(as_float(x, operation))
    y = as_float_like(targets, x)
    losses = -(y * log_sigmoid(x) + (1.0 - y) * log_sigmoid(-x))
    if weight is not None:
        check_class_weights(weight, x.shape[-1], operation)
        losses = losses * weight
    return reduce_losses(mean(losses, axis=-1), reduction, operation)


def multilabel_margin_loss(
    x: Tensor, targets: Tensor, /, *, reduction: Reduction = "mean"
) -> Tensor:
    """``max(1 - x[y] + x[i], 0) / C``, summed over the classes y of an example and all others i.

    Parameters
    ----------
    x : Tensor, shape (..., C)
        Scores of the classes, float.
    targets : Tensor of int
        The classes of each example, in any order, and -1 after the last of them; of the same shape.
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
    DTypeError
        If the classes are no integers.
    OutOfRangeError
        If there is no such class; on an asynchronous device at the next read.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.asarray([[0.5, 0.25, 1.0, 0.0]], device="cpu")
    >>> F.multilabel_margin_loss(x, burn.asarray([[3, 0, -1, 1]], device="cpu")).item()
    1.375
    """
    operation = "multilabel_margin_loss"
    check_same_shape(x, targets, operation)
    _check_classes(x, operation)
    if not targets.dtype.is_integer:
        raise DTypeError(f"classes are integers, not {targets.dtype}", operation=operation)
    x = numbers_of(as_float(x, operation))
    integers = x.device.settings.int_dtype
    targets = targets.astype(integers)
    # Up to the first negative number.
    given = cumulative_prod(greater_equal(targets, 0).astype(integers), axis=-1) > 0
    count = x.shape[-1]
    classes = arange(count, device=x.device)
    matches = logical_and(expand_dims(targets, -1) == classes, expand_dims(given, -1))
    other = logical_not(any(matches, axis=-2, keepdims=True))
    scores = take_along_axis(x, where(given, targets, 0), axis=-1)
    excess = relu(1.0 - expand_dims(scores, -1) + expand_dims(x, -2))
    counted = logical_and(expand_dims(given, -1), other)
    losses = sum(where(counted, excess, 0.0), axis=(-2, -1)) / max(count, 1)
    return reduce_losses(losses, reduction, operation)


def _check_classes(x: Tensor, operation: str) -> None:
    check_tensor(x, "x", operation)
    if not x.ndim:
        raise ShapeError("x is a 0-d tensor", hint="It has an axis of classes", operation=operation)
