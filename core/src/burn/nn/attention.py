"""Attention with several heads."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from burn.errors import ArgumentError, DTypeError, ShapeError
from burn.functions.creation import zeros_like
from burn.functions.elementwise import logical_or
from burn.functions.linalg.linear_algebra import matmul
from burn.functions.manipulation import expand_dims, reshape
from burn.functions.rearranging import swapaxes
from burn.functions.searching import where
from burn.functions.triangles import tril_mask
from burn.functions.utility import all as all_of
from burn.nn import functional as F
from burn.nn.cache import CrossAttentionCache
from burn.nn.linear import Linear
from burn.nn.module import Module
from burn.ops.arguments import as_integer
from burn.public_calls import shown_value

if TYPE_CHECKING:
    from burn.functions.common import DeviceLike, DTypeLike
    from burn.nn.cache import KeyValueCache
    from burn.nn.positional import RotaryEncoding
    from burn.tensor.tensor import Tensor

__all__ = ["MultiHeadAttention", "split_attention"]


class MultiHeadAttention(Module):
    """Attention of several heads, each with queries, keys and values of its own.

    Parameters
    ----------
    embed_dim : int
        Number of features of the queries and of the output.
    num_heads : int
        Number of heads.
    num_key_value_heads : int, optional
        Number of heads of keys and values, each of which a group of heads shares (Ainslie et al.,
        2023, arXiv:2305.13245). By default `num_heads`; 1 is multi-query attention.
    head_dim : int, optional
        Number of features of a head, ``embed_dim // num_heads`` by default.
    key_features, value_features : int, optional
        Number of features of the inputs of keys and values, `embed_dim` by default.
    bias : bool
        Whether queries, keys and values have one.
    output_bias : bool, optional
        Whether the output has one; as `bias` by default.
    dropout : float
        In training, the probability that a query does not see a key.
    is_causal : bool
        Whether a query sees only the keys up to its position: the last query sees all.
    window : int or tuple of int, optional
        A query sees only so many keys before its own, and so many after it: a number for both, or
        one for each. By default all.
    rotary : RotaryEncoding, optional
        Of queries and keys. Layers may share it.
    query_norm, key_norm : Module, optional
        Applied to the features of each head, before `rotary`.
    dtype : DType, optional
        Of the parameters.
    device : Device or str, optional
        Where they are.

    Attributes
    ----------
    query, key, value, output : Linear
        Of the inputs, and of the heads side by side. The weights start as in PyTorch, biases at 0.

    Raises
    ------
    ArgumentError
        If heads do not divide the features, or groups the heads.

    See Also
    --------
    split_attention : Renames the weights of PyTorch's nn.MultiheadAttention.

    Notes
    -----
    Vaswani et al., 2017, arXiv:1706.03762.

    Examples
    --------
    >>> import burn
    >>> attention = burn.nn.MultiHeadAttention(8, 4, num_key_value_heads=2, is_causal=True)
    >>> attention(burn.ones((2, 5, 8))).shape
    (2, 5, 8)
    >>> attention.key
    Linear(8, 4)
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        *,
        num_key_value_heads: int | None = None,
        head_dim: int | None = None,
        key_features: int | None = None,
        value_features: int | None = None,
        bias: bool = True,
        output_bias: bool | None = None,
        dropout: float = 0.0,
        is_causal: bool = False,
        window: int | tuple[int, int] | None = None,
        rotary: RotaryEncoding | None = None,
        query_norm: Module | None = None,
        key_norm: Module | None = None,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
    ) -> None:
        groups = num_heads if num_key_value_heads is None else num_key_value_heads
        operation = "nn.MultiHeadAttention"
        as_integer(embed_dim, "embed_dim", operation)
        as_integer(num_heads, "num_heads", operation)
        as_integer(groups, "num_key_value_heads", operation)
        if head_dim is not None:
            as_integer(head_dim, "head_dim", operation)
        if min(num_heads, groups) < 1 or num_heads % groups:
            raise ArgumentError(
                f"{num_heads} heads cannot share {groups} heads of keys",
                hint="num_key_value_heads divides num_heads",
                operation=operation,
            )
        if head_dim is None and embed_dim % num_heads:
            raise ArgumentError(
                f"{num_heads} heads do not divide {embed_dim} features",
                hint="Say how many features a head has: head_dim=...",
                operation=operation,
            )
        features = embed_dim // num_heads if head_dim is None else head_dim
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.num_key_value_heads, self.head_dim = groups, features
        self.bias, self.dropout, self.is_causal = bias, dropout, is_causal
        self.window = _as_window(window)
        self.rotary, self.query_norm, self.key_norm = rotary, query_norm, key_norm
        key_features = embed_dim if key_features is None else key_features
        value_features = embed_dim if value_features is None else value_features
        # PyTorch draws equal ones as one matrix.
        is_packed = key_features == value_features == embed_dim == groups * features

        def projection(inputs: int, heads: int) -> Linear:
            layer = Linear(inputs, heads * features, bias=bias, dtype=dtype, device=device)
            outputs = 3 * embed_dim if is_packed else heads * features
            # Of Xavier's uniform distribution, where that of Linear has the bound inputs ** -0.5.
            layer.weight = layer.weight * math.sqrt(6.0 * max(inputs, 1) / (inputs + outputs))
            return _from_zero(layer)

        self.query = projection(embed_dim, num_heads)
        self.key = projection(key_features, groups)
        self.value = projection(value_features, groups)
        self.output = _from_zero(
            Linear(
                num_heads * features,
                embed_dim,
                bias=bias if output_bias is None else output_bias,
                dtype=dtype,
                device=device,
            )
        )

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        key_padding_mask: Tensor | None = None,
        bias: Tensor | None = None,
        cache: KeyValueCache | CrossAttentionCache | None = None,
        positions: Tensor | None = None,
        is_causal: bool | None = None,
        return_weights: bool = False,
    ) -> Any:
        """The values that the queries attend to.

        Parameters
        ----------
        query : Tensor, shape (..., T, embed_dim)
            Inputs of the queries: (N, T, embed_dim), or any number of batch axes.
        key : Tensor, shape (..., S, key_features), optional
            Inputs of the keys; by default `query`.
        value : Tensor, shape (..., S, value_features), optional
            Inputs of the values; by default `key`.
        mask : Tensor of bool, shape (T, S), (..., T, S) or (..., H, T, S), optional
            True excludes a key from a query, for all examples, each example, or each of its heads.
        key_padding_mask : Tensor of bool, shape (..., S), optional
            True excludes a key of an example from all its queries.
        bias : Tensor, shape as of `mask`, optional
            Added to the scores.
        cache : KeyValueCache or CrossAttentionCache, optional
            The first adds the keys and values to those before them; S counts these too. The second
            keeps them: from the second call on the inputs of keys and values are not looked at.
        positions : Tensor of int, shape (T,) or (N, T), optional
            For `rotary`; by default they go on from the cache.
        is_causal : bool, optional
            In lieu of that of the layer.
        return_weights : bool
            Whether to return the weights of the keys too.

        Returns
        -------
        Tensor, shape (..., T, embed_dim)
            With `return_weights` a tuple of it and the weights, of shape (..., H, T, S).
        """
        _check_masks(mask, key_padding_mask)
        offset = 0 if cache is None else cache.length
        queries = self._heads(self.query(query), self.num_heads)
        if self.query_norm is not None:
            queries = self.query_norm(queries)
        if self.rotary is not None:
            if isinstance(cache, CrossAttentionCache):
                raise ArgumentError(
                    "rotary positions of queries do not follow from a CrossAttentionCache",
                    operation="nn.MultiHeadAttention",
                )
            queries = self.rotary(queries, offset=offset, positions=positions)
        if isinstance(cache, CrossAttentionCache) and cache.contents is not None:
            keys, values = cache.contents
        else:
            key = query if key is None else key
            keys = self._heads(self.key(key), self.num_key_value_heads)
            values = self._heads(
                self.value(key if value is None else value), self.num_key_value_heads
            )
            if self.key_norm is not None:
                keys = self.key_norm(keys)
            if self.rotary is not None:
                keys = self.rotary(keys, offset=offset, positions=positions)
            if cache is not None:
                keys, values = cache.append(keys, values)
        rank = len(query.shape)
        mask, bias = _with_heads(mask, rank, "mask"), _with_heads(bias, rank, "bias")
        if key_padding_mask is not None:
            padding = expand_dims(key_padding_mask, axis=(-3, -2))
            mask = padding if mask is None else logical_or(mask, padding)
        if self.window is not None:
            lengths = queries.shape[-2], keys.shape[-2]
            outside = F.sliding_window_mask(lengths, *self.window, device=query.device)
            mask = outside if mask is None else logical_or(mask, outside)
        output, weights = self._attend(
            queries,
            keys,
            values,
            mask,
            bias,
            is_causal=self.is_causal if is_causal is None else is_causal,
            with_weights=return_weights,
        )
        output = swapaxes(output, -2, -3)
        result = self.output(reshape(output, (*output.shape[:-2], -1)))
        return (result, weights) if return_weights else result

    def _heads(self, x: Tensor, count: int) -> Tensor:
        """Features of all heads, (..., T, H * D), as (..., H, T, D)."""
        return swapaxes(reshape(x, (*x.shape[:-1], count, self.head_dim)), -2, -3)

    def _attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        bias: Tensor | None,
        *,
        is_causal: bool,
        with_weights: bool,
    ) -> tuple[Tensor, Tensor | None]:
        """The output of each head, and the weights if they are needed."""
        shape = query.shape
        shared = self.num_heads // self.num_key_value_heads
        if shared > 1:
            # The heads of a group are an axis along which the keys repeat, and are not copied: the
            # axis of the queries where there is one query, and so no matter what is causal.
            groups = (self.num_key_value_heads, shared)
            if shape[-2] == 1:
                query = reshape(query, (*shape[:-3], *groups, shape[-1]))
                is_causal = False
            else:
                query = reshape(query, (*shape[:-3], *groups, *shape[-2:]))
                key, value = expand_dims(key, axis=-3), expand_dims(value, axis=-3)
            mask, bias = (_in_groups(tensor, groups, shape[-2] == 1) for tensor in (mask, bias))
        weights = None
        if with_weights or (self.dropout and self.is_training(query)):
            weights = _weights(query, key, mask, bias, is_causal=is_causal)
            dropped = F.dropout(weights, self.dropout, training=self.is_training(query))
            output = matmul(dropped, value)
            weights = reshape(weights, (*shape[:-1], weights.shape[-1]))
        else:
            output = F.attention(query, key, value, mask, bias, is_causal=is_causal)
        return reshape(output, (*shape[:-1], output.shape[-1])), weights


