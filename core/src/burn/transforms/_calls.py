"""Calls that code makes: which are followed, and what the others may read and call."""

from __future__ import annotations

import contextvars
import datetime as dt
import functools
import gc
import importlib
import operator
import os
import random
import sys
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from burn.dispatch import DispatchTensor
from burn.transforms._arguments import is_tensor
from burn.transforms._checks import (
    ABSENT,
    CheckedCall,
    CheckedVariable,
)
from burn.transforms._making import Making
from burn.transforms._user_objects import (
    CONTAINERS,
    SCALARS,
    children_of,
    class_attribute,
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
    Nested,
    Partial,
    Parts,
    PartsMethod,
    Super,
    Value,
    class_of,
    concrete,
    is_a,
    joined,
    known,
    named_parts,
)

__all__ = ["Calls"]

_MAX_LEVELS: Final = 3
"""Containers within containers whose items may be read where they are passed on."""

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
    ]
)
"""Methods of containers that read nothing of them."""

_FUNCTIONS: Final = (types.FunctionType, types.MethodType, functools.partial, Nested, Partial)

_DRAWS: Final = (random.Random, np.random.Generator, np.random.RandomState)
"""Classes of generators, which give another number at each call."""

_NOW: Final = ("now", "today", "utcnow")
"""Methods of the classes of dates that tell the time."""

_ORDER: Final = ("__lt__", "__gt__", "__eq__", "__add__", "__radd__")
"""Methods by which built-in functions order and add objects."""

_TELLS_NOTHING: Final = frozenset({"logging", "warnings", "threading", "traceback"})
"""Modules whose functions give nothing that becomes part of a program."""

_LIKE: Final[dict[Any, Any]] = {os.getenv: os.environ.get}
"""Functions of the standard library that are methods of an object."""


