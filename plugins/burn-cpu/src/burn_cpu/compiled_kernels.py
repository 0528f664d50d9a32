"""The kernels that numba compiles, in float32. Nothing but `burn_cpu.compiled` imports them.

LLVM turns the inner loops into vector instructions. It may change the order of additions, but knows
that there are infinities and NaN. Sums of long rows are taken in parts, and joined in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, TypeVar

import numba
import numpy as np

from burn_cpu.activation import ERF_BOUND, ERF_DENOMINATOR, ERF_NUMERATOR

Array = Any

_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])


def _compile(kernel: _Kernel) -> _Kernel:
    """A kernel whose sums may be taken in any order, as vectors of numbers need it."""
    return _njit(kernel, {"reassoc", "contract", "arcp", "nsz"})


def _compile_exactly(kernel: _Kernel) -> _Kernel:
    """A function whose steps are taken in the order in which they are written."""
    return _njit(kernel, {"contract", "nsz"})


def _njit(kernel: _Kernel, allowed: set[str]) -> _Kernel:
    compiler: Any = numba.njit(nogil=True, cache=True, error_model="numpy", fastmath=allowed)
    result: _Kernel = compiler(kernel)
    return result


# Numbers of Python would make float64 of what they meet. What numba calls a float32 is Any here.
_float32: Any = np.float32
_ZERO, _HALF, _ONE = map(_float32, (0.0, 0.5, 1.0))
_PART: Final = 512
"""Elements that are added up in float32."""

_LOG2_E, _LN_2_HIGH, _LN_2_LOW = map(_float32, (1.4426950408889634, 0.693359375, -2.12194440e-4))
_LOWEST: Final = _float32(-87.3)
"""Below it an exponential is no normal number; 0 is returned."""

_E5, _E4, _E3, _E2, _E1, _E0 = map(
    _float32,
    (
        1.9875691500e-4,
        1.3981999507e-3,
        8.3334519073e-3,
        4.1665795894e-2,
        1.6666665459e-1,
        5.0000001201e-1,
    ),
)
"""Of ``(exp(t) - 1 - t) / t**2`` up to log(2) / 2 (expf of S. Moshier's Cephes library)."""


# Of two numbers that cannot be compared, min and max take the first.


@_compile_exactly
def _exp(x: Any) -> Any:
    """The exponential of a number that is at most 0, or of NaN."""
    t = max(_LOWEST, x)
    n = np.floor(t * _LOG2_E + _HALF)
    t = t - n * _LN_2_HIGH
    t = t - n * _LN_2_LOW
    power = ((((_E5 * t + _E4) * t + _E3) * t + _E2) * t + _E1) * t + _E0
    power = power * t * t + t + _ONE
    # 2**n, made of its exponent.
    power *= np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)
    if x >= _LOWEST:
        return power
    return _ZERO if x < _LOWEST else x


@_compile
def softmax(rows: Array, peak: Array, out: Array) -> None:
    """Exponentials, less the maximum of their row, over their sum."""
    count = rows.shape[1]
    for r in range(len(rows)):
        row, result, top = rows[r], out[r], peak[r, 0]
        total = 0.0
        for start in range(0, count, _PART):
            part = _ZERO
            for i in range(start, min(start + _PART, count)):
                power = _exp(row[i] - top)
                result[i] = power
                part += power
            total += part
        factor = np.float32(1.0 / total)
        for i in range(count):
            result[i] *= factor


@_compile
def log_softmax(rows: Array, peak: Array, out: Array) -> None:
    """Distances from the maximum, less the logarithm of the sum of their exponentials."""
    count = rows.shape[1]
    for r in range(len(rows)):
        row, result, top = rows[r], out[r], peak[r, 0]
        total = 0.0
        for start in range(0, count, _PART):
            part = _ZERO
            for i in range(start, min(start + _PART, count)):
                distance = row[i] - top
                result[i] = distance
                part += _exp(distance)
            total += part
        shift = np.float32(math.log(total))
        for i in range(count):
            result[i] -= shift


@_compile
def softmax_grad(output: Array, g: Array, out: Array) -> None:
    """Gradient by the rows of what `softmax` gave."""
    count = output.shape[1]
    for r in range(len(output)):
        row, slope, result = output[r], g[r], out[r]
        total = 0.0
        for start in range(0, count, _PART):
            part = _ZERO
            for i in range(start, min(start + _PART, count)):
                part += row[i] * slope[i]
            total += part
        level = np.float32(total)
        for i in range(count):
            result[i] = (slope[i] - level) * row[i]


