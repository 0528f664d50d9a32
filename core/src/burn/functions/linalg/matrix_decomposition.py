"""Decompositions of matrices (extension ``linalg`` of the standard).

Matrices are the last two axes; those before are a batch. Decompositions run in NumPy on the host
where a backend has none of its own, and those of real matrices have gradients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from burn.docstrings import documented_as
from burn.functions import calls
from burn.functions.creation import arange, eye
from burn.functions.elementwise import conj, equal, less_equal
from burn.functions.linalg._matrix_checks import check_matrices
from burn.functions.linalg.linear_algebra import matrix_transpose
from burn.functions.manipulation import expand_dims
from burn.functions.normalize import as_flag, check_choice, check_tensor
from burn.functions.searching import where

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "EigResult",
    "EighResult",
    "LUDecompositionResult",
    "LUResult",
    "QRResult",
    "SVDResult",
    "cholesky",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "lu",
    "lu_decomposition",
    "qr",
    "svd",
    "svdvals",
]


class EigResult(NamedTuple):
    """What `eig` returns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class EighResult(NamedTuple):
    """What `eigh` returns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """What `qr` returns."""

    Q: Tensor
    R: Tensor


class SVDResult(NamedTuple):
    """What `svd` returns."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class LUResult(NamedTuple):
    """What `lu` returns."""

    P: Tensor
    L: Tensor
    U: Tensor


class LUDecompositionResult(NamedTuple):
    """What `lu_decomposition` returns."""

    LU: Tensor
    permutation: Tensor


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """Triangles whose product with their adjoint is a positive definite matrix.

    Parameters
    ----------
    x : Tensor, shape (..., n, n)
        Symmetric matrices, or complex Hermitian ones. What is decomposed is the mean of a matrix
        and its conjugate transpose.
    upper : bool
        Whether to return the upper triangle U with ``conj(U.mT) @ U``, not the lower L with
        ``L @ conj(L.mT)``.

    Returns
    -------
    Tensor, shape (..., n, n)
        The triangles, with zeros in the other half.

    Raises
    ------
    ExecutionError
        If a matrix is not positive definite; it says which of a batch.
    ShapeError
        If the matrices are not square.

    Examples
    --------
    >>> import burn
    >>> burn.linalg.cholesky(burn.asarray([[4.0, 2.0], [2.0, 2.0]], device="cpu")).tolist()
    [[2.0, 0.0], [1.0, 1.0]]
    """
    check_tensor(x, "x", "cholesky")
    upper = as_flag(upper, "upper", "cholesky")
    lower = calls.cholesky(x)
    return adjoint(lower) if upper else lower


