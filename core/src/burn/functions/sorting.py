"""Order along an axis (chapter "Sorting Functions" of the standard, and its like)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.docstrings import documented_as
from burn.errors import ArgumentError, ShapeError
from burn.functions import calls
from burn.functions.creation import arange, zeros_like
from burn.functions.cumulative import cummax
from burn.functions.elementwise import isnan, logical_and, logical_or
from burn.functions.indexing import take_along_axis
from burn.functions.manipulation import concat, moveaxis
from burn.functions.normalize import as_flag, normalize_axis, reduction
from burn.functions.quantization import numbers_of
from burn.functions.searching import ValuesAndIndices, argmax, where
from burn.functions.views import independent
from burn.ops.arguments import as_integer
from burn.public_calls import shown_value

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["argsort", "argtopk", "kthvalue", "mode", "sort", "sort_with_indices", "topk"]


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements in sorted order along an axis; NaN is largest.

    Parameters
    ----------
    x : Tensor
        Real tensor.
    axis : int
        The axis to sort along.
    descending : bool
        Whether the largest come first.
    stable : bool
        Without effect on the result: equal elements do not differ.

    Returns
    -------
    Tensor
        In the shape and dtype of `x`. Each gradient goes to the element that a stable sort puts
        there.

    Raises
    ------
    AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> import burn
    >>> burn.sort(burn.asarray([3, 1, 2], device="cpu"), descending=True).tolist()
    [3, 2, 1]
    """
    if stable.__class__ is not bool:
        as_flag(stable, "stable", "sort")
    if descending.__class__ is not bool:
        descending = as_flag(descending, "descending", "sort")
    return calls.sort(x, axis=normalize_axis(x, axis, "sort"), descending=descending)


