"""Scans: cumulative sums, products, maxima and minima along an axis."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Final

from burn_opencl.base import check_axis
from burn_opencl.buffers import Buffer
from burn_opencl.complex_numbers import on_parts, slice_axis
from burn_opencl.dtypes import DTYPE_CODES, accumulator_dtype, c_type_of
from burn_opencl.elementwise import ElementwiseOps
from burn_opencl.launcher import Rows
from burn_opencl.layout import LayoutOps
from burn_opencl.limits import GPU_GROUP_ITEMS
from burn_opencl.programs import text_of
from burn_opencl.reduction import COMBINE_CODES, reduce_parts

if TYPE_CHECKING:
    from burn_opencl.launcher import Launcher

__all__ = ["ScanOps"]

_CPU_PARTS_PER_UNIT: Final = 4
_MIN_ELEMENTS_PER_CPU_PART: Final = 256

_GPU_GROUPS_PER_UNIT: Final = 16
_MIN_ELEMENTS_PER_GPU_PART: Final = 4096

_MAX_ELEMENTS_PER_GPU_ITEM: Final = 64
"""Up to this length of a row an item of a GPU scans it alone."""

_MIN_ROWS_FOR_GPU_ITEMS: Final = 16_384
_MIN_COLUMNS_FOR_GPU_ITEMS: Final = 32
"""With so many rows, of which so many are neighbours in memory, items of a GPU scan one each."""


class ScanOps(ElementwiseOps, LayoutOps):
    """Scans; 16-bit floats accumulate in float32."""

    def cumsum(self, x: Buffer, *, axis: int) -> Buffer:
        """Parts of long rows are added in parallel."""
        if x.dtype.is_complex:
            check_axis(x, axis)
            return on_parts(self.launcher, functools.partial(self.cumsum, axis=axis), x)
        return _scan(self.launcher, "sum", x, axis)

    def cumprod(self, x: Buffer, *, axis: int) -> Buffer:
        """Parts of long rows are multiplied in parallel; complex ones in steps of doubled distance.

        The steps: W. D. Hillis and G. L. Steele, "Data parallel algorithms" (1986).
        """
        if x.dtype.is_complex:
            check_axis(x, axis)
            step, length = 1, x.shape[axis]
            while step < length:
                later = slice_axis(x, axis, step, length)
                product = self.multiply(later, slice_axis(x, axis, 0, length - step))
                x = self.concat([slice_axis(x, axis, 0, step), product], axis=axis)
                step *= 2
            return x
        return _scan(self.launcher, "prod", x, axis)

    def cummax(self, x: Buffer, *, axis: int) -> Buffer:
        """NaN propagates."""
        return _scan(self.launcher, "max", x, axis)

    def cummin(self, x: Buffer, *, axis: int) -> Buffer:
        """NaN propagates."""
        return _scan(self.launcher, "min", x, axis)


def _scan(launcher: Launcher, op: str, x: Buffer, axis: int) -> Buffer:
    check_axis(x, axis)
    if x.dtype.is_bool:
        raise TypeError(f"a cumulative {op} of {x.dtype}")
    if not launcher.runtime.is_cpu:
        return _scan_on_gpu(launcher, op, x, axis)
    x = launcher.dense(x)
    out = launcher.empty(x.shape, x.dtype)
    if x.size:
        rows = launcher.rows_along(x, (axis,))
        wanted = _CPU_PARTS_PER_UNIT * launcher.runtime.units
        parts = min(wanted // (x.size // rows.n), rows.n // _MIN_ELEMENTS_PER_CPU_PART)
        _scan_by_items(launcher, op, rows, max(1, parts), out)
    return out


def _scan_on_gpu(launcher: Launcher, op: str, x: Buffer, axis: int) -> Buffer:
    """Groups scan rows; items do where rows are short, or many and interleaved in memory."""
    rank, shape = len(x.shape), x.shape
    if not x.size or shape[axis] == 1:
        return launcher.copied(x)
    rows = x.size // shape[axis]
    is_interleaved = math.prod(shape[axis + 1 :]) >= _MIN_COLUMNS_FOR_GPU_ITEMS
    if shape[axis] <= _MAX_ELEMENTS_PER_GPU_ITEM or (
        rows >= _MIN_ROWS_FOR_GPU_ITEMS and is_interleaved
    ):
        x = launcher.dense(x)
        out = launcher.empty(shape, x.dtype)
        _scan_by_items(launcher, op, launcher.rows_along(x, (axis,)), 1, out)
        return out
    order = (*[number for number in range(rank) if number != axis], axis)
    x = launcher.dense(x.permuted(order))
    out = launcher.empty(x.shape, x.dtype)
    _scan_by_groups(launcher, op, x, rows, out)
    return out.permuted([order.index(number) for number in range(rank)])


def _scan_by_items(launcher: Launcher, op: str, rows: Rows, parts: int, out: Buffer) -> None:
    dtype, count = out.dtype, rows.outer * rows.inner
    chunk = -(-rows.n // parts)
    parts = -(-rows.n // chunk)
    code = DTYPE_CODES[dtype.name]
    definitions: dict[str, str | int] = {"HAS_scan": 1}
    if launcher.is_specialized(out.size):
        definitions |= {"OP": COMBINE_CODES[op], "TYPE": code}
    parameters = (rows.outer, rows.n, rows.inner, rows.x.offset, parts, chunk, COMBINE_CODES[op])

    def run(name: str, items: int, *memories: Any) -> None:
        kernel = launcher.kernel(name, "scan.cl", c_type_of(dtype), definitions)
        launcher.run(kernel, items, (*parameters, code), memories)

    memory, totals = rows.x.memory, launcher.scratch(8 * count * parts)
    if parts > 1:
        run("reduce_parts", count * parts, memory, totals)
        run("scan_totals", count, totals)
    run("scan", count * parts, memory, totals, out.memory)


def _scan_by_groups(launcher: Launcher, op: str, x: Buffer, rows: int, out: Buffer) -> None:
    """Dense rows, in parts that are reduced first where rows alone leave groups without work."""
    dtype, n = x.dtype, x.size // rows
    wanted = _GPU_GROUPS_PER_UNIT * launcher.runtime.units
    parts = max(1, min(wanted // rows, n // _MIN_ELEMENTS_PER_GPU_PART))
    chunk = -(-n // parts // 4) * 4
    parts = -(-n // chunk)
    totals = out  # not read if there is one part
    if parts > 1:
        of_parts, totals = (
            launcher.empty((rows, parts), accumulator_dtype(dtype)) for _ in range(2)
        )
        reduce_parts(launcher, op, Rows(x, rows, n, 1), parts, chunk, of_parts)
        _scan_by_groups(launcher, op, of_parts, rows, totals)
    code = DTYPE_CODES[dtype.name]
    by_vec4 = not (n % 4 or chunk % 4 or x.offset % 4)
    definitions: dict[str, str | int] = {"BY_VEC4": int(by_vec4)}
    if launcher.is_specialized(x.size):
        definitions |= {"OP": COMBINE_CODES[op], "TYPE": code}
    body = text_of("vec4.cl") if by_vec4 else ""
    kernel = launcher.kernel("scan_rows", "scan.cl", c_type_of(dtype), definitions, body)
    parameters = (rows, n, 1, x.offset, parts, chunk, COMBINE_CODES[op], code)
    memories = (x.memory, totals.memory, out.memory)
    items = rows * parts * GPU_GROUP_ITEMS
    launcher.run(kernel, items, parameters, memories, GPU_GROUP_ITEMS)
