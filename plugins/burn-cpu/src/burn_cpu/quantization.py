"""Codes and scales of quantized tensors: packed by views of bytes, computed by compiled kernels.

The results are the bits of burn's decompositions, also where NumPy computes.
"""

from __future__ import annotations

import functools
import math
import sys
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
from burn_cpu.base import Array, CpuOps
from burn_cpu.blocks import BLOCK_ELEMENTS, in_blocks
from burn_cpu.compiled import kernels
from burn_cpu.constants import FLOAT32

__all__ = ["MANTISSAS", "QuantizationOps", "checked_shape", "decoded", "runs_of", "swapped"]

_IS_LITTLE: Final = sys.byteorder == "little"
"""Whether the first code of a word is in its first byte."""

MANTISSAS: Final = {"e4m3": 3, "e5m2": 2, "e2m1": 1}
"""Bits of the mantissa of floats of few bits, by their names."""

_LEAST_EXPONENTS: Final = {"e4m3": -6, "e5m2": -14, "e2m1": 0}
"""Exponents of the smallest normal numbers."""

_MIN_RUN: Final = 8
"""Elements in a row with one scale, from which compiled kernels take less time than NumPy."""


class QuantizationOps(CpuOps):
    """Quantization, and its inverse."""

    def pack_values(self, codes: Array, *, scheme: QuantScheme) -> Array:
        """A view of 8-bit codes as words; fewer bits are joined in bytes."""
        if not _IS_LITTLE or codes.dtype != (np.uint8 if scheme.value.is_float else np.int8):
            return self.ops.decomposed("pack_values", codes, scheme=scheme)
        if scheme.per_word == 1:
            return codes
        shape = scheme.values_shape(codes.shape)
        if scheme.logical_shape(shape) != codes.shape:
            raise ValueError(f"codes {codes.shape} of {scheme}")
        axis, bits = scheme.store.axis, scheme.value.bits
        packed = np.ascontiguousarray(_moved(codes, axis, -1)).view(np.uint8)
        if bits < 8:
            fields = packed.reshape(-1)
            packed = np.empty((*packed.shape[:-1], packed.shape[-1] * bits // 8), np.uint8)
            _pack(fields, bits, packed.reshape(-1))
        words = packed.view(scheme.storage_dtype.numpy)
        return np.ascontiguousarray(_moved(words, -1, axis))

    def unpack_values(self, values: Array, *, scheme: QuantScheme) -> Array:
        """The inverse of `pack_values`."""
        if not _IS_LITTLE or values.dtype != scheme.storage_dtype.numpy:
            return self.ops.decomposed("unpack_values", values, scheme=scheme)
        shape = scheme.logical_shape(values.shape)
        scheme.check(shape)
        if scheme.per_word == 1:
            return values
        axis, bits = scheme.store.axis, scheme.value.bits
        native = np.uint8 if scheme.value.is_float else np.int8
        codes = np.ascontiguousarray(_moved(values, axis, -1)).view(native)
        if bits < 8:
            packed = codes.view(np.uint8).reshape(-1)
            codes = np.empty((*codes.shape[:-1], codes.shape[-1] * 8 // bits), native)
            _unpack(packed, bits, codes.reshape(-1))
        return np.ascontiguousarray(_moved(codes, -1, axis))

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
            runs = runs_of(decoded(self.ops, scales, global_scale, scheme, wide), scheme, x.shape)
            if runs is not None:
                return self.pack_values(_quantized(x, runs, scheme, wide, family), scheme=scheme)
        codes = self.ops.decomposed(
            "quantize_values", x, scales, global_scale, scheme=scheme.native
        )
        return self.pack_values(codes, scheme=scheme)

    def quantize_dynamic(self, x: Array, *, scheme: QuantScheme) -> tuple[Array, Array]:
        """Two passes: over magnitudes, and `quantize_values`."""
        family = kernels("codes")
        shape = x.shape
        scheme.check(shape)
        length = scheme.blocks(shape)[-1] if scheme.level.block else min(x.size, BLOCK_ELEMENTS)
        if (
            family is None
            or x.dtype.itemsize > 4
            or scheme.level.is_global
            or not x.size
            or (length < _MIN_RUN and scheme.level.block)
        ):
            return self._quantize_by_steps(x, scheme)
        found = _magnitudes(x, length, family)
        if scheme.level.block:
            found = found.reshape(*shape[:-1], -1)
            for axis, block in enumerate(scheme.blocks(shape)[:-1]):
                if block != 1:
                    whole = found.shape
                    split = (*whole[:axis], whole[axis] // block, block, *whole[axis + 1 :])
                    found = np.maximum.reduce(found.reshape(split), axis=axis + 1)
        else:
            found = np.maximum.reduce(found, keepdims=True)
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
        runs = runs_of(numbers, scheme, shape) if family is not None and _IS_LITTLE else None
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


def _moved(x: Array, source: int, target: int) -> Array:
    """`numpy.moveaxis`, which takes longer than the rest where the axis is there."""
    return x if source == target else np.moveaxis(x, source, target)


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


def runs_of(
    numbers: Array, scheme: QuantScheme, shape: tuple[int, ...]
) -> tuple[Array, int] | None:
    """A scale for each run of elements, and its length; None where runs are short."""
    if not scheme.level.block:
        return numbers.reshape(1), math.prod(shape)
    blocks = scheme.blocks(shape)
    if blocks[-1] < _MIN_RUN:
        return None
    for axis, block in enumerate(blocks[:-1]):
        if block != 1:
            numbers = np.repeat(numbers, block, axis)
    return np.ascontiguousarray(numbers).reshape(-1), blocks[-1]


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


def _pack(codes: Array, bits: int, packed: Array) -> None:
    """Codes of 4 or 2 bits, a byte each, in the bytes that they share."""
    family = kernels("codes")
    if family is not None:
        fields = 8 // bits
        in_blocks(
            lambda start, stop: family.pack(
                codes[start * fields : stop * fields], bits, packed[start:stop]
            ),
            packed.size,
            BLOCK_ELEMENTS,
        )
    else:
        packed[...] = 0
        for field in range(8 // bits):
            part = codes[field :: 8 // bits] & np.uint8((1 << bits) - 1)
            packed |= np.left_shift(part, np.uint8(bits * field), out=part)


def _unpack(packed: Array, bits: int, codes: Array) -> None:
    """The inverse of `_pack`; codes of int8 are signed."""
    family = kernels("codes")
    is_signed = codes.dtype == np.int8
    if family is not None:
        fields = 8 // bits
        in_blocks(
            lambda start, stop: family.unpack(
                packed[start:stop], bits, is_signed, codes[start * fields : stop * fields]
            ),
            packed.size,
            BLOCK_ELEMENTS,
        )
    else:
        right = codes.dtype.type(8 - bits)
        for field in range(8 // bits):
            part = np.left_shift(packed, np.uint8(8 - bits * (field + 1))).view(codes.dtype)
            codes[field :: 8 // bits] = np.right_shift(part, right, out=part)
