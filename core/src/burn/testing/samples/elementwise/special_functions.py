"""Samples of special functions of one float tensor.

The references take other ways than the ops: the standard library's functions, Newton's method, and
sums of the series of a definition.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from burn.errors import ArgumentError
from burn.testing.arrays import floats
from burn.testing.op_samples import Array, Reference, error, reference, sample
from burn.testing.samples.elementwise.elementwise_samples import each, unary_calls, unary_floats

_TERMS: Final = 100
"""Of a series, before its rest is estimated."""


def _is_pole(x: float) -> bool:
    return x <= 0.0 and x == math.floor(x)


def _erfinv(x: float) -> float:
    """Newton's method, of the complement in the tails."""
    if not abs(x) < 1.0:
        return math.copysign(math.inf, x) if abs(x) == 1.0 else math.nan
    tail = 1.0 - abs(x)
    y = 0.0 if abs(x) < 0.7 else math.sqrt(-math.log(tail))
    for _ in range(60):
        error = math.erf(y) - abs(x) if abs(x) < 0.7 else tail - math.erfc(y)
        last, y = y, y - error * math.exp(y * y) * math.sqrt(math.pi) / 2.0
        if abs(y - last) <= 1e-16 * abs(y):
            break
    return math.copysign(y, x)


def _lgamma(x: float) -> float:
    return math.inf if math.isinf(x) or _is_pole(x) else math.lgamma(x)


def _digamma(x: float) -> float:
    """The asymptotic series of a number that is higher by an integer, less the steps to it."""
    if x == 0.0:
        return -math.copysign(math.inf, x)
    if not math.isfinite(x) or _is_pole(x):
        return math.inf if x > 0.0 else math.nan
    steps = max(0, math.ceil(30.0 - x))
    end = x + steps
    square = 1.0 / (end * end)
    series = square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square / 240)))
    return math.fsum(
        [math.log(end), -0.5 / end, -series, *[-1.0 / (x + step) for step in range(steps)]]
    )


def _polygamma(x: Array, *, n: int) -> Array:
    """The series of its definition, whose rest is an integral and the Euler-Maclaurin formula."""
    if n == 0:
        return np.asarray(each(_digamma)(x))
    s = n + 1
    sign = 1.0 if n % 2 else -1.0
    end = x + _TERMS
    rest = 1.0 / n + (0.5 + s / 12.0 / end - s * (s + 1) * (s + 2) / 720.0 / end**3) / end
    total = rest / end**n + sum(1.0 / (x + step) ** s for step in range(_TERMS))
    total = np.where((x <= 0.0) & (x == np.floor(x)), math.inf, total)
    return np.asarray(sign * math.factorial(n) * np.where(x == math.inf, 0.0, total))


def _bessel(order: int) -> Callable[[float], float]:
    def of(x: float) -> float:
        """The power series, all of whose terms have one sign."""
        if not math.isfinite(x):
            return x if order else abs(x)
        term = (x / 2.0) ** order
        total, index = 0.0, 1
        while abs(term) > 1e-20 * abs(total):
            total += term
            term *= x * x / 4.0 / (index * (index + order))
            index += 1
        return total if total or not order else x / 2.0

    return of


_FUNCTIONS: Final[dict[str, tuple[Reference, float, float, list[float], list[float]]]] = {
    "erf": (each(math.erf), -3.0, 3.0, [-6.0, -1.001, -1e-8, 1e-3, 0.999, 1.0, 5.0], [-10.0, 1e30]),
    "erfc": (
        each(math.erfc),
        -3.0,
        3.0,
        [-6.0, -1.001, -1.0, -1e-8, 1e-3, 0.999, 1.0, 1.001, 3.5, 5.0],
        [-10.0, 9.0, 13.0, 20.0, 26.0, 27.2, 30.0, 1e30],
    ),
    "erfinv": (
        each(_erfinv),
        -0.95,
        0.95,
        [-2.0, -0.851, -0.85, -0.849, -1e-8, 1e-30, 1e-3, 0.5, 0.7, 1.5],
        [-1.0, -0.99, 0.999, 0.9999, 1.0 - 2.0**-22, 1.0 - 2.0**-50, 1.0],
    ),
    "lgamma": (
        each(_lgamma),
        0.2,
        6.0,
        [-2.2, -1.5, -0.5, 0.5, 0.99, 0.999999, 1.001, 1.99, 2.001, 2.4, 2.6, 30.0],
        [-20.5, -2.0, -1.0, -1e-30, 1e-30, 1e-6, 1.0, 2.0, 1e4, 1e30, 1e300, -1e4, -1e30],
    ),
    "digamma": (
        each(_digamma),
        0.3,
        6.0,
        [-2.2, -1.5, -0.6, 0.5, 0.99, 1.001, 1.46, 1.47, 1.99, 2.5, 30.0],
        [-20.5, -3.0, -1.0, -1e-3, 1e-3, 1e4, 1e30, 1e300, -1e30],
    ),
    "i0": (
        each(_bessel(0)),
        -3.0,
        3.0,
        [-12.0, -8.001, -1e-3, 1e-8, 7.999, 8.0, 10.0],
        [-50.0, 80.0, 700.0, 712.0, 1000.0],
    ),
    "i1": (
        each(_bessel(1)),
        -3.0,
        3.0,
        [-12.0, -8.001, -1e-3, 1e-8, 7.999, 8.0, 10.0],
        [-50.0, 80.0, 700.0, 712.0, 1000.0],
    ),
    "sinc": (np.sinc, -3.0, 3.0, [-1.5, -0.251, -0.25, -1e-3, 1e-8, 0.249, 2.0, 10.25], [1e30]),
}
"""A reference, from where to where it is smooth, its edges, points beyond them, and extremes."""

for _name, (_function, _low, _high, _edges, _extremes) in _FUNCTIONS.items():
    reference(
        _name,
        samples=[
            *unary_floats(_low, _high),
            sample("many", floats(10, 10, low=_low, high=_high, phase=0.1)),
            sample("edges", np.array(_edges)),
            # Where a function bends faster than central differences can follow, and NaN, which
            # keeps them away.
            sample("extremes", np.array([*_extremes, math.nan])),
        ],
        signed_zeros=_name not in {"lgamma", "sinc"},
    )(_function)

_ORDERS: Final = [0, 1, 2, 3, 6]


def _polygammas() -> list[Any]:
    return [
        *unary_calls(0.5, 4.0, n=1),
        *[sample(f"order {n}", floats(11, low=0.5, high=6.0), n=n) for n in _ORDERS],
        *[sample(f"order {n}, negative", np.array([-2.7, -1.3, -0.8]), n=n) for n in _ORDERS],
        *[
            sample(f"order {n}, poles", np.array([0.0, -1.0, -7.0, math.nan]), n=n)
            for n in _ORDERS[1:]
        ],
        sample("order 20", np.array([0.9, 5.0, math.nan]), n=20),
    ]


reference(
    "polygamma",
    samples=_polygammas(),
    errors=[
        error("a negative order", ArgumentError, floats(3), n=-1),
        error("an order of which constants overflow", ArgumentError, floats(3), n=26),
    ],
)(_polygamma)
