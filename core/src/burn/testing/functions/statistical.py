"""Samples of statistics: differences, covariance."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from burn.errors import ArgumentError, AxisError, ShapeError
from burn.testing.arrays import floats, integers
from burn.testing.function_samples import call, function_reference, wrong
from burn.testing.op_samples import Array


@function_reference(
    "diff",
    samples=[
        call("columns", floats(3, 4), axis=0),
        call("twice", floats(2, 5), n=2),
        call("integers", integers(5)),
        call("joined", floats(2, 3), prepend=floats(2, 1), append=floats(2, 2, phase=0.6)),
    ],
    errors=[wrong("a negative order", ArgumentError, floats(3), n=-1)],
    magnitude=lambda x, n=1, **_: 2.0 * 2.0**n * np.abs(x).max(),
)
def _(x: Array, *, axis: int = -1, n: int = 1, **joined: Array) -> Array:
    return np.diff(x, n=n, axis=axis, **joined)


_INTEGRATED: Final = [
    call("rows", floats(2, 5)),
    call("a distance", floats(2, 5), dx=0.25, axis=0),
    call("a vector of positions", floats(3, 4), floats(3, low=-2.0, high=2.0), axis=0),
    call("positions for each", floats(2, 4), floats(2, 4, phase=0.7)),
    call("integers", integers(4), integers(4)),
    call("one value", floats(2, 1)),
]
_WRONG_POSITIONS: Final = [
    wrong("an axis out of range", AxisError, floats(3), axis=1),
    wrong("fewer positions", ShapeError, floats(3), floats(2)),
]


@function_reference(
    "trapezoid",
    samples=_INTEGRATED,
    errors=_WRONG_POSITIONS,
    magnitude=lambda y, *_, **__: 32.0 * np.abs(y).max(),
)
def _(y: Array, x: Array | None = None, *, dx: float = 1.0, axis: int = -1) -> Any:
    return np.sum(_areas(y, x, dx, axis), axis)


@function_reference(
    "cumulative_trapezoid",
    samples=_INTEGRATED,
    errors=_WRONG_POSITIONS,
    magnitude=lambda y, *_, **__: 32.0 * np.abs(y).max(),
)
def _(y: Array, x: Array | None = None, *, dx: float = 1.0, axis: int = -1) -> Array:
    return np.cumsum(_areas(y, x, dx, axis), axis)


def _areas(y: Array, x: Array | None, dx: float, axis: int) -> Array:
    rows = np.moveaxis(y * 1.0, axis, -1)
    widths: Any = dx if x is None else np.diff(x if x.ndim == 1 else np.moveaxis(x, axis, -1))
    return np.moveaxis((rows[..., 1:] + rows[..., :-1]) / 2.0 * widths, -1, axis)
