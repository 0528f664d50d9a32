"""Compilation: passes over a program, its fusion into kernels, and what runs it on a device."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

__all__ = ["Executable", "compiled"]

_MODULE: Final = "burn.compiler.executable"
"""Imported when a program is compiled."""

if TYPE_CHECKING:
    from burn.compiler.executable import Executable, compiled
else:

    def __getattr__(name: str) -> Any:
        if name in __all__:
            return getattr(importlib.import_module(_MODULE), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
