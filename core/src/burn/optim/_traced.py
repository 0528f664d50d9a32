"""Steps of optimizers in compiled functions: each call reads their numbers, and counts them."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from burn.devices import running_trace
from burn.errors import TraceError

if TYPE_CHECKING:
    from burn.devices import Trace
    from burn.optim._slots import Count

__all__ = ["TracedStep", "compiling_trace", "counts_in", "refuse_when_compiled"]

_counts: Final[WeakKeyDictionary[Trace, Counter[Any]]] = WeakKeyDictionary()

_steps: Final[WeakKeyDictionary[Trace, list[list[Count]]]] = WeakKeyDictionary()
"""The counts that each step in a trace increases."""


def compiling_trace() -> Trace | None:
    """The trace of `burn.compile` that runs, or of a body in it; None outside and in others."""
    trace = running_trace()
    is_compiling = trace is not None and (trace.compiles or (trace.watches and trace.body))
    return trace if is_compiling else None


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
    """The numbers of one step of an optimizer in a compiled function.

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
        In a program of `burn.ir.trace`, and in a body of control flow.
    """

    def __init__(self, trace: Trace, owner: object, operation: str) -> None:
        if trace.body:
            raise TraceError(
                f"each step counts, and the body of burn.{trace.body} is one program for all runs",
                hint="Call it outside of the body: in a Python for loop, or in a compiled function "
                "that is called for each step. A body may compute new parameters and return them, "
                "as burn.optim.sgd_step does",
                operation=operation,
            )
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
        self._numbers: dict[Count, Any] = {}
        self._rates: dict[int | None, Any] = {}

    def divide(self, pairs: Iterable[tuple[Count, Count]], version: Callable[[], int]) -> None:
        """Note the old and new counts of parameters that count for themselves from now on.

        The program holds until others do: until ``version()`` differs.
        """
        for old, new in pairs:
            if self._before[old]:  # a step before in this trace, which took them together
                self._before[new] = self._before[old]
                self._trace.watch(lambda old=old, new=new: old.step == new.step)  # type: ignore[misc]  # of this round
                for counts in _steps[self._trace]:
                    if old in counts:
                        counts.append(new)
        self._trace.watch(version)

    def number(self, count: Count, *, is_special: bool) -> Any:
        """The number of the step of parameters, which each call reads.

        It is 1 in a program of the first step alone, where that `is_special`.
        """
        before = self._before[count]
        if is_special and not before:
            self._trace.watch(lambda: count.step == 0)
            if not count.step:
                return 1
        if count not in self._numbers:
            following = before + 1
            self._numbers[count] = self._trace.host_number(lambda: count.step + following, int)
        return self._numbers[count]

    def rate(self, group: int | None, rate_of: Callable[[int], float]) -> Any:
        """The learning rate of a group, or of those without one of their own (None).

        ``rate_of(ahead)`` is the rate of a step from the next one, 1, on.
        """
        if group not in self._rates:
            ahead = self._before[self._owner] + 1
            self._rates[group] = self._trace.host_number(functools.partial(rate_of, ahead), float)
        return self._rates[group]

    def count(self, counts: Sequence[Count], effect: Callable[[Sequence[Count]], None]) -> None:
        """Let each call count the step."""
        own = list(counts)
        _steps.setdefault(self._trace, []).append(own)
        self._before.update([self._owner, *own])
        self._trace.after_call(functools.partial(effect, own))
