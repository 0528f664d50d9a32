"""Plugins: what they declare, how they are found, and the registry of backends.

A plugin is a distribution with an entry point in the group ``burn`` that names a light module. The
module implements the hook `burn_backends` and returns a `BackendSpec` for each backend it brings.
Nothing heavy is imported until a backend is asked for.

Every plugin is looked at on its own, so that a broken one costs the others nothing: what it raised
is kept, with its traceback, and shown when its backend is asked for.
"""

from burn.plugins._entry import BackendEntry, PluginRecord, State, raise_if_strict
from burn.plugins._hints import INSTALL_HINT, describe, install_hint
from burn.plugins.api_changes import API_VERSION
from burn.plugins.processor import memory_size, processor_name
from burn.plugins.registration import (
    Registry,
    refresh_plugins,
    register_backend,
    registered,
    registry,
)
from burn.plugins.specification import BackendSpec, DeviceInfo, hookimpl, hookspec

__all__ = [
    "API_VERSION",
    "INSTALL_HINT",
    "BackendEntry",
    "BackendSpec",
    "DeviceInfo",
    "PluginRecord",
    "Registry",
    "State",
    "describe",
    "hookimpl",
    "hookspec",
    "install_hint",
    "memory_size",
    "processor_name",
    "raise_if_strict",
    "refresh_plugins",
    "register_backend",
    "registered",
    "registry",
]


def __dir__() -> list[str]:
    return __all__
