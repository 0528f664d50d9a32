"""Constants as arrays without axes, which NumPy's functions take in half the time of scalars."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np


@functools.lru_cache(maxsize=1024)
def constant(value: float, dtype: Any) -> Any:
    """A number as a read-only array without axes."""
    array = np.array(value, dtype)
    array.flags.writeable = False
    return array
