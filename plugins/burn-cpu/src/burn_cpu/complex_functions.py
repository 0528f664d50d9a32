"""Functions of complex numbers where NumPy departs from the standard.

What they give for infinite and NaN parts is from the special cases of the array API standard
(2025.12, "Element-wise Functions").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

Array = Any

Function = Callable[[Array], Array]


def with_complex(function: Function, of_complex: Function) -> Function:
    """A function that is another one for complex arrays."""

    def call(x: Array) -> Array:
        return of_complex(x) if x.dtype.kind == "c" else function(x)

    # Core asks for the callable for operands of one dtype: it is spared the question.
    call.specialize = lambda dtype: of_complex if dtype.is_complex else function  # type: ignore[attr-defined]  # functions take attributes
    return call


def _sign(x: Array) -> Array:
    """A number with a NaN has no sign, also where its other part is infinite."""
    return np.where(np.isnan(x), x.dtype.type(complex(np.nan, np.nan)), np.sign(x))


def _expm1(x: Array) -> Array:
    """``exp(x) - 1`` has the limits, which NumPy's formula makes NaN."""
    finite = np.isfinite(x)
    result = np.asarray(np.expm1(x))
    if not finite.all():
        result = np.where(finite, result, np.exp(x) - 1)
    result.real += 0.0  # of a negative zero too it is a positive one
    return result


def _square(x: Array) -> Array:
    """A product: NumPy's square rounds a single number by where in memory the result will be."""
    return np.multiply(x, x)


def _tanh(x: Array) -> Array:
    """Far out on the real axis it is 1 or -1, on the side of the axis where the number is."""
    return _at_limits(np.tanh(x), x.real, x.imag, lambda far, near: (far, near))


def _tan(x: Array) -> Array:
    """As `_tanh`, but far out on the imaginary axis."""
    return _at_limits(np.tan(x), x.imag, x.real, lambda far, near: (near, far))


def _at_limits(
    result: Array, far: Array, near: Array, parts: Callable[[Array, Array], tuple[Array, Array]]
) -> Array:
    """`result`, but where one part is infinite and the other finite, their signs as 1 and 0."""
    limit = np.isinf(far) & np.isfinite(near)
    if not limit.any():
        return result
    result = np.array(result)
    real, imag = parts(np.copysign(1.0, far), np.copysign(0.0, near))
    result.real[limit] = real[limit]
    result.imag[limit] = imag[limit]
    return result


COMPLEX_FUNCTIONS: Final[dict[str, Function]] = {
    "expm1": _expm1,
    "sign": _sign,
    "square": _square,
    "tan": _tan,
    "tanh": _tanh,
}
"""What takes the place of NumPy's functions for complex arrays."""
