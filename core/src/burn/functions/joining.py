"""Tensors joined along a given axis, after those with few axes have got more, as in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from burn.docstrings import documented_as
from burn.functions.manipulation import concat, expand_dims
from burn.functions.normalize import check_tensor, check_tensors
from burn.functions.views import independent

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["atleast_1d", "atleast_2d", "atleast_3d", "column_stack", "dstack", "hstack", "vstack"]


def hstack(tensors: Sequence[Tensor], /) -> Tensor:
    """Tensors joined along the second axis; vectors and numbers along the first.

    Parameters
    ----------
    tensors : sequence of Tensor
        Tensors on one device, of equal lengths except along the axis. Their dtypes promote.

    Returns
    -------
    Tensor
        The joined tensors; numbers become vectors of one element.

    Raises
    ------
    ShapeError
        If their lengths differ along another axis, or they have not the same number of axes.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([1, 2], device="cpu")
    >>> burn.hstack([x, x]).tolist()
    [1, 2, 1, 2]
    """
    parts = [_with_axes(check_tensor, 1) for check_tensor in check_tensors(tensors, "hstack")]
    return concat(parts, axis=min(parts[0].ndim, 2) - 1)


@documented_as(hstack)
def vstack(tensors: Sequence[Tensor], /) -> Tensor:
    """Tensors joined along the first axis, of which vectors and numbers become rows.

    Returns
    -------
    Tensor
        The joined tensors, of two axes or more: a vector of N elements has the shape (1, N).

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([1, 2], device="cpu")
    >>> burn.vstack([x, x]).tolist()
    [[1, 2], [1, 2]]
    """
    return concat(
        [_with_axes(check_tensor, 2) for check_tensor in check_tensors(tensors, "vstack")], axis=0
    )


@documented_as(hstack)
def dstack(tensors: Sequence[Tensor], /) -> Tensor:
    """Tensors joined along the third axis.

    Returns
    -------
    Tensor
        The joined tensors, of three axes or more: a vector of N elements has the shape (1, N, 1),
        and a matrix (M, N) the shape (M, N, 1).

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([1, 2], device="cpu")
    >>> burn.dstack([x, x]).tolist()
    [[[1, 1], [2, 2]]]
    """
    return concat(
        [_with_axes(check_tensor, 3) for check_tensor in check_tensors(tensors, "dstack")], axis=2
    )


@documented_as(hstack)
def column_stack(tensors: Sequence[Tensor], /) -> Tensor:
    """Tensors joined along the second axis, of which vectors and numbers become columns.

    Returns
    -------
    Tensor
        The joined tensors, of two axes or more: a vector of N elements has the shape (N, 1).

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([1, 2], device="cpu")
    >>> burn.column_stack([x, x]).tolist()
    [[1, 1], [2, 2]]
    """
    parts = [_with_axes(check_tensor, 1) for check_tensor in check_tensors(tensors, "column_stack")]
    return concat([expand_dims(part, 1) if part.ndim == 1 else part for part in parts], axis=1)


def atleast_2d(*tensors: Tensor) -> Tensor | tuple[Tensor, ...]:
    """Tensors with two axes or more: vectors and numbers become rows.

    Parameters
    ----------
    *tensors : Tensor
        One tensor or several.

    Returns
    -------
    Tensor or tuple of Tensor
        The elements of each, no view; a tuple unless there is one tensor.

    Raises
    ------
    OperandTypeError
        If one is no tensor.

    Examples
    --------
    >>> import burn
    >>> burn.atleast_2d(burn.asarray([1, 2], device="cpu")).shape
    (1, 2)
    """
    return _at_least(tensors, 2, "atleast_2d")


@documented_as(atleast_2d)
def atleast_1d(*tensors: Tensor) -> Tensor | tuple[Tensor, ...]:
    """Tensors with one axis or more.

    The parameter is that of `atleast_2d`.

    Examples
    --------
    >>> import burn
    >>> burn.atleast_1d(burn.asarray([1, 2], device="cpu")).shape
    (2,)
    """
    return _at_least(tensors, 1, "atleast_1d")


@documented_as(atleast_2d)
def atleast_3d(*tensors: Tensor) -> Tensor | tuple[Tensor, ...]:
    """Tensors with three axes or more: a vector of N elements gets the shape (1, N, 1).

    The parameter is that of `atleast_2d`.

    Examples
    --------
    >>> import burn
    >>> burn.atleast_3d(burn.asarray([1, 2], device="cpu")).shape
    (1, 2, 1)
    """
    return _at_least(tensors, 3, "atleast_3d")


def _at_least(
    tensors: tuple[Tensor, ...], rank: int, operation: str
) -> Tensor | tuple[Tensor, ...]:
    for tensor in tensors:
        check_tensor(tensor, "an operand", operation)
    found = tuple(independent(_with_axes(tensor, rank)) for tensor in tensors)
    return found[0] if len(found) == 1 else found


def _with_axes(x: Tensor, rank: int) -> Tensor:
    """A tensor with at least `rank` axes, as ``numpy.atleast_1d``, ``_2d`` and ``_3d`` make it."""
    if x.ndim >= rank:
        return x
    if rank == 3 and x.ndim == 2:
        return expand_dims(x, 2)
    if rank == 3 and x.ndim == 1:
        return expand_dims(x, (0, 2))
    return expand_dims(x, tuple(range(rank - x.ndim)))
