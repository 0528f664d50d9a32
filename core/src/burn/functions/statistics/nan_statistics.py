"""Sums, spread and extrema of the elements that are not NaN."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from burn.backend.invalid_values import InvalidValue
from burn.docstrings import documented_as
from burn.functions._spread import accumulation_dtype, finite_correction, given_mean, root
from burn.functions._value_checks import require
from burn.functions.common import Axis, DTypeLike
from burn.functions.elementwise import isnan, logical_not, maximum
from burn.functions.normalize import (
    as_flag,
    as_float,
    check_tensor,
    normalize_axes,
    normalize_axis,
    reduction,
)
from burn.functions.quantization import numbers_of
from burn.functions.searching import argmax, count_nonzero, where
from burn.functions.statistical import max, min, prod, sum, var
from burn.functions.utility import all

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "nanargmax",
    "nanargmin",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
]


@reduction
@documented_as(sum)
def nansum(
    x: Tensor, /, *, axis: Axis = None, dtype: DTypeLike | None = None, keepdims: bool = False
) -> Tensor:
    """Sum of the elements that are not NaN.

    The other parameters are those of `sum`.

    Parameters
    ----------
    dtype : DType, optional
        Dtype of the sum; see `sum`.

    Returns
    -------
    Tensor
        The sums, without the summed axes; of NaN alone 0.

    Examples
    --------
    >>> import burn
    >>> burn.nansum(burn.asarray([1.0, burn.nan, 2.0], device="cpu")).item()
    3.0
    """
    return sum(_with_nan_as(x, 0, "nansum"), axis=axis, dtype=dtype, keepdims=keepdims)


@reduction
@documented_as(nansum)
def nanprod(
    x: Tensor, /, *, axis: Axis = None, dtype: DTypeLike | None = None, keepdims: bool = False
) -> Tensor:
    """Product of the elements that are not NaN.

    The other parameters are those of `nansum`.

    Parameters
    ----------
    dtype : DType, optional
        Dtype of the product; see `prod`.

    Returns
    -------
    Tensor
        The products, without the reduced axes; of NaN alone 1.

    Examples
    --------
    >>> import burn
    >>> burn.nanprod(burn.asarray([3.0, burn.nan, 2.0], device="cpu")).item()
    6.0
    """
    return prod(_with_nan_as(x, 1, "nanprod"), axis=axis, dtype=dtype, keepdims=keepdims)


@reduction
@documented_as(max)
def nanmax(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Largest element that is not NaN.

    The parameters are those of `max`.

    Returns
    -------
    Tensor
        The largest elements, in the dtype of `x`, without the searched axes; of NaN alone NaN.
        Equal elements share the gradient.

    Examples
    --------
    >>> import burn
    >>> burn.nanmax(burn.asarray([1.0, burn.nan, 2.0], device="cpu")).item()
    2.0
    """
    return _extremum(x, max, -math.inf, axis, "nanmax", keepdims=keepdims)


