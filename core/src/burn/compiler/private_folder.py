"""PrivateFolder: files that no other user can have written; the process executes what they hold."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["Entry", "PrivateFolder"]

_log = logging.getLogger("burn")

_HAS_DESCRIPTORS: Final = os.open in os.supports_dir_fd and hasattr(os, "geteuid")
"""Whether the system finds files relative to the descriptor of a folder; Windows does not."""

_FLAGS: Final = (
    getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOINHERIT", 0)
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
)
# A user may pass a folder that forbids to list it, and O_PATH does not ask for that.
_SEARCH: Final = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | _FLAGS
# Without O_NONBLOCK, to open a FIFO takes a writer.
_READ: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _FLAGS
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS

_MAX_LINKS: Final = 40
"""Symbolic links that a path may have, as on Linux."""

_refusals: Final[set[str]] = set()
"""What was logged of folders that are not used."""


class Entry(NamedTuple):
    """A file of a folder.

    Attributes
    ----------
    name : str
        Its name.
    size : int
        Its bytes.
    used : float
        When it was read or written last, in seconds since the epoch.
    """

    name: str
    size: int
    used: float


class _UntrustedError(OSError):
    """Another user can write to a folder of the path.

    Attributes
    ----------
    advice : str
        What makes the path usable; empty if only another path helps.
    """

    def __init__(self, reason: str, advice: str = "") -> None:
        super().__init__(reason)
        self.advice = advice


class _Opened(NamedTuple):
    """A folder that was found to be private.

    Attributes
    ----------
    path : Path
        Its path.
    descriptor : int or None
        Its descriptor; None where the system opens files by their paths alone.
    """

    path: Path
    descriptor: int | None

    def at(self, name: str) -> str:
        """What names a file of it, relative to the descriptor."""
        return name if self.descriptor is not None else str(self.path / name)

    def open(self, name: str, flags: int) -> int:
        """A descriptor of a file of it."""
        return os.open(self.at(name), flags, 0o600, dir_fd=self.descriptor)

    def remove(self, name: str) -> None:
        """Remove a file of it, or an empty folder, if the system permits that."""
        with contextlib.suppress(OSError):
            try:
                os.unlink(self.at(name), dir_fd=self.descriptor)
            except (IsADirectoryError, PermissionError):  # the second on macOS and Windows
                os.rmdir(self.at(name), dir_fd=self.descriptor)


class PrivateFolder:
    """A folder whose files no user but that of this process can have written.

    Each method walks the path by descriptors: each folder of it belongs to the user or to the
    superuser, and no other user may write to it, or only as to ``/tmp``, where they cannot rename
    what is not theirs (the sticky bit). A symbolic link belongs to one of the two as well, and the
    folder itself is none. It, and a file that is read, belongs to the user. A path that other
    users may change is refused: there are no files, and a warning says why and what to do, once
    for all folders with the same reason. On Windows, whose folders of a user are the user's by
    themselves, nothing is checked.

    Parameters
    ----------
    base : Path
        An absolute path. Folders of it that are not there are made for the user alone.
    name : str
        The folder in `base`.
    variable : str
        The environment variable that names another folder, for the warning.
    is_closed : bool
        Whether other users may not even enter the folder, so that the owners and modes of what is
        in it do not matter. Another process than this class may then read and write it.
    """

    def __init__(
        self, base: Path, name: str, variable: str = "BURN_CACHE", *, is_closed: bool = False
    ) -> None:
        self.path = base / name
        self._base = base
        self._name = name
        self._variable = variable
        self._is_closed = is_closed

    def is_usable(self) -> bool:
        """Whether the folder is there, or can be made, and is the user's alone."""
        with self._opened() as folder:
            return folder is not None

    def read(self, name: str, max_bytes: int) -> bytes | None:
        """The content of a file, which counts as used now; None if there is none.

        What is no file of the user, or has more than `max_bytes`, is removed; a folder if it is
        empty.
        """
        with self._opened() as folder:
            if folder is None:
                return None
            try:
                file = folder.open(name, _READ)
            except FileNotFoundError:
                return None
            except OSError:  # such as a symbolic link
                folder.remove(name)
                return None
            try:
                status = os.fstat(file)
                if not _is_own_file(status) or status.st_size > max_bytes:
                    folder.remove(name)
                    return None
                if os.utime in os.supports_fd:
                    with contextlib.suppress(OSError):  # a disk may be there to be read alone
                        os.utime(file)
                return _content(file, status.st_size)
            except OSError:
                return None
            finally:
                os.close(file)

    def write(self, name: str, content: bytes) -> None:
        """Write a file, if the disk permits it; it is there as a whole or not at all."""
        with self._opened() as folder, contextlib.suppress(OSError):
            if folder is None:
                return
            part = f"{secrets.token_hex(8)}.part"
            descriptor = folder.open(part, _CREATE)
            try:
                with open(descriptor, "wb") as file:  # noqa: PTH123 — a descriptor, no path
                    if hasattr(os, "fchmod"):
                        os.fchmod(descriptor, 0o600)  # whatever the umask is
                    file.write(content)
                os.replace(
                    folder.at(part),
                    folder.at(name),
                    src_dir_fd=folder.descriptor,
                    dst_dir_fd=folder.descriptor,
                )
            except OSError:
                folder.remove(part)
                raise

    def remove(self, name: str) -> None:
        """Remove a file, if the system permits it."""
        with self._opened() as folder:
            if folder is not None:
                folder.remove(name)

    def entries(self) -> list[Entry]:
        """All files."""
        with self._opened() as folder, contextlib.suppress(OSError):
            if folder is None:
                return []
            return _entries(folder)
        return []

    @contextlib.contextmanager
    def _opened(self) -> Iterator[_Opened | None]:
        """The folder, checked and made if needed; None where it cannot be used."""
        try:
            descriptor = None
            if _HAS_DESCRIPTORS:
                descriptor = _walked(self._base, self._name, is_closed=self._is_closed)
            if descriptor is None:
                self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            self._explain(error)
            yield None
            return
        try:
            yield _Opened(self.path, descriptor)
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def _explain(self, error: OSError) -> None:
        """Log why the folder is not used, unless the same was logged of another one."""
        level = logging.INFO
        cause = f"{self._base}: {error.strerror or error}"
        if isinstance(error, _UntrustedError):
            level = logging.WARNING
            advice = f"{error.advice}, or " if error.advice else ""
            cause = (
                f"{error}: {advice}set {self._variable} to a folder of your own (BURN_CACHE=0 "
                f"keeps no compiled code)"
            )
        if cause not in _refusals:
            _refusals.add(cause)
            _log.log(level, f"compiled code is not kept on disk: {cause}")


