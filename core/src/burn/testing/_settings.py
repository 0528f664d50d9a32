"""Settings of NumPy and of warnings that users may have made, and that change no result."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

__all__ = ["hostile_settings"]


@contextmanager
def hostile_settings() -> Iterator[None]:
    """What users may have set: NumPy raises, and every warning is an error."""
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
