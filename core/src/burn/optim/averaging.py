"""Running means of the parameters of a module."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from burn.devices import running_trace
from burn.dispatch import join_trace
from burn.errors import ArgumentError, OperandTypeError
from burn.functions.assignment import assign_all
from burn.functions.nn.optimizer import sgd_step
from burn.functions.views import rebind
from burn.nn.module import Module
from burn.ops.arguments import as_integer, real_number
from burn.optim._paths import some
from burn.optim._saved import as_value, check_mapping
from burn.optim._traced import counts_in, refuse_when_compiled
from burn.optim._values import converted, follow, plain

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["ExponentialMovingAverage"]


class ExponentialMovingAverage:
    """Running means of the parameters of a module (Polyak and Juditsky, 1992).

    ``average = decay * average + (1 - decay) * parameter`` after each step; the parameters
    themselves before the first one.

    Parameters
    ----------
    module : Module
        Its parameters are averaged; its buffers are not.
    decay : float or callable
        In [0, 1]; or a function of the number of the update, counted from 1, such as
        ``lambda n: min(0.999, n / (n + 9))``.

    Raises
    ------
    ArgumentError
        If `decay` is out of its range.

    Examples
    --------
    >>> import burn
    >>> from burn import nn
    >>> net = nn.Linear(1, 1, bias=False)
    >>> net.weight = burn.asarray([[1.0]], device="cpu")
    >>> average = burn.optim.ExponentialMovingAverage(net, decay=0.75)
    >>> net.weight.assign(burn.asarray([[3.0]], device="cpu"))
    >>> average.update()
    >>> with average.applied():
    ...     net.weight.tolist()
    [[1.5]]
    >>> net.weight.tolist()
    [[3.0]]
    """

    def __init__(self, module: Module, decay: float | Callable[[int], float] = 0.999) -> None:
        if not isinstance(module, Module):
            raise OperandTypeError(
                f"takes a module, not an object of type {type(module).__name__}",
                operation="ExponentialMovingAverage",
            )
        if not callable(decay):
            decay = real_number(decay, "decay", "ExponentialMovingAverage", least=0.0, most=1.0)
        self.module = module
        self.decay = decay
        self._count = 0
        self._named = module.named_parameters()
        self._averages = [plain(x) for _, x in self._named]

    def update(self) -> None:
        """Move the averages towards the parameters; call it after each step of the optimizer.

        Returns
        -------
        None
            See `applied` and `averages` for the result.

        Raises
        ------
        ArgumentError
            If the module got or lost parameters.
        TraceError
            In a program of `burn.ir.trace`, which cannot count; a function of `burn.compile` can.
        """
        self._check_module("ExponentialMovingAverage.update")
        trace = running_trace()
        if trace is None:
            decay = self._decay_of(1)
            self._count_update()
        else:
            counts = counts_in(trace)
            counts[self] += 1
            decay = trace.host_number(functools.partial(self._decay_of, counts[self]), float)
            trace.after_call(self._count_update)
        buckets: dict[Any, list[int]] = {}
        values = [plain(x) for _, x in self._named]
        for index, value in enumerate(values):
            buckets.setdefault(value.tensor_type, []).append(index)
            follow(self._averages[index], value)
            join_trace(self._averages[index])
        for indices in buckets.values():
            new = [values[index] for index in indices]
            old = [self._averages[index] for index in indices]
            # The velocities of this step are the means; its parameters are not used.
            _, velocities = sgd_step(
                old, new, old, learning_rate=0.0, momentum=decay, dampening=decay
            )
            for mean, value in zip(old, velocities, strict=True):
                rebind(mean, value)

    def _decay_of(self, ahead: int) -> float:
        """The decay of an update; `ahead` is 1 for the next one."""
        operation = "ExponentialMovingAverage.update"
        if not callable(self.decay):
            return real_number(self.decay, "decay", operation, least=0.0, most=1.0)
        decay = self.decay(self._count + ahead)
        return real_number(decay, "the result of decay", operation, least=0.0, most=1.0)

    def _count_update(self) -> None:
        self._count += 1

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """Context in which the module has the averages as its parameters.

        Returns
        -------
        context manager
            The parameters, the same tensor objects, have their own values again afterwards.

        Raises
        ------
        ArgumentError
            If the module got or lost parameters; or, at the end, if they got other values inside:
            they have their own again, and those are lost.
        """
        operation = "ExponentialMovingAverage.applied"
        self._check_module(operation)
        tensors = [x for _, x in self._named]
        own, means = [plain(x) for x in tensors], self._converted()
        assign_all(tensors, means)
        try:
            yield
        finally:
            lost = [
                path
                for (path, x), mean in zip(self._named, means, strict=True)
                if plain(x).primitive is not mean.primitive
            ]
            assign_all(tensors, own)
        if lost:
            raise ArgumentError(
                f"parameters got values inside, such as by a step, which are lost: {some(lost)}",
                hint="Train outside; to go on from the averages, call "
                "module.load_state_dict(average.averages())",
                operation=operation,
            )

    def averages(self) -> dict[str, Tensor]:
        """The state of a module with the averages: for `Module.load_state_dict`, or for saving.

        Returns
        -------
        dict of str to Tensor
            What ``module.state_dict()`` gives inside of `applied`: averages, and the buffers of
            the module.

        Raises
        ------
        ArgumentError
            If the module got or lost parameters.
        """
        self._check_module("ExponentialMovingAverage.averages")
        own = zip(self._named, self._converted(), strict=True)
        by_id = {id(x): mean for (_, x), mean in own}
        named = [(path, x, by_id[id(x)]) for path, x in self.module.named_parameters()]
        by_path = {path: mean for path, _, mean in named}
        by_value = {id(plain(x).primitive): mean for _, x, mean in named}
        buffers = {path for path, _ in self.module.named_buffers()}
        state = self.module.state_dict()
        for path, value in state.items():
            if path in by_path:
                state[path] = by_path[path]
            elif path not in buffers:  # a parameter of several paths, named by the first of them
                state[path] = by_value[id(value.primitive)]
        return state

    def state_dict(self) -> dict[str, Any]:
        """The averages by the paths of the parameters, and ``step``, the number of updates.

        Returns
        -------
        dict of str to number or Tensor
            For `load_state_dict`.
        """
        refuse_when_compiled(
            "the state is saved", "ExponentialMovingAverage.state_dict", "Save it outside"
        )
        named = zip(self._named, self._averages, strict=True)
        return {"step": self._count} | {path: average.detach() for (path, _), average in named}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned.

        Parameters
        ----------
        state : dict of str to number or Tensor
            Of a module with the same paths and shapes.

        Returns
        -------
        None
            The module itself does not change.

        Raises
        ------
        ArgumentError
            If the state does not fit; the averages are unchanged then.
        """
        operation = "ExponentialMovingAverage.load_state_dict"
        refuse_when_compiled("a state is loaded", operation, "Load it outside")
        check_mapping(state, operation)
        paths = [path for path, _ in self._named]
        differing = sorted({"step", *paths} ^ set(state))
        if differing:
            raise ArgumentError(
                f"the state and the module do not both have {some(differing)}",
                hint="Load what state_dict() of the averages of an equal module returned",
                operation=operation,
            )
        count = as_integer(state["step"], "step", operation, least=0)
        values = [as_value(state[path], x, path, operation) for path, x in self._named]
        for mean, value in zip(self._averages, values, strict=True):
            rebind(mean, value)
        self._count = count

    def _converted(self) -> list[Tensor]:
        """The averages on the devices and in the dtypes of the parameters."""
        return [
            converted(mean.detach(), plain(x))
            for mean, (_, x) in zip(self._averages, self._named, strict=True)
        ]

    def _check_module(self, operation: str) -> None:
        """Raise ArgumentError unless the parameters of the module are those that are averaged."""
        now = self.module.named_parameters()
        ids, own = {id(x) for _, x in now}, {id(x) for _, x in self._named}
        differing = [path for path, x in now if id(x) not in own]
        differing += [path for path, x in self._named if id(x) not in ids and path not in differing]
        if differing:
            raise ArgumentError(
                f"the module got or lost parameters after its averages: {some(differing)}",
                hint="Make the averages when the model is complete",
                operation=operation,
            )
