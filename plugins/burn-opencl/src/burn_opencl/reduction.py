"""Reductions: in parts, so that all of a device has work, and the parts joined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from burn.dtype import DType, bool_
from burn_opencl.buffers import Buffer
from burn_opencl.expressions import CODES, class_of
from burn_opencl.forms import power_of_two
from burn_opencl.late import Producer
from burn_opencl.launcher import Rows
from burn_opencl.programs import text_of

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn_opencl.launcher import Launcher

__all__ = ["ReductionOps", "partial_dtype", "reduced_shape"]

_OPS: Final = {"sum": 0, "prod": 1, "max": 2, "min": 3, "any": 4, "all": 5}
_OF_NOTHING: Final = {"sum": 0, "prod": 1, "any": 0, "all": 1}
_CHUNK: Final = 4096
"""A part of a row has this many elements at least."""

_COLUMN: Final = 64
"""The same of a column."""

_COLUMNS: Final = 2048
"""An item of a CPU takes so many columns."""

_PLACES: Final = 64
"""The same where the place of an extremum is looked for."""

_SHORT: Final = 64
"""Up to this length an item goes along a row in the plainest way."""

_GROUP: Final = 256
_PIECES: Final = 8
_QUADS: Final = 4
"""An item of a GPU reads so many elements of a row, or quads, if a group has enough items."""

_NARROW: Final = 128
"""A group of a GPU takes all columns up to so many, as it takes rows."""

_BLOCK: Final = 32
_ITEMS_OF_A_UNIT: Final = 128
"""Where there are fewer columns in all, groups of a GPU take blocks of them."""

_FEW: Final = 4096
"""Up to so many items of a CPU are a group each."""

_NUMBERS: Final = 4
"""So many numbers has what computes the elements, at most."""

_PARTIAL: Final = {"float": "float32", "double": "float64", "long": "int64", "ulong": "uint64"}


def partial_dtype(dtype: DType) -> DType:
    """What parts of a reduction of a dtype are kept in."""
    return DType.of(_PARTIAL[class_of(dtype)])


def reduced_shape(shape: Shape, axis: Sequence[int], *, keepdims: bool) -> Shape:
    """The shape without some axes, or with 1 for them."""
    if keepdims:
        return tuple([1 if number in axis else length for number, length in enumerate(shape)])
    return tuple([length for number, length in enumerate(shape) if number not in axis])


class ReductionOps:
    """Reductions over axes."""

    launcher: Launcher
    full: Any
    cast: Any
    device: Any

    def sum(
        self, x: Buffer, *, axis: tuple[int, ...], keepdims: bool = False, dtype: DType
    ) -> Buffer:
        """16-bit floats add up in float32."""
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
        """Numbers are asked whether they are 0, without a mask of its own."""
        return self._reduce("any", x, axis, bool_, keepdims=keepdims)

    def all(self, x: Buffer, *, axis: tuple[int, ...], keepdims: bool = False) -> Buffer:
        """Numbers are asked whether they are 0, without a mask of its own."""
        return self._reduce("all", x, axis, bool_, keepdims=keepdims)

    def argmax(self, x: Buffer, *, axis: int, keepdims: bool = False, dtype: DType) -> Buffer:
        """The first of equals; NaN is largest."""
        return self._extremum(x, axis, dtype, smallest=False, keepdims=keepdims)

    def argmin(self, x: Buffer, *, axis: int, keepdims: bool = False, dtype: DType) -> Buffer:
        """The first of equals; NaN comes before all."""
        return self._extremum(x, axis, dtype, smallest=True, keepdims=keepdims)

    def _widened(self, x: Buffer, dtype: DType) -> Buffer:
        """Elements that become what `dtype` computes in as they are read, or are cast."""
        same = class_of(x.dtype) == class_of(dtype) and x.dtype.itemsize <= dtype.itemsize
        return x if same else self.cast(x, dtype=dtype)

    def _reduce(
        self, op: str, x: Buffer, axis: tuple[int, ...], dtype: DType, *, keepdims: bool
    ) -> Buffer:
        launcher = self.launcher
        producer = launcher.producer_of(x)
        if producer is not None:
            x = producer.x.viewed(x.shape, x.strides)
        rows = launcher.rows_along(x, axis)
        shape = reduced_shape(x.shape, axis, keepdims=keepdims)
        if not rows.n:
            if op not in _OF_NOTHING:
                raise ValueError(f"{op} of no elements")
            number = _OF_NOTHING[op]
            return self.full(shape=shape, fill_value=number, dtype=dtype, device=self.device)  # type: ignore[no-any-return]  # a Buffer
        out = launcher.empty(shape, dtype)
        if not out.size:
            return out
        source = CODES[x.dtype.name]
        target = CODES[dtype.name]
        parts, chunk = self._parts(rows)
        by_columns = self._goes_by_columns(rows)
        if parts > 1 or by_columns:
            count = rows.outer * parts * rows.inner
            partial = launcher.empty((count,), partial_dtype(x.dtype))
            middle = CODES[partial.dtype.name]
            name = "reduce_columns" if by_columns else None
            self.reduce_parts(
                op, rows, parts, chunk, source, middle, partial.memory, name, producer
            )
            rows, producer = Rows(partial, rows.outer, parts, rows.inner), None
            source = middle
            op = {"any": "max", "all": "min"}.get(op, op)
        self.reduce_parts(op, rows, 1, rows.n, source, target, out.memory, producer=producer)
        return out

    def _goes_by_columns(self, rows: Rows) -> bool:
        """Whether a CPU takes large rows one after the other, all columns of them at once."""
        launcher = self.launcher
        large = rows.outer * rows.n * rows.inner >= launcher.large
        return launcher.runtime.is_cpu and large and rows.inner > 1

    def _goes_by_blocks(self, rows: Rows, parts: int, chunk: int) -> bool:
        """Whether items of a GPU, one for each column, would be few or read far from each other.

        A part is to have enough for all items of a group.
        """
        few = rows.outer * parts * rows.inner < _ITEMS_OF_A_UNIT * self.launcher.runtime.units
        return (rows.inner <= _NARROW or few) and chunk * _wide(rows.inner) >= 2 * _GROUP

    def _parts(self, rows: Rows, narrow: int = _NARROW) -> tuple[int, int]:
        """In how many parts to reduce each row, and how long they are.

        Groups of a GPU take what has no more columns than are narrow.
        """
        runtime = self.launcher.runtime
        if runtime.is_cpu:
            by_group = rows.inner == 1
            wanted, items = 4 * runtime.units, rows.outer * -(-rows.inner // _COLUMNS)
        else:
            by_group = rows.inner <= narrow
            items = rows.outer * (_GROUP if by_group else rows.inner)
            wanted = 2048 * runtime.units
        shortest = max(_COLUMN, _CHUNK // rows.inner) if by_group else _COLUMN
        parts = max(1, min(wanted // items, rows.n // shortest))
        chunk = -(-rows.n // parts)
        if not runtime.is_cpu:
            chunk = -(-chunk // 4) * 4
        return -(-rows.n // chunk), chunk

    def reduce_parts(
        self,
        op: str,
        rows: Rows,
        parts: int,
        chunk: int,
        source: int,
        target: int,
        out: Any,
        name: str | None = None,
        producer: Producer | None = None,
    ) -> None:
        """Write what each part of each row comes to; dtypes are told by their codes."""
        launcher = self.launcher
        x, outer, n, inner = rows
        computed = class_of(x.dtype)
        on_cpu = launcher.runtime.is_cpu
        definitions: dict[str, str | int] = {"ALONG": 0}
        large = outer * n * inner >= launcher.large
        if large:
            definitions |= {"OP": _OPS[op], "SOURCE": source, "TARGET": target}
            definitions["ALONG"] = int(on_cpu and inner == 1)
        items, group, text = outer * parts * inner, 64, ""
        if on_cpu and items <= _FEW:
            group = 1  # the cores share groups, not items
        if name == "reduce_columns":
            items, group = outer * parts * -(-inner // _COLUMNS), 1
        elif not on_cpu and inner == 1 and (large or n > _SHORT):
            quads = not (n % 4 or chunk % 4 or x.offset % 4)
            lanes = _GROUP
            if large:
                lanes = _lanes(chunk // 4, _QUADS) if quads else _lanes(chunk)
            name, items, group = "reduce_rows", outer * parts * lanes, _GROUP
            definitions |= {"BY_QUADS": int(quads), "ROW_LANES": lanes}
            text = text_of("quads.cl") if quads else ""
        elif not on_cpu and inner > 1 and large and self._goes_by_blocks(rows, parts, chunk):
            wide = _wide(inner)
            name, group = "reduce_blocks", _GROUP
            items = outer * parts * -(-inner // wide) * group
            definitions["WIDE"] = wide
        definitions["GROUP_SIZE"] = group
        told: tuple[int, ...] = ()
        if producer is not None:
            definitions |= producer.definitions
            text += producer.text
            told = producer.numbers
        kernel = launcher.kernel(name or "reduce", "reduction.cl", computed, definitions, text)
        numbers = [outer, n, inner, x.offset, parts, chunk, _OPS[op], source, target]
        numbers += [*told, *[0] * (_NUMBERS - len(told))]
        launcher.run(kernel, items, numbers, (x.memory, out), group)

    def _extremum(
        self, x: Buffer, axis: int, dtype: DType, *, smallest: bool, keepdims: bool
    ) -> Buffer:
        launcher = self.launcher
        rows = launcher.rows_along(x, (axis,))
        if not rows.n:
            raise ValueError("the place of an extremum of no elements")
        out = launcher.empty(reduced_shape(x.shape, (axis,), keepdims=keepdims), dtype)
        if not out.size:
            return out
        large, on_cpu = x.size >= launcher.large, launcher.runtime.is_cpu
        along = rows.inner == 1
        parts, chunk = self._parts(rows, narrow=1)
        if not large:
            parts, chunk = 1, rows.n
        count = rows.outer * rows.inner
        name, items, group = "find_extremum", count * parts, 64
        source = CODES[x.dtype.name]
        definitions: dict[str, str | int] = {"SOURCE": source} if large else {}
        if large and on_cpu and not (along and chunk <= _SHORT):
            columns = -(-rows.inner // _PLACES)
            name, items, group = "find_along", rows.outer * parts, 1
            if not along:
                name, items = "find_columns", rows.outer * parts * columns
        elif along and not on_cpu and (large or rows.n > _SHORT):
            lanes = _lanes(chunk) if large else _GROUP
            name, items, group = "find_by_group", rows.outer * parts * lanes, _GROUP
            definitions["ROW_LANES"] = lanes
        numbers = [rows.outer, rows.n, rows.inner, rows.x.offset, parts, chunk, int(smallest)]
        numbers += [source, CODES[dtype.name]]

        def kernel(name: str) -> Any:
            return launcher.kernel(name, "extremum.cl", class_of(x.dtype), definitions)

        memory = rows.x.memory
        if parts == 1:
            launcher.run(kernel(name), items, numbers, (memory, out.memory), group)
            return out
        places = launcher.scratch(8 * count * parts)
        found = [*numbers[:-1], CODES["int64"]]
        launcher.run(kernel(name), items, found, (memory, places), group)
        memories = (memory, places, out.memory)
        if name == "find_by_group":
            launcher.run(kernel("join_by_group"), count * _GROUP, numbers, memories, _GROUP)
        else:
            launcher.run(kernel("join_extrema"), count, numbers, memories)
        return out


def _wide(inner: int) -> int:
    """How many columns a group of a GPU takes."""
    return inner if inner <= _NARROW else _BLOCK


def _lanes(pieces: int, each: int = _PIECES) -> int:
    """How many items of a GPU share a row: a power of two."""
    return min(_GROUP, power_of_two(-(-pieces // each)))
