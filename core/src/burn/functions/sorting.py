"""Order along an axis (chapter "Sorting Functions" of the standard, and its like)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.dispatch import unary
from burn.functions.common import dispatch
from burn.functions.indexing import take_along_axis
from burn.functions.normalize import normalize_axis
from burn.functions.searching import ValuesAndIndices
from burn.ops.arguments import as_integer

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["argsort", "argtopk", "sort", "sort_with_indices", "topk"]


_sort = unary(dispatch, "sort")
_argsort = unary(dispatch, "argsort")
_argtopk = unary(dispatch, "argtopk")


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements in sorted order along an axis; NaN is largest.

    The gradient of each goes to the place that a stable sort takes it from.

    Parameters
    ----------
    x : Tensor
        Real tensor.
    axis : int
        The axis.
    descending : bool
        Whether the largest come first.
    stable : bool
        Of no consequence: equal elements do not differ.

    Examples
    --------
    >>> import burn
    >>> burn.sort(burn.asarray([3, 1, 2], device="cpu"), descending=True).tolist()
    [3, 2, 1]
    """
    del stable
    return _sort(x, axis=normalize_axis(x, axis, "sort"), descending=bool(descending))


def argsort(
    x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> Tensor:
    """Places of the elements in sorted order along an axis; NaN is largest.

    The sort is stable whether `stable` asks for it or not.
    """
    del stable
    number = normalize_axis(x, axis, "argsort")
    dtype = x.device.settings.int_dtype
    return _argsort(x, axis=number, descending=bool(descending), dtype=dtype)


def sort_with_indices(
    x: Tensor, /, *, axis: int = -1, descending: bool = False
) -> ValuesAndIndices:
    """The elements in sorted order along an axis, and the places where they were.

    Equal elements keep their order; NaN is largest.
    """
    indices = argsort(x, axis=axis, descending=descending)
    return ValuesAndIndices(take_along_axis(x, indices, axis=axis), indices)


def argtopk(x: Tensor, k: int, /, *, axis: int = -1, largest: bool = True) -> Tensor:
    """Places of the `k` largest (or smallest) elements along an axis, the most extreme first.

    Of equal elements the first come first; NaN is largest.

    Raises
    ------
    ArgumentError
        If there are fewer than `k` elements.
    """
    number = normalize_axis(x, axis, "argtopk")
    k = as_integer(k, "k", "argtopk", least=0)
    dtype = x.device.settings.int_dtype
    return _argtopk(x, k=k, axis=number, largest=bool(largest), dtype=dtype)


def topk(x: Tensor, k: int, /, *, axis: int = -1, largest: bool = True) -> ValuesAndIndices:
    """The `k` largest (or smallest) elements along an axis, the most extreme first, and where.

    Of equal elements the first come first; NaN is largest.

    Examples
    --------
    >>> import burn
    >>> values, indices = burn.topk(burn.asarray([3.0, 1.0, 4.0], device="cpu"), 2)
    >>> values.tolist(), indices.tolist()
    ([4.0, 3.0], [2, 0])
    """
    indices = argtopk(x, k, axis=axis, largest=largest)
    return ValuesAndIndices(take_along_axis(x, indices, axis=axis), indices)
