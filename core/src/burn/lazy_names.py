"""Packages that import a module when one of its names is used."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

__all__ = ["modules_of", "resolver"]


def modules_of(families: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """The module of each public name.

    Parameters
    ----------
    families : mapping of str to iterable of str
        The public names of each module of a package.

    Returns
    -------
    dict of str to str
        Names of modules by public names.
    """
    return {name: module for module, names in families.items() for name in names}


def resolver(
    package: str,
    module_of: Mapping[str, str],
    submodules: Iterable[str] = (),
    hints: str | None = None,
) -> Callable[[str], Any]:
    """The function ``__getattr__`` of a package (PEP 562).

    Parameters
    ----------
    package : str
        Its name.
    module_of : mapping of str to str
        The module of each public name.
    submodules : iterable of str
        Modules that are public names themselves.
    hints : str, optional
        The module whose `NAMES` says what to write instead of names that are not there.

    Returns
    -------
    callable
        Imports what a name stands for, and keeps it in the package.
    """

    def resolve(name: str) -> Any:
        if name in submodules:
            return importlib.import_module(f"{package}.{name}")
        if name not in module_of:
            fail(name)
        value = getattr(importlib.import_module(f"{package}.{module_of[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def fail(name: str) -> NoReturn:
        elsewhere = importlib.import_module(f"{package}.{hints}").NAMES if hints else {}
        hint = f". {elsewhere[name]}" if name in elsewhere else ""
        raise AttributeError(
            f"module {package!r} has no attribute {name!r}{hint}",
            name=name,
            obj=sys.modules[package],
        )

    return resolve
