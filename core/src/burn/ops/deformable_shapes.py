"""The shapes of deformed convolutions, and where their windows are before they are deformed."""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import numpy as np

from burn.errors import ArgumentError, ShapeError
from burn.ops.axis_maps import Array
from burn.ops.signature import (
    Integer,
    Shape,
)
from burn.ops.sliding_windows import (
    PatchAttributes,
    Windows,
)
from burn.ops.unfolding import image_windows

__all__ = [
    "DeformableAttributes",
    "DeformableGeometry",
    "check_deformable_gradient",
    "deformable_geometry",
    "undeformed_positions",
]


class DeformableAttributes(PatchAttributes):
    """The attributes of the ops that deform windows."""

    offset_groups: Integer


class DeformableGeometry(NamedTuple):
    """The shapes that belong together in a deformed convolution.

    Attributes
    ----------
    batch, channels, groups : int
        Numbers of images, of their channels, and of the parts that move alike.
    rows, columns : Windows
        The windows, before they are deformed, down and across.
    """

    batch: int
    channels: int
    groups: int
    rows: Windows
    columns: Windows

    @property
    def places(self) -> int:
        """Number of places in a window."""
        return self.rows.kernel * self.columns.kernel

    @property
    def windows(self) -> int:
        """Number of windows."""
        return self.rows.count * self.columns.count

    @property
    def image_shape(self) -> Shape:
        """Shape of the images."""
        return (self.batch, self.channels, self.rows.length, self.columns.length)

    @property
    def planes(self) -> Shape:
        """That of the images by groups, each a row of elements."""
        pixels = self.rows.length * self.columns.length
        return (self.batch, self.groups, self.channels // self.groups, pixels)

    @property
    def column_shape(self) -> Shape:
        """Shape of the windows as columns."""
        return (self.batch, self.channels * self.places, self.windows)

    @property
    def sampled(self) -> Shape:
        """That of the columns by groups and channels, each a row of values."""
        values = self.places * self.windows
        return (self.batch, self.groups, self.channels // self.groups, values)

    @property
    def shared(self) -> Shape:
        """Shape of what the channels of a group have in common."""
        return (self.batch, self.groups, 1, self.places * self.windows)

    @property
    def by_place(self) -> Shape:
        """The same by place and window."""
        return (self.batch, self.groups, self.places, 1, self.windows)

    @property
    def mask_shape(self) -> Shape:
        """Shape of a mask."""
        return (self.batch, self.groups * self.places, self.rows.count, self.columns.count)

    @property
    def offset_shape(self) -> Shape:
        """Shape of an offset."""
        return (self.batch, 2 * self.groups * self.places, self.rows.count, self.columns.count)


def deformable_geometry(
    x: Any,
    offset: Any,
    mask: Any,
    *,
    offset_groups: int,
    **attributes: Unpack[PatchAttributes],
) -> DeformableGeometry:
    """What belongs to what, of anything that has shapes; `mask` may be None.

    Raises
    ------
    ShapeError
        If the shapes do not fit each other.
    ArgumentError
        If a number is out of its range.
    """
    shape = tuple(x.shape)
    rows, columns = image_windows(shape, **attributes)
    if offset_groups < 1:
        raise ArgumentError(f"offset_groups is {offset_groups}", hint="Use 1 or more")
    if shape[1] % offset_groups:
        raise ShapeError(
            f"{shape[1]} channels are no multiple of {offset_groups} offset_groups",
            hint="Each group has equally many",
        )
    plan = DeformableGeometry(shape[0], shape[1], offset_groups, rows, columns)
    numbers = f"{offset_groups} * {rows.kernel} * {columns.kernel}"
    if tuple(offset.shape) != plan.offset_shape:
        raise ShapeError(
            f"offset has shape {tuple(offset.shape)} where {plan.offset_shape} is needed: "
            f"2 * offset_groups * kernel height * kernel width = 2 * {numbers} channels"
        )
    if mask is not None and tuple(mask.shape) != plan.mask_shape:
        raise ShapeError(
            f"mask has shape {tuple(mask.shape)} where {plan.mask_shape} is needed: "
            f"offset_groups * kernel height * kernel width = {numbers} channels"
        )
    return plan


def check_deformable_gradient(g: Any, plan: DeformableGeometry) -> None:
    """Refuse a gradient that has not the shape of the columns."""
    if tuple(g.shape) != plan.column_shape:
        raise ShapeError(f"g has shape {tuple(g.shape)} where {plan.column_shape} is needed")


def undeformed_positions(plan: DeformableGeometry) -> tuple[Array, Array]:
    """Row and column of each place of each window, before it is moved."""
    rows, columns = (
        np.arange(axis.kernel)[:, None] * axis.dilation
        + np.arange(axis.count) * axis.stride
        - axis.before
        for axis in (plan.rows, plan.columns)
    )
    shape = (plan.rows.kernel, plan.columns.kernel, plan.rows.count, plan.columns.count)
    down = np.broadcast_to(rows[:, None, :, None], shape)
    across = np.broadcast_to(columns[None, :, None, :], shape)
    return down.reshape(-1), across.reshape(-1)
