"""Sums, spread and extrema (chapter "Statistical Functions" of the standard, and its like)."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from burn.dispatch import unary, unary_by_dict
from burn.dtype import DType, Kind, int64, uint32, uint64
from burn.errors import AxisError, ShapeError
from burn.functions.common import Axis, DTypeLike, dispatch
from burn.functions.creation import full
from burn.functions.elementwise import abs, isnan
from burn.functions.indexing import take_along_axis
from burn.functions.manipulation import concat
from burn.functions.normalize import (
    as_dtype,
    as_flag,
    normalize_axes,
    normalize_axis,
    rank_of,
    reduction,
)
from burn.functions.searching import ValuesAndIndices, argmax, where
from burn.functions.sorting import argsort, sort
from burn.functions.views import independent
from burn.ops.arguments import real_number

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "cov",
    "cummax",
    "cummin",
    "cumulative_prod",
    "cumulative_sum",
    "max",
    "max_abs",
    "mean",
    "median",
    "median_with_indices",
    "min",
    "prod",
    "std",
    "sum",
    "var",
    "var_mean",
]

_sum = unary(dispatch, "sum")
_sum_of_floats = unary_by_dict(dispatch, "sum")  # it keeps the dtype
_prod = unary(dispatch, "prod")
_mean = unary(dispatch, "mean")
_max = unary_by_dict(dispatch, "max")
_min = unary_by_dict(dispatch, "min")
_cumsum = unary(dispatch, "cumsum")
_cumprod = unary(dispatch, "cumprod")
_cummax = unary(dispatch, "cummax")
_cummin = unary(dispatch, "cummin")
_var = unary(dispatch, "var")
_std = unary(dispatch, "std")


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
        Axes to sum over; None for all.
    dtype : DType, optional
        Dtype of the sum. By default that of `x` for floats, and at least the device's default
        integer dtype for integers.
    keepdims : bool
        Whether the summed axes stay, with length 1.

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
        return _sum_of_floats(x, {"axis": axes, "keepdims": keepdims, "dtype": own})
    total = _total_dtype(x, dtype, "sum")
    return _sum(_numeric(x), axis=axes, keepdims=keepdims, dtype=total)


@reduction
def prod(
    x: Tensor, /, *, axis: Axis = None, dtype: DTypeLike | None = None, keepdims: bool = False
) -> Tensor:
    """Product of the elements.

    Parameters
    ----------
    x : Tensor
        Tensor of numbers; booleans count as 0 and 1.
    axis : int, tuple of int or None
        Axes to multiply over; None for all.
    dtype : DType, optional
        Dtype of the product. By default that of `x` for floats, and at least the device's default
        integer dtype for integers.
    keepdims : bool
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The products, without the reduced axes; the product of no elements is 1.

    Raises
    ------
    AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> import burn
    >>> burn.prod(burn.asarray([2, 3, 4], device="cpu")).item()
    24
    """
    axes = normalize_axes(x, axis, "prod")
    if keepdims.__class__ is not bool:
        keepdims = as_flag(keepdims, "keepdims", "prod")
    total = _total_dtype(x, dtype, "prod")
    return _prod(_numeric(x), axis=axes, keepdims=keepdims, dtype=total)


@reduction
def mean(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Arithmetic mean of the elements.

    Parameters
    ----------
    x : Tensor
        Tensor of numbers; integers give the default float dtype of the device.
    axis : int, tuple of int or None
        Axes to average over; None for all.
    keepdims : bool
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The means, without the reduced axes; the mean of no elements is NaN.

    Raises
    ------
    AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> import burn
    >>> burn.mean(burn.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu"), axis=1).tolist()
    [1.5, 3.5]
    """
    axes = normalize_axes(x, axis, "mean")
    if keepdims.__class__ is not bool:
        keepdims = as_flag(keepdims, "keepdims", "mean")
    return _mean(x, axis=axes, keepdims=keepdims)


