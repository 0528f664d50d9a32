"""Files of tensors: safetensors, whole or in shards, and the files of PyTorch."""

from __future__ import annotations

import os
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from burn.dtype import float32
from burn.errors import ArgumentError, DTypeError, OperandTypeError
from burn.functions.common import DeviceLike
from burn.functions.creation import asarray
from burn.functions.normalize import find_device
from burn.quant_scheme import QDType
from burn.store._errors import os_errors
from burn.store._paths import as_path
from burn.store._reading import Reader
from burn.store._renaming import Only, Rename, selected
from burn.store._writing import (
    SUFFIX,
    Values,
    checked,
    checked_metadata,
    nbytes,
    write_shards,
    write_whole,
)

if TYPE_CHECKING:
    from burn.devices import Device
    from burn.dtype import DType
    from burn.nn.loading import LoadReport
    from burn.nn.module import Module
    from burn.tensor.tensor import Tensor

__all__ = ["load", "load_into", "read_metadata", "save"]


def save(
    state: Module | Mapping[str, Any],
    path: str | os.PathLike[str],
    *,
    metadata: Mapping[str, str] | None = None,
    max_shard_bytes: int | None = None,
) -> None:
    """Write tensors into a file of the format safetensors, which other libraries read as well.

    The file is there whole or not at all: it is written under another name, synced and renamed. An
    error, a full disk or the end of the process leaves what was there before.

    Parameters
    ----------
    state : Module or mapping of str to Tensor or array
        A module, of which `state_dict` is written, or tensors by names. Tensors at several paths
        are written for each.
    path : str or path
        The file; its name ends in ``.safetensors``. Its folder is made if there is none.
    metadata : mapping of str to str, optional
        Texts by texts, which `read_metadata` returns.
    max_shard_bytes : int, optional
        The most bytes of tensors in a file. What has more is written into several,
        ``model-00001-of-00003.safetensors`` and so on, beside ``model.safetensors.index.json``,
        as Hugging Face does. `load` takes the path all the same. A tensor is never divided.

    Raises
    ------
    StoreError
        If the system does not let it, such as a full disk.
    ArgumentError
        If a name is used twice or reserved, or an argument has a value that is not accepted.
    OperandTypeError
        If something is no tensor or array.

    Notes
    -----
    The tensors of a file are on the host together while it is written. A quantized tensor is stored
    as its codes and scales (``name.codes``, ``name.scales``), and complex128 as float64 with one
    more axis. Which they are the metadata say under ``burn.store``.

    Examples
    --------
    >>> import tempfile
    >>> import burn
    >>> layer = burn.nn.Linear(2, 3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     burn.store.save(layer, f"{folder}/layer.safetensors", metadata={"epoch": "7"})
    ...     state = burn.store.load(f"{folder}/layer.safetensors")
    >>> sorted(state)
    ['bias', 'weight']
    """
    target = as_path(path, "burn.store.save")
    if not target.name.endswith(SUFFIX):
        raise ArgumentError(
            f"the file is called {target.name!r}",
            hint=f"Files of this format end in {SUFFIX}: {target.stem or 'model'}{SUFFIX}",
            operation="burn.store.save",
        )
    values, texts = checked(state), checked_metadata(metadata)
    shards = [values] if max_shard_bytes is None else _divided(values, max_shard_bytes)
    with os_errors("burn.store.save", target):
        target.parent.mkdir(parents=True, exist_ok=True)
        if len(shards) > 1:
            write_shards(target, shards, texts)
        else:
            write_whole(target, values, texts)


def load(
    path: str | os.PathLike[str],
    *,
    device: DeviceLike | None = None,
    only: Only = None,
    rename: Rename = None,
) -> dict[str, Tensor]:
    r"""The tensors of a file, on a device.

    Tensors are read one after the other, and those that are not wanted are not read. Nothing that
    a file has is executed.

    Parameters
    ----------
    path : str or path
        A file of the format safetensors; the index of a sharded one, or its name without shards; a
        file of PyTorch, which `torch.save` wrote, if PyTorch is installed; or a folder that has
        one of these.
    device : Device or str, optional
        Where the tensors are made; by default on the default device.
    only : str or sequence of str, optional
        Patterns of paths, as in `Module.freeze`, of what is loaded: ``"encoder.*"``. They are
        compared with the paths after renaming.
    rename : mapping, sequence of pairs, or callable, optional
        Regular expressions and what replaces what they fit, one after the other, as `re.sub` has
        them: ``{r"^h\.(\d+)\.": r"blocks.\1."}``. Or a function from a name of the file to a
        path. None in place of a path leaves a tensor out.

    Returns
    -------
    dict of str to Tensor
        Tensors by their paths, with the dtypes that they have in the file.

    Raises
    ------
    StoreError
        If the file is not there, damaged or hostile, or has a dtype that no tensor has (float8).
    DTypeError
        If the device lacks a dtype of the file.
    ArgumentError
        If a pattern fits nothing, or two tensors get one path.

    Examples
    --------
    >>> import tempfile
    >>> import burn
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/model.safetensors"
    ...     burn.store.save({"h.0.w": burn.ones(2), "h.1.w": burn.zeros(2)}, path)
    ...     list(burn.store.load(path, rename={r"^h\.": "blocks."}, only="*.0.*"))
    ['blocks.0.w']
    """
    operation = "burn.store.load"
    target = find_device(device, operation)
    source = as_path(path, operation)
    with os_errors(operation, source), Reader(source) as reader:
        names = selected(reader.names, rename, only, operation)
        for name in names.values():
            _check_dtype(reader, name, target, operation)
        return {path: reader.read(name, target) for path, name in names.items()}


