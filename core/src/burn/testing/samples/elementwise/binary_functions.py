"""Samples of elementwise functions of two or three numbers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Final

import numpy as np

from burn.errors import OperandTypeError, ShapeError
from burn.testing.arrays import LIMITS, SPECIAL, floats, integers, pairs, strided, transposed
from burn.testing.op_samples import Array, Reference, Sample, error, reference, sample
from burn.testing.samples.elementwise.elementwise_samples import (
    BINARY_ERRORS,
    binary_floats,
    binary_integers,
    each,
    not_for_bool,
    special_pairs,
    unary_floats,
)

_SIGNS = sample(
    "each quadrant", floats(7, 1, low=-3.0, high=3.0), floats(5, low=-2.0, high=2.0, phase=0.1)
)
_EXTREMES = sample(
    "extremes",
    np.array([1e300, -1e300, 1e-300, 3e4, -3e-5, 0.0, math.nan])[:, None],
    np.array([1e300, 2e-300, -4e4, 5e-8, math.nan]),
)

reference("signbit", samples=unary_floats(), exact=True)(np.signbit)

_FUNCTIONS: Final[dict[str, tuple[Reference, list[Sample]]]] = {
    "atan2": (np.arctan2, []),
    "hypot": (np.hypot, []),
    "logaddexp": (
        np.logaddexp,
        [
            sample("equal", np.array([0.0, 1.0, -3.5]), np.array([0.0, 1.0, -3.5])),
            sample("far apart", np.array([-1000.0, 3.0, 80.0]), np.array([5.0, -60.0, -2000.0])),
        ],
    ),
}

for _name, (_function, _own) in _FUNCTIONS.items():
    reference(
        _name,
        samples=[*binary_floats(), *special_pairs(), _SIGNS, _EXTREMES, *_own],
        errors=BINARY_ERRORS,
        signed_zeros=True,
    )(_function)

reference(
    "copysign",
    samples=[
        *binary_floats(),
        *special_pairs(),
        _SIGNS,
        sample(
            "zeros",
            np.array([0.0, -0.0, 0.0]),
            np.array([-1.0, 2.0, 3.0]),
            differentiable=False,
            gradients=(np.zeros(3), np.zeros(3)),
        ),
    ],
    errors=BINARY_ERRORS,
    exact=True,
)(np.copysign)


def _nextafter(x1: Array | float, x2: Array | float) -> Array:
    dtype = x1.dtype if isinstance(x1, np.ndarray) else np.asarray(x2).dtype
    x1, x2 = np.asarray(x1, dtype), np.asarray(x2, dtype)
    # NumPy leaves a zero of float16 as it is where the other one has another sign.
    return np.where(x1 == x2, x2, np.nextafter(x1, x2))


_STEPPED = np.array([1.0, -1.0, 1.5, 65504.0, 2.0**-14, 2.0**-24, 6e-8, 1e-5, 0.25, 3e38, 1.1e-38])

reference(
    "nextafter",
    samples=[
        *binary_floats(),
        *special_pairs(),
        sample("up and down", np.append(_STEPPED, -_STEPPED)[:, None], np.array([-9e37, 9e37])),
        sample("many", floats(20, 10, low=-9.0, high=9.0), floats(20, 1, low=-9.0, high=9.0)),
        sample("from infinity", SPECIAL[1:3], 0.0),
        sample(
            "limits",
            np.array([5e-324, 2.3e-308, 1.7e308, 1e-45, 1.2e-38, 3.4e38, 1e-40])[:, None],
            np.array([-math.inf, math.inf]),
        ),
    ],
    errors=BINARY_ERRORS,
    exact=True,
    widens=False,
)(_nextafter)


def _fmod(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        return int(math.copysign(1, a)) * (abs(a) % abs(b)) if b else 0
    if math.isnan(a) or math.isnan(b) or not b or math.isinf(a):
        return math.nan
    if math.isinf(b):
        return a
    return math.copysign(float(abs(Fraction(a)) % abs(Fraction(b))), a)


_DIVIDENDS: Final[Array] = np.array([5.5, -5.5, 5.5, -5.5])

reference(
    "fmod",
    samples=[
        *binary_floats(),
        *special_pairs(),
        *binary_integers(),
        sample("signs", _DIVIDENDS, np.array([2.0, 2.0, -2.0, -2.0])),
        sample(
            "whole quotients",
            np.array([6.0, -6.0, 0.0, -0.0, 1.0]),
            np.array([2.0, 2.0, 3.0, 3.0, -1.0]),
            differentiable=False,
        ),
        sample("integers by zero", integers(3, 4), 0),
        sample("integer by integers with zeros", 7, np.arange(5)),
        sample("limits by one less", LIMITS, LIMITS - 1),
    ],
    errors=[*BINARY_ERRORS, not_for_bool(2)],
    signed_zeros=True,
)(each(_fmod))


def _trunc_divide(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        return int(math.copysign(1, a) * math.copysign(1, b)) * (abs(a) // abs(b)) if b else 0
    if math.isnan(a) or math.isnan(b) or not b:
        return float(np.true_divide(a, b))
    if math.isinf(a):
        return math.nan
    whole = 0 if math.isinf(b) else abs(Fraction(a)) // abs(Fraction(b))
    return math.copysign(float(whole), math.copysign(1.0, a) * math.copysign(1.0, b))


reference(
    "trunc_divide",
    samples=[
        *binary_floats(),
        *special_pairs(),
        *binary_integers(),
        sample("signs", _DIVIDENDS, np.array([2.0, 2.0, -2.0, -2.0])),
        sample(
            "whole quotients",
            np.array([6.0, -6.0, 0.0, -0.0, 1.0]),
            np.array([2.0, 2.0, 3.0, 3.0, -1.0]),
            differentiable=False,
        ),
        sample("integers by zero", integers(3, 4), 0),
        sample("integer by integers with zeros", 7, np.arange(5)),
        sample("limits by one less", LIMITS, LIMITS - 1),
    ],
    errors=[*BINARY_ERRORS, not_for_bool(2)],
    signed_zeros=True,
)(each(_trunc_divide))


def _xlogy(a: Any, b: Any) -> Any:
    if a == 0.0 and not math.isnan(b):
        return 0.0
    with np.errstate(all="ignore"):
        return float(np.multiply(a, np.log(b)))


reference(
    "xlogy",
    samples=[
        *binary_floats(),
        *[
            special_pair
            for special_pair in special_pairs()
            if special_pair.note.startswith("special")
        ],
        sample(
            "zeros",
            np.array([0.0, 0.0, -0.0, 0.0, 2.0]),
            np.array([0.0, 2.0, 0.0, -1.5, 0.0]),
            differentiable=False,
        ),
        sample(
            "zero by positive numbers",
            np.zeros(3),
            np.array([0.5, 1.0, 3.0]),
            gradients=(np.log([0.5, 1.0, 3.0]), np.zeros(3)),
        ),
        sample("far", floats(5, low=-9.0, high=9.0), np.array([1e-30, 1e-6, 0.999, 1.001, 1e30])),
    ],
    errors=BINARY_ERRORS,
)(each(_xlogy))

reference(
    "heaviside",
    samples=[
        *binary_floats(),
        *special_pairs(),
        sample(
            "zeros",
            np.array([0.0, -0.0, 1.0, -1.0]),
            np.array([0.5, 2.0, 3.0, 4.0]),
            differentiable=False,
            gradients=(np.zeros(4), np.array([1.0, 1.0, 0.0, 0.0])),
        ),
    ],
    errors=BINARY_ERRORS,
    exact=True,
)(np.heaviside)


def _weighted(*shapes: tuple[int, ...], low: float = -1.0, high: float = 2.0) -> list[Array]:
    return [
        floats(*shapes[0], low=-3.0, high=3.0),
        floats(*shapes[1], low=-3.0, high=3.0, phase=0.2),
        floats(*shapes[2], low=low, high=high, phase=0.1),
    ]


@reference(
    "lerp",
    samples=[
        sample("same shape", *_weighted((50,), (50,), (50,))),
        sample("0-d", *_weighted((), (), ())),
        sample("broadcast", *_weighted((3, 1), (2, 1, 4), (4,))),
        sample("empty", *_weighted((0, 3), (3,), ())),
        sample("a number as weight", *_weighted((3, 4), (3, 4), ())[:2], 0.25),
        sample("a large number as weight", *_weighted((3, 4), (3, 4), ())[:2], 1.5),
        sample("a number as start", 0.75, *_weighted((3,), (3,), (3,))[1:]),
        sample("a number as end", floats(3), 1.5, floats(3, low=0.0, high=1.0)),
        sample("numbers as start and end", -1.5, 2.0, floats(5, low=-1.0, high=2.0)),
        sample("a tensor as start alone", floats(3), 2.0, 0.75),
        sample("transposed and strided", transposed(floats(3, 4)), strided(floats(3, 4)), 0.3),
        sample("weights of the ends", np.array([0.1, 1e9, 3.0]), np.array([0.7, 1.0, -5.0]), 1.0),
        sample("weights", 3.0, 5.0, np.array([-1.0, 0.0, 0.499, 0.501, 1.0, 3.0])),
        sample("special floats", *pairs(np.append(SPECIAL, [1.5, -2.5])), 0.25),
        sample("special weights", floats(5), floats(5, phase=0.2), SPECIAL),
    ],
    errors=[
        error("shapes that do not broadcast", ShapeError, floats(2, 3), floats(4), 0.5),
        error("numbers and no tensor", OperandTypeError, 1.0, 2.0, 0.5),
    ],
)
def _(start: Any, end: Any, weight: Any) -> Any:
    difference = np.subtract(end, start)
    of_end = end - (1.0 - weight) * difference
    return np.where(np.abs(weight) < 0.5, start + weight * difference, of_end)
