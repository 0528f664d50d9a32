"""Scans: cumulative sums, products, maxima and minima along an axis."""

from __future__ import annotations

import math
from typing import Final

from burn.aliases import Primitive
from burn.shared_kernels.elements import DTYPE_CODES, accumulator_dtype, c_type_of
from burn.shared_kernels.launching import SharedOps, check_axes

__all__ = ["ScanOps"]

_OPERATIONS: Final = {"sum": 0, "prod": 1, "max": 2, "min": 3}
"""Codes of the ways to combine elements (``sources/common.c``)."""

_CPU_PARTS_PER_UNIT: Final = 4
_MIN_ELEMENTS_PER_CPU_PART: Final = 256

_GPU_GROUPS_PER_UNIT: Final = 16
_MIN_ELEMENTS_PER_GPU_PART: Final = 4096
_GROUP: Final = 256

_MAX_ELEMENTS_PER_GPU_ITEM: Final = 64
"""Up to this length of a row an item of a GPU scans it alone."""

_MIN_ROWS_FOR_GPU_ITEMS: Final = 1 << 14
_MIN_COLUMNS_FOR_GPU_ITEMS: Final = 32
"""With so many rows, of which so many are neighbours in memory, items of a GPU scan one each."""


class ScanOps(SharedOps):
    """Scans; 16-bit floats accumulate in float32."""

    def cumsum(self, x: Primitive, *, axis: int) -> Primitive:
        """Parts of long rows are added in parallel; complex numbers by their parts."""
        launcher = self.launcher
        dtype = launcher.dtype_of(x)
        if dtype.is_complex:
            check_axes(x, axis)
            return launcher.of_parts(self._scan("sum", launcher.parts(x), axis), dtype)
        return self._scan("sum", x, axis)

    def cumprod(self, x: Primitive, *, axis: int) -> Primitive:
        """Parts of long rows are multiplied in parallel; complex ones in steps of doubled distance.

        The steps: W. D. Hillis and G. L. Steele, "Data parallel algorithms" (1986).
        """
        if not self.launcher.dtype_of(x).is_complex:
            return self._scan("prod", x, axis)
        check_axes(x, axis)
        step, length = 1, x.shape[axis]

        def part(start: int, stop: int) -> Primitive:
            slices = [(0, size, 1) for size in x.shape]
            slices[axis] = (start, stop - start, 1)
            return self.slice(x, slices=tuple(slices))

        while step < length:
            product = self.multiply(part(step, length), part(0, length - step))
            x = self.concat([part(0, step), product], axis=axis)
            step *= 2
        return x

    def cummax(self, x: Primitive, *, axis: int) -> Primitive:
        """NaN propagates."""
        return self._scan("max", x, axis)

    def cummin(self, x: Primitive, *, axis: int) -> Primitive:
        """NaN propagates."""
        return self._scan("min", x, axis)

    def _scan(self, operation: str, x: Primitive, axis: int) -> Primitive:
        """Groups of a GPU scan rows; items do where rows are short, or many and interleaved."""
        launcher, shape = self.launcher, x.shape
        check_axes(x, axis)
        dtype = launcher.dtype_of(x)
        if dtype.is_bool or dtype.is_complex:
            raise TypeError(f"a cumulative {operation} of {dtype}")
        size, n, rank = math.prod(shape), shape[axis], len(shape)
        if not size or n == 1:
            return launcher.copied(x)
        inner, parts = math.prod(shape[axis + 1 :]), 1
        rows = size // n
        if launcher.is_cpu:
            wanted = _CPU_PARTS_PER_UNIT * launcher.units
            parts = max(1, min(wanted // rows, n // _MIN_ELEMENTS_PER_CPU_PART))
        elif not self.scans_by_items(rows, n, inner):
            order = (*[number for number in range(rank) if number != axis], axis)
            x = launcher.dense(self.permute(x, axes=order))
            out = launcher.new(x.shape, dtype)
            self.scan_rows(operation, x, out, rows, n)
            back = tuple([order.index(number) for number in range(rank)])
            return self.permute(out, axes=back)
        x, out = launcher.dense(x), launcher.new(shape, dtype)
        self._scan_by_items(operation, x, out, (rows // inner, n, inner), parts)
        return out

    def scans_by_items(self, rows: int, n: int, inner: int) -> bool:
        """Whether each row has an item of a GPU."""
        is_interleaved = inner >= _MIN_COLUMNS_FOR_GPU_ITEMS
        is_short = n <= _MAX_ELEMENTS_PER_GPU_ITEM
        return is_short or (rows >= _MIN_ROWS_FOR_GPU_ITEMS and is_interleaved)

    def _scan_by_items(
        self,
        operation: str,
        x: Primitive,
        out: Primitive,
        sizes: tuple[int, int, int],
        parts: int,
    ) -> None:
        launcher = self.launcher
        dtype = launcher.dtype_of(out)
        outer, n, inner = sizes
        chunk = -(-n // parts)
        parts = -(-n // chunk)
        types = {"OP": _OPERATIONS[operation], "TYPE": DTYPE_CODES[dtype.name]}
        parameters = (*sizes, launcher.offset_of(x), parts, chunk, *types.values())

        def run(entry: str, items: int, *arrays: Primitive) -> None:
            kernel = launcher.shared_kernel(
                entry, "scan.c", c_type_of(dtype), {"HAS_scan": 1}, types, outer * n * inner
            )
            launcher.start(kernel, parameters, arrays, items)

        columns, totals = outer * inner, out  # not read if there is one part
        if parts > 1:
            totals = launcher.new((columns * parts,), accumulator_dtype(dtype))
            run("reduce_parts", columns * parts, x, totals)
            run("scan_totals", columns, totals)
        run("scan", columns * parts, x, totals, out)

    def scan_rows(self, operation: str, x: Primitive, out: Primitive, rows: int, n: int) -> None:
        """Scan dense rows, in parts that are reduced first where rows alone leave units idle."""
        launcher = self.launcher
        dtype = launcher.dtype_of(x)
        wanted = _GPU_GROUPS_PER_UNIT * launcher.units
        parts = max(1, min(wanted // rows, n // _MIN_ELEMENTS_PER_GPU_PART))
        chunk = -(-n // parts // 4) * 4
        parts = -(-n // chunk)
        offset = launcher.offset_of(x)
        types = {"OP": _OPERATIONS[operation], "TYPE": DTYPE_CODES[dtype.name]}
        definitions = {
            "HAS_scan_rows": 1,
            "BY_FOUR": int(launcher.is_aligned(x) and not (n % 4 or chunk % 4)),
        }
        parameters = (rows, n, 1, offset, parts, chunk, *types.values())

        def run(entry: str, *arrays: Primitive) -> None:
            kernel = launcher.shared_kernel(
                entry, "scan.c", c_type_of(dtype), definitions, types, rows * n
            )
            launcher.start(kernel, parameters, arrays, rows * parts * _GROUP, _GROUP)

        totals = out  # not read if there is one part
        if parts > 1:
            wide = accumulator_dtype(dtype)
            of_parts, totals = launcher.new((rows, parts), wide), launcher.new((rows, parts), wide)
            run("reduce_rows", x, of_parts)
            self.scan_rows(operation, of_parts, totals, rows, parts)
        run("scan_rows", x, totals, out)
