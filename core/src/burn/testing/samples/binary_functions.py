"""Samples of elementwise functions of two floats."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Final

import numpy as np

from burn.testing.arrays import LIMITS, SPECIAL, floats, integers
from burn.testing.op_samples import Array, Reference, Sample, reference, sample
from burn.testing.samples._elementwise import (
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