def split_attention(state: Mapping[str, Any]) -> dict[str, Any]:
    """Rename the weights of PyTorch's nn.MultiheadAttention to those of `MultiHeadAttention`.

    Parameters
    ----------
    state : mapping of str to Tensor or array
        A state dict with such modules in it, at any depth.

    Returns
    -------
    dict of str to Tensor or array
        ``in_proj_weight``, which has the rows of queries, keys and values, is split in three; all
        else is as it was.

    Examples
    --------
    >>> import burn
    >>> state = {"in_proj_weight": burn.ones((12, 4)), "out_proj.weight": burn.ones((4, 4))}
    >>> sorted(burn.nn.split_attention(state))
    ['key.weight', 'output.weight', 'query.weight', 'value.weight']
    """
    packed = ("in_proj_weight", "q_proj_weight")
    prefixes = {path.removesuffix(end) for path in state for end in packed if path.endswith(end)}
    result = {}
    for path, tensor in state.items():
        prefix = next((prefix for prefix in prefixes if path.removeprefix(prefix) in _NAMES), "")
        names = _NAMES.get(path.removeprefix(prefix)) if prefix in prefixes else None
        if names is None:
            result[path] = tensor
        else:
            length = tensor.shape[0] // len(names)
            for index, name in enumerate(names):
                result[prefix + name] = tensor[index * length : (index + 1) * length]
    return result


