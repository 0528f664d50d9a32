"""Gradients of slices of one tensor, which become its gradient together.

Each is 0 outside of its slice. To fill it up with zeros and to add it to the others would take time
and memory of the whole tensor for each slice; parts along an axis are joined by one `concat`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from burn.aliases import Slices
from burn.ops.shapes import size
from burn.ops.signature import Part, Primitive, Shape
from burn.ops.table import OpTable

__all__ = ["Parts"]


class Parts:
    """Gradients that reached a tensor, some of them of slices of it.

    Parameters
    ----------
    shape : tuple of int
        The shape of the tensor.
    whole : primitive or None
        The sum of the gradients that are no parts.
    """

    __slots__ = ("_by_slices", "_elements", "_shape", "_whole")

    def __init__(self, shape: Sequence[int], whole: Primitive | None) -> None:
        self._shape = tuple(shape)
        self._whole = whole
        self._by_slices: dict[Slices, Primitive] = {}
        self._elements = 0

    def add(self, ops: OpTable, gradient: Primitive | Part) -> None:
        """Add a gradient, or a part of one."""
        if gradient.__class__ is not Part:
            whole = self._whole
            self._whole = gradient if whole is None else ops.add(whole, gradient)
            return
        primitive, slices = gradient
        earlier = self._by_slices.get(slices)
        if earlier is not None:
            self._by_slices[slices] = ops.add(earlier, primitive)
            return
        self._by_slices[slices] = primitive
        self._elements += size(primitive.shape)
        if self._elements > size(self._shape):  # they overlap: keep no more than two gradients
            self._whole = self.joined(ops)
            self._by_slices = {}
            self._elements = 0

    def joined(self, ops: OpTable) -> Primitive:
        """The sum of all."""
        rows: dict[int, list[Part]] = {}
        others: list[Part] = []
        for slices, gradient in self._by_slices.items():
            axis = _axis(self._shape, slices)
            part = Part(gradient, slices)
            (others if axis is None else rows.setdefault(axis, [])).append(part)
        total = self._whole
        for axis, parts in rows.items():
            for row in _without_overlaps(parts, axis):
                filled = self._filled(ops, row, axis)
                total = filled if total is None else ops.add(total, filled)
        for gradient, slices in others:
            if total is None:
                zeros = _zeros(ops, self._shape, gradient)
                total = ops.slice_assign(zeros, gradient, slices=slices)
            else:
                sum = ops.add(ops.slice(total, slices=slices), gradient)
                total = ops.slice_assign(total, sum, slices=slices)
        return total

    def _filled(self, ops: OpTable, parts: Iterable[Part], axis: int) -> Primitive:
        """Parts in order along an axis, with zeros between them."""
        shape = self._shape
        pieces = []
        end = 0
        for gradient, slices in parts:
            start, length, _ = slices[axis]
            if start > end:
                gap = (*shape[:axis], start - end, *shape[axis + 1 :])
                pieces.append(_zeros(ops, gap, gradient))
            pieces.append(gradient)
            end = start + length
        if end < shape[axis]:
            gap = (*shape[:axis], shape[axis] - end, *shape[axis + 1 :])
            pieces.append(_zeros(ops, gap, gradient))
        return pieces[0] if len(pieces) == 1 else ops.concat(pieces, axis=axis)


def _axis(shape: Shape, slices: Slices) -> int | None:
    """The axis along which a slice has consecutive elements, with all indices of other axes."""
    found = None
    for axis, ((start, length, step), extent) in enumerate(zip(slices, shape, strict=True)):
        if start == 0 and length == extent and step == 1:
            continue
        if found is not None or not length or (step != 1 and length > 1):
            return None
        found = axis
    return 0 if found is None and shape else found


def _without_overlaps(parts: list[Part], axis: int) -> list[list[Part]]:
    """Parts in rows, in each of which they are in order and have no elements in common."""
    rows: list[list[Part]] = []
    for part in sorted(parts, key=lambda part: part.slices[axis][0]):
        start = part.slices[axis][0]
        for row in rows:
            last, length, _ = row[-1].slices[axis]
            if last + length <= start:
                row.append(part)
                break
        else:
            rows.append([part])
    return rows


def _zeros(ops: OpTable, shape: Shape, like: Primitive) -> Primitive:
    return ops.full(shape=shape, fill_value=0.0, dtype=ops.dtype(like))
