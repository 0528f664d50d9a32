"""Reading and writing at computed indices (chapter "Indexing Functions", and its like)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burn.dispatch import DispatchTensor, as_python
from burn.docstrings import documented_as
from burn.errors import ArgumentError, AxisError, DTypeError, ShapeError
from burn.functions import calls
from burn.functions.common import Operand
from burn.functions.creation import arange, full
from burn.functions.manipulation import broadcast_to
from burn.functions.normalize import (
    as_scalar,
    check_tensor,
    normalize_axis,
    number_dtype,
    rank_of,
)
from burn.ops.arguments import as_integer
from burn.public_calls import shown_value

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "gather_nd",
    "mask_fill",
    "put_along_axis",
    "scatter_nd",
    "select_add",
    "select_assign",
    "take",
    "take_along_axis",
]


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """Whole slices along an axis, one for each index.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    indices : Tensor
        Integers in [-n, n), where n is the length of the axis; of any shape.
    axis : int, optional
        The axis, which may be left out for a 1-d tensor.

    Returns
    -------
    Tensor
        The slices: the axes of `indices` replace `axis`.

    Raises
    ------
    OutOfRangeError
        If an index is not in [-n, n); on an asynchronous device at the next read.
    AxisError
        If there is no such axis, or none is given for a tensor with several.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([10, 20, 30], device="cpu")
    >>> burn.take(x, burn.asarray([0, -1, 0], device="cpu")).tolist()
    [10, 30, 10]
    >>> burn.take(x, burn.asarray([[0, 1], [2, 2]], device="cpu")).tolist()
    [[10, 20], [30, 30]]
    """
    if axis is None:
        if rank_of(x, "take") != 1:
            raise AxisError(f"a tensor of shape {x.shape} needs an axis", operation="take")
        axis = 0
    number = normalize_axis(x, axis, "take")
    if not isinstance(indices, DispatchTensor):
        check_tensor(indices, "indices", "take")
    if len(indices.primitive.shape) == 1:  # as it nearly always is
        return calls.select(x, indices, axis=number)
    result = calls.select(x, indices.reshape((-1,)), axis=number)
    return result.reshape((*x.shape[:number], *indices.shape, *x.shape[number + 1 :]), copy=True)


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """One element of `x` for each index along an axis.

    For two axes and ``axis=0`` it is ``output[i, j] = x[indices[i, j], j]``.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    indices : Tensor
        Integers in [-n, n), where n is the length of the axis. Its shape broadcasts with that of
        `x` on the other axes.
    axis : int
        The axis that is indexed.

    Returns
    -------
    Tensor
        Of the broadcast shape of `indices` and the dtype of `x`.

    Raises
    ------
    OutOfRangeError
        If an index is not in [-n, n); on an asynchronous device at the next read.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([[10, 20], [30, 40]], device="cpu")
    >>> burn.take_along_axis(x, burn.asarray([[1], [0]], device="cpu"), axis=1).tolist()
    [[20], [30]]
    """
    number = normalize_axis(x, axis, "take_along_axis")
    if not isinstance(indices, DispatchTensor):
        check_tensor(indices, "indices", "take_along_axis")
    shape, index_shape = x.shape, indices.shape
    if len(shape) == len(index_shape):
        rest = [max(a, b) if 1 in (a, b) else a for a, b in zip(shape, index_shape, strict=True)]
        target = (*rest[:number], shape[number], *rest[number + 1 :])
        spread = (*rest[:number], index_shape[number], *rest[number + 1 :])
        x = x if shape == target else broadcast_to(x, target)
        indices = indices if index_shape == spread else broadcast_to(indices, spread)
    return calls.gather(x, indices, axis=number)


def select_add(x: Tensor, indices: Tensor, value: Tensor, /, *, axis: int) -> Tensor:
    """`x` with slices of `value` added at indices along an axis; repeated indices add up.

    Parameters
    ----------
    x : Tensor
        Numbers.
    indices : Tensor, shape (N,)
        Integers in [-n, n), where n is the length of the axis.
    value : Tensor
        N slices to add, of the shape of `x` on the other axes.
    axis : int
        The axis that is indexed.

    Returns
    -------
    Tensor
        In the shape of `x`.

    Raises
    ------
    OutOfRangeError
        If an index is not in [-n, n); on an asynchronous device at the next read.

    Examples
    --------
    >>> import burn
    >>> x, value = burn.zeros((2, 2), device="cpu"), burn.ones((1, 2), device="cpu")
    >>> burn.select_add(x, burn.asarray([1], device="cpu"), value, axis=0).tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """
    number = normalize_axis(x, axis, "select_add")
    return calls.select_add(x, indices, value, axis=number)


@documented_as(take_along_axis)
def put_along_axis(x: Tensor, indices: Tensor, values: Operand, /, *, axis: int) -> Tensor:
    """A tensor with other elements at the indices that `take_along_axis` reads.

    Unlike NumPy's function it returns a new tensor.

    The other parameters are those of `take_along_axis`.

    Parameters
    ----------
    indices : Tensor
        Integers in [-n, n), where n is the length of the axis. Its shape broadcasts with that of
        `x` on the other axes. Of repeated indices the last one wins.
    values : Tensor or number
        The new elements, which broadcast to the indices; they are converted to the dtype of `x`.

    Returns
    -------
    Tensor
        Of the shape and dtype of `x`.

    Examples
    --------
    >>> import burn
    >>> x = burn.zeros((2, 2), device="cpu")
    >>> burn.put_along_axis(x, burn.asarray([[1], [0]], device="cpu"), 5.0, axis=1).tolist()
    [[0.0, 5.0], [5.0, 0.0]]
    """
    number = normalize_axis(x, axis, "put_along_axis")
    check_tensor(indices, "indices", "put_along_axis")
    if indices.ndim == x.ndim:
        spread = (*x.shape[:number], indices.shape[number], *x.shape[number + 1 :])
        indices = indices if indices.shape == spread else broadcast_to(indices, spread)
    if not isinstance(values, DispatchTensor):
        values = number_like(values, x, "values", "put_along_axis")
    values = broadcast_to(values.astype(number_dtype(x)), indices.shape)
    return calls.scatter(x, indices, values, axis=number, update="assign")


@documented_as(select_add)
def select_assign(
    x: Tensor, indices: Tensor, value: Tensor, /, *, axis: int, update: str = "assign"
) -> Tensor:
    """`x` updated with slices of `value` at indices along an axis.

    The other parameters are those of `select_add`.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    value : Tensor
        N slices, of the shape of `x` on the other axes.
    update : {"assign", "add", "multiply", "min", "max"}
        How an element and a value combine; see `scatter`.

    Examples
    --------
    >>> import burn
    >>> x, value = burn.zeros((2, 2), device="cpu"), burn.ones((1, 2), device="cpu")
    >>> burn.select_assign(x, burn.asarray([1], device="cpu"), value, axis=0).tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """
    number = normalize_axis(x, axis, "select_assign")
    return calls.select_assign(x, indices, value, axis=number, update=update)


def number_like(value: Any, x: Tensor, name: str, operation: str) -> Tensor:
    """A number as a 0-d tensor in the dtype and on the device of another one."""
    number = as_python(value)
    if not isinstance(number, (bool, int, float, complex)):
        check_tensor(value, name, operation)
    dtype = number_dtype(x)
    return full((), as_scalar(number, dtype, operation), dtype=dtype, device=x.device)


def gather_nd(x: Tensor, indices: Tensor, /, *, batch_dims: int = 0) -> Tensor:
    """One part of `x` for each row of indices, which index its first axes.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    indices : Tensor, shape (..., K)
        Integers in [-n, n), one for each of the first K axes, or of the first K after the
        `batch_dims`.
    batch_dims : int
        The number of leading axes that `x` and `indices` share: each of their parts is indexed by
        its own indices.

    Returns
    -------
    Tensor
        ``output[i, j, ...] = x[indices[i, j, 0], indices[i, j, 1], ...]``; with one batch axis
        ``output[i, j, ...] = x[i, indices[i, j, 0], indices[i, j, 1], ...]``.

    Raises
    ------
    ArgumentError
        If `batch_dims` is negative, or not less than the rank of `indices`.
    OutOfRangeError
        If an index is not in [-n, n); on an asynchronous device at the next read.
    ShapeError
        If the batch axes differ, or a row has more indices than there are axes.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([[1, 2], [3, 4]], device="cpu")
    >>> burn.gather_nd(x, burn.asarray([[0, 1], [1, 0]], device="cpu")).tolist()
    [2, 3]
    >>> burn.gather_nd(x, burn.asarray([[0], [1]], device="cpu"), batch_dims=1).tolist()
    [1, 4]
    """
    check_tensor(x, "x", "gather_nd")
    count = as_integer(batch_dims, "batch_dims", "gather_nd", least=0)
    if not count:
        return calls.gather_nd(x, indices)
    check_tensor(indices, "indices", "gather_nd")
    if count >= indices.ndim:
        raise ArgumentError(
            f"batch_dims is {shown_value(count)} for indices of shape {indices.shape}",
            hint="The last axis has the indices",
            operation="gather_nd",
        )
    lengths = indices.shape[:count]
    if x.shape[:count] != lengths:
        raise ShapeError(
            f"the first {count} axes of {x.shape} and of indices {indices.shape} differ",
            hint="Batch axes have equal lengths",
            operation="gather_nd",
        )
    indices = indices.astype(x.device.settings.int_dtype)
    rows = []  # the index along each batch axis, for each row of indices
    for axis, length in enumerate(lengths):
        column = [1] * indices.ndim
        column[axis] = length
        index = arange(length, dtype=indices.dtype, device=indices.device)
        rows.append(broadcast_to(index.reshape(tuple(column)), (*indices.shape[:-1], 1)))
    return calls.gather_nd(x, calls.concat([*rows, indices], axis=indices.ndim - 1))


@documented_as(select_add)
def scatter_nd(x: Tensor, indices: Tensor, value: Tensor, /, *, update: str = "assign") -> Tensor:
    """`x` updated with a part of `value` for each row of indices, which index its first axes.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    indices : Tensor, shape (..., K)
        Integers in [-n, n), one for each of the first K axes; see `gather_nd`.
    value : Tensor
        A part for each row of indices: its shape is the leading shape of `indices`, and then that
        of the remaining axes of `x`.
    update : {"assign", "add", "multiply", "min", "max"}
        How an element and a value combine; see `scatter`.

    Examples
    --------
    >>> import burn
    >>> x, value = burn.zeros((2, 2), device="cpu"), burn.asarray([5.0], device="cpu")
    >>> burn.scatter_nd(x, burn.asarray([[0, 1]], device="cpu"), value).tolist()
    [[0.0, 5.0], [0.0, 0.0]]
    """
    check_tensor(x, "x", "scatter_nd")
    return calls.scatter_nd(x, indices, value, update=update)


def mask_fill(x: Tensor, mask: Tensor, value: Operand, /) -> Tensor:
    """`x` with another value where a mask is true.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    mask : Tensor
        Booleans, of a shape that broadcasts with that of `x`.
    value : Tensor or number
        The other value, which broadcasts with `x`.

    Returns
    -------
    Tensor
        Of the shape to which all operands broadcast.

    Raises
    ------
    DTypeError
        If the value is of a kind that the dtype of `x` does not hold, such as 1.5 for integers.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([1.0, -2.0], device="cpu")
    >>> burn.mask_fill(x, x < 0, 0.0).tolist()
    [1.0, 0.0]
    """
    check_tensor(x, "x", "mask_fill")
    result = calls.where(mask, value, x)
    holds = result.dtype.kind is x.dtype.kind or (result.dtype.is_float and x.dtype.is_float)
    if not (holds or (result.dtype.is_integer and x.dtype.is_integer)):
        shown = value.dtype if isinstance(value, DispatchTensor) else repr(value)
        raise DTypeError(
            f"a tensor of {x.dtype} does not hold {shown}",
            hint="Convert it with .astype(), or use where(), whose operands promote",
            operation="mask_fill",
        )
    return result
