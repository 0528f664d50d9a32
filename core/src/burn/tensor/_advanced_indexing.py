"""Indexing with arrays of integers and masks, mixed with slices and integers, by NumPy's rules.

A key has a basic part, which slices and inserts axes, and index arrays for some of the axes that
remain. A mask counts as the indices of its true elements, and the axes that it covers are merged
into one. All index arrays broadcast to one shape, whose axes replace the indexed axes in the
result; they come first if a slice or a new axis stands between index arrays.
"""

from __future__ import annotations

import builtins
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from burn.dispatch import DispatchTensor
from burn.dtype import int64
from burn.errors import AxisError, BurnError, OperandTypeError
from burn.functions import calls
from burn.functions.creation import asarray
from burn.functions.views import independent
from burn.ops.shapes import broadcast_shapes
from burn.tensor._assigned_value import broadcast_value, value_tensor
from burn.tensor._index_normalization import (
    axes_used,
    is_mask,
    normalize_index,
    normalize_part,
    normalize_slice,
)

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn.tensor.tensor import Tensor

__all__ = ["getitem", "setitem"]


class _Key:
    """A key, normalized for a tensor.

    Attributes
    ----------
    slices : list
        For each axis of the tensor (start, length, step).
    shape : list of int
        Shape after the basic part: without the axes of integers, with new axes, and with the axes
        of each mask merged.
    axes : list of int
        Axes of this shape that are indexed by arrays.
    indices : list of Tensor
        The indices along each of them.
    mask : Tensor or None
        The mask, flattened, if it is the only index array.
    first : int or None
        Axis of `shape` before which the first integer or index array stood.
    is_split : bool
        Whether a slice or a new axis stood between integers or index arrays.
    indices_shape : tuple of int
        Shape that the indices broadcast to.
    """

    def __init__(self, x: Tensor, parts: tuple[Any, ...]) -> None:
        self.x = x
        self.slices: list[tuple[int, int, int]] = []
        self.shape: list[int] = []
        self.axes: list[int] = []
        self.indices: list[Tensor] = []
        self.mask: Tensor | None = None
        self.first: int | None = None
        self.is_split = False
        self._ended = False
        """Whether a slice or a new axis followed the first integer or index array."""
        parts = tuple([normalize_part(part) for part in parts])
        used = sum(map(axes_used, parts))
        rank = len(x.shape)
        if used > rank:
            raise AxisError(f"{used} indices for a tensor with {rank} axes", operation="indexing")
        ellipses = sum(part is Ellipsis for part in parts)
        if ellipses > 1:
            raise OperandTypeError("an index has one ... at most", operation="indexing")
        for part in parts if ellipses else (*parts, Ellipsis):
            self._add(part, rank - used)
        self.indices_shape = self._broadcast_shape()

    def _add(self, part: Any, unused: int) -> None:
        """Add a part of the key; an ellipsis covers the axes that are `unused` by other parts."""
        axis = len(self.slices)
        if part is None:
            self.shape.append(1)
        elif part is Ellipsis:
            for length in self.x.shape[axis : axis + unused]:
                self._add_slice((0, length, 1))
        elif isinstance(part, builtins.slice):
            self._add_slice(normalize_slice(part, self.x.shape[axis]))
        elif isinstance(part, int) and not isinstance(part, bool):
            self._begin_indices()
            self.slices.append((normalize_index(part, self.x.shape[axis], axis), 1, 1))
            return
        else:
            self._begin_indices()
            self._add_array(part, axis)
            return
        self._ended = self.first is not None

    def _add_slice(self, bounds: tuple[int, int, int]) -> None:
        self.slices.append(bounds)
        self.shape.append(bounds[1])

    def _begin_indices(self) -> None:
        if self.first is None:
            self.first = len(self.shape)
        self.is_split = self.is_split or self._ended

    def _add_array(self, part: Any, axis: int) -> None:
        count = axes_used(part)
        lengths = self.x.shape[axis : axis + count]
        if is_mask(part):
            pairs = zip(part.shape, lengths, strict=True)
            if not all(found in (length, 0) for found, length in pairs):
                raise AxisError(
                    f"a mask of shape {tuple(part.shape)} for axes of lengths {lengths}",
                    hint="A mask has the lengths of the axes that it covers (0 selects nothing)",
                    operation="indexing",
                )
            fits = tuple(part.shape) == lengths
            self.mask = _flat_mask(part, self.x) if fits and not self.axes else None
            indices = _true_indices(part, self.x)
        else:
            self.mask = None
            indices = _device_indices(part, self.x, lengths[0], axis)
        self.axes.append(len(self.shape))
        self.shape.append(math.prod(lengths))
        self.indices.append(indices)
        self.slices += [(0, length, 1) for length in lengths]

    def _broadcast_shape(self) -> Shape:
        try:
            return broadcast_shapes(*[index.shape for index in self.indices])
        except BurnError as error:
            error.operation = "indexing"
            raise

    @property
    def result_shape(self) -> Shape:
        """Shape of ``x[key]``."""
        rest = [length for axis, length in enumerate(self.shape) if axis not in self.axes]
        return (*rest[: self.start], *self.indices_shape, *rest[self.start :])

    @property
    def start(self) -> int:
        """Axis of the result at which the axes of `indices_shape` start."""
        if self.is_split or self.first is None:
            return 0
        return self.first - sum(axis < self.first for axis in self.axes)

    @property
    def covers_all(self) -> bool:
        """Whether the basic part selects every element, in order."""
        return self.slices == [(0, length, 1) for length in self.x.shape]

    def basic(self) -> Tensor:
        """What the basic part selects, in `shape`."""
        part = self.x if self.covers_all else calls.slice(self.x, slices=tuple(self.slices))
        shape = tuple(self.shape)
        return part if part.shape == shape else calls.reshape(part, shape=shape)

    def order(self) -> tuple[int, ...]:
        """Permutation of the axes of `shape` that puts the indexed ones first."""
        rest = [axis for axis in range(len(self.shape)) if axis not in self.axes]
        return (*self.axes, *rest)

    def stacked_indices(self) -> Tensor:
        """The indices along a new last axis, as `gather_nd` takes them."""
        shape = (*self.indices_shape, 1)
        columns = [index.broadcast_to(self.indices_shape).reshape(shape) for index in self.indices]
        return calls.concat(columns, axis=len(self.indices_shape))


