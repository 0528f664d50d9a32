"""Expected failures: a text file in which a backend says what does not work yet, and why.

One line for each, the name of a check and the reason::

    # What the driver gets wrong.
    values/exp/float16/far  # small numbers are flushed to 0
    values/cbrt/*           # the compiler has a bug, reported as number 4711
    gradients/lstsq/* @ minimal      # too inaccurate with QR by the defaults
    values/tan/* @ opencl/gpu:*      # not on the CPUs
    values/sin/complex64/* @ torch/cuda:* native compiled  # not by the defaults

A ``*`` in a name stands for any text. After an ``@`` stands where the line holds: devices by their
names, and ``native``, ``minimal`` or ``compiled``; where there are both, it holds for these devices
in these ways. Elsewhere it is not looked at. A check of the list that passes is an error, so that
the list stays true, and so is a line that fits no check.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from burn.errors import ArgumentError
from burn.plugins import registry
from burn.testing._check import Check, Result, Status
from burn.testing._check_selection import Selection
from burn.testing.suites import SUITES, checks_of, is_left_out

if TYPE_CHECKING:
    from burn.devices import Device
    from burn.testing.subject import Subject

__all__ = ["FILE_NAME", "ExpectedFailures", "find_expected_failures", "run_check"]

FILE_NAME: Final = "expected_failures.txt"
"""The file beside the module of a plugin that is read by default."""

_MODES: Final = ("native", "minimal", "compiled")


@dataclass(frozen=True)
class _Line:
    number: int
    pattern: str
    where: str
    reason: str

    def fits(self, name: str) -> bool:
        """Whether it is about a check."""
        return _fits(self.pattern, name)

    def holds_for(self, subject: Subject) -> bool:
        """Whether it is about a subject."""
        words = self.where.split()
        modes = [word for word in words if word in _MODES]
        devices = [word for word in words if word not in _MODES]
        mode = "minimal" if subject.hides else "compiled" if subject.compiles else "native"
        name = "" if subject.handle is None else subject.handle.name
        is_there = not devices or any(_fits(device, name) for device in devices)
        return is_there and (not modes or mode in modes)


class ExpectedFailures:
    """The lines of a file.

    Parameters
    ----------
    text : str
        What is in the file.
    source : str
        Its name, for messages.

    Raises
    ------
    ArgumentError
        If a line has no reason.

    Examples
    --------
    >>> ExpectedFailures("values/exp/float16/far")
    Traceback (most recent call last):
        ...
    burn.errors.ArgumentError: line 1 of the list has no reason. Write: name of the check  # reason
    """

    def __init__(self, text: str = "", source: str = "the list") -> None:
        self.source = source
        self._lines = [
            _parse(number, line, source)
            for number, line in enumerate(text.splitlines(), 1)
            if line.strip() and not line.lstrip().startswith("#")
        ]

    @classmethod
    def read(cls, path: Path | None) -> ExpectedFailures:
        """What a file says; nothing is expected without one.

        Raises
        ------
        ArgumentError
            If it cannot be read, or a line has no reason.
        """
        if path is None:
            return cls()
        try:
            return cls(path.read_text(encoding="utf-8"), str(path))
        except OSError as error:
            raise ArgumentError(f"cannot read the expected failures: {error}") from error

    def reason(self, subject: Subject, name: str) -> str | None:
        """Why a check of a subject is expected to fail; None if it is not."""
        for line in self._lines:
            if line.fits(name) and line.holds_for(subject):
                return line.reason
        return None

    def unknown(self, subject: Subject) -> list[str]:
        """What is wrong with the lines that hold for a subject and fit none of its checks."""
        left_out = {suite.name for suite in SUITES.values() if is_left_out(subject, suite)}
        lines = [
            line
            for line in self._lines
            if line.holds_for(subject) and line.pattern.partition("/")[0] not in left_out
        ]
        suites = {line.pattern.partition("/")[0] for line in lines}
        named = () if any("*" in suite for suite in suites) else tuple(suites)
        there = checks_of(subject, Selection(suites=named, large=True)) if lines else ()
        names = [check.name for check in there]
        return [
            f"line {line.number} of {self.source} fits no check: {line.pattern}"
            for line in lines
            if not any(map(line.fits, names))
        ]


def find_expected_failures(device: Device) -> Path | None:
    """The file beside the module that loads the backend of a device, if there is one."""
    loader = registry.entry(device.backend_name).spec.load
    module = sys.modules.get(getattr(loader, "__module__", ""))
    source = getattr(module, "__file__", None)
    if source is None:
        return None
    path = Path(source).with_name(FILE_NAME)
    return path if path.is_file() else None


def run_check(subject: Subject, check: Check, expected: ExpectedFailures) -> Result:
    """Run a check, and compare how it ended with how it was expected to end."""
    if subject.compiles:
        subject.backend.ways.clear()
    result = check.run()
    if subject.compiles:
        way = subject.backend.way_of(check.op)
        result.way = "" if way is None else way.value
    reason = expected.reason(subject, check.name)
    if reason is not None:
        if result.status in (Status.FAILED, Status.UNSUPPORTED):
            result.status, result.message = Status.EXPECTED, reason
        elif result.status is Status.PASSED:
            result.status = Status.UNEXPECTED
            result.message = f"it passes, and {expected.source} expects it to fail: {reason}"
    return result


def _parse(number: int, line: str, source: str) -> _Line:
    name, _, reason = line.partition("#")
    if not reason.strip():
        raise ArgumentError(
            f"line {number} of {source} has no reason",
            hint="Write: name of the check  # reason",
        )
    pattern, _, where = name.partition("@")
    return _Line(number, pattern.strip(), where.strip(), reason.strip())


def _fits(pattern: str, name: str) -> bool:
    if "*" not in pattern:
        return pattern == name
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name) is not None
