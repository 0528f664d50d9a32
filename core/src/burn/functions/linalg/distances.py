"""Distances between all pairs of two sets of vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from burn.errors import ShapeError
from burn.functions.linalg.norms import vector_norm
from burn.functions.manipulation import broadcast_shapes, concat, expand_dims
from burn.functions.normalize import as_float, rank_of
from burn.functions.quantization import numbers_of
from burn.functions.rearranging import narrow
from burn.ops.arguments import real_number
from burn.ops.shapes import size

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["cdist"]

_BLOCK: Final = 1 << 24
"""Most differences, in elements, that are held at a time: 64 MiB of float32."""


def cdist(x1: Tensor, x2: Tensor, /, p: float = 2.0) -> Tensor:
    """Distances between each vector of one set and each of another.

    Parameters
    ----------
    x1 : Tensor, shape (..., n, d)
        Vectors; integers give the default float dtype. The axes before the last two broadcast.
    x2 : Tensor, shape (..., m, d)
        Vectors.
    p : float
        The norm of the differences, as in `burn.linalg.vector_norm`: 2 is Euclid's, 1 that of city
        blocks, and infinity that of Chebyshev.

    Returns
    -------
    Tensor, shape (..., n, m)
        Element (i, j) is the distance of vector i of `x1` from vector j of `x2`. It is computed
        from their difference, so that those of close vectors are exact too; no more than 2**24
        elements of differences are held at a time, but a gradient keeps all: ``n * m * d``. The
        gradient at equal vectors is 0.

    Raises
    ------
    ShapeError
        If one has fewer than two axes, or the vectors differ in length.
    ArgumentError
        If `p` is negative.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([[0.0, 0.0], [3.0, 4.0]], device="cpu")
    >>> burn.cdist(x, x).tolist()
    [[0.0, 5.0], [5.0, 0.0]]
    """
    ranks = rank_of(x1, "cdist", "x1"), rank_of(x2, "cdist", "x2")
    if min(ranks) < 2 or x1.shape[-1] != x2.shape[-1]:
        raise ShapeError(
            f"vectors of shapes {x1.shape} and {x2.shape}",
            hint="They are (..., n, d) and (..., m, d)",
            operation="cdist",
        )
    order = real_number(p, "p", "cdist", least=0.0)
    rows = expand_dims(numbers_of(as_float(x1, "cdist", "x1")), -2)
    columns = expand_dims(numbers_of(as_float(x2, "cdist", "x2")), -3)
    axis = rows.ndim - 3
    count = rows.shape[axis]
    per_row = size(broadcast_shapes(rows.shape, columns.shape)) // max(count, 1)
    step = max(_BLOCK // max(per_row, 1), 1)
    blocks = [
        vector_norm(
            narrow(rows, start, min(step, count - start), axis=axis) - columns, axis=-1, ord=order
        )
        for start in range(0, max(count, 1), step)
    ]
    return blocks[0] if len(blocks) == 1 else concat(blocks, axis=-2)