_NAMES = {
    "in_proj_weight": ("query.weight", "key.weight", "value.weight"),
    "in_proj_bias": ("query.bias", "key.bias", "value.bias"),
    "q_proj_weight": ("query.weight",),
    "k_proj_weight": ("key.weight",),
    "v_proj_weight": ("value.weight",),
    "out_proj.weight": ("output.weight",),
    "out_proj.bias": ("output.bias",),
}
"""What the rows of PyTorch's tensors belong to; all are separate where keys have other features."""


def _as_window(window: int | tuple[int, int] | None) -> tuple[int, int] | None:
    """Numbers of keys before a query and after it."""
    if window is None:
        return None
    sides = window if isinstance(window, (tuple, list)) else (window, window)
    if len(sides) != 2:
        raise ArgumentError(
            f"window is {shown_value(window)}",
            hint="Give a number of keys, or one before and one after the query",
            operation="nn.MultiHeadAttention",
        )
    before, after = (as_integer(side, "window", "nn.MultiHeadAttention", least=0) for side in sides)
    return before, after


def _from_zero(layer: Linear) -> Linear:
    """A layer with a bias that starts at 0."""
    if layer.bias is not None:
        layer.bias = zeros_like(layer.bias)
    return layer


def _check_masks(mask: Tensor | None, key_padding_mask: Tensor | None) -> None:
    """Raise DTypeError if a mask is of numbers, which elsewhere are added to the scores."""
    for name, tensor in (("mask", mask), ("key_padding_mask", key_padding_mask)):
        if tensor is not None and not tensor.dtype.is_bool:
            raise DTypeError(
                f"{name} is a tensor of bool, not of {tensor.dtype}",
                hint="Where it is true, a key is left out; numbers that are added to the scores "
                "are the bias",
                operation="nn.MultiHeadAttention",
            )


