"""Axes of kernels: those that need no index of their own are merged."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

from burn.kernels.kernel import Index, Kernel, Load, Node, Store

__all__ = ["collapsed", "needs_wide_indices"]

_DROPPED: Final = -1
_NARROW_LIMIT: Final = 1 << 31


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
    strides = [node.strides for node in kernel.body if isinstance(node, Load)]
    strides += [store.strides for store in kernel.stores]
    indexed = {node.axis for node in kernel.body if isinstance(node, Index)}
    kept: list[int] = []
    space: list[int] = []
    numbers: dict[int, int] = {}
    for axis, length in enumerate(kernel.space):
        if length == 1 and axis not in indexed:
            continue
        before = kept[-1] if kept else _DROPPED
        if (
            kept
            and (before < kernel.rows) is (axis < kernel.rows)
            and not indexed & {before, axis}
            and all(row[before] == row[axis] * length for row in strides)
        ):
            kept[-1] = axis
            space[-1] *= length
        else:
            kept.append(axis)
            space.append(length)
        numbers[axis] = len(kept) - 1
    if len(kept) == len(kernel.space):
        return kernel

    def picked(row: Sequence[int]) -> tuple[int, ...]:
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
        stores=tuple([Store(*store[:3], picked(store.strides)) for store in kernel.stores]),
    )


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
    extents = [kernel.row_count * kernel.column_count]
    for reduce in (*kernel.body, *kernel.stores):
        if isinstance(reduce, Load) and reduce.gathers:
            return True
        if isinstance(reduce, Load | Store):
            steps = zip(reduce.strides, kernel.space, strict=True)
            extents.append(reduce.offset + sum(abs(stride) * length for stride, length in steps))
    return max(extents) >= _NARROW_LIMIT
