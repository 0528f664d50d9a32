"""Samples of sums, spread and extrema of the elements that are not NaN."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from burn.errors import AxisError, OutOfRangeError, ShapeError
from burn.testing.arrays import booleans, floats, integers
from burn.testing.function_samples import FunctionCall, call, function_reference, wrong
from burn.testing.functions._rows import rows_over
from burn.testing.op_samples import Array

_X: Final = np.where(booleans(3, 4, 2, phase=0.6), math.nan, floats(3, 4, 2))
_ROWS: Final = np.array([[1.0, math.nan, 3.0, 5.0], [2.0, -1.0, 0.5, math.nan]])
_NOTHING: Final = np.array([[1.0, math.nan], [math.nan, math.nan]])
_SAMPLES: Final[list[FunctionCall]] = [
    call("all", _X),
    call("an axis", _ROWS, axis=1),
    call("axes", _X, axis=(0, 2), keepdims=True),
    call("no NaN", floats(2, 3), axis=0),
    call("NaN alone", _NOTHING, axis=1, differentiable=False),
    call("infinities", np.array([math.nan, math.inf, 1.0]), differentiable=False),
    call("integers", integers(3, 4), axis=0),
]
_ERRORS: Final = [wrong("an axis out of range", AxisError, floats(3), axis=1)]


def _quietly(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy without its warnings about NaN."""

    def call_quietly(x: Array, **keywords: Any) -> Any:
        rows = rows_over(x, keywords.pop("axis", None), keepdims=keywords.pop("keepdims", False))
        with np.errstate(all="ignore"):
            found = [
                function(rows[index][~np.isnan(rows[index])], **keywords)
                for index in np.ndindex(rows.shape[:-1])
            ]
        return np.array(found).reshape(rows.shape[:-1])

    return call_quietly


def _mean(known: Array) -> float:
    return float(known.mean()) if known.size else math.nan


def _variance(known: Array, *, correction: float = 0.0) -> float:
    if not known.size or not np.isfinite(known).all():
        return math.nan
    total = float(((known - known.mean()) ** 2).sum())
    return float(np.float64(total) / max(known.size - correction, 0.0))


def _deviation(known: Array, *, correction: float = 0.0) -> float:
    return math.sqrt(_variance(known, correction=correction))


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "nansum": np.sum,
    "nanprod": np.prod,
    "nanmean": _mean,
    "nanmax": lambda known: known.max() if known.size else math.nan,
    "nanmin": lambda known: known.min() if known.size else math.nan,
    "nanmedian": lambda known: np.median(known) if known.size else math.nan,
}

for _name, _function in _FUNCTIONS.items():
    function_reference(
        _name,
        samples=_SAMPLES,
        errors=_ERRORS,
        magnitude=lambda x, **_: float(np.abs(x[np.isfinite(x)]).sum()),
    )(_quietly(_function))

for _name, _function in {"nanvar": _variance, "nanstd": _deviation}.items():
    function_reference(
        _name,
        samples=[
            *_SAMPLES,
            call("of a sample", _ROWS, axis=1, correction=1),
        ],
        errors=[
            *_ERRORS,
            wrong("a mean of another shape", ShapeError, floats(2, 3), axis=1, mean=floats(2)),
        ],
        magnitude=lambda x, **_: float(np.abs(x[np.isfinite(x)]).max()) ** 2,
    )(_quietly(_function))

for _name, _least, _find in (
    ("nanargmax", -math.inf, np.nanargmax),
    ("nanargmin", math.inf, np.nanargmin),
):
    function_reference(
        _name,
        samples=[
            call("all", _X),
            call("an axis", _ROWS, axis=1, keepdims=True),
            call("integers", integers(3, 4), axis=0),
            call("ties", np.array([1.0, 3.0, math.nan, 3.0, 1.0])),
        ],
        errors=[
            *_ERRORS,
            wrong("NaN alone", OutOfRangeError, _NOTHING, axis=1, in_data=True),
        ],
    )(_find)
