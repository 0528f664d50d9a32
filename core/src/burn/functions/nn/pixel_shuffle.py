"""Channels of images that become pixels, and pixels that become channels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.errors import ShapeError
from burn.functions.manipulation import permute_dims, reshape
from burn.functions.normalize import rank_of
from burn.functions.views import independent
from burn.ops.arguments import as_integer

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["pixel_shuffle", "pixel_unshuffle"]


def pixel_shuffle(x: Tensor, /, upscale_factor: int) -> Tensor:
    """Images with more pixels, and fewer channels.

    Parameters
    ----------
    x : Tensor, shape (..., C * r * r, H, W)
        Images of any dtype, for a factor r.
    upscale_factor : int
        The factor of height and width, at least 1.

    Returns
    -------
    Tensor, shape (..., C, H * r, W * r)
        Channel ``(c * r + i) * r + j`` holds the pixels of channel c in the rows and columns i and
        j of each r.

    Raises
    ------
    ShapeError
        If `x` has fewer than three axes, or the channels are no multiple of r * r.
    ArgumentError
        If the factor is less than 1.

    Notes
    -----
    Shi et al., 2016, arXiv:1609.05158.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> F.pixel_shuffle(burn.reshape(burn.arange(4, device="cpu"), (4, 1, 1)), 2).tolist()
    [[[0, 1], [2, 3]]]
    """
    factor = as_integer(upscale_factor, "upscale_factor", "pixel_shuffle", least=1)
    rank = _image_rank(x, "pixel_shuffle")
    *batch, channels, height, width = x.shape
    if channels % factor**2:
        raise ShapeError(
            f"x of shape {x.shape} has {channels} channels, no multiple of {factor**2}",
            hint="The channels are divided by the square of the factor",
            operation="pixel_shuffle",
        )
    parts = reshape(x, (*batch, channels // factor**2, factor, factor, height, width))
    lead = rank - 2
    # (C, r, r, H, W) becomes (C, H, r, W, r).
    axes = (*range(lead), lead + 2, lead, lead + 3, lead + 1)
    shape = (*batch, channels // factor**2, height * factor, width * factor)
    return independent(reshape(permute_dims(parts, axes), shape))


def pixel_unshuffle(x: Tensor, /, downscale_factor: int) -> Tensor:
    """The inverse of `pixel_shuffle`: images with fewer pixels, and more channels.

    Parameters
    ----------
    x : Tensor, shape (..., C, H * r, W * r)
        Images of any dtype, for a factor r.
    downscale_factor : int
        The divisor of height and width, at least 1.

    Returns
    -------
    Tensor, shape (..., C * r * r, H, W)
        Channel ``(c * r + i) * r + j`` holds the pixels of channel c in the rows and columns i and
        j of each r.

    Raises
    ------
    ShapeError
        If `x` has fewer than three axes, or height or width is no multiple of r.
    ArgumentError
        If the factor is less than 1.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> F.pixel_unshuffle(burn.asarray([[[0, 1], [2, 3]]], device="cpu"), 2).tolist()
    [[[0]], [[1]], [[2]], [[3]]]
    """
    factor = as_integer(downscale_factor, "downscale_factor", "pixel_unshuffle", least=1)
    rank = _image_rank(x, "pixel_unshuffle")
    *batch, channels, height, width = x.shape
    if height % factor or width % factor:
        raise ShapeError(
            f"x of shape {x.shape} has {height} rows and {width} columns",
            hint=f"Both must be a multiple of the factor, {factor}",
            operation="pixel_unshuffle",
        )
    height, width = height // factor, width // factor
    parts = reshape(x, (*batch, channels, height, factor, width, factor))
    lead = rank - 2
    # (C, H, r, W, r) becomes (C, r, r, H, W).
    axes = (*range(lead), lead + 1, lead + 3, lead, lead + 2)
    shape = (*batch, channels * factor**2, height, width)
    return independent(reshape(permute_dims(parts, axes), shape))


def _image_rank(x: Tensor, operation: str) -> int:
    rank = rank_of(x, operation)
    if rank < 3:
        raise ShapeError(
            f"x has shape {x.shape}",
            hint="Images have the shape (..., C, H, W)",
            operation=operation,
        )
    return rank
