"""Systems of linear equations and decompositions (extension ``linalg`` of the standard).

Matrices are the last two axes; those before are a batch. Decompositions run in NumPy on the host
where a backend has none of its own, and those of real matrices have gradients.
"""

from __future__ import annotations

import builtins
import math
from typing import TYPE_CHECKING, Literal, NamedTuple

from burn.dispatch import DispatchTensor, unary
from burn.errors import ArgumentError, ShapeError
from burn.functions.common import dispatch
from burn.functions.creation import arange, eye
from burn.functions.data_type import finfo
from burn.functions.elementwise import conj, divide, equal, greater, less_equal, multiply
from burn.functions.linear_algebra import matmul, matrix_transpose
from burn.functions.manipulation import expand_dims, squeeze
from burn.functions.normalize import rank_of
from burn.functions.norms import as_float
from burn.functions.searching import where
from burn.functions.statistical import max, sum
from burn.functions.views import independent
from burn.ops.arguments import real_number

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

_slice = unary(dispatch, "slice")


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


class SlogdetResult(NamedTuple):
    """What `slogdet` returns."""

    sign: Tensor
    logabsdet: Tensor


class LUResult(NamedTuple):
    """What `lu` returns."""

    P: Tensor
    L: Tensor
    U: Tensor


class LUDecompositionResult(NamedTuple):
    """What `lu_decomposition` returns."""

    LU: Tensor
    permutation: Tensor


# Systems of equations.


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """What `x1` has to be multiplied by to give `x2`.

    Parameters
    ----------
    x1 : Tensor, shape (..., n, n)
        Matrices of coefficients.
    x2 : Tensor, shape (n,) or (..., n, k)
        One right side, or matrices with a right side in each column.

    Returns
    -------
    Tensor, shape (..., n) or (..., n, k)

    Raises
    ------
    ExecutionError
        If a matrix is singular; it says which of a batch.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([[2.0, 0.0], [0.0, 4.0]], device="cpu")
    >>> burn.linalg.solve(x, burn.asarray([2.0, 2.0], device="cpu")).tolist()
    [1.0, 0.5]
    """
    rank_of(x1, "solve")
    if rank_of(x2, "solve") == 1:
        column = expand_dims(x2, axis=1)
        return independent(squeeze(dispatch.execute("solve", x1, column), axis=-1))
    return dispatch.execute("solve", x1, x2)  # type: ignore[no-any-return]  # one output


def inv(x: Tensor, /) -> Tensor:
    """Inverses of square matrices.

    Raises
    ------
    ExecutionError
        If a matrix is singular; it says which of a batch.
    """
    return dispatch.execute("inv", x)  # type: ignore[no-any-return]  # one output


def det(x: Tensor, /) -> Tensor:
    """Determinants of square matrices; the gradient holds for singular ones too."""
    return dispatch.execute("det", x)  # type: ignore[no-any-return]  # one output


def slogdet(x: Tensor, /) -> SlogdetResult:
    """Signs of determinants, and logarithms of their magnitudes; 0 and -inf of singular ones.

    The sign of a complex determinant is what it is divided by its magnitude; the logarithm is real.
    """
    return SlogdetResult(*dispatch.execute("slogdet", x))


def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """Inverses of Moore and Penrose.

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
    """
    check_matrices(x, "pinv")
    x = as_float(x, "pinv")
    if not isinstance(rtol, DispatchTensor):
        return dispatch.execute("pinv", x, rtol=_tolerance(x, rtol, "pinv"))  # type: ignore[no-any-return]  # one output
    u, s, vh = svd(x, full_matrices=False)
    counts = _counting(s, rtol)
    inverse = where(counts, divide(1.0, where(counts, s, 1.0)), 0.0)
    return matmul(multiply(_adjoint(vh), expand_dims(inverse, axis=-2)), _adjoint(u))


def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """How many singular values count; see `pinv` for `rtol`. In the default integer dtype."""
    check_matrices(x, "matrix_rank")
    x = as_float(x, "matrix_rank")
    if not isinstance(rtol, DispatchTensor):
        rtol = _tolerance(x, rtol, "matrix_rank")
    counts = _counting(svdvals(x), rtol)
    return sum(counts.astype(x.device.settings.int_dtype), axis=-1)


def _counting(s: Tensor, rtol: float | Tensor) -> Tensor:
    """Which singular values are above `rtol` times the largest."""
    if isinstance(rtol, DispatchTensor):
        rtol = expand_dims(rtol.astype(s.dtype), axis=-1)
    if not s.shape[-1]:
        return greater(s, 0.0)
    return greater(s, multiply(max(s, axis=-1, keepdims=True), rtol))


def _tolerance(x: Tensor, rtol: float | None, operation: str) -> float:
    if rtol is not None:
        return real_number(rtol, "rtol", operation, least=0.0, below=math.inf)
    rows, columns = x.shape[-2:]
    return builtins.max(rows, columns) * finfo(x.dtype).eps


