"""Old names of `burn.ops.axis_maps`, until plugins import burn.plugin_api."""

from burn.ops.axis_maps import (
    Array,
    AxisMap as Taps,
    apply_axis_map as weighted_sums,
    constant,
    range_sum_map as window_taps,
)

__all__ = ["Array", "Taps", "constant", "weighted_sums", "window_taps"]