def getitem(x: Tensor, parts: tuple[Any, ...]) -> Tensor:
    """``x[parts]`` where at least one of the parts is an array, a mask or a list."""
    if len(parts) == 1 and _is_index_vector(parts[0], x):
        return calls.select(x, parts[0], axis=0)
    key = _Key(x, parts)
    part = key.basic()
    if not key.axes:  # its arrays are 0-d: they count as integers
        return independent(part)
    if len(key.axes) == 1:
        (axis,) = key.axes
        indices = key.indices[0].reshape((math.prod(key.indices_shape),))
        selected = calls.select(part, indices, axis=axis)
        shape = (*part.shape[:axis], *key.indices_shape, *part.shape[axis + 1 :])
        selected = selected if selected.shape == shape else calls.reshape(selected, shape=shape)
        return _move_axes(selected, axis, key.start, len(key.indices_shape))
    part = calls.permute(part, axes=key.order())
    selected = calls.gather_nd(part, key.stacked_indices())
    return _move_axes(selected, 0, key.start, len(key.indices_shape))


def _is_index_vector(part: Any, x: Tensor) -> bool:
    """Whether a part of a key is a vector of indices on the device of `x`: it selects a batch."""
    return (
        isinstance(part, DispatchTensor)
        and part.tensor_type.dtype is int64
        and len(part.primitive.shape) == 1
        and len(x.primitive.shape) > 0
        and part.tensor_type.device == x.tensor_type.device
    )


def setitem(x: Tensor, parts: tuple[Any, ...], value: Any) -> Tensor:
    """The value of `x` after ``x[parts] = value``; of several values for one element the last."""
    key = _Key(x, parts)
    value = value_tensor(x, value)
    part = key.basic()
    if key.mask is not None and value.ndim == 0:
        # The number of true elements is not needed: the device would have to be asked for it.
        (axis,) = key.axes
        column = [length if index == axis else 1 for index, length in enumerate(part.shape)]
        result = calls.where(key.mask.reshape(tuple(column)), value, part)
    else:
        result = broadcast_value(value, key.result_shape)
        if key.axes:
            result = _assign(key, part, result)
    if key.covers_all:
        return result.reshape(x.shape)
    sliced = result.reshape(tuple([length for _, length, _ in key.slices]))
    return calls.slice_assign(x, sliced, slices=tuple(key.slices))


def _assign(key: _Key, part: Tensor, value: Tensor) -> Tensor:
    """The basic part with the elements at the indices replaced by those of the value."""
    count = len(key.indices_shape)
    if len(key.axes) == 1:
        (axis,) = key.axes
        value = _move_axes(value, key.start, axis, count)
        size = math.prod(key.indices_shape)
        value = value.reshape((*part.shape[:axis], size, *part.shape[axis + 1 :]))
        indices = key.indices[0].reshape((size,))
        return calls.select_assign(part, indices, value, axis=axis, update="assign")
    order = key.order()
    inverse = tuple([order.index(axis) for axis in range(len(order))])
    value = _move_axes(value, key.start, 0, count)
    permuted = calls.permute(part, axes=order)
    result = calls.scatter_nd(permuted, key.stacked_indices(), value, update="assign")
    return calls.permute(result, axes=inverse)


def _move_axes(x: Tensor, source: int, destination: int, count: int) -> Tensor:
    """Move `count` neighbouring axes, of which the first is `source`, to `destination`."""
    if source == destination or not count:
        return x
    moved = range(source, source + count)
    order = [axis for axis in range(x.ndim) if axis not in moved]
    order[destination:destination] = moved
    return calls.permute(x, axes=tuple(order))


def _flat_mask(mask: Any, x: Tensor) -> Tensor:
    tensor: Any = mask if isinstance(mask, DispatchTensor) else asarray(mask, device=x.device)
    return tensor.reshape((tensor.size,))  # type: ignore[no-any-return]  # a Tensor


def _true_indices(mask: Any, x: Tensor) -> Tensor:
    """Indices of the true elements of a mask, in row-major order."""
    dtype = x.device.settings.int_dtype
    if isinstance(mask, np.ndarray):
        return asarray(np.flatnonzero(mask), dtype=dtype, device=x.device)
    indices = calls.argwhere(mask.reshape((mask.size,)), dtype=dtype)
    return indices.reshape((indices.size,))


def _device_indices(indices: Any, x: Tensor, length: int, axis: int) -> Tensor:
    """Indices as a tensor; those from the host are checked here."""
    dtype = x.device.settings.int_dtype
    if isinstance(indices, DispatchTensor):
        return indices.astype(dtype)  # type: ignore[attr-defined, no-any-return]  # a Tensor
    wrong = indices[(indices < -length) | (indices >= length)]
    if wrong.size:
        raise AxisError(
            f"index {wrong.flat[0]} is out of range for axis {axis} of length {length}",
            operation="indexing",
        )
    return asarray(indices, dtype=dtype, device=x.device)
