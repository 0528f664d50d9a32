"""Images sampled at any places: an item for each place, and all channels there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from burn.ops import REGISTRY, Meta
from burn_opencl.buffers import Buffer
from burn_opencl.expressions import CODES, class_of
from burn_opencl.programs import text_of

if TYPE_CHECKING:
    from burn_opencl.launcher import Launcher

__all__ = ["SamplingOps"]

_MODES: Final = {"nearest": 0, "bilinear": 1, "bicubic": 2}


class SamplingOps:
    """Sampling of images."""

    launcher: Launcher

    def grid_sample_2d(
        self,
        x: Buffer,
        grid: Buffer,
        *,
        mode: str = "bilinear",
        padding_mode: str = "zeros",
        align_corners: bool = False,
    ) -> Buffer:
        """One kernel; what is tracked runs the default, which has a gradient."""
        given = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
        metas = [Meta(one.shape, one.dtype) for one in (x, grid)]
        result: Any = REGISTRY["grid_sample_2d"].infer(*metas, **given)
        if grid.dtype is not x.dtype or not x.dtype.is_float:
            raise TypeError(f"places of {grid.dtype} in images of {x.dtype}")
        launcher = self.launcher
        out = launcher.empty(result.shape, x.dtype)
        if out.size:
            x, grid = launcher.dense(x), launcher.dense(grid)
            images, count = x.shape[0], result.shape[2] * result.shape[3]
            body = text_of("functions.cl")
            kernel = launcher.kernel("sample_grid", "sampling.cl", class_of(x.dtype), body=body)
            numbers = (*x.shape, count, x.offset, grid.offset, CODES[x.dtype.name], _MODES[mode])
            numbers += (int(padding_mode == "zeros"), int(padding_mode == "reflection"))
            memories = (x.memory, grid.memory, out.memory)
            launcher.run(kernel, images * count, (*numbers, int(align_corners)), memories)
        return out
