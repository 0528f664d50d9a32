"""Numbers that functions of NumPy take in half the time."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

Array = Any


@functools.lru_cache(maxsize=1024)
def constant(value: float, dtype: Any) -> Array:
    """A number as an array without axes."""
    array = np.array(value, dtype)
    array.flags.writeable = False
    return array
