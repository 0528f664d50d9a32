"""Writes in place, allowed where reference counts show that nothing else uses the memory."""

from __future__ import annotations

import functools
import sys

from burn.plugin_api import uint8
from burn_cuda.base import Array, CudaOps

__all__ = ["WritingOps"]


class WritingOps(CudaOps):
    """Writes to arrays whose memory the pools of CuPy gave, and to which nothing else refers."""

    counts_references = ("",)  # each view refers to the array itself

    def can_write(self, x: Array, views: list[Array]) -> bool:
        """Whether only a tensor refers to the memory of `x`, which has no views."""
        return not views and self._references(x) == self._exclusive_references

    def _references(self, x: Array) -> tuple[int, ...]:
        return self.runtime.references(x)

    @functools.cached_property
    def _exclusive_references(self) -> tuple[int, ...]:
        """The references to an array that only a tensor refers to.

        Calls themselves add references; their number depends on the version of Python.
        """
        if sys.implementation.name != "cpython":
            return (0,)  # there are no counts: never write
        owner = _Holder(self.runtime.empty((2,), uint8.numpy))
        return self._counted(owner.array, [])

    def _counted(self, x: Array, views: list[Array]) -> tuple[int, ...]:
        """The counts, by the same calls as in `can_write`."""
        return () if views else self._references(x)

    def is_unused(self, arrays: list[Array], index: int) -> bool:
        """Whether nothing but an item of a list refers to the memory of an array."""
        return self.are_unused([arrays[index]], 1)[0]

    def are_unused(self, arrays: list[Array], references: int) -> list[bool]:
        """Whether only items of a list, and so many other objects, refer to the memory of each."""
        first, *others = self._item_references
        wanted = (first + references, *others)
        return [counts == wanted for counts in self._listed_references(arrays)]

    def _listed_references(self, arrays: list[Array]) -> list[tuple[int, ...]]:
        references = self.runtime.references
        return [references(arrays[index]) for index in range(len(arrays))]

    @functools.cached_property
    def _item_references(self) -> tuple[int, ...]:
        """The references to an array that only an item of a list refers to, by the same calls."""
        return self._listed_references([self.runtime.empty((2,), uint8.numpy)])[0]


class _Holder:
    """Refers to an array as a tensor does."""

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array
