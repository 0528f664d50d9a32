"""Functions of complex numbers where NumPy departs from the standard.

Results for infinite and NaN parts follow the special cases of the array API standard (2025.12,
"Element-wise Functions").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from burn.plugin_api import DType, specializing
from burn_cpu.base import Array

Function = Callable[[Array], Array]


def with_complex(real_function: Function, complex_function: Function) -> Function:
    """A function that calls another one for complex arrays."""

    def call(x: Array) -> Array:
        return complex_function(x) if x.dtype.kind == "c" else real_function(x)

    def specialize(dtype: DType) -> Function:
        return complex_function if dtype.is_complex else real_function

    return specializing(call, specialize)


def _sign(x: Array) -> Array:
    """NaN where a part is infinite or NaN, as ``x / abs(x)``."""
    return np.where(np.isfinite(x), np.sign(x), x.dtype.type(complex(np.nan, np.nan)))


def _reciprocal(x: Array) -> Array:
    """A quotient: NumPy's function has NaN for the reciprocal of 0."""
    return np.divide(x.dtype.type(1.0), x)


def _expm1(x: Array) -> Array:
    """``exp(x) - 1`` where a part is infinite: NumPy's formula gives NaN there.

    That of a real number is real, also where it overflows.
    """
    finite = np.isfinite(x)
    result = np.asarray(np.expm1(x))
    if not finite.all():
        result = np.where(finite, result, np.exp(x) - 1)
    result.real += 0.0  # -0.0 becomes 0.0
    np.copyto(result.imag, x.imag, where=x.imag == 0.0)
    return result


def _square(x: Array) -> Array:
    """A product: the rounding of NumPy's square depends on the alignment of the result."""
    return np.multiply(x, x)


def _tanh(x: Array) -> Array:
    """1 or -1 where the real part is infinite; the imaginary part is a zero with its sign."""
    return _at_limits(np.tanh(x), x.real, x.imag, lambda infinite, finite: (infinite, finite))


def _tan(x: Array) -> Array:
    """As `_tanh`, with the roles of the real and the imaginary part exchanged."""
    return _at_limits(np.tan(x), x.imag, x.real, lambda infinite, finite: (finite, infinite))


def _at_limits(
    result: Array,
    infinite: Array,
    finite: Array,
    parts: Callable[[Array, Array], tuple[Array, Array]],
) -> Array:
    """`result` with its limits where `infinite` is infinite and `finite` is finite.

    `parts` orders the limits, 1 and 0 with the signs of the two parts, as real and imaginary part.
    """
    limit = np.isinf(infinite) & np.isfinite(finite)
    if not limit.any():
        return result
    result = np.array(result)
    real, imag = parts(np.copysign(1.0, infinite), np.copysign(0.0, finite))
    result.real[limit] = real[limit]
    result.imag[limit] = imag[limit]
    return result


COMPLEX_FUNCTIONS: Final[dict[str, Function]] = {
    "expm1": _expm1,
    "reciprocal": _reciprocal,
    "sign": _sign,
    "square": _square,
    "tan": _tan,
    "tanh": _tanh,
}
"""Functions that replace NumPy's for complex arrays, by the name of the op."""
