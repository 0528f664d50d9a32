"""Special cases of the standard's elementwise functions (2025.12): infinite and NaN parts, zeros.

Those of real numbers are among the samples of the conformance checks; here are those of complex
numbers, for the CPU, and what NumPy has its own way with.
"""

import itertools
import math

import numpy as np
import pytest

import burn

INF, NAN, PI = math.inf, math.nan, math.pi

POSITIVE = [0.25, 1.0, 1.5, 3.0]
NONZERO = [*POSITIVE, *[-value for value in POSITIVE]]
FINITE = [0.0, -0.0, *NONZERO]

CLASSES = {
    "+0": [0.0],
    "-0": [-0.0],
    "±0": [0.0, -0.0],
    "1": [1.0],
    "-1": [-1.0],
    "+inf": [INF],
    "-inf": [-INF],
    "±inf": [INF, -INF],
    "nan": [NAN],
    "positive": POSITIVE,
    "nonzero": NONZERO,
    "nonzero or inf": [*NONZERO, INF, -INF],
    "not 0": [*NONZERO, INF, -INF, NAN],
    "finite": FINITE,
    "any": [*FINITE, INF, -INF, NAN],
}
"""The words of the standard for a part of a number."""


def on_circle(radius, less=0.0):
    """``radius * cis(b) - less``."""
    return lambda b: (radius * math.cos(b) - less, radius * math.sin(b))


