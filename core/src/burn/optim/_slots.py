"""The parameters of an optimizer, with what it keeps of each, and how often it moved them."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from burn.autodiff import AutodiffTensor, Leaf
from burn.devices import running_trace
from burn.dispatch import DispatchTensor
from burn.functions.assignment import assign, assign_all
from burn.functions.common import dispatch
from burn.ops import Donated

if TYPE_CHECKING:
    from burn.aliases import Primitive
    from burn.devices import TensorType
    from burn.tensor.tensor import Tensor

__all__ = [
    "Count",
    "Slot",
    "columns_of",
    "divide_counts",
    "donated_operands",
    "hold_results",
    "set_steps",
    "values_of",
]


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
            replace_values(self.states, states)
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
    """The values of parameters of one type, on the device below autodiff."""
    below: Any = slots[0].below
    return [dispatch.wrap(_value_of(slot), below) for slot in slots]


def _value_of(slot: Slot) -> Primitive:
    primitive = slot.tensor.primitive
    return primitive.primitive if isinstance(primitive, AutodiffTensor) else primitive


def columns_of(slots: Sequence[Slot]) -> list[list[Tensor]]:
    """The states of parameters: a list for each name."""
    return [list(column) for column in zip(*[slot.states for slot in slots], strict=True)]


def donated_operands(
    slots: Sequence[Slot], gradients: Sequence[Tensor], columns: Sequence[Sequence[Tensor]]
) -> tuple[Any, Any, Any] | None:
    """The operands of a step as primitives, those with a result donated; None of several types."""
    below: Any = slots[0].below
    for column in (gradients, *columns):
        if not all([tensor.tensor_type is below for tensor in column]):  # noqa: C419 — a generator takes longer
            return None
    # The tensor of a state refers to it.
    states = [Donated([tensor.primitive for tensor in column], 1, below) for column in columns]
    return _donated_values(slots), [gradient.primitive for gradient in gradients], states


def _donated_values(slots: Sequence[Slot]) -> Donated:
    """The primitives of parameters, to which the leaves and the tracked primitives refer."""
    found = []
    references = 2
    for slot in slots:
        tracked: Any = slot.tensor.primitive
        if not isinstance(tracked, AutodiffTensor):
            references = 0  # so that none is overwritten
            found.append(tracked)
            continue
        if tracked.node.__class__ is not Leaf or tracked.node.primitive is not tracked.primitive:
            references = 0
        found.append(tracked.primitive)
    return Donated(found, references, slots[0].below)


def hold_results(
    slots: Sequence[Slot], parameters: Sequence[Any], columns: Sequence[Sequence[Any]]
) -> None:
    """Let parameters and their states be the results of a step: tensors, or primitives below."""
    tensors = [slot.tensor for slot in slots]
    if isinstance(parameters[0], DispatchTensor):
        assign_all(tensors, parameters)
        for states, column in zip(columns_of(slots), columns, strict=True):
            replace_values(states, column)
        return
    renew = dispatch.renew_leaf
    below: Any = slots[0].below
    for x, primitive in zip(tensors, parameters, strict=True):
        if x.link is not None or not renew(x, primitive):
            assign(x, dispatch.wrap(primitive, below))
    for states, column in zip(columns_of(slots), columns, strict=True):
        for x, primitive in zip(states, column, strict=True):
            x.primitive = primitive


def replace_values(tensors: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    """Let the tensors of states hold what others hold."""
    trace = running_trace()
    for x, value in zip(tensors, values, strict=True):
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
