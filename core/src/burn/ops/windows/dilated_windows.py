"""Elements of windows that are dilated along the last axes of a tensor, and their number."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from burn.ops.signature import Shape
from burn.ops.windows.sliding_windows import Windows, pool_windows

__all__ = ["dilated_windows"]


def dilated_windows(
    shape: Shape, *, count_include_pad: bool, **attributes: Any
) -> tuple[list[tuple[NDArray[np.int64], NDArray[np.float64]]], NDArray[np.int64]]:
    """Indices and weights of the elements of each window, and the number of those that count.

    Parameters
    ----------
    shape : tuple of int
        Shape whose last axes, as many as `kernel_size` has numbers, are spatial.
    count_include_pad : bool
        Whether elements of the padding count.
    **attributes
        Those of `max_pool`.

    Returns
    -------
    list of tuple
        For each spatial axis the indices of the elements, and 1.0 for those that a window has, 0.0
        for others; both of shape (windows, elements).
    ndarray, shape (windows, ...)
        The number of elements of each window, padding too with `count_include_pad`.

    Raises
    ------
    ShapeError
        If no window fits, or one has padding only.
    ArgumentError
        If a number is out of its range.
    """
    plan = pool_windows(shape, **attributes)
    counts = [_counts(axis, count_include_pad=count_include_pad) for axis in plan]
    return [_elements(axis) for axis in plan], functools.reduce(np.multiply.outer, counts)


def _elements(axis: Windows) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    starts = _starts(axis)
    first = _count_below(0, starts, axis)
    terms = np.arange(min(axis.kernel, -(-axis.length // axis.dilation)))
    indices = (starts + first * axis.dilation)[:, None] + terms * axis.dilation
    present = (first[:, None] + terms < axis.kernel) & (indices < axis.length)
    return np.minimum(indices, axis.length - 1), present.astype(np.float64)


def _counts(axis: Windows, *, count_include_pad: bool) -> Any:
    starts = _starts(axis)
    if count_include_pad:
        return _count_below(axis.length + axis.after, starts, axis)
    return _count_below(axis.length, starts, axis) - _count_below(0, starts, axis)


def _starts(axis: Windows) -> Any:
    """Index of the first element of each window, below 0 in the padding."""
    return np.arange(axis.count) * axis.stride - axis.before


def _count_below(limit: int, starts: Any, axis: Windows) -> Any:
    """Number of elements of each window whose index is below `limit`."""
    return np.clip(-((starts - limit) // axis.dilation), 0, axis.kernel)
