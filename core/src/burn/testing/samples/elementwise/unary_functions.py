"""Samples of elementwise functions of one float tensor."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from burn.testing.arrays import floats
from burn.testing.op_samples import Array, Reference, reference, sample
from burn.testing.samples.elementwise.elementwise_samples import each, unary_floats


def _rsqrt(x: Array) -> Array:
    return np.asarray(1.0 / np.sqrt(x))


def _logit(x: float) -> float:
    """The inverse hyperbolic tangent near 1/2, where the quotient is near 1."""
    if not 0.0 < x < 1.0:
        return {0.0: -math.inf, 1.0: math.inf}.get(x, math.nan)
    return 2.0 * math.atanh(2.0 * x - 1.0) if 0.2 < x < 0.8 else math.log(x) - math.log1p(-x)


_FUNCTIONS: Final[dict[str, tuple[Any, ...]]] = {
    "exp": (np.exp, -5.0, 5.0, [-100.0, -50.0, 10.0], [-1000.0, 80.0, 700.0, 1000.0]),
    "expm1": (np.expm1, -5.0, 5.0, [-100.0, -1.0, -1e-3, -1e-8, 1e-8, 1.0, 10.0], [80.0, 1000.0]),
    "log": (np.log, 0.1, 5.0, [-1.0, 0.01, 0.999, 1.0, 1.001, 1e4], [0.0, 1e-6, 1e-30, 1e30]),
    "log1p": (np.log1p, -0.9, 5.0, [-2.0, -0.99, -1e-8, 1e-8, 1e-3, 1e4], [-1.0, -0.999999, 1e30]),
    "log2": (np.log2, 0.1, 5.0, [-1.0, 0.5, 0.999, 1.0, 1.001, 1024.0], [0.0, 1e-6, 1e-30, 1e30]),
    "log10": (np.log10, 0.1, 5.0, [-1.0, 0.1, 0.999, 1.0, 1.001, 1000.0], [0.0, 1e-6, 1e30]),
    "sqrt": (np.sqrt, 0.1, 5.0, [-1.0, 0.0, 0.01, 4.0, 1e4], [0.0, 1e-6, 1e-30, 1e30]),
    "sin": (np.sin, -7.0, 7.0, [-100.0, 1e-3, math.pi, 100.0], [1e4, -1e5, 1e6, 3e9]),
    "cos": (np.cos, -7.0, 7.0, [-100.0, 1e-3, math.pi / 2, 100.0], [1e4, -1e5, 1e6, 3e9]),
    "tan": (np.tan, -1.4, 1.4, [-4.0, 1e-3, math.pi, 1.5, 2.0], [1.57]),
    "tanh": (np.tanh, -3.0, 3.0, [-100.0, -10.0, -1e-3, 1e-8, 10.0, 100.0], []),
    "sinh": (np.sinh, -5.0, 5.0, [-11.0, -1.0, -1e-3, 1e-8, 1.0, 11.0], [-1000.0, 88.5, 710.0]),
    "cosh": (np.cosh, -5.0, 5.0, [-11.0, -1e-3, 0.0, 1.0, 11.0], [-1000.0, 88.5, 710.0]),
    "asin": (np.arcsin, -0.95, 0.95, [-2.0, -1.0, -0.99, 1e-8, 1e-3, 1.0, 1.5], [0.9999]),
    "acos": (np.arccos, -0.95, 0.95, [-2.0, -1.0, -0.99, 0.0, 1e-3, 1.0, 1.5], [0.9999]),
    "atan": (np.arctan, -3.0, 3.0, [-1e4, -1.0, -1e-8, 1e-3, 1.0, 1e4], [-1e30, 1e30]),
    "asinh": (np.arcsinh, -3.0, 3.0, [-1e4, -1.0, -1e-8, 1e-3, 1.0, 1e4], [-1e30, 1e30, 1e300]),
    "acosh": (np.arccosh, 1.05, 5.0, [-2.0, 0.5, 1.0, 1.01, 2.0, 1e4], [1.0001, 1e30, 1e300]),
    "atanh": (
        np.arctanh,
        -0.95,
        0.95,
        [-2.0, -1.0, -0.99, -0.5, -1e-8, 1e-3, 1.0],
        [-0.9999, 0.9999],
    ),
    "exp2": (np.exp2, -5.0, 5.0, [-60.0, -1.0, 0.5, 3.0, 10.0], [-1000.0, 80.5, 127.5, 1020.5]),
    "rsqrt": (_rsqrt, 0.1, 5.0, [-1.0, 0.01, 4.0, 1e4], [0.0, -0.0, 1e-6, 1e-30, 1e30]),
    "cbrt": (np.cbrt, 0.1, 5.0, [-8.0, -1.0, -0.1, 0.01, 27.0, 1e4], [0.0, -1e-30, 1e-6, 1e30]),
    "logit": (
        each(_logit),
        0.05,
        0.95,
        [-0.5, 0.01, 0.249, 0.2501, 0.4999, 0.5, 0.501, 0.7499, 0.751, 0.99, 1.5],
        [0.0, 1e-30, 1e-6, 0.9999, 1.0],
    ),
}
"""A reference, from where to where it is smooth, its edges, points beyond them, and extremes."""

for _name, (_function, _low, _high, _edges, _extremes) in _FUNCTIONS.items():
    reference(
        _name,
        samples=[
            *unary_floats(_low, _high),
            sample("many", floats(10, 10, low=_low, high=_high, phase=0.1)),
            sample("edges", np.array(_edges)),
            # Where a function bends faster than central differences can follow, and NaN, which
            # keeps them away.
            sample("extremes", np.array([*_extremes, math.nan])),
        ],
        signed_zeros=True,
    )(_function)

_HALVES = np.array([-2.5, -2.0, -1.5, -0.5, -0.0, 0.0, 0.5, 1.0, 1.5, 2.5, 100.0])
_STEPS: Final[dict[str, Reference]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
}

for _name, _function in _STEPS.items():
    reference(
        _name,
        samples=[
            *unary_floats(),
            sample("many", floats(10, 10, low=-20.0, high=20.0, phase=0.123)),
            sample(
                "whole numbers and halves",
                _HALVES,
                differentiable=False,
                gradients=(np.zeros_like(_HALVES),),
            ),
            sample("small", np.array([-0.25, 0.25, -1e-3, 1e-3])),
            sample("large", np.array([-1e30, -65000.0, 4097.5, 1e10, 1e30])),
        ],
        exact=True,
    )(_function)
