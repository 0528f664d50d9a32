"""Affine and bilinear maps, tables of vectors, and modules that only change shapes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from burn.errors import ArgumentError, ShapeError
from burn.functions.einsum import einsum
from burn.functions.manipulation import expand_dims, reshape
from burn.functions.normalize import normalize_axis
from burn.functions.searching import where
from burn.nn import functional as F, init
from burn.nn.module import Module
from burn.ops.arguments import as_integer

if TYPE_CHECKING:
    from burn.functions.common import DeviceLike, DTypeLike
    from burn.tensor.tensor import Tensor

__all__ = ["Bilinear", "Embedding", "Flatten", "Identity", "Linear", "Unflatten"]


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
        As in PyTorch; uniform within ``1 / sqrt(in_features)`` at first.
    bias : Tensor, shape (out_features,), or None
        Added to each output; starts like the weight.

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
        self.weight, self.bias = init.weight_and_bias(
            (out_features, in_features), out_features, bias=bias, dtype=dtype, device=device
        )

    def forward(self, x: Tensor) -> Tensor:
        """Shape (..., out_features) for an input of shape (..., in_features)."""
        return F.linear(x, self.weight, self.bias, transposed=True)


class Bilinear(Module):
    """``x1 @ weight[k] @ x2 + bias[k]`` for each output k, over the last axes.

    Parameters
    ----------
    in1_features, in2_features, out_features : int
        Lengths of the last axes of both inputs and of the output.
    bias : bool
        Whether there is one.
    dtype : DType, optional
        Of the parameters.
    device : Device or str, optional
        Where they are.

    Attributes
    ----------
    weight : Tensor, shape (out_features, in1_features, in2_features)
        Uniform within ``1 / sqrt(in1_features)`` at first.
    bias : Tensor, shape (out_features,), or None
        Added to each output; starts like the weight.

    Examples
    --------
    >>> import burn
    >>> layer = burn.nn.Bilinear(3, 4, 2)
    >>> layer(burn.ones((8, 3)), burn.ones((8, 4))).shape
    (8, 2)
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        *,
        bias: bool = True,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
    ) -> None:
        self.in1_features, self.in2_features = in1_features, in2_features
        self.out_features = out_features
        bound = max(as_integer(in1_features, "in1_features", "nn.Bilinear"), 1) ** -0.5
        shape = out_features, in1_features, in2_features
        self.weight = init.uniform(shape, -bound, bound, dtype=dtype, device=device)
        self.bias = (
            init.uniform(out_features, -bound, bound, dtype=dtype, device=device) if bias else None
        )

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Shape (..., out_features) for inputs that differ in the last axis alone."""
        expected = (*x1.shape[:-1], self.in2_features)
        if x1.shape[-1:] != (self.in1_features,) or x2.shape != expected:
            raise ShapeError(
                f"inputs of shapes {x1.shape} and {x2.shape}",
                hint=f"They are (..., {self.in1_features}) and (..., {self.in2_features})",
                operation="nn.Bilinear",
            )
        found = einsum("...i,kij,...j->...k", x1, self.weight, x2)
        return found if self.bias is None else found + self.bias


class Embedding(Module):
    """A table of vectors, of which indices pick some.

    Parameters
    ----------
    num_embeddings : int
        Number of vectors.
    embedding_dim : int
        Length of each.
    padding_idx : int, optional
        Index of a vector that stands for padding: it is zero at first, and has no gradient. A
        negative one counts from the end.
    dtype : DType, optional
        Of the table.
    device : Device or str, optional
        Where it is.

    Attributes
    ----------
    weight : Tensor, shape (num_embeddings, embedding_dim)
        The table, of normal numbers at first.

    Raises
    ------
    ArgumentError
        If there is no vector `padding_idx`.

    Examples
    --------
    >>> import burn
    >>> layer = burn.nn.Embedding(100, 8, padding_idx=0)
    >>> layer(burn.asarray([[3, 99, 0]])).shape
    (1, 3, 8)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        *,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
    ) -> None:
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = padding_idx
        self.weight = init.normal((num_embeddings, embedding_dim), dtype=dtype, device=device)
        if padding_idx is not None:
            as_integer(padding_idx, "padding_idx", "nn.Embedding")
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise ArgumentError(
                    f"padding_idx is {padding_idx} for a table of {num_embeddings} vectors",
                    operation="nn.Embedding",
                )
            self.weight[padding_idx] = 0.0

    def forward(self, indices: Tensor) -> Tensor:
        """Shape (*indices.shape, embedding_dim)."""
        found = F.embedding(self.weight, indices)
        if self.padding_idx is None or not found.is_tracked:
            return found
        is_padding = indices == self.padding_idx % self.num_embeddings
        return where(expand_dims(is_padding, axis=-1), found.detach(), found)


class Identity(Module):
    """Returns its input.

    Examples
    --------
    >>> import burn
    >>> burn.nn.Identity()(burn.ones(2)).shape
    (2,)
    """

    def forward(self, x: Tensor) -> Tensor:
        """The input."""
        return x


class Flatten(Module):
    """Merges neighbouring axes into one.

    Parameters
    ----------
    start_axis, end_axis : int
        The first and the last of them. By default all but the first axis, that of the batch.

    Raises
    ------
    AxisError
        When called, if the input has no such axes.

    Examples
    --------
    >>> import burn
    >>> burn.nn.Flatten()(burn.ones((8, 3, 4))).shape
    (8, 12)
    """

    def __init__(self, start_axis: int = 1, end_axis: int = -1) -> None:
        self.start_axis, self.end_axis = start_axis, end_axis

    def forward(self, x: Tensor) -> Tensor:
        """The elements in the same order."""
        start = normalize_axis(x, self.start_axis, "nn.Flatten")
        end = normalize_axis(x, self.end_axis, "nn.Flatten")
        if start > end:
            raise ShapeError(
                f"axis {start} is not before axis {end} of a tensor of shape {x.shape}",
                hint="start_axis is at most end_axis",
                operation="nn.Flatten",
            )
        merged = math.prod(x.shape[start : end + 1])
        return reshape(x, (*x.shape[:start], merged, *x.shape[end + 1 :]))


class Unflatten(Module):
    """Splits an axis into several.

    Parameters
    ----------
    axis : int
        The axis.
    unflattened_size : tuple of int
        Lengths of the axes that it becomes; one of them may be -1.

    Raises
    ------
    ShapeError
        When called, if the lengths do not fit that of the axis.

    Examples
    --------
    >>> import burn
    >>> burn.nn.Unflatten(1, (3, 4))(burn.ones((8, 12))).shape
    (8, 3, 4)
    """

    def __init__(self, axis: int, unflattened_size: tuple[int, ...]) -> None:
        self.axis, self.unflattened_size = axis, unflattened_size

    def forward(self, x: Tensor) -> Tensor:
        """The elements in the same order."""
        axis = normalize_axis(x, self.axis, "nn.Unflatten")
        sizes = list(self.unflattened_size)
        length, known = x.shape[axis], math.prod([size for size in sizes if size != -1])
        if -1 in sizes and known:
            sizes[sizes.index(-1)] = length // known
        if math.prod(sizes) != length or min(sizes, default=0) < 0:
            raise ShapeError(
                f"axis {axis} of length {length} cannot become axes of lengths "
                f"{self.unflattened_size}",
                hint="The product of the lengths is that of the axis",
                operation="nn.Unflatten",
            )
        return reshape(x, (*x.shape[:axis], *sizes, *x.shape[axis + 1 :]))
