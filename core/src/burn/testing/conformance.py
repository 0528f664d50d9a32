"""Running the kit: what ``burn check``, the plugin of pytest, and `run` have in common.

pytest finds the checks of a device under the name of this file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from burn.devices import Device
from burn.dtype import DType
from burn.errors import ArgumentError
from burn.plugins import registry
from burn.testing._check import Check, Failure, Result
from burn.testing._check_selection import Selection
from burn.testing._expected import ExpectedFailures, run_check
from burn.testing.earlier_run import EarlierRun
from burn.testing.function_samples import FUNCTIONS
from burn.testing.op_samples import SAMPLES
from burn.testing.report import Report
from burn.testing.session import TIME_LIMIT_SECONDS, Session, check_workers
from burn.testing.subject import Subject
from burn.testing.suites import SUITES, checks_of

__all__ = ["Group", "Progress", "devices_of", "groups_of", "run", "run_check"]

Progress = Callable[[Result, int, int], None]
"""Called after each check with its result, how many are done, and how many there are."""


def run(
    device: Device | str,
    *,
    ops: Sequence[str] = (),
    dtypes: Sequence[DType | str] = (),
    suites: Sequence[str] = (),
    quick: bool = False,
    large: bool = False,
    minimal: bool = False,
    compiles: bool = False,
    expected_failures: Path | str | None = None,
    workers: int = 0,
    time_limit: float = TIME_LIMIT_SECONDS,
    few_shapes: bool | None = None,
    resume: Path | str | None = None,
    progress: Progress | None = None,
) -> Report:
    """Try a device.

    Parameters
    ----------
    device : Device or str
        What to try.
    ops, dtypes, suites : sequence of str
        Only these; see `Selection`.
    quick : bool
        Only a representative part.
    large : bool
        Also what takes gigabytes.
    minimal : bool
        Hide what the backend has beyond the required ops, so that every default has to work on
        them.
    compiles : bool
        Compile each call of an op as a program, which passes decompose and fuse into kernels.
    expected_failures : path, optional
        File with the failures that are expected; without it that beside the module of the plugin,
        if there is one. See `burn.testing._expected`.
    workers : int
        How many processes make the checks. A check that ends its process is then a failure, and
        the others are made; each worker opens the device. With 0 this process makes them.
    time_limit : float
        Seconds that a check may take in a worker; ten times as many for one of gigabytes.
    few_shapes : bool, optional
        Whether each suite tries one sample of each op, and ``values`` one with each dtype; by
        default where the run is quick and the library compiles for each shape.
    resume : path, optional
        A document of ``burn check --json``: checks of which it has the result are not made.
    progress : callable, optional
        Called after each check.

    Returns
    -------
    Report
        What works, and what does not.

    Raises
    ------
    ArgumentError
        If there is no such op, dtype or suite, or the list of failures cannot be read, or the run
        that is resumed was one of another version or device.
    ExecutionError
        If worker processes end before the first check.

    Examples
    --------
    >>> from burn.testing import run
    >>> report = run("cpu", ops=["relu"], quick=True)
    >>> report.conforms
    True
    """
    found = Device(device)
    check_workers(found, workers, time_limit)
    session = Session(
        found,
        select(ops=ops, dtypes=dtypes, suites=suites, quick=quick, large=large),
        minimal=minimal,
        compiles=compiles,
        expected_failures=None if expected_failures is None else Path(expected_failures),
        workers=workers,
        time_limit=time_limit,
        few_shapes=few_shapes,
        earlier=None if resume is None else EarlierRun(Path(resume)),
    )
    with contextlib.closing(session.results()) as results:
        for result in results:
            if result is not None and progress is not None:
                progress(result, session.done, session.total)
    return cast("Report", session.report)


def select(
    *,
    ops: Sequence[str] = (),
    dtypes: Sequence[DType | str] = (),
    suites: Sequence[str] = (),
    quick: bool = False,
    large: bool = False,
) -> Selection:
    """The checks that `run` runs with these arguments.

    Raises
    ------
    ArgumentError
        If there is no such op, dtype or suite.
    """
    names = tuple(DType.of(dtype).name for dtype in dtypes)
    selection = Selection(tuple(ops), names, tuple(suites), quick, large)
    selection.refuse_unknown([*SAMPLES, *FUNCTIONS], SUITES)
    return selection


@dataclass(frozen=True, eq=False)
class Group:
    """Checks of one suite, op and dtype: what a test runner has as one test.

    Attributes
    ----------
    subject : Subject
        What they try.
    name : str
        What the names of its checks begin with: ``values/softmax/float32``. What is not about an
        op has its whole name.
    checks : list of Check
        The checks.
    expected : ExpectedFailures
        Which of them are to fail.
    """

    subject: Subject
    name: str
    checks: list[Check] = field(repr=False)
    expected: ExpectedFailures = field(repr=False)

    def __str__(self) -> str:
        return self.name

    @property
    def is_large(self) -> bool:
        """Whether any of them takes gigabytes."""
        return any(check.is_large for check in self.checks)

    def run(self) -> list[Result]:
        """How its checks ended."""
        return [run_check(self.subject, check, self.expected) for check in self.checks]

    def check(self) -> None:
        """Run its checks, and raise if the device does not conform.

        Raises
        ------
        Failure
            With what went wrong, and a program that shows it, for each check that failed.
        """
        wrong = [result for result in self.run() if result.status.is_wrong]
        if wrong:
            raise Failure("\n\n".join(map(str, wrong)))


def groups_of(
    subject: Subject,
    selection: Selection | None = None,
    expected: ExpectedFailures | None = None,
) -> Iterator[Group]:
    """The checks of a subject in groups, in the order in which they run.

    Parameters
    ----------
    subject : Subject
        What to try.
    selection : Selection, optional
        Which checks.
    expected : ExpectedFailures, optional
        Which of them are to fail.

    Raises
    ------
    ArgumentError
        If a line of `expected` fits no check.
    """
    selection = selection or Selection()
    expected = expected or ExpectedFailures()
    unknown = expected.unknown(subject)
    if unknown:
        raise ArgumentError("; ".join(unknown))
    groups: dict[str, list[Check]] = {}
    for check in checks_of(subject, selection):
        parts = [check.suite, check.op] if check.op else [check.name]
        if check.op and check.dtype is not None:
            parts.append(check.dtype.name)
        groups.setdefault("/".join(parts), []).append(check)
    for name, checks in groups.items():
        yield Group(subject, name, checks, expected)


def devices_of(name: str) -> list[Device]:
    """The device of a name, or every device of a backend.

    Raises
    ------
    DeviceUnavailableError
        If there is none.
    PluginError
        If the plugin that would bring it is broken.
    """
    if name in registry.entries:
        found = Device.enumerate(name)
        if found:
            return found
    return [Device(name)]
