"""Which format a path has: a file of safetensors or PyTorch, an index of shards, or a folder."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from burn.store._encoding import unique_keys
from burn.store._errors import AGAIN, failure
from burn.store._safetensors import SafetensorsFile

if TYPE_CHECKING:
    import numpy.typing as npt

    from burn.aliases import Shape
    from burn.dtype import DType

__all__ = ["INDEX", "Source", "open_source", "read_index"]

INDEX: Final = ".index.json"
"""How the name of an index of shards ends, after that of the whole file."""

_INDEX_BYTES: Final = 100_000_000
"""The most bytes of an index; safetensors has this limit for its headers."""

_TORCH_BEGINS: Final = (b"PK\x03\x04", b"\x80")
"""How files of PyTorch begin: archives, and pickles."""

_SUFFIX: Final = ".safetensors"
"""A file of this name is read as this format alone."""

_ENDINGS: Final = (_SUFFIX + INDEX, _SUFFIX, ".bin" + INDEX, ".bin", ".pt", ".pth")
"""Endings of the names that are looked for in a folder, in this order."""

_SHARD: Final = re.compile(r"-\d{5,}-of-(?!0*1\.)\d{5,}\.")
"""A part of the name of one of several shards: alone it is not the model."""


class Source(Protocol):
    """Arrays by names, as a file has them.

    Attributes
    ----------
    path : Path
        The file.
    metadata : dict of str to str
        The metadata of the file.
    names : list of str
        The names of the arrays.
    """

    path: Path
    metadata: dict[str, str]
    names: list[str]

    def path_of(self, name: str) -> Path:
        """The file that has an array."""

    def info(self, name: str) -> tuple[Shape, DType | str]:
        """Shape and dtype of an array; the format's name of a dtype that we do not have."""

    def memory(self, name: str) -> Hashable:
        """What is equal for names of the same elements in the same memory; None where none are."""

    def array(self, name: str) -> npt.NDArray[Any]:
        """The values of an array, in memory that nothing else refers to."""

    def close(self) -> None:
        """Close the files."""


def open_source(path: Path) -> Source:
    """The arrays of a file or folder.

    Parameters
    ----------
    path : Path
        A file, an index, a folder that has one of these, or the name that a sharded file has
        without its shards.

    Raises
    ------
    OSError
        Of the operating system. `StoreError` if it has no tensors, or is damaged.
    """
    if path.name and not os.path.lexists(path):  # also of names that are too long
        index = path.with_name(path.name + INDEX)
        path = index if os.path.lexists(index) else path
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        return open_source(_in_folder(path))
    if not stat.S_ISREG(mode):
        raise failure("", path, "is a device or a pipe, and no file", "Name a file")
    if path.name.endswith(".json"):
        return _Shards(path)
    return _open_file(path)


def read_index(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """The metadata of an index, of those that are text, and the name of the file of each array.

    Raises
    ------
    OSError
        Of the operating system. `StoreError` if it is no index, or names a file elsewhere.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise failure("", path, "is no regular file", "Remove it")
    if status.st_size > _INDEX_BYTES:
        raise failure("", path, f"has more than {_INDEX_BYTES} bytes, too many for an index", AGAIN)
    try:
        content = json.loads(path.read_text("utf-8"), object_pairs_hook=unique_keys)
        metadata, shards = content.get("metadata", {}), content["weight_map"]
        texts = {key: value for key, value in metadata.items() if isinstance(value, str)}
        names = [*shards, *shards.values()]
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise failure(
            "",
            path,
            f"is no index of a sharded file ({type(error).__name__}: {error})",
            'It is JSON with a "weight_map" from names of tensors to names of files',
        ) from error
    for name in names:
        if not isinstance(name, str):
            raise failure("", path, f"names {name!r}, which is no text", AGAIN)
    for name in set(shards.values()):
        if name in {"", ".", ".."} or any(item in name for item in "/\\:\0"):
            raise failure(
                "",
                path,
                f"names the file {name!r}, which may be outside of its folder",
                "Files of an index lie beside it: be careful with what made it",
            )
    return texts, shards


def _in_folder(folder: Path) -> Path:
    """The one file of tensors in a folder."""
    every = sorted(path.name for path in folder.iterdir())
    names = [name for name in every if not _SHARD.search(name)]
    for ending in _ENDINGS:
        found = [name for name in names if name.endswith(ending)]
        if len(found) == 1:
            return folder / found[0]
        if found:
            raise failure("", folder, f"has {', '.join(found)}", "Name one of them")
    if len(names) < len(every):
        raise failure("", folder, f"has shards of a file, and no *{INDEX} that names them", AGAIN)
    endings = ", ".join([f"*{ending}" for ending in _ENDINGS])
    raise failure("", folder, "has no file of tensors", f"Their names are {endings}")


def _open_file(path: Path) -> Source:
    with path.open("rb") as file:
        begin = file.read(32)
    if not begin:
        raise failure("", path, "is empty", AGAIN)
    if begin.startswith(b"version https://git-lfs"):
        raise failure("", path, "refers to a file of Git LFS", "Fetch it: git lfs pull")
    if path.suffix != _SUFFIX and begin[8:9] != b"{" and begin.startswith(_TORCH_BEGINS):
        from burn.store._torch_files import TorchFile  # few programs need it

        return TorchFile(path)
    return SafetensorsFile(path)


class _Shards:
    """The files of an index, each opened when an array of it is asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.metadata, self._files = read_index(path)
        self.names = list(self._files)
        self._open: dict[str, tuple[Source, set[str]]] = {}

    def path_of(self, name: str) -> Path:
        return self.path.with_name(self._files[name])

    def info(self, name: str) -> tuple[Shape, DType | str]:
        return self._shard(name).info(name)

    def memory(self, name: str) -> Hashable:
        return self._shard(name).memory(name)

    def array(self, name: str) -> npt.NDArray[Any]:
        return self._shard(name).array(name)

    def close(self) -> None:
        for source, _ in self._open.values():
            source.close()

    def _shard(self, name: str) -> Source:
        file, path = self._files[name], self.path_of(name)
        if file not in self._open:
            if not path.is_file():
                raise failure("", path, f"is missing, which {self.path.name} names", AGAIN)
            source = _open_file(path)
            self._open[file] = source, set(source.names)
        source, names = self._open[file]
        if name not in names:
            raise failure("", path, f"lacks {name}, which {self.path.name} says it has", AGAIN)
        return source
