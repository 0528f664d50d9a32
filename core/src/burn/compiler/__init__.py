"""Compilation: passes over a program, its fusion into kernels, and what runs it on a device."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

_MODULES: Final = {
    "disk_cache": ("DiskCache",),
    "executable": ("Executable", "compiled"),
    "explain": ("explained",),
    "fusion": ("fuses", "planned"),
    "library_folders": ("library_folder",),
    "memory": ("Arena", "packed"),
    "passes": ("lowered", "simplified"),
    "plan": ("Check", "KernelCall", "Plan", "Target"),
    "replay": ("Replay",),
    "straight": ("Straight",),
}
"""Where names stand. A module is imported when one of its names is used."""

__all__ = [
    "Arena",
    "Check",
    "DiskCache",
    "Executable",
    "KernelCall",
    "Plan",
    "Replay",
    "Straight",
    "Target",
    "compiled",
    "explained",
    "fuses",
    "library_folder",
    "lowered",
    "packed",
    "planned",
    "simplified",
]

if TYPE_CHECKING:
    from burn.compiler.disk_cache import DiskCache as DiskCache
    from burn.compiler.executable import Executable as Executable, compiled as compiled
    from burn.compiler.explain import explained as explained
    from burn.compiler.fusion import fuses as fuses, planned as planned
    from burn.compiler.library_folders import library_folder as library_folder
    from burn.compiler.memory import Arena as Arena, packed as packed
    from burn.compiler.passes import lowered as lowered, simplified as simplified
    from burn.compiler.plan import (
        Check as Check,
        KernelCall as KernelCall,
        Plan as Plan,
        Target as Target,
    )
    from burn.compiler.replay import Replay as Replay
    from burn.compiler.straight import Straight as Straight
else:

    def __getattr__(name: str) -> Any:
        for module, names in _MODULES.items():
            if name in names:
                value = getattr(importlib.import_module(f"burn.compiler.{module}"), name)
                globals()[name] = value
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
