"""What a plugin declares: its hooks, and a BackendSpec for each backend that it brings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pluggy

from burn.backend import Backend
from burn.dtype import DType, DTypeUsage
from burn.errors import PluginError
from burn.plugins._hints import newer_core_hint, newer_plugin_hint
from burn.plugins.api_changes import API_VERSION

if TYPE_CHECKING:
    import click

__all__ = [
    "GROUP",
    "BackendSpec",
    "DeviceInfo",
    "Hooks",
    "check_devices",
    "check_name",
    "check_spec",
    "hookimpl",
    "hookspec",
]

GROUP: Final = "burn"
"""Entry point group, and name of the pluggy project."""

_MAX_DEVICE_TYPES: Final = 256
"""Device types that a backend can have: a type id has 8 bits."""

_MAX_DEVICES_OF_TYPE: Final = 65536
"""Devices that there can be of one type: an index has 16 bits."""

hookspec: Final = pluggy.HookspecMarker(GROUP)
hookimpl: Final = pluggy.HookimplMarker(GROUP)


@dataclass(frozen=True)
class DeviceInfo:
    """What a probe knows of one device without the library that computes on it.

    Attributes
    ----------
    type : str
        One of the backend's device types.
    index : int
        Number among the devices of that type.
    hardware : str
        Name of the hardware.
    memory : int or None
        Bytes of memory, where known.
    driver : str
        Name and version of the driver, where there is one.
    usage : dict of DType to DTypeUsage, or None
        What it can do with each dtype; None where only the loaded library can tell.
    fork_safe : bool
        Of a device that `BackendSpec.parse` found: what `BackendSpec.fork_safe` says of others.
    """

    type: str
    index: int
    hardware: str
    memory: int | None = None
    driver: str = ""
    usage: Mapping[DType, DTypeUsage] | None = None
    fork_safe: bool = False


@dataclass(frozen=True)
class BackendSpec:
    """What a plugin declares of a backend.

    Attributes
    ----------
    name : str
        How users spell it: ``"cuda"``. An identifier in lower case.
    load : callable
        Imports the heavy library and returns the `Backend`. Called once, when it is needed.
    probe : callable
        Returns a `DeviceInfo` for each device that is really there, without the heavy library. It
        runs in a thread of its own and is given up after some seconds. Where there is none it may
        raise a `DeviceUnavailableError` that says why, on one line.
    device_types : tuple of str
        Types of devices in order of preference. A type's index is its type id.
    priority : int or mapping of str to int
        Third-party devices are preferred by this number, higher first: with one above 0 they come
        before the CPU, with 0 or less after it. A mapping has a number for each device type, as
        ``{"gpu": 10}``, where all other types have 0.
    api_version : tuple of int
        The `API_VERSION` the plugin was written for, as numbers: who does not say has written it
        for the first one, whatever version the core has that it meets.
    fork_safe : tuple of str
        Device types that a process may go on using where it was forked after the backend was
        loaded. No driver of a GPU survives that; memory and threads of the host may.
    libraries : tuple of str
        Array libraries whose arrays belong with this backend, by the names of their top-level
        modules: a tensor that is made of such an array is on the backend's device there.
    parse : callable, optional
        Of a backend whose devices are known by their names alone, such as those of other backends:
        from what follows ``name/`` in the spelling of a device, as ``"torch/cpu:0"``, to the
        device. Its type need not be a device type; it is spelled ``name/type:index``.
    """

    name: str
    load: Callable[[], Backend]
    probe: Callable[[], list[DeviceInfo]]
    device_types: tuple[str, ...]
    priority: int | Mapping[str, int] = 0
    api_version: tuple[int, int] = (0, 1)
    fork_safe: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    parse: Callable[[str], DeviceInfo] | None = None


class Hooks:
    """The hooks that a plugin may implement."""

    @hookspec
    def burn_backends(self) -> list[BackendSpec]:  # type: ignore[empty-body]  # a specification
        """Backends that the plugin brings."""

    @hookspec
    def burn_commands(self) -> list[click.Command]:  # type: ignore[empty-body]  # likewise
        """Commands to add to the program ``burn``.

        They are found by name; ``burn --help`` lists burn's own, as it imports no plugin.
        """

    @hookspec
    def burn_samples(self) -> None:
        """Import the modules that attach samples to ops (`burn.testing.reference`).

        Called by `burn.testing.load_samples`.
        """


def check_name(spec: Any) -> None:
    """Refuse what is no spec, or has a name that no user could write.

    Raises
    ------
    PluginError
        With what is wrong.
    """
    if not isinstance(spec, BackendSpec):
        raise PluginError(
            f"burn_backends() returned {_shown(spec)} among the backends",
            hint="It returns a list of BackendSpecs",
        )
    if not _is_word(spec.name) or not spec.name.islower():
        raise PluginError(
            f"a backend has the name {_shown(spec.name)}",
            hint="It must be an identifier in lower case",
        )


def check_spec(spec: BackendSpec, distribution: str) -> None:
    """Refuse a spec with which nothing can be done.

    Raises
    ------
    PluginError
        With what is wrong; if that is the version of the plugin API, with how to get another one.
    """
    name = spec.name
    _check_version(spec, distribution)
    for what, function in (("load", spec.load), ("probe", spec.probe), ("parse", spec.parse)):
        if not callable(function) and (what, function) != ("parse", None):
            raise PluginError(f"backend {name!r}: {what} is {_shown(function)}, not a function")
    types = spec.device_types
    if (
        not isinstance(types, (tuple, list))
        or not (spec.parse is None) <= len(types) <= _MAX_DEVICE_TYPES
        or not all(map(_is_word, types))
        or len(set(types)) < len(types)
    ):
        raise PluginError(
            f"backend {name!r}: device_types is {_shown(types)}",
            hint=f"It must be 1 to {_MAX_DEVICE_TYPES} different identifiers, best first",
        )
    if not isinstance(spec.fork_safe, (tuple, list)) or not set(spec.fork_safe) <= set(types):
        raise PluginError(
            f"backend {name!r}: fork_safe is {_shown(spec.fork_safe)}",
            hint=f"It must name some of its device types: {', '.join(types)}",
        )
    if not isinstance(spec.libraries, (tuple, list)) or not all(map(_is_word, spec.libraries)):
        raise PluginError(
            f"backend {name!r}: libraries is {_shown(spec.libraries)}",
            hint='It must name top-level modules, such as ("torch",)',
        )
    _check_priority(spec)


def _check_priority(spec: BackendSpec) -> None:
    priority = spec.priority
    if isinstance(priority, Mapping):
        is_valid = set(priority) <= set(spec.device_types)
        is_valid = is_valid and all(map(_is_integer, priority.values()))
    else:
        is_valid = _is_integer(priority)
    if not is_valid:
        raise PluginError(
            f"backend {spec.name!r}: priority is {_shown(priority)}",
            hint="It must be an integer, or a mapping of its device types "
            f"({', '.join(spec.device_types)}) to integers",
        )


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_version(spec: BackendSpec, distribution: str) -> None:
    try:
        major, minor = spec.api_version
        if not (isinstance(major, int) and isinstance(minor, int)):
            raise TypeError
    except (TypeError, ValueError):
        raise PluginError(
            f"backend {spec.name!r}: api_version is {_shown(spec.api_version)}",
            hint=f"Write the two numbers of the plugin API it was written for: {API_VERSION}",
        ) from None
    if major == API_VERSION[0] and minor <= API_VERSION[1]:
        return
    newer = (major, minor) > API_VERSION
    raise PluginError(
        f"backend {spec.name!r} was written for plugin API {major}.{minor}, "
        f"and this burn-core has {API_VERSION[0]}.{API_VERSION[1]}",
        hint=newer_core_hint() if newer else newer_plugin_hint(distribution),
    )


def check_devices(spec: BackendSpec, found: Any) -> list[DeviceInfo]:
    """What a probe returned, in the backend's order.

    Raises
    ------
    PluginError
        If it is not a list of different devices of the backend's types.
    """
    if not isinstance(found, (list, tuple)):
        raise PluginError(
            f"the probe of {spec.name!r} returned {_shown(found)}",
            hint="It returns a list of DeviceInfos",
        )
    seen = set()
    for info in found:
        if not isinstance(info, DeviceInfo):
            raise PluginError(
                f"the probe of {spec.name!r} returned {_shown(info)} among the devices",
                hint="It returns a list of DeviceInfos",
            )
        if info.type not in spec.device_types:
            raise PluginError(
                f"the probe of {spec.name!r} found a device of type {_shown(info.type)}",
                hint=f"The backend declares {', '.join(spec.device_types)}",
            )
        if not isinstance(info.index, int) or not 0 <= info.index < _MAX_DEVICES_OF_TYPE:
            raise PluginError(
                f"the probe of {spec.name!r} found a device with index {_shown(info.index)}",
                hint=f"Indices go from 0 to {_MAX_DEVICES_OF_TYPE - 1}",
            )
        if (info.type, info.index) in seen:
            raise PluginError(
                f"the probe of {spec.name!r} found {info.type}:{info.index} twice",
                hint="Each device of a type has an index of its own",
            )
        seen.add((info.type, info.index))
    order = list(spec.device_types)
    return sorted(found, key=lambda info: (order.index(info.type), info.index))


def _is_word(name: object) -> bool:
    return isinstance(name, str) and name.isascii() and name.isidentifier()


def _shown(value: object) -> str:
    """A value in a message, which is to stay on one line."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # noqa: BLE001 — a plugin's object may do anything
        return f"an object of type {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:77]}..."
