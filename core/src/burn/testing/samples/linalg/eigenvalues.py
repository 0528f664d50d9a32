"""Samples of eigenvalues and eigenvectors."""

from __future__ import annotations

import numpy as np

from burn.errors import ExecutionError
from burn.testing.arrays import (
    complexes,
    expanded,
    floats,
    matrix_transposed,
    reversed_view,
    strided,
)
from burn.testing.op_samples import Array, Sample, also_for_complex, error, reference, sample
from burn.testing.samples.linalg._matrices import (
    NOT_SQUARE,
    adjoint,
    complex_regular,
    hermitian_samples,
    largest,
    regular,
    symmetric_samples,
)


def _eigh(x: Array) -> tuple[Array, Array]:
    values, vectors = np.linalg.eigh((x + adjoint(x)) / 2.0)
    return values, vectors * np.conj(np.sign(largest(vectors)))[..., None, :]


reference("eigh", samples=symmetric_samples(), errors=NOT_SQUARE)(_eigh)
also_for_complex("eigh", samples=hermitian_samples())


@reference("eigvalsh", samples=symmetric_samples(), errors=NOT_SQUARE)
def _(x: Array) -> Array:
    return _eigh(x)[0]


also_for_complex("eigvalsh", samples=hermitian_samples())

_TURNED = np.array([[2.0, -1.5, 0.5], [1.0, 1.0, 0.25], [0.0, 0.5, -3.0]])
"""A matrix with a real eigenvalue and a pair of complex ones."""


def _square() -> list[Sample]:
    """Calls of an op of square matrices with eigenvalues that differ."""
    return [
        sample("one element", np.array([[-2.5]])),
        sample("real eigenvalues", regular(3, 3)),
        sample("complex eigenvalues", _TURNED),
        sample("diagonal", np.diag([3.0, -1.0, 0.5])),
        sample("triangle", np.triu(regular(4, 4, phase=0.2))),
        sample("batch with both", np.stack([_TURNED, regular(3, 3), -_TURNED])),
        sample("empty batch", floats(0, 3, 3)),
        sample("no rows", floats(2, 0, 0)),
        sample("transposed", matrix_transposed(np.stack([_TURNED, -_TURNED]))),
        sample("strided", strided(_TURNED)),
        sample("reversed", reversed_view(regular(3, 3))),
        sample("expanded", expanded(_TURNED, 2, 3, 3)),
    ]


def _complex_square() -> list[Sample]:
    """Calls of an op of complex square matrices with eigenvalues that differ."""
    return [
        sample("complex, one element", np.array([[-2.5 + 1j]])),
        sample("complex, 2 x 2", complex_regular(2, 2)),
        sample("complex, 4 x 4", complex_regular(4, 4)),
        sample("complex batch", complex_regular(2, 3, 3)),
        sample("complex, empty batch", complexes(0, 3, 3)),
        sample("complex, no rows", complexes(2, 0, 0)),
        sample("complex, transposed", matrix_transposed(complex_regular(2, 3, 3))),
        sample("complex, strided", strided(complex_regular(3, 3))),
    ]


_EIGENVALUE_ERRORS = [
    *NOT_SQUARE,
    error("NaN", ExecutionError, np.array([[1.0, np.nan], [0.0, 1.0]]), in_data=True),
]


def _eig(x: Array) -> tuple[Array, Array]:
    """Each vector as what the matrix less its eigenvalue makes zero."""
    values = np.linalg.eigvals(x)
    rest = x[..., None, :, :] - values[..., None, None] * np.eye(x.shape[-1])
    vectors = adjoint(np.linalg.svd(rest)[2])[..., -1:]
    vectors = np.moveaxis(vectors[..., 0], -2, -1) if x.size else x
    return values, vectors * np.conj(np.sign(largest(vectors)))[..., None, :]


reference("eig", samples=_square(), errors=_EIGENVALUE_ERRORS)(_eig)
also_for_complex("eig", samples=_complex_square())


@reference("eigvals", samples=_square(), errors=_EIGENVALUE_ERRORS)
def _(x: Array) -> Array:
    return np.linalg.eigvals(x)


also_for_complex("eigvals", samples=_complex_square())
