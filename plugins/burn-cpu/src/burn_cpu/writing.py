"""Writes in place, allowed where reference counts show that nothing else uses the memory."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

import numpy as np

from burn.plugin_api import Scalar, Slices, python_slices
from burn_cpu.base import Array, CpuOps

__all__ = ["WritingOps", "unused_items"]


class WritingOps(CpuOps):
    """Writes to arrays that own their memory and that nothing else refers to."""

    counts_references = ("",)
    """What of an array each view, export and other user of its memory refers to: itself."""

    def can_write(self, x: Array, views: list[Array]) -> bool:
        """Whether only a tensor and `views` refer to the memory of `x`, by reference counts."""
        if x.__class__ is not np.ndarray or not x.flags.owndata or not x.flags.writeable:
            return False
        count, view_count = _references(x, views)
        return count <= _EXCLUSIVE and view_count <= _EXCLUSIVE_VIEW

    def write_slice(self, x: Array, value: Array | Scalar, *, slices: Slices) -> None:
        """NumPy's assignment, which handles a value that overlaps `x`."""
        if value.__class__ is np.ndarray:
            x[python_slices(slices)] = value
            return
        with np.errstate(all="ignore"):  # a number may overflow the dtype
            x[python_slices(slices)] = value


def unused_items(arrays: Sequence[Array], references: int) -> tuple[bool, ...]:
    """For each array of a list whether it owns memory that nothing else uses.

    That is, only the list and so many other objects refer to it. The references to an array without
    memory of its own do not show what else uses that.
    """
    most = _OF_AN_ITEM + references
    count = sys.getrefcount
    return tuple(
        [
            count(arrays[index]) <= most and arrays[index].base is None
            for index in range(len(arrays))
        ]
    )


def _references(x: Array, views: list[Array]) -> tuple[int, int]:
    """References to `x` other than by `views`, and the largest number of references to a view.

    Every array that shares the memory of `x` has it as ``base``, also a view of a view.
    """
    view_count = 0
    count = sys.getrefcount(x)
    for index in range(len(views)):
        if views[index] is x:
            count -= 2  # by the tensor, and by the list
        elif views[index].base is x:
            count -= 1
            view_count = max(view_count, sys.getrefcount(views[index]))
        else:
            return count, sys.maxsize  # a copy, which a write to x does not reach
    return count, view_count


class _Holder:
    """Refers to an array as a tensor does."""

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array


class _Counting:
    """Counts for arrays that nothing else refers to, by the same calls as `WritingOps.can_write`.

    The calls themselves add references; their number depends on the version of Python.
    """

    def can_write(self, x: Array, views: list[Array]) -> tuple[int, int]:
        return _references(x, views)


def _calibrate() -> tuple[int, int]:
    owner = _Holder(np.zeros(2))
    view = _Holder(owner.array[:1])
    return _Counting().can_write(owner.array, [holder.array for holder in (view,)])


_EXCLUSIVE: Final = _calibrate()[0] if sys.implementation.name == "cpython" else 0
"""References to an array that only a tensor refers to; 0 without reference counts: never write."""

_EXCLUSIVE_VIEW: Final = _calibrate()[1] if sys.implementation.name == "cpython" else 0


def _count_of_item() -> int:
    items = [np.zeros(2)]
    return sys.getrefcount(items[0])


_OF_AN_ITEM: Final = _count_of_item() if sys.implementation.name == "cpython" else -sys.maxsize
"""References to an array that only a list refers to."""
