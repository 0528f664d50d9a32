"""Patches of images as columns of a matrix, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from burn.ops import REGISTRY, Meta
from burn.ops.unfolding import check_columns, patches
from burn_opencl.buffers import Buffer, check_dtypes
from burn_opencl.windows import launch_windows

if TYPE_CHECKING:
    from burn.ops.pooling_windows import PatchRule, Sizes
    from burn_opencl.launcher import Launcher

__all__ = ["UnfoldingOps"]


class UnfoldingOps:
    """Windows of images, in one kernel each."""

    launcher: Launcher

    def unfold4d(self, x: Buffer, **rule: Unpack[PatchRule]) -> Buffer:
        """The columns of a convolution."""
        axes = patches(x.shape, **rule)
        meta: Any = REGISTRY["unfold4d"].infer(Meta(x.shape, x.dtype), **rule)
        launcher = self.launcher
        out = launcher.empty(meta.shape, x.dtype)
        # On a CPU the kernel goes along rows of windows, on a GPU from element to element.
        row = max(1, axes[-1].count) if launcher.runtime.is_cpu else 1
        launch_windows(launcher, "columns", axes, launcher.dense(x), [out], items=out.size // row)
        return out

    def fold4d(self, x: Buffer, *, output_size: Sizes, **rule: Unpack[PatchRule]) -> Buffer:
        """An item for each place of the images; 16-bit floats add up in float32."""
        shape, axes = check_columns(x.shape, output_size, **rule)
        check_dtypes("fold", x, floats=True)
        launcher = self.launcher
        out = launcher.empty(shape, x.dtype)
        launch_windows(launcher, "fold", axes, launcher.dense(x), [out], items=out.size)
        return out
