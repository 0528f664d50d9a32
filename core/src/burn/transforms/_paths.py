"""Paths to objects that code reads: variables, attributes, items; and what each call compares."""

from __future__ import annotations

import builtins
import dataclasses
import functools
import types
import warnings
from typing import Any, Final

import numpy as np

from burn.transforms._arguments import is_tensor
from burn.transforms._checks import (
    ABSENT,
    Check,
    CheckedCache,
    CheckedPath,
    CheckedVariable,
    is_equal,
)
from burn.transforms._constants import is_record
from burn.transforms._user_objects import (
    CONTAINERS,
    SCALARS,
    class_attribute,
    has_its_own_name,
    is_burn,
    is_followed,
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
    PartsMethod,
    Super,
    Value,
    class_of,
    either,
    is_a,
    joined,
    known,
    named_parts,
)

__all__ = ["Paths"]

_PLAIN: Final = (*CONTAINERS, np.ndarray, functools.partial)
"""Classes whose own attributes stay as they are."""


class Paths:
    """What code reads of objects that are there before it runs.

    Attributes
    ----------
    checks : dict of object to Check
        What each call compares, by keys that each call gives them.
    objects : list of object
        Objects that the paths lead to.
    changes : int
        Counts what became part of objects that the code makes.
    is_update : bool
        Whether what is read now is only read to be updated, as in ``x += 1``: a number of which
        nothing else depends is not compared.

    Parameters
    ----------
    package : str
        The package whose code is followed, beside the user's.
    """

    def __init__(self, package: str = "") -> None:
        self._package = package
        self.objects: list[Any] = []
        self.checks: dict[Any, Check] = {}
        self.changes = 0
        self.is_update = False
        self._names: dict[int, str] = {}
        self._kept: list[Any] = []  # so that no id is of two objects
        self._compared: dict[int, Any] = {}
        self._methods: dict[tuple[int, int], types.MethodType] = {}
        self._lost: set[str] = set()

    def tensors(self) -> dict[Any, Check]:
        """The checks of what holds a tensor, by keys that each call gives them."""
        return {key: check for key, check in self.checks.items() if is_tensor(check.value)}

    # --- what code does: see `burn.transforms.code_values.Reader` ---

    def variable(self, owner: Any, name: str, around: str) -> Value:
        """The value of a variable, or nothing known where it has none."""
        if isinstance(owner, types.CellType):
            text = f"the variable {name!r} around {around}"
        else:
            text = f"the global variable {name!r} of {owner.get('__name__')}"
        check = CheckedVariable(text, owner, name)
        value = check.read()
        if value is ABSENT:
            return known(vars(builtins)[name]) if name in vars(builtins) else UNKNOWN
        if isinstance(owner, types.CellType) or not has_its_own_name(value, name):
            self._add((id(owner), name), check, name)
        return self._found(value)

    def attribute(self, owner: Value, name: str) -> Value:
        """An attribute of each object that a value may be."""
        return joined([self._attribute(obj, name) for obj in owner.objects])

    def item(self, owner: Value, key: Value) -> Value:
        """An item, or any item where the key is not known."""
        keys = key.objects
        if len(keys) == 1 and not key.has_parts and is_a(keys[0], SCALARS):
            found = joined([self._item(obj, keys[0]) for obj in owner.objects])
            return joined([found, self.contents(owner)]) if owner.has_parts else found
        self.contents(key)
        inside = joined([self.contents(owner), self.operate([owner, key], ["__getitem__"])])
        return Value(inside.objects, has_parts=bool(inside.objects))

    def store(self, owner: Value, name: str, value: Value) -> None:
        """An attribute of an object is set: of those that the code makes it is noted."""
        for obj in owner.objects:
            if isinstance(obj, Instance) and name == "__dict__":
                for found in value.objects:
                    for key, item in named_parts(found).items():
                        self.store(known(obj), key, item)
                    self._contents(found)
            elif isinstance(obj, Instance):
                before = obj.attributes.get(name, UNKNOWN)
                obj.attributes[name] = either(before, value)
                self.changes += len(obj.attributes[name].objects) != len(before.objects)

    def add(self, owner: Value, value: Value) -> None:
        """A value becomes an item of containers: of those that the code makes it is noted."""
        for obj in owner.objects:
            if isinstance(obj, Parts):
                self.changes += obj.add(value)

    # --- objects ---

    def _found(self, value: Any) -> Value:
        self.objects.append(value)
        return known(value)

    def _add(self, key: Any, check: Check, name: str) -> None:
        """Compare something at each call."""
        if self.is_update and check.is_value:
            return
        if key not in self.checks:
            self.checks[key] = check
            self._kept.append(check)
            self._names.setdefault(id(check.value), name)

    def _name(self, owner: Any) -> str:
        name = self._names.get(id(owner))
        if name is None and is_a(owner, (type, types.ModuleType, types.FunctionType)):
            name = owner.__name__
        return str(name or type(owner).__name__)

    def _method(self, function: Any, owner: Any) -> Value:
        """A method of an object: the same object for the same method."""
        key = id(function), id(owner)
        if key not in self._methods:
            self._methods[key] = types.MethodType(function, owner)
        return known(self._methods[key])

    def _users_method(self, kind: type, name: str) -> types.FunctionType | None:
        """A method of a class whose code is followed."""
        found = class_attribute(kind, name)
        is_method = is_a(found, types.FunctionType) and is_followed(found, self._package)
        return found if is_method else None

    # --- attributes ---

    def _attribute(self, owner: Any, name: str) -> Value:
        if isinstance(owner, Parts):
            return known(PartsMethod(owner, name))
        if isinstance(owner, Instance):
            if name == "__dict__":
                return known(owner.as_parts())
            if name in owner.attributes:
                return owner.attributes[name]
            return self._of_classes(owner, owner.kind.__mro__, name)
        if isinstance(owner, Super):
            return self._of_classes(owner.instance, owner.classes(), name)
        if isinstance(owner, ABSTRACT) or is_tensor(owner):
            return UNKNOWN
        is_plain = type(owner) in _PLAIN and name not in own_attributes(owner)
        if is_plain or type(owner) in SCALARS or is_a(owner, np.generic):
            value = getattr(owner, name, ABSENT)
            return UNKNOWN if value is ABSENT else known(value)
        if is_a(owner, types.ModuleType):
            return self._of_module(owner, name)
        if is_a(owner, type):
            return self._of_type(owner, name)
        return self._of_instance(owner, name)

    def _of_classes(self, owner: Any, classes: tuple[type, ...], name: str) -> Value:
        """An attribute as it stands in the first of classes that has it."""
        for kind in classes:
            if name not in vars(kind):
                continue
            found = vars(kind)[name]
            self._check_class(kind, name)
            if is_a(found, types.FunctionType):
                return self._method(found, owner)
            if is_a(found, (property, functools.cached_property)):
                function = found.fget if is_a(found, property) else found.func
                return self._call(function, Call((known(owner),), {}))
            if is_a(found, classmethod):
                return self._method(found.__func__, kind)
            return known(getattr(kind, name, None))
        return UNKNOWN

    def _of_module(self, module: types.ModuleType, name: str) -> Value:
        try:
            value = getattr(module, name, ABSENT)
        except Exception:  # noqa: BLE001 — of what is imported at the first use of the attribute
            return UNKNOWN
        if value is not ABSENT and is_of_packages(module):
            return known(value)
        return self._of_path(module, name, value)

    def _of_type(self, owner: Any, name: str) -> Value:
        try:
            value = getattr(owner, name)
        except Exception:  # noqa: BLE001 — of whatever a metaclass computes
            return UNKNOWN
        raw = class_attribute(owner, name)
        if is_a(raw, (types.FunctionType, staticmethod, classmethod)):
            self._check_class(owner, name)
            return known(value)
        if raw is ABSENT and is_a(value, (types.MethodType, types.BuiltinMethodType)):
            return known(value)
        return self._of_path(owner, name, value)

    def _check_class(self, kind: type, name: str) -> None:
        """Compare what a class of the user has under a name, or inherits."""
        if not is_of_packages(kind):
            path = f"{kind.__name__}.{name}"
            check = CheckedPath(path, kind, name, getattr(kind, name))
            self._add((id(kind), "class", name), check, path)

    def _of_instance(self, owner: Any, name: str) -> Value:
        own = own_attributes(owner)
        kind = next((cls for cls in type(owner).__mro__ if name in vars(cls)), None)
        of_class: Any = ABSENT if kind is None else vars(kind)[name]
        if name in own and not hasattr(type(of_class), "__set__"):
            if is_watched(owner):  # with all that it holds
                return known(own[name])
            return self._of_path(owner, name, own[name])
        if kind is None:
            return self._computed(owner, name)
        if is_a(of_class, types.MemberDescriptorType):  # of ``__slots__``
            return self._of_path(owner, name, getattr(owner, name, ABSENT))
        if is_a(of_class, property):
            function = of_class.fget
            if is_a(function, types.FunctionType) and is_followed(function, self._package):
                self._check_class(type(owner), name)
                return self._call(function, Call((known(owner),), {}))
            return self._evaluated(owner, name)
        if is_a(of_class, types.FunctionType):
            return self._of_method(owner, of_class, name)
        if not hasattr(type(of_class), "__get__"):
            return self._of_path(owner, name, of_class)
        return self._of_descriptor(owner, name, of_class)

    def _of_descriptor(self, owner: Any, name: str, of_class: Any) -> Value:
        """An attribute that an object in the class gives."""
        if is_a(of_class, (classmethod, staticmethod)):
            self._check_class(type(owner), name)
        if is_a(of_class, functools.cached_property):  # of which nothing is there yet
            path = f"{self._name(owner)}.{name}"
            self._add((id(owner), name), CheckedCache(path, own_attributes(owner), name), path)
            return self._call(of_class.func, Call((known(owner),), {}))
        if is_a(of_class, functools.partialmethod):
            keywords = {key: known(keyword) for key, keyword in of_class.keywords.items()}
            args = (self._method(of_class.func, owner), *map(known, of_class.args))
            return known(Partial(Call(args, keywords)))
        if callable(of_class):  # a method of a class that is written in C
            return known(getattr(owner, name))
        return self._evaluated(owner, name)

    def _of_method(self, owner: Any, function: types.FunctionType, name: str) -> Value:
        """A method of a class, which another class or an attribute of the object may replace."""
        if is_followed(function, self._package):
            self._check_class(type(owner), name)
            class_path = f"the class of {self._name(owner)}"
            check = CheckedPath(class_path, owner, "__class__", type(owner))
            self._add((id(owner), "__class__"), check, class_path)
            if not is_watched(owner) and hasattr(owner, "__dict__"):
                path = f"{self._name(owner)}.{name}"
                absence = CheckedPath(path, own_attributes(owner), name, ABSENT, is_item=True)
                self._add((id(owner), name), absence, path)
        return self._method(function, owner)

    def _computed(self, owner: Any, name: str) -> Value:
        """What ``__getattr__`` gives: its code is followed, too."""
        found = []
        for method in ("__getattr__", "__getattribute__"):
            function = self._users_method(type(owner), method)
            if function is not None:
                found.append(self._call(function, Call((known(owner), known(name)), {})))
        return joined([*found, self._evaluated(owner, name)])

    def _evaluated(self, owner: Any, name: str) -> Value:
        """An attribute that code computes: it is compared if it can be."""
        try:
            value = getattr(owner, name)
            again = getattr(owner, name)
        except Exception:  # noqa: BLE001 — of whatever code computes it
            self._add_absence(owner, name)
            return UNKNOWN
        if is_a(value, (types.MethodType, types.BuiltinMethodType, types.MethodWrapperType)):
            return known(value)
        if is_burn(type(owner)) and not is_a(value, SCALARS):
            return known(value)
        if not is_equal(again, value):
            self.lose(f"{self._name(owner)}.{name}", "which code computes anew")
            return UNKNOWN
        return self._of_path(owner, name, value)

    def _add_absence(self, owner: Any, name: str) -> None:
        if not hasattr(type(owner), "__getattr__"):
            path = f"{self._name(owner)}.{name}"
            self._add((id(owner), name), CheckedPath(path, owner, name, ABSENT), path)

    def compare(self, value: Any) -> None:
        """Note an argument that each call compares with all that it has."""
        if is_record(value) and id(value) not in self._compared:
            self._compared[id(value)] = value
            for field in dataclasses.fields(value):
                self.compare(getattr(value, field.name, None))
        elif is_a(value, CONTAINERS):
            self._compared[id(value)] = value

    def _of_path(self, owner: Any, name: str, value: Any) -> Value:
        """An attribute that is compared at each call."""
        if value is ABSENT:
            self._add_absence(owner, name)
            return UNKNOWN
        if id(owner) in self._compared and (
            not is_record(owner) or name in {field.name for field in dataclasses.fields(owner)}
        ):
            return known(value)
        path = f"{self._name(owner)}.{name}"
        check = CheckedPath(path, owner, name, value)
        check.is_of_burn = is_burn(type(owner))
        self._add((id(owner), name), check, path)
        return self._found(value)

    # --- items ---

    def _item(self, owner: Any, key: Any) -> Value:
        if isinstance(owner, Parts):
            if is_a(key, str):
                return owner.named.get(key) or joined(owner.items)
            is_inside = is_a(key, int) and -len(owner.items) <= key < len(owner.items)
            return owner.items[key] if is_inside else self._contents(owner)
        method = self._users_method(class_of(owner), "__getitem__")
        if method is not None:
            return self._call(method, Call((known(owner), known(key)), {}))
        if isinstance(owner, ABSTRACT) or is_tensor(owner) or is_a(owner, (str, bytes)):
            return UNKNOWN
        if is_a(owner, np.ndarray) or class_attribute(type(owner), "__getitem__") is ABSENT:
            return self._contents(owner)
        if is_a(owner, dict) and not dict.__contains__(owner, key):  # a read might add it
            return self._contents(owner)
        try:
            value, again = owner[key], owner[key]
        except Exception:  # noqa: BLE001 — of whatever class it is
            return self._contents(owner)
        if is_a(owner, tuple) or is_watched(owner) or id(owner) in self._compared:
            return self._found(value)
        if not is_equal(again, value):
            return self._contents(owner)
        path = f"{self._name(owner)}[{key!r}]"
        check = CheckedPath(path, owner, key, value, is_item=True)
        self._add((id(owner), "item", key), check, path)
        return self._found(value)

    def lose(self, path: str, why: str) -> None:
        """Say once that a later value of something is not seen."""
        if path in self._lost:
            return
        self._lost.add(path)
        warnings.warn(
            f"burn.compile: {path} is read while the function is traced, {why}: another value "
            "later is not noticed. Pass it as an argument",
            stacklevel=2,
        )

    # --- in the classes below ---

    def contents(self, owner: Value) -> Value:
        """All items of the containers that a value may be."""
        raise NotImplementedError

    def operate(self, values: Any, names: Any) -> Value:
        """An operator, for which classes have methods of these names."""
        raise NotImplementedError

    def _contents(self, owner: Any) -> Value:
        """All items of a container."""
        raise NotImplementedError

    def _call(self, function: Any, call: Call) -> Value:
        """Follow a function."""
        raise NotImplementedError
