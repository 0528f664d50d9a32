"""Schedules: learning rates as functions of the number of the step, which is counted from 1.

Optimizers take any such function. Those of this module can be pickled, printed and combined. They
are computed on the host, in Python's floats. The schedulers of ``torch.optim.lr_scheduler`` count
from 0: what one of them has after ``n`` calls is here the rate of step ``n + 1``.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from burn.errors import ArgumentError
from burn.functions.normalize import as_flag, check_choice
from burn.ops.arguments import as_integer, real_number

__all__ = [
    "Schedule",
    "constant",
    "cosine",
    "exponential",
    "linear",
    "noam",
    "one_cycle",
    "piecewise",
    "product",
    "sequence",
    "step_decay",
    "warmup",
]


def __dir__() -> list[str]:
    return __all__


Rates: TypeAlias = "float | Callable[[int], float]"
"""A number, or a function of the number of the step."""


@dataclass(frozen=True, repr=False)
class Schedule:
    """A learning rate as a function of the number of the step.

    Attributes
    ----------
    function : callable
        ``function(done, **arguments)`` for a number of steps before.
    arguments : dict
        What the schedule was made with.

    Examples
    --------
    >>> import burn
    >>> rate = burn.optim.schedules.linear(1.0, 0.0, steps=4)
    >>> rate
    linear(start=1.0, end=0.0, steps=4)
    >>> [rate(step) for step in (1, 2, 5, 6)]
    [1.0, 0.75, 0.0, 0.0]
    """

    function: Callable[..., float]
    arguments: dict[str, Any] = field(hash=False)

    def __call__(self, step: int, /) -> float:
        """The rate of a step, counted from 1."""
        if step.__class__ is not int or step < 1:
            step = as_integer(step, "step", repr(self), least=1)
        return self.function(step - 1, **self.arguments)

    def __repr__(self) -> str:
        arguments = [f"{name}={value!r}" for name, value in self.arguments.items()]
        return f"{self.function.__name__.removeprefix('_')}({', '.join(arguments)})"


def constant(value: float) -> Schedule:
    """One rate for all steps.

    Parameters
    ----------
    value : float
        The rate.

    Returns
    -------
    Schedule
        A function of the step.

    Examples
    --------
    >>> import burn
    >>> burn.optim.schedules.constant(0.1)(7)
    0.1
    """
    return Schedule(_constant, {"value": real_number(value, "value", "constant")})


def _constant(done: int, value: float) -> float:
    del done
    return value


def linear(start: float, end: float, steps: int) -> Schedule:
    """A straight line, and its end afterwards; as ``LinearLR``.

    Parameters
    ----------
    start, end : float
        The rate of the first step, and after `steps` more.
    steps : int
        Number of steps between them.

    Returns
    -------
    Schedule
        A function of the step.

    Examples
    --------
    >>> import burn
    >>> [burn.optim.schedules.linear(0.0, 1.0, 4)(step) for step in (1, 3, 9)]
    [0.0, 0.5, 1.0]
    """
    return Schedule(
        _linear,
        {
            "start": real_number(start, "start", "linear"),
            "end": real_number(end, "end", "linear"),
            "steps": as_integer(steps, "steps", "linear", least=1),
        },
    )


def _linear(done: int, start: float, end: float, steps: int) -> float:
    return start + (end - start) * min(done / steps, 1.0)


def cosine(start: float, steps: int, *, end: float = 0.0) -> Schedule:
    """Half a wave of a cosine, and its end afterwards (Loshchilov and Hutter, 2017).

    As ``CosineAnnealingLR`` up to ``T_max``.

    Parameters
    ----------
    start : float
        The rate of the first step.
    steps : int
        Number of steps from the start to the end.
    end : float
        The rate after them.

    Returns
    -------
    Schedule
        A function of the step.

    Examples
    --------
    >>> import burn
    >>> rate = burn.optim.schedules.cosine(1.0, 100)
    >>> [round(rate(step), 3) for step in (1, 51, 101, 102)]
    [1.0, 0.5, 0.0, 0.0]
    """
    return Schedule(
        _cosine,
        {
            "start": real_number(start, "start", "cosine"),
            "steps": as_integer(steps, "steps", "cosine", least=1),
            "end": real_number(end, "end", "cosine"),
        },
    )


def _cosine(done: int, start: float, steps: int, end: float) -> float:
    return _wave(start, end, min(done / steps, 1.0))


def _wave(start: float, end: float, part: float) -> float:
    return end + (start - end) * (1.0 + math.cos(math.pi * part)) / 2.0


def exponential(start: float, gamma: float) -> Schedule:
    """A rate with a fixed ratio from step to step; as ``ExponentialLR``.

    Parameters
    ----------
    start : float
        The rate of the first step.
    gamma : float
        The ratio, at least 0.

    Returns
    -------
    Schedule
        A function of the step.

    Examples
    --------
    >>> import burn
    >>> burn.optim.schedules.exponential(1.0, 0.5)(4)
    0.125
    """
    return Schedule(
        _exponential,
        {
            "start": real_number(start, "start", "exponential"),
            "gamma": real_number(gamma, "gamma", "exponential", least=0.0),
        },
    )


def _exponential(done: int, start: float, gamma: float) -> float:
    return start * gamma**done


def step_decay(start: float, every: int, *, gamma: float = 0.1) -> Schedule:
    """A rate that is multiplied by a factor every so many steps; as ``StepLR``.

    Parameters
    ----------
    start : float
        The rate of the first steps.
    every : int
        Number of steps of one rate.
    gamma : float
        The factor, at least 0.

    Returns
    -------
    Schedule
        A function of the step.

    Examples
    --------
    >>> import burn
    >>> rate = burn.optim.schedules.step_decay(1.0, 10, gamma=0.5)
    >>> [rate(step) for step in (1, 10, 11, 21)]
    [1.0, 1.0, 0.5, 0.25]
    """
    return Schedule(
        _step_decay,
        {
            "start": real_number(start, "start", "step_decay"),
            "every": as_integer(every, "every", "step_decay", least=1),
            "gamma": real_number(gamma, "gamma", "step_decay", least=0.0),
        },
    )


def _step_decay(done: int, start: float, every: int, gamma: float) -> float:
    return start * gamma ** (done // every)


def piecewise(values: Sequence[float], lengths: Sequence[int]) -> Schedule:
    """Several rates, one after another; ``MultiStepLR`` has those of a fixed ratio.

    Parameters
    ----------
    values : sequence of float
        The rates.
    lengths : sequence of int
        Number of steps of each; the last rate, which has none, holds from then on.

    Returns
    -------
    Schedule
        A function of the step.

    Raises
    ------
    ArgumentError
        If there is not one value more than lengths.

    Examples
    --------
    >>> import burn
    >>> rate = burn.optim.schedules.piecewise([1.0, 0.5, 0.1], [10, 20])
    >>> [rate(step) for step in (10, 11, 30, 31)]
    [1.0, 0.5, 0.5, 0.1]
    """
    numbers = tuple([real_number(value, "a value", "piecewise") for value in values])
    return Schedule(
        _piecewise,
        {"values": numbers, "lengths": _checked_lengths(lengths, len(numbers), "piecewise")},
    )


def _piecewise(done: int, values: Sequence[float], lengths: Sequence[int]) -> float:
    return values[_part(done, lengths)[0]]


def _checked_lengths(lengths: Sequence[int], count: int, operation: str) -> tuple[int, ...]:
    """The lengths of all parts but the last."""
    if len(lengths) != count - 1:
        raise ArgumentError(
            f"there are {count} parts and {len(lengths)} lengths",
            hint="Every part but the last has a length",
            operation=operation,
        )
    return tuple([as_integer(length, "a length", operation, least=1) for length in lengths])


def _part(done: int, lengths: Sequence[int]) -> tuple[int, int]:
    """The part that a step is in, and the number of steps of that part before."""
    ends = [0, *itertools.accumulate(lengths)]
    index = bisect.bisect_right(ends, done) - 1
    return index, done - ends[index]


def noam(size: int, warmup: int, *, factor: float = 1.0) -> Schedule:
    """The rates of the Transformer (Vaswani et al., 2017, arXiv:1706.03762, equation 3).

    ``factor * size**-0.5 * min(step**-0.5, step * warmup**-1.5)``

    Parameters
    ----------
    size : int
        Width of the model.
    warmup : int
        Number of steps in which the rate rises.
    factor : float
        Multiplies all rates.

    Returns
    -------
    Schedule
        A function of the step.

    Examples
    --------
    >>> import burn
    >>> [burn.optim.schedules.noam(4, 100)(step) for step in (25, 100, 400)]
    [0.0125, 0.05, 0.025]
    """
    return Schedule(
        _noam,
        {
            "size": as_integer(size, "size", "noam", least=1),
            "warmup": as_integer(warmup, "warmup", "noam", least=1),
            "factor": real_number(factor, "factor", "noam"),
        },
    )


def _noam(done: int, size: int, warmup: int, factor: float) -> float:
    step = done + 1
    return float(factor * size**-0.5 * min(step**-0.5, step * warmup**-1.5))


def one_cycle(
    peak: float,
    steps: int,
    *,
    warmup: float = 0.3,
    start_divisor: float = 25.0,
    end_divisor: float = 1e4,
    shape: str = "cosine",
    three_phases: bool = False,
) -> Schedule:
    """Up to a peak and down again (Smith and Topin, 2018, arXiv:1708.07120); as ``OneCycleLR``.

    Parameters
    ----------
    peak : float
        The largest rate.
    steps : int
        Number of all steps; the last rate holds afterwards.
    warmup : float
        Part of the steps in which the rate rises, in (0, 1).
    start_divisor : float
        The first rate is ``peak / start_divisor``.
    end_divisor : float
        The last rate is the first one divided by `end_divisor`.
    shape : str
        ``"cosine"`` or ``"linear"``.
    three_phases : bool
        Whether the rate falls to the first one as fast as it rose, and then to the last one.

    Returns
    -------
    Schedule
        A function of the step.

    Raises
    ------
    ArgumentError
        If a phase has less than a step.

    Examples
    --------
    >>> import burn
    >>> rate = burn.optim.schedules.one_cycle(1.0, 100)
    >>> [round(rate(step), 6) for step in (1, 30, 100)]
    [0.04, 1.0, 4e-06]
    """
    check_choice(shape, ("cosine", "linear"), "shape", "one_cycle")
    arguments: dict[str, Any] = {
        "peak": real_number(peak, "peak", "one_cycle"),
        "steps": as_integer(steps, "steps", "one_cycle", least=2),
        "warmup": real_number(warmup, "warmup", "one_cycle", above=0.0, below=1.0),
        "start_divisor": real_number(start_divisor, "start_divisor", "one_cycle", above=0.0),
        "end_divisor": real_number(end_divisor, "end_divisor", "one_cycle", above=0.0),
        "shape": shape,
        "three_phases": as_flag(three_phases, "three_phases", "one_cycle"),
    }
    ends = _phases(arguments["steps"], arguments["warmup"], three_phases=three_phases)
    if any(end <= start for start, end in itertools.pairwise([0.0, *ends])):
        raise ArgumentError(
            f"a phase of {steps} steps of which {warmup:g} rise is shorter than a step",
            hint="Use more steps, or another part for the warm-up",
            operation="one_cycle",
        )
    return Schedule(_one_cycle, arguments)


def _phases(steps: int, warmup: float, *, three_phases: bool) -> list[float]:
    """How many steps are before the end of each phase."""
    middle = [2.0 * warmup * steps - 2.0] if three_phases else []
    return [warmup * steps - 1.0, *middle, steps - 1.0]


def _one_cycle(
    done: int,
    peak: float,
    steps: int,
    warmup: float,
    start_divisor: float,
    end_divisor: float,
    shape: str,
    *,
    three_phases: bool,
) -> float:
    start = peak / start_divisor
    rates = [start, peak, *([start] if three_phases else []), start / end_divisor]
    ends = [0.0, *_phases(steps, warmup, three_phases=three_phases)]
    at = min(float(done), ends[-1])
    phase = max(bisect.bisect_left(ends, at), 1)
    part = (at - ends[phase - 1]) / (ends[phase] - ends[phase - 1])
    return (_wave if shape == "cosine" else _line)(rates[phase - 1], rates[phase], part)


def _line(start: float, end: float, part: float) -> float:
    return start + (end - start) * part


def warmup(steps: int, then: Rates, *, start: float = 0.0) -> Schedule:
    """A straight line up to the first rate of another schedule, and then that schedule.

    Parameters
    ----------
    steps : int
        Number of steps before the schedule begins.
    then : float or callable
        The schedule, whose steps are counted from 1 after the warm-up; or one rate.
    start : float
        Part of its first rate that the first step has.

    Returns
    -------
    Schedule
        A function of the step.

    Examples
    --------
    >>> import burn
    >>> rates = burn.optim.schedules
    >>> rate = rates.warmup(4, rates.linear(1.0, 0.0, 10))
    >>> [rate(step) for step in (1, 2, 5, 10)]
    [0.0, 0.25, 1.0, 0.5]
    """
    return Schedule(
        _warmup,
        {
            "steps": as_integer(steps, "steps", "warmup", least=1),
            "then": _as_schedule(then, "warmup"),
            "start": real_number(start, "start", "warmup"),
        },
    )


def _warmup(done: int, steps: int, then: Callable[[int], float], start: float) -> float:
    if done >= steps:
        return then(done - steps + 1)
    return then(1) * (start + (1.0 - start) * done / steps)


def sequence(schedules: Sequence[Rates], lengths: Sequence[int]) -> Schedule:
    """Schedules one after another, each counted from 1; as ``SequentialLR``.

    Parameters
    ----------
    schedules : sequence of float or callable
        The schedules.
    lengths : sequence of int
        Number of steps of each but the last one.

    Returns
    -------
    Schedule
        A function of the step.

    Raises
    ------
    ArgumentError
        If there is not one schedule more than lengths.

    Examples
    --------
    >>> import burn
    >>> rates = burn.optim.schedules
    >>> rate = rates.sequence([0.25, rates.exponential(1.0, 0.5)], [10])
    >>> [rate(step) for step in (10, 11, 12)]
    [0.25, 1.0, 0.5]
    """
    parts = tuple([_as_schedule(schedule, "sequence") for schedule in schedules])
    lengths = _checked_lengths(lengths, len(parts), "sequence")
    return Schedule(_sequence, {"schedules": parts, "lengths": lengths})


def _sequence(
    done: int, schedules: Sequence[Callable[[int], float]], lengths: Sequence[int]
) -> float:
    index, before = _part(done, lengths)
    return schedules[index](before + 1)


def product(*schedules: Rates) -> Schedule:
    """The product of schedules and numbers, step by step; as ``ChainedScheduler``.

    Parameters
    ----------
    *schedules : float or callable
        The factors.

    Returns
    -------
    Schedule
        A function of the step.

    Examples
    --------
    >>> import burn
    >>> rates = burn.optim.schedules
    >>> rates.product(0.5, rates.exponential(1.0, 0.5), rates.linear(1.0, 0.0, 4))(3)
    0.0625
    """
    return Schedule(
        _product,
        {"schedules": tuple([_as_schedule(schedule, "product") for schedule in schedules])},
    )


def _product(done: int, schedules: Sequence[Callable[[int], float]]) -> float:
    return math.prod([schedule(done + 1) for schedule in schedules])


def _as_schedule(value: Rates, operation: str) -> Callable[[int], float]:
    return value if callable(value) else constant(real_number(value, "a rate", operation))
