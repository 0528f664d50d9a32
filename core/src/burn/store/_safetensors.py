"""Files of the format safetensors, through its library."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from burn.errors import StoreError
from burn.store._encoding import DTYPES, Encoding, encoded, unique_keys
from burn.store._errors import AGAIN, failure

if TYPE_CHECKING:
    import numpy.typing as npt

    from burn.aliases import Shape
    from burn.dtype import DType
    from burn.tensor_data import TensorData

__all__ = ["FORMAT", "SafetensorsFile", "library", "write_host"]

FORMAT: Final = {"format": "pt"}
"""Metadata without which the library transformers refuses a file: names and shapes of PyTorch."""

_OS_ERROR: Final = re.compile(r"os error (\d+)")
"""The number of an error of the operating system, in the words of the library."""


def write_host(
    path: Path, values: Mapping[str, TensorData], metadata: Mapping[str, str] | None = None
) -> None:
    """Write values of the host into a file, which is neither synced nor renamed.

    Parameters
    ----------
    path : Path
        The file.
    values : mapping of str to TensorData
        Values by names, quantized or not, of which `part_names` gives different names.
    metadata : mapping of str to str, optional
        What else the file holds.

    Raises
    ------
    OSError
        Of the operating system.
    StoreError
        If the library is not installed, or refuses.
    """
    module = library("numpy")
    arrays = encoded(values)
    own = Encoding.of((name, data.dtype) for name, data in values.items()).metadata
    try:
        module.save_file(arrays, str(path), {**FORMAT, **(metadata or {}), **own})
        _sort_metadata(path)
    except Exception as error:
        _raise_of_system(error)
        raise StoreError(
            f"the library safetensors {library('__version__')} does not write it: {error}",
            hint="pip install --upgrade safetensors",
        ) from error


class SafetensorsFile:
    """An open file, of which a tensor is read when it is asked for.

    The library has checked, when it opens the file, that the header is sound and that the file has
    the length of all tensors.

    Parameters
    ----------
    path : Path
        The file.

    Attributes
    ----------
    metadata : dict of str to str
        The metadata.
    names : list of str
        The names of the tensors.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        opened = library("").safe_open
        with _library_errors(path, "is damaged, or no safetensors file"):
            # Memory that is mapped ends the process where another one shortens the file.
            self._file = opened(str(path), "np", backend="pread")
            self.metadata: dict[str, str] = self._file.metadata() or {}
            self.names: list[str] = list(self._file.keys())
            with path.open(
                "rb"
            ) as file:  # the library does not look for names that are there twice
                length = int.from_bytes(file.read(8), "little")
                json.loads(file.read(length), object_pairs_hook=unique_keys)

    def path_of(self, name: str) -> Path:
        """The file that has a tensor."""
        del name
        return self.path

    def info(self, name: str) -> tuple[Shape, DType | str]:
        """Shape and dtype of a tensor; the format's name of a dtype that we do not have."""
        with _library_errors(self.path, f"{name} cannot be read"):
            found = self._file.get_slice(name)
            dtype = found.get_dtype()
            return tuple(found.get_shape()), DTYPES.get(dtype, dtype)

    def memory(self, name: str) -> None:
        """None: no two tensors share memory, which the library has checked."""

    def array(self, name: str) -> npt.NDArray[Any]:
        """The values of a tensor."""
        with _library_errors(self.path, f"{name} cannot be read"):
            array: npt.NDArray[Any] = self._file.get_tensor(name)
            return array

    def close(self) -> None:
        """Close the file."""
        self._file.__exit__(None, None, None)


def library(module: str) -> Any:
    """The library safetensors, or a module of it.

    Raises
    ------
    StoreError
        If it is not installed, or is older than 0.8: then other threads wait while it writes.
    """
    hint = 'pip install "burn-core[store]"'
    try:
        import safetensors.numpy
    except ImportError as error:
        raise StoreError(f"the library safetensors is not there: {error}", hint=hint) from error
    if not hasattr(safetensors, "TensorSpec"):
        version = safetensors.__version__
        raise StoreError(f"the library safetensors {version} is older than 0.8", hint=hint)
    return getattr(safetensors, module) if module else safetensors


def _sort_metadata(path: Path) -> None:
    """Give the metadata of a file one order, so that equal states are equal bytes.

    The library writes them in an order that differs from file to file.
    """
    with path.open("r+b") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
        text = json.dumps(header, ensure_ascii=False, separators=(",", ":"))
        content = text.encode().ljust(length)  # the library fills up with spaces, too
        if len(content) == length:
            file.seek(8)
            file.write(content)


@contextmanager
def _library_errors(path: Path, rule: str) -> Iterator[None]:
    """Raise what the library says about the content of a file as `StoreError`."""
    try:
        yield
    except Exception as error:
        _raise_of_system(error)
        raise failure("", path, f"{rule}: {error}", AGAIN) from error


def _raise_of_system(error: Exception) -> None:
    """Raise errors of the operating system as such: the library may have them as text."""
    if isinstance(error, (OSError, MemoryError)):
        raise error
    found = _OS_ERROR.search(str(error))
    if found:
        number = int(found[1])
        raise OSError(number, os.strerror(number)) from error
