"""Shape and order of elements (chapters "Manipulation" and "Data Type Functions")."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from burn.dispatch import unary
from burn.dtype import DType
from burn.errors import AxisError, OperandTypeError, ShapeError
from burn.functions.common import Axis, DeviceLike, DTypeLike, dispatch
from burn.functions.normalize import as_shape, normalize_axes, normalize_axis, rank_of
from burn.functions.views import viewing
from burn.ops.shapes import broadcast_shapes as shapes_broadcast

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

_reshape = unary(dispatch, "reshape")
_expand = unary(dispatch, "expand")
_cast = unary(dispatch, "cast")
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

    Floats become integers by truncation; what is out of range becomes the nearest value of the
    dtype, and NaN becomes 0, on every backend. Integers become narrower ones by wrapping around.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    dtype : DType or str
        The dtype of the result.
    copy : bool
        False for the tensor itself where it has the dtype already. Otherwise it is another object:
        ``y[i] = v`` does not change `x`.
    device : Device or str, optional
        Where the result shall be; where `x` is if left out.
    """
    wanted = DType.of(dtype)
    rank_of(x, "astype")
    if device is not None:
        x = x.to_device(device)
    if x.dtype is wanted:
        return dispatch.wrap(x.primitive, x.tensor_type) if copy else x
    x.device.tensor_type(wanted)
    return _cast(x, dtype=wanted)


