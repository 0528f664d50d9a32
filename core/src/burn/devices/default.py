"""The default device: the chosen one, or else the best one that is present and works.

A choice of the running program comes first, that for the current thread or asyncio task before
that for the process; then ``BURN_DEVICE``; then the order of `burn.devices.ranking`.
"""

from __future__ import annotations

import logging
import os
from contextvars import ContextVar
from typing import Any, Final, TypeAlias, TypeVar

from burn.devices.ranking import failures, nothing_there, rank
from burn.errors import BurnError, DeviceUnavailableError
from burn.plugins import describe, raise_if_strict, registry

__all__ = [
    "asked",
    "chosen",
    "default",
    "enter",
    "fallbacks",
    "leave",
    "preferred",
    "set_for_process",
]

_log = logging.getLogger("burn")

_Device = TypeVar("_Device")
"""`burn.devices.Device`, which imports this module."""

_Circumstances: TypeAlias = tuple[int, str, str]
"""What an automatic choice depends on: the known backends, and two environment variables."""

_scoped: Final[ContextVar[tuple[Any, ...]]] = ContextVar("burn_default_device", default=())
"""Devices of the contexts that are open in this thread or task, the innermost last."""

_for_process: Any | None = None

_last: tuple[_Circumstances, Any, tuple[str, ...]] | None = None
"""The last automatic choice: what it depended on, the device, and why better ones failed."""


_asked = 0


def asked() -> int:
    """A number that changes whenever the default device is asked for."""
    return _asked


def enter(device: object) -> None:
    """Make a device the default of the current thread or task until `leave`."""
    _scoped.set((*_scoped.get(), device))


def leave() -> None:
    """Take the last `enter` of the current thread or task back."""
    _scoped.set(_scoped.get()[:-1])


def set_for_process(device: object | None) -> None:
    """Make a device the default of the process; None leaves it to be found."""
    global _for_process  # noqa: PLW0603 — it is one for the process
    _for_process = device


def fallbacks() -> tuple[str, ...]:
    """Better devices that the last automatic choice passed over, and why each failed."""
    return () if _last is None else _last[2]


def default(handles: type[_Device]) -> _Device:
    """The default device, of the class `handles`; see `Device.default`."""
    global _asked, _last  # noqa: PLW0603 — replaced as a whole, so that no thread sees half of it
    _asked += 1
    device: _Device | None = chosen()
    if device is not None:
        return device
    last = _last
    if last is not None and last[0] == _circumstances():
        return last[1]  # type: ignore[no-any-return]  # a device
    passed_over: tuple[str, ...] = ()
    device = _forced(handles)
    if device is None:
        device, passed_over = _best(handles)
    _last = (_circumstances(), device, passed_over)
    return device


def preferred(handles: type[_Device]) -> _Device:
    """The default device if it can be opened; see `Device.preferred`."""
    device: _Device | None = chosen() or _forced(handles)
    if device is not None:
        return device
    devices: list[_Device] = handles.enumerate()  # type: ignore[attr-defined]  # of Device
    if devices:
        return devices[0]
    raise DeviceUnavailableError("there is no device to compute on", hint=nothing_there())


def chosen() -> Any | None:
    """The choice of the running program, for the thread or task or for the process."""
    scoped = _scoped.get()
    return scoped[-1] if scoped else _for_process


def _circumstances() -> _Circumstances:
    return (
        registry.generation,
        os.environ.get("BURN_DEVICE", ""),
        os.environ.get("BURN_DEVICE_PRIORITY", ""),
    )


def _forced(handles: Any) -> Any | None:
    """The device that ``BURN_DEVICE`` names; None if it is not set."""
    name = os.environ.get("BURN_DEVICE", "").strip()
    if not name:
        return None
    try:
        return handles(name)
    except BurnError as error:
        present = ", ".join([device.name for device in handles.enumerate()]) or "none"
        error.rule = f"BURN_DEVICE={name}: {error.rule}"
        error.hint = f"{error.hint}. Devices that are there: {present}".removeprefix(". ")
        raise


def _best(handles: Any) -> tuple[Any, tuple[str, ...]]:
    """The best device that can be opened, and why better ones are passed over."""
    reasons: list[str] = []
    devices = handles.enumerate()
    failed = failures()
    for device in devices:
        entry = device.entry
        entry.check_process(device.type)
        try:
            device.ops  # noqa: B018 — loads the backend and opens the device
        except BurnError as error:
            reasons.append(f"{device.name}: {describe(error.__cause__ or error)}")
            raise_if_strict(error.__cause__ or error, entry.plugin)
            continue
        limit = rank(entry, device.info)
        passed_over = (*[reason for rank_, reason in failed if rank_ < limit], *reasons)
        if passed_over:
            _log.info("the default device is %s; passed over: %s", device, "; ".join(passed_over))
        return device, passed_over
    if not reasons:
        raise DeviceUnavailableError("there is no device to compute on", hint=nothing_there())
    raise DeviceUnavailableError(
        f"no device works: {'; '.join(reasons)}", hint="`burn devices` lists what is there"
    )
