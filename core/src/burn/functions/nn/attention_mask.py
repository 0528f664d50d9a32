"""Masks of attention."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.errors import ShapeError
from burn.functions.creation import arange
from burn.functions.elementwise import greater, less, logical_or
from burn.functions.manipulation import expand_dims
from burn.functions.normalize import as_shape, find_device
from burn.ops.arguments import as_integer
from burn.public_calls import shown_value

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn.functions.common import DeviceLike
    from burn.tensor.tensor import Tensor

__all__ = ["sliding_window_mask"]


def sliding_window_mask(
    shape: Shape, /, before: int, after: int = 0, *, device: DeviceLike | None = None
) -> Tensor:
    """Mask of the keys that are too far from a query: True excludes a key.

    Parameters
    ----------
    shape : tuple of int
        Numbers (T, S) of queries and keys. The last query stands at the last key.
    before, after : int
        A query sees its own key, so many before it, and so many after it.
    device : Device or str, optional
        Device of the result; the default device if left out.

    Returns
    -------
    Tensor, shape (T, S)
        Booleans, as `attention` and `burn.nn.MultiHeadAttention` take them.

    Raises
    ------
    ShapeError
        If the shape has not two lengths.
    ArgumentError
        If a number of keys is negative.

    Notes
    -----
    I. Beltagy et al., "Longformer: the long-document transformer" (2020, arXiv:2004.05150).

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> (1 - F.sliding_window_mask((4, 4), 1, device="cpu").astype("int32")).tolist()
    [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]
    """
    operation = "sliding_window_mask"
    lengths = as_shape(shape, operation)
    if len(lengths) != 2 or min(lengths) < 0:
        raise ShapeError(
            f"a mask of shape {shown_value(lengths)}",
            hint="Its lengths are the numbers of queries and keys",
            operation=operation,
        )
    queries, keys = lengths
    # Clipped, since kernels count in 32 bits.
    first = min(as_integer(before, "before", operation, least=0), queries + keys)
    last = min(as_integer(after, "after", operation, least=0), queries + keys)
    target = find_device(device, operation)
    own = expand_dims(arange(queries, device=target) + (keys - queries), axis=1)
    distance = arange(keys, device=target) - own
    return logical_or(less(distance, -first), greater(distance, last))
