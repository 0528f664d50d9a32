"""Samples of exponentials of matrices."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from burn.testing.arrays import (
    complexes,
    expanded,
    floats,
    matrix_transposed,
    reversed_view,
    strided,
)
from burn.testing.op_samples import Array, also_for_complex, reference, sample
from burn.testing.samples.linalg._matrices import NOT_SQUARE, complex_regular, regular

_HALVINGS: Final = 12
_TERMS: Final = 12
"""After so many halvings so many terms of the series are exact to the last digit of float64."""


def _matrix_exp(x: Array) -> Array:
    """The series of a small fraction of the matrix, squared again and again."""
    finite = np.isfinite(x).all((-2, -1), keepdims=True)
    small = np.where(finite, x, 0.0) / 2.0**_HALVINGS
    # exp(small) - 1, so that squaring keeps its digits: (1 + y) ** 2 - 1 = y @ y + 2 y.
    term = rest = small
    for power in range(2, _TERMS):
        term = term @ small / power
        rest = rest + term
    for _ in range(_HALVINGS):
        rest = rest @ rest + 2.0 * rest
    return np.where(finite, rest + np.eye(x.shape[-1]), math.nan)


def _terms(x: Array) -> tuple[int, Any]:
    """Rounding of the exponent of one element reaches all others."""
    size = np.abs(np.where(np.isfinite(x), x, 0.0))
    norm = np.max(np.sum(size, -2, keepdims=True), -1, keepdims=True, initial=0.0)
    return 16, np.broadcast_to((1.0 + norm) * np.exp(norm), x.shape)


reference(
    "matrix_exp",
    samples=[
        sample("one element", np.array([[-2.5]])),
        sample("zeros", np.zeros((2, 2))),
        sample("2 x 2", regular(2, 2)),
        sample("4 x 4", regular(4, 4)),
        sample("small", regular(3, 3) / 64.0),
        sample("without inverse", np.array([[0.0, 1.0], [0.0, 0.0]])),
        sample("a turn by three right angles", np.array([[0.0, -1.5], [1.5, 0.0]]) * math.pi),
        sample("of other norms", floats(3, 2, 2) * np.array([0.01, 1.0, 3.0])[:, None, None]),
        sample(
            "not finite", np.array([[[math.nan, 0.0], [0.0, 1.0]], [[math.inf, 0.0], [0.0, 1.0]]])
        ),
        sample("empty batch", floats(0, 3, 3)),
        sample("no rows", floats(2, 0, 0)),
        sample("transposed", matrix_transposed(regular(2, 3, 3))),
        sample("strided", strided(regular(3, 3))),
        sample("reversed", reversed_view(regular(3, 3))),
        sample("expanded", expanded(regular(2, 2), 3, 2, 2)),
    ],
    errors=NOT_SQUARE,
    terms=_terms,
)(_matrix_exp)
also_for_complex(
    "matrix_exp",
    samples=[
        sample("complex, 3 x 3", complex_regular(3, 3)),
        sample("complex batch", complex_regular(2, 2, 2)),
        sample("complex, no rows", complexes(2, 0, 0)),
    ],
)
