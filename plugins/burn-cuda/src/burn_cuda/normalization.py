"""Normalization of rows, in one kernel each."""

from __future__ import annotations

import math
from typing import Any, Final

from burn.plugin_api import check_last_axis, float32
from burn_cuda.base import Array, CudaOps
from burn_cuda.kernels import THREADS
from burn_cuda.softmax import row_kernel, row_launch, row_shape

__all__ = ["NormalizationOps"]

_WANTED_PARTS: Final = 1056
"""Parts in which gradients of rows are summed: eight for each multiprocessor of a large GPU."""

_MAX_BLOCK_ELEMENTS: Final = 1 << 13
"""Elements of the rows of a block that fit into registers four times."""

_WARP_LANES: Final = 32
_COLUMNS, _COLUMN_THREADS = 32, 1024
"""Columns and threads of a block that sums up parts."""


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
        """A kernel for the rows with sums of some of these, and one that adds up the sums."""
        check_last_axis(x.shape, gamma=gamma)
        if g.shape != x.shape or g.dtype is not x.dtype:
            raise ValueError(f"g of shape {g.shape} for {x.shape}")
        launcher = self.launcher
        source, g = launcher.dense(x), launcher.dense(g)
        out = launcher.empty(x.shape, x.dtype)
        memory = (source, self._vector(gamma, source), g, out)
        given = (float(epsilon), int(gamma is not None))
        n = x.shape[-1]
        lanes, packs, width = row_shape(n, x.dtype.itemsize)
        each = THREADS // lanes if lanes <= _WARP_LANES else 1  # rows of a block
        block = each * lanes
        if not x.size or not packs or packs * width * block > _MAX_BLOCK_ELEMENTS:
            return self._gradients_of_long_rows(x, memory, given)
        rows = x.size // n
        blocks = -(-min(rows, _WANTED_PARTS) // each)
        wide = x.dtype if x.dtype.itemsize > 2 else float32.numpy
        parts = launcher.empty((blocks * each, 2, n), wide)
        kernel = row_kernel(launcher, "layer_norm_grad_rows", x.dtype, n)
        kernel((blocks,), (block,), (*memory, parts, *given, rows, n))
        to_gamma, to_beta = launcher.empty((n,), x.dtype), launcher.empty((n,), x.dtype)
        kernel = row_kernel(launcher, "layer_norm_grad_sums", x.dtype, n, "layer_norm_grad_rows")
        grid = (-(-2 * n // _COLUMNS),)
        kernel(grid, (_COLUMN_THREADS,), (parts, to_gamma, to_beta, blocks * each, n))
        return out, to_gamma, to_beta

    def _gradients_of_long_rows(
        self, x: Array, memory: tuple[Array, ...], given: tuple[Any, ...]
    ) -> tuple[Array, Array, Array]:
        """One kernel for the rows, and two sums over columns."""
        launcher = self.launcher
        dtype = launcher.dtypes[x.dtype]
        wide = float32 if dtype.itemsize < 4 else dtype
        gamma_terms = launcher.empty(x.shape, wide.numpy)
        self._launch("layer_norm_grad", x, *memory, gamma_terms, *given)
        rows = tuple(range(len(x.shape) - 1))
        gamma_gradient = self.cast(self.sum(gamma_terms, axis=rows, dtype=wide), dtype=dtype)
        _, _, g, out = memory
        return out, gamma_gradient, self.sum(g, axis=rows, dtype=dtype)

    def _vector(self, parameter: Array | None, other: Array) -> Array:
        """A dense parameter; any array in place of None, which the kernel does not read."""
        return other if parameter is None else self.launcher.dense(parameter)

    def _launch(self, name: str, x: Array, *arguments: Any) -> None:
        n = x.shape[-1]
        if x.size:
            row_launch(self.launcher, name, x, math.prod(x.shape[:-1]), n, *arguments)
