"""State: what an optimizer keeps of parameters between steps, in the functional form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from burn.tree import register

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["State"]


class State:
    """What `Optimizer.init` makes, and `Optimizer.update` takes and returns.

    A container of `burn.tree`: a transform or a program takes and returns it. Two states are alike
    for them whatever the numbers of their steps.

    Attributes
    ----------
    step : int or None
        Number of the last step; 0 before the first. None if it was a runtime number of a program.
    values : list of tuple of Tensor
        For each parameter what the optimizer keeps of it, such as moments.

    Examples
    --------
    >>> import burn
    >>> optimizer = burn.optim.Adam(learning_rate=0.1)
    >>> state = optimizer.init({"x": burn.ones(3)})
    >>> state.step, [moment.tolist() for moment in state.values[0]]
    (0, [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    """

    def __init__(
        self, step: int | None, values: Sequence[Sequence[Tensor]], *, is_first: bool = False
    ) -> None:
        self.step = step
        self.values = list(values)
        self._is_first = is_first

    def __repr__(self) -> str:
        return f"State(step={self.step}, of {len(self.values)} parameters)"


class _Metadata:
    """What makes a state beside its tensors.

    A program holds for steps of every number, unless the optimizer does something else in the
    first one.
    """

    def __init__(self, step: int | None, *, is_first: bool) -> None:
        self.step = step
        self.is_first = is_first

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Metadata) and self.is_first == other.is_first

    def __hash__(self) -> int:
        return hash(self.is_first)


def _flatten(state: State) -> tuple[Sequence[Any], _Metadata]:
    return (state.values,), _Metadata(state.step, is_first=state._is_first)


def _unflatten(metadata: _Metadata, children: Sequence[Any]) -> State:
    return State(metadata.step, children[0], is_first=metadata.is_first)


register(State, _flatten, _unflatten)
