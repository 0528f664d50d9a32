"""Samples of comparison, choice by a mask, and bits."""

from __future__ import annotations

import math

import numpy as np

from burn.errors import ArgumentError, DTypeError, OperandTypeError, ShapeError
from burn.testing.arrays import (
    LIMITS,
    LONG_LENGTH,
    NEIGHBOURS,
    SPECIAL,
    booleans,
    expanded,
    floats,
    integers,
    long,
    reversed_view,
    strided,
    transposed,
)
from burn.testing.op_samples import Array, error, reference, sample
from burn.testing.samples.elementwise.elementwise_samples import (
    BINARY_ERRORS,
    binary_booleans,
    binary_floats,
    binary_integers,
    each,
    is_nan,
    not_for_bool,
    special_pairs,
    unary_floats,
)

_COMPARED = [
    *binary_floats(),
    *special_pairs(),
    sample("equal floats", np.array([1.0, 2.0, -0.0]), np.array([1.0, 2.5, 0.0])),
    sample("infinity as a number", np.array([1.0, math.inf, math.nan]), math.inf),
    sample("number that is rounded", np.array([0.1, 0.3, -0.1]), 0.1),
    *binary_integers(),
    sample("equal integers", integers(3, 4), integers(3, 4)),
    sample("integers that are one as floats", NEIGHBOURS[:, None], NEIGHBOURS),
    *binary_booleans(),
]

reference("equal", samples=_COMPARED, errors=BINARY_ERRORS)(each(lambda a, b: a == b))
reference("not_equal", samples=_COMPARED, errors=BINARY_ERRORS)(each(lambda a, b: a != b))
reference("less", samples=_COMPARED, errors=BINARY_ERRORS)(each(lambda a, b: a < b))
reference("less_equal", samples=_COMPARED, errors=BINARY_ERRORS)(each(lambda a, b: a <= b))
reference("greater", samples=_COMPARED, errors=BINARY_ERRORS)(each(lambda a, b: a > b))
reference("greater_equal", samples=_COMPARED, errors=BINARY_ERRORS)(each(lambda a, b: a >= b))


@reference(
    "where",
    samples=[
        sample("0-d", booleans(), floats(), floats(phase=0.1)),
        sample("same shape", booleans(2, 3), floats(2, 3), floats(2, 3, phase=0.2)),
        sample("broadcast all", booleans(3, 1), floats(4), floats(2, 1, 1, phase=0.2)),
        sample("number first", booleans(4), -0.0, floats(4)),
        sample("number second", booleans(4), floats(4), math.inf),
        sample("number broadcast", booleans(4), floats(1), 0.5),
        sample("empty", booleans(0), floats(0), floats(1)),
        sample(
            "transposed and strided",
            transposed(booleans(3, 4)),
            strided(floats(3, 4)),
            reversed_view(floats(3, 4, phase=0.2)),
        ),
        sample("expanded condition", expanded(booleans(4), 3, 4), floats(3, 4), 1.0),
        sample(
            "what is not chosen has no influence",
            np.array([True, False]),
            np.array([1.0, math.nan]),
            np.array([math.inf, 2.0]),
            gradients=(None, np.array([1.0, 0.0]), np.array([0.0, 1.0])),
        ),
        sample("special floats", booleans(LONG_LENGTH), long(SPECIAL), -long(SPECIAL)),
        sample("special floats, number", booleans(LONG_LENGTH), long(SPECIAL), 0.5),
        sample("integers", booleans(3, 4), integers(3, 4), integers(4, phase=0.2)),
        sample("integer limits", booleans(LONG_LENGTH), long(LIMITS), -long(LIMITS)),
        sample("integers and number", booleans(4), integers(4), 7),
        sample("booleans", booleans(3), booleans(3, phase=0.1), booleans(3, phase=0.3)),
        sample("booleans and number", booleans(3), True, booleans(3, phase=0.3)),  # noqa: FBT003 — an operand
    ],
    errors=[
        error("condition does not broadcast", ShapeError, booleans(2), floats(3), floats(3)),
        error("choices do not broadcast", ShapeError, booleans(3), floats(3), floats(2)),
        error("condition of integers", DTypeError, integers(3), floats(3), floats(3)),
        error("two numbers", OperandTypeError, booleans(3), 1.0, 2.0),
    ],
    exact=True,
)
def _(condition: Array, x1: Array, x2: Array) -> Array:
    condition, x1, x2 = np.broadcast_arrays(condition, x1, x2)
    result = np.array(x2)
    result[condition] = x1[condition]
    return result


reference("isnan", samples=unary_floats())(each(is_nan))
reference("isinf", samples=unary_floats())(each(lambda a: abs(a) == math.inf))
reference("isfinite", samples=unary_floats())(each(math.isfinite))

_BITS = [*binary_integers(), *binary_booleans()]
_BIT_ERRORS = (
    error("shapes that do not broadcast", ShapeError, integers(3, 2), integers(3, 4)),
    error("two numbers and no tensor", OperandTypeError, 1, 2),
    error("floats", DTypeError, floats(3), floats(3)),
)

reference("bitwise_and", samples=_BITS, errors=_BIT_ERRORS)(each(lambda a, b: a & b))
reference("bitwise_or", samples=_BITS, errors=_BIT_ERRORS)(each(lambda a, b: a | b))
reference("bitwise_xor", samples=_BITS, errors=_BIT_ERRORS)(each(lambda a, b: a ^ b))
reference(
    "bitwise_not",
    samples=[
        sample("0-d", np.array(5)),
        sample("integers", integers(3, 4)),
        sample("empty", integers(0, 2)),
        sample("limits", LIMITS),
        sample("strided", strided(integers(3, 4))),
        sample("booleans", booleans(5)),
        sample("booleans, 0-d", booleans()),
        sample("booleans, transposed", transposed(booleans(3, 4))),
    ],
    errors=[error("floats", DTypeError, floats(3))],
)(each(lambda a: (not a) if isinstance(a, bool) else ~a))

_WIDTHS = np.array([0, 1, 7, 8, 9, 15, 16, 31, 32, 33, 63, 64, 65, 100])
_SHIFTS = [
    sample("limits by every width", LIMITS[:, None], _WIDTHS),
    sample("0-d", np.array(-5), np.array(2)),
    sample("broadcast", integers(3, 1), integers(4, low=0)),
    sample("empty", integers(0), integers(1, low=0)),
    sample("transposed", transposed(integers(3, 4)), integers(3, 4, low=0)),
    sample("by a number", integers(3, 4), 3),
    sample("by 0", LIMITS, 0),
    sample("by more than any width", LIMITS, 100),
    sample("number by tensor", 1, _WIDTHS),
    sample("negative number by tensor", -3, _WIDTHS),
]
_SHIFT_ERRORS = (
    *_BIT_ERRORS,
    error("by a negative number", ArgumentError, integers(3), -1),
    not_for_bool(2),
)

reference("bitwise_left_shift", samples=_SHIFTS, errors=_SHIFT_ERRORS)(each(lambda a, b: a << b))
reference("bitwise_right_shift", samples=_SHIFTS, errors=_SHIFT_ERRORS)(each(lambda a, b: a >> b))
