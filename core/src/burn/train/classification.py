"""Metrics of classifiers: accuracy, and what a confusion matrix tells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from burn.errors import ArgumentError
from burn.functions.manipulation import expand_dims
from burn.functions.normalize import check_choice
from burn.functions.searching import where
from burn.functions.sorting import argtopk
from burn.ops.arguments import as_integer, real_number
from burn.train._labels import (
    as_classes,
    check_targets,
    counts_of,
    flat_labels,
    in_range,
    optional_integer,
    predicted_classes,
    score_axis,
)
from burn.train._sums import total
from burn.train.metrics import Layouts, Metric

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["Accuracy", "ConfusionMatrix", "FBetaScore", "Precision", "Recall"]

_NO_CLASS: Final = -(2**15)
"""Instead of an ignored target: below all classes, and a number of float16."""

Average: TypeAlias = Literal["macro", "micro", "weighted", "binary"]


class Accuracy(Metric):
    """Share of the predictions that are right.

    Predictions are scores of classes, of which the largest counts (the first of equals; NaN is
    largest); or predicted classes; or, with a `threshold`, scores of class 1 in the shape of the
    targets, as of two classes or of several labels.

    Parameters
    ----------
    top_k : int
        A prediction is right if the target is among the `top_k` classes of the largest scores.
    ignore_index : int, optional
        A target that does not count, such as padding.
    axis : int
        Axis of the classes.
    threshold : float, optional
        For scores of class 1, which predict it above the threshold: 0.0 of logits, 0.5 of
        probabilities.

    Raises
    ------
    ArgumentError
        If `top_k` is below 1.

    Examples
    --------
    >>> import burn
    >>> from burn.train import Accuracy
    >>> accuracy = Accuracy()
    >>> scores = burn.asarray([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2]], device="cpu")
    >>> accuracy.update(scores, burn.asarray([1, 2], device="cpu"))
    >>> accuracy.compute()
    0.5
    """

    def __init__(
        self,
        top_k: int = 1,
        *,
        ignore_index: int | None = None,
        axis: int = -1,
        threshold: float | None = None,
    ) -> None:
        self.top_k = as_integer(top_k, "top_k", "Accuracy", least=1)
        self.ignore_index = optional_integer(ignore_index, "ignore_index", "Accuracy")
        self.axis = as_integer(axis, "axis", "Accuracy")
        self.threshold = (
            None if threshold is None else real_number(threshold, "threshold", "Accuracy")
        )

    def update(self, predictions: Tensor, targets: Tensor) -> None:
        """Add a batch.

        Parameters
        ----------
        predictions : Tensor, shape (..., C) or (...)
            Scores of C classes; or a predicted class, or a score of class 1, for each target.
        targets : Tensor, shape (...)
            Classes. One that is out of range is an error of `compute`, as it is known then.

        Raises
        ------
        ShapeError
            If the shapes do not fit each other.
        DTypeError
            If targets are floats, or integers have an axis of classes.
        ArgumentError
            If there are fewer than `top_k` classes.
        OperandTypeError
            If an argument is neither a tensor nor an array.
        """
        operation = "Accuracy.update"
        predictions, targets = self._inputs(predictions=predictions, targets=targets)
        axis = score_axis(predictions, targets, self.axis, self.threshold, operation)
        classes = 2 if axis is None else predictions.shape[axis]
        if self.top_k > (1 if axis is None else classes):
            scores = "no scores of classes" if axis is None else f"scores of {classes} classes"
            raise ArgumentError(
                f"top_k is {self.top_k}, and there are {scores}",
                hint="Pass scores of at least that many classes",
                operation=operation,
            )
        wanted = targets if targets.dtype.is_float else as_classes(targets)
        count: Tensor | int = targets.size
        if self.ignore_index is not None:
            kept = wanted != self.ignore_index
            count, wanted = total(kept), where(kept, wanted, _NO_CLASS)
        if axis is None and not predictions.dtype.is_float:
            valid = count  # there may be any number of classes
        else:
            valid = total(in_range(wanted, classes))
        if axis is None or self.top_k == 1:
            found = predicted_classes(predictions, axis, self.threshold)
        else:  # a target is at most one of them
            found = argtopk(predictions, self.top_k, axis=axis)
            wanted = expand_dims(wanted, axis=axis)
        self.add(right=total(found == as_classes(wanted)), valid=valid, count=count)

    def _expected(self) -> Layouts:
        return dict.fromkeys(("right", "valid", "count"), ((), False))

    def compute(self) -> float:
        """The share of all targets so far.

        Returns
        -------
        float
            Reading it waits for the device.

        Raises
        ------
        ArgumentError
            If there was no update, or no target counts.
        OutOfRangeError
            If a target was no class.
        """
        sums = self.sums()
        check_targets(sums["count"] - sums["valid"], "Accuracy.compute")
        return float(sums["right"] / self._counted(sums["count"], "target"))


class _OfClasses(Metric):
    """What metrics of a given number of classes share."""

    def __init__(
        self,
        classes: int,
        *,
        ignore_index: int | None = None,
        axis: int = -1,
        threshold: float | None = None,
    ) -> None:
        name = type(self).__name__
        self.classes = as_integer(classes, "classes", name, least=2)
        self.ignore_index = optional_integer(ignore_index, "ignore_index", name)
        self.axis = as_integer(axis, "axis", name)
        self.threshold = None if threshold is None else real_number(threshold, "threshold", name)

    def _labels(self, predictions: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Predicted classes and targets, as of `flat_labels`."""
        predictions, targets = self._inputs(predictions=predictions, targets=targets)
        return flat_labels(
            predictions,
            targets,
            classes=self.classes,
            ignore_index=self.ignore_index,
            axis=self.axis,
            threshold=self.threshold,
            operation=f"{type(self).__name__}.update",
        )


