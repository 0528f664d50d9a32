"""Buffer: the primitive of this backend, and the memory pool of a device."""

from __future__ import annotations

import functools
import math
import threading
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from burn_opencl.address_space import bytes_left
from burn_opencl.failures import memory_error
from burn_opencl.leases import Lease, Leases

if TYPE_CHECKING:
    from burn.plugin_api import DType, Shape, Slices
    from burn_opencl.runtime import Runtime

__all__ = ["Buffer", "Layout", "Memory", "Pool", "expanded_strides", "row_major"]

_MIN_PIECE_BYTES: Final = 256

_SIZES_PER_POWER_OF_TWO: Final = 4
"""Sizes of pieces between a power of two and the next: a piece wastes a quarter at most."""


class Memory:
    """A piece of device memory, which returns to its pool when it is garbage collected.

    The commands of its next owner come later in the same queue, so none of them has to wait.
    """

    __slots__ = ("__weakref__", "handle", "size")

    def __init__(self, handle: Any, size: int) -> None:
        self.handle = handle
        self.size = size


class Pool:
    """Free memory of a device, by its size.

    Pieces come back at any point of any thread, by no Python code; see `Leases`.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._free: dict[int, deque[Lease[Any]]] = {}
        self._leases: Leases[Any] = Leases()
        self._lock = threading.Lock()
        self.held = 0
        """Bytes that were allocated on the device, in use or free."""
        runtime.used = lambda: self.held
        runtime.relieve = self.release

    def take(self, size: int) -> Memory:
        """Return a piece of at least so many bytes.

        Raises
        ------
        OutOfMemoryError
            If the device does not have them.
        """
        size = piece_size(size)
        free = self._free.get(size)
        if free is None:
            free = self._free.setdefault(size, deque())
        handle = self._leases.taken(free) if free else None
        if handle is None:
            handle = self._allocated(size)
        memory = Memory(handle, size)
        self._leases.lend(memory, handle, free)
        return memory

    def _allocated(self, size: int) -> Any:
        runtime = self._runtime
        if size <= runtime.largest_block:
            for attempt in range(2):
                if attempt:
                    self.release()
                with self._lock:
                    fits = self.held + size <= runtime.memory_size
                    handle = runtime.allocate(size) if fits else None
                    if handle is not None:
                        self.held += size
                        return handle
        left = bytes_left() if runtime.is_cpu else None
        raise memory_error(runtime.name, size, self.held, runtime.memory_size, left)

    def release(self) -> None:
        """Free the pieces that are not in use, once the queue is empty."""
        self._runtime.finish()
        for size, free in list(self._free.items()):
            while (handle := self._leases.taken(free)) is not None:
                self._runtime.release(handle)
                with self._lock:
                    self.held -= size


@functools.lru_cache(maxsize=4096)
def piece_size(size: int) -> int:
    """Size of the pieces that serve allocations of so many bytes."""
    if size <= _MIN_PIECE_BYTES:
        return _MIN_PIECE_BYTES
    step = (1 << (size - 1).bit_length() - 1) // _SIZES_PER_POWER_OF_TWO
    return -(-size // step) * step


class Layout(NamedTuple):
    """A tensor without its memory: shape, strides and offset in elements, dtype."""

    shape: Shape
    strides: tuple[int, ...]
    offset: int
    dtype: DType


class Buffer:
    """A tensor in memory that it may share with others, and that is not written to again.

    Parameters
    ----------
    memory : Memory
        The memory of the elements.
    shape : tuple of int
        Length of each axis.
    dtype : DType
        Dtype of the elements.
    strides : tuple of int
        Distance between neighbours along each axis, in elements.
    offset : int
        Index of the first element in the memory.
    owner : object
        The backend's object for the device.
    """

    __slots__ = ("__weakref__", "dtype", "memory", "offset", "owner", "shape", "strides")

    def __init__(
        self,
        memory: Memory,
        shape: Shape,
        dtype: DType,
        strides: tuple[int, ...],
        offset: int,
        owner: Any,
    ) -> None:
        self.memory = memory
        self.shape = shape
        self.dtype = dtype
        self.strides = strides
        self.offset = offset
        self.owner = owner

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def layout(self) -> Layout:
        """How the elements are laid out in the memory."""
        return Layout(self.shape, self.strides, self.offset, self.dtype)

    @property
    def is_dense(self) -> bool:
        """Whether the elements are in row-major order without gaps."""
        return is_row_major(self.shape, self.strides)

    @property
    def parts(self) -> Buffer:
        """A real view of complex numbers: their two parts along a last axis."""
        strides = tuple([2 * stride for stride in self.strides])
        dtype = self.dtype.component
        return Buffer(
            self.memory, (*self.shape, 2), dtype, (*strides, 1), 2 * self.offset, self.owner
        )

    def of_parts(self, dtype: DType) -> Buffer:
        """The complex numbers whose two parts are neighbours along the last axis."""
        strides = tuple([stride // 2 for stride in self.strides[:-1]])
        return Buffer(self.memory, self.shape[:-1], dtype, strides, self.offset // 2, self.owner)

    def viewed(self, shape: Shape, strides: tuple[int, ...], offset: int | None = None) -> Buffer:
        """Another tensor in the same memory."""
        start = self.offset if offset is None else offset
        return Buffer(self.memory, shape, self.dtype, strides, start, self.owner)

    def permuted(self, axes: Sequence[int]) -> Buffer:
        """A view with the axes in another order."""
        shape, strides = self.shape, self.strides
        return self.viewed(
            tuple([shape[axis] for axis in axes]), tuple([strides[axis] for axis in axes])
        )

    def at(self, index: int) -> Buffer:
        """A view of the elements at an index of the first axis."""
        return self.viewed(self.shape[1:], self.strides[1:], self.offset + index * self.strides[0])

    def expanded(self, shape: Shape) -> Buffer:
        """A view with axes of length 1 repeated, by a stride of 0."""
        if shape == self.shape:
            return self
        return self.viewed(shape, expanded_strides(self.shape, self.strides, shape))

    def sliced(self, slices: Slices) -> Buffer:
        """A view of every `step`-th element from `start` on, as the op `slice` defines it."""
        shape, strides, offset = [], [], self.offset
        for (start, length, step), own, stride in zip(
            slices, self.shape, self.strides, strict=True
        ):
            if length < 0 or not step:
                raise ValueError(f"{length} elements with step {step}")
            shape.append(length)
            strides.append(stride * step)
            if length:
                last = start + (length - 1) * step
                if not (0 <= start < own and 0 <= last < own):
                    raise IndexError(f"indices {start} to {last} of an axis of length {own}")
                offset += start * stride
        return self.viewed(tuple(shape), tuple(strides), offset)

    def reshaped(self, shape: Shape) -> Buffer | None:
        """A view with another shape; None where no strides describe one."""
        if math.prod(shape) != self.size or any(length < 0 for length in shape):
            raise ValueError(f"{self.size} elements do not fit the shape {shape}")
        if self.is_dense:
            return self.viewed(shape, row_major(shape))
        strides = _reshaped_strides(self.shape, self.strides, shape)
        return None if strides is None else self.viewed(shape, strides)


@functools.lru_cache(maxsize=4096)
def expanded_strides(shape: Shape, strides: tuple[int, ...], target: Shape) -> tuple[int, ...]:
    """Strides of a view of another shape in which axes of length 1 are repeated."""
    lead = len(target) - len(shape)
    if lead < 0 or any(length < 0 for length in target):
        raise ValueError(f"shape {shape} does not broadcast to {target}")
    result = [0] * lead
    for length, own, stride in zip(target[lead:], shape, strides, strict=True):
        if own not in (1, length):
            raise ValueError(f"shape {shape} does not broadcast to {target}")
        result.append(stride if own == length else 0)
    return tuple(result)


@functools.lru_cache(maxsize=4096)
def row_major(shape: Shape) -> tuple[int, ...]:
    """Strides of a dense tensor, whose last axis is contiguous."""
    strides: list[int] = []
    step = 1
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))


@functools.lru_cache(maxsize=4096)
def is_row_major(shape: Shape, strides: tuple[int, ...]) -> bool:
    """Whether strides are those of a dense tensor; those of axes of length 1 do not matter."""
    if 0 in shape:
        return True
    return all(
        stride == expected
        for length, stride, expected in zip(shape, strides, row_major(shape), strict=True)
        if length != 1
    )


@functools.lru_cache(maxsize=4096)
def _reshaped_strides(
    shape: Shape, strides: tuple[int, ...], target: Shape
) -> tuple[int, ...] | None:
    """Strides of the same elements in the same order with another shape; None if there are none."""
    axes = [(length, stride) for length, stride in zip(shape, strides, strict=True) if length != 1]
    result: list[int] = []
    rest, step = 1, 0
    for wanted in reversed(target):
        if wanted == 1:
            result.append(0)
            continue
        if rest == 1:
            if not axes:
                return None
            rest, step = axes.pop()
        while rest % wanted:
            # There is a view if the axis before continues where this one ends.
            if not axes or axes[-1][1] != rest * step:
                return None
            rest *= axes.pop()[0]
        result.append(step)
        rest //= wanted
        step *= wanted
    return tuple(reversed(result))
