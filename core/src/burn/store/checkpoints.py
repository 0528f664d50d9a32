"""Checkpoints: the states of a training run, saved in the background and restored to the bit."""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from burn.errors import ArgumentError, StoreError
from burn.functions.normalize import as_flag
from burn.ops.arguments import as_integer
from burn.store._atomic import sync_folder
from burn.store._background import Background
from burn.store._errors import failure, os_errors
from burn.store._folder_lock import FolderLock
from burn.store._folders import Folder, folders_of, remove_old, remove_remains, verify, write
from burn.store._parts import SavedParts, captured
from burn.store._paths import as_path
from burn.store._safetensors import library

if TYPE_CHECKING:
    from burn.tensor_data import TensorData

__all__ = ["Checkpoint", "Checkpoints"]

_SAVE: Final = "Checkpoints.save"
_RESTORE: Final = "Checkpoints.restore"

_LARGEST: Final = 10**18 - 1
"""The largest step: folders have names of at most 18 digits."""


@dataclass(frozen=True)
class Checkpoint:
    """What `Checkpoints.restore` found.

    Attributes
    ----------
    step : int
        The step that was given to `save`.
    values : dict of str to object
        The parts that have no ``load_state_dict``: tensors, arrays, numbers, strings, lists, dicts
        and random generators that were not given to `restore`.
    path : Path
        The folder of the checkpoint. The next ones remove it.
    """

    step: int
    values: dict[str, Any] = field(repr=False)
    path: Path


class Checkpoints:
    """The checkpoints of a run in a folder, one for each step that was saved.

    A checkpoint has all parts that `save` is given, and the states of all random generators: of
    every device, of Python's `random` and of NumPy. So a run that is restored goes on to the bit.
    It gets its name when all its files are on the disk: a process that is killed leaves the last
    complete one. It is a context manager, which ends as `close` does.

    Parameters
    ----------
    path : str or Path
        The folder, which the first `save` makes. One process at a time saves to it.
    keep : int or None
        Number of checkpoints that remain; with each new one the one that was saved first is
        removed. None: all of them.
    keep_every : int, optional
        Steps that are multiples of this number remain besides.

    Raises
    ------
    StoreError
        If `path` is no folder.
    ArgumentError
        If a number is less than 1.

    Examples
    --------
    >>> import tempfile
    >>> import burn
    >>> folder = tempfile.TemporaryDirectory()
    >>> model = burn.nn.Linear(2, 1, device=burn.Device("cpu").autodiff())
    >>> optimizer = burn.optim.Adam(model)
    >>> with burn.store.Checkpoints(folder.name, keep=2) as checkpoints:
    ...     for step in (10, 20, 30):
    ...         checkpoints.save(step, model=model, optimizer=optimizer, loss=1 / step)
    >>> checkpoints.steps()
    [20, 30]
    >>> checkpoint = checkpoints.restore(model=model, optimizer=optimizer)
    >>> checkpoint.step, checkpoint.values
    (30, {'loss': 0.03333333333333333})
    >>> folder.cleanup()
    """

    def __init__(
        self, path: str | os.PathLike[str], *, keep: int | None = 3, keep_every: int | None = None
    ) -> None:
        name = "Checkpoints"
        self.path = as_path(path, name).absolute()  # the program may change its directory
        self.keep = None if keep is None else as_integer(keep, "keep", name, least=1)
        self.keep_every = (
            None if keep_every is None else as_integer(keep_every, "keep_every", name, least=1)
        )
        with os_errors(name, self.path):
            if self.path.exists() and not self.path.is_dir():
                raise failure(name, self.path, "is no folder", "Name a folder")
        self._writer = _Writer(self.path)
        weakref.finalize(self, self._writer.leave)

    def __repr__(self) -> str:
        every = "" if self.keep_every is None else f", keep_every={self.keep_every}"
        return f"Checkpoints({str(self.path)!r}, keep={self.keep}{every})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is None:
            self.close()
            return
        try:
            self.close()
        except Exception as failed:  # noqa: BLE001 — it must not hide what ends the block
            error.add_note(f"and the last checkpoint was not saved: {failed}")

    def save(self, step: int, *, wait: bool = False, **parts: Any) -> None:
        """Save the parts as they are now; a thread writes them while the program goes on.

        The method returns when the values are off the device. Tensors in the memory of the host
        are not copied: a step that would overwrite one makes a new one instead. A second call
        waits for the files of the first.

        Parameters
        ----------
        step : int
            Number of the step, 0 or more. A checkpoint of the same step is replaced.
        wait : bool
            Whether to return when the files are on the disk.
        **parts : object
            By names of your choice: objects with the methods ``state_dict`` and
            ``load_state_dict`` (modules, optimizers, loaders, ...), whose states may be nested
            lists, tuples and dicts; tensors and arrays; `numpy.random.Generator`; None, booleans,
            numbers, strings, dtypes, and lists, tuples and dicts of all these.

        Returns
        -------
        None
            Exceptions of the thread are raised by the next `save`, `wait`, `restore` or `close`,
            which does nothing else then.

        Raises
        ------
        OperandTypeError
            If a part cannot be saved; nothing is written then.
        ArgumentError
            If the name of a part cannot be that of a file.
        StoreError
            If the folder cannot be written to, or another process saves to it; or if the last
            checkpoint could not be written, as the disk is full. Older checkpoints remain.
        """
        step = as_integer(step, "step", _SAVE, least=0)
        if step > _LARGEST:
            raise ArgumentError(f"step is {step}", hint=f"Use {_LARGEST} at most", operation=_SAVE)
        wait = as_flag(wait, "wait", _SAVE)
        self._writer.start(step, parts, self.keep, self.keep_every)
        if wait:
            self._writer.wait()

    def restore(self, step: int | None = None, **parts: Any) -> Checkpoint | None:
        """Give the parts, and all random generators, the states of a checkpoint.

        Parameters
        ----------
        step : int, optional
            Which one. By default the one that was saved last.
        **parts : object
            The objects, by the names that `save` had. Those with ``load_state_dict`` and
            generators of NumPy are changed; of tensors, arrays and other values the saved ones are
            in the result. A checkpoint may have more parts than these.

        Returns
        -------
        Checkpoint or None
            None if there is no checkpoint. Tensors are on the devices where they were; where there
            is no such device, on the default one. The random states of devices that are not
            there are left out.

        Raises
        ------
        StoreError
            If a file was changed, or is missing: sizes and checksums are compared first. The error
            says which older step is intact.
        ArgumentError
            If there is no such step, or it lacks a part. This, and every error of
            ``load_state_dict``, leaves all parts as they were: those that had loaded theirs get
            back what their ``state_dict`` gave before.
        """
        if step is not None:
            step = as_integer(step, "step", _RESTORE, least=0)
        self._writer.wait()
        while True:
            folder = self._found(step)
            if folder is None:
                return None
            try:
                files = verify(folder, _RESTORE)
                values = SavedParts(folder, files).give(parts)
            except StoreError as error:
                if folder.path.exists():
                    error.hint = self._advice(folder, error.hint)
                    raise
                # Another process has saved newer ones meanwhile, and removed this one.
            else:
                return Checkpoint(folder.step, values, folder.path)

    def steps(self) -> list[int]:
        """The steps of all checkpoints in the order in which they were saved; the newest is last.

        Raises
        ------
        StoreError
            If the folder cannot be read.
        """
        return [folder.step for folder in self._folders("Checkpoints.steps")]

    def wait(self) -> None:
        """Wait until the last checkpoint is on the disk.

        Raises
        ------
        StoreError
            If it could not be written.
        """
        self._writer.wait()

    def close(self) -> None:
        """Wait as `wait` does, and let other processes save to the folder.

        Raises
        ------
        StoreError
            If the last checkpoint could not be written.
        """
        self._writer.close()

    def _folders(self, operation: str) -> list[Folder]:
        with os_errors(operation, self.path):
            return folders_of(self.path)

    def _found(self, step: int | None) -> Folder | None:
        folders = self._folders(_RESTORE)
        if step is None:
            return folders[-1] if folders else None
        for folder in folders:
            if folder.step == step:
                return folder
        steps = ", ".join(str(folder.step) for folder in folders)
        raise ArgumentError(
            f"{self.path} has no checkpoint of step {step}",
            hint=f"There are those of {steps}" if steps else "There is none",
            operation=_RESTORE,
        )

    def _advice(self, damaged: Folder, hint: str) -> str:
        """What to do about a damaged checkpoint: take the newest of the others that is intact."""
        for folder in reversed(self._folders(_RESTORE)):
            if folder.path != damaged.path:
                try:
                    verify(folder, _RESTORE)
                except StoreError:
                    continue
                return f"Step {folder.step} is intact: restore(step={folder.step}). {hint}"
        return f"No other checkpoint here is intact. {hint}"


