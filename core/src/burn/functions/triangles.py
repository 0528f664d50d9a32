"""Triangles of matrices, and masks of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from burn.docstrings import documented_as
from burn.errors import OutOfMemoryError, ShapeError
from burn.functions import calls
from burn.functions.common import DeviceLike
from burn.functions.creation import arange, asarray, diagonal
from burn.functions.manipulation import broadcast_to
from burn.functions.normalize import as_shape, check_tensor, find_device
from burn.functions.searching import where
from burn.functions.views import independent
from burn.ops.arguments import as_integer
from burn.public_calls import shown_value

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn.devices import Device
    from burn.tensor.tensor import Tensor

    Integers = np.ndarray[tuple[int, ...], np.dtype[np.int64]]

__all__ = ["diag_mask", "tril", "tril_indices", "tril_mask", "triu", "triu_indices", "triu_mask"]


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The lower triangle of a matrix, with zeros above the `k`-th diagonal.

    Parameters
    ----------
    x : Tensor, shape (..., M, N)
        A matrix, or a stack of matrices.
    k : int
        Index of the diagonal: 0 is the main one, those above it have positive indices.

    Returns
    -------
    Tensor, shape (..., M, N)
        The triangles.

    Raises
    ------
    ShapeError
        If `x` has fewer than two axes.

    Examples
    --------
    >>> import burn
    >>> burn.tril(burn.ones((2, 2), dtype="int64", device="cpu")).tolist()
    [[1, 0], [1, 1]]
    """
    check_tensor(x, "x", "tril")
    mask = _column_minus_row(x.shape, x.device, "tril") <= diagonal(k, x.shape, "tril")
    return where(mask, x, False)  # noqa: FBT003 — 0 in any dtype


