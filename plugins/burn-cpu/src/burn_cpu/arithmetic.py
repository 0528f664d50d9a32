"""Elementwise ops where NumPy's functions mean something else, or are slow."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from burn.dtype import bfloat16

if TYPE_CHECKING:
    from burn.aliases import Scalar

Array = Any


@functools.lru_cache(maxsize=1024)
def constant(value: float, dtype: Any) -> Array:
    """A number as an array without axes: a function of NumPy takes it in half the time."""
    array = np.array(value, dtype)
    array.flags.writeable = False
    return array


_BFLOAT16 = bfloat16.numpy
_NUMBERS = frozenset([bool, int, float, complex])


def with_numbers(function: Callable[[Any, Any], Array]) -> Callable[[Any, Any], Array]:
    """A function of two arrays that also takes a Python number beside bfloat16.

    NumPy gives numbers the dtype of the array they meet, but only for its own dtypes.
    """
    array = np.ndarray

    def call(x1: Any, x2: Any) -> Array:
        if x1.__class__ is not array or x2.__class__ is not array:
            x1, x2 = _numbers_converted(x1, x2)
        return function(x1, x2)

    # Core asks for the callable for operands of one dtype: no other dtype needs the detour.
    call.specialize = lambda dtype: call if dtype is bfloat16 else function  # type: ignore[attr-defined]  # functions take attributes
    return call


def _numbers_converted(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Two operands, a number that meets bfloat16 as an array of it."""
    if x2.__class__ in _NUMBERS:
        return (x1, np.asarray(x2, _BFLOAT16)) if x1.dtype is _BFLOAT16 else (x1, x2)
    if x1.__class__ in _NUMBERS and x2.dtype is _BFLOAT16:
        return np.asarray(x1, _BFLOAT16), x2
    return x1, x2


class ArithmeticOps:
    """Elementwise ops beside NumPy's universal functions."""

    def pow(self, x1: Array | Scalar, x2: Array | Scalar) -> Array:
        """NumPy refuses negative integer exponents; their result is the truncated reciprocal."""
        if isinstance(x2, (int, float, complex)) or x2.dtype.kind != "i" or not (x2 < 0).any():
            return np.power(x1, x2)
        dtype = x2.dtype
        negative = x2 < 0
        powers = np.power(x1, np.where(negative, constant(0, dtype), x2))
        # 1 stays 1, -1 alternates, every other base gives 0.
        sign = np.where(x2 % 2 == 0, dtype.type(1), dtype.type(-1))
        base = np.asarray(x1, dtype)
        inverse = np.where(base == 1, dtype.type(1), np.where(base == -1, sign, constant(0, dtype)))
        return np.where(negative, inverse, powers)

    def complex(self, real: Array, imag: Array) -> Array:
        """One new array; adding would make NaN of infinite parts."""
        dtype = np.complex128 if real.dtype == np.float64 else np.complex64
        result = np.empty(np.broadcast_shapes(real.shape, imag.shape), dtype)
        result.real = real
        result.imag = imag
        return result

    def fmod(self, x1: Array | Scalar, x2: Array | Scalar) -> Array:
        """`numpy.fmod`."""
        return np.fmod(x1, x2)

    def where(self, condition: Array, x1: Array | Scalar, x2: Array | Scalar) -> Array:
        """`numpy.where`."""
        return np.where(condition, *_numbers_converted(x1, x2))

    def relu(self, x: Array) -> Array:
        """One pass; NaN propagates."""
        return np.maximum(x, constant(0, x.dtype))

    def relu_grad(self, output: Array, g: Array) -> Array:
        """One comparison and one choice."""
        zero = constant(0, g.dtype)
        return np.where(output > zero, g, zero)

    def sigmoid(self, x: Array) -> Array:
        """``exp(-|x|)`` cannot overflow, and keeps the digits of small results."""
        decay = np.abs(x, out=np.empty_like(x))
        np.negative(decay, out=decay)
        np.exp(decay, out=decay)
        numerator = np.where(x < constant(0, x.dtype), decay, constant(1, x.dtype))
        decay += constant(1, x.dtype)
        return np.divide(numerator, decay)
