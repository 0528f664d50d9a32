"""Containers of a batch: dicts, lists, tuples, named tuples and dataclasses, taken apart."""

from __future__ import annotations

import copy
import dataclasses
import operator
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

__all__ = ["Parts", "map_leaves", "taken_apart"]

_LEAVES: Final = frozenset({np.ndarray, int, float, bool, str, bytes})
"""Classes of most leaves, found without looking at what else they might be."""


class Parts(NamedTuple):
    """A container taken apart.

    Attributes
    ----------
    keys : list
        What tells its children apart: keys, indices, or names of attributes.
    rebuild : callable
        From other children to a container of the same class; a mapping that is neither a dict nor
        an OrderedDict becomes a dict.
    child : callable
        ``child(x, key)`` returns the child of a container of this class.
    path : str
        How a child is written after the name of the container: ``[{!r}]`` or ``.{}``.
    """

    keys: list[Any]
    rebuild: Callable[[list[Any]], Any]
    child: Callable[[Any, Any], Any]
    path: str

    def name(self, container: str, key: Any) -> str:
        """How a child of a container with a name is written."""
        return container + self.path.format(key)


def taken_apart(x: Any) -> Parts | None:
    """The parts of a container; None for any other object."""
    kind = x.__class__
    if kind in _LEAVES:
        return None
    if kind is dict or isinstance(x, Mapping):
        keys = list(x)
        make = OrderedDict if kind is OrderedDict else dict
        return Parts(
            keys,
            lambda children: make(zip(keys, children, strict=True)),
            operator.getitem,
            "[{!r}]",
        )
    if isinstance(x, (tuple, list)):
        if hasattr(kind, "_fields"):
            return Parts(list(kind._fields), kind._make, getattr, ".{}")
        sequence = list if isinstance(x, list) else tuple
        return Parts(list(range(len(x))), sequence, operator.getitem, "[{!r}]")
    if dataclasses.is_dataclass(kind):
        fields = [field.name for field in dataclasses.fields(kind)]
        return Parts(fields, lambda children: _replaced(x, fields, children), getattr, ".{}")
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
        [map_leaves(function, parts.child(x, key), parts.name(name, key)) for key in parts.keys]
    )
