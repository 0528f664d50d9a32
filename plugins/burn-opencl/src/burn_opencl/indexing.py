"""Indexing by integer tensors. Kernels check indices; an error is raised at the next read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from burn.plugin_api import check_gather_operands, int64
from burn_opencl.base import check_axis, inferred_shape
from burn_opencl.buffers import Buffer
from burn_opencl.dtypes import DTYPE_CODES, WORD_CODES, accumulator_dtype, c_type_of, check_dtypes
from burn_opencl.elementwise import ElementwiseOps
from burn_opencl.layout import LayoutOps
from burn_opencl.limits import MAX_KERNEL_AXES
from burn_opencl.segments import update_segments, updates_by_segments

if TYPE_CHECKING:
    from burn.plugin_api import Shape

__all__ = ["IndexingOps"]

_UPDATE_CODES: Final = {"add": 0, "multiply": 1, "max": 2, "min": 3, "assign": 6}
"""Codes of the ways to combine an element with an update (``common.cl``)."""


class IndexingOps(ElementwiseOps, LayoutOps):
    """Reading and writing elements at indices from a tensor."""

    def gather(self, x: Buffer, indices: Buffer, *, axis: int) -> Buffer:
        """An item for each index."""
        check_axis(x, axis)
        check_gather_operands(x, indices, axis)
        return self._read("gather", x, indices, axis, indices.shape)

    def select(self, x: Buffer, indices: Buffer, *, axis: int) -> Buffer:
        """An item for each element of the result."""
        check_axis(x, axis)
        _check_vector(indices)
        shape = (*x.shape[:axis], indices.shape[0], *x.shape[axis + 1 :])
        if 0 in shape:  # a kernel checks the index of each element
            result: Buffer = self.ops.decomposed("select", x, indices, axis=axis)
            return result
        return self._read("select", x, indices, axis, shape)

    def _read(self, op: str, x: Buffer, indices: Buffer, axis: int, shape: Shape) -> Buffer:
        launcher = self.launcher
        if x.dtype.itemsize not in WORD_CODES:  # complex128 is two words
            words = self._read(op, x.parts, _for_parts(op, indices), axis, (*shape, 2))
            return words.of_parts(x.dtype)
        x, indices = launcher.dense(x), launcher.dense(indices)
        out = launcher.empty(shape, x.dtype)
        error, op_number = launcher.index_error_memory(op)
        code = WORD_CODES[x.dtype.itemsize]
        kernel = self._kernel("gather", "ulong", code, indices, out.size)
        parameters = (
            out.size,
            *_sizes_around(x.shape, axis, shape[axis]),
            x.offset,
            indices.offset,
            0,
            int(op == "select"),
            code,
            DTYPE_CODES[indices.dtype.name],
            0,
            op_number,
        )
        memories = (x.memory, indices.memory, out.memory, error)
        launcher.run(kernel, out.size, parameters, memories)
        return out

    def scatter_add(self, x: Buffer, indices: Buffer, value: Buffer, *, axis: int) -> Buffer:
        """Updates of an element take effect in order, so sums are reproducible."""
        return self._updated("scatter_add", x, indices, value, axis, "add")

    def scatter(
        self, x: Buffer, indices: Buffer, value: Buffer, *, axis: int, update: str
    ) -> Buffer:
        """Updates of an element take effect in order."""
        return self._updated("scatter", x, indices, value, axis, update)

    def select_add(self, x: Buffer, indices: Buffer, value: Buffer, *, axis: int) -> Buffer:
        """Updates of an element take effect in order, so sums are reproducible."""
        if not value.size:  # a kernel checks the index of each element
            result: Buffer = self.ops.decomposed("select_add", x, indices, value, axis=axis)
            return result
        return self._updated("select_add", x, indices, value, axis, "add")

    def select_assign(
        self, x: Buffer, indices: Buffer, value: Buffer, *, axis: int, update: str
    ) -> Buffer:
        """Updates of an element take effect in order."""
        if not value.size:  # as in select_add
            result: Buffer = self.ops.decomposed(
                "select_assign", x, indices, value, axis=axis, update=update
            )
            return result
        return self._updated("select_assign", x, indices, value, axis, update)

    def _updated(
        self, op: str, x: Buffer, indices: Buffer, value: Buffer, axis: int, update: str
    ) -> Buffer:
        dtype = x.dtype
        check_axis(x, axis)
        is_select = op.startswith("select")
        if is_select:
            _check_vector(indices)
            if value.shape != (*x.shape[:axis], indices.shape[0], *x.shape[axis + 1 :]):
                raise ValueError(f"a value of shape {value.shape} for {indices.shape[0]} indices")
        else:
            check_gather_operands(x, indices, axis, value)
        code = _UPDATE_CODES[update]
        check_dtypes(op, x, value)
        if dtype.is_bool and update in ("add", "multiply"):
            raise TypeError(f"{op} of bool with update={update!r}")
        if dtype.is_complex:
            if update not in ("add", "assign"):
                if update != "multiply":
                    raise TypeError("complex numbers have no order")
                name = op if is_select else "scatter"
                result: Buffer = self.ops.decomposed(
                    name, x, indices, value, axis=axis, update=update
                )
                return result
            indices = _for_parts(op, indices)
            return self._updated(op, x.parts, indices, value.parts, axis, update).of_parts(dtype)
        launcher = self.launcher
        wide = (
            accumulator_dtype(dtype) if dtype.is_float and update in ("add", "multiply") else dtype
        )
        out = launcher.copied(x) if wide is dtype else self.cast(x, dtype=wide)
        value = launcher.dense(self.cast(value, dtype=wide))
        indices = launcher.dense(indices)
        sizes = outer, length, count, inner = _sizes_around(x.shape, axis, value.shape[axis])
        error, op_number = launcher.index_error_memory(op)
        columns = outer * inner if value.size else 0
        if columns and updates_by_segments(launcher, columns, count, length):
            update_segments(
                launcher,
                out,
                indices,
                value,
                sizes,
                shared=is_select,
                update=code,
                error=(error, op_number),
            )
        else:
            wide_code = DTYPE_CODES[wide.name]
            kernel = self._kernel("scatter", c_type_of(wide), wide_code, indices, value.size, code)
            parameters = (
                columns,
                *sizes,
                0,
                indices.offset,
                value.offset,
                int(is_select),
                wide_code,
                DTYPE_CODES[indices.dtype.name],
                code,
                op_number,
            )
            memories = (out.memory, indices.memory, value.memory, error)
            launcher.run(kernel, columns, parameters, memories)
        return self.cast(out, dtype=dtype)

    def _kernel(
        self, name: str, c_type: str, code: int, indices: Buffer, size: int, update: int = 0
    ) -> Any:
        macros: dict[str, str | int] = {}
        if self.launcher.is_specialized(size):
            index_code = DTYPE_CODES[indices.dtype.name]
            macros = {"TYPE": code, "INDEX_TYPE": index_code, "UPDATE": update}
        return self.launcher.kernel(name, "indexing.cl", c_type, macros)

    def gather_nd(self, x: Buffer, indices: Buffer) -> Buffer:
        """Two kernels: flat indices, and rows of a matrix at these."""
        if indices.shape and indices.shape[-1] > MAX_KERNEL_AXES:
            result: Buffer = self.ops.decomposed("gather_nd", x, indices)
            return result
        shape = inferred_shape("gather_nd", x, indices)
        matrix, flat = self._flattened("gather_nd", x, indices)
        return self.reshape(self.select(matrix, flat, axis=0), shape=shape)

    def scatter_nd(self, x: Buffer, indices: Buffer, value: Buffer, *, update: str) -> Buffer:
        """Two kernels: flat indices, and updates of rows of a matrix at these."""
        if indices.shape and indices.shape[-1] > MAX_KERNEL_AXES:
            result: Buffer = self.ops.decomposed("scatter_nd", x, indices, value, update=update)
            return result
        inferred_shape("scatter_nd", x, indices, value, update=update)
        matrix, flat = self._flattened("scatter_nd", x, indices)
        value = self.reshape(value, shape=(flat.shape[0], matrix.shape[1]))
        updated = self.select_assign(matrix, flat, value, axis=0, update=update)
        return self.reshape(updated, shape=x.shape)

    def _flattened(self, op: str, x: Buffer, indices: Buffer) -> tuple[Buffer, Buffer]:
        """A matrix with a row for each index of the first axes, and the rows that are indexed."""
        launcher = self.launcher
        if not indices.dtype.is_integer:
            raise TypeError(f"indices of {indices.dtype}")
        depth = indices.shape[-1]
        lengths, count = x.shape[:depth], math.prod(indices.shape[:-1])
        indices = launcher.dense(indices)
        flat = launcher.empty((count,), int64)
        kernel = launcher.kernel("flat_indices", "indexing.cl", "ulong")
        rows = math.prod(lengths)
        codes = DTYPE_CODES[indices.dtype.name], DTYPE_CODES[int64.name]
        padding = [0] * (MAX_KERNEL_AXES - depth)
        error, number = launcher.index_error_memory(op)
        parameters = (count, depth, indices.offset, *codes, rows, number, *lengths, *padding)
        launcher.run(kernel, count, parameters, (indices.memory, flat.memory, error))
        return self.reshape(x, shape=(rows, math.prod(x.shape[depth:]))), flat


def _sizes_around(shape: Shape, axis: int, count: int) -> tuple[int, int, int, int]:
    """Sizes before an axis, along it, of the indices, and behind it."""
    return math.prod(shape[:axis]), shape[axis], count, math.prod(shape[axis + 1 :])


def _for_parts(op: str, indices: Buffer) -> Buffer:
    """The indices of both parts of complex numbers: those of `select` are a vector for all."""
    if op.startswith("select"):
        return indices
    return indices.viewed((*indices.shape, 2), (*indices.strides, 0))


def _check_vector(indices: Buffer) -> None:
    if len(indices.shape) != 1:
        raise ValueError(f"indices with {len(indices.shape)} axes")
