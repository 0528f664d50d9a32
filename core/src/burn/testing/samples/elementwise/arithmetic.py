"""Samples of arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from burn.dtype import Kind
from burn.errors import ArgumentError, ShapeError
from burn.testing.arrays import (
    LIMITS,
    SPECIAL,
    expanded,
    floats,
    integers,
    long,
    pairs,
    strided,
    transposed,
)
from burn.testing.op_samples import Array, error, reference, sample
from burn.testing.samples.elementwise.elementwise_samples import (
    BINARY_ERRORS,
    ORDERED,
    binary_floats,
    binary_integers,
    each,
    is_nan,
    not_for_bool,
    special_pairs,
    unary_floats,
    unary_integers,
)

_ERRORS = (*BINARY_ERRORS, not_for_bool(2))

# Every operand that may be used twice, and values of which floats lose the sum.
_PAIRS = [*binary_floats(), *special_pairs(), *binary_integers()]

reference("add", samples=_PAIRS, errors=_ERRORS, signed_zeros=True)(each(lambda a, b: a + b))
reference("subtract", samples=_PAIRS, errors=_ERRORS, signed_zeros=True)(each(lambda a, b: a - b))
reference("multiply", samples=_PAIRS, errors=_ERRORS, signed_zeros=True)(each(lambda a, b: a * b))


@reference(
    "axpby",
    samples=[
        sample("same shape", floats(33), floats(33, phase=0.2), a=0.9, b=0.1),
        sample("0-d", floats(), floats(phase=0.2), a=2.0, b=3.0),
        sample("broadcast both", floats(3, 1), floats(2, 1, 4, phase=0.2), a=0.25, b=0.75),
        sample("signs", floats(8), floats(8, phase=0.2), a=-1.5, b=0.0),
        sample("empty", floats(0, 3), floats(3), a=1.0, b=1.0),
        sample("layouts", transposed(floats(3, 4)), strided(floats(3, 4)), a=0.5, b=2.0),
        sample("special floats", *pairs(SPECIAL), a=0.5, b=0.5, differentiable=False),
    ],
    errors=[error("shapes that do not fit", ShapeError, floats(2), floats(3), a=1.0, b=1.0)],
    terms=lambda x1, x2, *, a, b: (2, np.abs(x1 * a) + np.abs(x2 * b)),
)
def _(x1: Array, x2: Array, *, a: float, b: float) -> Array:
    return x1 * a + x2 * b


@reference(
    "divide",
    samples=[*binary_floats(), *special_pairs(), sample("by zero", floats(4), 0.0)],
    errors=BINARY_ERRORS,
    signed_zeros=True,
)
def _(x1: Array | float, x2: Array | float) -> Array:
    return np.true_divide(x1, x2)


# Quotients that are whole, where the rounded quotient lies on the wrong side, and of both signs.
_QUOTIENTS = [
    sample(
        "signs",
        np.array([5.5, -5.5, 5.5, -5.5]),
        np.array([2.0, 2.0, -2.0, -2.0]),
    ),
    sample(
        "whole quotients",
        np.array([6.0, -6.0, 0.0, 1.0, 7.0]),
        np.array([2.0, 2.0, 3.0, -1.0, 0.5]),
        differentiable=False,
    ),
    sample(
        "quotients just below a whole one",
        np.array([1.0, 0.3, 0.6, 0.9]),
        np.array([0.1, 0.1, 0.2, 0.1]),
        differentiable=False,
    ),
    sample("floats by zero", np.array([1.5, -1.5, 0.0, math.nan]), 0.0, differentiable=False),
    sample("integers by zero", integers(3, 4), 0),
    sample("integer by integers with zeros", 7, np.arange(5)),
]


def _floor_divide(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b else 0
    if math.isnan(a) or math.isnan(b) or not b:
        return float(np.true_divide(a, b))
    if math.isinf(a):
        return math.nan
    sign = math.copysign(1.0, a) * math.copysign(1.0, b)
    if math.isinf(b):
        return -1.0 if a and sign < 0.0 else sign * 0.0
    return float(math.floor(Fraction(a) / Fraction(b))) or sign * 0.0


def _remainder(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        return a % b if b else 0
    if math.isnan(a) or math.isnan(b) or not b or math.isinf(a):
        return math.nan
    if math.isinf(b):
        return a if a and (a < 0.0) == (b < 0.0) else math.copysign(0.0, b) if not a else b
    return float(Fraction(a) % Fraction(b)) or math.copysign(0.0, b)


reference(
    "floor_divide",
    samples=[*binary_floats(), *special_pairs(), *binary_integers(), *_QUOTIENTS],
    errors=_ERRORS,
    signed_zeros=True,
)(each(_floor_divide))
reference(
    "remainder",
    samples=[*binary_floats(), *special_pairs(), *binary_integers(), *_QUOTIENTS],
    errors=_ERRORS,
    signed_zeros=True,
)(each(_remainder))


def _pow(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        if b >= 0:
            return pow(a, b, 1 << 64)
        return {1: 1, -1: 1 if b % 2 == 0 else -1}.get(a, 0)
    return float(np.float_power(a, b))  # np.power of one exponent 0.5 is a square root


reference(
    "pow",
    samples=[
        *binary_floats(),
        *special_pairs(),
        sample("square", floats(5), 2.0),
        sample("to the power 1/2 at the limits", long(np.append(SPECIAL, [4.0, -4.0])), 0.5),
        sample("to the power 1/2 without axes", long(np.append(SPECIAL, [4.0])), np.array(0.5)),
        sample("negative infinity to the power 1/2", np.array(-math.inf), np.array(0.5)),
        sample("to the power -1/2 at the limits", long(np.append(SPECIAL, [4.0, -4.0])), -0.5),
        sample("to the power 0", np.array([-1.5, 0.0, 2.0]), 0.0),
        sample("to the power 1", np.array([-1.5, 0.0, 2.0]), 1.0),
        sample("cube", np.array([-1.5, 0.0, 2.0]), 3.0),
        sample("negative exponent", floats(5, low=0.5), -1.5),
        sample("base 0", np.zeros(4), np.array([0.0, 1.0, 2.0, 3.0])),
        sample("number 0 as base", 0.0, np.array([1.0, 2.0, 3.0])),
        sample("negative bases", np.array([-2.0, -1.5, -0.5]), np.array([2.0, 3.0, -1.0])),
        sample(
            "powers of integers",
            np.array([0, 1, -1, 2, -2, 3, 7, 10])[:, None],
            np.array([0, 1, 2, 3, 5, 8, 20, 63, 64, 100]),
        ),
        sample(
            "negative exponents of integers",
            np.array([0, 1, -1, 2, -2, 100])[:, None],
            np.array([-1, -2, -3, -100]),
            kinds=Kind.INT,
        ),
        sample("number to negative exponents", 2, np.array([-2, -1, 0, 1]), kinds=Kind.INT),
        sample("minus one to integers", -1, np.array([-3, -2, 0, 5]), kinds=Kind.INT),
        sample("integer limits", LIMITS, np.array(3)),
        sample("integers to a number", integers(3, 4), 3),
        sample("integers to the power 0", integers(4), 0),
        sample("integers, empty", integers(0), integers(0)),
    ],
    errors=[
        *_ERRORS,
        error("integers to a negative number", ArgumentError, integers(3), -1),
    ],
    signed_zeros=True,
)(each(_pow))

_HALVES = (np.full(3, 0.5), np.full(3, 0.5))
_EXTREMA = [
    *binary_floats(),
    *binary_integers(),
    *special_pairs(ORDERED),
    sample("NaN right", floats(3), math.nan),
    sample("NaN left", math.nan, floats(3)),
    sample(
        "ties share the gradient",
        np.array([1.0, -2.0, 0.0]),
        np.array([1.0, -2.0, 0.0]),
        differentiable=False,
        gradients=_HALVES,
    ),
    sample(
        "ties with a number",
        np.array([1.5, 1.5, 1.5]),
        1.5,
        differentiable=False,
        gradients=(_HALVES[0], None),
    ),
]


@reference("maximum", samples=_EXTREMA, errors=_ERRORS, exact=True)
def _(x1: Array, x2: Array) -> Array:
    return np.where((x1 > x2) | (x1 != x1), x1, x2)  # noqa: PLR0124 — true for NaN


@reference("minimum", samples=_EXTREMA, errors=_ERRORS, exact=True)
def _(x1: Array, x2: Array) -> Array:
    return np.where((x1 < x2) | (x1 != x1), x1, x2)  # noqa: PLR0124 — true for NaN


def _clip(x: float, low: float, high: float) -> float:
    if any(map(is_nan, (x, low, high))):
        return math.nan
    return min(max(x, low), high)


reference(
    "clip",
    samples=[
        sample("0-d", np.array(0.3), 0.5, 1.5),
        sample("numbers", floats(3, 4), -0.75, 0.5),
        sample("tensors", floats(9), floats(9, low=-1.5, high=0.0), floats(9, low=0.1, high=1.5)),
        sample("broadcast bounds", floats(4), floats(3, 1, high=0.0), floats(2, 1, 1, low=0.1)),
        sample("tensor and number", floats(9), floats(9, high=0.0), 0.5),
        sample("strided", strided(floats(3, 4)), -1.0, transposed(floats(3, 4, low=0.0))),
        sample("empty", floats(0, 2), -1.0, 1.0),
        sample("one side", floats(5), -math.inf, 0.5),
        sample("crossed bounds", np.array([-2.0, 0.0, 2.0]), 1.0, -1.0),
        sample(
            "crossed bounds, tensors",
            np.array([-2.0, 0.0, 2.0]),
            np.array([1.0, 1.0, 1.0]),
            np.array([-1.0, -1.0, -1.0]),
        ),
        sample("special floats", long(ORDERED), -1.0, 1.0),
        sample("NaN bounds", floats(2, low=0.0), np.array([math.nan, 0.0]), 1.0),
        sample(
            "whole gradient at the bounds",
            np.array([-1.0, 0.0, 1.0]),
            np.array([-1.0, -1.0, -1.0]),
            np.array([1.0, 1.0, 1.0]),
            differentiable=False,
            gradients=(np.ones(3), np.zeros(3), np.zeros(3)),
        ),
        sample("integers", integers(4, 5), 2, 6),
        sample("signed integers", integers(4, 5), -3, 5),
        sample("integer tensors", LIMITS, np.array(3), np.array(90)),
    ],
    errors=[
        error("bounds that do not broadcast", ShapeError, floats(3), floats(2), 1.0),
        not_for_bool(3),
    ],
    exact=True,
)(each(_clip))

_ABS_AT_ZERO = sample(
    "zeros",
    np.array([0.0, -0.0]),
    differentiable=False,
    gradients=(np.zeros(2),),
)

reference(
    "negative",
    samples=[*unary_floats(), *unary_integers()],
    errors=[not_for_bool(1)],
    exact=True,
)(each(lambda a: -a))
reference(
    "abs",
    samples=[*unary_floats(), *unary_integers(), _ABS_AT_ZERO],
    errors=[not_for_bool(1)],
    exact=True,
)(each(abs))


def _sign(a: float) -> float:
    return a if is_nan(a) else type(a)((a > 0) - (a < 0))


reference(
    "sign",
    samples=[*unary_floats(), *unary_integers(), _ABS_AT_ZERO],
    errors=[not_for_bool(1)],
    signed_zeros=True,
)(each(_sign))
reference(
    "square",
    samples=[*unary_floats(), *unary_integers()],
    errors=[not_for_bool(1)],
    signed_zeros=True,
)(each(lambda a: a * a))


@reference(
    "reciprocal",
    samples=[
        *unary_floats(low=0.5, high=3.0),
        sample("negative", floats(4, low=-3.0, high=-0.5)),
        sample("expanded zeros", expanded(SPECIAL[3:], 2, 2)),
    ],
    signed_zeros=True,
)
def _(x: Array) -> Array:
    return 1.0 / x
