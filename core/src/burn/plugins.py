"""Plugins: what they declare, how they are found, and the registry of backends.

A plugin is a distribution with an entry point in the group ``burn`` that names a light module. The
module implements the hook `burn_backends` and returns a `BackendSpec` for each backend it brings.
Nothing heavy is imported until a backend is asked for.

Every plugin is looked at on its own, so that a broken one costs the others nothing: what it raised
is kept, with its traceback, and shown to whoever asks for its backend.
"""

from __future__ import annotations

import enum
import importlib.metadata
import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pluggy
from packaging.utils import canonicalize_name

from burn.backend import Backend
from burn.device_id import BACKEND_IDS, FIRST_FOREIGN_ID
from burn.dtype import DType, DTypeUsage
from burn.errors import BurnError, DeviceUnavailableError, PluginError

__all__ = [
    "API_VERSION",
    "INSTALL_HINT",
    "BackendEntry",
    "BackendSpec",
    "DeviceInfo",
    "PluginRecord",
    "Registry",
    "State",
    "hookimpl",
    "hookspec",
    "registry",
]

API_VERSION: Final = (0, 1)
"""Version of the plugin API (major, minor). The major must match; a newer minor is refused."""

GROUP: Final = "burn"
"""Entry point group, and name of the pluggy project."""

INSTALL_HINT: Final = (
    "In a checkout of burn for Python: pip install ./core ./plugins/{distribution}"
)
"""How to install one of our plugins."""

_DISTRIBUTIONS: Final = {
    "cpu": "burn-cpu",
    "cuda": "burn-cuda",
    "opencl": "burn-opencl",
    "torch": "burn-torch",
}
"""Which distribution brings a backend of ours."""

_PROBE_SECONDS: Final = 5.0
"""How long counting the devices of one backend may take; a hanging driver must not hang burn."""

_log = logging.getLogger("burn")

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
    """

    type: str
    index: int
    hardware: str
    memory: int | None = None
    driver: str = ""
    usage: Mapping[DType, DTypeUsage] | None = None


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
        Returns a `DeviceInfo` for each device that is really there, without the heavy library.
    device_types : tuple of str
        Types of devices in order of preference. A type's place is its type id.
    priority : int
        Third-party accelerators are preferred by this number, higher first. Those of 0 or less
        come after the CPU.
    api_version : tuple of int
        The `API_VERSION` the plugin was written for.
    """

    name: str
    load: Callable[[], Backend]
    probe: Callable[[], list[DeviceInfo]]
    device_types: tuple[str, ...]
    priority: int = 0
    api_version: tuple[int, int] = API_VERSION


class _Hooks:
    """The hooks that a plugin may implement."""

    @hookspec
    def burn_backends(self) -> list[BackendSpec]:  # type: ignore[empty-body]  # a specification
        """Backends that the plugin brings."""


class State(enum.Enum):
    """How far a plugin or a backend has come."""

    FAILED = "failed"
    NO_HARDWARE = "no hardware"
    READY = "ready"
    LOADED = "loaded"


@dataclass
class PluginRecord:
    """A plugin as it was found.

    Attributes
    ----------
    name : str
        Name of its entry point.
    distribution, version : str
        Where it comes from.
    error : BaseException or None
        Why it cannot be used.
    """

    name: str
    distribution: str
    version: str
    error: BaseException | None = None


