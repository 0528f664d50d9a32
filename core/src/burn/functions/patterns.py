"""Tensors with a pattern: triangles, grids, one-hot vectors, numbers evenly spaced."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from burn.dispatch import unary
from burn.dtype import DType
from burn.errors import ArgumentError, DTypeError, OperandTypeError, OutOfMemoryError, ShapeError
from burn.functions.common import DeviceLike, DTypeLike, dispatch
from burn.functions.creation import arange, asarray, diagonal
from burn.functions.manipulation import broadcast_to, stack
from burn.functions.normalize import as_shape, find_device, normalize_axis, rank_of
from burn.functions.searching import where
from burn.functions.views import independent
from burn.ops.arguments import as_integer

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn.tensor.tensor import Tensor

__all__ = [
    "cartesian_grid",
    "diag_mask",
    "linspace",
    "meshgrid",
    "one_hot",
    "one_hot_fill",
    "tril",
    "tril_mask",
    "triu",
    "triu_mask",
]

_reshape = unary(dispatch, "reshape")


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The lower triangle of a matrix, or of each in a stack; zeros above the `k`-th diagonal."""
    mask = _distance(x.shape, x.device, "tril", rank_of(x, "tril")) <= diagonal(k, x.shape, "tril")
    return where(mask, x, False)  # noqa: FBT003 — 0 in any dtype


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The upper triangle of a matrix, or of each in a stack; zeros below the `k`-th diagonal."""
    mask = _distance(x.shape, x.device, "triu", rank_of(x, "triu")) >= diagonal(k, x.shape, "triu")
    return where(mask, x, False)  # noqa: FBT003 — 0 in any dtype


def tril_mask(shape: Shape, /, *, k: int = 0, device: DeviceLike | None = None) -> Tensor:
    """Mask of what `tril` sets to 0: true above the `k`-th diagonal of each matrix.

    Examples
    --------
    >>> import burn
    >>> burn.tril_mask((2, 2), device="cpu").tolist()
    [[False, True], [False, False]]
    """
    lengths = as_shape(shape)
    distance = _distance(lengths, device, "tril_mask", len(lengths))
    return independent(broadcast_to(distance > diagonal(k, lengths, "tril_mask"), lengths))


def triu_mask(shape: Shape, /, *, k: int = 0, device: DeviceLike | None = None) -> Tensor:
    """Mask of what `triu` sets to 0: true below the `k`-th diagonal of each matrix."""
    lengths = as_shape(shape)
    distance = _distance(lengths, device, "triu_mask", len(lengths))
    return independent(broadcast_to(distance < diagonal(k, lengths, "triu_mask"), lengths))


def diag_mask(shape: Shape, /, *, k: int = 0, device: DeviceLike | None = None) -> Tensor:
    """Mask of what is not on the `k`-th diagonal of each matrix: true everywhere else."""
    lengths = as_shape(shape)
    distance = _distance(lengths, device, "diag_mask", len(lengths))
    return independent(broadcast_to(distance != diagonal(k, lengths, "diag_mask"), lengths))


def _distance(shape: Shape, device: DeviceLike | None, operation: str, rank: int) -> Tensor:
    """Column minus row of the elements of a matrix."""
    if rank < 2:
        raise ShapeError(f"a tensor of shape {shape} is no matrix", operation=operation)
    rows, columns = shape[-2:]
    row = _reshape(arange(rows, device=device), shape=(rows, 1))
    return arange(columns, device=device) - row


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Coordinates of a grid: each vector spread over all axes but its own.

    Parameters
    ----------
    *arrays : Tensor
        Vectors, of one dtype.
    indexing : {"xy", "ij"}
        Whether the first two axes of the results are exchanged (Cartesian), or not (matrices).
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f'indexing is "xy" or "ij", not {indexing!r}', operation="meshgrid")
    for one in arrays:
        if rank_of(one, "meshgrid") != 1:
            raise ShapeError(f"a tensor of shape {one.shape} is no vector", operation="meshgrid")
    if len({one.dtype for one in arrays}) > 1:
        raise DTypeError(
            f"vectors of {', '.join(str(one.dtype) for one in arrays)}",
            hint="Convert them with .astype() to one dtype",
            operation="meshgrid",
        )
    rank = len(arrays)
    places = list(range(rank))
    if indexing == "xy" and rank > 1:
        places[0], places[1] = 1, 0
    lengths = [0] * rank
    for place, one in zip(places, arrays, strict=True):
        lengths[place] = one.size
    columns = [
        _reshape(one, shape=tuple([one.size if axis == place else 1 for axis in range(rank)]))
        for place, one in zip(places, arrays, strict=True)
    ]
    return tuple([independent(broadcast_to(column, tuple(lengths))) for column in columns])


def cartesian_grid(shape: int | Shape, /, *, device: DeviceLike | None = None) -> Tensor:
    """The place of each element of a shape, along a new last axis: shape (*shape, axes).

    Examples
    --------
    >>> import burn
    >>> burn.cartesian_grid((1, 2), device="cpu").tolist()
    [[[0, 0], [0, 1]]]
    """
    lengths = as_shape(shape)
    if not lengths or min(lengths) < 0:
        raise ShapeError(
            f"a grid of shape {lengths}",
            hint="It needs an axis, and no length is negative",
            operation="cartesian_grid",
        )
    axes = [arange(length, device=device) for length in lengths]
    return stack(meshgrid(*axes, indexing="ij"), axis=-1)


def one_hot(
    x: Tensor, num_classes: int, /, *, dtype: DTypeLike | None = None, axis: int = -1
) -> Tensor:
    """1 at the place along a new axis that each element names, 0 elsewhere.

    Parameters
    ----------
    x : Tensor
        Integers in [-n, n), where n is the number of classes: a negative one counts from the end.
        Any other gives zeros alone, as in ONNX.
    num_classes : int
        Length of the new axis.
    dtype : DType, optional
        Dtype of the result; by default the device's default float dtype.
    axis : int
        Where the new axis is in the result.
    """
    mask = _class_mask(x, num_classes, axis, "one_hot")
    return mask.astype(x.device.settings.float_dtype if dtype is None else DType.of(dtype))


def one_hot_fill(
    x: Tensor, num_classes: int, on_value: float, off_value: float, /, *, axis: int = -1
) -> Tensor:
    """One number at the place along a new axis that each element names, another elsewhere.

    See `one_hot`. The numbers decide which default dtype the result has.
    """
    return where(_class_mask(x, num_classes, axis, "one_hot_fill"), on_value, off_value)


def _class_mask(x: Tensor, count: int, axis: int, operation: str) -> Tensor:
    rank = rank_of(x, operation) + 1
    place = normalize_axis(x, axis, operation, rank=rank)
    if not x.dtype.is_integer:
        raise DTypeError(f"classes are integers, not {x.dtype}", operation=operation)
    count = as_integer(count, "num_classes", operation, least=0)
    x = x.astype(x.device.settings.int_dtype)
    x = where(x < 0, x + count, x)
    column = tuple([count if number == place else 1 for number in range(rank)])
    classes = _reshape(arange(count, device=x.device), shape=column)
    wide = _reshape(x, shape=(*x.shape[:place], 1, *x.shape[place:]))
    return wide == classes  # type: ignore[no-any-return]  # a Tensor


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    endpoint: bool = True,
) -> Tensor:
    """Numbers evenly spaced from `start` to `stop`.

    Parameters
    ----------
    start, stop : number
        The ends. The first number is `start`, the last `stop` unless `endpoint` is false.
    num : int
        How many.
    dtype : DType, optional
        Dtype of the result; by default the device's default float dtype.
    device : Device or str, optional
        Where to make it; the default device if left out.
    endpoint : bool
        Whether `stop` is one of them.

    Examples
    --------
    >>> import burn
    >>> burn.linspace(0, 1, 5, device="cpu").tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    where_ = find_device(device)
    if not all(isinstance(one, (int, float, complex)) for one in (start, stop)):
        raise OperandTypeError(f"{start!r} and {stop!r} are no two numbers", operation="linspace")
    num = as_integer(num, "num", "linspace", least=0)
    if not all(math.isfinite(abs(one)) for one in (start, stop)):
        raise ArgumentError(f"numbers from {start} to {stop}", operation="linspace")
    try:
        numbers = np.linspace(start, stop, num, endpoint=bool(endpoint))
    except (MemoryError, ValueError, IndexError) as error:  # NumPy's, by how much too many
        rule = f"{num} numbers do not fit in memory"
        raise OutOfMemoryError(rule, hint="Compute with fewer", operation="linspace") from error
    if dtype is None and numbers.dtype.kind == "f":
        dtype = where_.settings.float_dtype
    elif dtype is None:
        dtype = "complex64" if where_.settings.float_dtype.itemsize <= 4 else "complex128"
    return asarray(numbers, dtype=dtype, device=where_)
