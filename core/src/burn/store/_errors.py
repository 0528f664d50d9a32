"""Errors of the operating system as those of the operation that met them."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from burn.errors import StoreError

__all__ = ["AGAIN", "failure", "os_errors"]

AGAIN: Final = "Copy, download or save it again"
"""What to do about a damaged file."""

_HINTS: Final = {
    errno.ENOSPC: "Free space on the disk, and try again",
    errno.EDQUOT: "Free space of your quota, and try again",
    errno.EFBIG: "Files may not be as large here (ulimit -f): max_shard_bytes makes smaller ones",
    errno.EACCES: "Ask for the permission, or name another folder",
    errno.EPERM: "Ask for the permission, or name another folder",
    errno.EROFS: "The disk is read-only: name a folder on another one",
    errno.ENOTDIR: "A part of the path is a file and no folder: name another folder",
    errno.EEXIST: "A file has this name, or that of a folder of the path: choose another name",
    errno.ENAMETOOLONG: "Choose a shorter name",
    errno.EIO: "The disk fails: name a folder on another one",
}
"""What to do, by the numbers of errors of the operating system."""

_NEAR: Final = 5
"""Number of names that an error lists."""


def failure(
    operation: str,
    path: str | Path,
    rule: str,
    hint: str = "",
    *,
    number: int | None = None,
) -> StoreError:
    """The error of a file, with the attributes `filename` and `errno` of an `OSError`.

    Parameters
    ----------
    operation : str
        The public function or method, ``burn.store.save``.
    path : str or Path
        The file or folder; the message begins with it.
    rule : str
        What is wrong with it.
    hint : str
        What to do.
    number : int, optional
        Number of an error of the operating system.
    """
    error = StoreError(f"{path}: {rule}", hint=hint, operation=operation)
    error.filename = str(path)
    error.errno = number
    return error


@contextmanager
def os_errors(operation: str, path: str | Path) -> Iterator[None]:
    """Raise errors of the operating system as `StoreError`, which says what to do.

    Parameters
    ----------
    operation : str
        The public function or method.
    path : str or Path
        The file or folder that it reads or writes.
    """
    try:
        yield
    except StoreError as error:
        error.operation = error.operation or operation
        if error.filename is None:
            error.filename = str(path)
            error.rule = f"{path}: {error.rule}"
        raise
    except OSError as error:
        number = error.errno
        rule = error.strerror or str(error) or type(error).__name__
        hint = _HINTS.get(number or 0, "")
        if number == errno.ENOENT:
            hint = _near(Path(error.filename or path))
        raise failure(operation, path, rule, hint, number=number) from error


def _near(path: Path) -> str:
    """What there is instead of a file or folder that does not exist."""
    import difflib  # slow to import, and used by errors alone

    folder = path.parent
    if not folder.is_dir():
        return f"There is no folder {folder}: make it, or correct the path"
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError:
        return "Correct the path"
    near = difflib.get_close_matches(path.name, names, _NEAR, 0.5) or names[:_NEAR]
    folder = folder.absolute()
    return f"{folder} has {', '.join(near)}" if near else f"{folder} is empty"
