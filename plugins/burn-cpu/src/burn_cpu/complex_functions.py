"""Functions of complex numbers where NumPy departs from the standard, or squares leave the range.

Results for infinite and NaN parts follow the special cases of the array API standard (2025.12,
"Element-wise Functions").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from burn.plugin_api import DType, Scalar, specializing
from burn_cpu.base import Array

Function = Callable[..., Array]


def with_complex(real_function: Function, complex_function: Function) -> Function:
    """A function that calls another one for complex arrays."""

    def call(*operands: Any) -> Array:
        is_complex = any(np.iscomplexobj(operand) for operand in operands)
        return complex_function(*operands) if is_complex else real_function(*operands)

    def specialize(dtype: DType) -> Function:
        if dtype.is_complex:
            return complex_function
        variant: Callable[[DType], Function] | None = getattr(real_function, "specialize", None)
        return real_function if variant is None else variant(dtype)

    return specializing(call, specialize)


def _of_parts(real: Array, imag: Array) -> Array:
    result = np.empty(real.shape, np.result_type(real, np.complex64))
    result.real, result.imag = real, imag
    return result


def _larger_part(x: Array) -> Array:
    """The larger magnitude of the two parts, NaN if one is NaN."""
    return np.maximum(np.abs(x.real), np.abs(x.imag))


def _sign(x: Array) -> Array:
    """``x / abs(x)`` of numbers whose larger part is 1: no square is 0 or infinite.

    NaN where a part is infinite or NaN, and 0 without signs where both are 0.
    """
    longer = np.asarray(_larger_part(x))
    is_zero = longer == 0.0
    np.copyto(longer, 1.0, where=is_zero)
    real, imag = x.real / longer, x.imag / longer
    length = np.asarray(np.sqrt(real * real + imag * imag))
    np.copyto(length, 1.0, where=is_zero)
    result = np.asarray(_of_parts(real / length, imag / length))
    np.copyto(result, 0.0, where=is_zero)
    return result


def _divide(x1: Array | Scalar, x2: Array | Scalar) -> Array:
    """A quotient of numbers whose larger parts are near 1, where NumPy's leaves the range."""
    result = np.asarray(np.divide(x1, x2))
    lost = ~np.isfinite(result) | (result == 0.0)
    if lost.any():
        lost = lost & np.isfinite(x1) & np.isfinite(x2) & (x1 != 0.0) & (x2 != 0.0)
    if not lost.any():
        return result
    dividend, up = _normalized(np.asarray(x1, result.dtype))
    divisor, down = _normalized(np.asarray(x2, result.dtype))
    quotient, exponent = np.divide(dividend, divisor), up - down
    scaled = _of_parts(np.ldexp(quotient.real, exponent), np.ldexp(quotient.imag, exponent))
    return np.where(lost, scaled, result)


def _normalized(x: Array) -> tuple[Array, Array]:
    """Numbers whose larger part is in [0.5, 1), and the exponents of 2 that they are less."""
    _, exponent = np.frexp(np.where(np.isfinite(x), _larger_part(x), 0.0))
    return _of_parts(np.ldexp(x.real, -exponent), np.ldexp(x.imag, -exponent)), exponent


def _reciprocal(x: Array) -> Array:
    """A quotient: NumPy's function has NaN for the reciprocal of 0."""
    return _divide(x.dtype.type(1.0), x)


def _log1p(x: Array) -> Array:
    """By the real `log1p` near 0, where NumPy's loses digits; `log` where its `hypot` overflows."""
    real, imag = x.real, x.imag
    result = np.array(np.log1p(x))
    is_near = (np.abs(real) < 0.5) & (np.abs(imag) < 0.5)
    np.copyto(result.real, 0.5 * np.log1p(real * (real + 2.0) + imag * imag), where=is_near)
    lost = np.isinf(result.real) & np.isfinite(x) & (x != -1.0)
    return np.where(lost, np.log(x), result) if lost.any() else result


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
    "divide": _divide,
    "expm1": _expm1,
    "log1p": _log1p,
    "reciprocal": _reciprocal,
    "sign": _sign,
    "square": _square,
    "tan": _tan,
    "tanh": _tanh,
}
"""Functions that replace NumPy's for complex arrays, by the name of the op."""
