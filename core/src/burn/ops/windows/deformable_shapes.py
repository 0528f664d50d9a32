"""The geometry of deformable convolutions: shapes, and window positions before any offset."""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import numpy as np

from burn.errors import ArgumentError, ShapeError
from burn.ops._axis_maps import Array
from burn.ops.signature import Integer, Shape
from burn.ops.windows.sliding_windows import PatchAttributes, Windows
from burn.ops.windows.unfolding import image_windows

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
    """Shapes and windows of a deformable convolution.

    Attributes
    ----------
    batch, channels, groups : int
        Numbers of images, of their channels, and of the groups with the same offsets.
    rows, columns : Windows
        The windows, before they are deformed, down and across.
    """

    batch: int
    channels: int
    groups: int
    rows: Windows
    columns: Windows

    @property
    def taps(self) -> int:
        """Number of elements of the kernel."""
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
    def plane_shape(self) -> Shape:
        """Shape of the images by group, with flat pixels."""
        pixels = self.rows.length * self.columns.length
        return (self.batch, self.groups, self.channels // self.groups, pixels)

    @property
    def column_shape(self) -> Shape:
        """Shape of the windows as columns."""
        return (self.batch, self.channels * self.taps, self.windows)

    @property
    def sample_shape(self) -> Shape:
        """Shape of the sampled values by group and channel, flat."""
        values = self.taps * self.windows
        return (self.batch, self.groups, self.channels // self.groups, values)

    @property
    def group_shape(self) -> Shape:
        """Shape of values that the channels of a group share."""
        return (self.batch, self.groups, 1, self.taps * self.windows)

    @property
    def tap_shape(self) -> Shape:
        """Shape of such values by kernel element and window."""
        return (self.batch, self.groups, self.taps, 1, self.windows)

    @property
    def mask_shape(self) -> Shape:
        """Shape of a mask."""
        return (self.batch, self.groups * self.taps, self.rows.count, self.columns.count)

    @property
    def offset_shape(self) -> Shape:
        """Shape of an offset."""
        return (self.batch, 2 * self.groups * self.taps, self.rows.count, self.columns.count)


def deformable_geometry(
    x: Any,
    offset: Any,
    mask: Any,
    *,
    offset_groups: int,
    **attributes: Unpack[PatchAttributes],
) -> DeformableGeometry:
    """The geometry of operands, tensors or metadata; `mask` may be None.

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
    """Raise ShapeError unless a gradient has the shape of the columns."""
    if tuple(g.shape) != plan.column_shape:
        raise ShapeError(f"g has shape {tuple(g.shape)} where {plan.column_shape} is needed")


def undeformed_positions(plan: DeformableGeometry) -> tuple[Array, Array]:
    """Row and column of each kernel element of each window, before any offset."""
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
