"""The progress of a run: bars in a terminal, elsewhere a line for each epoch."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

from rich.console import Console
from rich.errors import LiveError
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column

from burn.train._values import EVALUATION

__all__ = ["Display", "Silence", "display_of"]


DRAW_INTERVAL: Final = 0.25
"""Seconds between two drawings of the bars, which take a millisecond or two."""

LINE_INTERVAL: Final = 60.0
"""Seconds after which a line tells of an epoch that is not over yet, where no terminal is."""


class Display(Protocol):
    """What `fit` tells of a run."""

    @property
    def is_live(self) -> bool:
        """Whether it shows values now, in the middle of an epoch."""

    def epoch(self, epoch: int, batches: int, step: int, length: int | None, /) -> None:
        """An epoch begins, or goes on after so many batches and steps of the run."""

    def advance(self, step: int, batches: int, values: Mapping[str, Any], /) -> None:
        """So many steps of the run and batches of the epoch are done."""

    def record(self, record: Mapping[str, Any]) -> None:
        """An epoch is over."""

    def note(self, text: str) -> None:
        """Something else to know."""

    def close(self) -> None:
        """The run is over."""


class Silence:
    """Says nothing."""

    @property
    def is_live(self) -> bool:
        return False

    def epoch(self, epoch: int, batches: int, step: int, length: int | None, /) -> None: ...
    def advance(self, step: int, batches: int, values: Mapping[str, Any], /) -> None: ...
    def record(self, record: Mapping[str, Any]) -> None: ...
    def note(self, text: str) -> None: ...
    def close(self) -> None: ...


class _Lines(Silence):
    def __init__(self, console: Console, epochs: int | None) -> None:
        self._console = console
        self._epochs = epochs
        self._epoch = 1
        self._said = time.monotonic()

    @property
    def is_live(self) -> bool:
        return time.monotonic() - self._said >= LINE_INTERVAL

    def epoch(self, epoch: int, _batches: int, _step: int, _length: int | None, /) -> None:
        self._epoch = epoch

    def advance(self, step: int, _batches: int, values: Mapping[str, Any], /) -> None:
        self.note(f"{_epoch(self._epoch, self._epochs)}  step {step}  {values_line(values)}")

    def record(self, record: Mapping[str, Any]) -> None:
        shown = {name: value for name, value in record.items() if name not in ("epoch", "step")}
        seconds = shown.pop("seconds")
        shown.pop("examples_per_second", None)
        head = _epoch(record["epoch"], self._epochs)
        self.note(f"{head}  step {record['step']}  {values_line(shown)}  {seconds:.1f} s")

    def note(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)
        self._said = time.monotonic()


class _Seldom(Progress):
    """Bars that are drawn a few times a second at most, however often something changes."""

    def __init__(self, *columns: ProgressColumn, console: Console) -> None:
        super().__init__(*columns, console=console, auto_refresh=False)
        self._drawn = time.monotonic()  # it is drawn when it starts

    def refresh(self) -> None:
        """Draw, unless that was done just now."""
        if time.monotonic() - self._drawn >= DRAW_INTERVAL:
            super().refresh()
            self._drawn = time.monotonic()


class _Bars:
    """A bar for the epoch and one for the run, drawn when there is news: no thread of their own."""

    @property
    def is_live(self) -> bool:
        return True

    def __init__(self, console: Console, epochs: int | None, steps: int | None) -> None:
        self._epochs, self._steps = epochs, steps
        self._progress = _Seldom(
            TextColumn("{task.description}"),
            BarColumn(16, table_column=Column(no_wrap=True)),
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[speed]}"),
            TimeRemainingColumn(elapsed_when_finished=True, table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[values]}", markup=False, table_column=Column()),
            console=console,
        )
        self._of_epoch: TaskID = self._add(None, "")
        self._of_run: TaskID = self._add(steps, "all")
        self._progress.start()

    def _add(self, total: int | None, description: str) -> TaskID:
        return self._progress.add_task(description, total=total, speed="", values="")

    def epoch(self, epoch: int, batches: int, step: int, length: int | None, /) -> None:
        total = self._steps
        if self._epochs is not None and length is not None:
            total = step - batches + (self._epochs - epoch + 1) * length
        self._progress.update(self._of_run, total=total, completed=step)
        self._progress.reset(
            self._of_epoch,
            description=_epoch(epoch, self._epochs),
            total=length,
            completed=batches,
            speed="",
            values="",
        )

    def advance(self, step: int, batches: int, values: Mapping[str, Any], /) -> None:
        self._progress.update(self._of_run, completed=step)
        self._progress.update(self._of_epoch, completed=batches, values=values_line(values))
        speed = self._progress.tasks[0].speed
        self._progress.update(self._of_epoch, speed=f"{speed:.3g} steps/s" if speed else "")
        self._progress.refresh()

    def record(self, record: Mapping[str, Any]) -> None:
        found = {name: value for name, value in record.items() if name.startswith(EVALUATION)}
        self._progress.update(self._of_run, values=values_line(found))
        self._progress.refresh()

    def note(self, text: str) -> None:
        self._progress.console.print(text, highlight=False, markup=False)

    def close(self) -> None:
        self._progress.stop()


def _epoch(epoch: int, epochs: int | None) -> str:
    return f"epoch {epoch}" if epochs is None else f"epoch {epoch}/{epochs}"


def values_line(values: Mapping[str, Any]) -> str:
    """The numbers among values, on one line."""
    return "  ".join(
        f"{name} {value:.4g}" for name, value in values.items() if isinstance(value, (int, float))
    )


@contextlib.contextmanager
def display_of(*, is_wanted: bool, epochs: int | None, steps: int | None) -> Iterator[Display]:
    """How a run shows itself, on standard error."""
    display: Display = Silence()
    if is_wanted:
        console = Console(stderr=True)
        has_bars = console.is_terminal and not (console.is_jupyter or console.is_dumb_terminal)
        display = _Lines(console, epochs)
        if has_bars:
            with contextlib.suppress(LiveError):  # rich before 14.1 has one display at a time
                display = _Bars(console, epochs, steps)
    try:
        yield display
    finally:
        display.close()
