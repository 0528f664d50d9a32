"""What operations look at in objects: items of containers, attributes, whether they are true."""

from __future__ import annotations

import array
import collections
import enum
import itertools
import operator
import os
import types
from collections.abc import ItemsView, Iterator, KeysView, Sequence, ValuesView
from typing import Any, Final

import numpy as np

from burn.transforms._arguments import is_tensor
from burn.transforms._checks import MAX_COMPARED_BYTES, CheckedCall, CheckedContents
from burn.transforms._paths import Paths
from burn.transforms._user_objects import (
    CONTAINERS,
    SCALARS,
    children_of,
    is_burn,
    is_of_packages,
    is_watched,
    own_attributes,
)
from burn.transforms.code_values import (
    ABSTRACT,
    UNKNOWN,
    Call,
    Instance,
    Partial,
    Parts,
    Value,
    class_of,
    is_a,
    joined,
    known,
)

__all__ = ["Contents"]

_MAX_ITEMS: Final = 4000
"""Items of one container that are followed."""

_MAX_HELD: Final = 1000
"""Objects that are watched where code of a package may read everything that an object holds."""

_ITERATION: Final = ("__iter__", "__next__", "__getitem__", "__len__")

_WITHOUT_ITEMS: Final = (*SCALARS, type, types.ModuleType, types.FunctionType, types.MethodType)

_MEMORY: Final = (bytearray, array.array, memoryview)
"""Classes of the standard library that hold numbers."""

_OF_LIBRARY: Final = (
    collections.UserDict,
    collections.UserList,
    collections.ChainMap,
    types.MappingProxyType,
    type(os.environ),
    KeysView,
    ValuesView,
    ItemsView,
)
"""Classes of the standard library that hold objects in memory, and give the same ones each time."""

_RECORDS: Final = (types.SimpleNamespace, collections.UserDict, collections.UserList)
"""Classes of the standard library whose objects have attributes of the user."""


