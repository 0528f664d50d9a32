"""How far ``burn check`` has come: a bar on a terminal, else lines."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from burn.cli._rendering import print_line

if TYPE_CHECKING:
    from burn.testing import Result
    from burn.testing.session import Session

__all__ = ["CheckProgress", "progress_of"]

_LINE_SECONDS: Final = 5.0
"""Time between two lines."""

_BAR_SECONDS: Final = 0.1
"""Time between two updates of the bar."""

_MAX_FAILURES: Final = 50
"""Failures that get a line as they come; further ones are counted."""

_MAX_MESSAGE_LENGTH: Final = 200
"""Characters of the message of a failure in such a line."""


@contextlib.contextmanager
def progress_of(session: Session) -> Iterator[CheckProgress]:
    """What shows on standard error how far a run has come."""
    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        yield CheckProgress(session, console)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(session.device.name, total=None, note="starts")
        yield _Bar(session, console, bar, task)


class CheckProgress:
    """Lines: now and then how far a run has come, and one for each failure.

    Parameters
    ----------
    session : Session
        The run.
    console : Console
        Where the lines go.
    """

    def __init__(self, session: Session, console: Console) -> None:
        self._session = session
        self._console = console
        self._failures = 0
        self._current = "starts"
        self._begin = time.monotonic()
        self._next = self._begin + self._interval
        self._is_known = False

    @property
    def _interval(self) -> float:
        return _LINE_SECONDS

    def update(self, result: Result | None) -> None:
        """Show a result, or that time goes by."""
        session = self._session
        if session.total and not self._is_known:
            self._is_known = True
            if session.resumed:
                text = f"{session.resumed} of {session.total} checks are done: resumed"
                self._line(f"{session.device.name}: {text}", "")
        if result is not None:
            self._current = result.check.op or result.check.suite
            if result.status.is_wrong:
                self._fail(result)
        now = time.monotonic()
        if now >= self._next:
            self._next = now + self._interval
            self._show(now - self._begin)

    @property
    def _note(self) -> str:
        failed = f", {self._failures} failed" if self._failures else ""
        return f"{self._current}{failed}"

    def _show(self, seconds: float) -> None:
        session = self._session
        done = f"{session.done} of {session.total} checks, " if session.total else ""
        self._line(f"{session.device.name}: {done}{self._note}, {seconds:.0f} s", "")

    def _fail(self, result: Result) -> None:
        self._failures += 1
        if self._failures <= _MAX_FAILURES:
            message = _one_line(result.message)
            if len(message) > _MAX_MESSAGE_LENGTH:
                message = f"{message[:_MAX_MESSAGE_LENGTH]}..."
            self._line(f"{result.status.name} {result.check.name}: {message}", "red")
        elif self._failures == _MAX_FAILURES + 1:
            self._line("further failures are counted", "red")

    def _line(self, text: str, style: str) -> None:
        print_line(self._console, text, style)


class _Bar(CheckProgress):
    """A bar, above which failures are printed."""

    def __init__(self, session: Session, console: Console, bar: Progress, task: TaskID) -> None:
        super().__init__(session, console)
        self._bar = bar
        self._task = task

    @property
    def _interval(self) -> float:
        return _BAR_SECONDS

    def _show(self, seconds: float) -> None:
        del seconds  # the bar has a clock
        session = self._session
        total = session.total or None
        self._bar.update(self._task, completed=session.done, total=total, note=self._note)


def _one_line(message: str) -> str:
    """A message without line breaks; of an exception what stands below its trace."""
    lines = message.splitlines()
    if lines and lines[0].startswith("Traceback "):
        frames = [number for number, line in enumerate(lines) if line.startswith("  ")]
        lines = lines[max(frames, default=-1) + 1 :] or lines
    return " ".join(" ".join(lines).split())
