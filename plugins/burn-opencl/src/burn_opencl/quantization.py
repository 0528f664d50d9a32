"""Quantization: codes and scales of numbers, and the numbers of codes and scales."""

from __future__ import annotations

import functools
import math
import struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from burn.plugin_api import (
    DTYPE_CODES,
    DType,
    Meta,
    accumulator_dtype,
    c_type_of,
    float32,
    float64,
    int8,
    signed_scalar_bits,
    uint8,
)
from burn_opencl.base import OpenClOps, inferred_shape
from burn_opencl.codes import code_macros, scale_code
from burn_opencl.elementwise_variants import power_of_two
from burn_opencl.limits import GPU_GROUP_ITEMS, SMALL_GROUP_ITEMS
from burn_opencl.programs import text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from burn.plugin_api import QuantScheme, Shape
    from burn_opencl.buffers import Buffer
    from burn_opencl.launcher import Launcher

__all__ = ["QuantizationOps"]

_CPU_ITEM_ELEMENTS: Final = 4096
"""Elements that an item of a CPU computes: whole vectors, and whole words."""

_IN_CHUNKS: Final = ("make_codes", "restore_codes", "find_scales")
"""Kernels of which an item of a CPU computes many elements."""

_CONSTANTS: Final = ("TYPE", "CODE_BITS", "FORMAT", "SCALE_TYPE", "PER_ELEMENT")
"""Macros of specialized kernels that are parameters of the general ones, in their order."""

_MAX_STEP: Final = 1 << 13
"""Elements of which a group, or an item of a CPU, takes the largest magnitude.

The scale of more elements is found in two steps, the first of them by many groups.
"""

_ELEMENTS_OF_A_LANE: Final = 4
"""What a lane of a GPU reads of a run at least, where a group has lanes enough."""


class _Runs(NamedTuple):
    """Elements of a dense tensor that share a scale: neighbours, which are a run.

    Attributes
    ----------
    length : int
        Elements of a run.
    per_row : int
        Runs of a row of blocks that are rectangles.
    block_rows : int
        Rows of such a block; 1 where each run has a scale of its own.
    """

    length: int
    per_row: int = 1
    block_rows: int = 1


class QuantizationOps(OpenClOps):
    """A kernel for each op, which computes in float32, or in float64 for that dtype.

    The packed axis is moved to the end, so that neighbours share a word; so results may be
    permuted views. Blocks that are not rectangles of such rows are left to the defaults.
    """

    def quantize_values(
        self, x: Buffer, scales: Buffer, global_scale: Buffer | None, *, scheme: QuantScheme
    ) -> Buffer:
        """Divided with correct rounding."""
        shape = _checked_shape("quantize_values", *_metas(x, scales, global_scale), scheme=scheme)
        order = _order(scheme, range(len(x.shape)))
        runs = _runs(scheme, x.shape, order)
        if runs is None:
            result: Buffer = self.ops.decomposed(
                "quantize_values", x, scales, global_scale, scheme=scheme
            )
            return result
        launcher = self.launcher
        x = launcher.dense(x.permuted(order))
        scales = _scales_in_order(launcher, scales, order)
        out = launcher.empty(tuple([shape[axis] for axis in order]), scheme.storage_dtype)
        task = _Task(scheme, runs, x.size, x.dtype)
        operands = (x, scales, global_scale or scales, out)
        _run(launcher, "make_codes", task, operands, x=x, scales=scales, factor=global_scale)
        return out.permuted(_inverse(order))

    def dequantize_values(
        self,
        values: Buffer,
        scales: Buffer,
        global_scale: Buffer | None,
        *,
        scheme: QuantScheme,
        dtype: DType,
    ) -> Buffer:
        """In the order of memory, if it is that of packed codes."""
        metas = _metas(values, scales, global_scale)
        shape = _checked_shape("dequantize_values", *metas, scheme=scheme, dtype=dtype)
        order = _order(scheme, _memory_order(values))
        runs = _runs(scheme, shape, order)
        if runs is None:
            result: Buffer = self.ops.decomposed(
                "dequantize_values", values, scales, global_scale, scheme=scheme, dtype=dtype
            )
            return result
        launcher = self.launcher
        values = launcher.dense(values.permuted(order))
        scales = _scales_in_order(launcher, scales, order)
        out = launcher.empty(tuple([shape[axis] for axis in order]), dtype)
        task = _Task(scheme, runs, out.size, dtype)
        operands = (values, scales, global_scale or scales, out)
        offsets = {"values": values, "scales": scales, "factor": global_scale}
        _run(launcher, "restore_codes", task, operands, **offsets)
        return out.permuted(_inverse(order))

    def quantize_dynamic(self, x: Buffer, *, scheme: QuantScheme) -> tuple[Buffer, Buffer]:
        """A kernel for the scales, or two for those of many elements, and one for the codes."""
        _checked_shape("quantize_dynamic", *_metas(x), scheme=scheme)
        order = _order(scheme, range(len(x.shape)))
        runs = _runs(scheme, x.shape, order)
        if runs is None or runs.block_rows != 1 or not x.size:
            result: tuple[Buffer, Buffer] = self.ops.decomposed(
                "quantize_dynamic", x, scheme=scheme
            )
            return result
        launcher = self.launcher
        shape = scheme.scales_shape(x.shape)
        if scheme.level.block:
            shape = tuple([shape[axis] for axis in order])
        scales = launcher.empty(shape, scheme.scale_dtype.storage)
        ordered = launcher.dense(x.permuted(order))
        low, high = scheme.value.range
        _find_scales(launcher, scheme, ordered, runs.length, (high - low) / 2.0, scales)
        if scheme.level.block:
            scales = scales.permuted(_inverse(order))
        x = ordered.permuted(_inverse(order))
        return self.quantize_values(x, scales, None, scheme=scheme), scales

    def pack_values(self, codes: Buffer, *, scheme: QuantScheme) -> Buffer:
        """The codes themselves, where the scheme does not pack them."""
        shape = _checked_shape("pack_values", *_metas(codes), scheme=scheme)
        if scheme.per_word == 1:
            return codes
        launcher = self.launcher
        order = _order(scheme, range(len(shape)))
        codes = launcher.dense(codes.permuted(order))
        out = launcher.empty(tuple([shape[axis] for axis in order]), scheme.storage_dtype)
        task = _Task(scheme, _Runs(1), codes.size, codes.dtype)
        _run(launcher, "pack_codes", task, (codes, out), x=codes)
        return out.permuted(_inverse(order))

    def unpack_values(self, values: Buffer, *, scheme: QuantScheme) -> Buffer:
        """The values themselves, where the scheme does not pack them."""
        shape = _checked_shape("unpack_values", *_metas(values), scheme=scheme)
        if scheme.per_word == 1:
            return values
        launcher = self.launcher
        order = _order(scheme, _memory_order(values))
        values = launcher.dense(values.permuted(order))
        dtype = uint8 if scheme.value.is_float else int8
        out = launcher.empty(tuple([shape[axis] for axis in order]), dtype)
        task = _Task(scheme, _Runs(1), out.size, dtype)
        _run(launcher, "unpack_codes", task, (values, out), values=values)
        return out.permuted(_inverse(order))


