"""Session: a run of the kit on one device, of which results come one by one."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator, Iterable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Final

from burn.devices import Device
from burn.dtype import DType
from burn.errors import ArgumentError, BurnError
from burn.testing._check import Check, Result, Status
from burn.testing._check_selection import Selection
from burn.testing._chosen_checks import Chosen
from burn.testing._expected import ExpectedFailures, find_expected_failures, run_check
from burn.testing._summary import SubjectSummary
from burn.testing._worker_process import Shard
from burn.testing.earlier_run import EarlierRun, versions_of
from burn.testing.report import Report
from burn.testing.shape_cost import ShapeCost
from burn.testing.subject import Subject
from burn.testing.suites import find_check
from burn.testing.workers import Ended, Workers

__all__ = [
    "TIME_LIMIT_SECONDS",
    "Session",
    "check_workers",
    "run_check",
]

TIME_LIMIT_SECONDS: Final = 60.0
"""Time limit of a check in a worker process; the first use of a GPU compiles kernels."""


class Session:
    """A run of the kit on one device.

    Parameters
    ----------
    device : Device
        What to try.
    selection : Selection
        With which checks.
    minimal, compiles : bool
        See `Subject`.
    expected_failures : Path, optional
        File with the failures that are expected; else that of the plugin.
    workers : int
        How many processes make the checks; 0 for this process.
    time_limit : float
        Seconds that a check may take in a worker.
    few_shapes : bool, optional
        Whether each suite tries one sample of each op, and ``values`` one with each dtype; by
        default where the selection is quick and the library compiles for each shape.
    earlier : EarlierRun, optional
        A run that is resumed.

    Attributes
    ----------
    device : Device
        What is tried.
    total : int
        How many checks there are; 0 before that is known.
    resumed : int
        How many of them have a result of the earlier run.
    """

    def __init__(
        self,
        device: Device,
        selection: Selection,
        *,
        minimal: bool = False,
        compiles: bool = False,
        expected_failures: Path | None = None,
        workers: int = 0,
        time_limit: float = TIME_LIMIT_SECONDS,
        few_shapes: bool | None = None,
        earlier: EarlierRun | None = None,
    ) -> None:
        self.device = device
        self.total = self.resumed = 0
        self._selection = selection
        self._mode = {"minimal": minimal, "compiles": compiles}
        self._expected_failures = expected_failures or find_expected_failures(device)
        self._workers = workers
        self._time_limit = time_limit
        self._few_shapes = few_shapes
        self._cost = ShapeCost(0.0, 0.0)
        self._left_out: Mapping[str, int] = {}
        self._earlier = earlier
        self._subject: SubjectSummary | None = None
        self._checks: dict[str, Check] = {}
        self._reasons: dict[str, str] = {}
        self._results: dict[str, Result] = {}
        self._problems: list[str] = []
        self._start = time.perf_counter()

    @property
    def done(self) -> int:
        """How many checks have a result."""
        return len(self._results)

    def results(self) -> Generator[Result | None]:
        """Make the checks: gives each result as it comes, and None where none came for a moment.

        To stop before the end, close the iterator, which ends the workers.

        Raises
        ------
        BurnError
            If the device or the list of expected failures cannot be used, or the earlier run was
            one of another device. What ends a run after its first checks is a problem in the
            report instead.
        """
        stream = self._in_workers() if self._workers else self._in_process()
        for result in stream:
            if result is not None:
                self._results[result.check.name] = result
            yield result

    @property
    def report(self) -> Report | None:
        """What is known so far; None before it is known what there is to try."""
        if self._subject is None:
            return None
        made = [self._results[name] for name in self._checks if name in self._results]
        seconds = time.perf_counter() - self._start
        return Report(
            self._subject,
            self._selection,
            made,
            self._problems,
            seconds,
            self.total,
            self.resumed,
            versions_of(self.device),
            self._cost,
            bool(self._few_shapes),
            self._left_out,
        )

    def _begin(
        self,
        subject: SubjectSummary,
        checks: Iterable[Check],
        reasons: Mapping[str, str],
        problems: list[str],
    ) -> list[Check]:
        """Keep what there is to try; returns the checks that are left to be made."""
        self._checks = {check.name: check for check in checks}
        self._reasons.update(reasons)
        self._problems = problems
        self.total = len(self._checks)
        if self._earlier is not None:
            done = self._earlier.results(self.device, self._mode, self._checks, self._reasons)
            self._results.update(done)
            self.resumed = len(done)
        self._subject = subject
        return [check for name, check in self._checks.items() if name not in self._results]

    def _in_process(self) -> Generator[Result | None]:
        subject = Subject.of(self.device, **self._mode)
        expected = ExpectedFailures.read(self._expected_failures)
        self._cost = ShapeCost.of(subject)
        chosen = Chosen.of(subject, self._selection, self._cost, few_shapes=self._few_shapes)
        self._few_shapes = chosen.few_shapes
        self._left_out = chosen.left_out
        reasons = {
            check.name: reason
            for check in chosen.checks
            if (reason := expected.reason(subject, check.name)) is not None
        }
        problems = [name for name in (chosen.problem, *expected.unknown(subject)) if name]
        for check in self._begin(SubjectSummary.of(subject), chosen.checks, reasons, problems):
            yield run_check(subject, check, expected)

    def _in_workers(self) -> Generator[Result | None]:
        path = self._expected_failures
        job = {
            "device": self.device.name,
            "mode": self._mode,
            "selection": asdict(self._selection),
            "few_shapes": self._few_shapes,
            "expected_failures": None if path is None else str(path.absolute()),
        }
        workers = Workers(job, self._workers, self._time_limit)
        try:
            found = workers.describe()
            self._cost = ShapeCost.of_json(found["shape_cost"])
            self._few_shapes = found["few_shapes"]
            self._left_out = found["left_out"]
            large, reasons, checks = set(), {}, []
            for suite, op, dtype, note, is_large, reason in found["checks"]:
                check = self._elsewhere(suite, op, dtype, note, is_large=is_large)
                checks.append(check)
                if is_large:
                    large.add(check.name)
                if reason is not None:
                    reasons[check.name] = reason
            subject = SubjectSummary.of_json(found["subject"])
            left = self._begin(subject, checks, reasons, found["problems"])
            try:
                for outcome in workers.run(_shards(left), large):
                    yield None if outcome is None else self._result(outcome)
            except BurnError as error:
                self._problems.append(f"the run was ended: {error}")
        finally:
            workers.close()

    def _elsewhere(
        self, suite: str, op: str, dtype: str | None, note: str, *, is_large: bool
    ) -> Check:
        """A check that a worker makes; in this process it is made only where it is called."""
        body = partial(
            self._make_here, "/".join([name for name in (suite, op, dtype, note) if name])
        )
        kind = None if dtype is None else DType.of(dtype)
        return Check(suite, op, kind, note, body, is_large=is_large)

    def _make_here(self, name: str) -> float | None:
        return find_check(Subject.of(self.device, **self._mode), name).body()

    def _result(self, outcome: Any) -> Result:
        if not isinstance(outcome, Ended):
            return Result.of_json(self._checks[outcome["check"]], outcome)
        check = self._checks[outcome.name]
        if not outcome.is_tried:
            return Result(check, Status.SKIPPED, outcome.reason, "", None, 0.0)
        expected = self._reasons.get(outcome.name)
        if expected is not None:
            return Result(check, Status.EXPECTED, expected, "", None, outcome.seconds)
        script = self._script(outcome.name)
        return Result(check, Status.FAILED, outcome.reason, script, None, outcome.seconds)

    def _script(self, name: str) -> str:
        modes = "".join([f", {mode}=True" for mode, is_on in self._mode.items() if is_on])
        return (
            "import burn\nfrom burn.testing import Subject, find_check\n\n"
            f"subject = Subject.of(burn.Device({self.device.name!r}){modes})\n"
            f"find_check(subject, {name!r}).body()\n"
        )


def _shards(checks: Iterable[Check]) -> list[Shard]:
    """The checks of each op, which share shapes, and those of each suite that are about none."""
    shards: dict[tuple[str, str], Shard] = {}
    for check in checks:
        key = ("", check.op) if check.op else (check.suite, "")
        shards.setdefault(key, Shard(deque())).names.append(check.name)
    return list(shards.values())


def check_workers(device: Device, workers: int, time_limit: float) -> None:
    """Refuse numbers of workers and time limits that cannot be.

    Raises
    ------
    ArgumentError
        If they are no such numbers, or a worker would not find the device.
    """
    if workers < 0:
        raise ArgumentError(f"workers is {workers}, and is 0 or more")
    if not time_limit > 0:
        raise ArgumentError(f"time_limit is {time_limit}, and is a number of seconds over 0")
    if workers and device.entry.plugin.is_in_process:
        raise ArgumentError(
            f"{device.name} is of a backend that this process registered, which a worker process "
            "would not find",
            hint="Use workers=0, or install the plugin",
        )
