"""The values that steps and evaluations return: read together, averaged, and computed."""

from __future__ import annotations

import copy
import math
from collections.abc import Container, Mapping
from typing import Any, Final

import numpy as np

from burn.errors import (
    ArgumentError,
    ExecutionError,
    OperandTypeError,
    ScalarRangeError,
    ShapeError,
)
from burn.ops.arguments import python_number
from burn.tensor.tensor import Tensor
from burn.tensor.transaction import Transaction
from burn.train.metrics import Metric

__all__ = ["EVALUATION", "RESERVED", "Averages", "computed", "named", "numbers", "pick"]

EVALUATION: Final = "val_"
"""Before the names of what an evaluation returns, as in Keras and Lightning."""

RESERVED: Final = frozenset({"event", "epoch", "step", "seconds", "examples_per_second"})
"""What a record has beside values."""


def named(values: Any) -> Mapping[Any, Any]:
    """What a step or an evaluation returned, by names; a value without one is the loss."""
    if values is None:
        return {}
    return values if isinstance(values, Mapping) else {"loss": values}


def check_name(name: Any, function: str) -> None:
    """Refuse what is no name, and names that records have themselves."""
    if not isinstance(name, str) or name in RESERVED:
        raise ArgumentError(
            f"{function} returned a value with the name {name!r}",
            hint=f"Names are strings, and not {', '.join(sorted(RESERVED))}",
            operation="fit",
        )


def value_of(value: Any, name: str, function: str) -> Tensor | float:
    """A value that is one number: a tensor, or a Python number."""
    if isinstance(value, Tensor):
        if value.size != 1:
            raise ShapeError(
                f"{function} returned a tensor of shape {value.shape} for {name!r}",
                hint="A value is one number: take its mean, or return a Metric",
                operation="fit",
            )
        if not value.dtype.is_complex:
            return value
    value = python_number(value)
    if not isinstance(value, (int, float)):
        kind = f"a tensor of {value.dtype}" if isinstance(value, Tensor) else type(value).__name__
        raise OperandTypeError(
            f"{function} returned {kind} for {name!r}",
            hint="Return a tensor or a dict of names to tensors, numbers and metrics",
            operation="fit",
        )
    try:
        return float(value)
    except OverflowError:
        raise ScalarRangeError(
            f"{function} returned an integer of {int(value).bit_length()} bits for {name!r}",
            hint="A value is a number that a float64 holds",
            operation="fit",
        ) from None


def read(steps: list[Mapping[str, Any]], function: str) -> list[dict[str, float]]:
    """The values of steps as numbers, with one wait per device for all tensors."""
    transaction = Transaction()
    checked = [
        {name: value_of(value, name, function) for name, value in values.items()}
        for values in steps
    ]
    for values in checked:
        for value in values.values():
            if isinstance(value, Tensor):
                transaction.register(value.detach())
    data = iter(transaction.execute())
    return [
        {
            name: float(next(data).array.item()) if isinstance(value, Tensor) else value
            for name, value in values.items()
        }
        for values in checked
    ]


def plain(value: Any) -> Any:
    """What a metric computed, as numbers, and lists and dicts of them."""
    if isinstance(value, Tensor):
        return value.tolist()
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    return value


def computed(metrics: Mapping[str, Metric]) -> dict[str, Any]:
    """The values of metrics that have any: a step need not update each of them."""
    found = {}
    for name, metric in metrics.items():
        try:
            found[name] = plain(metric.compute())
        except ArgumentError:
            if not metric.is_empty:
                raise
    return found


def numbers(values: Any, function: str) -> dict[str, Any]:
    """All that an evaluation returned, read; its metrics are reset."""
    given = named(values)
    for name in given:
        check_name(name, function)
    metrics = {name: value for name, value in given.items() if isinstance(value, Metric)}
    (found,) = read([{name: given[name] for name in given if name not in metrics}], function)
    for name, metric in metrics.items():
        found[name] = plain(metric.compute())
        metric.reset()
    return {name: found[name] for name in given}


def pick(name: str, record: Mapping[str, Any], operation: str) -> str:
    """The name of a value in a record: `name`, or that of the evaluation.

    Raises
    ------
    ArgumentError
        If there is neither; it lists the names.
    """
    for candidate in (name, EVALUATION + name):
        if candidate in record:
            return candidate
    known = ", ".join(name for name in record if name not in RESERVED)
    raise ArgumentError(
        f"there is no value {name!r}", hint=f"There are: {known or 'none'}", operation=operation
    )


class _Sum:
    """A sum of numbers with the error of its rounding (Neumaier, 1974), and their count."""

    def __init__(self, total: float = 0.0, error: float = 0.0, count: int = 0) -> None:
        self.total, self.error, self.count = total, error, count

    def add(self, value: float) -> None:
        total = self.total + value
        if math.isfinite(total):
            large, small = sorted((self.total, value), key=abs, reverse=True)
            self.error += (large - total) + small
        self.total = total
        self.count += 1

    @property
    def mean(self) -> float:
        return (self.total + self.error) / self.count


