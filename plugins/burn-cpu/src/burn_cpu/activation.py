"""Activation functions, computed block by block in buffers that stay in the cache.

The cost of a NumPy function over a block, in additions: minimum of two arrays 2, of an array and a
number 4, exponential 10, tanh 20, log1p, expm1 and a selection by a mask up to 100. The kernels
here are built from the cheap ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from burn_cpu import erf
from burn_cpu.base import Array, CpuOps
from burn_cpu.blocks import MIN_ELEMENTS_FOR_BLOCKS, bound, map_elements, packed
from burn_cpu.choice import choose
from burn_cpu.compiled import kernels_for
from burn_cpu.constants import FLOAT32, constant


def _float32(*numbers: float) -> tuple[Array, ...]:
    return tuple([constant(number, FLOAT32) for number in numbers])


_ERF_NUMERATOR: Final = _float32(*erf.NUMERATOR)
_ERF_DENOMINATOR: Final = _float32(*erf.DENOMINATOR)
_ATANH_SERIES: Final = _float32(
    0.2817833423614502,
    0.27960601449012756,
    0.40024909377098083,
    0.6666631698608398,
    2.0,
)
"""Coefficients of ``2 * atanh(s) / s`` as a polynomial of ``s**2``, the highest power first.

The relative error is below 4e-9 up to s = 1 / 3.
"""


class ActivationOps(CpuOps):
    """Activation functions and their gradients."""

    def relu(self, x: Array) -> Array:
        """One pass; NaN propagates."""
        if x.size < MIN_ELEMENTS_FOR_BLOCKS:
            return np.maximum(x, constant(0, x.dtype))
        return map_elements(_relu, x, widen=False)

    def relu_grad(self, output: Array, g: Array) -> Array:
        """One comparison and one selection."""
        zero = constant(0, g.dtype)
        return choose(output > zero, g, zero if g.size < MIN_ELEMENTS_FOR_BLOCKS else 0.0)

    def leaky_relu(self, x: Array, *, negative_slope: float) -> Array:
        """The larger of `x` and ``negative_slope * x``, or the smaller for a slope above 1."""
        pick = np.maximum if negative_slope <= 1.0 else np.minimum

        def kernel(x: Array, out: Array) -> None:
            np.multiply(x, constant(negative_slope, x.dtype), out=out)
            pick(x, out, out=out)

        return map_elements(kernel, x)

    def elu(self, x: Array, *, alpha: float, scale: float = 1.0, input_scale: float = 1.0) -> Array:
        """``e**x - 1`` is 2 t / (1 - t) with t = tanh(x / 2) (DLMF 4.35.E22), exact near 0."""

        def kernel(x: Array, out: Array) -> None:
            negative = np.minimum(x, bound(0.0, x))
            negative *= constant(0.5 * input_scale, x.dtype)
            np.tanh(negative, out=negative)
            np.subtract(constant(1, x.dtype), negative, out=out)
            negative *= constant(2.0 * scale * alpha, x.dtype)
            np.divide(negative, out, out=negative)
            np.maximum(x, bound(0.0, x), out=out)
            out *= constant(scale, x.dtype)
            out += negative

        return map_elements(kernel, x)

    def sigmoid(self, x: Array) -> Array:
        """``1 / (1 + exp(-x))``: 0 where the exponential overflows."""
        return _map("sigmoid", _sigmoid, x)

    def silu(self, x: Array) -> Array:
        """``x / (1 + exp(-x))``, one pass less than `x` times the sigmoid."""
        return _map("silu", _silu, x)

    def softplus(self, x: Array, *, beta: float = 1.0) -> Array:
        """``max(x, 0) + log1p(exp(-beta * |x|)) / beta``."""

        def kernel(x: Array, out: Array) -> None:
            _log1p_exp_neg(x, out, -beta)
            if beta != 1.0:
                out /= constant(beta, x.dtype)
            out += np.maximum(x, bound(0.0, x))

        return map_elements(kernel, x)

    def log_sigmoid(self, x: Array) -> Array:
        """``min(x, 0) - log1p(exp(-|x|))``."""
        return map_elements(_log_sigmoid, x)

    def mish(self, x: Array) -> Array:
        """``x * tanh(log(1 + exp(x)))`` as a quotient of polynomials of one exponential."""
        return map_elements(_mish, x)

    def erf(self, x: Array) -> Array:
        """A rational approximation in float32; the default in float64."""
        if x.dtype == np.float64:
            return self.ops.decomposed("erf", x)
        return map_elements(_erf, x)

    def gelu(self, x: Array, *, approximate: str = "none") -> Array:
        """Block by block, without temporaries of the size of `x`."""
        if approximate == "tanh":
            return _map("gelu_tanh", _gelu_tanh, x)
        if approximate != "none" or x.dtype.itemsize > 4:
            return self.ops.decomposed("gelu", x, approximate=approximate)
        return _map("gelu", _gelu, x)

    def gelu_grad(self, x: Array, g: Array, *, approximate: str = "none") -> Array:
        """Block by block, without temporaries of the size of `x`."""
        if x.shape != g.shape:
            x, g = np.broadcast_arrays(x, g)
        if approximate == "tanh":
            return _map("gelu_tanh_grad", _gelu_tanh_grad, x, g)
        if approximate != "none" or x.dtype.itemsize > 4:
            return self.ops.decomposed("gelu_grad", x, g, approximate=approximate)
        return _map("gelu_grad", _gelu_grad, x, g)


def _map(name: str, kernel: Callable[..., None], *operands: Array) -> Array:
    """Apply a kernel to elements; the compiled one of this name where there is one."""
    family = kernels_for(operands[0].dtype, "elements")
    if family is None:
        return map_elements(kernel, *operands)
    return packed(getattr(family, name), *operands)


def _relu(x: Array, out: Array) -> None:
    np.maximum(x, bound(0.0, x), out=out)


def _one_plus_exp_neg(x: Array, out: Array) -> None:
    """``1 + exp(-x)``."""
    np.negative(x, out=out)
    np.exp(out, out=out)
    out += constant(1, x.dtype)


def _sigmoid(x: Array, out: Array) -> None:
    _one_plus_exp_neg(x, out)
    np.reciprocal(out, out=out)


def _silu(x: Array, out: Array) -> None:
    _one_plus_exp_neg(x, out)
    np.divide(x, out, out=out)


def _log1p_exp_neg(x: Array, out: Array, slope: float) -> None:
    """``log(1 + exp(slope * |x|))`` for a negative slope, exact also where it is small."""
    np.abs(x, out=out)
    out *= constant(slope, x.dtype)
    np.exp(out, out=out)
    if x.dtype != FLOAT32:
        np.log1p(out, out=out)
        return
    # log(1 + y) = 2 atanh(y / (2 + y)), DLMF 4.37.24 and 4.6.4.
    out /= out + constant(2, x.dtype)
    out *= _polynomial(np.multiply(out, out), _ATANH_SERIES)


def _log_sigmoid(x: Array, out: Array) -> None:
    _log1p_exp_neg(x, out, -1.0)
    np.subtract(np.minimum(x, bound(0.0, x)), out, out=out)


def _mish(x: Array, out: Array) -> None:
    # tanh(log(1 + e**x)) is n / (n + 2) with n = e**x * (e**x + 2); from x = 20 on it is 1.
    np.minimum(x, bound(20.0, x), out=out)
    np.exp(out, out=out)
    out *= out + constant(2, x.dtype)
    out /= out + constant(2, x.dtype)
    out *= x


def _polynomial(t: Array, coefficients: tuple[Any, ...]) -> Array:
    """The value of a polynomial by Horner's scheme, in a new array."""
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
    """The error function of ``scale * x`` in float32."""
    z = np.multiply(x, constant(scale, FLOAT32))
    _clip(z, erf.LIMIT)
    t = np.multiply(z, z)
    z *= _polynomial(t, _ERF_NUMERATOR)
    np.divide(z, _polynomial(t, _ERF_DENOMINATOR), out=out)
    _clip(out, 1.0)


