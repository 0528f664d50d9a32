"""Axes of kernels: those that need no index of their own are merged."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, Final

from burn.kernels.kernel import Extent, Index, Kernel, Length, Load, Node, Reduce, Store, known
from burn.kernels.schedule import columns_are_neighbours

__all__ = ["collapsed", "generalized", "needs_wide_indices"]

_DROPPED: Final = -1
_NARROW_LIMIT: Final = 1 << 31

_COLUMN_CLASSES: Final = (16, 64, 256, 1024, 8192)
"""Columns up to which schedules treat rows alike."""

_ROW_CLASSES: Final = (16,)
"""The same for the last axis of the rows, along which vectors may be."""

_NEIGHBOURS: Final = frozenset([2, -1])
"""Strides of the last axis that stay constants: vectors of neighbours are read for them."""

_VECTOR: Final = 8
"""Elements of the longest vector of a GPU."""


def collapsed(kernel: Kernel) -> Kernel:
    """An equal kernel with as few axes as its loads and stores allow.

    Parameters
    ----------
    kernel : Kernel
        A kernel.

    Returns
    -------
    Kernel
        The same computation. Neighbouring axes are one where each load and each store steps
        through them as through one, and axes of length 1 are left out.

    Examples
    --------
    >>> from burn import float32
    >>> from burn.kernels import Apply, Kernel, Load, Store
    >>> from burn.kernels.layout import collapsed
    >>> body = (Load(0, 0, (8, 1), float32), Apply("exp", (0,), float32))
    >>> stores = (Store(0, 1, 0, (8, 1)),)
    >>> collapsed(Kernel((4, 8), 2, (float32,), (), ((float32, 32),), body, stores)).space
    (32,)
    """
    strides = [access.strides for access in _accesses(kernel)]
    indexed = {node.axis for node in kernel.body if isinstance(node, Index)}
    if kernel.ragged is not None:
        indexed.update({0, kernel.rows})
    kept: list[int] = []
    space: list[Extent] = []
    numbers: dict[int, int] = {}
    for axis, length in enumerate(kernel.space):
        if length == 1 and axis not in indexed:
            continue
        before = kept[-1] if kept else _DROPPED
        if (
            kept
            and (before < kernel.rows) is (axis < kernel.rows)
            and not indexed & {before, axis}
            and isinstance(total := space[-1], int)
            and isinstance(length, int)
            and all(_is_step(row[before], row[axis], length) for row in strides)
        ):
            kept[-1] = axis
            space[-1] = total * length
        else:
            kept.append(axis)
            space.append(length)
        numbers[axis] = len(kept) - 1
    if len(kept) == len(kernel.space):
        return kernel

    def picked(row: Sequence[Extent]) -> tuple[Extent, ...]:
        return tuple([row[axis] for axis in kept])

    def renamed(node: Node) -> Node:
        if isinstance(node, Load):
            return node._replace(strides=picked(node.strides))
        return node._replace(axis=numbers[node.axis]) if isinstance(node, Index) else node

    return dataclasses.replace(
        kernel,
        space=tuple(space),
        rows=sum(axis < kernel.rows for axis in kept),
        body=tuple([renamed(node) for node in kernel.body]),
        stores=tuple([store._replace(strides=picked(store.strides)) for store in kernel.stores]),
    )


def _accesses(kernel: Kernel) -> list[Load | Store]:
    return [*[node for node in kernel.body if isinstance(node, Load)], *kernel.stores]


def _is_step(before: Extent, stride: Extent, length: int) -> bool:
    """Whether the stride of an axis steps over another axis."""
    if isinstance(stride, int):
        return before == stride * length
    return False


def generalized(kernel: Kernel) -> tuple[Kernel, tuple[int, ...]]:
    """A kernel for all shapes like those of a kernel, and the numbers that make it that one.

    Parameters
    ----------
    kernel : Kernel
        A kernel, whose lengths are known.

    Returns
    -------
    kernel : Kernel
        The same computation with as few axes as `collapsed` leaves; each length, each offset but 0,
        and each stride but 0 and 1, and 2 and -1 along the last axis, is a `Length`. Kernels of
        equal structure and of lengths of the same classes give equal ones.
    lengths : tuple of int
        The numbers that a launch is given after those that it is given for the other kernel.

    Examples
    --------
    >>> from burn import float32
    >>> from burn.kernels import Kernel, Load, Reduce, Store
    >>> from burn.kernels.layout import generalized
    >>> def total(rows, columns):
    ...     body = (Load(0, 0, (columns, 1), float32), Reduce("sum", 0, float32))
    ...     outputs, stores = ((float32, rows),), (Store(0, 1, 0, (1, 0)),)
    ...     return Kernel((rows, columns), 1, (float32,), (), outputs, body, stores)
    >>> kernel, lengths = generalized(total(4096, 900))
    >>> lengths
    (4096, 900, 900)
    >>> generalized(total(50, 1004)) == (kernel, (50, 1004, 1004))
    True
    """
    kernel = collapsed(kernel)
    lengths = _Lengths(kernel)
    space = tuple(map(lengths.of_axis, range(len(kernel.space))))
    ragged = kernel.ragged
    body = tuple([lengths.of_load(n) if isinstance(n, Load) else n for n in kernel.body])
    made = dataclasses.replace(
        kernel,
        space=space,
        body=body,
        stores=tuple([lengths.of_access(store) for store in kernel.stores]),
        ragged=None if ragged is None else lengths.of_ragged(ragged),
        outputs=tuple([(dtype, None) for dtype, _ in kernel.outputs]),
        wide=needs_wide_indices(kernel),
        scalars=(*kernel.scalars, *[int] * len(lengths.values)),
    )
    return made, tuple(lengths.values)


class _Lengths:
    """The lengths of a kernel that launches are given."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.values: list[int] = []
        self._known: dict[tuple[object, int], Length] = {}
        self._multiple = self._alignment()

    def _alignment(self) -> int:
        """What divides all that decides whether neighbours of several rows are whole vectors."""
        kernel = self.kernel
        is_reduction = any(isinstance(node, Reduce) for node in kernel.body)
        if len(kernel.space) < 2 or (is_reduction and not columns_are_neighbours(kernel)):
            return 1
        steps = [kernel.space[-1], 0 if kernel.ragged is None else kernel.ragged]
        for access in _accesses(kernel):
            steps += [access.offset, *[stride for stride in access.strides if stride != 1]]
        return math.gcd(_VECTOR, *known(steps))

    def length(
        self, use: object, value: Extent, classes: Sequence[int] = (), multiple: int = 1
    ) -> Length:
        """A length; equal ones of one use are one."""
        (value,) = known((value,))
        length = self._known.get((use, value))
        if length is None:
            number = len(self.kernel.scalars) + len(self.values)
            most = next((limit for limit in classes if value <= limit), None)
            least = max([limit + 1 for limit in classes if value > limit], default=0)
            length = Length(number, least, most, multiple)
            self._known[use, value] = length
            self.values.append(value)
        return length

    def of_axis(self, axis: int) -> Length:
        """The length of an axis."""
        kernel = self.kernel
        classes: tuple[int, ...] = _COLUMN_CLASSES
        if axis < kernel.rows:
            classes = _ROW_CLASSES if axis == kernel.rows - 1 else ()
        multiple = self._multiple if axis == len(kernel.space) - 1 else 1
        return self.length(("axis", axis), kernel.space[axis], classes, multiple)

    def of_ragged(self, ragged: Extent) -> Length:
        """The columns of all parts."""
        return self.length("ragged", ragged, multiple=self._multiple)

    def of_access(self, access: Load | Store) -> Any:
        """A load or store."""
        last = len(access.strides) - 1
        strides = [
            stride
            if stride in {0, 1} or (axis == last and stride in _NEIGHBOURS)
            else self.length(("stride", axis), stride, multiple=self._multiple)
            for axis, stride in enumerate(access.strides)
        ]
        offset = access.offset
        if offset:
            offset = self.length("offset", offset, multiple=self._multiple)
        return access._replace(offset=offset, strides=tuple(strides))

    def of_load(self, load: Load) -> Load:
        """A load."""
        gathers = [
            (node, stride if stride in {0, 1} else self.length("gather", stride))
            for node, stride in load.gathers
        ]
        made: Load = self.of_access(load)
        return made._replace(gathers=tuple(gathers))


def needs_wide_indices(kernel: Kernel) -> bool:
    """Whether an index of an element may need more than 32 bits.

    Parameters
    ----------
    kernel : Kernel
        A kernel.

    Returns
    -------
    bool
        True where a gather is, too: it says nothing of the size of its input.
    """
    if kernel.wide is not None:
        return kernel.wide
    space = known(kernel.space)
    extents = [math.prod(space)]
    for access in _accesses(kernel):
        if isinstance(access, Load) and access.gathers:
            return True
        (offset,) = known((access.offset,))
        steps = zip(known(access.strides), space, strict=True)
        extents.append(offset + sum(abs(stride) * length for stride, length in steps))
    return max(extents) >= _NARROW_LIMIT
