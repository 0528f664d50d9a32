"""Writing of states: into one file, or into shards and their index."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeAlias

from burn.backend.dlpack import import_host
from burn.errors import ArgumentError, BurnError, ExportError, OperandTypeError
from burn.functions.creation import asarray
from burn.quant_scheme import QDType
from burn.store._atomic import atomic_file, mode_of, sync_folder
from burn.store._encoding import KEY, Encoding, part_names
from burn.store._safetensors import FORMAT, write_host
from burn.store._sources import INDEX, read_index
from burn.tensor.tensor import Tensor
from burn.tensor.transaction import Transaction
from burn.tensor_data import TensorData

__all__ = [
    "SUFFIX",
    "Values",
    "checked",
    "checked_metadata",
    "nbytes",
    "write_shards",
    "write_whole",
]

SUFFIX: Final = ".safetensors"
"""How the name of a file ends."""

_OPERATION: Final = "burn.store.save"

_RESERVED: Final = "__metadata__"
"""The name under which the format has the metadata."""

Values: TypeAlias = "dict[str, Tensor | TensorData]"
"""What is to be written, by names."""


def checked(state: Any) -> Values:
    """The tensors of a module, of another object with a state, or of a mapping.

    Raises
    ------
    ArgumentError
        If a name is that of another tensor's part, or reserved.
    OperandTypeError
        If something is no tensor or array.
    """
    if hasattr(type(state), "state_dict"):
        state = state.state_dict()
    if not isinstance(state, Mapping):
        raise OperandTypeError(
            f"takes a module, or a mapping of names to tensors, not {type(state).__name__}",
            hint='Write save({"name": tensor}, path)',
            operation=_OPERATION,
        )
    values: Values = {}
    stored: set[str] = set()
    for name, value in state.items():
        if not isinstance(name, str):
            raise OperandTypeError(
                f"the name {name!r} is no text",
                hint="Names are paths, as in state_dict()",
                operation=_OPERATION,
            )
        values[name] = one = _value(name, value)
        for part in part_names(name, one.dtype):
            if part in stored or part == _RESERVED:
                raise ArgumentError(
                    f"the name {part!r} is reserved, or there twice",
                    hint="Rename it: parts of a quantized tensor are called name.codes, "
                    "name.scales and name.global_scale",
                    operation=_OPERATION,
                )
            stored.add(part)
    return values


def checked_metadata(metadata: Mapping[str, str] | None) -> dict[str, str]:
    """The metadata of the user.

    Raises
    ------
    OperandTypeError
        If they are no mapping of texts to texts.
    ArgumentError
        If they have the key of this package.
    """
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping) or not all(
        isinstance(part, str) for pair in metadata.items() for part in pair
    ):
        raise OperandTypeError(
            f"metadata are {metadata!r}",
            hint="They are texts by texts: write str(value), or json.dumps(value)",
            operation=_OPERATION,
        )
    if KEY in metadata:
        raise ArgumentError(
            f"metadata have the key {KEY!r}, which says how tensors are stored",
            hint="Choose another one",
            operation=_OPERATION,
        )
    return dict(metadata)


def nbytes(value: Tensor | TensorData) -> int:
    """Number of bytes of a tensor in a file."""
    if isinstance(value.dtype, QDType):
        size: int = value.dtype.scheme.nbytes(value.shape)
        return size
    count = value.size if isinstance(value, Tensor) else value.array.size
    return count * value.dtype.itemsize


def write_whole(target: Path, values: Values, metadata: Mapping[str, str]) -> None:
    """Write one file; of a sharded file of this name index and shards are removed then."""
    index = target.with_name(target.name + INDEX)
    old = _shards_of(index, target)
    host = _on_host(values)
    with atomic_file(target) as partial:
        write_host(partial, host, metadata)
    if os.path.lexists(index):
        index.unlink()
        sync_folder(target.parent)  # before the shards are gone
    _remove(old)


def write_shards(target: Path, shards: list[Values], metadata: Mapping[str, str]) -> None:
    """Write a file for each group of tensors, and the index that names them.

    The shards have new names, and the index is replaced when they are all there. So it refers to
    the old shards or to the new ones at any moment, and the old ones are removed at the end.
    """
    mode_of(target)  # it is removed at the end
    index = target.with_name(target.name + INDEX)
    old = _shards_of(index, target)
    paths = _free_paths(target, len(shards))
    try:
        for path, values in zip(paths, shards, strict=True):
            host = _on_host(values)
            with atomic_file(path) as partial:
                write_host(partial, host, metadata)
        content = _index(paths, shards, metadata)
        with atomic_file(index) as partial:
            partial.write_text(json.dumps(content, indent=2) + "\n", "utf-8")
    except BaseException:
        in_use = _shards_of(index, target)  # the new ones, if the index is there already
        _remove([path for path in paths if path not in in_use])
        raise
    _remove([*old, target])


def _value(name: str, value: Any) -> Tensor | TensorData:
    """A tensor that does not change any more, or host data."""
    if isinstance(value, Tensor):
        return value.detach().inner()
    if not hasattr(value, "dtype") or not hasattr(value, "shape"):
        raise OperandTypeError(
            f"{name} is an object of type {type(value).__name__}, no tensor or array",
            hint="Give nested tensors paths as names; numbers and texts are metadata, or parts "
            "of burn.store.Checkpoints",
            operation=_OPERATION,
        )
    try:
        try:
            return import_host(value)
        except ExportError:  # in the memory of a device
            return asarray(value)
    except BurnError as error:
        error.rule = f"{name}: {error.rule}"
        error.operation = _OPERATION
        raise


def _on_host(values: Values) -> dict[str, TensorData]:
    """All values on the host, those of a device together."""
    transaction = Transaction()
    for value in values.values():
        if isinstance(value, Tensor):
            transaction.register(value)
    read = iter(transaction.execute())
    return {name: next(read) if isinstance(x, Tensor) else x for name, x in values.items()}


def _index(
    paths: list[Path], shards: list[Values], metadata: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """What the index says, as Hugging Face has it."""
    every = {name: value for values in shards for name, value in values.items()}
    encoding = Encoding.of((name, value.dtype) for name, value in every.items())
    total = {"total_size": sum(map(nbytes, every.values()))}
    return {
        "metadata": {**total, **FORMAT, **metadata, **encoding.metadata},
        "weight_map": {
            part: path.name
            for path, values in zip(paths, shards, strict=True)
            for name, value in values.items()
            for part in part_names(name, value.dtype)
        },
    }


def _free_paths(target: Path, count: int) -> list[Path]:
    """Names for shards that no file has: those of Hugging Face, or with a number between."""
    stem = target.name.removesuffix(SUFFIX)
    while True:
        names = [f"{stem}-{number:05}-of-{count:05}{SUFFIX}" for number in range(1, count + 1)]
        paths = [target.with_name(name) for name in names]
        if not any(path.exists() for path in paths):
            return paths
        stem = f"{target.name.removesuffix(SUFFIX)}-{os.urandom(4).hex()}"


def _shards_of(index: Path, target: Path) -> list[Path]:
    """The shards of an index, of those names that `write_shards` gives: an index may name any."""
    name = re.compile(
        re.escape(target.name.removesuffix(SUFFIX))
        + r"(-[0-9a-f]{8})?-\d{5,}-of-\d{5,}"
        + re.escape(SUFFIX)
    )
    try:
        _, files = read_index(index)
    except OSError:  # there is none, or it is damaged
        return []
    return [index.with_name(file) for file in set(files.values()) if name.fullmatch(file)]


def _remove(paths: list[Path]) -> None:
    for path in paths:
        with suppress(FileNotFoundError):
            path.unlink()
