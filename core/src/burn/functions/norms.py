"""Norms of vectors and matrices, and what is divided by them."""

from __future__ import annotations

import builtins
import math
from typing import TYPE_CHECKING, Literal, TypeAlias

from burn.dispatch import unary
from burn.errors import ArgumentError, ShapeError
from burn.functions.common import Axis, dispatch
from burn.functions.elementwise import abs, maximum, not_equal
from burn.functions.linear_algebra import vecdot
from burn.functions.normalize import normalize_axes, rank_of
from burn.functions.statistical import max, min, sum
from burn.ops.arguments import real_number

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "cosine_similarity",
    "l0_norm",
    "l1_norm",
    "l2_norm",
    "lp_norm",
    "matrix_norm",
    "max_abs_norm",
    "min_abs_norm",
    "vector_norm",
    "vector_normalize",
]

MatrixOrder: TypeAlias = int | float | Literal["fro", "nuc"] | None

_lp_norm = unary(dispatch, "lp_norm")
_svdvals = unary(dispatch, "svdvals")


def as_float(x: Tensor, operation: str) -> Tensor:
    """Integers and booleans in the default float dtype of their device."""
    rank_of(x, operation)
    if x.dtype.is_integer or x.dtype.is_bool:
        return x.astype(x.device.settings.float_dtype)
    return x


def vector_norm(
    x: Tensor, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2
) -> Tensor:
    """Norms of vectors, which lie along one axis or several.

    Parameters
    ----------
    x : Tensor
        Any tensor; integers give the default float dtype, and complex numbers that of their parts.
    axis : int or tuple of int, optional
        Where the vectors lie; the whole tensor is one for None.
    keepdims : bool
        Whether these axes stay, with length 1.
    ord : number
        2 for the length, another number p for ``sum(abs(x) ** p) ** (1 / p)``, ``inf`` and
        ``-inf`` for the largest and smallest magnitude, 0 for how many elements are not 0.

    Raises
    ------
    ShapeError
        If `ord` is ``-inf`` and there are no elements; for ``inf`` the norm is then 0.

    Examples
    --------
    >>> import burn
    >>> burn.linalg.vector_norm(burn.asarray([3.0, 4.0], device="cpu")).item()
    5.0
    """
    x = as_float(x, "vector_norm")
    axes = normalize_axes(x, axis, "vector_norm")
    ord = real_number(ord, "ord", "vector_norm")
    if ord == math.inf:
        return _largest(abs(x), axes, keepdims=keepdims)
    if ord == -math.inf:
        return min(abs(x), axis=axes, keepdims=keepdims)
    if ord == 0:
        return sum(not_equal(x, 0.0).astype(x.dtype.component), axis=axes, keepdims=keepdims)
    return _lp_norm(x, axis=axes, ord=ord, keepdims=keepdims)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: MatrixOrder = "fro") -> Tensor:
    """Norms of matrices, which are the last two axes.

    Parameters
    ----------
    x : Tensor, shape (..., n, m)
        Matrices; integers give the default float dtype, and complex numbers that of their parts.
    keepdims : bool
        Whether the last two axes stay, with length 1.
    ord : "fro", "nuc", 1, -1, 2, -2, inf or -inf
        The root of the sum of squares (also for None), the sum of the singular values, the largest
        or smallest sum of magnitudes of a column (1, -1) or row (inf, -inf), the largest or
        smallest singular value (2, -2).

    Raises
    ------
    ShapeError
        If there are no matrices, or the smallest of no elements is asked for; the largest is 0.
    """
    x = as_float(x, "matrix_norm")
    rank = x.ndim
    if rank < 2:
        raise ShapeError(f"a tensor of shape {x.shape} is no matrix", operation="matrix_norm")
    rows, columns = rank - 2, rank - 1
    if ord is not None and not isinstance(ord, str):
        ord = real_number(ord, "ord", "matrix_norm")
    if ord is None or ord == "fro":
        return _lp_norm(x, axis=(rows, columns), ord=2.0, keepdims=keepdims)
    if ord == "nuc":
        result = sum(_svdvals(x), axis=-1)
    elif ord in (2, -2):
        values = _svdvals(x)
        result = _largest(values, (values.ndim - 1,)) if ord == 2 else min(values, axis=-1)
    elif ord in (1, -1, math.inf, -math.inf):
        added, searched = (rows, columns - 1) if builtins.abs(ord) == 1 else (columns, rows)
        sums = sum(abs(x), axis=added)
        result = _largest(sums, (searched,)) if ord > 0 else min(sums, axis=searched)
    else:
        raise ArgumentError(
            f"ord is {ord!r}",
            hint='It may be "fro", "nuc", 1, -1, 2, -2, inf or -inf',
            operation="matrix_norm",
        )
    return result.reshape((*result.shape, 1, 1), copy=True) if keepdims else result


def _largest(x: Tensor, axes: tuple[int, ...], *, keepdims: bool = False) -> Tensor:
    """The largest of magnitudes; 0 where there are none, as the sum of none is."""
    none = 0 in [x.shape[axis] for axis in axes]
    return (sum if none else max)(x, axis=axes, keepdims=keepdims)


def l0_norm(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """How many elements are not 0, as floats."""
    return vector_norm(x, axis=axis, keepdims=keepdims, ord=0)


def l1_norm(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Sum of the magnitudes."""
    return vector_norm(x, axis=axis, keepdims=keepdims, ord=1)


def l2_norm(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Root of the sum of the squares."""
    return vector_norm(x, axis=axis, keepdims=keepdims, ord=2)


def lp_norm(x: Tensor, p: float, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """``sum(abs(x) ** p) ** (1 / p)``; see `vector_norm` for the limits."""
    return vector_norm(x, axis=axis, keepdims=keepdims, ord=p)


def max_abs_norm(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The largest magnitude."""
    return vector_norm(x, axis=axis, keepdims=keepdims, ord=math.inf)


def min_abs_norm(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The smallest magnitude."""
    return vector_norm(x, axis=axis, keepdims=keepdims, ord=-math.inf)


def vector_normalize(
    x: Tensor, /, *, axis: Axis = -1, ord: float = 2, eps: float = 1e-12
) -> Tensor:
    """Vectors divided by their norms.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    axis : int or tuple of int, optional
        Where the vectors lie.
    ord : number
        Which norm; see `vector_norm`.
    eps : float
        Norms below it count as `eps`, so that a vector of zeros stays one.
    """
    return x / maximum(
        vector_norm(x, axis=axis, ord=ord, keepdims=True), _positive(eps, "vector_normalize")
    )


def cosine_similarity(x1: Tensor, x2: Tensor, /, *, axis: int = -1, eps: float = 1e-8) -> Tensor:
    """Cosines of the angles between vectors along an axis; the others broadcast.

    Norms below `eps` count as `eps`. The first of complex vectors is conjugated.
    """
    x1, x2 = as_float(x1, "cosine_similarity"), as_float(x2, "cosine_similarity")
    dot = vecdot(x1, x2, axis=axis)
    back = axis if axis < 0 else axis - builtins.max(x1.ndim, x2.ndim)
    first = maximum(vector_norm(x1, axis=back), _positive(eps, "cosine_similarity"))
    return dot / first / maximum(vector_norm(x2, axis=back), _positive(eps, "cosine_similarity"))


def _positive(eps: float, operation: str) -> float:
    return real_number(eps, "eps", operation, least=0.0, below=math.inf)
