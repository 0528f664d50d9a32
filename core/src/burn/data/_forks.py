"""Memory of this process and a worker, in a process that is forked: the child gets its own.

Before `os.fork` what is mapped becomes private: nothing that the parent or the child write then
reaches the other. What neither has written is still that of the file, which a worker may write
again: the child copies it before it does anything else, and says so by a pipe.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import threading
import weakref
from collections.abc import Iterable
from typing import Final, Protocol

import numpy as np

__all__ = ["Copies", "Owner", "follow", "make_private"]

_MAP_FIXED: Final = 0x10
"""Flag of ``mmap`` on Linux: replaces what is mapped at the address, in one step."""


class Copies:
    """What a child copies of memory that its parent has mapped.

    Parameters
    ----------
    descriptor : int or None
        The end of a pipe from which the parent reads that the child has done so, or has ended.
        Without one the child is taken to need the memory for ever.
    """

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor
        if descriptor is not None:
            os.set_blocking(descriptor, False)
            self._close = weakref.finalize(self, os.close, descriptor)

    def are_made(self) -> bool:
        """Whether the child needs the memory no more."""
        if self._descriptor is None:
            return False
        if self._close.alive:
            try:
                os.read(self._descriptor, 1)
            except BlockingIOError:
                return False
            self._close()
        return True


class Owner(Protocol):
    """What has mapped memory that another process may write again."""

    def keep_for(self, copies: Copies) -> None:
        """Make what is in use private; it is written again only when a child has copied it."""

    def mapped(self) -> Iterable[np.ndarray]:
        """The bytes that are in use; each array of them begins with a page."""

    def forget(self) -> None:
        """Have nothing in use any more: this is the child."""


_owners: weakref.WeakSet[Owner] = weakref.WeakSet()
_forking = threading.local()


def follow(owner: Owner) -> None:
    """Give forked processes their own of what an owner has mapped, as long as it lives."""
    _owners.add(owner)


def make_private(memory: np.ndarray, descriptor: int, offset: int) -> None:
    """Map memory of a file again, at its address, so that what is written there stays here.

    Parameters
    ----------
    memory : array
        All that is mapped.
    descriptor, offset : int
        The file, and the offset of the memory in it.
    """
    library = ctypes.PyDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    address = int(memory.__array_interface__["data"][0])
    access, flags = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | _MAP_FIXED
    found = library.mmap(address, memory.nbytes, access, flags, descriptor, offset)
    if found != address:
        raise OSError(ctypes.get_errno(), "memory of a batch cannot be mapped again")


def _before() -> None:
    owners = [owner for owner in _owners if any(True for _ in owner.mapped())]
    pipe = None
    if owners:
        with contextlib.suppress(OSError):  # there are too many files: the copies are never known
            pipe = os.pipe()
        copies = Copies(pipe[0] if pipe else None)
        for owner in owners:
            owner.keep_for(copies)
    _forking.state = owners, pipe


def _after_in_parent() -> None:
    _, pipe = _forking.__dict__.pop("state", ((), None))
    if pipe:
        os.close(pipe[1])


def _after_in_child() -> None:
    owners, pipe = _forking.__dict__.pop("state", ((), None))
    for owner in owners:
        for memory in owner.mapped():
            pages = memory[:: mmap.PAGESIZE]
            np.bitwise_or(pages, 0, out=pages)  # a write, for which the system copies the page
        owner.forget()
    if pipe:
        with contextlib.suppress(OSError):  # the parent has ended
            os.write(pipe[1], b"x")
        os.close(pipe[1])


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
    )
