"""Patches of images as columns of a matrix, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from burn.plugin_api import check_columns, image_windows
from burn_opencl.base import OpenClOps, inferred_shape
from burn_opencl.buffers import Buffer
from burn_opencl.dtypes import check_dtypes
from burn_opencl.windows import launch_windows

if TYPE_CHECKING:
    from burn.plugin_api import PatchAttributes, Sizes

__all__ = ["UnfoldingOps"]


class UnfoldingOps(OpenClOps):
    """Unfolding and folding of windows, in one kernel each."""

    def unfold4d(self, x: Buffer, **attributes: Unpack[PatchAttributes]) -> Buffer:
        """The columns of a convolution (im2col)."""
        axes = image_windows(x.shape, **attributes)
        launcher = self.launcher
        out = launcher.empty(inferred_shape("unfold4d", x, **attributes), x.dtype)
        # An item of a CPU writes the elements of a row of windows, one of a GPU an element.
        row = max(1, axes[-1].count) if launcher.runtime.is_cpu else 1
        launch_windows(launcher, "columns", axes, launcher.dense(x), [out], items=out.size // row)
        return out

    def fold4d(
        self, x: Buffer, *, output_size: Sizes, **attributes: Unpack[PatchAttributes]
    ) -> Buffer:
        """An item for each element of the images; 16-bit floats are added in float32."""
        shape, axes = check_columns(x.shape, output_size, **attributes)
        check_dtypes("fold", x, floats=True)
        launcher = self.launcher
        out = launcher.empty(shape, x.dtype)
        launch_windows(launcher, "fold", axes, launcher.dense(x), [out], items=out.size)
        return out
