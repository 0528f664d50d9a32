"""Stand-ins: what the tensors from outside are in a trace, which no other thread sees.

While a tensor from outside belongs to a trace, its class is one that looks `primitive`,
`tensor_type` and `link` up in the running trace. Every thread and asyncio task without that trace
reads and writes what the tensor holds. So the views that a trace makes of it are in a set of the
trace, where no write of another thread finds them.
"""

from __future__ import annotations

import functools
from typing import Any, Final

from burn.devices import running_trace
from burn.dispatch import DispatchTensor
from burn.locks import new_lock

__all__ = ["StandIns"]

_lock: Final = new_lock()
"""Held while the class of a tensor changes."""

_uses: Final[dict[int, int]] = {}
"""For the id of each tensor that belongs to traces: how many those are."""


class StandIns:
    """What the tensors from outside are in one trace.

    Attributes
    ----------
    values : dict of int to dict
        For the id of a tensor: its attributes in the trace, as far as they differ.
    """

    __slots__ = ("_tensors", "values")

    def __init__(self) -> None:
        self.values: dict[int, dict[str, Any]] = {}
        self._tensors: list[DispatchTensor] = []

    def add(self, x: DispatchTensor, primitive: Any, tensor_type: Any) -> None:
        """Let the trace see these attributes of a tensor, and have views of it of its own."""
        self._look_up(x)
        if x.link.__class__ is tuple:
            self._look_up(x.link[0])
        self.values[id(x)] |= {"primitive": primitive, "tensor_type": tensor_type}

    def _look_up(self, x: DispatchTensor) -> None:
        """Let a tensor have attributes of its own in the trace, where they are given."""
        if id(x) in self.values:
            return
        self.values[id(x)] = {}
        self._tensors.append(x)
        kind: Any = x.__class__
        with _lock:
            count = _uses.get(id(x), 0)
            if not count:
                _set_class(x, _looked_up(kind))
            _uses[id(x)] = count + 1

    def clear(self) -> None:
        """Let all tensors be as they are for other threads."""
        with _lock:
            for x in self._tensors:
                _uses[id(x)] -= 1
                if not _uses[id(x)]:
                    del _uses[id(x)]
                    _set_class(x, x.__class__)
        self._tensors.clear()
        self.values.clear()


_class_of: Final[Any] = vars(object)["__class__"]


def _set_class(x: DispatchTensor, kind: type) -> None:
    _class_of.__set__(x, kind)


@functools.cache
def _looked_up(kind: type) -> type:
    """The class of tensors of a class while they belong to traces; `__class__` does not show it."""
    members = {
        "__slots__": (),
        "__doc__": kind.__doc__,
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__class__": property(lambda _: kind),
        "link": property(_get_link, _put_link),
        "primitive": _attribute("primitive"),
        "tensor_type": _attribute("tensor_type"),
    }
    return type(kind.__name__, (kind,), members)


_held: Final[dict[str, Any]] = {
    name: getattr(DispatchTensor, name) for name in ("link", "primitive", "tensor_type")
}
"""The descriptors of the slots."""

_NOTHING: Final[dict[str, Any]] = {}


def _attribute(name: str) -> property:
    held = _held[name]

    def get(x: DispatchTensor) -> Any:
        found = _in_trace(x, name)
        return held.__get__(x) if found is None else found[name]

    def put(x: DispatchTensor, value: Any) -> None:
        found = _in_trace(x, name)
        if found is None:
            held.__set__(x, value)
        else:
            found[name] = value

    return property(get, put)


def _in_trace(x: DispatchTensor, name: str) -> dict[str, Any] | None:
    """The attributes of a tensor in the running trace, or in the next one around it that has it."""
    trace: Any = running_trace()
    while trace is not None:
        found: dict[str, Any] = trace.stand_ins.values.get(id(x), _NOTHING)
        if name in found:
            return found
        trace = trace.outer
    return None


def _get_link(x: DispatchTensor) -> Any:
    return _link_in(running_trace(), x)


def _put_link(x: DispatchTensor, value: Any) -> None:
    trace = _nearest(running_trace(), x)
    if trace is None:
        _held["link"].__set__(x, value)
    else:
        trace.stand_ins.values[id(x)]["link"] = value


def _link_in(trace: Any, x: DispatchTensor) -> Any:
    """The link of a tensor in a trace: the one around it, but a set of views is its own."""
    trace = _nearest(trace, x)
    if trace is None:
        return _held["link"].__get__(x)
    own = trace.stand_ins.values[id(x)]
    if "link" not in own:
        outside = _link_in(trace.outer, x)
        if outside.__class__ is not set:
            return outside
        own["link"] = set()
    return own["link"]


def _nearest(trace: Any, x: DispatchTensor) -> Any:
    """A trace, or the next one around it, in which a tensor may have attributes of its own."""
    while trace is not None and id(x) not in trace.stand_ins.values:
        trace = trace.outer
    return trace
