"""Batch normalization: one pass for the moments of each channel, one to normalize."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from burn.plugin_api import Shape, check_channels, divider, float32
from burn_cuda.base import Array, CudaOps
from burn_cuda.kernels import THREADS, c_type
from burn_cuda.launcher import Packed, packed

if TYPE_CHECKING:
    from burn_cuda.runtime import Runtime

__all__ = ["ChannelOps"]


_MIN_POSITIONS: Final = 16
_MAX_SCATTERED_ELEMENTS: Final = 1 << 20
"""With fewer adjacent elements of a channel than the first, and more elements in all than the
second, the decomposition is as fast."""

_WANTED_BLOCKS: Final = 1056
_CHUNK_PACKS: Final = 4 * THREADS
_PACK_BYTES: Final = 16
_MAX_PACKS: Final = 1 << 31
_WIDE_BLOCK: Final = 1024
_MAX_PACKS_OF_BLOCK: Final = 16 * _WIDE_BLOCK
"""Packs of a channel up to which one block computes all of it: it loads them twice, the second time
from a cache, which takes less than several launches."""


class _Plan(NamedTuple):
    """How the elements of channels are distributed; one block computes a channel of one part."""

    each: int
    packs: int
    parts: int
    chunk: int
    layout: Packed

    @property
    def lanes(self) -> int:
        """Threads of a block that computes a channel."""
        return THREADS if self.chunk <= _CHUNK_PACKS else _WIDE_BLOCK


@functools.lru_cache(maxsize=1024)
def _plan(shape: Shape, itemsize: int) -> _Plan | None:
    """The plan for a shape; None where the decomposition is as fast."""
    size, positions = math.prod(shape), math.prod(shape[2:])
    each = _PACK_BYTES // itemsize
    if positions % each:
        each = 1
    if not size or size // each >= _MAX_PACKS:
        return None
    packs, channels = positions // each, shape[1]
    n = shape[0] * packs
    if n <= _MAX_PACKS_OF_BLOCK:
        parts = 1
    else:
        parts = max(1, min(-(-_WANTED_BLOCKS // channels), -(-n // _CHUNK_PACKS)))
    if positions < _MIN_POSITIONS and (parts > 1 or size > _MAX_SCATTERED_ELEMENTS):
        return None
    chunk = -(-n // parts)
    layout = packed(np.array([channels, packs, divider(packs), divider(channels)], np.int64))
    return _Plan(each, packs, -(-n // chunk), chunk, layout)


class ChannelOps(CudaOps):
    """Batch normalization of images, which lie as (images, channels, ...)."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self._channel_kernels: dict[Any, Any] = {}

    def batch_norm(
        self,
        x: Array,
        gamma: Array | None,
        beta: Array | None,
        mean: Array,
        variance: Array,
        *,
        epsilon: float,
    ) -> Array:
        """With statistics moments."""
        vectors = {"gamma": gamma, "beta": beta, "mean": mean, "variance": variance}
        plan = self._channel_plan(x, **vectors)
        if plan is None:
            return self.ops.decomposed(
                "batch_norm", x, gamma, beta, mean, variance, epsilon=epsilon
            )
        statistics = self._known_moments(x, mean, variance, epsilon)
        return self._normalized_channels(self.launcher.dense(x), statistics, gamma, beta, plan)

    def batch_norm_training(
        self, x: Array, gamma: Array | None, beta: Array | None, *, epsilon: float
    ) -> tuple[Array, Array, Array]:
        """Two passes, in one kernel for channels of one block."""
        plan = self._channel_plan(x, gamma=gamma, beta=beta)
        if plan is None:
            vectors = (gamma, beta)
            results: tuple[Array, Array, Array] = self.ops.decomposed(
                "batch_norm_training", x, *vectors, epsilon=epsilon
            )
            return results
        launcher = self.launcher
        x = launcher.dense(x)
        channels = x.shape[1]
        mean, variance = (launcher.empty((channels,), x.dtype) for _ in range(2))
        if plan.parts == 1:
            out = launcher.empty(x.shape, x.dtype)
            memory = (x, *self._scales(gamma, beta), mean, variance, out)
            self._run_whole("whole_channels", x, plan, *memory, plan.layout, float(epsilon))
            return out, mean, variance
        statistics = self._channel_memory(x, 2 * channels)
        parts = self._channel_memory(x, 3 * channels * plan.parts)
        numbers = (plan.layout, plan.parts, plan.chunk, x.shape[0] * plan.packs)
        threads = channels * plan.parts * THREADS
        self._run_channels("channel_moments", x, plan, threads, x, parts, *numbers)
        given = (parts, mean, variance, statistics, float(epsilon), plan.parts, channels)
        self._run_channels(
            "join_moments", x, plan, channels * THREADS, *given, family="channel_moments"
        )
        return self._normalized_channels(x, statistics, gamma, beta, plan), mean, variance

    def batch_norm_grad(
        self,
        x: Array,
        gamma: Array | None,
        mean: Array,
        variance: Array,
        g: Array,
        *,
        epsilon: float,
    ) -> tuple[Array, Array, Array]:
        """One pass for the sums of each channel, one for the elements."""
        if g.shape != x.shape or g.dtype is not x.dtype:
            raise ValueError(f"g of shape {g.shape} for {x.shape}")
        plan = self._channel_plan(x, gamma=gamma, mean=mean, variance=variance)
        if plan is None:
            operands = (x, gamma, mean, variance, g)
            results: tuple[Array, Array, Array] = self.ops.decomposed(
                "batch_norm_grad", *operands, epsilon=epsilon
            )
            return results
        launcher = self.launcher
        x, g = launcher.dense(x), launcher.dense(g)
        channels = x.shape[1]
        to_gamma, to_beta = (launcher.empty((channels,), x.dtype) for _ in range(2))
        out = launcher.empty(x.shape, x.dtype)
        (scale,) = self._scales(gamma)
        if plan.parts == 1:
            memory = (x, g, scale, *map(launcher.dense, (mean, variance)), out, to_gamma, to_beta)
            name = "whole_channel_gradients"
            self._run_whole(name, x, plan, *memory, plan.layout, float(epsilon))
            return out, to_gamma, to_beta
        statistics = self._known_moments(x, mean, variance, epsilon)
        means = self._channel_memory(x, 2 * channels)
        parts = self._channel_memory(x, 2 * channels * plan.parts)
        numbers = (plan.layout, plan.parts, plan.chunk, x.shape[0] * plan.packs)
        threads = channels * plan.parts * THREADS
        self._run_channels("channel_sums", x, plan, threads, x, g, statistics, parts, *numbers)
        count = float(x.size // channels)
        given = (parts, to_gamma, to_beta, means, count, plan.parts, channels)
        self._run_channels("join_sums", x, plan, channels * THREADS, *given, family="channel_sums")
        n = x.size // plan.each
        memory = (x, g, statistics, means, scale, out)
        self._run_channels("channel_gradients", x, plan, n, *memory, plan.layout, n)
        return out, to_gamma, to_beta

    def _channel_plan(self, x: Array, **vectors: Array | None) -> _Plan | None:
        """The plan; None where the decomposition is as fast. Raises for operands that mismatch."""
        check_channels(x.shape, **vectors)
        if any(vector is not None and vector.dtype is not x.dtype for vector in vectors.values()):
            raise TypeError("operands of several dtypes")
        return _plan(x.shape, x.dtype.itemsize)

    def _known_moments(self, x: Array, mean: Array, variance: Array, epsilon: float) -> Array:
        """The mean and 1 / sqrt(variance + epsilon) of each channel."""
        launcher = self.launcher
        channels = x.shape[1]
        statistics = self._channel_memory(x, 2 * channels)
        given = (
            launcher.dense(mean),
            launcher.dense(variance),
            statistics,
            float(epsilon),
            channels,
        )
        self._run_channels("known_moments", x, None, channels, *given)
        return statistics

    def _normalized_channels(
        self, x: Array, statistics: Array, gamma: Array | None, beta: Array | None, plan: _Plan
    ) -> Array:
        launcher = self.launcher
        out = launcher.empty(x.shape, x.dtype)
        n = x.size // plan.each
        given = (x, statistics, *self._scales(gamma, beta), out, plan.layout, n)
        self._run_channels("normalized_channels", x, plan, n, *given)
        return out

    def _channel_memory(self, x: Array, count: int) -> Array:
        """Memory for numbers in the dtype in which elements are computed."""
        dtype = x.dtype if x.dtype.itemsize > 2 else float32.numpy
        return self.launcher.empty((count,), dtype)

    def _scales(self, *vectors: Array | None) -> list[Array]:
        """Dense vectors; null pointers for None."""
        return [0 if vector is None else self.launcher.dense(vector) for vector in vectors]

    def _run_whole(self, name: str, x: Array, plan: _Plan, *arguments: Any) -> None:
        """Run a kernel with a block for each channel."""
        kernel = self._channel_kernel(name, x, plan.each, plan.lanes)
        kernel((x.shape[1],), (plan.lanes,), (*arguments, plan.chunk))

    def _run_channels(
        self,
        name: str,
        x: Array,
        plan: _Plan | None,
        threads: int,
        *arguments: Any,
        family: str | None = None,
    ) -> None:
        each = 1 if plan is None else plan.each
        kernel = self._channel_kernel(name, x, each, THREADS, family)
        self.launcher.run(kernel, threads, *arguments)

    def _channel_kernel(
        self, name: str, x: Array, each: int, lanes: int, family: str | None = None
    ) -> Any:
        key = (name, x.dtype, each, lanes)
        found = self._channel_kernels.get(key)
        if found is None:
            definitions: dict[str, str | int] = {
                "T": c_type(self.launcher.dtypes[x.dtype]),
                "EACH": each,
                "LANES": lanes,
                f"HAS_{family or name}": 1,
            }
            found = self.launcher.kernel(name, "channels.cu", **definitions)
            self._channel_kernels[key] = found
        return found
