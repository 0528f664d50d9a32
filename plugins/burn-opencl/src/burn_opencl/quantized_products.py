"""Products of floats and quantized matrices, of which a kernel reads the codes."""

from __future__ import annotations

import functools
import math
import struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from burn.plugin_api import DTYPE_CODES, DType, float32, float64
from burn_opencl.base import inferred_shape
from burn_opencl.buffers import Buffer
from burn_opencl.codes import code_macros, scale_code
from burn_opencl.dtypes import check_dtypes
from burn_opencl.elementwise import ElementwiseOps
from burn_opencl.elementwise_variants import power_of_two
from burn_opencl.limits import INT32_LIMIT
from burn_opencl.programs import text_of

if TYPE_CHECKING:
    from burn.plugin_api import QuantScheme, Shape
    from burn_opencl.buffers import Layout
    from burn_opencl.launcher import Launcher

__all__ = ["QuantizedProductOps"]

_MIN_MULTIPLICATIONS: Final = 1 << 14
"""Products of fewer multiplications have no kernel made for them."""

_CPU_VECTOR: Final = 16
"""Codes that a CPU multiplies at a time."""

_MAX_CPU_ROWS: Final = 128
_MAX_GPU_ROWS: Final = 48
"""Of more rows the matrix is restored first: that takes less time than the product."""

_MAX_CPU_TILE_ROWS: Final = 6
_CPU_OUTPUTS: Final = {1: 8}
_MORE_CPU_OUTPUTS: Final = 4
"""Rows of the matrix that a CPU multiplies with so many rows at a time, as registers allow."""

_CPU_COLUMNS: Final = (64, 512)
"""Outputs that an item of a CPU computes where neighbours in memory belong to those: at least, so
that its reads are long, and at most, so that the sums stay in the fastest cache."""

_CPU_ITEMS_PER_UNIT: Final = 2
"""Items of a CPU with more would have less to read at a time."""

_CPU_STEPS: Final = 4
"""Rows of the matrix that are then added at a time."""

_MAX_GPU_TILE_ROWS: Final = 8
_GPU_OUTPUTS: Final = 4
_GPU_WORDS: Final = (4, 2, 1)
"""Words of 32 bits that a lane of a GPU reads at once."""

_MANY_ROWS: Final = 3
_MAX_CODES_OF_MANY_ROWS: Final = 16
"""Codes that a lane then reads at once, so that lanes beside each other read such numbers too."""

_MIN_GPU_LANES: Final = 32
_MAX_GPU_LANES: Final = 128
_MAX_GPU_LANES_OF_MANY_ROWS: Final = 64
"""Lanes that share a row of the matrix; more have fewer turns, but more sums to add in the end."""


class _Matrix(NamedTuple):
    """A quantized matrix, of which either axis is contiguous.

    Attributes
    ----------
    outputs, inner : int
        Its lengths.
    along_inner : bool
        Whether neighbours in memory belong to one output.
    block, block_outputs : int
        Lengths of a block along the inner axis, and along that of the outputs.
    values : tuple of int
        Offset of the codes, and their stride along the other axis, in bytes.
    scales : tuple of int
        Offset of the scales, and their strides along the outputs and along the inner axis, in
        elements.
    """

    outputs: int
    inner: int
    along_inner: bool
    block: int
    block_outputs: int
    values: tuple[int, int]
    scales: tuple[int, int, int]


class _Plan(NamedTuple):
    """A launch, apart from the memory of its operands."""

    kernel: Any
    parameters: bytes
    items: int
    group: int
    shape: Shape


