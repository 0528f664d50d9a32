"""Dense layers: affine maps, tables of vectors, attention."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from burn.functions.common import dispatch
from burn.functions.normalize import rank_of
from burn.ops.arguments import real_number

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["attention", "embedding", "linear"]


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, /) -> Tensor:
    """``x @ weight + bias``, over the last axis of `x`.

    Parameters
    ----------
    x : Tensor, shape (..., in)
        Float tensor.
    weight : Tensor, shape (in, out)
        The layout of burn, and of a product with `x` as it is written; PyTorch's weight is the
        transpose.
    bias : Tensor, shape (out,), optional
        What is added.

    Returns
    -------
    Tensor, shape (..., out)

    Raises
    ------
    ShapeError
        If the shapes do not belong together.

    Examples
    --------
    >>> import burn
    >>> from burn.nn import functional as F
    >>> weight = burn.asarray([[1.0, 0.0, 2.0], [0.0, 1.0, 2.0]], device="cpu")
    >>> F.linear(burn.asarray([3.0, 4.0], device="cpu"), weight).tolist()
    [3.0, 4.0, 14.0]
    """
    return dispatch.execute("linear", x, weight, bias)  # type: ignore[no-any-return]  # one output


def embedding(weight: Tensor, indices: Tensor, /) -> Tensor:
    """One row of a table for each index.

    Parameters
    ----------
    weight : Tensor, shape (count, length)
        The table.
    indices : Tensor
        Integers in [0, count), of any shape: a negative one names no row.

    Returns
    -------
    Tensor
        Shape (*indices.shape, length).

    Raises
    ------
    OutOfRangeError
        If there is no such row; on an asynchronous device at the next read.

    Examples
    --------
    >>> import burn
    >>> from burn.nn import functional as F
    >>> weight = burn.asarray([[0.0, 1.0], [2.0, 3.0]], device="cpu")
    >>> F.embedding(weight, burn.asarray([1, 1], device="cpu")).tolist()
    [[2.0, 3.0], [2.0, 3.0]]
    """
    return dispatch.execute("embedding", weight, indices)  # type: ignore[no-any-return]  # one output


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
        What is looked for; the axes before the last two are those of a batch and of heads, and
        broadcast.
    key : Tensor, shape (..., S, D)
        What it is compared with.
    value : Tensor, shape (..., S, V)
        What is found.
    mask : Tensor of bool, optional
        True excludes a key from a query (in PyTorch it is false that does). It broadcasts with the
        scores, which have the shape (..., T, S).
    bias : Tensor, optional
        What is added to the scores; it broadcasts with them.
    scale : float, optional
        Factor of the scores, ``1 / sqrt(D)`` by default.
    softcap : float, optional
        A positive c: scores s become ``c * tanh(s / c)``, before mask and bias.
    is_causal : bool
        Whether a query sees no keys beyond its own place. The last query stands at the last key,
        so that with more keys than queries the first ones see some keys too (PyTorch aligns the
        first ones).

    Returns
    -------
    Tensor, shape (..., T, V)
        A query whose keys are all excluded gives 0.

    Raises
    ------
    ShapeError
        If the shapes do not belong together.

    Notes
    -----
    Vaswani et al., 2017, arXiv:1706.03762. Nothing of the size of the scores is kept for the
    gradient.

    Examples
    --------
    >>> import burn
    >>> from burn.nn import functional as F
    >>> x = burn.asarray([[1.0], [3.0]], device="cpu")
    >>> F.attention(burn.zeros((2, 1), device="cpu"), x, x, is_causal=True).tolist()
    [[1.0], [2.0]]
    """
    if scale is None:
        width = query.shape[-1] if rank_of(query, "attention") else 1
        factor = max(width, 1) ** -0.5
    else:
        factor = real_number(scale, "scale", "attention", above=-math.inf, below=math.inf)
    cap = None
    if softcap is not None:
        cap = real_number(softcap, "softcap", "attention", above=0.0, below=math.inf)
    return dispatch.execute(  # type: ignore[no-any-return]  # one output
        "attention",
        query,
        key,
        value,
        mask,
        bias,
        scale=factor,
        softcap=cap,
        is_causal=bool(is_causal),
    )
