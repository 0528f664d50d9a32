"""Launcher: kernels of one device, what they are told, and the tensors they make.

There are two kernels for most work, of one source: a general one, which is told the operation and
the dtypes and serves small tensors, and one for large tensors, in which they are constants. So a
program compiles few kernels, and what takes time is compiled for itself.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from burn.backend.checked import CheckedOps
from burn.dtype import DType
from burn_opencl.buffers import Buffer, Memory, Pool, row_major
from burn_opencl.clblast import ClBlast
from burn_opencl.composed import CHECKED
from burn_opencl.computing import Computing
from burn_opencl.programs import Programs, cache_folder

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn_opencl.runtime import Runtime

__all__ = ["LARGE", "Launcher", "Rows"]

LARGE: Final = 8192
"""From so many elements on, work gets a kernel of its own."""

_NONE: Final[Mapping[str, str | int]] = {}
_SMALL_GROUP: Final = 64
_INDEXING: Final = ("gather", "select", "scatter_add", "select_add", "scatter", "select_assign")


class Rows(NamedTuple):
    """Dense elements as (outer, n, inner), of which the middle axis is meant."""

    x: Buffer
    outer: int
    n: int
    inner: int


class Launcher(Computing):
    """Kernels and memory of one device.

    Parameters
    ----------
    runtime : Runtime
        The device.
    owner : object
        What buffers name as their owner.
    """

    def __init__(self, runtime: Runtime, owner: Any) -> None:
        super().__init__()
        self.runtime = runtime
        self.owner = owner
        self.pool = Pool(runtime)
        self.programs = Programs(runtime, cache_folder())
        self.clblast = ClBlast(runtime, cache_folder())
        self.large = LARGE
        self.group = 1024 if runtime.is_cpu else 256
        """Items of a group in the kernels for large tensors."""
        self._note = self.pool.take(32)
        runtime.fill(self._note.handle, bytes(8), 32)
        self._unread = False
        self.checked = CheckedOps(*_INDEXING, *CHECKED)

    # Tensors

    def empty(self, shape: Shape, dtype: DType) -> Buffer:
        """A tensor whose elements are not written yet."""
        memory = self.pool.take(math.prod(shape) * dtype.itemsize)
        return Buffer(memory, shape, dtype, row_major(shape), 0, self.owner)

    def dense(self, x: Buffer) -> Buffer:
        """The same elements in row-major order without gaps."""
        return x if x.is_dense else self.copied(x)

    def copied(self, x: Buffer) -> Buffer:
        """A dense copy."""
        result = self.empty(x.shape, x.dtype)
        size = x.size * x.dtype.itemsize
        if size and x.is_dense:
            start = x.offset * x.dtype.itemsize
            self.runtime.copy(result.memory.handle, x.memory.handle, start, size)
        else:
            self.write(result, x)
        return result

    def write(self, target: Buffer, values: Buffer) -> None:
        """Write values, which broadcast, to the places that a new tensor shows."""
        self.move("copy", [values], target)

    def rows_along(self, x: Buffer, axis: Sequence[int]) -> Rows:
        """Elements so that the given axes are one, copied where they lie otherwise."""
        shape, chosen = x.shape, tuple(axis)
        outer, n, inner = _sizes_along(shape, chosen)
        if inner and x.is_dense:
            return Rows(x, outer, n, inner)
        kept = [one for one in range(len(shape)) if one not in chosen]
        moved = self.dense(x.permuted((*kept, *sorted(chosen))))
        return Rows(moved, math.prod([shape[one] for one in kept]), n, 1)

    # Kernels

    def kernel(
        self,
        name: str,
        file: str,
        computed: str,
        definitions: Mapping[str, str | int] = _NONE,
        body: str = "",
    ) -> Any:
        """A kernel of a file, which computes in a type."""
        macros = class_macros(computed) | {f"HAS_{name}": 1}
        return self.programs.kernel(name, file, {**macros, **definitions}, body)

    def run(
        self,
        kernel: Any,
        items: int,
        numbers: Sequence[int],
        memories: Sequence[Any],
        group: int = _SMALL_GROUP,
    ) -> None:
        """Launch a kernel with an item for each of so many, told numbers of 64 bits."""
        if items:
            self.settle()
            size = -(-items // group) * group
            parameters = struct.pack(f"={len(numbers)}q", *numbers)
            handles = [getattr(one, "handle", one) for one in memories]
            self.runtime.launch(kernel, parameters, handles, (size,), (group,))

    def scratch(self, size: int) -> Memory:
        """Memory for a while: the caller holds it until the kernels that use it are queued."""
        return self.pool.take(max(size, 8))

    # Indices out of range

    def note(self, op: str) -> tuple[Any, int]:
        """Where a kernel leaves a note of an index that is out of range, and the op's number."""
        self._unread = True
        return self._note, self.checked.number(op)

    def raise_noted(self) -> None:
        """Raise what a kernel left, and forget it.

        Raises
        ------
        OutOfRangeError
            If there is something.
        """
        if not self._unread:
            return
        self._unread = False
        values = np.zeros(4, np.int64)
        self.runtime.read(values, self._note.handle, 0)
        number, index, length, _ = map(int, values)
        if number:
            self.runtime.fill(self._note.handle, bytes(8), 32)
            raise self.checked.error(number, index, length)


@functools.lru_cache(maxsize=4096)
def _sizes_along(shape: Shape, axis: tuple[int, ...]) -> tuple[int, int, int]:
    """(outer, n, inner) of dense elements; inner is 0 where the axes do not follow each other."""
    chosen = set(axis)
    if len(chosen) != len(axis) or not all(0 <= one < len(shape) for one in axis):
        raise IndexError(f"axes {axis} of {len(shape)}")
    n = math.prod([shape[one] for one in chosen])
    long = [one for one, length in enumerate(shape) if length != 1]
    places = [place for place, one in enumerate(long) if one in chosen]
    if not places:
        return math.prod(shape), 1, 1
    if places[-1] - places[0] + 1 != len(places):
        return 0, n, 0
    outer = math.prod([shape[one] for one in long[: places[0]]])
    return outer, n, math.prod([shape[one] for one in long[places[-1] + 1 :]])


def class_macros(computed: str) -> dict[str, str | int]:
    """What the kernel files ask of the type that is computed in."""
    return {
        "C": computed,
        "IS_FLOATING": int(computed in ("float", "double")),
        "IS_DOUBLE": int(computed == "double"),
        "IS_SIGNED": int(computed != "ulong"),
    }
