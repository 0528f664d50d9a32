"""DiskCache: compiled code that the processes of one user share."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

__all__ = ["DiskCache"]

_MAX_BYTES: Final = 1 << 28

_DIGEST_BYTES: Final = hashlib.sha256().digest_size

_UNFINISHED_SECONDS: Final = 3600
"""Age from which on a file that was being written is one of a process that died."""


class DiskCache:
    """Bytes by a key, in a folder that the user alone may read and write.

    The folder is one in that of the variable ``BURN_CACHE``, and by default in the user's folder of
    caches; with ``BURN_CACHE=0`` nothing is kept. Any number of processes may use it at once, and
    anybody may delete it. An entry that is damaged counts as none, and so does a folder that other
    users may write to: what is loaded from here is executed. Where the folder is larger than it may
    be, the entries go that were not used for the longest time.

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
        self._folder: Path | None = None
        self._is_open = False

    @property
    def folder(self) -> Path | None:
        """The folder; None if nothing is kept."""
        if not self._is_open:
            self._folder = _opened(self._name)
            self._is_open = True
        return self._folder

    def get(self, key: str) -> bytes | None:
        """The bytes that were kept for a key; None if there are none.

        Parameters
        ----------
        key : str
            All that the bytes depend on: the source, versions, the hardware.
        """
        path = self._path(key)
        if path is None:
            return None
        try:
            stored = path.read_bytes()
        except OSError:
            return None
        digest, value = stored[:_DIGEST_BYTES], stored[_DIGEST_BYTES:]
        if digest != _digest(key, value):
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # the time of the last use
        return value

    def put(self, key: str, value: bytes) -> None:
        """Keep bytes for a key, if the disk permits it.

        Parameters
        ----------
        key : str
            See `get`.
        value : bytes
            What `get` returns from then on.
        """
        path = self._path(key)
        if path is None:
            return
        with contextlib.suppress(OSError):
            handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(_digest(key, value) + value)
                Path(name).replace(path)
            except OSError:
                Path(name).unlink(missing_ok=True)
                raise
            self._unchecked += len(value)
            if self._unchecked >= self._max_bytes // 16:
                self._unchecked = 0
                _shrink(path.parent, self._max_bytes)

    def _path(self, key: str) -> Path | None:
        folder = self.folder
        return folder and folder / f"{hashlib.sha256(key.encode()).hexdigest()}.bin"


def _digest(key: str, value: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\0" + value).digest()


def _opened(name: str) -> Path | None:
    """A folder for caches of the user alone; None if there is none, or it is switched off."""
    configured = os.environ.get("BURN_CACHE")
    if configured in {"", "0"}:
        return None
    folder = (Path(configured) if configured else _users_folder()) / name
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if hasattr(os, "geteuid"):
            status = folder.stat()
            others = stat.S_IWGRP | stat.S_IWOTH
            if status.st_uid != os.geteuid() or status.st_mode & others:
                return None
    except (OSError, RuntimeError):  # no folder can be made, or the user has no home
        return None
    return folder


def _users_folder() -> Path:
    """The folder of burn among the user's caches."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
        return Path(base or Path.home() / "AppData/Local") / "burn/cache"
    if sys.platform == "darwin":
        return Path.home() / "Library/Caches/burn"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "burn"


def _shrink(folder: Path, max_bytes: int) -> None:
    """Remove the entries that were not used for the longest time, and what was never finished."""
    entries = []
    for one in os.scandir(folder):
        with contextlib.suppress(OSError):  # another process may remove it, too
            status = one.stat()
            if one.name.endswith(".bin"):
                entries.append((status.st_mtime, status.st_size, one.path))
            elif status.st_mtime < time.time() - _UNFINISHED_SECONDS:
                Path(one.path).unlink()
    total = sum([size for _, size, _ in entries])
    for _, size, path in sorted(entries):
        if total <= max_bytes:
            break
        with contextlib.suppress(OSError):
            Path(path).unlink()
        total -= size