def load_into(
    module: Module,
    path: str | os.PathLike[str],
    *,
    only: Only = None,
    rename: Rename = None,
    strict: bool = True,
) -> LoadReport:
    """Give the parameters and buffers of a module the values of a file.

    A value is read and assigned before the next one is read: beside the model there is one tensor
    in memory. The module keeps its dtypes and devices.

    Parameters
    ----------
    module : Module
        What gets the values.
    path : str or path
        As of `load`.
    only : str or sequence of str, optional
        Patterns of paths of what is loaded, as of `load`. The rest of the module stays as it is,
        and is not missing.
    rename : mapping, sequence of pairs, or callable, optional
        As of `load`: from the names of the file to the paths of the module.
    strict : bool
        Whether every path has to be in both, with one shape. If not, what fits is loaded. A tensor
        at several paths of the module may be in the file under one of them.

    Returns
    -------
    LoadReport
        What was missing, unexpected or of another shape.

    Raises
    ------
    StoreError
        If the file is not there, damaged or hostile. The module is unchanged, but for an error of
        the disk in the middle of it.
    ArgumentError
        If `strict` and something does not fit, a pattern fits nothing, or two tensors get one path;
        the module is unchanged.
    DTypeError
        If values do not become those of the dtypes of the module, such as complex ones; the module
        is unchanged.

    Examples
    --------
    >>> import tempfile
    >>> import burn
    >>> one, other = burn.nn.Linear(2, 3), burn.nn.Linear(2, 3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     burn.store.save(one, f"{folder}/layer.safetensors")
    ...     burn.store.load_into(other, f"{folder}/layer.safetensors")
    LoadReport(missing=[], unexpected=[], mismatched={})
    """
    from burn.nn.loading import load_each  # few programs that load tensors have modules
    from burn.nn.module import Module

    operation = "burn.store.load_into"
    if not isinstance(module, Module):
        raise OperandTypeError(
            f"takes a module, not {type(module).__name__}",
            hint="burn.store.load() returns tensors",
            operation=operation,
        )
    patterns = [only] if isinstance(only, str) else only
    source = as_path(path, operation)
    with os_errors(operation, source), Reader(source) as reader:
        names = selected(reader.names, rename, only, operation)
        values = {path: reader.info(name) for path, name in names.items()}

        def read(path: str, device: Device, dtype: DType) -> Tensor:
            found = values[path][1]
            if device.supports_dtype(found):
                return reader.read(names[path], device)
            is_rounded = found.is_float and not dtype.is_float  # which is an error later on
            wanted = float32 if is_rounded or isinstance(dtype, QDType) else dtype
            return asarray(reader.array(names[path]), dtype=wanted, device=device)

        return load_each(
            module,
            values,
            read,
            only=lambda path: (
                patterns is None or any(fnmatchcase(path, pattern) for pattern in patterns)
            ),
            strict=strict,
            operation=operation,
        )


def read_metadata(path: str | os.PathLike[str]) -> dict[str, str]:
    """The metadata of a file, of which no tensor is read.

    Parameters
    ----------
    path : str or path
        As of `load`. Files of PyTorch have no metadata.

    Returns
    -------
    dict of str to str
        What `save` was given; and ``format``, which other libraries look for.

    Raises
    ------
    StoreError
        If the file is not there, damaged or hostile.

    Examples
    --------
    >>> import tempfile
    >>> import burn
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     burn.store.save({"x": burn.ones(2)}, f"{folder}/x.safetensors", metadata={"by": "me"})
    ...     burn.store.read_metadata(f"{folder}/x.safetensors")
    {'by': 'me', 'format': 'pt'}
    """
    source = as_path(path, "burn.store.read_metadata")
    with os_errors("burn.store.read_metadata", source), Reader(source) as reader:
        return reader.metadata


def _divided(values: Values, max_shard_bytes: int) -> list[Values]:
    """Groups of tensors, each with as many as fit, in their order."""
    if max_shard_bytes.__class__ is not int or max_shard_bytes < 1:
        raise ArgumentError(
            f"max_shard_bytes is {max_shard_bytes!r}",
            hint="It is a number of bytes: 5_000_000_000 for files of 5 GB",
            operation="burn.store.save",
        )
    shards: list[Values] = [{}]
    size = 0
    for name, value in values.items():
        size += nbytes(value)
        if shards[-1] and size > max_shard_bytes:
            shards.append({})
            size = nbytes(value)
        shards[-1][name] = value
    return shards


def _check_dtype(reader: Reader, name: str, device: Device, operation: str) -> None:
    """Raise DTypeError if a device lacks the dtype of a tensor."""
    _, dtype = reader.info(name)
    try:
        device.tensor_type(dtype)
    except DTypeError as error:
        raise DTypeError(
            f"{name} is {dtype}: {error.rule}",
            hint="Load it on another device, and convert it there; load_into() converts it to the "
            "dtype of the module",
            operation=operation,
        ) from error
