"""Which object keeps a tensor of a trace that has ended."""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Iterator
from typing import Any

from burn.autodiff import AutodiffTensor, Node
from burn.dispatch import DispatchTensor
from burn.errors import TraceError
from burn.ops.source import is_of_user
from burn.router import Recorder, RouterTensor
from burn.transforms._calling import Calling
from burn.transforms._code import Code

__all__ = ["check_escapes", "name_of"]

_DEPTH = 8
"""Objects around a tensor that are looked through for one with a name."""


def check_escapes(recorder: Recorder, operation: str) -> None:
    """Raise unless nothing keeps a tensor of a trace that has ended.

    Raises
    ------
    TraceError
        If something does; the message names it.
    """
    if not recorder.alive:
        return
    gc.collect()  # a cycle without references from outside keeps nothing
    if not recorder.alive:
        return
    kept = [obj for obj in gc.get_objects() if type(obj) is RouterTensor and obj.client is recorder]
    passed = {id(kept), *map(id, _running_frames())}
    holders = {
        router_tensor.id: _holder(router_tensor, _DEPTH, set(passed)) for router_tensor in kept
    }
    number = next((name for name, holder in holders.items() if holder), kept[0].id)
    raise TraceError(
        f"the function keeps a tensor of the trace{_made_by(recorder, number)} in "
        f"{holders[number] or 'an object elsewhere'}: it has no value there",
        hint="Return it, in lists, tuples, dicts or classes of burn.tree.register; or write it to "
        "a tensor that exists, as in x[...] = value",
        operation=operation,
    )


def _made_by(recorder: Recorder, number: int) -> str:
    """The operation that made a tensor, and its line, as a part of a message."""
    for operation in recorder.operations:
        if operation.source and any(output.id == number for output in operation.outputs):
            return f" ({operation.name} at {operation.source})"
    return ""


def name_of(x: DispatchTensor, *passed: Any) -> str | None:
    """How a message names a tensor: by what refers to it, these objects aside."""
    return _holder(x, _DEPTH, {id(passed), *map(id, [*passed, *_running_frames()])})


def _holder(kept: Any, depth: int, passed: set[int]) -> str | None:
    """The first object with a name among those that refer to an object, also indirectly."""
    if not depth:
        return None
    referrers = [referrer for referrer in gc.get_referrers(kept) if id(referrer) not in passed]
    passed |= {id(referrers), *map(id, referrers)}
    for referrer in referrers:
        name = (
            None
            if isinstance(referrer, (DispatchTensor, AutodiffTensor, Node))
            else _name(referrer, kept)
        )
        if name is not None:
            return name
    for referrer in referrers:
        name = _holder(referrer, depth - 1, passed)
        if name is not None:
            return name
    return None


def _running_frames() -> Iterator[types.FrameType]:
    """The frames of this thread; those of a generator or a traceback are not among them."""
    frame: types.FrameType | None = sys._getframe()
    while frame is not None:
        yield frame
        frame = frame.f_back


def _name(holder: Any, kept: Any) -> str | None:
    """How a message names an object that refers to another one; None if that is to be named."""
    if isinstance(holder, dict):
        return _name_in_dict(holder, kept)
    if isinstance(holder, (Calling, Code)):
        return "a part of its result that is no container"
    if isinstance(holder, types.CellType):
        return _name_of_cell(holder)
    if isinstance(holder, types.FunctionType) and holder.__defaults__ is kept:
        return f"the default of a parameter of {holder.__qualname__}"
    described = getattr(type(holder), "_holds_in_trace", None)
    if isinstance(described, str):
        return described
    members = getattr(holder, "__dict__", None)
    if not isinstance(members, dict) or isinstance(holder, (types.ModuleType, type)):
        return None
    for name, value in members.items():
        if value is kept or _contains(value, kept):
            return f"the attribute {name!r} of an object of type {type(holder).__name__}"
    return None


def _name_in_dict(holder: dict[Any, Any], kept: Any) -> str | None:
    """The global variable or the attribute that a dict has for an object, if it is of those."""
    key = next((key for key, value in holder.items() if value is kept), None)
    if "__builtins__" in holder:  # as the global variables of any code have
        return f"the global variable {key!r} of {holder.get('__name__', 'a program')}"
    for owner in gc.get_referrers(holder):
        if getattr(owner, "__dict__", None) is holder:
            described = getattr(type(owner), "_holds_in_trace", None)
            if isinstance(described, str):
                return described
            return f"the attribute {key!r} of an object of type {type(owner).__name__}"
    return None


def _name_of_cell(cell: types.CellType) -> str | None:
    """The variable of a closure of the user."""
    for closure in gc.get_referrers(cell):
        if isinstance(closure, tuple):
            for function in gc.get_referrers(closure):
                if isinstance(function, types.FunctionType):
                    if not is_of_user(function.__code__.co_filename):
                        return None
                    name = function.__code__.co_freevars[closure.index(cell)]
                    return f"the variable {name!r} around {function.__qualname__}"
    return "a variable around a function"


def _contains(value: Any, kept: Any) -> bool:
    return value.__class__ in {list, tuple, dict, set} and any(
        referent is kept for referent in gc.get_referents(value)
    )
