"""Paths to objects that code reads: variables, attributes, items; and what each call compares."""

from __future__ import annotations

import builtins
import dataclasses
import functools
import itertools
import types
import warnings
from typing import Any

import numpy as np

from burn.transforms._arguments import is_tensor
from burn.transforms._checks import ABSENT, Check, CheckedContents, CheckedPath, CheckedVariable
from burn.transforms._constants import is_record
from burn.transforms._user_objects import (
    CONTAINERS,
    FIXED,
    PACKAGES,
    SCALARS,
    children_of,
    class_attribute,
    is_burn,
    is_fixed_function,
    is_followed,
    is_installed,
    is_watched,
)
from burn.transforms.code_values import UNKNOWN, Call, Nested, Parts, Value, joined, known

__all__ = ["Paths"]


class Paths:
    """What code reads of objects that are there before it runs.

    Attributes
    ----------
    checks : list of Check
        What each call compares.
    objects : list of object
        Objects that the paths lead to.

    Parameters
    ----------
    package : str
        The package whose code is followed, beside the user's.
    """

    def __init__(self, package: str = "") -> None:
        self._package = package
        self.objects: list[Any] = []
        self._checks: dict[Any, Check] = {}
        self._names: dict[int, str] = {}
        self._kept: list[Any] = []  # so that no id is of two objects
        self._compared: dict[int, Any] = {}

    @property
    def checks(self) -> list[Check]:
        return list(self._checks.values())

    def tensors(self) -> dict[Any, Check]:
        """The checks of what holds a tensor, by keys that each call gives them."""
        return {key: one for key, one in self._checks.items() if is_tensor(one.value)}

    # --- what code does: see `burn.transforms.bytecode.Reader` ---

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
        if not isinstance(value, FIXED) and not is_fixed_function(value):
            self._add((id(owner), name), check, name)
        return self._found(value)

    def attribute(self, owner: Value, name: str) -> Value:
        """An attribute of each object that a value may be."""
        return joined([self._attribute(one, name) for one in owner.objects])

    def item(self, owner: Value, key: Value) -> Value:
        """An item, or any item where the key is not known."""
        keys = key.objects
        if len(keys) != 1 or not isinstance(keys[0], SCALARS):
            return self.contents(owner)
        return joined([self._item(one, keys[0]) for one in owner.objects])

    def contents(self, owner: Value) -> Value:
        """All items of the containers that a value may be."""
        found = [self._contents(one) for one in owner.objects]
        return owner if owner.has_parts else joined(found)

    # --- objects ---

    def _found(self, value: Any) -> Value:
        self.objects.append(value)
        return known(value)

    def _add(self, key: Any, check: Check, name: str) -> None:
        """Compare something at each call."""
        if key not in self._checks:
            self._checks[key] = check
            self._kept.append(check)
            self._names.setdefault(id(check.value), name)

    def _name(self, owner: Any) -> str:
        name = self._names.get(id(owner)) or getattr(owner, "__name__", None)
        return str(name or type(owner).__name__)

    def _attribute(self, owner: Any, name: str) -> Value:
        if isinstance(owner, (Parts, Nested)) or is_tensor(owner):
            return UNKNOWN
        if isinstance(owner, (*SCALARS, *CONTAINERS, np.ndarray, super, functools.partial)):
            value = getattr(owner, name, ABSENT)
            return UNKNOWN if value is ABSENT else known(value)
        if isinstance(owner, types.ModuleType):
            return self._of_module(owner, name)
        if isinstance(owner, type):
            return self._of_path(owner, name, getattr(owner, name, ABSENT))
        return self._of_instance(owner, name)

    def _of_instance(self, owner: Any, name: str) -> Value:
        own = getattr(owner, "__dict__", None) or {}
        of_class = class_attribute(type(owner), name)
        if isinstance(of_class, property):
            function = of_class.fget
            if isinstance(function, types.FunctionType) and is_followed(function, self._package):
                return self._call(function, Call((known(owner),), {}))
            return self._evaluated(owner, name)
        if name in own and not hasattr(of_class, "__set__"):
            if is_watched(owner):  # with all that it holds
                return known(own[name])
            return self._of_path(owner, name, own[name])
        if isinstance(of_class, functools.cached_property):
            return self._call(of_class.func, Call((known(owner),), {}))
        if isinstance(of_class, types.FunctionType):
            return known(types.MethodType(of_class, owner))
        if of_class is not ABSENT and not hasattr(of_class, "__get__"):
            return self._of_path(owner, name, of_class)
        return self._evaluated(owner, name)

    def _of_module(self, module: types.ModuleType, name: str) -> Value:
        value = getattr(module, name, ABSENT)
        if value is ABSENT:
            return UNKNOWN
        file = getattr(module, "__file__", None)
        package = module.__name__.partition(".")[0]
        if package in PACKAGES or (file is not None and is_installed(file)):
            return known(value)
        return self._of_path(module, name, value)

    def compare(self, value: Any) -> None:
        """Note an argument that each call compares with all that it has."""
        if is_record(value) and id(value) not in self._compared:
            self._compared[id(value)] = value
            for one in dataclasses.fields(value):
                self.compare(getattr(value, one.name, None))
        elif isinstance(value, CONTAINERS):
            self._compared[id(value)] = value

    def _of_path(self, owner: Any, name: str, value: Any) -> Value:
        """An attribute that is compared at each call."""
        if value is ABSENT:
            return UNKNOWN
        if id(owner) in self._compared and name in vars(owner):
            return known(value)
        if isinstance(value, (staticmethod, classmethod)):
            return known(getattr(owner, name))
        if not isinstance(value, FIXED) and not is_fixed_function(value):
            path = f"{self._name(owner)}.{name}"
            self._add((id(owner), name), CheckedPath(path, owner, name, value), path)
        return self._found(value)

    def _evaluated(self, owner: Any, name: str) -> Value:
        """An attribute that code computes: it is compared if it can be."""
        try:
            value = getattr(owner, name)
        except Exception:  # noqa: BLE001 — of whatever code computes it
            self._add_absence(owner, name)
            return UNKNOWN
        if isinstance(value, (types.MethodType, types.BuiltinMethodType)) or callable(value):
            return known(value)
        if is_burn(type(owner)):
            if isinstance(value, SCALARS):
                return self._of_path(owner, name, value)
            return known(value)
        if not isinstance(value, SCALARS) and getattr(owner, name) is not value:
            self._cannot_watch(f"{self._name(owner)}.{name}", "which code computes anew")
            return UNKNOWN
        return self._of_path(owner, name, value)

    def _add_absence(self, owner: Any, name: str) -> None:
        if not hasattr(type(owner), "__getattr__"):
            path = f"{self._name(owner)}.{name}"
            self._add((id(owner), name), CheckedPath(path, owner, name, ABSENT), path)

    def _item(self, owner: Any, key: Any) -> Value:
        if isinstance(owner, Parts):
            if isinstance(key, str):
                return owner.named.get(key, UNKNOWN)
            is_inside = isinstance(key, int) and -len(owner.items) <= key < len(owner.items)
            return owner.items[key] if is_inside else UNKNOWN
        if isinstance(owner, (dict, list, tuple)):
            try:
                value = owner[key]
            except (LookupError, TypeError):
                return self._contents(owner)
            if isinstance(owner, tuple) or id(owner) in self._compared:
                return self._found(value)
            path = f"{self._name(owner)}[{key!r}]"
            self._add(
                (id(owner), "item", key), CheckedPath(path, owner, key, value, is_item=True), path
            )
            return self._found(value)
        function = class_attribute(type(owner), "__getitem__")
        if isinstance(function, types.FunctionType) and is_followed(function, self._package):
            return self._call(function, Call((known(owner), known(key)), {}))
        return self._contents(owner)

    def _contents(self, owner: Any) -> Value:
        if isinstance(owner, Parts):
            return joined([*owner.items, *owner.named.values()])
        if isinstance(owner, np.ndarray):
            self._add((id(owner), "contents"), self._contents_of(owner), self._name(owner))
            return UNKNOWN
        if is_watched(owner):
            return Value(children_of(owner))
        if not isinstance(owner, CONTAINERS):
            return UNKNOWN
        if not isinstance(owner, (tuple, frozenset)) and id(owner) not in self._compared:
            self._add((id(owner), "contents"), self._contents_of(owner), self._name(owner))
        items = owner.values() if isinstance(owner, dict) else owner
        found = tuple(itertools.islice(items, 1000))
        self.objects += found
        for index, one in enumerate(found):
            self._names.setdefault(id(one), f"{self._name(owner)}[{index}]")
        return Value(found)

    def _contents_of(self, owner: Any) -> Check:
        return CheckedContents(f"the items of {self._name(owner)}", owner)

    def _cannot_watch(self, path: str, why: str) -> None:
        """Say once that a later value is not seen."""
        warnings.warn(
            f"burn.compile: {path} is read while the function is traced, {why}: another value "
            "later is not noticed. Pass it as an argument",
            stacklevel=2,
        )

    def _call(self, function: Any, call: Call) -> Value:
        """Follow a function."""
        raise NotImplementedError
