"""Finding elements (chapter "Searching Functions" of the standard, and its like)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from burn.dispatch import DispatchTensor
from burn.docstrings import documented_as
from burn.errors import ShapeError
from burn.functions import calls
from burn.functions.common import Axis, Operand
from burn.functions.creation import asarray, full
from burn.functions.data_type import result_type
from burn.functions.elementwise import isnan
from burn.functions.indexing import take_along_axis
from burn.functions.normalize import (
    as_flag,
    as_scalar,
    check_choice,
    check_tensor,
    normalize_axes,
    normalize_axis,
    rank_of,
    reduction,
)
from burn.functions.quantization import numbers_of
from burn.functions.views import independent
from burn.ops.arguments import as_python

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "argmax",
    "argmin",
    "argwhere",
    "count_nonzero",
    "max_with_indices",
    "min_with_indices",
    "nonzero",
    "searchsorted",
    "where",
]


class ValuesAndIndices(NamedTuple):
    """Elements of a tensor, and their indices along an axis."""

    values: Any
    indices: Any


@reduction
def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Index of the largest element, the first of equals. NaN counts as largest.

    Parameters
    ----------
    x : Tensor
        Real tensor.
    axis : int, optional
        The axis to search along; without one, the index is that among all elements in row-major
        order.
    keepdims : bool
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        In the device's default integer dtype, without the searched axes.

    Raises
    ------
    AxisError
        If `x` has no such axis.
    ShapeError
        If there are no elements to choose from.

    Examples
    --------
    >>> import burn
    >>> burn.argmax(burn.asarray([[1.0, 5.0], [3.0, 4.0]], device="cpu"), axis=0).tolist()
    [1, 0]
    """
    return _searched(calls.argmax, x, axis, "argmax", keepdims=keepdims)


@reduction
@documented_as(argmax)
def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Index of the smallest element, the first of equals. NaN comes before all numbers.

    The parameters are those of `argmax`.

    Examples
    --------
    >>> import burn
    >>> burn.argmin(burn.asarray([[1.0, 5.0], [3.0, 4.0]], device="cpu")).item()
    0
    """
    return _searched(calls.argmin, x, axis, "argmin", keepdims=keepdims)


@reduction
@documented_as(argmax)
def max_with_indices(x: Tensor, /, *, axis: int, keepdims: bool = False) -> ValuesAndIndices:
    """Largest elements along an axis, and their indices: the first of equals.

    Parameters
    ----------
    x : Tensor
        Real tensor. NaN counts as largest.
    axis : int
        The axis to search along.
    keepdims : bool
        Whether the reduced axis stays, with length 1.

    Returns
    -------
    values : Tensor
        The largest elements, in the dtype of `x`. The gradient goes to the element at the index
        alone, while equal elements share that of `max`.
    indices : Tensor
        Their indices along the axis, in the device's default integer dtype.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([[1.0, 5.0], [3.0, 4.0]], device="cpu")
    >>> values, indices = burn.max_with_indices(x, axis=1)
    >>> values.tolist(), indices.tolist()
    ([5.0, 4.0], [1, 1])
    """
    return _with_indices(x, argmax, axis, "max_with_indices", keepdims=keepdims)


@reduction
@documented_as(argmax)
def min_with_indices(x: Tensor, /, *, axis: int, keepdims: bool = False) -> ValuesAndIndices:
    """Smallest elements along an axis, and their indices: the first of equals.

    Parameters
    ----------
    x : Tensor
        Real tensor. NaN comes before all numbers.
    axis : int
        The axis to search along.
    keepdims : bool
        Whether the reduced axis stays, with length 1.

    Returns
    -------
    values : Tensor
        The smallest elements, in the dtype of `x`. The gradient goes to the element at the index
        alone, while equal elements share that of `min`.
    indices : Tensor
        Their indices along the axis, in the device's default integer dtype.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([[1.0, 5.0], [3.0, 4.0]], device="cpu")
    >>> values, indices = burn.min_with_indices(x, axis=1)
    >>> values.tolist(), indices.tolist()
    ([1.0, 3.0], [0, 0])
    """
    return _with_indices(x, argmin, axis, "min_with_indices", keepdims=keepdims)


def _with_indices(
    x: Tensor, search: Callable[..., Tensor], axis: int, operation: str, *, keepdims: bool
) -> ValuesAndIndices:
    number = normalize_axis(x, axis, operation)
    keepdims = as_flag(keepdims, "keepdims", operation)
    indices = search(x, axis=number, keepdims=True)
    values = take_along_axis(x, indices, axis=number)
    if not keepdims:
        values, indices = (independent(tensor.squeeze(number)) for tensor in (values, indices))
    return ValuesAndIndices(values, indices)


@reduction
def count_nonzero(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Number of elements that are true (not 0).

    Parameters
    ----------
    x : Tensor
        Any tensor.
    axis : int, tuple of int or None
        Axes to count along; None for all.
    keepdims : bool
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        In the device's default integer dtype, without the reduced axes.

    Raises
    ------
    AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> import burn
    >>> burn.count_nonzero(burn.asarray([0, 3, 7], device="cpu")).item()
    2
    """
    axes = normalize_axes(x, axis, "count_nonzero")
    keepdims = as_flag(keepdims, "keepdims", "count_nonzero")
    dtype = x.device.settings.int_dtype
    truth = x if x.dtype.is_bool else x != 0
    return calls.sum(truth.astype(dtype), axis=axes, keepdims=keepdims, dtype=dtype)


