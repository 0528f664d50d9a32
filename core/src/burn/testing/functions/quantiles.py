"""Samples of quantiles."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from burn.errors import ArgumentError, AxisError, OutOfRangeError, ShapeError
from burn.testing.arrays import booleans, floats, integers
from burn.testing.function_samples import FunctionCall, WrongCall, call, function_reference, wrong
from burn.testing.functions._rows import rows_over
from burn.testing.op_samples import Array

_ROUNDED: Final[dict[str, Callable[[float], int]]] = {
    "lower": math.floor,
    "higher": math.ceil,
    "nearest": round,
}
_METHODS: Final = ("linear", "midpoint", *_ROUNDED)
_SOME: Final = np.where(booleans(3, 6, phase=0.6), math.nan, floats(3, 6))
_INFINITE: Final = np.array([1.0, math.inf, math.inf, -math.inf])
_SAMPLES: Final[list[FunctionCall]] = [
    *[
        call(f"{method} of four", floats(3, 4), [0.25, 0.75], axis=1, method=method)
        for method in _METHODS
    ],
    call("all", floats(3, 4), 0.5),
    call("axes", floats(3, 4, 2), 0.25, axis=(0, 2), keepdims=True),
    call("a tensor of parts", floats(3, 5), np.array([[0.1, 0.3], [0.6, 0.85]]), axis=0),
    call("the ends", floats(7), [0.0, 1.0]),
    call("one element", floats(3, 1), 0.5, axis=1),
    call("integers", integers(3, 5), 0.5, axis=1, method="higher"),
    call("means of integers", integers(3, 4), 0.5, axis=1, method="midpoint"),
    call("with NaN", _SOME, 0.4, axis=1, differentiable=False),
    call("infinities", _INFINITE, [0.25, 1.0], differentiable=False),
]
_ERRORS: Final[list[WrongCall]] = [
    wrong("above 1", ArgumentError, floats(3), 1.5),
    wrong("a part of NaN", ArgumentError, floats(3), math.nan),
    wrong("above 1 in a tensor", OutOfRangeError, floats(3), np.array([0.5, 1.5]), in_data=True),
    wrong("another method", ArgumentError, floats(3), 0.5, method="weibull"),
    wrong("an axis out of range", AxisError, floats(3), 0.5, axis=1),
]


def _quantile(row: Array, q: float, method: str, *, skip_nan: bool) -> Any:
    known = np.sort(row[~np.isnan(row)]) if skip_nan else np.sort(row)
    if not known.size or math.isnan(known[-1]):
        return math.nan
    position = q * (known.size - 1)
    if method in _ROUNDED:
        return known[_ROUNDED[method](position)]
    low, high = math.floor(position), math.ceil(position)
    if low == high:
        return float(known[low])
    weight = 0.5 if method == "midpoint" else position - low
    return float(known[low] * (1 - weight) + known[high] * weight)


def _quantiles(
    x: Array,
    q: Any,
    *,
    axis: Any = None,
    keepdims: bool = False,
    method: str = "linear",
    skip_nan: bool = False,
) -> Array:
    rows = rows_over(x, axis, keepdims=keepdims)
    parts = np.asarray(q)
    dtype = rows.dtype if method in _ROUNDED else np.dtype(np.float64)
    result = np.empty((*parts.shape, *rows.shape[:-1]), dtype)
    for index in np.ndindex(parts.shape):
        for row in np.ndindex(rows.shape[:-1]):
            part = float(parts[index])
            result[index + row] = _quantile(rows[row], part, method, skip_nan=skip_nan)
    return result


def _largest(x: Array, _: Any, **_options: Any) -> float:
    return float(np.abs(x[np.isfinite(x)]).max(initial=0.0))


function_reference(
    "quantile",
    samples=_SAMPLES,
    errors=[*_ERRORS, wrong("of nothing", ShapeError, floats(2, 0), 0.5, axis=1)],
    magnitude=_largest,
)(_quantiles)
function_reference(
    "nanquantile",
    samples=[
        *_SAMPLES,
        *[
            call(f"{method} of some", _SOME[:2], [0.25, 0.5], axis=1, method=method)
            for method in _METHODS
        ],
        call("a tensor of parts of some", _SOME, np.array([0.3, 0.6]), axis=1),
        call("of nothing", floats(2, 0), [0.5, 0.25], axis=1),
        call("NaN alone", np.full((2, 2), math.nan), 0.5, axis=0, differentiable=False),
    ],
    errors=_ERRORS,
    magnitude=_largest,
)(functools.partial(_quantiles, skip_nan=True))