class Calls(Making):
    """What calls read of objects that are there before the code runs."""

    def __init__(self, package: str = "") -> None:
        super().__init__(package)
        self._tried: set[tuple[int, frozenset[int]]] = set()

    def result(self, value: Value) -> None:
        """Note what the function returns: containers are returned with their items."""
        for _ in range(_MAX_LEVELS):
            value = self.contents(value)

    def call(self, function: Value, call: Call) -> Value:
        """Follow the functions that are called, or those among their arguments."""
        if not function.objects:
            return self._of_burn(call)
        return joined([self._call(obj, call) for obj in function.objects])

    def _call(self, function: Any, call: Call) -> Value:
        for kinds, handle in _SORTS:
            if is_a(function, kinds):
                return handle(self, function, call)
        wrapped = own_attributes(function).get("__wrapped__")
        if wrapped is not None and not _has_call(function):
            return joined([self._call(wrapped, call), _cached(function)])
        return self._call_object(function, call)

    def _nothing(self, *_: Any) -> Value:
        """What is no function: a call of it raises."""
        return UNKNOWN

    def _call_nested(self, function: Nested, call: Call) -> Value:
        return self._followed_code(
            function.code, function.variables, function.around, call, function.defaults
        )

    def _call_partial(self, function: Partial, call: Call) -> Value:
        first, *args = function.call.args or (UNKNOWN,)
        keywords = {**function.call.keywords, **call.keywords}
        return self.call(first, Call((*args, *call.args), keywords))

    def _call_method(self, method: types.MethodType, call: Call) -> Value:
        if is_a(method.__self__, _DRAWS):
            return self._another_each_time(method)
        if is_a(method.__self__, CONTAINERS) and method.__name__ in _CHANGES:
            return UNKNOWN
        return self._call(
            method.__func__, Call((known(method.__self__), *call.args), call.keywords)
        )

    def _call_function(self, function: types.FunctionType, call: Call) -> Value:
        if function in _LIKE:
            return self._call(_LIKE[function], call)
        if function is importlib.import_module and call.args:
            return self._imported(call.args[0])
        if is_followed(function, self._package):
            return self._follow(function, call)
        if (function.__module__ or "").partition(".")[0] in _TELLS_NOTHING:
            return UNKNOWN
        made = self._closure(function, call)
        return joined([made, self._unknown(function, call)])

    def _call_given(self, function: functools.partial[Any], call: Call) -> Value:
        """A call of what ``functools.partial`` gave before."""
        self._contents(function.keywords)
        keywords = {name: self._item(function.keywords, name) for name in function.keywords}
        args = [*[self._found(argument) for argument in function.args], *call.args]
        return self._call(function.func, Call(tuple(args), {**keywords, **call.keywords}))

    def _call_method_caller(self, function: operator.methodcaller, call: Call) -> Value:
        given: Any = function.__reduce__()[1]
        name, *args = given
        method = self.attribute(call.args[0] if call.args else UNKNOWN, name)
        return self.call(method, Call(tuple(map(known, args)), {}))

    def _call_reference(self, function: weakref.ReferenceType[Any], _: Call) -> Value:
        self.lose(self._name(function), "a weak reference, which keeps nothing")
        return known(function())

    def _call_object(self, function: Any, call: Call) -> Value:
        """A call of a module, or of an object whose class has ``__call__``."""
        kind = class_of(function)
        name = "forward" if is_watched(function) else "__call__"
        method = self._users_method(kind, name)
        if method is not None:
            self._check_class(kind, name)
            return self._call(method, Call((known(function), *call.args), call.keywords))
        if is_watched(function):
            self._parts_of(function)
        return self._unknown(function, call)

    def _parts_of(self, module: Any) -> None:
        """A module of burn calls the modules and functions that it has."""
        self._kept.append(module)
        for child in (*children_of(module), *own_attributes(module).values()):
            if is_watched(child) or is_a(child, _FUNCTIONS):
                self._call(child, Call((), {}))

    def _called_now(self, name: str, function: Any, args: tuple[Any, ...]) -> Value:
        """What a function gives that returns an object which is there."""
        check = CheckedCall(name, function, args)
        self._add((id(function), "called", args), check, name)
        return self._found(check.value)

    def _call_parts(self, method: PartsMethod, call: Call) -> Value:
        """A method of a container that the code makes."""
        parts = known(method.parts)
        if method.name in ("extend", "extendleft", "update", "union"):
            for value in call.args:
                self.add(parts, self.contents(value))
                for obj in value.objects:
                    method.parts.named |= named_parts(obj)
            method.parts.named |= call.keywords
        elif method.name in _CHANGES or method.name == "setdefault":
            for value in call.args:
                self.add(parts, value)
        if method.name in ("get", "setdefault") and call.args:
            return joined([self.item(parts, call.args[0]), *call.args[1:]])
        return Value(joined([parts, self.contents(parts)]).objects, has_parts=True)

    def _builtin(self, function: Any, call: Call) -> Value:
        if function in (getattr, hasattr) and len(call.args) >= 2:
            owner, names = call.args[0], call.args[1].objects
            if len(names) == 1 and is_a(names[0], str):
                return self._get(owner, names[0], call.args[2:])
            return joined([self.use(owner), *[self._vars(obj) for obj in owner.objects]])
        if function is setattr and len(call.args) == 3:
            owner, name, value = call.args
            for obj in name.objects:
                self.store(owner, str(obj), value)
            return UNKNOWN
        if function is __import__ and call.args:
            return self._imported(call.args[0])
        if function is vars and call.args:
            return joined([self._vars(obj) for obj in call.args[0].objects])
        if function in _LOOKS_AT_NOTHING:
            return UNKNOWN
        if function in (eval, exec):
            self.lose(f"{function.__name__}()", "of code that is not followed")
            return UNKNOWN
        if function is len:
            self.length(joined(call.args))
            return UNKNOWN
        return self._of_built_in(function, getattr(function, "__self__", None), call)

    def _of_built_in(self, function: Any, owner: Any, call: Call) -> Value:
        """A built-in function, or a built-in method of an object."""
        if is_a(owner, _DRAWS) or _is_clock(function):
            return self._another_each_time(function)
        if is_a(owner, contextvars.ContextVar) and function.__name__ == "get":
            defaults = tuple([argument.objects[0] for argument in call.args if argument.objects])
            return self._called_now(f"{owner.name}.get()", function, defaults)
        if is_a(owner, (*CONTAINERS, np.ndarray, types.MappingProxyType)):
            return self._of_container(owner, function.__name__, call)
        found = self._all_contents(call)
        if function.__module__ in ("builtins", "_functools"):
            self.operate([found], _ORDER)
            objects = joined([found, *call.values]).objects
            return Value(objects, has_parts=bool(objects))
        return Value(joined([found, self._unknown(function, call)]).objects, has_parts=True)

    def _of_container(self, container: Any, name: str, call: Call) -> Value:
        """A method of a container."""
        if name in _CHANGES:
            return UNKNOWN
        if name in ("get", "__getitem__", "setdefault") and call.args:
            return joined([self.item(known(container), call.args[0]), *call.args[1:]])
        return Value(self._contents(container).objects, has_parts=True)

    def _imported(self, name: Value) -> Value:
        modules = [sys.modules.get(str(obj)) for obj in name.objects]
        return Value(tuple(module for module in modules if module is not None))

    def _another_each_time(self, function: Any) -> Value:
        name = getattr(function, "__qualname__", "") or function.__name__
        self.lose(f"{name}()", "which gives another value at each call")
        return UNKNOWN

    def _get(self, owner: Value, name: str, default: Sequence[Value]) -> Value:
        """What ``getattr`` gives."""
        found = list(default)
        for obj in owner.objects:
            if isinstance(obj, ABSTRACT) or is_tensor(obj):
                found.append(self._attribute(obj, name))
                continue
            if class_attribute(type(obj), name) is ABSENT and name not in own_attributes(obj):
                self._add_absence(obj, name)
                found.append(self._computed(obj, name))
            else:
                found.append(self._attribute(obj, name))
        return joined(found)

    def _vars(self, owner: Any) -> Value:
        """All attributes of an object."""
        if is_a(owner, type):
            own = {name: item for name, item in vars(owner).items() if not name.startswith("__")}
            return joined([self._attribute(owner, name) for name in own])
        own = own_attributes(owner)
        if not own or is_watched(owner):
            return UNKNOWN
        self._names.setdefault(id(own), f"vars({self._name(owner)})")
        return Value(self._contents(own).objects, has_parts=True)

    def _unknown(self, function: Any, call: Call) -> Value:
        """A call of what is not followed: it may call its arguments, and read what they hold."""
        if is_burn(function if is_a(function, (type, types.FunctionType)) else type(function)):
            return self._of_burn(call)
        self._all_contents(call)
        return self.use(joined(call.values))

    def _of_burn(self, call: Call) -> Value:
        """A call of burn, or of what is not known: the result may call what it was given."""
        self._all_contents(call)
        functions = [obj for obj in joined(call.values).objects if _is_called(obj)]
        return Value(tuple(functions), has_parts=bool(functions))

    def _all_contents(self, call: Call) -> Value:
        """What containers among arguments have; functions among them may be called with that."""
        found: list[Value] = []
        functions: dict[int, Any] = {}
        waiting = [(value, 0) for value in call.values]
        while waiting:
            value, depth = waiting.pop()
            functions |= {id(obj): obj for obj in value.objects if _is_called(obj)}
            inside = joined([self._contents(obj) for obj in value.objects])
            if inside.objects:
                found.append(inside)
                if depth < _MAX_LEVELS:
                    waiting.append((inside, depth + 1))
        contents = joined(found)
        if functions:
            args = joined([contents, *call.values])
            objects = [obj for obj in args.objects if id(obj) not in functions]
            rest = Value(tuple(objects), has_parts=True)
            for number, function in functions.items():
                tried = number, concrete([rest])
                if tried not in self._tried:
                    self._tried.add(tried)
                    self._call(function, Call((rest,) * 3, {}))
                    self._call(function, Call((), {}))  # with its defaults
        return contents

    def _closure(self, function: types.FunctionType, call: Call) -> Value:
        """A function of a package may call those that it closes over, and give what they give."""
        made = []
        for cell in function.__closure__ or ():
            held = CheckedVariable("", cell, "").value
            inside = held.values() if is_a(held, (dict, types.MappingProxyType)) else ()
            for item in (held, *list(inside)[:64]):
                if is_a(item, _FUNCTIONS):
                    made.append(self._call(item, call))
                elif is_watched(item):
                    self._found(item)
        wrapped = vars(function).get("__wrapped__")
        if is_a(wrapped, types.FunctionType):
            made.append(self._call(wrapped, call))
        objects = joined(made).objects
        return Value(objects, has_parts=bool(objects))

    # --- in the class below ---

    def _followed_code(
        self,
        code: types.CodeType,
        variables: Any,
        around: tuple[dict[str, Any], str],
        call: Call,
        defaults: dict[str, Value],
    ) -> Value:
        """Follow the code of a function with the variables around it."""
        raise NotImplementedError


