"""The parameters of an optimizer, with what it keeps of each, and how often it moved them."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from burn.autodiff import AutodiffTensor, Leaf
from burn.devices import running_trace
from burn.functions.common import dispatch
from burn.ops import Donated

if TYPE_CHECKING:
    from burn.devices import TensorType
    from burn.tensor.tensor import Tensor

__all__ = ["Count", "Slot", "divide_counts", "set_steps"]


class Count:
    """The number of steps of parameters that have taken each of them together.

    Attributes
    ----------
    step : int
        The number.
    size : int
        How many parameters count so.
    """

    __slots__ = ("size", "step")

    def __init__(self, step: int, size: int) -> None:
        self.step = step
        self.size = size


class Slot:
    """A parameter of an optimizer.

    Attributes
    ----------
    path : str
        What patterns and saved states name it by.
    tensor : Tensor
        The parameter, which gets new values.
    group : int
        Index of its options among those of the optimizer.
    count : Count
        The number of its steps.
    states : tuple of Tensor
        What the optimizer keeps of it, on the device below autodiff; empty before its first step.
        The objects remain the same: a compiled function reads and writes them.
    seen : TensorType or None
        The type of the parameter that the states fit.
    below : TensorType or None
        That of the states.
    """

    __slots__ = ("below", "count", "group", "path", "seen", "states", "tensor")

    def __init__(
        self, path: str, tensor: Tensor, group: int, count: Count, states: tuple[Tensor, ...] = ()
    ) -> None:
        self.path = path
        self.tensor = tensor
        self.group = group
        self.count = count
        self.states = states
        self.seen: TensorType | None = None
        self.below: TensorType | None = None

    def hold(self, states: Sequence[Tensor]) -> None:
        """Let the states be others."""
        if self.states:
            hold_states([self], [[one] for one in states])
        else:
            self.states = tuple(states)

    def __reduce__(self) -> tuple[object, ...]:
        return Slot, (self.path, self.tensor, self.group, self.count, self.states)


_count_of = operator.attrgetter("count")


def divide_counts(slots: Sequence[Slot]) -> tuple[list[Count], list[tuple[Count, Count]]]:
    """Let parameters count for themselves which take a step without the others.

    Returns
    -------
    list of Count
        Those of the parameters, and of no others.
    list of (Count, Count)
        What some of them counted by before, and what they count by now.
    """
    found = Counter(map(_count_of, slots))
    new = {count: Count(count.step, size) for count, size in found.items() if size != count.size}
    if new:
        for count, own in new.items():
            count.size -= own.size
        for slot in slots:
            slot.count = new.get(slot.count, slot.count)
    return [new.get(count, count) for count in found], list(new.items())


def values_of(slots: Sequence[Slot]) -> list[Tensor]:
    """The values of parameters, on the device below autodiff."""
    return [dispatch.wrap(_value_of(slot.tensor), slot.below) for slot in slots]  # type: ignore[arg-type]  # it is set


def _value_of(x: Tensor) -> Any:
    primitive = x.primitive
    return primitive.primitive if isinstance(primitive, AutodiffTensor) else primitive


def overwrites_donated(slot: Slot) -> bool:
    """Whether the device of a parameter overwrites what is donated, and no layer is above it."""
    device = slot.tensor.device.hardware
    return device.backend.overwrites_donated  # type: ignore[no-any-return]  # of a Backend


def donated_values(slots: Sequence[Slot], values: list[Tensor]) -> list[Tensor]:
    """The values of parameters as operands that a step may overwrite, if all of them are leaves."""
    for slot in slots:
        tracked: Any = slot.tensor.primitive
        if not isinstance(tracked, AutodiffTensor) or not isinstance(tracked.node, Leaf):
            return values
        if tracked.node.primitive is not tracked.primitive:
            return values
    return Donated(values, 2)  # the tracked primitive and its leaf refer to each


def hold_states(slots: Sequence[Slot], columns: Sequence[Sequence[Tensor]]) -> None:
    """Let the states of parameters be others, in the same tensors."""
    trace = running_trace()
    for slot, *states in zip(slots, *columns, strict=True):
        for x, value in zip(slot.states, states, strict=True):
            if trace is not None:
                trace.join(x)
            x.primitive, x.tensor_type = value.primitive, value.tensor_type


def set_steps(slots: Sequence[Slot], steps: Sequence[int]) -> bool:
    """Give parameters numbers of steps; whether some do not count together any more."""
    members: dict[Count, dict[int, list[Slot]]] = {}
    for slot, step in zip(slots, steps, strict=True):
        members.setdefault(slot.count, {}).setdefault(step, []).append(slot)
    for count, by_step in members.items():
        for index, (step, own) in enumerate(by_step.items()):
            if not index:
                count.step, count.size = step, len(own)
                continue
            other = Count(step, len(own))
            for slot in own:
                slot.count = other
    return any(len(by_step) > 1 for by_step in members.values())
