"""Triangles of matrices, and masks of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.errors import ShapeError
from burn.functions import calls
from burn.functions.common import DeviceLike
from burn.functions.creation import arange, diagonal
from burn.functions.manipulation import broadcast_to
from burn.functions.normalize import as_shape, check_tensor, find_device
from burn.functions.searching import where
from burn.functions.views import independent

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn.devices import Device
    from burn.tensor.tensor import Tensor

__all__ = ["diag_mask", "tril", "tril_mask", "triu", "triu_mask"]


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


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The upper triangle of a matrix, with zeros below the `k`-th diagonal.

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
        Device of the mask. By default the default device.

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


def triu_mask(shape: Shape, /, *, k: int = 0, device: DeviceLike | None = None) -> Tensor:
    """Mask of the elements that `triu` sets to 0: True below the `k`-th diagonal.

    Parameters
    ----------
    shape : tuple of int
        Shape (..., M, N) of the mask.
    k : int
        Index of the diagonal: 0 is the main one, those above it have positive indices.
    device : Device or str, optional
        Device of the mask. By default the default device.

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
    >>> burn.triu_mask((2, 2), device="cpu").tolist()
    [[False, False], [True, False]]
    """
    lengths = as_shape(shape, "triu_mask")
    offset = _column_minus_row(lengths, find_device(device, "triu_mask"), "triu_mask")
    return independent(broadcast_to(offset < diagonal(k, lengths, "triu_mask"), lengths))


def diag_mask(shape: Shape, /, *, k: int = 0, device: DeviceLike | None = None) -> Tensor:
    """Mask of the elements off the `k`-th diagonal: True everywhere else.

    Parameters
    ----------
    shape : tuple of int
        Shape (..., M, N) of the mask.
    k : int
        Index of the diagonal: 0 is the main one, those above it have positive indices.
    device : Device or str, optional
        Device of the mask. By default the default device.

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
    >>> burn.diag_mask((2, 2), device="cpu").tolist()
    [[False, True], [True, False]]
    """
    lengths = as_shape(shape, "diag_mask")
    offset = _column_minus_row(lengths, find_device(device, "diag_mask"), "diag_mask")
    return independent(broadcast_to(offset != diagonal(k, lengths, "diag_mask"), lengths))


def _column_minus_row(shape: Shape, device: Device, operation: str) -> Tensor:
    """Column index minus row index of the elements of a matrix."""
    if len(shape) < 2:
        raise ShapeError(f"a tensor of shape {shape} is no matrix", operation=operation)
    rows, columns = shape[-2:]
    row = calls.reshape(arange(rows, device=device), shape=(rows, 1))
    return arange(columns, device=device) - row
