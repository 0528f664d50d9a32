"""Norms of vectors and matrices, and normalized vectors."""

from __future__ import annotations

import builtins
import math
from typing import TYPE_CHECKING, Literal, TypeAlias

from burn.docstrings import documented_as
from burn.errors import ArgumentError, AxisError, ShapeError
from burn.functions import calls
from burn.functions._spread import accumulation_dtype
from burn.functions.common import Axis
from burn.functions.data_type import result_type
from burn.functions.elementwise import abs, maximum, not_equal
from burn.functions.linalg._matrix_checks import check_matrices
from burn.functions.linalg.linear_algebra import broadcast_axis, vecdot
from burn.functions.manipulation import astype, expand_dims, moveaxis
from burn.functions.normalize import (
    as_flag,
    as_float,
    normalize_axes,
    number_dtype,
    rank_of,
    reduction,
)
from burn.functions.quantization import numbers_of
from burn.functions.statistical import max, min, sum
from burn.functions.views import independent
from burn.ops.arguments import real_number
from burn.public_calls import shown_value

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
    "norm",
    "vector_norm",
    "vector_normalize",
]

MatrixOrder: TypeAlias = int | float | Literal["fro", "nuc"] | None


@reduction
def vector_norm(
    x: Tensor, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2
) -> Tensor:
    """Norms of vectors, which lie along one axis or several.

    Parameters
    ----------
    x : Tensor
        Tensor of any dtype; integers give the default float dtype, and complex numbers that of
        their parts.
    axis : int, tuple of int or None
        Axes of the vectors; None for the whole tensor as one vector.
    keepdims : bool
        Whether the reduced axes stay, with length 1.
    ord : number
        2 for the length, another number p for ``sum(abs(x) ** p) ** (1 / p)``, ``inf`` and
        ``-inf`` for the largest and smallest magnitude, 0 for the number of elements that are not
        0.

    Returns
    -------
    Tensor
        The norms, of a float dtype, without the axes of the vectors.

    Raises
    ------
    AxisError
        If `x` has no such axis.
    ShapeError
        If `ord` is ``-inf`` and there are no elements; for ``inf`` the norm is then 0.

    Examples
    --------
    >>> import burn
    >>> burn.linalg.vector_norm(burn.asarray([3.0, 4.0], device="cpu")).item()
    5.0
    """
    return _vector_norm(x, axis, ord, "vector_norm", keepdims=keepdims)


