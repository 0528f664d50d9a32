"""What a function reads of Python objects, so that each call can see whether it is the same.

The code of the function, and of those that it calls of its own package or outside of burn, the
standard library and installed packages, is followed for the paths that it names
(`burn.transforms.bytecode`): variables around it, attributes, items, and containers of which it
may read any item.
"""

from __future__ import annotations

import collections
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from burn.transforms._arguments import is_tensor
from burn.transforms._calls import Calls
from burn.transforms._checks import CheckedContents, CheckedPath
from burn.transforms._user_objects import is_watched, package_of
from burn.transforms.bytecode import follow
from burn.transforms.code_values import (
    UNKNOWN,
    Call,
    Parts,
    Value,
    Variable,
    concrete,
    identity_of,
    is_a,
    known,
)
from burn.tree import leaves, taken_apart

__all__ = ["Reads", "reads_of"]

_MAX_DEPTH: Final = 30
"""Calls within calls that are followed."""

_MAX_CALLS: Final = 2000
"""Calls that are followed altogether."""


class Reads(Calls):
    """Everything that the code of a function reads of objects that are there before it runs."""

    def __init__(self, package: str = "") -> None:
        super().__init__(package)
        self._followed: dict[Any, Value] = {}
        self._arguments: list[Any] = []
        self._depth = 0
        self._running: list[tuple[types.CodeType, frozenset[int]]] = []

    def pass_argument(self, value: Any) -> None:
        """Note an argument of the call."""
        self._arguments.append(value)

    def counts(self) -> collections.Counter[int]:
        """In how many ways the code reaches each object, by its id, as far as that matters here.

        These are paths, items of containers, the arguments, and what modules hold.
        """
        found = [
            item
            for check in self.checks.values()
            for item in (check.items if isinstance(check, CheckedContents) else (check.value,))
        ]
        watched = {id(obj): obj for obj in self.objects if is_watched(obj)}
        for item in (*watched.values(), *self._arguments):
            found += leaves(item)
        return collections.Counter(map(id, found))

    def _follow(self, function: types.FunctionType, call: Call) -> Value:
        """Follow the code of a function."""
        code = function.__code__
        name = f"the code of {function.__qualname__}"
        self._add((id(function), "code"), CheckedPath(name, function, "__code__", code), name)
        if function.__defaults__:
            name, given = f"the defaults of {function.__qualname__}", function.__defaults__
            check = CheckedPath(name, function, "__defaults__", given)
            self._add((id(function), "defaults"), check, name)
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
            tuple(map(_identity, variables.values())),
            *call.identity(),
            tuple([(name, identity_of(default)) for name, default in defaults.items()]),
        )
        if key in self._followed:
            return self._followed[key]
        running = (code, concrete(call.values))
        if self._running.count(running) > 1:  # a recursion that meets no other objects
            return UNKNOWN
        if self._depth >= _MAX_DEPTH or len(self._followed) >= _MAX_CALLS:
            self.lose(around[1], "in many calls, of which not all are looked at")
            return UNKNOWN
        self._followed[key] = UNKNOWN  # of a call in itself
        self._kept.append((variables, call))
        self._depth += 1
        self._running.append(running)
        self.is_update = False
        try:
            self._followed[key] = follow(self, code, variables, around, call, defaults)
        finally:
            self._depth -= 1
            self._running.pop()
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
    >>> [one.name for one in reads_of(Trainer().step, [1.0]).checks.values()]
    ['the code of Trainer.step', 'Trainer.rate']
    """
    reads = Reads(package_of(function))
    keywords = keywords or {}
    for argument in (*args, *keywords.values()):
        reads.compare(argument)
        reads.pass_argument(argument)
    call = Call(
        tuple(map(_argument, args)),
        {name: _argument(keyword) for name, keyword in keywords.items()},
    )
    owner = getattr(function, "__self__", None)
    if owner is not None:
        reads.objects.append(owner)
    reads.result(reads.call(known(function), call))
    return reads


def _identity(variable: Any) -> Any:
    """What distinguishes a variable around a function, and what it holds, from others."""
    if isinstance(variable, Variable):
        return id(variable), identity_of(variable.value)
    return id(variable)


def _argument(value: Any) -> Value:
    """An argument: containers are other objects at each call, with the same items."""
    if is_tensor(value) or is_a(value, (np.ndarray, set, bytearray)):
        return UNKNOWN  # each call compares their elements
    if value.__class__ in (list, tuple):
        return known(Parts([_argument(part) for part in value]))
    if value.__class__ is dict:
        named = {key: _argument(part) for key, part in value.items()}
        return known(Parts(list(named.values()), {str(key): value for key, value in named.items()}))
    if taken_apart(value) is not None and not is_watched(value):
        return UNKNOWN  # its leaves are compared
    return known(value)