@dataclass
class BackendEntry:
    """A backend that a plugin, or the running process, brought."""

    spec: BackendSpec
    backend_id: int
    plugin: PluginRecord
    error: BaseException | None = None
    backend: Backend | None = None
    devices: list[DeviceInfo] | None = None
    lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    @property
    def name(self) -> str:
        """Name of the backend."""
        return self.spec.name

    @property
    def state(self) -> State:
        """How far the backend has come; counts its devices."""
        if self.backend is not None:
            return State.LOADED
        devices = self.probe()
        if self.error is not None:
            return State.FAILED
        return State.READY if devices else State.NO_HARDWARE

    def probe(self) -> list[DeviceInfo]:
        """Devices that are there, in the backend's order; none if the backend has failed."""
        with self.lock:
            if self.devices is None:
                self.devices = self._probe()
            return [] if self.error is not None else self.devices

    def _probe(self) -> list[DeviceInfo]:
        result: list[DeviceInfo] = []
        failure: list[BaseException] = []

        def run() -> None:
            try:
                found = list(self.spec.probe())
                order = self.spec.device_types
                result.extend(sorted(found, key=lambda info: (order.index(info.type), info.index)))
            except BaseException as error:  # noqa: BLE001 — whatever a driver does is its failure
                failure.append(error)

        thread = threading.Thread(target=run, name=f"burn-probe-{self.name}", daemon=True)
        thread.start()
        thread.join(_PROBE_SECONDS)
        if thread.is_alive():
            self.error = PluginError(
                f"looking for devices of {self.name!r} took over {_PROBE_SECONDS:g} s",
                hint="Its driver does not answer",
            )
            return []
        if failure:
            self.error = failure[0]
            return []
        return result

    def load(self) -> Backend:
        """The backend, loaded once.

        Raises
        ------
        PluginError
            If it cannot be loaded, now or earlier; its cause is what the plugin raised.
        """
        with self.lock:
            if self.backend is not None:
                return self.backend
            if self.error is None:
                try:
                    backend = self.spec.load()
                    if not isinstance(backend, Backend):
                        raise PluginError(f"load() returned {backend!r}, which is no burn Backend")
                except (Exception, SystemExit) as error:  # noqa: BLE001 — kept and shown, not lost
                    self.error = error
                else:
                    self.backend = backend
                    return backend
            raise PluginError(
                f"backend {self.name!r} of {self.plugin.distribution} cannot be used: "
                f"{describe(self.error)}",
                hint="`burn devices` lists what works",
            ) from self.error


