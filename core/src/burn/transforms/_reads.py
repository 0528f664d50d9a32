"""What a function reads of Python objects, so that each call can see whether it is the same.

The code of the function, and of those that it calls of its own package or outside of burn, the
standard library and installed packages, is followed for the paths that it names
(`burn.transforms.bytecode`): variables around it, attributes, items, and containers of which it
may read any item.
"""

from __future__ import annotations

import collections
import functools
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from burn.transforms._arguments import is_tensor
from burn.transforms._checks import ABSENT, CheckedVariable
from burn.transforms._paths import Paths
from burn.transforms._user_objects import (
    CONTAINERS,
    SCALARS,
    class_attribute,
    is_followed,
    is_watched,
    package_of,
)
from burn.transforms.bytecode import follow
from burn.transforms.code_values import UNKNOWN, Call, Nested, Parts, Value, joined, known
from burn.tree import taken_apart

__all__ = ["Reads", "reads_of"]

_MAX_DEPTH: Final = 30
"""Calls within calls that are followed."""

_MAX_LEVELS: Final = 3
"""Containers within containers whose items may be read where they are passed on."""

_MAX_CALLS: Final = 2000
"""Calls that are followed altogether."""

_LOOKS_AT_NOTHING: Final = frozenset(
    {callable, delattr, hash, id, isinstance, issubclass, print, repr, setattr, str, format}
)
"""Built-in functions that read nothing of containers that becomes part of a program."""

_CHANGES: Final = frozenset(
    [
        "append",
        "appendleft",
        "extend",
        "extendleft",
        "insert",
        "add",
        "update",
        "clear",
        "remove",
        "discard",
        "setdefault",
    ]
)
"""Methods of containers that read nothing of them."""

_FUNCTIONS: Final = (types.FunctionType, types.MethodType, functools.partial, Nested)

_CONTAINER_MAKERS: Final = frozenset(
    {list, tuple, dict, set, frozenset, enumerate, zip, map, filter, reversed, collections.deque}
)
"""Classes whose objects have the items of their arguments."""


