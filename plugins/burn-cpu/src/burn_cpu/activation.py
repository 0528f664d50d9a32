"""Activation functions: a block after the other, in buffers that stay in the cache.

A step over a block costs the more the rarer it is: an addition is the measure, a bound takes two
(of arrays, for a number four), an exponential ten, ``tanh`` twenty, ``log1p`` and ``expm1`` of
NumPy up to a hundred, and so does a choice by a mask. What follows is made of cheap steps.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from burn_cpu.base import Array, CpuOps
from burn_cpu.blocks import bound, map_elements
from burn_cpu.choice import choose
from burn_cpu.compiled import compiled
from burn_cpu.constants import constant

_FEW: Final = 4096
"""Up to that many elements one call of NumPy's takes less time than a block."""

_FLOAT32: Final = np.dtype(np.float32)


def _float32(*numbers: float) -> tuple[Array, ...]:
    return tuple([constant(number, _FLOAT32) for number in numbers])


ERF_BOUND: Final = 3.925
"""From here on the error function is 1 in float32."""

ERF_NUMERATOR: Final = _float32(
    2.0459963867e-06,
    2.8484335906e-04,
    3.7726106788e-03,
    5.2769487444e-02,
    1.9059539413e-01,
    1.1283791404,
)
ERF_DENOMINATOR: Final = _float32(
    3.8047437556e-05,
    1.1638693977e-03,
    1.4983323403e-02,
    1.1418336630e-01,
    5.0224351883e-01,
    1.0,
)
"""Coefficients, the highest power of ``x**2`` first, of a rational function that is ``erf(x) / x``
within 5e-8 of its value up to the bound (least squares with Lawson's weights)."""

_ATANH_SERIES: Final = _float32(
    0.2817833423614502,
    0.27960601449012756,
    0.40024909377098083,
    0.6666631698608398,
    2.0,
)
"""The same of a polynomial that is ``2 * atanh(s) / s`` within 4e-9 of its value up to 1 / 3."""


class ActivationOps(CpuOps):
    """Elementwise functions, and what their gradients are made of."""

    def relu(self, x: Array) -> Array:
        """One pass; NaN propagates."""
        if x.size < _FEW:
            return np.maximum(x, constant(0, x.dtype))
        return map_elements(_relu, x, widen=False)

    def relu_grad(self, output: Array, g: Array) -> Array:
        """One comparison and one choice."""
        zero = constant(0, g.dtype)
        return choose(output > zero, g, zero if g.size < _FEW else 0.0)

    def leaky_relu(self, x: Array, *, negative_slope: float) -> Array:
        """The larger one of `x` and its multiple, or the smaller one for a large slope."""
        pick = np.maximum if negative_slope <= 1.0 else np.minimum

        def kernel(x: Array, out: Array) -> None:
            np.multiply(x, constant(negative_slope, x.dtype), out=out)
            pick(x, out, out=out)

        return map_elements(kernel, x)

    def elu(self, x: Array, *, alpha: float, scale: float = 1.0, input_scale: float = 1.0) -> Array:
        """``e**x - 1`` is 2 t / (1 - t) with t = tanh(x / 2) (DLMF 4.35.E22), exact near 0."""

        def kernel(x: Array, out: Array) -> None:
            decay = np.minimum(x, bound(0.0, x))
            decay *= constant(0.5 * input_scale, x.dtype)
            np.tanh(decay, out=decay)
            np.subtract(constant(1, x.dtype), decay, out=out)
            decay *= constant(2.0 * scale * alpha, x.dtype)
            np.divide(decay, out, out=decay)
            np.maximum(x, bound(0.0, x), out=out)
            out *= constant(scale, x.dtype)
            out += decay

        return map_elements(kernel, x)

    def sigmoid(self, x: Array) -> Array:
        """Where the exponential overflows, the result is 0."""
        return map_elements(_sigmoid, x)

    def silu(self, x: Array) -> Array:
        """One step less than the sigmoid times `x`."""
        return map_elements(_silu, x)

    def softplus(self, x: Array, *, beta: float = 1.0) -> Array:
        """What exceeds ``max(x, 0)`` is the logarithm of one and a small number."""

        def kernel(x: Array, out: Array) -> None:
            _log1p_decay(x, out, -beta)
            if beta != 1.0:
                out /= constant(beta, x.dtype)
            out += np.maximum(x, bound(0.0, x))

        return map_elements(kernel, x)

    def log_sigmoid(self, x: Array) -> Array:
        """As `softplus`."""
        return map_elements(_log_sigmoid, x)

    def mish(self, x: Array) -> Array:
        """A quotient of polynomials of one exponential."""
        return map_elements(_mish, x)

    def erf(self, x: Array) -> Array:
        """A rational function in float32."""
        if x.dtype == np.float64:
            return self.ops.decomposed("erf", x)
        return map_elements(_erf, x)

    def gelu(self, x: Array, *, approximate: str = "none") -> Array:
        """No temporaries of the size of `x`."""
        if approximate == "tanh":
            return map_elements(_gelu_tanh, x)
        if approximate != "none" or x.dtype == np.float64:
            return self.ops.decomposed("gelu", x, approximate=approximate)
        fast = compiled("gelu", x)
        return map_elements(fast or _gelu, x, packed=fast is not None)

    def gelu_grad(self, x: Array, g: Array, *, approximate: str = "none") -> Array:
        """No temporaries of the size of `x`."""
        if x.shape != g.shape:
            x, g = np.broadcast_arrays(x, g)
        if approximate == "tanh":
            return map_elements(_gelu_tanh_grad, x, g)
        if approximate != "none" or x.dtype == np.float64:
            return self.ops.decomposed("gelu_grad", x, g, approximate=approximate)
        fast = compiled("gelu_grad", x)
        return map_elements(fast or _gelu_grad, x, g, packed=fast is not None)


