"""burn.profile: a context that watches the ops of a program."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter_ns
from typing import TYPE_CHECKING

from burn.devices import forget_plans
from burn.functions.normalize import as_flag
from burn.ops import REGISTRY, Tag
from burn.ops.observing import Event, start, stop

if TYPE_CHECKING:
    from burn.profiling.summary import Summary

__all__ = ["Profile", "profile"]


class Profile:
    """What `burn.profile` finds out; `str` and `print` give its tables.

    Parameters
    ----------
    synchronize : bool
        Whether each call is followed by a wait for its device.

    Attributes
    ----------
    events : list of Event
        Each call, in the order in which they end; see `burn.ops.observing.Event`.
    seconds : float
        How long the context took, without what the profile itself took; 0 until it ends.
    outside : float
        The seconds of these in which the thread of the context ran no op.
    """

    def __init__(self, *, synchronize: bool) -> None:
        self.synchronize = synchronize
        self.events: list[Event] = []
        self.seconds = 0.0
        self.outside = 0.0
        self._thread = threading.get_ident()
        self._start = perf_counter_ns()

    def __repr__(self) -> str:
        return f"<profile of {len(self.events)} calls in {self.seconds:.3g} s>"

    def __str__(self) -> str:
        # rich takes as long to import as all of burn.
        from burn.profiling.tables import text_of

        return text_of(self)

    def record(self, event: Event) -> None:
        """Take an event; op tables call it."""
        self.events.append(event)

    def by_op(self) -> list[Summary]:
        """The sums of each op, and of transfers by their names; the longest first."""
        return self._sums(self.events, lambda event: event.name)

    def by_line(self) -> list[Summary]:
        """The sums of each line of the program, such as ``train.py:12``; the longest first."""
        return self._sums(self.events, lambda event: event.line)

    def by_device(self) -> list[Summary]:
        """The sums of each device; the longest first."""
        return self._sums(self.events, lambda event: event.device)

    def round_trips(self) -> list[Summary]:
        """The sums of ``upload``, ``read`` and ``wait``, also of those within ops.

        A wait is for a shape that depends on values. The bytes of a wait are 0.
        """
        events = [round_trip for event in self.events for round_trip in _round_trips(event)]
        return self._sums(events, lambda event: event.kind)

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write a trace in the format of Chrome, which https://ui.perfetto.dev opens too.

        It has a track for each thread and device, and slices for calls with their parts in them.

        Parameters
        ----------
        path : str or path
            The file, which is replaced.
        """
        from burn.profiling.chrome_trace import write_trace

        with Path(path).open("w", encoding="utf-8") as file:
            write_trace(file, self.events, self._start)

    def _sums(self, events: Sequence[Event], key: Callable[[Event], str]) -> list[Summary]:
        from burn.profiling.summary import summaries

        return summaries(events, key, sum([event.duration for event in self.events]))

    def _end(self) -> None:
        """Take the time at the end of the context."""
        total = perf_counter_ns() - self._start
        own = [event for event in self.events if event.thread[0] == self._thread]
        seconds = (total - sum([event.overhead for event in own])) / 1e9
        self.seconds = seconds
        self.outside = max(0.0, seconds - sum([event.duration for event in own]) / 1e9)


def _round_trips(event: Event) -> list[Event]:
    """The transfers and waits of a call."""
    if event.kind in {"upload", "read", "wait"}:  # its parts are how a router does it
        return [event]
    found = [round_trip for part in event.parts for round_trip in _round_trips(part)]
    definition = REGISTRY.get(event.name)
    if definition is None or Tag.DATA_DEPENDENT not in definition.tags:
        return found
    if any(event.kind in {"read", "wait"} for event in found):
        return found
    return [_wait(event), *found]


def _wait(event: Event) -> Event:
    """The wait of a call for the shape of its output."""
    return dataclasses.replace(event, kind="wait", cost=None)


@contextlib.contextmanager
def profile(
    path: str | os.PathLike[str] | None = None, *, synchronize: bool = True, show: bool = True
) -> Iterator[Profile]:
    """Context that measures each op: time, calls, bytes and floating-point operations.

    At its end it prints tables of ops, of lines of the program, and of devices; and the share of
    the time in which Python ran, not an op. An op counts as the program, or a gradient, calls it;
    what it is made of is in the trace that `path` gets. Ops of all threads are measured. An
    exception ends the profile and is raised.

    Profiles may be nested: each has the calls from its beginning to its end. The context also
    decorates functions. A program runs at full speed before and after: nothing of a profile stays.

    Parameters
    ----------
    path : str or path, optional
        A file for a trace that https://ui.perfetto.dev and Chrome (``chrome://tracing``) show. It
        has a track for each thread and device, and the parts of ops in them.
    synchronize : bool
        Whether to wait for the device after each op. A device that works in the background (a GPU)
        then shows the time of the work, and the program loses what it gains by not waiting. False
        measures how long the calls take.
    show : bool
        Whether to print the tables. `print` of the profile prints them, too.

    Returns
    -------
    context manager
        It gives a `Profile`, which has ``events``, ``by_op()``, ``by_line()``, ``by_device()``,
        ``round_trips()`` and ``to_json(path)``.

    Raises
    ------
    OSError
        If the file of the trace cannot be written: before anything runs.

    Notes
    -----
    The profile takes a few microseconds for each op, which count for no op and for no share. In a
    profile the first call of each op is prepared anew, as in a new process: measure several steps
    of a training.

    Examples
    --------
    >>> import burn
    >>> x = burn.ones((64, 64), device="cpu")
    >>> with burn.profile(show=False) as profile:
    ...     y = x @ x + x
    >>> [(op.name, op.calls, op.flops) for op in sorted(profile.by_op(), key=lambda op: op.name)]
    [('add', 1, 4096), ('matmul', 1, 524288)]
    """
    synchronize = as_flag(synchronize, "synchronize", "profile")
    show = as_flag(show, "show", "profile")
    if path is not None:
        Path(path).touch()
    found = Profile(synchronize=synchronize)
    start(found)
    forget_plans()
    try:
        yield found
    finally:
        found._end()
        stop(found)
        forget_plans()
        if path is not None:
            found.to_json(path)
        if show:
            from burn.profiling.tables import print_profile

            print_profile(found)
