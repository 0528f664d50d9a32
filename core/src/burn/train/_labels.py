"""Predictions and targets of classifiers: which classes they are, and which of them count."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.errors import ArgumentError, DTypeError, OutOfRangeError, ShapeError
from burn.functions.creation import ones, zeros
from burn.functions.elementwise import clip, logical_and
from burn.functions.normalize import normalize_axis
from burn.functions.scattering import scatter_add
from burn.functions.searching import argmax, where
from burn.ops.arguments import as_integer

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "as_classes",
    "check_targets",
    "counts_of",
    "flat_labels",
    "in_range",
    "optional_integer",
    "predicted_classes",
    "score_axis",
]


def optional_integer(value: int | None, name: str, operation: str) -> int | None:
    """An argument that may be None, as a Python integer."""
    return None if value is None else as_integer(value, name, operation)


def score_axis(
    scores: Tensor, targets: Tensor, axis: int, threshold: float | None, operation: str
) -> int | None:
    """The axis of the classes; None where each element is a prediction of its own.

    Raises
    ------
    ShapeError
        If the shapes do not fit each other, or the threshold.
    ArgumentError
        If there are scores of class 1, and no threshold.
    AxisError
        If there is no such axis.
    DTypeError
        If the predictions are no floats and have such an axis, or if the targets are floats there.
    """
    if scores.shape == targets.shape:
        if threshold is None and scores.dtype.is_float:
            raise ArgumentError(
                f"predictions of {scores.dtype} have the shape of the targets, {targets.shape}, "
                "and there is no threshold",
                hint="Make the metric with threshold=0.0 if they are logits of class 1, or 0.5 if "
                "they are probabilities. Of one-hot targets pass targets.argmax(axis=-1)",
                operation=operation,
            )
        return None
    number = normalize_axis(scores, axis, operation) if scores.shape else 0
    if scores.shape[:number] + scores.shape[number + 1 :] != targets.shape or not scores.shape:
        raise ShapeError(
            f"predictions have shape {scores.shape}, and targets {targets.shape}",
            hint="Targets have the shape of the predictions, or that without the axis of the "
            "classes, which is the last one unless axis= names another",
            operation=operation,
        )
    if threshold is not None:
        raise ShapeError(
            f"there is a threshold, and the predictions have shape {scores.shape}, with an axis of "
            "classes",
            hint="Scores of class 1 have the shape of the targets. Scores of classes need no "
            "threshold: the largest counts",
            operation=operation,
        )
    if scores.shape[number] == 1:
        raise ShapeError(
            f"there are scores of one class: the predictions have shape {scores.shape}",
            hint=f"Call squeeze({number}) on the predictions, and make the metric with a threshold",
            operation=operation,
        )
    if not scores.dtype.is_float:
        raise DTypeError(
            f"predictions of {scores.dtype} have an axis of classes",
            hint="Pass scores of the classes, as floats; or predicted classes in the shape of the "
            "targets",
            operation=operation,
        )
    if targets.dtype.is_float:
        raise DTypeError(
            f"targets are of {targets.dtype}", hint="Pass classes, as integers", operation=operation
        )
    return number


def predicted_classes(scores: Tensor, axis: int | None, threshold: float | None) -> Tensor:
    """The class of each prediction: by scores of classes, by a score of class 1, or itself."""
    if axis is not None:
        return argmax(scores, axis=axis)
    is_score = scores.dtype.is_float and threshold is not None
    return as_classes(scores > threshold if is_score else scores)


def as_classes(x: Tensor) -> Tensor:
    """In the default integer dtype of its device, so that predictions and targets compare."""
    dtype = x.device.settings.int_dtype
    return x if x.dtype is dtype else x.astype(dtype)


def in_range(x: Tensor, classes: int) -> Tensor:
    """Whether each element is a class in [0, classes); a float must be 0 or 1."""
    is_class = clip(x, min=0, max=classes - 1) == x
    return logical_and(is_class, x.astype("int32") == x) if x.dtype.is_float else is_class


def check_targets(wrong: int, operation: str) -> None:
    """Raise OutOfRangeError if some targets or predictions were no classes."""
    if wrong:
        raise OutOfRangeError(
            f"{wrong} of the targets or predicted classes are no class",
            hint="Classes are integers from 0 to the number of classes less 1, and 0 and 1 where "
            "a score of class 1 is predicted; ignore_index= names a target that does not count",
            operation=operation,
        )


def counts_of(indices: Tensor, length: int) -> Tensor:
    """How often each index in [0, length) is there; `indices` has one axis."""
    dtype, device = indices.dtype, indices.device
    amounts = ones(indices.shape, dtype=dtype, device=device)
    return scatter_add(zeros(length, dtype=dtype, device=device), indices, amounts, axis=0)


def flat_labels(
    predictions: Tensor,
    targets: Tensor,
    *,
    classes: int,
    ignore_index: int | None,
    axis: int,
    threshold: float | None,
    operation: str,
) -> tuple[Tensor, Tensor]:
    """Predicted classes and targets, one axis each.

    Both are `classes` where one of them is no class, and ``classes + 1`` where the target is
    ignored.

    Raises
    ------
    ShapeError
        If the shapes do not fit each other, or there are scores of another number of classes.
    DTypeError
        As `score_axis`.
    """
    number = score_axis(predictions, targets, axis, threshold, operation)
    of_two = number is None and predictions.dtype.is_float
    found = 2 if of_two else classes if number is None else predictions.shape[number]
    if found != classes:
        raise ShapeError(
            f"there are scores of {found} classes, and the metric is of {classes}",
            hint="Make the metric with that number of classes",
            operation=operation,
        )
    predicted = predicted_classes(predictions, number, threshold)
    own = as_classes(targets)
    valid = in_range(targets if targets.dtype.is_float else own, classes)
    if number is None and not of_two:
        valid = logical_and(valid, in_range(predicted, classes))
    predicted, wanted = where(valid, predicted, classes), where(valid, own, classes)
    if ignore_index is not None:
        kept = own != ignore_index
        predicted = where(kept, predicted, classes + 1)
        wanted = where(kept, wanted, classes + 1)
    return predicted.reshape(-1), wanted.reshape(-1)
