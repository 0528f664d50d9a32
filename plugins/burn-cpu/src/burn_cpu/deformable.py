"""Deformed windows: four elements for each moved place, one image and group after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Unpack

import numpy as np

from burn.ops.deformed_windows import (
    Deformation,
    DeformationRule,
    check_gradient,
    deformation,
    starts,
)
from burn_cpu.base import Array, CpuOps
from burn_cpu.blocks import wide_dtype


class DeformableOps(CpuOps):
    """Reading at moved places, and what gradients are made of; 16-bit floats in float32."""

    def deform_unfold4d(
        self, x: Array, offset: Array, mask: Array | None, **rule: Unpack[DeformationRule]
    ) -> Array:
        """Four elements each."""
        plan = deformation(x, offset, mask, **rule)
        dtype = wide_dtype(x.dtype)
        planes = _planes(x, plan, dtype)
        shared = None if mask is None else mask.astype(dtype, copy=False).reshape(plan.shared)
        columns = np.zeros(plan.sampled, dtype)
        for index, corners in _corners(offset.astype(dtype, copy=False), plan):
            total = columns[index]
            for corner in corners:
                value = planes[index].take(corner.place, axis=1)
                value *= corner.weight
                total += value
            if shared is not None:
                total *= shared[index]
        return columns.reshape(plan.column_shape).astype(x.dtype, copy=False)

    def deform_unfold4d_grad(
        self, x: Array, offset: Array, mask: Array | None, g: Array, **rule: Unpack[DeformationRule]
    ) -> tuple[Array, Array, Array]:
        """What comes together in an element is added up in float64."""
        plan = deformation(x, offset, mask, **rule)
        check_gradient(g, plan)
        dtype = wide_dtype(x.dtype)
        planes = _planes(x, plan, dtype)
        g = g.astype(dtype, copy=False).reshape(plan.sampled)
        shared = None if mask is None else mask.astype(dtype, copy=False).reshape(plan.shared)
        to_x = np.zeros(planes.shape, dtype)
        moved = np.zeros((2, *plan.shared), dtype)
        to_mask = np.zeros(plan.shared, dtype)
        rows = np.arange(planes.shape[2])[:, None] * planes.shape[3]
        for index, corners in _corners(offset.astype(dtype, copy=False), plan):
            share = g[index] if shared is None else g[index] * shared[index]
            for corner in corners:
                flat = (rows + corner.place).reshape(-1)
                sums = np.bincount(flat, (share * corner.weight).reshape(-1), to_x[index].size)
                to_x[index] += sums.reshape(to_x[index].shape)
                product = np.einsum("cp,cp->p", g[index], planes[index].take(corner.place, axis=1))
                product = np.where(corner.outside, dtype.type(0), product)
                to_mask[index] += product * corner.weight
                moved[0][index] += product * corner.down
                moved[1][index] += product * corner.across
        if shared is not None:
            moved *= shared
        to_offset = np.stack([one.reshape(plan.by_place) for one in moved], axis=3)
        return (
            to_x[..., :-1].reshape(plan.image_shape).astype(x.dtype, copy=False),
            to_offset.reshape(plan.offset_shape).astype(x.dtype, copy=False),
            to_mask.reshape(plan.mask_shape).astype(x.dtype, copy=False),
        )


def _planes(x: Array, plan: Deformation, dtype: Any) -> Array:
    """Images by groups and channels as rows, each with a zero at its end: what is outside."""
    *lead, pixels = plan.planes
    planes = np.empty((*lead, pixels + 1), dtype)
    planes[..., :-1] = x.reshape(plan.planes)
    planes[..., -1] = 0
    return planes


class _Corner(NamedTuple):
    """One of the four elements around each moved place.

    Attributes
    ----------
    place : array of intp, shape (places,)
        Its place in an image; the number of elements of that where it is `outside`.
    outside : array of bool, shape (places,)
        Whether it lies outside the image.
    weight, down, across : array, shape (places,)
        Its part in the value, and the slopes of that by both coordinates; 0 where it is outside.
    """

    place: Array
    outside: Array
    weight: Array
    down: Array
    across: Array


def _corners(offset: Array, plan: Deformation) -> Iterator[tuple[tuple[int, int], list[_Corner]]]:
    """The corners of each image and group."""
    moved = offset.reshape(plan.batch, plan.groups, plan.places, 2, plan.windows)
    start = [one.astype(offset.dtype) for one in starts(plan)]
    lengths = (plan.rows.length, plan.columns.length)
    zero = offset.dtype.type(0)
    for index in np.ndindex(plan.batch, plan.groups):
        down, across = (
            _sides(moved[index][:, axis].reshape(-1) + start[axis], lengths[axis])
            for axis in range(2)
        )
        corners = []
        for row in down:
            for column in across:
                outside = row.outside | column.outside
                place = row.place * lengths[1] + column.place
                corners.append(
                    _Corner(
                        np.where(outside, lengths[0] * lengths[1], place),
                        outside,
                        np.where(outside, zero, row.weight * column.weight),
                        np.where(outside, zero, column.weight * row.slope),
                        np.where(outside, zero, row.weight * column.slope),
                    )
                )
        yield index, corners


class _Side(NamedTuple):
    """The element before or behind a coordinate, along one axis."""

    place: Array
    outside: Array
    weight: Array
    slope: Any


def _sides(coordinate: Array, length: int) -> list[_Side]:
    number = coordinate.dtype.type
    before = np.floor(coordinate)
    fraction = coordinate - before
    sides = []
    for place, weight, slope in (
        (before, number(1) - fraction, number(-1)),
        (before + number(1), fraction, number(1)),
    ):
        outside = (place < 0) | (place >= length)
        # NaN is in no place, and stays in the weight.
        inside = np.fmin(np.fmax(place, number(0)), number(length - 1)).astype(np.intp)
        sides.append(_Side(inside, outside, weight, slope))
    return sides
