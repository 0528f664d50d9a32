"""Samples of reductions over axes, and of scans along one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from burn.dtype import DType, Kind, bool_, float32, float64, int32, int64, uint64
from burn.errors import AxisError, DTypeError, ShapeError
from burn.testing.arrays import (
    LIMITS,
    booleans,
    expanded,
    floats,
    integers,
    reversed_view,
    strided,
    transposed,
)
from burn.testing.op_samples import (
    INDEX_DTYPE,
    TESTED_DTYPE,
    Array,
    Sample,
    error,
    reference,
    sample,
)
from burn.testing.samples.elementwise.elementwise_samples import is_nan


def over_axes(
    function: Callable[[list[Any]], Any], x: Array, axis: tuple[int, ...], keepdims: bool
) -> Array:
    """Apply a function of a list of Python numbers to what lies over `axis`."""
    kept = [number for number in range(x.ndim) if number not in axis]
    rows = x.transpose([*kept, *axis])
    shape = rows.shape[: len(kept)]
    count = math.prod(shape)
    rows = rows.reshape(count, math.prod(rows.shape[len(kept) :]))
    results = [function(row.tolist()) for row in rows]
    if all(type(result) is int for result in results):
        results = [_wrapped(result) for result in results]
    result = np.array(results).reshape(shape) if results else np.empty(shape)
    return np.expand_dims(result, tuple(sorted(axis))) if keepdims else result


def _wrapped(number: int) -> int:
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def layouts(kind: str, make: Callable[..., Array], **attributes: Any) -> list[Sample]:
    """A tensor of two to four axes over every choice of them, in every layout."""
    return [
        sample(f"{kind} all axes", make(3, 4), axis=(0, 1), **attributes),
        sample(f"{kind} first axis", make(3, 4), axis=(0,), **attributes),
        sample(f"{kind} last axis", make(3, 4), axis=(1,), **attributes),
        sample(f"{kind} axes in any order", make(2, 3, 4), axis=(2, 0), **attributes),
        sample(f"{kind} second of four axes", make(2, 3, 2, 2), axis=(1,), **attributes),
        sample(f"{kind} keepdims", make(2, 3, 4), axis=(0, 2), keepdims=True, **attributes),
        sample(f"{kind} no axis", make(2, 3), axis=(), **attributes),
        sample(f"{kind} 0-d", make(), axis=(), **attributes),
        sample(f"{kind} empty other axis", make(0, 3), axis=(1,), **attributes),
        sample(f"{kind} transposed", transposed(make(3, 4)), axis=(0,), **attributes),
        sample(f"{kind} strided", strided(make(3, 4)), axis=(1,), **attributes),
        sample(f"{kind} reversed", reversed_view(make(3, 4)), axis=(0, 1), **attributes),
        sample(f"{kind} expanded", expanded(make(3), 4, 3), axis=(1,), **attributes),
    ]


def _empty(kind: str, make: Callable[..., Array], **attributes: Any) -> list[Sample]:
    return [
        sample(f"{kind} over no elements", make(2, 0), axis=(1,), **attributes),
        sample(f"{kind} all of none", make(0), axis=(0,), keepdims=True, **attributes),
    ]


_AXIS_ERRORS: Final = (
    ("axis out of range", AxisError, {"axis": (2,)}),
    ("negative axis", AxisError, {"axis": (-1,), "lenient": True}),
    ("an axis twice", AxisError, {"axis": (0, 0)}),
)
_OWN: Final[dict[str, Any]] = {"dtype": TESTED_DTYPE}


_LARGE: Final = np.array([60000.0, 50000.0, 40000.0, -60000.0, -50000.0, -30000.0])
"""Numbers of float16 the sum of which is one too, but not the sums on the way."""

_NAN_AT_THE_END: Final = np.append(floats(256), math.nan)
"""An element more than blocks and registers hold: what computes the others alone loses NaN."""


def _sum(x: Array, *, axis: tuple[int, ...], keepdims: bool = False, dtype: DType) -> Array:
    def add(row: list[Any]) -> Any:
        if dtype.is_integer:
            return sum(row)
        return math.fsum(row) if all(map(math.isfinite, row)) else float(np.sum(row))

    return over_axes(add, x, axis, keepdims)


def _sum_terms(
    x: Array, *, axis: tuple[int, ...], keepdims: bool = False, dtype: DType
) -> tuple[Any, Any]:
    del dtype
    count = math.prod(x.shape[number] for number in axis)
    size = np.abs(x if np.iscomplexobj(x) else x.astype(np.float64))
    magnitude = _sum(size, axis=axis, keepdims=keepdims, dtype=float64)
    return count, magnitude


reference(
    "sum",
    samples=[
        *layouts("floats", floats, **_OWN),
        *_empty("floats", floats, **_OWN),
        sample("ones that 16-bit addition would lose", np.ones(1000), axis=(0,), **_OWN),
        sample("many", floats(10, 100), axis=(0, 1), **_OWN),
        sample("NaN", np.array([1.0, math.nan]), axis=(0,), **_OWN),
        sample("beyond float16 on the way", _LARGE, axis=(0,), **_OWN),
        sample("infinities", np.array([[math.inf, 1.0], [math.inf, -math.inf]]), axis=(1,), **_OWN),
        sample("in float64", floats(3, 4), axis=(0,), dtype=float64),
        *layouts("integers", integers, **_OWN),
        *_empty("integers", integers, **_OWN),
        sample("integers wrap around", np.tile(LIMITS, (3, 1)), axis=(0,), **_OWN),
        sample(
            "integers in int64", np.tile(LIMITS, (3, 1)), kinds=Kind.INT, axis=(0,), dtype=int64
        ),
        sample(
            "integers in uint64", np.tile(LIMITS, (3, 1)), kinds=Kind.UINT, axis=(0,), dtype=uint64
        ),
        sample("integers in float32", integers(3, 4), axis=(0,), dtype=float32),
    ],
    errors=[
        *[error(note, kind, floats(2), dtype=float64, **at) for note, kind, at in _AXIS_ERRORS],
        error("axis of 0-d", AxisError, floats(), axis=(0,), dtype=float64),
        error("booleans", DTypeError, booleans(3), axis=(0,), dtype=int32),
    ],
    terms=_sum_terms,
)(_sum)


def _mean(x: Array, *, axis: tuple[int, ...], keepdims: bool = False) -> Array:
    def average(row: list[float]) -> float:
        return math.fsum(row) / len(row) if row else math.nan

    return over_axes(average, x, axis, keepdims)


def _mean_terms(x: Array, *, axis: tuple[int, ...], keepdims: bool = False) -> tuple[Any, Any]:
    count = math.prod(x.shape[number] for number in axis)
    return count, _mean(abs(x), axis=axis, keepdims=keepdims)


reference(
    "mean",
    samples=[
        *layouts("floats", floats),
        *_empty("floats", floats),
        sample("sum beyond float16", np.full(100, 1000.0), axis=(0,)),
        sample("beyond float16 on the way", _LARGE, axis=(0,)),
        sample("NaN", np.array([[1.0, math.nan], [2.0, 4.0]]), axis=(1,)),
        sample("ones that 16-bit addition would lose", np.ones(1000), axis=(0,)),
    ],
    errors=[error(note, kind, floats(2), **at) for note, kind, at in _AXIS_ERRORS],
    terms=_mean_terms,
)(_mean)


@reference(
    "prod",
    samples=[
        *layouts("floats", lambda *shape: floats(*shape, low=0.5, high=1.5), **_OWN),
        *_empty("floats", floats, **_OWN),
        sample("one zero", np.array([1.5, 0.0, -2.0]), axis=(0,), **_OWN),
        sample("two zeros", np.array([0.0, 3.0, 0.0, 2.0]), axis=(0,), **_OWN),
        sample("zeros by row", np.array([[1.0, 0.0], [0.0, 0.0], [2.0, 3.0]]), axis=(1,), **_OWN),
        sample("one element", np.array([[2.0], [0.0]]), axis=(1,), **_OWN),
        sample("NaN", np.array([1.0, math.nan]), axis=(0,), **_OWN),
        sample("many near 1", floats(100, low=0.9, high=1.1), axis=(0,), **_OWN),
        sample("in float64", floats(3, 4), axis=(0,), dtype=float64),
        *layouts("integers", integers, **_OWN),
        *_empty("integers", integers, **_OWN),
        sample("integers wrap around", np.arange(1, 41), axis=(0,), **_OWN),
        sample("integers in int64", integers(3, 4), kinds=Kind.INT, axis=(0, 1), dtype=int64),
    ],
    errors=[
        *[error(note, kind, floats(2), dtype=float64, **at) for note, kind, at in _AXIS_ERRORS],
        error("booleans", DTypeError, booleans(3), axis=(0,), dtype=int32),
    ],
)
def _(x: Array, *, axis: tuple[int, ...], keepdims: bool = False, dtype: DType) -> Array:
    def multiply(row: list[Any]) -> Any:
        product = math.prod(row)
        return product if dtype.is_integer else float(product)

    return over_axes(multiply, x, axis, keepdims)


_TIED: Final = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0], [-1.0, 0.0, 0.0]])
_TIED_LOW: Final = -_TIED
_SHARES: Final = np.array([[0.0, 0.5, 0.5], [1 / 3, 1 / 3, 1 / 3], [0.0, 0.5, 0.5]])

_EXTREMA: Final = [
    *layouts("floats", floats),
    sample("NaN at the end", _NAN_AT_THE_END, axis=(0,)),
    sample(
        "NaN, several axes",
        np.array([[[1.0, 2.0], [math.nan, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]),
        axis=(1, 2),
    ),
    sample(
        "NaN, three axes",
        np.array([[[1.0, 2.0], [math.nan, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]),
        axis=(0, 1, 2),
    ),
    sample("NaN propagates", np.array([[1.0, math.nan], [math.nan, math.inf]]), axis=(1,)),
    sample("infinities", np.array([[-math.inf, -math.inf], [math.inf, 1.0]]), axis=(1,)),
    *layouts("integers", integers),
    sample("integer limits", LIMITS.reshape(3, 5), axis=(1,)),
    *layouts("booleans", booleans),
]
_EXTREMUM_ERRORS: Final = (
    *[error(note, kind, floats(2), **at) for note, kind, at in _AXIS_ERRORS],
    error("of no elements", ShapeError, floats(2, 0), axis=(1,)),
    error("of nothing at all", ShapeError, floats(0), axis=(0,)),
)


def _extremum(choose: Callable[[list[Any]], Any]) -> Callable[..., Array]:
    def extremum(x: Array, *, axis: tuple[int, ...], keepdims: bool = False) -> Array:
        def best(row: list[Any]) -> Any:
            return next(filter(is_nan, row), None) or choose(row)

        return over_axes(best, x, axis, keepdims).astype(x.dtype)

    return extremum


reference(
    "max",
    samples=[
        *_EXTREMA,
        sample(
            "ties share the gradient", _TIED, axis=(1,), differentiable=False, gradients=(_SHARES,)
        ),
    ],
    errors=_EXTREMUM_ERRORS,
    exact=True,
)(_extremum(max))
reference(
    "min",
    samples=[
        *_EXTREMA,
        sample(
            "ties share the gradient",
            _TIED_LOW,
            axis=(1,),
            differentiable=False,
            gradients=(_SHARES,),
        ),
    ],
    errors=_EXTREMUM_ERRORS,
    exact=True,
)(_extremum(min))

_TRUTHS: Final = [
    *layouts("floats", lambda *shape: np.asarray(np.trunc(floats(*shape)))),
    *_empty("floats", floats),
    sample("NaN is true", np.array([[math.nan, 0.0], [math.nan, 1.0]]), axis=(1,)),
    sample("minus zero is false", np.array([[-0.0, 0.0], [-0.0, 1.0]]), axis=(1,)),
    *layouts("integers", lambda *shape: integers(*shape, low=0, high=3)),
    *_empty("integers", integers),
    sample("integer limits", LIMITS, axis=(0,)),
    *layouts("booleans", booleans),
    *_empty("booleans", booleans),
    sample("all false", np.zeros((2, 3), np.bool_), axis=(1,)),
    sample("all true", np.ones((2, 3), np.bool_), axis=(1,)),
]
_TRUTH_ERRORS: Final = [error(note, kind, booleans(2), **at) for note, kind, at in _AXIS_ERRORS]


@reference("any", samples=_TRUTHS, errors=_TRUTH_ERRORS)
def _(x: Array, *, axis: tuple[int, ...], keepdims: bool = False) -> Array:
    return over_axes(any, x, axis, keepdims)


@reference("all", samples=_TRUTHS, errors=_TRUTH_ERRORS)
def _(x: Array, *, axis: tuple[int, ...], keepdims: bool = False) -> Array:
    return over_axes(all, x, axis, keepdims)


_INDEX: Final[dict[str, Any]] = {"dtype": INDEX_DTYPE}
_ARG_SAMPLES: Final = [
    sample("first axis", floats(3, 4), axis=0, **_INDEX),
    sample("last axis", floats(3, 4), axis=1, **_INDEX),
    sample("middle axis", floats(2, 5, 2), axis=1, **_INDEX),
    sample("keepdims", floats(3, 4), axis=1, keepdims=True, **_INDEX),
    sample("empty other axis", floats(0, 3), axis=1, **_INDEX),
    sample("ties take the first", np.stack([_TIED, _TIED_LOW]), axis=2, **_INDEX),
    sample("NaN", np.array([[1.0, math.nan, math.inf, math.nan]]), axis=1, **_INDEX),
    sample("NaN at the end", _NAN_AT_THE_END, axis=0, **_INDEX),
    sample("ties far apart", np.tile([1.0, -1.0, 0.0], 300), axis=0, **_INDEX),
    sample("infinities", np.array([[-math.inf, -math.inf], [1.0, math.inf]]), axis=1, **_INDEX),
    sample("transposed", transposed(floats(3, 4)), axis=0, **_INDEX),
    sample("strided", strided(floats(3, 4)), axis=1, **_INDEX),
    sample("reversed", reversed_view(floats(3, 4)), axis=1, **_INDEX),
    sample("as int32", floats(3, 4), axis=0, dtype=int32),
    sample("integers", integers(4, 5), axis=1, **_INDEX),
    sample("integer limits", LIMITS, axis=0, **_INDEX),
    sample("booleans", booleans(4, 5), axis=1, **_INDEX),
    sample("booleans all equal", np.ones((2, 3), np.bool_), axis=1, **_INDEX),
]
_ARG_ERRORS: Final = [
    error("axis out of range", AxisError, floats(3), axis=1, dtype=int32),
    error("of no elements", ShapeError, floats(2, 0), axis=1, dtype=int32),
    error("float indices", DTypeError, floats(3), axis=0, dtype=float32, lenient=True),
    error("bool indices", DTypeError, floats(3), axis=0, dtype=bool_, lenient=True),
]


def _arg_reference(choose: Callable[..., Any]) -> Callable[..., Array]:
    def position(x: Array, *, axis: int, keepdims: bool = False, dtype: DType) -> Array:
        del dtype

        def first(row: list[Any]) -> int:
            nans = [index for index, item in enumerate(row) if is_nan(item)]
            return nans[0] if nans else row.index(choose(row))

        return over_axes(first, x, (axis,), keepdims)

    return position


reference("argmax", samples=_ARG_SAMPLES, errors=_ARG_ERRORS)(_arg_reference(max))
reference("argmin", samples=_ARG_SAMPLES, errors=_ARG_ERRORS)(_arg_reference(min))


def _log_sum(row: list[float]) -> float:
    peak = math.nan if any(map(math.isnan, row)) else max(row, default=-math.inf)
    if not math.isfinite(peak):
        return peak
    return peak + math.log(math.fsum([math.exp(value - peak) for value in row]))


@reference(
    "logsumexp",
    samples=[
        *layouts("floats", floats),
        *_empty("floats", floats),
        sample("far apart", np.array([[1000.0, 1001.0, 999.0], [-1000.0, 3.0, 60.0]]), axis=(1,)),
        sample("minus infinity", np.array([-math.inf, 0.0, 1.0]), axis=(0,)),
        sample(
            "all minus infinity",
            np.full((2, 2), -math.inf),
            axis=(1,),
            differentiable=False,
            gradients=(np.zeros((2, 2)),),
        ),
        sample(
            "infinity",
            np.array([math.inf, 0.0, -math.inf]),
            axis=(0,),
            differentiable=False,
            gradients=(np.array([1.0, 0.0, 0.0]),),
        ),
        sample("NaN", np.array([[math.nan, 0.0], [math.inf, -math.inf]]), axis=(1,)),
        sample("many", floats(4, 100, low=-8.0, high=8.0), axis=(1,)),
    ],
    errors=[
        error(note, kind, floats(2, 3), **attributes) for note, kind, attributes in _AXIS_ERRORS
    ],
)
def _(x: Array, *, axis: tuple[int, ...], keepdims: bool = False) -> Array:
    return over_axes(_log_sum, x, axis, keepdims)
