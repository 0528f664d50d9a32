"""Stable radix sorts of entries: keys that are ordered as the elements are (``sort_keys.cl``)."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from burn.plugin_api import DTYPE_CODES, DType, ExecutionError, Kind, as_signed
from burn_opencl.base import OpenClOps
from burn_opencl.buffers import Buffer
from burn_opencl.programs import text_of

if TYPE_CHECKING:
    from burn_opencl.buffers import Memory
    from burn_opencl.launcher import Launcher

__all__ = ["SortingOps", "sort_by_digits"]

_MAX_ROW_ELEMENTS: Final = 1 << 32
"""Indices in a row have 32 bits."""

_DIGIT_BITS: Final = 8
_DIGITS: Final = 1 << _DIGIT_BITS

_INFINITY_BITS: Final = {
    "float16": 0x7C00,
    "bfloat16": 0x7F80,
    "float32": 0x7F80_0000,
    "float64": 0x7FF0_0000_0000_0000,
}
"""Bits of infinity."""

_ENTRIES_PER_GPU_ITEM: Final = {1: 16, 2: 16, 4: 16, 8: 12, 16: 7}
"""By the bytes of an entry: the tile of a group takes less than 32 KiB of local memory."""

_MAX_CPU_ELEMENTS_FOR_RANKING: Final = 64
_MAX_GPU_ELEMENTS_FOR_RANKING: Final = 256
"""Up to this length of a row, each element is compared with all others."""

_MAX_TILES_TO_SUM_IN_GROUPS: Final = 32
"""Up to so many tiles of a row, each group of a GPU sums their counts itself."""

_CPU_ITEMS_PER_UNIT: Final = 2
"""More items than cores, so that no core waits long for the last of them."""

_MAX_ELEMENTS_FOR_ONE_CPU_ITEM: Final = 32_768
"""Up to this length an item of a CPU sorts a whole row, even where there are few rows."""

_MIN_RATIO_FOR_PARTS: Final = 4
"""Where rows are so many times longer than the kept entries, parts of them are sorted first."""

_MIN_CPU_ENTRIES: Final = 1024
"""Entries for which an item of a CPU has memory, at least."""

_ELEMENTS, _ENTRIES, _PAIRS, _INDICES = range(4)
"""Forms of the source and the target of a sort (``sort_keys.cl``)."""

_KEY_TYPES: Final = {8: "uchar", 16: "ushort", 32: "uint", 64: "ulong"}


class SortingOps(OpenClOps):
    """Stable sorts along an axis."""

    def sort(self, x: Buffer, *, axis: int, descending: bool = False) -> Buffer:
        """Sorts keys alone: they determine the elements."""
        return self._sort(
            x, axis, x.dtype, x.shape[axis], descending=descending, with_indices=False
        )

    def argsort(self, x: Buffer, *, axis: int, descending: bool = False, dtype: DType) -> Buffer:
        """Sorts keys with the indices of the elements."""
        return self._sort(x, axis, dtype, x.shape[axis], descending=descending, with_indices=True)

    def argtopk(
        self, x: Buffer, *, k: int, axis: int, largest: bool = True, dtype: DType
    ) -> Buffer:
        """The first of a sort; where they are few, parts of each row are sorted before it."""
        return self._sort(x, axis, dtype, k, descending=largest, with_indices=True)

    def _sort(
        self, x: Buffer, axis: int, dtype: DType, kept: int, *, descending: bool, with_indices: bool
    ) -> Buffer:
        launcher = self.launcher
        rank = len(x.shape)
        if not (0 <= axis < rank and 0 <= kept <= x.shape[axis]):
            raise IndexError(f"{kept} along axis {axis} of {x.shape}")
        if x.shape[axis] > _MAX_ROW_ELEMENTS:
            raise ExecutionError(
                f"a sort along an axis of {x.shape[axis]} elements, more than {_MAX_ROW_ELEMENTS}",
                hint="Sort parts of it",
            )
        others = [number for number in range(rank) if number != axis]
        moved = launcher.dense(x.permuted((*others, axis)))
        out = launcher.empty((*moved.shape[:-1], kept), dtype)
        if out.size:
            n = x.shape[axis]
            keys = _keys_of(moved, dtype, descending=descending, with_indices=with_indices)
            source = _Form(_ELEMENTS, moved.memory, moved.memory)
            target = _Form(_INDICES if with_indices else _ELEMENTS, out.memory, out.memory)
            _Sorter(launcher, keys).sort(source, target, moved.size // n, n, kept)
        back = [others.index(number) if number != axis else rank - 1 for number in range(rank)]
        return out.permuted(back)


def sort_by_digits(
    launcher: Launcher, keys: Memory, indices: Memory, rows: int, n: int, lowest: int, bits: int
) -> tuple[Memory, Memory]:
    """Sort rows of pairs of a key and an index, of 32 bits each.

    The keys differ only in `bits` bits, from bit `lowest` on. The sort is stable.
    """
    target = launcher.scratch(4 * rows * n), launcher.scratch(4 * rows * n)
    sorter = _Sorter(launcher, _Keys(32, lowest, bits, with_indices=True, parameters=(0,) * 8))
    sorter.sort_by_digits(_Form(_PAIRS, keys, indices), _Form(_PAIRS, *target), rows, n, n)
    return target


class _Form(NamedTuple):
    """Memory of entries, or of elements or pairs that become entries, and its form."""

    form: int
    first: Any
    second: Any


class _Keys(NamedTuple):
    """How elements become keys of some width, and which bits of the keys differ."""

    width: int
    lowest: int
    bits: int
    with_indices: bool
    parameters: tuple[int, ...]

    @property
    def size(self) -> int:
        """Bytes of an entry."""
        key_bytes = self.width // 8
        return max(8, 2 * key_bytes) if self.with_indices else key_bytes


def _keys_of(x: Buffer, out: DType, *, descending: bool, with_indices: bool) -> _Keys:
    width = 8 * x.dtype.itemsize
    mapping = _mapping(x.dtype, descending=descending)
    parameters = (x.offset, DTYPE_CODES[out.name], *mapping)
    return _Keys(width, 0, 1 if x.dtype.is_bool else width, with_indices, parameters)


@functools.cache
def _mapping(dtype: DType, *, descending: bool) -> tuple[int, ...]:
    """Parameters of ``key_of``, which maps bits of elements to keys, as signed integers."""
    width = 8 * dtype.itemsize
    ones, sign = (1 << width) - 1, 1 << width - 1
    infinity, zero, positive, negative, lowest = ones, ones, 0, 0, 0
    if dtype.is_float:
        infinity = _INFINITY_BITS[dtype.name]
        zero, positive, negative, lowest = 0, sign, ones, ones & ~(sign | infinity)
    elif dtype.kind is Kind.INT:
        positive = negative = sign
    values = (infinity, zero, positive, negative, lowest, ones if descending else 0)
    return tuple([as_signed(value) for value in values])


class _Sorter:
    """Sorts entries of one size."""

    def __init__(self, launcher: Launcher, keys: _Keys) -> None:
        self._launcher = launcher
        self._keys = keys
        self._is_cpu = launcher.runtime.is_cpu
        self._items = _CPU_ITEMS_PER_UNIT * launcher.runtime.units
        self._group = 1 if self._is_cpu else _DIGITS
        self._tile = _DIGITS * _ENTRIES_PER_GPU_ITEM[keys.size]

    def sort(self, source: _Form, target: _Form, rows: int, n: int, kept: int) -> None:
        """Write the first `kept` entries of each row, in order."""
        while (length := self._length(rows, n, kept)) < n:
            if not length:
                self.sort_by_digits(source, target, rows, n, kept)
                return
            tiles = -(-n // length)
            row_entries = (tiles - 1) * kept + min(kept, n - (tiles - 1) * length)
            between = self._entries(rows * row_entries)
            self._sort_tiles(source, between, rows, n, length, kept, row_entries)
            source, n = between, row_entries
        self._sort_tiles(source, target, rows, n, n, kept, kept)

    def _length(self, rows: int, n: int, kept: int) -> int:
        """Length of the parts of a row that are sorted separately; 0 where that does not help."""
        if self._is_cpu:
            if rows >= self._items or n <= _MAX_ELEMENTS_FOR_ONE_CPU_ITEM:
                return n
            parts = min(-(-self._items // rows), n // (_MIN_RATIO_FOR_PARTS * kept))
            return -(-n // parts) if parts else 0
        if n <= self._tile:
            return n
        return self._tile if _MIN_RATIO_FOR_PARTS * kept <= self._tile else 0

    def _sort_tiles(
        self,
        source: _Form,
        target: _Form,
        rows: int,
        n: int,
        length: int,
        kept: int,
        row_entries: int,
    ) -> None:
        """Sort tiles, and write the first entries of each, one tile after the other in each row."""
        tiles, room, per_item = -(-n // length), 0, 1
        longest = _MAX_CPU_ELEMENTS_FOR_RANKING if self._is_cpu else _MAX_GPU_ELEMENTS_FOR_RANKING
        is_short = n <= longest
        name = "rank_rows" if is_short else "sort_tiles"
        memories = [*source[1:], *target[1:]]
        if self._is_cpu:
            items = min(rows * tiles, self._items)
            if not is_short:
                room = min(length, max(2 * kept, _MIN_CPU_ENTRIES))
                memories.append(self._launcher.scratch(2 * items * room * self._keys.size))
        elif is_short:
            items = -(-rows // (_DIGITS // n))
        else:
            items = rows * tiles
            most = self._tile // _DIGITS
            per_item = next(
                min(number, most) for number in (1, 2, 4, 8, most) if length <= _DIGITS * number
            )
        parameters = (rows, n, *self._keys.parameters, 0, tiles, length, kept, row_entries, room)
        self._run(name, items, parameters, memories, source.form, target.form, per_item)

    def sort_by_digits(self, source: _Form, target: _Form, rows: int, n: int, kept: int) -> None:
        """Write the same by a radix sort of whole rows, from the lowest digit to the highest."""
        keys = self._keys
        tiles = max(1, self._items // rows) if self._is_cpu else -(-n // self._tile)
        length = -(-n // tiles) if self._is_cpu else self._tile
        counts = self._launcher.scratch(4 * rows * _DIGITS * (tiles + 1))
        shifts = range(keys.lowest, keys.lowest + keys.bits, _DIGIT_BITS)
        between = [self._entries(rows * n) for _ in shifts[1:3]]
        for step, shift in enumerate(shifts):
            last = shift == shifts[-1]
            there = target if last else between[step % 2]
            row_entries = kept if last else n
            parameters = (
                rows,
                n,
                *keys.parameters,
                shift,
                tiles,
                length,
                row_entries,
                row_entries,
                0,
            )
            forms = source.form, there.form, self._tile // _DIGITS
            self._run("count_digits", rows * tiles, parameters, [*source[1:], counts], *forms)
            if self._is_cpu or tiles > _MAX_TILES_TO_SUM_IN_GROUPS:
                scanners = rows if self._is_cpu else rows * _DIGITS
                self._run("scan_counts", scanners, parameters, [counts], *forms)
            memories = [*source[1:], counts, *there[1:]]
            self._run("move_digits", rows * tiles, parameters, memories, *forms)
            source = there

    def _entries(self, count: int) -> _Form:
        memory = self._launcher.scratch(self._keys.size * count)
        return _Form(_ENTRIES, memory, memory)

    def _run(
        self,
        name: str,
        items: int,
        parameters: tuple[int, ...],
        memories: list[Any],
        source: int,
        target: int,
        per_item: int,
    ) -> None:
        keys = self._keys
        definitions: dict[str, str | int] = {
            "WIDTH": keys.width,
            "KEY": _KEY_TYPES[keys.width],
            "WITH_INDICES": int(keys.with_indices),
            "SOURCE": source,
            "TARGET": target,
            "ENTRIES_PER_ITEM": per_item,
            "MAX_TILES_TO_SUM": _MAX_TILES_TO_SUM_IN_GROUPS,
        }
        if name.endswith(("digits", "counts")):
            definitions["HAS_count_digits"] = 1  # these three kernels share a program
        text = text_of("sort_keys.cl")
        kernel = self._launcher.kernel(name, "sorting.cl", "ulong", definitions, text)
        self._launcher.run(kernel, items * self._group, parameters, memories, self._group)
