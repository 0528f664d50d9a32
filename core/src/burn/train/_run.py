"""A run: the loop of `fit`, how far it is, and its checkpoints."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from burn.errors import ArgumentError, BurnError, WorkerError
from burn.train._inputs import examples_of, is_stateful, length_of, values_of
from burn.train._progress import Display, Silence
from burn.train._signals import Interruption
from burn.train._values import EVALUATION, Averages, numbers, pick
from burn.train.history import History

if TYPE_CHECKING:
    from burn.store import Checkpoints
    from burn.train._log import Log
    from burn.train.stopping import EarlyStopping

__all__ = ["Run", "Saver"]

READ_INTERVAL: Final = (0.5, 2.0)
"""Least and most seconds between two reads of values from the device, which wait for its steps."""

DRAWING_SHARE: Final = 0.0025
"""Of the time, for drawing the values that were read: where it takes longer, they are read less."""

MOST_PENDING: Final = 1000
"""Steps whose values stay on the device until they are read, however fast the steps are."""


class State:
    """How far a run is: a part of its checkpoints.

    Attributes
    ----------
    step, epoch, batches : int
        Steps that are done; the epoch that is begun, from 1; the steps of it that are done.
    recorded : int
        The step of the last record.
    lines : int
        Lines of the log.
    """

    _NUMBERS: Final = ("step", "epoch", "batches", "recorded", "lines")

    def __init__(self, stop: EarlyStopping | None, averages: Averages) -> None:
        self.step, self.epoch, self.batches, self.recorded, self.lines = 0, 1, 0, 0, 0
        self.history = History()
        self.averages = averages
        self._stop = stop
        self._seconds = 0.0
        self._since = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Since the run began, without the time in which it was stopped."""
        return self._seconds + time.perf_counter() - self._since

    def state_dict(self) -> dict[str, Any]:
        """All of it, the early stop included."""
        return {name: getattr(self, name) for name in self._NUMBERS} | {
            "seconds": self.seconds,
            "history": self.history.state_dict(),
            "averages": self.averages.state_dict(),
            "stop": None if self._stop is None else self._stop.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        names = (*self._NUMBERS, "seconds", "history", "averages", "stop")
        *found, self._seconds, history, averages, stop = values_of(state, names, "fit")
        for name, number in zip(self._NUMBERS, found, strict=True):
            setattr(self, name, number)
        self._since = time.perf_counter()
        self.history.load_state_dict(history)
        self.averages.load_state_dict(averages)
        if self._stop is not None and stop is not None:
            self._stop.load_state_dict(stop)


class Saver:
    """Saves a run, and restores it.

    A loader without ``state_dict`` is saved between epochs alone, unless it is a sequence: where
    another one was in the middle of an epoch, such as one that shuffles, cannot be found again.
    """

    def __init__(
        self,
        checkpoints: Checkpoints,
        parts: Mapping[str, Any],
        every: int | Literal["epoch"],
        state: State,
        loader: Iterable[Any],
    ) -> None:
        self._checkpoints = checkpoints
        self.every = every
        self._state = state
        self._saved = -1
        self._parts = {**parts, "run": state}
        state.averages.kept_elsewhere = {id(part) for part in parts.values()}
        if is_stateful(loader):
            self._parts["loader"] = loader
        self.saves_anywhere = is_stateful(loader) or isinstance(loader, Sequence)
        if every != "epoch" and not self.saves_anywhere:
            raise ArgumentError(
                f"save_every={every} needs a loader that knows its position, and "
                f"{type(loader).__name__} has no state_dict",
                hint='Use burn.data.DataLoader, or save_every="epoch"',
                operation="fit",
            )

    def restore(self) -> None:
        """Put all parts into the state of the newest checkpoint, if there is one."""
        if self._checkpoints.restore(**self._parts) is not None:
            self._saved = self._state.step

    def save_step(self) -> bool:
        """Whether to save between two steps of an epoch."""
        return self.every != "epoch" and self._state.step % self.every == 0

    def save_epoch(self) -> bool:
        """Whether to save at the end of an epoch."""
        return self.every == "epoch" or self._state.step % self.every == 0

    def save(self) -> None:
        """Save the run as it is now; what the device has is written in the background."""
        self._checkpoints.save(self._state.step, **self._parts)
        self._saved = self._state.step

    def finish(self) -> None:
        """Wait until all is written."""
        self._checkpoints.wait()

    def __repr__(self) -> str:
        return f"the checkpoint of step {self._saved}" if self._saved >= 0 else "no checkpoint"


class Run:
    """A run of `fit`, with its arguments."""

    def __init__(
        self,
        step: Callable[[Any], Any],
        loader: Iterable[Any],
        evaluate: Callable[[], Any] | None,
        stop: EarlyStopping | None,
        *,
        epochs: int | None,
        steps: int | None,
        evaluate_every: int | Literal["epoch"],
        log_every: int,
        allow_nonfinite: bool,
    ) -> None:
        self._step = step
        self._loader = loader
        self._evaluate = evaluate
        self._stop = stop
        self.epochs = epochs
        self.steps = steps
        self.evaluate_every = evaluate_every
        self.log_every = log_every
        self.state = State(stop, Averages(takes_nonfinite=allow_nonfinite))
        self.saver: Saver | None = None
        self.log: Log | None = None
        self.display: Display = Silence()
        self.interruption = Interruption(is_wanted=False, announce=self.announce)
        self._activity = ""  # whose errors get a note
        self._next_read = 0.0  # the first step is read at once
        self._record_clock = self._step_clock = _Clock()
        self._speeds: dict[int, dict[str, float]] = {}

    def is_finished(self) -> bool:
        """Whether all epochs or steps are done, or the run was stopped early."""
        if self._stop is not None and self._stop.is_over:
            return True
        if self.epochs is not None:
            return self.state.epoch > self.epochs
        return self.steps is not None and self.state.step >= self.steps

    def announce(self, name: str) -> None:
        """Say that a signal came; called by its handler, in the middle of whatever runs."""
        with contextlib.suppress(RuntimeError):  # the stream was just being written
            self.display.note(f"{name}: the run ends after this step. Once more ends it at once")

    def train(self, picture: str | os.PathLike[str] | None) -> None:
        """Go on to the end; then, or when a signal ends it before, the picture is drawn."""
        try:
            self._epochs()
        except Exception as error:
            if self._activity:
                error.add_note(
                    f"burn.train.fit: in the {self._activity} after {self.state.step} steps, "
                    f"epoch {self.state.epoch}"
                )
            if self.saver is not None:
                try:
                    self.saver.finish()
                except BurnError as other:
                    error.add_note(f"The last checkpoint was not written: {other}")
            raise
        finally:
            self.state.averages.reset()
        if picture is not None and self.state.history.records:
            self.state.history.draw(picture)
        if self.interruption.signal is not None:
            self.interruption.raise_(f"after {self.state.step} steps; {self.saver} is complete")

    def _epochs(self) -> None:
        if self.state.step == 0:  # what cannot be saved is found now, not after an epoch
            self._save(is_due=True)
        while not (self.is_finished() or self.interruption.signal):
            try:
                self._epoch()
            except WorkerError:  # a signal to all processes of a job ends those of the loader, too
                if not (self.interruption.signal and self._activity == "loader"):
                    raise
                self._save_within_epoch()
        if self.saver is not None:
            self.saver.finish()
        if self.interruption.signal:
            self.display.note(
                f"Stopped by {self.interruption.signal.name} after {self.state.step} steps; "
                f"{self.saver} is complete"
            )
        else:
            self._write("end", {"step": self.state.step, "seconds": round(self.state.seconds, 3)})

    def _epoch(self) -> None:
        """The batches of an epoch, or the rest of them; then evaluate, record and save."""
        state = self.state
        length = length_of(self._loader)
        self.display.epoch(state.epoch, state.batches, state.step, length)
        self._record_clock, self._step_clock = _Clock(), _Clock()
        self._activity = "loader"
        due = self._next_due()
        for batch in self._batches():
            self._advance(batch)
            if state.step < due and self.interruption.signal is None:
                self._activity = "loader"
                continue
            due = self._next_due()
            if state.step == self.steps or self._record_step():
                self._record()
            if self.is_finished():
                self._save(is_due=True)
                return
            if state.batches != length and self._save_within_epoch():
                return
            self._activity = "loader"
        self._activity = ""
        if not state.batches:
            raise ArgumentError(
                f"the loader gave no batch in epoch {state.epoch}",
                hint="It is empty, or an iterator, which gives its batches once: use a DataLoader",
                operation="fit",
            )
        if self.evaluate_every == "epoch" or state.epoch == self.epochs:
            self._record()
        state.epoch, state.batches = state.epoch + 1, 0
        is_due = self.is_finished() or bool(self.interruption.signal)
        self._save(is_due=is_due or (self.saver is not None and self.saver.save_epoch()))

    def _next_due(self) -> float:
        """The next step of the epoch after which there is more to do than to go on."""
        step = self.state.step
        saves = "epoch" if self.saver is None else self.saver.every
        often = [number for number in (self.evaluate_every, saves) if number != "epoch"]
        ends = [] if self.steps is None else [self.steps]
        return min([*ends, *[step + number - step % number for number in often]], default=math.inf)

    def _record_step(self) -> bool:
        """Whether to evaluate and record between two steps of an epoch."""
        return self.evaluate_every != "epoch" and self.state.step % self.evaluate_every == 0

    def _batches(self) -> Iterable[Any]:
        """A loader that restored its position goes on there; of another one batches are skipped."""
        if is_stateful(self._loader) or not self.state.batches:
            return self._loader
        return itertools.islice(self._loader, self.state.batches, None)

    def _advance(self, batch: Any) -> None:
        state = self.state
        self._activity = "step"
        returned = self._step(batch)
        self._activity = ""
        state.step += 1
        state.batches += 1
        state.averages.add(state.step, returned)
        examples = examples_of(batch)
        self._record_clock.examples += examples
        self._step_clock.examples += examples
        if state.step % self.log_every == 0:
            times = {"seconds": round(state.seconds, 3), **self._step_clock.speed()}
            self._speeds[state.step], self._step_clock = times, _Clock()
        if time.perf_counter() > self._next_read or state.averages.pending >= MOST_PENDING:
            self._read()

    def _read(self) -> None:
        """Read the values of the steps since the last time; log and show them."""
        state = self.state
        for step, values in state.averages.read():
            if step in self._speeds:
                record = {"epoch": state.epoch, "step": step, **values, **self._speeds[step]}
                state.history.steps.append(record)
                self._write("step", record)
        self._speeds.clear()
        now, drawing = time.perf_counter(), 0.0
        if self.display.is_live:
            shown = state.averages.means() | state.averages.metrics()
            start = time.perf_counter()
            self.display.advance(state.step, state.batches, shown)
            now = time.perf_counter()
            drawing = now - start
        least, most = READ_INTERVAL
        self._next_read = now + min(max(least, drawing / DRAWING_SHARE), most)

    def _record(self) -> None:
        """Values of the steps since the last record, and those of an evaluation."""
        state = self.state
        if state.step == state.recorded:
            return
        self._activity = ""
        self._read()
        speed = self._record_clock.speed()
        record = {"epoch": state.epoch, "step": state.step, **state.averages.take()}
        if self._evaluate is not None:
            self._activity = "evaluation"
            position = self._position()
            returned = self._evaluate()
            if self._position() != position:
                raise ArgumentError(
                    "evaluate went through the loader of the training in the middle of an epoch",
                    hint="Checkpoints would hold a wrong position: give it a loader of its own",
                    operation="fit",
                )
            for name, value in numbers(returned, "evaluate").items():
                record[name if name.startswith(EVALUATION) else EVALUATION + name] = value
        self._activity = ""
        record |= {"seconds": round(state.seconds, 3), **speed}
        state.recorded = state.step
        state.history.records.append(record)
        self._write("epoch" if self.evaluate_every == "epoch" else "evaluation", record)
        self.display.record(record)
        self._record_clock = _Clock()
        if self._stop is not None:
            self._stop.update(record[pick(self._stop.name, record, "EarlyStopping")])

    def _position(self) -> str:
        """Where the loader is, in the middle of an epoch that checkpoints may save."""
        is_within = self.evaluate_every != "epoch" or self.state.step == self.steps
        if self.saver is None or not is_within or not is_stateful(self._loader):
            return ""
        return repr(self._loader.state_dict())

    def _save_within_epoch(self) -> bool:
        """Save if it is time, or a signal came: then return true."""
        if self.saver is not None:
            is_over = self.interruption.signal is not None
            self._save(is_due=(is_over and self.saver.saves_anywhere) or self.saver.save_step())
            return is_over
        return False

    def _save(self, *, is_due: bool) -> None:
        if self.saver is not None and is_due:
            self._activity = ""
            self._read()
            self.state.lines = 0 if self.log is None else self.log.lines
            self.saver.save()

    def _write(self, event: str, record: dict[str, Any]) -> None:
        if self.log is not None:
            self.log.write(event, record)


class _Clock:
    """Examples in the time since it was made."""

    def __init__(self) -> None:
        self.examples = 0
        self._since = time.perf_counter()

    def speed(self) -> dict[str, float]:
        if not self.examples:
            return {}
        seconds = time.perf_counter() - self._since
        return {"examples_per_second": round(self.examples / max(seconds, 1e-9), 1)}
