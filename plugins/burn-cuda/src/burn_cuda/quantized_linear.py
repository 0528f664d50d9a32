"""Products with quantized weights: few rows by a kernel that reads codes, many by cuBLAS."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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
from burn_cuda.launcher import LaunchCache
from burn_cuda.quantization import code_bits, is_stored, run_length, turned

if TYPE_CHECKING:
    from burn_cuda.runtime import Runtime

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

_SPLITS: Final = (8, 4, 2)
"""Warps that may share the terms of a block; with two alone there is little shared memory."""

_DIRECT_SPLITS: Final = (16, 8, 4, 2)
"""The same where codes go to registers."""

_MIN_WARPS: Final = 4
"""So many share them even if there are too few for all."""

_STAGES: Final = (4, 3, 2)
"""Chunks that a warp may have in shared memory."""

_RESIDENT: Final = 512
"""Threads for which a multiprocessor has registers."""

_SHARED_BYTES: Final = {(9, 0): (77 << 10, 113 << 10), (8, 0): (0, 96 << 10)}
"""The least and the most shared memory of a block, by compute capability. With so much there are
two blocks on a multiprocessor: one of a kernel, and one of the next, which starts early."""

_WORD_BYTES: Final = 4

_FEW: Final = 8
"""Rows that tensor cores multiply at once."""

_MATRIX: Final = 2
_WARP_LANES: Final = 32


class _FewRows(NamedTuple):
    """How the kernel of few rows computes a product."""

    definitions: dict[str, str | int]
    grid: tuple[int]
    block: tuple[int]
    shared: int
    numbers: tuple[int, ...]


class _Codes(NamedTuple):
    """How the kernel reads a weight of shape (columns, terms): 0 as `block` is one for a row."""

    bits: int
    chunk: int
    block: int
    scales: int
    row_bytes: int
    row_scales: int


def _codes(scheme: QuantScheme, shape: Shape) -> _Codes | None:
    """How the kernel reads a weight; None where it does not."""
    terms = shape[1]
    bits, run = code_bits(scheme), run_length(scheme, shape)
    row_bytes = terms * bits // 8
    if run is None or row_bytes % _LANE_BYTES or max(shape) >= NARROW_LIMIT:
        return None
    chunk, group = _LANE_BYTES * 32 // bits, 4 * 32 // bits
    if not scheme.level.block:
        return _Codes(bits, chunk, 0, 1, row_bytes, 0)
    if run == terms:
        return _Codes(bits, chunk, 0, 1, row_bytes, 1)
    if run > terms or run % group or not _fits_chunks(run, chunk, terms):
        return None
    return _Codes(bits, chunk, run, max(chunk // run, 1), row_bytes, terms // run)


@functools.lru_cache(maxsize=4096)
def _few_rows(
    scheme: QuantScheme,
    dtype: DType,
    rows: int,
    shape: Shape,
    capability: tuple[int, int],
    multiprocessors: int,
) -> _FewRows | None:
    """The plan for a weight of shape (columns, terms); None for what the kernel does not read."""
    columns, terms = shape
    counts = [number for number in _ROWS.get(dtype, ()) if number >= rows]
    codes = _codes(scheme, shape)
    if not counts or codes is None:
        return None
    most = counts[0]
    planes = 3 if dtype is float32 else 1
    tiles = -(-columns // _TILE)
    each = 2 if tiles > multiprocessors and most <= _FEW else 1
    # As many blocks as multiprocessors: those of two kernels are spread evenly then.
    blocks = multiprocessors if each * multiprocessors >= tiles else -(-tiles // each)
    blocks = min(blocks, tiles)
    chunks = -(-codes.row_bytes // _CHUNK_BYTES)
    stage = _stage_bytes(codes, scheme, planes * most, each)
    limits = (value for least, value in _SHARED_BYTES.items() if capability >= least)
    least_bytes, most_bytes = next(limits)
    direct = most == 1 and codes.bits == 8 and not codes.block
    fits = [
        (split, stages)
        for split in (_DIRECT_SPLITS if direct else _SPLITS)
        for stages in (_STAGES[-1:] if direct else _STAGES)
        if split <= max(chunks, _MIN_WARPS) and split * stages * stage <= most_bytes
    ]
    if not fits:
        return None
    split, stages = fits[0]
    shared = split * max(stages * stage, _WORD_BYTES * rows * each * _TILE)
    name = c_type(dtype)
    definitions: dict[str, str | int] = {
        "X": name,
        "T": "bfloat16" if dtype is float32 else name,
        "PLANES": planes,
        "S": c_type(scheme.scale_dtype.storage),
        "BITS": codes.bits,
        "FLOAT8": int(scheme.value.is_float),
        "BLOCK": codes.block,
        "SCALES": codes.scales,
        "MAX_ROWS": most,
        "TILES": each,
        "SPLIT": split,
        "STAGES": stages,
        "DIRECT": int(direct),
        "RESIDENT": max(_RESIDENT, _WARP_LANES * split),
    }
    numbers = (rows, columns, terms, codes.row_bytes, codes.row_scales, *divmod(tiles, blocks))
    block = (_WARP_LANES * split,)
    return _FewRows(
        definitions, (blocks,), block, shared if direct else max(shared, least_bytes), numbers
    )


def _stage_bytes(codes: _Codes, scheme: QuantScheme, rows: int, tiles: int) -> int:
    """Shared memory of a chunk: codes, rows of x and scales, with gaps; see the kernel."""
    byte = 8
    spreads = codes.block != 0 or codes.bits < byte
    gap = {8: 32 if spreads else 16, 4: 64, 2: 16}[codes.bits]
    scales = max(codes.scales * scheme.scale_dtype.storage.itemsize, _WORD_BYTES)
    columns = tiles * _TILE
    size = (
        columns * _CHUNK_BYTES
        + rows * (2 * codes.chunk + gap)
        + (columns * scales if codes.block else 0)
    )
    return -(-size // _LANE_BYTES) * _LANE_BYTES


def _fits_chunks(block: int, chunk: int, terms: int) -> bool:
    """Whether chunks of a row are whole blocks, or blocks whole chunks."""
    if block < chunk:
        return not (chunk % block or terms % chunk)
    return not block % chunk


class _Launch(NamedTuple):
    """The launch of a product of few rows, and whether it reads the transpose of the weight."""

    kernel: Callable[..., None]
    grid: tuple[int]
    block: tuple[int]
    shared: int
    numbers: tuple[int, ...]
    output: Shape
    turns: bool


def _kind(x: Array | None) -> tuple[Any, Shape] | None:
    return None if x is None else (x.dtype, x.shape)


class QuantizedLinearOps(CudaOps):
    """Products of numbers with a quantized weight."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self._row_launches = LaunchCache()

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
        operands = (x, values, scales, global_scale, bias)
        key = (scheme.text, transposed, *map(_kind, operands))
        try:
            launch = self._row_launches[key]
        except KeyError:
            launch = self._row_launch(*operands, scheme, transposed=transposed)
            self._row_launches.store(key, launch)
        if launch is None:
            return self._many_rows(*operands, scheme, transposed=transposed)
        kernel, grid, block, shared, numbers, output, turns = launch
        if turns:
            values = values.transpose()
            scales = scales.transpose() if len(scales.shape) == _MATRIX else scales
        memory = [self._aligned(item) for item in (x, values, scales)]
        out = self.launcher.empty(output, x.dtype)
        vector = 0 if bias is None else self.launcher.dense(bias)
        overall = 0 if global_scale is None else global_scale
        kernel(grid, block, (*memory, overall, vector, out, *numbers), shared)
        return out

    def _row_launch(
        self,
        x: Array,
        values: Array,
        scales: Array,
        global_scale: Array | None,
        bias: Array | None,
        scheme: QuantScheme,
        *,
        transposed: bool,
    ) -> _Launch | None:
        """The launch of a product of few rows; None for others."""
        own = self._stored_weight(values, scales, global_scale, scheme, transposed=transposed)
        launcher = self.launcher
        if own is None or launcher.runtime.capability < TENSOR_CORE_CAPABILITY:
            return None
        _, _, scheme, (columns, terms) = own
        rows = math.prod(x.shape[:-1])
        fits = x.shape and x.shape[-1] == terms and rows * columns * terms
        if bias is not None:
            fits = fits and bias.dtype is x.dtype and bias.shape == (columns,)
        if not fits:
            return None
        runtime = launcher.runtime
        device = (runtime.capability, runtime.multiprocessors)
        dtype = launcher.dtypes[x.dtype]
        plan = _few_rows(scheme, dtype, rows, (columns, terms), *device)
        if plan is None:
            return None
        kernel = launcher.kernel("quantized_rows", "quantized_rows.cu", **plan.definitions)
        output = (*x.shape[:-1], columns)
        return _Launch(self.early(kernel), *plan[1:], output, not transposed)

    def _many_rows(
        self,
        x: Array,
        values: Array,
        scales: Array,
        global_scale: Array | None,
        bias: Array | None,
        scheme: QuantScheme,
        *,
        transposed: bool,
    ) -> Array:
        """A product with the weight as numbers, whose rows lie as the codes do."""
        own = self._stored_weight(values, scales, global_scale, scheme, transposed=transposed)
        dtype = self.launcher.dtypes[x.dtype]
        if own is None or not dtype.is_float:
            return self.ops.decomposed(
                "quantized_linear",
                *(x, values, scales, global_scale, bias),
                scheme=scheme,
                transposed=transposed,
            )
        values, scales, scheme, _ = own
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

    def _aligned(self, x: Array) -> Array:
        """A dense array that may be read in packs."""
        launcher = self.launcher
        x = launcher.dense(x)
        return x if not x.address % _LANE_BYTES else launcher.runtime.copy(x)
