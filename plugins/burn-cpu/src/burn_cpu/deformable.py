"""Deformable windows: four elements per sampling point, one image and group at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Unpack

import numpy as np

from burn.plugin_api import (
    DeformableAttributes,
    DeformableGeometry,
    check_deformable_gradient,
    deformable_geometry,
    undeformed_positions,
)
from burn_cpu.base import Array, CpuOps
from burn_cpu.blocks import wide_dtype


class DeformableOps(CpuOps):
    """Sampling at offset points and its gradients; 16-bit floats in float32."""

    def deform_unfold4d(
        self,
        x: Array,
        offset: Array,
        mask: Array | None,
        **attributes: Unpack[DeformableAttributes],
    ) -> Array:
        """Bilinear interpolation of four elements per point."""
        plan = deformable_geometry(x, offset, mask, **attributes)
        dtype = wide_dtype(x.dtype)
        planes = _planes(x, plan, dtype)
        shared = None if mask is None else mask.astype(dtype, copy=False).reshape(plan.group_shape)
        columns = np.zeros(plan.sample_shape, dtype)
        for index, corners in _corners(offset.astype(dtype, copy=False), plan):
            total = columns[index]
            for corner in corners:
                value = planes[index].take(corner.index, axis=1)
                value *= corner.weight
                total += value
            if shared is not None:
                total *= shared[index]
        return columns.reshape(plan.column_shape).astype(x.dtype, copy=False)

    def deform_unfold4d_grad(
        self,
        x: Array,
        offset: Array,
        mask: Array | None,
        g: Array,
        **attributes: Unpack[DeformableAttributes],
    ) -> tuple[Array, Array, Array]:
        """The gradients of each element are added up in float64."""
        plan = deformable_geometry(x, offset, mask, **attributes)
        check_deformable_gradient(g, plan)
        dtype = wide_dtype(x.dtype)
        planes = _planes(x, plan, dtype)
        g = g.astype(dtype, copy=False).reshape(plan.sample_shape)
        shared = None if mask is None else mask.astype(dtype, copy=False).reshape(plan.group_shape)
        x_grad = np.zeros(planes.shape, dtype)
        moved = np.zeros((2, *plan.group_shape), dtype)
        mask_grad = np.zeros(plan.group_shape, dtype)
        rows = np.arange(planes.shape[2])[:, None] * planes.shape[3]
        for index, corners in _corners(offset.astype(dtype, copy=False), plan):
            share = g[index] if shared is None else g[index] * shared[index]
            for corner in corners:
                flat = (rows + corner.index).reshape(-1)
                sums = np.bincount(flat, (share * corner.weight).reshape(-1), x_grad[index].size)
                x_grad[index] += sums.reshape(x_grad[index].shape)
                product = np.einsum("cp,cp->p", g[index], planes[index].take(corner.index, axis=1))
                product = np.where(corner.outside, dtype.type(0), product)
                mask_grad[index] += product * corner.weight
                moved[0][index] += product * corner.down
                moved[1][index] += product * corner.across
        if shared is not None:
            moved *= shared
        offset_grad = np.stack([item.reshape(plan.tap_shape) for item in moved], axis=3)
        return (
            x_grad[..., :-1].reshape(plan.image_shape).astype(x.dtype, copy=False),
            offset_grad.reshape(plan.offset_shape).astype(x.dtype, copy=False),
            mask_grad.reshape(plan.mask_shape).astype(x.dtype, copy=False),
        )


def _planes(x: Array, plan: DeformableGeometry, dtype: Any) -> Array:
    """Groups and channels of images as rows, each followed by a zero: the element outside."""
    *lead, pixels = plan.plane_shape
    planes = np.empty((*lead, pixels + 1), dtype)
    planes[..., :-1] = x.reshape(plan.plane_shape)
    planes[..., -1] = 0
    return planes


class _Corner(NamedTuple):
    """One of the four elements around each sampling point.

    Attributes
    ----------
    index : array of intp, shape (points,)
        Flat index in an image; the number of elements of an image where it is `outside`.
    outside : array of bool, shape (points,)
        Whether it lies outside the image.
    weight, down, across : array, shape (points,)
        Its weight in the value, and the derivatives of the weight by both coordinates; 0 where it
        is outside.
    """

    index: Array
    outside: Array
    weight: Array
    down: Array
    across: Array


def _corners(
    offset: Array, plan: DeformableGeometry
) -> Iterator[tuple[tuple[int, int], list[_Corner]]]:
    """The corners of each image and group."""
    moved = offset.reshape(plan.batch, plan.groups, plan.taps, 2, plan.windows)
    start = [
        undeformed_position.astype(offset.dtype)
        for undeformed_position in undeformed_positions(plan)
    ]
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
                corner_index = row.index * lengths[1] + column.index
                corners.append(
                    _Corner(
                        np.where(outside, lengths[0] * lengths[1], corner_index),
                        outside,
                        np.where(outside, zero, row.weight * column.weight),
                        np.where(outside, zero, column.weight * row.slope),
                        np.where(outside, zero, row.weight * column.slope),
                    )
                )
        yield index, corners


class _Side(NamedTuple):
    """The element before or after a coordinate along one axis."""

    index: Array
    outside: Array
    weight: Array
    slope: Any


def _sides(coordinate: Array, length: int) -> list[_Side]:
    number = coordinate.dtype.type
    before = np.floor(coordinate)
    fraction = coordinate - before
    sides = []
    for position, weight, slope in (
        (before, number(1) - fraction, number(-1)),
        (before + number(1), fraction, number(1)),
    ):
        outside = (position < 0) | (position >= length)
        # A NaN coordinate reads some element; the NaN stays in the weight.
        inside = np.fmin(np.fmax(position, number(0)), number(length - 1)).astype(np.intp)
        sides.append(_Side(inside, outside, weight, slope))
    return sides
