"""Matrices mirrored, and turned by right angles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.errors import AxisError
from burn.functions.manipulation import flip, permute_dims
from burn.functions.normalize import normalize_axes, rank_of
from burn.functions.views import independent
from burn.ops.arguments import as_integer
from burn.public_calls import shown_value

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["fliplr", "flipud", "rot90"]


def flipud(x: Tensor, /) -> Tensor:
    """The elements in reverse order along the first axis; no view, unlike that of `flip`.

    Parameters
    ----------
    x : Tensor
        A tensor of one axis or more.

    Returns
    -------
    Tensor
        The elements of `x` in the new order.

    Raises
    ------
    AxisError
        If `x` has no axis.

    Examples
    --------
    >>> import burn
    >>> burn.flipud(burn.asarray([[1, 2], [3, 4]], device="cpu")).tolist()
    [[3, 4], [1, 2]]
    """
    return independent(flip(x, axis=0))


def fliplr(x: Tensor, /) -> Tensor:
    """The elements in reverse order along the second axis; no view, unlike that of `flip`.

    Parameters
    ----------
    x : Tensor
        A tensor of two axes or more.

    Returns
    -------
    Tensor
        The elements of `x` in the new order.

    Raises
    ------
    AxisError
        If `x` has fewer than two axes.

    Examples
    --------
    >>> import burn
    >>> burn.fliplr(burn.asarray([[1, 2], [3, 4]], device="cpu")).tolist()
    [[2, 1], [4, 3]]
    """
    return independent(flip(x, axis=1))


def rot90(x: Tensor, /, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Tensor:
    """The elements turned by right angles in the plane of two axes.

    Parameters
    ----------
    x : Tensor
        A tensor of two axes or more.
    k : int
        Number of turns by 90 degrees; negative ones go the other way.
    axes : tuple of int
        The plane: a turn goes from the first axis towards the second.

    Returns
    -------
    Tensor
        The elements of `x` in the new order; no view.

    Raises
    ------
    AxisError
        If `axes` are not two different axes of `x`.

    Examples
    --------
    >>> import burn
    >>> burn.rot90(burn.asarray([[1, 2], [3, 4]], device="cpu")).tolist()
    [[2, 4], [1, 3]]
    """
    rank = rank_of(x, "rot90")
    plane = normalize_axes(x, axes, "rot90")
    turns = as_integer(k, "k", "rot90") % 4
    if axes is None or len(plane) != 2:
        raise AxisError(
            f"axes are {shown_value(axes)}", hint="Name two axes, such as (0, 1)", operation="rot90"
        )
    first, second = plane
    if turns == 2:
        return independent(flip(x, axis=plane))
    order = list(range(rank))
    order[first], order[second] = second, first
    if turns == 1:
        x = permute_dims(flip(x, axis=second), tuple(order))
    elif turns == 3:
        x = flip(permute_dims(x, tuple(order)), axis=second)
    return independent(x)
