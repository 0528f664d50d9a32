"""Optimizer: what all optimizers do; each of them adds its step, one op for many parameters."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Unpack

from burn.devices import outside_of_traces, running_trace
from burn.dispatch import Gradients
from burn.errors import ArgumentError, OperandTypeError
from burn.functions.creation import zeros, zeros_like
from burn.functions.normalize import as_flag
from burn.functions.searching import where
from burn.ir import ScalarIr
from burn.nn.module import Module
from burn.ops.arguments import real_number
from burn.ops.optimizers.optimizer import check_numbers
from burn.optim._gradients import with_gradients
from burn.optim._hints import Hinted, Unknown, refuse_keywords
from burn.optim._options import Lists, Mask, Rate, Values, check_groups, overrides_of
from burn.optim._paths import named_parameters, paths_of
from burn.optim._saved import load_states, saved_states
from burn.optim._slots import (
    Count,
    Slot,
    columns_of,
    divide_counts,
    donated_operands,
    hold_results,
    set_steps,
    values_of,
)
from burn.optim._steps import as_rate, number_after, rate_at
from burn.optim._traced import TracedStep, compiling_trace, counts_in, refuse_when_compiled
from burn.optim._values import check_gradient, constant, is_leaf, plain, value_of, with_value
from burn.optim.clipping import clipped
from burn.optim.state import State
from burn.tree import flatten, flatten_like, unflatten

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn.tensor.tensor import Tensor

__all__ = ["Optimizer"]

_FLAGS: Final = frozenset({"amsgrad", "centered", "nesterov", "proximal"})
"""Names of options that are True or False."""


class Optimizer(Hinted):
    """Base of the optimizers of parameters, one by one or as an update of a tree.

    ``optimizer.step(gradients)`` gives the parameters their next values, in the same tensor
    objects. Parameters of equal options, dtype and device are updated by one operation.

    Parameters
    ----------
    parameters : Module, or containers of tensors
        What is updated: a module, a list of tensors, a dict or a list of (path, tensor), or nested
        containers (see `burn.tree`). None if only `init` and `update` are called.
    options : dict
        What the subclass has as arguments.
    groups : dict of str to dict, optional
        Other options for the parameters whose paths fit a pattern, with ``*`` and ``?`` for any
        characters: ``{"*.bias": {"weight_decay": 0.0}}``. All that fit apply, the last one last.
    weight_decay_mask : str, list of str, or callable, optional
        Which parameters decay: those whose paths fit a pattern, or for which
        ``function(path, parameter)`` is true. By default all.
    clip_value : float, optional
        Largest magnitude of an element of a gradient; see `clip_by_value`.
    clip_norm : float, optional
        Largest norm of all gradients together; see `clip_by_global_norm`. Clipped by value first.
    **unknown
        None: the error of a keyword of PyTorch or Optax names the one here.

    Raises
    ------
    OperandTypeError
        If a keyword is unknown.
    ArgumentError
        If an option is unknown or out of its range, or a pattern fits no parameter.
    """

    _state_names: ClassVar[tuple[str, ...]] = ()

    _is_one_op: ClassVar[bool] = True
    """Whether `_compute` gives its lists to one op, so that they may be of primitives."""

    def __init__(
        self,
        parameters: Any,
        options: Mapping[str, Any],
        *,
        groups: Mapping[str, Mapping[str, Any]] | None = None,
        weight_decay_mask: Mask | None = None,
        clip_value: float | None = None,
        clip_norm: float | None = None,
        **unknown: Unpack[Unknown],
    ) -> None:
        refuse_keywords(unknown, self._name)
        self._options = dict(options)
        self._options = self._checked(options)
        check_groups(groups, self._name)
        self._groups = {key: self._checked(given) for key, given in (groups or {}).items()}
        is_pattern = isinstance(weight_decay_mask, str)
        self._mask: Any = [weight_decay_mask] if is_pattern else weight_decay_mask
        self._clip = {
            name: None if limit is None else real_number(limit, name, self._name, above=0.0)
            for name, limit in (("clip_value", clip_value), ("clip_norm", clip_norm))
        }
        self._overrides: list[dict[str, Any]] = [{}]
        self._count = 0
        self._divisions = 0
        self._slots: list[Slot] = []
        self._module = parameters if isinstance(parameters, Module) else None
        if parameters is not None:
            named = named_parameters(parameters, self._name)
            count = Count(0, len(named))
            self._slots = [
                Slot(path, x, group, count)
                for (path, x), group in zip(named, self._groups_of(named), strict=True)
            ]

    # What a subclass defines.

    def _states_of(self, options: Mapping[str, Any]) -> tuple[str, ...]:
        """Names of what the optimizer keeps of a parameter with some options."""
        del options
        return self._state_names

    def _first_states(self, parameter: Tensor, options: Mapping[str, Any]) -> tuple[Tensor, ...]:
        """What the optimizer keeps of a parameter before the first step."""
        shapes = self._state_shapes(parameter.shape, options)
        kind: dict[str, Any] = {"dtype": parameter.dtype, "device": parameter.device}
        return tuple(
            [
                zeros_like(parameter) if shape == parameter.shape else zeros(shape, **kind)
                for shape in shapes
            ]
        )

    def _state_shapes(self, shape: Shape, options: Mapping[str, Any]) -> tuple[Shape, ...]:
        """Shapes of what the optimizer keeps of a parameter of a shape."""
        return (shape,) * len(self._states_of(options))

    def _is_first_special(self, options: Mapping[str, Any]) -> bool:
        """Whether the first step differs from the others by more than its number."""
        del options
        return False

    @staticmethod
    def _is_first(step: Any) -> bool:
        """Whether the number of a step is 1; a runtime number is of a later one."""
        return step.__class__ is int and step == 1

    def _compute(self, lists: Lists, step: int, options: dict[str, Any]) -> Values:
        """The parameters and the columns of states after a step."""
        raise NotImplementedError

    def _checked_option(self, name: str, value: Any) -> Any:
        """The value of an option as it is used; raises if it may not be."""
        if name in _FLAGS:
            return as_flag(value, name, self._name)
        if name == "learning_rate" and callable(value):
            return value
        if name == "learning_rate":
            return as_rate(value, self._name)
        number = real_number(value, name, self._name)
        check_numbers(**{name: number})
        return number

    # The step.

    def step(self, gradients: Any, *, where: Tensor | None = None) -> None:
        """Give each parameter that has a gradient its next value.

        Parameters
        ----------
        gradients : Gradients, or containers of tensors
            What ``loss.backward()`` returned; or gradients by the paths of the parameters, such as
            ``burn.grad(f)(module)``. Parameters without a gradient stay as they are, and the
            number of their steps too. Gradients of other tensors are ignored; not those by other
            paths, except in a module whose parameters several optimizers share.
        where : Tensor of bool, optional
            One element: if it is false, no parameter and no state changes. It is not read, so the
            step counts in any case.

        Returns
        -------
        None
            The parameters are the same objects, and leaves if they were leaves.

        Raises
        ------
        ArgumentError
            If no parameter has a gradient; if one has that the module got later; or if there is
            no parameter of a path.
        AutodiffError
            If a parameter is not on an autodiff device, or is computed from others.
        TraceError
            In a program of `burn.ir.trace`, whose numbers are constants: call `update` there, or
            `burn.compile`, whose functions count steps and read the learning rate at each call. Or
            if a compiled function takes gradients that ``backward()`` computed outside.
        """
        operation = f"{self._name}.step"
        if not self._slots:
            raise ArgumentError(
                "this optimizer has no parameters",
                hint="Pass them when you make it; or call update(parameters, gradients, state)",
                operation=operation,
            )
        trace = running_trace()
        traced = None if trace is None else TracedStep(trace, self, operation)
        pairs = with_gradients(self._slots, gradients, self._module, operation)
        taken = [slot for slot, _ in pairs]
        counts, divided = divide_counts(taken)
        self._divisions += len(divided)
        if traced is not None:
            traced.divide(divided, self._version)
        found = self._clipped([gradient for _, gradient in pairs])
        buckets: dict[Any, tuple[list[Slot], list[Tensor]]] = {}
        for slot, gradient in zip(taken, found, strict=True):
            key = slot.group, slot.below, slot.count.step if traced is None else slot.count
            bucket = buckets.get(key)
            if bucket is None:
                bucket = buckets[key] = [], []
            bucket[0].append(slot)
            bucket[1].append(gradient)
        results = [self._step_of(*bucket, where, traced) for bucket in buckets.values()]
        for (slots, _), (parameters, columns) in zip(buckets.values(), results, strict=True):
            hold_results(slots, parameters, columns)
        if traced is None:
            _count_step(vars(self), counts)
        else:
            traced.count(counts, functools.partial(_count_step, vars(self)))

    def _version(self) -> int:
        """Changes when parameters begin to count their steps for themselves."""
        return self._divisions

    def _step_of(
        self,
        slots: list[Slot],
        gradients: list[Tensor],
        where: Tensor | None,
        traced: TracedStep | None,
    ) -> Values:
        """The new values of parameters that one operation updates, and of their states."""
        first = slots[0]
        options = self._options_of(first.group)
        if traced is None:
            number = first.count.step + 1
            options["learning_rate"] = self._rate_of(first.group, 1)
        else:
            number = traced.number(first.count, is_special=self._is_first_special(options))
            own = first.group if "learning_rate" in self._overrides[first.group] else None
            rate_of = functools.partial(self._rate_of, first.group)
            options["learning_rate"] = traced.rate(own, rate_of)
        if self._states_of(options):
            for slot in [slot for slot in slots if not slot.states]:
                slot.states = self._states_before(values_of([slot])[0], options)
        columns = columns_of(slots)
        if self._is_one_op and traced is None and where is None:
            donated = donated_operands(slots, gradients, columns)
            if donated is not None:
                return self._compute(donated, number, options)
        parameters = values_of(slots)
        new = self._compute((parameters, gradients, columns), number, options)
        return new if where is None else _chosen(plain(where), new, (parameters, columns))

    def _states_before(self, x: Tensor, options: Mapping[str, Any]) -> tuple[Tensor, ...]:
        """What the optimizer keeps of a parameter before the first step; made outside of traces."""
        if not x.device.is_traced:
            return self._first_states(x, options)
        with outside_of_traces():
            alike = zeros(x.shape, dtype=x.dtype, device=x.device.untraced)
            return self._first_states(alike, options)

    def _clipped(self, gradients: list[Tensor]) -> list[Tensor]:
        if self._clip["clip_value"] is not None or self._clip["clip_norm"] is not None:
            return clipped(gradients, **self._clip)
        return gradients

    # The functional form.

    def init(self, parameters: Any) -> State:
        """What `update` needs before the first step.

        Parameters
        ----------
        parameters : Module, or containers of tensors
            As in `update`.

        Returns
        -------
        State
            A container of `burn.tree`.
        """
        leaves, structure = flatten(parameters)
        named = named_parameters(list(zip(paths_of(structure), leaves, strict=True)), self._name)
        groups = self._groups_of(named)
        values = [
            self._first_states(value_of(x), self._options_of(group))
            for x, group in zip(leaves, groups, strict=True)
        ]
        is_first = any(self._is_first_special(self._options_of(group)) for group in set(groups))
        return State(0, values, is_first=is_first)

    def update(
        self,
        parameters: Any,
        gradients: Any,
        state: State,
        *,
        step: int | None = None,
        learning_rate: float | None = None,
    ) -> tuple[Any, State]:
        """The parameters after a step, as new tensors: the form for `burn.grad` and programs.

        Parameters
        ----------
        parameters : Module, or containers of tensors
            They are unchanged.
        gradients : Gradients, or containers of tensors
            Of all parameters, in the same containers: what ``burn.grad(f)(parameters)`` returns.
        state : State
            From `init`, or the last `update`.
        step : int, optional
            Number of the step, counted from 1; in a function that is traced the
            `burn.ir.RuntimeNumber` for it. By default the next one of `state`.
        learning_rate : float, optional
            Instead of that of the optimizer; it may be a runtime number too. Options of `groups`
            stay as they are.

        Returns
        -------
        parameters : object
            The containers with new tensors; instead of leaves of an autodiff device new leaves.
        state : State
            For the next step.

        Raises
        ------
        OperandTypeError
            If the containers differ.
        TraceError
            If the function is traced, and no `step` is given; or in a program whose learning rate
            is a schedule, and none is given.

        Examples
        --------
        >>> import burn
        >>> optimizer = burn.optim.SGD(learning_rate=0.25)
        >>> parameters = {"x": burn.asarray([1.0, 2.0], device="cpu")}
        >>> state = optimizer.init(parameters)
        >>> gradients = burn.grad(lambda p: (p["x"] ** 2).sum())(parameters)
        >>> parameters, state = optimizer.update(parameters, gradients, state)
        >>> parameters["x"].tolist(), state.step
        ([0.5, 1.0], 1)
        """
        operation = f"{self._name}.update"
        leaves, structure = flatten(parameters)
        if isinstance(gradients, Gradients):
            gradients = unflatten(structure, [gradients[x] for x in leaves])
        if not isinstance(state, State) or len(state.values) != len(leaves):
            raise OperandTypeError(
                f"{state!r} is no state of these {len(leaves)} parameters",
                hint="Begin with state = optimizer.init(parameters)",
                operation=operation,
            )
        number = number_after(state, step, self._name)
        named = named_parameters(list(zip(paths_of(structure), leaves, strict=True)), self._name)
        found = flatten_like(structure, gradients, operation)
        rate: Any = learning_rate
        if rate is not None and rate.__class__ is not ScalarIr:
            rate = as_rate(rate, operation)
        for index, (path, x) in enumerate(named):
            check_gradient(x, found[index], path, operation)
            if is_leaf(x):
                found[index] = constant(found[index], path, operation)
        found = self._clipped(found)
        buckets: dict[Any, list[int]] = {}
        values = [value_of(x) for x in leaves]
        for index, (group, value) in enumerate(zip(self._groups_of(named), values, strict=True)):
            buckets.setdefault((group, value.tensor_type), []).append(index)
        new: list[Any] = list(leaves)
        kept: list[Any] = list(state.values)
        for (group, _), indices in buckets.items():
            options = self._options_of(group)
            if rate is not None and "learning_rate" not in self._overrides[group]:
                options["learning_rate"] = rate
            options["learning_rate"] = rate_at(options["learning_rate"], number, self._name)
            columns = zip(*[state.values[index] for index in indices], strict=True)
            lists = (
                [values[index] for index in indices],
                [found[index] for index in indices],
                [list(column) for column in columns],
            )
            stepped, states = self._compute(lists, number, options)
            for index, value, *item in zip(indices, stepped, *states, strict=True):
                new[index] = with_value(leaves[index], value)
                kept[index] = tuple(item)
        following = None if number.__class__ is ScalarIr else number
        return unflatten(structure, new), State(following, kept)

    # Options.

    @property
    def learning_rate(self) -> float:
        """The learning rate of the next step; set it to a number or a schedule.

        A schedule is a function of the number of the step, counted from 1; `burn.optim.schedules`
        has some. Groups with a learning rate of their own keep it. In a compiled function it is a
        runtime number, which each call reads.
        """
        trace = compiling_trace()
        if trace is None:
            return self._rate_of(None, 1)
        rate_of = functools.partial(self._rate_of, None, counts_in(trace)[self] + 1)
        return trace.host_number(rate_of, float)  # type: ignore[no-any-return]  # it stands for a float

    @learning_rate.setter
    def learning_rate(self, value: Rate) -> None:
        refuse_when_compiled(
            "the learning rate is set",
            f"{self._name}.learning_rate",
            "Set it between calls, which read it; or pass a schedule to the optimizer",
        )
        self._options["learning_rate"] = self._checked_option("learning_rate", value)

    def _rate_of(self, group: int | None, ahead: int) -> float:
        """The learning rate that a group has in a step; `ahead` is 1 for the next one.

        None is all that have no rate of their own.
        """
        rate = self._options["learning_rate"]
        if group is not None:
            rate = self._overrides[group].get("learning_rate", rate)
        if rate.__class__ is float:
            return rate
        return rate_at(rate, self._count + ahead, self._name)  # type: ignore[no-any-return]  # a float

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _checked(self, options: Mapping[str, Any]) -> dict[str, Any]:
        for name in options:
            if name not in self._options:
                raise ArgumentError(
                    f"there is no option {name!r}",
                    hint=f"There are {', '.join(self._options)}",
                    operation=self._name,
                )
        return {name: self._checked_option(name, value) for name, value in options.items()}

    def _options_of(self, group: int) -> dict[str, Any]:
        return self._options | self._overrides[group]

    def _groups_of(self, named: Sequence[tuple[str, Tensor]]) -> list[int]:
        """For each parameter the index of its options among those of the optimizer."""
        if not self._groups and self._mask is None:
            return [0] * len(named)
        overrides = overrides_of(named, self._groups, self._mask, self._name)
        for override in overrides:
            if override not in self._overrides:
                self._overrides.append(override)
        return [self._overrides.index(override) for override in overrides]

    # Saving.

    def state_dict(self) -> dict[str, Any]:
        """What the optimizer knows, for `load_state_dict` in this process or another one.

        Returns
        -------
        dict of str to number or Tensor
            The number of steps, the learning rate if it is a number, and by the path of each
            parameter the number of its steps and what the optimizer keeps of it:
            ``0.weight.first_moment``. The tensors are untracked, and do not change any more.
        """
        refuse_when_compiled("the state is saved", f"{self._name}.state_dict", "Save it outside")
        saved: dict[str, Any] = {"step": self._count}
        if not callable(self._options["learning_rate"]):
            saved["learning_rate"] = self._options["learning_rate"]
        return saved | saved_states(self._slots, self._names_of)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned.

        Parameters
        ----------
        state : dict of str to number or Tensor
            Of an optimizer of the same class, whose parameters have the same paths and shapes;
            dtypes and devices do not matter. A learning rate that is a schedule here stays.

        Returns
        -------
        None
            The next step continues those of the optimizer that was saved.

        Raises
        ------
        ArgumentError
            If the state does not fit; the optimizer is unchanged then.
        """
        operation = f"{self._name}.load_state_dict"
        refuse_when_compiled("a state is loaded", operation, "Load it outside")
        count, rate, steps = load_states(
            self._slots, self._names_of, self._shapes_of, state, operation
        )
        self._divisions += set_steps(self._slots, steps)
        for slot in self._slots:
            if slot.states and not slot.count.step:
                options = self._options_of(slot.group)
                slot.hold(self._first_states(value_of(slot.tensor), options))
        self._count = count
        if rate is not None and not callable(self._options["learning_rate"]):
            self._options["learning_rate"] = rate

    def _names_of(self, slot: Slot) -> tuple[str, ...]:
        return self._states_of(self._options_of(slot.group))

    def _shapes_of(self, slot: Slot) -> tuple[Shape, ...]:
        return self._state_shapes(slot.tensor.shape, self._options_of(slot.group))

    def __repr__(self) -> str:
        options = [f"{name}={value!r}" for name, value in self._options.items()]
        count = [f"{len(self._slots)} parameters"] if self._slots else []
        return f"{self._name}({', '.join([*count, *options])})"


def _count_step(attributes: dict[str, Any], counts: Sequence[Count]) -> None:
    """Count a step of the optimizer with these attributes, which it takes longer to set."""
    attributes["_count"] += 1
    for count in counts:
        count.step += 1


def _chosen(condition: Tensor, new: Values, old: Values) -> Values:
    """The new parameters and states where a condition holds, the old ones elsewhere."""

    def choose(values: Sequence[Tensor], others: Sequence[Tensor]) -> list[Tensor]:
        return [where(condition, x, y) for x, y in zip(values, others, strict=True)]

    return choose(new[0], old[0]), [choose(*pair) for pair in zip(new[1], old[1], strict=True)]
