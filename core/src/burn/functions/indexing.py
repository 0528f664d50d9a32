"""Reading and writing at computed places (chapter "Indexing Functions", and its like)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.dispatch import DispatchTensor
from burn.errors import AxisError, DTypeError
from burn.functions.common import Operand, dispatch
from burn.functions.creation import asarray
from burn.functions.manipulation import broadcast_to
from burn.functions.normalize import normalize_axis, rank_of

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "gather_nd",
    "mask_fill",
    "put_along_axis",
    "scatter",
    "scatter_add",
    "scatter_nd",
    "select_add",
    "select_assign",
    "take",
    "take_along_axis",
]


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """Whole slices along an axis, one for each of a 1-d tensor of indices.

    Raises
    ------
    OutOfRangeError
        If an index is not in [-n, n); on an asynchronous device at the next read.
    """
    if axis is None:
        if rank_of(x, "take") != 1:
            raise AxisError(f"a tensor of shape {x.shape} needs an axis", operation="take")
        axis = 0
    number = normalize_axis(x, axis, "take")
    return dispatch.execute("select", x, indices, axis=number)  # type: ignore[no-any-return]  # one output


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """One element for each index: its place, with that along `axis` replaced by the index.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    indices : Tensor
        Integers in [-n, n); its shape broadcasts with that of `x` but for `axis`.
    axis : int
        The axis that is indexed.
    """
    number = normalize_axis(x, axis, "take_along_axis")
    shape, places = x.shape, indices.shape
    if len(shape) == len(places):
        rest = [max(a, b) if 1 in (a, b) else a for a, b in zip(shape, places, strict=True)]
        target = (*rest[:number], shape[number], *rest[number + 1 :])
        spread = (*rest[:number], places[number], *rest[number + 1 :])
        x = x if shape == target else broadcast_to(x, target)
        indices = indices if places == spread else broadcast_to(indices, spread)
    return dispatch.execute("gather", x, indices, axis=number)  # type: ignore[no-any-return]  # one output


def scatter_add(x: Tensor, indices: Tensor, value: Tensor, /, *, axis: int) -> Tensor:
    """`x` with each element of `value` added at its place, that along `axis` replaced by an index.

    Repeated indices add up. `indices` and `value` have one shape, which may differ from that of
    `x` along `axis`.
    """
    number = normalize_axis(x, axis, "scatter_add")
    return dispatch.execute("scatter_add", x, indices, value, axis=number)  # type: ignore[no-any-return]  # one output


def select_add(x: Tensor, indices: Tensor, value: Tensor, /, *, axis: int) -> Tensor:
    """`x` with slices of `value` added at places along `axis`, which a 1-d tensor names."""
    number = normalize_axis(x, axis, "select_add")
    return dispatch.execute("select_add", x, indices, value, axis=number)  # type: ignore[no-any-return]  # one output


def scatter(
    x: Tensor, indices: Tensor, value: Tensor, /, *, axis: int, update: str = "assign"
) -> Tensor:
    """`x` updated with each of `value` at its place, that along `axis` replaced by an index.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    indices : Tensor
        Integers in [-n, n). Their shape may differ from that of `x` along `axis`.
    value : Tensor
        A value for each index.
    axis : int
        The axis that is indexed.
    update : {"assign", "add", "multiply", "min", "max"}
        What happens at a place. Of several assignments the last one in row-major order wins; other
        updates take all of them.

    Examples
    --------
    >>> import burn
    >>> x = burn.zeros(3, device="cpu")
    >>> places = burn.asarray([0, 2, 2], device="cpu")
    >>> value = burn.asarray([1.0, 2.0, 3.0], device="cpu")
    >>> burn.scatter(x, places, value, axis=0).tolist()
    [1.0, 0.0, 3.0]
    """
    number = normalize_axis(x, axis, "scatter")
    return dispatch.execute("scatter", x, indices, value, axis=number, update=update)  # type: ignore[no-any-return]  # one output


def put_along_axis(x: Tensor, indices: Tensor, values: Operand, /, *, axis: int) -> Tensor:
    """A tensor with other elements at the places that `take_along_axis` reads; the last wins.

    Unlike NumPy's, it returns a new tensor. `values` broadcasts to the indices.
    """
    number = normalize_axis(x, axis, "put_along_axis")
    rank = rank_of(indices, "put_along_axis")
    if rank == len(x.shape):
        spread = tuple(
            [
                indices.shape[place] if place == number else length
                for place, length in enumerate(x.shape)
            ]
        )
        indices = indices if indices.shape == spread else broadcast_to(indices, spread)
    if not isinstance(values, DispatchTensor):
        values = asarray(values, dtype=x.dtype, device=x.device)
    return scatter(x, indices, broadcast_to(values.astype(x.dtype), indices.shape), axis=number)


def select_assign(
    x: Tensor, indices: Tensor, value: Tensor, /, *, axis: int, update: str = "assign"
) -> Tensor:
    """`x` updated with slices of `value` at places along `axis`, which a 1-d tensor names.

    See `scatter` for the updates.
    """
    number = normalize_axis(x, axis, "select_assign")
    return dispatch.execute("select_assign", x, indices, value, axis=number, update=update)  # type: ignore[no-any-return]  # one output


def gather_nd(x: Tensor, indices: Tensor, /) -> Tensor:
    """One part of `x` for each row of indices, which index its first axes.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    indices : Tensor, shape (..., K)
        Integers in [-n, n), one for each of the first K axes.

    Returns
    -------
    Tensor
        ``output[i, j, ...] = x[indices[i, j, 0], indices[i, j, 1], ...]``.
    """
    rank_of(x, "gather_nd")
    return dispatch.execute("gather_nd", x, indices)  # type: ignore[no-any-return]  # one output


def scatter_nd(x: Tensor, indices: Tensor, value: Tensor, /, *, update: str = "assign") -> Tensor:
    """`x` updated with a part of `value` for each row of indices, which index its first axes.

    See `gather_nd` for the indices and `scatter` for the updates.
    """
    rank_of(x, "scatter_nd")
    return dispatch.execute("scatter_nd", x, indices, value, update=update)  # type: ignore[no-any-return]  # one output


def mask_fill(x: Tensor, mask: Tensor, value: Operand, /) -> Tensor:
    """`x` with a value where the mask is true; all broadcast.

    Raises
    ------
    DTypeError
        If the value is of a kind that the dtype of `x` does not hold, such as 1.5 for integers.
    """
    rank_of(x, "mask_fill")
    result: Tensor = dispatch.execute("where", mask, value, x)
    if result.dtype.kind is not x.dtype.kind and not (
        result.dtype.is_integer and x.dtype.is_integer
    ):
        shown = value.dtype if isinstance(value, DispatchTensor) else repr(value)
        raise DTypeError(
            f"a tensor of {x.dtype} does not hold {shown}",
            hint="Convert it with .astype(), or use where(), whose operands promote",
            operation="mask_fill",
        )
    return result
