"""Small parameters of an optimizer in one array.

The results of a step are parts of one array, and so the operands of the next step need not be
joined again: only the gradients are.
"""

from __future__ import annotations

import functools
import itertools
import math
import weakref
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from burn_cpu.base import Array

__all__ = ["Joined", "Whole", "joined_parameters"]

_SMALL: Final = 4096
"""Parameters with fewer elements are joined."""


class Whole(np.ndarray[Any, Any]):
    """An array with one axis, and weak references to the parts of it that are parameters.

    Other views of a part refer to the part and not to this array, as that is of another class: so
    the references to a part show whether anything uses its memory.
    """

    parts: tuple[weakref.ref[Array], ...] = ()

    def has(self, arrays: list[Array]) -> bool:
        """Whether these are its parts, in their order."""
        return len(self.parts) == len(arrays) and all(
            [part() is array for part, array in zip(self.parts, arrays, strict=True)]  # noqa: C419 — a generator takes longer
        )


class Joined(NamedTuple):
    """Which parameters are joined.

    Attributes
    ----------
    indices : list of int
        Those that are joined.
    shapes : list of tuple
        Their shapes.
    others : list of int
        All other parameters.
    """

    indices: list[int]
    shapes: list[tuple[int, ...]]
    others: list[int]

    def array(self, arrays: Sequence[Array]) -> Whole:
        """That of which the joined ones are the parts, or a new one of their elements."""
        chosen = [arrays[index] for index in self.indices]
        whole = chosen[0].base
        if whole.__class__ is Whole and whole.has(chosen):
            return whole
        dtype = chosen[0].dtype
        try:
            # In a fifth of the time of np.concatenate, of arrays that are contiguous.
            memory = bytearray().join(chosen)
        except (TypeError, ValueError):
            return np.concatenate(chosen, axis=None).view(Whole)
        return Whole(len(memory) // dtype.itemsize, dtype, memory)

    def split(self, whole: Whole) -> list[Array]:
        """The parts of a new array."""
        dtype, parts, offset = whole.dtype, [], 0
        if dtype.kind == "V":  # bfloat16 has no buffer
            ends = list(itertools.accumulate(map(math.prod, self.shapes)))
            pieces = np.split(whole.view(np.ndarray), ends[:-1])
            return [piece.reshape(shape) for piece, shape in zip(pieces, self.shapes, strict=True)]
        for shape in self.shapes:
            part: Array = np.ndarray(shape, dtype, whole, offset)
            parts.append(part)
            offset += part.nbytes
        whole.parts = tuple(map(weakref.ref, parts))
        return parts


@functools.lru_cache(maxsize=256)
def joined_parameters(shapes: tuple[tuple[int, ...], ...]) -> Joined:
    """Which parameters of these shapes are joined; one alone is not."""
    small = [index for index, shape in enumerate(shapes) if math.prod(shape) < _SMALL]
    if len(small) < 2:
        return Joined([], [], list(range(len(shapes))))
    others = [index for index, shape in enumerate(shapes) if math.prod(shape) >= _SMALL]
    return Joined(small, [shapes[index] for index in small], others)
