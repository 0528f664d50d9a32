"""The number of a step, and the learning rate of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from burn.devices import running_trace
from burn.errors import ArgumentError, TraceError
from burn.ir import ScalarIr
from burn.ops.arguments import as_integer, real_number

if TYPE_CHECKING:
    from burn.optim.state import State

__all__ = ["as_rate", "number_after", "rate_at"]


def number_after(state: State, step: Any, name: str) -> Any:
    """The number of the step that comes after a state, unless it is given.

    Raises
    ------
    ArgumentError
        If neither says it.
    TraceError
        If the program would hold for that step alone.
    """
    operation = f"{name}.update"
    if step is None and running_trace() is not None:
        raise TraceError(
            "the number of the step would be a constant of the program",
            hint="Pass step=step, with burn.ir.RuntimeNumber(1) among the arguments for it; "
            "optimizer.step counts at each call of a function of burn.compile",
            operation=operation,
        )
    if step is None and state.step is None:
        raise ArgumentError(
            "the state comes from a program, which does not know the number of its step",
            hint="Pass step=step, counted from 1",
            operation=operation,
        )
    if step is None:
        return state.step + 1  # type: ignore[operator]  # it is not None here
    if step.__class__ is not ScalarIr:
        return as_integer(step, "step", operation, least=1)
    if state._is_first:
        raise TraceError(
            f"the first step of {name} with these options differs from the others",
            hint="Take it before, and trace the function with the state after it",
            operation=operation,
        )
    return step


def rate_at(rate: Any, step: Any, name: str) -> Any:
    """A learning rate as a number, or as the runtime number of a program.

    Raises
    ------
    ArgumentError
        If a schedule gives none.
    TraceError
        If it is computed of the runtime number of a step.
    """
    if not callable(rate) or rate.__class__ is ScalarIr:
        return rate
    if step.__class__ is ScalarIr:
        raise TraceError(
            "a schedule computes with the number of the step, which a program does not know",
            hint="Pass learning_rate=rate, with burn.ir.RuntimeNumber(0.1) among the arguments "
            "for it, and compute the rate where you call the program",
            operation=f"{name}.update",
        )
    return as_rate(rate(step), name, "the learning rate of a schedule")


def as_rate(value: float, operation: str, name: str = "learning_rate") -> float:
    """A number as a learning rate, which is finite and not negative."""
    return real_number(value, name, operation, least=0.0, below=math.inf)
