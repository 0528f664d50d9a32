"""Probe: counting the devices of one backend, for no longer than a time limit."""

from __future__ import annotations

from burn.errors import PluginError
from burn.plugins._attempt import VARIABLE, Attempt, OverdueError, time_limit
from burn.plugins.specification import BackendSpec, DeviceInfo, check_devices

__all__ = ["Probe"]


class Probe:
    """One look for the devices of a backend.

    Parameters
    ----------
    spec : BackendSpec
        The backend.
    """

    def __init__(self, spec: BackendSpec) -> None:
        self._name = spec.name

        def look() -> list[DeviceInfo]:
            time_limit()  # an invalid limit is an error for fast probes too
            return check_devices(spec, spec.probe())

        self._attempt = Attempt(look, name=f"burn-probe-{spec.name}")

    @property
    def is_pending(self) -> bool:
        """Whether the probe was started and has not ended."""
        return self._attempt.is_pending

    def start(self) -> None:
        """Start the probe, unless it was started before."""
        self._attempt.start()

    def raised(self, error: BaseException) -> bool:
        """Whether the probe raised this exception, and not the thread that waited for it."""
        return self._attempt.raised(error)

    def forget_callers(self) -> None:
        """Drop the frames of those who asked for the result of a probe that failed."""
        self._attempt.forget_callers()

    def result(self, *, is_asked_for: bool = False) -> list[DeviceInfo]:
        """The devices, in the backend's order. Starts the probe if needed, and waits for it.

        Parameters
        ----------
        is_asked_for : bool
            Whether the user named the backend: it may take longer then.

        Raises
        ------
        OverdueError
            If the time is up.
        ArgumentError
            If the time limit is none.
        PluginError
            If what the probe returned makes no sense.
        BaseException
            What the probe raised.
        """
        if self._attempt.is_done:
            return self._attempt.result()
        limit = time_limit(is_asked_for=is_asked_for)
        self.start()
        if self._attempt.is_this_thread:
            raise PluginError(
                f"the probe of {self._name!r} asked for the devices of {self._name!r}",
                hint="It finds them without burn.Device",
            )
        if not self._attempt.wait(limit):
            raise OverdueError(
                f"looking for devices of {self._name!r} took over {limit:g} s",
                hint=f"Its driver does not answer; {VARIABLE}={6 * limit:g} waits longer",
            )
        return self._attempt.result()
