"""Numbers as arrays without axes, which NumPy takes in half the time, and coefficients."""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np

FLOAT32: Final = np.dtype(np.float32)

EXP_COEFFICIENTS: Final[tuple[float, ...]] = (
    1.9875691500e-4,
    1.3981999507e-3,
    8.3334519073e-3,
    4.1665795894e-2,
    1.6666665459e-1,
    5.0000001201e-1,
)
"""Of ``(exp(t) - 1 - t) / t**2`` in float32, up to log(2) / 2, the highest power first (expf of
S. Moshier's Cephes)."""


@functools.lru_cache(maxsize=1024)
def constant(value: float, dtype: Any) -> Any:
    """A number as a read-only array without axes."""
    array = np.array(value, dtype)
    array.flags.writeable = False
    return array
