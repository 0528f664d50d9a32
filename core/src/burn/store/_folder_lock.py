"""The lock of a folder: one process at a time writes to it."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import threading
from pathlib import Path
from typing import Final

from burn.store._errors import failure

__all__ = ["FolderLock"]

_NAME: Final = ".lock"

_UNSUPPORTED: Final = frozenset({errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP, errno.EINVAL})
"""What file systems without locks say."""


class FolderLock:
    """Keeps other processes from writing to a folder, until `release` or the end of the process.

    The operating system ends the lock of a process that is killed. All locks of one folder in one
    process are one: what writes takes `writing`. A forked process has none.

    Parameters
    ----------
    folder : Path
        An existing folder.
    operation : str
        The public method, for errors.

    Attributes
    ----------
    is_exclusive : bool
        Whether no other process can have the lock; the file system may know no locks.
    writing : Lock
        For the threads of this process.

    Raises
    ------
    StoreError
        If another process has the lock.
    OSError
        If the file of the lock cannot be made.
    """

    def __init__(self, folder: Path, operation: str) -> None:
        key = os.path.realpath(folder)
        with _guard:
            self._held: _Held | None = _all.get(key)
            if self._held is None:
                self._held = _all[key] = _Held(key, folder / _NAME, operation)
            self._held.count += 1
            self.is_exclusive = self._held.is_exclusive
            self.writing = self._held.writing

    def release(self) -> None:
        """Let other processes write, unless something else of this process has the lock too."""
        with _guard:
            held, self._held = self._held, None
            if held is None or _all.get(held.key) is not held:
                return
            held.count -= 1
            if not held.count:
                del _all[held.key]
                os.close(held.number)

    @property
    def is_held(self) -> bool:
        """Whether this process has it: not after `release`, nor in a forked process."""
        return self._held is not None and _all.get(self._held.key) is self._held


class _Held:
    """The open file of a lock, and how many objects have it."""

    def __init__(self, key: str, path: Path, operation: str) -> None:
        self.key = key
        self.count = 0
        self.writing = threading.Lock()
        self.number = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            self.is_exclusive = _locked(self.number)
        except BlockingIOError:
            os.close(self.number)
            raise failure(
                operation,
                path.parent,
                f"another process writes checkpoints to this folder{_owner(path)}",
                "Give each run a folder of its own; of several processes of one run let one save",
                number=errno.EAGAIN,
            ) from None
        except BaseException:
            os.close(self.number)
            raise
        with contextlib.suppress(OSError):  # it is for the message above alone
            os.ftruncate(self.number, 0)
            os.write(self.number, f"{os.getpid()}\n".encode())


def _owner(path: Path) -> str:
    with contextlib.suppress(OSError, ValueError):
        return f": process {int(path.read_text(encoding='ascii'))}"
    return ""


def _locked(number: int) -> bool:
    """Lock an open file: true if that worked, false if the file system knows no locks.

    Raises
    ------
    BlockingIOError
        If another process has locked it.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(number, _FAR, os.SEEK_SET)
            msvcrt.locking(number, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            return False
        if error.errno in {errno.EACCES, errno.EAGAIN, errno.EDEADLK}:
            raise BlockingIOError(error.errno, str(error)) from None
        raise
    if sys.platform == "win32":
        os.lseek(number, 0, os.SEEK_SET)
    return True


_FAR: Final = 1 << 20
"""Offset in bytes of what Windows locks: others cannot read a locked byte, and read the number."""

_all: Final[dict[str, _Held]] = {}
"""The locks of this process, by the real paths of their folders."""

_guard = threading.RLock()  # a signal may interrupt its owner, and its handler save


def _after_fork() -> None:
    """Leave the locks to the parent: else they would last as long as this child."""
    global _guard  # noqa: PLW0603 — another thread of the parent may have held it
    _guard = threading.RLock()
    for held in _all.values():
        with contextlib.suppress(OSError):
            os.close(held.number)
    _all.clear()


if hasattr(os, "register_at_fork"):  # POSIX
    os.register_at_fork(after_in_child=_after_fork)
