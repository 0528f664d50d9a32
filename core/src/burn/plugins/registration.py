"""Registry: the backends of this process, those of plugins and those that it registered itself."""

from __future__ import annotations

import contextlib
import importlib
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from packaging.utils import canonicalize_name

from burn.device_id import BACKEND_IDS, FIRST_FOREIGN_ID
from burn.errors import DeviceUnavailableError, PluginError
from burn.plugins._attempt import OverdueError
from burn.plugins._discovery import Discovery, discover, is_discovering, wait_longer
from burn.plugins._entry import (
    IN_PROCESS,
    BackendEntry,
    PluginRecord,
    is_strict,
    raise_if_strict,
)
from burn.plugins._hints import DISTRIBUTIONS, WORKING_HINT, describe, install_hint, owner_of
from burn.plugins._streams import kept_open
from burn.plugins.specification import BackendSpec, DeviceInfo, check_name, check_spec

__all__ = ["Registry", "refresh_plugins", "register_backend", "registered", "registry"]

_MAX_BACKEND_ID: Final = 255

_Claim: TypeAlias = tuple[BackendSpec, PluginRecord]
"""A backend, and the plugin that declares it."""


@dataclass(frozen=True)
class _Found:
    """The plugins and backends; replaced as a whole, so that no thread sees half of it."""

    discovery: Discovery
    entries: Mapping[str, BackendEntry]


