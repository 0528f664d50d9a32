"""Locks and forks: a forked process finds no lock that a thread of its parent held.

A fork copies one thread. What another one held would stay locked in the child, for ever: a lock, an
import, a compiler in the middle of its work.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
from collections.abc import Callable
from importlib import _bootstrap
from typing import Any, Final
from weakref import WeakSet

__all__ = ["hold_at_fork", "new_lock", "new_rlock"]

_SECONDS: Final = 10.0
"""How long a fork waits for other threads, of which one may wait for the thread that forks."""

_PAUSE_SECONDS: Final = 0.001

_all: Final[WeakSet[Any]] = WeakSet()
"""Locks that are freed in a child."""

_imports: Final[dict[str, Any]] = getattr(_bootstrap, "_module_locks", {})
"""Weak references to the locks of modules that are imported now."""

_finders: Final[list[Callable[[], Any]]] = []


class _Held(threading.local):
    """Locks that this thread holds for its fork."""

    def __init__(self) -> None:
        self.locks: list[Any] = []


_held: Final = _Held()
_overdue: Final[set[str]] = set()
_searched: Final[set[str]] = set()


def new_lock() -> threading.Lock:
    """A lock, as ``threading.Lock()`` makes it, that is free after a fork.

    What it guards may be half changed there, so a change is one assignment, or is made again.
    """
    lock = threading.Lock()
    _all.add(lock)
    return lock


def new_rlock() -> threading.RLock:
    """A lock, as ``threading.RLock()`` makes it, that is free after a fork, or its forker's."""
    lock = threading.RLock()
    _all.add(lock)
    return lock


def hold_at_fork(find: Callable[[], Any]) -> None:
    """Let forks wait for a lock of a library, whose work has to be complete in a child.

    Parameters
    ----------
    find : callable
        Returns the lock, or None as long as there is none. Locks are taken in the order of these
        calls.
    """
    _finders.append(find)


def _wait_for_others() -> None:
    """Hold the locks of libraries at a moment when no other thread imports a module.

    In a child no thread would end the import, and an import of the same module would wait for ever.
    An import that takes too long, as of a module that runs a program, is not waited for again: a
    child has the module as it is.
    """
    _find_cached_properties()
    until = time.monotonic() + _SECONDS
    while True:
        for find in _finders:
            lock = find()
            if lock is not None and lock.acquire(timeout=max(until - time.monotonic(), 0.0)):
                _held.locks.append(lock)
        busy = _imports_of_others() - _overdue
        if not busy:
            break
        if time.monotonic() > until:
            _overdue.update(busy)
            break
        _release()  # an import may need them
        time.sleep(_PAUSE_SECONDS)


def _imports_of_others() -> set[str]:
    """The modules that other threads import, as far as Python says so."""
    locks: dict[str, Any] = getattr(_bootstrap, "_module_locks", {})
    owners = {name: getattr(reference(), "owner", None) for name, reference in list(locks.items())}
    return {name for name, owner in owners.items() if owner not in (None, threading.get_ident())}


def _find_cached_properties() -> None:
    """Find the locks that a `cached_property` has before Python 3.12, for all objects at once."""
    if sys.version_info >= (3, 12):
        return
    for name, module in list(sys.modules.items()):
        if name.startswith("burn") and name not in _searched:
            _searched.add(name)
            classes = [name for name in list(vars(module).values()) if isinstance(name, type)]
            members: list[Any] = [
                name for class_ in classes for name in list(vars(class_).values())
            ]
            found = [member for member in members if isinstance(member, functools.cached_property)]
            _all.update([vars(cached_property)["lock"] for cached_property in found])


def _release() -> None:
    while _held.locks:
        _held.locks.pop().release()


def _free_all() -> None:
    _release()
    for name in _imports_of_others():
        _imports.pop(name, None)
        if name not in _overdue:  # it began after the last look: it is imported again
            sys.modules.pop(name, None)
    for lock in list(_all):
        if not (hasattr(lock, "_is_owned") and lock._is_owned()):
            lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):  # POSIX
    os.register_at_fork(before=_wait_for_others, after_in_parent=_release, after_in_child=_free_all)
