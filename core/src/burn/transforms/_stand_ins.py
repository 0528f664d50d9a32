"""Stand-ins: what the tensors from outside are in a trace, which no other thread sees.

While a tensor from outside belongs to a trace, its class is one that looks `primitive` and
`tensor_type` up in the running trace. Every thread and asyncio task without that trace reads and
writes what the tensor holds.
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
        For the id of a tensor: its attributes `primitive` and `tensor_type` in the trace.
    """

    __slots__ = ("_tensors", "values")

    def __init__(self) -> None:
        self.values: dict[int, dict[str, Any]] = {}
        self._tensors: list[DispatchTensor] = []

    def add(self, x: DispatchTensor, primitive: Any, tensor_type: Any) -> None:
        """Let the trace see these attributes of a tensor."""
        self.values[id(x)] = {"primitive": primitive, "tensor_type": tensor_type}
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
        "primitive": _attribute("primitive"),
        "tensor_type": _attribute("tensor_type"),
    }
    return type(kind.__name__, (kind,), members)


def _attribute(name: str) -> property:
    held: Any = getattr(DispatchTensor, name)  # the descriptor of the slot

    def get(x: DispatchTensor) -> Any:
        found = _in_trace(x)
        return held.__get__(x) if found is None else found[name]

    def put(x: DispatchTensor, value: Any) -> None:
        found = _in_trace(x)
        if found is None:
            held.__set__(x, value)
        else:
            found[name] = value

    return property(get, put)


def _in_trace(x: DispatchTensor) -> dict[str, Any] | None:
    """The attributes of a tensor in the running trace, or in the next one around it that has it."""
    trace: Any = running_trace()
    while trace is not None:
        found: dict[str, Any] | None = trace.stand_ins.values.get(id(x))
        if found is not None:
            return found
        trace = trace.outer
    return None
