"""Diagonals of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.errors import AxisError, ShapeError
from burn.functions import calls
from burn.functions.common import DTypeLike
from burn.functions.creation import zeros
from burn.functions.linalg._matrix_checks import check_matrices
from burn.functions.manipulation import moveaxis, reshape
from burn.functions.normalize import normalize_axis, number_dtype, rank_of
from burn.functions.quantization import numbers_of
from burn.functions.statistical import sum
from burn.functions.views import independent
from burn.ops.arguments import as_integer

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["diag", "diag_embed", "diagonal", "trace"]


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """Diagonals of matrices: the elements whose column is their row plus `offset`.

    Parameters
    ----------
    x : Tensor, shape (..., n, m)
        Matrices of any dtype.
    offset : int
        Which diagonal: above the main one if positive, below if negative.

    Returns
    -------
    Tensor, shape (..., length of the diagonal)
        The elements in order; none where the diagonal is outside of the matrix.

    Raises
    ------
    ShapeError
        If `x` has fewer than two axes.

    Examples
    --------
    >>> import burn
    >>> burn.linalg.diagonal(burn.asarray([[1, 2], [3, 4]], device="cpu")).tolist()
    [1, 4]
    """
    check_matrices(x, "diagonal")
    *batch, rows, columns = x.shape
    offset = as_integer(offset, "offset", "diagonal")
    row, column = (0, offset) if offset >= 0 else (-offset, 0)
    length = max(min(rows - row, columns - column), 0)
    start = row * columns + column if length else 0
    flat = reshape(x, (*batch, rows * columns))
    whole = [(0, extent, 1) for extent in batch]
    return calls.slice(flat, slices=(*whole, (start, length, columns + 1)))


def diag(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """A matrix with a vector on a diagonal and zeros beside it; of matrices, their diagonal.

    Parameters
    ----------
    x : Tensor, shape (n,) or (..., n, m)
        A vector to put on the diagonal, or matrices to take it from.
    offset : int
        Which diagonal: above the main one if positive, below if negative.

    Returns
    -------
    Tensor, shape (n + abs(offset), n + abs(offset)) or (..., length of the diagonal)
        In the dtype of `x`.

    Raises
    ------
    ShapeError
        If `x` is 0-d.

    Examples
    --------
    >>> import burn
    >>> burn.linalg.diag(burn.asarray([1, 2], device="cpu")).tolist()
    [[1, 0], [0, 2]]
    """
    return diag_embed(x, offset=offset) if rank_of(x, "diag") == 1 else diagonal(x, offset=offset)


def diag_embed(x: Tensor, /, *, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Tensor:
    """Matrices with vectors on a diagonal and zeros beside it.

    Parameters
    ----------
    x : Tensor, shape (..., n)
        The vectors.
    offset : int
        Which diagonal: above the main one if positive, below if negative.
    axis1, axis2 : int
        The axes of the rows and of the columns in the result.

    Returns
    -------
    Tensor, shape (..., n + abs(offset), n + abs(offset))
        In the dtype of `x`; the matrices are the axes `axis1` and `axis2`.

    Raises
    ------
    ShapeError
        If `x` is 0-d.
    AxisError
        If the result has no such axes, or both are the same.

    Examples
    --------
    >>> import burn
    >>> burn.linalg.diag_embed(burn.asarray([[1, 2], [3, 4]], device="cpu")).tolist()
    [[[1, 0], [0, 2]], [[3, 0], [0, 4]]]
    """
    rank = rank_of(x, "diag_embed") + 1
    if rank < 2:
        raise ShapeError(
            "x is a 0-d tensor", hint="It needs an axis of vectors", operation="diag_embed"
        )
    rows = normalize_axis(x, axis1, "diag_embed", rank=rank)
    columns = normalize_axis(x, axis2, "diag_embed", rank=rank)
    if rows == columns:
        raise AxisError(
            f"axis1 and axis2 are both {axis1}",
            hint="Rows and columns are different axes",
            operation="diag_embed",
        )
    offset = as_integer(offset, "offset", "diag_embed")
    *batch, length = x.shape
    side = length + abs(offset)
    start = (offset if offset >= 0 else -offset * side) if length else 0
    blank = zeros((*batch, side * side), dtype=number_dtype(x), device=x.device)
    whole = [(0, extent, 1) for extent in batch]
    filled = calls.slice_assign(blank, x, slices=(*whole, (start, length, side + 1)))
    matrices = reshape(filled, (*batch, side, side))
    return independent(moveaxis(matrices, (-2, -1), (rows, columns)))


def trace(x: Tensor, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Tensor:
    """Sums of the diagonals of matrices.

    Parameters
    ----------
    x : Tensor, shape (..., n, m)
        Matrices of numbers.
    offset : int
        Which diagonal: above the main one if positive, below if negative.
    dtype : DType, optional
        Dtype of the sums; the default is that of `burn.sum`.

    Returns
    -------
    Tensor, shape (...,)
        The sums.

    Raises
    ------
    ShapeError
        If `x` has fewer than two axes.

    Examples
    --------
    >>> import burn
    >>> burn.linalg.trace(burn.asarray([[1, 2], [3, 4]], device="cpu")).item()
    5
    """
    check_matrices(x, "trace")
    return sum(diagonal(numbers_of(x), offset=offset), axis=-1, dtype=dtype)
