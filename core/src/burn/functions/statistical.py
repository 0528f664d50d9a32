"""Sums, spread and extrema (chapter "Statistical Functions" of the standard, and its like)."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from burn.dispatch import unary
from burn.dtype import DType, Kind, int64, uint32, uint64
from burn.errors import AxisError, ShapeError
from burn.functions import elementwise as elementwise_functions
from burn.functions.common import Axis, DTypeLike, dispatch
from burn.functions.creation import full
from burn.functions.indexing import take_along_axis
from burn.functions.manipulation import concat
from burn.functions.normalize import normalize_axes, normalize_axis, rank_of
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
_prod = unary(dispatch, "prod")
_mean = unary(dispatch, "mean")
_max = unary(dispatch, "max")
_min = unary(dispatch, "min")
_cumsum = unary(dispatch, "cumsum")
_cumprod = unary(dispatch, "cumprod")
_cummax = unary(dispatch, "cummax")
_cummin = unary(dispatch, "cummin")
_var = unary(dispatch, "var")
_std = unary(dispatch, "std")


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

    Examples
    --------
    >>> import burn
    >>> burn.sum(burn.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu"), axis=0).tolist()
    [4.0, 6.0]
    """
    axes = normalize_axes(x, axis, "sum")
    own = x.tensor_type.dtype
    if dtype is None and own.is_float:
        return _sum(x, axis=axes, keepdims=keepdims, dtype=own)
    return _sum(_numeric(x), axis=axes, keepdims=keepdims, dtype=_total_dtype(x, dtype))


def prod(
    x: Tensor, /, *, axis: Axis = None, dtype: DTypeLike | None = None, keepdims: bool = False
) -> Tensor:
    """Product of the elements; see `sum` for the parameters."""
    axes = normalize_axes(x, axis, "prod")
    return _prod(_numeric(x), axis=axes, keepdims=keepdims, dtype=_total_dtype(x, dtype))


