"""Matrices to make samples of decompositions of."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from burn.errors import ShapeError
from burn.testing.arrays import (
    complexes,
    expanded,
    floats,
    matrix_transposed,
    reversed_view,
    strided,
)
from burn.testing.op_samples import Array, ErrorSample, Sample, error, sample

NOT_SQUARE: Final[list[ErrorSample]] = [
    error("a vector", ShapeError, floats(3)),
    error("not square", ShapeError, floats(2, 3)),
    error("a column", ShapeError, floats(3, 1)),
]
"""What an op of square matrices refuses."""


def regular(*shape: int, phase: float = 0.3) -> Array:
    """Square matrices that are far from singular: the diagonal outweighs the rest."""
    unit = np.eye(shape[-1])
    return floats(*shape, low=-0.5, high=0.5, phase=phase) + unit * (
        1.0 + 0.4 * np.arange(shape[-1])
    )


def complex_regular(*shape: int, phase: float = 0.3) -> Array:
    """Complex square matrices that are far from singular."""
    unit = np.eye(shape[-1])
    return complexes(*shape, low=-0.5, high=0.5, phase=phase) + unit * (
        (1.0 + 0.4j) + (0.4 - 0.2j) * np.arange(shape[-1])
    )


def definite(*shape: int, phase: float = 0.3) -> Array:
    """Symmetric, positive definite matrices."""
    factor = np.tril(regular(*shape, phase=phase))
    return factor @ factor.swapaxes(-1, -2)


def complex_definite(*shape: int, phase: float = 0.3) -> Array:
    """Hermitian, positive definite matrices."""
    factor = np.tril(complex_regular(*shape, phase=phase))
    return factor @ adjoint(factor)


def adjoint(x: Array) -> Array:
    """The last two axes exchanged, complex numbers conjugated."""
    return np.conj(x.swapaxes(-1, -2))


def largest(vectors: Array) -> Any:
    """Element of the largest magnitude of each column; 1 where there is none."""
    if 0 in vectors.shape:
        return np.ones((*vectors.shape[:-2], vectors.shape[-1]))
    index = np.argmax(abs(vectors), axis=-2, keepdims=True)
    return np.take_along_axis(vectors, index, -2)[..., 0, :]


def symmetric_samples() -> list[Sample]:
    """Calls of an op of positive definite matrices."""
    return [
        sample("one element", np.array([[2.5]])),
        sample("2 x 2", definite(2, 2)),
        sample("4 x 4", definite(4, 4)),
        sample("not symmetric", definite(3, 3) + np.tril(floats(3, 3) * 0.1)),
        sample("batch", definite(2, 3, 3)),
        sample("empty batch", floats(0, 3, 3)),
        sample("no rows", floats(2, 0, 0)),
        sample("transposed", matrix_transposed(definite(2, 3, 3))),
        sample("strided", strided(definite(3, 3))),
        sample("reversed", reversed_view(definite(3, 3))),
        sample("expanded", expanded(definite(2, 2), 3, 2, 2)),
    ]


def hermitian_samples() -> list[Sample]:
    """Calls of an op of complex positive definite matrices."""
    return [
        sample("complex, one element", np.array([[2.5 + 0j]])),
        sample("complex, 2 x 2", complex_definite(2, 2)),
        sample("complex, 4 x 4", complex_definite(4, 4)),
        sample("not Hermitian", complex_definite(3, 3) + np.tril(complexes(3, 3) * 0.1)),
        sample("complex batch", complex_definite(2, 3, 3)),
        sample("complex, empty batch", complexes(0, 3, 3)),
        sample("complex, no rows", complexes(2, 0, 0)),
        sample("complex, transposed", matrix_transposed(complex_definite(2, 3, 3))),
        sample("complex, strided", strided(complex_definite(3, 3))),
    ]
