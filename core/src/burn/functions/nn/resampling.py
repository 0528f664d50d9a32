"""Images brought to another size, and sampled at any places."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from burn.dispatch import unary
from burn.errors import ArgumentError, ShapeError
from burn.functions.common import dispatch
from burn.functions.nn._spatial_arguments import PerAxis, per_axis
from burn.functions.normalize import rank_of
from burn.ops.arguments import real_number

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["affine_grid_2d", "grid_sample_2d", "interpolate"]

Mode: TypeAlias = Literal[
    "nearest",
    "nearest-exact",
    "linear",
    "bilinear",
    "trilinear",
    "cubic",
    "bicubic",
    "lanczos3",
]

_interpolate = unary(dispatch, "interpolate")
_affine_grid_2d = unary(dispatch, "affine_grid_2d")

_NAMES: Final = {"bilinear": ("linear", 2), "trilinear": ("linear", 3), "bicubic": ("cubic", 2)}
"""Modes that have a name of their own for so many spatial axes."""


def interpolate(
    x: Tensor,
    /,
    size: PerAxis | None = None,
    scale_factor: float | tuple[float, ...] | None = None,
    mode: Mode = "nearest",
    align_corners: bool = False,
    recompute_scale_factor: bool = False,
) -> Tensor:
    """Bring images, signals or volumes to another size.

    Parameters
    ----------
    x : Tensor, shape (N, C, ...)
        Of floats; the spatial axes are those behind the channels.
    size : int or tuple of int
        Lengths of the spatial axes of the result. Either it or `scale_factor` is given.
    scale_factor : float or tuple of float
        How many times as long they are, rounded down.
    mode : str
        ``"nearest"`` and ``"nearest-exact"`` take one element: that at ``floor(i * L / n)``, or the
        nearest one. ``"linear"`` (of images also ``"bilinear"``, of volumes ``"trilinear"``),
        ``"cubic"`` (of images also ``"bicubic"``; with a = -0.75) and ``"lanczos3"`` weigh 2, 4 and
        6 along each axis. None of them smooths what it makes smaller.
    align_corners : bool
        Whether the middles of the first and the last elements of both meet, or their edges.
    recompute_scale_factor : bool
        Whether the distance of the places is ``L / n``, or the inverse of a `scale_factor` that
        does not give whole lengths.

    Returns
    -------
    Tensor, shape (N, C, ...)

    Raises
    ------
    ArgumentError
        If there is no such mode for so many axes, or not one of `size` and `scale_factor`.
    ShapeError
        If a length would be 0.

    Examples
    --------
    >>> import burn
    >>> from burn.nn import functional as F
    >>> x = burn.asarray([[[1.0, 3.0]]], device="cpu")
    >>> F.interpolate(x, 4, mode="linear").tolist()
    [[[1.0, 1.5, 2.5, 3.0]]]
    """
    rank = rank_of(x, "interpolate")
    if rank < 3:
        raise ShapeError(
            f"a tensor of shape {x.shape} has no spatial axes",
            hint="It is (N, C, ...), with one spatial axis or more",
            operation="interpolate",
        )
    lengths = tuple(x.shape)[2:]
    wanted, scale = _lengths(lengths, size, scale_factor)
    if recompute_scale_factor or align_corners:
        scale = None
    return _interpolate(
        x,
        output_size=wanted,
        mode=_mode(mode, len(lengths)),
        align_corners=bool(align_corners),
        scale=scale,
    )


def _lengths(
    lengths: tuple[int, ...], size: Any, scale_factor: Any
) -> tuple[tuple[int, ...], tuple[float, ...] | None]:
    """Lengths of the result, and the scales that were given."""
    if (size is None) == (scale_factor is None):
        raise ArgumentError(
            f"size is {size!r} and scale_factor is {scale_factor!r}",
            hint="Give one of them",
            operation="interpolate",
        )
    count = len(lengths)
    if size is not None:
        return per_axis(size, count, "size", "interpolate"), None
    scales = scale_factor if isinstance(scale_factor, (tuple, list)) else (scale_factor,) * count
    if len(scales) != count:
        raise ArgumentError(
            f"scale_factor is {scale_factor!r}",
            hint=f"Give a number, or {count}: one for each spatial axis",
            operation="interpolate",
        )
    numbers = tuple(
        [
            real_number(one, "scale_factor", "interpolate", above=0.0, below=math.inf)
            for one in scales
        ]
    )
    wanted = [math.floor(length * one) for length, one in zip(lengths, numbers, strict=True)]
    return tuple(wanted), numbers


def _mode(mode: str, count: int) -> str:
    """Name of the mode whatever the number of axes."""
    name, axes = _NAMES.get(mode, (mode, count))
    if axes != count:
        raise ArgumentError(
            f"mode is {mode!r} for {count} spatial axes",
            hint=f"{mode!r} is for {axes}; use {name!r}",
            operation="interpolate",
        )
    return name


def grid_sample_2d(
    x: Tensor,
    grid: Tensor,
    /,
    mode: Literal["bilinear", "nearest", "bicubic"] = "bilinear",
    padding_mode: Literal["zeros", "border", "reflection"] = "zeros",
    align_corners: bool = False,
) -> Tensor:
    """Values of images at any places.

    Parameters
    ----------
    x : Tensor, shape (N, C, H, W)
        Images, of floats.
    grid : Tensor, shape (N, rows, columns, 2)
        Places: the coordinates across and down, which go from -1 to 1 over an image.
    mode : {"bilinear", "nearest", "bicubic"}
        How a value is made of the elements beside its place: of 4, 1 or 16.
    padding_mode : {"zeros", "border", "reflection"}
        What lies beyond an image: zeros, the nearest element of its border, or its mirror image.
    align_corners : bool
        Whether -1 and 1 are the middles of the outermost elements, or their outer edges.

    Returns
    -------
    Tensor, shape (N, C, rows, columns)
        NaN where a coordinate is NaN. There are gradients for the images and the places.

    Examples
    --------
    >>> import burn
    >>> from burn.nn import functional as F
    >>> x = burn.asarray([[[[1.0, 3.0]]]], device="cpu")
    >>> grid = burn.asarray([[[[0.0, 0.0], [0.5, 0.0]]]], device="cpu")
    >>> F.grid_sample_2d(x, grid).tolist()
    [[[[2.0, 3.0]]]]
    """
    sampled: Tensor = dispatch.execute(
        "grid_sample_2d",
        x,
        grid,
        mode=mode,
        padding_mode=padding_mode,
        align_corners=bool(align_corners),
    )
    return sampled


def affine_grid_2d(
    theta: Tensor, size: tuple[int, int, int, int], /, align_corners: bool = False
) -> Tensor:
    """Places for `grid_sample_2d` to which affine maps lead.

    Parameters
    ----------
    theta : Tensor, shape (N, 2, 3)
        Maps of the coordinates (x, y, 1) of each element of the result of the sampling.
    size : tuple of int
        Shape (N, C, H, W) of that result.
    align_corners : bool
        As in `grid_sample_2d`.

    Returns
    -------
    Tensor, shape (N, H, W, 2)

    Examples
    --------
    >>> import burn
    >>> from burn.nn import functional as F
    >>> mirrored = burn.asarray([[[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]], device="cpu")
    >>> F.affine_grid_2d(mirrored, (1, 1, 1, 2)).tolist()
    [[[[0.5, 0.0], [-0.5, 0.0]]]]
    """
    rank_of(theta, "affine_grid_2d")
    lengths = per_axis(size, 4, "size", "affine_grid_2d")
    if theta.shape[:1] != lengths[:1]:
        raise ShapeError(
            f"maps of shape {theta.shape} for a size of {lengths}",
            hint="Both start with the number of images",
            operation="affine_grid_2d",
        )
    return _affine_grid_2d(theta, output_size=lengths[2:], align_corners=bool(align_corners))
