"""How far the results of two backends may be apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from burn.dtype import DType, bfloat16, float16, float32, float64
from burn.testing.op_samples import Array

__all__ = ["ELEMENTWISE", "Comparison", "compare", "difference"]

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


@dataclass(frozen=True)
class Comparison:
    """A result beside what it should be.

    Attributes
    ----------
    text : str
        The first element that is wrong, or what is wrong with the shape; "" if all is well.
    worst : float or None
        The largest difference of finite numbers, as a fraction of what is allowed for that element.
        None where results must be equal.
    index : tuple of int or None
        Index of the first wrong element.
    expected : array or None
        What should be there, without axes.
    allowed : float or None
        How far from it the result may be; None where it must be equal.
    """

    text: str = ""
    worst: float | None = None
    index: tuple[int, ...] | None = None
    expected: Array | None = None
    allowed: float | None = None


def difference(
    actual: Array,
    expected: Any,
    dtype: DType,
    *,
    exact: bool = False,
    terms: tuple[Any, Any] | None = None,
) -> str:
    """Say where a result is too far from what it should be; see `compare`.

    Returns
    -------
    str
        The first wrong element, or "" if all are near enough.
    """
    return compare(actual, expected, dtype, exact=exact, terms=terms).text


def compare(
    actual: Array,
    expected: Any,
    dtype: DType,
    *,
    exact: bool = False,
    signed_zeros: bool = False,
    terms: tuple[Any, Any] | None = None,
    magnitude: Any = 0.0,
) -> Comparison:
    """Compare a result with what it should be. NaN equals NaN.

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
    signed_zeros : bool
        Whether a real zero must have the sign of the expected one.
    terms : tuple, optional
        For contractions and sums: how many terms were added up, and the sum of their magnitudes.
    magnitude : array or float
        For what is computed in several steps, without `terms`: the largest magnitude of what is
        rounded on the way to each element.
    """
    expected = np.asarray(expected)
    if actual.shape != expected.shape:
        return Comparison(f"shape {actual.shape} where {expected.shape} was expected")
    with np.errstate(all="ignore"):
        rounded = expected.astype(dtype.numpy)
        if not (dtype.is_float or dtype.is_complex):
            return _found(actual != rounded, actual, rounded)
        wide = np.complex128 if dtype.is_complex else np.float64
        x, y = actual.astype(wide), rounded.astype(wide)
        same = _same(x, y)
        if exact:
            return _found(~(same & _same_signs(x, y)), actual, rounded)
        part = dtype.component
        if terms is None:
            relative, absolute = ELEMENTWISE[part]
            size = np.maximum(np.maximum(np.abs(x), np.abs(y)), magnitude)
            allowed = np.maximum(absolute, relative * size)
        else:
            y = expected.astype(wide)
            allowed = _allowed_sum(y, part, *terms)
        finite = np.isfinite(x) & np.isfinite(y)
        error = np.abs(x - y)
        near = same | (finite & (error <= allowed))
        if signed_zeros and not dtype.is_complex:
            near &= (x != 0.0) | (y != 0.0) | _same_signs(x, y)
        ratio = np.where(finite & ~same, error / allowed, 0.0)
        worst = float(ratio.max()) if ratio.size else 0.0
    return _found(~near, actual, expected, allowed, worst)


def _same(x: Array, y: Array) -> Array:
    """Whether numbers are equal, or both NaN; complex ones by their parts."""
    if np.iscomplexobj(x):
        return np.asarray(_same(x.real, y.real) & _same(x.imag, y.imag))
    return np.asarray((x == y) | (np.isnan(x) & np.isnan(y)))


def _same_signs(x: Array, y: Array) -> Array:
    """Whether numbers have one sign, zeros too; complex ones by their parts."""
    if np.iscomplexobj(x):
        return np.asarray(_same_signs(x.real, y.real) & _same_signs(x.imag, y.imag))
    return np.asarray((np.signbit(x) == np.signbit(y)) | np.isnan(x))


def _allowed_sum(expected: Array, dtype: DType, count: Any, magnitude: Any) -> Any:
    """``4 eps sqrt(n) sum |a b|`` of the dtype of accumulation, and a rounding to the result."""
    accumulated = float32 if dtype.itemsize < float32.itemsize else dtype
    error = 4.0 * _EPSILON[accumulated] * np.sqrt(count) * magnitude
    rounding = 0.5 * np.maximum(_EPSILON[dtype] * np.abs(expected), _SMALLEST[dtype])
    return error + rounding


def _found(
    wrong: Array, actual: Array, expected: Array, allowed: Any = None, worst: float | None = None
) -> Comparison:
    if not wrong.any():
        return Comparison(worst=worst)
    index = tuple(int(axis[0]) for axis in np.nonzero(wrong)) if wrong.ndim else ()
    text = (
        f"{int(wrong.sum())} of {wrong.size} elements differ, first at {index}: "
        f"got {actual[index]!s}, expected {expected[index]!s}"
    )
    limit = None
    if allowed is not None:
        limit = float(np.broadcast_to(allowed, wrong.shape)[index])
        text += f", allowed is a difference of {limit:.3g}"
    return Comparison(text, worst, index, np.asarray(expected[index]), limit)
