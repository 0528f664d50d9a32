"""Reductions: of parts, so that all of a device has work, and then of their results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from burn.plugin_api import DTYPE_CODES, DType, accumulator_dtype, bool_, c_type_of
from burn_opencl.base import check_axis
from burn_opencl.buffers import Buffer
from burn_opencl.complex_numbers import on_parts, slice_axis
from burn_opencl.elementwise import ElementwiseOps
from burn_opencl.elementwise_variants import power_of_two
from burn_opencl.launcher import Rows
from burn_opencl.layout import LayoutOps
from burn_opencl.limits import GPU_GROUP_ITEMS, SMALL_GROUP_ITEMS
from burn_opencl.programs import text_of

if TYPE_CHECKING:
    from burn.plugin_api import Shape
    from burn_opencl.launcher import Launcher

__all__ = ["COMBINE_CODES", "ReductionOps", "reduce_parts", "reduced_shape"]

COMBINE_CODES: Final = {"sum": 0, "prod": 1, "max": 2, "min": 3, "any": 4, "all": 5}
"""Codes of the ways to combine two elements (``common.cl``)."""

_RESULT_OF_NO_ELEMENTS: Final = {"sum": 0, "prod": 1, "any": 0, "all": 1}

_MIN_ELEMENTS_PER_ROW_PART: Final = 4096
_MIN_ELEMENTS_PER_COLUMN_PART: Final = 64

_COLUMNS_PER_CPU_ITEM: Final = 2048
_ARG_COLUMNS_PER_CPU_ITEM: Final = 64

_CPU_VECTOR_COLUMNS: Final = 128
"""A CPU reads several rows of fewer columns as one, so that it adds vectors."""

_MAX_ELEMENTS_FOR_PLAIN_LOOP: Final = 64
"""Up to this length of a row an item reduces it in one loop, without lanes or groups."""

_ELEMENTS_PER_GPU_LANE: Final = 8
_VEC4S_PER_GPU_LANE: Final = 4
"""What a lane of a GPU reads of a row at least, where a group has lanes enough."""

_MAX_COLUMNS_PER_GPU_GROUP: Final = 128
"""Up to so many columns, a group of a GPU reduces all of them, as it does with rows."""

_COLUMNS_PER_GPU_BLOCK: Final = 32
_MIN_COLUMNS_PER_UNIT: Final = 128
"""With fewer columns for each compute unit, groups of a GPU reduce blocks of columns."""

_MAX_CPU_ITEMS_FOR_SINGLE_GROUPS: Final = 4096
"""Up to so many items of a CPU are a group each: the cores share groups, not items."""

_CPU_PARTS_PER_UNIT: Final = 4
_GPU_ITEMS_PER_UNIT: Final = 2048


def reduced_shape(shape: Shape, axis: Sequence[int], *, keepdims: bool) -> Shape:
    """The shape without the reduced axes, or with length 1 for them."""
    if keepdims:
        return tuple([1 if number in axis else length for number, length in enumerate(shape)])
    return tuple([length for number, length in enumerate(shape) if number not in axis])


class ReductionOps(ElementwiseOps, LayoutOps):
    """Reductions over axes."""

    def sum(
        self, x: Buffer, *, axis: tuple[int, ...], keepdims: bool = False, dtype: DType
    ) -> Buffer:
        """16-bit floats are added in float32."""
        return self._reduce("sum", self._widened(x, dtype), axis, dtype, keepdims=keepdims)

    def prod(
        self, x: Buffer, *, axis: tuple[int, ...], keepdims: bool = False, dtype: DType
    ) -> Buffer:
        """16-bit floats are multiplied in float32."""
        return self._reduce("prod", self._widened(x, dtype), axis, dtype, keepdims=keepdims)

    def max(self, x: Buffer, *, axis: tuple[int, ...], keepdims: bool = False) -> Buffer:
        """NaN propagates."""
        return self._reduce("max", x, axis, x.dtype, keepdims=keepdims)

    def min(self, x: Buffer, *, axis: tuple[int, ...], keepdims: bool = False) -> Buffer:
        """NaN propagates."""
        return self._reduce("min", x, axis, x.dtype, keepdims=keepdims)

    def any(self, x: Buffer, *, axis: tuple[int, ...], keepdims: bool = False) -> Buffer:
        """The kernel compares numbers with 0 as it reads them."""
        return self._reduce("any", x, axis, bool_, keepdims=keepdims)

    def all(self, x: Buffer, *, axis: tuple[int, ...], keepdims: bool = False) -> Buffer:
        """The kernel compares numbers with 0 as it reads them."""
        return self._reduce("all", x, axis, bool_, keepdims=keepdims)

    def argmax(self, x: Buffer, *, axis: int, keepdims: bool = False, dtype: DType) -> Buffer:
        """The first of equal elements; NaN counts as the largest."""
        return self._arg_reduce(x, axis, dtype, smallest=False, keepdims=keepdims)

    def argmin(self, x: Buffer, *, axis: int, keepdims: bool = False, dtype: DType) -> Buffer:
        """The first of equal elements; NaN counts as the smallest."""
        return self._arg_reduce(x, axis, dtype, smallest=True, keepdims=keepdims)

    def _widened(self, x: Buffer, dtype: DType) -> Buffer:
        """`x` where the kernel converts its elements to the C type of `dtype`; else a cast."""
        same = c_type_of(x.dtype) == c_type_of(dtype) and x.dtype.itemsize <= dtype.itemsize
        return x if same else self.cast(x, dtype=dtype)

    def _reduce(
        self, op: str, x: Buffer, axis: tuple[int, ...], dtype: DType, *, keepdims: bool
    ) -> Buffer:
        launcher = self.launcher
        if x.dtype.is_complex:
            return self._reduce_complex(op, x, axis, dtype, keepdims=keepdims)
        rows = launcher.rows_along(x, axis)
        shape = reduced_shape(x.shape, axis, keepdims=keepdims)
        if not rows.n:
            if op not in _RESULT_OF_NO_ELEMENTS:
                raise ValueError(f"{op} of no elements")
            value = _RESULT_OF_NO_ELEMENTS[op]
            return self.full(shape=shape, fill_value=value, dtype=dtype, device=self.device)
        out = launcher.empty(shape, dtype)
        if not out.size:
            return out
        by_columns = _goes_by_columns(launcher, rows)
        merged = math.gcd(rows.n, _CPU_VECTOR_COLUMNS // rows.inner or 1) if by_columns else 1
        wide = Rows(rows.x, rows.outer, rows.n // merged, rows.inner * merged)
        parts, chunk = _split(launcher, wide, _MAX_COLUMNS_PER_GPU_GROUP)
        if parts > 1 or by_columns:
            partial = launcher.empty((rows.outer * parts * wide.inner,), accumulator_dtype(x.dtype))
            reduce_parts(launcher, op, wide, parts, chunk, partial, by_columns=by_columns)
            rows = Rows(partial, rows.outer, parts * merged, rows.inner)
            op = {"any": "max", "all": "min"}.get(op, op)
        reduce_parts(launcher, op, rows, 1, rows.n, out)
        return out

    def _reduce_complex(
        self, op: str, x: Buffer, axis: tuple[int, ...], dtype: DType, *, keepdims: bool
    ) -> Buffer:
        """Sums by real and imaginary parts, products by halves, any and all by comparison."""
        check_axis(x, *axis)
        if op in ("any", "all"):
            return self._reduce(op, self.not_equal(x, 0.0), axis, dtype, keepdims=keepdims)
        if op == "prod":
            return self._complex_product(x, axis, keepdims=keepdims)
        if op != "sum":
            raise TypeError("complex numbers have no order")

        def added(parts: Buffer) -> Buffer:
            return self._reduce(op, parts, axis, parts.dtype, keepdims=keepdims)

        return on_parts(self.launcher, added, x)

    def _complex_product(self, x: Buffer, axis: tuple[int, ...], *, keepdims: bool) -> Buffer:
        """The product along axes: the first half times the second half, again and again."""
        shape = reduced_shape(x.shape, axis, keepdims=keepdims)
        for number in axis:
            while x.shape[number] > 1:
                length = x.shape[number]
                half = length // 2
                product = self.multiply(
                    slice_axis(x, number, 0, half), slice_axis(x, number, half, 2 * half)
                )
                rest = slice_axis(x, number, 2 * half, length)
                x = self.concat([product, rest], axis=number) if length % 2 else product
        if not all(x.shape[number] for number in axis):
            return self.full(shape=shape, fill_value=1, dtype=x.dtype, device=self.device)
        return self.reshape(x, shape=shape)

    def _arg_reduce(
        self, x: Buffer, axis: int, dtype: DType, *, smallest: bool, keepdims: bool
    ) -> Buffer:
        launcher = self.launcher
        rows = launcher.rows_along(x, (axis,))
        if not rows.n:
            raise ValueError("the index of an extremum of no elements")
        out = launcher.empty(reduced_shape(x.shape, (axis,), keepdims=keepdims), dtype)
        if not out.size:
            return out
        specialized, on_cpu = launcher.is_specialized(x.size), launcher.runtime.is_cpu
        contiguous = rows.inner == 1
        parts, chunk = _split(launcher, rows, 1) if specialized else (1, rows.n)
        count = rows.outer * rows.inner
        name, items, group = "arg_reduce", count * parts, SMALL_GROUP_ITEMS
        source = DTYPE_CODES[x.dtype.name]
        definitions: dict[str, str | int] = {"SOURCE": source} if specialized else {}
        if specialized and on_cpu and not (contiguous and chunk <= _MAX_ELEMENTS_FOR_PLAIN_LOOP):
            name, items, group = "arg_reduce_contiguous", rows.outer * parts, 1
            if not contiguous:
                blocks = -(-rows.inner // _ARG_COLUMNS_PER_CPU_ITEM)
                name, items = "arg_reduce_columns", rows.outer * parts * blocks
        elif contiguous and not on_cpu and (specialized or rows.n > _MAX_ELEMENTS_FOR_PLAIN_LOOP):
            lanes = _lanes(chunk, _ELEMENTS_PER_GPU_LANE) if specialized else GPU_GROUP_ITEMS
            name, items, group = "arg_reduce_rows", rows.outer * parts * lanes, GPU_GROUP_ITEMS
            definitions["LANES"] = lanes
        parameters = [rows.outer, rows.n, rows.inner, rows.x.offset, parts, chunk, int(smallest)]
        parameters += [source, DTYPE_CODES[dtype.name]]

        def kernel(name: str) -> Any:
            return launcher.kernel(name, "arg_reduction.cl", c_type_of(x.dtype), definitions)

        memory = rows.x.memory
        if parts == 1:
            launcher.run(kernel(name), items, parameters, (memory, out.memory), group)
            return out
        indices = launcher.scratch(8 * count * parts)
        of_parts = [*parameters[:-1], DTYPE_CODES["int64"]]
        launcher.run(kernel(name), items, of_parts, (memory, indices), group)
        memories = (memory, indices, out.memory)
        if name == "arg_reduce_rows":
            items, group = count * GPU_GROUP_ITEMS, GPU_GROUP_ITEMS
            launcher.run(kernel("combine_row_parts"), items, parameters, memories, group)
        else:
            launcher.run(kernel("combine_parts"), count, parameters, memories)
        return out


def reduce_parts(
    launcher: Launcher,
    op: str,
    rows: Rows,
    parts: int,
    chunk: int,
    out: Buffer,
    *,
    by_columns: bool = False,
) -> None:
    """Reduce each part of `chunk` elements of each row to an element of dense memory."""
    x, outer, n, inner = rows
    on_cpu, specialized = launcher.runtime.is_cpu, launcher.is_specialized(outer * n * inner)
    source, target = DTYPE_CODES[x.dtype.name], DTYPE_CODES[out.dtype.name]
    definitions: dict[str, str | int] = {"IS_CONTIGUOUS": 0}
    if specialized:
        definitions |= {"OP": COMBINE_CODES[op], "SOURCE": source, "TARGET": target}
        definitions["IS_CONTIGUOUS"] = int(on_cpu and inner == 1)
    name, items, group, body = "reduce", outer * parts * inner, SMALL_GROUP_ITEMS, ""
    if on_cpu and items <= _MAX_CPU_ITEMS_FOR_SINGLE_GROUPS:
        group = 1
    if by_columns:
        name, items, group = "reduce_columns", outer * parts * -(-inner // _COLUMNS_PER_CPU_ITEM), 1
    elif not on_cpu and inner == 1 and (specialized or n > _MAX_ELEMENTS_FOR_PLAIN_LOOP):
        by_vec4 = not (n % 4 or chunk % 4 or x.offset % 4)
        lanes = GPU_GROUP_ITEMS
        if specialized and by_vec4:
            lanes = _lanes(chunk // 4, _VEC4S_PER_GPU_LANE)
        elif specialized:
            lanes = _lanes(chunk, _ELEMENTS_PER_GPU_LANE)
        name, items, group = "reduce_rows", outer * parts * lanes, GPU_GROUP_ITEMS
        definitions |= {"BY_VEC4": int(by_vec4), "LANES": lanes}
        body = text_of("vec4.cl") if by_vec4 else ""
    elif specialized and not on_cpu and inner > 1 and _goes_by_blocks(launcher, rows, parts, chunk):
        columns = _columns_per_group(inner)
        name, group = "reduce_blocks", GPU_GROUP_ITEMS
        items = outer * parts * -(-inner // columns) * group
        definitions["COLUMNS"] = columns
    definitions["GROUP_SIZE"] = group
    kernel = launcher.kernel(name, "reduction.cl", c_type_of(x.dtype), definitions, body)
    parameters = [outer, n, inner, x.offset, parts, chunk, COMBINE_CODES[op], source, target]
    launcher.run(kernel, items, parameters, (x.memory, out.memory), group)


def _split(launcher: Launcher, rows: Rows, max_columns_per_group: int) -> tuple[int, int]:
    """Number of parts in which to reduce each row, and elements of a part.

    A group of a GPU reduces rows of up to `max_columns_per_group` columns.
    """
    runtime = launcher.runtime
    if runtime.is_cpu:
        by_group = rows.inner == 1
        wanted = _CPU_PARTS_PER_UNIT * runtime.units
        items = rows.outer * -(-rows.inner // _COLUMNS_PER_CPU_ITEM)
    else:
        by_group = rows.inner <= max_columns_per_group
        wanted = _GPU_ITEMS_PER_UNIT * runtime.units
        items = rows.outer * (GPU_GROUP_ITEMS if by_group else rows.inner)
    shortest = _MIN_ELEMENTS_PER_COLUMN_PART
    if by_group:
        shortest = max(shortest, _MIN_ELEMENTS_PER_ROW_PART // rows.inner)
    parts = max(1, min(wanted // items, rows.n // shortest))
    chunk = -(-rows.n // parts)
    if not runtime.is_cpu:
        chunk = -(-chunk // 4) * 4
    return -(-rows.n // chunk), chunk


def _goes_by_columns(launcher: Launcher, rows: Rows) -> bool:
    """Whether a CPU reads large rows one after the other, all columns of them at once."""
    specialized = launcher.is_specialized(rows.outer * rows.n * rows.inner)
    return launcher.runtime.is_cpu and specialized and rows.inner > 1


def _goes_by_blocks(launcher: Launcher, rows: Rows, parts: int, chunk: int) -> bool:
    """Whether items of a GPU, one for each column, would be too few, or read too far apart.

    A part must have elements enough for all items of a group.
    """
    columns = rows.outer * parts * rows.inner
    few = columns < _MIN_COLUMNS_PER_UNIT * launcher.runtime.units
    enough = chunk * _columns_per_group(rows.inner) >= 2 * GPU_GROUP_ITEMS
    return (rows.inner <= _MAX_COLUMNS_PER_GPU_GROUP or few) and enough


def _columns_per_group(inner: int) -> int:
    return inner if inner <= _MAX_COLUMNS_PER_GPU_GROUP else _COLUMNS_PER_GPU_BLOCK


def _lanes(elements: int, per_lane: int) -> int:
    """Number of items of a GPU that share a row: a power of two."""
    return min(GPU_GROUP_ITEMS, power_of_two(-(-elements // per_lane)))
