"""Samples of order along an axis."""

from __future__ import annotations

import bisect
import math
from dataclasses import replace
from typing import Any

import numpy as np

from burn.dtype import DType, bool_, float32, int32, int64
from burn.errors import ArgumentError, AxisError, DTypeError, ShapeError
from burn.testing.arrays import (
    LIMITS,
    NEIGHBOURS,
    booleans,
    floats,
    integers,
    reversed_view,
    strided,
    transposed,
)
from burn.testing.op_samples import INDEX_DTYPE, Array, Sample, error, reference, sample
from burn.testing.samples.elementwise.elementwise_samples import is_nan

_TIES = np.array([1.0, 0.0, 1.0, -1.0, 0.0, -1.0, 1.0])
_NANS = np.array([math.nan, 1.0, math.inf, math.nan, -math.inf, 0.0])
_SIGNED_NANS = np.array([0.0, -math.nan, 1.0, math.nan, -math.inf, math.inf, -math.nan])


def _samples(prefix: str, *, descending: bool) -> list[Sample]:
    order: dict[str, Any] = {"descending": descending, "dtype": INDEX_DTYPE}
    return [
        sample(f"{prefix} vector", floats(9), axis=0, **order),
        sample(f"{prefix} first axis", floats(4, 3), axis=0, **order),
        sample(f"{prefix} last axis", floats(3, 4), axis=1, **order),
        sample(f"{prefix} middle axis", floats(2, 5, 2), axis=1, **order),
        sample(f"{prefix} ties keep their order", _TIES, axis=0, **order),
        sample(f"{prefix} zeros of both signs", np.array([0.0, -0.0, 0.0]), axis=0, **order),
        sample(f"{prefix} NaN is largest", _NANS, axis=0, **order),
        sample(f"{prefix} NaN of both signs are equal", _SIGNED_NANS, axis=0, **order),
        sample(f"{prefix} empty axis", floats(2, 0), axis=1, **order),
        sample(f"{prefix} empty other axis", floats(0, 3), axis=1, **order),
        sample(f"{prefix} length 1", floats(3, 1), axis=1, **order),
        sample(f"{prefix} transposed", transposed(floats(4, 3)), axis=0, **order),
        sample(f"{prefix} strided", strided(floats(4, 3)), axis=1, **order),
        sample(f"{prefix} reversed", reversed_view(floats(4, 3)), axis=1, **order),
        sample(f"{prefix} integers", integers(5, 6, low=-3, high=3), axis=1, **order),
        sample(f"{prefix} integer limits", LIMITS, axis=0, **order),
        sample(f"{prefix} integers that are one as floats", NEIGHBOURS, axis=0, **order),
        sample(f"{prefix} booleans", booleans(3, 9), axis=1, **order),
        sample(f"{prefix} many ties", integers(600, low=0, high=4), axis=0, **order),
    ]


@reference(
    "argsort",
    samples=[
        *_samples("ascending", descending=False),
        *_samples("descending", descending=True),
        sample("indices as int32", floats(5), axis=0, dtype=int32),
    ],
    errors=[
        error("axis out of range", AxisError, floats(3), axis=1, dtype=int32),
        error("0-d", AxisError, floats(), axis=0, dtype=int32),
        error("float indices", DTypeError, floats(3), axis=0, dtype=float32, lenient=True),
        error("bool indices", DTypeError, floats(3), axis=0, dtype=bool_, lenient=True),
    ],
)
def _argsort(x: Array, *, axis: int, descending: bool = False, dtype: DType) -> Array:
    del dtype
    result = np.empty(x.shape, np.int64)
    rows, indices = np.moveaxis(x, axis, -1), np.moveaxis(result, axis, -1)
    for row in np.ndindex(rows.shape[:-1]):
        values = rows[row].tolist()
        # Python's sort is stable, also with reverse=True.
        keys = [(1, 0) if is_nan(value) else (0, value) for value in values]
        indices[row] = sorted(range(len(keys)), key=keys.__getitem__, reverse=descending)
    return result


def _without_dtype(one: Sample) -> Sample:
    attributes = {name: value for name, value in one.attributes.items() if name != "dtype"}
    # Where elements are equal, each of them has another slope to either side.
    distinct = all(len(np.unique(array)) == array.size for array in one.operands)
    return replace(one, attributes=attributes, differentiable=distinct)


@reference(
    "sort",
    samples=[
        *map(_without_dtype, _samples("ascending", descending=False)),
        *map(_without_dtype, _samples("descending", descending=True)),
        sample(
            "equal elements keep their gradients",
            _TIES,
            axis=0,
            differentiable=False,
            gradients=(np.ones(7),),
        ),
    ],
    errors=[
        error("axis out of range", AxisError, floats(3), axis=1),
        error("0-d", AxisError, floats(), axis=0),
    ],
)
def _(x: Array, *, axis: int, descending: bool = False) -> Array:
    indices = _argsort(x, axis=axis, descending=descending, dtype=int64)
    return np.take_along_axis(x, indices, axis)