# Real part, imaginary part, and both parts of the result: a string where a sign is unspecified, or
# a function of the imaginary part.
CASES = {
    "acos": [
        ("±0", "+0", PI / 2, -0.0),
        ("±0", "nan", PI / 2, NAN),
        ("finite", "+inf", PI / 2, -INF),
        ("nonzero", "nan", NAN, NAN),
        ("-inf", "positive", PI, -INF),
        ("+inf", "positive", 0.0, -INF),
        ("-inf", "+inf", 3 * PI / 4, -INF),
        ("+inf", "+inf", PI / 4, -INF),
        ("±inf", "nan", NAN, "±inf"),
        ("nan", "finite", NAN, NAN),
        ("nan", "+inf", NAN, -INF),
        ("nan", "nan", NAN, NAN),
    ],
    "acosh": [
        ("±0", "+0", 0.0, PI / 2),
        ("finite", "+inf", INF, PI / 2),
        ("nonzero", "nan", NAN, NAN),
        ("+0", "nan", NAN, "±pi/2"),
        ("-inf", "positive", INF, PI),
        ("+inf", "positive", INF, 0.0),
        ("-inf", "+inf", INF, 3 * PI / 4),
        ("+inf", "+inf", INF, PI / 4),
        ("±inf", "nan", INF, NAN),
        ("nan", "finite", NAN, NAN),
        ("nan", "+inf", INF, NAN),
        ("nan", "nan", NAN, NAN),
    ],
    "asinh": [
        ("+0", "+0", 0.0, 0.0),
        ("positive", "+inf", INF, PI / 2),
        ("finite", "nan", NAN, NAN),
        ("+inf", "positive", INF, 0.0),
        ("+inf", "+inf", INF, PI / 4),
        ("nan", "+0", NAN, 0.0),
        ("nan", "nonzero", NAN, NAN),
        ("nan", "+inf", "±inf", NAN),
        ("nan", "nan", NAN, NAN),
    ],
    "atanh": [
        ("+0", "+0", 0.0, 0.0),
        ("+0", "nan", 0.0, NAN),
        ("1", "+0", INF, 0.0),
        ("positive", "+inf", 0.0, PI / 2),
        ("nonzero", "nan", NAN, NAN),
        ("+inf", "positive", 0.0, PI / 2),
        ("+inf", "+inf", 0.0, PI / 2),
        ("+inf", "nan", 0.0, NAN),
        ("nan", "finite", NAN, NAN),
        ("nan", "+inf", "±0", PI / 2),
        ("nan", "nan", NAN, NAN),
    ],
    "cosh": [
        ("+0", "+0", 1.0, 0.0),
        ("+0", "+inf", NAN, "±0"),
        ("+0", "nan", NAN, "±0"),
        ("nonzero", "+inf", NAN, NAN),
        ("nonzero", "nan", NAN, NAN),
        ("+inf", "+0", INF, 0.0),
        ("+inf", "nonzero", on_circle(INF)),
        ("+inf", "+inf", "±inf", NAN),
        ("+inf", "nan", INF, NAN),
        ("nan", "±0", NAN, "±0"),
        ("nan", "nonzero", NAN, NAN),
        ("nan", "nan", NAN, NAN),
    ],
    "exp": [
        ("±0", "+0", 1.0, 0.0),
        ("finite", "+inf", NAN, NAN),
        ("finite", "nan", NAN, NAN),
        ("+inf", "+0", INF, 0.0),
        ("-inf", "finite", on_circle(0.0)),
        ("+inf", "nonzero", on_circle(INF)),
        ("-inf", "+inf", "±0", "±0"),
        ("+inf", "+inf", "±inf", NAN),
        ("-inf", "nan", "±0", "±0"),
        ("+inf", "nan", "±inf", NAN),
        ("nan", "+0", NAN, 0.0),
        ("nan", "not 0", NAN, NAN),
    ],
    "expm1": [
        ("±0", "+0", 0.0, 0.0),
        ("finite", "+inf", NAN, NAN),
        ("finite", "nan", NAN, NAN),
        ("+inf", "+0", INF, 0.0),
        ("-inf", "finite", on_circle(0.0, less=1.0)),
        ("+inf", "nonzero", on_circle(INF, less=1.0)),
        ("-inf", "+inf", -1.0, "±0"),
        ("+inf", "+inf", "±inf", NAN),
        ("-inf", "nan", -1.0, "±0"),
        ("+inf", "nan", "±inf", NAN),
        ("nan", "+0", NAN, 0.0),
        ("nan", "not 0", NAN, NAN),
    ],
    "log": [
        ("-0", "+0", -INF, PI),
        ("+0", "+0", -INF, 0.0),
        ("finite", "+inf", INF, PI / 2),
        ("finite", "nan", NAN, NAN),
        ("-inf", "positive", INF, PI),
        ("+inf", "positive", INF, 0.0),
        ("-inf", "+inf", INF, 3 * PI / 4),
        ("+inf", "+inf", INF, PI / 4),
        ("±inf", "nan", INF, NAN),
        ("nan", "finite", NAN, NAN),
        ("nan", "+inf", INF, NAN),
        ("nan", "nan", NAN, NAN),
    ],
    "sinh": [
        ("+0", "+0", 0.0, 0.0),
        ("+0", "+inf", "±0", NAN),
        ("+0", "nan", "±0", NAN),
        ("positive", "+inf", NAN, NAN),
        ("positive", "nan", NAN, NAN),
        ("+inf", "+0", INF, 0.0),
        ("+inf", "positive", on_circle(INF)),
        ("+inf", "+inf", "±inf", NAN),
        ("+inf", "nan", "±inf", NAN),
        ("nan", "+0", NAN, 0.0),
        ("nan", "nonzero", NAN, NAN),
        ("nan", "nan", NAN, NAN),
    ],
    "sqrt": [
        ("±0", "+0", 0.0, 0.0),
        ("any", "+inf", INF, INF),
        ("finite", "nan", NAN, NAN),
        ("-inf", "positive", 0.0, INF),
        ("+inf", "positive", INF, 0.0),
        ("-inf", "nan", NAN, "±inf"),
        ("+inf", "nan", INF, NAN),
        ("nan", "finite", NAN, NAN),
        ("nan", "nan", NAN, NAN),
    ],
    "tanh": [
        ("+0", "+0", 0.0, 0.0),
        ("nonzero", "+inf", NAN, NAN),
        ("+0", "+inf", 0.0, NAN),
        ("nonzero", "nan", NAN, NAN),
        ("+0", "nan", 0.0, NAN),
        ("+inf", "positive", 1.0, 0.0),
        ("+inf", "+inf", 1.0, "±0"),
        ("+inf", "nan", 1.0, "±0"),
        ("nan", "+0", NAN, 0.0),
        ("nan", "nonzero or inf", NAN, NAN),
        ("nan", "nan", NAN, NAN),
    ],
}
CASES["log1p"] = [("-1", "+0", -INF, 0.0), *CASES["log"][2:]]

ODD = ("asinh", "atanh", "sinh", "tanh")
THROUGH = {"asin": "asinh", "atan": "atanh", "sin": "sinh", "tan": "tanh"}
"""Functions that are to be ``-1j * g(x * 1j)``; that ``cos(x)`` is ``cosh(x * 1j)``."""


def negated(part):
    return part if isinstance(part, str) else -part


