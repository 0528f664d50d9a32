"""What is there: devices, the default among them, and plugins that bring none.

It is taken from what plugins say without the libraries they compute with; no backend is loaded.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from burn.device import Device
from burn.errors import BurnError
from burn.plugins import BackendEntry, PluginRecord, describe, install_hint, registry

__all__ = ["Failure", "Inventory", "take"]


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
    """

    plugin: PluginRecord
    name: str
    reason: str


@dataclass(frozen=True)
class Inventory:
    """What is there.

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


def take() -> Inventory:
    """Look for everything that is there."""
    entries = list(registry.entries.values())
    present = {entry.name: entry.probe() for entry in entries}
    working = [entry for entry in entries if entry.error is None]
    devices = Device.enumerate()
    default, choice = _choose()
    failures = [
        Failure(plugin, plugin.name, describe(plugin.error))
        for plugin in registry.plugins
        if plugin.error is not None
    ]
    failures += [
        Failure(entry.plugin, entry.name, describe(entry.error))
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
