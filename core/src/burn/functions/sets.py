"""Distinct elements (chapter "Set Functions" of the array API standard, and its like).

Their number depends on the data, which are read for it. In the functions of the standard each NaN
is distinct from all others.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from burn.dispatch import DispatchTensor
from burn.docstrings import documented_as
from burn.dtype import Kind, bool_
from burn.functions import calls
from burn.functions.common import Operand
from burn.functions.creation import full, ones
from burn.functions.cumulative import cumulative_sum
from burn.functions.data_type import result_type
from burn.functions.elementwise import equal, logical_not, minimum, not_equal
from burn.functions.indexing import take
from burn.functions.manipulation import concat
from burn.functions.normalize import as_flag, check_any_tensor, check_tensor, normalize_axis
from burn.functions.quantization import numbers_of
from burn.functions.rearranging import narrow
from burn.functions.searching import nonzero, searchsorted
from burn.functions.sorting import sort
from burn.functions.utility import any, diff

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "isin",
    "unique",
    "unique_all",
    "unique_consecutive",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]


class UniqueAll(NamedTuple):
    """Distinct elements in ascending order, with their indices and counts."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """Distinct elements in ascending order, and the number of times each occurs."""

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """Distinct elements in ascending order, and the index of each element among them."""

    values: Any
    inverse_indices: Any


def unique_all(x: Tensor, /) -> UniqueAll:
    """Distinct elements in ascending order, with their indices and counts.

    Parameters
    ----------
    x : Tensor
        Any tensor.

    Returns
    -------
    values : Tensor, shape (N,)
        The elements.
    indices : Tensor, shape (N,)
        Index of the first of each in the flattened tensor.
    inverse_indices : Tensor
        For each element of `x`, in its shape, the index among the values.
    counts : Tensor, shape (N,)
        The number of times each occurs.

    Examples
    --------
    >>> import burn
    >>> found = burn.unique_all(burn.asarray([3, 1, 3], device="cpu"))
    >>> found.values.tolist(), found.counts.tolist()
    ([1, 3], [1, 2])
    """
    return _unique(x, "unique_all")


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """Distinct elements in ascending order, and the number of times each occurs.

    Parameters
    ----------
    x : Tensor
        Any tensor.

    Returns
    -------
    values : Tensor, shape (N,)
        The elements.
    counts : Tensor, shape (N,)
        The number of times each occurs.

    Examples
    --------
    >>> import burn
    >>> values, counts = burn.unique_counts(burn.asarray([3, 1, 3], device="cpu"))
    >>> values.tolist(), counts.tolist()
    ([1, 3], [1, 2])
    """
    found = _unique(x, "unique_counts")
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """Distinct elements in ascending order, and the index of each element of `x` among them.

    Parameters
    ----------
    x : Tensor
        Any tensor.

    Returns
    -------
    values : Tensor, shape (N,)
        The elements.
    inverse_indices : Tensor
        For each element of `x`, in its shape, the index among the values.

    Examples
    --------
    >>> import burn
    >>> values, inverse = burn.unique_inverse(burn.asarray([3, 1, 3], device="cpu"))
    >>> values.tolist(), inverse.tolist()
    ([1, 3], [1, 0, 1])
    """
    found = _unique(x, "unique_inverse")
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """Distinct elements in ascending order.

    Parameters
    ----------
    x : Tensor
        Any tensor.

    Returns
    -------
    Tensor, shape (N,)
        The elements.

    Examples
    --------
    >>> import burn
    >>> burn.unique_values(burn.asarray([3, 1, 3], device="cpu")).tolist()
    [1, 3]
    """
    return _unique(x, "unique_values").values  # type: ignore[no-any-return]  # a Tensor


def unique(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    equal_nan: bool = True,
) -> Tensor | tuple[Tensor, ...]:
    """Distinct elements, or distinct slices along an axis, in ascending order.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    axis : int, optional
        The axis whose slices are compared, in lexicographic order of their elements; all elements
        by default.
    return_index : bool
        Whether to return the index of the first of each, too.
    return_inverse : bool
        Whether to return for each element, or slice, its index among the distinct ones, too.
    return_counts : bool
        Whether to return how often each occurs, too.
    equal_nan : bool
        Whether NaN equals NaN, also within slices (where NumPy never has it so). The functions
        `unique_all`, `unique_counts`, `unique_inverse` and `unique_values` of the standard count
        each NaN as distinct.

    Returns
    -------
    values : Tensor
        The distinct elements as a vector, or the slices joined along `axis`. NaN is largest.
    indices : Tensor, shape (N,), optional
        Their indices along the axis, or among all elements in row-major order.
    inverse_indices : Tensor, optional
        In the shape of `x`; for slices a vector.
    counts : Tensor, shape (N,), optional
        The number of times each occurs.

    Raises
    ------
    AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([[1, 2], [0, 5], [1, 2]], device="cpu")
    >>> rows, counts = burn.unique(x, axis=0, return_counts=True)
    >>> rows.tolist(), counts.tolist()
    ([[0, 5], [1, 2]], [1, 2])
    >>> burn.unique(x).tolist()
    [0, 1, 2, 5]
    """
    check_tensor(x, "x", "unique")
    wanted = [
        as_flag(value, name, "unique")
        for name, value in (
            ("return_index", return_index),
            ("return_inverse", return_inverse),
            ("return_counts", return_counts),
        )
    ]
    equal_nan = as_flag(equal_nan, "equal_nan", "unique")
    x = numbers_of(x)
    if axis is None:
        number, parts = 0, x.reshape((x.size,))
        rows = parts.reshape((x.size, 1))
    else:
        number, parts = normalize_axis(x, axis, "unique"), x
        others = [index for index in range(x.ndim) if index != number]
        width = math.prod([x.shape[other] for other in others])
        rows = x.permute_dims((number, *others)).reshape((x.shape[number], width))
    dtype = x.device.settings.int_dtype
    indices, inverse, counts = calls.unique_rows_indices(rows, equal_nan=equal_nan, dtype=dtype)
    values = calls.select(parts, indices, axis=number)
    if axis is None:
        inverse = inverse.reshape(x.shape, copy=True)
    found = (indices, inverse, counts)
    chosen = [tensor for tensor, is_wanted in zip(found, wanted, strict=True) if is_wanted]
    return (values, *chosen) if chosen else values


@documented_as(unique)
def unique_consecutive(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> Tensor | tuple[Tensor, ...]:
    """The first of each run of equal elements, or of equal slices along an axis.

    Parameters
    ----------
    axis : int, optional
        The axis whose slices are compared; all elements in row-major order by default.
    return_inverse : bool
        Whether to return for each element, or slice, the index of its run, too.
    return_counts : bool
        Whether to return the length of each run, too.

    Returns
    -------
    values : Tensor
        The elements as a vector, or the slices joined along `axis`. NaN equals no NaN.
    inverse_indices : Tensor, optional
        In the shape of `x`; for slices a vector.
    counts : Tensor, optional
        The length of each run.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([1, 1, 2, 2, 2, 1], device="cpu")
    >>> values, counts = burn.unique_consecutive(x, return_counts=True)
    >>> values.tolist(), counts.tolist()
    ([1, 2, 1], [2, 3, 1])
    """
    operation = "unique_consecutive"
    check_tensor(x, "x", operation)
    has_inverse = as_flag(return_inverse, "return_inverse", operation)
    has_counts = as_flag(return_counts, "return_counts", operation)
    x = numbers_of(x)
    number = 0 if axis is None else normalize_axis(x, axis, operation)
    parts = x.reshape((x.size,)) if axis is None else x
    length = parts.shape[number]
    differs = not_equal(
        narrow(parts, min(1, length), max(length - 1, 0), axis=number),
        narrow(parts, 0, max(length - 1, 0), axis=number),
    )
    others = tuple(index for index in range(parts.ndim) if index != number)
    begins = concat(
        [ones((min(length, 1),), dtype=bool_, device=x.device), any(differs, axis=others)], axis=0
    )
    dtype = x.device.settings.int_dtype
    indices = nonzero(begins)[0].astype(dtype)
    found = [calls.select(parts, indices, axis=number)]
    if has_inverse:
        runs = cumulative_sum(begins.astype(dtype)) - 1
        found.append(runs.reshape(x.shape, copy=True) if axis is None else runs)
    if has_counts:
        end = full((min(length, 1),), length, dtype=dtype, device=x.device)
        found.append(diff(concat([indices, end], axis=0)))
    return tuple(found) if len(found) > 1 else found[0]


def isin(x1: Operand, x2: Operand, /, *, invert: bool = False) -> Tensor:
    """Whether each element of `x1` is among the elements of `x2`, as bool; NaN never is.

    Parameters
    ----------
    x1, x2 : Tensor or number
        Of dtypes that promote; at least one is a tensor.
    invert : bool
        Whether to answer the opposite: which elements are not among them.

    Returns
    -------
    Tensor
        Bool tensor in the shape of `x1`.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([1, 5, 2], device="cpu")
    >>> burn.isin(x, burn.asarray([2, 1], device="cpu")).tolist()
    [True, False, True]
    """
    found = _is_in(x1, x2)
    return logical_not(found) if as_flag(invert, "invert", "isin") else found


def _is_in(x1: Operand, x2: Operand) -> Tensor:
    check_any_tensor(x1, x2, "isin")
    if not isinstance(x2, DispatchTensor):
        return equal(x1, x2)
    values: Tensor = x2.reshape((-1,))
    if not isinstance(x1, DispatchTensor):
        return any(equal(x1, values))
    dtype = result_type(x1, values)
    sought: Tensor = x1.astype(dtype)
    values = values.astype(dtype)
    if dtype.kind not in Kind.NUMERIC:  # complex has no order to search in; bool has two values
        return any(equal(sought.reshape((*sought.shape, 1)), values), axis=-1)
    if not values.size:
        return full(sought.shape, fill_value=False, dtype=bool_, device=sought.device)
    ordered = sort(values)
    indices = searchsorted(ordered, sought.reshape((-1,)))
    nearest = take(ordered, minimum(indices, values.size - 1), axis=0)
    return equal(nearest.reshape(sought.shape), sought)


def _unique(x: Tensor, operation: str) -> UniqueAll:
    check_tensor(x, "x", operation)
    dtype = x.device.settings.int_dtype
    indices, inverse, counts = calls.unique_indices(x, dtype=dtype)
    values = calls.select(numbers_of(x).reshape((x.size,)), indices, axis=0)
    return UniqueAll(values, indices, inverse, counts)
