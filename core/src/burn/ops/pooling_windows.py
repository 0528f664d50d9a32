"""Old names of `burn.ops.sliding_windows`, until plugins import burn.plugin_api."""

from burn.ops.signature import Pairs, Sizes
from burn.ops.sliding_windows import (
    PatchAttributes as PatchRule,
    PoolAttributes as WindowRule,
    SlidingAttributes as SlidingRule,
    Windows,
    check_pooled,
    pool_windows as windows,
    pooled_shape,
    split_spatial_axes as spatial_axes,
    unpooled_shape,
)

__all__ = [
    "Pairs",
    "PatchRule",
    "Sizes",
    "SlidingRule",
    "WindowRule",
    "Windows",
    "check_pooled",
    "pooled_shape",
    "spatial_axes",
    "unpooled_shape",
    "windows",
]
