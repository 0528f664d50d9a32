"""The states of parameters by their paths: saved, and loaded with checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from burn.dispatch import DispatchTensor
from burn.dtype import uint8
from burn.errors import ArgumentError, OperandTypeError
from burn.functions.creation import asarray
from burn.ops.arguments import as_integer
from burn.optim._paths import some
from burn.optim._steps import as_rate
from burn.optim._values import plain

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn.optim._slots import Slot
    from burn.tensor.tensor import Tensor

__all__ = ["as_value", "check_mapping", "load_states", "saved_states"]


def saved_states(
    slots: Sequence[Slot], names_of: Callable[[Slot], Sequence[str]]
) -> dict[str, Any]:
    """What an optimizer keeps of its parameters, by path and name; nothing of one without steps."""
    saved: dict[str, Any] = {}
    for slot in slots:
        if slot.count.step:
            saved[f"{slot.path}.step"] = slot.count.step
            for name, value in zip(names_of(slot), slot.states, strict=True):
                saved[f"{slot.path}.{name}"] = value.detach()
    return saved


def load_states(
    slots: Sequence[Slot],
    names_of: Callable[[Slot], Sequence[str]],
    shapes_of: Callable[[Slot], Sequence[Shape]],
    state: Mapping[str, Any],
    operation: str,
) -> tuple[int, float | None, list[int]]:
    """Give parameters the states that were saved, if they fit.

    Returns
    -------
    int, float or None, list of int
        The number of steps of the optimizer, its learning rate if that was saved, and the number of
        steps of each parameter.

    Raises
    ------
    ArgumentError
        If something does not fit.
    """
    check_mapping(state, operation)
    count = as_integer(state.get("step", 0), "step", operation, least=0)
    rate = state.get("learning_rate")
    if rate is not None:
        rate = as_rate(rate, operation)
    known = {"step", "learning_rate"}
    missing, values = [] if "step" in state else ["step"], []
    for slot in slots:
        names = [f"{slot.path}.{name}" for name in names_of(slot)]
        number = f"{slot.path}.step"
        known |= {number, *names}
        found = [name for name in (number, *names) if name in state]
        if found and len(found) <= len(names):
            missing += [name for name in (number, *names) if name not in state]
        elif found:
            step = as_integer(state[number], number, operation, least=1)
            found_states = [
                as_value(state[name], slot.tensor, name, operation, shape=shape)
                for name, shape in zip(names, shapes_of(slot), strict=True)
            ]
            values.append((slot, step, found_states))
        else:
            values.append((slot, 0, []))
    for what, names in (
        ("lacks", missing),
        ("has, unknown here,", [name for name in state if name not in known]),
    ):
        if names:
            raise ArgumentError(
                f"the state {what} {some(names)}",
                hint="Load it into an optimizer of the same class and options, whose parameters "
                "have the same paths",
                operation=operation,
            )
    for slot, _, found_states in values:
        if found_states:
            slot.hold(found_states)
    return count, rate, [step for _, step, _ in values]


def check_mapping(state: Any, operation: str) -> None:
    """Raise OperandTypeError unless a state is a mapping."""
    if not isinstance(state, Mapping):
        raise OperandTypeError(
            f"takes what state_dict() returned, not an object of type {type(state).__name__}",
            operation=operation,
        )


def as_value(
    value: Any, x: Tensor, name: str, operation: str, *, shape: Shape | None = None
) -> Tensor:
    """A saved value with the dtype of a parameter, on its device below autodiff.

    It has the shape of the parameter, unless another one is given.

    Raises
    ------
    ArgumentError
        If it has another shape.
    """
    device = x.device.hardware
    if not isinstance(value, DispatchTensor):
        value = asarray(value, device=device)
    expected = x.shape if shape is None else shape
    if value.shape != expected:
        is_like = "the parameter" if expected == x.shape else "it should have"
        raise ArgumentError(
            f"{name} has shape {value.shape}, and {is_like} {expected}",
            hint="Load the state into an optimizer of the same parameters",
            operation=operation,
        )
    moved = plain(value).to_device(device)
    return moved if moved.dtype is uint8 else moved.astype(x.dtype)  # codes are bytes
