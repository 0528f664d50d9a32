"""Linear maps along axes: interpolation and average pooling. Their tables stay on the device."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias, Unpack

import numpy as np

from burn.aliases import Primitive, Shape
from burn.dtype import DType
from burn.ops import (
    AvgPoolAttributes,
    AxisMap,
    Sizes,
    Windows,
    adaptive_window_bounds,
    check_pooled,
    interpolation_maps,
    pool_windows,
    range_sum_map,
    window_element_counts,
    window_sum_map,
)
from burn.shared_kernels.elements import (
    DTYPE_CODES,
    accumulator_dtype,
    c_type_of,
    divider,
    signed_scalar_bits,
)
from burn.shared_kernels.launching import SharedOps

__all__ = ["ResamplingOps"]

_Map: TypeAlias = AxisMap | None
"""The map along an axis; None for the identity."""

_KERNEL_AXES: Final = 3
_MAX_TAPS_AT_ONCE: Final = 64
_MAX_TAPS_AT_ONCE_ON_CPU: Final = 16
"""With more taps for an output, the axes are mapped one after the other."""

_MIN_OUTPUTS_TO_UNROLL: Final = 1 << 14
"""With fewer outputs one kernel serves all numbers of taps: unrolled ones take long to compile."""

_MAX_UNROLLED_TAPS: Final = 8
_MAX_ITEMS: Final = (1 << 31) - 1


class ResamplingOps(SharedOps):
    """Ops that are a linear map along each of the last axes; sums of 16-bit floats are float32."""

    def interpolate(
        self,
        x: Primitive,
        *,
        output_size: Sizes,
        mode: str,
        align_corners: bool = False,
        scale: tuple[float, ...] | None = None,
    ) -> Primitive:
        """One kernel for all axes."""
        given: Any = {"mode": mode, "align_corners": align_corners, "scale": scale}
        self._check("interpolate", x, output_size=output_size, **given)
        spatial = x.shape[len(x.shape) - len(output_size) :]
        return self._mapped(x, interpolation_maps(spatial, output_size, *given.values()))

    def interpolate_grad(
        self,
        g: Primitive,
        *,
        input_size: Sizes,
        mode: str,
        align_corners: bool = False,
        scale: tuple[float, ...] | None = None,
    ) -> Primitive:
        """The same with the transposed tables."""
        given: Any = {"mode": mode, "align_corners": align_corners, "scale": scale}
        self._check("interpolate_grad", g, input_size=input_size, **given)
        resized = g.shape[len(g.shape) - len(input_size) :]
        maps = interpolation_maps(input_size, resized, *given.values())
        return self._mapped(g, [taps.transposed for taps in maps])

    def avg_pool(
        self, x: Primitive, *, count_include_pad: bool = True, **rule: Unpack[AvgPoolAttributes]
    ) -> Primitive:
        """Sums divided by one number where all windows have one size, else weighted sums."""
        self.check_dtypes("avg_pool", x, floats=True)
        plan = pool_windows(x.shape, **rule)
        maps, divisors = zip(*[_means(axis, count_include_pad) for axis in plan], strict=True)
        return self._mapped(x, maps, math.prod(divisors))

    def avg_pool_grad(
        self,
        g: Primitive,
        *,
        input_size: Sizes,
        count_include_pad: bool = True,
        **rule: Unpack[AvgPoolAttributes],
    ) -> Primitive:
        """The same with the transposed tables."""
        self.check_dtypes("avg_pool_grad", g, floats=True)
        plan = pool_windows(input_size, **rule)
        check_pooled(g.shape, input_size, plan)
        maps, divisors = zip(*[_means(axis, count_include_pad) for axis in plan], strict=True)
        return self._mapped(g, [taps.transposed for taps in maps], math.prod(divisors))

    def adaptive_avg_pool(self, x: Primitive, *, output_size: Sizes) -> Primitive:
        """Windows that cover an axis; a mean where there is one of them."""
        self._check("adaptive_avg_pool", x, output_size=output_size)
        rank, count = len(x.shape), len(output_size)
        if set(output_size) == {1} and math.prod(x.shape):
            return self.ops.mean(x, axis=tuple(range(rank - count, rank)), keepdims=True)
        means = [_adaptive_means(*both) for both in zip(x.shape[-count:], output_size, strict=True)]
        maps, divisors = zip(*means, strict=True)
        return self._mapped(x, maps, math.prod(divisors))

    def adaptive_avg_pool_grad(self, g: Primitive, *, input_size: Sizes) -> Primitive:
        """The same with the transposed tables."""
        self._check("adaptive_avg_pool_grad", g, input_size=input_size)
        pooled = g.shape[len(g.shape) - len(input_size) :]
        means = [_adaptive_means(*both) for both in zip(input_size, pooled, strict=True)]
        maps, divisors = zip(*means, strict=True)
        return self._mapped(g, [taps.transposed for taps in maps], math.prod(divisors))

    def _check(self, name: str, x: Primitive, **attributes: Any) -> None:
        """Raise for operands and attributes that the op refuses."""
        self.check_dtypes(name, x, floats=True)
        self.checked_shape(name, x, **attributes)

    def _mapped(self, x: Primitive, maps: Sequence[AxisMap], divisor: int = 1) -> Primitive:
        """Apply a map along each of the last axes, in one kernel where an output has few taps."""
        launcher = self.launcher
        dtype = launcher.dtype_of(x)
        lead = len(x.shape) - len(maps)
        x = launcher.dense(x)
        counts = [taps.indices.shape[0] for taps in maps]
        most = _MAX_TAPS_AT_ONCE_ON_CPU if launcher.is_cpu else _MAX_TAPS_AT_ONCE
        at_once = math.prod([taps.indices.shape[1] for taps in maps]) <= most
        if at_once and len(maps) <= _KERNEL_AXES:
            none: list[_Map] = [None] * (_KERNEL_AXES - len(maps))
            parts = (math.prod(x.shape[:lead]), *[1] * len(none), *x.shape[lead:])
            out = launcher.new((*x.shape[:lead], *counts), dtype)
            self._weighted_sums(x, out, parts, [*none, *maps], divisor)
            return out
        for number, taps in enumerate(maps):
            axis, shape, is_last = lead + number, x.shape, number == len(maps) - 1
            parts = (math.prod(shape[:axis]), 1, shape[axis], math.prod(shape[axis + 1 :]))
            shape = (*shape[:axis], counts[number], *shape[axis + 1 :])
            out = launcher.new(shape, dtype if is_last else accumulator_dtype(dtype))
            self._weighted_sums(x, out, parts, [None, taps, None], divisor if is_last else 1)
            x = out
        return x

    def _weighted_sums(
        self, x: Primitive, out: Primitive, parts: Shape, maps: Sequence[_Map], divisor: int
    ) -> None:
        """Apply maps along the last three of four axes."""
        launcher = self.launcher
        source, target = launcher.dtype_of(x), launcher.dtype_of(out)
        plan = _plan(parts, tuple(maps), divisor, accumulator_dtype(source))
        if not plan.size:
            return
        tables: list[Primitive | None] = []
        for taps, is_weighted in zip(maps, plan.is_weighted, strict=True):
            found: Sequence[Primitive] = ()
            if taps is not None:
                found = launcher.table(_tables, taps, accumulator_dtype(source), is_weighted)
            tables += (*found, None, None)[:2]
        codes = DTYPE_CODES[source.name], DTYPE_CODES[target.name]
        types = {"SOURCE": codes[0], "TARGET": codes[1]}
        kernel = launcher.shared_kernel(
            "weighted_sums", "resampling.c", c_type_of(source), plan.definitions, types, plan.size
        )
        most = max(1, _MAX_ITEMS // plan.items)
        for start in range(0, parts[0], most):
            n = min(most, parts[0] - start) * plan.items
            x_offset = launcher.offset_of(x) + start * plan.inputs
            offsets = x_offset, start * plan.outputs
            parameters = (n, plan.groups_of_four, *offsets, plan.divisor, *codes, *plan.table)
            launcher.start(kernel, parameters, (x, *tables, out), n)


class _Plan(NamedTuple):
    """What a launch of the kernel needs, beside memory."""

    size: int
    inputs: int
    outputs: int
    items: int
    groups_of_four: int
    divisor: int
    is_weighted: tuple[bool, ...]
    definitions: dict[str, int]
    table: tuple[int, ...]


@functools.lru_cache(maxsize=1024)
def _plan(parts: Shape, maps: tuple[_Map, ...], divisor: int, wide: DType) -> _Plan:
    lengths = parts[1:]
    counts = [
        length if taps is None else taps.indices.shape[0]
        for length, taps in zip(lengths, maps, strict=True)
    ]
    size = parts[0] * math.prod(counts)
    is_small = size < _MIN_OUTPUTS_TO_UNROLL
    numbers = [0 if taps is None else taps.indices.shape[1] for taps in maps]
    is_weighted = [taps is not None and (is_small or taps.weights is not None) for taps in maps]
    definitions: dict[str, int] = {}
    for axis, taps in enumerate(maps):
        few = numbers[axis]
        unrolled = few if 0 < few <= _MAX_UNROLLED_TAPS and not is_small else -1
        definitions[f"K{axis}"] = 0 if taps is None else unrolled
        some = taps is not None and (is_small or taps.present is not None)
        definitions |= {f"SOME{axis}": int(some), f"W{axis}": int(is_weighted[axis])}
    groups_of_four = -(-counts[2] // 4)
    dividers = [divider(number) for number in (counts[0], counts[1], groups_of_four)]
    return _Plan(
        size,
        math.prod(lengths),
        math.prod(counts),
        math.prod(counts[:2]) * groups_of_four,
        groups_of_four,
        signed_scalar_bits(divisor, wide),
        tuple(is_weighted),
        definitions,
        (*lengths, *counts, *numbers, *dividers),
    )


def _tables(axis_map: AxisMap, dtype: DType, is_weighted: bool) -> list[np.ndarray[Any, Any]]:
    """The input indices of each output, -1 for none, and their weights; shape (taps, outputs)."""
    indices = axis_map.indices.astype(np.int32)
    if axis_map.present is not None:
        indices = np.where(axis_map.present, indices, np.int32(-1))
    if not is_weighted:
        return [indices.T]
    weights = np.ones(indices.shape) if axis_map.weights is None else axis_map.weights
    return [indices.T, weights.astype(dtype.numpy).T]


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
    with np.errstate(all="ignore"):  # an axis of length 0 has no means
        weights = np.broadcast_to(1.0 / counts[:, None], sums.indices.shape)
    return AxisMap(sums.length, sums.indices, weights, sums.present), 1
