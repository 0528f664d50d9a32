"""Products with quantized weights: compiled for few rows; else BLAS with a part of the weight.

The weight is never restored as a whole: its codes are read once, and parts of it stay in the cache.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from burn.plugin_api import DType, OpTable, QuantScheme, float32, float64
from burn_cpu.base import Array
from burn_cpu.blocks import in_blocks
from burn_cpu.compiled import kernels
from burn_cpu.constants import FLOAT32
from burn_cpu.packing import IS_LITTLE_ENDIAN
from burn_cpu.quantization import (
    MANTISSAS,
    QuantizationOps,
    checked_shape,
    decoded,
    runs_of,
    swapped,
)
from burn_cpu.threads import in_parallel, shares, thread_count

__all__ = ["QuantizedProductOps"]

_PANEL_ELEMENTS: Final = 1 << 19
"""Elements of a part of the weight, as floats: 2 MiB of float32."""

_MIN_CODES_FOR_THREADS: Final = 1 << 18
"""Codes of a weight whose product with a row takes as long as it takes to start a thread."""

_MIN_COLUMNS: Final = 64
"""Columns of a part of a product: as many as a tile, and more."""

_Quantized: TypeAlias = tuple[Array, Array, QuantScheme]
"""Codes, scales and the scheme of a tensor."""

_SCALE_MANTISSAS: Final = {"float32": 23, "float16": 10, "bfloat16": 7, "ue4m3": 3, "ue8m0": 0}
"""Bits of the mantissa of scales, by which compiled kernels know them."""


class QuantizedProductOps(QuantizationOps):
    """Products with quantized weights."""

    def quantized_linear(
        self,
        x: Array,
        values: Array,
        scales: Array,
        global_scale: Array | None,
        bias: Array | None,
        *,
        scheme: QuantScheme,
        transposed: bool = False,
    ) -> Array:
        """Products with the codes of each column of the weight, which lie in a row."""
        shape = _weight_shape(
            scheme, transposed, values.shape, values.dtype, scales.shape, scales.dtype,
            None if global_scale is None else global_scale.shape,
        )  # fmt: skip
        values, scales, scheme = _by_lines(values, scales, scheme, transposed=transposed)
        if not x.ndim or x.shape[-1] != shape[1] or (bias is not None and bias.shape != shape[:1]):
            raise ValueError(f"x {x.shape}, weight {shape}")
        wide = np.dtype(np.float64) if x.dtype.itemsize > 4 else FLOAT32
        result_shape = (*x.shape[:-1], shape[0])
        output = None
        if not x.size or not values.size:
            output = np.zeros((math.prod(x.shape[:-1]), shape[0]), wide)
        else:
            rows = x.reshape(-1, shape[1]).astype(wide, copy=False)
            weight = values, scales, global_scale
            if wide is FLOAT32:
                output = _few_rows(self.ops, rows, *weight, scheme)
            if output is None:
                output = self._with_panels(rows, *weight, scheme)
        if bias is not None:
            output += bias
        return output.reshape(result_shape).astype(x.dtype, copy=False)

    def _with_panels(
        self,
        rows: Array,
        values: Array,
        scales: Array,
        global_scale: Array | None,
        scheme: QuantScheme,
    ) -> Array:
        """Products by BLAS with some lines of the weight at a time."""
        count, length = scheme.logical_shape(values.shape)
        block = scheme.blocks((count, length))[0] if scheme.level.block else 1
        packed = scheme.per_word if scheme.per_word > 1 and scheme.store.axis == -2 else 1
        unit = math.lcm(block, packed)
        output = np.empty((len(rows), count), rows.dtype)
        dtype = float64 if rows.dtype.itemsize > 4 else float32
        is_turned = values.T.flags.c_contiguous

        def work(start: int, stop: int) -> None:
            lines, own = values[start // packed : stop // packed], scales
            if is_turned:  # copied as they lie in memory
                lines = np.ascontiguousarray(lines.T).T
            if scheme.level.block:
                own = scales[start // block : -(-stop // block)]
            panel = self.dequantize_values(lines, own, global_scale, scheme=scheme, dtype=dtype)
            np.matmul(rows, panel.T, out=output[:, start:stop])

        in_blocks(work, count, max(1, _PANEL_ELEMENTS // (length * unit)) * unit)
        return output

    def quantized_product(
        self,
        a_values: Array,
        a_scales: Array,
        b_values: Array,
        b_scales: Array,
        bias: Array | None,
        *,
        a_scheme: QuantScheme,
        b_scheme: QuantScheme,
        dtype: DType,
        transposed: bool = False,
    ) -> Array:
        """Sums of integers; where scales or codes are no such, the first operand as floats."""
        if not dtype.is_float:
            raise ValueError(f"a product in {dtype}")
        shape = a_scheme.logical_shape(a_values.shape)
        a_scheme.check(shape)
        checked_shape(a_scales, None, shape, a_scheme)
        output = self._integer_product(
            (a_values, a_scales, a_scheme),
            _by_lines(b_values, b_scales, b_scheme, transposed=transposed),
            np.dtype(np.float64) if dtype is float64 else FLOAT32,
        )
        if output is not None and (bias is None or bias.shape == output.shape[-1:]):
            if bias is not None:
                output += bias
            return output.astype(dtype.numpy, copy=False)
        wide = float64 if dtype is float64 else float32
        x = self.dequantize_values(a_values, a_scales, None, scheme=a_scheme, dtype=wide)
        if bias is not None:
            bias = bias.astype(wide.numpy, copy=False)
        product = self.quantized_linear(
            x, b_values, b_scales, None, bias, scheme=b_scheme, transposed=transposed
        )
        return product.astype(dtype.numpy, copy=False)

    def _integer_product(self, a: _Quantized, b: _Quantized, wide: Any) -> Array | None:
        """The product of integers with a scale for each row of both; None of any others."""
        family = kernels("integers")
        if family is None or not family.HAS_INSTRUCTIONS:
            return None
        shapes = [scheme.logical_shape(values.shape) for values, _, scheme in (a, b)]
        if len(shapes[1]) != 2 or not shapes[0] or shapes[0][-1] != shapes[1][1]:
            return None
        checked_shape(b[1], None, shapes[1], b[2])
        count, length = shapes[1]
        if count < 4 or not 0 < length <= family.MAX_LENGTH or length % family.STEP:
            return None
        codes, factors = [], []
        for (values, scales, scheme), shape in zip((a, b), shapes, strict=True):
            own = decoded(self.ops, scales, None, scheme, np.dtype(np.float64))
            runs = runs_of(own, scheme, shape)
            is_tensor = not scheme.level.block
            if scheme.value.is_float or runs is None or not (is_tensor or runs[1] == length):
                return None
            lines = self.unpack_values(values, scheme=scheme).reshape(-1, length)
            codes.append(np.ascontiguousarray(lines))
            factors.append(np.repeat(runs[0], len(lines)) if is_tensor else runs[0])
        x, y = family.offset_codes(codes[0]), codes[1].view(np.uint8).reshape(-1)
        output = np.empty((*shapes[0][:-1], count), wide)
        arguments = x, factors[0], y, factors[1], length, output.reshape(-1)
        _in_columns(family.products, arguments, count, x.size + y.size)
        return output


@functools.lru_cache(maxsize=1024)
def _blocks(scheme: QuantScheme, values: tuple[int, ...]) -> tuple[int, int, int, int]:
    """The lengths of both axes of a weight, and those of its blocks."""
    count, length = scheme.logical_shape(values)
    height, width = scheme.blocks((count, length)) if scheme.level.block else (count, length)
    return count, length, height, width


@functools.lru_cache(maxsize=1024)
def _weight_shape(
    scheme: QuantScheme,
    transposed: bool,
    values: tuple[int, ...],
    dtype: Any,
    scales: tuple[int, ...],
    scale_dtype: Any,
    global_scale: tuple[int, ...] | None,
) -> tuple[int, int]:
    """The shape (out, in) of a weight, whose codes and scales are checked by shape and dtype."""
    shape = scheme.logical_shape(values)
    scheme.check(shape)
    if (
        len(shape) != 2
        or dtype != scheme.storage_dtype.numpy
        or scales != scheme.scales_shape(shape)
        or scale_dtype != scheme.scale_dtype.storage.numpy
        or global_scale != ((1,) if scheme.level.is_global else None)
    ):
        raise ValueError(f"codes {values} of {dtype}, scales {scales} of {scale_dtype}: {scheme}")
    return shape if transposed else (shape[1], shape[0])


def _by_lines(values: Array, scales: Array, scheme: QuantScheme, *, transposed: bool) -> _Quantized:
    """A weight whose columns are lines: of shape (out, in)."""
    if transposed or values.ndim != 2:
        return values, scales, scheme
    return values.T, scales.T if scales.ndim == 2 else scales, swapped(scheme)


def _in_columns(kernel: Any, arguments: Sequence[Any], count: int, codes: int) -> None:
    """Call ``kernel(*arguments, first, last)`` for parts of so many columns, on threads."""

    def work(part: slice) -> None:
        kernel(*arguments, part.start, part.stop)

    if codes < _MIN_CODES_FOR_THREADS:
        kernel(*arguments, 0, count)
        return
    in_parallel(work, shares(count, min(thread_count(), count // _MIN_COLUMNS)))


def _stored(values: Array, scheme: QuantScheme) -> tuple[Array, int, int] | None:
    """Codes in a row of bytes, and the bits of a code and of its mantissa; None if they are not."""
    bits = scheme.value.bits
    if scheme.store.kind == "native":
        if scheme.value.value == "e2m1":
            return None
        bits = 8
    elif scheme.per_word > 1 and scheme.store.axis != -1:
        return None
    if not IS_LITTLE_ENDIAN or not values.flags.c_contiguous:
        return None
    return values.reshape(-1).view(np.uint8), bits, MANTISSAS.get(scheme.value.value, 0)


def _few_rows(
    ops: OpTable,
    rows: Array,
    values: Array,
    scales: Array,
    global_scale: Array | None,
    scheme: QuantScheme,
) -> Array | None:
    """The product by a compiled kernel; None where there is none, or where it is not finite.

    Kernels multiply sums of a block by its scale, so they may overflow where products with restored
    numbers do not.
    """
    if values.flags.c_contiguous:
        output = _with_lines(rows, values, scales, scheme)
    else:
        own = scales.T if scales.ndim == 2 else scales
        output = _with_columns(ops, rows, values.T, own, swapped(scheme))
    if output is None:
        return None
    if global_scale is not None:
        output *= global_scale
    return output if np.isfinite(output).all() else None


def _with_lines(rows: Array, values: Array, scales: Array, scheme: QuantScheme) -> Array | None:
    """The product with lines of codes, a line for each column."""
    family = kernels("quantized")
    stored = _stored(values, scheme)
    if family is None or stored is None or len(rows) > family.MAX_ROWS:
        return None
    codes, bits, mantissa = stored
    count, length, height, width = _blocks(scheme, values.shape)
    form = family.format_of(bits, mantissa, width)
    if form is None:
        return None
    by_line = scales.reshape(-1, length // width)
    if height != 1:
        by_line = np.repeat(by_line, height, 0)
    scale_bits = np.ascontiguousarray(by_line).reshape(-1)
    scale_bits = scale_bits.view(f"u{scale_bits.itemsize}")
    mantissa = _SCALE_MANTISSAS[scheme.scale_dtype.value]
    output = np.empty((len(rows), count), np.float32)
    for first in range(0, len(rows), family.ROWS):
        x = family.arranged(rows[first : first + family.ROWS], form)
        padded = x.size // length
        target = output[first : first + family.ROWS]
        result = target if padded == len(target) else np.empty((padded, count), np.float32)
        kernel = family.product(form, padded, count, width * bits // 8)
        arguments = codes, length * bits // 8, scale_bits, mantissa, width * bits // 8, x
        _in_columns(kernel, (*arguments, result.reshape(-1)), count, codes.size)
        if result is not target:
            target[...] = result[: len(target)]
    return output


def _with_columns(
    ops: OpTable, rows: Array, values: Array, scales: Array, scheme: QuantScheme
) -> Array | None:
    """The product with lines of codes, a line for each element of a row."""
    family, formats = kernels("columns"), kernels("quantized")
    stored = _stored(values, scheme)
    if family is None or formats is None or stored is None or len(rows) > family.MAX_ROWS:
        return None
    codes, bits, mantissa = stored
    count, width = scheme.logical_shape(values.shape)
    height, length = scheme.blocks((count, width)) if scheme.level.block else (count, width)
    is_scaled = height != count and length != width
    form = formats.format_of(bits, mantissa, length if is_scaled else width)
    if form is None or count % family.LINES:
        return None
    numbers = decoded(ops, scales, None, scheme, FLOAT32).reshape(-1, width // length)
    if height != count:
        numbers = np.repeat(numbers, height, 0)
        if not is_scaled:
            rows = rows * numbers[:, 0]
    block = (length if is_scaled else form.lanes * 8 // bits) * bits // 8
    line = width * bits // 8
    arguments = codes, line, numbers.reshape(-1), line // block, block // form.lanes
    output = np.empty((len(rows), width), np.float32)
    for first in range(0, len(rows), family.ROWS):
        own = rows[first : first + family.ROWS]
        padded = 1 << (len(own) - 1).bit_length()
        x = np.zeros((padded, count), np.float32)
        x[: len(own)] = own
        result = np.zeros((padded, width), np.float32)
        kernel = family.product(form, padded, is_scaled=is_scaled)
        operands = *arguments, x.reshape(-1), result.reshape(-1)
        _in_columns(kernel, operands, line // block, codes.size)
        output[first : first + len(own)] = family.in_order(result, form)[: len(own)]
    if height == count:
        output *= np.repeat(numbers[0], length)
    return output