def _with_heads(x: Tensor | None, rank: int, name: str) -> Tensor | None:
    """A mask or bias that broadcasts with the scores, which have an axis of heads."""
    if x is None or len(x.shape) in (2, rank + 1):
        return x
    if len(x.shape) != rank:
        raise ShapeError(
            f"{name} has shape {x.shape}",
            hint="(T, S) for all examples, (N, T, S) for each, or (N, H, T, S) for each head",
            operation="nn.MultiHeadAttention",
        )
    return expand_dims(x, axis=-3)


def _in_groups(x: Tensor | None, groups: tuple[int, int], is_folded: bool) -> Tensor | None:
    """A mask or bias for heads in groups; folded if these are the axis of the queries."""
    if x is None or len(x.shape) < 3:
        return x
    *batch, heads, queries, keys = x.shape
    split_heads = groups if heads > 1 else (1, 1)
    return reshape(x, (*batch, *split_heads, *([] if is_folded else [queries]), keys))


def _weights(
    query: Tensor, key: Tensor, mask: Tensor | None, bias: Tensor | None, *, is_causal: bool
) -> Tensor:
    """The weights of the keys, as `burn.nn.functional.attention` has them."""
    scores = matmul(query, swapaxes(key, -1, -2)) * max(query.shape[-1], 1) ** -0.5
    if mask is not None:
        scores = where(mask, -math.inf, scores)
    if is_causal:
        queries, keys = scores.shape[-2:]
        later = tril_mask((queries, keys), k=keys - queries, device=query.device)
        scores = where(later, -math.inf, scores)
    if bias is not None:
        scores = scores + bias
    excluded = all_of(scores == -math.inf, axis=-1, keepdims=True)
    return where(excluded, 0.0, F.softmax(where(excluded, 0.0, scores), axis=-1))
