"""How far the results of two backends may be apart."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from burn.dtype import DType, bfloat16, float16, float32, float64
from burn.testing.sample import Array

__all__ = ["ELEMENTWISE", "difference"]

ELEMENTWISE: Final = {
    float64: (1e-10, 1e-12),
    float32: (1e-5, 1e-6),
    float16: (2e-3, 1e-4),
    bfloat16: (2e-2, 1e-3),
}
"""Relative and absolute tolerance: ``|x - y| <= max(absolute, relative * max(|x|, |y|))``."""

_EPSILON: Final = {float64: 2.0**-52, float32: 2.0**-23, float16: 2.0**-10, bfloat16: 2.0**-7}
"""Distance from 1 to the next number."""

_SMALLEST: Final = {float64: 5e-324, float32: 2.0**-149, float16: 2.0**-24, bfloat16: 2.0**-133}
"""Distance from 0 to the next number."""


def difference(
    actual: Array,
    expected: Any,
    dtype: DType,
    *,
    exact: bool = False,
    terms: tuple[Any, Any] | None = None,
) -> str:
    """Say where a result is too far from what it should be.

    Parameters
    ----------
    actual : array
        The result, of the NumPy form of `dtype`.
    expected : array
        What it should be, as a reference returned it: float64, or integers of any width, which
        are wrapped around.
    dtype : DType
        Dtype of the result.
    exact : bool
        Whether floats must be equal; a zero then has a sign.
    terms : tuple, optional
        For contractions and sums: how many terms were added up, and the sum of their magnitudes.

    Returns
    -------
    str
        The worst element, or "" if all are near enough. NaN equals NaN.
    """
    expected = np.asarray(expected)
    if actual.shape != expected.shape:
        return f"shape {actual.shape} where {expected.shape} was expected"
    with np.errstate(all="ignore"):
        rounded = expected.astype(dtype.numpy)
        if dtype.is_complex:
            return _complex_difference(actual, expected, rounded, dtype, exact=exact, terms=terms)
        if not dtype.is_float:
            return _describe(actual != rounded, actual, rounded)
        x, y = actual.astype(np.float64), rounded.astype(np.float64)
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        if exact:
            wrong = ~(same & (np.isnan(x) | (np.signbit(x) == np.signbit(y))))
            return _describe(wrong, actual, rounded)
        if terms is None:
            relative, absolute = ELEMENTWISE[dtype]
            allowed = np.maximum(absolute, relative * np.maximum(np.abs(x), np.abs(y)))
        else:
            y = expected.astype(np.float64)
            allowed = _allowed_sum(y, dtype, *terms)
        near = same | (np.isfinite(x) & np.isfinite(y) & (np.abs(x - y) <= allowed))
    return _describe(~near, actual, expected, allowed)


def _complex_difference(
    actual: Array,
    expected: Array,
    rounded: Array,
    dtype: DType,
    *,
    exact: bool,
    terms: tuple[Any, Any] | None,
) -> str:
    """As `difference`, by magnitudes; what is not finite goes by its parts."""
    x, y = actual.astype(np.complex128), rounded.astype(np.complex128)
    same = _same(x.real, y.real) & _same(x.imag, y.imag)
    if exact:
        signs = (np.signbit(x.real) == np.signbit(y.real)) | np.isnan(x.real)
        signs &= (np.signbit(x.imag) == np.signbit(y.imag)) | np.isnan(x.imag)
        return _describe(~(same & signs), actual, rounded)
    if terms is None:
        relative, absolute = ELEMENTWISE[dtype.component]
        allowed = np.maximum(absolute, relative * np.maximum(np.abs(x), np.abs(y)))
    else:
        y = expected.astype(np.complex128)
        allowed = _allowed_sum(y, dtype.component, *terms)
    near = same | (np.isfinite(x) & np.isfinite(y) & (np.abs(x - y) <= allowed))
    return _describe(~near, actual, expected, allowed)


def _same(x: Array, y: Array) -> Array:
    return np.asarray((x == y) | (np.isnan(x) & np.isnan(y)))


def _allowed_sum(expected: Array, dtype: DType, count: Any, magnitude: Any) -> Any:
    """``4 eps sqrt(n) sum |a b|`` of the dtype of accumulation, and a rounding to the result."""
    accumulated = float32 if dtype.itemsize < float32.itemsize else dtype
    error = 4.0 * _EPSILON[accumulated] * np.sqrt(count) * magnitude
    rounding = 0.5 * np.maximum(_EPSILON[dtype] * np.abs(expected), _SMALLEST[dtype])
    return error + rounding


def _describe(wrong: Array, actual: Array, expected: Array, allowed: Any = None) -> str:
    if not wrong.any():
        return ""
    place = tuple(int(axis[0]) for axis in np.nonzero(wrong)) if wrong.ndim else ()
    text = (
        f"{int(wrong.sum())} of {wrong.size} elements differ, first at {place}: "
        f"got {actual[place]!s}, expected {expected[place]!s}"
    )
    if allowed is not None:
        limit = np.broadcast_to(allowed, wrong.shape)[place]
        text += f", allowed is a difference of {limit:.3g}"
    return text
