"""Images resized, and sampled at arbitrary points."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from burn.docstrings import documented_as
from burn.errors import ArgumentError, ShapeError
from burn.functions import calls
from burn.functions.nn._antialiasing import interpolate_smoothed
from burn.functions.nn._spatial_arguments import PerAxis, per_axis
from burn.functions.normalize import as_flag, check_tensor, rank_of
from burn.functions.spatial_words import VOLUMES
from burn.ops.arguments import real_number
from burn.public_calls import shown_value

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["affine_grid_2d", "affine_grid_3d", "grid_sample_2d", "grid_sample_3d", "interpolate"]

Mode: TypeAlias = Literal[
    "nearest", "nearest-exact", "linear", "bilinear", "trilinear", "cubic", "bicubic", "lanczos3"
]


_ALIASES: Final = {"bilinear": ("linear", 2), "trilinear": ("linear", 3), "bicubic": ("cubic", 2)}
"""Names of modes that say the number of spatial axes: the mode, and that number."""


def interpolate(
    x: Tensor,
    /,
    size: PerAxis | None = None,
    scale_factor: float | tuple[float, ...] | None = None,
    mode: Mode = "nearest",
    align_corners: bool = False,
    recompute_scale_factor: bool = False,
    antialias: bool = False,
) -> Tensor:
    """Resize signals, images or volumes by interpolation.

    Parameters
    ----------
    x : Tensor, shape (N, C, ...)
        Float tensor; the axes after the channels are spatial.
    size : int or tuple of int, optional
        Lengths of the spatial axes of the result. Either it or `scale_factor` is given.
    scale_factor : float or tuple of float, optional
        Ratio of the new lengths to the old ones; the new ones are rounded down.
    mode : str
        ``"nearest"`` takes the element at ``floor(i * L / n)``, ``"nearest-exact"`` the nearest
        one. ``"linear"`` (of images also ``"bilinear"``, of volumes ``"trilinear"``), ``"cubic"``
        (of images also ``"bicubic"``; with a = -0.75) and ``"lanczos3"`` weight 2, 4 and 6
        elements along each axis.
    align_corners : bool
        Whether the centres of the first and the last elements coincide with those of the result;
        otherwise their outer edges do.
    recompute_scale_factor : bool
        Whether sampling points are ``L / n`` apart even if a `scale_factor` gives no whole lengths;
        otherwise ``1 / scale_factor``.
    antialias : bool
        Whether an axis that becomes shorter is smoothed: each result weights all elements that it
        covers, as in Pillow's ``Image.resize``; ``"cubic"`` has a = -0.5 then. Not in the modes
        ``"nearest"`` and ``"nearest-exact"``.

    Returns
    -------
    Tensor, shape (N, C, ...)
        With spatial axes of the new lengths.

    Raises
    ------
    ArgumentError
        If there is no such mode for this number of axes, or not one of `size` and `scale_factor`.
    ShapeError
        If `x` has no spatial axes, or a length would be 0.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
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
    output_size, scale = _output_size(lengths, size, scale_factor)
    align_corners = as_flag(align_corners, "align_corners", "interpolate")
    if as_flag(recompute_scale_factor, "recompute_scale_factor", "interpolate") or align_corners:
        scale = None
    name = _canonical_mode(mode, len(lengths))
    if as_flag(antialias, "antialias", "interpolate"):
        return interpolate_smoothed(x, output_size, name, align_corners, scale)
    return calls.interpolate(
        x, output_size=output_size, mode=name, align_corners=align_corners, scale=scale
    )


def _output_size(
    lengths: tuple[int, ...], size: Any, scale_factor: Any
) -> tuple[tuple[int, ...], tuple[float, ...] | None]:
    """Lengths of the spatial axes of the result, and the scale of each axis if it was given."""
    if (size is None) == (scale_factor is None):
        raise ArgumentError(
            f"size is {shown_value(size)} and scale_factor is {shown_value(scale_factor)}",
            hint="Give one of them",
            operation="interpolate",
        )
    count = len(lengths)
    if size is not None:
        return per_axis(size, count, "size", "interpolate"), None
    scales = scale_factor if isinstance(scale_factor, (tuple, list)) else (scale_factor,) * count
    if len(scales) != count:
        raise ArgumentError(
            f"scale_factor is {shown_value(scale_factor)}",
            hint=f"Give a number, or {count}: one for each spatial axis",
            operation="interpolate",
        )
    numbers = tuple(
        [
            real_number(scale, "scale_factor", "interpolate", above=0.0, below=math.inf)
            for scale in scales
        ]
    )
    return _scaled(lengths, numbers), numbers


def _scaled(lengths: tuple[int, ...], scales: tuple[float, ...]) -> tuple[int, ...]:
    try:
        pairs = zip(lengths, scales, strict=True)
        return tuple([math.floor(length * scale) for length, scale in pairs])
    except OverflowError:
        raise ArgumentError(
            f"scale_factor is {scales}", hint="It is too large", operation="interpolate"
        ) from None


