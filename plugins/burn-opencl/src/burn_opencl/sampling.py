"""Sampling of images at coordinates: an item for each position, in all channels."""

from __future__ import annotations

from typing import Final

from burn_opencl.base import OpenClOps, inferred_shape
from burn_opencl.buffers import Buffer
from burn_opencl.dtypes import DTYPE_CODES, c_type_of, check_dtypes

__all__ = ["SamplingOps"]

_MODE_CODES: Final = {"nearest": 0, "bilinear": 1, "bicubic": 2}


class SamplingOps(OpenClOps):
    """Sampling of images."""

    def grid_sample_2d(
        self,
        x: Buffer,
        grid: Buffer,
        *,
        mode: str = "bilinear",
        padding_mode: str = "zeros",
        align_corners: bool = False,
    ) -> Buffer:
        """Computed in one kernel."""
        shape = inferred_shape(
            "grid_sample_2d",
            x,
            grid,
            mode=mode,
            padding_mode=padding_mode,
            align_corners=align_corners,
        )
        check_dtypes("grid_sample_2d", x, grid, floats=True)
        launcher = self.launcher
        out = launcher.empty(shape, x.dtype)
        if out.size:
            x, grid = launcher.dense(x), launcher.dense(grid)
            images, count = x.shape[0], shape[2] * shape[3]
            kernel = launcher.kernel("sample_grid", "sampling.cl", c_type_of(x.dtype))
            parameters = (
                *x.shape,
                count,
                x.offset,
                grid.offset,
                DTYPE_CODES[x.dtype.name],
                _MODE_CODES[mode],
            )
            parameters += (int(padding_mode == "zeros"), int(padding_mode == "reflection"))
            memories = (x.memory, grid.memory, out.memory)
            launcher.run(kernel, images * count, (*parameters, int(align_corners)), memories)
        return out
