"""Products with quantized weights: few rows by a kernel that reads codes, many by cuBLAS."""

from __future__ import annotations

import functools
import math
from typing import Final, NamedTuple

from burn.plugin_api import (
    DType,
    QuantScheme,
    Shape,
    bfloat16,
    float16,
    float32,
)
from burn_cuda.base import Array, CudaOps
from burn_cuda.kernels import c_type
from burn_cuda.kernels.elementwise import NARROW_LIMIT
from burn_cuda.quantization import code_bits, is_stored, run_length, turned

__all__ = ["TENSOR_CORE_CAPABILITY", "QuantizedLinearOps"]

TENSOR_CORE_CAPABILITY: Final = (8, 0)
"""Compute capability from which on tensor cores multiply both 16-bit dtypes as 16x8x16."""

_ROWS: Final = {float16: (1, 8, 16, 32), bfloat16: (1, 8, 16, 32), float32: (1, 8)}
"""Numbers of rows that the kernel of few rows is compiled for."""

_LANE_BYTES: Final = 16
_CHUNK_BYTES: Final = 64
"""Bytes that a lane loads at once, and that the lanes of a row do."""

_TILE: Final = 16
"""Columns of a tile."""

_SPLITS: Final = (16, 8, 4, 2)
"""Warps that may share the terms of a tile; with two alone there is little shared memory."""

_FEWEST_WARPS: Final = 4
"""So many share a tile even if there is no chunk for each."""

_WANTED_WARPS: Final = 4224
"""Thirty-two for each multiprocessor of a large GPU."""

_SHARED_BYTES: Final = 48 << 10
_WORD_BYTES: Final = 4
_GAPS: Final = {8: 8, 4: 16, 2: 4}
"""Words between the rows of x in shared memory, by the bits of a code; see the kernel."""

_MATRIX: Final = 2


class _FewRows(NamedTuple):
    """How the kernel of few rows computes a product."""

    definitions: dict[str, str | int]
    split: int
    tiles: int
    row_bytes: int
    row_scales: int


@functools.lru_cache(maxsize=4096)
def _few_rows(scheme: QuantScheme, dtype: DType, rows: int, shape: Shape) -> _FewRows | None:
    """The plan for a weight of shape (columns, terms); None for what the kernel does not read."""
    columns, terms = shape
    bits, run = code_bits(scheme), run_length(scheme, shape)
    counts = [one for one in _ROWS.get(dtype, ()) if one >= rows]
    row_bytes = terms * bits // 8
    if not counts or run is None or row_bytes % _LANE_BYTES or max(shape) >= NARROW_LIMIT:
        return None
    per_word = 32 // bits
    chunk, group = _LANE_BYTES * per_word, 4 * per_word
    block, row_scales = (0, 0) if run == columns * terms and not scheme.level.block else (run, 0)
    if block:
        row_scales = terms // block
        if block == terms:
            block = 0
        elif block > terms or block % group or not _fits_chunks(block, chunk, terms):
            return None
    planes = 3 if dtype is float32 else 1
    step = _LANE_BYTES * per_word // 2 + _GAPS[bits]
    most = counts[0]
    sums = _TILE * 8 * -(-most // 8)
    each = _WORD_BYTES * max(planes * most * step, sums)
    tiles, chunks = -(-columns // _TILE), -(-row_bytes // _CHUNK_BYTES)
    most_warps = min(_SHARED_BYTES // each, max(chunks, _FEWEST_WARPS))
    fits = [one for one in _SPLITS if one <= most_warps]
    if not fits:
        return None
    split = next((one for one in fits if one * tiles <= _WANTED_WARPS), min(fits[0], _FEWEST_WARPS))
    name = c_type(dtype)
    definitions: dict[str, str | int] = {
        "X": name,
        "T": "bfloat16" if dtype is float32 else name,
        "PLANES": planes,
        "S": c_type(scheme.scale_dtype.storage),
        "BITS": bits,
        "FLOAT8": int(scheme.value.is_float),
        "BLOCK": block,
        "SCALES": chunk // block if block and block < chunk else 1,
        "MAX_ROWS": most,
        "SPLIT": split,
    }
    return _FewRows(definitions, split, tiles, row_bytes, row_scales)


def _fits_chunks(block: int, chunk: int, terms: int) -> bool:
    """Whether chunks of a row are whole blocks, or blocks whole chunks."""
    if block < chunk:
        return not (chunk % block or terms % chunk)
    return not block % chunk


class QuantizedLinearOps(CudaOps):
    """Products of numbers with a quantized weight."""

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
        """Few rows by one kernel; for many the weight is restored first."""
        operands = (values, scales, global_scale)
        own = self._stored_weight(*operands, scheme, transposed=transposed)
        dtype = self.launcher.dtypes[x.dtype]
        if own is None or not x.shape or x.shape[-1] != own[-1][1] or not dtype.is_float:
            return self.ops.decomposed(
                "quantized_linear", x, *operands, bias, scheme=scheme, transposed=transposed
            )
        values, scales, scheme, shape = own
        has_bias = bias is not None
        rows = math.prod(x.shape[:-1])
        fits = not has_bias or (bias.dtype is x.dtype and bias.shape == shape[:1])
        if (
            fits
            and rows
            and all(shape)
            and self.launcher.runtime.capability >= TENSOR_CORE_CAPABILITY
        ):
            plan = _few_rows(scheme, dtype, rows, shape)
            if plan is not None:
                return self._few_rows(x, values, scales, global_scale, bias, plan, shape)
        weight = self.ops.dequantize_values(
            values, scales, global_scale, scheme=scheme, dtype=dtype
        )
        return self.ops.linear(x, weight, bias, transposed=True)

    def _stored_weight(
        self,
        values: Array,
        scales: Array,
        global_scale: Array | None,
        scheme: QuantScheme,
        *,
        transposed: bool,
    ) -> tuple[Array, Array, QuantScheme, Shape] | None:
        """Codes, scales, scheme and shape of a weight of shape (out, in); None for others."""
        if len(values.shape) != _MATRIX or not is_stored(scheme, values, scales, global_scale):
            return None
        if not transposed:
            if scheme.store.axis < -_MATRIX:
                return None
            values, scheme = values.transpose(), turned(scheme)
            scales = scales.transpose() if len(scales.shape) == _MATRIX else scales
        return values, scales, scheme, scheme.logical_shape(values.shape)

    def _few_rows(
        self,
        x: Array,
        values: Array,
        scales: Array,
        global_scale: Array | None,
        bias: Array | None,
        plan: _FewRows,
        shape: Shape,
    ) -> Array:
        launcher = self.launcher
        columns, terms = shape
        x, values, scales = [self._aligned(one) for one in (x, values, scales)]
        rows = x.size // terms
        out = launcher.empty((*x.shape[:-1], columns), x.dtype)
        kernel = launcher.kernel("quantized_rows", "quantized_rows.cu", **plan.definitions)
        vector = 0 if bias is None else launcher.dense(bias)
        overall = 0 if global_scale is None else global_scale
        operands = (x, values, scales, overall, vector, out)
        numbers = (rows, columns, terms, plan.row_bytes, plan.row_scales)
        kernel((plan.tiles,), (32 * plan.split,), (*operands, *numbers))
        return out

    def _aligned(self, x: Array) -> Array:
        """A dense array that may be read in packs."""
        launcher = self.launcher
        x = launcher.dense(x)
        return x if not x.address % (2 * _LANE_BYTES) else launcher.runtime.copy(x)
