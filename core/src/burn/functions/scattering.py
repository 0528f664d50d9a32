"""Reading and writing at one index for each element, which may be fewer than the tensor has."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from burn.dispatch import DispatchTensor
from burn.docstrings import documented_as
from burn.dtype import DType, float32
from burn.errors import DTypeError, ShapeError
from burn.functions import calls
from burn.functions.common import Operand
from burn.functions.creation import full_like, ones, zeros, zeros_like
from burn.functions.elementwise import maximum
from burn.functions.indexing import number_like
from burn.functions.manipulation import broadcast_to
from burn.functions.normalize import (
    as_flag,
    check_choice,
    check_tensor,
    normalize_axis,
    number_dtype,
)
from burn.functions.quantization import numbers_of
from burn.functions.searching import where

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn.tensor.tensor import Tensor

__all__ = ["gather", "scatter", "scatter_add"]

_UPDATES: Final = ("assign", "add", "multiply", "min", "max", "mean")


def gather(x: Tensor, indices: Tensor, /, *, axis: int) -> Tensor:
    """One element of `x` for each index along an axis; there may be fewer than `x` has.

    For two axes and ``axis=0`` it is ``output[i, j] = x[indices[i, j], j]``. `take_along_axis`, as
    NumPy has it, does the same with indices that broadcast with `x`.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    indices : Tensor
        Integers in [-n, n), where n is the length of the axis. On the other axes its lengths are
        at most those of `x`, of which the first elements are read.
    axis : int
        The axis that is indexed.

    Returns
    -------
    Tensor
        In the shape of `indices` and the dtype of `x`.

    Raises
    ------
    AxisError
        If `x` has no such axis.
    OutOfRangeError
        If an index is not in [-n, n); on an asynchronous device at the next read.
    ShapeError
        If the ranks differ, or the indices are longer than `x` on another axis.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([[10, 20], [30, 40]], device="cpu")
    >>> burn.gather(x, burn.asarray([[1], [0]], device="cpu"), axis=0).tolist()
    [[30], [10]]
    """
    number = normalize_axis(x, axis, "gather")
    region = _region(x, indices, number, "gather")
    return calls.gather(x if region is None else x[region], indices, axis=number)


def scatter_add(x: Tensor, indices: Tensor, value: Operand, /, *, axis: int) -> Tensor:
    """`x` with each element of `value` added at an index along an axis.

    Repeated indices add up. For two axes and ``axis=0`` the result starts as `x`, and then
    ``output[indices[i, j], j] += value[i, j]``.

    Parameters
    ----------
    x : Tensor
        Numbers.
    indices : Tensor
        Integers in [-n, n), where n is the length of the axis. On the other axes its lengths are
        at most those of `x`, of which the first elements are written.
    value : Tensor or number
        Numbers to add: one for all indices, or a tensor at least as long as `indices` on each axis,
        whose first elements are read.
    axis : int
        The axis that is indexed.

    Returns
    -------
    Tensor
        In the shape of `x`.

    Raises
    ------
    AxisError
        If `x` has no such axis.
    OutOfRangeError
        If an index is not in [-n, n); on an asynchronous device at the next read.
    ShapeError
        If the ranks differ, or the indices are longer than `x` on another axis, or than `value`.

    Examples
    --------
    >>> import burn
    >>> x, value = burn.zeros(3, device="cpu"), burn.ones(3, device="cpu")
    >>> burn.scatter_add(x, burn.asarray([0, 2, 2], device="cpu"), value, axis=0).tolist()
    [1.0, 0.0, 2.0]
    """
    number = normalize_axis(x, axis, "scatter_add")
    region = _region(x, indices, number, "scatter_add")
    value = _values(x, indices, value, "scatter_add")
    if region is None:
        return calls.scatter_add(x, indices, value, axis=number)
    return _replaced(x, region, calls.scatter_add(x[region], indices, value, axis=number))


@documented_as(scatter_add)
def scatter(
    x: Tensor,
    indices: Tensor,
    value: Operand,
    /,
    *,
    axis: int,
    update: str = "assign",
    include_self: bool = True,
) -> Tensor:
    """`x` updated with each element of `value` at an index along an axis.

    For two axes and ``axis=0`` the result starts as `x`, and then
    ``output[indices[i, j], j] = value[i, j]``, or another update.

    The other parameters are those of `scatter_add`.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    value : Tensor or number
        The updates: one for all indices, or a tensor at least as long as `indices` on each axis,
        whose first elements are read.
    update : {"assign", "add", "multiply", "min", "max", "mean"}
        How an element and its values combine. Of several values assigned at one index the last one
        in row-major order wins; the other updates combine all of them. A mean of integers is
        rounded down.
    include_self : bool
        Whether an element of `x` at an index is among the values that are combined there; without
        effect on "assign".

    Raises
    ------
    ArgumentError
        If `update` is another string.
    DTypeError
        If booleans are added, multiplied or averaged, or complex numbers compared.

    Examples
    --------
    >>> import burn
    >>> x = burn.ones(3, device="cpu")
    >>> indices = burn.asarray([0, 2, 2], device="cpu")
    >>> value = burn.asarray([1.0, 2.0, 3.0], device="cpu")
    >>> burn.scatter(x, indices, value, axis=0).tolist()
    [1.0, 1.0, 3.0]
    >>> burn.scatter(x, indices, value, axis=0, update="add", include_self=False).tolist()
    [1.0, 1.0, 5.0]
    """
    number = normalize_axis(x, axis, "scatter")
    check_choice(update, _UPDATES, "update", "scatter")
    includes = as_flag(include_self, "include_self", "scatter")
    region = _region(x, indices, number, "scatter")
    value = _values(x, indices, value, "scatter")
    part = x if region is None else x[region]
    if update == "mean":
        result = _averaged(part, indices, value, number, includes=includes)
    elif includes or update == "assign":
        result = calls.scatter(part, indices, value, axis=number, update=update)
    else:
        part = numbers_of(part)
        start = full_like(part, _neutral(update, part.dtype))
        combined = calls.scatter(start, indices, value, axis=number, update=update)
        result = where(_counts(part, indices, number) > 0, combined, part)
    return result if region is None else _replaced(x, region, result)


def _region(x: Tensor, indices: Tensor, axis: int, operation: str) -> tuple[slice, ...] | None:
    """The part of `x` that indices reach; None for all of it."""
    if not isinstance(indices, DispatchTensor):
        check_tensor(indices, "indices", operation)
    shape: Shape = x.primitive.shape
    lengths: Shape = indices.primitive.shape
    if len(lengths) != len(shape) or any(
        length > shape[number] and number != axis for number, length in enumerate(lengths)
    ):
        raise ShapeError(
            f"indices of shape {tuple(lengths)} do not fit {tuple(shape)}",
            hint=f"They have as many axes; all lengths but that of axis {axis} are at most equal",
            operation=operation,
        )
    reached = (*lengths[:axis], shape[axis], *lengths[axis + 1 :])
    if reached == tuple(shape):
        return None
    return tuple([slice(length) for length in reached])


def _values(x: Tensor, indices: Tensor, value: Operand, operation: str) -> Tensor:
    """A value for each index."""
    shape: Shape = tuple(indices.primitive.shape)
    if not isinstance(value, DispatchTensor):
        return broadcast_to(number_like(value, x, "value", operation), shape)
    own: Shape = tuple(value.primitive.shape)
    if own == shape:
        return value
    if len(own) != len(shape) or any(a < b for a, b in zip(own, shape, strict=True)):
        raise ShapeError(
            f"value of shape {own} for indices of shape {shape}",
            hint="There is a value for each index; broadcast_to() repeats values",
            operation=operation,
        )
    return value[tuple([slice(length) for length in shape])]


def _replaced(x: Tensor, region: tuple[slice, ...], part: Tensor) -> Tensor:
    """`x` with another tensor in place of its first elements."""
    slices = tuple([(0, item.stop, 1) for item in region])
    return calls.slice_assign(x, part, slices=slices)


def _counts(x: Tensor, indices: Tensor, axis: int) -> Tensor:
    """For each element the number of its indices."""
    dtype = x.device.settings.int_dtype
    nothing = zeros(x.shape, dtype=dtype, device=indices.device)
    one = broadcast_to(ones((), dtype=dtype, device=indices.device), indices.shape)
    return calls.scatter_add(nothing, indices, one, axis=axis)


def _averaged(x: Tensor, indices: Tensor, value: Tensor, axis: int, *, includes: bool) -> Tensor:
    dtype = number_dtype(x)
    if dtype.is_bool:
        raise DTypeError(
            "booleans have no mean", hint="Convert them with .astype()", operation="scatter"
        )
    wide = float32 if dtype.is_float and dtype.itemsize < float32.itemsize else dtype
    x = numbers_of(x)
    start = x.astype(wide)
    start = start if includes else zeros_like(start)
    total = calls.scatter_add(start, indices, value.astype(wide), axis=axis)
    count = _counts(x, indices, axis)
    divisor = maximum(count + 1 if includes else count, 1).astype(wide)
    mean = total // divisor if dtype.is_integer else total / divisor
    return where(count > 0, mean.astype(dtype), x)


def _neutral(update: str, dtype: DType) -> float:
    """What changes no value that it is combined with."""
    if update in ("add", "multiply"):
        return 0 if update == "add" else 1
    if dtype.is_bool:
        return update == "min"
    if dtype.is_integer:
        low, high = dtype.integer_range
        return high if update == "min" else low
    return math.inf if update == "min" else -math.inf
