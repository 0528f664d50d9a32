"""Metrics that are means: of losses and other values, of errors, and of the likelihood of words."""

from __future__ import annotations

import math
from typing import Any

from burn.errors import BurnError, DTypeError, ShapeError
from burn.functions.elementwise import abs as abs_of, square
from burn.functions.manipulation import broadcast_to
from burn.functions.nn.classification_loss import cross_entropy
from burn.functions.normalize import as_flag
from burn.functions.searching import count_nonzero, where
from burn.ops.arguments import as_integer, python_number, real_number
from burn.tensor.tensor import Tensor
from burn.train._labels import as_classes, optional_integer
from burn.train._sums import precise, total, widened
from burn.train.metrics import Layouts, Metric

__all__ = ["Mean", "MeanAbsoluteError", "MeanSquaredError", "Perplexity"]


class Mean(Metric):
    """The mean of losses, or of other values, weighted as they are.

    A NaN among the values makes the mean NaN, also where its weight is 0.

    Examples
    --------
    >>> import burn
    >>> from burn.train import Mean
    >>> loss = Mean()
    >>> loss.update(burn.asarray(1.0, device="cpu"), weight=32)  # the mean over a batch of 32
    >>> loss.update(burn.asarray(4.0, device="cpu"), weight=16)
    >>> loss.compute()
    2.0
    """

    def update(self, value: Tensor | float, weight: Tensor | float = 1.0) -> None:
        """Add values.

        Parameters
        ----------
        value : Tensor, array or number
            Each element counts.
        weight : Tensor, array or number
            How much each of them counts, such as the number of examples that a loss is the mean of;
            a tensor is broadcast to the shape of `value`.

        Raises
        ------
        ShapeError
            If `weight` does not broadcast to the shape of `value`.
        ArgumentError
            If `weight` is a number below 0, or not finite.
        OperandTypeError
            If an argument is no number, array or tensor.
        DTypeError
            If a value is complex.
        """
        operation = "Mean.update"
        value, weight = python_number(value), python_number(weight)
        if isinstance(value, (int, float)):
            value = real_number(+value, "value", operation, takes_nan=True)  # +True is 1
        if isinstance(weight, (int, float)):
            factor = real_number(+weight, "weight", operation, least=0.0, below=math.inf)
            if isinstance(value, float):
                self.add(total=value * factor, weight=factor)
                return
            (values,) = self._inputs(value=value)
            summed = widened(total(values))
            summed = summed if factor == 1.0 else summed * factor
            self.add(total=summed, weight=values.size * factor)
            return
        if isinstance(value, float):
            (weights,) = self._inputs(weight=weight)
            weights = widened(total(weights))
            self.add(total=weights * value, weight=weights)
            return
        values, weights = self._inputs(value=value, weight=weight)
        try:
            weights = broadcast_to(weights, values.shape)
        except ShapeError as error:
            error.operation = operation
            raise
        products = precise(values) * precise(weights)
        self.add(total=widened(total(products)), weight=widened(total(weights)))

    def _expected(self) -> Layouts:
        return {"total": ((), True), "weight": ((), True)}

    def compute(self) -> float:
        """The mean of all values so far.

        Returns
        -------
        float
            Reading it waits for the device.

        Raises
        ------
        ArgumentError
            If there was no update, or if all weights are 0.
        """
        sums = self.sums()
        return float(sums["total"] / self._counted(sums["weight"], "weight"))