def qr(x: Tensor, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """Orthonormal columns Q and upper triangles R, whose diagonal is real and not negative.

    Parameters
    ----------
    x : Tensor, shape (..., n, m)
        Matrices.
    mode : "reduced" or "complete"
        Whether Q has ``min(n, m)`` columns, or n. There is no gradient through the columns that
        complete it.

    Returns
    -------
    Q : Tensor, shape (..., n, min(n, m)) or (..., n, n)
        Orthonormal columns.
    R : Tensor, shape (..., min(n, m), m) or (..., n, m)
        Upper triangles, with ``Q @ R`` equal to `x`.

    Raises
    ------
    ArgumentError
        If `mode` is another string.
    ShapeError
        If `x` has fewer than two axes.

    Examples
    --------
    >>> import burn
    >>> q, r = burn.linalg.qr(burn.asarray([[0.0, 2.0], [3.0, 4.0]], device="cpu"))
    >>> r.tolist(), (q @ r).tolist()
    ([[3.0, 4.0], [0.0, 2.0]], [[0.0, 2.0], [3.0, 4.0]])
    """
    check_tensor(x, "x", "qr")
    check_choice(mode, ("reduced", "complete"), "mode", "qr")
    return QRResult(*calls.qr(x, complete=mode == "complete"))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """Singular value decompositions: ``U * S @ Vh`` is the matrix.

    Parameters
    ----------
    x : Tensor, shape (..., n, m)
        Matrices.
    full_matrices : bool
        Whether U and Vh are square, else they have ``min(n, m)`` columns and rows. There is no
        gradient through the vectors that complete them.

    Returns
    -------
    U : Tensor, shape (..., n, n) or (..., n, min(n, m))
        Orthonormal columns, in each of which the element of the largest magnitude is positive.
    S : Tensor, shape (..., min(n, m))
        The singular values, real and in descending order.
    Vh : Tensor, shape (..., m, m) or (..., min(n, m), m)
        Orthonormal rows.

    Raises
    ------
    ShapeError
        If `x` has fewer than two axes.

    Notes
    -----
    Gradients through U and Vh are defined where the singular values differ.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([[0.0, 2.0], [3.0, 0.0]], device="cpu")
    >>> burn.linalg.svd(x).S.tolist()
    [3.0, 2.0]
    """
    check_tensor(x, "x", "svd")
    full = as_flag(full_matrices, "full_matrices", "svd")
    return SVDResult(*calls.svd(x, full_matrices=full))


@documented_as(svd)
def svdvals(x: Tensor, /) -> Tensor:
    """Singular values of matrices.

    Returns
    -------
    Tensor, shape (..., min(n, m))
        The singular values, real and in descending order.

    Examples
    --------
    >>> import burn
    >>> burn.linalg.svdvals(burn.asarray([[0.0, 2.0], [3.0, 0.0]], device="cpu")).tolist()
    [3.0, 2.0]
    """
    check_tensor(x, "x", "svdvals")
    return calls.svdvals(x)


def eigh(x: Tensor, /) -> EighResult:
    """Eigenvalues and eigenvectors of symmetric or Hermitian matrices.

    Parameters
    ----------
    x : Tensor, shape (..., n, n)
        Symmetric matrices, or complex Hermitian ones. What is decomposed is the mean of a matrix
        and its conjugate transpose.

    Returns
    -------
    eigenvalues : Tensor, shape (..., n)
        Real, in ascending order.
    eigenvectors : Tensor, shape (..., n, n)
        Columns of length 1, in each of which the element of the largest magnitude is positive.
        Gradients through them are defined where the eigenvalues differ.

    Raises
    ------
    ShapeError
        If the matrices are not square.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([[3.0, 0.0], [0.0, 1.0]], device="cpu")
    >>> eigenvalues, eigenvectors = burn.linalg.eigh(x)
    >>> eigenvalues.tolist(), eigenvectors.tolist()
    ([1.0, 3.0], [[0.0, 1.0], [1.0, 0.0]])
    """
    check_tensor(x, "x", "eigh")
    return EighResult(*calls.eigh(x))


def eigvalsh(x: Tensor, /) -> Tensor:
    """Eigenvalues of symmetric or Hermitian matrices.

    Parameters
    ----------
    x : Tensor, shape (..., n, n)
        Matrices, as in `eigh`.

    Returns
    -------
    Tensor, shape (..., n)
        Real, in ascending order.

    Raises
    ------
    ShapeError
        If the matrices are not square.

    Examples
    --------
    >>> import burn
    >>> burn.linalg.eigvalsh(burn.asarray([[3.0, 0.0], [0.0, 1.0]], device="cpu")).tolist()
    [1.0, 3.0]
    """
    check_tensor(x, "x", "eigvalsh")
    return calls.eigvalsh(x)


def eig(x: Tensor, /) -> EigResult:
    """Eigenvalues of square matrices, and eigenvectors as columns.

    Parameters
    ----------
    x : Tensor, shape (..., n, n)
        Real or complex matrices.

    Returns
    -------
    eigenvalues : Tensor, shape (..., n)
        In no particular order; complex, also where the matrices are real: complex64 for float32.
    eigenvectors : Tensor, shape (..., n, n)
        Complex columns of length 1, in each of which the element of the largest magnitude is
        positive.

    Raises
    ------
    ShapeError
        If the matrices are not square.
    UnsupportedOpError
        If `x` is tracked: complex results have no gradient. Symmetric matrices have `eigh`.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([[2.0, -1.0], [1.0, 2.0]], device="cpu")
    >>> burn.linalg.eig(x).eigenvalues.tolist()
    [(2+1j), (2-1j)]
    """
    check_tensor(x, "x", "eig")
    return EigResult(*calls.eig(x))


@documented_as(eig)
def eigvals(x: Tensor, /) -> Tensor:
    """Eigenvalues of square matrices.

    Returns
    -------
    Tensor, shape (..., n)
        In no particular order; complex, also where the matrices are real.

    Raises
    ------
    UnsupportedOpError
        If `x` is tracked: complex results have no gradient. Symmetric matrices have `eigvalsh`.

    Examples
    --------
    >>> import burn
    >>> burn.linalg.eigvals(burn.asarray([[2.0, -1.0], [1.0, 2.0]], device="cpu")).tolist()
    [(2+1j), (2-1j)]
    """
    check_tensor(x, "x", "eigvals")
    return calls.eigvals(x)


@documented_as(svd)
def lu_decomposition(x: Tensor, /) -> LUDecompositionResult:
    """Lower and upper triangles in one matrix, and the order of rows in which they give `x`.

    Returns
    -------
    LU : Tensor, shape (..., n, m)
        U on and above the diagonal, and below it L, whose diagonal of ones is left out.
    permutation : Tensor, shape (..., n)
        Row i of ``L @ U`` is row ``permutation[i]`` of `x`.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([[1.0, 2.0], [2.0, 6.0]], device="cpu")
    >>> packed, permutation = burn.linalg.lu_decomposition(x)
    >>> packed.tolist(), permutation.tolist()
    ([[2.0, 6.0], [0.5, -1.0]], [1, 0])
    """
    check_tensor(x, "x", "lu_decomposition")
    dtype = x.device.settings.int_dtype
    return LUDecompositionResult(*calls.lu_decomposition(x, index_dtype=dtype))


@documented_as(svd)
def lu(x: Tensor, /) -> LUResult:
    """A permutation P, lower triangles L and upper triangles U with ``P @ L @ U`` equal to `x`.

    Returns
    -------
    P : Tensor, shape (..., n, n)
        Permutations of rows, as matrices of 0 and 1.
    L : Tensor, shape (..., n, min(n, m))
        Lower triangles with a diagonal of ones.
    U : Tensor, shape (..., min(n, m), m)
        Upper triangles.

    Examples
    --------
    >>> import burn
    >>> p, l, u = burn.linalg.lu(burn.asarray([[1.0, 2.0], [2.0, 6.0]], device="cpu"))
    >>> p.tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    >>> l.tolist(), u.tolist()
    ([[1.0, 0.0], [0.5, 1.0]], [[2.0, 6.0], [0.0, -1.0]])
    """
    check_matrices(x, "lu")
    packed, permutation = lu_decomposition(x)
    *batch, rows, columns = packed.shape
    count = min(rows, columns)
    dtype, device = packed.dtype, packed.device
    row = expand_dims(arange(rows, dtype=permutation.dtype, device=device), axis=1)
    column = arange(columns, dtype=permutation.dtype, device=device)
    order = equal(row, expand_dims(permutation, axis=-2))
    is_upper = less_equal(row, column)
    upper = where(is_upper, packed, 0.0)
    lower = where(is_upper, 0.0, packed)
    whole = [(0, extent, 1) for extent in batch]
    left = calls.slice(lower, slices=(*whole, (0, rows, 1), (0, count, 1)))
    return LUResult(
        order.astype(dtype),
        left + eye(rows, count, dtype=dtype, device=device),
        calls.slice(upper, slices=(*whole, (0, count, 1), (0, columns, 1))),
    )


def adjoint(x: Tensor) -> Tensor:
    """Matrices with their last two axes exchanged, and complex elements conjugated."""
    transposed = matrix_transpose(x)
    return conj(transposed) if x.dtype.is_complex else transposed
