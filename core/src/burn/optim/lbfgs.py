"""LBFGS: a quasi-Newton method, which evaluates the function several times in a step."""

from __future__ import annotations

import functools
import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Unpack

from burn.devices import running_trace
from burn.dispatch import DispatchTensor
from burn.errors import ArgumentError, AutodiffError, OperandTypeError, TraceError
from burn.functions.assignment import assign_all
from burn.functions.common import dispatch
from burn.functions.creation import zeros_like
from burn.functions.linalg.norms import max_abs_norm
from burn.functions.linalg.products import dot
from burn.functions.manipulation import concat, reshape
from burn.functions.normalize import check_choice
from burn.nn.module import Module
from burn.ops.arguments import as_integer, real_number
from burn.optim._hints import Hinted, Unknown, refuse_keywords
from burn.optim._line_search import Point, strong_wolfe
from burn.optim._paths import check_none_is_new, named_parameters, some
from burn.optim._saved import as_value, check_mapping
from burn.optim._values import converted, is_leaf, plain

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["LBFGS"]

_SMALLEST_CURVATURE: Final = 1e-10
"""Pairs of a smaller product of gradient difference and step are not remembered."""


class LBFGS(Hinted):
    """Limited-memory BFGS (Liu and Nocedal, 1989), as ``torch.optim.LBFGS``.

    A step takes several iterations, and calls a function that computes the loss for each of them.
    Vectors stay on the device; an iteration reads a few numbers, however long the history is.

    Parameters
    ----------
    parameters : Module, or containers of tensors
        Leaves of one device and one dtype; see `Optimizer`.
    learning_rate : float
        Length of a step in units of that of Newton's method.
    iterations : int
        Largest number of iterations in a step.
    evaluations : int, optional
        Largest number of evaluations of the loss in a step; by default ``1.25 * iterations``.
    tolerance_gradient : float
        A step ends where no element of the gradient is larger.
    tolerance_change : float
        A step ends where neither a parameter nor the loss changes by more.
    history : int
        Number of pairs of steps and gradient differences that are kept.
    line_search : str, optional
        ``"strong_wolfe"`` looks along each direction for a point where the strong Wolfe conditions
        hold (Nocedal and Wright, 2006). By default every iteration moves by `learning_rate`.
    **unknown
        None: the error of a keyword of PyTorch or Optax names the one here.

    Raises
    ------
    OperandTypeError
        If a keyword is unknown.
    ArgumentError
        If a number is out of its range.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([-1.5, 2.0], device=burn.Device("cpu").autodiff()).require_grad()
    >>> optimizer = burn.optim.LBFGS([x], line_search="strong_wolfe")
    >>> def loss():
    ...     return (1.0 - x[0]) ** 2 + 100.0 * (x[1] - x[0] ** 2) ** 2
    >>> for _ in range(4):
    ...     value = optimizer.step(loss)
    >>> [round(one, 3) for one in x.tolist()]
    [1.0, 1.0]
    """

    def __init__(
        self,
        parameters: Any,
        learning_rate: float = 1.0,
        *,
        iterations: int = 20,
        evaluations: int | None = None,
        tolerance_gradient: float = 1e-7,
        tolerance_change: float = 1e-9,
        history: int = 100,
        line_search: str | None = None,
        **unknown: Unpack[Unknown],
    ) -> None:
        refuse_keywords(unknown, "LBFGS")
        self._named = named_parameters(parameters, "LBFGS")
        self._module = parameters if isinstance(parameters, Module) else None
        self.learning_rate = learning_rate
        self.iterations = as_integer(iterations, "iterations", "LBFGS", least=1)
        if evaluations is None:
            evaluations = self.iterations * 5 // 4
        self.evaluations = as_integer(evaluations, "evaluations", "LBFGS", least=1)
        self.tolerance_gradient = _tolerance(tolerance_gradient, "tolerance_gradient")
        self.tolerance_change = _tolerance(tolerance_change, "tolerance_change")
        self.history = as_integer(history, "history", "LBFGS", least=1)
        if line_search is not None:
            check_choice(line_search, ("strong_wolfe",), "line_search", "LBFGS")
        self.line_search = line_search
        self._count = 0
        self._pairs: deque[tuple[Tensor, Tensor]] = deque(maxlen=self.history)
        self._last: tuple[Tensor, Tensor] | None = None

    @property
    def learning_rate(self) -> float:
        """Length of a step in units of that of Newton's method."""
        return self._learning_rate

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        self._learning_rate = _rate(value, "LBFGS")

    def step(self, loss: Callable[[], Tensor]) -> Tensor:
        """Minimize a function of the parameters by some iterations.

        Parameters
        ----------
        loss : callable
            ``loss()`` computes a tensor of one element with the values that the parameters have.
            The optimizer calls its ``backward``.

        Returns
        -------
        Tensor
            The first loss, untracked.

        Raises
        ------
        AutodiffError
            If a parameter is no leaf, or the loss depends on none of them.
        ArgumentError
            If it depends on a parameter that the module got later.
        TraceError
            In a function that is traced: compile the loss instead.
        """
        if running_trace() is not None:
            raise TraceError(
                "how often it computes the loss depends on values, which a traced function lacks",
                hint="Compile the loss alone: optimizer.step(burn.compile(loss))",
                operation="LBFGS.step",
            )
        values = [_leaf_value(path, x) for path, x in self._named]
        if len({value.tensor_type for value in values}) > 1:
            raise OperandTypeError(
                "the parameters are on several devices, or have several dtypes",
                hint="Move them together",
                operation="LBFGS.step",
            )
        at = _flat(values)
        self._follow(at)
        first, gradient = self._evaluate(loss)
        value, steepest, total = _read(first, max_abs_norm(gradient), abs(gradient).sum())
        count = 1
        for iteration in range(1, self.iterations + 1):
            if steepest <= self.tolerance_gradient:
                break
            direction = self._direction(gradient)
            slope, length = _read(dot(gradient, direction), max_abs_norm(direction))
            size = self.learning_rate * (1.0 if self._count else min(1.0, 1.0 / total))
            self._count += 1
            self._last = gradient, zeros_like(direction)
            if slope > -self.tolerance_change:
                break
            evaluate = functools.partial(self._point, loss, at, direction)
            before, used = value, 0
            if self.line_search is None and iteration == self.iterations:
                self._move(at + direction * size)  # the next step evaluates the loss there
            elif self.line_search is None:
                found, used = evaluate(size), 1
            else:
                start = Point(0.0, value, slope, (at, gradient, steepest))
                found, used = strong_wolfe(
                    evaluate,
                    start,
                    size,
                    most=self.evaluations - count,
                    length=length,
                    tolerance=self.tolerance_change,
                )
                self._move(found.found[0])
            if used:
                size, value, _, (at, gradient, steepest) = found
            self._last = self._last[0], direction * size
            count += used
            if (
                count >= self.evaluations
                or length * abs(size) <= self.tolerance_change
                or abs(value - before) < self.tolerance_change
            ):
                break
        return first.detach()

    def _direction(self, gradient: Tensor) -> Tensor:
        """The product of the inverse Hessian, as the pairs estimate it, and the gradient."""
        if self._last is not None:
            difference, change = gradient - self._last[0], self._last[1]
            if _read(dot(difference, change))[0] > _SMALLEST_CURVATURE:
                self._pairs.append((difference, change))
        direction = -gradient
        if not self._pairs:
            return direction
        parts = []
        for difference, change in reversed(self._pairs):
            curvature = dot(difference, change)
            part = dot(change, direction) / curvature
            direction = direction - difference * part
            parts.append((part, curvature))
        difference, change = self._pairs[-1]
        direction = direction * (dot(difference, change) / dot(difference, difference))
        for (difference, change), (part, curvature) in zip(
            self._pairs, reversed(parts), strict=True
        ):
            direction = direction + change * (part - dot(difference, direction) / curvature)
        return direction

    def _point(
        self, loss: Callable[[], Tensor], start: Tensor, direction: Tensor, size: float
    ) -> Point:
        """The loss with the parameters at some distance from the start, where they stay."""
        at = start + direction * size
        self._move(at)
        result, gradient = self._evaluate(loss)
        value, slope, steepest = _read(result, dot(gradient, direction), max_abs_norm(gradient))
        return Point(size, value, slope, (at, gradient, steepest))

    def _evaluate(self, loss: Callable[[], Tensor]) -> tuple[Tensor, Tensor]:
        """The loss, and the gradients of all parameters in one vector."""
        value = loss()
        if not isinstance(value, DispatchTensor):
            raise OperandTypeError(
                f"the function of the loss returned {type(value).__name__}",
                hint="Return the loss, a tensor of one element, and do not call backward",
                operation="LBFGS.step",
            )
        gradients = value.backward()
        if self._module is not None:
            own = [x for _, x in self._named]
            check_none_is_new(self._module, own, gradients, "LBFGS.step")
        found = [gradients.get(x) for _, x in self._named]
        if all(item is None for item in found):
            raise AutodiffError(
                "the loss depends on none of the parameters",
                hint="Compute it anew in each call, with the parameters that the optimizer has",
                operation="LBFGS.step",
            )
        return value.detach(), _flat(
            [
                zeros_like(plain(x)) if gradient is None else gradient
                for gradient, (_, x) in zip(found, self._named, strict=True)
            ]
        )

    def _move(self, at: Tensor) -> None:
        """Give the parameters the values in a vector."""
        values, begin = [], 0
        for _, x in self._named:
            values.append(reshape(at[begin : begin + x.size], x.shape))
            begin += x.size
        assign_all([x for _, x in self._named], values)

    def _follow(self, at: Tensor) -> None:
        """Bring what is kept to the device and dtype of the parameters."""
        if self._last is not None and self._last[0].tensor_type is not at.tensor_type:
            last, *pairs = [
                (converted(tensor, at), converted(other, at))
                for tensor, other in [self._last, *self._pairs]
            ]
            self._last, self._pairs = last, deque(pairs, self.history)

    def state_dict(self) -> dict[str, Any]:
        """What the optimizer knows, for `load_state_dict` in this process or another one.

        Returns
        -------
        dict of str to number or Tensor
            The number of iterations, the learning rate, and the last gradient and change and those
            of the history as vectors of all parameters.
        """
        state: dict[str, Any] = {"step": self._count, "learning_rate": self.learning_rate}
        if self._last is not None:
            state["gradient"], state["change"] = self._last
        for index, (difference, change) in enumerate(self._pairs):
            state[f"history.{index}.difference"] = difference
            state[f"history.{index}.change"] = change
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned.

        Parameters
        ----------
        state : dict of str to number or Tensor
            Of an LBFGS of parameters of the same shapes, in the same order.

        Returns
        -------
        None
            The next step continues those of the optimizer that was saved.

        Raises
        ------
        ArgumentError
            If the state does not fit; the optimizer is unchanged then.
        """
        operation = "LBFGS.load_state_dict"
        check_mapping(state, operation)
        count = as_integer(state.get("step", 0), "step", operation, least=0)
        rate = _rate(state.get("learning_rate", 0.0), operation)
        names = [("gradient", "change")] if count else []
        pairs = (len(state) - 2 - 2 * len(names)) // 2
        names += [(f"history.{i}.difference", f"history.{i}.change") for i in range(pairs)]
        expected = {"step", "learning_rate"} | {name for pair in names for name in pair}
        if expected != set(state):
            raise ArgumentError(
                f"the state does not fit: {some(sorted(expected ^ set(state)))}",
                hint="Load what state_dict() of an LBFGS returned",
                operation=operation,
            )
        at = _flat([plain(x) for _, x in self._named])
        vectors = [
            (
                as_value(state[name], at, name, operation),
                as_value(state[other], at, other, operation),
            )
            for name, other in names
        ]
        self._count, self.learning_rate = count, rate
        self._last = vectors[0] if vectors else None
        self._pairs = deque(vectors[1:], self.history)

    def __repr__(self) -> str:
        return f"LBFGS({len(self._named)} parameters, learning_rate={self.learning_rate})"


def _rate(value: float, operation: str) -> float:
    return real_number(value, "learning_rate", operation, above=0.0, below=math.inf)


def _tolerance(value: float, name: str) -> float:
    return real_number(value, name, "LBFGS", least=0.0)


def _leaf_value(path: str, x: Tensor) -> Tensor:
    """The value of a parameter, which is a leaf."""
    if not is_leaf(x):
        raise AutodiffError(
            f"the parameter {path!r} is no leaf of an autodiff device",
            hint="Move the parameters to a device with autodiff, module.to(device.autodiff()); "
            "leave out those that are frozen",
            operation="LBFGS.step",
        )
    return plain(x)


def _flat(tensors: Sequence[Tensor]) -> Tensor:
    return concat([reshape(tensor, (-1,)) for tensor in tensors])


def _read(*numbers: Tensor) -> list[float]:
    """The values of tensors of one element, which the device is waited for once."""
    return [float(tensor_data.array.item()) for tensor_data in dispatch.read_all(numbers)]
