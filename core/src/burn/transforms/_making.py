"""Objects that code makes by calls of classes, as far as they hold others."""

from __future__ import annotations

import dataclasses
import enum
import functools
import operator
import types
from collections.abc import Callable
from typing import Any, Final

from burn.transforms._contents import Contents
from burn.transforms._user_objects import class_attribute, is_burn, is_followed, is_of_packages
from burn.transforms.code_values import (
    UNKNOWN,
    Call,
    Instance,
    Partial,
    Value,
    class_of,
    is_a,
    joined,
    known,
)

__all__ = ["Making"]

_CONVERSIONS: Final = frozenset({bool, int, float, complex, str, bytes})
"""Classes of numbers and texts, which are made by methods of other classes."""

_GETTERS: Final = frozenset({operator.attrgetter, operator.itemgetter, operator.methodcaller})
"""Classes whose objects read what they are made for, of what they are called with."""

_CONVERTING: Final = ("__bool__", "__int__", "__index__", "__float__", "__complex__", "__len__")

_CONTAINER_MAKERS: Final = frozenset(
    {list, tuple, dict, set, frozenset, enumerate, zip, map, filter, reversed}
)
"""Classes whose objects have the items of their arguments."""


class Making(Contents):
    """What calls of classes make."""

    def __init__(self, package: str = "") -> None:
        super().__init__(package)
        self._made: dict[Any, Any] = {}

    def _new(self, kind: type, call: Call) -> Value:
        """A call of a class."""
        if kind in _CONTAINER_MAKERS or kind.__module__ in ("collections", "itertools"):
            found = self._all_contents(call)
            return Value(joined([found, *call.keywords.values()]).objects, has_parts=True)
        if kind is functools.partial:
            return known(self._once((kind, call.identity()), lambda: Partial(call)))
        if kind in _GETTERS and all(len(argument.objects) == 1 for argument in call.args):
            return known(kind(*[argument.objects[0] for argument in call.args]))
        if kind in _CONVERSIONS:
            self.operate(call.args, _CONVERTING)
            return UNKNOWN
        if kind is type and len(call.args) == 1:
            return joined([known(class_of(obj)) for obj in call.args[0].objects])
        if is_burn(kind) or any(is_burn(cls) for cls in kind.__mro__):
            return self._of_burn(call)
        if issubclass(kind, BaseException) and is_of_packages(kind):
            return UNKNOWN
        if is_of_packages(kind) and kind is not types.SimpleNamespace:
            return self._unknown(kind, call)
        if issubclass(kind, enum.Enum):
            return Value(tuple(kind))
        return joined([known(self._instance(kind, call)), self._made_by(kind, call)])

    def _made_by(self, kind: type, call: Call) -> Value:
        """What ``__new__`` and the metaclass of a class give, which may be there already."""
        found = []
        for owner, name in ((kind, "__new__"), (type(kind), "__call__")):
            function = class_attribute(owner, name)
            function = function.__func__ if is_a(function, staticmethod) else function
            if is_a(function, types.FunctionType) and is_followed(function, self._package):
                found.append(self._call(function, Call((known(kind), *call.args), call.keywords)))
        return joined(found)

    def _instance(self, kind: type, call: Call) -> Instance:
        """An instance that the code makes of a class of the user."""
        made: Instance = self._once((kind, call.identity()), lambda: Instance(kind))
        fields: Any = class_attribute(kind, "_fields")
        fields = fields if is_a(fields, tuple) else None
        if dataclasses.is_dataclass(kind):
            fields = [field.name for field in dataclasses.fields(kind) if field.init]
        method = self._users_method(kind, "__init__")
        if method is not None:
            self._follow(method, Call((known(made), *call.args), call.keywords))
        else:
            given = dict(zip(fields or (), call.args, strict=False)) | call.keywords
            for name, value in given.items():
                self.store(known(made), name, value)
        after = class_attribute(kind, "__post_init__")
        if is_a(after, types.FunctionType):
            self._call(after, Call((known(made),), {}))
        return made

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        """What stands for objects that are made of the same."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    # --- in the classes below ---

    def _unknown(self, function: Any, call: Call) -> Value:
        """A call of what is not followed."""
        raise NotImplementedError

    def _of_burn(self, call: Call) -> Value:
        """A call of burn, or of what is not known."""
        raise NotImplementedError

    def _all_contents(self, call: Call) -> Value:
        """What containers among arguments have."""
        raise NotImplementedError

    def _follow(self, function: types.FunctionType, call: Call) -> Value:
        """Follow the code of a function."""
        raise NotImplementedError
