"""Values of an abstract interpretation of code: the objects that a variable may hold."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

__all__ = [
    "NULL",
    "UNKNOWN",
    "Call",
    "Nested",
    "Parts",
    "Reader",
    "Value",
    "bound_arguments",
    "either",
    "joined",
    "known",
    "named_parts",
]

_MAX_OBJECTS: Final = 64
"""Objects that one value may be."""


class Value(NamedTuple):
    """What a variable or a slot of the stack may hold.

    Attributes
    ----------
    objects : tuple
        Objects that it may be; none if nothing is known.
    has_parts : bool
        Whether it may also be a part of one of them, or be made of them, such as an iterator.
    """

    objects: tuple[Any, ...] = ()
    has_parts: bool = False


UNKNOWN: Final = Value()
NULL: Final = Value()
"""What calls have on the stack beside a callable that is no method: another object than UNKNOWN."""


class Parts:
    """The arguments that a call collects: positional ones, or keywords."""

    def __init__(self, items: Sequence[Value], named: Mapping[str, Value] | None = None) -> None:
        self.items = list(items)
        self.named = dict(named or {})


class Nested:
    """A function that the code makes: a lambda, a comprehension, or one with a name."""

    def __init__(self, code: types.CodeType, variables: Mapping[str, Any], parts: Value) -> None:
        self.code = code
        self.variables = variables
        self.parts = parts


class Call(NamedTuple):
    """The arguments of a call, as far as they are known."""

    args: tuple[Value, ...]
    keywords: dict[str, Value]


class Reader(Protocol):
    """What is told of each read, and gives the value."""

    def variable(self, owner: Any, name: str, around: str) -> Value:
        """A cell, or a variable in a dict of global variables; `around` is the function's name."""

    def attribute(self, owner: Value, name: str) -> Value:
        """An attribute of objects."""

    def item(self, owner: Value, key: Value) -> Value:
        """An item of containers."""

    def contents(self, owner: Value) -> Value:
        """All items of containers; the result may be any of them."""

    def call(self, function: Value, call: Call) -> Value:
        """A call."""


def known(value: Any) -> Value:
    """The value that is an object."""
    return Value((value,))


def joined(values: Iterable[Value]) -> Value:
    """What may be any of several values."""
    found: dict[int, Any] = {}
    has_parts = False
    for one in values:
        found |= {id(item): item for item in one.objects}
        has_parts |= one.has_parts
    return Value(tuple(found.values())[:_MAX_OBJECTS], has_parts)


def either(one: Value, other: Value) -> Value:
    """What may be one of two values."""
    return one if one is other else joined((one, other))


def named_parts(given: Any) -> dict[str, Value]:
    """The keywords that a dict gives."""
    if isinstance(given, Parts):
        return given.named
    if isinstance(given, dict):
        return {key: known(value) for key, value in given.items() if isinstance(key, str)}
    return {}


def bound_arguments(code: types.CodeType, call: Call) -> dict[str, Value]:
    """The parameters with their arguments."""
    names = code.co_varnames
    count, only = code.co_argcount, code.co_kwonlyargcount
    local = dict(zip(names[:count], call.args, strict=False))
    named = names[: count + only]
    local |= {name: value for name, value in call.keywords.items() if name in named}
    index = count + only
    if code.co_flags & 0x04:  # *args
        local[names[index]] = known(Parts(call.args[count:]))
        index += 1
    if code.co_flags & 0x08:  # **keywords
        rest = {name: value for name, value in call.keywords.items() if name not in named}
        local[names[index]] = known(Parts((), rest))
    return local
