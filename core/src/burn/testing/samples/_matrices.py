"""Matrices to make samples of decompositions of."""

from __future__ import annotations

import numpy as np

from burn.testing.arrays import floats
from burn.testing.sample import Array


def regular(*shape: int, phase: float = 0.3) -> Array:
    """Square matrices that are far from singular: the diagonal outweighs the rest."""
    unit = np.eye(shape[-1])
    return floats(*shape, low=-0.5, high=0.5, phase=phase) + unit * (
        1.0 + 0.4 * np.arange(shape[-1])
    )


def definite(*shape: int, phase: float = 0.3) -> Array:
    """Symmetric, positive definite matrices."""
    factor = np.tril(regular(*shape, phase=phase))
    return factor @ factor.swapaxes(-1, -2)
