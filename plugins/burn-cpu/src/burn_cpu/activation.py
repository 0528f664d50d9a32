"""Activation functions: a block after the other, in buffers that stay in the cache.

A step over a block costs the more the rarer it is: an addition is the measure, a bound takes two
(of arrays, for a number four), an exponential ten, ``tanh`` twenty, ``log1p`` and ``expm1`` of
NumPy up to a hundred, and so does a choice by a mask. What follows is made of cheap steps.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from burn_cpu.arithmetic import constant
from burn_cpu.blocks import BLOCK, map_elements, repeated
from burn_cpu.choice import choose
from burn_cpu.defaults import DefaultOps

Array = Any

_FEW: Final = 4096
"""Up to that many elements one call of NumPy's takes less time than a block."""

_FLOAT32: Final = np.float32


def _float32(*numbers: float) -> tuple[Any, ...]:
    return tuple([_FLOAT32(number) for number in numbers])


_ERF_BOUND: Final = _FLOAT32(3.925)
"""From here on the error function is 1 in float32."""

_ERF_NUMERATOR: Final = _float32(
    2.0459963867e-06,
    2.8484335906e-04,
    3.7726106788e-03,
    5.2769487444e-02,
    1.9059539413e-01,
    1.1283791404,
)
_ERF_DENOMINATOR: Final = _float32(
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


class ActivationOps(DefaultOps):
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
            np.multiply(x, x.dtype.type(negative_slope), out=out)
            pick(x, out, out=out)

        return map_elements(kernel, x)

    def elu(self, x: Array, *, alpha: float, scale: float = 1.0, input_scale: float = 1.0) -> Array:
        """``e**x - 1`` is 2 t / (1 - t) with t = tanh(x / 2) (DLMF 4.35.E22), exact near 0."""

        def kernel(x: Array, out: Array) -> None:
            number = x.dtype.type
            decay = np.minimum(x, _zeros(x))
            decay *= number(0.5 * input_scale)
            np.tanh(decay, out=decay)
            np.subtract(number(1), decay, out=out)
            decay *= number(2.0 * scale * alpha)
            np.divide(decay, out, out=decay)
            np.maximum(x, _zeros(x), out=out)
            out *= number(scale)
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
        if not beta > 0.0:
            raise ValueError(f"beta is {beta}")

        def kernel(x: Array, out: Array) -> None:
            _log1p_decay(x, out, -beta)
            if beta != 1.0:
                out /= x.dtype.type(beta)
            out += np.maximum(x, _zeros(x))

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
            return self.decomposed("erf", x)
        return map_elements(_erf, x)

    def gelu(self, x: Array, *, approximate: str = "none") -> Array:
        """No temporaries of the size of `x`."""
        if approximate == "tanh":
            return map_elements(_gelu_tanh, x)
        if approximate != "none" or x.dtype == np.float64:
            return self.decomposed("gelu", x, approximate=approximate)
        return map_elements(_gelu, x)

    def gelu_grad(self, x: Array, g: Array, *, approximate: str = "none") -> Array:
        """No temporaries of the size of `x`."""
        if x.shape != g.shape:
            x, g = np.broadcast_arrays(x, g)
        if approximate == "tanh":
            return map_elements(_gelu_tanh_grad, x, g)
        if approximate != "none" or x.dtype == np.float64:
            return self.decomposed("gelu_grad", x, g, approximate=approximate)
        return map_elements(_gelu_grad, x, g)


def _zeros(x: Array) -> Array:
    """Zeros for a block."""
    return repeated(0.0, BLOCK, x.dtype)[: len(x)]


def _relu(x: Array, out: Array) -> None:
    np.maximum(x, _zeros(x), out=out)


def _one_plus_decay(x: Array, out: Array) -> None:
    """``1 + exp(-x)``."""
    np.negative(x, out=out)
    np.exp(out, out=out)
    out += x.dtype.type(1)


def _sigmoid(x: Array, out: Array) -> None:
    _one_plus_decay(x, out)
    np.reciprocal(out, out=out)


def _silu(x: Array, out: Array) -> None:
    _one_plus_decay(x, out)
    np.divide(x, out, out=out)


def _log1p_decay(x: Array, out: Array, slope: float) -> None:
    """``log(1 + exp(slope * |x|))`` for a negative slope, exact also where it is small."""
    number = x.dtype.type
    np.abs(x, out=out)
    out *= number(slope)
    np.exp(out, out=out)
    if number is not _FLOAT32:
        np.log1p(out, out=out)
        return
    # log(1 + y) = 2 atanh(y / (2 + y)), DLMF 4.37.24 and 4.6.4.
    out /= out + number(2)
    out *= _polynomial(np.multiply(out, out), _ATANH_SERIES)


def _log_sigmoid(x: Array, out: Array) -> None:
    _log1p_decay(x, out, -1.0)
    np.subtract(np.minimum(x, _zeros(x)), out, out=out)


def _mish(x: Array, out: Array) -> None:
    # tanh(log(1 + e**x)) is n / (n + 2) with n = e**x * (e**x + 2). From 20 on it is 1.
    number = x.dtype.type
    np.minimum(x, repeated(20.0, BLOCK, x.dtype)[: len(x)], out=out)
    np.exp(out, out=out)
    out *= out + number(2)
    out /= out + number(2)
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
    z = np.multiply(x, _FLOAT32(scale))
    np.clip(z, -_ERF_BOUND, _ERF_BOUND, out=z)
    t = np.multiply(z, z)
    z *= _polynomial(t, _ERF_NUMERATOR)
    np.divide(z, _polynomial(t, _ERF_DENOMINATOR), out=out)
    np.clip(out, _FLOAT32(-1), _FLOAT32(1), out=out)


def _area(x: Array, out: Array) -> None:
    """Area under the bell curve up to x."""
    _scaled_erf(x, out, math.sqrt(0.5))
    out += _FLOAT32(1)
    out *= _FLOAT32(0.5)


def _gelu(x: Array, out: Array) -> None:
    _area(x, out)
    out *= x


def _gelu_grad(x: Array, g: Array, out: Array) -> None:
    _area(x, out)
    bell = np.multiply(x, x)
    bell *= _FLOAT32(-0.5)
    np.exp(bell, out=bell)
    bell *= x
    bell *= _FLOAT32(1.0 / math.sqrt(2.0 * math.pi))
    out += bell
    out *= g


_TANH_SCALE: Final = math.sqrt(2.0 / math.pi)
_TANH_CUBIC: Final = 0.044715


def _bent(x: Array, squares: Array, out: Array) -> None:
    """``tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))``."""
    number = x.dtype.type
    np.multiply(squares, number(_TANH_SCALE * _TANH_CUBIC), out=out)
    out += number(_TANH_SCALE)
    out *= x
    np.tanh(out, out=out)


def _gelu_tanh(x: Array, out: Array) -> None:
    number = x.dtype.type
    _bent(x, np.multiply(x, x), out)
    out += number(1)
    out *= number(0.5)
    out *= x


def _gelu_tanh_grad(x: Array, g: Array, out: Array) -> None:
    number = x.dtype.type
    squares = np.multiply(x, x)
    _bent(x, squares, out)
    bend = np.multiply(out, out)
    np.subtract(number(1), bend, out=bend)
    squares *= number(1.5 * _TANH_SCALE * _TANH_CUBIC)
    squares += number(0.5 * _TANH_SCALE)
    squares *= x
    bend *= squares
    out += number(1)
    out *= number(0.5)
    out += bend
    out *= g
