"""Writes in place: whether anything else sees the memory of an array, by its reference counts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import numpy as np

from burn.backend.array import python_slices
from burn_cpu.base import Array, CpuOps

if TYPE_CHECKING:
    from burn.aliases import Scalar, Slices

__all__ = ["WritingOps"]


class WritingOps(CpuOps):
    """Writes to arrays that NumPy allocated and that nothing else refers to."""

    def can_write(self, x: Array, views: list[Array]) -> bool:
        """Whether reference counts show that only a tensor and these views of it see its memory."""
        if x.__class__ is not np.ndarray or not x.flags.owndata or not x.flags.writeable:
            return False
        own, most = _references(x, views)
        return own <= _EXCLUSIVE and most <= _EXCLUSIVE_VIEW

    def write_slice(self, x: Array, value: Array | Scalar, *, slices: Slices) -> None:
        """NumPy's own assignment, which takes care of a value that overlaps."""
        if value.__class__ is np.ndarray:
            x[python_slices(slices)] = value
            return
        with np.errstate(all="ignore"):  # a number may be too large for the dtype
            x[python_slices(slices)] = value


def _references(x: Array, views: list[Array]) -> tuple[int, int]:
    """References to `x` beside those by `views`, and the most that there are to one of the views.

    Every array that shares the memory of one refers to its owner, also a view of a view.
    """
    of_views = 0
    count = sys.getrefcount(x)
    for index in range(len(views)):
        if views[index] is x:
            count -= 2  # by the tensor, and by the list
        elif views[index].base is x:
            count -= 1
            of_views = max(of_views, sys.getrefcount(views[index]))
        else:
            return count, sys.maxsize  # a copy, which a write to x would not change
    return count, of_views


class _Holder:
    """Refers to an array as a tensor does."""

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array


class _Counting:
    """Counts as `WritingOps.can_write` does, for arrays that nothing else refers to.

    The call itself adds references, and versions of Python differ in how many.
    """

    def can_write(self, x: Array, views: list[Array]) -> tuple[int, int]:
        return _references(x, views)


def _calibrate() -> tuple[int, int]:
    owner = _Holder(np.zeros(2))
    view = _Holder(owner.array[:1])
    return _Counting().can_write(owner.array, [one.array for one in (view,)])


_EXCLUSIVE: Final = _calibrate()[0] if sys.implementation.name == "cpython" else 0
"""References to an array that only a tensor refers to; 0 where none are counted: never write."""

_EXCLUSIVE_VIEW: Final = _calibrate()[1] if sys.implementation.name == "cpython" else 0
