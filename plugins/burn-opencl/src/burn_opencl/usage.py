"""The usage of each dtype that a device supports."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Final

from burn.plugin_api import DType, DTypeUsage, complex128, float64

__all__ = ["COMPUTED", "usage_of"]

COMPUTED: Final = tuple(DType.members())
"""Dtypes that the kernels know."""


@functools.cache
def usage_of(*, has_fp64: bool) -> Mapping[DType, DTypeUsage]:
    """Usage by dtype; 16-bit floats are computed in float32."""
    return {
        dtype: DTypeUsage.GENERAL
        if has_fp64 or dtype not in (float64, complex128)
        else DTypeUsage.NONE
        for dtype in COMPUTED
    }