@reduction
def max(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Largest element. NaN propagates.

    Parameters
    ----------
    x : Tensor
        Real tensor.
    axis : int, tuple of int or None
        Axes to search; None for all.
    keepdims : bool
        Whether the searched axes stay, with length 1.

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
    return _max(x, {"axis": axes, "keepdims": keepdims})


@reduction
def min(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Smallest element. NaN propagates.

    Parameters
    ----------
    x : Tensor
        Real tensor.
    axis : int, tuple of int or None
        Axes to search; None for all.
    keepdims : bool
        Whether the searched axes stay, with length 1.

    Returns
    -------
    Tensor
        The smallest elements, in the dtype of `x`, without the searched axes. Equal elements share
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
    >>> burn.min(burn.asarray([[1.0, 5.0], [3.0, 4.0]], device="cpu"), axis=0).tolist()
    [1.0, 4.0]
    """
    axes = normalize_axes(x, axis, "min")
    if keepdims.__class__ is not bool:
        keepdims = as_flag(keepdims, "keepdims", "min")
    return _min(x, {"axis": axes, "keepdims": keepdims})


@reduction
def max_abs(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Largest magnitude of the elements. NaN propagates.

    Parameters
    ----------
    x : Tensor
        Tensor of numbers.
    axis : int, tuple of int or None
        Axes to search; None for all.
    keepdims : bool
        Whether the searched axes stay, with length 1.

    Returns
    -------
    Tensor
        The largest magnitudes, without the searched axes.

    Raises
    ------
    AxisError
        If `x` has no such axis.
    ShapeError
        If there are no elements to choose from.

    Examples
    --------
    >>> import burn
    >>> burn.max_abs(burn.asarray([1.0, -5.0, 3.0], device="cpu")).item()
    5.0
    """
    axes = normalize_axes(x, axis, "max_abs")
    if keepdims.__class__ is not bool:
        keepdims = as_flag(keepdims, "keepdims", "max_abs")
    return _max(abs(x), {"axis": axes, "keepdims": keepdims})


@reduction
def var(
    x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False
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

    Returns
    -------
    Tensor
        The variances, without the reduced axes.

    Raises
    ------
    AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> import burn
    >>> burn.var(burn.asarray([1.0, 2.0, 3.0], device="cpu"), correction=1).item()
    1.0
    """
    return _spread(_var, x, axis, correction, keepdims, "var")


@reduction
def std(
    x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """Standard deviation, the square root of `var`. Where it is 0, its gradient is 0 too.

    Parameters
    ----------
    x : Tensor
        Real tensor; integers give the default float dtype.
    axis : int, tuple of int or None
        Axes to reduce; None for all.
    correction : float
        What the number of elements is reduced by; 1 for an unbiased variance (Bessel).
    keepdims : bool
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The standard deviations, without the reduced axes.

    Raises
    ------
    AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> import burn
    >>> burn.std(burn.asarray([1.0, 5.0], device="cpu")).item()
    2.0
    """
    return _spread(_std, x, axis, correction, keepdims, "std")


class VarianceAndMean(NamedTuple):
    """Variance and mean over the same axes."""

    variance: Any
    mean: Any


@reduction
def var_mean(
    x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False
) -> VarianceAndMean:
    """Variance and mean over the same axes.

    Parameters
    ----------
    x : Tensor
        Real tensor; integers give the default float dtype.
    axis : int, tuple of int or None
        Axes to reduce; None for all.
    correction : float
        What the number of elements is reduced by in the variance; 1 for an unbiased estimate.
    keepdims : bool
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    variance : Tensor
        What `var` gives.
    mean : Tensor
        What `mean` gives.

    Raises
    ------
    AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> import burn
    >>> variance, mean = burn.var_mean(burn.asarray([1.0, 5.0], device="cpu"))
    >>> variance.item(), mean.item()
    (4.0, 3.0)
    """
    variance = _spread(_var, x, axis, correction, keepdims, "var_mean")
    return VarianceAndMean(variance, mean(x, axis=axis, keepdims=keepdims))


def cov(x: Tensor, /, *, correction: float = 1.0, rowvar: bool = True) -> Tensor:
    """Covariance of variables over observations.

    Parameters
    ----------
    x : Tensor, shape (variables, observations)
        Real tensor; a vector has the observations of one variable.
    correction : float
        What the number of observations is reduced by in the divisor.
    rowvar : bool
        Whether the variables are the rows; otherwise they are the columns.

    Returns
    -------
    Tensor, shape (variables, variables)
        0-d for one variable, like NumPy's.

    Raises
    ------
    ShapeError
        If `x` is neither a vector nor a matrix.

    Examples
    --------
    >>> import burn
    >>> burn.cov(burn.asarray([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]], device="cpu")).tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """
    rank = rank_of(x, "cov")
    if rank not in (1, 2):
        raise ShapeError(f"x must be a vector or a matrix, not of shape {x.shape}", operation="cov")
    in_rows = as_flag(rowvar, "rowvar", "cov")
    rows = x.reshape((1, -1)) if rank == 1 else x if in_rows else x.permute_dims((1, 0))
    if not rows.dtype.is_float:
        rows = rows.astype(x.device.settings.float_dtype)
    distance = rows - mean(rows, axis=1, keepdims=True)
    divisor = builtins.max(rows.shape[1] - _finite(correction, "cov"), 0.0)
    result = distance @ distance.permute_dims((1, 0)) / divisor
    return result.reshape((), copy=True) if result.shape == (1, 1) else result


@reduction
def median(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Middle of the elements in sorted order, of an even number the mean of the middle two.

    Parameters
    ----------
    x : Tensor
        Real tensor; integers give the default float dtype.
    axis : int, tuple of int or None
        Axes to reduce; None for all.
    keepdims : bool
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The medians, without the reduced axes. NaN propagates, and the median of no elements is NaN.

    Raises
    ------
    AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> import burn
    >>> burn.median(burn.asarray([5, 1, 2, 8], device="cpu")).item()
    3.5
    """
    axes = normalize_axes(x, axis, "median")
    keepdims = as_flag(keepdims, "keepdims", "median")
    x = x if x.dtype.is_float else x.astype(x.device.settings.float_dtype)
    kept = [number for number in range(x.ndim) if number not in axes]
    lengths = tuple([x.shape[number] for number in kept])
    count = math.prod([x.shape[number] for number in axes])
    rows = sort(x.permute_dims((*kept, *axes)).reshape((*lengths, count)))
    result = mean(rows[..., builtins.max(count - 1, 0) // 2 : count // 2 + 1], axis=-1)
    if count:
        largest = rows[..., -1]  # NaN sorts last
        result = where(isnan(largest), largest, result)
    if not keepdims:
        return result
    shape = tuple([1 if number in axes else length for number, length in enumerate(x.shape)])
    return result.reshape(shape, copy=True)


@reduction
def median_with_indices(x: Tensor, /, *, axis: int, keepdims: bool = False) -> ValuesAndIndices:
    """Median along an axis, and its index; of an even number of elements the lower middle one.

    Parameters
    ----------
    x : Tensor
        Real tensor. NaN propagates.
    axis : int
        The axis to reduce.
    keepdims : bool
        Whether the reduced axis stays, with length 1.

    Returns
    -------
    values : Tensor
        The medians, in the dtype of `x`, without the reduced axis.
    indices : Tensor
        Their indices along the axis, in the device's default integer dtype; of equal elements the
        one that a stable sort brings to the middle.

    Raises
    ------
    AxisError
        If `x` has no such axis.
    ShapeError
        If there are no elements to choose from.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([5, 1, 2, 8], device="cpu")
    >>> values, indices = burn.median_with_indices(x, axis=0)
    >>> values.item(), indices.item()
    (2, 2)
    """
    number = normalize_axis(x, axis, "median_with_indices")
    keepdims = as_flag(keepdims, "keepdims", "median_with_indices")
    count = x.shape[number]
    if not count:
        raise ShapeError(
            f"there is no median of no elements (axis {number} of {x.shape})",
            operation="median_with_indices",
        )
    middle = slice((count - 1) // 2, (count + 1) // 2)
    indices = argsort(x, axis=number)[(slice(None),) * number + (middle,)]
    if x.dtype.is_float:
        largest = argmax(x, axis=number, keepdims=True)
        is_nan = isnan(take_along_axis(x, largest, axis=number))
        indices = where(is_nan, largest, indices)
    values = take_along_axis(x, indices, axis=number)
    if not keepdims:
        values, indices = values.squeeze(number), indices.squeeze(number)
    return ValuesAndIndices(independent(values), independent(indices))


def cumulative_sum(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Tensor:
    """Sums of the elements up to each one along an axis.

    Parameters
    ----------
    x : Tensor
        Tensor of numbers; booleans count as 0 and 1.
    axis : int, optional
        The axis; a 1-d tensor needs none.
    dtype : DType, optional
        Dtype of the sums; the default is that of `sum`.
    include_initial : bool
        Whether the sum of no elements, 0, comes first.

    Returns
    -------
    Tensor
        In the shape of `x`; with `include_initial`, the axis is longer by 1.

    Raises
    ------
    AxisError
        If `x` has no such axis, or several axes and none is given.

    Examples
    --------
    >>> import burn
    >>> burn.cumulative_sum(burn.asarray([1, 2, 3], device="cpu"), include_initial=True).tolist()
    [0, 1, 3, 6]
    """
    return _scan(_cumsum, x, axis, dtype, include_initial, 0, "cumulative_sum")


def cumulative_prod(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Tensor:
    """Products of the elements up to each one along an axis.

    Parameters
    ----------
    x : Tensor
        Tensor of numbers; booleans count as 0 and 1.
    axis : int, optional
        The axis; a 1-d tensor needs none.
    dtype : DType, optional
        Dtype of the products; the default is that of `prod`.
    include_initial : bool
        Whether the product of no elements, 1, comes first.

    Returns
    -------
    Tensor
        In the shape of `x`; with `include_initial`, the axis is longer by 1.

    Raises
    ------
    AxisError
        If `x` has no such axis, or several axes and none is given.

    Examples
    --------
    >>> import burn
    >>> burn.cumulative_prod(burn.asarray([2, 3, 4], device="cpu")).tolist()
    [2, 6, 24]
    """
    return _scan(_cumprod, x, axis, dtype, include_initial, 1, "cumulative_prod")


def cummax(x: Tensor, /, *, axis: int | None = None) -> Tensor:
    """Largest of the elements up to each one along an axis. NaN propagates.

    Parameters
    ----------
    x : Tensor
        Real tensor.
    axis : int, optional
        The axis; a 1-d tensor needs none.

    Returns
    -------
    Tensor
        In the shape and dtype of `x`. The gradient of each element goes to the largest element so
        far, the first of equals.

    Raises
    ------
    AxisError
        If `x` has no such axis, or several axes and none is given.

    Examples
    --------
    >>> import burn
    >>> burn.cummax(burn.asarray([1, 3, 2], device="cpu")).tolist()
    [1, 3, 3]
    """
    return _cummax(x, axis=_scan_axis(x, axis, "cummax"))


def cummin(x: Tensor, /, *, axis: int | None = None) -> Tensor:
    """Smallest of the elements up to each one along an axis. NaN propagates.

    Parameters
    ----------
    x : Tensor
        Real tensor.
    axis : int, optional
        The axis; a 1-d tensor needs none.

    Returns
    -------
    Tensor
        In the shape and dtype of `x`. The gradient of each element goes to the smallest element so
        far, the first of equals.

    Raises
    ------
    AxisError
        If `x` has no such axis, or several axes and none is given.

    Examples
    --------
    >>> import burn
    >>> burn.cummin(burn.asarray([3, 1, 2], device="cpu")).tolist()
    [3, 1, 1]
    """
    return _cummin(x, axis=_scan_axis(x, axis, "cummin"))


def _numeric(x: Tensor) -> Tensor:
    """Booleans as 0 and 1."""
    return x.astype(x.device.settings.int_dtype) if x.dtype.is_bool else x


def _total_dtype(x: Tensor, dtype: DTypeLike | None, operation: str) -> DType:
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


def _spread(
    function: Callable[..., Tensor],
    x: Tensor,
    axis: Axis,
    correction: float,
    keepdims: bool,
    operation: str,
) -> Tensor:
    axes = normalize_axes(x, axis, operation)
    keepdims = as_flag(keepdims, "keepdims", operation)
    return function(x, axis=axes, keepdims=keepdims, correction=_finite(correction, operation))


def _finite(correction: float, operation: str) -> float:
    return real_number(correction, "correction", operation, above=-math.inf, below=math.inf)


def _scan_axis(x: Tensor, axis: int | None, operation: str) -> int:
    """The axis of a scan, counted from the front; a vector has but one."""
    if axis is not None:
        return normalize_axis(x, axis, operation)
    if rank_of(x, operation) != 1:
        raise AxisError(f"a tensor of shape {x.shape} needs an axis", operation=operation)
    return 0


def _scan(
    function: Callable[..., Tensor],
    x: Tensor,
    axis: int | None,
    dtype: DTypeLike | None,
    include_initial: bool,
    initial: int,
    operation: str,
) -> Tensor:
    number = _scan_axis(x, axis, operation)
    include_initial = as_flag(include_initial, "include_initial", operation)
    result = function(_numeric(x).astype(_total_dtype(x, dtype, operation)), axis=number)
    if not include_initial:
        return result
    shape = (*x.shape[:number], 1, *x.shape[number + 1 :])
    first = full(shape, initial, dtype=result.dtype, device=result.device)
    return concat([first, result], axis=number)
