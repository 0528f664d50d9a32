"""Discovery: from the entry points of installed distributions to what they declare.

Every plugin is looked at on its own, so that a broken one costs the others nothing: what it raised
is kept, with its traceback, in its record.
"""

from __future__ import annotations

import importlib.metadata
import logging
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pluggy
from packaging.utils import canonicalize_name

from burn.errors import ArgumentError, PluginError
from burn.plugins._attempt import VARIABLE, Attempt, OverdueError, time_limit
from burn.plugins._entry import PluginRecord, raise_if_strict
from burn.plugins._hints import describe, owner_of
from burn.plugins.specification import GROUP, BackendSpec, Hooks, check_name

__all__ = ["Discovery", "discover", "is_discovering", "wait_longer"]

_log = logging.getLogger("burn")

_SECONDS_BEFORE_NEXT_IMPORT: Final = 0.1
"""Seconds to wait for an import before the next plugin is imported beside it."""

_FALLBACK_LIMIT_SECONDS: Final = 10.0
"""Time limit of an import where ``BURN_PROBE_SECONDS`` is invalid."""


@dataclass(frozen=True)
class Discovery:
    """The result of one discovery of plugins.

    Attributes
    ----------
    plugins : list of PluginRecord
        Every plugin, broken ones included, by name and then by distribution.
    blocked : list of (PluginRecord, str)
        Plugins that were skipped, and the environment variable that excludes them, with its value.
    """

    plugins: list[PluginRecord]
    blocked: list[tuple[PluginRecord, str]]


@dataclass(frozen=True)
class _Declaration:
    """What the module of a plugin declares.

    Attributes
    ----------
    hooks : object
        The pluggy caller of its hooks.
    specs : list of BackendSpec
        Its valid backends.
    refused : PluginError or None
        The error of the first backend that was left out.
    """

    hooks: Any
    specs: list[BackendSpec]
    refused: PluginError | None


_this_thread: Final = threading.local()


def is_discovering() -> bool:
    """Whether the current thread imports a plugin for a discovery."""
    return getattr(_this_thread, "is_discovering", False)


def discover(
    known: Sequence[PluginRecord] = (), *, asked_for: str = "", ours: str = ""
) -> Discovery:
    """Discover plugins, each on its own; an error is kept in the record of its plugin.

    Plugins are imported one after the other. One that takes long is imported beside the others,
    and left out when its time is up.

    Parameters
    ----------
    known : sequence of PluginRecord
        Plugins that are not discovered again.
    asked_for : str
        Name of a backend that the user asked for: its plugin may take longer.
    ours : str
        Only the plugin that brings this one of burn's own backends.

    Raises
    ------
    BaseException
        With ``BURN_STRICT_PLUGINS``, the first thing that a plugin raised.
    """
    result = Discovery([], [])
    new: list[PluginRecord] = []
    asked = {(record.name, record.distribution): record for record in known}
    for point in _entry_points():
        name, version = _origin(point)
        if ours and not (point.name == ours and canonicalize_name(name) == owner_of(ours)):
            continue
        record = PluginRecord(point.name, name, version, entry_point=point.value)
        reason = _blocked(record)
        if reason:
            result.blocked.append((record, reason))
            continue
        record = asked.get((record.name, record.distribution), record)
        result.plugins.append(record)
        if record not in known:
            work = partial(_declared, point, record)
            record.attempt = Attempt(work, name=f"burn-import-{point.name}")
            record.attempt.start()
            record.attempt.wait(_SECONDS_BEFORE_NEXT_IMPORT)
            new.append(record)
    for record in new:
        _record_declaration(record, is_asked_for=record.name == asked_for)
    return result


def wait_longer(record: PluginRecord) -> None:
    """Wait longer for a plugin that was left out: the user asks for its backend by name."""
    _record_declaration(record, is_asked_for=True)


def _record_declaration(record: PluginRecord, *, is_asked_for: bool) -> None:
    """Put the backends that a plugin declares into its record, or its error."""
    attempt: Attempt[_Declaration] = record.attempt
    try:
        limit = time_limit(is_asked_for=is_asked_for)
    except ArgumentError:  # the probe of each backend says so
        limit = _FALLBACK_LIMIT_SECONDS
    try:
        if not attempt.wait(limit):
            raise OverdueError(
                f"importing it took over {limit:g} s",
                hint=f"{VARIABLE}={6 * limit:g} waits longer, and "
                f"BURN_DISABLE_PLUGINS={record.name} does not wait",
            )
        declared = attempt.result()
    except BaseException as error:  # whatever a plugin does is its failure
        if isinstance(error, KeyboardInterrupt) and not attempt.raised(error):
            raise  # Ctrl-C
        record.error = error
    else:
        record.hooks = declared.hooks
        record.specs = tuple(declared.specs)
        record.error = declared.refused
    finally:
        attempt.forget_callers()
    if record.error is not None:
        raise_if_strict(record.error, record)
        is_late = isinstance(record.error, OverdueError) and not is_asked_for
        level = logging.WARNING if is_late else logging.INFO
        _log.log(level, "plugin %r of %s: %s", record.name, record, describe(record.error))


