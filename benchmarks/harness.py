"""Measuring two ways of doing the same work, side by side.

The runs are interleaved, so that whatever else the machine does hits both, and medians are
compared. A budget is a ratio: ours over theirs.
"""

from __future__ import annotations

import ctypes
import gc
import json
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

__all__ = [
    "READS_MEMORY",
    "Case",
    "Result",
    "measure",
    "measure_commands",
    "measure_memory",
    "memory_growth",
    "report",
]

ROUNDS, LEAST_ROUNDS = 25, 9
SECONDS_PER_ROUND = 0.01
SECONDS_PER_CASE = 5.0
"""After which there are only so many rounds as there have to be."""

LOOKS = 20
SECONDS_BETWEEN_LOOKS = 0.02
READS_MEMORY = Path("/proc/self/clear_refs").exists()
"""Whether the system says what `memory_growth` asks."""

WARM_UP = 3
"""Number of calls that are not measured, such as those that compile kernels."""


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
    wait : callable
        Waits for what a device still computes, at the end of a round.
    """

    name: str
    ours: Callable[[], object]
    theirs: Callable[[], object]
    against: str
    budget: float | None = None
    wait: Callable[[], object] = lambda: None


@dataclass(frozen=True)
class Result:
    """Median seconds of both ways, bytes, or numbers without a unit."""

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
    pairs = [(way, _repeats(way, case.wait)) for way in (case.ours, case.theirs)]
    times: tuple[list[float], list[float]] = ([], [])
    start = time.perf_counter()
    while len(times[0]) < ROUNDS:
        if len(times[0]) >= LEAST_ROUNDS and time.perf_counter() - start > SECONDS_PER_CASE:
            break
        for (function, repeats), taken in zip(pairs, times, strict=True):
            _rest()
            taken.append(_time(function, repeats, case.wait))
    ours, theirs = map(statistics.median, times)
    return Result(case.name, case.against, ours, theirs, case.budget)


def _repeats(function: Callable[[], object], wait: Callable[[], object]) -> int:
    for _ in range(WARM_UP):
        function()
    repeats = 1
    while (taken := _time(function, repeats, wait) * repeats) < SECONDS_PER_ROUND / 4:
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


def _time(function: Callable[[], object], repeats: int, wait: Callable[[], object]) -> float:
    """Seconds per call, without the collector of cycles in between."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        wait()
        start = time.perf_counter()
        for _ in range(repeats):
            function()
        wait()
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
    name: str, ours: list[str], theirs: list[str], against: str, budget: float | None = None
) -> Result:
    """Compare the bytes that two commands of Python print."""
    own, other = (
        float(subprocess.check_output([sys.executable, *command], encoding="ascii"))  # noqa: S603 — our own commands
        for command in (ours, theirs)
    )
    return Result(name, against, own, other, budget, "B")


def memory_growth(work: Callable[[], object]) -> int:
    """Bytes by which the memory of this process grows at most during some work, read from Linux."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what is free would be taken without growing
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forget the peak so far
    before = _memory("VmRSS")
    work()
    return _memory("VmHWM") - before


def _memory(name: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"the system says nothing of {name}")


def report(items: Iterable[Case | Result], title: str, file: Path | None = None) -> None:
    """Measure all that is not yet, print a table, and keep the figures in a file of JSON."""
    results = []
    for item in items:
        result = item if isinstance(item, Result) else measure(item)
        print(f"{result.name}: {result.ratio:.2f}", file=sys.stderr)
        results.append(result)
    _show(results, title)
    if file:
        rows = [vars(result) | {"ratio": result.ratio} for result in results]
        file.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


def _show(results: list[Result], title: str) -> None:
    """Print a table; what passes its budget is marked."""
    table = Table(title=title, caption=f"{platform.processor() or platform.machine()}")
    for column in ("work", "burn", "against", "", "ratio", "budget"):
        table.add_column(column, justify="left" if column in ("work", "against") else "right")
    for result in results:
        over = result.budget is not None and result.ratio > result.budget
        table.add_row(
            result.name,
            _quantity(result.ours, result.unit),
            result.against,
            _quantity(result.theirs, result.unit),
            f"[red]{result.ratio:.2f}[/red]" if over else f"{result.ratio:.2f}",
            "" if result.budget is None else f"{result.budget:.2f}",
        )
    Console(width=110).print(table)


def _quantity(value: float, unit: str) -> str:
    if unit == "":
        return f"{value:.3g}"
    return f"{value / 2**20:.1f} MiB" if unit == "B" else _duration(value)


def _duration(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.2f} {unit}"
    return f"{seconds * 1e9:.0f} ns"
