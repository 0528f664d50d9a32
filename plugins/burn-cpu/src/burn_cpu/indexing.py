"""Gather, scatter and selection. NumPy checks indices at once."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from burn.plugin_api import OutOfRangeError, check_gather_operands, index_error
from burn_cpu.base import Array, CpuOps


class IndexingOps(CpuOps):
    """Indexing through NumPy's integer-array indexing."""

    def gather(self, x: Array, indices: Array, *, axis: int) -> Array:
        """`x` indexed by `grid`, which is faster than `numpy.take_along_axis`."""
        check_gather_operands(x, indices, axis)
        try:
            return x[grid(indices, axis)]
        except IndexError:
            raise out_of_range(indices, x.shape[axis]) from None

    def scatter_add(self, x: Array, indices: Array, value: Array, *, axis: int) -> Array:
        """Unbuffered addition, so that repeated indices count."""
        check_gather_operands(x, indices, axis, value)
        return _add_at(x, grid(indices, axis), value, indices, axis)

    def select(self, x: Array, indices: Array, *, axis: int) -> Array:
        """`numpy.take`."""
        if indices.ndim != 1:
            raise ValueError(f"indices with {indices.ndim} axes")
        try:
            return x.take(indices.astype(np.intp, copy=False), axis=axis)
        except IndexError:
            raise out_of_range(indices, x.shape[axis]) from None

    def embedding(self, weight: Array, indices: Array) -> Array:
        """`numpy.take`."""
        if weight.ndim != 2:
            raise ValueError(f"a weight of shape {weight.shape}")
        check_labels(indices, len(weight))
        try:
            return weight.take(indices.astype(np.intp, copy=False), axis=0)
        except IndexError:
            raise out_of_range(indices, len(weight)) from None

    def embedding_grad(self, g: Array, indices: Array, *, count: int) -> Array:
        """Unbuffered addition, so that repeated indices count."""
        if not g.ndim or g.shape[:-1] != indices.shape:
            raise ValueError(f"g of shape {g.shape} for indices of shape {indices.shape}")
        check_labels(indices, count)
        width = g.shape[-1]
        labels, rows = indices.reshape(-1), g.reshape(indices.size, width)
        zeros = np.zeros((count, width), np.float32 if g.dtype.itemsize < 4 else g.dtype)
        try:
            _add_rows(zeros, labels.astype(np.intp, copy=False), rows)
        except IndexError:
            raise out_of_range(indices, count) from None
        return zeros.astype(g.dtype, copy=False)

    def select_add(self, x: Array, indices: Array, value: Array, *, axis: int) -> Array:
        """Unbuffered addition, so that repeated indices count."""
        _check_selection(x, indices, value, axis)
        key = (slice(None),) * axis + (indices.astype(np.intp, copy=False),)
        return _add_at(x, key, value, indices, axis)

    def scatter(self, x: Array, indices: Array, value: Array, *, axis: int, update: str) -> Array:
        """Unbuffered updates in the order of the indices."""
        check_gather_operands(x, indices, axis, value)
        # Contiguous: NumPy would visit indices with negative strides in reverse order.
        key = grid(np.ascontiguousarray(indices), axis)
        try:
            return update_at(x, key, value, update)
        except IndexError:
            raise out_of_range(indices, x.shape[axis]) from None

    def select_assign(
        self, x: Array, indices: Array, value: Array, *, axis: int, update: str
    ) -> Array:
        """Unbuffered updates in the order of the indices."""
        _check_selection(x, indices, value, axis)
        key = (slice(None),) * axis + (np.array(indices, np.intp),)
        try:
            return update_at(x, key, value, update)
        except IndexError:
            raise out_of_range(indices, x.shape[axis]) from None

    def gather_nd(self, x: Array, indices: Array) -> Array:
        """NumPy's own indexing."""
        return x[_by_axis(x, indices)] if indices.shape[-1] else _repeated(x, indices)

    def scatter_nd(self, x: Array, indices: Array, value: Array, *, update: str) -> Array:
        """Unbuffered updates in the order of the indices."""
        depth = indices.shape[-1]
        if value.shape != (*indices.shape[:-1], *x.shape[depth:]):
            raise ValueError(f"a value of shape {value.shape} for indices of {indices.shape}")
        total = math.prod(x.shape[:depth])
        rows = x.reshape(total, math.prod(x.shape[depth:]))
        row = np.zeros(indices.shape[:-1], np.intp)
        for length, index in zip(x.shape, _by_axis(x, indices), strict=False):
            row = row * length + np.where(index < 0, index + length, index)
        if total == 0 and row.size:
            raise index_error(0, 0)
        value = value.reshape(row.size, rows.shape[1])
        return update_at(rows, (row.reshape(-1),), value, update).reshape(x.shape)