def _clip(x: Array, limit: float) -> None:
    """Keep `x` within ``[-limit, limit]``, in place."""
    low, high = constant(-limit, x.dtype), constant(limit, x.dtype)
    if x.size > MIN_ELEMENTS_FOR_BLOCKS:
        np.clip(x, low, high, out=x)
    else:  # numpy.clip runs Python code, which costs more than the two passes
        np.minimum(x, high, out=x)
        np.maximum(x, low, out=x)


def _normal_cdf(x: Array, out: Array) -> None:
    """Cumulative distribution function of the standard normal distribution."""
    _scaled_erf(x, out, math.sqrt(0.5))
    out += constant(1, FLOAT32)
    out *= constant(0.5, FLOAT32)


def _gelu(x: Array, out: Array) -> None:
    _normal_cdf(x, out)
    out *= x


def _gelu_grad(x: Array, g: Array, out: Array) -> None:
    _normal_cdf(x, out)
    density = np.multiply(x, x)
    density *= constant(-0.5, FLOAT32)
    np.exp(density, out=density)
    density *= x
    density *= constant(1.0 / math.sqrt(2.0 * math.pi), FLOAT32)
    out += density
    out *= g


_TANH_SCALE: Final = math.sqrt(2.0 / math.pi)
_TANH_CUBIC: Final = 0.044715


def _tanh_term(x: Array, squares: Array, out: Array) -> None:
    """``tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))``."""
    np.multiply(squares, constant(_TANH_SCALE * _TANH_CUBIC, x.dtype), out=out)
    out += constant(_TANH_SCALE, x.dtype)
    out *= x
    np.tanh(out, out=out)


def _gelu_tanh(x: Array, out: Array) -> None:
    _tanh_term(x, np.multiply(x, x), out)
    out += constant(1, x.dtype)
    out *= constant(0.5, x.dtype)
    out *= x


def _gelu_tanh_grad(x: Array, g: Array, out: Array) -> None:
    squares = np.multiply(x, x)
    _tanh_term(x, squares, out)
    slope = np.multiply(out, out)
    np.subtract(constant(1, x.dtype), slope, out=slope)
    squares *= constant(1.5 * _TANH_SCALE * _TANH_CUBIC, x.dtype)
    squares += constant(0.5 * _TANH_SCALE, x.dtype)
    squares *= x
    slope *= squares
    out += constant(1, x.dtype)
    out *= constant(0.5, x.dtype)
    out += slope
    out *= g