def searchsorted(
    x1: Tensor,
    x2: Tensor | float,
    /,
    *,
    side: Literal["left", "right"] = "left",
    sorter: Tensor | None = None,
) -> Tensor:
    """Indices at which elements can be inserted into a sorted vector so that it stays sorted.

    Parameters
    ----------
    x1 : Tensor, shape (N,) or (..., N)
        Vector in ascending order, or rows, each in ascending order; NaN comes last.
    x2 : Tensor or number
        The elements to insert; into rows, those of shape (..., M) have a row for each.
    side : {"left", "right"}
        Which index among equal elements: the first, or the one after the last.
    sorter : Tensor, optional
        In the shape of `x1`: indices that bring it into ascending order, as `argsort` gives them.

    Returns
    -------
    Tensor
        In the shape of `x2` and the device's default integer dtype.

    Raises
    ------
    ArgumentError
        If `side` is another string.
    ShapeError
        If `x1` is a number, or the axes of `x1` and `x2` before the last one have other lengths.

    Examples
    --------
    >>> import burn
    >>> burn.searchsorted(burn.asarray([1, 3, 5], device="cpu"), 3, side="right").item()
    2
    >>> rows = burn.asarray([[1, 3, 5], [2, 4, 6]], device="cpu")
    >>> burn.searchsorted(rows, burn.asarray([[4], [4]], device="cpu")).tolist()
    [[2], [1]]
    """
    check_tensor(x1, "x1", "searchsorted")
    check_choice(side, ("left", "right"), "side", "searchsorted")
    if not isinstance(x2, DispatchTensor):
        number = as_python(x2)
        if not isinstance(number, (bool, int, float)):
            check_tensor(x2, "x2", "searchsorted")
        dtype = result_type(x1, number)
        scalar = as_scalar(number, dtype, "searchsorted")
        x2 = full((), scalar, dtype=dtype, device=x1.device)
    if sorter is not None:
        x1 = take_along_axis(x1, sorter, axis=-1)
    if x1.ndim > 1:
        return _search_rows(numbers_of(x1), numbers_of(x2), right=side == "right")
    dtype = x1.device.settings.int_dtype
    return calls.searchsorted(x1, x2, right=side == "right", dtype=dtype)


def _search_rows(x1: Tensor, x2: Tensor, *, right: bool) -> Tensor:
    """Binary search in each row for the elements of another one."""
    if x1.shape[:-1] != x2.shape[:-1]:
        raise ShapeError(
            f"x1 of shape {x1.shape} has no row for each of x2 of shape {x2.shape}",
            hint="All lengths but the last must be equal; broadcast_to() repeats rows",
            operation="searchsorted",
        )
    wanted = result_type(x1, x2)
    x1, x2 = x1.astype(wanted), x2.astype(wanted)
    length = x1.shape[-1]
    dtype = x1.device.settings.int_dtype
    low = full(x2.shape, 0, dtype=dtype, device=x1.device)
    high = full(x2.shape, length, dtype=dtype, device=x1.device)
    for _ in range(length.bit_length()):
        middle = (low + high) >> 1
        active = low < high
        found = take_along_axis(x1, where(active, middle, 0), axis=-1)
        beyond = active & (~_before(x2, found) if right else _before(found, x2))
        low, high = where(beyond, middle + 1, low), where(active & ~beyond, middle, high)
    return low


