"""Leases: what comes back when an object is garbage collected, by no Python code.

Ctrl-C in Python code of a finalizer would be printed and lost. So the finalizer is a callback that
is written in C: the method `append` of a deque.
"""

from __future__ import annotations

import weakref
from collections import deque
from typing import Any, Final, Generic, TypeVar

__all__ = ["Lease", "Leases"]

_T = TypeVar("_T")


class Lease(weakref.ref[Any], Generic[_T]):
    """A weak reference to the object that has something; its callback gets that with it."""

    __slots__ = ("content",)

    content: _T


class Leases(Generic[_T]):
    """What objects have until they are garbage collected."""

    def __init__(self) -> None:
        self._alive: Final[dict[int, Lease[_T]]] = {}

    def lend(self, owner: Any, content: _T, free: deque[Lease[_T]]) -> None:
        """Let an object have something, which is in a deque of leases when the object is gone."""
        lease: Lease[_T] = Lease(owner, free.append)
        lease.content = content
        self._alive[id(lease)] = lease

    def taken(self, free: deque[Lease[_T]]) -> _T | None:
        """What came back last; None if there is nothing."""
        try:
            lease = free.pop()
        except IndexError:  # also where another thread took it
            return None
        del self._alive[id(lease)]
        return lease.content
