"""Products of quantized tensors on tensor cores: int8, and E4M3 where the GPU has it."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from burn.plugin_api import (
    DType,
    QuantScheme,
    QuantValue,
    Shape,
    bfloat16,
    divider,
    float16,
    float32,
    int32,
)
from burn_cuda.base import Array
from burn_cuda.kernels import THREADS, c_type
from burn_cuda.kernels.elementwise import NARROW_LIMIT
from burn_cuda.quantization import code_bits, is_stored, run_length
from burn_cuda.quantized_linear import TENSOR_CORE_CAPABILITY, QuantizedLinearOps

__all__ = ["QuantizedProductOps"]

_FLOAT8_CAPABILITY: Final = (8, 9)
"""Compute capability from which on tensor cores multiply E4M3."""

_FEW_CODED_ROWS: Final = 8
"""Rows up to which a product of codes is one of numbers with codes."""

_DIVISOR: Final = 16
"""What divides the lengths of a product of codes by cuBLASLt."""

_UNIT: Final = 8
"""Results that a thread scales."""


def _is_by_rows(scheme: QuantScheme, shape: Shape) -> bool:
    """Whether a matrix has 8-bit codes along its rows, and a scale for each row or for all."""
    run = run_length(scheme, shape)
    return code_bits(scheme) == 8 and run is not None and run in (shape[-1], math.prod(shape))


class QuantizedProductOps(QuantizedLinearOps):
    """Products of quantized tensors."""

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
        """On tensor cores, where each row shares a scale: int8 is scaled by a kernel after it."""
        weight = self._stored_weight(b_values, b_scales, None, b_scheme, transposed=transposed)
        found = None
        if weight is not None and is_stored(a_scheme, a_values, a_scales):
            found = self._product(a_values, a_scales, a_scheme, *weight, bias, dtype)
        if found is not None:
            return found
        return self.ops.decomposed(
            "quantized_product",
            *(a_values, a_scales, b_values, b_scales, bias),
            a_scheme=a_scheme,
            b_scheme=b_scheme,
            dtype=dtype,
            transposed=transposed,
        )

    def _product(
        self,
        a_values: Array,
        a_scales: Array,
        a_scheme: QuantScheme,
        b_values: Array,
        b_scales: Array,
        b_scheme: QuantScheme,
        shape: Shape,
        bias: Array | None,
        dtype: DType,
    ) -> Array | None:
        """The product with a weight of shape (out, in); None for what cuBLASLt does not take."""
        a_shape = a_scheme.logical_shape(a_values.shape)
        columns, terms = shape
        rows = math.prod(a_shape[:-1])
        is_float8 = QuantValue.E4M3 in (a_scheme.value, b_scheme.value)
        if (
            dtype not in (float16, bfloat16, float32)
            or not a_shape
            or a_shape[-1] != terms
            or not rows * columns * terms
            or a_scheme.level.is_global
            or is_float8 is not (a_scheme.value is b_scheme.value is QuantValue.E4M3)
            or columns % _DIVISOR
            or terms % _DIVISOR
            or rows * columns >= NARROW_LIMIT
            or not _is_by_rows(a_scheme, a_shape)
            or not _is_by_rows(b_scheme, shape)
            or (bias is not None and (bias.dtype != dtype.numpy or bias.shape != (columns,)))
        ):
            return None
        output = (*a_shape[:-1], columns)
        if rows <= _FEW_CODED_ROWS:
            return self._few_coded_rows(
                a_values, a_scales, a_scheme, b_values, b_scales, b_scheme, bias, dtype
            )
        capability = self.launcher.runtime.capability
        if capability < (_FLOAT8_CAPABILITY if is_float8 else TENSOR_CORE_CAPABILITY):
            return None
        a, b = self._aligned(a_values), self._aligned(b_values)
        scales = (self._aligned(a_scales), self._aligned(b_scales))
        size = (rows, columns, terms)
        if is_float8:
            out = self._float8(a, b, scales, size, bias, dtype)
        else:
            out = self._int8(a, b, scales, size, bias, dtype)
        return None if out is None else out.reshape(output)

    def _few_coded_rows(
        self,
        a_values: Array,
        a_scales: Array,
        a_scheme: QuantScheme,
        b_values: Array,
        b_scales: Array,
        b_scheme: QuantScheme,
        bias: Array | None,
        dtype: DType,
    ) -> Array:
        """A product of float32 and codes, rounded once."""
        x = self.ops.dequantize_values(a_values, a_scales, None, scheme=a_scheme, dtype=float32)
        if bias is not None and dtype is not float32:
            bias = self.ops.cast(bias, dtype=float32)
        out = self.quantized_linear(
            x, b_values, b_scales, None, bias, scheme=b_scheme, transposed=True
        )
        return out if dtype is float32 else self.ops.cast(out, dtype=dtype)

    def _int8(
        self,
        a: Array,
        b: Array,
        scales: tuple[Array, Array],
        size: tuple[int, int, int],
        bias: Array | None,
        dtype: DType,
    ) -> Array | None:
        launcher = self.launcher
        rows, columns, terms = size
        a, b = (tensor.view(np.dtype(np.int8)) for tensor in (a, b))
        whole = -(-rows // _DIVISOR) * _DIVISOR
        if whole != rows:
            padded = launcher.empty((whole, terms), a.dtype)
            launcher.runtime.zero(padded)
            launcher.write(padded[:rows], a.reshape((rows, terms)))
            a = padded
        sums = launcher.empty((whole, columns), int32.numpy)
        if not launcher.runtime.multiply_codes(a, b, sums, (whole, columns, terms)):
            return None
        return self._scaled(sums, scales, size, bias, dtype)

    def _float8(
        self,
        a: Array,
        b: Array,
        scales: tuple[Array, Array],
        size: tuple[int, int, int],
        bias: Array | None,
        dtype: DType,
    ) -> Array | None:
        launcher = self.launcher
        rows, columns, _ = size
        a, b = (tensor.view(np.dtype(np.uint8)) for tensor in (a, b))
        if all(scale.dtype == float32.numpy for scale in scales):
            given, counts = scales, (rows, columns)
            if any(scale.size > 1 for scale in scales):
                given = tuple(
                    [
                        scale if scale.size > 1 else launcher.copied(scale.expand((count,)))
                        for scale, count in zip(scales, counts, strict=True)
                    ]
                )
            out = launcher.empty((rows, columns), dtype.numpy)
            vector = None if bias is None or dtype is float32 else self._aligned(bias)
            if launcher.runtime.multiply_codes(a, b, out, size, scales=given, bias=vector):
                return out if bias is None or vector is not None else self.ops.add(out, bias)
        sums = launcher.empty((rows, columns), float32.numpy)
        if not launcher.runtime.multiply_codes(a, b, sums, size):
            return None
        return self._scaled(sums, scales, size, bias, dtype)

    def _scaled(
        self,
        sums: Array,
        scales: tuple[Array, Array],
        size: tuple[int, int, int],
        bias: Array | None,
        dtype: DType,
    ) -> Array:
        """Sums times the scales of their rows and columns, plus a bias."""
        launcher = self.launcher
        rows, columns, _ = size
        out = launcher.empty((rows, columns), dtype.numpy)
        definitions: dict[str, str | int] = {
            "X": c_type(dtype),
            "A": c_type(launcher.dtypes[sums.dtype]),
            "S": c_type(launcher.dtypes[scales[0].dtype]),
            "SB": c_type(launcher.dtypes[scales[1].dtype]),
            "CODE": 0,
            "BITS": 8,
            "UNIT": _UNIT,
            "LANES": 1,
            "PACKS": 1,
            "HAS_scale_product": 1,
        }
        kernel = launcher.kernel("scale_product", "quantization.cu", **definitions)
        steps = [int(scale.size > 1) for scale in scales]
        units = rows * columns // _UNIT
        vector = 0 if bias is None else self._aligned(bias)
        numbers: tuple[Any, ...] = (*steps, columns, units, divider(columns // _UNIT))
        operands = (sums, *scales, vector, out, *numbers)
        self.early(kernel)((-(-units // THREADS),), (THREADS,), operands)
        return out
