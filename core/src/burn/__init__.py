"""burn for Python: one tensor program, any hardware.

``import burn`` imports next to nothing: a name is resolved when it is first used. What there is
stands in `burn.namespace`.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from burn import testing as testing
    from burn.namespace import *  # noqa: F403 — for type checkers; __getattr__ at run time

__version__ = "0.1.0"

__array_api_version__ = "2025.12"


if not TYPE_CHECKING:  # a type checker knows the names above, and is to report all others

    def __getattr__(name: str) -> Any:
        if name == "testing":
            return importlib.import_module("burn.testing")
        if not name.startswith("_") or name in ("__array_namespace_info__", "__all__"):
            # Not "from burn import namespace", which would look for the name here first.
            namespace = importlib.import_module("burn.namespace")
            if name == "__all__":
                # What "from burn import *" gives: nothing that hides a builtin, unlike NumPy 2.
                return [
                    public
                    for public in namespace.PUBLIC
                    if not (public.startswith("_") or hasattr(builtins, public))
                ]
            if name in namespace.PUBLIC:
                value = getattr(namespace, name)
                globals()[name] = value
                return value
        # The interpreter suggests the name that is most like it, when it prints the error.
        raise AttributeError(
            f"module 'burn' has no attribute {name!r}", name=name, obj=sys.modules[__name__]
        )


def __dir__() -> list[str]:
    namespace = importlib.import_module("burn.namespace")
    return sorted({*namespace.PUBLIC, "__version__", "testing"})
