"""Batch normalization: a group for each channel, or for parts of it that are joined."""

from __future__ import annotations

import functools
import math
from typing import Any, Final, NamedTuple

from burn.aliases import Primitive, Shape
from burn.ops import check_channels, check_same_shape
from burn.shared_kernels.elements import (
    DTYPE_CODES,
    accumulator_dtype,
    c_type_of,
    divider,
    signed_scalar_bits,
)
from burn.shared_kernels.launching import KernelLauncher, SharedOps

__all__ = ["ChannelOps"]

_LIMIT: Final = 1 << 31
_MIN_POSITIONS: Final = 16
_MAX_SCATTERED_ELEMENTS: Final = 1 << 20
"""With fewer adjacent elements of a channel than the first, and more elements in all than the
second, the decomposition is as fast on a GPU."""

_GROUP: Final = 256
_WIDE_GROUP: Final = 1024
_PARTS_PER_UNIT: Final = 8
_CHUNK_PACKS: Final = 4 * _GROUP
_MAX_PACKS_OF_GROUP: Final = 16 * _WIDE_GROUP
"""Packs of a channel up to which one group computes all of it: it loads them twice, the second time
from a cache, which takes less than several launches."""

_CPU_PARTS_PER_UNIT: Final = 4
_MIN_ELEMENTS_PER_CPU_PART: Final = 4096
_MIN_ELEMENTS_FOR_PASSES: Final = 1 << 16
"""From here on a CPU is faster with a kernel for each pass."""


class _Plan(NamedTuple):
    """How channels are distributed: elements of a pack, packs of a row, parts of a channel."""

    each: int
    packs: int
    parts: int
    chunk: int
    group: int
    lanes: int
    sizes: tuple[int, ...]
    is_whole: bool
    """Whether one kernel computes all."""


