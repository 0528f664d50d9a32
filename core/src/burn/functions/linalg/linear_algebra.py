"""Products of tensors (chapter "Linear Algebra Functions" of the array API standard)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from burn.errors import AxisError, OperandTypeError, ShapeError
from burn.functions import calls
from burn.functions.manipulation import (
    expand_dims,
    matrix_transpose,
    permute_dims,
    reshape,
    squeeze,
)
from burn.functions.normalize import normalize_axes, normalize_axis, rank_of
from burn.functions.views import independent
from burn.ops.arguments import as_integer
from burn.public_calls import shown_value

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["matmul", "matrix_transpose", "tensordot", "vecdot"]


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Matrix product over the last two axes; those before broadcast.

    Parameters
    ----------
    x1 : Tensor, shape (..., n, k) or (k,)
        First factor; a vector is a row.
    x2 : Tensor, shape (..., k, m) or (k,)
        Second factor; a vector is a column.

    Returns
    -------
    Tensor, shape (..., n, m)
        Without the axes that a vector would have had.

    Raises
    ------
    ShapeError
        If the columns of the first are not as many as the rows of the second, or one is 0-d.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([[1.0, 2.0]], device="cpu")
    >>> burn.matmul(x, x.mT).tolist()
    [[5.0]]
    """
    rank1, rank2 = rank_of(x1, "matmul", "x1"), rank_of(x2, "matmul", "x2")
    if rank1 > 1 and rank2 > 1:
        return calls.matmul(x1, x2)
    if not rank1 or not rank2:
        raise ShapeError(
            f"a 0-d tensor is no matrix (shapes {x1.shape} and {x2.shape})",
            hint="Use * to multiply by a number",
            operation="matmul",
        )
    row = expand_dims(x1, axis=0) if rank1 == 1 else x1
    column = expand_dims(x2, axis=1) if rank2 == 1 else x2
    product = calls.matmul(row, column)
    if rank2 == 1:
        product = squeeze(product, axis=-1)
    if rank1 == 1:
        product = squeeze(product, axis=-1 if rank2 == 1 else -2)
    return independent(product)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Sum of products along an axis, which both have in equal length; the others broadcast.

    Parameters
    ----------
    x1, x2 : Tensor
        Tensors of numbers; a complex `x1` is conjugated.
    axis : int
        The axis of the vectors, counted from the end so that it means the same in both: from
        ``-min(x1.ndim, x2.ndim)`` to -1. Where both have as many axes, it may count from the front.

    Returns
    -------
    Tensor
        In the broadcast shape, without the axis.

    Raises
    ------
    AxisError
        If `x` has no such axis.
    ShapeError
        If the lengths along the axis differ, or the shapes do not broadcast.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
    >>> burn.vecdot(x, x).tolist()
    [5.0, 25.0]
    """
    number = broadcast_axis(x1, x2, axis, "vecdot")
    return calls.vecdot(x1, x2, axis=number)


def broadcast_axis(x1: Tensor, x2: Tensor, axis: int, operation: str) -> int:
    """An axis of the broadcast shape of two tensors, counted from the front."""
    rank = max(rank_of(x1, operation, "x1"), rank_of(x2, operation, "x2"))
    return normalize_axis(x1, axis, operation, rank=rank)


def tensordot(
    x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> Tensor:
    """Sum of products over axes of both.

    Parameters
    ----------
    x1, x2 : Tensor
        Tensors of numbers.
    axes : int, or tuple of two sequences of int
        How many of the last axes of `x1` and first axes of `x2`; or which axes of each.

    Returns
    -------
    Tensor
        It has the other axes of `x1`, then those of `x2`.

    Raises
    ------
    AxisError
        If a tensor has no such axis, or an axis is named twice.
    ShapeError
        If the axes have different lengths.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
    >>> burn.tensordot(x, x, axes=1).tolist()
    [[7.0, 10.0], [15.0, 22.0]]
    """
    first, second = _axes_of_both(x1, x2, axes)
    if [x1.shape[axis] for axis in first] != [x2.shape[axis] for axis in second]:
        raise ShapeError(
            f"axes {[*first]} of {x1.shape} and {[*second]} of {x2.shape} differ in length",
            hint="Axes that are summed together have equal lengths",
            operation="tensordot",
        )
    kept1 = [axis for axis in range(x1.ndim) if axis not in first]
    kept2 = [axis for axis in range(x2.ndim) if axis not in second]
    rows = [x1.shape[axis] for axis in kept1]
    columns = [x2.shape[axis] for axis in kept2]
    inner = math.prod([x1.shape[axis] for axis in first])
    left = reshape(permute_dims(x1, (*kept1, *first)), (math.prod(rows), inner))
    right = reshape(permute_dims(x2, (*second, *kept2)), (inner, math.prod(columns)))
    return reshape(calls.matmul(left, right), (*rows, *columns), copy=True)


def _axes_of_both(
    x1: Tensor, x2: Tensor, axes: int | tuple[Sequence[int], Sequence[int]]
) -> tuple[Sequence[int], Sequence[int]]:
    rank1, rank2 = rank_of(x1, "tensordot", "x1"), rank_of(x2, "tensordot", "x2")
    if not isinstance(axes, Sequence):
        count = as_integer(axes, "axes", "tensordot")
        if not 0 <= count <= min(rank1, rank2):
            raise AxisError(
                f"axes is {shown_value(count)} for tensors with {rank1} and {rank2} axes",
                hint="Use a number from 0 to the smaller one",
                operation="tensordot",
            )
        return range(rank1 - count, rank1), range(count)
    try:
        first, second = (tuple(axis) for axis in axes)
    except (TypeError, ValueError):
        raise OperandTypeError(
            f"axes are {shown_value(axes)}",
            hint="They are an integer, or a tuple of two sequences of integers",
            operation="tensordot",
        ) from None
    return normalize_axes(x1, first, "tensordot"), normalize_axes(x2, second, "tensordot")
