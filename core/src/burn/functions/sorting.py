"""Order along an axis (chapter "Sorting Functions" of the standard, and its like)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.functions import calls
from burn.functions.indexing import take_along_axis
from burn.functions.normalize import as_flag, normalize_axis
from burn.functions.searching import ValuesAndIndices
from burn.ops.arguments import as_integer

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["argsort", "argtopk", "sort", "sort_with_indices", "topk"]


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


def argsort(
    x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> Tensor:
    """Indices that sort the elements along an axis; NaN is largest.

    Parameters
    ----------
    x : Tensor
        Real tensor.
    axis : int
        The axis to sort along.
    descending : bool
        Whether the largest come first.
    stable : bool
        Without effect: equal elements always keep their order.

    Returns
    -------
    Tensor
        In the shape of `x` and the device's default integer dtype.

    Raises
    ------
    AxisError
        If `x` has no such axis.

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


def sort_with_indices(
    x: Tensor, /, *, axis: int = -1, descending: bool = False
) -> ValuesAndIndices:
    """The elements in sorted order along an axis, and their indices in `x`; NaN is largest.

    Parameters
    ----------
    x : Tensor
        Real tensor.
    axis : int
        The axis to sort along.
    descending : bool
        Whether the largest come first.

    Returns
    -------
    values : Tensor
        The sorted elements, in the shape and dtype of `x`.
    indices : Tensor
        What `argsort` gives: equal elements keep their order.

    Raises
    ------
    AxisError
        If `x` has no such axis.

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


def topk(x: Tensor, k: int, /, *, axis: int = -1, largest: bool = True) -> ValuesAndIndices:
    """The `k` largest (or smallest) elements along an axis, the most extreme first.

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
    values : Tensor
        The elements, in the dtype of `x`; the axis has length `k`.
    indices : Tensor
        Their indices along the axis, as `argtopk` gives them.

    Raises
    ------
    ArgumentError
        If there are fewer than `k` elements.
    AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> import burn
    >>> values, indices = burn.topk(burn.asarray([3.0, 1.0, 4.0], device="cpu"), 2)
    >>> values.tolist(), indices.tolist()
    ([4.0, 3.0], [2, 0])
    """
    indices = _top_indices(x, k, axis, "topk", largest=largest)
    return ValuesAndIndices(take_along_axis(x, indices, axis=axis), indices)


def _top_indices(x: Tensor, k: int, axis: int, operation: str, *, largest: bool) -> Tensor:
    number = normalize_axis(x, axis, operation)
    k = as_integer(k, "k", operation, least=0)
    largest = as_flag(largest, "largest", operation)
    return calls.argtopk(x, k=k, axis=number, largest=largest, dtype=x.device.settings.int_dtype)