@documented_as(sort)
def argsort(
    x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> Tensor:
    """Indices that sort the elements along an axis; NaN is largest.

    The other parameters are those of `sort`.

    Parameters
    ----------
    stable : bool
        Without effect: equal elements always keep their order.

    Returns
    -------
    Tensor
        In the shape of `x` and the device's default integer dtype.

    Examples
    --------
    >>> import burn
    >>> burn.argsort(burn.asarray([3, 1, 2], device="cpu")).tolist()
    [1, 2, 0]
    """
    if stable.__class__ is not bool:
        as_flag(stable, "stable", "argsort")
    number = normalize_axis(x, axis, "argsort")
    descending = as_flag(descending, "descending", "argsort")
    return calls.argsort(x, axis=number, descending=descending, dtype=x.device.settings.int_dtype)


@documented_as(sort)
def sort_with_indices(
    x: Tensor, /, *, axis: int = -1, descending: bool = False
) -> ValuesAndIndices:
    """The elements in sorted order along an axis, and their indices in `x`; NaN is largest.

    The parameters are those of `sort`.

    Returns
    -------
    values : Tensor
        The sorted elements, in the shape and dtype of `x`.
    indices : Tensor
        What `argsort` gives: equal elements keep their order.

    Examples
    --------
    >>> import burn
    >>> values, indices = burn.sort_with_indices(burn.asarray([3, 1, 2], device="cpu"))
    >>> values.tolist(), indices.tolist()
    ([1, 2, 3], [1, 2, 0])
    """
    number = normalize_axis(x, axis, "sort_with_indices")
    descending = as_flag(descending, "descending", "sort_with_indices")
    indices = argsort(x, axis=number, descending=descending)
    return ValuesAndIndices(take_along_axis(x, indices, axis=number), indices)


def argtopk(x: Tensor, k: int, /, *, axis: int = -1, largest: bool = True) -> Tensor:
    """Indices of the `k` largest (or smallest) elements along an axis, the most extreme first.

    Parameters
    ----------
    x : Tensor
        Real tensor. NaN is largest.
    k : int
        Number of elements to find.
    axis : int
        The axis to search along.
    largest : bool
        Whether to find the largest elements, or else the smallest.

    Returns
    -------
    Tensor
        The axis has length `k`; of equal elements the first come first. In the device's default
        integer dtype.

    Raises
    ------
    ArgumentError
        If there are fewer than `k` elements.
    AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> import burn
    >>> burn.argtopk(burn.asarray([3.0, 1.0, 4.0], device="cpu"), 2).tolist()
    [2, 0]
    """
    return _top_indices(x, k, axis, "argtopk", largest=largest)


@documented_as(argtopk)
def topk(x: Tensor, k: int, /, *, axis: int = -1, largest: bool = True) -> ValuesAndIndices:
    """The `k` largest (or smallest) elements along an axis, the most extreme first.

    The parameters are those of `argtopk`.

    Returns
    -------
    values : Tensor
        The elements, in the dtype of `x`; the axis has length `k`.
    indices : Tensor
        Their indices along the axis, as `argtopk` gives them.

    Examples
    --------
    >>> import burn
    >>> values, indices = burn.topk(burn.asarray([3.0, 1.0, 4.0], device="cpu"), 2)
    >>> values.tolist(), indices.tolist()
    ([4.0, 3.0], [2, 0])
    """
    indices = _top_indices(x, k, axis, "topk", largest=largest)
    return ValuesAndIndices(take_along_axis(x, indices, axis=axis), indices)


@reduction
def kthvalue(x: Tensor, k: int, /, *, axis: int = -1, keepdims: bool = False) -> ValuesAndIndices:
    """The k-th smallest element along an axis, and its index.

    Parameters
    ----------
    x : Tensor
        Real tensor. NaN is largest.
    k : int
        Which element in ascending order: 1 gives the minimum.
    axis : int
        The axis to search along.
    keepdims : bool
        Whether the reduced axis stays, with length 1.

    Returns
    -------
    values : Tensor
        The elements, in the dtype of `x`, without the searched axis.
    indices : Tensor
        Their indices along the axis, in the device's default integer dtype; of equal elements the
        one that a stable sort brings to the k-th position.

    Raises
    ------
    ArgumentError
        If `k` is not from 1 to the length of the axis.
    AxisError
        If `x` has no such axis.

    See Also
    --------
    topk : the k largest or smallest elements.
    quantile : elements by their part of the axis.

    Examples
    --------
    >>> import burn
    >>> value, index = burn.kthvalue(burn.asarray([3.0, 1.0, 4.0], device="cpu"), 2)
    >>> value.item(), index.item()
    (3.0, 0)
    """
    number = normalize_axis(x, axis, "kthvalue")
    k = as_integer(k, "k", "kthvalue", least=1)
    keepdims = as_flag(keepdims, "keepdims", "kthvalue")
    if k > x.shape[number]:
        raise ArgumentError(
            f"k is {shown_value(k)} for an axis of length {x.shape[number]}",
            hint="The largest element is the one whose k is that length",
            operation="kthvalue",
        )
    indices = argsort(x, axis=number)[(slice(None),) * number + (slice(k - 1, k),)]
    return _found(x, indices, number, keepdims=keepdims)


@reduction
def mode(x: Tensor, /, *, axis: int = -1, keepdims: bool = False) -> ValuesAndIndices:
    """The most frequent element along an axis, and the index of the first such.

    Parameters
    ----------
    x : Tensor
        Real tensor. NaN counts as a value that equals itself.
    axis : int
        The axis to search along.
    keepdims : bool
        Whether the reduced axis stays, with length 1.

    Returns
    -------
    values : Tensor
        The elements, in the dtype of `x`, without the searched axis: of several that are as
        frequent the smallest, where NaN is largest.
    indices : Tensor
        Their indices along the axis, in the device's default integer dtype.

    Raises
    ------
    AxisError
        If `x` has no such axis.
    ShapeError
        If there are no elements to choose from.

    Examples
    --------
    >>> import burn
    >>> value, index = burn.mode(burn.asarray([3, 1, 2, 3, 2], device="cpu"))
    >>> value.item(), index.item()
    (2, 2)
    """
    number = normalize_axis(x, axis, "mode")
    keepdims = as_flag(keepdims, "keepdims", "mode")
    length = x.shape[number]
    if not length:
        raise ShapeError(
            f"there is no mode of no elements (axis {axis} of {x.shape})", operation="mode"
        )
    ordered, order = sort_with_indices(moveaxis(numbers_of(x), number, -1))
    earlier, later = ordered[..., :-1], ordered[..., 1:]
    same = earlier == later
    if x.dtype.is_float:
        same = logical_or(same, logical_and(isnan(earlier), isnan(later)))
    # The first of equal elements, the number of those before each, and the last of the longest run.
    dtype = x.device.settings.int_dtype
    position = arange(length, dtype=dtype, device=x.device)
    starts = concat([zeros_like(order[..., :1]), where(same, 0, position[1:])], axis=-1)
    first = cummax(starts, axis=-1)
    longest = argmax(position - first, axis=-1, keepdims=True)
    indices = take_along_axis(order, take_along_axis(first, longest, axis=-1), axis=-1)
    return _found(x, moveaxis(indices, -1, number), number, keepdims=keepdims)


def _found(x: Tensor, indices: Tensor, axis: int, *, keepdims: bool) -> ValuesAndIndices:
    """The elements at one index along an axis, and the indices."""
    values = take_along_axis(x, indices, axis=axis)
    if not keepdims:
        values, indices = values.squeeze(axis), indices.squeeze(axis)
    return ValuesAndIndices(independent(values), independent(indices))


def _top_indices(x: Tensor, k: int, axis: int, operation: str, *, largest: bool) -> Tensor:
    number = normalize_axis(x, axis, operation)
    k = as_integer(k, "k", operation, least=0)
    largest = as_flag(largest, "largest", operation)
    return calls.argtopk(x, k=k, axis=number, largest=largest, dtype=x.device.settings.int_dtype)