def _largest(prefix: str, *, largest: bool) -> list[Sample]:
    which: dict[str, Any] = {"largest": largest, "dtype": INDEX_DTYPE}
    return [
        sample(f"{prefix} vector", floats(9), k=3, axis=0, **which),
        sample(f"{prefix} first axis", floats(4, 3), k=2, axis=0, **which),
        sample(f"{prefix} middle axis", floats(2, 5, 2), k=4, axis=1, **which),
        sample(f"{prefix} all", floats(3, 4), k=4, axis=1, **which),
        sample(f"{prefix} none", floats(3, 4), k=0, axis=1, **which),
        sample(f"{prefix} ties take the first", _TIES, k=4, axis=0, **which),
        sample(f"{prefix} NaN is largest", _NANS, k=4, axis=0, **which),
        sample(f"{prefix} NaN of both signs are equal", _SIGNED_NANS, k=5, axis=0, **which),
        sample(f"{prefix} empty axis", floats(2, 0), k=0, axis=1, **which),
        sample(f"{prefix} transposed", transposed(floats(4, 3)), k=2, axis=0, **which),
        sample(f"{prefix} integers", integers(5, 6, low=-3, high=3), k=3, axis=1, **which),
        sample(f"{prefix} integer limits", LIMITS, k=5, axis=0, **which),
        sample(f"{prefix} booleans", booleans(3, 9), k=5, axis=1, **which),
        sample(f"{prefix} many ties", integers(600, low=0, high=4), k=7, axis=0, **which),
    ]


@reference(
    "argtopk",
    samples=[
        *_largest("largest", largest=True),
        *_largest("smallest", largest=False),
        sample("indices as int32", floats(5), k=2, axis=0, dtype=int32),
    ],
    errors=[
        error("axis out of range", AxisError, floats(3), k=1, axis=1, dtype=int32),
        error("more than there are", ArgumentError, floats(3), k=4, axis=0, dtype=int32),
        error("a negative number", ArgumentError, floats(3), k=-1, axis=0, dtype=int32),
        error("float indices", DTypeError, floats(3), k=1, axis=0, dtype=float32, lenient=True),
    ],
)
def _(x: Array, *, k: int, axis: int, largest: bool = True, dtype: DType) -> Array:
    indices = _argsort(x, axis=axis, descending=largest, dtype=dtype)
    return np.take(indices, range(k), axis)


_STEPS = np.array([-1.5, -1.0, 0.0, 0.0, 0.0, 1.0, 1.5])
_QUERIES = np.array([[0.0, -2.0, 2.0, -1.5], [1.5, 0.5, -0.0, 1.0]])
_WITH_NANS = np.array([0.0, 1.0, math.inf, math.nan, math.nan])


def _searches(side: str, *, right: bool) -> list[Sample]:
    how: dict[str, Any] = {"right": right, "dtype": INDEX_DTYPE}
    return [
        sample(f"{side}, matrix", _STEPS, _QUERIES, **how),
        sample(f"{side}, 0-d", _STEPS, floats(), **how),
        sample(f"{side}, NaN is largest", _WITH_NANS, _WITH_NANS[::-1], **how),
        sample(f"{side}, in nothing", floats(0), floats(2, 2), **how),
        sample(f"{side}, for nothing", _STEPS, floats(0, 2), **how),
        sample(f"{side}, in one", np.array([0.5]), _QUERIES, **how),
        sample(f"{side}, many", np.sort(floats(100)), floats(40, phase=0.1), **how),
        sample(f"{side}, views", strided(_STEPS), transposed(_QUERIES), **how),
        sample(f"{side}, integers", np.array([0, 2, 2, 5, 9]), integers(3, 4, low=0), **how),
        sample(f"{side}, booleans", np.array([False, False, True]), booleans(4), **how),
    ]


@reference(
    "searchsorted",
    samples=[
        *_searches("left", right=False),
        *_searches("right", right=True),
        sample("indices as int32", _STEPS, _QUERIES, dtype=int32),
    ],
    errors=[
        error("in a matrix", ShapeError, floats(2, 3), floats(2), dtype=int32),
        error("in 0-d", ShapeError, floats(), floats(2), dtype=int32),
        error("float indices", DTypeError, floats(3), floats(2), dtype=float32, lenient=True),
    ],
)
def _(x1: Array, x2: Array, *, right: bool = False, dtype: DType) -> Array:
    del dtype

    def key(value: Any) -> tuple[bool, Any]:
        return (True, 0) if is_nan(value) else (False, value)

    keys = [key(value) for value in x1.tolist()]
    search = bisect.bisect_right if right else bisect.bisect_left
    indices = [search(keys, key(value)) for value in x2.reshape(-1).tolist()]
    return np.array(indices, np.int64).reshape(x2.shape)
