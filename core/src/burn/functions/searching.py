"""Finding elements (chapter "Searching Functions" of the standard, and its like)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from burn.dispatch import DispatchTensor, unary
from burn.errors import ArgumentError, ShapeError
from burn.functions.common import Axis, Operand, dispatch
from burn.functions.creation import asarray
from burn.functions.data_type import result_type
from burn.functions.indexing import take_along_axis
from burn.functions.normalize import normalize_axes, normalize_axis, rank_of
from burn.functions.views import independent

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


_argmax = unary(dispatch, "argmax")
_argmin = unary(dispatch, "argmin")
_sum = unary(dispatch, "sum")


class ValuesAndIndices(NamedTuple):
    """Elements of a tensor, and where along an axis they were."""

    values: Any
    indices: Any


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Place of the largest element, the first of equals, in the device's default integer dtype.

    Parameters
    ----------
    x : Tensor
        Real tensor. NaN counts as largest.
    axis : int, optional
        The axis to search along; without one, the place among all elements in row-major order.
    keepdims : bool
        Whether the searched axes stay, with length 1.
    """
    return _places(_argmax, x, axis, "argmax", keepdims=keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Place of the smallest element; NaN comes before all. See `argmax` for the parameters."""
    return _places(_argmin, x, axis, "argmin", keepdims=keepdims)


def max_with_indices(x: Tensor, /, *, axis: int, keepdims: bool = False) -> ValuesAndIndices:
    """Largest elements along an axis and their places: the first of equals, NaN being the largest.

    The gradient goes to the element at that place alone, unlike that of `max`.
    """
    return _with_indices(x, argmax, axis, "max_with_indices", keepdims=keepdims)


def min_with_indices(x: Tensor, /, *, axis: int, keepdims: bool = False) -> ValuesAndIndices:
    """Smallest elements along an axis and their places: the first of equals, NaN before all.

    The gradient goes to the element at that place alone, unlike that of `min`.
    """
    return _with_indices(x, argmin, axis, "min_with_indices", keepdims=keepdims)


def _with_indices(
    x: Tensor, search: Callable[..., Tensor], axis: int, operation: str, *, keepdims: bool
) -> ValuesAndIndices:
    number = normalize_axis(x, axis, operation)
    indices = search(x, axis=number, keepdims=True)
    values = take_along_axis(x, indices, axis=number)
    if not keepdims:
        values, indices = (independent(one.squeeze(number)) for one in (values, indices))
    return ValuesAndIndices(values, indices)


def count_nonzero(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Number of elements that are true (not 0), in the device's default integer dtype."""
    axes = normalize_axes(x, axis, "count_nonzero")
    dtype = x.device.settings.int_dtype
    truth = x if x.dtype.is_bool else x != 0
    return _sum(truth.astype(dtype), axis=axes, keepdims=keepdims, dtype=dtype)


def searchsorted(
    x1: Tensor,
    x2: Tensor,
    /,
    *,
    side: str = "left",
    sorter: Tensor | None = None,
) -> Tensor:
    """Places in a sorted vector before which elements can be put so that it stays sorted.

    Parameters
    ----------
    x1 : Tensor, shape (N,)
        Vector in ascending order; NaN comes last.
    x2 : Tensor or number
        What to find places for.
    side : {"left", "right"}
        Which of the places between equal elements: the first, or the last.
    sorter : Tensor, shape (N,), optional
        Places that bring `x1` into ascending order, as `argsort` gives them.

    Returns
    -------
    Tensor
        In the shape of `x2` and the device's default integer dtype.

    Examples
    --------
    >>> import burn
    >>> burn.searchsorted(burn.asarray([1, 3, 5], device="cpu"), 3, side="right").item()
    2
    """
    rank_of(x1, "searchsorted")
    if side not in ("left", "right"):
        raise ArgumentError(f'side is "left" or "right", not {side!r}', operation="searchsorted")
    if not isinstance(x2, DispatchTensor):
        dtype = result_type(x1, x2) if isinstance(x2, (int, float)) else None
        x2 = asarray(x2, dtype=dtype, device=x1.device)
    if sorter is not None:
        x1 = take_along_axis(x1, sorter, axis=0)
    return dispatch.execute(  # type: ignore[no-any-return]  # one output
        "searchsorted", x1, x2, right=side == "right", dtype=x1.device.settings.int_dtype
    )


def where(condition: Tensor, x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise `x1` where the condition holds, else `x2`; all broadcast.

    What is not chosen has no influence on the result or on gradients, even if it is NaN.

    Parameters
    ----------
    condition : Tensor
        Bool tensor.
    x1, x2 : Tensor or number
        What to choose from.
    """
    if isinstance(x1, (bool, int, float)) and isinstance(x2, (bool, int, float)):
        # Two numbers: there is no tensor to take the dtype of.
        from burn.functions.creation import asarray

        x1 = asarray(x1, device=condition.device)
        x2 = asarray(x2, device=condition.device)
    return dispatch.execute("where", condition, x1, x2)  # type: ignore[no-any-return]  # one output


def _places(
    function: Callable[..., Tensor], x: Tensor, axis: int | None, operation: str, *, keepdims: bool
) -> Tensor:
    dtype = x.device.settings.int_dtype
    if axis is not None:
        number = normalize_axis(x, axis, operation)
        return function(x, axis=number, keepdims=keepdims, dtype=dtype)
    rank = len(x.shape)
    place = function(x.reshape((-1,)), axis=0, keepdims=False, dtype=dtype)
    return place.reshape((1,) * rank, copy=True) if keepdims else place


def argwhere(x: Tensor, /) -> Tensor:
    """Places of the elements that are true (not 0): a row of indices for each, in row-major order.

    Its shape depends on the data, which are read for it.
    """
    rank_of(x, "argwhere")
    return dispatch.execute("argwhere", x, dtype=x.device.settings.int_dtype)  # type: ignore[no-any-return]  # one output


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Places of the elements that are true (not 0): a vector of indices for each axis.

    Raises
    ------
    ShapeError
        If the tensor has no axes.
    """
    rank = rank_of(x, "nonzero")
    if not rank:
        raise ShapeError("a 0-d tensor has no axis", hint="Use argwhere", operation="nonzero")
    places = argwhere(x)
    return tuple([independent(places[:, axis]) for axis in range(rank)])
