"""The default device: what somebody chose, or else the best one that is there and works.

What was chosen in the running program comes first, for the current thread or asyncio task and then
for the process; then what the environment says; then the order of `burn.ranking`.
"""

from __future__ import annotations

import logging
import os
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, TypeAlias

from burn.devices.ranking import failures, nothing_there, rank
from burn.errors import BurnError, DeviceUnavailableError
from burn.plugins import describe, raise_if_strict, registry

if TYPE_CHECKING:
    from burn.devices.device import Device

__all__ = ["default", "enter", "fallbacks", "leave", "preferred", "set_for_process"]

_log = logging.getLogger("burn")

_Circumstances: TypeAlias = tuple[int, str, str]
"""What an automatic choice depends on: the backends that are known, and two variables."""

_scoped: Final[ContextVar[tuple[Device, ...]]] = ContextVar("burn_default_device", default=())
"""Devices of the contexts that are open in this thread or task, the innermost last."""

_for_process: Device | None = None

_last: tuple[_Circumstances, Device, tuple[str, ...]] | None = None
"""The last automatic choice: when it holds, what it was, and what was passed over."""


def enter(device: Device) -> None:
    """Make a device the default of the current thread or task until `leave`."""
    _scoped.set((*_scoped.get(), device))


def leave() -> None:
    """Take the last `enter` of the current thread or task back."""
    _scoped.set(_scoped.get()[:-1])


def set_for_process(device: Device | None) -> None:
    """Make a device the default of the process; None leaves it to be found."""
    global _for_process  # noqa: PLW0603 — it is one for the process
    _for_process = device


def fallbacks() -> tuple[str, ...]:
    """What the last automatic choice passed over because it failed, and why."""
    return () if _last is None else _last[2]


def default(handles: type[Device]) -> Device:
    """The default device; see `Device.default`."""
    global _last  # noqa: PLW0603 — replaced as a whole, so that no thread sees half of it
    found = _chosen()
    if found is not None:
        return found
    last = _last
    if last is not None and last[0] == _circumstances():
        return last[1]
    found = _forced(handles)
    passed_over: tuple[str, ...] = ()
    if found is None:
        found, passed_over = _best(handles)
    _last = (_circumstances(), found, passed_over)
    return found


def preferred(handles: type[Device]) -> Device:
    """The default device if it can be opened; see `Device.preferred`."""
    found = _chosen() or _forced(handles)
    if found is not None:
        return found
    for device in handles.enumerate():
        return device
    raise DeviceUnavailableError("there is no device to compute on", hint=nothing_there())


def _chosen() -> Device | None:
    """What the running program has chosen, for the thread or task or for the process."""
    scoped = _scoped.get()
    return scoped[-1] if scoped else _for_process


def _circumstances() -> _Circumstances:
    return (
        registry.generation,
        os.environ.get("BURN_DEVICE", ""),
        os.environ.get("BURN_DEVICE_PRIORITY", ""),
    )


def _forced(handles: type[Device]) -> Device | None:
    """The device that ``BURN_DEVICE`` names, or None if it does not."""
    name = os.environ.get("BURN_DEVICE", "").strip()
    if not name:
        return None
    try:
        return handles(name)
    except BurnError as error:
        there = ", ".join([device.name for device in handles.enumerate()]) or "none"
        error.rule = f"BURN_DEVICE={name}: {error.rule}"
        error.hint = f"{error.hint}. Devices that are there: {there}".removeprefix(". ")
        raise


def _best(handles: type[Device]) -> tuple[Device, tuple[str, ...]]:
    """The best device that can be opened, and why better ones are passed over."""
    reasons: list[str] = []
    devices = handles.enumerate()
    failed = failures()
    for device in devices:
        entry = device._entry
        entry.check_process(device.type)
        try:
            device.ops  # noqa: B018 — loads the backend and opens the device
        except BurnError as error:
            reasons.append(f"{device.name}: {describe(error.__cause__ or error)}")
            raise_if_strict(error.__cause__ or error, entry.plugin)
            continue
        limit = rank(entry, device.info)
        passed_over = (*[reason for place, reason in failed if place < limit], *reasons)
        if passed_over:
            _log.info("the default device is %s; passed over: %s", device, "; ".join(passed_over))
        return device, passed_over
    if not reasons:
        raise DeviceUnavailableError("there is no device to compute on", hint=nothing_there())
    raise DeviceUnavailableError(
        f"no device works: {'; '.join(reasons)}", hint="`burn devices` lists what is there"
    )
