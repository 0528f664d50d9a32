"""What metrics share: sums on a device, which are read when the metric is computed.

A metric adds up what `update` gets, where it is. Nothing waits for the device before `compute`, so
a metric costs a training step a few operations. A loop over a data set in ten lines:

>>> import burn
>>> from burn import nn
>>> from burn.nn import functional as F
>>> from burn.train import Accuracy, Mean
>>> device = burn.Device("cpu")
>>> net = nn.Linear(4, 3, device=device)
>>> loader = [(burn.ones((8, 4), device=device), burn.asarray([0] * 8, device=device))]
>>> loss, accuracy = Mean(), Accuracy()
>>> with burn.no_grad():
...     for x, targets in loader:
...         scores = net(x)
...         loss.update(F.cross_entropy(scores, targets), weight=len(targets))
...         accuracy.update(scores, targets)
>>> 0.0 <= accuracy.compute() <= 1.0 and loss.compute() > 0.0
True

`burn.train.evaluate` is this loop, and a class of one's own derives from `Metric`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from burn.autodiff import running_again
from burn.devices import Device, running_trace
from burn.dtype import int64
from burn.errors import ArgumentError, DTypeError, OperandTypeError, ShapeError, TraceError
from burn.functions.common import dispatch
from burn.functions.creation import asarray
from burn.functions.normalize import as_scalar, check_tensor
from burn.ops.arguments import python_number
from burn.tensor.tensor import Tensor
from burn.train._sums import Sum, device_of, plain

if TYPE_CHECKING:
    from typing import Self

    from burn.aliases import Shape

__all__ = ["Metric"]

Layouts: TypeAlias = "dict[str, tuple[Shape, bool]]"
"""The shape of each sum or amount, and whether it is of floats."""


class Metric:
    """Base class of metrics: named sums, which stay on the device of what is added.

    A class of one's own has a method `update`, which calls `add`, and a method `compute`, which
    calls `sums`.

    Notes
    -----
    Floats are added in float64 and integers in int64; a device without these keeps the rounding
    errors of float32, and integers in two parts. The sums may be updated in a function of
    `burn.compile`. They follow what is added to another device, which waits for both.

    Examples
    --------
    >>> import burn
    >>> from burn.train import Metric
    >>> class Positive(Metric):
    ...     '''Share of the numbers that are above 0.'''
    ...
    ...     def update(self, x):
    ...         self.add(positive=burn.count_nonzero(x > 0), all=x.size)
    ...
    ...     def compute(self):
    ...         sums = self.sums()
    ...         return sums["positive"] / sums["all"]
    >>> metric = Positive()
    >>> for numbers in ([1.0, -1.0], [2.0, 3.0]):
    ...     metric.update(burn.asarray(numbers, device="cpu"))
    >>> metric.compute()
    0.75
    """

    _sums: dict[str, Sum] | None = None
    """The sums, from the first update on."""

    _first: Mapping[str, np.ndarray[Any, Any]] = {}
    """Where they begin, until then."""

    _updates: int = 0
    """Number of updates, and 1 for a state with some."""

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Add a batch.

        Parameters
        ----------
        *args, **kwargs : object
            What the class says.

        Returns
        -------
        None
            `compute` gives the result.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method update")

    def compute(self) -> Any:
        """The result of all updates. Reading it waits for the device."""
        raise NotImplementedError(f"{type(self).__name__} has no method compute")

    @property
    def is_empty(self) -> bool:
        """Whether there was no update, so that there is nothing to compute."""
        return not self._updates

    def add(self, **amounts: Tensor | float) -> None:
        """Add to sums by their names; for `update`.

        Parameters
        ----------
        **amounts : Tensor, int or float
            Each of one shape in all updates, and either always a float or always an integer.
            Booleans count as 0 and 1. Tensors may be tracked: their values are added.

        Returns
        -------
        None
            `sums` has the sums.

        Raises
        ------
        ShapeError
            If an amount has another shape than before.
        DTypeError
            If an amount is a float and its sum one of integers, or is neither.
        ArgumentError
            If the names are others than before.
        AutodiffError
            Inside of `burn.vmap`.
        TraceError
            In a program of `burn.ir.trace`, and in a body of control flow.
        """
        if running_again.get():  # in the backward pass of burn.checkpoint: it was added before
            return
        operation = f"{type(self).__name__}.update"
        added = {name: _amount(x, name, operation) for name, x in amounts.items()}
        trace = running_trace()
        if trace is not None and not trace.compiles:
            where = f"the body of burn.{trace.body}" if trace.body else "a program of burn.ir.trace"
            raise TraceError(
                f"a metric is updated in {where}, whose runs do not count",
                hint="Return the values, and update the metric with them. Functions of "
                "burn.compile may update a metric",
                operation=operation,
            )
        sums = self._sums_for(added, operation)
        if trace is None:
            self._count()
        else:
            trace.watch(lambda: self._sums is sums)
            trace.after_call(self._count)
        for name, amount in added.items():
            sums[name].add(amount)

    def sums(self) -> dict[str, Any]:
        """The sums by their names, read together; for `compute`.

        Returns
        -------
        dict of str to int, float or NumPy array
            Arrays are of float64 or int64.

        Raises
        ------
        ArgumentError
            If there was no update.
        """
        if self.is_empty:
            raise ArgumentError(
                "there was no update",
                hint="Call update for each batch before",
                operation=f"{type(self).__name__}.compute",
            )
        return {name: x if x.shape else x.item() for name, x in self._read().items()}

    def reset(self) -> None:
        """Forget all updates."""
        self._begin({}, 0)

    def merge(self, other: Self) -> None:
        """Add the updates of another metric, such as one of another device or process.

        Parameters
        ----------
        other : Metric
            Of the same class and options; it stays as it is.

        Returns
        -------
        None
            `compute` gives the result of the updates of both.

        Raises
        ------
        OperandTypeError
            If it is another sort of metric.
        ArgumentError
            If it has other options.
        """
        operation = f"{type(self).__name__}.merge"
        if type(other) is not type(self):
            raise OperandTypeError(
                f"takes another {type(self).__name__}, not an object of type "
                f"{type(other).__name__}",
                operation=operation,
            )
        options = _options(other)
        differing = [name for name, x in _options(self).items() if options.get(name) != x]
        if differing:
            raise ArgumentError(
                f"the metrics differ in {', '.join(differing)}",
                hint="Merge metrics of equal options",
                operation=operation,
            )
        if other.is_empty:
            return
        theirs, updates = other._read(), self._updates + other._updates
        if not self.is_empty:
            own = self._read()
            _check(_layouts(own), _layouts(theirs), operation)
            theirs = {name: own[name] + x for name, x in theirs.items()}
        self._begin(theirs, updates)

    def state_dict(self) -> dict[str, np.ndarray[Any, Any]]:
        """The sums, for `load_state_dict`. Reading them waits for the device.

        Returns
        -------
        dict of str to NumPy array
            Of float64 or int64; empty if there was no update.
        """
        return {} if self.is_empty else self._read()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned.

        Parameters
        ----------
        state : dict of str to NumPy array
            Of a metric of the same class and options.

        Returns
        -------
        None
            The next updates add to those sums.

        Raises
        ------
        OperandTypeError
            If it is no mapping.
        ArgumentError
            If it has other sums than this metric, where that has some.
        """
        operation = f"{type(self).__name__}.load_state_dict"
        if not isinstance(state, Mapping):
            raise OperandTypeError(
                f"takes what state_dict() returned, not an object of type {type(state).__name__}",
                operation=operation,
            )
        first = {name: _array(x, name, operation) for name, x in state.items()}
        known = self._expected() or _layouts(self._sums or {})
        if first and known:
            _check(known, _layouts(first), operation)
            first = {name: x.astype(float) if known[name][1] else x for name, x in first.items()}
        self._begin(first, int(bool(first)))

    def __repr__(self) -> str:
        options = ", ".join([f"{name}={x!r}" for name, x in _options(self).items()])
        return f"{type(self).__name__}({options})"

    def __getstate__(self) -> dict[str, Any]:
        """Of a copy, whose sums are on no device until its next update."""
        state = {name: x for name, x in vars(self).items() if name != "_sums"}
        return state | {"_first": {} if self.is_empty else self._read()}

    def _expected(self) -> Layouts:
        """The sums of any metric of the class and these options; nothing where that is open."""
        return {}

    def _count(self) -> None:
        self._updates += 1

    def _inputs(self, **inputs: Any) -> list[Tensor]:
        """Arguments of `update` as tensors without layers; arrays come to the first one's device.

        Raises
        ------
        OperandTypeError
            If one is neither a tensor nor an array.
        """
        operation = f"{type(self).__name__}.update"
        found = [x for x in inputs.values() if isinstance(x, Tensor)]
        device = device_of(found[0]) if found else self._device()
        values = []
        for name, given in inputs.items():
            is_array = not isinstance(given, Tensor) and hasattr(given, "__array__")
            x = asarray(given, device=device) if is_array else given
            check_tensor(x, name, operation)
            values.append(_real(x, name, operation))
        return values

    def _counted(self, count: Any, what: str) -> Any:
        """What a sum is divided by.

        Raises
        ------
        ArgumentError
            If it is 0, so that there is no result.
        """
        if count:
            return count
        raise ArgumentError(
            f"no {what} counts in any update",
            hint="Update the metric with batches that are not empty",
            operation=f"{type(self).__name__}.compute",
        )

    def _device(self) -> Device:
        """Where arrays come to if there is no tensor."""
        used = [x.device for x in (self._sums or {}).values() if x.device is not None]
        return used[0] if used else Device.default().untraced.hardware

    def _sums_for(self, amounts: dict[str, Tensor | float], operation: str) -> dict[str, Sum]:
        """The sums that amounts can be added to.

        Raises
        ------
        ArgumentError, ShapeError, DTypeError
            If they cannot.
        """
        layouts, sums = _layouts(amounts), self._sums
        own = _layouts(sums or self._first)
        if sums is None or (self.is_empty and own != layouts):
            first = self._first or _zeros(layouts)
            _check(_layouts(first), layouts, operation)
            sums = {name: Sum(x) for name, x in first.items()}
            self._sums, self._first = sums, {}
        elif own != layouts:
            _check(own, layouts, operation)
        return sums

    def _read(self) -> dict[str, np.ndarray[Any, Any]]:
        """The sums on the host."""
        self._check_outside("read")
        if self._sums is None:
            return dict(self._first)
        read = iter(dispatch.read_all([part for x in self._sums.values() for part in x.parts]))
        return {name: x.value([next(read) for _ in x.parts]) for name, x in self._sums.items()}

    def _begin(self, first: Mapping[str, np.ndarray[Any, Any]], updates: int) -> None:
        """Go on from other sums, in the same tensors if they have the same shapes."""
        self._check_outside("set")
        self._updates = updates
        if self._sums is not None:
            first = first or _zeros(_layouts(self._sums))
            if _layouts(first) == _layouts(self._sums):
                for name, x in first.items():
                    self._sums[name].begin(x)
                return
        self._sums, self._first = None, first

    def _check_outside(self, what: str) -> None:
        """Raise TraceError in a function that is traced."""
        if running_trace() is not None:
            raise TraceError(
                f"the sums of a metric are {what} in a function that is traced",
                hint="Call update there, and all else outside",
                operation=type(self).__name__,
            )


