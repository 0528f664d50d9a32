"""Forks wait until no other thread compiles: LLVM would be left in the middle of its work."""

from __future__ import annotations

import functools
import sys
from typing import Any, Final

from burn.plugin_api import hold_at_fork

__all__ = ["hold_compilers_at_fork"]

_LOCKS: Final = (
    ("numba.core.compiler_lock", ("global_compiler_lock", "_lock")),
    ("llvmlite.binding.ffi", ("lib", "_lock", "_lock")),
)
"""Modules and where their locks are, in the order in which numba takes them."""


@functools.cache
def hold_compilers_at_fork() -> None:
    """Let each fork from now on hold the locks of numba and llvmlite, as far as they have these."""
    for module, path in _LOCKS:
        hold_at_fork(functools.partial(_lock, module, path))


def _lock(module: str, path: tuple[str, ...]) -> Any:
    found: Any = sys.modules.get(module)
    for name in path:
        found = getattr(found, name, None)
    return found if hasattr(found, "acquire") else None
