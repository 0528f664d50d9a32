"""Standard streams that stay what they are, whatever a plugin does to them."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, Final

from burn.locks import new_lock

__all__ = ["Streams", "kept_open"]

_log = logging.getLogger("burn")

_DESCRIPTORS: Final = (0, 1, 2)
"""Descriptors of the standard streams."""

_STREAMS: Final = ("stdin", "stdout", "stderr")
"""Their names in `sys`."""

_ABSENT: Final = object()
"""What `sys` holds where a name was deleted."""


class Streams:
    """What a thread does to the standard streams while it runs a plugin.

    Attributes
    ----------
    closed : list of str
        What it has closed.
    streams : dict of str to tuple
        For each stream that it replaced, the object that was there before, and its last own.
    """

    def __init__(self) -> None:
        self.closed: list[str] = []
        self.streams: dict[str, tuple[Any, Any]] = {}

    def replaces(self, name: str, stream: Any) -> None:
        """Note that it is about to replace a stream."""
        now = vars(sys).get(name, _ABSENT)
        before, last = self.streams.get(name, (now, now))
        self.streams[name] = (before if now is last else now, stream)

    def put_back(self) -> list[str]:
        """Put back the streams that are the plugin's own, and say which."""
        found = []
        for name, (before, last) in list(self.streams.items()):  # the thread may go on
            is_own = vars(sys).get(name, _ABSENT) is last
            if is_own and last is not before and before is not _ABSENT:
                vars(sys)[name] = before
                found.append(f"sys.{name}")
        return found


_this_thread: Final = threading.local()


@contextlib.contextmanager
def kept_open(plugin: str) -> Iterator[Streams]:
    """Keep what this thread runs from taking the standard streams from the program.

    ``sys.stdout.close()`` and ``detach()`` do nothing in this thread meanwhile. A descriptor that
    is closed at the end refers again to what it did, and ``sys.stdout`` is again what it was, if
    this thread has changed it: what the program does meanwhile in its own threads stays.

    Parameters
    ----------
    plugin : str
        What runs, for a warning.

    Yields
    ------
    Streams
        What it does to them: who does not wait for its end puts back what it has replaced so far.
    """
    outer = getattr(_this_thread, "run", None)
    run = _this_thread.run = Streams()
    copies = {number: copy for number in _DESCRIPTORS if (copy := _copy(number)) is not None}
    _guard.enter()
    try:
        yield run
    finally:
        _this_thread.run = outer
        _guard.leave()
        closed = run.closed + [f"descriptor {copy_}" for copy_ in copies if not _is_open(copy_)]
        for number, copy in copies.items():
            if not _is_open(number):
                with contextlib.suppress(OSError):
                    os.dup2(copy, number)
            os.close(copy)
        replaced = run.put_back()
        if closed:
            what = ", ".join(dict.fromkeys(closed))
            _log.warning("%s closed standard streams, which stay open: %s", plugin, what)
        if replaced:
            what = ", ".join(replaced)
            _log.warning("%s replaced standard streams, which are put back: %s", plugin, what)


def _copy(number: int) -> int | None:
    try:
        return os.dup(number)
    except OSError:  # the program has closed it
        return None


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _unless_of_plugin(method: Callable[[], Any], name: str) -> Callable[[], Any]:
    """A method that does nothing in a thread which runs a plugin."""

    def run() -> Any:
        plugin = getattr(_this_thread, "run", None)
        if plugin is None:
            return method()
        plugin.closed.append(f"{name}()")
        return None

    return run


def _noting(module_type: type[ModuleType]) -> type[ModuleType]:
    """A class of `sys` that notes which thread that runs a plugin replaces a stream."""

    class Noting(module_type):  # type: ignore[misc, valid-type]  # a class that is a value
        def __setattr__(self, name: str, value: Any) -> None:
            _note(name, value)
            super().__setattr__(name, value)

        def __delattr__(self, name: str) -> None:
            _note(name, _ABSENT)
            super().__delattr__(name)

    Noting.__name__ = Noting.__qualname__ = module_type.__name__
    return Noting


def _note(name: str, value: Any) -> None:
    plugin = getattr(_this_thread, "run", None) if name in _STREAMS else None
    if plugin is not None:
        plugin.replaces(name, value)


class _Guard:
    """What lies between the standard streams and all plugins that run now."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._count = 0
        self._hidden: list[tuple[Any, str]] = []
        self._types: tuple[type[ModuleType], type[ModuleType]] | None = None

    def enter(self) -> None:
        """Hide the methods that close the streams, and note who replaces one."""
        with self._lock:
            self._count += 1
            for name in _STREAMS:  # other ones, perhaps, than when the first of the plugins began
                self._hide(getattr(sys, name, None))
                self._hide(getattr(sys, f"__{name}__"))
            if self._types is None:
                with contextlib.suppress(TypeError):  # of an implementation that does not allow it
                    types = (sys.__class__, _noting(sys.__class__))
                    sys.__class__ = types[1]
                    self._types = types

    def leave(self) -> None:
        """Undo this after the last plugin."""
        with self._lock:
            self._count -= 1
            if self._count:
                return
            while self._hidden:
                stream, name = self._hidden.pop()
                with contextlib.suppress(AttributeError):
                    delattr(stream, name)
            if self._types is not None:
                if sys.__class__ is self._types[1]:
                    sys.__class__ = self._types[0]
                self._types = None

    def _hide(self, stream: Any) -> None:
        """Hide the methods of a stream, and of those that it writes to."""
        if stream is None or any(item is stream for item, _ in self._hidden):
            return
        # Not every stream has these, or takes attributes, which hide methods.
        with contextlib.suppress(AttributeError, TypeError, ValueError):
            for name in ("close", "detach"):
                setattr(stream, name, _unless_of_plugin(getattr(stream, name), name))
                self._hidden.append((stream, name))
        for part in ("buffer", "raw"):
            with contextlib.suppress(AttributeError, ValueError):  # of a detached stream
                self._hide(getattr(stream, part))


_guard: Final = _Guard()
