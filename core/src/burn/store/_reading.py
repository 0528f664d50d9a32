"""Tensors of files by names, read when they are asked for, whatever the format."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from burn.dtype import DType, bool_, complex128, float64
from burn.errors import BurnError, StoreError
from burn.functions.interchange import from_dlpack
from burn.functions.quantized_state import join_state
from burn.quant_scheme import QDType
from burn.store._encoding import DTYPES, KEY, Encoding, part_names
from burn.store._errors import AGAIN, failure
from burn.store._sources import open_source

if TYPE_CHECKING:
    import numpy.typing as npt

    from burn.aliases import Shape
    from burn.devices import Device
    from burn.store._sources import Source
    from burn.tensor.tensor import Tensor

__all__ = ["Reader"]


class Reader:
    """Tensors of a file by names. It is a context manager, which closes the files.

    Parameters
    ----------
    path : Path
        A file or folder.

    Attributes
    ----------
    path : Path
        The path, or that of the file which was found.
    metadata : dict of str to str
        What the user gave, without what this package adds.
    names : list of str
        The names of the tensors, a quantized one by its own.

    Raises
    ------
    OSError
        Of the operating system. `StoreError` if the file is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._source: Source = open_source(path)
        self.path = self._source.path
        self._shared: dict[tuple[Hashable, Device], Tensor] = {}
        try:
            self._begin(self._source.metadata, self._source.names)
        except BaseException:
            self._source.close()
            raise

    def _begin(self, metadata: dict[str, str], stored: list[str]) -> None:
        encoding = Encoding.read(metadata, self.path)
        self.metadata = {key: text for key, text in sorted(metadata.items()) if key != KEY}
        self._encoded: dict[str, DType] = dict.fromkeys(encoding.complex128, complex128)
        parts = set()
        for name in encoding.schemes:
            self._encoded[name] = dtype = QDType(encoding.scheme(name, self.path))
            parts.update(part_names(name, dtype))
        self.names = [name for name in stored if name not in parts]
        self.names += encoding.schemes
        missing = parts.union(encoding.complex128).difference(stored)
        if missing or len(set(self.names)) < len(self.names):
            raise failure(
                "", self.path, f"its tensors are not those of its metadata {KEY!r}", AGAIN
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *unused: object) -> None:
        self._shared.clear()
        self._source.close()

    def info(self, name: str) -> tuple[Shape, DType]:
        """Shape and dtype of a tensor.

        Raises
        ------
        StoreError
            If it has a dtype that no tensor has.
        """
        dtype = self._encoded.get(name)
        if isinstance(dtype, QDType):
            shape, _ = self._source.info(part_names(name, dtype)[0])
            with self._errors_of(name):
                return dtype.scheme.logical_shape(shape), dtype
        shape, stored = self._source.info(name)
        if dtype is complex128:
            if stored is not float64 or shape[-1:] != (2,):
                raise self._failure(name, f"is {stored} of shape {shape}, no pairs of float64")
            return shape[:-1], dtype
        if not isinstance(stored, DType):
            raise self._failure(
                name,
                f"is stored as {stored}; tensors have {', '.join([*DTYPES])}",
                "Leave it out with only=, or convert it with the library that wrote the file",
            )
        return shape, stored

    def read(self, name: str, device: Device) -> Tensor:
        """A tensor, on a device; those that share their elements in the file share memory.

        Raises
        ------
        StoreError
            If it cannot be read.
        """
        dtype = self._encoded.get(name)
        if not isinstance(dtype, QDType):
            memory = self._source.memory(name)
            shared = self._shared.get((memory, device))
            if shared is None:
                shared = from_dlpack(self.array(name), device=device)  # shares memory if it can
                if memory is None:
                    return shared
                self._shared[memory, device] = shared
            return shared.detach()  # written to on its own
        parts = {part: self._source.array(part) for part in part_names(name, dtype)}
        with self._errors_of(name):
            return join_state(parts, {name: dtype.name}, device=device)[name]

    def array(self, name: str) -> npt.NDArray[Any]:
        """The values of a tensor that is not quantized, in memory that nothing else refers to.

        Raises
        ------
        StoreError
            If it cannot be read.
        """
        shape, dtype = self.info(name)
        array = self._source.array(name)
        if dtype is bool_:  # a file may have bytes that are neither 0 nor 1
            return np.asarray(array.view(np.uint8) != 0)
        return array.view(dtype.numpy).reshape(shape)  # pairs of float64 become complex128

    def _failure(self, name: str, rule: str, hint: str = AGAIN) -> StoreError:
        first = part_names(name, self._encoded.get(name, float64))[0]
        return failure("", self._source.path_of(first), f"{name} {rule}", hint)

    @contextmanager
    def _errors_of(self, name: str) -> Iterator[None]:
        """Raise what is wrong with the parts of a quantized tensor as `StoreError`."""
        try:
            yield
        except OSError:
            raise
        except (BurnError, ValueError) as error:
            raise self._failure(name, f"is damaged: {error}") from error
