"""Files and folders that appear whole under their names, or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from burn.store._errors import failure

__all__ = [
    "PARTIAL",
    "atomic_file",
    "atomic_folder",
    "mode_of",
    "sync_file",
    "sync_folder",
    "temporary_name",
]

PARTIAL: Final = ".partial"
"""How the name of what is being written ends; a process that is killed leaves such names."""

_NAME_LENGTH: Final = 32
"""Number of characters of a name that are in the temporary one, which must not be too long."""

_NO_SYNC: Final = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES})
"""What file systems say that cannot sync a folder."""


@contextmanager
def atomic_file(path: str | Path) -> Iterator[Path]:
    """A temporary path to write a file to, which then gets its name.

    At the end of the block the file is synced and renamed, and its folder is synced. So under
    `path` there is at any moment the whole new file, or what was there before, also after a loss
    of power. After an exception what was there before remains, and the temporary file is removed.
    A link is replaced, not what it refers to. The new file has the permissions of the old one.

    Parameters
    ----------
    path : str or Path
        The name of the file.

    Yields
    ------
    Path
        An empty file in the same folder. It may be replaced by another file.

    Raises
    ------
    OSError
        Of the operating system; see `os_errors`. `StoreError` if `path` is no regular file.
    """
    target = Path(path)
    mode = mode_of(target)
    partial = temporary_name(target)
    try:
        with partial.open("xb") as file:
            if mode is None:
                mode = os.fstat(file.fileno()).st_mode
        yield partial
        sync_file(partial)
        partial.chmod(stat.S_IMODE(mode))
        partial.replace(target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


@contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """A temporary folder to fill with files, which then gets its name.

    At the end of the block all files and folders in it are synced, and the folder is renamed. After
    an exception it is removed.

    Parameters
    ----------
    path : str or Path
        The name of the folder, which must not exist.

    Yields
    ------
    Path
        An empty folder beside it.

    Raises
    ------
    OSError
        Of the operating system; `FileExistsError` if `path` exists.
    """
    target = Path(path)
    partial = temporary_name(target)
    try:
        partial.mkdir()
        yield partial
        for folder, _, names in os.walk(partial):
            for name in names:
                sync_file(Path(folder, name))
            sync_folder(folder)
        if os.path.lexists(target):  # an empty folder would be replaced
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
        partial.rename(target)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    sync_folder(target.parent)


def temporary_name(target: Path) -> Path:
    """A name in the same folder that nothing has: ``model.safetensors.1f00ba11.partial``."""
    return target.with_name(f"{target.name[:_NAME_LENGTH]}.{os.urandom(4).hex()}{PARTIAL}")


def sync_file(path: str | Path) -> None:
    """Wait until the disk has the content of a file."""
    with Path(path).open("r+b") as file:  # Windows syncs files alone that may be written to
        os.fsync(file.fileno())


def sync_folder(path: str | Path) -> None:
    """Wait until the disk has the names in a folder, where the system can do that."""
    if os.name == "nt":  # it opens no folders
        return
    try:
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


def mode_of(target: Path) -> int | None:
    """The permissions of the file that is to be replaced; None if there is none.

    Raises
    ------
    OSError
        Of the operating system. `StoreError` if it is no regular file.
    """
    with suppress(FileNotFoundError):
        mode = target.stat().st_mode
        if stat.S_ISREG(mode):
            return mode
        kind = "is a folder" if stat.S_ISDIR(mode) else "is a device or a pipe, and no file"
        number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        raise failure("", target, kind, "Name a file", number=number)
    return None
