"""What datasets, `collate` and uploads share: arrays of examples, rows of them, Python numbers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from burn.errors import ExportError

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Numbers", "Rows", "as_array", "is_array", "is_tensor"]

_PROTOCOLS = ("__dlpack__", "__array_interface__", "__array__", "__cuda_array_interface__")


class Numbers(np.ndarray[Any, Any]):
    """Python numbers of a batch as an array, whose dtype the device chooses at upload."""


class Rows(Sequence[Any]):
    """Examples that are rows of arrays; `batch` is all of them at once.

    Parameters
    ----------
    batch : object
        The arrays: one, a tuple of them, or a dict.
    length : int
        Number of rows.
    """

    def __init__(self, batch: Any, length: int) -> None:
        self.batch = batch
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[one] for one in range(*index.indices(self._length))]
        if not -self._length <= index < self._length:
            raise IndexError(index)
        return row(self.batch, index)


def row(arrays: Any, index: int) -> Any:
    """One row of an array, of a tuple of arrays, or of a dict of them."""
    if arrays.__class__ is dict:
        return {name: array[index] for name, array in arrays.items()}
    if arrays.__class__ is tuple:
        return tuple([array[index] for array in arrays])
    return arrays[index]


def is_tensor(x: Any) -> bool:
    """Whether an object is a tensor of burn, without importing what tensors need."""
    tensors = sys.modules.get("burn.tensor.tensor")
    return tensors is not None and isinstance(x, tensors.Tensor)


def is_array(x: Any) -> bool:
    """Whether an object is an array of another library, or one that NumPy reads as an array."""
    return any(hasattr(x, name) for name in _PROTOCOLS)


def as_array(x: Any) -> npt.NDArray[Any] | Any:
    """A NumPy array in the memory of an array; a tensor where the host cannot read that."""
    if isinstance(x, np.ndarray):
        return x
    if not hasattr(x, "__dlpack__"):
        if hasattr(x, "__array__") or hasattr(x, "__array_interface__"):
            return np.asarray(x)
        return _as_tensor(x)
    from burn.backend.dlpack import import_host, is_readable

    try:
        if not is_readable(x.__dlpack_device__()):
            return _as_tensor(x)
        return import_host(x).array
    except ExportError:
        array = np.asarray(x) if hasattr(x, "__array__") else None
        if array is None or array.dtype == object:
            raise
        return array


def _as_tensor(x: Any) -> Any:
    from burn.functions.creation import asarray

    return asarray(x)
