"""The elements over some axes, for references that compute one row after the other."""

from __future__ import annotations

import math

import numpy as np

from burn.testing.op_samples import Array

__all__ = ["rows_over"]


def rows_over(x: Array, axis: int | tuple[int, ...] | None, *, keepdims: bool) -> Array:
    """The elements over axes as rows along the last one."""
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    numbers = [number % x.ndim for number in axes]
    kept = [number for number in range(x.ndim) if number not in numbers]
    shape = [x.shape[number] for number in kept]
    if keepdims:
        shape = [1 if number in numbers else length for number, length in enumerate(x.shape)]
    count = math.prod([x.shape[number] for number in numbers])
    return np.transpose(x, (*kept, *numbers)).reshape((*shape, count))
