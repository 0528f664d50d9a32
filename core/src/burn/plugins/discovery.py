"""Discovery: from the entry points of installed distributions to what they declare.

Every plugin is looked at on its own, so that a broken one costs the others nothing: what it raised
is kept, with its traceback, in its record.
"""

from __future__ import annotations

import importlib.metadata
import logging
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pluggy
from packaging.utils import canonicalize_name

from burn.errors import PluginError
from burn.plugins.entry import PluginRecord, raise_if_strict
from burn.plugins.hints import describe
from burn.plugins.specification import GROUP, BackendSpec, Hooks, check_name

__all__ = ["Scan", "scan"]

_log = logging.getLogger("burn")


@dataclass(frozen=True)
class Scan:
    """What there was when plugins were looked for.

    Attributes
    ----------
    plugins : list of PluginRecord
        Every plugin, broken ones included, by name and then by distribution.
    blocked : list of (PluginRecord, str)
        Plugins that were not looked at, and the environment variable that says so, with its value.
    """

    plugins: list[PluginRecord]
    blocked: list[tuple[PluginRecord, str]]


def scan() -> Scan:
    """Ask each plugin on its own; what one does wrong is noted in its record.

    Raises
    ------
    BaseException
        With ``BURN_STRICT_PLUGINS``, the first thing that a plugin raised.
    """
    result = Scan([], [])
    for point in _entry_points():
        name, version = _origin(point)
        record = PluginRecord(point.name, name, version, entry_point=point.value)
        reason = _blocked(record)
        if reason:
            result.blocked.append((record, reason))
            continue
        result.plugins.append(record)
        try:
            record.specs = tuple(_specs_of(point, record))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 — whatever a plugin does is its failure
            record.error = error
        if record.error is not None:
            raise_if_strict(record.error, record)
            _log.info("plugin %r of %s: %s", point.name, record, describe(record.error))
    return result


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
    """Why a plugin is not to be looked at: a variable and its value."""
    own = {record.name, canonicalize_name(record.distribution)}
    for variable, wanted in (("BURN_DISABLE_PLUGINS", False), ("BURN_PLUGINS", True)):
        value = os.environ.get(variable)
        if value is not None:
            named = {name.strip() for name in value.split(",")}
            named |= {canonicalize_name(name) for name in named}
            if bool(own & named) != wanted:
                return f"{variable}={value}"
    return ""


def _specs_of(point: importlib.metadata.EntryPoint, record: PluginRecord) -> list[BackendSpec]:
    """Import the module of an entry point and call its hook, apart from all others.

    What is no backend that could be called by a name is left out, and noted in the record.
    """
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
    record.hooks = manager.hook
    if not manager.hook.burn_backends.get_hookimpls():
        return []
    answers = manager.hook.burn_backends()  # one, or none if it is None
    if not answers or not isinstance(answers[0], (list, tuple)):
        kind = type(answers[0]).__name__ if answers else "NoneType"
        raise PluginError(
            f"burn_backends() returned an object of type {kind}",
            hint="It returns a list of BackendSpecs",
        )
    specs = []
    for spec in answers[0]:
        try:
            check_name(spec)
        except PluginError as error:
            _log.warning("a backend of %s is skipped: %s", record, error)
            record.error = record.error or error
        else:
            specs.append(spec)
    return specs
