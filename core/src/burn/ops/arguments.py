"""Checks of numbers in arguments of functions and in attributes of ops."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from burn.errors import ArgumentError, OperandTypeError, ScalarRangeError, ShapeError
from burn.public_calls import shown_value

__all__ = ["as_integer", "as_python", "python_number", "real_number"]


_MAX_BITS: Final = 1024
"""Bits of the integers that arguments may be: a float reaches no larger number."""


def as_python(value: Any) -> Any:
    """A NumPy scalar as a Python number; any other object as it is."""
    if not isinstance(value, np.generic):
        return value
    number = value.item()
    if isinstance(number, np.generic):  # Python has no longdouble
        return complex(number) if np.iscomplexobj(number) else float(number)
    return number


def python_number(value: Any) -> Any:
    """A NumPy scalar, or a 0-d array of integers, as a Python number; other objects as they are.

    For arguments. An operand that is an array stays one: see `as_python`.
    """
    if isinstance(value, np.ndarray) and not value.ndim and value.dtype.kind in "iu":
        return value.item()
    return as_python(value)


def as_integer(
    value: int,
    name: str,
    operation: str = "",
    *,
    least: int | None = None,
    most: int | None = None,
) -> int:
    """An argument as a Python integer; raises unless it is one, from `least` to `most`."""
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__"):
        raise OperandTypeError(
            f"{name} must be an integer, not {shown_value(value)}", operation=operation
        )
    try:
        number = value.__index__()
    except (TypeError, ShapeError):  # an array or a tensor that is no integer
        raise OperandTypeError(
            f"{name} must be an integer, not {shown_value(value)}", operation=operation
        ) from None
    if number.bit_length() > _MAX_BITS:
        raise ArgumentError(
            f"{name} is {shown_value(number)}",
            hint=f"Use one of {_MAX_BITS} bits or fewer",
            operation=operation,
        )
    if least is not None and number < least:
        raise ArgumentError(
            f"{name} is {shown_value(number)}", hint=f"Use {least} or more", operation=operation
        )
    if most is not None and number > most:
        raise ArgumentError(
            f"{name} is {shown_value(number)}", hint=f"Use {most} or less", operation=operation
        )
    return number


def real_number(
    value: float,
    name: str,
    operation: str = "",
    *,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    below: float | None = None,
    takes_nan: bool = False,
) -> float:
    """An argument as a float; raises unless it is a number, which NaN is only with `takes_nan`.

    `least` and `most` are inclusive bounds, `above` and `below` exclusive ones.
    """
    if value.__class__ is not float:
        value = python_number(value)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise OperandTypeError(
                f"{name} must be a number, not {shown_value(value)}", operation=operation
            )
        try:
            value = float(value)
        except OverflowError:
            raise ScalarRangeError(
                f"{name} is an integer too large for a float", operation=operation
            ) from None
    if (
        (least is None or value >= least)
        and (most is None or value <= most)
        and (above is None or value > above)
        and (below is None or value < below)
        and (value == value or takes_nan)  # noqa: PLR0124 — NaN alone is not equal to itself
    ):
        return value
    raise ArgumentError(
        f"{name} is {value}", hint=_range(least, most, above, below), operation=operation
    )


def _range(
    least: float | None, most: float | None, above: float | None, below: float | None
) -> str:
    low = least if above is None else above
    high = most if below is None else below
    if low is None and high is None:
        return "It must be a number"
    if high is None:
        return f"It must be {'above' if least is None else 'at least'} {low:g}"
    if low is None:
        return f"It must be {'below' if most is None else 'at most'} {high:g}"
    start, end = "(" if least is None else "[", ")" if most is None else "]"
    return f"It must be in {start}{low:g}, {high:g}{end}"