def expand(name):
    """Each number of the cases of a function, its conjugate and its negative, with the result."""
    for real, imag, *result in CASES[name]:
        for a, b in itertools.product(CLASSES[real], CLASSES[imag]):
            re, im = result[0](b) if callable(result[0]) else result
            yield a, b, re, im
            yield a, -b, re, negated(im)
            if name in ODD:
                yield -a, -b, negated(re), negated(im)
                yield -a, b, negated(re), im
            elif name == "cosh":
                yield -a, -b, re, im
                yield -a, b, re, negated(im)


def listed(name):
    """As `expand`, also for functions that the standard gives by others."""
    if name in THROUGH:
        return [(b, -a, im, negated(re)) for a, b, re, im in expand(THROUGH[name])]
    if name == "cos":
        return [(b, -a, re, im) for a, b, re, im in expand("cosh")]
    if name in ("log2", "log10"):
        base = math.log(2 if name == "log2" else 10)
        return [(a, b, re / base, im / base) for a, b, re, im in expand("log")]
    return list(expand(name))


def is_part(actual, expected, tolerance):
    if isinstance(expected, str):
        unsigned = {"±0": 0.0, "±inf": INF, "±pi/2": PI / 2}[expected]
        return abs(actual) == pytest.approx(unsigned, rel=tolerance)
    if math.isnan(expected):
        return math.isnan(actual)
    signs = math.copysign(1.0, actual) == math.copysign(1.0, expected)
    return signs and actual == pytest.approx(expected, rel=tolerance)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", [*CASES, *THROUGH, "cos", "log2", "log10"])
def test_a_function_of_complex_numbers_has_the_special_cases_of_the_standard(name, dtype):
    cases = listed(name)
    numbers = np.array([complex(a, b) for a, b, _, _ in cases], dtype)
    results = getattr(burn, name)(burn.asarray(numbers, device="cpu")).numpy()
    assert results.dtype == dtype
    tolerance = 1e-5 if dtype == "complex64" else 1e-12
    for (a, b, re, im), result in zip(cases, results, strict=True):
        right = is_part(result.real, re, tolerance) and is_part(result.imag, im, tolerance)
        assert right, f"{name}({a} + {b}j) is {result}, not {re} + {im}j"


EVERY = [complex(a, b) for a in CLASSES["any"] for b in CLASSES["any"]]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_the_magnitude_of_a_complex_number_is_that_of_its_larger_part_at_the_limits(dtype):
    magnitudes = burn.abs(burn.asarray(np.array(EVERY, dtype), device="cpu")).numpy()
    for number, magnitude in zip(EVERY, magnitudes, strict=True):
        infinite = math.isinf(number.real) or math.isinf(number.imag)
        expected = INF if infinite else math.hypot(number.real, number.imag)
        assert magnitude == pytest.approx(expected, rel=1e-6, nan_ok=True), number


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_a_complex_number_with_a_nan_has_no_sign(dtype):
    signs = burn.sign(burn.asarray(np.array(EVERY, dtype), device="cpu")).numpy()
    for number, sign in zip(EVERY, signs, strict=True):
        if math.isnan(number.real) or math.isnan(number.imag):
            assert math.isnan(sign.real), number
            assert math.isnan(sign.imag), number
        elif number == 0.0:
            assert sign == 0.0
        elif math.isfinite(abs(number)):
            assert complex(sign) == pytest.approx(number / abs(number), rel=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_a_power_is_no_square_root_at_the_limits(dtype):
    bases = [-INF, -0.0, 0.0, 4.0, -4.0, INF]
    expected = [INF, 0.0, 0.0, 2.0, NAN, INF]
    x = burn.asarray(bases, dtype=dtype, device="cpu")
    half = burn.asarray(0.5, dtype=dtype, device="cpu")
    for exponent in (0.5, half, half.reshape((1,)), burn.broadcast_to(half, (6,))):
        powers = burn.pow(x, exponent)
        assert powers.dtype is burn.DType.of(dtype)
        assert powers.tolist() == pytest.approx(expected, nan_ok=True)
        assert not burn.signbit(powers)[1].item()
    assert burn.pow(x[0], half).item() == INF
    rows = burn.stack([x, x]) ** burn.asarray([[0.5], [2.0]], dtype=dtype, device="cpu")
    assert rows[0].tolist() == pytest.approx(expected, nan_ok=True)
    assert rows[1].tolist() == [INF, 0.0, 0.0, 16.0, 16.0, INF]
    assert burn.pow(-1, burn.broadcast_to(half, (2,))).dtype is burn.DType.of(dtype)
