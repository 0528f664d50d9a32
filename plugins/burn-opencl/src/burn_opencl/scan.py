"""Scans: what accumulates along an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from burn_opencl.buffers import Buffer
from burn_opencl.expressions import CODES, class_of

if TYPE_CHECKING:
    from burn_opencl.launcher import Launcher

__all__ = ["ScanOps"]

_OPS: Final = {"cumsum": 0, "cumprod": 1, "cummax": 2, "cummin": 3}
_CHUNK: Final = 256


class ScanOps:
    """Scans; 16-bit floats accumulate in float32."""

    launcher: Launcher

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
        x = launcher.dense(x)
        out = launcher.empty(x.shape, x.dtype)
        if not x.size:
            return out
        rows = launcher.rows_along(x, (axis,))
        lines = x.size // rows.n
        runtime = launcher.runtime
        wanted = runtime.units * (4 if runtime.is_cpu else 1024)
        parts = max(1, min(wanted // lines, rows.n // _CHUNK))
        chunk = -(-rows.n // parts)
        parts = -(-rows.n // chunk)
        code = CODES[x.dtype.name]
        large = x.size >= launcher.large
        definitions: dict[str, str | int] = {"OP": _OPS[op], "TYPE": code} if large else {}
        numbers = (rows.outer, rows.n, rows.inner, x.offset, parts, chunk, _OPS[op], code)

        def kernel(name: str) -> Any:
            return launcher.kernel(name, "scan.cl", class_of(x.dtype), definitions)

        totals = launcher.scratch(8 * lines * parts)
        if parts > 1:
            launcher.run(kernel("part_totals"), lines * parts, numbers, (x.memory, totals))
            launcher.run(kernel("totals_before"), lines, numbers, (totals,))
        launcher.run(kernel("scan"), lines * parts, numbers, (x.memory, totals, out.memory))
        return out