@documented_as(tril)
def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The upper triangle of a matrix, with zeros below the `k`-th diagonal.

    The parameters are those of `tril`.

    Examples
    --------
    >>> import burn
    >>> burn.triu(burn.ones((2, 2), dtype="int64", device="cpu")).tolist()
    [[1, 1], [0, 1]]
    """
    check_tensor(x, "x", "triu")
    mask = _column_minus_row(x.shape, x.device, "triu") >= diagonal(k, x.shape, "triu")
    return where(mask, x, False)  # noqa: FBT003 — 0 in any dtype


def tril_mask(shape: Shape, /, *, k: int = 0, device: DeviceLike | None = None) -> Tensor:
    """Mask of the elements that `tril` sets to 0: True above the `k`-th diagonal.

    Parameters
    ----------
    shape : tuple of int
        Shape (..., M, N) of the mask.
    k : int
        Index of the diagonal: 0 is the main one, those above it have positive indices.
    device : Device or str, optional
        Device of the result; the default device if left out.

    Returns
    -------
    Tensor, shape (..., M, N)
        Booleans.

    Raises
    ------
    ShapeError
        If the shape has fewer than two axes.

    Examples
    --------
    >>> import burn
    >>> burn.tril_mask((2, 2), device="cpu").tolist()
    [[False, True], [False, False]]
    """
    lengths = as_shape(shape, "tril_mask")
    offset = _column_minus_row(lengths, find_device(device, "tril_mask"), "tril_mask")
    return independent(broadcast_to(offset > diagonal(k, lengths, "tril_mask"), lengths))


@documented_as(tril_mask)
def triu_mask(shape: Shape, /, *, k: int = 0, device: DeviceLike | None = None) -> Tensor:
    """Mask of the elements that `triu` sets to 0: True below the `k`-th diagonal.

    The parameters are those of `tril_mask`.

    Examples
    --------
    >>> import burn
    >>> burn.triu_mask((2, 2), device="cpu").tolist()
    [[False, False], [True, False]]
    """
    lengths = as_shape(shape, "triu_mask")
    offset = _column_minus_row(lengths, find_device(device, "triu_mask"), "triu_mask")
    return independent(broadcast_to(offset < diagonal(k, lengths, "triu_mask"), lengths))


@documented_as(tril_mask)
def diag_mask(shape: Shape, /, *, k: int = 0, device: DeviceLike | None = None) -> Tensor:
    """Mask of the elements off the `k`-th diagonal: True everywhere else.

    The parameters are those of `tril_mask`.

    Examples
    --------
    >>> import burn
    >>> burn.diag_mask((2, 2), device="cpu").tolist()
    [[False, True], [True, False]]
    """
    lengths = as_shape(shape, "diag_mask")
    offset = _column_minus_row(lengths, find_device(device, "diag_mask"), "diag_mask")
    return independent(broadcast_to(offset != diagonal(k, lengths, "diag_mask"), lengths))


def tril_indices(
    n: int, /, k: int = 0, m: int | None = None, *, device: DeviceLike | None = None
) -> tuple[Tensor, Tensor]:
    """Row and column indices of the lower triangle of a matrix, in row-major order.

    Parameters
    ----------
    n : int
        Number of rows.
    k : int
        Index of the last diagonal that counts: 0 is the main one, those above it have positive
        indices.
    m : int, optional
        Number of columns; `n` by default.
    device : Device or str, optional
        Device of the result; the default device if left out.

    Returns
    -------
    tuple of Tensor, shape (N,)
        The row and the column of each of the N elements, as ``x[rows, columns]`` takes them: in
        the default integer dtype of the device.

    Raises
    ------
    ArgumentError
        If `n` or `m` is negative.

    Examples
    --------
    >>> import burn
    >>> rows, columns = burn.tril_indices(2, device="cpu")
    >>> rows.tolist(), columns.tolist()
    ([0, 1, 1], [0, 0, 1])
    """
    rows, columns = _lengths(n, m, "tril_indices")
    last = diagonal(k, (rows, columns), "tril_indices")
    stops = np.clip(_counted(rows, "tril_indices") + (last + 1), 0, columns)
    return _indices(np.zeros_like(stops), stops, device, "tril_indices")


@documented_as(tril_indices)
def triu_indices(
    n: int, /, k: int = 0, m: int | None = None, *, device: DeviceLike | None = None
) -> tuple[Tensor, Tensor]:
    """Row and column indices of the upper triangle of a matrix, in row-major order.

    The other parameters are those of `tril_indices`.

    Parameters
    ----------
    k : int
        Index of the first diagonal that counts: 0 is the main one, those above it have positive
        indices.

    Examples
    --------
    >>> import burn
    >>> rows, columns = burn.triu_indices(2, k=1, device="cpu")
    >>> rows.tolist(), columns.tolist()
    ([0], [1])
    """
    rows, columns = _lengths(n, m, "triu_indices")
    first = diagonal(k, (rows, columns), "triu_indices")
    starts = np.clip(_counted(rows, "triu_indices") + first, 0, columns)
    return _indices(starts, np.full_like(starts, columns), device, "triu_indices")


_MAX_LENGTH: Final = 2**63 - 1
"""The largest number of rows or columns, which int64 holds."""


def _lengths(n: int, m: int | None, operation: str) -> tuple[int, int]:
    rows = as_integer(n, "n", operation, least=0, most=_MAX_LENGTH)
    columns = rows if m is None else as_integer(m, "m", operation, least=0, most=_MAX_LENGTH)
    return rows, columns


def _counted(rows: int, operation: str) -> Integers:
    try:
        return np.arange(rows)
    except (MemoryError, ValueError) as error:
        raise _too_many(operation) from error


def _indices(
    starts: Integers, stops: Integers, device: DeviceLike | None, operation: str
) -> tuple[Tensor, Tensor]:
    """The row and the column of each element from one column on up to another, row by row."""
    target = find_device(device, operation)
    counts = stops - starts
    try:
        rows = np.repeat(np.arange(len(counts)), counts)
        before = np.repeat(np.cumsum(counts) - counts - starts, counts)
        columns = np.arange(len(rows)) - before
    except (MemoryError, ValueError) as error:  # NumPy's error depends on the count
        raise _too_many(operation) from error
    dtype = target.settings.int_dtype
    return asarray(rows, dtype=dtype, device=target), asarray(columns, dtype=dtype, device=target)


def _too_many(operation: str) -> OutOfMemoryError:
    return OutOfMemoryError(
        "the indices do not fit in memory", hint="Use a smaller matrix", operation=operation
    )


def _column_minus_row(shape: Shape, device: Device, operation: str) -> Tensor:
    """Column index minus row index of the elements of a matrix."""
    if len(shape) < 2:
        raise ShapeError(
            f"a tensor of shape {shown_value(shape)} is no matrix",
            hint="Give the lengths of two axes or more",
            operation=operation,
        )
    rows, columns = shape[-2:]
    row = calls.reshape(arange(rows, device=device), shape=(rows, 1))
    return arange(columns, device=device) - row
