"""Matrices of powers, for polynomials."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.errors import ShapeError
from burn.functions.creation import zeros
from burn.functions.cumulative import cumulative_prod
from burn.functions.manipulation import broadcast_to, expand_dims, flip
from burn.functions.normalize import as_flag, rank_of
from burn.functions.quantization import numbers_of
from burn.functions.views import independent
from burn.ops.arguments import as_integer

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["vander"]


def vander(x: Tensor, n: int | None = None, /, *, increasing: bool = False) -> Tensor:
    """Matrices of Vandermonde: the powers of each element in a row.

    Parameters
    ----------
    x : Tensor, shape (..., m)
        Numbers.
    n : int, optional
        Number of powers, from 0 to ``n - 1``; by default m.
    increasing : bool
        Whether the powers ascend from left to right, or else descend, as in NumPy.

    Returns
    -------
    Tensor, shape (..., m, n)
        The powers, in the dtype of `x`.

    Raises
    ------
    ArgumentError
        If `n` is negative.
    ShapeError
        If `x` has no axis.

    Examples
    --------
    >>> import burn
    >>> burn.vander(burn.asarray([2, 3], device="cpu"), 3).tolist()
    [[4, 2, 1], [9, 3, 1]]
    """
    if not rank_of(x, "vander"):
        raise ShapeError("a number has no row of powers for each", operation="vander")
    is_increasing = as_flag(increasing, "increasing", "vander")
    count = x.shape[-1] if n is None else as_integer(n, "n", "vander", least=0)
    x = numbers_of(x)
    if not count:
        return zeros((*x.shape, 0), dtype=x.dtype, device=x.device)
    factors = broadcast_to(expand_dims(x, axis=-1), (*x.shape, count - 1))
    powers = cumulative_prod(factors, axis=-1, dtype=x.dtype, include_initial=True)
    return powers if is_increasing else independent(flip(powers, axis=-1))
