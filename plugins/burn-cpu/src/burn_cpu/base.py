"""CpuOps: the typed base of the mixins of `CpuBackend`."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn.plugin_api import ArrayBackend

__all__ = ["Array", "CpuOps"]

Array = Any
"""An array, or a NumPy scalar: what NumPy returns where the result has no axes."""


class CpuOps(ArrayBackend):
    """Ops on NumPy arrays.

    Each mixin adds methods for one family of ops. What it leaves to the default of an op it
    computes with ``self.ops.decomposed``.
    """

    orders_booleans = True

    def __init__(self) -> None:
        super().__init__(np)
