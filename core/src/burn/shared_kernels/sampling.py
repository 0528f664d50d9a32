"""Sampling of images at coordinates: a work item for each position."""

from __future__ import annotations

from typing import Final

from burn.aliases import Primitive
from burn.shared_kernels.elements import DTYPE_CODES, c_type_of
from burn.shared_kernels.launching import SharedOps

__all__ = ["SamplingOps"]

_MODE_CODES: Final = {"nearest": 0, "bilinear": 1, "bicubic": 2}

_MIN_ITEMS: Final = 1 << 17
"""Items that keep a GPU busy; with fewer points, several items share the channels of one."""


class SamplingOps(SharedOps):
    """Sampling of images."""

    def grid_sample_2d(
        self,
        x: Primitive,
        grid: Primitive,
        *,
        mode: str = "bilinear",
        padding_mode: str = "zeros",
        align_corners: bool = False,
    ) -> Primitive:
        """The neighbours of a point are found once for all channels, or some of them."""
        launcher = self.launcher
        rule = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
        shape = self.checked_shape("grid_sample_2d", x, grid, **rule)
        dtype = self.check_dtypes("grid_sample_2d", x, grid, floats=True)
        out = launcher.new(shape, dtype)
        if 0 in shape:
            return out
        x, grid = launcher.dense(x), launcher.dense(grid)
        images, channels, height, width = x.shape
        count = shape[2] * shape[3]
        points = images * count
        parts = 1 if launcher.is_cpu else min(channels, -(-_MIN_ITEMS // points))
        types = {
            "TYPE": DTYPE_CODES[dtype.name],
            "MODE": _MODE_CODES[mode],
            "ZEROS": int(padding_mode == "zeros"),
            "REFLECTS": int(padding_mode == "reflection"),
            "ALIGN_CORNERS": int(align_corners),
        }
        kernel = launcher.shared_kernel(
            "sample_grid", "sampling.c", c_type_of(dtype), {}, types, points * channels
        )
        offsets = launcher.offset_of(x), launcher.offset_of(grid)
        sizes = (channels, height, width, count, parts)
        parameters = (points * parts, *sizes, *offsets, *types.values())
        launcher.start(kernel, parameters, (x, grid, out), points * parts)
        return out
