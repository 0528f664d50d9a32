"""Objects that the code of a user may read, and code that is not the user's."""

from __future__ import annotations

import collections
import functools
import sys
import types
from typing import Any, Final

import numpy as np

from burn.devices import watches
from burn.ops.source import is_of_user
from burn.plugins import registry
from burn.transforms._checks import ABSENT
from burn.transforms.code_values import is_a

__all__ = [
    "CONTAINERS",
    "PACKAGES",
    "SCALARS",
    "children_of",
    "class_attribute",
    "has_its_own_name",
    "is_burn",
    "is_followed",
    "is_installed",
    "is_of_packages",
    "is_watched",
    "own_attributes",
    "package_of",
]

SCALARS: Final = (
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    types.NoneType,
    types.EllipsisType,
    np.generic,
)
"""Classes whose objects have nothing more to read."""

CONTAINERS: Final = (list, tuple, dict, set, frozenset, collections.deque)

PACKAGES: Final = frozenset({"burn", *sys.stdlib_module_names})


_KIT: Final = "burn.testing"


def class_attribute(kind: type, name: str) -> Any:
    """An attribute of a class as it stands there."""
    for cls in kind.__mro__:
        if name in vars(cls):
            return vars(cls)[name]
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
    if not is_installed(function.__code__.co_filename) and not _is_of_plugin(function.__module__):
        return True
    if not package or _package(function.__module__) != package:
        return False
    # `functools.wraps` gives functions of the standard library the names of the user's.
    return package == _KIT or is_of_user(function.__code__.co_filename)


def _package(module: str | None) -> str:
    names = (module or "").split(".")
    if names[:2] == ["burn", "testing"]:
        return _KIT
    return "" if names[0] in PACKAGES else names[0]


def is_burn(kind: type) -> bool:
    return str(kind.__module__).partition(".")[0] == "burn"


def _is_of_plugin(module: str | None) -> bool:
    """Whether a module is of a backend, which may be installed where its author edits it."""
    return (module or "").partition(".")[0] in _plugin_packages(registry.generation)


@functools.lru_cache(maxsize=8)
def _plugin_packages(generation: int) -> frozenset[str]:
    del generation  # a key: other plugins may be found later
    modules = [plugin.entry_point.partition(":")[0].strip() for plugin in registry.plugins]
    return frozenset(module.partition(".")[0] for module in modules if module)


def is_of_packages(value: Any) -> bool:
    """Whether a module, class or function is of burn, the standard library or a package."""
    name = value.__name__ if is_a(value, types.ModuleType) else value.__module__
    if not is_a(name, str):
        return True
    if name.partition(".")[0] in PACKAGES or _is_of_plugin(name):
        return True
    file = getattr(sys.modules.get(name), "__file__", None)
    return is_a(file, str) and is_installed(file)


def has_its_own_name(value: Any, name: str) -> bool:
    """Whether a variable has what an import or a definition gave it, in code that stays as it is.

    That is a module, or a class or function of a package under its own name.
    """
    if is_a(value, types.ModuleType):
        return True
    return (
        is_a(value, (type, types.FunctionType, types.BuiltinFunctionType))
        and value.__name__ == name
        and is_of_packages(value)
    )


def own_attributes(value: Any) -> dict[str, Any]:
    """The attributes in the dict of an object; none if it has no dict."""
    try:
        own = object.__getattribute__(value, "__dict__")
    except (AttributeError, TypeError):
        return {}
    return own if is_a(own, dict) else {}