def _amount(x: Any, name: str, operation: str) -> Any:
    """What is added: a tensor of numbers without layers, or a Python number."""
    if not isinstance(x, Tensor):
        number = python_number(x)
        if isinstance(number, float):
            return number
        if isinstance(number, int):
            return as_scalar(number, int64, operation)
        check_tensor(x, name, operation)
    return _real(x, name, operation)


def _real(x: Tensor, name: str, operation: str) -> Tensor:
    """A tensor of real numbers or booleans, without layers."""
    if x.dtype.is_float or x.dtype.is_integer or x.dtype.is_bool:
        return plain(x, operation)
    raise DTypeError(
        f"{name} is of {x.dtype}", hint="A metric takes real numbers", operation=operation
    )


def _array(x: Any, name: str, operation: str) -> np.ndarray[Any, Any]:
    """A sum that was saved, as a copy in float64 or int64."""
    array = np.asarray(dispatch.read_all([x])[0].array if isinstance(x, Tensor) else x)
    if array.dtype.kind in "iuf":
        return array.astype(np.float64 if array.dtype.kind == "f" else np.int64)
    raise ArgumentError(
        f"{name!r} is no array of numbers",
        hint="Pass what state_dict() returned",
        operation=operation,
    )


def _options(metric: Metric) -> dict[str, Any]:
    return {name: x for name, x in vars(metric).items() if not name.startswith("_")}


