"""Functions of Python numbers with the results of IEEE 754 where Python raises."""

from __future__ import annotations

import math
from typing import Any

__all__ = [
    "cos",
    "divide",
    "exp",
    "floor",
    "floor_divide",
    "left_shift",
    "log",
    "log1p",
    "power",
    "remainder",
    "right_shift",
    "round_half_even",
    "sin",
    "sqrt",
    "truncate",
]

_MAX_BITS = 64


def divide(a: float, b: float) -> float:
    """``a / b`` of floats."""
    if b:
        return a / b
    return math.nan if a != a or not a else math.copysign(math.inf, a) * math.copysign(1.0, b)  # noqa: PLR0124 — NaN


def floor_divide(a: Any, b: Any) -> Any:
    """``a // b``; 0 for an integer by zero."""
    if b:
        return a // b
    return 0 if isinstance(a, int) else divide(a, b)


def remainder(a: Any, b: Any) -> Any:
    """``a % b``; 0 for an integer by zero."""
    if b:
        return a % b
    return 0 if isinstance(a, int) else math.nan


def power(a: Any, b: Any) -> Any:
    """``a ** b``; for integers modulo 2**64, as no dtype has more bits."""
    if isinstance(a, int):
        if b >= 0:
            return pow(a, b, 1 << _MAX_BITS)
        return {1: 1, -1: -1 if b % 2 else 1}.get(a, 0)
    try:
        return math.pow(a, b)
    except (OverflowError, ValueError):
        if a < 0 and b != math.floor(b):
            return math.nan
        # Too large, or 0 to a negative power: infinite, and negative for odd powers.
        return math.copysign(math.inf, a) if b % 2 == 1 else math.inf


def left_shift(a: int, b: int) -> int:
    """``a << b``; a shift out of every dtype where `b` is not in [0, 64)."""
    return a << (b if 0 <= b < _MAX_BITS else _MAX_BITS)


def right_shift(a: int, b: int) -> int:
    """``a >> b``; only the sign stays where `b` is not in [0, 64)."""
    return a >> (b if 0 <= b < _MAX_BITS else _MAX_BITS)


def exp(x: float) -> float:
    """``e ** x``."""
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def log(x: float) -> float:
    """Natural logarithm: -inf of 0, NaN below."""
    if x > 0.0:
        return math.log(x)
    return -math.inf if x == 0.0 else math.nan


def log1p(x: float) -> float:
    """``log(1 + x)``: -inf of -1, NaN below."""
    if x > -1.0:
        return math.log1p(x)
    return -math.inf if x == -1.0 else math.nan


def sqrt(x: float) -> float:
    """Square root: NaN below 0."""
    return math.sqrt(x) if x >= 0.0 else math.nan


def sin(x: float) -> float:
    """Sine: NaN of an infinity or NaN."""
    return math.sin(x) if math.isfinite(x) else math.nan


def cos(x: float) -> float:
    """Cosine: NaN of an infinity or NaN."""
    return math.cos(x) if math.isfinite(x) else math.nan


def floor(x: float) -> float:
    """Largest integer not above x; zeros keep their sign."""
    return math.copysign(math.floor(x), x) if math.isfinite(x) else x


def round_half_even(x: float) -> float:
    """Nearest integer, ties to even; zeros keep their sign."""
    return math.copysign(round(x), x) if math.isfinite(x) else x


def truncate(x: float, low: int, high: int) -> int:
    """`x` truncated to an integer and clipped to [low, high]; 0 for NaN."""
    if x != x:  # noqa: PLR0124 — NaN
        return 0
    return low if x <= low else high if x >= high else int(x)