@reduction
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

    Returns
    -------
    Tensor, shape (...,)
        The norms, of a float dtype.

    Raises
    ------
    ArgumentError
        If `ord` is another number or string.
    ShapeError
        If `x` has fewer than two axes, or the smallest of no elements is asked for; the largest of
        none is 0.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([[3.0, 0.0], [0.0, 4.0]], device="cpu")
    >>> burn.linalg.matrix_norm(x).item(), burn.linalg.matrix_norm(x, ord="nuc").item()
    (5.0, 7.0)
    """
    check_matrices(x, "matrix_norm")
    keepdims = as_flag(keepdims, "keepdims", "matrix_norm")
    x = numbers_of(as_float(x, "matrix_norm"))
    rows, columns = x.ndim - 2, x.ndim - 1
    if ord is not None and not isinstance(ord, str):
        ord = real_number(ord, "ord", "matrix_norm")
    if ord is None or ord == "fro":
        return calls.lp_norm(x, axis=(rows, columns), ord=2.0, keepdims=keepdims)
    if ord == "nuc":
        result = sum(calls.svdvals(x), axis=-1)
    elif ord in (2, -2):
        values = calls.svdvals(x)
        result = _largest(values, (values.ndim - 1,)) if ord == 2 else min(values, axis=-1)
    elif ord in (1, -1, math.inf, -math.inf):
        added, searched = (rows, columns - 1) if builtins.abs(ord) == 1 else (columns, rows)
        sums = sum(abs(x), axis=added)
        result = _largest(sums, (searched,)) if ord > 0 else min(sums, axis=searched)
    else:
        raise ArgumentError(
            f"ord is {shown_value(ord)}",
            hint='It may be "fro", "nuc", 1, -1, 2, -2, inf or -inf',
            operation="matrix_norm",
        )
    return result.reshape((*result.shape, 1, 1), copy=True) if keepdims else result


@reduction
def norm(
    x: Tensor,
    /,
    ord: MatrixOrder = None,
    axis: Axis = None,
    *,
    keepdims: bool = False,
) -> Tensor:
    """Norms of vectors along one axis, or of matrices along two, as in NumPy.

    `vector_norm` and `matrix_norm` of the standard say which of both is meant.

    Parameters
    ----------
    x : Tensor
        Numbers. Without `axis` one vector or one matrix, if an `ord` is given.
    ord : number, "fro" or "nuc", optional
        The order of `vector_norm` or `matrix_norm`. By default 2 for vectors and "fro" for
        matrices.
    axis : int or tuple of two int, optional
        The axis of vectors, or those of matrices. By default all elements are one vector, or with
        an `ord` all axes are those of it.
    keepdims : bool
        Whether the result keeps those axes with length one.

    Returns
    -------
    Tensor
        The norms, in the dtype of the real part of `x`; integers give the default float dtype.

    Raises
    ------
    ArgumentError
        If there is no such norm.
    AxisError
        If `axis` has more than two axes.
    ShapeError
        If `axis` is left out, `ord` is given, and `x` has not one or two axes.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([[3.0, 0.0], [0.0, 4.0]], device="cpu")
    >>> burn.linalg.norm(x).item(), burn.linalg.norm(x, "nuc").item()
    (5.0, 7.0)
    >>> burn.linalg.norm(x, axis=1).tolist()
    [3.0, 4.0]
    """
    rank = rank_of(x, "norm")
    keeps = as_flag(keepdims, "keepdims", "norm")
    if axis is None and ord is None:
        return vector_norm(x, keepdims=keeps)
    if axis is None and rank not in (1, 2):
        raise ShapeError(
            f"shape {x.shape} with ord {shown_value(ord)}",
            hint="Name the axes of the vectors or matrices with axis=",
            operation="norm",
        )
    axes = normalize_axes(x, axis, "norm")
    if len(axes) == 1:
        if isinstance(ord, str):
            raise ArgumentError(
                f"vectors have no norm {shown_value(ord)}", hint="Give a number", operation="norm"
            )
        return vector_norm(x, axis=axes, keepdims=keeps, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise AxisError(
            f"axis is {shown_value(axis)}",
            hint="Vectors have one axis, matrices two",
            operation="norm",
        )
    result = matrix_norm(moveaxis(x, axes, (-2, -1)), ord="fro" if ord is None else ord)
    return independent(expand_dims(result, tuple(sorted(axes)))) if keeps else result


@reduction
def l0_norm(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Number of elements that are not 0, as floats.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    axis : int, tuple of int or None
        Axes of the vectors; None for the whole tensor as one vector.
    keepdims : bool
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        `vector_norm` for ``ord=0``.

    Examples
    --------
    >>> import burn
    >>> burn.linalg.l0_norm(burn.asarray([3.0, 0.0, -4.0], device="cpu")).item()
    2.0
    """
    return _vector_norm(x, axis, 0, "l0_norm", keepdims=keepdims)


