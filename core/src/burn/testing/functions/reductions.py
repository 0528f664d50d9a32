"""Calls of reductions, of sums along an axis, and of what sorts and searches."""

from __future__ import annotations

from typing import Final

import numpy as np

from burn.errors import AxisError, ShapeError
from burn.testing.arrays import booleans, floats, integers
from burn.testing.function_samples import call, function_calls, wrong

_X: Final = floats(2, 3, 4)

for _name in ("sum", "prod", "mean", "max", "min", "max_abs", "median"):
    function_calls(
        _name,
        call("all", _X),
        call("an axis", _X, axis=1),
        call("axes", _X[:, 0], axis=-1, keepdims=True),
        errors=[wrong("an axis out of range", AxisError, _X, axis=3)],
    )
function_calls("ptp", call("all", _X), call("an axis", _X, axis=(0, 1), keepdims=True))
for _name in ("std", "var"):
    function_calls(
        _name,
        call("all", _X),
        call("an axis", _X, axis=(0, 1), correction=1),
        call("a given mean", _X, axis=1, keepdims=True, mean=floats(2, 1, 4)),
        call("one given mean", integers(5), mean=np.array(0.5)),
        errors=[wrong("a mean of another shape", ShapeError, _X, axis=1, mean=floats(2, 4))],
    )
function_calls("var_mean", call("an axis", _X, axis=1))
for _name in ("all", "any"):
    function_calls(
        _name,
        call("all of them", booleans(2, 3)),
        call("an axis", booleans(2, 3), axis=0),
        call("floats", _X, axis=1),
    )
function_calls(
    "count_nonzero",
    call("all", booleans(2, 3)),
    call("an axis", integers(2, 3), axis=1),
    call("floats", _X),
)
for _name in ("argmax", "argmin"):
    function_calls(_name, call("all", _X), call("an axis", _X, axis=1, keepdims=True))
for _name in ("max_with_indices", "min_with_indices", "median_with_indices"):
    function_calls(
        _name, call("an axis", _X, axis=1), call("keeping it", _X, axis=-1, keepdims=True)
    )
function_calls(
    "global_norm", call("two", [floats(2, 3), floats(4)]), call("of order 1", [_X], ord=1)
)
for _name in ("cumulative_sum", "cumulative_prod"):
    function_calls(
        _name, call("an axis", _X, axis=1), call("with the start", floats(4), include_initial=True)
    )
for _name in ("cummax", "cummin"):
    function_calls(_name, call("an axis", _X, axis=1), call("a vector", floats(4)))
for _name in ("sort", "argsort"):
    function_calls(
        _name, call("the last axis", _X), call("descending", _X, axis=0, descending=True)
    )
function_calls("sort_with_indices", call("an axis", _X, axis=1))
for _name in ("topk", "argtopk"):
    function_calls(_name, call("two", _X, 2), call("the least", _X, 1, axis=0, largest=False))
for _name in ("unique_all", "unique_counts", "unique_inverse", "unique_values"):
    function_calls(_name, call("integers", integers(7)), transforms=False)
for _name in ("nonzero", "argwhere"):
    function_calls(
        _name,
        call("integers", integers(2, 4, low=-1, high=2)),
        call("floats", floats(2, 3)),
        transforms=False,
    )