def _canonical_mode(mode: str, axis_count: int) -> str:
    """The name of a mode that does not depend on the number of spatial axes."""
    if not isinstance(mode, str):
        raise ArgumentError(
            f"mode is {shown_value(mode)}",
            hint="It is a name, such as 'nearest'",
            operation="interpolate",
        )
    name, expected = _ALIASES.get(mode, (mode, axis_count))
    if expected != axis_count:
        raise ArgumentError(
            f"mode is {mode!r} for {axis_count} spatial axes",
            hint=f"{mode!r} is for {expected}; use {name!r}",
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
    """Values of images at arbitrary points.

    Parameters
    ----------
    x : Tensor, shape (N, C, H, W)
        Images, float.
    grid : Tensor, shape (N, rows, columns, 2)
        Points as (x, y), each coordinate from -1 to 1 across an image.
    mode : {"bilinear", "nearest", "bicubic"}
        Interpolation of the 4, 1 or 16 elements around a point.
    padding_mode : {"zeros", "border", "reflection"}
        Values outside an image: zeros, the nearest element of its border, or its mirror image.
    align_corners : bool
        Whether -1 and 1 are the centres of the outermost elements; otherwise their outer edges.

    Returns
    -------
    Tensor, shape (N, C, rows, columns)
        NaN where a coordinate is NaN. There are gradients for the images and the points.

    Raises
    ------
    ShapeError
        If the shapes do not fit each other.
    ArgumentError
        If there is no such mode or padding mode.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.asarray([[[[1.0, 3.0]]]], device="cpu")
    >>> grid = burn.asarray([[[[0.0, 0.0], [0.5, 0.0]]]], device="cpu")
    >>> F.grid_sample_2d(x, grid).tolist()
    [[[[2.0, 3.0]]]]
    """
    return calls.grid_sample_2d(
        x,
        grid,
        mode=mode,
        padding_mode=padding_mode,
        align_corners=as_flag(align_corners, "align_corners", "grid_sample_2d"),
    )


def affine_grid_2d(
    theta: Tensor, size: tuple[int, int, int, int], /, align_corners: bool = False
) -> Tensor:
    """Points for `grid_sample_2d`, by affine maps (Jaderberg et al., 2015, arXiv:1506.02025).

    Parameters
    ----------
    theta : Tensor, shape (N, 2, 3)
        Matrices that map the coordinates (x, y, 1) of each element of the sampled result.
    size : tuple of int
        Shape (N, C, H, W) of that result.
    align_corners : bool
        As in `grid_sample_2d`.

    Returns
    -------
    Tensor, shape (N, H, W, 2)

    Raises
    ------
    ShapeError
        If the shape of `theta` does not fit `size`.
    ArgumentError
        If `size` has not four values.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> mirror = burn.asarray([[[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]], device="cpu")
    >>> F.affine_grid_2d(mirror, (1, 1, 1, 2)).tolist()
    [[[[0.5, 0.0], [-0.5, 0.0]]]]
    """
    shape = _grid_size(theta, size, 4, "affine_grid_2d")
    return calls.affine_grid_2d(
        theta,
        output_size=shape,
        align_corners=as_flag(align_corners, "align_corners", "affine_grid_2d"),
    )


@documented_as(grid_sample_2d, VOLUMES)
def grid_sample_3d(
    x: Tensor,
    grid: Tensor,
    /,
    mode: Literal["bilinear", "nearest"] = "bilinear",
    padding_mode: Literal["zeros", "border", "reflection"] = "zeros",
    align_corners: bool = False,
) -> Tensor:
    """Values of volumes at arbitrary points.

    The other parameters are those of `grid_sample_2d`, with `x` of shape (N, C, D, H, W).

    Parameters
    ----------
    grid : Tensor, shape (N, planes, rows, columns, 3)
        Points as (x, y, z), each coordinate from -1 to 1 across a volume: x along its last axis,
        z along its first one.
    mode : {"bilinear", "nearest"}
        Interpolation of the 8 elements around a point, linear along each axis; or the nearest one.
    padding_mode : {"zeros", "border", "reflection"}
        Values outside a volume: zeros, the nearest element of its border, or its mirror image.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.asarray([1.0, 3.0], device="cpu").reshape((1, 1, 1, 1, 2))
    >>> grid = burn.asarray([0.0, 0.0, 0.0, 0.5, 0.0, 0.0], device="cpu")
    >>> F.grid_sample_3d(x, grid.reshape((1, 1, 1, 2, 3))).flatten().tolist()
    [2.0, 3.0]
    """
    return calls.grid_sample_3d(
        x,
        grid,
        mode=mode,
        padding_mode=padding_mode,
        align_corners=as_flag(align_corners, "align_corners", "grid_sample_3d"),
    )


@documented_as(affine_grid_2d, VOLUMES)
def affine_grid_3d(
    theta: Tensor, size: tuple[int, int, int, int, int], /, align_corners: bool = False
) -> Tensor:
    """Points for `grid_sample_3d`, by affine maps.

    The other parameters are those of `affine_grid_2d`.

    Parameters
    ----------
    theta : Tensor, shape (N, 3, 4)
        Matrices that map the coordinates (x, y, z, 1) of each element of the sampled result.

    Returns
    -------
    Tensor, shape (N, D, H, W, 3)

    Raises
    ------
    ArgumentError
        If `size` has not five values.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> mirror = burn.asarray([[-1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]], device="cpu")
    >>> F.affine_grid_3d(mirror[None], (1, 1, 1, 1, 2)).flatten().tolist()
    [0.5, 0.0, 0.0, -0.5, 0.0, 0.0]
    """
    shape = _grid_size(theta, size, 5, "affine_grid_3d")
    return calls.affine_grid_3d(
        theta,
        output_size=shape,
        align_corners=as_flag(align_corners, "align_corners", "affine_grid_3d"),
    )


def _grid_size(theta: Tensor, size: tuple[int, ...], count: int, operation: str) -> tuple[int, ...]:
    """The spatial part of the shape of a sampled result."""
    check_tensor(theta, "theta", operation)
    shape = per_axis(size, count, "size", operation)
    if theta.shape[:1] != shape[:1]:
        raise ShapeError(
            f"maps of shape {theta.shape} for a size of {shape}",
            hint="Both start with the number of images",
            operation=operation,
        )
    return shape[2:]
