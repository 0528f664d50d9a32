"""Values of an abstract interpretation of code: the objects that a variable may hold."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

__all__ = [
    "ABSTRACT",
    "NULL",
    "UNKNOWN",
    "Call",
    "Instance",
    "Nested",
    "Partial",
    "Parts",
    "PartsMethod",
    "Reader",
    "Super",
    "Value",
    "Variable",
    "bound_arguments",
    "class_of",
    "concrete",
    "either",
    "identity_of",
    "is_a",
    "joined",
    "known",
    "named_parts",
]

_MAX_OBJECTS: Final = 4096
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
    """A container that the code makes, or the arguments that a call collects.

    Parameters
    ----------
    items : sequence of Value
        Its items, or positional arguments.
    named : dict of str to Value
        Items by their keys, or keywords.
    """

    def __init__(self, items: Sequence[Value], named: Mapping[str, Value] | None = None) -> None:
        self.items = list(items)
        self.named = dict(named or {})

    def add(self, value: Value) -> bool:
        """Add an item, unless it is there; whether it was added."""
        there = {id(obj) for item in self.items for obj in item.objects}
        if all(id(obj) in there for obj in value.objects):
            return False
        self.items.append(value)
        return True


class PartsMethod(NamedTuple):
    """A method of a container that the code makes."""

    parts: Parts
    name: str


class Instance:
    """An instance of a class that the code makes.

    Parameters
    ----------
    kind : type
        Its class.
    """

    def __init__(self, kind: type) -> None:
        self.kind = kind
        self.attributes: dict[str, Value] = {}
        self._parts = Parts(())
        self._parts.named = self.attributes

    def as_parts(self) -> Parts:
        """Its ``__dict__``: an item that is added there is an attribute."""
        return self._parts


class Super:
    """What ``super()`` gives: the attributes of an object in the classes behind one of its own."""

    def __init__(self, kind: type, instance: Any) -> None:
        self.kind = kind
        self.instance = instance

    def classes(self) -> tuple[type, ...]:
        """The classes that are looked at, in order."""
        one = self.instance
        classes = (one if is_a(one, type) else class_of(one)).__mro__
        return classes[classes.index(self.kind) + 1 :] if self.kind in classes else ()


class Partial(NamedTuple):
    """What ``functools.partial`` gives in the code."""

    call: Call


class Nested:
    """A function that the code makes: a lambda, a comprehension, or one with a name.

    Parameters
    ----------
    code : code
        The code.
    variables : dict of str to cell or Variable
        The variables around it.
    around : (dict, str)
        The global variables, and the name of the function around it.
    """

    def __init__(
        self,
        code: types.CodeType,
        variables: Mapping[str, Any],
        around: tuple[dict[str, Any], str],
    ) -> None:
        self.code = code
        self.variables = variables
        self.around = around
        self.defaults: dict[str, Value] = {}

    def add_defaults(self, value: Value) -> None:
        """Let the last positional parameters have defaults."""
        names = self.code.co_varnames[: self.code.co_argcount]
        for obj in value.objects:
            items = obj.items if isinstance(obj, Parts) else map(known, obj)
            given = list(items)
            self.defaults |= dict(zip(names[len(names) - len(given) :], given, strict=False))

    def add_named_defaults(self, value: Value) -> None:
        """Let parameters that are keywords alone have defaults."""
        for obj in value.objects:
            self.defaults |= named_parts(obj)


class Variable:
    """A variable of a function that a function within it uses: what it may hold by now.

    Parameters
    ----------
    values : dict of str to Value
        Of all variables of the function.
    name : str
        The name.
    """

    def __init__(self, values: Mapping[str, Value], name: str) -> None:
        self._values = values
        self._name = name

    @property
    def value(self) -> Value:
        """What it may hold by now."""
        return self._values.get(self._name, UNKNOWN)


ABSTRACT: Final = (Parts, PartsMethod, Instance, Super, Partial, Nested)
"""Classes of objects that stand for those which the code makes."""


class Call(NamedTuple):
    """The arguments of a call, as far as they are known."""

    args: tuple[Value, ...]
    keywords: dict[str, Value]

    @property
    def values(self) -> tuple[Value, ...]:
        """All arguments."""
        return (*self.args, *self.keywords.values())

    def identity(self) -> tuple[Any, ...]:
        """What distinguishes the arguments from others."""
        named = [(name, identity_of(keyword)) for name, keyword in self.keywords.items()]
        return tuple(map(identity_of, self.args)), tuple(named)


class Reader(Protocol):
    """What is told of each read, and gives the value.

    Attributes
    ----------
    changes : int
        Counts what became part of objects that the code makes.
    is_update : bool
        Whether what is read now is only read to be updated, as in ``x += 1``.
    """

    changes: int
    is_update: bool

    def variable(self, owner: Any, name: str, around: str) -> Value:
        """A cell, or a variable in a dict of global variables; `around` is the function's name."""

    def attribute(self, owner: Value, name: str) -> Value:
        """An attribute of objects."""

    def item(self, owner: Value, key: Value) -> Value:
        """An item of containers."""

    def contents(self, owner: Value) -> Value:
        """All items of containers; the result may be any of them."""

    def truth(self, value: Value) -> None:
        """Whether objects are true."""

    def use(self, value: Value) -> Value:
        """Everything that objects hold; the result may be any of it."""

    def lose(self, path: str, why: str) -> None:
        """Something is read that cannot be compared: a warning says so once."""

    def operate(self, values: Sequence[Value], names: Sequence[str]) -> Value:
        """An operator, for which classes have methods of these names."""

    def call(self, function: Value, call: Call) -> Value:
        """A call."""

    def store(self, owner: Value, name: str, value: Value) -> None:
        """An attribute is set."""

    def add(self, owner: Value, value: Value) -> None:
        """A value becomes an item of containers."""


