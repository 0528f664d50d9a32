"""Memory for what programs compute in between: programs that do not run at once share it."""

from __future__ import annotations

import weakref
from typing import Any, Final

import numpy as np

__all__ = ["Workspace", "Workspaces"]

_ALIGNMENT: Final = 64
"""Bytes of a line of the cache."""


class Workspace:
    """One block of memory, which grows to what the largest of its programs needs.

    Attributes
    ----------
    parts : dict of int to array
        The parts that were made, by their numbers of bytes.
    """

    __slots__ = ("_memory", "parts")

    def __init__(self) -> None:
        self._memory: np.ndarray[Any, Any] = np.empty(0, np.uint8)
        self.parts: dict[int, np.ndarray[Any, Any]] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of the block."""
        return int(self._memory.size)

    def part(self, size: int) -> np.ndarray[Any, Any]:
        """The first bytes, aligned; the values in them are arbitrary."""
        if size > self._memory.size:
            self.parts.clear()
            memory = np.empty(size + _ALIGNMENT, np.uint8)
            start = -memory.__array_interface__["data"][0] % _ALIGNMENT
            self._memory = memory[start : start + size]
        found = self.parts[size] = self._memory[:size]
        return found


class Workspaces:
    """The workspaces of a process that no program uses now.

    A program takes one while it runs: a program that runs inside of another one, or in another
    thread, takes another. What a program has that fails is not given back, and freed. All are freed
    with the last program.

    Attributes
    ----------
    free : list of Workspace
        Those that no program has; one that is done with its own appends it.
    """

    def __init__(self) -> None:
        self.free: list[Workspace] = []

    @staticmethod
    def shared() -> Workspaces:
        """Those of all programs."""
        found = _shared.get("all")
        if found is None:
            found = _shared["all"] = Workspaces()
        return found

    def take(self, size: int) -> tuple[Workspace, np.ndarray[Any, Any]]:
        """A workspace of which nothing else has a part, and a part of it."""
        try:
            workspace = self.free.pop()
        except IndexError:
            workspace = Workspace()
        part = workspace.parts.get(size)
        return workspace, workspace.part(size) if part is None else part


_shared: Final[weakref.WeakValueDictionary[str, Workspaces]] = weakref.WeakValueDictionary()
