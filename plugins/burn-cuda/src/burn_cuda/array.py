"""Array: strided elements in the memory of a GPU."""

from __future__ import annotations

import functools
import math
from types import EllipsisType
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from burn.plugin_api import Shape, Slices, check_sliced, python_slices

__all__ = ["Array", "dense_layout"]

_Index: TypeAlias = int | slice | EllipsisType | None
_Key: TypeAlias = tuple[Any, ...]

_MAX_CACHED_LAYOUTS: Final = 1 << 12


class Array:
    """Strided elements in the memory of a GPU.

    CuPy reads it like its own arrays, in the same memory: ``cupy.asarray(x)``. One is not made for
    each result, since to make and to view it takes the host three times as long.

    Parameters
    ----------
    memory : object
        Keeps the memory alive: the array that this is a view of, or a pointer of CuPy. Its
        attribute `device_id` is the index of the GPU.
    address : int
        Of the first element.
    dtype : numpy.dtype
        Of the elements.
    shape : tuple of int
        Length of each axis.
    strides : tuple of int
        Bytes from one element to the next along each axis.
    size : int
        Number of elements.
    is_dense : bool
        Whether they follow each other in row-major order.
    """

    __slots__ = (
        *("__weakref__", "address", "dtype", "is_dense", "memory", "shape", "size", "strides"),
    )

    def __init__(
        self,
        memory: Any,
        address: int,
        dtype: np.dtype[Any],
        shape: Shape,
        strides: tuple[int, ...],
        size: int,
        is_dense: bool,
    ) -> None:
        self.memory = memory
        self.address = address
        self.dtype = dtype
        self.shape = shape
        self.strides = strides
        self.size = size
        self.is_dense = is_dense

    def __repr__(self) -> str:
        return f"Array({self.dtype}, {self.shape}, device {self.device_id})"

    @property
    def device_id(self) -> int:
        """Index of the GPU."""
        return int(self.memory.device_id)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return self.size * int(self.dtype.itemsize)

    def reshape(self, *shape: Any) -> Array:
        """A view with other axes.

        Raises
        ------
        ValueError
            If the elements are not as many, or the strides permit no view.
        """
        wanted: Shape = shape if shape and shape[0].__class__ is int else tuple(*shape)
        return self._viewed(_reshaped(self.shape, self.strides, self.dtype.itemsize, wanted))

    def transpose(self, axes: tuple[int, ...] | None = None) -> Array:
        """A view with the axes in another order, by default the reverse one."""
        return self._viewed(_transposed(self.shape, self.strides, self.dtype.itemsize, axes))

    def __getitem__(self, key: _Index | tuple[_Index, ...]) -> Array:
        """A view of a part."""
        items = key if isinstance(key, tuple) else (key,)
        # Slices have no hash before Python 3.12.
        hashable = tuple(
            [
                (item.start, item.stop, item.step) if isinstance(item, slice) else item
                for item in items
            ]
        )
        return self._viewed(_part(self.shape, self.strides, self.dtype.itemsize, hashable))

    def expand(self, shape: Shape) -> Array:
        """A view that repeats elements along axes of length 1, and along new ones."""
        return self._viewed(_expanded(self.shape, self.strides, self.dtype.itemsize, shape))

    def slice(self, slices: Slices) -> Array:
        """A view of a slice of each axis: start, length and step.

        Raises
        ------
        IndexError
            If it reaches beyond the array.
        """
        return self._viewed(_sliced(self.shape, self.strides, self.dtype.itemsize, slices))

    def at(self, axis: int, index: int) -> Array:
        """A view of what one index of an axis selects, without the axis."""
        return self._viewed(_selected(self.shape, self.strides, self.dtype.itemsize, axis, index))

    def _viewed(self, layout: Layout) -> Array:
        offset, shape, strides, size, is_dense = layout
        root = self.memory if self.memory.__class__ is Array else self
        return Array(root, self.address + offset, self.dtype, shape, strides, size, is_dense)

    def strided(self, shape: Shape, strides: tuple[int, ...]) -> Array:
        """A view with strides that the caller answers for."""
        return self._viewed(_strided(shape, strides, self.dtype.itemsize))

    def view(self, dtype: np.dtype[Any]) -> Array:
        """The elements read as another dtype: of another size if they are dense.

        Then there are more or fewer of them along the last axis.
        """
        if dtype.itemsize == self.dtype.itemsize:
            shape, strides = self.shape, self.strides
            return Array(self, self.address, dtype, shape, strides, self.size, self.is_dense)
        if not self.is_dense:
            raise ValueError("the elements are not dense")
        last = self.shape[-1] * self.dtype.itemsize
        shape = (*self.shape[:-1], last // dtype.itemsize)
        strides, size = dense_layout(shape, dtype.itemsize)
        return Array(self, self.address, dtype, shape, strides, size, is_dense=True)

    def to_cupy(self) -> Any:
        """An array of CuPy in the same memory."""
        import cupy

        memory = cupy.cuda.memory
        whole = memory.UnownedMemory(self.address, 0, self, self.device_id)
        pointer = memory.MemoryPointer(whole, 0)
        return cupy.ndarray(self.shape, self.dtype, pointer, self.strides)

    @property
    def data(self) -> Any:
        """CuPy's pointer to the first element."""
        return self.to_cupy().data

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        found: dict[str, Any] = self.to_cupy().__cuda_array_interface__
        return found

    def __dlpack__(self, **options: Any) -> Any:
        return self.to_cupy().__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.to_cupy().__dlpack_device__()


class Layout(NamedTuple):
    """Where the elements of a view are."""

    offset: int
    shape: Shape
    strides: tuple[int, ...]
    size: int
    is_dense: bool


@functools.lru_cache(_MAX_CACHED_LAYOUTS)
def dense_layout(shape: Shape, itemsize: int) -> tuple[tuple[int, ...], int]:
    """Strides in bytes and number of elements of a dense array."""
    strides, step = [], itemsize
    for length in reversed(shape):
        strides.append(step)
        step *= max(length, 1)
    return tuple(reversed(strides)), math.prod(shape)


def _model(shape: Shape, strides: tuple[int, ...], itemsize: int) -> np.ndarray[Any, Any]:
    """An array of NumPy with this layout, whose elements are not read."""
    first = np.empty(1, np.dtype((np.void, itemsize)))
    return np.lib.stride_tricks.as_strided(first, shape, strides)


def _layout(view: np.ndarray[Any, Any], model: np.ndarray[Any, Any]) -> Layout:
    """Where the elements of a view of a model are."""
    offset = view.__array_interface__["data"][0] - model.__array_interface__["data"][0]
    return Layout(offset, view.shape, view.strides, view.size, view.flags.c_contiguous)


@functools.lru_cache(_MAX_CACHED_LAYOUTS)
def _reshaped(
    shape: Shape, strides: tuple[int, ...], itemsize: int, wanted: tuple[int, ...]
) -> Layout:
    model = _model(shape, strides, itemsize)
    return _layout(model.reshape(wanted, copy=False), model)


@functools.lru_cache(_MAX_CACHED_LAYOUTS)
def _transposed(
    shape: Shape, strides: tuple[int, ...], itemsize: int, axes: tuple[int, ...] | None
) -> Layout:
    model = _model(shape, strides, itemsize)
    return _layout(model.transpose(axes), model)


@functools.lru_cache(_MAX_CACHED_LAYOUTS)
def _part(shape: Shape, strides: tuple[int, ...], itemsize: int, key: _Key) -> Layout:
    model = _model(shape, strides, itemsize)
    items = [slice(*pair) if isinstance(pair, tuple) else pair for pair in key]
    if Ellipsis not in items:
        items.append(Ellipsis)  # else NumPy reads the element that a key of integers selects
    return _layout(model[tuple(items)], model)


@functools.lru_cache(_MAX_CACHED_LAYOUTS)
def _strided(shape: Shape, strides: tuple[int, ...], itemsize: int) -> Layout:
    model = _model(shape, strides, itemsize)
    return _layout(model, model)


@functools.lru_cache(_MAX_CACHED_LAYOUTS)
def _expanded(shape: Shape, strides: tuple[int, ...], itemsize: int, wanted: Shape) -> Layout:
    model = _model(shape, strides, itemsize)
    return _layout(np.broadcast_to(model, wanted), model)


@functools.lru_cache(_MAX_CACHED_LAYOUTS)
def _sliced(shape: Shape, strides: tuple[int, ...], itemsize: int, slices: Slices) -> Layout:
    model = _model(shape, strides, itemsize)
    key: tuple[slice | EllipsisType, ...] = (*python_slices(slices), ...)
    view = model[key]
    check_sliced(view.shape, slices)
    return _layout(view, model)


@functools.lru_cache(_MAX_CACHED_LAYOUTS)
def _selected(
    shape: Shape, strides: tuple[int, ...], itemsize: int, axis: int, index: int
) -> Layout:
    if min(axis, index) < 0:
        raise IndexError(f"index {index} of axis {axis}")
    model = _model(shape, strides, itemsize)
    return _layout(model[(slice(None),) * axis + (index, ...)], model)