def _walked(base: Path, name: str, *, is_closed: bool) -> int:
    """The descriptor of a folder, all of whose path was checked; what is missing is made."""
    rest = [name, *reversed(base.parts[1:])]
    path, links = base.anchor, 0
    folder = os.open(path, _SEARCH)
    try:
        _check(folder, path, is_last=False)
        while rest:
            part = rest.pop()
            inner = f"{path.rstrip('/')}/{part}"
            try:
                found = _descriptor(part, folder)
            except OSError as error:
                if (
                    error.errno not in (errno.ENOTDIR, errno.ELOOP)
                    or not rest
                    or links > _MAX_LINKS
                ):
                    raise
                links += 1
                target = Path(_target(part, folder, inner))
                rest += reversed(target.parts[1:] if target.is_absolute() else target.parts)
                if not target.is_absolute():
                    continue
                found, inner = os.open(target.anchor, _SEARCH), target.anchor
            os.close(folder)
            folder, path = found, inner
            _check(folder, path, is_last=not rest, is_closed=is_closed and not rest)
    except BaseException:
        os.close(folder)
        raise
    return folder


def _descriptor(name: str, folder: int) -> int:
    """The descriptor of a folder in a folder, where it is made if it is missing."""
    try:
        return os.open(name, _SEARCH, dir_fd=folder)
    except FileNotFoundError:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=folder)
            os.chmod(name, 0o700, dir_fd=folder)
        return os.open(name, _SEARCH, dir_fd=folder)


def _check(folder: int, path: str, *, is_last: bool, is_closed: bool = False) -> None:
    """Refuse a folder that another user can change, or in which they can rename what is not theirs.

    One that is to be closed to them is refused if they may enter it, or could: where they could,
    its content may be theirs.

    Raises
    ------
    _UntrustedError
        With what to do.
    """
    status = os.fstat(folder)
    _check_owner(status, path, others=() if is_last else (0,))
    mode = stat.S_IMODE(status.st_mode)
    if is_closed and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise _UntrustedError(
            f"{path} is open to other users (mode {mode:o}), who may have written what is "
            f"executed there",
            "remove it",
        )
    if mode & (stat.S_IWGRP | stat.S_IWOTH) and (is_last or not mode & stat.S_ISVTX):
        raise _UntrustedError(
            f"other users may write to {path} (mode {mode:o}), and what is there is executed",
            f"`chmod go-w {path}` forbids it",
        )


def _check_owner(status: os.stat_result, path: str, others: tuple[int, ...]) -> None:
    """Refuse what does not belong to the user of this process, or to some others."""
    if status.st_uid not in (os.geteuid(), *others):
        raise _UntrustedError(
            f"{path} belongs to user {status.st_uid}, this process to user {os.geteuid()}, and "
            f"what is there is executed"
        )


def _target(name: str, folder: int, path: str) -> str:
    """Where a symbolic link leads that no other user made."""
    _check_owner(os.stat(name, dir_fd=folder, follow_symlinks=False), path, others=(0,))
    return os.readlink(name, dir_fd=folder)


def _is_own_file(status: os.stat_result) -> bool:
    """Whether a file is a regular one that the user alone may write to."""
    if not stat.S_ISREG(status.st_mode):
        return False
    if not hasattr(os, "geteuid"):
        return True
    others = stat.S_IWGRP | stat.S_IWOTH
    return status.st_uid == os.geteuid() and not status.st_mode & others


def _content(file: int, size: int) -> bytes:
    """So many bytes of a file, or fewer if there are no more."""
    content = os.read(file, size)
    while len(content) < size:  # a read may end early
        more = os.read(file, size - len(content))
        if not more:
            break
        content += more
    return content


def _entries(folder: _Opened) -> list[Entry]:
    listed: int | Path = folder.path
    if folder.descriptor is not None:  # which may be one that lists nothing
        flags = os.O_RDONLY | os.O_DIRECTORY | _FLAGS
        listed = os.open(".", flags, dir_fd=folder.descriptor)
    entries = []
    try:
        with os.scandir(listed) as found:
            for dir_entry in found:
                with contextlib.suppress(OSError):  # another process may remove it, too
                    status = dir_entry.stat(follow_symlinks=False)
                    entries.append(Entry(dir_entry.name, status.st_size, status.st_mtime))
    finally:
        if isinstance(listed, int):
            os.close(listed)
    return entries
