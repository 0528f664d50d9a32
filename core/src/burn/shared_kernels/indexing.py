"""Indexing by integer tensors. Kernels check indices; an error is raised at the next read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from burn.aliases import Primitive, Shape
from burn.backend import check_gather_operands
from burn.dtype import DType, int64
from burn.shared_kernels.elements import DTYPE_CODES, WORD_CODES, c_type_of
from burn.shared_kernels.launching import MAX_KERNEL_AXES, SharedOps, check_axes

__all__ = ["IndexingOps", "Update"]

_UPDATE_CODES: Final = {"add": 0, "multiply": 1, "max": 2, "min": 3, "assign": 6}
"""Codes of the ways to combine an element with an update (``sources/common.c``)."""


@dataclass(frozen=True)
class Update:
    """Updates along the middle axis of a tensor of shape (outer, length, inner).

    Attributes
    ----------
    op, update : str
        Name of the op; how an element and an update are combined.
    outer, length, count, inner : int
        Sizes before the axis, along it, of the updates, and behind it.
    parts : int
        Neighbours that share an index.
    is_select, is_label : bool
        Whether the indices are a vector for all; whether they do not count from the end.
    """

    op: str
    update: str
    outer: int
    length: int
    count: int
    inner: int
    parts: int = 1
    is_select: bool = False
    is_label: bool = False

    @property
    def code(self) -> int:
        """How an element and an update are combined, as kernels know it."""
        return _UPDATE_CODES[self.update]


class IndexingOps(SharedOps):
    """Reading and writing elements at indices from a tensor."""

    def gather(self, x: Primitive, indices: Primitive, *, axis: int) -> Primitive:
        """A work item for each index."""
        check_axes(x, axis)
        check_gather_operands(x, indices, axis)
        return self._read("gather", x, indices, axis, indices.shape)

    def select(self, x: Primitive, indices: Primitive, *, axis: int) -> Primitive:
        """A work item for each element of the result."""
        check_axes(x, axis)
        _check_vector(indices)
        shape = (*x.shape[:axis], indices.shape[0], *x.shape[axis + 1 :])
        if 0 in shape:  # a kernel checks the index of each element
            return self.ops.decomposed("select", x, indices, axis=axis)
        return self._read("select", x, indices, axis, shape)

    def embedding(self, weight: Primitive, indices: Primitive) -> Primitive:
        """A work item for each element of the result."""
        if len(weight.shape) != 2 or not weight.shape[1]:
            return self.ops.decomposed("embedding", weight, indices)
        shape = (*indices.shape, weight.shape[1])
        return self._read("embedding", weight, indices, 0, shape)

    def _read(
        self, op: str, x: Primitive, indices: Primitive, axis: int, shape: Shape
    ) -> Primitive:
        launcher = self.launcher
        dtype, index_code = launcher.dtype_of(x), self._index_code(indices)
        x, indices = launcher.dense(x), launcher.dense(indices)
        out = launcher.new(shape, dtype)
        code = WORD_CODES[min(dtype.itemsize, 8)]
        parts = max(1, dtype.itemsize // 8)  # complex128 is two words
        size, is_label = parts * math.prod(shape), op == "embedding"
        count = math.prod(indices.shape) if is_label else shape[axis]
        inner = parts * math.prod(x.shape[axis + 1 :])
        types = {"TYPE": code, "INDEX_TYPE": index_code, "UPDATE": 0}
        kernel = launcher.shared_kernel("gather", "indexing.c", "ulong", {}, types, size)
        error, number = launcher.index_error(op)
        sizes = (size, x.shape[axis], count, inner, parts)
        offsets = (parts * launcher.offset_of(x), launcher.offset_of(indices), 0)
        rules = (int(op != "gather"), int(is_label), number)
        launcher.start(
            kernel, (*sizes, *offsets, *rules, *types.values()), (x, indices, out, error), size
        )
        return out

    def scatter_add(
        self, x: Primitive, indices: Primitive, value: Primitive, *, axis: int
    ) -> Primitive:
        """Sums do not depend on what runs first."""
        return self._updated("scatter_add", x, indices, value, axis, "add")

    def scatter(
        self, x: Primitive, indices: Primitive, value: Primitive, *, axis: int, update: str
    ) -> Primitive:
        """The last of the values that are assigned to an element stays."""
        return self._updated("scatter", x, indices, value, axis, update)

    def select_add(
        self, x: Primitive, indices: Primitive, value: Primitive, *, axis: int
    ) -> Primitive:
        """Sums do not depend on what runs first."""
        if 0 in value.shape:  # a kernel checks the index of each element
            return self.ops.decomposed("select_add", x, indices, value, axis=axis)
        return self._updated("select_add", x, indices, value, axis, "add")

    def select_assign(
        self, x: Primitive, indices: Primitive, value: Primitive, *, axis: int, update: str
    ) -> Primitive:
        """The last of the values that are assigned to an element stays."""
        if 0 in value.shape:  # as in select_add
            return self.ops.decomposed("select_assign", x, indices, value, axis=axis, update=update)
        return self._updated("select_assign", x, indices, value, axis, update)

    def _updated(
        self, op: str, x: Primitive, indices: Primitive, value: Primitive, axis: int, update: str
    ) -> Primitive:
        launcher = self.launcher
        check_axes(x, axis)
        is_select = op.startswith("select")
        if is_select:
            _check_vector(indices)
            if value.shape != (*x.shape[:axis], indices.shape[0], *x.shape[axis + 1 :]):
                raise ValueError(f"a value of shape {value.shape} for {indices.shape[0]} indices")
        else:
            check_gather_operands(x, indices, axis, value)
        dtype = self.check_dtypes(op, x, value)
        if dtype.is_bool and update in ("add", "multiply"):
            raise TypeError(f"{op} of bool with update={update!r}")
        parts, shape = 1, x.shape
        if dtype.is_complex:
            if update not in ("add", "assign"):
                if update != "multiply":
                    raise TypeError("complex numbers have no order")
                name = op if is_select else "scatter"
                return self.ops.decomposed(name, x, indices, value, axis=axis, update=update)
            parts, x, value = 2, launcher.parts(x), launcher.parts(value)
        rule = Update(
            op,
            update,
            math.prod(shape[:axis]),
            shape[axis],
            value.shape[axis],
            math.prod(x.shape[axis + 1 :]),
            parts,
            is_select,
        )
        result = self._update(x, indices, value, rule)
        return launcher.of_parts(result, dtype) if parts == 2 else result

    def _update(
        self, x: Primitive, indices: Primitive, value: Primitive, rule: Update
    ) -> Primitive:
        """`x` with updates, as another dtype where that is better to combine them in."""
        launcher = self.launcher
        dtype = launcher.dtype_of(x)
        wide = self.update_dtype(dtype, rule.update, math.prod(value.shape))
        out = launcher.copied(x) if wide is dtype else self.cast(x, dtype=wide)
        if 0 not in value.shape:
            self._index_code(indices)
            value = launcher.dense(self.cast(value, dtype=wide))
            self.update_dense(out, launcher.dense(indices), value, rule)
        return self.cast(out, dtype=dtype)

    def update_dtype(self, dtype: DType, update: str, count: int) -> DType:
        """Dtype in which so many updates are combined with elements."""
        raise NotImplementedError

    def update_dense(
        self, out: Primitive, indices: Primitive, values: Primitive, rule: Update
    ) -> None:
        """Update dense memory by dense values, which have elements."""
        raise NotImplementedError

    def update_in_order(
        self, out: Primitive, indices: Primitive, values: Primitive, rule: Update
    ) -> None:
        """The same, by a work item for each column, one update after the other."""
        launcher = self.launcher
        dtype = launcher.dtype_of(out)
        codes = DTYPE_CODES[dtype.name], self._index_code(indices)
        types = {"TYPE": codes[0], "INDEX_TYPE": codes[1], "UPDATE": rule.code}
        columns = rule.outer * rule.inner
        kernel = launcher.shared_kernel(
            "scatter", "indexing.c", c_type_of(dtype), {}, types, columns * rule.count
        )
        error, number = launcher.index_error(rule.op)
        sizes = (columns, rule.length, rule.count, rule.inner, rule.parts)
        offsets = (0, launcher.offset_of(indices), launcher.offset_of(values))
        rules = (int(rule.is_select), int(rule.is_label), number)
        parameters = (*sizes, *offsets, *rules, *types.values())
        launcher.start(kernel, parameters, (out, indices, values, error), columns)

    def gather_nd(self, x: Primitive, indices: Primitive) -> Primitive:
        """Two kernels: flat indices, and rows of a matrix at these."""
        if indices.shape and indices.shape[-1] > MAX_KERNEL_AXES:
            return self.ops.decomposed("gather_nd", x, indices)
        shape = self.checked_shape("gather_nd", x, indices)
        matrix, flat = self._flattened("gather_nd", x, indices)
        return self.reshape(self.select(matrix, flat, axis=0), shape=shape)

    def scatter_nd(
        self, x: Primitive, indices: Primitive, value: Primitive, *, update: str
    ) -> Primitive:
        """Two kernels: flat indices, and updates of rows of a matrix at these."""
        if indices.shape and indices.shape[-1] > MAX_KERNEL_AXES:
            return self.ops.decomposed("scatter_nd", x, indices, value, update=update)
        self.checked_shape("scatter_nd", x, indices, value, update=update)
        matrix, flat = self._flattened("scatter_nd", x, indices)
        value = self.reshape(value, shape=(flat.shape[0], matrix.shape[1]))
        updated = self.select_assign(matrix, flat, value, axis=0, update=update)
        return self.reshape(updated, shape=x.shape)

    def _flattened(self, op: str, x: Primitive, indices: Primitive) -> tuple[Primitive, Primitive]:
        """A matrix with a row for each index of the first axes, and the rows that are indexed."""
        launcher = self.launcher
        code = self._index_code(indices)
        depth = indices.shape[-1]
        lengths, count = x.shape[:depth], math.prod(indices.shape[:-1])
        indices = launcher.dense(indices)
        flat = launcher.new((count,), int64)
        kernel = launcher.shared_kernel("flat_indices", "indexing.c", "ulong")
        rows = math.prod(lengths)
        codes = code, DTYPE_CODES[int64.name]
        padding = [0] * (MAX_KERNEL_AXES - depth)
        error, number = launcher.index_error(op)
        offset = launcher.offset_of(indices)
        parameters = (count, depth, offset, *codes, rows, number, *lengths, *padding)
        launcher.start(kernel, parameters, (indices, flat, error), count)
        return self.reshape(x, shape=(rows, math.prod(x.shape[depth:]))), flat

    def _index_code(self, indices: Primitive) -> int:
        """Code of the dtype of indices."""
        dtype = self.launcher.dtype_of(indices)
        if not dtype.is_integer:
            raise TypeError(f"indices of {dtype}")
        return DTYPE_CODES[dtype.name]


def _check_vector(indices: Primitive) -> None:
    if len(indices.shape) != 1:
        raise ValueError(f"indices with {len(indices.shape)} axes")
