"""Samples of systems of equations whose matrices are triangles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from burn.errors import ExecutionError, ShapeError
from burn.testing.arrays import (
    complexes,
    expanded,
    floats,
    matrix_transposed,
    reversed_view,
    strided,
)
from burn.testing.op_samples import Array, also_for_complex, error, reference, sample
from burn.testing.samples.linalg._matrices import complex_regular, regular
from burn.testing.samples.linalg.inverse import gauss_jordan


def _solve_triangular(x1: Array, x2: Array, *, upper: bool, unit_diagonal: bool = False) -> Array:
    triangle = np.triu(x1) if upper else np.tril(x1)
    if unit_diagonal:
        triangle = np.where(np.eye(x1.shape[-1], dtype=bool), 1.0, triangle)
    return gauss_jordan(triangle, x2)


def _with_nan(*, upper: bool) -> Array:
    """A matrix whose other triangle holds NaN."""
    read = np.tri(3, dtype=bool).T if upper else np.tri(3, dtype=bool)
    return np.where(read, regular(3, 3), math.nan)


_LOWER: dict[str, Any] = {"upper": False}
_UPPER: dict[str, Any] = {"upper": True}
_ZERO = np.array([[1.0, 2.0], [3.0, 0.0]])

reference(
    "solve_triangular",
    samples=[
        sample("one equation", np.array([[-2.0]]), floats(1, 1), **_LOWER),
        sample("lower", regular(4, 4), floats(4, 3), **_LOWER),
        sample("upper", regular(4, 4), floats(4, 3), **_UPPER),
        sample("lower, ones", regular(3, 3), floats(3, 1), unit_diagonal=True, **_LOWER),
        sample("upper, ones", regular(3, 3), floats(3, 2), unit_diagonal=True, **_UPPER),
        sample("zeros that are not read", _ZERO, floats(2, 1), unit_diagonal=True, **_UPPER),
        sample("lower, beside NaN", _with_nan(upper=False), floats(3, 2), **_LOWER),
        sample("upper, beside NaN", _with_nan(upper=True), floats(3, 2), **_UPPER),
        sample("batch", regular(2, 3, 3), floats(2, 3, 2), **_LOWER),
        sample("one matrix for a batch", regular(3, 3), floats(2, 3, 2), **_UPPER),
        sample("broadcast batches", regular(2, 1, 2, 2), floats(3, 2, 2), **_LOWER),
        sample("no right side", regular(3, 3), floats(3, 0), **_UPPER),
        sample("no equations", floats(0, 0), floats(0, 2), **_LOWER),
        sample("empty batch", floats(0, 2, 2), floats(2, 2), **_UPPER),
        sample("transposed", matrix_transposed(regular(3, 3)), floats(3, 2), **_LOWER),
        sample("strided", strided(regular(3, 3)), reversed_view(floats(3, 2)), **_UPPER),
        sample("expanded", expanded(regular(2, 2), 2, 2, 2), floats(2, 3), **_LOWER),
    ],
    errors=[
        error("first a vector", ShapeError, floats(3), floats(3, 1), **_LOWER),
        error("second a vector", ShapeError, regular(3, 3), floats(3), **_LOWER),
        error("not square", ShapeError, floats(2, 3), floats(2, 1), **_UPPER),
        error("rows differ", ShapeError, regular(3, 3), floats(2, 1), **_UPPER),
        error("batches differ", ShapeError, regular(2, 2, 2), floats(3, 2, 2), **_LOWER),
        error("zero on the diagonal", ExecutionError, _ZERO, floats(2, 1), in_data=True, **_LOWER),
    ],
)(_solve_triangular)
also_for_complex(
    "solve_triangular",
    samples=[
        sample("complex, lower", complex_regular(3, 3), complexes(3, 2), **_LOWER),
        sample("complex, upper", complex_regular(2, 3, 3), complexes(3, 2), **_UPPER),
        sample("no complex equations", complexes(0, 0), complexes(0, 2), **_LOWER),
    ],
)
