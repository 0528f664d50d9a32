"""Interpolation and adaptive means: sparse linear maps along axes, cached on the device."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from burn.plugin_api import (
    AxisMap,
    DType,
    adaptive_window_bounds,
    interpolation_maps,
    range_sum_map,
)
from burn_opencl.base import OpenClOps, inferred_shape
from burn_opencl.buffers import Buffer
from burn_opencl.dtypes import DTYPE_CODES, accumulator_dtype, c_type_of, check_dtypes

if TYPE_CHECKING:
    from burn.plugin_api import Shape, Sizes

__all__ = ["ResamplingOps"]


class ResamplingOps(OpenClOps):
    """Ops that are a linear map along each of the last axes, in one kernel per axis."""

    def interpolate(
        self,
        x: Buffer,
        *,
        output_size: Sizes,
        mode: str,
        align_corners: bool = False,
        scale: tuple[float, ...] | None = None,
    ) -> Buffer:
        """Intermediate results are not rounded to 16 bits."""
        attributes = {"mode": mode, "align_corners": align_corners, "scale": scale}
        shape = _checked_shape("interpolate", x, output_size=output_size, **attributes)
        spatial = x.shape[len(shape) - len(output_size) :]
        maps = interpolation_maps(spatial, output_size, mode, align_corners, scale)
        return self._mapped(x, maps)

    def interpolate_grad(
        self,
        g: Buffer,
        *,
        input_size: Sizes,
        mode: str,
        align_corners: bool = False,
        scale: tuple[float, ...] | None = None,
    ) -> Buffer:
        """The transposed map."""
        attributes = {"mode": mode, "align_corners": align_corners, "scale": scale}
        shape = _checked_shape("interpolate_grad", g, input_size=input_size, **attributes)
        resized = g.shape[len(shape) - len(input_size) :]
        maps = interpolation_maps(input_size, resized, mode, align_corners, scale)
        return self._mapped(g, [axis_map.transposed for axis_map in maps])

    def adaptive_avg_pool(self, x: Buffer, *, output_size: Sizes) -> Buffer:
        """The weights are the reciprocals of the lengths of the windows."""
        shape = _checked_shape("adaptive_avg_pool", x, output_size=output_size)
        spatial = x.shape[len(shape) - len(output_size) :]
        maps = [_mean_map(*lengths) for lengths in zip(spatial, output_size, strict=True)]
        return self._mapped(x, maps)

    def adaptive_avg_pool_grad(self, g: Buffer, *, input_size: Sizes) -> Buffer:
        """The transposed map."""
        shape = _checked_shape("adaptive_avg_pool_grad", g, input_size=input_size)
        pooled = g.shape[len(shape) - len(input_size) :]
        maps = [_mean_map(*lengths).transposed for lengths in zip(input_size, pooled, strict=True)]
        return self._mapped(g, maps)

    def _mapped(self, x: Buffer, maps: Sequence[AxisMap]) -> Buffer:
        """Apply a map along each of the last axes."""
        launcher, dtype = self.launcher, x.dtype
        wide = accumulator_dtype(dtype)
        x = launcher.dense(x)
        for number, axis_map in enumerate(maps):
            axis = len(x.shape) - len(maps) + number
            outputs, count = axis_map.indices.shape
            shape = (*x.shape[:axis], outputs, *x.shape[axis + 1 :])
            out = launcher.empty(shape, dtype if number == len(maps) - 1 else wide)
            if out.size:
                indices, weights = self.tables(_tables, axis_map, wide)
                kernel = launcher.kernel("weighted_sums", "resampling.cl", c_type_of(dtype))
                codes = DTYPE_CODES[x.dtype.name], DTYPE_CODES[out.dtype.name]
                inner = math.prod(shape[axis + 1 :])
                parameters = (out.size, x.shape[axis], inner, outputs, count, x.offset, *codes)
                memories = (x.memory, indices.memory, weights.memory, out.memory)
                launcher.run(kernel, out.size, parameters, memories)
            x = out
        return x


def _checked_shape(name: str, x: Buffer, **attributes: Any) -> Shape:
    """Shape of the result; raises what the op raises."""
    check_dtypes(name, x, floats=True)
    return inferred_shape(name, x, **attributes)


@functools.lru_cache(maxsize=256)
def _mean_map(length: int, count: int) -> AxisMap:
    """Means of `count` windows that cover an axis."""
    starts, stops = adaptive_window_bounds(length, count)
    sums = range_sum_map(length, starts, stops)
    with np.errstate(all="ignore"):  # an axis of length 0 has no means
        weights = np.broadcast_to(1.0 / (stops - starts)[:, None], sums.indices.shape)
    return AxisMap(length, sums.indices, weights, sums.present)


def _tables(axis_map: AxisMap, dtype: DType) -> list[np.ndarray[Any, Any]]:
    """Indices of the terms of each output, -1 for an absent one, and their weights."""
    indices = axis_map.indices.astype(np.int32)
    if axis_map.present is not None:
        indices = np.where(axis_map.present, indices, np.int32(-1))
    weights = np.ones(indices.shape) if axis_map.weights is None else axis_map.weights
    return [indices, weights.astype(dtype.numpy)]
