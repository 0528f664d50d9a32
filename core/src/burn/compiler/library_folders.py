"""library_folder: where a library keeps code that it executes, closed to other users."""

from __future__ import annotations

import atexit
import contextlib
import errno
import functools
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from burn.compiler.disk_cache import base_folder
from burn.compiler.private_folder import PrivateFolder

__all__ = ["library_folder"]

_STARTING_SECONDS: Final = 60
"""Age up to which a temporary folder may be one that its process has not locked yet."""

_OTHER_TEMPORARY: Final = "/dev/shm"  # noqa: S108 — a folder in it is made by mkdtemp, too
"""A folder in memory, on Linux, where no folder for temporary files can be written to."""


def library_folder(library: str, variable: str, *, or_temporary: bool = False) -> Path | None:
    """A folder in which a library may keep compiled code; None if it may keep none.

    The folder is ``burn-`` and the name of the library, in the one that `variable` names, or among
    burn's own caches. It is made here, and other users may not enter it: so they have written
    nothing there, whatever modes the library gives its files. One that they may enter, or to whose
    path they may write, is refused with a warning (see `PrivateFolder`), and ``BURN_CACHE=0`` keeps
    nothing. Set `variable` to the result before the library reads it: what the library finds by
    itself may be another folder than that which was checked.

    Parameters
    ----------
    library : str
        Name of the library, such as ``pocl``.
    variable : str
        The environment variable by which users tell the library where to keep code.
    or_temporary : bool
        Whether the library cannot do without a folder. In place of None it then gets one until the
        process ends, if any can be made.

    Examples
    --------
    >>> folder = library_folder("example", "EXAMPLE_CACHE_DIR", or_temporary=True)
    >>> folder.is_dir()
    True
    """
    base = base_folder()
    if base is not None:
        named = _named(library, variable)
        folder = PrivateFolder(
            named or base,
            f"burn-{library}",
            variable if named is not None else "BURN_CACHE",
            is_closed=True,
        )
        if folder.is_usable() and os.access(folder.path, os.W_OK):
            return folder.path
    return _temporary_folder(f"burn-{library}-") if or_temporary else None


def _named(library: str, variable: str) -> Path | None:
    """The folder that a user names, also where a parent process has set the variable by that."""
    value = os.environ.get(variable)
    if not value:
        return None
    named = Path(os.path.abspath(value))  # noqa: PTH100 — `absolute` keeps "..", which is no name
    if named.name.startswith(f"burn-{library}-"):  # the parent's, which goes with it
        return None
    return named.parent if named.name == f"burn-{library}" else named


@functools.cache
def _temporary_folder(prefix: str) -> Path | None:
    """A new folder that goes with this process and its forks; None if none can be made.

    A process that was killed leaves its folder, but no lock of it: the next one removes it.
    """
    for base in (None, _OTHER_TEMPORARY):
        try:
            folder = Path(tempfile.mkdtemp(prefix=prefix, dir=base)).absolute()
        except OSError:
            continue
        descriptor = None
        with contextlib.suppress(OSError):
            descriptor = _locked(folder)
            for path in folder.parent.iterdir():
                if path.name.startswith(prefix):
                    _remove_unlocked(path, _STARTING_SECONDS)
        atexit.register(_leave, folder, descriptor, os.getpid())
        return folder
    return None


def _leave(folder: Path, descriptor: int | None, process: int) -> None:
    """Remove a folder, unless it serves a fork of this process, or this is one."""
    if descriptor is not None:
        os.close(descriptor)  # the lock lasts as long as the copies of forks
        _remove_unlocked(folder, 0)
    elif os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_unlocked(folder: Path, min_seconds: float) -> None:
    """Remove a folder that no process has locked, and that is so many seconds old."""
    with contextlib.suppress(OSError):
        descriptor = _locked(folder)
        if time.time() - folder.stat().st_mtime >= min_seconds:
            shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def _locked(folder: Path) -> int:
    """The descriptor of a folder of this user, which it locks.

    Raises
    ------
    OSError
        If another process has locked it, or the system locks no folders.
    """
    if sys.platform == "win32":
        raise OSError(errno.ENOTSUP, "Windows locks no folders", str(folder))
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "a folder of another user", str(folder))
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
