"""Linear maps along an axis in which an output depends on few inputs: averages, interpolation.

Such a map is a table, made on the host: for each output the indices along the axis that have a part
in it, and their weights. What has no part is not looked at: beside an infinite element nothing
becomes NaN because of it. The gradient is the same with the transposed table.
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

_FEW = 8
"""Up to so many taps are added one by one; more of them in one sum, which takes more memory."""


class _Part(NamedTuple):
    """Taps in a row: their indices (None: those of the axis, as they are), weights and presence."""

    indices: Array | None
    weights: Array | None
    present: Array | None


class AxisMap:
    """A linear map along an axis.

    Parameters
    ----------
    length : int
        Length of the axis that it takes.
    indices : array of int64, shape (outputs, taps)
        Which elements each output is made of.
    weights : array of float64, shape (outputs, taps), optional
        By how much they are multiplied; 1 if left out.
    present : array of bool, shape (outputs, taps), optional
        Which of the taps there are; all of them if left out. Others have a place that exists.
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

    @property
    def places(self) -> Array:
        """Old name of `indices`, until plugins import burn.plugin_api."""
        return self.indices

    @property
    def taken(self) -> Array | None:
        """Old name of `present`, until plugins import burn.plugin_api."""
        return self.present

    @functools.cached_property
    def parts(self) -> list[_Part]:
        """The taps, one of each output at a time; or all of an output after the other."""
        count = self.indices.shape[1]
        if 0 < count <= _FEW:
            return [self._part(np.s_[:, number]) for number in range(count)]
        return [self._part(np.s_[:])]

    def _part(self, place: Any) -> _Part:
        def row(table: Array | None) -> Array | None:
            return None if table is None else np.ascontiguousarray(table[place]).reshape(-1)

        indices = self.indices[place].reshape(-1)
        in_order = np.array_equal(indices, np.arange(self.length))
        return _Part(None if in_order else indices, row(self.weights), row(self.present))

    @functools.cached_property
    def transposed(self) -> AxisMap:
        """The map from outputs back to inputs: that of gradients."""
        outputs, count = self.indices.shape
        present = np.ones(self.indices.shape, np.bool_) if self.present is None else self.present
        weights = np.ones(self.indices.shape) if self.weights is None else self.weights
        rows = np.repeat(np.arange(outputs), count).reshape(outputs, count)[present]
        # Of several taps at one place the weights are added up.
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
    """Sums over the indices from each start up to, but without, its stop."""
    offsets = np.arange(int((stops - starts).max(initial=0)))
    indices = starts[:, None] + offsets
    present = indices < stops[:, None]
    return AxisMap(length, np.where(present, indices, starts[:, None]), present=present)


def apply_axis_map(ops: OpTable, x: Primitive, taps: AxisMap, axis: int) -> Primitive:
    """Apply a map along an axis."""
    terms = [_terms(ops, x, part, axis) for part in taps.parts]
    outputs, count = taps.indices.shape
    if count == len(terms):
        return functools.reduce(ops.add, terms)
    shape = tuple(x.shape)
    table = ops.reshape(terms[0], shape=(*shape[:axis], outputs, count, *shape[axis + 1 :]))
    return ops.sum(table, axis=(axis + 1,), keepdims=False, dtype=ops.dtype(x))


def _terms(ops: OpTable, x: Primitive, part: _Part, axis: int) -> Primitive:
    """Elements at some indices, times their weights."""
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
    """Numbers that are known on the host, as a tensor."""
    data = TensorData(np.ascontiguousarray(array.astype(dtype.numpy)))
    return ops.backend.from_data(data, ops.device)