class Reads(Paths):
    """Everything that the code of a function reads of objects that are there before it runs."""

    def __init__(self, package: str = "") -> None:
        super().__init__(package)
        self._followed: dict[Any, Value] = {}
        self._depth = 0

    def call(self, function: Value, call: Call) -> Value:
        """Follow the functions that are called, or those among their arguments."""
        return joined([self._call(one, call) for one in function.objects])

    def _call(self, function: Any, call: Call) -> Value:  # noqa: C901 — a case for each sort
        if isinstance(function, Nested):
            variables = function.variables
            return self._followed_code(function.code, variables, ({}, "a function"), call, {})
        if isinstance(function, types.MethodType):
            bound = Call((known(function.__self__), *call.args), call.keywords)
            return self._call(function.__func__, bound)
        if isinstance(function, types.FunctionType):
            if is_followed(function, self._package):
                return self._follow(function, call)
            self._closure(function)
            return self._unknown(call)
        if isinstance(function, functools.partial):
            self._contents(function.keywords)
            given = {name: self._item(function.keywords, name) for name in function.keywords}
            args = (*[self._found(one) for one in function.args], *call.args)
            return self._call(function.func, Call(args, {**given, **call.keywords}))
        if isinstance(function, types.BuiltinFunctionType):
            return self._builtin(function, call)
        if isinstance(function, type):
            return self._new(function, call)
        if function is None or isinstance(function, (Parts, *SCALARS)) or is_tensor(function):
            return UNKNOWN
        wrapped = getattr(function, "__wrapped__", None)
        if wrapped is not None and not isinstance(function, type):
            return self._call(wrapped, call)
        name = "forward" if is_watched(function) else "__call__"
        method = class_attribute(type(function), name)
        if isinstance(method, types.FunctionType):
            return self._call(method, Call((known(function), *call.args), call.keywords))
        return self._unknown(call)

    def _new(self, kind: type, call: Call) -> Value:
        """A call of a class."""
        if kind in _CONTAINER_MAKERS:
            return Value(self._all_contents(call).objects, has_parts=True)
        method = class_attribute(kind, "__init__")
        if isinstance(method, types.FunctionType) and is_followed(method, self._package):
            self._follow(method, Call((UNKNOWN, *call.args), call.keywords))
            return UNKNOWN
        if kind is type and len(call.args) == 1:
            return joined([known(type(one)) for one in call.args[0].objects])
        return self._unknown(call)

    def _builtin(self, function: Any, call: Call) -> Value:
        if function in (getattr, hasattr) and len(call.args) >= 2:
            owner, names = call.args[0], call.args[1].objects
            if len(names) == 1 and isinstance(names[0], str):
                return self._get(owner, names[0], call.args[2:])
            return joined([self._vars(one) for one in owner.objects])
        if function is vars and call.args:
            return joined([self._vars(one) for one in call.args[0].objects])
        if function in _LOOKS_AT_NOTHING:
            return UNKNOWN
        container = getattr(function, "__self__", None)
        if isinstance(container, (*CONTAINERS, np.ndarray)):
            if function.__name__ in _CHANGES:
                return UNKNOWN
            if function.__name__ in ("get", "__getitem__") and call.args:
                return joined([self.item(known(container), call.args[0]), *call.args[1:]])
            return Value(self._contents(container).objects, has_parts=True)
        return Value(self._all_contents(call).objects, has_parts=True)

    def _get(self, owner: Value, name: str, default: Sequence[Value]) -> Value:
        """What ``getattr`` gives."""
        found = list(default)
        for one in owner.objects:
            if isinstance(one, (Parts, Nested)) or is_tensor(one):
                continue
            if class_attribute(type(one), name) is ABSENT and name not in (
                getattr(one, "__dict__", None) or {}
            ):
                self._evaluated(one, name)
            else:
                found.append(self._attribute(one, name))
        return joined(found)

    def _vars(self, owner: Any) -> Value:
        """All attributes of an object."""
        own = getattr(owner, "__dict__", None)
        if not isinstance(own, dict) or is_watched(owner) or isinstance(owner, type):
            return UNKNOWN
        self._names.setdefault(id(own), f"vars({self._name(owner)})")
        return Value(self._contents(own).objects, has_parts=True)

    def _unknown(self, call: Call) -> Value:
        """A call of what is not followed: it may call its arguments, and read what they hold."""
        self._all_contents(call)
        return UNKNOWN

    def _all_contents(self, call: Call) -> Value:
        """What containers among arguments have; functions among them may be called with that."""
        found: list[Value] = []
        functions: list[Any] = []
        waiting = [(one, 0) for one in (*call.args, *call.keywords.values())]
        while waiting:
            value, depth = waiting.pop()
            functions += [one for one in value.objects if isinstance(one, _FUNCTIONS)]
            inside = self.contents(value)
            if inside.objects and inside is not value:
                found.append(inside)
                if depth < _MAX_LEVELS:
                    waiting.append((inside, depth + 1))
        contents = joined(found)
        for one in functions:
            self._call(one, Call((contents,) * 3, {}))
        return contents

    def _closure(self, function: types.FunctionType) -> None:
        """A function of burn or of a package may call the functions that it closes over."""
        for cell in function.__closure__ or ():
            held = CheckedVariable("", cell, "").value
            if isinstance(held, _FUNCTIONS):
                self._call(held, Call((), {}))
            elif is_watched(held):
                self._found(held)
        wrapped = vars(function).get("__wrapped__")
        if isinstance(wrapped, types.FunctionType):
            self._call(wrapped, Call((), {}))

    def _follow(self, function: types.FunctionType, call: Call) -> Value:
        """Follow the code of a function."""
        code = function.__code__
        names = code.co_freevars
        variables = dict(zip(names, function.__closure__ or (), strict=True))
        positional = code.co_varnames[: code.co_argcount]
        given = function.__defaults__ or ()
        defaults = dict(zip(positional[len(positional) - len(given) :], given, strict=True))
        defaults |= function.__kwdefaults__ or {}
        values = {name: self._found(value) for name, value in defaults.items()}
        around = (function.__globals__, function.__qualname__)
        return self._followed_code(code, variables, around, call, values)

    def _followed_code(
        self,
        code: types.CodeType,
        variables: Any,
        around: tuple[dict[str, Any], str],
        call: Call,
        defaults: dict[str, Value],
    ) -> Value:
        key = (
            code,
            tuple([id(one) for one in variables.values()]),
            tuple([tuple(map(id, one.objects)) for one in call.args]),
            tuple([(name, tuple(map(id, one.objects))) for name, one in call.keywords.items()]),
        )
        if key in self._followed:
            return self._followed[key]
        if self._depth >= _MAX_DEPTH or len(self._followed) >= _MAX_CALLS:
            self._cannot_watch(around[1], "in many calls, of which not all are looked at")
            return UNKNOWN
        self._followed[key] = UNKNOWN  # of a call in itself
        self._kept.append((variables, call))
        self._depth += 1
        try:
            self._followed[key] = follow(self, code, variables, around, call, defaults)
        finally:
            self._depth -= 1
        return self._followed[key]


def reads_of(
    function: Callable[..., Any],
    args: Sequence[Any] = (),
    keywords: Mapping[str, Any] | None = None,
) -> Reads:
    """What a call of a function reads of Python objects.

    Parameters
    ----------
    function : callable
        The function.
    args, keywords : sequence, dict
        The arguments of the call: their attributes and items are read too.

    Examples
    --------
    >>> class Trainer:
    ...     rate = 0.5
    ...     def step(self, x):
    ...         return self.rate * x
    >>> [one.name for one in reads_of(Trainer().step, [1.0]).checks]
    ['Trainer.rate']
    """
    reads = Reads(package_of(function))
    keywords = keywords or {}
    for one in (*args, *keywords.values()):
        reads.compare(one)
    call = Call(
        tuple(map(_argument, args)), {name: _argument(one) for name, one in keywords.items()}
    )
    owner = getattr(function, "__self__", None)
    if owner is not None:
        reads.objects.append(owner)
    reads.call(known(function), call)
    return reads


def _argument(value: Any) -> Value:
    """An argument: containers are other objects at each call, with the same items."""
    if is_tensor(value) or isinstance(value, (np.ndarray, set, bytearray)):
        return UNKNOWN  # each call compares their elements
    if value.__class__ in (list, tuple):
        return known(Parts([_argument(one) for one in value]))
    if value.__class__ is dict:
        named = {key: _argument(one) for key, one in value.items()}
        return known(Parts(list(named.values()), {str(key): one for key, one in named.items()}))
    if taken_apart(value) is not None and not is_watched(value):
        return UNKNOWN  # its leaves are compared
    return known(value)