class _Task(NamedTuple):
    """What a kernel does, apart from the memory of its operands.

    Attributes
    ----------
    scheme : QuantScheme
        How the codes are stored.
    runs : _Runs
        Which of them share a scale.
    n : int
        Their number.
    dtype : DType
        The dtype of the numbers.
    lanes : int
        Lanes that share a run.
    divisor : float
        A scale is the largest magnitude divided by it.
    scale_type : int or None
        Code of the dtype of the scales, if it is not that of the scheme.
    """

    scheme: QuantScheme
    runs: _Runs
    n: int
    dtype: DType
    lanes: int = 1
    divisor: float = 1.0
    scale_type: int | None = None


def _run(
    launcher: Launcher,
    name: str,
    task: _Task,
    operands: Sequence[Buffer],
    *,
    x: Buffer | None = None,
    values: Buffer | None = None,
    scales: Buffer | None = None,
    factor: Buffer | None = None,
) -> None:
    """Launch a kernel; the operands that are named have offsets."""
    if not task.n:
        return
    offsets = (
        0 if x is None else x.offset,
        0 if values is None else values.offset * values.dtype.itemsize,
        0 if scales is None else scales.offset,
        -1 if factor is None else factor.offset,
    )
    kernel, parameters, size, group = _launch(
        launcher, launcher.is_specialized(task.n), name, task, offsets
    )
    memories = [operand.memory.handle for operand in operands]
    launcher.runtime.launch(kernel, parameters, memories, size, group)


