"""The usage of each dtype by compute capability."""

from __future__ import annotations

import functools
from typing import Final

from burn.plugin_api import (
    DType,
    DTypeUsage,
    bfloat16,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

__all__ = ["OLDEST", "STORED", "usage_of"]

STORED: Final = (
    *(bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64),
    *(float16, bfloat16, float32, float64, complex64, complex128),
)
"""Dtypes that tensors may have."""

OLDEST: Final = (5, 0)
"""Compute capability that CuPy and the kernels need."""

_TENSOR_CORES: Final = {float16: (7, 0), bfloat16: (8, 0)}
"""Compute capability from which on tensor cores multiply a dtype."""


@functools.cache
def usage_of(capability: tuple[int, int]) -> dict[DType, DTypeUsage]:
    """The usage of each dtype; 16-bit floats are computed in float32."""
    usage = {}
    for dtype in STORED:
        usage[dtype] = DTypeUsage.GENERAL
        if dtype in _TENSOR_CORES and capability >= _TENSOR_CORES[dtype]:
            usage[dtype] |= DTypeUsage.ACCELERATED
    return usage
