"""Samples of scans along an axis."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from burn.errors import AxisError, DTypeError
from burn.testing.arrays import (
    LIMITS,
    booleans,
    floats,
    integers,
    reversed_view,
    strided,
    transposed,
)
from burn.testing.op_samples import Array, Sample, error, reference, sample


def _scans(kind: str, make: Callable[..., Array]) -> list[Sample]:
    return [
        sample(f"{kind} vector", make(7), axis=0),
        sample(f"{kind} first axis", make(3, 4), axis=0),
        sample(f"{kind} last axis", make(3, 4), axis=1),
        sample(f"{kind} middle axis", make(2, 5, 2), axis=1),
        sample(f"{kind} length 1", make(3, 1), axis=1),
        sample(f"{kind} empty axis", make(2, 0), axis=1),
        sample(f"{kind} empty other axis", make(0, 3), axis=1),
        sample(f"{kind} transposed", transposed(make(3, 4)), axis=0),
        sample(f"{kind} strided", strided(make(3, 4)), axis=1),
        sample(f"{kind} reversed", reversed_view(make(3, 4)), axis=1),
    ]


_SCAN_ERRORS: Final = [
    error("axis out of range", AxisError, floats(3), axis=1),
    error("0-d", AxisError, floats(), axis=0),
    error("booleans", DTypeError, booleans(3), axis=0),
]


def _scan(combine: Callable[[Any, Any], Any], x: Array, axis: int) -> Array:
    result = np.array(x)
    lines = np.moveaxis(result, axis, 0)
    for index in range(1, len(lines)):
        lines[index] = combine(lines[index - 1], lines[index])
    return result


def _cumsum_terms(x: Array, *, axis: int) -> tuple[Any, Any]:
    return _scan(np.add, np.ones(x.shape), axis), _scan(np.add, abs(x), axis)


reference(
    "cumsum",
    samples=[
        *_scans("floats", floats),
        sample("ones that 16-bit addition would lose", np.ones(1000), axis=0),
        sample("NaN stays", np.array([1.0, math.nan, 2.0]), axis=0),
        *_scans("integers", integers),
        sample("integers wrap around", np.full(40, 100), axis=0),
    ],
    errors=_SCAN_ERRORS,
    terms=_cumsum_terms,
)(lambda x, *, axis: _scan(np.add, x, axis))
reference(
    "cumprod",
    samples=[
        *_scans("floats", lambda *shape: floats(*shape, low=0.5, high=1.5)),
        sample("zeros", np.array([[2.0, 0.0, 3.0, 0.0], [0.0, 1.0, 2.0, 3.0]]), axis=1),
        sample("many near 1", floats(100, low=0.9, high=1.1), axis=0),
        sample("NaN stays", np.array([1.0, math.nan, 2.0]), axis=0),
        *_scans("integers", integers),
        sample("integers wrap around", np.arange(1, 41), axis=0),
    ],
    errors=_SCAN_ERRORS,
)(lambda x, *, axis: _scan(np.multiply, x, axis))

_RISING: Final = np.array([[1.0, 3.0, 3.0, 2.0, 4.0], [2.0, 2.0, 1.0, 2.0, 2.0]])
_RISING_GRADIENT: Final = np.array([[1.0, 1.0, 2.0, 0.0, 1.0], [1.0, 2.0, 0.0, 1.0, 1.0]])


def _records(sign: float) -> list[Sample]:
    return [
        *_scans("floats", floats),
        sample("NaN stays", np.array([1.0, math.nan, 2.0, math.nan]), axis=0),
        sample("NaN first", np.array([[math.nan, 1.0], [1.0, math.inf]]), axis=1),
        sample("infinities", np.array([-math.inf, math.inf, 0.0, -math.inf]), axis=0),
        sample(
            "the last of equals has the gradient",
            sign * _RISING,
            axis=1,
            differentiable=False,
            gradients=(_RISING_GRADIENT,),
        ),
        sample(
            "the last NaN has the gradient",
            np.array([1.0, math.nan, 2.0, math.nan, math.nan, 3.0]),
            axis=0,
            differentiable=False,
            gradients=(np.array([1.0, 2.0, 0.0, 1.0, 2.0, 0.0]),),
        ),
        *_scans("integers", integers),
        sample("integer limits", LIMITS, axis=0),
    ]


reference("cummax", samples=_records(1.0), errors=_SCAN_ERRORS, exact=True)(
    lambda x, *, axis: _scan(np.maximum, x, axis)
)
reference("cummin", samples=_records(-1.0), errors=_SCAN_ERRORS, exact=True)(
    lambda x, *, axis: _scan(np.minimum, x, axis)
)

reference(
    "logcumsumexp",
    samples=[
        *_scans("floats", floats),
        sample("far apart", np.array([[-1000.0, 3.0, 80.0], [5.0, -60.0, -2000.0]]), axis=1),
        sample("beyond what a power can be", np.full(40, 5000.0), axis=0),
        sample("infinities", np.array([-math.inf, 1.0, math.inf, -math.inf]), axis=0),
        sample("all minus infinity", np.full(3, -math.inf), axis=0),
        sample("NaN stays", np.array([1.0, math.nan, 2.0]), axis=0),
    ],
    errors=_SCAN_ERRORS[:2],
)(lambda x, *, axis: _scan(np.logaddexp, x, axis))
