"""Normalization of rows, in one kernel each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burn.dtype import float32
from burn.ops.normalization import check_last_axis
from burn_opencl.bits import signed_bits
from burn_opencl.buffers import Buffer, check_dtypes
from burn_opencl.softmax import launch_rows

if TYPE_CHECKING:
    from burn_opencl.launcher import Launcher

__all__ = ["NormalizationOps"]


class NormalizationOps:
    """Layer and RMS normalization."""

    launcher: Launcher
    sum: Any
    cast: Any

    def layer_norm(
        self, x: Buffer, gamma: Buffer | None, beta: Buffer | None, *, epsilon: float
    ) -> Buffer:
        """The mean first, then the variance around it."""
        check_last_axis(x.shape, gamma=gamma, beta=beta)
        x = self.launcher.dense(x)
        out = self.launcher.empty(x.shape, x.dtype)
        operands = [x, self._vector(gamma, x), self._vector(beta, x)]
        numbers = (_bits(epsilon, x), int(gamma is not None), int(beta is not None))
        launch_rows(self.launcher, "layer_norm", operands, [out], numbers)
        return out

    def rms_norm(self, x: Buffer, gamma: Buffer | None, *, epsilon: float) -> Buffer:
        """One pass to read, one to write."""
        check_last_axis(x.shape, gamma=gamma)
        x = self.launcher.dense(x)
        out = self.launcher.empty(x.shape, x.dtype)
        numbers = (_bits(epsilon, x), int(gamma is not None), 0)
        launch_rows(self.launcher, "rms_norm", [x, self._vector(gamma, x)], [out], numbers)
        return out

    def layer_norm_grad(
        self, x: Buffer, gamma: Buffer | None, g: Buffer, *, epsilon: float
    ) -> tuple[Buffer, Buffer, Buffer]:
        """One kernel for the rows; the columns are added up by two sums."""
        check_last_axis(x.shape, gamma=gamma)
        if g.shape != x.shape or g.dtype is not x.dtype:
            raise ValueError(f"g of shape {g.shape} for {x.shape}")
        launcher = self.launcher
        x, g = launcher.dense(x), launcher.dense(g)
        wide = float32 if x.dtype.itemsize == 2 else x.dtype
        out, steep = launcher.empty(x.shape, x.dtype), launcher.empty(x.shape, wide)
        numbers = (_bits(epsilon, x), int(gamma is not None), 0)
        operands = [x, self._vector(gamma, x), g]
        launch_rows(launcher, "layer_norm_grad", operands, [out, steep], numbers)
        rows = tuple(range(len(x.shape) - 1))
        to_gamma = self.cast(self.sum(steep, axis=rows, dtype=wide), dtype=x.dtype)
        return out, to_gamma, self.sum(g, axis=rows, dtype=x.dtype)

    def _vector(self, parameter: Buffer | None, other: Buffer) -> Buffer:
        """A dense parameter, or anything where there is none: the kernel does not look."""
        if parameter is None:
            return other
        check_dtypes("a normalization", parameter, other)
        return self.launcher.dense(parameter)


def _bits(epsilon: float, x: Buffer) -> int:
    return signed_bits(epsilon, float32 if x.dtype.itemsize == 2 else x.dtype)