def is_a(value: Any, kinds: type | tuple[type, ...]) -> bool:
    """Whether an object is of a class: its own class, not what a property ``__class__`` says."""
    return issubclass(type(value), kinds)


def class_of(value: Any) -> type:
    """The class of an object, also of one that the code makes."""
    return value.kind if is_a(value, Instance) else type(value)


def known(value: Any) -> Value:
    """The value that is an object."""
    return Value((value,))


def joined(values: Iterable[Value]) -> Value:
    """What may be any of several values."""
    found: dict[int, Any] = {}
    has_parts = False
    for value in values:
        found |= {id(item): item for item in value.objects}
        has_parts |= value.has_parts
    return Value(tuple(found.values())[:_MAX_OBJECTS], has_parts)


def either(one: Value, other: Value) -> Value:
    """What may be one of two values."""
    return one if one is other else joined((one, other))


def identity_of(value: Value) -> tuple[Any, ...]:
    """What distinguishes a value from others, with the sizes of objects that the code makes."""
    return (value.has_parts, *[(id(obj), _size(obj)) for obj in value.objects])


def _size(one: Any) -> int:
    if is_a(one, Parts):
        return len(one.items) + sum([len(item.objects) for item in one.named.values()])
    if is_a(one, Instance):
        return sum([1 + len(item.objects) for item in one.attributes.values()])
    return 0


def concrete(values: Iterable[Value]) -> frozenset[int]:
    """The objects that values hold, without those which the code makes, by their ids."""
    found: dict[int, Any] = {}
    waiting = [obj for value in values for obj in value.objects]
    while waiting:
        one = waiting.pop()
        if id(one) not in found:
            found[id(one)] = one
            waiting += [item for value in _held(one) for item in value.objects]
    return frozenset(key for key, value in found.items() if not isinstance(value, ABSTRACT))


def _held(one: Any) -> Iterable[Value]:
    """What an object holds that the code makes."""
    if isinstance(one, Parts):
        return (*one.items, *one.named.values())
    if isinstance(one, Instance):
        return one.attributes.values()
    return one.call.values if isinstance(one, Partial) else ()


def named_parts(given: Any) -> dict[str, Value]:
    """The keywords that a dict gives."""
    if isinstance(given, Parts):
        return given.named
    if is_a(given, dict):
        return {key: known(value) for key, value in given.items() if is_a(key, str)}
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
