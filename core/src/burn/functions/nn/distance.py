"""Distances between vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.functions.linalg.norms import vector_norm
from burn.functions.normalize import as_float
from burn.ops.arguments import real_number

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["pairwise_distance"]


def pairwise_distance(
    x1: Tensor,
    x2: Tensor,
    /,
    p: float = 2.0,
    *,
    axis: int = -1,
    eps: float = 1e-6,
    keepdims: bool = False,
) -> Tensor:
    """``(sum(abs(x1 - x2 + eps) ** p)) ** (1 / p)``: a distance for each pair of vectors.

    `burn.linalg.cosine_similarity` and `burn.linalg.vector_normalize` are its like.

    Parameters
    ----------
    x1, x2 : Tensor
        Tensors that broadcast; integers give the default float dtype.
    p : float
        The norm of the difference, as in `burn.linalg.vector_norm`.
    axis : int
        The axis of the vectors (the last by default).
    eps : float
        Added to each difference, so that the gradient of equal vectors is finite.
    keepdims : bool
        Whether the axis is kept with length 1.

    Returns
    -------
    Tensor
        In the broadcast shape, without the axis.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x, y = burn.asarray([[0.0, 1.0]], device="cpu"), burn.asarray([[3.0, 5.0]], device="cpu")
    >>> burn.round(F.pairwise_distance(x, y)).tolist()
    [5.0]
    """
    operation = "pairwise_distance"
    offset = real_number(eps, "eps", operation)
    difference = as_float(x1, operation, "x1") - as_float(x2, operation, "x2") + offset
    return vector_norm(difference, axis=axis, ord=p, keepdims=keepdims)
