"""Which tensors of a file are loaded, and under which paths."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from burn.errors import ArgumentError, OperandTypeError

__all__ = ["Only", "Rename", "selected"]

Rename: TypeAlias = (
    "Mapping[str, str | None] | Sequence[tuple[str, str | None]] "
    "| Callable[[str], str | None] | None"
)
"""Patterns and what replaces them, or a function."""

Only: TypeAlias = "str | Sequence[str] | None"
"""Patterns of paths."""

_SHOWN = 8
"""Number of names that an error lists."""


def selected(names: Iterable[str], rename: Rename, only: Only, operation: str) -> dict[str, str]:
    """The names of tensors in a file by the paths that they get.

    Parameters
    ----------
    names : iterable of str
        The names of a file.
    rename : mapping, sequence of pairs, or callable, optional
        See `burn.store.load`.
    only : str or sequence of str, optional
        See `burn.store.load`.
    operation : str
        What errors name.

    Returns
    -------
    dict of str to str
        Names by paths.

    Raises
    ------
    ArgumentError
        If two tensors get one path, or a pattern fits nothing or is none.
    OperandTypeError
        If an argument has another type.
    """
    originals = list(names)
    found: dict[str, str] = {}
    for path, name in zip(_renamed(originals, rename, operation), originals, strict=True):
        if path is None:
            continue
        if path in found:
            raise ArgumentError(
                f"rename calls both {found[path]!r} and {name!r} {path!r}",
                hint="Each tensor needs a path of its own; a function drops one by None",
                operation=operation,
            )
        found[path] = name
    return found if only is None else _matching(found, only, operation)


def _renamed(names: list[str], rename: Rename, operation: str) -> list[str | None]:
    """The path of each name; None for one that is dropped."""
    if rename is None:
        return [*names]
    if callable(rename):
        paths = [rename(name) for name in names]
        for name, path in zip(names, paths, strict=True):
            if path is not None and (not isinstance(path, str) or not path):
                raise OperandTypeError(
                    f"rename({name!r}) returned {path!r}",
                    hint="It returns a path, or None to drop the tensor",
                    operation=operation,
                )
        return paths
    current: list[str | None] = [*names]
    for pattern, replacement in _pairs(rename, operation):
        try:
            rule = re.compile(pattern)
            fitting = {name for name in current if name is not None and rule.search(name)}
            becomes = {
                name: None if replacement is None else rule.sub(replacement, name)
                for name in fitting
            }
        except (re.error, IndexError) as error:
            raise ArgumentError(
                f"rename has {pattern!r} -> {replacement!r}: {error}",
                hint=r"Patterns and replacements are those of re.sub: groups are \1, \2",
                operation=operation,
            ) from error
        if not fitting:
            raise ArgumentError(
                f"rename has the pattern {pattern!r}, which fits no path",
                hint=f"There are {_some(name for name in current if name is not None)}",
                operation=operation,
            )
        current = [becomes.get(name, name) if name is not None else None for name in current]
    return current


def _pairs(rename: Any, operation: str) -> list[tuple[str, str | None]]:
    try:
        pairs = [tuple(value) for value in (rename.items() if hasattr(rename, "items") else rename)]
    except TypeError:
        pairs = [()]
    if isinstance(rename, str) or not all(
        len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], str | None)
        for pair in pairs
    ):
        raise OperandTypeError(
            f"rename is {rename!r}",
            hint='Pass {"pattern": "replacement"}, a list of such pairs, or a function of a path; '
            "None as a replacement leaves a tensor out",
            operation=operation,
        )
    return pairs


def _matching(found: dict[str, str], only: Only, operation: str) -> dict[str, str]:
    """Those whose paths fit a pattern."""
    patterns = [only] if isinstance(only, str) else only
    if not isinstance(patterns, (list, tuple)) or not all(isinstance(p, str) for p in patterns):
        raise OperandTypeError(
            f"only is {only!r}",
            hint='Pass a pattern of paths ("encoder.*"), or a list of patterns',
            operation=operation,
        )
    kept: set[str] = set()
    for pattern in patterns:
        fitting = [path for path in found if fnmatch.fnmatchcase(path, pattern)]
        if not fitting:
            raise ArgumentError(
                f"only has {pattern!r}, which fits no path",
                hint=f"There are {_some(found)}",
                operation=operation,
            )
        kept.update(fitting)
    return {path: name for path, name in found.items() if path in kept}


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    more = f", ... {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return ", ".join(listed[:_SHOWN]) + more
