"""Order: stable sorts of keys, which are unsigned integers in the order of the elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from burn.dtype import DType
from burn_opencl.buffers import Buffer
from burn_opencl.expressions import CODES, class_of

if TYPE_CHECKING:
    from burn_opencl.buffers import Memory
    from burn_opencl.launcher import Launcher

__all__ = ["SortingOps", "sort_by_digits"]

_BLOCK: Final = 16
_SEGMENT: Final = 32
_MERGING: Final = {"HAS_make_blocks": 1}

_LONG: Final = 4096
"""GPUs sort rows from this length on by digits."""

_DIGITS: Final = 16
_PER: Final = {False: 8, True: 4}
"""Keys of an item in a tile: those of 64 bits take more local memory."""

_BITS: Final = {"bool": (0, 4), "float16": (12, 20), "bfloat16": (16, 16)}
"""The lowest bit of a key that differs, and how many do, of dtypes that are no words."""


class SortingOps:
    """Stable sorts; the ops that are made of one have defaults."""

    launcher: Launcher

    def argsort(self, x: Buffer, *, axis: int, descending: bool = False, dtype: DType) -> Buffer:
        """All rows at once."""
        launcher = self.launcher
        rank = len(x.shape)
        if not 0 <= axis < rank:
            raise IndexError(f"axis {axis} of {rank}")
        others = [number for number in range(rank) if number != axis]
        moved = launcher.dense(x.permuted((*others, axis)))
        n, total = x.shape[axis], moved.size
        out = launcher.empty(moved.shape, dtype)
        if total:
            self._sort(moved, out, n, descending=descending)
        back = [others.index(number) if number != axis else rank - 1 for number in range(rank)]
        return out.permuted(back)

    def _sort(self, x: Buffer, out: Buffer, n: int, *, descending: bool) -> None:
        launcher = self.launcher
        by_digits = not launcher.runtime.is_cpu and n >= _LONG
        places = (self._by_digits if by_digits else self._merged)(x, n, descending=descending)
        kernel = launcher.kernel("write_places", "sorting.cl", class_of(x.dtype))
        numbers = (x.size, n, 0, CODES[out.dtype.name], 0, 0)
        launcher.run(kernel, x.size, numbers, (places, out.memory))

    def _merged(self, x: Buffer, n: int, *, descending: bool) -> Memory:
        """Places in the order of the elements: runs are merged until there is one."""
        launcher = self.launcher

        def kernel(name: str) -> Any:
            return launcher.kernel(name, "sorting.cl", class_of(x.dtype), _MERGING)

        total = x.size
        rows = total // n
        here = launcher.scratch(8 * total), launcher.scratch(4 * total)
        there = launcher.scratch(8 * total), launcher.scratch(4 * total)
        numbers = (total, n, x.offset, CODES[x.dtype.name], int(descending), 0)
        launcher.run(kernel("make_blocks"), rows * -(-n // _BLOCK), numbers, (x.memory, *here))
        width = _BLOCK
        while width < n:
            numbers = (total, n, 0, 0, 0, width)
            items = rows * -(-n // _SEGMENT)
            launcher.run(kernel("merge_runs"), items, numbers, (*here, *there))
            here, there = there, here
            width *= 2
        return here[1]

    def _by_digits(self, x: Buffer, n: int, *, descending: bool) -> Memory:
        """The same, by one digit of the keys after the other, the lowest first."""
        launcher, dtype, total = self.launcher, x.dtype, x.size
        rows = total // n
        wide = dtype.itemsize == 8
        lowest, bits = _BITS.get(dtype.name, (0, 8 * dtype.itemsize))
        sign = 1 << 8 * dtype.itemsize - 1
        definitions = {"KEY": "ulong" if wide else "uint", "SIGN": f"{sign}UL"}

        keys = launcher.scratch((8 if wide else 4) * total)
        places = launcher.scratch(4 * total)
        numbers = (total, n, x.offset, CODES[dtype.name], int(descending), 0)
        kernel = launcher.kernel("make_keys", "sorting.cl", class_of(dtype), definitions)
        launcher.run(kernel, total, numbers, (x.memory, keys, places), 256)
        return sort_by_digits(launcher, keys, places, rows, n, lowest, bits, wide=wide)[1]


def sort_by_digits(
    launcher: Launcher,
    keys: Memory,
    places: Memory,
    rows: int,
    n: int,
    lowest: int,
    bits: int,
    *,
    wide: bool = False,
) -> tuple[Memory, Memory]:
    """Rows of keys of 32 bits, or of 64, in order, and what was beside each.

    They differ in some bits only, from the lowest of those on. The sort is stable.
    """
    per = _PER[wide]
    definitions = {"KEY": "ulong" if wide else "uint", "PER": per, "HAS_count_digits": 1}
    total, tiles = rows * n, -(-n // (256 * per))
    counts = launcher.scratch(4 * rows * _DIGITS * (tiles + 1))

    def run(name: str, digit: int, groups: int, *memories: Memory) -> None:
        kernel = launcher.kernel(name, "sorting.cl", "ulong", definitions)
        launcher.run(kernel, groups * 256, (total, n, 0, 0, 0, digit), memories, 256)

    here = keys, places
    there = launcher.scratch((8 if wide else 4) * total), launcher.scratch(4 * total)
    for digit in range(lowest, lowest + bits, 4):
        run("count_digits", digit, rows * tiles, here[0], counts)
        run("add_counts", digit, rows * _DIGITS, counts)
        run("move_digits", digit, rows * tiles, *here, counts, *there)
        here, there = there, here
    return here
