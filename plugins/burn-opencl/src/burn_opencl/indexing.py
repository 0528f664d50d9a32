"""Reading and writing at places that a tensor names. Kernels check indices, and leave a note."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from burn.backend.array import check_places
from burn.dtype import float32
from burn_opencl.buffers import Buffer
from burn_opencl.expressions import CODES, class_of
from burn_opencl.segments import joins_segments, update_segments

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn_opencl.launcher import Launcher

__all__ = ["IndexingOps"]

_WORDS: Final = {1: CODES["uint8"], 2: CODES["uint16"], 4: CODES["uint32"], 8: CODES["uint64"]}
_UPDATES: Final = {"assign": 0, "add": 1, "multiply": 2, "min": 3, "max": 4}


class IndexingOps:
    """Indexing by integer tensors."""

    launcher: Launcher
    cast: Any

    def gather(self, x: Buffer, indices: Buffer, *, axis: int) -> Buffer:
        """An item for each index."""
        _check_axis(x, axis)
        check_places(x, indices, axis)
        return self._read("gather", x, indices, axis, indices.shape)

    def select(self, x: Buffer, indices: Buffer, *, axis: int) -> Buffer:
        """An item for each element that is read."""
        _check_axis(x, axis)
        _check_vector(indices)
        shape = (*x.shape[:axis], indices.shape[0], *x.shape[axis + 1 :])
        return self._read("select", x, indices, axis, shape)

    def _read(self, op: str, x: Buffer, indices: Buffer, axis: int, shape: Shape) -> Buffer:
        launcher = self.launcher
        x, indices = launcher.dense(x), launcher.dense(indices)
        out = launcher.empty(shape, x.dtype)
        note, call = launcher.note(op)
        kernel = self._kernel("gather", "ulong", _WORDS[x.dtype.itemsize], indices, out.size)
        numbers = (
            out.size,
            *_lengths(x.shape, axis, shape[axis]),
            x.offset,
            indices.offset,
            0,
            int(op == "select"),
            _WORDS[x.dtype.itemsize],
            CODES[indices.dtype.name],
            0,
            call,
        )
        launcher.run(kernel, out.size, numbers, (x.memory, indices.memory, out.memory, note))
        return out

    def scatter_add(self, x: Buffer, indices: Buffer, value: Buffer, *, axis: int) -> Buffer:
        """In order, so that a sum is the same each time."""
        return self._updated("scatter_add", x, indices, value, axis, "add")

    def scatter(
        self, x: Buffer, indices: Buffer, value: Buffer, *, axis: int, update: str
    ) -> Buffer:
        """In order."""
        return self._updated("scatter", x, indices, value, axis, update)

    def select_add(self, x: Buffer, indices: Buffer, value: Buffer, *, axis: int) -> Buffer:
        """In order, so that a sum is the same each time."""
        return self._updated("select_add", x, indices, value, axis, "add")

    def select_assign(
        self, x: Buffer, indices: Buffer, value: Buffer, *, axis: int, update: str
    ) -> Buffer:
        """In order."""
        return self._updated("select_assign", x, indices, value, axis, update)

    def _updated(
        self, op: str, x: Buffer, indices: Buffer, value: Buffer, axis: int, update: str
    ) -> Buffer:
        dtype = x.dtype
        _check_axis(x, axis)
        selects = op.startswith("select")
        if selects:
            _check_vector(indices)
            if value.shape != (*x.shape[:axis], indices.shape[0], *x.shape[axis + 1 :]):
                raise ValueError(f"a value of shape {value.shape} for {indices.shape[0]} places")
        else:
            check_places(x, indices, axis, value)
        code = _UPDATES[update]
        if value.dtype is not dtype or (dtype.is_bool and update in ("add", "multiply")):
            raise TypeError(f"{update} of {value.dtype} to {dtype}")
        launcher = self.launcher
        narrow = dtype.is_float and dtype.itemsize == 2 and update in ("add", "multiply")
        wide = float32 if narrow else dtype
        out = self.cast(x, dtype=wide) if narrow else launcher.copied(x)
        value = launcher.dense(self.cast(value, dtype=wide))
        indices = launcher.dense(indices)
        lengths = _lengths(x.shape, axis, value.shape[axis])
        note, call = launcher.note(op)
        if value.size and joins_segments(launcher, lengths[0] * lengths[3], lengths[2], lengths[1]):
            update_segments(
                launcher,
                out,
                indices,
                value,
                lengths,
                shared=selects,
                update=code,
                note=(note, call),
            )
            return self.cast(out, dtype=dtype)  # type: ignore[no-any-return]  # a Buffer
        kernel = self._kernel(
            "scatter", class_of(wide), CODES[wide.name], indices, value.size, code
        )
        columns = lengths[0] * lengths[3]
        if not value.size:
            columns = 0
        numbers = (
            columns,
            *lengths,
            0,
            indices.offset,
            value.offset,
            int(selects),
            CODES[wide.name],
            CODES[indices.dtype.name],
            code,
            call,
        )
        launcher.run(kernel, columns, numbers, (out.memory, indices.memory, value.memory, note))
        return self.cast(out, dtype=dtype)  # type: ignore[no-any-return]  # a Buffer

    def _kernel(
        self, name: str, computed: str, code: int, indices: Buffer, size: int, update: int = 0
    ) -> Any:
        types: dict[str, str | int] = {}
        if size >= self.launcher.large:
            types = {"TYPE": code, "INDEX_TYPE": CODES[indices.dtype.name], "UPDATE": update}
        return self.launcher.kernel(name, "indexing.cl", computed, types)


def _lengths(shape: Shape, axis: int, count: int) -> tuple[int, int, int, int]:
    """What lies before an axis, along it, how many places are named there, and what lies behind."""
    return math.prod(shape[:axis]), shape[axis], count, math.prod(shape[axis + 1 :])


def _check_axis(x: Buffer, axis: int) -> None:
    if not 0 <= axis < len(x.shape):
        raise IndexError(f"axis {axis} of {len(x.shape)}")


def _check_vector(indices: Buffer) -> None:
    if len(indices.shape) != 1:
        raise ValueError(f"indices with {len(indices.shape)} axes")
