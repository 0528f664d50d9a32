"""Elementwise ops where NumPy's functions mean something else, or are slow."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from burn.dtype import bfloat16
from burn_cpu.base import Array, CpuOps
from burn_cpu.choice import choose
from burn_cpu.constants import constant

if TYPE_CHECKING:
    from burn.aliases import Scalar

# As Any: NumPy's stubs know a ufunc's methods only with a literal for keepdims.
_minimum: Any = np.minimum

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


def _roots(powers: Array, x1: Array | Scalar, x2: Array | Scalar) -> Array:
    """Powers as the standard has them: NumPy takes a square root where one 0.5 serves many bases.

    It then gives NaN for the power of negative infinity, and the negative zero for its own.
    """
    if not isinstance(x2, (int, float, complex)):
        one_for_each = x2.ndim and x2.shape == powers.shape and 0 not in x2.strides
        if one_for_each:
            return powers
    if powers.dtype.kind == "c" or _minimum.reduce(x1, axis=None, initial=np.inf) > 0.0:
        return powers
    limits = ((x1 == 0.0) | (x1 == -np.inf)) & (x2 == 0.5)
    return np.where(limits, abs(x1), powers)


class ArithmeticOps(CpuOps):
    """Elementwise ops beside NumPy's universal functions."""

    def pow(self, x1: Array | Scalar, x2: Array | Scalar) -> Array:
        """NumPy refuses negative integer exponents; their result is the truncated reciprocal."""
        if isinstance(x2, (int, float, complex)):
            powers = np.power(x1, x2)
            return _roots(powers, x1, x2) if x2 == 0.5 else powers
        kind = x2.dtype.kind
        if kind != "i" or not (x2 < 0).any():
            powers = np.power(x1, x2)
            one_for_each = x2.base is None and x2.size == powers.size and x2.ndim
            return powers if one_for_each or kind not in "fV" else _roots(powers, x1, x2)
        dtype = x2.dtype
        negative = x2 < 0
        powers = np.power(x1, np.where(negative, constant(0, dtype), x2))
        # 1 stays 1, -1 alternates, every other base gives 0.
        sign = np.where(x2 % 2 == 0, dtype.type(1), dtype.type(-1))
        base = np.asarray(x1, dtype)
        inverse = np.where(base == 1, dtype.type(1), np.where(base == -1, sign, constant(0, dtype)))
        return np.where(negative, inverse, powers)

    def sign(self, x: Array) -> Array:
        """`numpy.sign`, which for bfloat16 is ml_dtypes' and keeps the negative zero."""
        signs = np.sign(x)
        return signs + constant(0, _BFLOAT16) if x.dtype is _BFLOAT16 else signs

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
        """Without branches for large arrays."""
        return choose(condition, *_numbers_converted(x1, x2))
