"""DiskCache: compiled code that the processes of one user share."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import time
from pathlib import Path
from typing import Final

from burn.compiler.private_folder import PrivateFolder

__all__ = ["DiskCache", "base_folder"]

_MAX_BYTES: Final = 1 << 28

_DIGEST_BYTES: Final = hashlib.sha256().digest_size

_SUFFIX: Final = ".bin"

_UNFINISHED_SECONDS: Final = 3600
"""Age from which on a file that was being written is one of a process that died."""


class DiskCache:
    """Bytes by a key, in a folder that the user alone may read and write.

    The folder is one in that of the variable ``BURN_CACHE``, and by default in the user's folder of
    caches; with ``BURN_CACHE=0`` nothing is kept. Any number of processes may use it at once, and
    anybody may delete it. An entry that is damaged counts as none, and is removed. What is loaded
    from here is executed: where another user can write to a folder of the path, nothing is loaded
    or kept, and a warning says so (see `PrivateFolder`). Where the folder is larger than it may be,
    the entries go that were not used for the longest time.

    Parameters
    ----------
    name : str
        Name of the folder, such as that of the plugin.
    max_bytes : int
        Size that the folder has after entries were removed; it may grow by a sixteenth before.

    Examples
    --------
    >>> cache = DiskCache("example", max_bytes=1 << 20)
    >>> cache.put("of this source, for this hardware", b"code")
    >>> cache.get("another source")
    """

    def __init__(self, name: str, max_bytes: int = _MAX_BYTES) -> None:
        self._name = name
        self._max_bytes = max_bytes
        self._unchecked = max_bytes  # the first entry of a process looks at the folder
        self._folder: PrivateFolder | None = None
        self._is_open = False

    @property
    def folder(self) -> Path | None:
        """The folder; None if nothing is kept."""
        folder = self._private()
        return folder.path if folder is not None and folder.is_usable() else None

    def get(self, key: str) -> bytes | None:
        """The bytes that were kept for a key; None if there are none.

        Parameters
        ----------
        key : str
            All that the bytes depend on: the source, versions, the hardware.
        """
        folder = self._private()
        if folder is None:
            return None
        name = _name(key)
        with contextlib.suppress(MemoryError):  # an entry that is damaged may have any size
            stored = folder.read(name, self._max_bytes + _DIGEST_BYTES)
            if stored is None:
                return None
            digest, value = stored[:_DIGEST_BYTES], stored[_DIGEST_BYTES:]
            if digest == _digest(key, value):
                return value
            folder.remove(name)
        return None

    def put(self, key: str, value: bytes) -> None:
        """Keep bytes for a key, if the disk and the memory permit it.

        Parameters
        ----------
        key : str
            See `get`.
        value : bytes
            What `get` returns from then on.
        """
        folder = self._private()
        if folder is None:
            return
        with contextlib.suppress(MemoryError):
            folder.write(_name(key), _digest(key, value) + value)
        self._unchecked += len(value)
        if self._unchecked >= self._max_bytes // 16:
            self._unchecked = 0
            _shrink(folder, self._max_bytes)

    def _private(self) -> PrivateFolder | None:
        if not self._is_open:
            base = base_folder()
            self._folder = None if base is None else PrivateFolder(base, self._name)
            self._is_open = True
        return self._folder


def _name(key: str) -> str:
    return f"{hashlib.sha256(key.encode()).hexdigest()}{_SUFFIX}"


def _digest(key: str, value: bytes) -> bytes:
    digest = hashlib.sha256(key.encode() + b"\0")
    digest.update(value)
    return digest.digest()


def base_folder() -> Path | None:
    """The folder of all caches of burn; None if there is none, or it is switched off."""
    configured = os.environ.get("BURN_CACHE")
    if configured in {"", "0"}:
        return None
    try:
        return Path(configured).absolute() if configured else _users_folder().absolute()
    except (OSError, RuntimeError):  # the user has no home, or the current folder is gone
        return None


def _users_folder() -> Path:
    """The folder of burn among the user's caches."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
        return Path(base or Path.home() / "AppData/Local") / "burn/cache"
    if sys.platform == "darwin":
        return Path.home() / "Library/Caches/burn"
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The specification of the variable has programs ignore a relative path.
    return (named if named.is_absolute() else Path.home() / ".cache") / "burn"


def _shrink(folder: PrivateFolder, max_bytes: int) -> None:
    """Remove the entries that were not used for the longest time, and what was never finished."""
    entries = folder.entries()
    kept = [entry for entry in entries if entry.name.endswith(_SUFFIX)]
    for entry in entries:
        if not entry.name.endswith(_SUFFIX) and entry.used < time.time() - _UNFINISHED_SECONDS:
            folder.remove(entry.name)
    total = sum([entry.size for entry in kept])
    for entry in sorted(kept, key=lambda entry: entry.used):
        if total <= max_bytes:
            break
        folder.remove(entry.name)
        total -= entry.size
