"""Watching: whether what a backend made is still there."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from burn.testing._check import Skipped

if TYPE_CHECKING:
    from burn.device_id import DeviceId
    from burn.ir import GraphIr

__all__ = ["Watching", "watched"]


def watched(value: Any, what: str) -> weakref.ref[Any]:
    """A reference that does not keep an object.

    Raises
    ------
    Skipped
        If there is none to objects of its type.
    """
    try:
        return weakref.ref(value)
    except TypeError:
        kind = type(value).__name__
        raise Skipped(f"a {what} of type {kind} cannot be watched by weakref") from None


class Watching:
    """A backend that notes what its `compile` gives.

    Parameters
    ----------
    backend : Backend
        What compiles.

    Attributes
    ----------
    programs : list of weakref.ref
        To what it gave.
    """

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.programs: list[weakref.ref[Any]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def for_device(self, device: DeviceId) -> Watching:
        """The object itself: a table of the backend would compile unnoticed."""
        self._backend = self._backend.for_device(device)
        return self

    def compile(self, graph: GraphIr, device: DeviceId) -> Any:
        """What the backend compiles a program to, which is noted, or None."""
        compile = getattr(self._backend, "compile", None)
        made = None if compile is None else compile(graph, device)
        if made is not None:
            self.programs.append(watched(made, "program"))
        return made
