"""Products of vectors and matrices of the extension ``linalg``, and what is like them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from burn.errors import ShapeError
from burn.functions import calls
from burn.functions.creation import eye
from burn.functions.elementwise import conj, multiply
from burn.functions.linalg._matrix_checks import check_square, check_vectors
from burn.functions.linalg.linear_algebra import broadcast_axis, matmul, vecdot
from burn.functions.linalg.linear_equations import inv
from burn.functions.manipulation import broadcast_to, expand_dims, reshape, squeeze
from burn.functions.normalize import check_tensors, normalize_axis, number_dtype, rank_of
from burn.functions.views import independent
from burn.ops.arguments import as_integer

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn.tensor.tensor import Tensor

__all__ = [
    "cross",
    "dot",
    "kron",
    "matrix_exp",
    "matrix_power",
    "matvec",
    "multi_dot",
    "outer",
    "outer_dim",
]


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
    if x1.shape != x2.shape:
        raise ShapeError(
            f"vectors of {x1.size} and {x2.size} elements",
            hint="Both must have the same length",
            operation="dot",
        )
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
    if x1.shape[-1] != x2.shape[-1]:
        raise ShapeError(
            f"matrices {x1.shape} with {x1.shape[-1]} columns, and vectors {x2.shape} of "
            f"{x2.shape[-1]} elements",
            hint="The vectors are the last axis of x2, and the axes before it broadcast",
            operation="matvec",
        )
    _check_batches(x1.shape[:-2], x2.shape[:-1])
    return independent(squeeze(matmul(x1, expand_dims(x2, axis=-1)), axis=-1))


def _check_batches(matrices: Shape, vectors: Shape) -> None:
    pairs = zip(reversed(matrices), reversed(vectors), strict=False)
    if any(1 not in pair and pair[0] != pair[1] for pair in pairs):
        raise ShapeError(
            f"{matrices} matrices and {vectors} vectors do not broadcast",
            hint="Axes before those of the matrices and vectors have equal lengths, or length 1",
            operation="matvec",
        )


def kron(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Kronecker product: the second tensor times each element of the first, side by side.

    Parameters
    ----------
    x1, x2 : Tensor
        Tensors of numbers. The one with fewer axes gets axes of length 1 before its own.

    Returns
    -------
    Tensor
        Along each axis the product of the lengths; element ``i * n + j`` along an axis is the
        product of element i of `x1` and element j of the n elements of `x2`.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([1, 10], device="cpu")
    >>> burn.linalg.kron(x, burn.asarray([1, 2, 3], device="cpu")).tolist()
    [1, 2, 3, 10, 20, 30]
    """
    rank = max(rank_of(x1, "kron", "x1"), rank_of(x2, "kron", "x2"))
    shape1 = (1,) * (rank - x1.ndim) + x1.shape
    shape2 = (1,) * (rank - x2.ndim) + x2.shape
    pairs = list(zip(shape1, shape2, strict=True))
    outer1 = reshape(x1, tuple([length for n, _ in pairs for length in (n, 1)]))
    outer2 = reshape(x2, tuple([length for _, n in pairs for length in (1, n)]))
    return reshape(multiply(outer1, outer2), tuple([n * m for n, m in pairs]), copy=True)


def multi_dot(tensors: Sequence[Tensor], /) -> Tensor:
    """Product of matrices, in the order that needs the fewest multiplications.

    Parameters
    ----------
    tensors : sequence of Tensor, shape (n, m)
        Two or more matrices of numbers. The first may be a vector, which is a row, and the last
        one a vector, which is a column.

    Returns
    -------
    Tensor, shape (n, m)
        Without the axes that a vector would have had.

    Raises
    ------
    ShapeError
        If a factor is no matrix, or the columns of one are not as many as the rows of the next.

    Notes
    -----
    T. H. Cormen et al., "Introduction to Algorithms" (2009), section 15.2.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([[1.0, 2.0]], device="cpu")
    >>> burn.linalg.multi_dot([x, x.mT, x]).tolist()
    [[5.0, 10.0]]
    """
    factors = check_tensors(tensors, "multi_dot")
    shapes = [factor.shape for factor in factors]
    inner = [len(shape) == 2 for shape in shapes[1:-1]]
    outer = [len(shapes[index]) in (1, 2) for index in (0, -1)]
    if len(factors) < 2 or not all(inner + outer):
        raise ShapeError(
            f"tensors of shapes {', '.join(map(str, shapes))}",
            hint="It takes two matrices or more, of which the first and the last may be vectors",
            operation="multi_dot",
        )
    first, last = factors[0], factors[-1]
    matrices = [
        expand_dims(first, 0) if first.ndim == 1 else first,
        *factors[1:-1],
        expand_dims(last, 1) if last.ndim == 1 else last,
    ]
    lengths = [matrices[0].shape[0], *[matrix.shape[1] for matrix in matrices]]
    for index, matrix in enumerate(matrices):
        if matrix.shape[0] != lengths[index]:
            raise ShapeError(
                f"factor {index} of shape {shapes[index]} follows {lengths[index]} columns",
                hint="The columns of a factor are as many as the rows of the next",
                operation="multi_dot",
            )
    splits = _cheapest_splits(lengths)

    def product(start: int, stop: int) -> Tensor:
        if start == stop:
            return matrices[start]
        middle = splits[start, stop]
        return matmul(product(start, middle), product(middle + 1, stop))

    gone = tuple([axis for axis, tensor in ((0, first), (1, last)) if tensor.ndim == 1])
    return independent(squeeze(product(0, len(matrices) - 1), gone))


def matrix_exp(x: Tensor, /) -> Tensor:
    """Exponentials of square matrices: sums of ``x ** k / k!`` over k.

    Parameters
    ----------
    x : Tensor, shape (..., n, n)
        Real or complex matrices; integers give the default float dtype.

    Returns
    -------
    Tensor, shape (..., n, n)
        The exponentials. One of a matrix with NaN or infinity in it is NaN.

    Raises
    ------
    ShapeError
        If the matrices are not square.

    Notes
    -----
    Scaling and squaring of a Padé approximant: N. J. Higham, "The scaling and squaring method for
    the matrix exponential revisited" (2005).

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([[0.0, 1.0], [0.0, 0.0]], device="cpu")
    >>> burn.linalg.matrix_exp(x).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    check_square(x, "matrix_exp")
    return calls.matrix_exp(x)


def _cheapest_splits(lengths: Sequence[int]) -> dict[tuple[int, int], int]:
    """For each range of factors the one after which to split it: the chain of least cost."""
    count = len(lengths) - 1
    costs = {(index, index): 0 for index in range(count)}
    splits = {}
    for size in range(1, count):
        for start in range(count - size):
            stop = start + size
            costs[start, stop], splits[start, stop] = min(
                (
                    costs[start, middle]
                    + costs[middle + 1, stop]
                    + lengths[start] * lengths[middle + 1] * lengths[stop + 1],
                    middle,
                )
                for middle in range(start, stop)
            )
    return splits


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
