"""Linear maps along axes: interpolation and average pooling. Their tables stay on the device."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Unpack

import numpy as np

from burn.plugin_api import (
    REGISTRY,
    AvgPoolAttributes,
    AxisMap,
    DType,
    Meta,
    Shape,
    Sizes,
    Windows,
    adaptive_window_bounds,
    float32,
    interpolation_maps,
    pool_windows,
    range_sum_map,
    window_element_counts,
    window_sum_map,
)
from burn_cuda.base import Array, CudaOps
from burn_cuda.kernels import c_type
from burn_cuda.launcher import divider, packed

if TYPE_CHECKING:
    from burn_cuda.runtime import Runtime

__all__ = ["ResamplingOps"]

Map = AxisMap | None
"""The map along an axis; None for the identity."""

_KERNEL_AXES: Final = 3
_MAX_TAPS_AT_ONCE: Final = 64
"""With more taps for an output, the axes are mapped one after the other."""

_MIN_OUTPUTS_TO_UNROLL: Final = 1 << 14
"""With fewer outputs one kernel serves all numbers of taps: unrolled ones take long to compile."""

_MAX_UNROLLED_TAPS: Final = 8

_MAX_TABLES: Final = 128
"""Tables of axis maps that a device keeps: those used last."""


class ResamplingOps(CudaOps):
    """Ops that are a linear map along each of the last axes; sums of 16-bit floats are float32."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        cached = functools.lru_cache(maxsize=_MAX_TABLES)
        self.axis_map_tables = cached(functools.partial(_upload_tables, runtime))

    def interpolate(
        self,
        x: Array,
        *,
        output_size: Sizes,
        mode: str,
        align_corners: bool = False,
        scale: tuple[float, ...] | None = None,
    ) -> Array:
        """One kernel for all axes."""
        given = {"mode": mode, "align_corners": align_corners, "scale": scale}
        self._check_attributes("interpolate", x, output_size=output_size, **given)
        spatial = x.shape[len(x.shape) - len(output_size) :]
        maps = interpolation_maps(spatial, output_size, mode, align_corners, scale)
        return self._apply_maps(x, maps)

    def interpolate_grad(
        self,
        g: Array,
        *,
        input_size: Sizes,
        mode: str,
        align_corners: bool = False,
        scale: tuple[float, ...] | None = None,
    ) -> Array:
        """The same with the transposed tables."""
        given = {"mode": mode, "align_corners": align_corners, "scale": scale}
        self._check_attributes("interpolate_grad", g, input_size=input_size, **given)
        resized = g.shape[len(g.shape) - len(input_size) :]
        maps = interpolation_maps(input_size, resized, mode, align_corners, scale)
        return self._apply_maps(g, [taps.transposed for taps in maps])

    def avg_pool(
        self, x: Array, *, count_include_pad: bool = True, **rule: Unpack[AvgPoolAttributes]
    ) -> Array:
        """Sums divided by one number where all windows have one size, else weighted sums."""
        self._check_attributes("avg_pool", x, count_include_pad=count_include_pad, **rule)
        plan = pool_windows(x.shape, **rule)
        maps, divisors = zip(*[_means(axis, count_include_pad) for axis in plan], strict=True)
        return self._apply_maps(x, maps, math.prod(divisors))

    def avg_pool_grad(
        self,
        g: Array,
        *,
        input_size: Sizes,
        count_include_pad: bool = True,
        **rule: Unpack[AvgPoolAttributes],
    ) -> Array:
        """The same with the transposed tables."""
        self._check_attributes(
            "avg_pool_grad", g, input_size=input_size, count_include_pad=count_include_pad, **rule
        )
        plan = pool_windows(input_size, **rule)
        maps, divisors = zip(*[_means(axis, count_include_pad) for axis in plan], strict=True)
        return self._apply_maps(g, [taps.transposed for taps in maps], math.prod(divisors))

    def adaptive_avg_pool(self, x: Array, *, output_size: Sizes) -> Array:
        """Windows that cover an axis; a mean where there is one of them."""
        self._check_attributes("adaptive_avg_pool", x, output_size=output_size)
        count = len(output_size)
        if set(output_size) == {1} and x.size:
            return self.ops.mean(x, axis=tuple(range(x.ndim - count, x.ndim)), keepdims=True)
        spatial = x.shape[len(x.shape) - len(output_size) :]
        means = [_adaptive_means(*both) for both in zip(spatial, output_size, strict=True)]
        maps, divisors = zip(*means, strict=True)
        return self._apply_maps(x, maps, math.prod(divisors))

    def adaptive_avg_pool_grad(self, g: Array, *, input_size: Sizes) -> Array:
        """The same with the transposed tables."""
        self._check_attributes("adaptive_avg_pool_grad", g, input_size=input_size)
        pooled = g.shape[len(g.shape) - len(input_size) :]
        means = [_adaptive_means(*both) for both in zip(input_size, pooled, strict=True)]
        maps, divisors = zip(*means, strict=True)
        return self._apply_maps(g, [taps.transposed for taps in maps], math.prod(divisors))

    def _check_attributes(self, name: str, x: Array, **attributes: Any) -> None:
        """Raise for operands and attributes that the op refuses."""
        dtype = self.launcher.dtypes[x.dtype]
        if not dtype.is_float:
            raise TypeError(f"{name} of {dtype}")
        infer: Any = REGISTRY[name].infer
        infer(Meta(x.shape, dtype), **attributes)

    def _apply_maps(self, x: Array, maps: Sequence[AxisMap], divisor: int = 1) -> Array:
        """Apply a map along each of the last axes, in one kernel where an output has few taps."""
        lead = len(x.shape) - len(maps)
        at_once = math.prod([taps.indices.shape[1] for taps in maps]) <= _MAX_TAPS_AT_ONCE
        if at_once and len(maps) <= _KERNEL_AXES:
            none: list[Map] = [None] * (_KERNEL_AXES - len(maps))
            head = (math.prod(x.shape[:lead]), *[1] * len(none))
            out = self._weighted_sums(x, (*head, *x.shape[lead:]), [*none, *maps], divisor)
            return out.reshape(*x.shape[:lead], *[taps.indices.shape[0] for taps in maps])
        dtype = self.launcher.dtypes[x.dtype]
        wide = float32 if dtype.itemsize < float32.itemsize else dtype
        x = self.cast(x, dtype=wide)
        for number, taps in enumerate(maps):
            axis, shape = lead + number, x.shape
            parts = (math.prod(shape[:axis]), 1, shape[axis], math.prod(shape[axis + 1 :]))
            own = divisor if number == len(maps) - 1 else 1
            x = self._weighted_sums(x, parts, [None, taps, None], own)
            x = x.reshape(*shape[:axis], taps.indices.shape[0], *shape[axis + 1 :])
        return self.cast(x, dtype=dtype)

    def _weighted_sums(self, x: Array, shape: Shape, maps: Sequence[Map], divisor: int) -> Array:
        """Apply maps along the last three of four axes."""
        launcher = self.launcher
        dtype = launcher.dtypes[x.dtype]
        wide = float32 if dtype.itemsize < float32.itemsize else dtype
        lengths = shape[1:]
        counts = [
            length if taps is None else taps.indices.shape[0]
            for length, taps in zip(lengths, maps, strict=True)
        ]
        out = launcher.empty((shape[0], *counts), x.dtype)
        if not out.size:
            return out
        tables: list[Array] = []
        numbers: list[int] = []
        definitions: dict[str, str | int] = {"T": c_type(dtype)}
        for axis, taps in enumerate(maps):
            few = 0 if taps is None else taps.indices.shape[1]
            numbers.append(few)
            tables += (0, 0) if taps is None else self.axis_map_tables(taps, wide)
            unrolled = few if few <= _MAX_UNROLLED_TAPS and (taps is None or few) else -1
            some = taps is not None and taps.present is not None
            if taps is not None and out.size < _MIN_OUTPUTS_TO_UNROLL:
                unrolled, some = -1, True
            definitions |= {f"K{axis}": unrolled, f"SOME{axis}": int(some)}
            definitions |= {f"W{axis}": int(taps is not None and taps.weights is not None)}
        groups_of_four = -(-counts[2] // 4)
        most = ((1 << 31) - 1) // (math.prod(counts[:2]) * groups_of_four)
        table = [*lengths, *counts, *numbers, *map(divider, (counts[0], counts[1], groups_of_four))]
        layout = packed(np.array(table, np.int64))
        kernel = launcher.kernel("weighted_sums", "resampling.cu", **definitions)
        x = launcher.dense(x).reshape(shape)
        for start in range(0, shape[0], most):
            stop = min(start + most, shape[0])
            threads = (stop - start) * math.prod(counts[:2]) * groups_of_four
            given = (x[start:stop], *tables, out[start:stop], layout, float(divisor))
            launcher.run(kernel, threads, *given, groups_of_four, threads)
        return out


def _upload_tables(runtime: Runtime, axis_map: AxisMap, dtype: DType) -> tuple[Array, Array]:
    """The input indices of each output, -1 for none, and their weights; shape (taps, outputs)."""
    indices = axis_map.indices.astype(np.int32)
    if axis_map.present is not None:
        indices = np.where(axis_map.present, indices, np.int32(-1))
    first = runtime.upload(np.ascontiguousarray(indices.T))
    if axis_map.weights is None:
        return first, 0
    return first, runtime.upload(np.ascontiguousarray(axis_map.weights.astype(dtype.numpy).T))


@functools.lru_cache(maxsize=256)
def _means(axis: Windows, with_padding: bool) -> tuple[AxisMap, int]:
    """Means of windows along an axis: a map and a divisor."""
    return _divided(
        window_sum_map(axis), window_element_counts(axis, count_include_pad=with_padding)
    )


@functools.lru_cache(maxsize=256)
def _adaptive_means(length: int, count: int) -> tuple[AxisMap, int]:
    """Means of windows that cover an axis: a map and a divisor."""
    starts, stops = adaptive_window_bounds(length, count)
    return _divided(range_sum_map(length, starts, stops), stops - starts)


def _divided(sums: AxisMap, counts: np.ndarray[Any, Any]) -> tuple[AxisMap, int]:
    """Means from sums: with one divisor, or with a weight for each."""
    if len(set(counts.tolist())) <= 1:
        return sums, int(counts[0]) if len(counts) else 1
    weights = np.broadcast_to(1.0 / counts[:, None], sums.indices.shape)
    return AxisMap(sums.length, sums.indices, weights, sums.present), 1
