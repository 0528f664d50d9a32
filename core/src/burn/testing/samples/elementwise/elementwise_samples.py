"""What all elementwise ops are tried on, and a way to write references in plain Python."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from burn.errors import DTypeError, OperandTypeError, ShapeError
from burn.testing.arrays import (
    LIMITS,
    LONG_LENGTH,
    SPECIAL,
    booleans,
    expanded,
    floats,
    integers,
    long,
    pairs,
    reversed_view,
    strided,
    transposed,
)
from burn.testing.op_samples import Array, ErrorSample, Reference, Sample, error, sample

__all__ = [
    "BINARY_ERRORS",
    "ORDERED",
    "binary_booleans",
    "binary_floats",
    "binary_integers",
    "each",
    "each_with_attributes",
    "is_nan",
    "not_for_bool",
    "special_pairs",
    "unary_calls",
    "unary_floats",
    "unary_integers",
]

ORDERED: Final = np.array([math.nan, math.inf, -math.inf, 1.5, -2.5])
"""Special floats among which at most NaN is not the larger or the smaller: no two zeros."""

BINARY_ERRORS: Final = (
    error("shapes that do not broadcast", ShapeError, floats(2, 3), floats(4)),
    error("lengths that differ and are not 1", ShapeError, floats(3, 2), floats(3, 4)),
    error("two numbers and no tensor", OperandTypeError, 1, 2),
)


def unary_floats(low: float = -2.0, high: float = 2.0) -> list[Sample]:
    """Floats between `low` and `high` in every layout, and the special ones."""
    return [
        sample("0-d", floats(low=low, high=high)),
        sample("vector", floats(LONG_LENGTH, low=low, high=high)),
        sample("empty", floats(0, 3)),
        sample("transposed", transposed(floats(3, 4, low=low, high=high))),
        sample("strided", strided(floats(2, 3, low=low, high=high))),
        sample("reversed", reversed_view(floats(5, low=low, high=high))),
        sample("expanded", expanded(floats(3, low=low, high=high), 2, 3)),
        sample("special floats", long(np.append(SPECIAL, floats(4, low=low, high=high)))),
    ]


def unary_calls(low: float, high: float, /, **attributes: Any) -> list[Sample]:
    """Floats in every layout, the special ones, and those far away, with attributes."""
    return [
        sample(item.note, *item.operands, differentiable=item.differentiable, **attributes)
        for item in [
            *unary_floats(low, high),
            sample("far", np.array([-1000.0, -100.0, -20.0, -9.0, 9.0, 20.0, 100.0, 1000.0])),
        ]
    ]


def unary_integers() -> list[Sample]:
    """Integers in every layout, and the limits of all dtypes."""
    return [
        sample("integer 0-d", np.array(-3)),
        sample("integers", integers(LONG_LENGTH)),
        sample("integers, empty", integers(2, 0)),
        sample("integers, transposed", transposed(integers(3, 4))),
        sample("integers, reversed and strided", reversed_view(strided(integers(2, 3)))),
        sample("integer limits", long(LIMITS)),
    ]


def binary_floats(low: float = 0.5, high: float = 2.5) -> list[Sample]:
    """Pairs of floats: every way in which operands meet."""

    def first(*shape: int) -> Array:
        return floats(*shape, low=low, high=high)

    def second(*shape: int) -> Array:
        return floats(*shape, low=low, high=high, phase=0.2)

    return [
        sample("0-d", first(), second()),
        sample("same shape", first(LONG_LENGTH), second(LONG_LENGTH)),
        sample("broadcast both", first(3, 1), second(2, 1, 4)),
        sample("0-d and matrix", first(), second(2, 3)),
        sample("empty", first(0, 3), second(3)),
        sample("empty by broadcasting", first(1, 0), second(3, 1)),
        sample("number right", first(LONG_LENGTH), 1.5),
        sample("number left", 0.75, second(LONG_LENGTH)),
        sample("number and 0-d", 1.25, second()),
        sample("number and empty", first(0), 1.5),
        sample("transposed and strided", transposed(first(3, 4)), strided(second(3, 4))),
        sample("reversed and expanded", reversed_view(first(2, 3)), expanded(second(3), 2, 3)),
    ]


def special_pairs(values: Array | None = None) -> list[Sample]:
    """Each special float, or finite one, with each other, and with a number on either side.

    Once without those that are not finite: what a library does about them it may do to all.
    """
    values = np.append(SPECIAL, [1.5, -2.5]) if values is None else values
    finite = values[np.isfinite(values)]
    return [
        sample("special floats", *pairs(values)),
        sample("special floats, number right", long(values), -2.5),
        sample("special floats, number left", -2.5, long(values)),
        sample("zeros and others", *pairs(finite), differentiable=False),
        sample("zeros and others, number right", long(finite), -2.5, differentiable=False),
        sample("zeros and others, number left", -2.5, long(finite), differentiable=False),
    ]


def binary_integers() -> list[Sample]:
    """Pairs of integers: small ones, the limits of all dtypes, and numbers on either side."""
    return [
        sample("integers, 0-d", np.array(-7), np.array(2)),
        sample("integers", integers(LONG_LENGTH), integers(LONG_LENGTH, phase=0.2)),
        sample("integers, broadcast", integers(3, 1), integers(4, phase=0.2)),
        sample("integers, empty", integers(0, 4), integers(4)),
        sample("integers, transposed", transposed(integers(3, 4)), integers(3, 4, phase=0.2)),
        sample("integer limits", *pairs(LIMITS)),
        sample("integers, number right", integers(LONG_LENGTH), 3),
        sample("integers, number left", 100, integers(LONG_LENGTH)),
        sample("integers, negative number left", -5, integers(3, 4)),
        sample("integer limits, number", long(LIMITS), 2),
    ]


def binary_booleans() -> list[Sample]:
    """Pairs of booleans."""
    return [
        sample("booleans", booleans(4, 1), booleans(3, phase=0.3)),
        sample("booleans, transposed", transposed(booleans(2, 3)), booleans(2, 3, phase=0.3)),
        sample("boolean right", booleans(4), True),  # noqa: FBT003 — an operand
        sample("boolean left", False, booleans(4)),  # noqa: FBT003 — an operand
        sample("booleans, empty", booleans(0), booleans(0)),
    ]


def not_for_bool(count: int) -> ErrorSample:
    """Booleans, for an op that does not compute with them."""
    return error("booleans", DTypeError, *[booleans(3)] * count)


def is_nan(number: Any) -> bool:
    """Whether a Python number, or bool, is NaN."""
    return isinstance(number, float) and math.isnan(number)


def each(function: Callable[..., Any]) -> Reference:
    """Vectorize a function of Python numbers: exact for integers, which then wrap around.

    Examples
    --------
    >>> import numpy as np
    >>> each(lambda a, b: a * b)(np.array([2**62, 3]), 4)
    array([ 0, 12])
    """
    vectorized = np.frompyfunc(function, len(inspect.signature(function).parameters), 1)

    def call(*operands: Any) -> Array:
        result = np.asarray(vectorized(*operands), dtype=object)
        values = result.reshape(-1).tolist()
        if any(isinstance(value, complex) for value in values):
            return result.astype(np.complex128)
        if any(isinstance(value, float) for value in values):
            return result.astype(np.float64)
        if values and all(isinstance(value, bool) for value in values):
            return result.astype(np.bool_)
        half = 1 << 63
        wrapped = [(value + half) % (2 * half) - half for value in values]
        return np.array(wrapped, dtype=np.int64).reshape(result.shape)

    return call


def each_with_attributes(function: Callable[..., float]) -> Callable[..., Array]:
    """A reference of one array, from a function of a Python number and attributes."""

    def call(x: Array, **attributes: Any) -> Array:
        values = [function(value, **attributes) for value in x.reshape(-1).tolist()]
        return np.array(values, np.float64).reshape(x.shape)

    return call
