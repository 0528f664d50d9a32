"""Rotary position encoding (Su et al., 2021, arXiv:2104.09864)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.errors import ShapeError
from burn.functions.manipulation import concat, reshape, stack
from burn.functions.normalize import as_flag, rank_of

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["rotary_embedding"]


def rotary_embedding(
    x: Tensor, cosine: Tensor, sine: Tensor, /, *, interleaved: bool = False
) -> Tensor:
    """Pairs of features rotated by angles that depend on the position.

    Parameters
    ----------
    x : Tensor, shape (..., D)
        Queries or keys.
    cosine, sine : Tensor, shape (..., R)
        Of the angles, one for each pair of features; they broadcast with `x` but for the last axis.
        Features from ``2 * R`` on stay as they are.
    interleaved : bool
        Which features are a pair: ``2 * i`` and ``2 * i + 1``, as in the paper and GPT-J; without
        it ``i`` and ``i + R``, as in GPT-NeoX and Llama.

    Returns
    -------
    Tensor, shape (..., D)

    Raises
    ------
    ShapeError
        If there are more pairs than features for them.

    See Also
    --------
    burn.nn.RotaryEncoding : Computes the angles of positions.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.asarray([1.0, 2.0, 3.0, 4.0], device="cpu")
    >>> cosine, sine = burn.zeros(2, device="cpu"), burn.ones(2, device="cpu")  # of 90 degrees
    >>> F.rotary_embedding(x, cosine, sine).tolist()
    [-3.0, -4.0, 1.0, 2.0]
    >>> F.rotary_embedding(x, cosine, sine, interleaved=True).tolist()
    [-2.0, 1.0, -4.0, 3.0]
    """
    operation = "rotary_embedding"
    if not min(rank_of(x, operation), rank_of(cosine, operation, "cosine")):
        raise ShapeError("x and cosine have one axis or more", operation=operation)
    pairs = cosine.shape[-1]
    if 2 * pairs > x.shape[-1]:
        raise ShapeError(
            f"{pairs} angles for {x.shape[-1]} features",
            hint="There is an angle for each pair of features",
            operation=operation,
        )
    is_partial = 2 * pairs < x.shape[-1]
    rotated = x[..., : 2 * pairs] if is_partial else x
    if as_flag(interleaved, "interleaved", operation):
        first, second = rotated[..., ::2], rotated[..., 1::2]
    else:
        first, second = rotated[..., :pairs], rotated[..., pairs:]
    parts = [first * cosine - second * sine, second * cosine + first * sine]
    if interleaved:
        whole = stack(parts, axis=-1)
        parts = [reshape(whole, (*whole.shape[:-2], 2 * pairs))]
    if is_partial:
        parts.append(x[..., 2 * pairs :])
    return concat(parts, axis=-1) if len(parts) > 1 else parts[0]
