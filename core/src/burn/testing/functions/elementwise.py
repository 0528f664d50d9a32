"""Calls of elementwise functions, whose values the samples of their ops test."""

from __future__ import annotations

from typing import Final

import numpy as np

from burn.dtype import Kind
from burn.testing.arrays import booleans, complexes, floats, integers
from burn.testing.function_samples import call, function_calls

_ANGLES: Final = floats(2, 3, low=-1.0, high=1.0)
_POSITIVE: Final = floats(2, 3, low=1.0, high=3.0)

_OF_FLOATS: Final = (
    *("acos", "asin", "atan", "atanh", "cos", "cosh", "deg2rad", "erf", "exp", "expm1"),
    *("isfinite", "isinf", "isnan", "log1p", "nn.functional.sigmoid", "rad2deg", "signbit", "sin"),
    *("sinh", "tan", "tanh"),
)
_OF_POSITIVE: Final = ("acosh", "log", "log10", "log2", "reciprocal", "sqrt")
_OF_NUMBERS: Final = (
    *("abs", "asinh", "ceil", "floor", "negative", "positive", "round", "sign", "square", "trunc"),
)
_OF_TWO_NUMBERS: Final = (
    *("add", "divide", "equal", "floor_divide", "fmod", "greater", "greater_equal", "less"),
    *("less_equal", "maximum", "minimum", "multiply", "not_equal", "pow", "remainder", "subtract"),
)
_OF_TWO_FLOATS: Final = ("atan2", "copysign", "hypot", "logaddexp", "nextafter")
_OF_BITS: Final = ("bitwise_and", "bitwise_or", "bitwise_xor")
_OF_SHIFTS: Final = ("bitwise_left_shift", "bitwise_right_shift")
_OF_TRUTHS: Final = ("logical_and", "logical_or", "logical_xor")

for _name in _OF_FLOATS:
    function_calls(_name, call("a matrix", _ANGLES))
for _name in _OF_POSITIVE:
    function_calls(_name, call("a matrix", _POSITIVE))
for _name in _OF_NUMBERS:
    function_calls(_name, call("a matrix", _ANGLES), call("integers", integers(4)))
for _name in _OF_TWO_NUMBERS:
    function_calls(
        _name,
        call("matrices", _POSITIVE, floats(2, 3, low=0.5)),
        call("a row", _POSITIVE, _POSITIVE[0]),
        call("a number", _POSITIVE, 2),
        call("integers", integers(4, low=1), integers(4, low=1, phase=0.7)),
    )
for _name in _OF_TWO_FLOATS:
    function_calls(_name, call("matrices", _POSITIVE, _ANGLES), call("a number", _POSITIVE, 2.0))
for _name in _OF_BITS:
    function_calls(
        _name,
        call("integers", integers(4), integers(4, phase=0.7)),
        call("booleans", booleans(4), booleans(4, phase=0.7)),
        call("a number", integers(4), 3),
    )
for _name in _OF_SHIFTS:
    function_calls(
        _name,
        call("integers", integers(4, low=0), integers(4, low=0, high=5)),
        call("a number", integers(4, low=0), 2),
    )
for _name in _OF_TRUTHS:
    function_calls(
        _name,
        call("booleans", booleans(4), booleans(4, phase=0.7)),
        call("a number", booleans(4), 1),
    )
function_calls("bitwise_invert", call("integers", integers(4)), call("booleans", booleans(4)))
function_calls("logical_not", call("booleans", booleans(4)))
function_calls(
    "clip",
    call("both bounds", _ANGLES, -0.5, 0.5),
    call("a keyword", _ANGLES, max=0.25),
    call("integers", integers(5), 0, 3),
    call("bounds that are tensors", _ANGLES, _ANGLES - 0.5, _ANGLES + 0.1),
)
function_calls(
    "where",
    call("matrices", booleans(2, 3), _ANGLES, _POSITIVE),
    call("a number", booleans(2, 3), _ANGLES, 0.0),
    call("a number first", booleans(2, 3), 1.0, _ANGLES),
)
function_calls("real", call("complex", complexes(3)))
function_calls("imag", call("complex", complexes(3)))
function_calls("conj", call("complex", complexes(3)), call("real", floats(3)))
function_calls("angle", call("complex", complexes(3)))
function_calls("complex", call("two parts", floats(3), floats(3, phase=0.7)), needs_complex=True)
function_calls(
    "isclose",
    call("a tolerance", _ANGLES, _ANGLES + 1e-3, rtol=0.01, atol=0.0),
    call("a number", _ANGLES, 0.0, equal_nan=True),
)
function_calls(
    "allclose",
    call("not so near", _ANGLES, _ANGLES + 1e-3),
    call("a number", _ANGLES, 0.5),
    transforms=False,
)
function_calls("contains_nan", call("one", np.array([1.0, np.nan])))
function_calls(
    "isin",
    call("integers", integers(5), integers(3, phase=0.6)),
    call("inverted", integers(5), integers(3, phase=0.6), invert=True, kinds=Kind.INT),
    call("a number", integers(5), 2),
)
function_calls(
    "astype",
    call("to int32", floats(3, low=1.0, high=9.0), "int32"),
    call("to float32", floats(3, low=1.0, high=9.0), "float32"),
)
