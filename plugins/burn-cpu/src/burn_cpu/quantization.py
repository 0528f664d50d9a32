"""Codes and scales of quantized tensors, by compiled kernels in blocks that stay in the cache.

The results are the bits of burn's decompositions, also where NumPy computes.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any, Final

import numpy as np

from burn.plugin_api import (
    DType,
    OpTable,
    QuantScheme,
    QuantStore,
    QuantValue,
    ScaleDType,
    decode_scales,
    float32,
    float64,
    split_shapes,
    uint8,
)
from burn_cpu.base import Array
from burn_cpu.blocks import BLOCK_ELEMENTS, in_blocks
from burn_cpu.compiled import kernels
from burn_cpu.constants import FLOAT32
from burn_cpu.packing import IS_LITTLE_ENDIAN, PackingOps

__all__ = ["MANTISSAS", "QuantizationOps", "checked_shape", "decoded", "runs_of", "swapped"]

MANTISSAS: Final = {"e4m3": 3, "e5m2": 2, "e2m1": 1}
"""Bits of the mantissa of floats of few bits, by their names."""

_LEAST_EXPONENTS: Final = {"e4m3": -6, "e5m2": -14, "e2m1": 0}
"""Exponents of the smallest normal numbers."""

_MAX_BLOCK_AXES: Final = 5
"""The most axes that a block has."""

_MIN_RUN: Final = 8
"""Elements in a row with one scale, from which compiled kernels take less time than NumPy."""


class QuantizationOps(PackingOps):
    """Quantization, and its inverse."""

    def quantize_values(
        self, x: Array, scales: Array, global_scale: Array | None, *, scheme: QuantScheme
    ) -> Array:
        """One pass over blocks that stay in the cache."""
        scheme.check(x.shape)
        checked_shape(scales, global_scale, x.shape, scheme)
        family = kernels("codes")
        is_float = scheme.value.is_float
        if family is not None and x.size and not (is_float and x.dtype.itemsize > 4):
            wide = np.dtype(np.float64) if x.dtype.itemsize > 4 else FLOAT32
            numbers = decoded(self.ops, scales, global_scale, scheme, wide)
            runs = runs_of(numbers, scheme, x.shape)
            if runs is not None and _take_every_code(numbers, scheme):
                return self.pack_values(_quantized(x, runs, scheme, wide, family), scheme=scheme)
        codes = self._quantized_by_parts(x, scales, global_scale, scheme.native)
        return self.pack_values(codes, scheme=scheme)

    def _quantized_by_parts(
        self, x: Array, scales: Array, global_scale: Array | None, scheme: QuantScheme
    ) -> Array:
        """Codes, a byte each, by the decomposition of parts that stay in the cache."""
        if x.size <= BLOCK_ELEMENTS or x.ndim > _MAX_BLOCK_AXES:
            return self.ops.decomposed("quantize_values", x, scales, global_scale, scheme=scheme)
        count, unit = len(x), 1
        is_shared = scales.ndim != x.ndim or len(scales) == 1
        if scheme.level.block:
            unit, *rest = scheme.blocks(x.shape)
            if is_shared:
                unit = 1
                scheme = scheme.with_level(replace(scheme.level, block=(-1, *rest)))
        codes = np.empty(x.shape, np.uint8 if scheme.value.is_float else np.int8)

        def work(start: int, stop: int) -> None:
            own = scales if is_shared else scales[start // unit : stop // unit]
            codes[start:stop] = self.ops.decomposed(
                "quantize_values", x[start:stop], own, global_scale, scheme=scheme
            )

        in_blocks(work, count, max(1, BLOCK_ELEMENTS * count // (x.size * unit)) * unit)
        return codes

    def quantize_dynamic(self, x: Array, *, scheme: QuantScheme) -> tuple[Array, Array]:
        """Two passes: over magnitudes, and `quantize_values`."""
        family = kernels("codes")
        shape = x.shape
        scheme.check(shape)
        length, first = _run(scheme, shape)
        is_one = length == x.size
        if (
            family is None
            or x.dtype.itemsize > 4
            or scheme.level.is_global
            or not x.size
            or (length < _MIN_RUN and not is_one)
        ):
            return self._quantize_by_steps(x, scheme)
        found = _magnitudes(x, min(length, BLOCK_ELEMENTS) if is_one else length, family)
        if is_one:
            found = np.maximum.reduce(found).reshape(scheme.scales_shape(shape))
        else:
            blocks = scheme.blocks(shape)
            found = found.reshape(*shape[:first], -1)
            for axis, block in enumerate(blocks[:first]):
                if block != 1:
                    whole = found.shape
                    split = (*whole[:axis], whole[axis] // block, block, *whole[axis + 1 :])
                    found = np.maximum.reduce(found.reshape(split), axis=axis + 1)
            found = found.reshape(scheme.scales_shape(shape))
        low, high = scheme.value.range
        found /= np.float32((high - low) / 2.0)
        scales = self.ops.round_up_scales(found, scheme=scheme)
        return self.quantize_values(x, scales, None, scheme=scheme), scales

    def _quantize_by_steps(self, x: Array, scheme: QuantScheme) -> tuple[Array, Array]:
        codes, scales = self.ops.decomposed("quantize_dynamic", x, scheme=scheme.native)
        return self.pack_values(codes, scheme=scheme), scales

    def dequantize_values(
        self,
        values: Array,
        scales: Array,
        global_scale: Array | None,
        *,
        scheme: QuantScheme,
        dtype: DType,
    ) -> Array:
        """One pass over blocks that stay in the cache, or by tables and views."""
        shape = scheme.logical_shape(values.shape)
        scheme.check(shape)
        checked_shape(scales, global_scale, shape, scheme)
        if values.dtype != scheme.storage_dtype.numpy or not dtype.is_float:
            raise ValueError(f"codes of {values.dtype}, to be {dtype}")
        if _is_turned(values) or (scheme.per_word > 1 and scheme.store.axis == -2):
            turned = np.ascontiguousarray(values.swapaxes(-1, -2))
            own = scales.swapaxes(-1, -2) if scales.ndim == values.ndim else scales
            restored = self.dequantize_values(
                turned, own, global_scale, scheme=swapped(scheme), dtype=dtype
            )
            return restored.swapaxes(-1, -2)
        wide = np.dtype(np.float64) if dtype is float64 else FLOAT32
        numbers = decoded(self.ops, scales, global_scale, scheme, wide)
        target = np.dtype(dtype.numpy)
        family = kernels("codes")
        runs = runs_of(numbers, scheme, shape) if family is not None and IS_LITTLE_ENDIAN else None
        if runs is not None and values.size:
            by_bytes = scheme.per_word == 1 or scheme.store.axis == -1
            source = values if by_bytes else self.unpack_values(values, scheme=scheme)
            bits = 8 if not by_bytes or scheme.store.kind == "native" else scheme.value.bits
            return _restored(source, bits, runs, scheme, wide, target, family).reshape(shape)
        codes = self.unpack_values(values, scheme=scheme)
        if scheme.value.is_float:
            restored = _codes_table(self.ops, scheme.value)[codes].astype(wide, copy=False)
        else:
            restored = codes.astype(wide)
        restored = np.asarray(restored)  # of no axes they are NumPy's scalars
        split, ones, _ = split_shapes(scheme, shape)
        blocks = restored.reshape(split)
        np.multiply(blocks, numbers.reshape(ones), out=blocks)
        return blocks.reshape(shape).astype(target, copy=False)


def _take_every_code(scales: Array, scheme: QuantScheme) -> bool:
    """Whether no product of a scale and a code is infinite: of others the decomposition sees."""
    low, high = scheme.value.range
    return bool(np.isfinite(np.fmax.reduce(scales, axis=None) * max(-low, high)))


def _is_turned(values: Array) -> bool:
    """Whether elements lie in a row only if the last two axes are swapped."""
    return bool(
        values.ndim > 1
        and not values.flags.c_contiguous
        and values.swapaxes(-1, -2).flags.c_contiguous
    )


@functools.lru_cache(maxsize=256)
def swapped(scheme: QuantScheme) -> QuantScheme:
    """The scheme of a tensor whose last two axes are swapped."""
    level, store = scheme.level, scheme.store
    if level.block:
        block = (1, *level.block)[-max(2, len(level.block)) :]
        level = replace(level, block=(*block[:-2], block[-1], block[-2]))
    if store.axis >= -2 and store.kind != "native":
        store = replace(store, axis=-3 - store.axis)
    return scheme.with_level(level).with_store(store)


def checked_shape(
    scales: Array, global_scale: Array | None, shape: tuple[int, ...], scheme: QuantScheme
) -> tuple[int, ...]:
    """The shape of a tensor, whose scales have to be those of its scheme."""
    if (
        scales.shape != scheme.scales_shape(shape)
        or scales.dtype != scheme.scale_dtype.storage.numpy
        or (global_scale is not None) is not scheme.level.is_global
        or (global_scale is not None and global_scale.shape != (1,))
    ):
        raise ValueError(f"scales {scales.shape} of {scales.dtype} for {shape} of {scheme}")
    return shape


@functools.cache
def _codes_table(ops: OpTable, value: QuantValue) -> Array:
    """The float32 numbers of all codes of floats."""
    scheme = QuantScheme(value, QuantStore.NATIVE)
    operands = np.arange(1 << value.bits, dtype=np.uint8), np.ones(1, np.float32), None
    with np.errstate(all="ignore"):
        return ops.decomposed("dequantize_values", *operands, scheme=scheme, dtype=float32)


@functools.cache
def _scales_table(ops: OpTable, kind: ScaleDType) -> Array:
    """The float32 numbers of all scales of 8 bits."""
    scheme = QuantScheme(scale_dtype=kind)
    with np.errstate(all="ignore"):
        return decode_scales(ops, np.arange(256, dtype=np.uint8), None, scheme, float32)


def decoded(
    ops: OpTable, scales: Array, global_scale: Array | None, scheme: QuantScheme, wide: Any
) -> Array:
    """Scales as floats, times the global one: `burn.plugin_api.decode_scales` by a table."""
    kind = scheme.scale_dtype
    if kind.storage is uint8:
        scales = _scales_table(ops, kind)[scales]
    found = scales.astype(wide, copy=False)
    return found if global_scale is None else found * global_scale.astype(wide)


def _run(scheme: QuantScheme, shape: tuple[int, ...]) -> tuple[int, int]:
    """The length of runs, and the first of the axes that they extend over."""
    length, axis = 1, len(shape)
    for block in reversed(scheme.blocks(shape)):
        axis -= 1
        length *= block
        if block != shape[axis]:
            break
    return length, max(axis, 0)


def runs_of(
    numbers: Array, scheme: QuantScheme, shape: tuple[int, ...]
) -> tuple[Array, int] | None:
    """A scale for each run of elements, and its length; None where runs are short."""
    length, first = _run(scheme, shape)
    if numbers.size == 1:
        return numbers.reshape(1), length
    if length < _MIN_RUN:
        return None
    for axis, block in enumerate(scheme.blocks(shape)[:first]):
        if block != 1:
            numbers = np.repeat(numbers, block, axis)
    return np.ascontiguousarray(numbers).reshape(-1), length


def _parts(scales: Array, length: int) -> int:
    """Elements of a block of whole runs, and of whole bytes."""
    if len(scales) == 1:
        return BLOCK_ELEMENTS
    return max(1, BLOCK_ELEMENTS // (4 * length)) * 4 * length


def _quantized(
    x: Array, runs: tuple[Array, int], scheme: QuantScheme, wide: Any, family: Any
) -> Array:
    """Codes, a byte each."""
    scales, length = runs
    is_float, (low, high) = scheme.value.is_float, scheme.value.range
    codes = np.empty(x.shape, np.uint8 if is_float else np.int8)
    source, target = x.reshape(-1), codes.reshape(-1)

    def work(start: int, stop: int) -> None:
        numbers = np.ascontiguousarray(source[start:stop], wide)
        own, run = _own_runs(scales, length, start, stop)
        if is_float:
            name = scheme.value.value
            family.encode_floats(
                numbers, own, run, MANTISSAS[name], _LEAST_EXPONENTS[name], high, target[start:stop]
            )
        else:
            family.encode_integers(numbers, own, run, float(low), float(high), target[start:stop])

    in_blocks(work, source.size, _parts(scales, length))
    return codes


def _own_runs(scales: Array, length: int, start: int, stop: int) -> tuple[Array, int]:
    """The scales of a part of the elements, and the length of a run there."""
    if len(scales) == 1:
        return scales, stop - start
    return scales[start // length : stop // length], length


def _restored(
    values: Array,
    bits: int,
    runs: tuple[Array, int],
    scheme: QuantScheme,
    wide: Any,
    target: Any,
    family: Any,
) -> Array:
    """Numbers of codes of so many bits in a row of bytes, on one axis."""
    scales, length = runs
    is_float = scheme.value.is_float
    kind = np.uint8 if is_float else np.int8
    stored = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    result = np.empty(stored.size * 8 // bits, target)

    def work(start: int, stop: int) -> None:
        codes: Array = stored[start * bits // 8 : stop * bits // 8]
        if bits < 8:
            packed, codes = codes, np.empty(stop - start, kind)
            family.unpack(packed, bits, not is_float, codes)
        part = result[start:stop]
        out = part if target == wide else np.empty(part.shape, wide)
        if is_float:
            numbers = np.empty(part.shape, np.float32)
            family.decode_floats(codes, MANTISSAS[scheme.value.value], numbers)
            codes = numbers
        family.restore(
            codes.view(kind) if not is_float else codes,
            *_own_runs(scales, length, start, stop),
            out,
        )
        if out is not part:
            part[...] = out

    in_blocks(work, result.size, _parts(scales, length))
    return result


def _magnitudes(x: Array, length: int, family: Any) -> Array:
    """The largest magnitudes of runs."""
    found = np.empty(-(-x.size // length), np.float32)
    source = x.reshape(-1)
    step = max(1, BLOCK_ELEMENTS // length) * length

    def work(start: int, stop: int) -> None:
        numbers = np.ascontiguousarray(source[start:stop], np.float32)
        family.magnitudes(numbers, length, found[start // length : -(-stop // length)])

    in_blocks(work, source.size, step)
    return found
