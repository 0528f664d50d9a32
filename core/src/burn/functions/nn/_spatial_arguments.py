"""What users say of windows and of spatial axes, as numbers for each axis."""

from __future__ import annotations

from typing import Any, TypeAlias

from burn.errors import ArgumentError
from burn.ops.arguments import as_integer

__all__ = ["Counts", "Padding", "pairs_per_axis", "per_axis"]

Counts: TypeAlias = int | tuple[int, ...]
Padding: TypeAlias = int | tuple[int | tuple[int, int], ...]


def per_axis(value: Any, count: int, name: str, operation: str) -> tuple[int, ...]:
    """An integer for each spatial axis, from one for all or a sequence of them."""
    if value.__class__ is int:
        return (value,) * count
    values = value if isinstance(value, (tuple, list)) else (value,) * count
    if len(values) != count:
        raise ArgumentError(
            f"{name} has {len(values)} values",
            hint=f"Give one, or {count}: one for each spatial axis",
            operation=operation,
        )
    return tuple([as_integer(one, name, operation) for one in values])


def pairs_per_axis(padding: Any, count: int, operation: str) -> tuple[tuple[int, int], ...]:
    """How much is before and after along each spatial axis."""
    if padding.__class__ is int:
        return ((padding, padding),) * count
    values = padding if isinstance(padding, (tuple, list)) else (padding,) * count
    pairs = [one if isinstance(one, (tuple, list)) else (one, one) for one in values]
    if len(pairs) != count or any(len(pair) != 2 for pair in pairs):
        raise ArgumentError(
            f"padding is {padding!r}",
            hint=f"Give a number, or {count} numbers or pairs: one for each spatial axis",
            operation=operation,
        )
    return tuple(
        [
            (as_integer(before, "padding", operation), as_integer(after, "padding", operation))
            for before, after in pairs
        ]
    )
