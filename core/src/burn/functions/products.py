"""Products of vectors and matrices of the extension ``linalg``, and what is like them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.errors import ShapeError
from burn.functions import calls
from burn.functions._matrix_checks import check_square, check_vectors
from burn.functions.creation import eye
from burn.functions.elementwise import conj, multiply
from burn.functions.linear_algebra import broadcast_axis, matmul, vecdot
from burn.functions.linear_equations import inv
from burn.functions.manipulation import broadcast_to, expand_dims, squeeze
from burn.functions.normalize import normalize_axis, number_dtype, rank_of
from burn.functions.views import independent
from burn.ops.arguments import as_integer

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["cross", "dot", "matrix_power", "matvec", "outer", "outer_dim"]


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Vector product along an axis of length 3; the other axes broadcast.

    Parameters
    ----------
    x1, x2 : Tensor
        Tensors of numbers.
    axis : int
        The axis of the vectors, as in `vecdot`: best counted from the end.

    Returns
    -------
    Tensor
        In the broadcast shape.

    Raises
    ------
    ShapeError
        If one has not 3 elements along the axis, or the shapes do not broadcast.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([1.0, 0.0, 0.0], device="cpu")
    >>> burn.linalg.cross(x, burn.asarray([0.0, 1.0, 0.0], device="cpu")).tolist()
    [0.0, 0.0, 1.0]
    """
    return calls.cross(x1, x2, axis=broadcast_axis(x1, x2, axis, "cross"))


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Products of each element of one vector with each of another.

    Parameters
    ----------
    x1 : Tensor, shape (n,)
        Vector of numbers.
    x2 : Tensor, shape (m,)
        Vector of numbers.

    Returns
    -------
    Tensor, shape (n, m)
        Row i has the products with ``x1[i]``.

    Raises
    ------
    ShapeError
        If one is no vector.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([1, 2], device="cpu")
    >>> burn.linalg.outer(x, burn.asarray([3, 4, 5], device="cpu")).tolist()
    [[3, 4, 5], [6, 8, 10]]
    """
    check_vectors(x1, x2, "outer")
    return multiply(expand_dims(x1, axis=1), x2)


def outer_dim(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Products of each element with each along an axis, which becomes two; the others broadcast.

    Parameters
    ----------
    x1 : Tensor, shape (..., n, ...)
        Tensor of numbers.
    x2 : Tensor, shape (..., m, ...)
        Tensor of numbers with as many axes.
    axis : int
        The axis of the vectors.

    Returns
    -------
    Tensor, shape (..., n, m, ...)
        The outer products of the vectors.

    Raises
    ------
    ShapeError
        If the tensors have not the same number of axes, or the other axes do not broadcast.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([[1, 2], [3, 4]], device="cpu")
    >>> burn.linalg.outer_dim(x, x).tolist()
    [[[1, 2], [2, 4]], [[9, 12], [12, 16]]]
    """
    rank1, rank2 = rank_of(x1, "outer_dim", "x1"), rank_of(x2, "outer_dim", "x2")
    if rank1 != rank2:
        raise ShapeError(
            f"tensors of shapes {x1.shape} and {x2.shape}",
            hint="Both must have the same number of axes",
            operation="outer_dim",
        )
    number = normalize_axis(x1, axis, "outer_dim")
    return multiply(expand_dims(x1, axis=number + 1), expand_dims(x2, axis=number))


def dot(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Sum of products of two vectors; neither is conjugated, unlike in `vecdot`.

    Parameters
    ----------
    x1, x2 : Tensor, shape (n,)
        Vectors of numbers.

    Returns
    -------
    Tensor, shape ()
        The sum of products.

    Raises
    ------
    ShapeError
        If one is no vector, or their lengths differ.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([1.0, 2.0], device="cpu")
    >>> burn.linalg.dot(x, x).item()
    5.0
    """
    check_vectors(x1, x2, "dot")
    return vecdot(conj(x1) if x1.dtype.is_complex else x1, x2)


def matvec(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Products of matrices and vectors; the other axes broadcast.

    Parameters
    ----------
    x1 : Tensor, shape (..., n, m)
        Matrices of numbers.
    x2 : Tensor, shape (..., m)
        Vectors of numbers.

    Returns
    -------
    Tensor, shape (..., n)
        The product of each matrix and its vector.

    Raises
    ------
    ShapeError
        If `x1` has no matrices or `x2` no vectors, or their lengths differ.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
    >>> burn.linalg.matvec(x, burn.asarray([1.0, 1.0], device="cpu")).tolist()
    [3.0, 7.0]
    """
    rank1, rank2 = rank_of(x1, "matvec", "x1"), rank_of(x2, "matvec", "x2")
    if rank1 < 2 or rank2 < 1:
        raise ShapeError(
            f"takes matrices and vectors, got tensors of shapes {x1.shape} and {x2.shape}",
            operation="matvec",
        )
    return independent(squeeze(matmul(x1, expand_dims(x2, axis=-1)), axis=-1))


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Product of `n` factors `x`, by squaring; of its inverse for a negative `n`.

    Parameters
    ----------
    x : Tensor, shape (..., n, n)
        Square matrices.
    n : int
        The exponent; 0 gives identity matrices.

    Returns
    -------
    Tensor, shape (..., n, n)
        The powers.

    Raises
    ------
    ShapeError
        If the matrices are not square.
    ExecutionError
        If `n` is negative and a matrix is singular.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([[1, 1], [0, 1]], device="cpu")
    >>> burn.linalg.matrix_power(x, 5).tolist()
    [[1, 5], [0, 1]]
    """
    check_square(x, "matrix_power")
    exponent = as_integer(n, "n", "matrix_power")
    if exponent < 0:
        x, exponent = inv(x), -exponent
    if exponent == 0:
        identity = eye(x.shape[-1], dtype=number_dtype(x), device=x.device)
        return independent(broadcast_to(identity, x.shape))
    result = None
    while exponent:
        if exponent & 1:
            result = x if result is None else matmul(result, x)
        exponent >>= 1
        if exponent:
            x = matmul(x, x)
    return independent(result)  # type: ignore[arg-type]  # the exponent was not 0
