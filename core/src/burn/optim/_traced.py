"""Steps of optimizers in compiled functions: each call reads their numbers, and counts them."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from burn.devices import running_trace
from burn.errors import TraceError

if TYPE_CHECKING:
    from burn.devices import Trace
    from burn.optim._slots import Slot

__all__ = ["TracedStep", "compiling_trace", "counts_in", "refuse_when_compiled"]

_counts: Final[WeakKeyDictionary[Trace, Counter[Any]]] = WeakKeyDictionary()

_step_of = operator.attrgetter("step")


def compiling_trace() -> Trace | None:
    """The trace of `burn.compile` that runs; None outside, and in other traces."""
    trace = running_trace()
    return trace if trace is not None and trace.compiles else None


def counts_in(trace: Trace) -> Counter[Any]:
    """How many steps of each object a trace has so far, which the objects do not count yet."""
    return _counts.setdefault(trace, Counter())


def refuse_when_compiled(what: str, operation: str, hint: str) -> None:
    """Raise TraceError in a compiled function, whose calls would not repeat something."""
    if compiling_trace() is not None:
        raise TraceError(
            f"{what} in a compiled function, whose calls do not repeat it",
            hint=hint,
            operation=operation,
        )


class TracedStep:
    """The numbers of one step of an optimizer, of which a compiled function has several variants.

    Parameters
    ----------
    trace : Trace
        The trace of the function.
    owner : object
        The optimizer.
    operation : str
        How an error names the step.

    Raises
    ------
    TraceError
        In a program of `burn.ir.trace`.
    """

    def __init__(self, trace: Trace, owner: object, operation: str) -> None:
        if not trace.compiles:
            raise TraceError(
                "the count of steps would be a constant of the program",
                hint="burn.compile(function) counts at each call; for a program call "
                "parameters, state = optimizer.update(parameters, gradients, state, step=step) "
                "with a burn.ir.RuntimeNumber for the step",
                operation=operation,
            )
        self._trace = trace
        self._owner = owner
        self._before = counts_in(trace)
        self._leaders: dict[tuple[int, int], Slot] = {}
        self._numbers: dict[tuple[int, int], Any] = {}
        self._rates: dict[int | None, Any] = {}

    def done(self, slot: Slot) -> tuple[int, int]:
        """The number of steps of a parameter, before the call and in it."""
        return slot.step, self._before[slot]

    def number(self, slots: Sequence[Slot], *, is_special: bool) -> Any:
        """The number of a step of parameters that have taken as many steps so far.

        Each call reads it. It is 1 where the program is of the first step alone, which
        `is_special`. The program holds while the parameters agree.
        """
        key = self.done(slots[0])
        leader = self._leaders.setdefault(key, slots[0])
        self._trace.watch(lambda: _phase(leader, slots, is_special=is_special))
        if is_special and not any(key):
            return 1
        if key not in self._numbers:
            following = key[1] + 1
            self._numbers[key] = self._trace.host_number(lambda: leader.step + following, int)
        return self._numbers[key]

    def rate(self, group: int | None, rate_of: Callable[[int], float]) -> Any:
        """The learning rate of a group, or of those without one of their own (None).

        ``rate_of(ahead)`` is the rate of a step from the next one, 1, on.
        """
        if group not in self._rates:
            ahead = self._before[self._owner] + 1
            self._rates[group] = self._trace.host_number(lambda: rate_of(ahead), float)
        return self._rates[group]

    def count(self, slots: Sequence[Slot], effect: Callable[[Sequence[Slot]], None]) -> None:
        """Count the step of parameters after each call."""
        self._before.update([self._owner, *slots])
        self._trace.after_call(lambda: effect(slots))


def _phase(leader: Slot, slots: Sequence[Slot], *, is_special: bool) -> bool | None:
    """Whether the next step is a special one; None if the numbers of steps differ."""
    step = leader.step
    if list(map(_step_of, slots)).count(step) != len(slots):
        return None
    return is_special and not step
