"""Affine maps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burn.nn import functional as F
from burn.nn import init
from burn.nn.module import Module

if TYPE_CHECKING:
    from burn.functions.common import DeviceLike, DTypeLike
    from burn.tensor.tensor import Tensor

__all__ = ["Linear"]


class Linear(Module):
    """``x @ weight.T + bias`` over the last axis.

    Parameters
    ----------
    in_features, out_features : int
        Lengths of the last axis of the input and of the output.
    bias : bool
        Whether there is one.
    dtype : DType, optional
        Of the parameters.
    device : Device or str, optional
        Where they are.

    Attributes
    ----------
    weight : Tensor, shape (out_features, in_features)
        As in PyTorch.
    bias : Tensor, shape (out_features,), or None
        Added to each output.

    Examples
    --------
    >>> import burn
    >>> layer = burn.nn.Linear(4, 2)
    >>> layer
    Linear(4, 2)
    >>> layer(burn.ones((8, 4))).shape
    (8, 2)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        bias: bool = True,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
    ) -> None:
        self.in_features, self.out_features = in_features, out_features
        bound = max(in_features, 1) ** -0.5
        shape = out_features, in_features
        self.weight = init.uniform(shape, -bound, bound, dtype=dtype, device=device)
        self.bias = (
            init.uniform(out_features, -bound, bound, dtype=dtype, device=device) if bias else None
        )

    def forward(self, x: Tensor) -> Tensor:
        """Shape (..., out_features) for an input of shape (..., in_features)."""
        return F.linear(x, self.weight, self.bias, transposed=True)
