"""Linear equations of triangles, and of Cholesky factors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.errors import DTypeError, ShapeError
from burn.functions import calls
from burn.functions.elementwise import conj
from burn.functions.indexing import take_along_axis
from burn.functions.linalg._matrix_checks import check_matrices, check_square
from burn.functions.linalg.linear_algebra import matrix_transpose
from burn.functions.manipulation import broadcast_shapes, broadcast_to, expand_dims, squeeze
from burn.functions.normalize import as_flag, rank_of
from burn.functions.quantization import numbers_of
from burn.functions.sorting import argsort
from burn.functions.views import independent

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["cholesky_solve", "lu_solve", "solve_triangular"]


def solve_triangular(
    x1: Tensor,
    x2: Tensor,
    /,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
) -> Tensor:
    """Solutions X of ``x1 @ X = x2``, where `x1` is a triangle.

    Parameters
    ----------
    x1 : Tensor, shape (..., n, n)
        Matrices of coefficients, of which one triangle is read. ``x1.mT`` has the other one.
    x2 : Tensor, shape (n,) or (..., n, k)
        One right side, or matrices with a right side in each column; (..., k, n) unless `left`.
    upper : bool
        Whether the upper triangle is read, or else the lower one.
    left : bool
        Whether ``x1 @ X = x2`` is solved, or else ``X @ x1 = x2``.
    unitriangular : bool
        Whether the diagonal is 1, whatever the matrices hold there.

    Returns
    -------
    Tensor
        A solution for each right side, of the broadcast shape of `x2`.

    Raises
    ------
    ExecutionError
        If a diagonal holds 0; it says of which matrix of a batch.
    ShapeError
        If the matrices are not square, or the right sides have another length.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([[2.0, 0.0], [1.0, 4.0]], device="cpu")
    >>> y = burn.asarray([2.0, 9.0], device="cpu")
    >>> burn.linalg.solve_triangular(x, y, upper=False).tolist()
    [1.0, 2.0]
    """
    operation = "solve_triangular"
    check_square(x1, operation)
    upper = as_flag(upper, "upper", operation)
    unit = as_flag(unitriangular, "unitriangular", operation)
    is_vector = rank_of(x2, operation, "x2") == 1
    from_left = as_flag(left, "left", operation)
    if is_vector:
        if not from_left:
            x1, upper, from_left = matrix_transpose(x1), not upper, True
        x2 = expand_dims(x2, axis=1)
    check_matrices(x2, operation)
    if x2.shape[-2 if from_left else -1] != x1.shape[-1]:
        raise ShapeError(
            f"{x1.shape[-1]} equations of matrices {x1.shape}, and right sides {x2.shape}",
            hint="A right side has a number for each equation",
            operation=operation,
        )
    if from_left:
        result = calls.solve_triangular(x1, x2, upper=upper, unit_diagonal=unit)
        return independent(squeeze(result, axis=-1)) if is_vector else result
    turned = calls.solve_triangular(
        matrix_transpose(x1), matrix_transpose(x2), upper=not upper, unit_diagonal=unit
    )
    return independent(matrix_transpose(turned))


def cholesky_solve(x: Tensor, factor: Tensor, /, *, upper: bool = False) -> Tensor:
    """Solutions X of ``A @ X = x`` for Hermitian, positive definite matrices A.

    Parameters
    ----------
    x : Tensor, shape (n,) or (..., n, k)
        One right side, or matrices with a right side in each column.
    factor : Tensor, shape (..., n, n)
        What `cholesky` gives of A: lower triangles, or upper ones with `upper`.
    upper : bool
        Whether the factors are upper triangles.

    Returns
    -------
    Tensor, shape (..., n) or (..., n, k)
        A solution for each right side.

    Raises
    ------
    ExecutionError
        If a factor is singular; it says which of a batch.
    ShapeError
        If the factors are not square, or the right sides have another length.

    Examples
    --------
    >>> import burn
    >>> matrix = burn.asarray([[4.0, 2.0], [2.0, 5.0]], device="cpu")
    >>> factor = burn.linalg.cholesky(matrix)
    >>> burn.linalg.cholesky_solve(burn.asarray([6.0, 7.0], device="cpu"), factor).tolist()
    [1.0, 1.0]
    """
    check_square(factor, "cholesky_solve")
    upper = as_flag(upper, "upper", "cholesky_solve")
    other = _adjoint(factor)
    lower, above = (other, factor) if upper else (factor, other)
    return solve_triangular(above, solve_triangular(lower, x, upper=False), upper=True)


def lu_solve(
    packed: Tensor,
    permutation: Tensor,
    x: Tensor,
    /,
    *,
    left: bool = True,
    adjoint: bool = False,
) -> Tensor:
    """Solutions X of ``A @ X = x``, for matrices A that `lu_decomposition` took apart.

    Parameters
    ----------
    packed : Tensor, shape (..., n, n)
        ``LU`` of `lu_decomposition`: both triangles in one matrix.
    permutation : Tensor, shape (..., n)
        The order of rows that `lu_decomposition` gives.
    x : Tensor, shape (n,) or (..., n, k)
        One right side, or matrices with a right side in each column; (..., k, n) unless `left`.
    left : bool
        Whether ``A @ X = x`` is solved, or else ``X @ A = x``.
    adjoint : bool
        Whether A stands for its conjugate transpose.

    Returns
    -------
    Tensor
        A solution for each right side, of the broadcast shape of `x`.

    Raises
    ------
    ExecutionError
        If a matrix is singular; it says which of a batch.
    ShapeError
        If the matrices are not square, or the permutation or the right sides have another length.
    DTypeError
        If the permutation has no integers.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([[0.0, 2.0], [4.0, 2.0]], device="cpu")
    >>> packed, permutation = burn.linalg.lu_decomposition(x)
    >>> y = burn.asarray([2.0, 6.0], device="cpu")
    >>> burn.linalg.lu_solve(packed, permutation, y).tolist()
    [1.0, 1.0]
    """
    operation = "lu_solve"
    check_square(packed, operation)
    rank_of(permutation, operation, "permutation")
    if permutation.shape != packed.shape[:-1]:
        raise ShapeError(
            f"a permutation of shape {permutation.shape} for matrices {packed.shape}",
            hint="It has an index for each row",
            operation=operation,
        )
    if not permutation.dtype.is_integer:
        raise DTypeError(f"a permutation of {permutation.dtype}", operation=operation)
    is_adjoint = as_flag(adjoint, "adjoint", operation)
    from_left = as_flag(left, "left", operation)
    is_vector = rank_of(x, operation, "x") == 1
    x = numbers_of(x)
    sides = expand_dims(x, axis=1 if from_left else 0) if is_vector else x
    check_matrices(sides, operation)
    if not from_left:
        sides = _adjoint(sides)
    if sides.shape[-2] != packed.shape[-1]:
        raise ShapeError(
            f"{packed.shape[-1]} equations of matrices {packed.shape}, and right sides {x.shape}",
            hint="A right side has a number for each equation",
            operation=operation,
        )
    order = expand_dims(permutation, axis=-1)
    upper = _adjoint(packed)
    if is_adjoint == from_left:
        first = solve_triangular(upper, sides, upper=False)
        second = solve_triangular(upper, first, upper=True, unitriangular=True)
        back = expand_dims(argsort(permutation, axis=-1), axis=-1)
        result = _rows_taken(second, back)
    else:
        first = solve_triangular(packed, _rows_taken(sides, order), upper=False, unitriangular=True)
        result = solve_triangular(packed, first, upper=True)
    result = result if from_left else independent(_adjoint(result))
    return independent(squeeze(result, axis=-1 if from_left else -2)) if is_vector else result


def _adjoint(x: Tensor) -> Tensor:
    transposed = matrix_transpose(x)
    return conj(transposed) if x.dtype.is_complex else transposed


def _rows_taken(x: Tensor, indices: Tensor) -> Tensor:
    """Rows of matrices, by a column of indices for each."""
    batch = broadcast_shapes(x.shape[:-2], indices.shape[:-2])
    return take_along_axis(
        broadcast_to(x, batch + x.shape[-2:]),
        broadcast_to(indices, (*batch, indices.shape[-2], x.shape[-1])),
        axis=-2,
    )
