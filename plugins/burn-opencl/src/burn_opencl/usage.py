"""What a device can do with each dtype."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from burn.dtype import DType, DTypeUsage, Kind, float64

__all__ = ["COMPUTED", "usage_of"]

COMPUTED: Final = tuple(dtype for dtype in DType.members() if dtype.kind in Kind.REAL)
"""Dtypes that the kernels know: all but complex ones."""


def usage_of(*, has_fp64: bool) -> Mapping[DType, DTypeUsage]:
    """By whether the device computes in float64; 16-bit floats are computed in float32."""
    return {
        dtype: DTypeUsage.GENERAL if has_fp64 or dtype is not float64 else DTypeUsage.NONE
        for dtype in COMPUTED
    }
