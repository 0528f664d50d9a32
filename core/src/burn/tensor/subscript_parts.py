"""Slices and integers of a key, checked against the axis that they index."""

from __future__ import annotations

import builtins
from typing import Any

from burn.errors import AxisError, OperandTypeError

__all__ = ["bounds", "integer"]


def bounds(part: builtins.slice, length: int) -> tuple[int, int, int]:
    """Start, stop and step of a slice."""
    try:
        return part.indices(length)
    except (TypeError, ValueError) as error:
        raise OperandTypeError(f"{part}: {error}", operation="indexing") from None


def integer(part: Any, length: int | None = None, axis: int = 0) -> int:
    """An integer, counted from the front where the length of its axis is given."""
    try:
        number: int = part.__index__()
    except (AttributeError, TypeError):
        raise OperandTypeError(
            f"an object of type {type(part).__name__} is no index",
            hint="Index with integers, slices, ..., None, masks, or arrays of integers",
            operation="indexing",
        ) from None
    if length is None:
        return number
    if not -length <= number < length:
        raise AxisError(
            f"index {number} is out of range for axis {axis} of length {length}",
            operation="indexing",
        )
    return number + length if number < 0 else number
