"""CpuOps: the typed base of the mixins of `CpuBackend`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from burn.plugin_api import ArrayBackend

__all__ = ["LARGE", "Array", "CpuOps"]

Array = Any
"""An array, or a NumPy scalar: what NumPy returns where the result has no axes."""

LARGE: Final = 1 << 13
"""Elements from which kernels replace functions of NumPy's. For fewer they gain microseconds, and
the first one of a process takes a tenth of a second to import llvmlite."""


class CpuOps(ArrayBackend):
    """Ops on NumPy arrays.

    Each mixin adds methods for one family of ops. What it leaves to the default of an op it
    computes with ``self.ops.decomposed``.
    """

    orders_booleans = True

    def __init__(self) -> None:
        super().__init__(np)
        self._large: dict[str, Callable[..., Any]] = {}

    def large(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """What computes an op of many elements: kernels, or the function where these do not."""
        found = self._large.get(name)
        if found is None:
            found = self._large[name] = self.ops.generated(name, function) or function
        return found
