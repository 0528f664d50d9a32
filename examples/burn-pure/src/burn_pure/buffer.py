"""Buffer: the primitive of this backend, a block of memory and how a tensor lies in it.

A backend for a compute runtime has the same class, with a handle of device memory in place of an
`array`: what a kernel is launched with are the memory, the strides and the offset.
"""

from __future__ import annotations

import functools
import math
from array import array
from collections.abc import Iterable, Sequence
from typing import Any

from burn.plugin_api import Meta, Shape, Slices
from burn_pure.formats import Memory, blank, read, write

__all__ = ["Buffer", "element_offsets", "row_major"]


class Buffer:
    """A tensor in memory that other tensors may share; it is not written to once it is made.

    Parameters
    ----------
    memory : array
        The block of memory.
    meta : Meta
        Shape and dtype of the tensor: what the op definitions know of it.
    strides : iterable of int, optional
        Distance of neighbours along each axis, in elements. Without it the tensor is the whole
        memory, packed row by row.
    offset : int
        Offset of the first element in the memory.

    Attributes
    ----------
    shape : tuple of int
        Length of each axis.
    dtype : DType
        What `PureBackend.native_dtype` gives: burn's own objects will do.
    """

    __slots__ = (
        "__weakref__",
        "dtype",
        "is_packed",
        "memory",
        "meta",
        "offset",
        "shape",
        "strides",
    )

    def __init__(
        self, memory: Memory, meta: Meta, strides: Iterable[int] | None = None, offset: int = 0
    ) -> None:
        self.memory = memory
        self.meta = meta
        self.shape, self.dtype = meta
        self.is_packed = strides is None
        self.strides = row_major(self.shape) if strides is None else tuple(strides)
        self.offset = offset

    @classmethod
    def of(cls, numbers: Iterable[Any], meta: Meta) -> Buffer:
        """A new tensor with these numbers, row by row."""
        return cls(write(numbers, meta.dtype), meta)

    @classmethod
    def blank(cls, meta: Meta) -> Buffer:
        """A new tensor of zeros, to be filled by `assign`."""
        return cls(blank(meta.dtype, math.prod(meta.shape)), meta)

    def packed(self) -> Memory:
        """Memory with the elements row by row and nothing else: its own, where it is like that."""
        memory = self.memory
        if self.is_packed:
            return memory
        return array(memory.typecode, [memory[offset] for offset in self.element_offsets()])

    def numbers(self) -> list[Any]:
        """The elements as Python's numbers, row by row."""
        return read(self.packed(), self.dtype)

    def element_offsets(self) -> list[int]:
        """Offsets of the elements in the memory, row by row."""
        return element_offsets(self.shape, self.strides, self.offset)

    def permuted(self, axes: Sequence[int]) -> Buffer:
        """A view with the axes in another order."""
        shape = tuple([self.shape[axis] for axis in axes])
        strides = [self.strides[axis] for axis in axes]
        return Buffer(self.memory, Meta(shape, self.dtype), strides, self.offset)

    def expanded(self, shape: Shape) -> Buffer:
        """A view with axes of length 1 repeated, which takes a stride of 0."""
        if shape == self.shape:
            return self
        lead = len(shape) - len(self.shape)
        strides = [
            0 if length == 1 else stride
            for length, stride in zip(self.shape, self.strides, strict=True)
        ]
        return Buffer(self.memory, Meta(shape, self.dtype), [0] * lead + strides, self.offset)

    def sliced(self, slices: Slices) -> Buffer:
        """A view of every `step`-th element from `start` on."""
        shape = tuple([length for _, length, _ in slices])
        strides = [step * own for (_, _, step), own in zip(slices, self.strides, strict=True)]
        starts = [start * own for (start, _, _), own in zip(slices, self.strides, strict=True)]
        return Buffer(self.memory, Meta(shape, self.dtype), strides, self.offset + sum(starts))

    def assign(self, other: Buffer) -> None:
        """Write the elements of a tensor of the same shape and dtype; only to what is new."""
        for offset, element in zip(self.element_offsets(), other.packed(), strict=True):
            self.memory[offset] = element


@functools.lru_cache
def row_major(shape: Shape) -> tuple[int, ...]:
    """Strides of a tensor that is packed row by row."""
    strides: list[int] = []
    step = 1
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))


def element_offsets(shape: Shape, strides: Sequence[int], offset: int) -> list[int]:
    """``offset + i * strides[0] + j * strides[1] + ...`` for all i, j, ..., row by row."""
    result = [offset]
    for length, stride in zip(shape, strides, strict=True):
        steps = [stride * index for index in range(length)]
        result = [start + step for start in result for step in steps]
    return result
