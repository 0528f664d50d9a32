"""Patches of images as columns of a matrix, and back."""

from __future__ import annotations

from typing import Unpack

from burn.aliases import Primitive
from burn.ops import PatchAttributes, Sizes, check_columns, image_windows
from burn.shared_kernels.launching import SharedOps
from burn.shared_kernels.windows import fits_windows, launch_columns, launch_fold

__all__ = ["UnfoldingOps"]


class UnfoldingOps(SharedOps):
    """Unfolding and folding of windows, in one kernel each."""

    def unfold4d(self, x: Primitive, **attributes: Unpack[PatchAttributes]) -> Primitive:
        """The columns of a convolution (im2col)."""
        launcher = self.launcher
        plan = image_windows(x.shape, **attributes)
        dtype = self.check_dtypes("unfold", x, floats=True)
        if not fits_windows(plan):
            return self.ops.decomposed("unfold4d", x, **attributes)
        out = launcher.new(self.checked_shape("unfold4d", x, **attributes), dtype)
        launch_columns(launcher, launcher.dense(x), plan, out)
        return out

    def fold4d(
        self, x: Primitive, *, output_size: Sizes, **attributes: Unpack[PatchAttributes]
    ) -> Primitive:
        """An item for each element of the images; 16-bit floats are added in float32."""
        launcher = self.launcher
        shape, plan = check_columns(x.shape, output_size, **attributes)
        dtype = self.check_dtypes("fold", x, floats=True)
        if not fits_windows(plan):
            return self.ops.decomposed("fold4d", x, output_size=output_size, **attributes)
        out = launcher.new(shape, dtype)
        launch_fold(launcher, launcher.dense(x), plan, None, out)
        return out
