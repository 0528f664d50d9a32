"""Order: a merge sort of keys, which are unsigned integers in the order of the elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from burn.dtype import DType
from burn_opencl.buffers import Buffer
from burn_opencl.expressions import CODES, class_of

if TYPE_CHECKING:
    from burn_opencl.launcher import Launcher

__all__ = ["SortingOps"]

_BLOCK: Final = 16
_SEGMENT: Final = 32


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
        computed = class_of(x.dtype)

        def kernel(name: str) -> Any:
            return launcher.kernel(name, "sorting.cl", computed)

        total = x.size
        rows = total // n
        here = launcher.scratch(8 * total), launcher.scratch(4 * total)
        there = launcher.scratch(8 * total), launcher.scratch(4 * total)
        numbers = (total, n, x.offset, CODES[x.dtype.name], int(descending), 0)
        launcher.run(kernel("make_keys"), rows * -(-n // _BLOCK), numbers, (x.memory, *here))
        width = _BLOCK
        while width < n:
            numbers = (total, n, 0, 0, 0, width)
            items = rows * -(-n // _SEGMENT)
            launcher.run(kernel("merge_runs"), items, numbers, (*here, *there))
            here, there = there, here
            width *= 2
        numbers = (total, n, 0, CODES[out.dtype.name], 0, 0)
        launcher.run(kernel("write_places"), total, numbers, (here[1], out.memory))