def _relu(x: Array, out: Array) -> None:
    np.maximum(x, bound(0.0, x), out=out)


def _one_plus_decay(x: Array, out: Array) -> None:
    """``1 + exp(-x)``."""
    np.negative(x, out=out)
    np.exp(out, out=out)
    out += constant(1, x.dtype)


def _sigmoid(x: Array, out: Array) -> None:
    _one_plus_decay(x, out)
    np.reciprocal(out, out=out)


def _silu(x: Array, out: Array) -> None:
    _one_plus_decay(x, out)
    np.divide(x, out, out=out)


def _log1p_decay(x: Array, out: Array, slope: float) -> None:
    """``log(1 + exp(slope * |x|))`` for a negative slope, exact also where it is small."""
    np.abs(x, out=out)
    out *= constant(slope, x.dtype)
    np.exp(out, out=out)
    if x.dtype != _FLOAT32:
        np.log1p(out, out=out)
        return
    # log(1 + y) = 2 atanh(y / (2 + y)), DLMF 4.37.24 and 4.6.4.
    out /= out + constant(2, x.dtype)
    out *= _polynomial(np.multiply(out, out), _ATANH_SERIES)


def _log_sigmoid(x: Array, out: Array) -> None:
    _log1p_decay(x, out, -1.0)
    np.subtract(np.minimum(x, bound(0.0, x)), out, out=out)


def _mish(x: Array, out: Array) -> None:
    # tanh(log(1 + e**x)) is n / (n + 2) with n = e**x * (e**x + 2). From 20 on it is 1.
    np.minimum(x, bound(20.0, x), out=out)
    np.exp(out, out=out)
    out *= out + constant(2, x.dtype)
    out /= out + constant(2, x.dtype)
    out *= x


def _polynomial(t: Array, coefficients: tuple[Any, ...]) -> Array:
    """By Horner's scheme, in a new buffer."""
    first, *rest, last = coefficients
    result = np.multiply(t, first)
    for coefficient in rest:
        result += coefficient
        result *= t
    result += last
    return result


def _erf(x: Array, out: Array) -> None:
    _scaled_erf(x, out, 1.0)


def _scaled_erf(x: Array, out: Array, scale: float) -> None:
    """The error function of ``scale * x``, of float32."""
    z = np.multiply(x, constant(scale, _FLOAT32))
    _clip(z, ERF_BOUND)
    t = np.multiply(z, z)
    z *= _polynomial(t, ERF_NUMERATOR)
    np.divide(z, _polynomial(t, ERF_DENOMINATOR), out=out)
    _clip(out, 1.0)


def _clip(x: Array, limit: float) -> None:
    """Keep `x` within ``[-limit, limit]``, in place."""
    low, high = constant(-limit, x.dtype), constant(limit, x.dtype)
    if x.size > _FEW:
        np.clip(x, low, high, out=x)
    else:  # numpy.clip is a function of Python
        np.minimum(x, high, out=x)
        np.maximum(x, low, out=x)


def _area(x: Array, out: Array) -> None:
    """Area under the bell curve up to x."""
    _scaled_erf(x, out, math.sqrt(0.5))
    out += constant(1, _FLOAT32)
    out *= constant(0.5, _FLOAT32)


def _gelu(x: Array, out: Array) -> None:
    _area(x, out)
    out *= x


def _gelu_grad(x: Array, g: Array, out: Array) -> None:
    _area(x, out)
    bell = np.multiply(x, x)
    bell *= constant(-0.5, _FLOAT32)
    np.exp(bell, out=bell)
    bell *= x
    bell *= constant(1.0 / math.sqrt(2.0 * math.pi), _FLOAT32)
    out += bell
    out *= g


_TANH_SCALE: Final = math.sqrt(2.0 / math.pi)
_TANH_CUBIC: Final = 0.044715


def _bent(x: Array, squares: Array, out: Array) -> None:
    """``tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))``."""
    np.multiply(squares, constant(_TANH_SCALE * _TANH_CUBIC, x.dtype), out=out)
    out += constant(_TANH_SCALE, x.dtype)
    out *= x
    np.tanh(out, out=out)


def _gelu_tanh(x: Array, out: Array) -> None:
    _bent(x, np.multiply(x, x), out)
    out += constant(1, x.dtype)
    out *= constant(0.5, x.dtype)
    out *= x


def _gelu_tanh_grad(x: Array, g: Array, out: Array) -> None:
    squares = np.multiply(x, x)
    _bent(x, squares, out)
    bend = np.multiply(out, out)
    np.subtract(constant(1, x.dtype), bend, out=bend)
    squares *= constant(1.5 * _TANH_SCALE * _TANH_CUBIC, x.dtype)
    squares += constant(0.5 * _TANH_SCALE, x.dtype)
    squares *= x
    bend *= squares
    out += constant(1, x.dtype)
    out *= constant(0.5, x.dtype)
    out += bend
    out *= g
