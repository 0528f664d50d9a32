"""Dense layers: affine maps, embeddings, attention."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from burn.functions import calls
from burn.functions.normalize import as_flag, rank_of
from burn.ops.arguments import real_number

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["attention", "embedding", "linear"]


def linear(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, /, *, transposed: bool = False
) -> Tensor:
    """``x @ weight + bias``, over the last axis of `x`.

    Parameters
    ----------
    x : Tensor, shape (..., in)
        Float tensor.
    weight : Tensor, shape (in, out)
        In the layout of the product; with `transposed` of shape (out, in), as in PyTorch.
    bias : Tensor, shape (out,), optional
        Added to each row of the product.
    transposed : bool
        Whether the product is ``x @ weight.T``.

    Returns
    -------
    Tensor, shape (..., out)

    Raises
    ------
    ShapeError
        If the shapes do not fit each other.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> weight = burn.asarray([[1.0, 0.0, 2.0], [0.0, 1.0, 2.0]], device="cpu")
    >>> F.linear(burn.asarray([3.0, 4.0], device="cpu"), weight).tolist()
    [3.0, 4.0, 14.0]
    """
    if transposed.__class__ is not bool:
        transposed = as_flag(transposed, "transposed", "linear")
    return calls.linear(x, weight, bias, transposed=transposed)


def embedding(weight: Tensor, indices: Tensor, /) -> Tensor:
    """The rows of a table at some indices.

    Parameters
    ----------
    weight : Tensor, shape (count, length)
        The table, float.
    indices : Tensor
        Integers in [0, count), of any shape; negative ones are out of range.

    Returns
    -------
    Tensor, shape (*indices.shape, length)

    Raises
    ------
    OutOfRangeError
        If an index is out of range; on an asynchronous device at the next read.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> weight = burn.asarray([[0.0, 1.0], [2.0, 3.0]], device="cpu")
    >>> F.embedding(weight, burn.asarray([1, 1], device="cpu")).tolist()
    [[2.0, 3.0], [2.0, 3.0]]
    """
    return calls.embedding(weight, indices)


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    /,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    scale: float | None = None,
    softcap: float | None = None,
    is_causal: bool = False,
) -> Tensor:
    """Scaled dot-product attention, ``softmax(query @ key.T * scale) @ value``.

    Parameters
    ----------
    query : Tensor, shape (..., T, D)
        Float tensor. The axes before the last two are batches and heads; they broadcast.
    key : Tensor, shape (..., S, D)
        Compared with the queries.
    value : Tensor, shape (..., S, V)
        Averaged by the weights of the keys.
    mask : Tensor of bool, optional
        True excludes a key from a query (in PyTorch false does). It broadcasts with the scores,
        which have the shape (..., T, S).
    bias : Tensor, optional
        Added to the scores, with which it broadcasts.
    scale : float, optional
        Factor of the scores, ``1 / sqrt(D)`` by default.
    softcap : float, optional
        A positive c: scores s become ``c * tanh(s / c)``, before mask and bias.
    is_causal : bool
        Whether query i attends to the keys up to ``i + S - T`` only: the last query attends to all
        keys. With more keys than queries PyTorch aligns the first ones instead.

    Returns
    -------
    Tensor, shape (..., T, V)
        0 for a query whose keys are all excluded.

    Raises
    ------
    ShapeError
        If the shapes do not fit each other.
    ArgumentError
        If `scale` is not finite, or `softcap` not positive and finite.

    Notes
    -----
    Vaswani et al., 2017, arXiv:1706.03762. Nothing of the size of the scores is kept for the
    gradient.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.asarray([[1.0], [3.0]], device="cpu")
    >>> F.attention(burn.zeros((2, 1), device="cpu"), x, x, is_causal=True).tolist()
    [[1.0], [2.0]]
    """
    if scale is None:
        scale = max(query.shape[-1], 1) ** -0.5 if rank_of(query, "attention", "query") else 1.0
    else:
        scale = real_number(scale, "scale", "attention", above=-math.inf, below=math.inf)
    if softcap is not None:
        softcap = real_number(softcap, "softcap", "attention", above=0.0, below=math.inf)
    if is_causal.__class__ is not bool:
        is_causal = as_flag(is_causal, "is_causal", "attention")
    return calls.attention(
        query,
        key,
        value,
        mask,
        bias,
        scale=scale,
        softcap=softcap,
        is_causal=is_causal,
    )