class QuantizedProductOps(ElementwiseOps):
    """Products with quantized matrices, in float32."""

    def quantized_linear(
        self,
        x: Buffer,
        values: Buffer,
        scales: Buffer,
        global_scale: Buffer | None,
        bias: Buffer | None,
        *,
        scheme: QuantScheme,
        transposed: bool = False,
    ) -> Buffer:
        """One kernel for a few rows; else the default."""
        launcher = self.launcher
        dtype = x.dtype
        check_dtypes("quantized_linear", x, bias)
        rows = launcher.dense(x)
        if launcher.runtime.is_cpu and dtype is not float64:
            # Its elements are read many times, so they are converted once.
            rows = self.cast(rows, dtype=float32)
        optional = [None if buffer is None else buffer.layout for buffer in (global_scale, bias)]
        layouts = (rows.layout, values.layout, scales.layout, *optional)
        plan = _plan(launcher, layouts, dtype, scheme, transposed=transposed)
        if plan is None:
            result: Buffer = self.ops.decomposed(
                "quantized_linear",
                *(x, values, scales, global_scale, bias),
                scheme=scheme,
                transposed=transposed,
            )
            return result
        out = launcher.empty(plan.shape, dtype)
        operands = (rows, values, scales, global_scale or rows, bias or rows, out)
        memories = [operand.memory.handle for operand in operands]
        launcher.runtime.launch(
            plan.kernel, plan.parameters, memories, (plan.items,), (plan.group,)
        )
        return out

    def quantized_product(
        self,
        a_values: Buffer,
        a_scales: Buffer,
        b_values: Buffer,
        b_scales: Buffer,
        bias: Buffer | None,
        *,
        a_scheme: QuantScheme,
        b_scheme: QuantScheme,
        dtype: DType,
        transposed: bool = False,
    ) -> Buffer:
        """The first operand is restored: of the two it has few elements."""
        ops = self.ops
        wide = float64 if dtype is float64 else float32
        x = ops.dequantize_values(a_values, a_scales, None, scheme=a_scheme, dtype=wide)
        bias = None if bias is None else ops.cast(bias, dtype=wide)
        out: Buffer = ops.quantized_linear(
            x, b_values, b_scales, None, bias, scheme=b_scheme, transposed=transposed
        )
        return self.cast(out, dtype=dtype)


