"""Measuring two ways of doing the same work, side by side.

The runs are interleaved, so that whatever else the machine does hits both, and medians are
compared. A budget is a ratio: ours over theirs.
"""

from __future__ import annotations

import gc
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Case", "Result", "measure", "measure_commands", "measure_memory"]

ROUNDS = 25
SECONDS_PER_ROUND = 0.01
LOOKS = 20
SECONDS_BETWEEN_LOOKS = 0.02


@dataclass(frozen=True)
class Case:
    """Two ways of doing one piece of work.

    Attributes
    ----------
    name : str
        What is done.
    ours, theirs : callable
        burn's way, and what it is compared with.
    against : str
        What `theirs` is.
    budget : float or None
        The ratio that is not to be passed; None for a figure that has no budget.
    """

    name: str
    ours: Callable[[], object]
    theirs: Callable[[], object]
    against: str
    budget: float | None = None


@dataclass(frozen=True)
class Result:
    """Median seconds of both ways, or bytes."""

    name: str
    against: str
    ours: float
    theirs: float
    budget: float | None
    unit: str = "s"

    @property
    def ratio(self) -> float:
        """How many times as long as theirs ours takes, or as much."""
        return self.ours / self.theirs


def measure(case: Case) -> Result:
    """Time both ways in turn, each round long enough for the clock."""
    pairs = [(way, _repeats(way)) for way in (case.ours, case.theirs)]
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for (function, repeats), taken in zip(pairs, times, strict=True):
            _rest()
            taken.append(_time(function, repeats))
    ours, theirs = map(statistics.median, times)
    return Result(case.name, case.against, ours, theirs, case.budget)


def _repeats(function: Callable[[], object]) -> int:
    function()  # whatever is done once is not measured
    repeats = 1
    while (taken := _time(function, repeats) * repeats) < SECONDS_PER_ROUND / 4:
        repeats *= 2
    return max(1, round(repeats * SECONDS_PER_ROUND / taken))


def _rest() -> None:
    """Wait until no thread of this process computes.

    Those of OpenMP and OpenBLAS stay awake after their work, for up to a tenth of a second, and
    would take a core away from what is measured next. Linux adds up what other threads compute
    at ticks of up to 10 ms, so a shorter look would not see them.
    """
    for _ in range(LOOKS):
        before = time.process_time()
        time.sleep(SECONDS_BETWEEN_LOOKS)
        if time.process_time() - before < SECONDS_BETWEEN_LOOKS / 10:
            return


def _time(function: Callable[[], object], repeats: int) -> float:
    """Seconds per call, without the collector of cycles in between."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        start = time.perf_counter()
        for _ in range(repeats):
            function()
        return (time.perf_counter() - start) / repeats
    finally:
        if collecting:
            gc.enable()


def measure_commands(
    name: str, ours: list[str], theirs: list[str], against: str, budget: float
) -> Result:
    """Time two commands of Python, each in a process of its own."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(11):
        for command, taken in zip((ours, theirs), times, strict=True):
            start = time.perf_counter()
            subprocess.run([sys.executable, *command], check=True, capture_output=True)  # noqa: S603 — our own commands
            taken.append(time.perf_counter() - start)
    own, other = map(statistics.median, times)
    return Result(name, against, own, other, budget)


def measure_memory(
    name: str, ours: list[str], theirs: list[str], against: str, budget: float
) -> Result:
    """Compare the bytes that two commands of Python print."""
    own, other = (
        float(subprocess.check_output([sys.executable, *command], encoding="ascii"))  # noqa: S603 — our own commands
        for command in (ours, theirs)
    )
    return Result(name, against, own, other, budget, "B")
