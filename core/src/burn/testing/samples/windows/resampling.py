"""Samples of interpolation."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Final

import numpy as np

from burn.errors import ArgumentError, ShapeError
from burn.testing import op_samples
from burn.testing.arrays import expanded, floats, reversed_view, strided, transposed
from burn.testing.op_samples import Array, reference

Sizes = tuple[int, ...]

sample = partial(op_samples.sample, align_corners=False, scale=None)
error = partial(op_samples.error, align_corners=False, scale=None)


def _position(index: int, length: int, count: int, align_corners: bool, scale: Any) -> float:
    """Position of an output element on an input axis, in elements."""
    if align_corners:
        return index * (length - 1) / (count - 1) if count > 1 else 0.0
    step = length / count if scale is None else 1.0 / scale
    return (index + 0.5) * step - 0.5


def _nearest(index: int, length: int, count: int, half: float, scale: Any) -> int:
    step = length / count if scale is None else 1.0 / scale
    # The samples are such that rounding does not decide.
    return min(math.floor((index + half) * step + 1e-9), length - 1)


def keys(d: float, a: float = -0.75) -> float:
    """Equation 3 of Keys (1981), with its free parameter."""
    d = abs(d)
    if d <= 1.0:
        return (a + 2.0) * d**3 - (a + 3.0) * d**2 + 1.0
    return a * d**3 - 5.0 * a * d**2 + 8.0 * a * d - 4.0 * a if d < 2.0 else 0.0


def _lanczos(d: float) -> float:
    if d == round(d):
        return float(d == 0.0)
    x = math.pi * d
    return 3.0 * math.sin(x) * math.sin(x / 3.0) / x**2 if abs(d) < 3.0 else 0.0


def _matrix(length: int, count: int, mode: str, align_corners: bool, scale: Any) -> Array:
    """Weight of each input element in each output element."""
    weights = np.zeros((count, length))
    for index in range(count):
        row = weights[index]
        if mode.startswith("nearest"):
            half = 0.5 if mode == "nearest-exact" else 0.0
            row[_nearest(index, length, count, half, scale)] = 1.0
            continue
        position = _position(index, length, count, align_corners, scale)
        if mode == "linear":
            position = min(max(position, 0.0), length - 1.0)
            for number in range(length):
                row[number] = max(0.0, 1.0 - abs(position - number))
        elif mode == "cubic":
            first = math.floor(position)
            for number in range(first - 1, first + 3):
                row[min(max(number, 0), length - 1)] += keys(position - number)
        else:
            for number in range(length):
                row[number] = _lanczos(position - number)
            row /= row.sum()
    return weights


def _weighted(x: Array, weights: Array, axis: int) -> Array:
    """Multiply by a matrix along an axis; what has the weight 0 is not looked at."""
    x = np.moveaxis(x, axis, 0)
    result = np.zeros((len(weights), *x.shape[1:]))
    for index, number in zip(*np.nonzero(weights), strict=True):
        result[index] += weights[index, number] * x[number]
    return np.moveaxis(result, 0, axis)


def _resampled(
    x: Array, input_size: Sizes, output_size: Sizes, *, back: bool = False, **options: Any
) -> Array:
    scales = options.pop("scale", None) or (None,) * len(input_size)
    first = x.ndim - len(input_size)
    for axis, (length, count, scale) in enumerate(
        zip(input_size, output_size, scales, strict=True), start=first
    ):
        weights = _matrix(length, count, scale=scale, **options)
        x = _weighted(x, weights.T if back else weights, axis)
    return x


def _interpolate(x: Array, *, output_size: Sizes, **options: Any) -> Array:
    input_size = x.shape[x.ndim - len(output_size) :]
    return _resampled(x, input_size, output_size, **options)


def _interpolate_grad(g: Array, *, input_size: Sizes, **options: Any) -> Array:
    output_size = g.shape[g.ndim - len(input_size) :]
    return _resampled(g, input_size, output_size, back=True, **options)


_MODES: Final = ("nearest", "nearest-exact", "linear", "cubic", "lanczos3")

_CASES: Final[list[tuple[str, Sizes, Sizes, Sizes, dict[str, Any]]]] = [
    *[(f"{mode}, larger", (1, 2), (3, 2), (5, 4), {"mode": mode}) for mode in _MODES],
    *[(f"{mode}, smaller", (), (7, 4), (3, 3), {"mode": mode}) for mode in _MODES],
    *[(f"{mode}, signals", (1, 2), (5,), (7,), {"mode": mode}) for mode in _MODES],
    *[(f"{mode}, one element", (2,), (1,), (3,), {"mode": mode}) for mode in _MODES],
    *[(f"{mode}, one output", (), (4, 3), (1, 1), {"mode": mode}) for mode in _MODES],
    *[(f"{mode}, the same size", (2,), (3,), (3,), {"mode": mode}) for mode in _MODES],
    *[
        (f"{mode}, scale", (), (5, 3), (6, 4), {"mode": mode, "scale": (1.3, 1.6)})
        for mode in _MODES
    ],
    *[
        (f"{mode}, corners", (), (3, 4), (4, 6), {"mode": mode, "align_corners": True})
        for mode in _MODES[2:]
    ],
    *[
        (f"{mode}, corners, one output", (), (3, 1), (1, 4), {"mode": mode, "align_corners": True})
        for mode in _MODES[2:]
    ],
    ("volumes", (1, 1), (2, 3, 2), (3, 2, 3), {"mode": "linear"}),
    ("spatial axes alone", (), (4, 5), (6, 3), {"mode": "cubic"}),
    ("empty batch", (0, 2), (4, 5), (6, 3), {"mode": "linear"}),
    ("much larger", (1,), (2,), (23,), {"mode": "linear"}),
    ("much smaller", (1,), (31,), (3,), {"mode": "cubic"}),
]

_ERRORS: Final[list[tuple[str, type[ArgumentError], dict[str, Any]]]] = [
    ("unknown mode", ArgumentError, {"mode": "bilinear"}),
    ("corners of nothing", ArgumentError, {"mode": "nearest", "align_corners": True}),
    ("scale of 0", ArgumentError, {"mode": "linear", "scale": (0.0, 1.0)}),
    ("infinite scale", ArgumentError, {"mode": "linear", "scale": (math.inf, 1.0)}),
    ("one scale of two", ArgumentError, {"mode": "linear", "scale": (1.0,)}),
    ("scale of other sizes", ArgumentError, {"mode": "linear", "scale": (1.0, 0.5)}),
]

_INFINITE: Final = np.array([1.0, 2.0, math.inf, 3.0, 4.0, math.nan, 5.0])


def _magnitude(function: Any) -> Any:
    """Terms of a map whose weights may be negative: some 1.4 in all for each axis."""

    def terms(x: Array, **options: Any) -> tuple[int, Array]:
        largest = np.max(np.abs(x[np.isfinite(x)]), initial=0.0)
        spread = function(np.ones(x.shape), **options)
        return 36, 3.0 * largest * np.maximum(np.abs(spread), 1.0)

    return terms


reference(
    "interpolate",
    samples=[
        *[
            sample(note, floats(*lead, *given), output_size=wanted, **options)
            for note, lead, given, wanted, options in _CASES
        ],
        sample("transposed", transposed(floats(2, 3, 4)), output_size=(5, 6), mode="linear"),
        sample("strided", strided(floats(2, 3, 4)), output_size=(5, 2), mode="cubic"),
        sample("reversed", reversed_view(floats(3, 6)), output_size=(4,), mode="nearest"),
        sample("expanded", expanded(floats(4), 3, 4), output_size=(2, 6), mode="lanczos3"),
        sample("not finite, nearest", _INFINITE, output_size=(9,), mode="nearest"),
        sample("not finite, linear", _INFINITE, output_size=(14,), mode="linear"),
        sample(
            "not finite, corners", _INFINITE, output_size=(13,), mode="linear", align_corners=True
        ),
        sample("not finite, the same size", _INFINITE, output_size=(7,), mode="lanczos3"),
    ],
    errors=[
        *[
            error(note, expected, floats(2, 3, 4), output_size=(3, 4), **options)
            for note, expected, options in _ERRORS
        ],
        error("no positions", ShapeError, floats(2, 3), output_size=(0,), mode="linear"),
        error("negative size", ShapeError, floats(2, 3), output_size=(-1,), mode="linear"),
        error("no size", ShapeError, floats(2, 3), output_size=(), mode="linear"),
        error("too few axes", ShapeError, floats(3), output_size=(2, 2), mode="linear"),
        error("empty axis", ShapeError, floats(2, 0, 3), output_size=(2, 2), mode="nearest"),
        error("too large", ShapeError, floats(2, 3), output_size=(1 << 63,), mode="nearest"),
    ],
    terms=_magnitude(_interpolate),
)(_interpolate)

reference(
    "interpolate_grad",
    samples=[
        *[
            sample(note, floats(*lead, *wanted), input_size=given, **options)
            for note, lead, given, wanted, options in _CASES
        ],
        sample("layouts", strided(transposed(floats(2, 5, 6))), input_size=(3, 4), mode="linear"),
        sample("not finite", _INFINITE, input_size=(4,), mode="linear"),
    ],
    errors=[
        *[
            error(note, expected, floats(2, 3, 4), input_size=(3, 4), **options)
            for note, expected, options in _ERRORS
        ],
        error("no positions", ShapeError, floats(2, 0), input_size=(3,), mode="linear"),
        error("no size", ShapeError, floats(2, 3), input_size=(), mode="linear"),
        error("too few axes", ShapeError, floats(3), input_size=(2, 2), mode="linear"),
        error("empty input", ShapeError, floats(2, 3), input_size=(0,), mode="nearest"),
    ],
    terms=_magnitude(_interpolate_grad),
)(_interpolate_grad)
