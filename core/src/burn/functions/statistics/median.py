"""Medians."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.docstrings import documented_as
from burn.errors import ShapeError
from burn.functions.common import Axis
from burn.functions.elementwise import isnan
from burn.functions.indexing import take_along_axis
from burn.functions.normalize import as_flag, normalize_axes, normalize_axis, reduction
from burn.functions.quantization import numbers_of
from burn.functions.searching import ValuesAndIndices, argmax, where
from burn.functions.sorting import argsort, sort
from burn.functions.statistical import mean
from burn.functions.statistics._rows import kept_shape, rows_over
from burn.functions.views import independent

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["median", "median_with_indices"]


@reduction
@documented_as(mean)
def median(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Middle of the elements in sorted order, of an even number the mean of the middle two.

    The other parameters are those of `mean`.

    Parameters
    ----------
    x : Tensor
        Real tensor; integers give the default float dtype.

    Returns
    -------
    Tensor
        The medians, without the reduced axes. NaN propagates, and the median of no elements is NaN.

    Examples
    --------
    >>> import burn
    >>> burn.median(burn.asarray([5, 1, 2, 8], device="cpu")).item()
    3.5
    """
    axes = normalize_axes(x, axis, "median")
    keepdims = as_flag(keepdims, "keepdims", "median")
    x = x if x.dtype.is_float else x.astype(x.device.settings.float_dtype)
    x = numbers_of(x)
    rows = sort(rows_over(x, axes))
    count = rows.shape[-1]
    result = mean(rows[..., max(count - 1, 0) // 2 : count // 2 + 1], axis=-1)
    if count:
        largest = rows[..., -1]  # NaN sorts last
        result = where(isnan(largest), largest, result)
    if not keepdims:
        return result
    return result.reshape(kept_shape(x.shape, axes, keepdims=True), copy=True)


@reduction
@documented_as(argmax)
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
    x = numbers_of(x)
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
