"""Containers of a batch: dicts, lists, tuples, named tuples and dataclasses, taken apart."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

__all__ = ["Parts", "map_leaves", "taken_apart"]


class Parts(NamedTuple):
    """A container taken apart.

    Attributes
    ----------
    names : list of str
        How each child is written after the name of the container: ``['image']``, ``[0]`` or
        ``.image``.
    children : list
        The children.
    rebuild : callable
        From other children to a container of the same class; a mapping that is neither a dict nor
        an OrderedDict becomes a dict.
    """

    names: list[str]
    children: list[Any]
    rebuild: Callable[[list[Any]], Any]


def taken_apart(x: Any) -> Parts | None:
    """The parts of a container; None for any other object."""
    kind = x.__class__
    if isinstance(x, Mapping):
        keys = list(x)
        make = kind if kind.__name__ == "OrderedDict" else dict
        return Parts(
            [f"[{key!r}]" for key in keys],
            [x[key] for key in keys],
            lambda children: make(zip(keys, children, strict=True)),
        )
    if isinstance(x, (tuple, list)):
        if hasattr(kind, "_fields"):
            return Parts([f".{name}" for name in kind._fields], list(x), kind._make)
        make = list if isinstance(x, list) else tuple
        return Parts([f"[{index}]" for index in range(len(x))], list(x), make)
    if dataclasses.is_dataclass(kind):
        fields = [field.name for field in dataclasses.fields(kind)]
        return Parts(
            [f".{name}" for name in fields],
            [getattr(x, name) for name in fields],
            lambda children: _replaced(x, fields, children),
        )
    return None


def _replaced(x: Any, fields: list[str], children: list[Any]) -> Any:
    """A copy of a dataclass with other fields; its __init__ expects those of an example."""
    result = copy.copy(x)
    for name, child in zip(fields, children, strict=True):
        object.__setattr__(result, name, child)  # it may be frozen
    return result


def map_leaves(function: Callable[[Any, str], Any], x: Any, name: str) -> Any:
    """Nested containers with the results of a function of each leaf and its name."""
    parts = taken_apart(x)
    if parts is None:
        return function(x, name)
    return parts.rebuild(
        [
            map_leaves(function, child, name + key)
            for key, child in zip(parts.names, parts.children, strict=True)
        ]
    )