def _before(x1: Tensor, x2: Tensor) -> Tensor:
    """Whether elements come before others in a sort: NaN comes last."""
    less = x1 < x2
    return less | (isnan(x2) & ~isnan(x1)) if x1.dtype.is_float else less


def where(condition: Tensor, x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise `x1` where the condition holds, else `x2`; all broadcast.

    Elements that are not chosen have no influence on the result or on gradients, even if NaN.

    Parameters
    ----------
    condition : Tensor
        Bool tensor.
    x1, x2 : Tensor or number
        What to choose from; their dtypes promote.

    Returns
    -------
    Tensor
        In the broadcast shape and the promoted dtype; of two numbers in the default dtype of their
        kind.

    Raises
    ------
    DTypeError
        If the condition is not bool.
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([-1.0, 4.0], device="cpu")
    >>> burn.where(x > 0, x, 0.0).tolist()
    [0.0, 4.0]
    """
    if not (isinstance(x1, DispatchTensor) or isinstance(x2, DispatchTensor)):
        check_tensor(condition, "condition", "where")
        numbers = [as_python(x1), as_python(x2)]
        if all(isinstance(number, (bool, int, float, complex)) for number in numbers):
            # There is no tensor to take the dtype of.
            x1, x2 = (asarray(number, device=condition.device) for number in numbers)
    return calls.where(condition, x1, x2)


def _searched(
    function: Callable[..., Tensor], x: Tensor, axis: int | None, operation: str, *, keepdims: bool
) -> Tensor:
    rank = rank_of(x, operation)
    keepdims = as_flag(keepdims, "keepdims", operation)
    dtype = x.device.settings.int_dtype
    if axis is not None:
        number = normalize_axis(x, axis, operation)
        return function(x, axis=number, keepdims=keepdims, dtype=dtype)
    index = function(x.reshape((-1,)), axis=0, keepdims=False, dtype=dtype)
    return index.reshape((1,) * rank, copy=True) if keepdims else index


def argwhere(x: Tensor, /) -> Tensor:
    """Indices of the elements that are true (not 0), in row-major order.

    The number of rows depends on the data, which are read for it.

    Parameters
    ----------
    x : Tensor
        Any tensor.

    Returns
    -------
    Tensor, shape (elements that are true, axes of x)
        A row of indices for each such element, in the device's default integer dtype.

    Examples
    --------
    >>> import burn
    >>> burn.argwhere(burn.asarray([[0, 3], [7, 0]], device="cpu")).tolist()
    [[0, 1], [1, 0]]
    """
    check_tensor(x, "x", "argwhere")
    return calls.argwhere(x, dtype=x.device.settings.int_dtype)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Indices of the elements that are true (not 0), a vector for each axis.

    Their number depends on the data, which are read for it.

    Parameters
    ----------
    x : Tensor
        Tensor of any dtype, with one axis or more.

    Returns
    -------
    tuple of Tensor, each of shape (elements that are true,)
        The indices along each axis, in row-major order of the elements and in the device's default
        integer dtype.

    Raises
    ------
    ShapeError
        If the tensor has no axes.

    Examples
    --------
    >>> import burn
    >>> rows, columns = burn.nonzero(burn.asarray([[0, 3], [7, 0]], device="cpu"))
    >>> rows.tolist(), columns.tolist()
    ([0, 1], [1, 0])
    """
    rank = rank_of(x, "nonzero")
    if not rank:
        raise ShapeError("a 0-d tensor has no axis", hint="Use argwhere", operation="nonzero")
    indices = argwhere(x)
    return tuple([independent(indices[:, axis]) for axis in range(rank)])
