"""Slices and shapes of indices, checked where a library would broadcast, clip or wrap them."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from burn.aliases import Primitive, Slices

__all__ = ["check_gather_operands", "check_sliced", "python_slices"]


def python_slices(slices: Slices) -> tuple[builtins.slice, ...]:
    """Slices of an op, which have a length, as Python's, which have a stop."""
    result = []
    for start, length, step in slices:
        # The stop next to the last element: the standard leaves stops beyond the axis open.
        stop = start + (length - 1) * step + (1 if step > 0 else -1)
        if not length:
            result.append(builtins.slice(0, 0))  # the start may lie outside of the axis
        elif start < 0:
            raise IndexError(f"a slice starts at {start}")
        else:
            # A negative stop would count from the end.
            result.append(builtins.slice(start, stop if stop >= 0 else None, step))
    return tuple(result)


def check_sliced(shape: Sequence[int], slices: Slices) -> None:
    """Refuse a slice that is shorter than its lengths say: Python clips slices at the ends."""
    if tuple(shape) != tuple([length for _, length, _ in slices]):
        raise IndexError(f"slices {slices} reach beyond the tensor")


def check_gather_operands(
    x: Primitive, indices: Primitive, axis: int, value: Primitive | None = None
) -> None:
    """Refuse operands of gather, and of scatter with a `value`, that a library would broadcast."""
    expected = list(x.shape)
    expected[axis] = indices.shape[axis]
    if tuple(indices.shape) != tuple(expected):
        raise ValueError(f"indices of shape {indices.shape} do not fit {x.shape}")
    if value is not None and tuple(value.shape) != tuple(expected):
        raise ValueError(f"a value of shape {value.shape} for indices of shape {indices.shape}")