def _layouts(values: Mapping[str, Any]) -> Layouts:
    """The shape of each sum or amount, and whether it is of floats."""
    return {name: _layout(x) for name, x in values.items()}


def _layout(x: Any) -> tuple[Shape, bool]:
    if isinstance(x, Sum):
        return x.shape, x.is_float
    if isinstance(x, Tensor):
        return x.shape, x.dtype.is_float
    if isinstance(x, np.ndarray):
        return x.shape, x.dtype.kind == "f"
    return (), isinstance(x, float)


def _zeros(layouts: Layouts) -> dict[str, np.ndarray[Any, Any]]:
    return {
        name: np.zeros(shape, np.float64 if is_float else np.int64)
        for name, (shape, is_float) in layouts.items()
    }


def _check(own: Layouts, added: Layouts, operation: str) -> None:
    """Raise an error unless amounts can be added to sums."""
    if own.keys() != added.keys():
        raise ArgumentError(
            f"there are sums {', '.join(own)}, and now {', '.join(added)}",
            hint="Add to the same names in each update",
            operation=operation,
        )
    for name, (shape, is_float) in added.items():
        if shape != own[name][0]:
            raise ShapeError(
                f"{name} has shape {shape}, and had {own[name][0]} before",
                hint="Add amounts of one shape, such as sums over a batch",
                operation=operation,
            )
        if is_float and not own[name][1]:
            raise DTypeError(
                f"{name} is a float, and was an integer before",
                hint="Add a float in the first update, too",
                operation=operation,
            )
