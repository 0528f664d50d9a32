"""Matrix products of arrays in any layout that BLAS reads, as data for native code."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

__all__ = ["Product", "products_of", "stored"]

_BY_ROWS: Final = 111
_BY_COLUMNS: Final = 112

_MAX_CALLS: Final = 64
"""Steps that one product may be."""

_BLOCK: Final = 16
"""Rows or columns of an item."""

_PER_NANOSECOND: Final = 40.0
"""Multiplications of float32 in a nanosecond on one core, about."""


class Product(NamedTuple):
    """A product, or a batch of them at equal distances.

    Attributes
    ----------
    offsets : tuple of int
        Bytes from the begin of the memory of A, B and C to the first element.
    words : tuple of int
        Words of the table of ``kernels/product.ll`` after the addresses.
    items : int
        Number of independent items.
    work : float
        Nanoseconds that all items take, about.
    """

    offsets: tuple[int, int, int]
    words: tuple[int, ...]
    items: int
    work: float


def stored(matrix: Any) -> tuple[int, int] | None:
    """How BLAS reads a matrix: by rows or columns, and their distance; None if it does not."""
    (rows, columns), size = matrix.shape[-2:], matrix.itemsize
    row, column = (stride // size for stride in matrix.strides[-2:])
    if (column == 1 or columns == 1) and (row >= columns or rows == 1):
        return _BY_ROWS, max(row if rows > 1 else columns, columns, 1)
    if (row == 1 or rows == 1) and (column >= rows or columns == 1):
        return _BY_COLUMNS, max(column if columns > 1 else rows, rows, 1)
    return None


def products_of(arrays: Sequence[Any], roots: Sequence[Any]) -> list[Product] | None:
    """The products that compute ``c = a @ b``.

    Parameters
    ----------
    arrays : sequence of array
        Arrays of the layouts of a, b and c; that of c is in row-major order.
    roots : sequence of array
        The arrays that they are views of.

    Returns
    -------
    list of Product or None
        None if they are too many.
    """
    a, b, c = arrays
    layout_a, layout_b = stored(a), stored(b)
    if layout_a is None or layout_b is None:
        return None
    (stored_a, row_a), (stored_b, row_b) = layout_a, layout_b
    rows, columns, length = c.shape[-2], c.shape[-1], a.shape[-1]
    axes = _batch(a, b, c)
    size = c.itemsize
    if axes and not axes[-1][2] and stored_a == _BY_ROWS and axes[-1][1] == row_a * rows * size:
        rows *= axes.pop()[0]  # one matrix for the whole batch
    count, *steps = axes.pop() if axes else (1, 0, 0, 0)
    calls = math.prod([axis[0] for axis in axes])
    if calls > _MAX_CALLS:
        return None
    by_rows = rows >= columns
    items = count if count > 1 else -(-(rows if by_rows else columns) // _BLOCK)
    along_a = row_a if stored_a == _BY_ROWS else 1
    along_b = 1 if stored_b == _BY_ROWS else row_b
    moves = (along_a, 0, columns) if by_rows else (0, along_b, 1)
    words = (
        stored_a, stored_b, rows, columns, length, row_a, row_b, columns, count, *steps, _BLOCK,
        *[move * size for move in moves], int(by_rows),
    )  # fmt: skip
    work = count * rows * columns * length / _PER_NANOSECOND * (size // 4) + 1000
    starts = [
        item.__array_interface__["data"][0] - root.__array_interface__["data"][0]
        for item, root in zip((a, b, c), roots, strict=True)
    ]
    found = []
    for indices in itertools.product(*[range(axis[0]) for axis in axes]):
        offsets = [
            start + sum(i * axis[1 + number] for i, axis in zip(indices, axes, strict=True))
            for number, start in enumerate(starts)
        ]
        found.append(Product((offsets[0], offsets[1], offsets[2]), words, items, work))
    return found


def _batch(a: Any, b: Any, c: Any) -> list[tuple[int, int, int, int]]:
    """Lengths of the axes before the matrices, merged, and the bytes of a step of A, B and C."""
    axes: list[tuple[int, int, int, int]] = []
    for axis in range(c.ndim - 2):
        length = c.shape[axis]
        if length == 1:
            continue
        steps = []
        for tensor in (a, b, c):
            own = axis - (c.ndim - tensor.ndim)
            steps.append(tensor.strides[own] if own >= 0 and tensor.shape[own] > 1 else 0)
        if axes and all(axes[-1][1 + n] == step * length for n, step in enumerate(steps)):
            length *= axes.pop()[0]
        axes.append((length, steps[0], steps[1], steps[2]))
    return axes
