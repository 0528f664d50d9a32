"""Writes in place, allowed where reference counts show that nothing else uses the memory."""

from __future__ import annotations

import functools
import sys

from burn.plugin_api import Shape, uint8
from burn_opencl.base import OpenClOps
from burn_opencl.buffers import Buffer

__all__ = ["WritingOps"]

_SHAPE: Shape = (2,)


class WritingOps(OpenClOps):
    """Writes to dense tensors to whose memory nothing else refers."""

    counts_references = ("", ".memory")

    def can_write(self, x: Buffer, views: list[Buffer]) -> bool:
        """Whether only a tensor refers to the memory of `x`, which has no views."""
        if views or x.offset or not x.is_dense:
            return False
        return (sys.getrefcount(x), sys.getrefcount(x.memory)) == self._exclusive_references

    @functools.cached_property
    def _exclusive_references(self) -> tuple[int, int]:
        """The references to a tensor and to its memory if nothing else refers to them.

        Calls themselves add references; their number depends on the version of Python.
        """
        if sys.implementation.name != "cpython":
            return 0, 0  # there are no counts: never write
        owner = _Holder(self.launcher.empty(_SHAPE, uint8))
        return self._counted(owner.buffer, [])

    def are_unused(self, buffers: list[Buffer], references: int) -> list[bool]:
        """Whether only items of a list, and so many other objects, refer to the memory of each."""
        own, memory = self._item_references
        wanted = own + references, memory
        return [counts == wanted for counts in _listed_references(buffers)]

    @functools.cached_property
    def _item_references(self) -> tuple[int, int]:
        """The references to a tensor that only an item of a list refers to, by the same calls."""
        if sys.implementation.name != "cpython":
            return -sys.maxsize, 0
        return _listed_references([self.launcher.empty(_SHAPE, uint8)])[0]

    def _counted(self, x: Buffer, views: list[Buffer]) -> tuple[int, int]:
        """The counts, by the same calls as in `can_write`."""
        del views
        return sys.getrefcount(x), sys.getrefcount(x.memory)


class _Holder:
    """Refers to a buffer as a tensor does."""

    __slots__ = ("buffer",)

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer


def _listed_references(buffers: list[Buffer]) -> list[tuple[int, int]]:
    return [
        (sys.getrefcount(buffers[index]), sys.getrefcount(buffers[index].memory))
        for index in range(len(buffers))
    ]