@functools.lru_cache(maxsize=1024)
def _gpu_plan(shape: Shape, each: int, units: int, most: int) -> _Plan | None:
    """The plan for a shape; None where the decomposition is as fast."""
    size, positions = math.prod(shape), math.prod(shape[2:])
    if not size or size // each >= _LIMIT:
        return None
    packs, channels = positions // each, shape[1]
    n, parts = shape[0] * packs, 1
    if n > _MAX_PACKS_OF_GROUP:
        parts = max(1, min(-(-_PARTS_PER_UNIT * units // channels), -(-n // _CHUNK_PACKS)))
    if positions < _MIN_POSITIONS and (parts > 1 or size > _MAX_SCATTERED_ELEMENTS):
        return None
    chunk = -(-n // parts)
    lanes = min(_GROUP if chunk <= _CHUNK_PACKS else _WIDE_GROUP, most)
    sizes = _sizes(shape, packs, -(-n // chunk), chunk)
    group, is_whole = min(_GROUP, most), chunk == n
    return _Plan(each, packs, -(-n // chunk), chunk, group, lanes, sizes, is_whole)


@functools.lru_cache(maxsize=1024)
def _cpu_plan(shape: Shape, units: int) -> _Plan | None:
    """The plan for a shape, in which an item computes a part of a channel, or a row."""
    positions, channels = math.prod(shape[2:]), shape[1]
    n = shape[0] * positions
    if not n or not channels or n >= _LIMIT:
        return None
    wanted = _CPU_PARTS_PER_UNIT * units // channels
    chunk = -(-n // max(1, min(wanted, n // _MIN_ELEMENTS_PER_CPU_PART)))
    parts = -(-n // chunk)
    is_whole = parts == 1 and n * channels < _MIN_ELEMENTS_FOR_PASSES
    sizes = _sizes(shape, positions, parts, chunk)
    return _Plan(1, positions, parts, chunk, 1, 1, sizes, is_whole)


def _sizes(shape: Shape, packs: int, parts: int, chunk: int) -> tuple[int, ...]:
    """The first members of the kernels' struct."""
    sizes = (shape[0], shape[1], math.prod(shape[2:]), packs, parts, chunk)
    return *sizes, divider(packs), divider(shape[1])


class ChannelOps(SharedOps):
    """Batch normalization of images, which lie as (images, channels, ...)."""

    def batch_norm(
        self,
        x: Primitive,
        gamma: Primitive | None,
        beta: Primitive | None,
        mean: Primitive,
        variance: Primitive,
        *,
        epsilon: float,
    ) -> Primitive:
        """One kernel."""
        vectors = {"gamma": gamma, "beta": beta, "mean": mean, "variance": variance}
        call = self._call(x, epsilon, vectors)
        if call is None:
            operands = (x, gamma, beta, mean, variance)
            return self.ops.decomposed("batch_norm", *operands, epsilon=epsilon)
        return self._normalized(call)

    def batch_norm_training(
        self, x: Primitive, gamma: Primitive | None, beta: Primitive | None, *, epsilon: float
    ) -> tuple[Primitive, Primitive, Primitive]:
        """Two passes, in one kernel for channels of one group."""
        call = self._call(x, epsilon, {"gamma": gamma, "beta": beta})
        if call is None:
            results: tuple[Primitive, Primitive, Primitive] = self.ops.decomposed(
                "batch_norm_training", x, gamma, beta, epsilon=epsilon
            )
            return results
        launcher, plan, channels = self.launcher, call.plan, x.shape[1]
        dtype = launcher.dtype_of(x)
        mean, variance = launcher.new((channels,), dtype), launcher.new((channels,), dtype)
        if plan.is_whole:
            out = launcher.new(x.shape, dtype)
            arrays = (call.x, call.gamma, call.beta, mean, variance, out)
            call.run("whole_channels", arrays, channels, plan.lanes)
            return out, mean, variance
        wide = accumulator_dtype(dtype)
        parts = launcher.new((channels * plan.parts, 3), wide)
        statistics = launcher.new((2 * channels,), wide)
        call.run("channel_moments", (call.x, parts), channels * plan.parts)
        given = (parts, mean, variance, statistics)
        call.run("join_moments", given, channels, family="channel_moments")
        # The elements are normalized by statistics that are not rounded to their dtype.
        call.mean = call.variance = statistics
        call.offsets[4:] = 0, channels
        call.statistic_code = DTYPE_CODES[wide.name]
        return self._normalized(call), mean, variance

    def batch_norm_grad(
        self,
        x: Primitive,
        gamma: Primitive | None,
        mean: Primitive,
        variance: Primitive,
        g: Primitive,
        *,
        epsilon: float,
    ) -> tuple[Primitive, Primitive, Primitive]:
        """One pass for the sums of each channel, one for the elements."""
        check_same_shape("g", g.shape, x.shape)
        call = self._call(x, epsilon, {"gamma": gamma, "mean": mean, "variance": variance}, g)
        if call is None:
            results: tuple[Primitive, Primitive, Primitive] = self.ops.decomposed(
                "batch_norm_grad", x, gamma, mean, variance, g, epsilon=epsilon
            )
            return results
        launcher, plan, channels = self.launcher, call.plan, x.shape[1]
        dtype = launcher.dtype_of(x)
        to_gamma, to_beta = launcher.new((channels,), dtype), launcher.new((channels,), dtype)
        out = launcher.new(x.shape, dtype)
        known = (call.mean, call.variance)
        if plan.is_whole:
            whole = (call.x, call.g, call.gamma, *known, out, to_gamma, to_beta)
            call.run("whole_channel_gradients", whole, channels, plan.lanes)
            return out, to_gamma, to_beta
        wide = accumulator_dtype(dtype)
        parts = launcher.new((channels * plan.parts, 2), wide)
        statistics = launcher.new((2 * channels,), wide)
        call.run("channel_sums", (call.x, call.g, *known, parts), channels * plan.parts)
        given = (parts, to_gamma, to_beta, statistics)
        call.run("join_sums", given, channels, family="channel_sums")
        arrays = (call.x, call.g, call.gamma, *known, statistics, out)
        call.run_rows("channel_gradients", arrays)
        return out, to_gamma, to_beta

    def _normalized(self, call: _Call) -> Primitive:
        launcher = self.launcher
        out = launcher.new(call.x.shape, launcher.dtype_of(call.x))
        arrays = (call.x, call.gamma, call.beta, call.mean, call.variance, out)
        call.run_rows("normalized_channels", arrays)
        return out

    def _call(
        self,
        x: Primitive,
        epsilon: float,
        vectors: dict[str, Primitive | None],
        g: Primitive | None = None,
    ) -> _Call | None:
        """The operands and the plan; None where the decomposition computes it.

        Raises for operands that do not fit.
        """
        launcher = self.launcher
        check_channels(x.shape, **vectors)
        self.check_dtypes("batch_norm", x, g, *vectors.values(), floats=True)
        x, g = launcher.dense(x), None if g is None else launcher.dense(g)
        if launcher.is_cpu:
            plan = _cpu_plan(x.shape, launcher.units)
        else:
            aligned = launcher.is_aligned(x) and (g is None or launcher.is_aligned(g))
            each = 4 if aligned and math.prod(x.shape[2:]) % 4 == 0 else 1
            plan = _gpu_plan(x.shape, each, launcher.units, launcher.max_group)
        return None if plan is None else _Call(launcher, plan, x, g, vectors, epsilon)


class _Call:
    """Launches of kernels on the same operands."""

    def __init__(
        self,
        launcher: KernelLauncher,
        plan: _Plan,
        x: Primitive,
        g: Primitive | None,
        vectors: dict[str, Primitive | None],
        epsilon: float,
    ) -> None:
        def dense(name: str) -> Primitive | None:
            vector = vectors.get(name)
            return None if vector is None else launcher.dense(vector)

        self._launcher = launcher
        self.plan = plan
        self.x = x
        self.g = g
        self.gamma, self.beta = dense("gamma"), dense("beta")
        self.mean, self.variance = dense("mean"), dense("variance")
        operands = (x, g, self.gamma, self.beta, self.mean, self.variance)
        self.offsets = [
            0 if operand is None else launcher.offset_of(operand) for operand in operands
        ]
        dtype = launcher.dtype_of(x)
        self._code = self.statistic_code = DTYPE_CODES[dtype.name]
        self._c_type = c_type_of(dtype)
        self._epsilon = signed_scalar_bits(epsilon, accumulator_dtype(dtype))

    def run(
        self,
        entry: str,
        arrays: tuple[Any, ...],
        groups: int,
        lanes: int = 0,
        family: str = "",
    ) -> None:
        """Launch a kernel for so many groups."""
        lanes = lanes or self.plan.group
        self._launch(entry, arrays, groups * lanes, lanes, family or entry)

    def run_rows(self, entry: str, arrays: tuple[Any, ...]) -> None:
        """Launch a kernel for all packs, or for all rows where an item computes a row."""
        rows = self.x.shape[0] * self.x.shape[1]
        items = rows if self._launcher.is_cpu else rows * self.plan.packs
        self._launch(entry, arrays, items, self.plan.group, entry)

    def _launch(
        self, entry: str, arrays: tuple[Any, ...], items: int, lanes: int, family: str
    ) -> None:
        launcher = self._launcher
        definitions = {"EACH": self.plan.each, "LANES": lanes, f"HAS_{family}": 1}
        types = {"TYPE": self._code, "STATISTIC_TYPE": self.statistic_code}
        size = math.prod(self.x.shape)
        kernel = launcher.shared_kernel(entry, "channels.c", self._c_type, definitions, types, size)
        flags = (self._epsilon, int(self.gamma is not None), int(self.beta is not None))
        codes = (self.statistic_code, self._code)
        parameters = (*self.plan.sizes, *flags, *self.offsets, *codes)
        launcher.start(kernel, parameters, arrays, items, lanes)
