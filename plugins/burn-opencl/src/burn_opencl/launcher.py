"""Launcher: the kernels of one device, and the tensors that they write.

Most work has two kernels, compiled from one source: a general one for small tensors, which takes
the operation and the dtypes as parameters, and a specialized one for large tensors, in which they
are constants. So a program compiles few kernels, and long work runs in kernels made for it.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from burn.plugin_api import COMPLEX_TYPES, CheckedOps, DiskCache
from burn_opencl.base import check_axis
from burn_opencl.buffers import Buffer, Memory, Pool, row_major
from burn_opencl.clblast import ClBlast
from burn_opencl.elementwise_launcher import ElementwiseLauncher
from burn_opencl.limits import GPU_GROUP_ITEMS, SMALL_GROUP_ITEMS
from burn_opencl.programs import Programs

if TYPE_CHECKING:
    from burn.plugin_api import DType, Shape
    from burn_opencl.runtime import Runtime

__all__ = ["MIN_SPECIALIZED_ELEMENTS", "Launcher", "Rows"]

MIN_SPECIALIZED_ELEMENTS: Final = 8192
"""Tensors with fewer elements use the general kernels."""

_CPU_GROUP_ITEMS: Final = 1024
"""Items of a work group of a CPU in specialized kernels that compute an element per item."""

_INDEX_ERROR_BYTES: Final = 32
"""Size of the index error that a kernel writes: op, index, length of the axis, and padding."""

_NO_DEFINITIONS: Final[Mapping[str, str | int]] = {}


class Rows(NamedTuple):
    """Dense elements as (outer, n, inner), for an op along the middle axis."""

    x: Buffer
    outer: int
    n: int
    inner: int


class Launcher(ElementwiseLauncher):
    """Kernels and memory of one device.

    Parameters
    ----------
    runtime : Runtime
        The device.
    owner : object
        The owner of the buffers: the backend's object for the device.
    """

    def __init__(self, runtime: Runtime, owner: Any) -> None:
        self.runtime = runtime
        self.owner = owner
        self.pool = Pool(runtime)
        cache = DiskCache("opencl")
        self.programs = Programs(runtime, cache)
        self.clblast = ClBlast(runtime, cache)
        self.min_specialized_elements = MIN_SPECIALIZED_ELEMENTS
        self.specialized_group_items = _CPU_GROUP_ITEMS if runtime.is_cpu else GPU_GROUP_ITEMS
        self._index_error = self.pool.take(_INDEX_ERROR_BYTES)
        self._clear_index_error()
        self._may_have_index_error = False
        self.checked = CheckedOps()
        self._shared: dict[Any, Any] = {}

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
        """Write values, which broadcast, to the elements of a view of a new tensor."""
        self.move("real", [values], target)

    def rows_along(self, x: Buffer, axis: Sequence[int]) -> Rows:
        """Elements with the given axes merged into one; a copy where they are not neighbours."""
        shape, reduced = x.shape, tuple(axis)
        check_axis(x, *reduced)
        outer, n, inner = _sizes_along(shape, reduced)
        if inner and x.is_dense:
            return Rows(x, outer, n, inner)
        kept = [index for index in range(len(shape)) if index not in reduced]
        moved = self.dense(x.permuted((*kept, *sorted(reduced))))
        return Rows(moved, math.prod([shape[number] for number in kept]), n, 1)

    # What the shared kernels of core need (`KernelLauncher`)

    @property
    def is_cpu(self) -> bool:
        """Whether the device is a processor."""
        return self.runtime.is_cpu

    @property
    def units(self) -> int:
        """Its cores, or what a GPU has in their stead."""
        return self.runtime.units

    @property
    def max_group(self) -> int:
        """Items of a group, at most."""
        return self.runtime.max_items

    @staticmethod
    def fixes_sizes(size: int) -> bool:
        """Yes: `shared_kernel` has sizes as constants where a kernel computes much."""
        del size
        return True

    new = empty

    @staticmethod
    def is_aligned(x: Buffer) -> bool:
        """Whether memory, which is aligned, has a multiple of four elements before the first."""
        return x.offset % 4 == 0

    @staticmethod
    def parts(x: Buffer) -> Buffer:
        """A real view of complex numbers."""
        return x.parts

    def of_parts(self, parts: Buffer, dtype: DType) -> Buffer:
        """The complex numbers of a real tensor with their parts along the last axis."""
        return self.dense(parts).of_parts(dtype)

    @staticmethod
    def dtype_of(x: Buffer) -> DType:
        """Dtype of the elements."""
        return x.dtype

    @staticmethod
    def offset_of(x: Buffer) -> int:
        """Index of the first element in the memory."""
        return x.offset

    def shared_kernel(
        self,
        entry: str,
        file: str,
        c_type: str,
        definitions: Mapping[str, str | int] = _NO_DEFINITIONS,
        types: Mapping[str, str | int] = _NO_DEFINITIONS,
        size: int = 0,
    ) -> Any:
        """A kernel of core, which knows types while it is compiled where it computes much."""
        is_special = bool(types) and self.is_specialized(size)
        key = (entry, file, c_type, *definitions.items(), *(types.items() if is_special else ()))
        found = self._shared.get(key)
        if found is None:
            macros = {**definitions, **types} if is_special else definitions
            found = self._shared[key] = self.kernel(entry, file, c_type, macros)
        return found

    def start(
        self,
        kernel: Any,
        parameters: Sequence[int],
        arrays: Sequence[Any],
        items: int,
        group: int = 0,
    ) -> None:
        """Launch a kernel of core."""
        if items:
            group = group or SMALL_GROUP_ITEMS
            size = -(-items // group) * group
            some = arrays[0].memory.handle  # stands for an absent one
            handles = [
                x.memory.handle
                if x.__class__ is Buffer
                else some
                if x is None
                else getattr(x, "handle", x)
                for x in arrays
            ]
            packed = _struct(len(parameters)).pack(*parameters)
            self.runtime.launch(kernel, packed, handles, (size,), (group,))

    def index_error(self, op: str) -> tuple[Any, int]:
        """See `index_error_memory`."""
        return self.index_error_memory(op)

    def table(self, make: Any, *arguments: Any) -> list[Buffer]:
        """See `OpenClOps.tables`."""
        found: list[Buffer] = self.owner.tables(make, *arguments)
        return found

    # Kernels

    def is_specialized(self, size: int) -> bool:
        """Whether work on so many elements uses specialized kernels."""
        return size >= self.min_specialized_elements

    def kernel(
        self,
        name: str,
        file: str,
        c_type: str,
        definitions: Mapping[str, str | int] = _NO_DEFINITIONS,
        body: str = "",
    ) -> Any:
        """A kernel of a file that computes in a C type, with source that it needs before it."""
        macros = type_macros(c_type) | {f"HAS_{name}": 1}
        return self.programs.kernel(name, file, {**macros, **definitions}, body)

    def run(
        self,
        kernel: Any,
        items: int,
        parameters: Sequence[int],
        memories: Sequence[Any],
        group: int = SMALL_GROUP_ITEMS,
    ) -> None:
        """Launch a kernel for at least so many work items, with parameters of 64 bits each."""
        if items:
            size = -(-items // group) * group
            packed = struct.pack(f"={len(parameters)}q", *parameters)
            handles = [getattr(memory, "handle", memory) for memory in memories]
            self.runtime.launch(kernel, packed, handles, (size,), (group,))

    def scratch(self, size: int) -> Memory:
        """Temporary memory: the caller holds it until the kernels that use it are queued."""
        return self.pool.take(max(size, 8))

    # Indices out of range

    def index_error_memory(self, op: str) -> tuple[Any, int]:
        """Memory to which a kernel writes an index that is out of range, and the op's number."""
        self._may_have_index_error = True
        return self._index_error, self.checked.number(op)

    def raise_index_error(self) -> None:
        """Raise the index error that a kernel wrote, and clear it.

        Raises
        ------
        OutOfRangeError
            If there is one.
        """
        if not self._may_have_index_error:
            return
        self._may_have_index_error = False
        values = np.zeros(_INDEX_ERROR_BYTES // 8, np.int64)
        self.runtime.read(values, self._index_error.handle, 0)
        number, index, length, _ = map(int, values)
        if number:
            self._clear_index_error()
            raise self.checked.error(number, index, length)

    def _clear_index_error(self) -> None:
        self.runtime.fill(self._index_error.handle, bytes(8), _INDEX_ERROR_BYTES)


@functools.cache
def _struct(count: int) -> struct.Struct:
    """So many integers of 64 bits."""
    return struct.Struct(f"={count}q")


@functools.lru_cache(maxsize=4096)
def _sizes_along(shape: Shape, axis: tuple[int, ...]) -> tuple[int, int, int]:
    """(outer, n, inner) of dense elements; inner is 0 where the axes are not neighbours."""
    reduced = set(axis)
    n = math.prod([shape[number] for number in reduced])
    axes = [index for index, length in enumerate(shape) if length != 1]
    positions = [position for position, axis in enumerate(axes) if axis in reduced]
    if not positions:
        return math.prod(shape), 1, 1
    if positions[-1] - positions[0] + 1 != len(positions):
        return 0, n, 0
    outer = math.prod([shape[axis] for axis in axes[: positions[0]]])
    return outer, n, math.prod([shape[axis] for axis in axes[positions[-1] + 1 :]])


def type_macros(c_type: str) -> dict[str, str | int]:
    """Macros by which the kernel files know the type that they compute in."""
    if c_type in COMPLEX_TYPES:  # which `complex_numbers.cl` defines
        return {"IS_DOUBLE": int(c_type == "double2")}
    return {
        "C": c_type,
        "KIND": c_type,
        "IS_FLOATING": int(c_type in ("float", "double")),
        "IS_DOUBLE": int(c_type == "double"),
        "IS_SIGNED": int(c_type != "ulong"),
    }