def reshape(x: Tensor, /, shape: int | Shape, *, copy: bool | None = None) -> Tensor:
    """A view of the same elements, in row-major order, under another shape.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    shape : tuple of int
        The new shape. One length may be -1: it is worked out from the others.
    copy : bool, optional
        True for a tensor that is independent of `x`. Otherwise it is a view: writes to either are
        seen in both.

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
    wanted = as_shape(shape)
    if wanted and min(wanted) < 0:
        wanted = _worked_out(x, wanted)
    if copy:
        return _reshape(x, shape=wanted)
    return _view_reshape(x, {"shape": wanted})


def _worked_out(x: Tensor, shape: Shape) -> Shape:
    place = next(axis for axis, length in enumerate(shape) if length < 0)
    known = math.prod(shape[:place]) * math.prod(shape[place + 1 :])
    if shape[place] != -1 or min((1, *shape[place + 1 :])) < 0 or known == 0 or x.size % known:
        raise ShapeError(
            f"cannot reshape {x.size} elements {x.shape} into {shape}",
            hint="One length may be -1, no other negative, and they must divide the elements",
            operation="reshape",
        )
    return (*shape[:place], x.size // known, *shape[place + 1 :])


def flatten(x: Tensor, /) -> Tensor:
    """All elements along one axis."""
    return _reshape(x, shape=(x.size,))


def permute_dims(x: Tensor, /, axes: Sequence[int]) -> Tensor:
    """A view with the axes in another order: output axis i is input axis ``axes[i]``."""
    order = tuple([normalize_axis(x, axis, "permute_dims") for axis in axes])
    return _view_permute(x, {"axes": order})


def transpose(x: Tensor, /, axes: Sequence[int] | None = None) -> Tensor:
    """Axes in another order (NumPy's function): as `permute_dims`, or reversed for None."""
    if axes is None:
        axes = tuple(range(rank_of(x, "transpose")))[::-1]
    return permute_dims(x, axes)


def matrix_transpose(x: Tensor, /) -> Tensor:
    """A view with the last two axes exchanged."""
    rank = rank_of(x, "matrix_transpose")
    if rank < 2:
        raise ShapeError(f"a tensor of shape {x.shape} is no matrix", operation="matrix_transpose")
    return _view_permute(x, {"axes": (*range(rank - 2), rank - 1, rank - 2)})


def moveaxis(
    x: Tensor, source: int | tuple[int, ...], destination: int | tuple[int, ...], /
) -> Tensor:
    """One axis, or several, moved to other places; the others keep their order.

    Raises
    ------
    AxisError
        If there are not as many places as axes, or one is named twice.

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
            f"{len(starts)} axes are to be moved to {len(ends)} places", operation="moveaxis"
        )
    order = [axis for axis in range(len(x.shape)) if axis not in starts]
    for end, start in sorted(zip(ends, starts, strict=True)):
        order.insert(end, start)
    return _view_permute(x, {"axes": tuple(order)})


def _distinct(axes: tuple[int, ...], operation: str) -> tuple[int, ...]:
    if len({*axes}) != len(axes):
        raise AxisError(f"axes {axes} name one twice", operation=operation)
    return axes


def broadcast_to(x: Tensor, /, shape: Shape) -> Tensor:
    """A read-only view with axes of length 1, and new leading axes, repeated up to a shape."""
    return _view_expand(x, {"shape": as_shape(shape)})


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """Tensors repeated up to the shape that they broadcast to; of no tensors, none."""
    if not arrays:
        return ()
    shape = broadcast_shapes(*[one.shape for one in _listed(arrays, "broadcast_arrays")])
    return tuple([_expand(one, shape=shape) for one in arrays])


def broadcast_shapes(*shapes: Shape) -> Shape:
    """Shape that tensors of these shapes broadcast to.

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
        return shapes_broadcast(*map(as_shape, shapes))
    except ShapeError as error:
        error.operation = "broadcast_shapes"
        raise


def expand_dims(x: Tensor, /, axis: int | tuple[int, ...] = 0) -> Tensor:
    """New axes of length 1, at a place of the result or at several.

    Raises
    ------
    AxisError
        If the result has no such place, or one is named twice.

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
    if not isinstance(axis, (tuple, list)):
        place = normalize_axis(x, axis, "expand_dims", rank=rank + 1)
        return _view_reshape(x, {"shape": (*x.shape[:place], 1, *x.shape[place:])})
    rank += len(axis)
    places = [normalize_axis(x, one, "expand_dims", rank=rank) for one in axis]
    lengths = iter(x.shape)
    new = _distinct(tuple(places), "expand_dims")
    shape = tuple([1 if place in new else next(lengths) for place in range(rank)])
    return _view_reshape(x, {"shape": shape})


def squeeze(x: Tensor, /, axis: Axis = None) -> Tensor:
    """A view without axes of length 1: those named, or all.

    Raises
    ------
    ShapeError
        If a named axis has another length.
    """
    shape = x.shape
    axes = normalize_axes(x, axis, "squeeze")
    if axis is None:
        axes = tuple(number for number in axes if shape[number] == 1)
    for number in axes:
        if shape[number] != 1:
            raise ShapeError(f"axis {number} of {shape} has not length 1", operation="squeeze")
    kept = tuple(length for i, length in enumerate(shape) if i not in axes)
    return _view_reshape(x, {"shape": kept})


def flip(x: Tensor, /, *, axis: Axis = None) -> Tensor:
    """A view with the elements in reverse order along axes; along all for None."""
    return _view_flip(x, {"axes": normalize_axes(x, axis, "flip")})


def concat(tensors: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Tensors joined along an axis that they have; for None, flattened first.

    Parameters
    ----------
    tensors : sequence of Tensor
        Tensors on one device, of equal lengths except along `axis`. Their dtypes promote.
    axis : int or None
        The axis to join along.
    """
    many = _listed(tensors, "concat")
    if axis is None:
        many = [flatten(one) for one in many]
        axis = 0
    number = normalize_axis(many[0], axis, "concat")
    return dispatch.execute("concat", many, axis=number)  # type: ignore[no-any-return]  # one output


def stack(tensors: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Tensors of one shape joined along a new axis."""
    many = _listed(tensors, "stack")
    place = normalize_axis(many[0], axis, "stack", rank=rank_of(many[0], "stack") + 1)
    if any(one.shape != many[0].shape for one in many):
        raise ShapeError(
            f"tensors of shapes {', '.join(str(one.shape) for one in many)}",
            hint="All must have the same shape",
            operation="stack",
        )
    return concat([expand_dims(one, axis=place) for one in many], axis=place)


def _listed(tensors: Sequence[Tensor], operation: str) -> list[Tensor]:
    if not isinstance(tensors, (builtins.list, tuple)) or not tensors:
        raise OperandTypeError("needs a list of at least one tensor", operation=operation)
    for one in tensors:
        rank_of(one, operation)
    return builtins.list(tensors)
