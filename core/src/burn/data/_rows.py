"""What datasets, `collate` and uploads share: arrays of examples, rows of them, Python numbers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from burn.errors import OperandTypeError

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Numbers", "Rows", "as_array", "as_list", "is_array", "is_tensor", "row"]

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
            return [self[index] for index in range(*index.indices(self._length))]
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


def as_list(x: Any, hint: str, operation: str) -> list[Any]:
    """A list of what is iterated.

    Raises
    ------
    OperandTypeError
        If it cannot be iterated.
    """
    try:
        found = iter(x)
    except TypeError:
        raise OperandTypeError(
            f"an object of type {type(x).__name__} where a list is needed",
            hint=hint,
            operation=operation,
        ) from None
    return list(found)


def is_tensor(x: Any) -> bool:
    """Whether an object is a tensor of burn, without importing what tensors need."""
    tensors = sys.modules.get("burn.tensor.tensor")
    return tensors is not None and isinstance(x, tensors.Tensor)


def is_array(x: Any) -> bool:
    """Whether an object is an array of another library, or one that NumPy reads as an array."""
    return any(hasattr(x, name) for name in _PROTOCOLS)


def as_array(x: Any) -> npt.NDArray[Any] | Any:
    """A NumPy array of an array, in its memory if possible; a tensor if the host cannot read it.

    Raises
    ------
    ExportError
        If it cannot be read, such as a PyTorch tensor that requires a gradient.
    OperandTypeError
        If NumPy does not read it as an array.
    """
    if isinstance(x, np.ndarray):
        return x
    try:
        array = np.asarray(x)
    except Exception:  # noqa: BLE001 — any library may raise anything; DLPack says more
        array = None
    if array is not None:
        if array.dtype == object and not array.ndim:
            raise OperandTypeError(f"NumPy cannot read an object of type {type(x).__name__}")
        return array
    if hasattr(x, "__dlpack__"):
        from burn.backend.dlpack import import_host, is_readable

        if is_readable(x.__dlpack_device__()):
            return import_host(x).array
    from burn.functions.creation import asarray

    return asarray(x)