class ConfusionMatrix(_OfClasses):
    """How often each class was predicted for each target.

    Parameters
    ----------
    classes : int
        Their number.
    ignore_index : int, optional
        A target that does not count, such as padding.
    axis : int
        Axis of the classes.
    threshold : float, optional
        For scores of class 1, which predict it above the threshold: 0.0 of logits, 0.5 of
        probabilities.

    Examples
    --------
    >>> import burn
    >>> from burn.train import ConfusionMatrix
    >>> matrix = ConfusionMatrix(2)
    >>> predicted, targets = [burn.asarray(x, device="cpu") for x in ([0, 1, 1], [0, 0, 1])]
    >>> matrix.update(predicted, targets)
    >>> matrix.compute()
    array([[1, 1],
           [0, 1]])
    """

    def update(self, predictions: Tensor, targets: Tensor) -> None:
        """Add a batch, as `Accuracy.update` does.

        Parameters
        ----------
        predictions : Tensor, shape (..., C) or (...)
            Scores of C classes; or a predicted class, or a score of class 1, for each target.
        targets : Tensor, shape (...)
            Classes. One that is out of range is an error of `compute`, as it is known then.

        Raises
        ------
        ShapeError
            If the shapes do not fit each other, or there are scores of another number of classes.
        DTypeError
            If targets are floats, or integers have an axis of classes.
        OperandTypeError
            If an argument is neither a tensor nor an array.
        """
        predicted, wanted = self._labels(predictions, targets)
        width = self.classes + 2
        self.add(counts=counts_of(wanted * width + predicted, width**2))

    def _expected(self) -> Layouts:
        return {"counts": (((self.classes + 2) ** 2,), False)}

    def compute(self) -> np.ndarray[Any, Any]:
        """The counts of all updates so far.

        Returns
        -------
        NumPy array, shape (classes, classes)
            Integers: a row for each target, a column for each predicted class. Reading it waits
            for the device.

        Raises
        ------
        ArgumentError
            If there was no update.
        OutOfRangeError
            If a target or a predicted class was out of range.
        """
        width = self.classes + 2
        matrix = self.sums()["counts"].reshape(width, width)
        check_targets(int(matrix[-2, -2]), "ConfusionMatrix.compute")
        return np.ascontiguousarray(matrix[:-2, :-2])


