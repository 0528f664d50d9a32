"""Samples of covariance and correlation."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from burn.errors import DTypeError, ShapeError
from burn.testing.arrays import floats, integers
from burn.testing.function_samples import FunctionCall, call, function_reference, wrong
from burn.testing.op_samples import Array

_SAMPLES: Final[list[FunctionCall]] = [
    call("rows", floats(3, 5)),
    call("columns", floats(5, 3), rowvar=False),
    call("a vector", floats(5)),
    call("a batch", floats(2, 2, 4)),
    call("integers", integers(2, 5)),
]
_TIMES: Final = np.array([1, 2, 0, 3])


def _each(function: Any, x: Array, *, rowvar: bool = True, **options: Any) -> Array:
    if x.ndim < 3:
        return np.asarray(function(x, rowvar=rowvar, **options))
    return np.stack([_each(function, item, rowvar=rowvar, **options) for item in x])


@function_reference(
    "cov",
    samples=[
        *_SAMPLES,
        call("of a population", floats(3, 5), correction=0),
        call("counts", floats(2, 4), fweights=_TIMES),
        call("reliabilities", floats(2, 4), aweights=np.array([0.5, 1.0, 0.25, 2.0])),
        call("both", floats(2, 4), fweights=_TIMES, aweights=np.array([0.5, 1.0, 0.25, 2.0])),
    ],
    errors=[
        wrong("a number", ShapeError, floats()),
        wrong("weights of another length", ShapeError, floats(2, 3), aweights=floats(2)),
        wrong("counts that are floats", DTypeError, floats(2, 3), fweights=floats(3)),
    ],
    magnitude=lambda x, **_: np.abs(x).max() ** 2 * 4,
)
def _(x: Array, *, correction: float = 1.0, **options: Any) -> Array:
    return _each(np.cov, x, ddof=correction, **options)


@function_reference(
    "corrcoef",
    samples=[*_SAMPLES, call("variances beyond float16", floats(3, 5) * 1e3)],
    errors=[wrong("a number", ShapeError, floats())],
    magnitude=lambda _, **__: 4.0,
)
def _(x: Array, **options: Any) -> Array:
    return _each(np.corrcoef, x, **options)
