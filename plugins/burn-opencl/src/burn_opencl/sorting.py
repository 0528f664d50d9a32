"""Order: stable sorts of entries, which are keys in the order of the elements (``keys.cl``)."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from burn.dtype import DType, Kind
from burn.errors import ExecutionError
from burn_opencl.buffers import Buffer
from burn_opencl.expressions import CODES
from burn_opencl.programs import text_of

if TYPE_CHECKING:
    from burn_opencl.buffers import Memory
    from burn_opencl.launcher import Launcher

__all__ = ["SortingOps", "sort_by_digits"]

_LONGEST: Final = 1 << 32
"""Places in a row are numbers of 32 bits."""

_DIGIT_BITS: Final = 8
_DIGITS: Final = 1 << _DIGIT_BITS

_INFINITY: Final = {
    "float16": 0x7C00,
    "bfloat16": 0x7F80,
    "float32": 0x7F80_0000,
    "float64": 0x7FF0_0000_0000_0000,
}
"""Bits of the numbers that are larger than all others."""

_PER: Final = {1: 16, 2: 16, 4: 16, 8: 12, 16: 7}
"""Entries of an item of a GPU, by their bytes: a tile takes less than 32 KiB of local memory."""

_SHORT: Final = {True: 64, False: 256}
"""Up to this length CPUs, and GPUs, compare each element of a row with all others."""

_FEW_TILES: Final = 32
"""Up to so many tiles of a row each group of a GPU adds up for itself what is in them."""

_PARTS_OF_A_UNIT: Final = 2
"""Items that a unit of a CPU gets, so that none waits long for the last."""

_WHOLE: Final = 32_768
"""Up to this length one item of a CPU sorts a row, even where there are few rows."""

_FEW: Final = 4
"""What is less than one of so many is looked for in parts of a row first."""

_ROOM: Final = 1024
"""Entries among which an item of a CPU looks for the first, at least."""

_ELEMENTS, _ENTRIES, _PAIRS, _PLACES = range(4)
"""What entries come from, and what they become (``keys.cl``)."""

_TYPES: Final = {8: "uchar", 16: "ushort", 32: "uint", 64: "ulong"}


class SortingOps:
    """Stable sorts along an axis."""

    launcher: Launcher

    def sort(self, x: Buffer, *, axis: int, descending: bool = False) -> Buffer:
        """Of keys alone, which are the elements in other words."""
        return self._sort(x, axis, x.dtype, x.shape[axis], descending=descending, places=False)

    def argsort(self, x: Buffer, *, axis: int, descending: bool = False, dtype: DType) -> Buffer:
        """Of keys with the places of the elements."""
        return self._sort(x, axis, dtype, x.shape[axis], descending=descending, places=True)

    def argtopk(
        self, x: Buffer, *, k: int, axis: int, largest: bool = True, dtype: DType
    ) -> Buffer:
        """The first of a sort; where they are few, of parts of each row, and of what those give."""
        return self._sort(x, axis, dtype, k, descending=largest, places=True)

    def _sort(
        self, x: Buffer, axis: int, dtype: DType, kept: int, *, descending: bool, places: bool
    ) -> Buffer:
        launcher = self.launcher
        rank = len(x.shape)
        if not (0 <= axis < rank and 0 <= kept <= x.shape[axis]):
            raise IndexError(f"{kept} along axis {axis} of {x.shape}")
        if x.shape[axis] > _LONGEST:
            raise ExecutionError(
                f"a sort along an axis of {x.shape[axis]} elements; it can have {_LONGEST}",
                hint="Sort parts of it",
            )
        others = [number for number in range(rank) if number != axis]
        moved = launcher.dense(x.permuted((*others, axis)))
        out = launcher.empty((*moved.shape[:-1], kept), dtype)
        if out.size:
            n = x.shape[axis]
            keys = _keys_of(moved, dtype, descending=descending, places=places)
            source = _Form(_ELEMENTS, moved.memory, moved.memory)
            target = _Form(_PLACES if places else _ELEMENTS, out.memory, out.memory)
            _Sorter(launcher, keys).sort(source, target, moved.size // n, n, kept)
        back = [others.index(number) if number != axis else rank - 1 for number in range(rank)]
        return out.permuted(back)


def sort_by_digits(
    launcher: Launcher, keys: Memory, places: Memory, rows: int, n: int, lowest: int, bits: int
) -> tuple[Memory, Memory]:
    """Rows of keys of 32 bits in order, and what was beside each.

    They differ in some bits only, from the lowest of those on. The sort is stable.
    """
    target = launcher.scratch(4 * rows * n), launcher.scratch(4 * rows * n)
    sorter = _Sorter(launcher, _Keys(32, lowest, bits, places=True, numbers=(0,) * 8))
    sorter.sort_by_digits(_Form(_PAIRS, keys, places), _Form(_PAIRS, *target), rows, n, n)
    return target


class _Form(NamedTuple):
    """Memory in which entries lie, or what they are made of."""

    what: int
    first: Any
    second: Any


class _Keys(NamedTuple):
    """How elements become keys of some width, and which bits of those differ."""

    width: int
    lowest: int
    bits: int
    places: bool
    numbers: tuple[int, ...]

    @property
    def size(self) -> int:
        """Bytes of an entry."""
        alone = self.width // 8
        return max(8, 2 * alone) if self.places else alone


def _keys_of(x: Buffer, out: DType, *, descending: bool, places: bool) -> _Keys:
    width = 8 * x.dtype.itemsize
    mapping = _mapping(x.dtype, descending=descending)
    numbers = (x.offset, CODES[out.name], *mapping)
    return _Keys(width, 0, 1 if x.dtype.is_bool else width, places, numbers)


@functools.cache
def _mapping(dtype: DType, *, descending: bool) -> tuple[int, ...]:
    """How bits of elements become keys (``key_of``), as numbers of 64 bits with a sign."""
    width = 8 * dtype.itemsize
    ones, sign = (1 << width) - 1, 1 << width - 1
    infinity, zero, positive, negative, least = ones, ones, 0, 0, 0
    if dtype.is_float:
        infinity = _INFINITY[dtype.name]
        zero, positive, negative, least = 0, sign, ones, ones & ~(sign | infinity)
    elif dtype.kind is Kind.INT:
        positive = negative = sign
    numbers = (infinity, zero, positive, negative, least, ones if descending else 0)
    return tuple([one - (1 << 64) if one >> 63 else one for one in numbers])


class _Sorter:
    """Sorts of entries of one kind."""

    def __init__(self, launcher: Launcher, keys: _Keys) -> None:
        self._launcher = launcher
        self._keys = keys
        self._is_cpu = launcher.runtime.is_cpu
        self._items = _PARTS_OF_A_UNIT * launcher.runtime.units
        self._group = 1 if self._is_cpu else _DIGITS
        self._tile = _DIGITS * _PER[keys.size]

    def sort(self, source: _Form, target: _Form, rows: int, n: int, kept: int) -> None:
        """The first so many of each row, in order."""
        while (length := self._length(rows, n, kept)) < n:
            if not length:
                self.sort_by_digits(source, target, rows, n, kept)
                return
            tiles = -(-n // length)
            line = (tiles - 1) * kept + min(kept, n - (tiles - 1) * length)
            between = self._entries(rows * line)
            self._sort_tiles(source, between, rows, n, length, kept, line)
            source, n = between, line
        self._sort_tiles(source, target, rows, n, n, kept, kept)

    def _length(self, rows: int, n: int, kept: int) -> int:
        """Of the parts of a row that are sorted each for itself; 0 where they do not help."""
        if self._is_cpu:
            if rows >= self._items or n <= _WHOLE:
                return n
            parts = min(-(-self._items // rows), n // (_FEW * kept))
            return -(-n // parts) if parts else 0
        if n <= self._tile:
            return n
        return self._tile if _FEW * kept <= self._tile else 0

    def _sort_tiles(
        self, source: _Form, target: _Form, rows: int, n: int, length: int, kept: int, line: int
    ) -> None:
        """The first of each tile, one after the other in a line for each row."""
        tiles, room, per = -(-n // length), 0, 1
        is_short = n <= _SHORT[self._is_cpu]
        name = "rank_rows" if is_short else "sort_tiles"
        memories = [*source[1:], *target[1:]]
        if self._is_cpu:
            items = min(rows * tiles, self._items)
            if not is_short:
                room = min(length, max(2 * kept, _ROOM))
                memories.append(self._launcher.scratch(2 * items * room * self._keys.size))
        elif is_short:
            items = -(-rows // (_DIGITS // n))
        else:
            items = rows * tiles
            most = self._tile // _DIGITS
            per = next(min(one, most) for one in (1, 2, 4, 8, most) if length <= _DIGITS * one)
        numbers = (rows, n, *self._keys.numbers, 0, tiles, length, kept, line, room)
        self._run(name, items, numbers, memories, source.what, target.what, per)

    def sort_by_digits(self, source: _Form, target: _Form, rows: int, n: int, kept: int) -> None:
        """The same, by one digit of the keys after the other, the lowest first."""
        keys = self._keys
        tiles = max(1, self._items // rows) if self._is_cpu else -(-n // self._tile)
        length = -(-n // tiles) if self._is_cpu else self._tile
        counts = self._launcher.scratch(4 * rows * _DIGITS * (tiles + 1))
        shifts = range(keys.lowest, keys.lowest + keys.bits, _DIGIT_BITS)
        between = [self._entries(rows * n) for _ in shifts[1:3]]
        for step, shift in enumerate(shifts):
            last = shift == shifts[-1]
            there = target if last else between[step % 2]
            line = kept if last else n
            numbers = (rows, n, *keys.numbers, shift, tiles, length, line, line, 0)
            forms = source.what, there.what, self._tile // _DIGITS
            self._run("count_digits", rows * tiles, numbers, [*source[1:], counts], *forms)
            if self._is_cpu or tiles > _FEW_TILES:
                adders = rows if self._is_cpu else rows * _DIGITS
                self._run("add_counts", adders, numbers, [counts], *forms)
            memories = [*source[1:], counts, *there[1:]]
            self._run("move_digits", rows * tiles, numbers, memories, *forms)
            source = there

    def _entries(self, count: int) -> _Form:
        memory = self._launcher.scratch(self._keys.size * count)
        return _Form(_ENTRIES, memory, memory)

    def _run(
        self,
        name: str,
        items: int,
        numbers: tuple[int, ...],
        memories: list[Any],
        source: int,
        target: int,
        per: int,
    ) -> None:
        keys = self._keys
        definitions: dict[str, str | int] = {
            "WIDTH": keys.width,
            "BITS": _TYPES[keys.width],
            "WITH_PLACES": int(keys.places),
            "SOURCE": source,
            "TARGET": target,
            "PER": per,
            "FEW_TILES": _FEW_TILES,
        }
        if name.endswith(("digits", "counts")):
            definitions["HAS_count_digits"] = 1  # the three stand in one program
        text = text_of("keys.cl")
        kernel = self._launcher.kernel(name, "sorting.cl", "ulong", definitions, text)
        self._launcher.run(kernel, items * self._group, numbers, memories, self._group)