def mean(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Arithmetic mean; integers give the default float dtype, and no elements give NaN."""
    return _mean(x, axis=normalize_axes(x, axis, "mean"), keepdims=keepdims)


def max(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Largest element. NaN propagates.

    Raises
    ------
    ShapeError
        If there are no elements to choose from.
    """
    return _max(x, axis=normalize_axes(x, axis, "max"), keepdims=keepdims)


def min(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Smallest element. NaN propagates.

    Raises
    ------
    ShapeError
        If there are no elements to choose from.
    """
    return _min(x, axis=normalize_axes(x, axis, "min"), keepdims=keepdims)


def max_abs(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Largest magnitude of the elements. NaN propagates.

    Raises
    ------
    ShapeError
        If there are no elements to choose from.
    """
    return max(elementwise_functions.abs(x), axis=axis, keepdims=keepdims)


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

    Examples
    --------
    >>> import burn
    >>> burn.var(burn.asarray([1.0, 2.0, 3.0], device="cpu"), correction=1).item()
    1.0
    """
    return _spread(_var, x, axis, correction, "var", keepdims=keepdims)


def std(
    x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """Standard deviation, the square root of `var`. Where it is 0, its gradient is 0 too."""
    return _spread(_std, x, axis, correction, "std", keepdims=keepdims)


class VarianceAndMean(NamedTuple):
    """Variance and mean over the same axes."""

    variance: Any
    mean: Any


def var_mean(
    x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False
) -> VarianceAndMean:
    """Variance and mean; see `var` for the parameters."""
    return VarianceAndMean(
        var(x, axis=axis, correction=correction, keepdims=keepdims),
        mean(x, axis=axis, keepdims=keepdims),
    )


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
    """
    rank = rank_of(x, "cov")
    if rank not in (1, 2):
        raise ShapeError(f"a tensor of shape {x.shape} is no matrix", operation="cov")
    rows = x.reshape((1, -1)) if rank == 1 else x if rowvar else x.permute_dims((1, 0))
    if not rows.dtype.is_float:
        rows = rows.astype(x.device.settings.float_dtype)
    distance = rows - mean(rows, axis=1, keepdims=True)
    divisor = builtins.max(rows.shape[1] - _number(correction, "cov"), 0.0)
    result = distance @ distance.permute_dims((1, 0)) / divisor
    return result.reshape((), copy=True) if result.shape == (1, 1) else result


def median(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Middle of the elements in sorted order, of an even number the mean of the middle two.

    NaN propagates, and no elements give NaN. Integers give the default float dtype.
    """
    axes = normalize_axes(x, axis, "median")
    x = x if x.dtype.is_float else x.astype(x.device.settings.float_dtype)
    kept = [number for number in range(x.ndim) if number not in axes]
    lengths = tuple([x.shape[number] for number in kept])
    count = math.prod([x.shape[number] for number in axes])
    rows = sort(x.permute_dims((*kept, *axes)).reshape((*lengths, count)))
    result = mean(rows[..., builtins.max(count - 1, 0) // 2 : count // 2 + 1], axis=-1)
    if count:
        largest = rows[..., -1]  # NaN, if there is one
        result = where(elementwise_functions.isnan(largest), largest, result)
    if not keepdims:
        return result
    shape = tuple([1 if axis in axes else n for axis, n in enumerate(x.shape)])
    return result.reshape(shape, copy=True)


def median_with_indices(x: Tensor, /, *, axis: int, keepdims: bool = False) -> ValuesAndIndices:
    """Middle of the elements along an axis, of an even number the lower one, and its place.

    NaN propagates. Of equal elements it is that which a stable sort puts there.

    Raises
    ------
    ShapeError
        If there are no elements to choose from.
    """
    number = normalize_axis(x, axis, "median_with_indices")
    count = x.shape[number]
    if not count:
        raise ShapeError(
            f"there is no median of no elements (axis {number} of {x.shape})",
            operation="median_with_indices",
        )
    middle = (builtins.slice(None),) * number + (
        builtins.slice((count - 1) // 2, (count + 1) // 2),
    )
    indices = argsort(x, axis=number)[middle]
    if x.dtype.is_float:
        largest = argmax(x, axis=number, keepdims=True)
        is_nan = elementwise_functions.isnan(take_along_axis(x, largest, axis=number))
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
    """Sums of the elements up to each one along an axis (which a 1-d tensor may leave out).

    Parameters
    ----------
    x : Tensor
        Tensor of numbers; booleans count as 0 and 1.
    axis : int, optional
        The axis.
    dtype : DType, optional
        Dtype of the sums; see `sum`.
    include_initial : bool
        Whether the sum of no elements, 0, comes first.
    """
    return _scan(_cumsum, x, axis, dtype, "cumulative_sum", 0 if include_initial else None)


def cumulative_prod(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Tensor:
    """Products of the elements up to each one along an axis; see `cumulative_sum`."""
    return _scan(_cumprod, x, axis, dtype, "cumulative_prod", 1 if include_initial else None)


def cummax(x: Tensor, /, *, axis: int | None = None) -> Tensor:
    """Largest of the elements up to each one along an axis (which a 1-d tensor may leave out).

    NaN propagates. The gradient goes to the element that is the largest so far, the first of
    equals.
    """
    return _cummax(x, axis=_only_axis(x, axis, "cummax"))


def cummin(x: Tensor, /, *, axis: int | None = None) -> Tensor:
    """Smallest of the elements up to each one along an axis; see `cummax`."""
    return _cummin(x, axis=_only_axis(x, axis, "cummin"))


def _numeric(x: Tensor) -> Tensor:
    """Booleans as 0 and 1."""
    return x.astype(x.device.settings.int_dtype) if x.dtype.is_bool else x


def _total_dtype(x: Tensor, dtype: DTypeLike | None) -> DType:
    if dtype is not None:
        return DType.of(dtype)
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
    operation: str,
    *,
    keepdims: bool,
) -> Tensor:
    axes = normalize_axes(x, axis, operation)
    number = _number(correction, operation)
    return function(x, axis=axes, keepdims=keepdims, correction=number)


def _number(correction: float, operation: str) -> float:
    return real_number(correction, "correction", operation, above=-math.inf, below=math.inf)


def _only_axis(x: Tensor, axis: int | None, operation: str) -> int:
    """The axis of a scan, counted from the front; a vector has but one."""
    if axis is None:
        if rank_of(x, operation) != 1:
            raise AxisError(f"a tensor of shape {x.shape} needs an axis", operation=operation)
        return 0
    return normalize_axis(x, axis, operation)


def _scan(
    function: Callable[..., Tensor],
    x: Tensor,
    axis: int | None,
    dtype: DTypeLike | None,
    operation: str,
    initial: int | None,
) -> Tensor:
    number = _only_axis(x, axis, operation)
    result = function(_numeric(x).astype(_total_dtype(x, dtype)), axis=number)
    if initial is None:
        return result
    shape = (*x.shape[:number], 1, *x.shape[number + 1 :])
    first = full(shape, initial, dtype=result.dtype, device=result.device)
    return concat([first, result], axis=number)
