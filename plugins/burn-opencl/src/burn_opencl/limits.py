"""Sizes that the kernels and the code that launches them agree on."""

from __future__ import annotations

from typing import Final

from burn.plugin_api import MAX_KERNEL_AXES

__all__ = ["GPU_GROUP_ITEMS", "INT32_LIMIT", "MAX_KERNEL_AXES", "SMALL_GROUP_ITEMS"]

SMALL_GROUP_ITEMS: Final = 64
"""Items of a work group in kernels for small tensors."""

GPU_GROUP_ITEMS: Final = 256
"""Items of a work group of a GPU in kernels for large tensors."""

INT32_LIMIT: Final = 1 << 31
"""Counts below this limit fit into integers of 32 bits, with which GPUs divide faster."""