@reduction
@documented_as(l0_norm)
def l1_norm(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Sum of the magnitudes.

    The parameters are those of `l0_norm`.

    Returns
    -------
    Tensor
        `vector_norm` for ``ord=1``.

    Examples
    --------
    >>> import burn
    >>> burn.linalg.l1_norm(burn.asarray([3.0, -4.0], device="cpu")).item()
    7.0
    """
    return _vector_norm(x, axis, 1, "l1_norm", keepdims=keepdims)


@reduction
@documented_as(l0_norm)
def l2_norm(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Root of the sum of the squares.

    The parameters are those of `l0_norm`.

    Returns
    -------
    Tensor
        `vector_norm` for ``ord=2``.

    Examples
    --------
    >>> import burn
    >>> burn.linalg.l2_norm(burn.asarray([3.0, -4.0], device="cpu")).item()
    5.0
    """
    return _vector_norm(x, axis, 2, "l2_norm", keepdims=keepdims)


@reduction
def lp_norm(x: Tensor, p: float, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """``sum(abs(x) ** p) ** (1 / p)``, and its limits for 0 and the infinities.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    p : number
        The exponent.
    axis : int, tuple of int or None
        Axes of the vectors; None for the whole tensor as one vector.
    keepdims : bool
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        `vector_norm` for ``ord=p``.

    Examples
    --------
    >>> import burn
    >>> burn.linalg.lp_norm(burn.asarray([3.0, -4.0], device="cpu"), 1).item()
    7.0
    """
    return _vector_norm(x, axis, p, "lp_norm", keepdims=keepdims)


@reduction
@documented_as(l0_norm)
def max_abs_norm(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Largest magnitude; 0 of no elements.

    The parameters are those of `l0_norm`.

    Returns
    -------
    Tensor
        `vector_norm` for ``ord=inf``.

    Examples
    --------
    >>> import burn
    >>> burn.linalg.max_abs_norm(burn.asarray([3.0, -4.0], device="cpu")).item()
    4.0
    """
    return _vector_norm(x, axis, math.inf, "max_abs_norm", keepdims=keepdims)


@reduction
@documented_as(l0_norm)
def min_abs_norm(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Smallest magnitude.

    The parameters are those of `l0_norm`.

    Returns
    -------
    Tensor
        `vector_norm` for ``ord=-inf``.

    Raises
    ------
    ShapeError
        If there are no elements.

    Examples
    --------
    >>> import burn
    >>> burn.linalg.min_abs_norm(burn.asarray([3.0, -4.0], device="cpu")).item()
    3.0
    """
    return _vector_norm(x, axis, -math.inf, "min_abs_norm", keepdims=keepdims)


def vector_normalize(
    x: Tensor, /, *, axis: Axis = -1, ord: float = 2, eps: float = 1e-12
) -> Tensor:
    """Vectors divided by their norms.

    Parameters
    ----------
    x : Tensor
        Tensor of any dtype; integers give the default float dtype.
    axis : int, tuple of int or None
        Axes of the vectors; None for the whole tensor as one vector.
    ord : number
        The norm, as in `vector_norm`.
    eps : float
        Smaller norms count as `eps`, so that a vector of zeros stays one.

    Returns
    -------
    Tensor
        In the shape of `x`.

    Examples
    --------
    >>> import burn
    >>> burn.linalg.vector_normalize(burn.asarray([0.0, -4.0], device="cpu")).tolist()
    [0.0, -1.0]
    """
    norm = _vector_norm(x, axis, ord, "vector_normalize", keepdims=True)
    return x / maximum(norm, _as_eps(eps, "vector_normalize"))


def cosine_similarity(x1: Tensor, x2: Tensor, /, *, axis: int = -1, eps: float = 1e-8) -> Tensor:
    """Cosines of the angles between vectors along an axis; the others broadcast.

    Parameters
    ----------
    x1, x2 : Tensor
        Tensors of numbers; integers give the default float dtype, and a complex `x1` is conjugated.
    axis : int
        The axis of the vectors, as in `vecdot`: best counted from the end.
    eps : float
        Smaller norms count as `eps`.

    Returns
    -------
    Tensor
        In the broadcast shape, without the axis.

    Raises
    ------
    ShapeError
        If the lengths along the axis differ, or the shapes do not broadcast.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([3.0, 0.0], device="cpu")
    >>> y = burn.asarray([[5.0, 0.0], [0.0, 2.0]], device="cpu")
    >>> burn.linalg.cosine_similarity(x, y).tolist()
    [1.0, 0.0]
    """
    x1, x2 = as_float(x1, "cosine_similarity", "x1"), as_float(x2, "cosine_similarity", "x2")
    eps = _as_eps(eps, "cosine_similarity")
    dtype = result_type(x1, x2)
    x1, x2 = [astype(x, accumulation_dtype(x)) for x in (x1, x2)]  # the squares of 16-bit floats
    number = broadcast_axis(x1, x2, axis, "cosine_similarity")
    dot = vecdot(x1, x2, axis=number)
    from_end = number - builtins.max(x1.ndim, x2.ndim)
    norm1, norm2 = vector_norm(x1, axis=from_end), vector_norm(x2, axis=from_end)
    return astype(dot / maximum(norm1, eps) / maximum(norm2, eps), dtype)


def _vector_norm(x: Tensor, axis: Axis, ord: float, operation: str, *, keepdims: bool) -> Tensor:
    x = as_float(x, operation)
    axes = normalize_axes(x, axis, operation)
    keepdims = as_flag(keepdims, "keepdims", operation)
    ord = real_number(ord, "ord", operation)
    if ord == math.inf:
        return _largest(abs(x), axes, keepdims=keepdims)
    if ord == -math.inf:
        return min(abs(x), axis=axes, keepdims=keepdims)
    if ord == 0:
        return sum(
            not_equal(x, 0.0).astype(number_dtype(x).component), axis=axes, keepdims=keepdims
        )
    return calls.lp_norm(x, axis=axes, ord=ord, keepdims=keepdims)


def _largest(x: Tensor, axes: tuple[int, ...], *, keepdims: bool = False) -> Tensor:
    """The largest of magnitudes; 0 where there are none, which is the sum of none."""
    is_empty = 0 in [x.shape[axis] for axis in axes]
    return (sum if is_empty else max)(x, axis=axes, keepdims=keepdims)


def _as_eps(eps: float, operation: str) -> float:
    return real_number(eps, "eps", operation, least=0.0, below=math.inf)