def _check_selection(x: Array, indices: Array, value: Array, axis: int) -> None:
    """Refuse indices and values that NumPy would broadcast."""
    expected = list(x.shape)
    expected[axis] = len(indices)
    if indices.ndim != 1 or value.shape != tuple(expected):
        raise ValueError(f"a value of shape {value.shape} for indices of shape {indices.shape}")


_FEW_ELEMENTS: Final = 1024
_BLOCK_ELEMENTS: Final = 1 << 16


def _add_rows(x: Array, labels: Array, rows: Array) -> None:
    """Add each row to the row of `x` that its label names, in order.

    NumPy adds at positions of single elements four times as fast as at those of rows.
    """
    width = x.shape[1]
    if rows.size < _FEW_ELEMENTS:
        np.add.at(x, labels, rows.astype(x.dtype, copy=False))
        return
    if labels.max() >= len(x):
        raise IndexError
    flat, columns = x.reshape(-1), np.arange(width)
    step = max(1, _BLOCK_ELEMENTS // width)
    for start in range(0, len(labels), step):
        positions = labels[start : start + step, None] * width + columns
        values = rows[start : start + step].astype(x.dtype, copy=False)
        np.add.at(flat, positions.reshape(-1), values.reshape(-1))


def _by_axis(x: Array, indices: Array) -> tuple[Array, ...]:
    """Rows of indices as an array per axis, checked."""
    depth = indices.shape[-1]
    if depth > x.ndim:
        raise ValueError(f"{depth} indices for {x.ndim} axes")
    indices = indices.astype(np.intp, copy=False)
    lengths = np.array(x.shape[:depth], np.intp)
    wrong = (indices < -lengths) | (indices >= lengths)
    if wrong.any():
        position = tuple(np.argwhere(wrong)[0])
        raise index_error(int(indices[position]), int(lengths[position[-1]]))
    return tuple(np.moveaxis(indices, -1, 0))


def _repeated(x: Array, indices: Array) -> Array:
    """`x` repeated for each row of indices without columns."""
    return np.broadcast_to(x, (*indices.shape[:-1], *x.shape))


_UPDATES: dict[str, Any] = {"multiply": np.multiply, "min": np.minimum, "max": np.maximum}


def update_at(x: Array, key: tuple[Array, ...], value: Array, update: str) -> Array:
    """A copy of `x` updated at ``x[key]`` in order, 16-bit floats in float32."""
    if update == "assign":
        result = np.array(x, order="C")
        result[key] = value
        return result
    if x.dtype.kind == "b" and update in ("add", "multiply"):
        raise TypeError(f"booleans take no update {update!r}")
    if x.dtype.kind == "c" and update in ("min", "max"):
        raise TypeError("complex numbers have no order")
    function = np.add if update == "add" else _UPDATES[update]
    narrow = x.dtype.kind in "fV" and x.dtype.itemsize < 4
    result = x.astype(np.float32) if narrow else np.array(x)
    function.at(result, key, value.astype(np.float32) if narrow else value)
    return result.astype(x.dtype) if narrow else result


def grid(indices: Array, axis: int) -> tuple[Array, ...]:
    """`indices` for one axis and a range for each other axis, as a key that broadcasts."""
    rank = indices.ndim
    key: list[Array] = []
    for number, length in enumerate(indices.shape):
        if number == axis:
            key.append(indices.astype(np.intp, copy=False))
        else:
            positions = np.arange(length)
            key.append(positions.reshape((length,) + (1,) * (rank - 1 - number)))
    return tuple(key)


def _add_at(x: Array, key: tuple[Array, ...], value: Array, indices: Array, axis: int) -> Array:
    try:
        return update_at(x, key, value, "add")
    except IndexError:
        raise out_of_range(indices, x.shape[axis]) from None


def out_of_range(indices: Array, length: int, *, least: int | None = None) -> OutOfRangeError:
    """The error that names the first index that is not in [-length, length), or [least, length)."""
    wrong = indices[(indices < (-length if least is None else least)) | (indices >= length)]
    return index_error(int(wrong.flat[0]), length)


def check_labels(labels: Array, count: int) -> None:
    """Refuse negative labels, which NumPy would count from the end; NumPy refuses large ones."""
    if labels.size and np.minimum.reduce(labels, axis=None) < 0:
        raise out_of_range(labels, count, least=0)
