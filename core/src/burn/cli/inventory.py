"""Inventory: the devices of this machine, the default device, and plugins without devices.

It comes from the probes of plugins; no backend is loaded unless `load` is true.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass

from burn.devices import Device
from burn.dtype import DType, DTypeUsage
from burn.errors import BurnError, DeviceUnavailableError, PluginError
from burn.plugins import BackendEntry, PluginRecord, State, describe, install_hint, registry

__all__ = ["Failure", "Inventory", "Row", "plugin_rows", "take", "usage_of"]


@dataclass(frozen=True)
class Failure:
    """A plugin, or one backend of it, that cannot be used.

    Attributes
    ----------
    plugin : PluginRecord
        Where it comes from.
    name : str
        The backend; the plugin's entry point where it did not get as far as declaring one.
    reason : str
        What went wrong, on one line.
    error : BaseException
        The same, with its traceback.
    """

    plugin: PluginRecord
    name: str
    reason: str
    error: BaseException


@dataclass(frozen=True)
class Inventory:
    """The devices and plugins that were found.

    Attributes
    ----------
    devices : list of Device
        In the order in which a default is chosen.
    default : Device or None
        What ``Device.default()`` gives, provided that its backend can be loaded.
    choice : str
        Why it is that one, or why there is none.
    idle : list of BackendEntry
        Backends that find no hardware.
    failures : list of Failure
        Plugins and backends that cannot be used.
    restrictions : list of str
        Environment variables that keep plugins out, as ``NAME=value``.
    hint : str
        How to install a backend.
    """

    devices: list[Device]
    default: Device | None
    choice: str
    idle: list[BackendEntry]
    failures: list[Failure]
    restrictions: list[str]
    hint: str


def take(*, load: bool = False) -> Inventory:
    """Find all devices and plugins.

    Parameters
    ----------
    load : bool
        Load the backends that have devices, for what only they can tell; one that cannot be
        loaded is a failure.
    """
    present = registry.probe()
    entries = list(registry.entries.values())
    if load:
        for entry in entries:
            if present[entry.name]:
                with contextlib.suppress(PluginError):  # the entry keeps it
                    entry.load()
    working = [entry for entry in entries if entry.error is None]
    devices = Device.enumerate()
    default, choice = _choose()
    failures = [
        Failure(plugin, plugin.name, _reason(plugin, plugin.error), plugin.error)
        for plugin in registry.plugins
        if plugin.error is not None
    ]
    failures += [
        Failure(entry.plugin, entry.name, _reason(entry.plugin, entry.error), entry.error)
        for entry in entries
        if entry.error is not None
    ]
    return Inventory(
        devices=devices,
        default=default,
        choice=choice,
        idle=[entry for entry in working if not present[entry.name]],
        failures=sorted(failures, key=lambda failure: failure.name),
        restrictions=[
            f"{variable}={os.environ[variable]}"
            for variable in ("BURN_PLUGINS", "BURN_DISABLE_PLUGINS")
            if variable in os.environ
        ],
        hint=install_hint("cpu"),
    )


@dataclass(frozen=True)
class Row:
    """A plugin with one of its backends, or with none.

    Attributes
    ----------
    plugin : PluginRecord
        The plugin.
    entry : BackendEntry or None
        The backend; None where the plugin did not get as far as declaring one.
    state : str
        ``"failed"``, ``"no hardware"``, ``"ready"``, ``"loaded"`` or ``"blocked"``.
    devices : int or None
        How many devices the backend has; None where it could not be asked.
    reason : str or None
        What went wrong, or what keeps the plugin out, on one line.
    error : BaseException or None
        What was raised, with its traceback.
    """

    plugin: PluginRecord
    entry: BackendEntry | None
    state: str
    devices: int | None = None
    reason: str | None = None
    error: BaseException | None = None


def plugin_rows() -> list[Row]:
    """Every plugin that is installed, in the order of their names."""
    present = registry.probe()
    rows = []
    for plugin in registry.plugins:
        rows += [
            _row(registry.entries[spec.name], plugin, len(present[spec.name]))
            for spec in plugin.specs
        ]
        if plugin.error is not None:
            reason = _reason(plugin, plugin.error)
            rows.append(Row(plugin, None, State.FAILED.value, reason=reason, error=plugin.error))
    rows += [
        Row(plugin, None, "blocked", reason=f"kept out by {reason}")
        for plugin, reason in registry.blocked
    ]
    of_plugins = {spec.name for plugin in registry.plugins for spec in plugin.specs}
    rows += [
        _row(entry, entry.plugin, len(present[name]))
        for name, entry in registry.entries.items()
        if name not in of_plugins
    ]
    return sorted(rows, key=lambda row: (row.plugin.name, row.plugin.distribution))


def _row(entry: BackendEntry, plugin: PluginRecord, devices: int) -> Row:
    state, error = entry.state.value, entry.error
    if error is None:
        return Row(plugin, entry, state, devices)
    return Row(plugin, entry, state, reason=_reason(plugin, error), error=error)


def _reason(plugin: PluginRecord, error: BaseException) -> str:
    """What went wrong on one line, with what to do about a module or a name that is missing."""
    text, advice = describe(error), plugin.advice_about(error)
    return f"{text}. {advice}" if advice else text


def usage_of(device: Device) -> Mapping[DType, DTypeUsage] | None:
    """What a device can do with each dtype; None if only its library could tell."""
    if device.entry.backend is not None:
        with contextlib.suppress(DeviceUnavailableError):  # it cannot be opened
            return {dtype: device.dtype_usage(dtype) for dtype in DType.members()}
    return device.info.usage


def _choose() -> tuple[Device | None, str]:
    """The default device, without loading its backend as ``Device.default()`` would."""
    try:
        preferred = Device.preferred()
    except BurnError as error:
        return None, error.rule
    for variable in ("BURN_DEVICE", "BURN_DEVICE_PRIORITY"):
        if os.environ.get(variable):
            return preferred, f"{variable}={os.environ[variable]}"
    return preferred, "the best that is there"
