"""Normalization of rows, in one kernel each."""

from __future__ import annotations

import math
from typing import Any

from burn.plugin_api import check_last_axis, float32
from burn_cuda.base import Array, CudaOps
from burn_cuda.softmax import row_launch

__all__ = ["NormalizationOps"]


class NormalizationOps(CudaOps):
    """Layer and RMS normalization."""

    def layer_norm(
        self, x: Array, gamma: Array | None, beta: Array | None, *, epsilon: float
    ) -> Array:
        """One kernel."""
        check_last_axis(x.shape, gamma=gamma, beta=beta)
        launcher = self.launcher
        source, out = launcher.dense(x), launcher.empty(x.shape, x.dtype)
        scale, shift = self._vector(gamma, source), self._vector(beta, source)
        given = (float(epsilon), int(gamma is not None), int(beta is not None))
        self._launch("layer_norm", x, source, scale, shift, out, *given)
        return out

    def rms_norm(self, x: Array, gamma: Array | None, *, epsilon: float) -> Array:
        """One kernel."""
        check_last_axis(x.shape, gamma=gamma)
        launcher = self.launcher
        source, out = launcher.dense(x), launcher.empty(x.shape, x.dtype)
        given = (float(epsilon), int(gamma is not None))
        self._launch("rms_norm", x, source, self._vector(gamma, source), out, *given)
        return out

    def layer_norm_grad(
        self, x: Array, gamma: Array | None, g: Array, *, epsilon: float
    ) -> tuple[Array, Array, Array]:
        """One kernel for the rows, and two sums over columns."""
        check_last_axis(x.shape, gamma=gamma)
        if g.shape != x.shape or g.dtype is not x.dtype:
            raise ValueError(f"g of shape {g.shape} for {x.shape}")
        launcher = self.launcher
        dtype = launcher.dtypes[x.dtype]
        wide = float32 if dtype.itemsize < 4 else dtype
        source, g = launcher.dense(x), launcher.dense(g)
        out = launcher.empty(x.shape, x.dtype)
        gamma_terms = launcher.empty(x.shape, wide.numpy)
        given = (float(epsilon), int(gamma is not None))
        scale = self._vector(gamma, source)
        self._launch("layer_norm_grad", x, source, scale, g, out, gamma_terms, *given)
        rows = tuple(range(len(x.shape) - 1))
        gamma_gradient = self.cast(self.sum(gamma_terms, axis=rows, dtype=wide), dtype=dtype)
        return out, gamma_gradient, self.sum(g, axis=rows, dtype=dtype)

    def _vector(self, parameter: Array | None, other: Array) -> Array:
        """A dense parameter; any array in place of None, which the kernel does not read."""
        return other if parameter is None else self.launcher.dense(parameter)

    def _launch(self, name: str, x: Array, *arguments: Any) -> None:
        n = x.shape[-1]
        if x.size:
            row_launch(self.launcher, name, x, math.prod(x.shape[:-1]), n, *arguments)
