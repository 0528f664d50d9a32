"""burn for Python: one tensor program, any hardware.

``import burn`` imports next to nothing: a name is resolved when it is first used. What there is
stands in `burn.namespace`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from burn.namespace import *  # noqa: F403 — for type checkers; __getattr__ at run time

__version__ = "0.1.0"

__array_api_version__ = "2025.12"


def __getattr__(name: str) -> Any:
    if not name.startswith("_") or name == "__array_namespace_info__":
        # Not "from burn import namespace", which would look for the name here first.
        namespace = importlib.import_module("burn.namespace")
        if name in namespace.__all__:
            value = getattr(namespace, name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'burn' has no attribute {name!r}")


def __dir__() -> list[str]:
    namespace = importlib.import_module("burn.namespace")
    return sorted({*namespace.__all__, "__version__"})
