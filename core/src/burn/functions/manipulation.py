"""Dtype, shape and order of elements (chapters "Manipulation" and "Data Type Functions")."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from burn.dispatch import DispatchTensor
from burn.docstrings import documented_as
from burn.errors import AxisError, DTypeError, OperandTypeError, ShapeError
from burn.functions import calls
from burn.functions.common import Axis, DeviceLike, DTypeLike
from burn.functions.normalize import (
    as_dtype,
    as_flag,
    as_shape,
    check_tensor,
    check_tensors,
    find_device,
    normalize_axes,
    normalize_axis,
    rank_of,
)
from burn.functions.quantization import quantize_dynamic
from burn.functions.views import independent, viewing
from burn.ops.shapes import broadcast_shapes as shapes_broadcast
from burn.public_calls import public_operation, shown_value
from burn.quant_scheme import QDType

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn.tensor.tensor import Tensor

__all__ = [
    "astype",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "concat",
    "expand_dims",
    "flatten",
    "flip",
    "moveaxis",
    "permute_dims",
    "reshape",
    "squeeze",
    "stack",
    "transpose",
]

_view_reshape = viewing("reshape")
_view_permute = viewing("permute")
_view_expand = viewing("expand")
_view_flip = viewing("flip")


def astype(
    x: Tensor,
    dtype: DTypeLike,
    /,
    *,
    copy: bool = True,
    device: DeviceLike | None = None,
) -> Tensor:
    """The elements as another dtype.

    Floats are truncated to integers; a value out of range becomes the nearest one of the dtype, and
    NaN becomes 0, on every backend. Integers wrap around in a narrower dtype.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    dtype : DType or str
        The dtype of the result.
    copy : bool
        False for `x` itself where it has the dtype already. Otherwise the result is another
        tensor: ``y[i] = v`` does not change `x`.
    device : Device or str, optional
        Device of the result. By default that of `x`.

    Returns
    -------
    Tensor
        In the shape of `x`.

    Raises
    ------
    DTypeError
        If the device does not have the dtype, or a complex number would become a real one.

    Examples
    --------
    >>> import burn
    >>> burn.astype(burn.asarray([1.7, -1.7], device="cpu"), burn.int32).tolist()
    [1, -1]
    """
    wanted = as_dtype(dtype, "astype")
    if not isinstance(x, DispatchTensor):
        check_tensor(x, "x", "astype")
    if copy.__class__ is not bool:
        copy = as_flag(copy, "copy", "astype")
    if device is not None:
        x = x.to_device(find_device(device, "astype"))
    if x.dtype is wanted:
        return independent(x) if copy else x
    if isinstance(wanted, QDType):
        return quantize_dynamic(x, wanted.scheme)
    try:
        x.device.tensor_type(wanted)
    except DTypeError as error:
        error.operation = public_operation("astype")
        raise
    return calls.cast(x, dtype=wanted)


def reshape(x: Tensor, /, shape: int | Shape, *, copy: bool | None = None) -> Tensor:
    """A view of the same elements, in row-major order, under another shape.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    shape : int or tuple of int
        The new shape. One length may be -1: it follows from the others.
    copy : bool, optional
        True for a tensor that is independent of `x`. Otherwise the result is a view: a write to
        either changes both.

    Returns
    -------
    Tensor
        Of the new shape.

    Raises
    ------
    ShapeError
        If the shapes have different numbers of elements.

    Examples
    --------
    >>> import burn
    >>> burn.reshape(burn.arange(6, device="cpu"), (2, -1)).shape
    (2, 3)
    """
    if not isinstance(x, DispatchTensor):
        check_tensor(x, "x", "reshape")
    wanted = as_shape(shape, "reshape")
    if wanted and min(wanted) < 0:
        wanted = _inferred_shape(x, wanted)
    if copy is None:
        return _view_reshape(x, wanted)
    if as_flag(copy, "copy", "reshape"):
        return calls.reshape(x, shape=wanted)
    return _view_reshape(x, wanted)


def _inferred_shape(x: Tensor, shape: Shape) -> Shape:
    """A shape with a length in place of -1."""
    size, known = math.prod(x.primitive.shape), -math.prod(shape)
    if min(shape) != -1 or shape.count(-1) > 1 or known == 0 or size % known:
        raise ShapeError(
            f"cannot reshape {size} elements {x.shape} into {shape}",
            hint="One length may be -1, no other negative, and they must divide the elements",
            operation="reshape",
        )
    axis = shape.index(-1)
    return (*shape[:axis], size // known, *shape[axis + 1 :])


def flatten(x: Tensor, /, start_axis: int = 0, end_axis: int = -1) -> Tensor:
    """All elements along one axis, in row-major order; or consecutive axes as one. No view.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    start_axis, end_axis : int
        The first and the last of the axes that become one; by default these are all.

    Returns
    -------
    Tensor, shape (N,), or that of `x` with one axis in place of several
        The elements of `x`.

    Raises
    ------
    AxisError
        If an axis is out of range, or the last stands before the first.

    Examples
    --------
    >>> import burn
    >>> burn.flatten(burn.asarray([[1, 2], [3, 4]], device="cpu")).tolist()
    [1, 2, 3, 4]
    >>> burn.flatten(burn.zeros((2, 3, 4), device="cpu"), 1).shape
    (2, 12)
    """
    if not isinstance(x, DispatchTensor):
        check_tensor(x, "x", "flatten")
    if start_axis.__class__ is end_axis.__class__ is int and (start_axis, end_axis) == (0, -1):
        return calls.reshape(x, shape=(x.size,))
    rank = max(len(x.primitive.shape), 1)  # a number becomes a vector
    start = normalize_axis(x, start_axis, "flatten", rank=rank)
    end = normalize_axis(x, end_axis, "flatten", rank=rank)
    if start > end:
        raise AxisError(
            f"axis {start_axis} stands after axis {end_axis}",
            hint="start_axis is the first of the axes that become one",
            operation="flatten",
        )
    shape = x.shape
    length = math.prod(shape[start : end + 1])
    return calls.reshape(x, shape=(*shape[:start], length, *shape[end + 1 :]))


def permute_dims(x: Tensor, /, axes: Sequence[int]) -> Tensor:
    """A view with the axes in another order.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    axes : sequence of int
        A permutation of the axes: output axis i is input axis ``axes[i]``.

    Returns
    -------
    Tensor
        The view.

    Raises
    ------
    AxisError
        If `axes` is no permutation of the axes.

    Examples
    --------
    >>> import burn
    >>> burn.permute_dims(burn.zeros((2, 3, 4), device="cpu"), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return _permuted(x, axes, "permute_dims")


def _permuted(x: Tensor, axes: Sequence[int], operation: str) -> Tensor:
    rank = rank_of(x, operation)
    if axes.__class__ is tuple:
        for axis in axes:
            if axis.__class__ is not int or not 0 <= axis < rank:
                break
        else:  # as it nearly always is
            return _view_permute(x, axes)
    if isinstance(axes, (tuple, builtins.list)):
        order = [normalize_axis(x, axis, operation, rank=rank) for axis in axes]
        return _view_permute(x, tuple(order))
    raise OperandTypeError(
        f"axes must be a tuple of integers, not {shown_value(axes)}", operation=operation
    )


@documented_as(permute_dims)
def transpose(x: Tensor, /, axes: Sequence[int] | None = None) -> Tensor:
    """A view with the axes in another order, as NumPy's function of this name.

    Parameters
    ----------
    axes : sequence of int, optional
        A permutation of the axes: output axis i is input axis ``axes[i]``. None reverses the axes.

    Examples
    --------
    >>> import burn
    >>> burn.transpose(burn.zeros((2, 3, 4), device="cpu")).shape
    (4, 3, 2)
    """
    if axes is None:
        return _view_permute(x, tuple(range(rank_of(x, "transpose") - 1, -1, -1)))
    return _permuted(x, axes, "transpose")


def matrix_transpose(x: Tensor, /) -> Tensor:
    """A view with the last two axes exchanged.

    Parameters
    ----------
    x : Tensor
        A matrix, or a stack of matrices.

    Returns
    -------
    Tensor
        The view.

    Raises
    ------
    ShapeError
        If `x` has fewer than two axes.

    Examples
    --------
    >>> import burn
    >>> burn.matrix_transpose(burn.zeros((2, 3, 4), device="cpu")).shape
    (2, 4, 3)
    """
    rank = rank_of(x, "matrix_transpose")
    if rank < 2:
        raise ShapeError(f"a tensor of shape {x.shape} is no matrix", operation="matrix_transpose")
    return transposed_matrices(x, rank)


def transposed_matrices(x: Tensor, rank: int) -> Tensor:
    """`matrix_transpose` of a tensor of two axes or more."""
    return _view_permute(x, (1, 0) if rank == 2 else (*range(rank - 2), rank - 1, rank - 2))


@documented_as(permute_dims)
def moveaxis(
    x: Tensor, source: int | tuple[int, ...], destination: int | tuple[int, ...], /
) -> Tensor:
    """A view with axes moved to other positions; the remaining axes keep their order.

    Parameters
    ----------
    source : int or tuple of int
        The axes to move.
    destination : int or tuple of int
        Their positions in the result.

    Raises
    ------
    AxisError
        If the numbers of axes and positions differ, or one is named twice.

    Examples
    --------
    >>> import burn
    >>> x = burn.zeros((2, 3, 4), device="cpu")
    >>> burn.moveaxis(x, 0, -1).shape
    (3, 4, 2)
    >>> burn.moveaxis(x, (0, 1), (1, 2)).shape
    (4, 2, 3)
    """
    starts = normalize_axes(x, source, "moveaxis")
    ends = normalize_axes(x, destination, "moveaxis")
    if len(starts) != len(ends):
        raise AxisError(
            f"{len(starts)} axes cannot move to {len(ends)} positions", operation="moveaxis"
        )
    order = [axis for axis in range(len(x.shape)) if axis not in starts]
    for end, start in sorted(zip(ends, starts, strict=True)):
        order.insert(end, start)
    return _view_permute(x, tuple(order))


def broadcast_to(x: Tensor, /, shape: Shape) -> Tensor:
    """A read-only view in which axes of length 1, and new leading axes, are repeated.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    shape : tuple of int
        Shape of the view.

    Returns
    -------
    Tensor
        The view.

    Raises
    ------
    ShapeError
        If `x` does not broadcast to the shape.

    Examples
    --------
    >>> import burn
    >>> burn.broadcast_to(burn.asarray([1, 2], device="cpu"), (2, 2)).tolist()
    [[1, 2], [1, 2]]
    """
    if not isinstance(x, DispatchTensor):
        check_tensor(x, "x", "broadcast_to")
    return _view_expand(x, as_shape(shape, "broadcast_to"))


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """Tensors repeated up to the shape to which they broadcast.

    Parameters
    ----------
    *arrays : Tensor
        Tensors of shapes that broadcast.

    Returns
    -------
    tuple of Tensor
        The tensors in one shape; no views.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import burn
    >>> x, y = burn.zeros((2, 1), device="cpu"), burn.zeros(3, device="cpu")
    >>> [one.shape for one in burn.broadcast_arrays(x, y)]
    [(2, 3), (2, 3)]
    """
    if not arrays:
        return ()
    tensors = check_tensors(arrays, "broadcast_arrays")
    shape = broadcast_shapes(*[tensor.shape for tensor in tensors])
    return tuple([calls.expand(array, shape=shape) for array in arrays])


def broadcast_shapes(*shapes: Shape) -> Shape:
    """Shape to which tensors of some shapes broadcast.

    Parameters
    ----------
    *shapes : tuple of int
        The shapes.

    Returns
    -------
    tuple of int
        The common shape; that of no shapes is ``()``.

    Raises
    ------
    ShapeError
        If they do not broadcast.

    Examples
    --------
    >>> import burn
    >>> burn.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    try:
        return shapes_broadcast(*[as_shape(shape, "broadcast_shapes") for shape in shapes])
    except ShapeError as error:
        error.operation = public_operation("broadcast_shapes")
        raise


@documented_as(permute_dims)
def expand_dims(x: Tensor, /, axis: int | tuple[int, ...] = 0) -> Tensor:
    """A view with new axes of length 1.

    Parameters
    ----------
    axis : int or tuple of int
        Positions of the new axes in the result.

    Raises
    ------
    AxisError
        If the result has no such axis, or one is named twice.

    Examples
    --------
    >>> import burn
    >>> x = burn.zeros((2, 3), device="cpu")
    >>> burn.expand_dims(x, -1).shape
    (2, 3, 1)
    >>> burn.expand_dims(x, (0, 2)).shape
    (1, 2, 1, 3)
    """
    rank = rank_of(x, "expand_dims")
    if not isinstance(axis, (tuple, builtins.list)):
        number = normalize_axis(x, axis, "expand_dims", rank=rank + 1)
        shape = x.shape
        return _view_reshape(x, (*shape[:number], 1, *shape[number:]))
    rank += len(axis)
    new = normalize_axes(x, axis, "expand_dims", rank=rank)
    lengths = iter(x.shape)
    shape = tuple([1 if number in new else next(lengths) for number in range(rank)])
    return _view_reshape(x, shape)


@documented_as(broadcast_to)
def squeeze(x: Tensor, /, axis: Axis = None) -> Tensor:
    """A view without axes of length 1.

    Parameters
    ----------
    axis : int, tuple of int or None
        The axes to remove, of length 1; None for all of them.

    Raises
    ------
    ShapeError
        If an axis in `axis` has another length.

    Examples
    --------
    >>> import burn
    >>> burn.squeeze(burn.zeros((1, 3, 1), device="cpu"), 0).shape
    (3, 1)
    """
    shape = x.shape if isinstance(x, DispatchTensor) else ()
    if axis.__class__ is int and 0 <= axis < len(shape) and shape[axis] == 1:  # mostly
        return _view_reshape(x, (*shape[:axis], *shape[axis + 1 :]))
    axes = normalize_axes(x, axis, "squeeze")
    if axis is None:
        axes = tuple(number for number in axes if shape[number] == 1)
    for number in axes:
        if shape[number] != 1:
            raise ShapeError(f"axis {number} of {shape} has not length 1", operation="squeeze")
    kept = tuple(length for i, length in enumerate(shape) if i not in axes)
    return _view_reshape(x, kept)


@documented_as(permute_dims)
def flip(x: Tensor, /, *, axis: Axis = None) -> Tensor:
    """A view with the elements in reverse order along axes.

    Parameters
    ----------
    axis : int, tuple of int or None
        The axes to reverse; None for all of them.

    Raises
    ------
    AxisError
        If an axis is out of range, or named twice.

    Examples
    --------
    >>> import burn
    >>> burn.flip(burn.asarray([1, 2, 3], device="cpu")).tolist()
    [3, 2, 1]
    """
    return _view_flip(x, normalize_axes(x, axis, "flip"))


def concat(tensors: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Tensors joined along an existing axis.

    Parameters
    ----------
    tensors : sequence of Tensor
        Tensors on one device, of equal lengths except along `axis`. Their dtypes promote.
    axis : int or None
        The axis to join along; None flattens the tensors first.

    Returns
    -------
    Tensor
        The joined tensors.

    Raises
    ------
    ShapeError
        If their lengths differ along another axis.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([[1, 2]], device="cpu")
    >>> burn.concat([x, x]).tolist()
    [[1, 2], [1, 2]]
    """
    parts = check_tensors(tensors, "concat")
    if axis.__class__ is int and 0 <= axis < len(parts[0].primitive.shape):  # mostly
        return calls.concat(parts, axis=axis)
    if axis is None:
        parts = [flatten(part) for part in parts]
        axis = 0
    number = normalize_axis(parts[0], axis, "concat")
    return calls.concat(parts, axis=number)


def stack(tensors: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Tensors of one shape joined along a new axis.

    Parameters
    ----------
    tensors : sequence of Tensor
        Tensors of one shape, on one device. Their dtypes promote.
    axis : int
        Position of the new axis in the result.

    Returns
    -------
    Tensor
        The joined tensors.

    Raises
    ------
    ShapeError
        If their shapes differ.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([1, 2], device="cpu")
    >>> burn.stack([x, x]).tolist()
    [[1, 2], [1, 2]]
    """
    parts = check_tensors(tensors, "stack")
    shape = parts[0].shape
    number = normalize_axis(parts[0], axis, "stack", rank=len(shape) + 1)
    if any([part.shape != shape for part in parts]):  # noqa: C419 — faster for a few
        raise ShapeError(
            f"tensors of shapes {', '.join(str(part.shape) for part in parts)}",
            hint="All must have the same shape",
            operation="stack",
        )
    longer = (*shape[:number], 1, *shape[number:])
    return calls.concat([calls.reshape(part, shape=longer) for part in parts], axis=number)
