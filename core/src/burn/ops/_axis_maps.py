"""Linear maps along an axis in which an output depends on few inputs: averages, interpolation.

A map is a table, made on the host: for each output the indices of its inputs along the axis, and
their weights. Inputs without a weight are not read, so an infinite element makes no other output
NaN. The gradient is the map of the transposed table.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from burn.dtype import DType
from burn.ops.index_arithmetic import index_dtype
from burn.ops.signature import Primitive
from burn.ops.table import OpTable
from burn.tensor_data import TensorData

__all__ = ["Array", "AxisMap", "apply_axis_map", "constant", "range_sum_map"]

Array = npt.NDArray[Any]

_MAX_INPUTS_ADDED_ONE_BY_ONE = 8
"""Inputs of an output up to which they are added one by one; more in one sum, with more memory."""


class _Part(NamedTuple):
    """A part of a map, flat: indices (None if they are 0, 1, 2, ...), weights and presence."""

    indices: Array | None
    weights: Array | None
    present: Array | None


class AxisMap:
    """A linear map along an axis.

    Parameters
    ----------
    length : int
        Length of the axis before the map.
    indices : array of int64, shape (outputs, inputs per output)
        Indices of the elements that each output is a sum of.
    weights : array of float64, shape (outputs, inputs per output), optional
        Their factors; 1 if left out.
    present : array of bool, shape (outputs, inputs per output), optional
        Which entries of the table count; all of them if left out. The index of any other entry is
        in range too.
    """

    def __init__(
        self,
        length: int,
        indices: Array,
        weights: Array | None = None,
        present: Array | None = None,
    ) -> None:
        self.length = length
        self.indices = indices
        self.weights = None if weights is None or bool(np.all(weights == 1.0)) else weights
        self.present = None if present is None or bool(np.all(present)) else present

    @functools.cached_property
    def parts(self) -> list[_Part]:
        """One part for each column of the table; or one for all of it, if there are many."""
        count = self.indices.shape[1]
        if 0 < count <= _MAX_INPUTS_ADDED_ONE_BY_ONE:
            return [self._part(np.s_[:, number]) for number in range(count)]
        return [self._part(np.s_[:])]

    def _part(self, entries: Any) -> _Part:
        def row(table: Array | None) -> Array | None:
            return None if table is None else np.ascontiguousarray(table[entries]).reshape(-1)

        indices = self.indices[entries].reshape(-1)
        in_order = np.array_equal(indices, np.arange(self.length))
        return _Part(None if in_order else indices, row(self.weights), row(self.present))

    @functools.cached_property
    def transposed(self) -> AxisMap:
        """The map from outputs back to inputs: that of gradients."""
        outputs, count = self.indices.shape
        present = np.ones(self.indices.shape, np.bool_) if self.present is None else self.present
        weights = np.ones(self.indices.shape) if self.weights is None else self.weights
        rows = np.repeat(np.arange(outputs), count).reshape(outputs, count)[present]
        # The weights of several entries with one index are added up.
        pairs, which = np.unique(self.indices[present] * outputs + rows, return_inverse=True)
        sums = np.bincount(which, weights[present], minlength=len(pairs))
        inputs, rows = np.divmod(pairs, max(outputs, 1))
        counts = np.bincount(inputs, minlength=self.length)
        rank = np.arange(len(pairs)) - np.repeat(np.cumsum(counts) - counts, counts)
        shape = (self.length, int(counts.max(initial=0)))
        back, weights, present = (
            np.zeros(shape, np.int64),
            np.ones(shape),
            np.zeros(shape, np.bool_),
        )
        back[inputs, rank], weights[inputs, rank], present[inputs, rank] = rows, sums, True
        return AxisMap(outputs, back, weights, present)


def range_sum_map(length: int, starts: Array, stops: Array) -> AxisMap:
    """The map to sums of the elements from each start up to, but without, its stop."""
    offsets = np.arange(int((stops - starts).max(initial=0)))
    indices = starts[:, None] + offsets
    present = indices < stops[:, None]
    return AxisMap(length, np.where(present, indices, starts[:, None]), present=present)


def apply_axis_map(ops: OpTable, x: Primitive, axis_map: AxisMap, axis: int) -> Primitive:
    """Apply a map along an axis."""
    terms = [_terms(ops, x, part, axis) for part in axis_map.parts]
    outputs, count = axis_map.indices.shape
    if count == len(terms):
        return functools.reduce(ops.add, terms)
    shape = tuple(x.shape)
    table = ops.reshape(terms[0], shape=(*shape[:axis], outputs, count, *shape[axis + 1 :]))
    return ops.sum(table, axis=(axis + 1,), keepdims=False, dtype=ops.dtype(x))


def _terms(ops: OpTable, x: Primitive, part: _Part, axis: int) -> Primitive:
    """The elements at the indices of a part, times their weights."""
    if part.indices is not None:
        x = ops.select(x, constant(ops, part.indices, index_dtype(ops)), axis=axis)
    shape = [1] * len(x.shape)
    shape[axis] = -1
    if part.weights is not None:
        x = ops.multiply(x, constant(ops, part.weights.reshape(shape), ops.dtype(x)))
    if part.present is not None:
        present = ops.backend.from_data(TensorData(part.present.reshape(shape)), ops.device)
        x = ops.where(present, x, 0.0)
    return x


def constant(ops: OpTable, array: Array, dtype: DType) -> Primitive:
    """A tensor with the values of an array on the host."""
    data = TensorData(np.ascontiguousarray(array.astype(dtype.numpy)))
    return ops.backend.from_data(data, ops.device)
