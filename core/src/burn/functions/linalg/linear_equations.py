"""Linear equations, least squares, inverses, determinants and ranks (extension ``linalg``).

Matrices are the last two axes; those before are a batch. They run in NumPy on the host where a
backend has none of its own, and those of real matrices have gradients.
"""

from __future__ import annotations

import builtins
import math
from typing import TYPE_CHECKING, NamedTuple

from burn.dispatch import DispatchTensor
from burn.docstrings import documented_as
from burn.errors import ShapeError
from burn.functions import calls
from burn.functions.creation import zeros
from burn.functions.data_type import finfo
from burn.functions.elementwise import abs, divide, greater, multiply
from burn.functions.linalg._matrix_checks import check_matrices
from burn.functions.linalg.linear_algebra import matmul
from burn.functions.linalg.matrix_decomposition import adjoint, svd, svdvals
from burn.functions.manipulation import expand_dims, squeeze
from burn.functions.normalize import as_float, check_tensor, number_dtype, rank_of
from burn.functions.quantization import numbers_of
from burn.functions.searching import where
from burn.functions.statistical import max, sum
from burn.functions.views import independent
from burn.ops.arguments import real_number

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "LstsqResult",
    "SlogdetResult",
    "det",
    "inv",
    "lstsq",
    "matrix_rank",
    "pinv",
    "slogdet",
    "solve",
]


class LstsqResult(NamedTuple):
    """What `lstsq` returns."""

    x: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


class SlogdetResult(NamedTuple):
    """What `slogdet` returns."""

    sign: Tensor
    logabsdet: Tensor


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Solutions X of the linear equations ``x1 @ X = x2``.

    Parameters
    ----------
    x1 : Tensor, shape (..., n, n)
        Matrices of coefficients.
    x2 : Tensor, shape (n,) or (..., n, k)
        One right side, or matrices with a right side in each column.

    Returns
    -------
    Tensor, shape (..., n) or (..., n, k)
        A solution for each right side.

    Raises
    ------
    ExecutionError
        If a matrix is singular; it says which of a batch.
    ShapeError
        If the matrices are not square, or the right sides have another length.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([[2.0, 0.0], [0.0, 4.0]], device="cpu")
    >>> burn.linalg.solve(x, burn.asarray([2.0, 2.0], device="cpu")).tolist()
    [1.0, 0.5]
    """
    check_tensor(x1, "x1", "solve")
    if rank_of(x2, "solve", "x2") == 1:
        column = expand_dims(x2, axis=1)
        return independent(squeeze(calls.solve(x1, column), axis=-1))
    return calls.solve(x1, x2)


def inv(x: Tensor, /) -> Tensor:
    """Inverses of square matrices.

    Parameters
    ----------
    x : Tensor, shape (..., n, n)
        Matrices.

    Returns
    -------
    Tensor, shape (..., n, n)
        The inverses.

    Raises
    ------
    ExecutionError
        If a matrix is singular; it says which of a batch.
    ShapeError
        If the matrices are not square.

    Examples
    --------
    >>> import burn
    >>> burn.linalg.inv(burn.asarray([[2.0, 0.0], [0.0, 4.0]], device="cpu")).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    check_tensor(x, "x", "inv")
    return calls.inv(x)


def det(x: Tensor, /) -> Tensor:
    """Determinants of square matrices; the gradient holds for singular ones too.

    Parameters
    ----------
    x : Tensor, shape (..., n, n)
        Matrices.

    Returns
    -------
    Tensor, shape (...,)
        The determinants.

    Raises
    ------
    ShapeError
        If the matrices are not square.

    Examples
    --------
    >>> import burn
    >>> burn.linalg.det(burn.asarray([[2.0, 0.0], [0.0, 4.0]], device="cpu")).item()
    8.0
    """
    check_tensor(x, "x", "det")
    return calls.det(x)


@documented_as(det)
def slogdet(x: Tensor, /) -> SlogdetResult:
    """Signs of determinants, and logarithms of their magnitudes.

    Returns
    -------
    sign : Tensor, shape (...,)
        1, -1, or 0 of singular matrices. That of a complex determinant is the determinant divided
        by its magnitude.
    logabsdet : Tensor, shape (...,)
        The logarithms, which are real; ``-inf`` of singular matrices.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([[0.0, 1.0], [1.0, 0.0]], device="cpu")
    >>> sign, logabsdet = burn.linalg.slogdet(x)
    >>> sign.item(), logabsdet.item()
    (-1.0, 0.0)
    """
    check_tensor(x, "x", "slogdet")
    return SlogdetResult(*calls.slogdet(x))


