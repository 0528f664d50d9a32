"""Sizes that the kernels and the code that launches them agree on."""

from __future__ import annotations

from typing import Final

__all__ = ["GPU_GROUP_ITEMS", "INT32_LIMIT", "MAX_KERNEL_AXES", "SMALL_GROUP_ITEMS"]

SMALL_GROUP_ITEMS: Final = 64
"""Items of a work group in kernels for small tensors."""

GPU_GROUP_ITEMS: Final = 256
"""Items of a work group of a GPU in kernels for large tensors."""

MAX_KERNEL_AXES: Final = 8
"""Axes for which the parameters of a kernel have room."""

INT32_LIMIT: Final = 1 << 31
"""Counts below this limit fit into integers of 32 bits, with which GPUs divide faster."""
