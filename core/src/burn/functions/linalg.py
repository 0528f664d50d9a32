"""Linear algebra: the extension ``linalg`` of the array API standard, and what burn has beyond it.

Matrices are the last two axes; those before are a batch. Decompositions run in NumPy on the host
where a backend has none of its own, and those of real matrices have gradients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.dispatch import unary
from burn.errors import ShapeError
from burn.functions.common import DTypeLike, dispatch
from burn.functions.creation import eye, zeros
from burn.functions.elementwise import conj, multiply
from burn.functions.linear_algebra import (
    broadcast_axis,
    matmul,
    matrix_transpose,
    tensordot,
    vecdot,
)
from burn.functions.manipulation import broadcast_to, expand_dims, reshape, squeeze
from burn.functions.matrix_decomposition import (
    EighResult,
    EigResult,
    LUDecompositionResult,
    LUResult,
    QRResult,
    SlogdetResult,
    SVDResult,
    check_matrices,
    check_square,
    cholesky,
    det,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    inv,
    lu,
    lu_decomposition,
    matrix_rank,
    pinv,
    qr,
    slogdet,
    solve,
    svd,
    svdvals,
)
from burn.functions.normalize import normalize_axis, rank_of
from burn.functions.norms import (
    cosine_similarity,
    l0_norm,
    l1_norm,
    l2_norm,
    lp_norm,
    matrix_norm,
    max_abs_norm,
    min_abs_norm,
    vector_norm,
    vector_normalize,
)
from burn.functions.statistical import sum
from burn.functions.views import independent
from burn.ops.arguments import as_integer

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "EigResult",
    "EighResult",
    "LUDecompositionResult",
    "LUResult",
    "QRResult",
    "SVDResult",
    "SlogdetResult",
    "cholesky",
    "cosine_similarity",
    "cross",
    "det",
    "diag",
    "diagonal",
    "dot",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "l0_norm",
    "l1_norm",
    "l2_norm",
    "lp_norm",
    "lu",
    "lu_decomposition",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "matvec",
    "max_abs_norm",
    "min_abs_norm",
    "outer",
    "outer_dim",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
    "vector_normalize",
]


_slice = unary(dispatch, "slice")


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Vector product along an axis of length 3; the other axes broadcast.

    The axis is best counted from the end, so that it means the same in both.

    Raises
    ------
    ShapeError
        If one has not 3 elements along the axis, or the shapes do not broadcast.
    """
    number = broadcast_axis(x1, x2, axis, "cross")
    return dispatch.execute("cross", x1, x2, axis=number)  # type: ignore[no-any-return]  # one output


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Products of each element of one vector with each of another.

    Parameters
    ----------
    x1 : Tensor, shape (n,)
        Numeric vector.
    x2 : Tensor, shape (m,)
        Numeric vector.

    Returns
    -------
    Tensor, shape (n, m)
    """
    _vectors(x1, x2, "outer")
    return multiply(expand_dims(x1, axis=1), x2)


def outer_dim(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Products of each element with each along an axis, which becomes two; the others broadcast."""
    rank1, rank2 = rank_of(x1, "outer_dim"), rank_of(x2, "outer_dim")
    if rank1 != rank2:
        raise ShapeError(
            f"tensors of shapes {x1.shape} and {x2.shape}",
            hint="They need as many axes as each other",
            operation="outer_dim",
        )
    number = normalize_axis(x1, axis, "outer_dim")
    return multiply(expand_dims(x1, axis=number + 1), expand_dims(x2, axis=number))


def dot(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Sum of products of two vectors; neither is conjugated if they are complex (see `vecdot`)."""
    _vectors(x1, x2, "dot")
    return vecdot(conj(x1) if x1.dtype.is_complex else x1, x2)


def matvec(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Products of matrices (..., n, m) and vectors (..., m), whose other axes broadcast."""
    if rank_of(x1, "matvec") < 2 or rank_of(x2, "matvec") < 1:
        raise ShapeError(
            f"a matrix of shape {x1.shape} and a vector of shape {x2.shape}", operation="matvec"
        )
    return independent(squeeze(matmul(x1, expand_dims(x2, axis=-1)), axis=-1))


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """Elements of matrices (the last two axes) whose column is their row plus `offset`."""
    check_matrices(x, "diagonal")
    *batch, rows, columns = x.shape
    offset = as_integer(offset, "offset", "diagonal")
    row, column = (0, offset) if offset >= 0 else (-offset, 0)
    down, right = rows - row, columns - column
    length = max(min(down, right), 0)
    start = row * columns + column if length else 0
    flat = reshape(x, (*batch, rows * columns))
    whole = [(0, extent, 1) for extent in batch]
    return _slice(flat, slices=(*whole, (start, length, columns + 1)))


def diag(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """A matrix with a vector on a diagonal and zeros beside it; of matrices, their diagonal."""
    if rank_of(x, "diag") != 1:
        return diagonal(x, offset=offset)
    offset = as_integer(offset, "offset", "diag")
    length = x.shape[0]
    side = length + (offset if offset >= 0 else -offset)
    start = (offset if offset >= 0 else -offset * side) if length else 0
    blank = zeros(side * side, dtype=x.dtype, device=x.device)
    filled = dispatch.execute("slice_assign", blank, x, slices=((start, length, side + 1),))
    return reshape(filled, (side, side), copy=True)


def trace(x: Tensor, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Tensor:
    """Sums of the diagonals of matrices; see `burn.sum` for `dtype`."""
    check_matrices(x, "trace")
    return sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Product of `n` factors `x`, by squaring; of its inverse for a negative `n`.

    Raises
    ------
    ShapeError
        If the matrices are not square.
    ExecutionError
        If `n` is negative and one is singular.
    """
    check_square(x, "matrix_power")
    count = as_integer(n, "n", "matrix_power")
    if count < 0:
        x, count = inv(x), -count
    if count == 0:
        identity = eye(x.shape[-1], dtype=x.dtype, device=x.device)
        return independent(broadcast_to(identity, x.shape))
    result = None
    while count:
        if count & 1:
            result = x if result is None else matmul(result, x)
        count >>= 1
        if count:
            x = matmul(x, x)
    return independent(result)  # type: ignore[arg-type]  # n was not 0


def _vectors(x1: Tensor, x2: Tensor, operation: str) -> None:
    if rank_of(x1, operation) != 1 or rank_of(x2, operation) != 1:
        raise ShapeError(
            f"tensors of shapes {x1.shape} and {x2.shape}",
            hint="It is for two vectors",
            operation=operation,
        )
