"""Sums, products and extrema of the elements up to each one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from burn.docstrings import documented_as
from burn.errors import AxisError
from burn.functions import calls
from burn.functions.common import DTypeLike
from burn.functions.creation import full
from burn.functions.manipulation import concat
from burn.functions.normalize import as_flag, normalize_axis, number_dtype, rank_of
from burn.functions.statistical import as_numeric, total_dtype

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["cummax", "cummin", "cumulative_prod", "cumulative_sum"]


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
    return _scan(calls.cumsum, x, axis, dtype, include_initial, 0, "cumulative_sum")


@documented_as(cumulative_sum)
def cumulative_prod(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Tensor:
    """Products of the elements up to each one along an axis.

    The other parameters are those of `cumulative_sum`.

    Parameters
    ----------
    dtype : DType, optional
        Dtype of the products; the default is that of `prod`.
    include_initial : bool
        Whether the product of no elements, 1, comes first.

    Examples
    --------
    >>> import burn
    >>> burn.cumulative_prod(burn.asarray([2, 3, 4], device="cpu")).tolist()
    [2, 6, 24]
    """
    return _scan(calls.cumprod, x, axis, dtype, include_initial, 1, "cumulative_prod")


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
        far, the last of equals.

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
    return calls.cummax(x, axis=scan_axis(x, axis, "cummax"))


@documented_as(cummax)
def cummin(x: Tensor, /, *, axis: int | None = None) -> Tensor:
    """Smallest of the elements up to each one along an axis. NaN propagates.

    The parameters are those of `cummax`.

    Returns
    -------
    Tensor
        In the shape and dtype of `x`. The gradient of each element goes to the smallest element so
        far, the last of equals.

    Examples
    --------
    >>> import burn
    >>> burn.cummin(burn.asarray([3, 1, 2], device="cpu")).tolist()
    [3, 1, 1]
    """
    return calls.cummin(x, axis=scan_axis(x, axis, "cummin"))


def scan_axis(x: Tensor, axis: int | None, operation: str) -> int:
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
    number = scan_axis(x, axis, operation)
    include_initial = as_flag(include_initial, "include_initial", operation)
    result = function(as_numeric(x).astype(total_dtype(x, dtype, operation)), axis=number)
    if not include_initial:
        return result
    shape = (*x.shape[:number], 1, *x.shape[number + 1 :])
    first = full(shape, initial, dtype=number_dtype(result), device=result.device)
    return concat([first, result], axis=number)
