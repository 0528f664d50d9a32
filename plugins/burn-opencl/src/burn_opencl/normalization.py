"""Layer and RMS normalization of rows."""

from __future__ import annotations

from burn.plugin_api import accumulator_dtype, check_last_axis, signed_scalar_bits
from burn_opencl.buffers import Buffer
from burn_opencl.dtypes import check_dtypes
from burn_opencl.reduction import ReductionOps
from burn_opencl.softmax import launch_rows

__all__ = ["NormalizationOps"]


class NormalizationOps(ReductionOps):
    """Layer and RMS normalization."""

    def layer_norm(
        self, x: Buffer, gamma: Buffer | None, beta: Buffer | None, *, epsilon: float
    ) -> Buffer:
        """One kernel: the mean, the variance around it, and the result."""
        check_last_axis(x.shape, gamma=gamma, beta=beta)
        x = self.launcher.dense(x)
        out = self.launcher.empty(x.shape, x.dtype)
        operands = [x, self._vector(gamma, x), self._vector(beta, x)]
        parameters = (_bits(epsilon, x), int(gamma is not None), int(beta is not None))
        launch_rows(self.launcher, "layer_norm", operands, [out], parameters)
        return out

    def rms_norm(self, x: Buffer, gamma: Buffer | None, *, epsilon: float) -> Buffer:
        """One kernel: the mean of the squares, and the result."""
        check_last_axis(x.shape, gamma=gamma)
        x = self.launcher.dense(x)
        out = self.launcher.empty(x.shape, x.dtype)
        parameters = (_bits(epsilon, x), int(gamma is not None), 0)
        launch_rows(self.launcher, "rms_norm", [x, self._vector(gamma, x)], [out], parameters)
        return out

    def layer_norm_grad(
        self, x: Buffer, gamma: Buffer | None, g: Buffer, *, epsilon: float
    ) -> tuple[Buffer, Buffer, Buffer]:
        """One kernel for the rows, and a sum of columns for each parameter."""
        check_last_axis(x.shape, gamma=gamma)
        if g.shape != x.shape or g.dtype is not x.dtype:
            raise ValueError(f"g of shape {g.shape} for {x.shape}")
        launcher = self.launcher
        x, g = launcher.dense(x), launcher.dense(g)
        wide = accumulator_dtype(x.dtype)
        out, gamma_terms = launcher.empty(x.shape, x.dtype), launcher.empty(x.shape, wide)
        parameters = (_bits(epsilon, x), int(gamma is not None), 0)
        operands = [x, self._vector(gamma, x), g]
        launch_rows(launcher, "layer_norm_grad", operands, [out, gamma_terms], parameters)
        rows = tuple(range(len(x.shape) - 1))
        gamma_grad = self.cast(self.sum(gamma_terms, axis=rows, dtype=wide), dtype=x.dtype)
        return out, gamma_grad, self.sum(g, axis=rows, dtype=x.dtype)

    def _vector(self, parameter: Buffer | None, other: Buffer) -> Buffer:
        """A dense parameter; `other`, which the kernel does not read, where it is absent."""
        if parameter is None:
            return other
        check_dtypes("a normalization", parameter, other)
        return self.launcher.dense(parameter)


def _bits(epsilon: float, x: Buffer) -> int:
    return signed_scalar_bits(epsilon, accumulator_dtype(x.dtype))