def describe(error: BaseException) -> str:
    """Write an exception on one line."""
    text = " ".join(str(error).split())
    if isinstance(error, BurnError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class Registry:
    """The backends of this process: found on first use, once, and again after `refresh`."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._plugins: list[PluginRecord] = []
        self._entries: dict[str, BackendEntry] | None = None
        self._in_process: list[BackendSpec] = []

    @property
    def plugins(self) -> list[PluginRecord]:
        """Every plugin that was found, broken ones included, in the order of their names."""
        self._discover()
        return self._plugins

    @property
    def entries(self) -> dict[str, BackendEntry]:
        """Every backend by its name, in the order of the names."""
        return self._discover()

    def refresh(self) -> None:
        """Look for plugins again at the next use; loaded backends stay loaded."""
        with self._lock:
            if self._entries is not None:
                loaded = {
                    name: entry
                    for name, entry in self._entries.items()
                    if entry.backend is not None
                }
                self._entries = None
                self._discover(loaded)

    def register(self, spec: BackendSpec) -> None:
        """Add a backend in the running process.

        Raises
        ------
        PluginError
            If its name is taken, or the spec is not valid.
        """
        with self._lock:
            _check_spec(spec)
            if spec.name in self.entries:
                raise PluginError(
                    f"a backend {spec.name!r} is there already, "
                    f"from {self.entries[spec.name].plugin.distribution}",
                    hint="Choose another name",
                )
            self._in_process.append(spec)
            self.refresh()

    def unregister(self, name: str) -> None:
        """Take a backend that was added with `register` out again."""
        with self._lock:
            self._in_process = [spec for spec in self._in_process if spec.name != name]
            self.entries.pop(name, None)

    def entry(self, name: str) -> BackendEntry:
        """The backend of a name that somebody asked for.

        Raises
        ------
        DeviceUnavailableError
            If there is none; the message says what to install, or what there is.
        PluginError
            If its plugin is broken.
        """
        entry = self.entries.get(name)
        if entry is not None:
            return entry
        for plugin in self.plugins:
            if plugin.name == name and plugin.error is not None:
                raise PluginError(
                    f"the plugin of {name!r} ({plugin.distribution} {plugin.version}) is broken: "
                    f"{describe(plugin.error)}",
                    hint="`burn devices` lists what works",
                ) from plugin.error
        if name in _DISTRIBUTIONS:
            raise DeviceUnavailableError(
                f"{name!r} is provided by {_DISTRIBUTIONS[name]}, which is not installed",
                hint=install_hint(name),
            )
        there = ", ".join(self.entries) or "none"
        raise DeviceUnavailableError(f"there is no backend {name!r}", hint=f"Installed: {there}")

    def by_id(self, backend_id: int) -> BackendEntry | None:
        """The backend with an id, or None."""
        for entry in self.entries.values():
            if entry.backend_id == backend_id:
                return entry
        return None

    def _discover(
        self, loaded: Mapping[str, BackendEntry] | None = None
    ) -> dict[str, BackendEntry]:
        if self._entries is not None:
            return self._entries
        with self._lock:
            if self._entries is None:
                found = [(spec, plugin) for plugin, specs in self._scan() for spec in specs]
                process = PluginRecord("(this process)", "(this process)", "")
                found += [(spec, process) for spec in self._in_process]
                self._entries = _number(found, loaded or {})
            return self._entries

    def _scan(self) -> list[tuple[PluginRecord, list[BackendSpec]]]:
        """Ask each plugin on its own; what one does wrong is noted in its record."""
        allowed = _names_in("BURN_PLUGINS")
        denied = _names_in("BURN_DISABLE_PLUGINS") or set()
        strict = os.environ.get("BURN_STRICT_PLUGINS", "") not in ("", "0")
        result = []
        for point in _entry_points():
            if point.name in denied or (allowed is not None and point.name not in allowed):
                continue
            distribution = point.dist
            record = PluginRecord(
                point.name,
                distribution.name if distribution else "unknown",
                distribution.version if distribution else "",
            )
            specs: list[BackendSpec] = []
            try:
                specs = _specs_of(point)
            except (Exception, SystemExit) as error:
                if strict:
                    raise
                record.error = error
                _log.info("plugin %s is broken: %s", point.name, describe(error))
            result.append((record, specs))
        self._plugins = [record for record, _ in result]
        return result


def _entry_points() -> Iterator[importlib.metadata.EntryPoint]:
    """Entry points of our group, by name; of a distribution found twice the first one counts."""
    seen = set()
    points = importlib.metadata.entry_points(group=GROUP)
    for point in sorted(points, key=lambda point: point.name):
        owner = canonicalize_name(point.dist.name) if point.dist else ""
        if (owner, point.name) not in seen:
            seen.add((owner, point.name))
            yield point


def _specs_of(point: importlib.metadata.EntryPoint) -> list[BackendSpec]:
    """Import the module of an entry point and call its hook, apart from all others."""
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(_Hooks)
    manager.register(point.load(), name=point.name)
    manager.check_pending()
    specs: list[BackendSpec] = []
    for answer in manager.hook.burn_backends():
        specs.extend(answer)
    for spec in specs:
        _check_spec(spec)
    return specs


def _check_spec(spec: Any) -> None:
    if not isinstance(spec, BackendSpec):
        raise PluginError(f"burn_backends() returned {spec!r}", hint="It returns BackendSpecs")
    if not (spec.name.isidentifier() and spec.name.islower()):
        raise PluginError(
            f"backend name {spec.name!r}", hint="It must be an identifier in lower case"
        )
    if not spec.device_types:
        raise PluginError(f"backend {spec.name!r} declares no device types")
    major, minor = spec.api_version
    if major != API_VERSION[0] or minor > API_VERSION[1]:
        raise PluginError(
            f"backend {spec.name!r} was written for plugin API {major}.{minor}, "
            f"and this burn-core has {API_VERSION[0]}.{API_VERSION[1]}",
            hint="Install versions of burn-core and of the plugin that belong together",
        )


def _number(
    found: list[tuple[BackendSpec, PluginRecord]], loaded: Mapping[str, BackendEntry]
) -> dict[str, BackendEntry]:
    """Give every backend its id. Of two that claim one name neither is used."""
    entries: dict[str, BackendEntry] = {}
    next_id = FIRST_FOREIGN_ID
    for spec, plugin in sorted(found, key=lambda pair: pair[0].name):
        other = entries.get(spec.name)
        if other is not None:
            other.error = PluginError(
                f"{other.plugin.distribution} and {plugin.distribution} both claim the name "
                f"{spec.name!r}",
                hint="Uninstall one, or block one with BURN_DISABLE_PLUGINS",
            )
            continue
        backend_id = BACKEND_IDS.get(spec.name)
        if backend_id is None:
            backend_id, next_id = next_id, next_id + 1
        entry = BackendEntry(spec, backend_id, plugin)
        earlier = loaded.get(spec.name)
        if earlier is not None and earlier.spec.load == spec.load:
            entry = earlier
        entries[spec.name] = entry
    return entries


def _names_in(variable: str) -> set[str] | None:
    value = os.environ.get(variable)
    return None if value is None else {name.strip() for name in value.split(",") if name.strip()}


def install_hint(name: str) -> str:
    """How to install the distribution that brings a backend of ours."""
    return INSTALL_HINT.format(distribution=_DISTRIBUTIONS[name])


registry: Final = Registry()
"""The registry of this process."""
