"""Probe: counting the devices of one backend, for no longer than a time limit.

A driver may hang. Its probe therefore runs in a daemon thread, which is left alone when its time is
up. The time runs from the start of the probe, not from when somebody waits for it: probes that
are started together are over together, however many of them hang.
"""

from __future__ import annotations

import math
import os
import threading
import time
from typing import Final

from burn.errors import ArgumentError, PluginError
from burn.plugins.specification import BackendSpec, DeviceInfo, check_devices

__all__ = ["Probe", "time_limit"]

_VARIABLE: Final = "BURN_PROBE_SECONDS"

_SECONDS: Final = 10.0
"""How long a probe may take where nobody says. Drivers that sleep take seconds to wake up."""

_MOST_SECONDS: Final = 86_400.0


def time_limit() -> float:
    """Seconds that a probe may take.

    Raises
    ------
    ArgumentError
        If ``BURN_PROBE_SECONDS`` is no positive number.
    """
    text = os.environ.get(_VARIABLE, "").strip()
    if not text:
        return _SECONDS
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0.0 < seconds <= _MOST_SECONDS:
        raise ArgumentError(
            f"{_VARIABLE}={text} is no number of seconds",
            hint=f"It says how long looking for devices may take; {_SECONDS:g} if it is not set",
        )
    return seconds


class Probe:
    """One look for the devices of a backend.

    Parameters
    ----------
    spec : BackendSpec
        The backend.
    """

    def __init__(self, spec: BackendSpec) -> None:
        self._spec = spec
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._limit = 0.0
        self._deadline: float | None = None
        self._thread: threading.Thread | None = None
        self._devices: list[DeviceInfo] = []
        self._error: BaseException | None = None

    @property
    def is_pending(self) -> bool:
        """Whether it was started and has not come to an end."""
        return self._deadline is not None and not self._done.is_set()

    def start(self) -> None:
        """Begin to look, unless somebody has begun."""
        with self._lock:
            if self._deadline is not None:
                return
            try:
                self._limit = time_limit()
                self._deadline = time.monotonic() + self._limit
                name = f"burn-probe-{self._spec.name}"
                self._thread = threading.Thread(target=self._run, name=name, daemon=True)
                self._thread.start()
            except (ArgumentError, RuntimeError) as error:  # or the system has no more threads
                self._deadline = time.monotonic()
                self._error = error
                self._done.set()

    def result(self) -> list[DeviceInfo]:
        """The devices, in the backend's order. Starts the probe if nobody has, and waits for it.

        Raises
        ------
        PluginError
            If the time is up, or what the probe returned makes no sense.
        BaseException
            What the probe raised.
        """
        if self._done.is_set() and self._error is None:
            return self._devices
        self.start()
        if self._thread is threading.current_thread():
            raise PluginError(
                f"the probe of {self._spec.name!r} asked for the devices of {self._spec.name!r}",
                hint="It finds them without burn.Device",
            )
        remaining = (self._deadline or 0.0) - time.monotonic()
        if not self._done.wait(max(remaining, 0.0)):
            raise PluginError(
                f"looking for devices of {self._spec.name!r} took over {self._limit:g} s",
                hint=f"Its driver does not answer; {_VARIABLE}={6 * self._limit:g} waits longer",
            )
        if self._error is not None:
            raise self._error
        return self._devices

    def _run(self) -> None:
        try:
            self._devices = check_devices(self._spec, self._spec.probe())
        except BaseException as error:  # noqa: BLE001 — raised again where the result is asked for
            self._error = error
        finally:
            self._done.set()
