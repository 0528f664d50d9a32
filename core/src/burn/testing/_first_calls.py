"""First calls: while one is made a library may compile, and the time limit of checks waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["first_call", "listen"]

_listeners: list[Callable[[bool], None]] = []


def listen(listener: Callable[[bool], None]) -> None:
    """Have a function called with True as a first call begins, and with False as it ends."""
    _listeners.append(listener)


@contextmanager
def first_call() -> Iterator[None]:
    """Context of a call for which a program is compiled."""
    for listener in _listeners:
        listener(True)  # noqa: FBT003 — the parameter of a callback
    try:
        yield
    finally:
        for listener in _listeners:
            listener(False)  # noqa: FBT003
