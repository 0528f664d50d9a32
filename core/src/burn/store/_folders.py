"""The folders of checkpoints: how they are named, written, listed, checked and removed.

A checkpoint is the folder ``step-00000100`` with a safetensors file for each part that has tensors,
with ``state.json``, which has all other values, and with ``checkpoint.json``, the manifest: the
step, the number in the order of saving, size and SHA-256 of the other files, and the SHA-256 of all
this. The number stands in the state once more: where the manifest is damaged, the order stays.

Folders of other names are what a process that was killed has left: ``.partial`` is not complete,
``.removed`` was being removed, and ``.replaced`` is a complete checkpoint of a step that was about
to be replaced; it counts where the new one did not get its name.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import shutil
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from burn.store._atomic import PARTIAL, atomic_folder, sync_folder
from burn.store._errors import failure, os_errors
from burn.store._safetensors import write_host

if TYPE_CHECKING:
    from burn.tensor_data import TensorData

__all__ = [
    "STATE",
    "SUFFIX",
    "Folder",
    "file_path",
    "folders_of",
    "read_json",
    "remove_old",
    "remove_remains",
    "verify",
    "write",
]

STATE: Final = "state.json"
"""The file of all that is no tensor."""

SUFFIX: Final = ".safetensors"

_MANIFEST: Final = "checkpoint.json"

_CHECKSUM: Final = "sha256"
"""Key of the checksum of a manifest."""

_VERSION: Final = 1
"""Version of the format; a larger one is of a later burn."""

_REMOVED: Final = ".removed"
_REPLACED: Final = ".replaced"

_NAME: Final = re.compile(rf"step-(\d{{8,18}})({re.escape(_REPLACED)})?")
_REMAINS: Final = re.compile(
    rf"step-\d{{8,18}}(\.[0-9a-f]+{re.escape(PARTIAL)}|{re.escape(_REMOVED)})"
)

_FILE: Final = re.compile(rf"\w+({re.escape(SUFFIX)}|\.json)")
"""What a manifest may name: no path."""

_MOST: Final = 1 << 52
"""Numbers in the order of saving are below: those without one stand at halves between them."""

_AGAIN: Final = "Copy it again, or remove the folder"

_log = logging.getLogger("burn")


@dataclass(frozen=True)
class Folder:
    """A checkpoint on the disk.

    Attributes
    ----------
    step : int
    path : Path
    number : int or None
        Its number in the order of saving; None if the manifest cannot be read.
    """

    step: int
    path: Path
    number: int | None


def folders_of(path: Path) -> list[Folder]:
    """All checkpoints in a folder, in the order of saving. Those without a number are in between.

    Raises
    ------
    OSError
        If the folder cannot be read; there is nothing in one that does not exist.
    """
    try:
        present = sorted(path.iterdir())  # the replaced one of a step comes after the other
    except FileNotFoundError:
        return []
    by_step: dict[int, Path] = {}
    for item in present:
        if match := _NAME.fullmatch(item.name):
            by_step.setdefault(int(match[1]), item)
    found: list[tuple[float, Folder]] = []
    last = 0.0
    for step, value in sorted(by_step.items()):
        number = _number_of(value)
        last = last + 0.5 if number is None else number
        found.append((last, Folder(step, value, number)))
    return [folder for _, folder in sorted(found, key=lambda pair: (pair[0], pair[1].step))]


def _number_of(path: Path) -> int | None:
    for name, read in ((_MANIFEST, _read_manifest), (STATE, read_json)):
        try:
            number = read(path / name, "").get("number")
        except OSError:
            continue
        if number.__class__ is int and 0 <= number < _MOST:
            return number
    return None


def write(
    path: Path, step: int, state: Mapping[str, Any], tensors: Mapping[str, Mapping[str, TensorData]]
) -> None:
    """Write a checkpoint, which then replaces the one of the same step.

    Raises
    ------
    OSError
        If that fails; what was there is there then.
    """
    numbers = [folder.number for folder in folders_of(path) if folder.number is not None]
    number = max(numbers, default=0) + 1
    target = path / f"step-{step:08}"
    replaced = target.with_name(target.name + _REPLACED)
    try:
        with atomic_folder(target) as partial:
            for part, values in tensors.items():
                write_host(partial / f"{part}{SUFFIX}", values)
            _write_json(partial / STATE, {**state, "number": number})
            mode = (partial / STATE).stat().st_mode
            for item in partial.iterdir():
                item.chmod(stat.S_IMODE(mode))  # the library lets no one else read its files
            manifest = {
                "format": "burn checkpoint",
                "version": _VERSION,
                "step": step,
                "number": number,
                "files": {path.name: _described(path) for path in sorted(partial.iterdir())},
            }
            manifest[_CHECKSUM] = _checksum(manifest)
            _write_json(partial / _MANIFEST, manifest, indent=1)
            if target.exists():
                shutil.rmtree(replaced, ignore_errors=True)
                target.rename(replaced)
    except BaseException:
        if replaced.exists() and not target.exists():
            replaced.rename(target)
        raise
    shutil.rmtree(replaced, ignore_errors=True)


def _write_json(path: Path, content: Mapping[str, Any], indent: int | None = None) -> None:
    path.write_text(json.dumps(content, allow_nan=False, indent=indent), encoding="utf-8")


def _described(path: Path) -> dict[str, Any]:
    return {"size": path.stat().st_size, "sha256": _hash(path)}


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checksum(manifest: Mapping[str, Any]) -> str:
    """SHA-256 of a manifest, without that itself, whatever the order of keys and the layout."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _read_manifest(path: Path, operation: str) -> dict[str, Any]:
    """A manifest that is as it was written; those of earlier versions have no checksum.

    Raises
    ------
    StoreError
        If it was changed, is none, or cannot be read.
    """
    manifest = read_json(path, operation)
    expected = manifest.pop(_CHECKSUM, None)
    if expected is not None:
        try:
            found = _checksum(manifest)
        except RecursionError:
            found = ""
        if found != expected:
            rule = "is damaged: its SHA-256 is not that of what it says"
            raise failure(operation, path, rule, _AGAIN)
    return manifest


