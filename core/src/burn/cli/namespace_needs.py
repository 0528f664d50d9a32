"""What `ArrayBackend` asks of a namespace, and what a module lacks of it.

The needs are read from the source of `ArrayBackend`: which functions of the namespace each of its
methods calls, and with which keywords. So `burn new-plugin` knows what this version of core asks.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any, Final

from burn.backend import array
from burn.ops import REGISTRY

__all__ = ["imported", "lacks_of"]

_NAMESPACE: Final = ("xp", "self.xp")


def imported(namespace: str) -> Any | None:
    """The module of a namespace; None where it cannot be imported here."""
    try:
        return importlib.import_module(namespace)
    except Exception:  # noqa: BLE001 — a library may raise anything while it is imported
        return None


def lacks_of(xp: Any) -> dict[str, list[str]]:
    """The ops that a namespace is not enough for, each with what is missing.

    Returns
    -------
    dict of str to list of str
        Such as ``{"hypot": ["hypot"], "sum": ["sum(dtype=...)"]}``, by the name of the op, or of
        another member such as ``from_data``.
    """
    methods = _methods()
    found = {}
    for name in methods:
        if name.startswith("_"):
            continue
        missing = [
            text
            for function, keywords in sorted(_needs(name, methods, set()))
            for text in _missing(xp, function, keywords)
        ]
        if missing:
            found[name] = list(dict.fromkeys(missing))
    for name in array.STANDARD:
        if name not in methods and not hasattr(xp, name):
            found[name] = [name]
    return {name: found[name] for name in [*REGISTRY, *methods] if name in found}


def _missing(xp: Any, function: str, keywords: tuple[str, ...]) -> Iterator[str]:
    called = getattr(xp, function, None)
    if called is None:
        yield function
        return
    parameters = _parameters(called)
    if parameters is not None:
        for keyword in keywords:
            if not re.search(rf"\b{keyword}\b", parameters):
                yield f"{function}({keyword}=...)"


def _parameters(function: Any) -> str | None:
    """The parameters of a function as text; None where nothing tells them.

    Functions of extension modules have theirs in the first line of the docstring.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        first = (getattr(function, "__doc__", None) or "").strip().partition("\n")[0]
        match = re.fullmatch(r"\w+\((.*)\)(\s*->.*)?", first.strip())
        return match[1] if match and "*" + "*" not in match[1] and "..." not in match[1] else None
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return ", ".join(parameter.name for parameter in parameters)


def _methods() -> dict[str, ast.FunctionDef]:
    tree = ast.parse(inspect.getsource(array))
    (cls,) = [
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name == array.ArrayBackend.__name__
    ]
    return {node.name: node for node in cls.body if isinstance(node, ast.FunctionDef)}


def _needs(
    name: str, methods: dict[str, ast.FunctionDef], seen: set[str]
) -> set[tuple[str, tuple[str, ...]]]:
    """Functions of the namespace that a method calls, itself or by others, with the keywords."""
    seen.add(name)
    found: set[tuple[str, tuple[str, ...]]] = set()
    for node in ast.walk(methods[name]):
        if function := _function_of(node):
            found.add((function, ()))
        if isinstance(node, ast.Call):
            if function := _function_of(node.func):
                found.add((function, _keywords(node)))
            elif helper := _own(node.func, methods):
                found |= _passed_on(node, methods[helper])
        if (other := _own(node, methods)) and other not in seen:
            found |= _needs(other, methods, seen)
    return found


def _passed_on(call: ast.Call, helper: ast.FunctionDef) -> set[tuple[str, tuple[str, ...]]]:
    """Functions of the namespace that a method is given, with the keywords that it adds."""
    names = [argument.arg for argument in helper.args.args[1:]]  # without self
    return {
        (function, _keywords(node))
        for name, given in zip(names, call.args, strict=False)
        if (function := _function_of(given))
        for node in ast.walk(helper)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    }


def _keywords(call: ast.Call) -> tuple[str, ...]:
    return tuple(keyword.arg for keyword in call.keywords if keyword.arg)


def _own(node: ast.AST, methods: dict[str, ast.FunctionDef]) -> str:
    """The method that ``self.name`` is; "" for all else."""
    if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self":
        return node.attr if node.attr in methods else ""
    return ""


def _function_of(node: ast.AST) -> str:
    """The name in ``xp.name`` or ``self.xp.name``; "" for all else."""
    if isinstance(node, ast.Attribute) and ast.unparse(node.value) in _NAMESPACE:
        return node.attr
    return ""