class Contents(Paths):
    """What operations look at in objects that are there before the code runs."""

    def contents(self, owner: Value) -> Value:
        """All items of the containers that a value may be."""
        inside = joined([self._contents(obj) for obj in owner.objects])
        return Value(joined([owner, inside]).objects, has_parts=True) if owner.has_parts else inside

    def truth(self, value: Value) -> None:
        """Whether objects are true: containers are by their length, objects by two methods."""
        for obj in value.objects:
            if is_a(obj, np.ndarray):
                self._contents(obj)
            elif _is_container(obj):
                self._compare_call(f"whether {self._name(obj)} is empty", operator.not_, obj)
        self._of_methods([value], ("__bool__", "__len__"))

    def length(self, value: Value) -> None:
        """The length of containers and of objects with a method for it."""
        for obj in value.objects:
            if _is_container(obj):
                self._compare_call(f"the length of {self._name(obj)}", len, obj)
        self._of_methods([value], ("__len__",))

    def _compare_call(self, name: str, function: Any, owner: Any) -> None:
        if not is_a(owner, (tuple, frozenset)) and id(owner) not in self._compared:
            check = CheckedCall(name, function, (owner,))
            self._add((id(owner), function.__name__), check, name)

    def operate(self, values: Sequence[Value], names: Sequence[str]) -> Value:
        """An operator takes all items of containers, and calls methods of classes."""
        found = [*map(self.contents, values), self._of_methods(values, names)]
        objects = joined(found).objects
        return Value(objects, has_parts=bool(objects))

    def _of_methods(self, values: Sequence[Value], names: Sequence[str]) -> Value:
        """What methods of these names give, where classes have them."""
        found = []
        for value in values:
            others = tuple([other for other in values if other is not value])
            for obj in value.objects:
                for name in names:
                    function = self._users_method(class_of(obj), name)
                    if function is not None:
                        self._check_class(class_of(obj), name)
                        found.append(self._call(function, Call((known(obj), *others), {})))
        return joined(found)

    def use(self, value: Value) -> Value:
        """Everything that objects hold, which code that is not followed may read."""
        found: dict[int, Any] = {}
        waiting = list(value.objects)
        while waiting:
            one = waiting.pop()
            if id(one) in found:
                continue
            if len(found) > _MAX_HELD:
                self.lose(self._name(value.objects[0]), "with all that it holds")
                break
            found[id(one)] = one
            waiting += self._held(one)
        return Value(tuple(found.values()), has_parts=bool(found))

    def _held(self, one: Any) -> tuple[Any, ...]:
        if isinstance(one, Instance):
            return joined(one.attributes.values()).objects
        if isinstance(one, Partial):
            return joined(one.call.values).objects
        inside = self._contents(one).objects
        if isinstance(one, ABSTRACT) or is_a(one, _WITHOUT_ITEMS) or is_tensor(one):
            return inside
        kind = type(one)
        if is_watched(one) or is_burn(kind) or (is_of_packages(kind) and kind not in _RECORDS):
            return inside
        of_classes = [
            name
            for of in kind.__mro__
            if not is_of_packages(of)
            for name, value in vars(of).items()
            if not name.startswith("__")
            and (is_a(value, types.MemberDescriptorType) or not hasattr(type(value), "__get__"))
        ]
        names = (*own_attributes(one), *of_classes)
        return (*inside, *joined([self._attribute(one, name) for name in names]).objects)

    def _contents(self, owner: Any) -> Value:
        if isinstance(owner, Parts):
            return joined([*owner.items, *owner.named.values()])
        if isinstance(owner, Instance):
            return self._iterated(owner, owner.kind)
        if is_a(owner, type) and issubclass(owner, enum.Enum):
            return Value(tuple(owner))
        if isinstance(owner, ABSTRACT) or is_a(owner, _WITHOUT_ITEMS) or is_tensor(owner):
            return UNKNOWN
        if is_a(owner, (np.ndarray, *_MEMORY)):
            return self._numbers(owner)
        if is_watched(owner):
            return Value(children_of(owner))
        if is_a(owner, Iterator):
            self.lose(self._name(owner), "an iterator that was made before")
            return UNKNOWN
        return self._of_collection(owner, type(owner))

    def _of_collection(self, owner: Any, kind: type) -> Value:
        if not is_of_packages(kind):
            found = self._iterated(owner, kind)
            if found.objects or not is_a(owner, CONTAINERS):
                return found
        if not _is_container(owner):
            return UNKNOWN
        if not is_a(owner, (tuple, frozenset)):
            self._compare_contents(owner)
        return self._items_of(owner)

    def _numbers(self, owner: Any) -> Value:
        if getattr(owner, "nbytes", 0) > MAX_COMPARED_BYTES:
            self.lose(self._name(owner), "a large array, of which a part is compared")
        self._compare_contents(owner)
        return UNKNOWN

    def _compare_contents(self, owner: Any) -> None:
        if id(owner) not in self._compared:
            check = CheckedContents(f"the items of {self._name(owner)}", owner)
            self._add((id(owner), "contents"), check, self._name(owner))

    def _iterated(self, owner: Any, kind: type) -> Value:
        """What methods of a class give for an iteration."""
        found = []
        for name in _ITERATION:
            function = self._users_method(kind, name)
            if function is not None:
                made = self._call(function, Call((known(owner),), {}))
                found.append(made)
                others = [obj for obj in made.objects if obj is not owner]
                found += [self._contents(other) for other in others]
        return Value(joined(found).objects, has_parts=bool(found))

    def _items_of(self, owner: Any) -> Value:
        items = owner
        if is_a(owner, collections.abc.Mapping):
            keys = [key for key in owner if not is_a(key, SCALARS)]
            items = itertools.chain(owner.values(), keys)
        found = [item for item in itertools.islice(items, _MAX_ITEMS) if item is not owner]
        held = [item for item in found if not is_a(item, SCALARS)] or found[:64]
        if len(owner) > _MAX_ITEMS and len(held) > 64:
            self.lose(self._name(owner), f"whose items beyond {_MAX_ITEMS} are not followed")
        self.objects += held
        for index, item in enumerate(held):
            self._names.setdefault(id(item), f"{self._name(owner)}[{index}]")
        return Value(tuple(held))


def _is_container(value: Any) -> bool:
    return is_a(value, (*CONTAINERS, *_OF_LIBRARY)) and not is_burn(type(value))
