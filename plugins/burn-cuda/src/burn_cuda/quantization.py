"""Quantization: numbers to codes and scales, and back, where a run of elements shares a scale.

Codes of other layouts, and floats of few bits other than E4M3, are left to the decompositions.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from burn.plugin_api import (
    DType,
    QuantLevel,
    QuantScheme,
    QuantStore,
    QuantValue,
    ScaleDType,
    Shape,
    divider,
    float32,
    float64,
    uint32,
    uint64,
)
from burn_cuda.base import Array, CudaOps
from burn_cuda.kernels import THREADS, c_type
from burn_cuda.kernels.elementwise import NARROW_LIMIT
from burn_cuda.launcher import LaunchCache

if TYPE_CHECKING:
    from burn_cuda.runtime import Runtime

__all__ = ["QuantizationOps", "code_bits", "is_stored", "run_length", "turned"]

SCALE_DTYPES: Final = (ScaleDType.F32, ScaleDType.F16, ScaleDType.BF16)
"""Scales that kernels read; those of 8 bits are left to the decompositions."""

_PACK_BYTES: Final = 16
_WARP_LANES: Final = 32
_MAX_LANES: Final = 1024
_FEW_PACKS: Final = 4
"""Units of a lane up to which a warp keeps a run, and up to which a block has no more lanes."""

_PACK_COUNTS: Final = (1, 2, 4, 8)
"""Units of a lane that kernels are compiled for."""

_MAX_BLOCKS: Final = 1056
"""Blocks that look for the largest magnitude: eight for each multiprocessor of a large GPU."""


def code_bits(scheme: QuantScheme) -> int:
    """Bits of a code in memory; natively it has 8."""
    return 8 * scheme.storage_dtype.itemsize // scheme.per_word


def is_stored(
    scheme: QuantScheme, values: Array, scales: Array, global_scale: Array | None = None
) -> bool:
    """Whether arrays have the dtypes and shapes of a scheme, and kernels read it."""
    if scheme.scale_dtype not in SCALE_DTYPES or not _is_coded(scheme.value):
        return False
    if (global_scale is not None) is not scheme.level.is_global:
        return False
    if global_scale is not None and (
        global_scale.shape != (1,) or global_scale.dtype != float32.numpy
    ):
        return False
    if values.dtype != scheme.storage_dtype.numpy or len(values.shape) < -scheme.store.axis:
        return False
    shape = scheme.logical_shape(values.shape)
    return (
        _divides(scheme, shape)
        and scales.dtype == scheme.scale_dtype.storage.numpy
        and scales.shape == scheme.scales_shape(shape)
    )


def _is_coded(value: QuantValue) -> bool:
    return not value.is_float or value is QuantValue.E4M3


@functools.lru_cache(maxsize=4096)
def _divides(scheme: QuantScheme, shape: Shape) -> bool:
    """Whether the blocks of a scheme divide a shape."""
    block = scheme.level.block
    return len(block) <= len(shape) and not any(
        number != -1 and length % number
        for length, number in zip(reversed(shape), reversed(block), strict=False)
    )


@functools.lru_cache(maxsize=4096)
def run_length(scheme: QuantScheme, shape: Shape) -> int | None:
    """Number of adjacent elements that share a scale.

    None if a block is no run of them, or codes are packed along another axis than the last.
    """
    if scheme.per_word > 1 and scheme.store.axis != -1:
        return None
    if not scheme.level.block:
        return math.prod(shape)
    run, is_whole = 1, True
    for length, block in zip(reversed(shape), reversed(scheme.blocks(shape)), strict=True):
        if not is_whole and block != 1:
            return None
        run *= block
        is_whole = is_whole and block == length
    return run


@functools.lru_cache(maxsize=1024)
def turned(scheme: QuantScheme) -> QuantScheme:
    """The scheme of a matrix for its transpose."""
    store, level = scheme.store, scheme.level
    if scheme.per_word > 1:
        store = QuantStore(store.kind, {-1: -2, -2: -1}[store.axis])
    if level.block:
        *_, rows, columns = (1, *level.block)
        level = QuantLevel((columns, rows), is_global=level.is_global)
    return replace(scheme, store=store, level=level)


def _unit(run: int, bits: int, x: Array, address: int) -> int | None:
    """Codes that a thread computes: as many as a pack has numbers, or what the run permits."""
    itemsize = x.dtype.itemsize
    least = max(1, 8 // bits)
    for unit in (max(_PACK_BYTES // itemsize, 32 // bits), 32 // bits, least):
        aligned = not (
            x.address % min(unit * itemsize, _PACK_BYTES) or address % (unit * bits // 8)
        )
        if unit % least == 0 and run % unit == 0 and aligned:
            return unit
    return None


class _RunLaunch(NamedTuple):
    """The launch of a kernel for codes and scales.

    Attributes
    ----------
    values, scales : tuple
        Shape and dtype of both.
    first : tuple or None
        The kernel before it that looks for the largest magnitudes, shape and dtype of these, and
        the number of units.
    """

    kernel: Callable[..., None]
    grid: tuple[int]
    block: tuple[int]
    numbers: tuple[Any, ...]
    values: tuple[Shape, Any]
    scales: tuple[Shape, Any]
    first: tuple[Callable[..., None], tuple[Shape, Any], int] | None


class QuantizationOps(CudaOps):
    """Codes of numbers, and numbers of codes."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self._run_launches = LaunchCache()

    def quantize_values(
        self, x: Array, scales: Array, global_scale: Array | None, *, scheme: QuantScheme
    ) -> Array:
        """One kernel."""
        launcher = self.launcher
        values = launcher.empty(*self._values_of(scheme, x.shape))
        if is_stored(scheme, values, scales, global_scale) and self._is_quantized(scheme, x):
            x = launcher.dense(x)
            if self._convert("quantize", scheme, x, values, scales, global_scale):
                return values
        return self.ops.decomposed("quantize_values", x, scales, global_scale, scheme=scheme)

    def dequantize_values(
        self,
        values: Array,
        scales: Array,
        global_scale: Array | None,
        *,
        scheme: QuantScheme,
        dtype: DType,
    ) -> Array:
        """One kernel; a matrix whose columns are stored is restored as its transpose."""
        launcher = self.launcher
        if is_stored(scheme, values, scales, global_scale) and dtype.is_float:
            shape = scheme.logical_shape(values.shape)
            if run_length(scheme, shape) is None and len(shape) == len(scales.shape) == 2:
                there = turned(scheme)
                if run_length(there, shape[::-1]) is not None:
                    return self.dequantize_values(
                        values.transpose(),
                        scales.transpose(),
                        global_scale,
                        scheme=there,
                        dtype=dtype,
                    ).transpose()
            values = launcher.dense(values)
            out = launcher.empty(shape, dtype.numpy)
            if self._convert("dequantize", scheme, out, values, scales, global_scale):
                return out
        return self.ops.decomposed(
            "dequantize_values", values, scales, global_scale, scheme=scheme, dtype=dtype
        )

    def quantize_dynamic(self, x: Array, *, scheme: QuantScheme) -> tuple[Array, Array]:
        """One kernel for runs that fit into registers; two for one scale of all."""
        launcher = self.launcher
        x = launcher.dense(x)
        key = (scheme.text, x.dtype, x.shape, x.address % _PACK_BYTES)
        try:
            plan = self._run_launches[key]
        except KeyError:
            plan = self._run_launch(scheme, x)
            self._run_launches.store(key, plan)
        if plan is None:
            found: tuple[Array, Array] = self.ops.decomposed("quantize_dynamic", x, scheme=scheme)
            return found
        kernel, grid, block, numbers, values, scales, first = plan
        values, scales = launcher.empty(*values), launcher.empty(*scales)
        if first is None:
            kernel(grid, block, (x, values, scales, *numbers))
            return values, scales
        search, parts, units = first
        parts = launcher.empty(*parts)
        search(grid, block, (x, parts, units))
        kernel(grid, block, (x, parts, values, scales, *numbers))
        return values, scales

    def _run_launch(self, scheme: QuantScheme, x: Array) -> _RunLaunch | None:
        """How codes and scales of dense numbers are computed; None for the decomposition."""
        is_read = scheme.scale_dtype in SCALE_DTYPES and not scheme.level.is_global
        if not (is_read and self._is_quantized(scheme, x) and _divides(scheme, x.shape)):
            return None
        values = self._values_of(scheme, x.shape)
        run = run_length(scheme, x.shape) if x.size else None
        unit = None if run is None else _unit(run, code_bits(scheme), x, 0)
        if run is None or unit is None:
            return None
        count = math.prod(scheme.scales_shape(x.shape))
        scales = scheme.scales_shape(x.shape), scheme.scale_dtype.storage.numpy
        low, high = map(float, scheme.value.range)
        numbers = (low, high, (high - low) / 2.0)
        units = run // unit
        if count == 1 and units > _WARP_LANES * _FEW_PACKS:
            is_wide = x.dtype.itemsize == float64.itemsize
            blocks = min(-(-units // (_FEW_PACKS * THREADS)), _MAX_BLOCKS)
            parts = (blocks,), (uint64 if is_wide else uint32).numpy
            search = self.early(
                self._codes_kernel("largest_magnitudes", scheme, x, unit, "quantize_all")
            )
            kernel = self.early(self._codes_kernel("quantize_all", scheme, x, unit))
            given = (*numbers, units, blocks)
            first = search, parts, units
            return _RunLaunch(kernel, (blocks,), (THREADS,), given, values, scales, first)
        lanes = 1
        while lanes < _MAX_LANES and lanes * _FEW_PACKS < units:
            lanes *= 2
        needed = -(-units // lanes)
        packs = next((item for item in _PACK_COUNTS if item >= needed), None)
        if packs is None:
            return None
        kernel = self._codes_kernel("quantize_runs", scheme, x, unit, LANES=lanes, PACKS=packs)
        block = max(lanes, THREADS) if lanes <= _WARP_LANES else lanes
        grid = (-(-count * lanes // block),)
        given = (*numbers, count, units)
        return _RunLaunch(self.early(kernel), grid, (block,), given, values, scales, None)

    def _values_of(self, scheme: QuantScheme, shape: Shape) -> tuple[Shape, Any]:
        """Shape and dtype of the codes of a tensor of a shape that its words divide."""
        scheme.check(shape)
        return scheme.values_shape(shape), scheme.storage_dtype.numpy

    def _is_quantized(self, scheme: QuantScheme, x: Array) -> bool:
        """Whether kernels quantize numbers of this dtype, which for E4M3 they do in float32."""
        dtype = self.launcher.dtypes[x.dtype]
        return (
            _is_coded(scheme.value)
            and dtype.is_float
            and not (scheme.value.is_float and dtype is float64)
        )

    def _convert(
        self,
        name: str,
        scheme: QuantScheme,
        x: Array,
        values: Array,
        scales: Array,
        global_scale: Array | None,
    ) -> bool:
        """Write codes of dense numbers, or numbers of dense codes; whether a kernel does that."""
        shape, bits = x.shape, code_bits(scheme)
        run = run_length(scheme, shape)
        unit = None if run is None else _unit(max(run, 1), bits, x, values.address)
        if run is None or unit is None or x.size // unit >= NARROW_LIMIT:
            return False
        if not x.size:
            return True
        launcher = self.launcher
        kernel = self._codes_kernel(name, scheme, x, unit)
        overall = 0 if global_scale is None else global_scale
        operands = (launcher.dense(scales), overall)
        units, steps = x.size // unit, divider(run // unit)
        if name == "quantize":
            low, high = map(float, scheme.value.range)
            launcher.run(kernel, units, x, *operands, values, low, high, units, steps)
        else:
            launcher.run(kernel, units, values, *operands, x, units, steps)
        return True

    def _codes_kernel(
        self,
        name: str,
        scheme: QuantScheme,
        x: Array,
        unit: int,
        family: str | None = None,
        **shape: int,
    ) -> Any:
        definitions: dict[str, str | int] = {
            "X": c_type(self.launcher.dtypes[x.dtype]),
            "S": c_type(scheme.scale_dtype.storage),
            "CODE": int(scheme.value.is_float),
            "BITS": code_bits(scheme),
            "UNIT": unit,
            "LANES": _WARP_LANES,
            "PACKS": 1,
            **shape,
            f"HAS_{family or name}": 1,
        }
        return self.launcher.kernel(name, "quantization.cu", **definitions)