def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """Pseudo-inverses of Moore and Penrose.

    Parameters
    ----------
    x : Tensor, shape (..., n, m)
        Matrices.
    rtol : float or Tensor, optional
        Singular values up to `rtol` times the largest one count as 0; a tensor has one tolerance
        for each matrix. By default ``max(n, m)`` times the distance from 1 to the next number.

    Returns
    -------
    Tensor, shape (..., m, n)
        The pseudo-inverses.

    Raises
    ------
    ArgumentError
        If a number as `rtol` is negative or not finite.
    ShapeError
        If `x` has fewer than two axes.

    Examples
    --------
    >>> import burn
    >>> burn.linalg.pinv(burn.asarray([[2.0, 0.0], [0.0, 0.0]], device="cpu")).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    check_matrices(x, "pinv")
    x = as_float(x, "pinv")
    if not isinstance(rtol, DispatchTensor):
        return calls.pinv(x, rtol=_tolerance(x, rtol, "pinv"))
    u, s, vh = svd(x, full_matrices=False)
    counts = _is_above(s, rtol)
    inverse = where(counts, divide(1.0, where(counts, s, 1.0)), 0.0)
    return matmul(multiply(adjoint(vh), expand_dims(inverse, axis=-2)), adjoint(u))


@documented_as(pinv)
def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """Ranks of matrices: the number of singular values that do not count as 0.

    The parameters are those of `pinv`.

    Returns
    -------
    Tensor, shape (...,)
        The ranks, in the device's default integer dtype.

    Examples
    --------
    >>> import burn
    >>> burn.linalg.matrix_rank(burn.asarray([[1.0, 2.0], [2.0, 4.0]], device="cpu")).item()
    1
    """
    check_matrices(x, "matrix_rank")
    x = numbers_of(as_float(x, "matrix_rank"))
    if not isinstance(rtol, DispatchTensor):
        rtol = _tolerance(x, rtol, "matrix_rank")
    counts = _is_above(svdvals(x), rtol)
    return sum(counts.astype(x.device.settings.int_dtype), axis=-1)


def lstsq(x1: Tensor, x2: Tensor, /, *, rcond: float | None = None) -> LstsqResult:
    """The X for which ``x1 @ X - x2`` has the least squares; of several the one of least norm.

    Parameters
    ----------
    x1 : Tensor, shape (..., m, n)
        Matrices of coefficients, of any rank.
    x2 : Tensor, shape (m,) or (..., m, k)
        One right side, or matrices with a right side in each column.
    rcond : float, optional
        Singular values up to `rcond` times the largest one count as 0. By default ``max(m, n)``
        times the distance from 1 to the next number.

    Returns
    -------
    x : Tensor, shape (n,) or (..., n, k)
        A solution for each right side. Its gradient is right where the rank does not change nearby,
        as for matrices of full rank.
    residuals : Tensor, shape (1,) or (..., k)
        Sums of the squares of ``x1 @ X - x2`` for each right side. As in NumPy there are none, and
        the shape is (0,), unless ``m > n``; but they do not depend on the rank.
    rank : Tensor, shape (...)
        Ranks of the matrices, in the default integer dtype of the device.
    singular_values : Tensor, shape (..., min(m, n))
        Singular values of the matrices, in descending order.

    Raises
    ------
    ArgumentError
        If `rcond` is negative or not finite.
    ShapeError
        If the right sides have another length than the columns of `x1`.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], device="cpu")
    >>> line = burn.linalg.lstsq(x, burn.asarray([1.0, 3.0, 5.0], device="cpu"))
    >>> burn.round(line.x).tolist(), line.rank.item()
    ([1.0, 2.0], 2)
    """
    check_matrices(x1, "lstsq")
    x1 = numbers_of(as_float(x1, "lstsq", "x1"))
    is_vector = rank_of(x2, "lstsq", "x2") == 1
    x2 = numbers_of(as_float(x2, "lstsq", "x2"))
    if is_vector:
        x2 = expand_dims(x2, axis=1)
    check_matrices(x2, "lstsq")
    rows, columns = x1.shape[-2:]
    if x2.shape[-2] != rows:
        raise ShapeError(
            f"{rows} equations of matrices {x1.shape}, and right sides of {x2.shape[-2]} numbers",
            hint="A right side has a number for each row of x1",
            operation="lstsq",
        )
    tolerance = _tolerance(x1, rcond, "lstsq", "rcond")
    solution = matmul(calls.pinv(x1, rtol=tolerance), x2)
    if rows > columns:
        residuals = sum(abs(matmul(x1, solution) - x2) ** 2, axis=-2)
    else:
        residuals = zeros(0, dtype=number_dtype(solution).component, device=x1.device)
    values = svdvals(x1)
    rank = sum(_is_above(values, tolerance).astype(x1.device.settings.int_dtype), axis=-1)
    if is_vector:
        solution = independent(squeeze(solution, axis=-1))
    return LstsqResult(solution, residuals, rank, values)


def _is_above(s: Tensor, rtol: float | Tensor) -> Tensor:
    """Whether each singular value is above `rtol` times the largest of its matrix."""
    if isinstance(rtol, DispatchTensor):
        rtol = expand_dims(rtol.astype(number_dtype(s)), axis=-1)
    if not s.shape[-1]:
        return greater(s, 0.0)
    return greater(s, multiply(max(s, axis=-1, keepdims=True), rtol))


def _tolerance(x: Tensor, rtol: float | None, operation: str, name: str = "rtol") -> float:
    if rtol is not None:
        return real_number(rtol, name, operation, least=0.0, below=math.inf)
    rows, columns = x.shape[-2:]
    return builtins.max(rows, columns) * finfo(number_dtype(x)).eps