# Decompositions.


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

    Raises
    ------
    ExecutionError
        If a matrix is not positive definite; it says which of a batch.
    """
    lower: Tensor = dispatch.execute("cholesky", x)
    return _adjoint(lower) if upper else lower


def qr(x: Tensor, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """Orthonormal columns Q and upper triangles R, whose diagonal is real and not negative.

    Parameters
    ----------
    x : Tensor, shape (..., n, m)
        Matrices.
    mode : "reduced" or "complete"
        Whether Q has ``min(n, m)`` columns, or n. There is no gradient through the columns that
        complete it.
    """
    if mode not in ("reduced", "complete"):
        raise ArgumentError(
            f"mode is {mode!r}", hint='It is "reduced" or "complete"', operation="qr"
        )
    return QRResult(*dispatch.execute("qr", x, complete=mode == "complete"))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """Singular value decompositions: ``U * S @ Vh`` is the matrix, and S is real and falls.

    Parameters
    ----------
    x : Tensor, shape (..., n, m)
        Matrices.
    full_matrices : bool
        Whether U and Vh are square, else they have ``min(n, m)`` columns and rows. There is no
        gradient through the vectors that complete them.

    Notes
    -----
    In each column of U the element of the largest magnitude is positive. Gradients through U and Vh
    are defined where the singular values differ.
    """
    return SVDResult(*dispatch.execute("svd", x, full_matrices=bool(full_matrices)))


def svdvals(x: Tensor, /) -> Tensor:
    """Singular values of matrices, which are real, the largest first."""
    return dispatch.execute("svdvals", x)  # type: ignore[no-any-return]  # one output


def eigh(x: Tensor, /) -> EighResult:
    """Eigenvalues of symmetric or Hermitian matrices, rising, and eigenvectors as columns.

    What is decomposed is the mean of a matrix and its conjugate transpose. The eigenvalues are
    real. In each eigenvector the element of the largest magnitude is positive. Gradients through
    eigenvectors are defined where the eigenvalues differ.
    """
    return EighResult(*dispatch.execute("eigh", x))


def eigvalsh(x: Tensor, /) -> Tensor:
    """Eigenvalues of symmetric or Hermitian matrices, real and rising."""
    return dispatch.execute("eigvalsh", x)  # type: ignore[no-any-return]  # one output


def eig(x: Tensor, /) -> EigResult:
    """Eigenvalues of square matrices, and eigenvectors as columns.

    Parameters
    ----------
    x : Tensor, shape (..., n, n)
        Real or complex matrices.

    Returns
    -------
    EigResult
        The eigenvalues, of shape (..., n), in no particular order, and the eigenvectors, of shape
        (..., n, n). Both are complex, also where the matrices are real: complex64 for float32.
        Eigenvectors have the length 1, and their element of the largest magnitude is positive.

    Raises
    ------
    UnsupportedOpError
        If `x` is tracked: complex results have no gradient. Symmetric matrices have `eigh`.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([[2.0, -1.0], [1.0, 2.0]], device="cpu")
    >>> burn.linalg.eig(x).eigenvalues.tolist()
    [(2+1j), (2-1j)]
    """
    return EigResult(*dispatch.execute("eig", x))


def eigvals(x: Tensor, /) -> Tensor:
    """Eigenvalues of square matrices, which are complex, in no particular order; see `eig`."""
    return dispatch.execute("eigvals", x)  # type: ignore[no-any-return]  # one output


def lu_decomposition(x: Tensor, /) -> LUDecompositionResult:
    """Lower and upper triangles in one matrix, and the order of rows in which they give `x`.

    U is on and above the diagonal, L below it with a diagonal of ones, and row i of ``L @ U`` is
    row ``permutation[i]`` of `x`.
    """
    rank_of(x, "lu_decomposition")
    dtype = x.device.settings.int_dtype
    return LUDecompositionResult(*dispatch.execute("lu_decomposition", x, index_dtype=dtype))


def lu(x: Tensor, /) -> LUResult:
    """A permutation P, lower triangles L with a diagonal of ones, and upper triangles U.

    Returns
    -------
    LUResult
        Of the shapes (..., n, n), (..., n, k) and (..., k, m) for k the smaller of n and m, with
        ``P @ L @ U`` equal to `x`.
    """
    check_matrices(x, "lu")
    packed, permutation = lu_decomposition(x)
    *batch, rows, columns = packed.shape
    count = min(rows, columns)
    dtype, device = packed.dtype, packed.device
    place = arange(rows, dtype=permutation.dtype, device=device)
    order = equal(expand_dims(place, axis=1), expand_dims(permutation, axis=-2))
    row, column = expand_dims(place, axis=1), arange(columns, dtype=place.dtype, device=device)
    upper = where(less_equal(row, column), packed, 0.0)
    lower = where(less_equal(row, column), 0.0, packed)
    whole = [(0, extent, 1) for extent in batch]
    left = _slice(lower, slices=(*whole, (0, rows, 1), (0, count, 1)))
    return LUResult(
        order.astype(dtype),
        left + eye(rows, count, dtype=dtype, device=device),
        _slice(upper, slices=(*whole, (0, count, 1), (0, columns, 1))),
    )


def _adjoint(x: Tensor) -> Tensor:
    """Matrices with their last two axes exchanged, and complex elements conjugated."""
    turned = matrix_transpose(x)
    return conj(turned) if x.dtype.is_complex else turned


def check_matrices(x: Tensor, operation: str) -> None:
    """Refuse what has fewer than two axes."""
    if rank_of(x, operation) < 2:
        raise ShapeError(f"matrices have two axes or more, got {x.shape}", operation=operation)


def check_square(x: Tensor, operation: str) -> None:
    """Refuse what is no stack of square matrices."""
    check_matrices(x, operation)
    if x.shape[-1] != x.shape[-2]:
        raise ShapeError(
            f"the last two axes must have equal lengths, got {x.shape}", operation=operation
        )