class _ClassScore(_OfClasses):
    """A score of each class, and an average of these."""

    _weights: tuple[float, float]
    """How much predictions and targets count in a weighted harmonic mean of both shares."""

    def __init__(
        self,
        classes: int,
        *,
        average: Average | None = "macro",
        ignore_index: int | None = None,
        axis: int = -1,
        threshold: float | None = None,
    ) -> None:
        super().__init__(classes, ignore_index=ignore_index, axis=axis, threshold=threshold)
        name = type(self).__name__
        if average is not None:
            check_choice(average, ("macro", "micro", "weighted", "binary"), "average", name)
        if average == "binary" and self.classes != 2:
            raise ArgumentError(
                f'average is "binary", and there are {self.classes} classes',
                hint="It is the score of class 1 of two",
                operation=name,
            )
        self.average = average

    def update(self, predictions: Tensor, targets: Tensor) -> None:
        """Add a batch, as `ConfusionMatrix.update` does.

        Parameters
        ----------
        predictions : Tensor, shape (..., C) or (...)
            Scores of C classes; or a predicted class, or a score of class 1, for each target.
        targets : Tensor, shape (...)
            Classes. One that is out of range is an error of `compute`, as it is known then.

        Raises
        ------
        ShapeError
            If the shapes do not fit each other, or there are scores of another number of classes.
        DTypeError
            If targets are floats, or integers have an axis of classes.
        OperandTypeError
            If an argument is neither a tensor nor an array.
        """
        predicted, wanted = self._labels(predictions, targets)
        width = self.classes + 2
        right = where(predicted == wanted, wanted, self.classes)
        self.add(
            right=counts_of(right, width),
            predicted=counts_of(predicted, width),
            targets=counts_of(wanted, width),
        )

    def _expected(self) -> Layouts:
        names = ("right", "predicted", "targets")
        return dict.fromkeys(names, ((self.classes + 2,), False))

    def compute(self) -> Any:
        """The score of all updates so far.

        Returns
        -------
        float, or NumPy array of shape (classes,)
            An array if there is no average. Reading it waits for the device.

        Raises
        ------
        ArgumentError
            If there was no update, or no target counts.
        OutOfRangeError
            If a target or a predicted class was out of range.
        """
        sums = self.sums()
        check_targets(int(sums["targets"][-2]), f"{type(self).__name__}.compute")
        counts = [sums[name][:-2] for name in ("right", "predicted", "targets")]
        self._counted(counts[2].sum(), "target")
        if self.average == "micro":
            return float(self._scores(*[count.sum() for count in counts]))
        scores = self._scores(*counts)
        if self.average is None:
            return scores
        if self.average == "binary":
            return float(scores[1])
        _, predicted, targets = counts
        weights = targets if self.average == "weighted" else predicted + targets > 0
        return float(np.average(scores, weights=weights))

    def _scores(self, right: Any, predicted: Any, targets: Any) -> Any:
        """Of each class, by how often it was predicted rightly, predicted, and a target."""
        of_predicted, of_targets = self._weights
        total_count = of_predicted * predicted + of_targets * targets
        return (of_predicted + of_targets) * right / np.where(total_count > 0, total_count, 1.0)


class Precision(_ClassScore):
    """Share of the predictions of a class that are right; 0 of a class that was not predicted.

    Parameters
    ----------
    classes : int
        Their number.
    average : {"macro", "micro", "weighted", "binary"} or None
        "macro" is the mean over the classes that were a target or predicted, "weighted" one
        weighted by numbers of targets; "micro" counts the predictions of all classes together,
        "binary" is that of class 1 of two. None: an array with that of each class.
    ignore_index : int, optional
        A target that does not count, such as padding.
    axis : int
        Axis of the classes.
    threshold : float, optional
        For scores of class 1, which predict it above the threshold: 0.0 of logits, 0.5 of
        probabilities.

    Examples
    --------
    >>> import burn
    >>> from burn.train import Precision
    >>> precision = Precision(2, average="binary")
    >>> predicted, targets = [burn.asarray(x, device="cpu") for x in ([0, 1, 1], [0, 0, 1])]
    >>> precision.update(predicted, targets)
    >>> precision.compute()
    0.5
    """

    _weights = (1.0, 0.0)


class Recall(_ClassScore):
    """Share of the targets of a class that were predicted; 0 of a class that was no target.

    Parameters
    ----------
    classes, average, ignore_index, axis, threshold : object
        As of `Precision`.

    Examples
    --------
    >>> import burn
    >>> from burn.train import Recall
    >>> recall = Recall(2, average="binary")
    >>> predicted, targets = [burn.asarray(x, device="cpu") for x in ([0, 1, 1], [0, 0, 1])]
    >>> recall.update(predicted, targets)
    >>> recall.compute()
    1.0
    """

    _weights = (0.0, 1.0)


class FBetaScore(_ClassScore):
    """The harmonic mean of precision and recall, where recall counts `beta` times as much: F1.

    Parameters
    ----------
    classes : int
        Their number.
    beta : float
        Above 0.
    average, ignore_index, axis, threshold : object
        As of `Precision`.

    Examples
    --------
    >>> import burn
    >>> from burn.train import FBetaScore
    >>> f1 = FBetaScore(2, average="binary")
    >>> predicted, targets = [burn.asarray(x, device="cpu") for x in ([0, 1, 1], [0, 0, 1])]
    >>> f1.update(predicted, targets)
    >>> round(f1.compute(), 3)
    0.667
    """

    def __init__(
        self,
        classes: int,
        *,
        beta: float = 1.0,
        average: Average | None = "macro",
        ignore_index: int | None = None,
        axis: int = -1,
        threshold: float | None = None,
    ) -> None:
        super().__init__(
            classes, average=average, ignore_index=ignore_index, axis=axis, threshold=threshold
        )
        self.beta = real_number(beta, "beta", "FBetaScore", above=0.0)
        self._weights = (1.0, self.beta**2)
