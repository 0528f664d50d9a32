"""Sums, spread and extrema (chapter "Statistical Functions" of the standard, and its like)."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from burn.docstrings import documented_as
from burn.dtype import DType, Kind, int64, uint32, uint64
from burn.functions import calls
from burn.functions._spread import accumulation_dtype, finite_correction, given_mean, root
from burn.functions.common import Axis, DTypeLike
from burn.functions.elementwise import abs
from burn.functions.normalize import (
    as_dtype,
    as_flag,
    as_float,
    normalize_axes,
    reduction,
)
from burn.functions.quantization import numbers_of

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "max",
    "max_abs",
    "mean",
    "min",
    "prod",
    "ptp",
    "std",
    "sum",
    "var",
    "var_mean",
]


@reduction
def sum(
    x: Tensor, /, *, axis: Axis = None, dtype: DTypeLike | None = None, keepdims: bool = False
) -> Tensor:
    """Sum of the elements.

    Parameters
    ----------
    x : Tensor
        Tensor of numbers; booleans count as 0 and 1.
    axis : int, tuple of int or None
        Axes to reduce; None for all.
    dtype : DType, optional
        Dtype of the result. By default that of `x` for floats, and at least the device's default
        integer dtype for integers.
    keepdims : bool
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The sums, without the summed axes; the sum of no elements is 0.

    Raises
    ------
    AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> import burn
    >>> burn.sum(burn.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu"), axis=0).tolist()
    [4.0, 6.0]
    """
    axes = normalize_axes(x, axis, "sum")
    if keepdims.__class__ is not bool:
        keepdims = as_flag(keepdims, "keepdims", "sum")
    own = x.tensor_type.dtype
    if dtype is None and own.is_float:
        return calls.sum(x, axis=axes, keepdims=keepdims, dtype=own)
    total = total_dtype(x, dtype, "sum")
    return calls.sum(as_numeric(x), axis=axes, keepdims=keepdims, dtype=total)


@reduction
@documented_as(sum)
def prod(
    x: Tensor, /, *, axis: Axis = None, dtype: DTypeLike | None = None, keepdims: bool = False
) -> Tensor:
    """Product of the elements.

    The parameters are those of `sum`.

    Returns
    -------
    Tensor
        The products, without the reduced axes; the product of no elements is 1.

    Examples
    --------
    >>> import burn
    >>> burn.prod(burn.asarray([2, 3, 4], device="cpu")).item()
    24
    """
    axes = normalize_axes(x, axis, "prod")
    if keepdims.__class__ is not bool:
        keepdims = as_flag(keepdims, "keepdims", "prod")
    total = total_dtype(x, dtype, "prod")
    return calls.prod(as_numeric(x), axis=axes, keepdims=keepdims, dtype=total)


@reduction
@documented_as(sum)
def mean(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Arithmetic mean of the elements.

    The other parameters are those of `sum`.

    Parameters
    ----------
    x : Tensor
        Tensor of numbers; integers give the default float dtype of the device.

    Returns
    -------
    Tensor
        The means, without the reduced axes; the mean of no elements is NaN.

    Examples
    --------
    >>> import burn
    >>> burn.mean(burn.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu"), axis=1).tolist()
    [1.5, 3.5]
    """
    axes = normalize_axes(x, axis, "mean")
    if keepdims.__class__ is not bool:
        keepdims = as_flag(keepdims, "keepdims", "mean")
    return calls.mean(x, axis=axes, keepdims=keepdims)


@reduction
def max(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Largest element. NaN propagates.

    Parameters
    ----------
    x : Tensor
        Real tensor.
    axis : int, tuple of int or None
        Axes to reduce; None for all.
    keepdims : bool
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The largest elements, in the dtype of `x`, without the searched axes. Equal elements share
        the gradient.

    Raises
    ------
    AxisError
        If `x` has no such axis.
    ShapeError
        If there are no elements to choose from.

    Examples
    --------
    >>> import burn
    >>> burn.max(burn.asarray([[1.0, 5.0], [3.0, 4.0]], device="cpu"), axis=0).tolist()
    [3.0, 5.0]
    """
    axes = normalize_axes(x, axis, "max")
    if keepdims.__class__ is not bool:
        keepdims = as_flag(keepdims, "keepdims", "max")
    return calls.max(x, axis=axes, keepdims=keepdims)


@reduction
@documented_as(max)
def min(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Smallest element. NaN propagates.

    The parameters are those of `max`.

    Returns
    -------
    Tensor
        The smallest elements, in the dtype of `x`, without the searched axes. Equal elements share
        the gradient.

    Examples
    --------
    >>> import burn
    >>> burn.min(burn.asarray([[1.0, 5.0], [3.0, 4.0]], device="cpu"), axis=0).tolist()
    [1.0, 4.0]
    """
    axes = normalize_axes(x, axis, "min")
    if keepdims.__class__ is not bool:
        keepdims = as_flag(keepdims, "keepdims", "min")
    return calls.min(x, axis=axes, keepdims=keepdims)


@reduction
@documented_as(max)
def max_abs(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Largest magnitude of the elements. NaN propagates.

    The other parameters are those of `max`.

    Parameters
    ----------
    x : Tensor
        Tensor of numbers.

    Returns
    -------
    Tensor
        The largest magnitudes, without the searched axes.

    Examples
    --------
    >>> import burn
    >>> burn.max_abs(burn.asarray([1.0, -5.0, 3.0], device="cpu")).item()
    5.0
    """
    axes = normalize_axes(x, axis, "max_abs")
    if keepdims.__class__ is not bool:
        keepdims = as_flag(keepdims, "keepdims", "max_abs")
    return calls.max(abs(x), axis=axes, keepdims=keepdims)


@reduction
def var(
    x: Tensor,
    /,
    *,
    axis: Axis = None,
    correction: float = 0.0,
    keepdims: bool = False,
    mean: Tensor | None = None,
) -> Tensor:
    """Variance: the sum of squared distances from the mean, over ``n - correction``.

    Parameters
    ----------
    x : Tensor
        Real tensor; integers give the default float dtype.
    axis : int, tuple of int or None
        Axes to reduce; None for all.
    correction : float
        What the number of elements is reduced by; 1 for an unbiased estimate (Bessel).
    keepdims : bool
        Whether the reduced axes stay, with length 1.
    mean : Tensor, optional
        The mean to measure from, as `mean` gives it with ``keepdims=True``; it has a gradient too.

    Returns
    -------
    Tensor
        The variances, without the reduced axes.

    Raises
    ------
    AxisError
        If `x` has no such axis.
    ShapeError
        If the mean does not broadcast to the shape of `x`.

    Examples
    --------
    >>> import burn
    >>> burn.var(burn.asarray([1.0, 2.0, 3.0], device="cpu"), correction=1).item()
    1.0
    """
    if mean is None:
        return _variance_or_deviation(calls.var, x, axis, correction, keepdims, "var")
    return _variance_around(x, mean, axis, correction, keepdims, "var")


@reduction
@documented_as(var)
def std(
    x: Tensor,
    /,
    *,
    axis: Axis = None,
    correction: float = 0.0,
    keepdims: bool = False,
    mean: Tensor | None = None,
) -> Tensor:
    """Standard deviation, the square root of `var`. Where it is 0, its gradient is 0 too.

    The other parameters are those of `var`.

    Parameters
    ----------
    correction : float
        What the number of elements is reduced by; 1 for an unbiased variance (Bessel).

    Returns
    -------
    Tensor
        The standard deviations, without the reduced axes.

    Examples
    --------
    >>> import burn
    >>> burn.std(burn.asarray([1.0, 5.0], device="cpu")).item()
    2.0
    """
    if mean is None:
        return _variance_or_deviation(calls.std, x, axis, correction, keepdims, "std")
    return root(_variance_around(x, mean, axis, correction, keepdims, "std"))


class VarianceAndMean(NamedTuple):
    """Variance and mean over the same axes."""

    variance: Any
    mean: Any


@reduction
@documented_as(sum)
def var_mean(
    x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False
) -> VarianceAndMean:
    """Variance and mean over the same axes.

    The other parameters are those of `sum`.

    Parameters
    ----------
    x : Tensor
        Real tensor; integers give the default float dtype.
    correction : float
        What the number of elements is reduced by in the variance; 1 for an unbiased estimate.

    Returns
    -------
    variance : Tensor
        What `var` gives.
    mean : Tensor
        What `mean` gives.

    Examples
    --------
    >>> import burn
    >>> variance, mean = burn.var_mean(burn.asarray([1.0, 5.0], device="cpu"))
    >>> variance.item(), mean.item()
    (4.0, 3.0)
    """
    variance = _variance_or_deviation(calls.var, x, axis, correction, keepdims, "var_mean")
    return VarianceAndMean(variance, mean(x, axis=axis, keepdims=keepdims))


@reduction
@documented_as(max)
def ptp(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Distance from the smallest element to the largest ("peak to peak"). NaN propagates.

    The parameters are those of `max`.

    Returns
    -------
    Tensor
        ``max - min``, in the dtype of `x`, without the searched axes. Integers wrap, as in NumPy.

    Examples
    --------
    >>> import burn
    >>> burn.ptp(burn.asarray([[1.0, 5.0], [3.0, 4.0]], device="cpu"), axis=1).tolist()
    [4.0, 1.0]
    """
    axes = normalize_axes(x, axis, "ptp")
    keepdims = as_flag(keepdims, "keepdims", "ptp")
    x = numbers_of(x)
    return max(x, axis=axes, keepdims=keepdims) - min(x, axis=axes, keepdims=keepdims)


def as_numeric(x: Tensor) -> Tensor:
    """Booleans as 0 and 1."""
    return x.astype(x.device.settings.int_dtype) if x.dtype.is_bool else x


def total_dtype(x: Tensor, dtype: DTypeLike | None, operation: str) -> DType:
    """Dtype of a sum or product: the given one, or one that holds more than single elements."""
    if dtype is not None:
        return as_dtype(dtype, operation)
    own = x.dtype
    if own.is_float:
        return own
    default = x.device.settings.int_dtype
    if own.itemsize >= default.itemsize:
        return own
    if own.kind is Kind.UINT:
        return uint64 if default is int64 else uint32
    return default


def _variance_or_deviation(
    function: Callable[..., Tensor],
    x: Tensor,
    axis: Axis,
    correction: float,
    keepdims: bool,
    operation: str,
) -> Tensor:
    axes = normalize_axes(x, axis, operation)
    keepdims = as_flag(keepdims, "keepdims", operation)
    correction = finite_correction(correction, operation)
    return function(x, axis=axes, keepdims=keepdims, correction=correction)


def _variance_around(
    x: Tensor, mean: Tensor, axis: Axis, correction: float, keepdims: bool, operation: str
) -> Tensor:
    """The sum of squared distances from a given mean, over ``n - correction``."""
    axes = normalize_axes(x, axis, operation)
    keepdims = as_flag(keepdims, "keepdims", operation)
    correction = finite_correction(correction, operation)
    x = numbers_of(as_float(x, operation))
    wide = accumulation_dtype(x)
    distance = x.astype(wide) - given_mean(mean, x.shape, operation).astype(wide)
    count = math.prod([x.shape[number] for number in axes])
    total = sum(distance * distance, axis=axes, keepdims=keepdims)
    return (total / builtins.max(count - correction, 0.0)).astype(x.dtype)