@functools.lru_cache(maxsize=4096)
def _launch(
    launcher: Launcher,
    is_specialized: bool,
    name: str,
    task: _Task,
    offsets: tuple[int, int, int, int],
) -> tuple[Any, bytes, tuple[int], tuple[int]]:
    """A kernel, its parameters, the number of its items, and of those in a group."""
    scheme, runs, n, dtype = task[:4]
    on_cpu, divides = launcher.runtime.is_cpu, launcher.runtime.divides_exactly
    c_type = c_type_of(dtype) if dtype.is_float else "float"
    per_element = scheme.per_word
    if (
        not on_cpu
        and per_element == 1
        and not any(number % 4 for number in (n, *offsets[:2], runs[0]))
    ):
        per_element = 4  # bytes are read and written as words
    constants = code_macros(scheme) | {
        "TYPE": DTYPE_CODES[dtype.name],
        "SCALE_TYPE": scale_code(scheme) if task.scale_type is None else task.scale_type,
        "PER_ELEMENT": per_element,
    }
    definitions: dict[str, str | int] = {"DIVIDES_EXACTLY": int(divides), "LANES": task.lanes}
    group, elements = SMALL_GROUP_ITEMS, per_element
    body = text_of("codes.cl")
    if is_specialized:
        definitions |= constants
        group = launcher.specialized_group_items
        if on_cpu and name in _IN_CHUNKS:
            group, elements = 1, _CPU_ITEM_ELEMENTS
            definitions["ITEM_ELEMENTS"] = elements
            if divides and c_type == "float":
                definitions["CODES_AT"] = 1
        if not on_cpu and not (per_element % 4 or offsets[0] % 4):
            definitions["BY_VEC4"] = 1
            body = text_of("vec4.cl") + body
    items = -(-n // elements)
    if name == "find_scales" and not (on_cpu and is_specialized):
        group = max(group, task.lanes)
        items = -(-n // runs.length) * task.lanes
        definitions["ITEM_ELEMENTS"] = "parameters.run"  # a run for each item
    definitions["GROUP_SIZE"] = group
    kernel = launcher.kernel(name, "quantization.cl", c_type, definitions, body)
    low, high = scheme.value.range
    parameters = struct.pack(
        f"={4 + len(offsets) + len(_CONSTANTS) + 3}q",
        *(n, *runs, *offsets, *[constants[name] for name in _CONSTANTS]),
        *(int(low), int(high)),
        signed_scalar_bits(task.divisor, float64 if c_type == "double" else float32),
    )
    return kernel, parameters, (-(-items // group) * group,), (group,)


def _find_scales(
    launcher: Launcher,
    scheme: QuantScheme,
    x: Buffer,
    run: int,
    divisor: float,
    scales: Buffer,
) -> None:
    """Write the scale of each run of a dense tensor."""
    if run > _MAX_STEP and x.size == run:
        wide = accumulator_dtype(x.dtype)
        largest = launcher.empty((-(-run // _MAX_STEP),), wide)
        task = _Task(
            *(scheme, _Runs(_MAX_STEP), run, x.dtype, _lanes(launcher, _MAX_STEP)),
            scale_type=DTYPE_CODES[wide.name],
        )
        _run(launcher, "find_scales", task, (x, largest), x=x)
        x, run = largest, largest.size
    task = _Task(scheme, _Runs(run), x.size, x.dtype, _lanes(launcher, run), divisor)
    _run(launcher, "find_scales", task, (x, scales), x=x)


def _lanes(launcher: Launcher, run: int) -> int:
    """Lanes that find the largest magnitude of a run."""
    if launcher.runtime.is_cpu:
        return 1
    return min(GPU_GROUP_ITEMS, power_of_two(-(-run // _ELEMENTS_OF_A_LANE)))


def _metas(*operands: Buffer | None) -> list[Meta | None]:
    return [None if operand is None else Meta(operand.shape, operand.dtype) for operand in operands]


@functools.lru_cache(maxsize=4096)
def _checked_shape(name: str, *operands: Meta | None, **attributes: Any) -> Shape:
    """Shape of the first output; raises what the op raises."""
    return inferred_shape(name, *operands, **attributes)


def _memory_order(x: Buffer) -> list[int]:
    """The axes from the longest stride to the shortest."""
    return sorted(range(len(x.shape)), key=lambda axis: -x.strides[axis])


def _order(scheme: QuantScheme, order: Sequence[int]) -> tuple[int, ...]:
    """The axes in an order, but for the packed one, which is the last."""
    if scheme.per_word == 1:
        return tuple(order)
    packed = len(order) + scheme.store.axis
    return (*[axis for axis in order if axis != packed], packed)


def _inverse(order: tuple[int, ...]) -> list[int]:
    return [order.index(axis) for axis in range(len(order))]


def _scales_in_order(launcher: Launcher, scales: Buffer, order: tuple[int, ...]) -> Buffer:
    """Dense scales of a tensor with its axes in an order."""
    return launcher.dense(scales.permuted(order) if len(scales.shape) == len(order) else scales)


@functools.lru_cache(maxsize=4096)
def _runs(scheme: QuantScheme, shape: Shape, order: tuple[int, ...]) -> _Runs | None:
    """Runs of a dense tensor with its axes in an order; None if a scale has no rectangle of them.

    Shape and scheme are those of the tensor before that.
    """
    n = math.prod(shape)
    if not scheme.level.block:
        return _Runs(max(n, 1))
    blocks = scheme.blocks(shape)
    rest = [(shape[axis], blocks[axis]) for axis in order]
    length, columns = _merged(rest)
    block_rows, _ = _merged(rest)
    if rest or length % scheme.per_word:
        return None
    return _Runs(length, columns // length if length else 1, block_rows)


def _merged(rest: list[tuple[int, int]]) -> tuple[int, int]:
    """Takes the last axes over which a block is a run: the run's length, and that of the axes.

    These are axes that a block spans, one of which it spans a part, and axes of blocks of 1.
    """
    run = total = 1
    spans = True
    while rest and (spans or rest[-1][1] == 1):
        length, block = rest.pop()
        run, total = run * block, total * length
        spans = spans and block == length
    return run, total