def read_json(path: Path, operation: str) -> dict[str, Any]:
    """The object in a JSON file.

    Raises
    ------
    StoreError
        If it is none, or cannot be read.
    """
    with os_errors(operation, path):
        _check_regular(path, operation)
        content = path.read_bytes()
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise failure(operation, path, f"is damaged: {error}", _AGAIN) from None
    if not isinstance(found, dict):
        raise failure(operation, path, "is damaged: it has no JSON object", _AGAIN)
    return found


def verify(folder: Folder, operation: str) -> set[str]:
    """Compare the files of a checkpoint with its manifest; returns their names.

    Raises
    ------
    StoreError
        If they differ, or the manifest is none; it names the file.
    """
    path = folder.path / _MANIFEST
    manifest = _read_manifest(path, operation)
    version, files = manifest.get("version"), manifest.get("files")
    if manifest.get("format") == "burn checkpoint" and version.__class__ is int:
        if version > _VERSION:
            raise failure(
                operation,
                path,
                f"has version {version} of the format, and this burn reads version {_VERSION}",
                "Use the burn that saved it, or a later one",
            )
    else:
        raise failure(operation, path, "is no manifest of a checkpoint", _AGAIN)
    if manifest.get("step") != folder.step:
        rule = f"is of step {manifest.get('step')!r}, and its folder of step {folder.step}"
        raise failure(operation, path, rule, "Rename the folder")
    if not isinstance(files, dict) or STATE not in files:
        raise failure(operation, path, "does not say which files there are", _AGAIN)
    for name, expected in files.items():
        if not isinstance(expected, dict) or not _FILE.fullmatch(name):
            raise failure(operation, path, f"names the file {name!r}", _AGAIN)
        file = folder.path / name
        with os_errors(operation, file):
            size = _check_regular(file, operation)
            if size != expected.get("size"):
                rule = f"has {size} bytes, and {_MANIFEST} says {expected.get('size')!r}"
                raise failure(operation, file, f"is damaged: it {rule}", _AGAIN)
            if _hash(file) != expected.get("sha256"):
                rule = f"is damaged: its SHA-256 is not that of {_MANIFEST}"
                raise failure(operation, file, rule, _AGAIN)
    return set(files)


def file_path(folder: Folder, part: str) -> Path:
    """The file of the tensors of a part."""
    return folder.path / f"{part}{SUFFIX}"


def _check_regular(path: Path, operation: str) -> int:
    """The size of a file, which is no link, folder, device or pipe."""
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        raise failure(operation, path, "is no regular file", _AGAIN)
    return found.st_size


def remove_old(path: Path, keep: int | None, keep_every: int | None) -> None:
    """Remove all checkpoints but the newest ones, and the multiples of a number."""
    if keep is None:
        return
    for folder in folders_of(path)[:-keep]:
        if keep_every is None or folder.step % keep_every:
            _remove(folder.path)


def _remove(path: Path) -> None:
    """Remove a checkpoint; its name goes first, so that no half of it stands there."""
    target = path.with_name(path.name.removesuffix(_REPLACED) + _REMOVED)
    try:
        path.rename(target)
        sync_folder(path.parent)  # before its files go, also for the disk
        shutil.rmtree(target)
    except OSError as error:
        _log.warning("a checkpoint cannot be removed: %s", error)


def remove_remains(path: Path) -> None:
    """Remove what processes have left that were killed; no other process writes here."""
    for item in list(path.iterdir()):
        if _REMAINS.fullmatch(item.name):
            shutil.rmtree(item, ignore_errors=True)
        elif item.name.endswith(_REPLACED) and _NAME.fullmatch(item.name):
            target = item.with_name(item.name.removesuffix(_REPLACED))
            if target.exists():
                shutil.rmtree(item, ignore_errors=True)
            else:
                item.rename(target)
