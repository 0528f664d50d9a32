"""Names in hints of errors: a hint names only what there is."""

from __future__ import annotations

import builtins
import functools
import importlib
import inspect
import re
from types import ModuleType
from typing import Any, Final

from burn import namespace

__all__ = ["unknown_names"]

_DOTTED: Final = re.compile(r"\bburn(?:\.[A-Za-z_]\w*)+")
_CALLED: Final = re.compile(r"(?<![\w.])(?:[a-z_]\w*\.)?([A-Za-z_]\w*)\(\)")
_METHOD: Final = re.compile(r"(?<![\w)])\.([a-z_]\w*)\(")


def unknown_names(hint: str) -> list[str]:
    """What a hint names that burn does not have.

    Names are what begins with ``burn.``, and what is followed by parentheses: a function without
    arguments between them, or a method after a dot.

    Examples
    --------
    >>> from burn.testing.hint_names import unknown_names
    >>> unknown_names("Use burn.where, .astype() or burn.nn.functional.no_such(); call detached()")
    ['burn.nn.functional.no_such', 'detached']
    """
    dotted = [name for name in _DOTTED.findall(hint) if not _is_there(name)]
    rest = _DOTTED.sub("", hint)
    called = [*_CALLED.findall(rest), *_METHOD.findall(rest)]
    return dotted + [name for name in called if name not in _names()]


def _is_there(dotted: str) -> bool:
    found: Any = namespace
    path = "burn"
    for part in dotted.split(".")[1:]:
        path += f".{part}"
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(path)
            except ImportError:
                return False
    return True


@functools.cache
def _names() -> frozenset[str]:
    """Names of public functions, of public classes, and of their methods."""
    names = {*dir(builtins)}
    pending: list[Any] = [namespace]
    while pending:
        owner = pending.pop()
        for name in dir(owner):
            if name.startswith("_"):
                continue
            member = getattr(owner, name)
            if isinstance(member, ModuleType) and member.__name__.startswith("burn."):
                pending.append(member)
            elif inspect.isclass(member) and member.__module__.startswith("burn."):
                names |= {name, *dir(member)}
            elif callable(member):
                names.add(name)
    return frozenset(names)