def _entry_points() -> list[importlib.metadata.EntryPoint]:
    """Entry points of our group, by name; of a distribution found twice the first one counts."""
    try:
        points: Iterable[importlib.metadata.EntryPoint] = importlib.metadata.entry_points(
            group=GROUP
        )
    except Exception:  # noqa: BLE001 — one file that cannot be read, of whatever distribution
        points = _one_by_one()
    return sorted(points, key=lambda point: (point.name, *_origin(point)))


def _one_by_one() -> Iterator[importlib.metadata.EntryPoint]:
    """Entry points of our group of the distributions whose metadata can be read."""
    seen = set()
    for distribution in importlib.metadata.distributions():
        try:
            name = canonicalize_name(distribution.metadata["Name"])
            points = [point for point in distribution.entry_points if point.group == GROUP]
        except Exception as error:  # noqa: BLE001 — nothing says that it is a plugin
            _log.warning("metadata of a distribution cannot be read: %s", describe(error))
            continue
        if name not in seen:
            seen.add(name)
            yield from points


def _origin(point: importlib.metadata.EntryPoint) -> tuple[str, str]:
    """Name and version of the distribution that an entry point is from, as far as it says."""
    try:
        distribution: Any = point.dist
        return str(distribution.name or "unknown"), str(distribution.version or "")
    except Exception:  # noqa: BLE001 — its metadata may be damaged, or gone
        return "unknown", ""


def _blocked(record: PluginRecord) -> str:
    """The environment variable that excludes a plugin, with its value; "" for none."""
    own = {record.name, canonicalize_name(record.distribution)}
    for variable, wanted in (("BURN_DISABLE_PLUGINS", False), ("BURN_PLUGINS", True)):
        value = os.environ.get(variable)
        if value is not None:
            named = {name.strip() for name in value.split(",")}
            named |= {canonicalize_name(name) for name in named}
            if bool(own & named) != wanted:
                return f"{variable}={value}"
    return ""


def _declared(point: importlib.metadata.EntryPoint, record: PluginRecord) -> _Declaration:
    """Import the module of an entry point and call its hook, apart from all others.

    A backend without a valid name is left out.
    """
    _this_thread.is_discovering = True  # the thread ends with this call
    if not point.name.isidentifier():
        _log.warning("plugin %r of %s is skipped: its name is no identifier", point.name, record)
        raise PluginError(
            f"the entry point {point.name!r} is skipped: its name is no identifier",
            hint="Rename it in the plugin's pyproject.toml",
        )
    plugin = point.load()
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(Hooks)
    manager.register(plugin, name=point.name)
    manager.check_pending()
    if not manager.get_hookcallers(plugin):
        raise PluginError(
            f"{point.value} has none of burn's hooks",
            hint="Write burn_backends(), with @burn.plugins.hookimpl above it",
        )
    if not manager.hook.burn_backends.get_hookimpls():
        return _Declaration(manager.hook, [], None)
    answers = manager.hook.burn_backends()  # one, or none if it is None
    if not answers or not isinstance(answers[0], (list, tuple)):
        kind = type(answers[0]).__name__ if answers else "NoneType"
        raise PluginError(
            f"burn_backends() returned an object of type {kind}",
            hint="It returns a list of BackendSpecs",
        )
    specs, refused = [], None
    for spec in answers[0]:
        try:
            check_name(spec)
            _check_owner(spec, record)
        except PluginError as error:
            _log.warning("a backend of %s is skipped: %s", record, error)
            refused = refused or error
        else:
            specs.append(spec)
    return _Declaration(manager.hook, specs, refused)


def _check_owner(spec: BackendSpec, record: PluginRecord) -> None:
    """Refuse a third-party backend that has the name of one of burn's own backends.

    Raises
    ------
    PluginError
        If the name is kept for another distribution.
    """
    owner = owner_of(spec.name)
    if owner is not None and canonicalize_name(record.distribution) != owner:
        raise PluginError(
            f"{record.distribution} claims the name {spec.name!r}, which belongs to {owner}",
            hint=f"Its backend needs another name; pip uninstall {record.distribution} removes it",
        )
