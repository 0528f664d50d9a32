"""Elementwise ops where NumPy's functions differ from burn's, or are slow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burn.plugin_api import Scalar, bfloat16, specializing
from burn_cpu.base import LARGE, Array, CpuOps
from burn_cpu.constants import constant

# As Any: NumPy's stubs know a ufunc's methods only with a literal for keepdims.
_minimum: Any = np.minimum

_BFLOAT16 = bfloat16.numpy
_NUMBERS = frozenset([bool, int, float, complex])


def with_numbers(function: Callable[[Any, Any], Array]) -> Callable[[Any, Any], Array]:
    """A function of two arrays that also takes a Python number beside a bfloat16 array.

    NumPy gives a number the dtype of the array beside it only for NumPy's own dtypes.
    """
    array = np.ndarray

    def call(x1: Any, x2: Any) -> Array:
        if x1.__class__ is not array or x2.__class__ is not array:
            x1, x2 = _numbers_converted(x1, x2)
        return function(x1, x2)

    return specializing(call, lambda dtype: call if dtype is bfloat16 else function)


def _numbers_converted(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Two operands; a number beside a bfloat16 array becomes a bfloat16 array."""
    if x2.__class__ in _NUMBERS:
        return (x1, np.asarray(x2, _BFLOAT16)) if x1.dtype is _BFLOAT16 else (x1, x2)
    if x1.__class__ in _NUMBERS and x2.dtype is _BFLOAT16:
        return np.asarray(x1, _BFLOAT16), x2
    return x1, x2


def _roots(powers: Array, x1: Array | Scalar, x2: Array | Scalar) -> Array:
    """Powers with IEEE 754's limits where NumPy took square roots: for one exponent of 0.5.

    The square root of -inf is NaN and that of -0.0 is -0.0; both powers are positive.
    """
    if not isinstance(x2, (int, float, complex)):
        has_exponent_per_base = x2.ndim and x2.shape == powers.shape and 0 not in x2.strides
        if has_exponent_per_base:
            return powers
    if powers.dtype.kind == "c" or _minimum.reduce(x1, axis=None, initial=np.inf) > 0.0:
        return powers
    limits = ((x1 == 0.0) | (x1 == -np.inf)) & (x2 == 0.5)
    return np.where(limits, abs(x1), powers)


def _where(condition: Array, x1: Array | Scalar, x2: Array | Scalar) -> Array:
    x1, x2 = _numbers_converted(x1, x2)
    arrays = [operand for operand in (x1, x2) if isinstance(operand, np.ndarray)]
    if len(arrays) == 1:  # a number does not widen it, whatever NumPy makes of bfloat16 and it
        x1, x2 = (np.asarray(operand, arrays[0].dtype) for operand in (x1, x2))
    return np.where(condition, x1, x2)


class ArithmeticOps(CpuOps):
    """Elementwise ops that are not NumPy's universal functions as they are."""

    def pow(self, x1: Array | Scalar, x2: Array | Scalar) -> Array:
        """`numpy.power`; the truncated reciprocal for negative exponents, which it refuses."""
        if isinstance(x2, (int, float, complex)):
            powers = np.power(x1, x2)
            return _roots(powers, x1, x2) if x2 == 0.5 else powers
        kind = x2.dtype.kind
        if kind != "i" or not (x2 < 0).any():
            powers = np.power(x1, x2)
            has_exponent_per_base = x2.base is None and x2.size == powers.size and x2.ndim
            may_be_roots = kind in "fV" and not has_exponent_per_base
            return _roots(powers, x1, x2) if may_be_roots else powers
        dtype = x2.dtype
        negative = x2 < 0
        powers = np.power(x1, np.where(negative, constant(0, dtype), x2))
        # 1 stays 1, -1 alternates, every other base gives 0.
        sign = np.where(x2 % 2 == 0, dtype.type(1), dtype.type(-1))
        base = np.asarray(x1, dtype)
        inverse = np.where(base == 1, dtype.type(1), np.where(base == -1, sign, constant(0, dtype)))
        return np.where(negative, inverse, powers)

    def sign(self, x: Array) -> Array:
        """`numpy.sign`; that of ml_dtypes for bfloat16 keeps -0.0, which becomes 0.0."""
        signs = np.sign(x)
        return signs + constant(0, _BFLOAT16) if x.dtype is _BFLOAT16 else signs

    def exp2(self, x: Array) -> Array:
        """`numpy.exp2`."""
        return np.exp2(x)

    def cbrt(self, x: Array) -> Array:
        """`numpy.cbrt`."""
        return np.cbrt(x)

    def complex(self, real: Array, imag: Array) -> Array:
        """Writes both parts: ``real + 1j * imag`` is NaN where a part is infinite."""
        dtype = np.complex128 if real.dtype == np.float64 else np.complex64
        result = np.empty(np.broadcast_shapes(real.shape, imag.shape), dtype)
        result.real = real
        result.imag = imag
        return result

    def fmod(self, x1: Array | Scalar, x2: Array | Scalar) -> Array:
        """`numpy.fmod`."""
        return np.fmod(x1, x2)

    def where(self, condition: Array, x1: Array | Scalar, x2: Array | Scalar) -> Array:
        """`numpy.where`; of many elements a kernel, which has no branches."""
        if condition.size < LARGE or not condition.flags.c_contiguous:
            return _where(condition, x1, x2)
        return self.large("where", _where)(condition, x1, x2)
