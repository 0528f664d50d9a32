"""Objects that the code of a user may read, and code that is not the user's."""

from __future__ import annotations

import collections
import functools
import sys
import types
from typing import Any, Final

from burn.devices import watches
from burn.ops.source import is_of_user
from burn.transforms._checks import ABSENT

__all__ = [
    "CONTAINERS",
    "FIXED",
    "PACKAGES",
    "SCALARS",
    "children_of",
    "class_attribute",
    "is_burn",
    "is_fixed_function",
    "is_followed",
    "is_installed",
    "is_watched",
    "package_of",
]

SCALARS: Final = (bool, int, float, complex, str, bytes, types.NoneType, types.EllipsisType)
"""Classes whose objects have nothing more to read."""

CONTAINERS: Final = (list, tuple, dict, set, frozenset, collections.deque)

FIXED: Final = (type, types.ModuleType, types.BuiltinFunctionType)
"""Classes whose objects are not compared: who names them hardly ever means another one later."""

PACKAGES: Final = frozenset({"burn", *sys.stdlib_module_names})


def class_attribute(kind: type, name: str) -> Any:
    """An attribute of a class as it stands there."""
    for one in kind.__mro__:
        if name in vars(one):
            return vars(one)[name]
    return ABSENT


def is_watched(value: Any) -> bool:
    """Whether something else watches an object with all that it holds, as it does modules."""
    return any(find(value) is not None for find in watches)


def children_of(module: Any) -> tuple[Any, ...]:
    """The items of a module that is a container."""
    try:
        return tuple(module)
    except TypeError:
        return ()


@functools.lru_cache(maxsize=1024)
def is_installed(filename: str) -> bool:
    """Whether code of a file is of burn, the standard library, or an installed package."""
    return not is_of_user(filename) or "site-packages" in filename or "dist-packages" in filename


def package_of(function: Any) -> str:
    """The package to which a function belongs that is compiled: its other code is followed too.

    The kit uses burn as a user does. Other code of burn, and of Python, is not followed.
    """
    function = getattr(function, "__func__", function)
    if not isinstance(function, types.FunctionType):
        return ""
    return _package(function.__module__)


def is_followed(function: types.FunctionType, package: str) -> bool:
    """Whether the code of a function is the user's, or of the package that is compiled."""
    if not is_installed(function.__code__.co_filename):
        return True
    return bool(package) and _package(function.__module__) == package


def _package(module: str | None) -> str:
    names = (module or "").split(".")
    if names[:2] == ["burn", "testing"]:
        return "burn.testing"
    return "" if names[0] in PACKAGES else names[0]


def is_burn(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "burn"


def is_fixed_function(value: Any) -> bool:
    """Whether a value is a function of burn or of a package, which no program replaces."""
    return (
        isinstance(value, types.FunctionType)
        and not value.__closure__
        and (value.__module__ or "").partition(".")[0] in PACKAGES
    )