@reduction
@documented_as(nanmax)
def nanmin(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Smallest element that is not NaN.

    The parameters are those of `nanmax`.

    Returns
    -------
    Tensor
        The smallest elements, in the dtype of `x`, without the searched axes; of NaN alone NaN.
        Equal elements share the gradient.

    Examples
    --------
    >>> import burn
    >>> burn.nanmin(burn.asarray([1.0, burn.nan, 2.0], device="cpu")).item()
    1.0
    """
    return _extremum(x, min, math.inf, axis, "nanmin", keepdims=keepdims)


@reduction
@documented_as(argmax)
def nanargmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Index of the largest element that is not NaN, the first of equals.

    The parameters are those of `argmax`.

    Raises
    ------
    OutOfRangeError
        If all elements of a slice are NaN; on an asynchronous device at the next read.

    Examples
    --------
    >>> import burn
    >>> burn.nanargmax(burn.asarray([1.0, burn.nan, 2.0], device="cpu")).item()
    2
    """
    return _index(x, axis, "nanargmax", largest=True, keepdims=keepdims)


@reduction
@documented_as(nanargmax)
def nanargmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Index of the smallest element that is not NaN, the first of equals.

    The parameters are those of `nanargmax`.

    Examples
    --------
    >>> import burn
    >>> burn.nanargmin(burn.asarray([burn.nan, 3.0, 2.0], device="cpu")).item()
    2
    """
    return _index(x, axis, "nanargmin", largest=False, keepdims=keepdims)


@reduction
@documented_as(nansum)
def nanmean(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Arithmetic mean of the elements that are not NaN.

    The other parameters are those of `nansum`.

    Parameters
    ----------
    x : Tensor
        Tensor of numbers; integers give the default float dtype of the device.

    Returns
    -------
    Tensor
        The means, without the reduced axes; of NaN alone, and of no elements, NaN.

    Examples
    --------
    >>> import burn
    >>> burn.nanmean(burn.asarray([1.0, burn.nan, 2.0], device="cpu")).item()
    1.5
    """
    axes = normalize_axes(x, axis, "nanmean")
    keepdims = as_flag(keepdims, "keepdims", "nanmean")
    x = numbers_of(as_float(x, "nanmean"))
    return _mean(x, axes, keepdims=keepdims).astype(x.dtype)


@reduction
@documented_as(var)
def nanvar(
    x: Tensor,
    /,
    *,
    axis: Axis = None,
    correction: float = 0.0,
    keepdims: bool = False,
    mean: Tensor | None = None,
) -> Tensor:
    """Variance of the elements that are not NaN.

    The other parameters are those of `var`.

    Parameters
    ----------
    mean : Tensor, optional
        The mean to measure from, as `nanmean` gives it with ``keepdims=True``.

    Returns
    -------
    Tensor
        The variances, without the reduced axes; of NaN alone, and of no elements, NaN.

    Examples
    --------
    >>> import burn
    >>> burn.nanvar(burn.asarray([1.0, burn.nan, 5.0], device="cpu")).item()
    4.0
    """
    return _variance(x, axis, correction, mean, "nanvar", keepdims=keepdims)


@reduction
@documented_as(nanvar)
def nanstd(
    x: Tensor,
    /,
    *,
    axis: Axis = None,
    correction: float = 0.0,
    keepdims: bool = False,
    mean: Tensor | None = None,
) -> Tensor:
    """Standard deviation of the elements that are not NaN. Where it is 0, its gradient is 0 too.

    The other parameters are those of `nanvar`.

    Parameters
    ----------
    correction : float
        What the number of elements is reduced by; 1 for an unbiased variance (Bessel).

    Returns
    -------
    Tensor
        The standard deviations, without the reduced axes; of NaN alone, and of no elements, NaN.

    Examples
    --------
    >>> import burn
    >>> burn.nanstd(burn.asarray([1.0, burn.nan, 5.0], device="cpu")).item()
    2.0
    """
    return root(_variance(x, axis, correction, mean, "nanstd", keepdims=keepdims))


def _has_nan(x: Tensor) -> bool:
    """Whether the dtype has NaN."""
    return x.dtype.is_float or x.dtype.is_complex


def _with_nan_as(x: Tensor, value: float, operation: str) -> Tensor:
    check_tensor(x, "x", operation)
    x = numbers_of(x)
    return where(isnan(x), value, x) if _has_nan(x) else x


def _extremum(
    x: Tensor,
    function: Callable[..., Tensor],
    least: float,
    axis: Axis,
    operation: str,
    *,
    keepdims: bool,
) -> Tensor:
    axes = normalize_axes(x, axis, operation)
    keepdims = as_flag(keepdims, "keepdims", operation)
    x = numbers_of(x)
    if not x.dtype.is_float:
        return function(x, axis=axes, keepdims=keepdims)
    result = function(_with_nan_as(x, least, operation), axis=axes, keepdims=keepdims)
    return where(all(isnan(x), axis=axes, keepdims=keepdims), math.nan, result)


def _index(x: Tensor, axis: int | None, operation: str, *, largest: bool, keepdims: bool) -> Tensor:
    check_tensor(x, "x", operation)
    axes = None if axis is None else normalize_axis(x, axis, operation)
    extremum = (nanmax if largest else nanmin)(numbers_of(x), axis=axes, keepdims=True)
    found = (x == extremum).astype(x.device.settings.int_dtype)
    fault = require(logical_not(isnan(extremum)), InvalidValue.ALL_NAN)
    return argmax(found, axis=axis, keepdims=keepdims) + fault.reshape(())


def _mean(x: Tensor, axes: tuple[int, ...], *, keepdims: bool) -> Tensor:
    wide = accumulation_dtype(x)
    total = nansum(x, axis=axes, dtype=wide, keepdims=keepdims)
    return total / _count(x, axes, keepdims=keepdims).astype(wide)


def _count(x: Tensor, axes: tuple[int, ...], *, keepdims: bool) -> Tensor:
    return count_nonzero(~isnan(x), axis=axes, keepdims=keepdims)


def _variance(
    x: Tensor,
    axis: Axis,
    correction: float,
    mean: Tensor | None,
    operation: str,
    *,
    keepdims: bool,
) -> Tensor:
    axes = normalize_axes(x, axis, operation)
    keepdims = as_flag(keepdims, "keepdims", operation)
    correction = finite_correction(correction, operation)
    x = numbers_of(as_float(x, operation))
    center = _mean(x, axes, keepdims=True) if mean is None else given_mean(mean, x.shape, operation)
    wide = accumulation_dtype(x)
    distance = where(isnan(x), 0.0, x.astype(wide) - center.astype(wide))
    count = _count(x, axes, keepdims=keepdims).astype(wide)
    total = sum(distance * distance, axis=axes, keepdims=keepdims)
    return (total / maximum(count - correction, 0.0)).astype(x.dtype)
