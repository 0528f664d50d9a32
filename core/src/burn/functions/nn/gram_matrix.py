"""Gram matrices of features, and how much those of two images differ: their style.

L. A. Gatys et al., "A neural algorithm of artistic style" (2015, arXiv:1508.06576).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from burn.errors import OperandTypeError, ShapeError
from burn.functions.linalg.linear_algebra import matmul, matrix_transpose
from burn.functions.manipulation import reshape
from burn.functions.nn.loss import Reduction, mse_loss
from burn.functions.normalize import as_float, rank_of
from burn.ops.shapes import size

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["gram_matrix", "gram_matrix_loss"]


def gram_matrix(x: Tensor, /) -> Tensor:
    """Means of the products of each channel with each: ``x @ x.T / (C * H * W)``.

    Parameters
    ----------
    x : Tensor, shape (N, C, ...)
        Features of images, with any number of spatial axes.

    Returns
    -------
    Tensor, shape (N, C, C)
        Symmetric matrices.

    Raises
    ------
    ShapeError
        If `x` has fewer than two axes.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> F.gram_matrix(burn.asarray([[[1.0, 3.0], [0.0, 2.0]]], device="cpu")).tolist()
    [[[2.5, 1.5], [1.5, 1.0]]]
    """
    if rank_of(x, "gram_matrix") < 2:
        raise ShapeError(
            f"features of shape {x.shape}", hint="They are (N, C, ...)", operation="gram_matrix"
        )
    x = as_float(x, "gram_matrix")
    count, channels, *lengths = x.shape
    elements = size(lengths)
    # Divided before the product, which may leave the range of float16.
    rows = reshape(x, (count, channels, elements)) * (max(channels * elements, 1) ** -0.5)
    return matmul(rows, matrix_transpose(rows))


def gram_matrix_loss(
    features: Tensor | Sequence[Tensor],
    targets: Tensor | Sequence[Tensor],
    /,
    *,
    reduction: Reduction = "mean",
) -> Tensor:
    """Mean squared differences of the Gram matrices of two images, added up over layers.

    Parameters
    ----------
    features, targets : Tensor, shape (N, C, ...), or sequence of Tensor
        Features of the image and of the one whose style it is to have: what one layer of a
        network of your choice computes, or several.
    reduction : {"mean", "sum", "none"}
        Whether the losses are averaged, added up or returned as they are.

    Returns
    -------
    Tensor
        0-d; of shape (N, C, C) without a reduction, where all layers have as many channels.

    Raises
    ------
    ShapeError
        If the shapes of two Gram matrices differ.
    OperandTypeError
        If there are no features, or not as many targets.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.ones((1, 2, 2), device="cpu")
    >>> F.gram_matrix_loss([x, x], [x, 0 * x]).item()
    0.25
    """
    first, second = _layers(features), _layers(targets)
    if not first or len(first) != len(second):
        raise OperandTypeError(
            f"features of {len(first)} layers, and targets of {len(second)}",
            hint="Give features of the same layers, of one at least",
            operation="gram_matrix_loss",
        )
    losses = [
        mse_loss(gram_matrix(tensor), gram_matrix(other), reduction=reduction)
        for tensor, other in zip(first, second, strict=True)
    ]
    total = losses[0]
    for loss in losses[1:]:
        total = total + loss
    return total


def _layers(features: Any) -> list[Tensor]:
    return list(features) if isinstance(features, (list, tuple)) else [features]
