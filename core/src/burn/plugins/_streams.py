"""Standard streams that stay open, whatever a plugin does to them."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

from burn.locks import new_lock

__all__ = ["kept_open"]

_log = logging.getLogger("burn")

_NUMBERS: Final = (0, 1, 2)
"""Descriptors of the standard streams."""

_this_thread: Final = threading.local()


@contextlib.contextmanager
def kept_open(plugin: str) -> Iterator[None]:
    """Keep what this thread runs from closing the standard streams of the program.

    ``sys.stdout.close()`` and ``detach()`` do nothing in this thread meanwhile, and a descriptor
    that is closed, or refers to another file, is what it was at the end.

    Parameters
    ----------
    plugin : str
        What runs, for a warning.
    """
    outer = getattr(_this_thread, "closed", None)
    closed = _this_thread.closed = []
    _guard.enter()
    try:
        yield
    finally:
        _this_thread.closed = outer
        closed += _guard.leave()
        if closed:
            what = ", ".join(dict.fromkeys(closed))
            _log.warning("%s closed standard streams, which stay open: %s", plugin, what)


def _copy(number: int) -> int | None:
    try:
        return os.dup(number)
    except OSError:  # the program has closed it
        return None


def _is_same(number: int, copy: int) -> bool:
    try:
        return os.path.sameopenfile(number, copy)
    except OSError:
        return False


def _unless_of_plugin(method: Callable[[], Any], name: str) -> Callable[[], Any]:
    """A method that does nothing in a thread which runs a plugin."""

    def run() -> Any:
        closed = getattr(_this_thread, "closed", None)
        if closed is None:
            return method()
        closed.append(f"{name}()")
        return None

    return run


class _Guard:
    """The standard streams as they were before the first of the plugins that run now."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._count = 0
        self._hidden: list[tuple[Any, str]] = []
        self._copies: dict[int, int] = {}

    def enter(self) -> None:
        """Save the descriptors, and hide the methods that close the streams."""
        with self._lock:
            self._count += 1
            if self._count == 1:
                copies = {number: _copy(number) for number in _NUMBERS}
                self._copies = {number: one for number, one in copies.items() if one is not None}
                for stream in (sys.stdin, sys.stdout, sys.stderr):
                    self._hide(stream)

    def _hide(self, stream: Any) -> None:
        # Not every stream has a buffer, or takes attributes, which hide methods.
        with contextlib.suppress(AttributeError, TypeError, ValueError):
            for name in ("close", "detach"):
                setattr(stream, name, _unless_of_plugin(getattr(stream, name), name))
                self._hidden.append((stream, name))
            self._hide(stream.buffer)

    def leave(self) -> list[str]:
        """Restore the descriptors that are others now, and say which."""
        with self._lock:
            closed = [one for one in self._copies.items() if not _is_same(*one)]
            for number, copy in closed:
                with contextlib.suppress(OSError):
                    os.dup2(copy, number)
            self._count -= 1
            if not self._count:
                for copy in self._copies.values():
                    os.close(copy)
                while self._hidden:
                    stream, name = self._hidden.pop()
                    with contextlib.suppress(AttributeError):
                        delattr(stream, name)
        return [f"descriptor {number}" for number, _ in closed]


_guard: Final = _Guard()
