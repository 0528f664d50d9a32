"""Parts of an index, normalized: slices and integers by the length of their axis, and arrays."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from burn.dispatch import DispatchTensor
from burn.errors import AxisError, OperandTypeError
from burn.functions.host_values import elements_of
from burn.public_calls import shown_value
from burn.tensor_data import check_unmasked

__all__ = ["axes_used", "is_mask", "normalize_index", "normalize_part", "normalize_slice"]


def normalize_slice(part: builtins.slice, length: int) -> tuple[int, int, int]:
    """Start, length and step of a slice of an axis of a length, all of them integers."""
    if part.step is None:
        start = 0 if part.start is None else part.start
        stop = length if part.stop is None else part.stop
        if start.__class__ is stop.__class__ is int and 0 <= start <= stop <= length:  # mostly
            return start, stop - start, 1
    try:
        start, stop, step = part.indices(length)
    except (TypeError, ValueError) as error:
        raise OperandTypeError(f"{part}: {error}", operation="indexing") from None
    return start, len(range(start, stop, step)), step


def normalize_index(part: Any, length: int | None = None, axis: int = 0) -> int:
    """An integer, counted from the front where the length of its axis is given."""
    if part.__class__ is int and length is not None and 0 <= part < length:  # mostly
        return part
    try:
        index: int = part.__index__()
    except (AttributeError, TypeError):
        raise OperandTypeError(
            f"an object of type {type(part).__name__} is no index",
            hint="Index with integers, slices, ..., None, masks, or arrays of integers",
            operation="indexing",
        ) from None
    if length is None:
        return index
    if not -length <= index < length:
        raise AxisError(
            f"index {shown_value(index)} is out of range for axis {axis} of length {length}",
            operation="indexing",
        )
    return index + length if index < 0 else index


def normalize_part(part: Any) -> Any:
    """A part of an index as None, ..., a slice, an int, a tensor, or an array of ints or bools."""
    if part is None or part is Ellipsis or isinstance(part, (builtins.slice, DispatchTensor)):
        return part
    if isinstance(part, (bool, np.bool_)):
        return np.asarray(part)
    if isinstance(part, (list, tuple, np.ndarray)):
        try:
            for item in elements_of(part).arrays:
                check_unmasked(item)
            array = np.asarray(part)
        except ValueError as error:
            raise OperandTypeError(f"no index: {error}", operation="indexing") from None
        if array.size == 0 and not isinstance(part, np.ndarray):
            array = array.astype(np.intp)
        if array.dtype.kind not in "iub":
            raise OperandTypeError(
                f"an array of {array.dtype} is no index",
                hint="Index with integers or booleans",
                operation="indexing",
            )
        return int(array) if array.ndim == 0 and array.dtype.kind != "b" else array
    return normalize_index(part)


def is_mask(part: Any) -> bool:
    """Whether an array or a tensor in an index is a mask; otherwise it holds integers."""
    if isinstance(part, DispatchTensor):
        dtype = part.tensor_type.dtype
        if not (dtype.is_bool or dtype.is_integer):
            raise OperandTypeError(
                f"a tensor of {dtype} is no index",
                hint="Index with integers or booleans",
                operation="indexing",
            )
        return dtype.is_bool
    return isinstance(part, np.ndarray) and part.dtype.kind == "b"


def axes_used(part: Any) -> int:
    """Number of axes of the tensor that a part of an index selects from."""
    if part is None or part is Ellipsis:
        return 0
    if isinstance(part, (DispatchTensor, np.ndarray)) and is_mask(part):
        return len(part.shape)
    return 1
