"""Samples of special functions and what is made of them, and of transforms over two axes."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from burn.dtype import Kind
from burn.errors import ArgumentError, AxisError, DTypeError, OperandTypeError
from burn.testing.arrays import SPECIAL, complexes, floats, integers
from burn.testing.function_samples import call, function_calls, function_reference, wrong
from burn.testing.op_samples import TESTED_DTYPE, Array

_PROBABILITIES: Final = floats(2, 3, low=0.05, high=0.95)
_POSITIVE: Final = floats(2, 3, low=0.5, high=3.0)

for _name in ("erfc", "exp2", "i0", "sinc"):
    function_calls(_name, call("a matrix", floats(2, 3)))
for _name in ("cbrt", "digamma", "erfinv", "lgamma", "rsqrt"):
    function_calls(_name, call("a matrix", _PROBABILITIES))
for _name in ("heaviside", "xlogy"):
    function_calls(
        _name, call("matrices", floats(2, 3), _POSITIVE), call("a number", _POSITIVE, 2.0)
    )
function_calls(
    "trunc_divide",
    call("matrices", _POSITIVE, floats(2, 3, low=0.5, phase=0.8)),
    call("integers", integers(4, low=1), integers(4, low=1, phase=0.7)),
    call("a number", integers(4), 2),
)
function_calls(
    "lerp",
    call("matrices", floats(2, 3), floats(2, 3, phase=0.8), _PROBABILITIES),
    call("numbers", floats(2, 3), 2.0, 0.75),
    call("a number first", 0.5, floats(2, 3), 1),
)
function_calls("logsumexp", call("rows", floats(2, 3), axis=1), call("all", floats(2, 3)))
function_calls("logcumsumexp", call("rows", floats(2, 3), axis=1), call("a vector", floats(4)))
function_calls(
    "polygamma",
    call("trigamma", 1, _POSITIVE),
    call("order 0", 0, _POSITIVE),
    errors=[
        wrong("a negative order", ArgumentError, -1, _POSITIVE),
        wrong("an order that is no integer", OperandTypeError, 1.5, _POSITIVE),
    ],
)
function_calls(
    "bitcast",
    call("floats", floats(3), TESTED_DTYPE, kinds=Kind.FLOAT, differentiable=False),
    call("integers", integers(3), TESTED_DTYPE, kinds=Kind.INTEGER, differentiable=False),
    errors=[
        wrong("another size", DTypeError, floats(3), "int8"),
        wrong("to bool", DTypeError, floats(3), "bool"),
    ],
)


@function_reference(
    "logit",
    samples=[
        call("probabilities", _PROBABILITIES),
        call("kept away from the ends", np.array([0.0, 0.3, 1.0, -2.0]), epsilon=0.125),
        call("the ends", np.array([0.0, 1.0, 1.5, math.nan]), differentiable=False),
    ],
    errors=[wrong("an epsilon above 1/2", ArgumentError, _PROBABILITIES, epsilon=0.75)],
)
def _(x: Array, *, epsilon: float | None = None) -> Array:
    x = x if epsilon is None else np.clip(x, epsilon, 1.0 - epsilon)
    return np.where((x < 0.0) | (x > 1.0), math.nan, np.log(x) - np.log1p(-x))


@function_reference(
    "multigammaln",
    samples=[
        call("of one dimension", floats(2, 3, low=0.5, high=4.0), 1),
        call("of three", floats(4, low=1.25, high=6.0), 3),
        call("outside", np.array([0.5, 0.25, -1.0, math.nan]), 2, differentiable=False),
        call("integers", integers(3, low=2, high=9), 2),
    ],
    errors=[wrong("no dimension", ArgumentError, floats(3), 0)],
)
def _(x: Array, d: int) -> Array:
    terms = [
        [math.lgamma(item - j / 2) for j in range(d)] if item > (d - 1) / 2 else [math.nan]
        for item in x.ravel().tolist()
    ]
    sums = [sum(term) + d * (d - 1) / 4 * math.log(math.pi) for term in terms]
    return np.array(sums).reshape(x.shape)


@function_reference(
    "nan_to_num",
    samples=[
        call("special floats", SPECIAL, posinf=9.0, neginf=-2.0),
        call("all replaced by numbers", SPECIAL, nan=1.5, posinf=2, neginf=3),
        call("replaced by infinities", SPECIAL, nan=math.inf, posinf=math.nan, neginf=-math.inf),
        call("numbers", floats(2, 3)),
        call("integers", integers(4), nan=7.0),
        call("complex", complexes(3) * np.array([1.0, math.inf, math.nan]), posinf=1, neginf=2),
    ],
    errors=[
        wrong("text", OperandTypeError, floats(3), nan="0"),
        wrong("a complex number", OperandTypeError, floats(3), posinf=1j),
        wrong("no tensor", OperandTypeError, [1.0]),
    ],
)
def _(
    x: Array, *, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Array:
    return np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


def _window(size: int, periodic: bool) -> Array:
    """Numbers from -1 to 1, or a step below it."""
    count = size if periodic else size - 1
    return np.arange(size) * 2.0 / count - 1.0 if size > 1 else np.zeros(size)


_SIZES: Final = [
    call("periodic", 8),
    call("symmetric", 5, periodic=False),
    call("one", 1),
    call("none", 0),
]


@function_reference(
    "signal.bartlett_window",
    samples=_SIZES,
    errors=[wrong("a negative size", ArgumentError, -1)],
)
def _(size: int, *, periodic: bool = True) -> Array:
    return 1.0 - np.abs(_window(size, periodic))


@function_reference(
    "signal.kaiser_window",
    samples=[
        *_SIZES,
        call("of ones", 4, beta=0.0),
        call("narrow", 9, beta=40.0),
        call("even", 6, beta=-3.5),
    ],
    errors=[
        wrong("a negative size", ArgumentError, -1),
        wrong("a beta out of range", ArgumentError, 8, beta=81.0),
    ],
)
def _(size: int, *, beta: float = 12.0, periodic: bool = True) -> Array:
    height = np.sqrt(1.0 - _window(size, periodic) ** 2)
    return np.i0(height * beta) / np.i0(beta)


def _extremum(name: str) -> None:
    function = getattr(np, name)

    @function_reference(
        name,
        samples=[
            call("numbers", floats(2, 3), floats(3, phase=0.7)),
            call("NaN", SPECIAL, SPECIAL[::-1].copy(), differentiable=False),
            call("NaN and a number", SPECIAL, 0.5, differentiable=False),
            call("a number that is NaN", math.nan, floats(3), differentiable=False),
            call("integers", integers(4), 2),
        ],
        errors=[wrong("no tensor", OperandTypeError, 1.0, 2.0)],
        exact=True,
    )
    def _(x1: Any, x2: Any) -> Any:
        return function(x1, x2)


for _name in ("fmax", "fmin"):
    _extremum(_name)


def _general_cosine(weights: list[float], size: int, periodic: bool) -> Array:
    """Weighted cosines of alternating signs."""
    angle = np.pi * (_window(size, periodic) + 1.0)
    waves = [(-1) ** k * weight * np.cos(k * angle) for k, weight in enumerate(weights)]
    return np.sum(waves, 0) if size > 1 else np.ones(size)


_NEGATIVE: Final = wrong("a negative size", ArgumentError, -1)


@function_reference("signal.cosine_window", samples=_SIZES, errors=[_NEGATIVE])
def _(size: int, *, periodic: bool = True) -> Array:
    return (
        np.sin((np.arange(size) + 0.5) * np.pi / (size + periodic)) if size > 1 else np.ones(size)
    )


@function_reference(
    "signal.exponential_window",
    samples=[*_SIZES, call("wide", 6, tau=4.5)],
    errors=[_NEGATIVE, wrong("tau of 0", ArgumentError, 4, tau=0.0)],
)
def _(size: int, *, tau: float = 1.0, periodic: bool = True) -> Array:
    middle = (size if periodic else size - 1) / 2.0
    return np.exp(-np.abs(np.arange(size) - middle) / tau) if size > 1 else np.ones(size)


@function_reference(
    "signal.gaussian_window",
    samples=[*_SIZES, call("wide", 6, std=4.5)],
    errors=[_NEGATIVE, wrong("a negative deviation", ArgumentError, 4, std=-1.0)],
)
def _(size: int, *, std: float = 1.0, periodic: bool = True) -> Array:
    middle = (size if periodic else size - 1) / 2.0
    return np.exp(-(((np.arange(size) - middle) / std) ** 2) / 2) if size > 1 else np.ones(size)


@function_reference(
    "signal.general_cosine_window",
    samples=[
        call("periodic", 8, weights=[0.5, 0.3, 0.2]),
        call("symmetric", 5, weights=[0.5, 0.5], periodic=False),
        call("a constant", 3, weights=[2.0]),
        call("none", 0, weights=[0.5]),
    ],
    errors=[
        wrong("a negative size", ArgumentError, -1, weights=[0.5]),
        wrong("no weight", ArgumentError, 4, weights=[]),
    ],
)
def _(size: int, *, weights: list[float], periodic: bool = True) -> Array:
    return _general_cosine(weights, size, periodic)


@function_reference(
    "signal.general_hamming_window",
    samples=[*_SIZES, call("a weight", 6, alpha=0.75)],
    errors=[_NEGATIVE],
)
def _(size: int, *, alpha: float = 0.54, periodic: bool = True) -> Array:
    return _general_cosine([alpha, 1.0 - alpha], size, periodic)


@function_reference("signal.nuttall_window", samples=_SIZES, errors=[_NEGATIVE])
def _(size: int, *, periodic: bool = True) -> Array:
    return _general_cosine([0.3635819, 0.4891775, 0.1365995, 0.0106411], size, periodic)


def _planar(name: str, *arrays: Array, errors: list[Any]) -> None:
    function_calls(
        f"fft.{name}",
        *[call(f"{array.dtype.kind}{array.shape}", array) for array in arrays],
        call("axes", arrays[0], axes=(0, 1)),
        call("lengths", arrays[0], s=(2, 4), norm="ortho"),
        errors=[wrong("a vector", AxisError, floats(4)), *errors],
        needs_complex=True,
    )


_planar("fft2", complexes(2, 3, 4), floats(3, 4), errors=[])
_planar("ifft2", complexes(2, 3, 4), floats(3, 4), errors=[])
_planar("irfft2", complexes(2, 3, 4), floats(3, 4), errors=[])
_planar(
    "rfft2",
    floats(2, 3, 4),
    floats(3, 5),
    errors=[wrong("complex", DTypeError, complexes(3, 4))],
)
