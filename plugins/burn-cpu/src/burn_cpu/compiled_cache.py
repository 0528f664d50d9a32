"""What keeps the kernels that numba compiled on disk: the cache of core, in place of numba's own.

Numba's own unpickles what it finds beside the sources, and fails for good where
that is damaged.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import pickle
from pathlib import Path
from typing import Any, Final

import numba
import numpy as np
from numba.core import compiler as _compiler, serialize as _serialize

from burn.plugin_api import DiskCache

__all__ = ["KernelCache"]

_CompileResult: Any = _compiler.CompileResult  # as Any: numba has no types
_dumps: Any = _serialize.dumps
_log = logging.getLogger("burn")

_cache: Final = DiskCache("cpu-kernels")


class KernelCache:
    """The compiled versions of one kernel on disk: what numba calls a cache.

    Parameters
    ----------
    kernel : callable
        The function that numba compiles.
    options : str
        What its compilation depends on, beside the source.
    """

    cache_path = None

    def __init__(self, kernel: Any, options: str) -> None:
        digest = hashlib.sha256(kernel.__code__.co_code)
        # What it has of the function around it is a constant in the code.
        digest.update(_dumps([cell.cell_contents for cell in kernel.__closure__ or ()]))
        self._code = digest.hexdigest()
        self._name = f"{kernel.__module__}.{kernel.__qualname__}|{options}"

    def load_overload(self, signature: Any, target: Any) -> Any:
        """The kernel for the types of arguments; None if it is to be compiled."""
        target.refresh()
        stored = _cache.get(self._key(signature, target.codegen()))
        if stored is None:
            return None
        try:
            # What others cannot have written, as the cache checks.
            return _CompileResult._rebuild(target, *pickle.loads(stored))  # noqa: S301
        except Exception as error:  # noqa: BLE001 — it is compiled again, whatever is wrong
            _log.debug("a compiled kernel cannot be used: %s", error)
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep what was compiled, unless it depends on addresses of this process."""
        if any(not item.can_cache for item in result.lifted) or result.library.has_dynamic_globals:
            return
        try:
            content = _dumps(result._reduce())
        except Exception as error:  # noqa: BLE001 — it is compiled already, and is used
            _log.debug("a compiled kernel cannot be kept: %s", error)
        else:
            _cache.put(self._key(signature, result.codegen), content)

    def enable(self) -> None:
        """Nothing: the environment says whether kernels are kept."""

    def disable(self) -> None:
        """Nothing, as `enable`."""

    def flush(self) -> None:
        """Nothing: a kernel of other sources has another key."""

    def _key(self, signature: Any, code: Any) -> str:
        versions = (numba.__version__, np.__version__, _sources())
        return repr((self._name, self._code, signature, code.magic_tuple(), versions))


@functools.cache
def _sources() -> str:
    """A hash of all sources of kernels, which call functions of each other."""
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        if source.stem == "constants" or source.stem.startswith("compiled_"):
            digest.update(source.read_bytes())
    return digest.hexdigest()