@functools.lru_cache(maxsize=1024)
def _plan(
    launcher: Launcher,
    layouts: tuple[Layout, Layout, Layout, Layout | None, Layout | None],
    dtype: DType,
    scheme: QuantScheme,
    *,
    transposed: bool,
) -> _Plan | None:
    """The launch for operands with these layouts; None for what the kernels do not take."""
    x, values, scales, global_scale, bias = layouts
    shape = inferred_shape(
        "quantized_linear",
        *(x._replace(dtype=dtype), values, scales, global_scale, bias),
        scheme=scheme,
        transposed=transposed,
    )
    rows = math.prod(x.shape[:-1])
    matrix = _matrix(values, scales, scheme, transposed=transposed)
    if (
        matrix is None
        or dtype is float64
        or rows * matrix.inner * matrix.outputs < _MIN_MULTIPLICATIONS
        or matrix.inner >= INT32_LIMIT
        or (bias is not None and bias.strides[0] != 1 and bias.shape[0] > 1)
    ):
        return None
    on_cpu = launcher.runtime.is_cpu
    name, sizes = "multiply_rows", None
    if not on_cpu:
        sizes = _gpu_sizes(rows, matrix, x, scheme)
    elif matrix.along_inner:
        sizes = _cpu_sizes(rows, matrix)
    else:
        name, sizes = (
            "multiply_columns",
            _cpu_sizes_of_columns(rows, matrix, launcher.runtime.units),
        )
    if sizes is None:
        return None
    definitions = code_macros(scheme) | sizes
    definitions |= {"TYPE": DTYPE_CODES[dtype.name], "SCALE_TYPE": scale_code(scheme)}
    body = text_of("codes.cl")
    if on_cpu:
        definitions["CODES_AT"] = 1
    kernel = launcher.kernel(name, "quantized_rows.cl", "float", definitions, body)
    group = sizes.get("LANES", 1)
    tiles = -(-rows // sizes["TILE_ROWS"]) * -(-matrix.outputs // sizes["OUTPUTS"])
    parameters = struct.pack(
        "=14q",
        *(rows, matrix.inner, matrix.outputs, matrix.block, matrix.block_outputs),
        *(x.offset, -1 if bias is None else bias.offset),
        -1 if global_scale is None else global_scale.offset,
        *(*matrix.values, *matrix.scales, 0),
    )
    return _Plan(kernel, parameters, tiles * group, group, shape)


def _matrix(
    values: Layout, scales: Layout, scheme: QuantScheme, *, transposed: bool
) -> _Matrix | None:
    """A matrix by its axes; None for one of which neither is contiguous, as to whole codes."""
    shape = scheme.logical_shape(values.shape)
    output, inner = (0, 1) if transposed else (1, 0)
    contiguous = [axis for axis in (inner, output) if values.strides[axis] == 1]
    if scheme.per_word > 1:
        contiguous = [axis for axis in contiguous if axis == 2 + scheme.store.axis]
    if not contiguous:
        return None
    other = 1 - contiguous[0]
    size = scheme.storage_dtype.itemsize
    block = scheme.blocks(shape)
    steps = scales.strides if scheme.level.block else (0, 0)
    return _Matrix(
        shape[output],
        shape[inner],
        contiguous[0] == inner,
        block[inner],
        block[output],
        (values.offset * size, values.strides[other] * size),
        (scales.offset, steps[output], steps[inner]),
    )


def _cpu_sizes(rows: int, matrix: _Matrix) -> dict[str, int] | None:
    """Sizes of the tiles of a CPU; None for blocks that vectors do not fit, and for many rows."""
    if rows > _MAX_CPU_ROWS or (matrix.block % _CPU_VECTOR and matrix.block != matrix.inner):
        return None
    tile_rows = -(-rows // -(-rows // _MAX_CPU_TILE_ROWS))
    return {"TILE_ROWS": tile_rows, "OUTPUTS": _CPU_OUTPUTS.get(tile_rows, _MORE_CPU_OUTPUTS)}


def _cpu_sizes_of_columns(rows: int, matrix: _Matrix, units: int) -> dict[str, int] | None:
    """The same, where neighbours in memory belong to neighbouring outputs."""
    least, most = _CPU_COLUMNS
    columns = power_of_two(-(-matrix.outputs // (_CPU_ITEMS_PER_UNIT * units)))
    block = 0 if matrix.block == matrix.inner else matrix.block
    block_outputs = 0 if matrix.block_outputs == matrix.outputs else matrix.block_outputs
    if rows > _MAX_CPU_ROWS or matrix.inner % _CPU_STEPS:
        return None
    if matrix.outputs % _CPU_VECTOR or block_outputs % _CPU_VECTOR:
        return None
    return {
        "TILE_ROWS": -(-rows // -(-rows // _MAX_CPU_TILE_ROWS)),
        "OUTPUTS": min(most, max(least, columns)),
        "BLOCK": block,
        "BLOCK_OUTPUTS": block_outputs,
        "STEPS": _CPU_STEPS,
    }


def _gpu_sizes(rows: int, matrix: _Matrix, x: Layout, scheme: QuantScheme) -> dict[str, int] | None:
    """Sizes of the tiles of a GPU; None for codes that vectors do not fit, and for many rows."""
    if rows > _MAX_GPU_ROWS or x.offset % 4 or not matrix.along_inner:
        return None
    code_bits = int(code_macros(scheme)["CODE_BITS"])
    lengths = (matrix.inner, matrix.block)
    for words in _GPU_WORDS:
        codes = words * 32 // code_bits
        fits = not any(length % codes for length in lengths)
        aligned = not any(value % (4 * words) for value in matrix.values)
        if fits and aligned and (rows < _MANY_ROWS or codes <= _MAX_CODES_OF_MANY_ROWS):
            break
    else:
        return None
    most = _MAX_GPU_LANES if rows < _MANY_ROWS else _MAX_GPU_LANES_OF_MANY_ROWS
    lanes = power_of_two(-(-matrix.inner // codes // 2))
    return {
        "TILE_ROWS": -(-rows // -(-rows // _MAX_GPU_TILE_ROWS)),
        "OUTPUTS": _GPU_OUTPUTS,
        "WORDS": words,
        "LANES": min(most, max(_MIN_GPU_LANES, lanes)),
    }
