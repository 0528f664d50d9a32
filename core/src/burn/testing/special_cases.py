"""Special cases of functions of complex numbers: infinite and NaN parts, and zeros.

The array API standard (2025.12, "Element-wise Functions") gives them for a number. Those of its
conjugate and, for even and odd functions, of its negative follow; so do functions that it gives by
others.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from burn.dtype import DType, float32, float64

__all__ = ["EXTREMES", "FUNCTIONS", "SpecialCase", "is_part", "special_cases"]

Part: TypeAlias = float | str
"""Real or imaginary part of a result: a string where its sign is unspecified, or never negative."""

Rule: TypeAlias = (
    tuple[str, str, Part, Part] | tuple[str, str, Callable[[float], tuple[float, float]]]
)
"""Real part, imaginary part, and both parts of the result, or a function of the imaginary part."""


class SpecialCase(NamedTuple):
    """A number, and what a function gives for it."""

    number: complex
    real: Part
    imag: Part


INF, NAN, PI = math.inf, math.nan, math.pi

EXTREMES: Final = {
    float32: (2.0**-149, 2.0**-100, 2.0**70, 1.75 * 2.0**127),
    float64: (2.0**-1074, 2.0**-700, 2.0**600, 1.75 * 2.0**1023),
}
"""Numbers whose squares are no numbers of a dtype: below 1 the least ones, above 1 the largest."""

_POSITIVE: Final = [0.25, 1.0, 1.5, 3.0, 12.0, 30.0]


def _classes(extremes: Sequence[float]) -> dict[str, list[float]]:
    """The standard's words for a part of a number; the exponential of a large one overflows."""
    positive = [*_POSITIVE, *extremes]
    nonzero = [*positive, *[-value for value in positive]]
    finite = [0.0, -0.0, *nonzero]
    return {
        "+0": [0.0],
        "-0": [-0.0],
        "±0": [0.0, -0.0],
        "1": [1.0],
        "-1": [-1.0],
        "+inf": [INF],
        "-inf": [-INF],
        "±inf": [INF, -INF],
        "nan": [NAN],
        "large": [1000.0],
        "positive": positive,
        "nonzero": nonzero,
        "nonzero or inf": [*nonzero, INF, -INF],
        "not 0": [*nonzero, INF, -INF, NAN],
        "finite": finite,
        "any": [*finite, INF, -INF, NAN],
    }


def _on_circle(radius: float, less: float = 0.0) -> Callable[[float], tuple[float, float]]:
    """``radius * cis(b) - less`` of an imaginary part b."""
    return lambda b: (radius * math.cos(b) - less, radius * math.sin(b))


_RULES: Final[dict[str, list[Rule]]] = {
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
        ("+inf", "nonzero", _on_circle(INF)),
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
        ("large", "+0", INF, 0.0),
        ("+inf", "+0", INF, 0.0),
        ("-inf", "finite", _on_circle(0.0)),
        ("+inf", "nonzero", _on_circle(INF)),
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
        ("large", "+0", INF, 0.0),
        ("+inf", "+0", INF, 0.0),
        ("-inf", "finite", _on_circle(0.0, less=1.0)),
        ("+inf", "nonzero", _on_circle(INF, less=1.0)),
        ("-inf", "+inf", -1.0, "±0"),
        ("+inf", "+inf", "±inf", NAN),
        ("-inf", "nan", -1.0, "±0"),
        ("+inf", "nan", "±inf", NAN),
        ("nan", "+0", NAN, 0.0),
        ("nan", "not 0", NAN, NAN),
    ],
    "reciprocal": [  # as 1 / x
        ("±0", "+0", "±inf", NAN),
        ("positive", "+inf", "±0", "±0"),
        ("+inf", "positive", "±0", "±0"),
        ("finite", "nan", NAN, NAN),
        ("nan", "any", NAN, NAN),
    ],
    "sign": [  # as x / abs(x)
        ("±0", "+0", "0", "0"),
        ("any", "+inf", NAN, NAN),
        ("any", "nan", NAN, NAN),
        ("±inf", "finite", NAN, NAN),
        ("nan", "finite", NAN, NAN),
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
        ("+inf", "positive", _on_circle(INF)),
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
_RULES["log1p"] = [("-1", "+0", -INF, 0.0), *_RULES["log"][2:]]

_ODD: Final = frozenset(["asinh", "atanh", "sinh", "tanh"])
_EVEN: Final = frozenset(["cosh"])

_TURNED: Final = {"asin": "asinh", "atan": "atanh", "sin": "sinh", "tan": "tanh"}
"""Functions that are ``-1j * g(x * 1j)``; and ``cos(x)`` is ``cosh(x * 1j)``."""

_BASES: Final = {"log2": 2, "log10": 10}

FUNCTIONS: Final = (*_RULES, *_TURNED, "cos", *_BASES)
"""Functions that have special cases, as ops and functions are named."""


def special_cases(name: str, dtype: DType = float64) -> Iterator[SpecialCase]:
    """Every special case of one of `FUNCTIONS`, of numbers whose parts have a dtype."""
    if name in _TURNED:
        for number, real, imag in special_cases(_TURNED[name], dtype):
            yield SpecialCase(complex(number.imag, -number.real), imag, _negated(real))
    elif name == "cos":
        for number, real, imag in special_cases("cosh", dtype):
            yield SpecialCase(complex(number.imag, -number.real), real, imag)
    elif name in _BASES:
        base = math.log(_BASES[name])
        for number, real, imag in special_cases("log", dtype):
            yield SpecialCase(number, _divided(real, base), _divided(imag, base))
    else:
        yield from _expanded(name, _classes(EXTREMES[dtype]))


def _expanded(name: str, classes: dict[str, list[float]]) -> Iterator[SpecialCase]:
    """The numbers of the rules of a function, their conjugates and negatives."""
    for rule in _RULES[name]:
        for a, b in itertools.product(classes[rule[0]], classes[rule[1]]):
            real, imag = rule[2](b) if callable(rule[2]) else rule[2:]
            yield SpecialCase(complex(a, b), real, imag)
            yield SpecialCase(complex(a, -b), real, _negated(imag))
            if name in _ODD:
                yield SpecialCase(complex(-a, -b), _negated(real), _negated(imag))
                yield SpecialCase(complex(-a, b), _negated(real), imag)
            elif name in _EVEN:
                yield SpecialCase(complex(-a, -b), real, imag)
                yield SpecialCase(complex(-a, b), real, _negated(imag))


def _negated(part: Part) -> Part:
    return part if isinstance(part, str) else -part


def _divided(part: Part, divisor: float) -> Part:
    return part if isinstance(part, str) else part / divisor


def is_part(actual: float, expected: Part, tolerance: float) -> bool:
    """Whether a part of a result is the expected one, signs of zeros included."""
    if isinstance(expected, str):
        if expected == "0":
            return actual == 0.0 and math.copysign(1.0, actual) == 1.0
        unsigned = {"±0": 0.0, "±inf": INF, "±pi/2": PI / 2}[expected]
        return _is_near(abs(actual), unsigned, tolerance)
    if math.isnan(expected):
        return math.isnan(actual)
    same_sign = math.copysign(1.0, actual) == math.copysign(1.0, expected)
    return same_sign and _is_near(actual, expected, tolerance)


def _is_near(actual: float, expected: float, tolerance: float) -> bool:
    return math.isclose(actual, expected, rel_tol=tolerance, abs_tol=1e-12)
