"""Which devices there are, and which is better than which."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from burn.plugins import BackendEntry, DeviceInfo, describe, install_hint, registry

__all__ = ["nothing_there", "ranked"]

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
    """Every device that is there, best first."""
    preferred = [
        name.strip()
        for name in os.environ.get("BURN_DEVICE_PRIORITY", "").split(",")
        if name.strip()
    ]
    found = [(entry, info) for entry in registry.entries.values() for info in entry.probe()]

    def rank(pair: tuple[BackendEntry, DeviceInfo]) -> tuple[int, int, int, str]:
        entry, info = pair
        wish = len(preferred)
        for place, name in enumerate(preferred):
            if name in (entry.name, f"{entry.name}/{info.type}"):
                wish = place
                break
        return wish, _place(entry, info), -entry.spec.priority, entry.name

    return sorted(found, key=rank)


def _place(entry: BackendEntry, info: DeviceInfo) -> int:
    places = list(_DEFAULT_ORDER)
    for candidate in ((entry.name, info.type), (entry.name, None)):
        if candidate in places:
            return places.index(candidate)
    return places.index(("*", None)) if entry.spec.priority > 0 else len(places)


def nothing_there() -> str:
    """What to do where there is no device."""
    broken: Iterator[str] = (
        f"{plugin.distribution} is broken ({describe(plugin.error)})"
        for plugin in registry.plugins
        if plugin.error is not None
    )
    return ". ".join(["Install a backend, such as burn-cpu. " + install_hint("cpu"), *broken])
