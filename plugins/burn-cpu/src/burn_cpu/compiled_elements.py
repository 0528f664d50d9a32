"""Kernels of activation functions, which take contiguous arrays of one axis."""

from __future__ import annotations

import math
from typing import Any, Final

from burn_cpu import erf
from burn_cpu.base import Array
from burn_cpu.compiled_base import HALF, ONE, ZERO, compiled, compiled_exactly, exp, float32

_N5, _N4, _N3, _N2, _N1, _N0 = map(float32, erf.NUMERATOR)
_D5, _D4, _D3, _D2, _D1, _D0 = map(float32, erf.DENOMINATOR)
_ERF_LIMIT: Final = float32(erf.LIMIT)
_ROOT_HALF: Final = float32(math.sqrt(0.5))
_DENSITY_AT_0: Final = float32(1.0 / math.sqrt(2.0 * math.pi))

_TANH_SCALE: Final = float32(2.0 * math.sqrt(2.0 / math.pi))
_TANH_CUBIC: Final = float32(0.044715)
_THREE: Final = float32(3.0)


@compiled_exactly
def _normal_cdf(x: Any) -> Any:
    """Cumulative distribution function of the standard normal distribution."""
    z = max(min(x * _ROOT_HALF, _ERF_LIMIT), -_ERF_LIMIT)
    t = z * z
    upper = ((((_N5 * t + _N4) * t + _N3) * t + _N2) * t + _N1) * t + _N0
    lower = ((((_D5 * t + _D4) * t + _D3) * t + _D2) * t + _D1) * t + _D0
    cdf = (z * upper / lower + ONE) * HALF
    if z <= -_ERF_LIMIT:
        return ZERO
    return ONE if z >= _ERF_LIMIT else cdf


@compiled_exactly
def _sigmoid(x: Any) -> Any:
    """``1 / (1 + exp(-x))``, by the exponential of a number that is at most 0."""
    power = exp(-abs(x))
    return (ONE if x >= ZERO else power) / (ONE + power)


@compiled
def sigmoid(x: Array, out: Array) -> None:
    """``1 / (1 + exp(-x))``."""
    for i in range(len(x)):
        out[i] = _sigmoid(x[i])


@compiled
def silu(x: Array, out: Array) -> None:
    """`x` times its sigmoid."""
    for i in range(len(x)):
        out[i] = x[i] * _sigmoid(x[i])


@compiled
def gelu(x: Array, out: Array) -> None:
    """`x` times the normal distribution function of `x`."""
    for i in range(len(x)):
        out[i] = x[i] * _normal_cdf(x[i])


@compiled
def gelu_grad(x: Array, g: Array, out: Array) -> None:
    """Gradient of `gelu`."""
    for i in range(len(x)):
        one = x[i]
        out[i] = g[i] * (_normal_cdf(one) + one * _DENSITY_AT_0 * exp(-HALF * one * one))


# The approximation is x times the sigmoid of twice the argument of its hyperbolic tangent.


@compiled
def gelu_tanh(x: Array, out: Array) -> None:
    """`gelu` by a hyperbolic tangent."""
    for i in range(len(x)):
        one = x[i]
        out[i] = one * _sigmoid(_TANH_SCALE * (one + _TANH_CUBIC * one * one * one))


@compiled
def gelu_tanh_grad(x: Array, g: Array, out: Array) -> None:
    """Gradient of `gelu_tanh`."""
    for i in range(len(x)):
        one = x[i]
        share = _sigmoid(_TANH_SCALE * (one + _TANH_CUBIC * one * one * one))
        slope = _TANH_SCALE * (ONE + _THREE * _TANH_CUBIC * one * one)
        out[i] = g[i] * (share + one * share * (ONE - share) * slope)