class _Writer:
    """What writes the checkpoints of one `Checkpoints`, without a reference to that.

    Parameters
    ----------
    path : Path
        The folder.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._background = Background()
        self._lock: FolderLock | None = None
        self._starting = threading.RLock()  # a signal may interrupt a save, and its handler save
        self._process = os.getpid()

    def start(
        self, step: int, parts: Mapping[str, Any], keep: int | None, keep_every: int | None
    ) -> None:
        """Take the values of the parts, and write them in the background."""
        self._renew_after_fork()
        with self._starting:
            self._background.wait()
            state, tensors = captured(parts)
            with os_errors(_SAVE, self._path):
                if tensors:
                    library("numpy")  # the thread would find out late that it is not there
                if not self._path.exists():
                    self._path.mkdir(parents=True, exist_ok=True)
                    sync_folder(self._path.parent)
                if self._lock is None or not self._lock.is_held:
                    self._lock = FolderLock(self._path, _SAVE)
                lock = FolderLock(self._path, _SAVE)  # until it is written, whatever comes
            work = functools.partial(self._write, lock, step, (state, tensors), (keep, keep_every))
            self._background.start(work)

    def _write(
        self,
        lock: FolderLock,
        step: int,
        content: tuple[dict[str, Any], dict[str, dict[str, TensorData]]],
        kept: tuple[int | None, int | None],
    ) -> None:
        try:
            with os_errors(_SAVE, self._path), lock.writing:
                if lock.is_exclusive:
                    remove_remains(self._path)
                write(self._path, step, *content)
                remove_old(self._path, *kept)
        except Exception as error:
            error.add_note(f"step {step} was not saved")
            raise
        finally:
            lock.release()

    def wait(self) -> None:
        """Wait for what is written, and raise its error."""
        self._renew_after_fork()
        self._background.wait()

    def close(self) -> None:
        """Wait, and release the lock of the folder."""
        try:
            self.wait()
        finally:
            lock, self._lock = self._lock, None
            if lock is not None:
                lock.release()

    def leave(self) -> None:
        """Do as `close`, at the end of the program or of the owner; an error is logged."""
        if self._process == os.getpid():
            self._background.leave()
            if self._lock is not None:
                self._lock.release()

    def _renew_after_fork(self) -> None:
        if self._process != os.getpid():  # a thread of the parent may have held the lock
            self._process, self._starting = os.getpid(), threading.RLock()
