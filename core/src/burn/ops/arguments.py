"""Numbers among the arguments of public functions: what each has to be, checked in one place."""

from __future__ import annotations

import math

import numpy as np

from burn.errors import ArgumentError, OperandTypeError

__all__ = ["as_integer", "real_number"]


def as_integer(value: int, name: str, operation: str, *, least: int | None = None) -> int:
    """An argument that has to be an integer, of at least `least`."""
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__"):
        raise OperandTypeError(f"{name} must be an integer, not {value!r}", operation=operation)
    try:
        number = value.__index__()
    except TypeError:  # an array that is no integer
        raise OperandTypeError(
            f"{name} must be an integer, not {value!r}", operation=operation
        ) from None
    if least is not None and number < least:
        raise ArgumentError(f"{name} is {number}", hint=f"Use {least} or more", operation=operation)
    return number


def real_number(
    value: float,
    name: str,
    operation: str,
    *,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    below: float | None = None,
    takes_nan: bool = False,
) -> float:
    """An argument that has to be a number, as a float; NaN is none unless it `takes_nan`.

    `least` and `most` are bounds that it may have, `above` and `below` those that it may not.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise OperandTypeError(f"{name} must be a number, not {value!r}", operation=operation)
    number = float(value)
    if (
        (math.isnan(number) and not takes_nan)
        or (least is not None and number < least)
        or (most is not None and number > most)
        or (above is not None and number <= above)
        or (below is not None and number >= below)
    ):
        raise ArgumentError(
            f"{name} is {number}", hint=_range(least, most, above, below), operation=operation
        )
    return number


def _range(
    least: float | None, most: float | None, above: float | None, below: float | None
) -> str:
    bounds = [
        f"{word} {bound:g}"
        for word, bound in (
            ("at least", least),
            ("above", above),
            ("at most", most),
            ("below", below),
        )
        if bound is not None
    ]
    return f"It must be {' and '.join(bounds) or 'a number'}"