@_compile
def log_softmax_grad(output: Array, g: Array, out: Array) -> None:
    """Gradient by the rows of what `log_softmax` gave."""
    count = output.shape[1]
    for r in range(len(output)):
        row, slope, result = output[r], g[r], out[r]
        level = np.float32(_sum(slope))
        for i in range(count):
            result[i] = slope[i] - _exp(row[i]) * level


@_compile
def _sum(row: Array) -> float:
    total = 0.0
    for start in range(0, len(row), _PART):
        part = _ZERO
        for i in range(start, min(start + _PART, len(row))):
            part += row[i]
        total += part
    return total


@_compile
def _moments(row: Array, epsilon: float) -> Any:
    """The mean of a row, and what makes its variance 1."""
    count = len(row)
    mean = np.float32(_sum(row) / count)
    total = 0.0
    for start in range(0, count, _PART):
        part = _ZERO
        for i in range(start, min(start + _PART, count)):
            distance = row[i] - mean
            part += distance * distance
        total += part
    return mean, np.float32(1.0 / math.sqrt(total / count + epsilon))


@_compile
def layer_norm(rows: Array, scale: Array, shift: Array, epsilon: float, out: Array) -> None:
    """Rows of mean 0 and variance 1, scaled and shifted."""
    for r in range(len(rows)):
        row, result = rows[r], out[r]
        mean, inverse = _moments(row, epsilon)
        for i in range(len(row)):
            result[i] = (row[i] - mean) * inverse * scale[i] + shift[i]


@_compile
def layer_norm_grad(
    rows: Array, scale: Array, g: Array, epsilon: float, out: Array, sums: Array
) -> None:
    """Gradient by the rows; that by scale and shift, summed over the rows, is written to `sums`."""
    count = rows.shape[1]
    to_scale, to_shift = sums[0], sums[1]
    to_scale[:] = _ZERO
    to_shift[:] = _ZERO
    for r in range(len(rows)):
        row, slope, result = rows[r], g[r], out[r]
        mean, inverse = _moments(row, epsilon)
        total = 0.0
        product = 0.0
        for start in range(0, count, _PART):
            part = _ZERO
            bent = _ZERO
            for i in range(start, min(start + _PART, count)):
                scaled = slope[i] * scale[i]
                part += scaled
                bent += scaled * (row[i] - mean)
            total += part
            product += bent
        level = np.float32(total / count)
        bend = np.float32(product / count) * inverse * inverse
        # A loop that writes to one array is the one that LLVM makes vectors of.
        for i in range(count):
            result[i] = (slope[i] * scale[i] - level - (row[i] - mean) * bend) * inverse
        for i in range(count):
            to_scale[i] += slope[i] * ((row[i] - mean) * inverse)
        for i in range(count):
            to_shift[i] += slope[i]


_N5, _N4, _N3, _N2, _N1, _N0 = map(_float32, ERF_NUMERATOR)
_D5, _D4, _D3, _D2, _D1, _D0 = map(_float32, ERF_DENOMINATOR)
_BOUND: Final = _float32(ERF_BOUND)
_ROOT_HALF: Final = _float32(math.sqrt(0.5))
_BELL: Final = _float32(1.0 / math.sqrt(2.0 * math.pi))


@_compile_exactly
def _area(x: Any) -> Any:
    """Area under the bell curve up to x."""
    z = max(min(x * _ROOT_HALF, _BOUND), -_BOUND)
    t = z * z
    upper = ((((_N5 * t + _N4) * t + _N3) * t + _N2) * t + _N1) * t + _N0
    lower = ((((_D5 * t + _D4) * t + _D3) * t + _D2) * t + _D1) * t + _D0
    area = (z * upper / lower + _ONE) * _HALF
    if z <= -_BOUND:
        return _ZERO
    return _ONE if z >= _BOUND else area


@_compile
def gelu(x: Array, out: Array) -> None:
    """`x` times the area under the bell curve up to it."""
    for i in range(len(x)):
        out[i] = x[i] * _area(x[i])


@_compile
def gelu_grad(x: Array, g: Array, out: Array) -> None:
    """Gradient of `gelu`."""
    for i in range(len(x)):
        one = x[i]
        out[i] = g[i] * (_area(one) + one * _BELL * _exp(-_HALF * one * one))