class Registry:
    """The backends of this process: found on first use, once, and again after `refresh`.

    A program that names one of burn's own backends waits for no other plugin: only the plugin of
    that backend is imported, until the program asks for more.

    There are two locks. The registry's is held while plugins are discovered, which imports their
    light modules; an entry's is held while its backend is loaded. A thread that holds the first
    never waits for the second.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._found: _Found | None = None
        self._early: dict[str, BackendEntry] = {}
        """Backends of burn's own that were asked for by name before the discovery of plugins."""
        self._in_process: dict[str, BackendSpec] = {}
        self._built_in: dict[str, BackendEntry] = {}
        self._process = PluginRecord(IN_PROCESS, IN_PROCESS, "")
        self._gone: dict[tuple[str, str], BackendEntry] = {}
        """Backends whose plugins are not found any more, by name and distribution: if they come
        back, a backend that was loaded need not be loaded twice."""
        self.generation = 0
        """Number that changes whenever the set of backends may have changed."""

    @property
    def plugins(self) -> list[PluginRecord]:
        """Every plugin that was found, broken ones included, in the order of their names."""
        return list(self._discover().discovery.plugins)

    @property
    def blocked(self) -> list[tuple[PluginRecord, str]]:
        """Plugins that ``BURN_PLUGINS`` or ``BURN_DISABLE_PLUGINS`` excludes, and which of them."""
        return list(self._discover().discovery.blocked)

    @property
    def entries(self) -> Mapping[str, BackendEntry]:
        """Every backend by its name, in the order of the names."""
        return self._discover().entries

    def refresh(self) -> None:
        """Discover plugins again. Loaded backends stay loaded, and devices stay valid."""
        with self._lock:
            importlib.invalidate_caches()
            if self._found is not None or self._early:
                self._rediscover()

    def build_in(self, spec: BackendSpec) -> None:
        """Add a backend of the core itself: it is found by its name, and listed nowhere."""
        record = PluginRecord(spec.name, "burn-core", "")
        self._built_in[spec.name] = BackendEntry(spec, BACKEND_IDS[spec.name], record)

    def register(self, spec: BackendSpec) -> None:
        """Add a backend in the running process.

        Raises
        ------
        PluginError
            If its name is taken, or the spec is not valid.
        """
        check_name(spec)
        check_spec(spec, IN_PROCESS)
        with self._lock:
            found = self._discover()
            there = self._built_in.get(spec.name) or found.entries.get(spec.name)
            if there is not None:
                raise PluginError(
                    f"a backend {spec.name!r} is there already, from {there.plugin}",
                    hint="Choose another name",
                )
            self._update_entries(found.discovery, self._in_process | {spec.name: spec})

    def unregister(self, name: str) -> None:
        """Take a backend that was added with `register` out again. Its tensors live on.

        Raises
        ------
        PluginError
            If no such backend was added.
        """
        with self._lock:
            if name not in self._in_process:
                raise PluginError(f"no backend {name!r} was registered in this process")
            kept = {spec.name: spec for spec in self._in_process.values() if spec.name != name}
            self._update_entries(self._discover().discovery, kept)

    def entry(self, name: str) -> BackendEntry:
        """The backend of a name that the user gave.

        Raises
        ------
        DeviceUnavailableError
            If there is none; the message says what to install, or what there is.
        PluginError
            If its plugin is broken.
        """
        entry = self._built_in.get(name)
        if entry is None and self._found is None:
            entry = self._entry_of_own(name)
        if entry is not None:
            return entry
        found = self._discover(asked_for=name)
        if name not in found.entries:
            found = self._wait_longer(found, name)
        entry = found.entries.get(name)
        if entry is not None:
            return entry
        for plugin in found.discovery.plugins:
            if plugin.error is not None and _brings(plugin, name):
                raise PluginError(
                    f"the plugin of {name!r} ({plugin}) is broken: {describe(plugin.error)}",
                    hint=plugin.advice or WORKING_HINT,
                ) from plugin.error
        for plugin, reason in found.discovery.blocked:
            if _brings(plugin, name):
                raise DeviceUnavailableError(
                    f"the plugin of {name!r} ({plugin}) is kept out by {reason}",
                    hint="Change the variable, and call burn.refresh_plugins()",
                )
        if name in DISTRIBUTIONS:
            raise DeviceUnavailableError(
                f"{name!r} is provided by {DISTRIBUTIONS[name]}, which is not installed",
                hint=install_hint(name),
            )
        there = ", ".join(found.entries) or "none"
        broken = ", ".join(
            str(plugin) for plugin in found.discovery.plugins if plugin.error is not None
        )
        raise DeviceUnavailableError(
            f"there is no backend {name!r}",
            hint=f"Installed: {there}" + (f". Broken: {broken}" if broken else ""),
        )

    def by_id(self, backend_id: int) -> BackendEntry | None:
        """The backend with an id, or None."""
        for entry in (*self._built_in.values(), *self._early.values()):
            if entry.backend_id == backend_id:
                return entry
        return next(
            (entry for entry in self.entries.values() if entry.backend_id == backend_id), None
        )

    def probe(
        self, entries: Mapping[str, BackendEntry] | None = None
    ) -> dict[str, list[DeviceInfo]]:
        """Devices of every backend by its name; all are looked for at the same time."""
        entries = self.entries if entries is None else entries
        for entry in entries.values():
            entry.start_probe()
        return {name: entry.probe() for name, entry in entries.items()}

    def ask(self, hook: str) -> list[tuple[PluginRecord, Any]]:
        """Call a hook of all plugins that implement it, each on its own; return the results.

        An exception is kept in the record of its plugin, unless there is one already.
        """
        answers = []
        for plugin in self.plugins:
            try:
                with kept_open(f"the plugin {plugin}"):
                    found = getattr(plugin.hooks, hook)() if plugin.hooks is not None else []
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 — whatever a plugin does is its failure
                plugin.error = plugin.error or error
                raise_if_strict(error, plugin)
            else:
                answers += [(plugin, answer) for answer in found]
        return answers

    def after_fork(self) -> None:
        """Make a child process independent of what other threads of its parent were doing."""
        self._lock = threading.RLock()
        known = self._early if self._found is None else self._found.entries
        for entry in (*self._built_in.values(), *known.values()):
            entry.after_fork()

    def _entry_of_own(self, name: str) -> BackendEntry | None:
        """One of burn's own backends, without discovery; None if its plugin must be discovered."""
        if name not in DISTRIBUTIONS or is_strict():
            return None
        _refuse_plugins()
        with self._lock:
            entry = self._early.get(name)
            if entry is not None or self._found is not None:
                return entry
            plugins = discover(asked_for=name, ours=name).plugins
            claims = [
                (spec, plugin) for plugin in plugins for spec in plugin.specs if spec.name == name
            ]
            if len(claims) != 1:
                return None
            entry = BackendEntry(claims[0][0], BACKEND_IDS[name], claims[0][1])
            self._early = {**self._early, name: entry}
            return entry

    def _discover(self, *, asked_for: str = "") -> _Found:
        found = self._found
        if found is not None:
            return found
        _refuse_plugins()
        with self._lock:
            if self._found is None:
                known = [entry.plugin for entry in self._early.values()]
                self._rediscover(known, asked_for=asked_for)
            return self._found  # type: ignore[return-value]  # set by _rediscover

    def _wait_longer(self, found: _Found, name: str) -> _Found:
        """Wait longer for an overdue plugin that the user named; the entries after that."""
        with self._lock:
            for plugin in found.discovery.plugins:
                if isinstance(plugin.error, OverdueError) and _brings(plugin, name):
                    wait_longer(plugin)
                    self._update_entries(found.discovery, self._in_process)
            return self._found or found

    def _rediscover(self, known: Sequence[PluginRecord] = (), *, asked_for: str = "") -> None:
        """Discover plugins, except the `known` ones; the caller holds the lock."""
        self._update_entries(
            discover(known, asked_for=asked_for), self._in_process, is_new=True, known=known
        )
        self._early = {}

    def _update_entries(
        self,
        found: Discovery,
        in_process: dict[str, BackendSpec],
        *,
        is_new: bool = False,
        known: Sequence[PluginRecord] = (),
    ) -> None:
        """Make an entry with an id for each declared backend; the caller holds the lock.

        After a new discovery (`is_new`), backends that failed before are tried again, except those
        of the `known` plugins.
        """
        claims: dict[str, list[_Claim]] = {}
        for plugin in found.plugins:
            for spec in plugin.specs:
                claims.setdefault(spec.name, []).append((spec, plugin))
        for spec in in_process.values():
            claims.setdefault(spec.name, []).append((spec, self._process))
        before = self._early if self._found is None else self._found.entries
        taken = {entry.backend_id for name, entry in before.items() if name in claims}
        entries: dict[str, BackendEntry] = {}
        for name in sorted(claims):
            spec, plugin = claims[name][0]
            entry = before.get(name) or self._entry_of(spec, plugin, taken)
            taken.add(entry.backend_id)
            if (is_new and plugin not in known) or entry.spec is not spec:
                entry.renew(spec, plugin)
            claimants = [plugin_record for _, plugin_record in claims[name]]
            if name in self._built_in:
                claimants.append(self._built_in[name].plugin)
            entry.conflict = _conflict(name, claimants)
            if is_new and entry.error is not None:
                raise_if_strict(entry.error, plugin)
            entries[name] = entry
        for name, entry in before.items():
            if name not in entries and entry.plugin is not self._process:
                self._gone[name, entry.plugin.distribution] = entry
        self._in_process = in_process
        self._found = _Found(found, MappingProxyType(entries))
        self.generation += 1

    def _entry_of(self, spec: BackendSpec, plugin: PluginRecord, taken: set[int]) -> BackendEntry:
        """Entry of a name that was not known before, or has come back."""
        entry = self._gone.get((spec.name, plugin.distribution))
        if entry is None:
            return BackendEntry(spec, _free_id(spec.name, taken), plugin)
        if entry.backend_id in taken:  # another backend has its number
            entry.backend_id = _free_id(spec.name, taken)
        return entry


