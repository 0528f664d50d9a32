"""Scans: what accumulates along an axis."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from burn_opencl.buffers import Buffer
from burn_opencl.expressions import CODES, class_of
from burn_opencl.launcher import Rows
from burn_opencl.programs import text_of
from burn_opencl.reduction import partial_dtype

if TYPE_CHECKING:
    from burn_opencl.launcher import Launcher

__all__ = ["ScanOps"]

_OPS: Final = {"cumsum": 0, "cumprod": 1, "cummax": 2, "cummin": 3}
_REDUCTIONS: Final = {"cumsum": "sum", "cumprod": "prod", "cummax": "max", "cummin": "min"}
_CHUNK: Final = 256
_PARTS_OF_A_UNIT: Final = 4

_GROUP: Final = 256
_GROUPS_OF_A_UNIT: Final = 16
_LONG: Final = 4096
"""What a group goes along has this length at least, or is a whole row."""

_SHORT: Final = 64
"""Up to this length an item goes along a row."""

_MANY: Final = 16_384
_NEAR: Final = 32
"""With so many columns, so many of them next to each other, an item goes along each."""


class ScanOps:
    """Scans; 16-bit floats accumulate in float32."""

    launcher: Launcher
    reduce_parts: Any

    def cumsum(self, x: Buffer, *, axis: int) -> Buffer:
        """In parts that are added up side by side."""
        return self._scan("cumsum", x, axis)

    def cumprod(self, x: Buffer, *, axis: int) -> Buffer:
        """In parts that are multiplied side by side."""
        return self._scan("cumprod", x, axis)

    def cummax(self, x: Buffer, *, axis: int) -> Buffer:
        """NaN stays once it has come."""
        return self._scan("cummax", x, axis)

    def cummin(self, x: Buffer, *, axis: int) -> Buffer:
        """NaN stays once it has come."""
        return self._scan("cummin", x, axis)

    def _scan(self, op: str, x: Buffer, axis: int) -> Buffer:
        launcher = self.launcher
        if not 0 <= axis < len(x.shape) or x.dtype.is_bool:
            raise IndexError(f"{op} of {x.dtype} along axis {axis} of {len(x.shape)}")
        if not launcher.runtime.is_cpu:
            return self._scan_on_gpu(op, x, axis)
        x = launcher.dense(x)
        out = launcher.empty(x.shape, x.dtype)
        if x.size:
            rows = launcher.rows_along(x, (axis,))
            wanted = _PARTS_OF_A_UNIT * launcher.runtime.units
            parts = max(1, min(wanted // (x.size // rows.n), rows.n // _CHUNK))
            self._scan_columns(op, rows, parts, out)
        return out

    def _scan_on_gpu(self, op: str, x: Buffer, axis: int) -> Buffer:
        """Rows by groups; of columns, where there are many, each by an item."""
        launcher = self.launcher
        rank, shape = len(x.shape), x.shape
        if not x.size or shape[axis] == 1:
            return launcher.copied(x)
        lines = x.size // shape[axis]
        near = lines >= _MANY and math.prod(shape[axis + 1 :]) >= _NEAR
        if shape[axis] <= _SHORT or near:
            x = launcher.dense(x)
            out = launcher.empty(shape, x.dtype)
            self._scan_columns(op, launcher.rows_along(x, (axis,)), 1, out)
            return out
        order = (*[number for number in range(rank) if number != axis], axis)
        x = launcher.dense(x.permuted(order))
        out = launcher.empty(x.shape, x.dtype)
        self._scan_rows(op, x, lines, out)
        return out.permuted([order.index(number) for number in range(rank)])

    def _scan_columns(self, op: str, rows: Rows, parts: int, out: Buffer) -> None:
        launcher, dtype = self.launcher, out.dtype
        lines = rows.outer * rows.inner
        chunk = -(-rows.n // parts)
        parts = -(-rows.n // chunk)
        code = CODES[dtype.name]
        large = out.size >= launcher.large
        definitions: dict[str, str | int] = {"HAS_scan": 1}
        if large:
            definitions |= {"OP": _OPS[op], "TYPE": code}
        numbers = (rows.outer, rows.n, rows.inner, rows.x.offset, parts, chunk, _OPS[op], code)

        def kernel(name: str) -> Any:
            return launcher.kernel(name, "scan.cl", class_of(dtype), definitions)

        memory = rows.x.memory
        totals = launcher.scratch(8 * lines * parts)
        if parts > 1:
            launcher.run(kernel("part_totals"), lines * parts, numbers, (memory, totals))
            launcher.run(kernel("totals_before"), lines, numbers, (totals,))
        launcher.run(kernel("scan"), lines * parts, numbers, (memory, totals, out.memory))

    def _scan_rows(self, op: str, x: Buffer, rows: int, out: Buffer) -> None:
        """Dense rows, in parts that are reduced first where all of the device has work by that."""
        launcher, dtype = self.launcher, x.dtype
        n = x.size // rows
        wanted = _GROUPS_OF_A_UNIT * launcher.runtime.units
        parts = max(1, min(wanted // rows, n // _LONG))
        chunk = -(-n // parts // 4) * 4
        parts = -(-n // chunk)
        totals = out
        if parts > 1:
            wide = partial_dtype(dtype)
            each, totals = (launcher.empty((rows, parts), wide) for _ in range(2))
            source, target = CODES[dtype.name], CODES[wide.name]
            row = Rows(x, rows, n, 1)
            self.reduce_parts(_REDUCTIONS[op], row, parts, chunk, source, target, each.memory)
            self._scan_rows(op, each, rows, totals)
        code = CODES[dtype.name]
        quads = not (n % 4 or chunk % 4 or x.offset % 4)
        definitions: dict[str, str | int] = {"BY_QUADS": int(quads)}
        if x.size >= launcher.large:
            definitions |= {"OP": _OPS[op], "TYPE": code}
        text = text_of("quads.cl") if quads else ""
        kernel = launcher.kernel("scan_rows", "scan.cl", class_of(dtype), definitions, text)
        numbers = (rows, n, 1, x.offset, parts, chunk, _OPS[op], code)
        memories = (x.memory, totals.memory, out.memory)
        launcher.run(kernel, rows * parts * _GROUP, numbers, memories, _GROUP)
