"""The order of the devices that are present: the best one is the default."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final, TypeAlias

from burn.plugins import BackendEntry, DeviceInfo, describe, install_hint, registry

__all__ = ["Rank", "failures", "nothing_there", "rank", "ranked", "spellings"]

Rank: TypeAlias = tuple[int, int, int, str]
"""Index in ``BURN_DEVICE_PRIORITY``, index in the default order, declared priority, name."""

_BEST: Final[Rank] = (-1, 0, 0, "")

_DEFAULT_ORDER: Final = (
    ("cuda", None),
    ("metal", None),
    ("rocm", None),
    ("vulkan", None),
    ("webgpu", None),
    ("wgpu", None),
    ("opencl", "gpu"),
    ("torch", "cuda"),
    ("torch", "mps"),
    ("*", None),  # accelerators of third parties
    ("cpu", None),
    ("torch", "cpu"),
    ("opencl", "cpu"),
)


def ranked() -> list[tuple[BackendEntry, DeviceInfo]]:
    """Every device that is present, best first."""
    entries = registry.entries
    present = registry.probe(entries)
    found = [(entries[name], info) for name, devices in present.items() for info in devices]
    preferred = _preferred()
    return sorted(found, key=lambda pair: _rank(preferred, pair[0], pair[1].type, pair[1].index))


def failures() -> list[tuple[Rank, str]]:
    """Why plugins and backends failed, by the rank of the best device that each might have had."""
    preferred = _preferred()
    found = [
        (min(_rank(preferred, entry, type_, 0) for type_ in _types(entry)), entry.name, entry.error)
        for entry in registry.entries.values()
    ]
    # The backends of a plugin that failed are unknown.
    found += [(_BEST, plugin.distribution, plugin.error) for plugin in registry.plugins]
    return [(rank, f"{name}: {describe(error)}") for rank, name, error in found if error]


def rank(entry: BackendEntry, info: DeviceInfo) -> Rank:
    """The rank of a device: lower is better."""
    return _rank(_preferred(), entry, info.type, info.index)


def spellings(entry: BackendEntry, type_: str, index: int) -> set[str]:
    """What names a device: its backend, its type there, and itself."""
    names = {entry.name, f"{entry.name}/{type_}", f"{entry.name}/{type_}:{index}"}
    return names | {f"{entry.name}:{index}"} if len(entry.spec.device_types) == 1 else names


def _types(entry: BackendEntry) -> list[str]:
    """Device types of a backend that failed, perhaps because this is what it gets wrong."""
    types = entry.spec.device_types
    found = [name for name in types if isinstance(name, str)] if types.__class__ is tuple else []
    return found or [""]


def _preferred() -> list[str]:
    """Device types that ``BURN_DEVICE_PRIORITY`` lists."""
    names = os.environ.get("BURN_DEVICE_PRIORITY", "").split(",")
    return [name.strip() for name in names if name.strip()]


def _rank(preferred: list[str], entry: BackendEntry, type_: str, index: int) -> Rank:
    own = spellings(entry, type_, index)
    indices = [index for index, name in enumerate(preferred) if name in own]
    wish = min(indices, default=len(preferred))
    return wish, _default_index(entry, type_), -_priority(entry, type_), entry.name


def _priority(entry: BackendEntry, type_: str) -> int:
    """The declared priority; 0 of a backend that failed, perhaps because it gets this wrong."""
    declared = entry.spec.priority
    number = declared.get(type_, 0) if isinstance(declared, Mapping) else declared
    return number if isinstance(number, int) else 0


def _default_index(entry: BackendEntry, type_: str) -> int:
    for candidate in ((entry.name, type_), (entry.name, None)):
        if candidate in _DEFAULT_ORDER:
            return _DEFAULT_ORDER.index(candidate)
    if _priority(entry, type_) > 0:
        return _DEFAULT_ORDER.index(("*", None))
    return len(_DEFAULT_ORDER)


def nothing_there() -> str:
    """A hint for a machine without a device."""
    kept_out = sorted({f"{reason} keeps plugins out" for _, reason in registry.blocked})
    broken = [f"broken: {reason}" for _, reason in failures()]
    hint = f"Install a backend, such as burn-cpu. {install_hint('cpu')}"
    # What is broken or kept out is the cause: another backend is the way round it.
    return ". ".join([*broken, *kept_out, hint])