class Perplexity(Metric):
    """The exponential of the mean negative log-likelihood of the targets.

    Parameters
    ----------
    ignore_index : int, optional
        A target that does not count, such as padding.
    axis : int
        Axis of the classes.

    Notes
    -----
    The likelihood is computed in float32 where logits are narrower.

    Examples
    --------
    >>> import burn
    >>> from burn.train import Perplexity
    >>> perplexity = Perplexity()
    >>> logits = burn.zeros((2, 7, 50), device="cpu")  # all 50 words are as likely
    >>> perplexity.update(logits, burn.zeros((2, 7), dtype="int64", device="cpu"))
    >>> round(perplexity.compute(), 3)
    50.0
    """

    def __init__(self, *, ignore_index: int | None = None, axis: int = -1) -> None:
        self.ignore_index = optional_integer(ignore_index, "ignore_index", "Perplexity")
        self.axis = as_integer(axis, "axis", "Perplexity")

    def update(self, logits: Tensor, targets: Tensor) -> None:
        """Add the targets of a batch.

        Parameters
        ----------
        logits : Tensor, shape (..., C)
            Scores of the classes, float.
        targets : Tensor, shape (...)
            Classes, integers in [0, C).

        Raises
        ------
        ShapeError
            If the shapes do not fit each other.
        OutOfRangeError
            If a target is no class; on an asynchronous device when the metric is computed.
        OperandTypeError, DTypeError
            If `logits` are no floats, or `targets` no integers.
        """
        logits, targets = self._inputs(logits=logits, targets=targets)
        if not targets.dtype.is_integer:
            raise DTypeError(
                f"targets are of {targets.dtype}",
                hint="Pass classes, as integers",
                operation="Perplexity.update",
            )
        targets, ignored = as_classes(targets), self.ignore_index
        try:
            losses = cross_entropy(
                precise(logits),
                targets,
                axis=self.axis,
                ignore_index=ignored,
                reduction="sum",
            )
        except BurnError as error:
            error.add_note("in Perplexity.update")
            raise
        count = targets.size if ignored is None else count_nonzero(targets != ignored)
        self.add(total=widened(losses), count=count)

    def update_from_loss(self, loss: Tensor | float, count: Tensor | int) -> None:
        """Add the mean cross-entropy of a batch, which a training step has computed anyway.

        Parameters
        ----------
        loss : Tensor of one element, or float
            In nats.
        count : int, or Tensor of one integer
            Number of targets that it is the mean of; where it is 0 the loss does not count.

        Raises
        ------
        ShapeError
            If an argument has more than one element.
        DTypeError
            If `count` is no integer.
        """
        operation = "Perplexity.update_from_loss"
        mean, number = self._scalar(loss, "loss"), self._scalar(count, "count")
        mean = widened(mean) if isinstance(mean, Tensor) else float(mean)
        if not isinstance(number, Tensor):
            number = as_integer(number, "count", operation, least=0)
            self.add(total=mean * number if number else 0.0, count=number)
        elif number.dtype.is_integer:
            self.add(total=where(number > 0, widened(number) * mean, 0.0), count=number)
        else:
            raise DTypeError(
                f"count is of {number.dtype}", hint="Pass an integer", operation=operation
            )

    def _scalar(self, x: Any, name: str) -> Any:
        """An argument as a number, or a tensor without axes."""
        number = python_number(x)
        if isinstance(number, (int, float)):
            return number
        (value,) = self._inputs(**{name: x})
        if value.size == 1:
            return value.reshape(())
        raise ShapeError(
            f"{name} has shape {value.shape}",
            hint="Pass the mean of a batch, and how many targets it is the mean of",
            operation="Perplexity.update_from_loss",
        )

    def _expected(self) -> Layouts:
        return {"total": ((), True), "count": ((), False)}

    def compute(self) -> float:
        """The perplexity of all targets so far.

        Returns
        -------
        float
            At least 1; infinity where it is too large. Reading it waits for the device.

        Raises
        ------
        ArgumentError
            If there was no update, or no target counts.
        """
        sums = self.sums()
        mean = sums["total"] / self._counted(sums["count"], "target")
        try:
            return math.exp(mean)
        except OverflowError:
            return math.inf


class _MeanError(Metric):
    """What the means of errors share."""

    def update(self, predictions: Tensor, targets: Tensor) -> None:
        """Add a batch.

        Parameters
        ----------
        predictions, targets : Tensor
            Numbers, of one shape; each element counts.

        Raises
        ------
        ShapeError
            If the shapes differ: they are not broadcast.
        OperandTypeError
            If an argument is neither a tensor nor an array.
        """
        predictions, targets = self._inputs(predictions=predictions, targets=targets)
        if predictions.shape != targets.shape:
            raise ShapeError(
                f"predictions have shape {predictions.shape}, and targets {targets.shape}",
                hint="Pass tensors of one shape",
                operation=f"{type(self).__name__}.update",
            )
        errors = self._errors(precise(predictions) - precise(targets))
        self.add(total=widened(total(errors)), count=predictions.size)

    def _errors(self, differences: Tensor) -> Tensor:
        raise NotImplementedError

    def _expected(self) -> Layouts:
        return {"total": ((), True), "count": ((), False)}

    def compute(self) -> float:
        """The mean error of all elements so far.

        Returns
        -------
        float
            Reading it waits for the device.

        Raises
        ------
        ArgumentError
            If there was no update, or no element in any.
        """
        sums = self.sums()
        return float(sums["total"] / self._counted(sums["count"], "element"))


class MeanAbsoluteError(_MeanError):
    """The mean of ``abs(predictions - targets)``.

    Examples
    --------
    >>> import burn
    >>> from burn.train import MeanAbsoluteError
    >>> error = MeanAbsoluteError()
    >>> error.update(burn.asarray([1.0, 3.0], device="cpu"), burn.asarray([2.0, 5.0], device="cpu"))
    >>> error.compute()
    1.5
    """

    def _errors(self, differences: Tensor) -> Tensor:
        return abs_of(differences)


class MeanSquaredError(_MeanError):
    """The mean of ``(predictions - targets) ** 2``, or its square root.

    Parameters
    ----------
    root : bool
        Whether `compute` gives the root.

    Examples
    --------
    >>> import burn
    >>> from burn.train import MeanSquaredError
    >>> error = MeanSquaredError()
    >>> error.update(burn.asarray([1.0, 3.0], device="cpu"), burn.asarray([2.0, 5.0], device="cpu"))
    >>> error.compute()
    2.5
    """

    def __init__(self, *, root: bool = False) -> None:
        self.root = as_flag(root, "root", "MeanSquaredError")

    def _errors(self, differences: Tensor) -> Tensor:
        return square(differences)

    def compute(self) -> float:
        """The mean error of all elements so far, as in the base class.

        Returns
        -------
        float
            Reading it waits for the device.
        """
        mean = super().compute()
        return math.sqrt(mean) if self.root else mean
