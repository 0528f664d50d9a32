"""The parameters of an optimizer, with what it keeps of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from burn.dispatch import join_trace

if TYPE_CHECKING:
    from burn.devices import TensorType
    from burn.tensor.tensor import Tensor

__all__ = ["Slot"]


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
    step : int
        Number of its steps.
    states : tuple of Tensor
        What the optimizer keeps of it, on the device below autodiff; empty before its first step.
        The objects remain the same: a compiled function reads and writes them.
    seen : TensorType or None
        The type of the parameter that the states fit.
    below : TensorType or None
        That of the states.
    """

    __slots__ = ("below", "group", "path", "seen", "states", "step", "tensor")

    def __init__(
        self, path: str, tensor: Tensor, group: int, step: int = 0, states: tuple[Tensor, ...] = ()
    ) -> None:
        self.path = path
        self.tensor = tensor
        self.group = group
        self.step = step
        self.states = states
        self.seen: TensorType | None = None
        self.below: TensorType | None = None

    def hold(self, states: Sequence[Tensor]) -> None:
        """Let the states be others."""
        if not self.states:
            self.states = tuple(states)
            return
        for x, value in zip(self.states, states, strict=True):
            join_trace(x)
            x.primitive, x.tensor_type = value.primitive, value.tensor_type

    def __reduce__(self) -> tuple[object, ...]:
        return Slot, (self.path, self.tensor, self.group, self.step, self.states)