class Averages:
    """Means of the values of steps, and metrics, since the last record.

    Tensors are kept as they are until `read`, so a step waits for none of them. The numbers are
    added up one after the other, however many are read at once: a resumed run has the same means.

    Parameters
    ----------
    takes_nonfinite : bool
        Whether a value may be NaN or infinite.

    Attributes
    ----------
    kept_elsewhere : container of int
        The ``id`` of metrics that are parts of the checkpoints themselves.
    """

    kept_elsewhere: Container[int] = ()

    def __init__(self, *, takes_nonfinite: bool) -> None:
        self._takes_nonfinite = takes_nonfinite
        self._pending: list[tuple[int, dict[str, Any]]] = []
        self._names: set[Any] = set()
        self._sums: dict[str, _Sum] = {}
        self._metrics: dict[str, Metric] = {}
        self._resumed: dict[str, Any] = {}

    @property
    def pending(self) -> int:
        """Number of steps whose values are not read yet."""
        return len(self._pending)

    def add(self, step: int, returned: Any) -> None:
        """Take what a step returned; what is no number is found when it is read.

        This runs between any two steps, so it does as little as it can: after a step that has
        waited long each call costs ten times as much as in a row of them.
        """
        values: dict[str, Any] = {}
        for name, value in named(returned).items():
            if name not in self._names:
                check_name(name, "step")
                self._names.add(name)
            if isinstance(value, Tensor):
                values[name] = value.detach()  # without the graph, and what that needs
            elif not isinstance(value, Metric):
                values[name] = value
            elif self._metrics.get(name) is not value:
                self._adopt(name, value)
        if values:
            self._pending.append((step, values))

    def _adopt(self, name: str, metric: Metric) -> None:
        """Take a metric that is new; it goes on from the state of a checkpoint."""
        if name in self._metrics:
            raise ArgumentError(
                f"step returned another {type(metric).__name__} for {name!r} than before",
                hint="Its value would be that of this step: make a metric once, before the run",
                operation="fit",
            )
        self._metrics[name] = metric
        if name in self._resumed:
            before = copy.deepcopy(metric)
            before.load_state_dict(self._resumed.pop(name)["state"])
            before.merge(metric)
            metric.load_state_dict(before.state_dict())

    def read(self) -> list[tuple[int, dict[str, float]]]:
        """Wait for the values of the steps since the last call, and add them to the sums.

        Returns
        -------
        list of (int, dict of str to float)
            The number and the values of each of these steps.

        Raises
        ------
        ExecutionError
            If one is not finite and that is not allowed.
        ShapeError, OperandTypeError
            If one is not one number.
        """
        pending, self._pending = self._pending, []
        found = read([values for _, values in pending], "step")
        steps = [(step, values) for (step, _), values in zip(pending, found, strict=True)]
        for step, values in steps:
            for name, value in values.items():
                if not (self._takes_nonfinite or math.isfinite(value)):
                    raise ExecutionError(
                        f"{name!r} is {value} in step {step}",
                        hint="A lower learning rate, clip_norm of the optimizer or a warm-up help "
                        "against this; allow_nonfinite=True goes on nevertheless",
                        operation="fit",
                    )
                self._sums.setdefault(name, _Sum()).add(value)
        return steps

    def means(self) -> dict[str, float]:
        """The means of all that has been read."""
        return {name: total.mean for name, total in self._sums.items()}

    def metrics(self) -> dict[str, Any]:
        """The values of the metrics so far."""
        return computed(self._metrics)

    def take(self) -> dict[str, Any]:
        """Means and metrics, which begin anew."""
        resumed = self._resumed.items()
        unmet = {name: item["value"] for name, item in resumed if item["value"] is not None}
        values = self.means() | unmet | self.metrics()
        self.reset()
        return values

    def reset(self) -> None:
        """Forget all values, and reset the metrics."""
        for metric in self._metrics.values():
            metric.reset()
        self._pending, self._sums, self._metrics, self._resumed = [], {}, {}, {}

    def state_dict(self) -> dict[str, Any]:
        """The sums, and states and values of the metrics. All values of steps have been read."""
        sums = {name: [total.total, total.error, total.count] for name, total in self._sums.items()}
        values = self.metrics()
        metrics = self._resumed | {
            name: {"state": metric.state_dict(), "value": values.get(name)}
            for name, metric in self._metrics.items()
            if id(metric) not in self.kept_elsewhere
        }
        return {"sums": sums, "metrics": metrics}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self._pending, self._metrics = [], {}
        self._sums = {name: _Sum(*total) for name, total in state["sums"].items()}
        self._resumed = dict(state["metrics"])
