"""The kernels that numba compiles, in float32; `burn_cpu.compiled` alone imports this module.

LLVM vectorizes the inner loops. It may reorder additions, but must respect infinities and NaN. Sums
of long rows are taken in chunks, whose sums are added in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, TypeVar

import numba
import numpy as np

from burn_cpu import erf
from burn_cpu.base import Array
from burn_cpu.constants import EXP_COEFFICIENTS

_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])


def _compile(kernel: _Kernel) -> _Kernel:
    """Compile a kernel whose sums may be reordered, which vector instructions need."""
    return _njit(kernel, {"reassoc", "contract", "arcp", "nsz"})


def _compile_exactly(kernel: _Kernel) -> _Kernel:
    """Compile a function whose operations keep their order."""
    return _njit(kernel, {"contract", "nsz"})


def _njit(kernel: _Kernel, allowed: set[str]) -> _Kernel:
    compiler: Any = numba.njit(nogil=True, cache=True, error_model="numpy", fastmath=allowed)
    result: _Kernel = compiler(kernel)
    return result


# A Python float would promote a float32 operand to float64. It is Any as numba has its own types.
_float32: Any = np.float32
_ZERO, _HALF, _ONE = map(_float32, (0.0, 0.5, 1.0))
_CHUNK_ELEMENTS: Final = 512
"""Elements that are added up in float32."""

_LOG2_E, _LN_2_HIGH, _LN_2_LOW = map(_float32, (1.4426950408889634, 0.693359375, -2.12194440e-4))
_MIN_EXPONENT: Final = _float32(-87.3)
"""For smaller arguments the exponential is subnormal, and `_exp` returns 0."""

_E5, _E4, _E3, _E2, _E1, _E0 = map(_float32, EXP_COEFFICIENTS)

# With NaN as one operand, min and max return the first operand.


@_compile_exactly
def _exp(x: Any) -> Any:
    """The exponential of a number that is at most 0, or of NaN."""
    t = max(_MIN_EXPONENT, x)
    n = np.floor(t * _LOG2_E + _HALF)
    t = t - n * _LN_2_HIGH
    t = t - n * _LN_2_LOW
    power = ((((_E5 * t + _E4) * t + _E3) * t + _E2) * t + _E1) * t + _E0
    power = power * t * t + t + _ONE
    # 2**n from its exponent bits.
    power *= np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)
    if x >= _MIN_EXPONENT:
        return power
    return _ZERO if x < _MIN_EXPONENT else x


@_compile
def softmax(rows: Array, peak: Array, out: Array) -> None:
    """``exp(row - peak)`` divided by its sum, for each row."""
    count = rows.shape[1]
    for r in range(len(rows)):
        row, result, top = rows[r], out[r], peak[r, 0]
        total = 0.0
        for start in range(0, count, _CHUNK_ELEMENTS):
            part = _ZERO
            for i in range(start, min(start + _CHUNK_ELEMENTS, count)):
                power = _exp(row[i] - top)
                result[i] = power
                part += power
            total += part
        factor = np.float32(1.0 / total)
        for i in range(count):
            result[i] *= factor


@_compile
def log_softmax(rows: Array, peak: Array, out: Array) -> None:
    """``row - peak`` less the logarithm of the sum of its exponentials, for each row."""
    count = rows.shape[1]
    for r in range(len(rows)):
        row, result, top = rows[r], out[r], peak[r, 0]
        total = 0.0
        for start in range(0, count, _CHUNK_ELEMENTS):
            part = _ZERO
            for i in range(start, min(start + _CHUNK_ELEMENTS, count)):
                distance = row[i] - top
                result[i] = distance
                part += _exp(distance)
            total += part
        shift = np.float32(math.log(total))
        for i in range(count):
            result[i] -= shift


@_compile
def softmax_grad(output: Array, g: Array, out: Array) -> None:
    """Gradient of softmax, given its output."""
    count = output.shape[1]
    for r in range(len(output)):
        row, slope, result = output[r], g[r], out[r]
        total = 0.0
        for start in range(0, count, _CHUNK_ELEMENTS):
            part = _ZERO
            for i in range(start, min(start + _CHUNK_ELEMENTS, count)):
                part += row[i] * slope[i]
            total += part
        level = np.float32(total)
        for i in range(count):
            result[i] = (slope[i] - level) * row[i]


@_compile
def log_softmax_grad(output: Array, g: Array, out: Array) -> None:
    """Gradient of log_softmax, given its output."""
    count = output.shape[1]
    for r in range(len(output)):
        row, slope, result = output[r], g[r], out[r]
        level = np.float32(_sum(slope))
        for i in range(count):
            result[i] = slope[i] - _exp(row[i]) * level


@_compile
def _sum(row: Array) -> float:
    total = 0.0
    for start in range(0, len(row), _CHUNK_ELEMENTS):
        part = _ZERO
        for i in range(start, min(start + _CHUNK_ELEMENTS, len(row))):
            part += row[i]
        total += part
    return total


@_compile
def _moments(row: Array, epsilon: float) -> Any:
    """The mean of a row, and the inverse of its standard deviation."""
    count = len(row)
    mean = np.float32(_sum(row) / count)
    total = 0.0
    for start in range(0, count, _CHUNK_ELEMENTS):
        part = _ZERO
        for i in range(start, min(start + _CHUNK_ELEMENTS, count)):
            distance = row[i] - mean
            part += distance * distance
        total += part
    return mean, np.float32(1.0 / math.sqrt(total / count + epsilon))


@_compile
def layer_norm(rows: Array, scale: Array, shift: Array, epsilon: float, out: Array) -> None:
    """Rows normalized to mean 0 and variance 1, scaled and shifted."""
    for r in range(len(rows)):
        row, result = rows[r], out[r]
        mean, inverse = _moments(row, epsilon)
        for i in range(len(row)):
            result[i] = (row[i] - mean) * inverse * scale[i] + shift[i]


@_compile
def layer_norm_grad(
    rows: Array, scale: Array, g: Array, epsilon: float, out: Array, sums: Array
) -> None:
    """Gradient by the rows; the gradients by scale and shift are written to `sums`."""
    count = rows.shape[1]
    scale_grad, shift_grad = sums[0], sums[1]
    scale_grad[:] = _ZERO
    shift_grad[:] = _ZERO
    for r in range(len(rows)):
        row, slope, result = rows[r], g[r], out[r]
        mean, inverse = _moments(row, epsilon)
        total = 0.0
        product = 0.0
        for start in range(0, count, _CHUNK_ELEMENTS):
            part = _ZERO
            product_part = _ZERO
            for i in range(start, min(start + _CHUNK_ELEMENTS, count)):
                scaled = slope[i] * scale[i]
                part += scaled
                product_part += scaled * (row[i] - mean)
            total += part
            product += product_part
        level = np.float32(total / count)
        slope_factor = np.float32(product / count) * inverse * inverse
        # LLVM vectorizes a loop that writes to one array only.
        for i in range(count):
            result[i] = (slope[i] * scale[i] - level - (row[i] - mean) * slope_factor) * inverse
        for i in range(count):
            scale_grad[i] += slope[i] * ((row[i] - mean) * inverse)
        for i in range(count):
            shift_grad[i] += slope[i]


_N5, _N4, _N3, _N2, _N1, _N0 = map(_float32, erf.NUMERATOR)
_D5, _D4, _D3, _D2, _D1, _D0 = map(_float32, erf.DENOMINATOR)
_ERF_LIMIT: Final = _float32(erf.LIMIT)
_ROOT_HALF: Final = _float32(math.sqrt(0.5))
_DENSITY_AT_0: Final = _float32(1.0 / math.sqrt(2.0 * math.pi))


@_compile_exactly
def _normal_cdf(x: Any) -> Any:
    """Cumulative distribution function of the standard normal distribution."""
    z = max(min(x * _ROOT_HALF, _ERF_LIMIT), -_ERF_LIMIT)
    t = z * z
    upper = ((((_N5 * t + _N4) * t + _N3) * t + _N2) * t + _N1) * t + _N0
    lower = ((((_D5 * t + _D4) * t + _D3) * t + _D2) * t + _D1) * t + _D0
    cdf = (z * upper / lower + _ONE) * _HALF
    if z <= -_ERF_LIMIT:
        return _ZERO
    return _ONE if z >= _ERF_LIMIT else cdf


@_compile
def gelu(x: Array, out: Array) -> None:
    """`x` times the normal distribution function of `x`."""
    for i in range(len(x)):
        out[i] = x[i] * _normal_cdf(x[i])


@_compile
def gelu_grad(x: Array, g: Array, out: Array) -> None:
    """Gradient of `gelu`."""
    for i in range(len(x)):
        one = x[i]
        out[i] = g[i] * (_normal_cdf(one) + one * _DENSITY_AT_0 * _exp(-_HALF * one * one))