def _free_id(name: str, taken: set[int]) -> int:
    """Id of a backend: the fixed one, or for a third-party backend the first free one, or -1."""
    free = (
        number for number in range(FIRST_FOREIGN_ID, _MAX_BACKEND_ID + 1) if number not in taken
    )
    return BACKEND_IDS[name] if name in BACKEND_IDS else next(free, -1)


def _conflict(name: str, plugins: list[PluginRecord]) -> PluginError | None:
    """The error for a name that several plugins claim; None for one."""
    if len(plugins) == 1:
        return None
    distributions = list(dict.fromkeys(plugin.distribution for plugin in plugins))
    who = " and ".join(distributions)
    if len(distributions) == 1:
        return PluginError(
            f"{who} claims the name {name!r} {len(plugins)} times",
            hint="Each of its backends needs a name of its own",
        )
    return PluginError(
        f"{who} both claim the name {name!r}"
        if len(distributions) == 2
        else f"{who} all claim the name {name!r}",
        hint="Uninstall all but one, or name those in BURN_DISABLE_PLUGINS",
    )


def _brings(plugin: PluginRecord, name: str) -> bool:
    """Whether a plugin that declared nothing brings a backend, judged by their names."""
    owner = owner_of(name)
    return plugin.name == name if owner is None else canonicalize_name(plugin.distribution) == owner


def _refuse_plugins() -> None:
    """Refuse a call from a plugin during the discovery of plugins: it would start another one.

    Raises
    ------
    PluginError
        If the current thread imports a plugin for a discovery.
    """
    if is_discovering():
        raise PluginError(
            "a plugin asked for devices while plugins were being looked for",
            hint="Its module, and burn_backends(), only declare what there is",
        )


registry: Final = Registry()
"""The registry of this process."""

if hasattr(os, "register_at_fork"):  # POSIX
    os.register_at_fork(after_in_child=registry.after_fork)


def refresh_plugins() -> None:
    """Look for plugins again, after one was installed, removed, or its driver repaired.

    Backends that are loaded stay loaded, and run the code that was imported. What failed before is
    tried again.

    Examples
    --------
    >>> import burn
    >>> burn.refresh_plugins()
    """
    registry.refresh()


def register_backend(spec: BackendSpec) -> None:
    """Add a backend to the running process, for as long as it runs.

    Parameters
    ----------
    spec : BackendSpec
        The backend, as a plugin would declare it.

    Raises
    ------
    PluginError
        If its name is taken, or the spec is not valid.

    See Also
    --------
    registered : the same for the time of a ``with`` statement.
    """
    registry.register(spec)


class registered(contextlib.ContextDecorator):  # noqa: N801 — used like a function
    """Context in which the process has one backend more. It also decorates functions.

    Tensors of the backend may outlive it; no new ones can be made then.

    Parameters
    ----------
    spec : BackendSpec
        The backend, as a plugin would declare it.

    Raises
    ------
    PluginError
        If its name is taken, or the spec is not valid.

    Examples
    --------
    >>> import burn
    >>> from burn.testing import mock_backend
    >>> with burn.registered(mock_backend("mock")):
    ...     burn.ones(2, device="mock").tolist()
    [1.0, 1.0]
    """

    def __init__(self, spec: BackendSpec) -> None:
        check_name(spec)
        check_spec(spec, IN_PROCESS)
        self._spec = spec

    def __enter__(self) -> BackendEntry:
        registry.register(self._spec)
        return registry.entries[self._spec.name]

    def __exit__(self, *exception: object) -> None:
        registry.unregister(self._spec.name)
