"""Linear maps along axes: interpolation and adaptive means. Their tables stay on the device."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from burn.dtype import DType, float32
from burn.ops import REGISTRY, Meta
from burn.ops.average_pooling import adaptive_ends
from burn.ops.resampling import interpolation_taps
from burn.ops.taps import Array, Taps, window_taps
from burn_opencl.buffers import Buffer, check_dtypes
from burn_opencl.expressions import CODES, class_of

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn.ops.pooling_windows import Sizes
    from burn_opencl.launcher import Launcher

__all__ = ["ResamplingOps"]


class ResamplingOps:
    """Ops that are a linear map along each of the last axes, one kernel for each."""

    launcher: Launcher
    tables: Callable[..., list[Buffer]]

    def interpolate(
        self,
        x: Buffer,
        *,
        output_size: Sizes,
        mode: str,
        align_corners: bool = False,
        scale: tuple[float, ...] | None = None,
    ) -> Buffer:
        """Between the axes values are kept as they are computed."""
        given = {"mode": mode, "align_corners": align_corners, "scale": scale}
        shape = _inferred("interpolate", x, output_size=output_size, **given)
        spatial = x.shape[len(shape) - len(output_size) :]
        return self._mapped(x, interpolation_taps(spatial, output_size, *given.values()))  # type: ignore[arg-type]  # the values are those of the arguments

    def interpolate_grad(
        self,
        g: Buffer,
        *,
        input_size: Sizes,
        mode: str,
        align_corners: bool = False,
        scale: tuple[float, ...] | None = None,
    ) -> Buffer:
        """The same with the transposed tables."""
        given = {"mode": mode, "align_corners": align_corners, "scale": scale}
        shape = _inferred("interpolate_grad", g, input_size=input_size, **given)
        resized = g.shape[len(shape) - len(input_size) :]
        maps = interpolation_taps(input_size, resized, *given.values())  # type: ignore[arg-type]  # as above
        return self._mapped(g, [taps.transposed for taps in maps])

    def adaptive_avg_pool(self, x: Buffer, *, output_size: Sizes) -> Buffer:
        """The weights are one over the length of the window."""
        shape = _inferred("adaptive_avg_pool", x, output_size=output_size)
        spatial = x.shape[len(shape) - len(output_size) :]
        maps = [_means(*both) for both in zip(spatial, output_size, strict=True)]
        return self._mapped(x, maps)

    def adaptive_avg_pool_grad(self, g: Buffer, *, input_size: Sizes) -> Buffer:
        """The same with the transposed tables."""
        shape = _inferred("adaptive_avg_pool_grad", g, input_size=input_size)
        pooled = g.shape[len(shape) - len(input_size) :]
        maps = [_means(*both).transposed for both in zip(input_size, pooled, strict=True)]
        return self._mapped(g, maps)

    def _mapped(self, x: Buffer, maps: Sequence[Taps]) -> Buffer:
        """Apply a map along each of the last axes."""
        launcher, dtype = self.launcher, x.dtype
        wide = float32 if dtype.itemsize == 2 else dtype
        x = launcher.dense(x)
        for number, taps in enumerate(maps):
            axis = len(x.shape) - len(maps) + number
            outputs, count = taps.places.shape
            shape = (*x.shape[:axis], outputs, *x.shape[axis + 1 :])
            out = launcher.empty(shape, dtype if number == len(maps) - 1 else wide)
            if out.size:
                places, weights = self.tables(_tables, taps, wide)
                kernel = launcher.kernel("weighted_sums", "taps.cl", class_of(dtype))
                codes = CODES[x.dtype.name], CODES[out.dtype.name]
                inner = math.prod(shape[axis + 1 :])
                numbers = (out.size, x.shape[axis], inner, outputs, count, x.offset, *codes)
                memories = (x.memory, places.memory, weights.memory, out.memory)
                launcher.run(kernel, out.size, numbers, memories)
            x = out
        return x


def _inferred(name: str, x: Buffer, **attributes: Any) -> Shape:
    """Shape of the result; refuses what the op refuses."""
    check_dtypes(name, x, floats=True)
    meta: Any = REGISTRY[name].infer(Meta(x.shape, x.dtype), **attributes)
    return meta.shape  # type: ignore[no-any-return]  # of a Meta


@functools.lru_cache(maxsize=256)
def _means(length: int, count: int) -> Taps:
    """Means of windows that hold all of an axis."""
    starts, stops = adaptive_ends(length, count)
    sums = window_taps(length, starts, stops)
    with np.errstate(all="ignore"):  # an axis of length 0 has no means
        weights = np.broadcast_to(1.0 / (stops - starts)[:, None], sums.places.shape)
    return Taps(length, sums.places, weights, sums.taken)


def _tables(taps: Taps, dtype: DType) -> list[Array]:
    """Places of each output, -1 for none, and their weights."""
    places = taps.places.astype(np.int32)
    if taps.taken is not None:
        places = np.where(taps.taken, places, np.int32(-1))
    weights = np.ones(places.shape) if taps.weights is None else taps.weights
    return [places, weights.astype(dtype.numpy)]
