"""Attempt: a call into a plugin in a daemon thread, with a time limit.

Plugins may sleep and drivers may hang. When the time is up, the thread is left running. The time
counts from the start of the thread, not of the wait: attempts that start together end together,
however many of them hang.

Python runs the handlers of signals in the main thread alone. So a KeyboardInterrupt that the call
raises is the plugin's own, and its failure; one in the thread that waits for it is Ctrl-C.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Generic, TypeVar

from burn.errors import ArgumentError, PluginError
from burn.locks import new_lock
from burn.plugins._streams import Streams, kept_open

__all__ = ["VARIABLE", "Attempt", "OverdueError", "time_limit"]

VARIABLE: Final = "BURN_PROBE_SECONDS"

_DEFAULT_LIMIT_SECONDS: Final = 3.0
"""Time limit for a plugin that the program did not name: it shall not wait long for that."""

_NAMED_LIMIT_SECONDS: Final = 10.0
"""Time limit for a plugin that the program names. A sleeping driver takes seconds to wake up."""

_MAX_LIMIT_SECONDS: Final = 86_400.0
"""The longest time limit that ``BURN_PROBE_SECONDS`` may set: a day."""

_T = TypeVar("_T")


class OverdueError(PluginError):
    """A plugin exceeded its time limit."""


def time_limit(*, is_asked_for: bool = False) -> float:
    """Seconds that a plugin may take to be imported, and a backend to find its devices.

    Parameters
    ----------
    is_asked_for : bool
        Whether the user named it.

    Raises
    ------
    ArgumentError
        If ``BURN_PROBE_SECONDS`` is no positive number.
    """
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return _NAMED_LIMIT_SECONDS if is_asked_for else _DEFAULT_LIMIT_SECONDS
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0.0 < seconds <= _MAX_LIMIT_SECONDS:
        raise ArgumentError(
            f"{VARIABLE}={text} is no number of seconds",
            hint="It says how long importing a plugin, and looking for devices, may take; "
            f"{_DEFAULT_LIMIT_SECONDS:g} if it is not set",
        )
    return seconds


class Attempt(Generic[_T]):
    """One call of a function, in a daemon thread.

    Parameters
    ----------
    work : callable
        The function.
    name : str
        Name of the thread.
    """

    def __init__(self, work: Callable[[], _T], name: str) -> None:
        self._work = work
        self._name = name
        self._lock = new_lock()
        self._done = threading.Event()
        self._started: float | None = None
        self._thread: threading.Thread | None = None
        self._streams: Streams | None = None
        self._results: list[_T] = []
        self._error: BaseException | None = None
        self._traceback: TracebackType | None = None

    @property
    def is_done(self) -> bool:
        """Whether the call has ended."""
        return self._done.is_set()

    @property
    def is_pending(self) -> bool:
        """Whether the call was started and has not ended."""
        return self._started is not None and not self._done.is_set()

    @property
    def is_this_thread(self) -> bool:
        """Whether the current thread is the one that makes the call."""
        return self._thread is threading.current_thread()

    def start(self) -> None:
        """Start the thread, unless it was started before."""
        with self._lock:
            if self._started is not None:
                return
            self._started = time.monotonic()
            try:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            except RuntimeError as error:  # the system has no more threads
                self._error = error
                self._done.set()

    def wait(self, seconds: float) -> bool:
        """Wait until `seconds` after the start, and return whether the call has ended."""
        remaining = (self._started or 0.0) + seconds - time.monotonic()
        is_done = self._done.wait(max(remaining, 0.0))
        if not is_done and self._streams is not None:
            self._streams.put_back()  # the program goes on
        return is_done

    def result(self) -> _T:
        """The result of the call, which must have ended.

        Raises
        ------
        BaseException
            What it raised.
        """
        if self._error is not None:
            raise self._error
        return self._results[0]

    def raised(self, error: BaseException) -> bool:
        """Whether the call raised this exception, and not the thread that waited for it."""
        return error is self._error

    def forget_callers(self) -> None:
        """Drop the frames of those who asked for the result: what they hold would live on."""
        if self._error is not None:
            self._error.__traceback__ = self._traceback

    def _run(self) -> None:
        try:
            with kept_open(f"a plugin ({self._name})") as self._streams:
                self._results.append(self._work())
        except BaseException as error:  # noqa: BLE001 — raised again where the result is asked for
            self._error, self._traceback = error, error.__traceback__
        finally:
            self._done.set()
