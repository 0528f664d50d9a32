"""Memory-mapped arrays as worker processes get them: the file, and not its content."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

__all__ = ["reduced_map"]


def reduced_map(array: np.memmap[Any, Any]) -> Any:
    """How to pickle a memory-mapped array, or a view of one, so that it is mapped again.

    Maps that keep changes to themselves (mode ``"c"``) are pickled with their content.
    """
    root: Any = array
    while isinstance(root.base, np.memmap):
        root = root.base
    if getattr(array, "_mmap", None) is None or root.filename is None or root.mode == "c":
        return np.asarray(array).__reduce_ex__(5)
    start = _address(array) - _address(root)
    part_of_file = (os.fspath(root.filename), root.mode, root.offset, root.nbytes)
    return _mapped, (*part_of_file, array.dtype, array.shape, start, array.strides)


def _address(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])


def _mapped(
    path: str,
    mode: Any,
    offset: int,
    size: int,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    start: int,
    strides: tuple[int, ...],
) -> np.ndarray[Any, Any]:
    """An array in the memory of a mapped file."""
    again: Any = "r" if mode == "r" else "r+"  # "w+" would empty it
    whole = np.memmap(path, np.uint8, again, offset, (size,))
    return np.ndarray(shape, dtype, whole, start, strides)