def _is_called(value: Any) -> bool:
    """Whether a function may call what it is given."""
    return is_a(value, _FUNCTIONS) or is_watched(value) or _has_call(value)


def _cached(function: Any) -> Value:
    """The objects that ``functools.cache`` keeps for a function."""
    if not is_a(function, functools._lru_cache_wrapper):
        return UNKNOWN
    held = [referent for referent in gc.get_referents(function) if is_a(referent, dict)]
    found = [value for values in held for value in values.values()]
    links = [item for item in found if type(item).__name__ == "_lru_list_elem"]
    found += [referent for link in links for referent in gc.get_referents(link)]
    return Value(tuple(item for item in found if not is_a(item, SCALARS)))


def _is_clock(function: Any) -> bool:
    """Whether a function of the standard library tells the time."""
    owner: Any = getattr(function, "__self__", None)
    is_of_date = is_a(owner, type) and issubclass(owner, dt.date)
    return function.__module__ == "time" or (is_of_date and function.__name__ in _NOW)


def _has_call(value: Any) -> bool:
    kind = class_of(value)
    method = class_attribute(kind, "__call__")
    return is_a(method, types.FunctionType) and not is_of_packages(kind)


_SORTS: Final[tuple[tuple[Any, Callable[..., Value]], ...]] = (
    (Nested, Calls._call_nested),
    (PartsMethod, Calls._call_parts),
    (Partial, Calls._call_partial),
    (types.MethodType, Calls._call_method),
    (types.FunctionType, Calls._call_function),
    (functools.partial, Calls._call_given),
    (operator.methodcaller, Calls._call_method_caller),
    (weakref.ReferenceType, Calls._call_reference),
    (types.BuiltinFunctionType, Calls._builtin),
    (type, Calls._new),
    ((Parts, Super, DispatchTensor, *SCALARS), Calls._nothing),
)
"""How the calls of each sort of object are followed."""
