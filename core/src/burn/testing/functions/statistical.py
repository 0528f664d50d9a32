"""Samples of statistics: differences, covariance."""

from __future__ import annotations

import numpy as np

from burn.errors import ArgumentError
from burn.testing.arrays import floats, integers
from burn.testing.function_samples import call, function_reference, wrong
from burn.testing.op_samples import Array


@function_reference(
    "diff",
    samples=[
        call("columns", floats(3, 4), axis=0),
        call("twice", floats(2, 5), n=2),
        call("integers", integers(5)),
    ],
    errors=[wrong("a negative order", ArgumentError, floats(3), n=-1)],
    magnitude=lambda x, n=1, **_: 2.0**n * np.abs(x).max(),
)
def _(x: Array, *, axis: int = -1, n: int = 1) -> Array:
    return np.diff(x, n=n, axis=axis)
