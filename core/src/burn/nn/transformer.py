"""Transformers (Vaswani et al., 2017, arXiv:1706.03762)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from burn.docstrings import documented_as
from burn.errors import ArgumentError, OperandTypeError
from burn.nn import functional as F
from burn.nn.attention import MultiHeadAttention
from burn.nn.cache import CrossAttentionCache, KeyValueCache
from burn.nn.linear import Linear
from burn.nn.module import Module
from burn.nn.normalization import LayerNorm

if TYPE_CHECKING:
    from burn.functions.common import DeviceLike, DTypeLike
    from burn.tensor.tensor import Tensor

__all__ = [
    "DecoderCache",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]


class DecoderCache(NamedTuple):
    """What a layer of a decoder keeps from one step of a generation to the next.

    Attributes
    ----------
    self_attention : KeyValueCache
        Of the outputs so far.
    cross_attention : CrossAttentionCache
        Of the memory.
    """

    self_attention: KeyValueCache
    cross_attention: CrossAttentionCache


class _Layer(Module):
    """What layers of encoders and decoders share."""

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        feed_forward_dim: int = 2048,
        *,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = "relu",
        norm_first: bool = False,
        bias: bool = True,
        epsilon: float = 1e-5,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
    ) -> None:
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.feed_forward_dim, self.dropout = feed_forward_dim, dropout
        self.activation, self.norm_first = activation, norm_first
        self.bias, self.epsilon = bias, epsilon
        common: Any = {"bias": bias, "dtype": dtype, "device": device}
        self.self_attn = MultiHeadAttention(embed_dim, num_heads, dropout=dropout, **common)
        self.linear1 = Linear(embed_dim, feed_forward_dim, **common)
        self.linear2 = Linear(feed_forward_dim, embed_dim, **common)
        self.norm1 = LayerNorm(embed_dim, epsilon, **common)
        self.norm2 = LayerNorm(embed_dim, epsilon, **common)

    def _dropped(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, training=self.training) if self.dropout else x

    def _residual(self, x: Tensor, norm: Module, function: Callable[[Tensor], Tensor]) -> Tensor:
        """The input plus a function of it, with the normalization before or after that."""
        if self.norm_first:
            return x + self._dropped(function(norm(x)))
        result: Tensor = norm(x + self._dropped(function(x)))
        return result

    def _feed_forward(self, x: Tensor) -> Tensor:
        name = self.activation
        activation = getattr(F, name) if isinstance(name, str) else name
        result: Tensor = self.linear2(self._dropped(activation(self.linear1(x))))
        return result


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward network, each with a residual connection.

    Parameters
    ----------
    embed_dim : int
        Number of features.
    num_heads : int
        Number of heads of the attention.
    feed_forward_dim : int
        Number of features between the two layers of the feed-forward network.
    dropout : float
        The probability of zero in training: of weights of the attention, of features of the
        feed-forward network, and of what is added to the input.
    activation : str or callable
        Name of a function of `burn.nn.functional`, or a function.
    norm_first : bool
        Whether to normalize the inputs of both parts, and not the sums after them.
    bias : bool
        Whether layers have one.
    epsilon : float
        Of the normalizations.
    dtype : DType, optional
        Of the parameters.
    device : Device or str, optional
        Where they are.

    Notes
    -----
    Parameters have the names of PyTorch's but for those of the attention, which
    `burn.nn.split_attention` renames.

    Examples
    --------
    >>> import burn
    >>> layer = burn.nn.TransformerEncoderLayer(8, 2, 32, activation="gelu", norm_first=True)
    >>> layer(burn.ones((2, 5, 8)), is_causal=True).shape
    (2, 5, 8)
    """

    def forward(
        self,
        x: Tensor,
        *,
        mask: Tensor | None = None,
        key_padding_mask: Tensor | None = None,
        cache: KeyValueCache | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Features of shape (..., T, embed_dim); masks as in `MultiHeadAttention.forward`."""

        def attention(x: Tensor) -> Any:
            return self.self_attn(
                x, mask=mask, key_padding_mask=key_padding_mask, cache=cache, is_causal=is_causal
            )

        x = self._residual(x, self.norm1, attention)
        return self._residual(x, self.norm2, self._feed_forward)


@documented_as(TransformerEncoderLayer)
class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to a memory, and a feed-forward network, with residuals.

    The other parameters are those of `TransformerEncoderLayer`.

    Parameters
    ----------
    embed_dim : int
        Number of features, of the memory as well.
    num_heads : int
        Number of heads of both attentions.
    dropout : float
        As in `TransformerEncoderLayer`.
    norm_first : bool
        Whether to normalize the inputs of all parts, and not the sums after them.

    Notes
    -----
    Parameters have the names of PyTorch's but for those of the attentions, which
    `burn.nn.split_attention` renames.

    Examples
    --------
    >>> import burn
    >>> layer = burn.nn.TransformerDecoderLayer(8, 2, 32)
    >>> layer(burn.ones((2, 3, 8)), burn.ones((2, 5, 8))).shape
    (2, 3, 8)
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        feed_forward_dim: int = 2048,
        *,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = "relu",
        norm_first: bool = False,
        bias: bool = True,
        epsilon: float = 1e-5,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
    ) -> None:
        common: Any = {"bias": bias, "dtype": dtype, "device": device}
        super().__init__(
            embed_dim,
            num_heads,
            feed_forward_dim,
            dropout=dropout,
            activation=activation,
            norm_first=norm_first,
            epsilon=epsilon,
            **common,
        )
        self.multihead_attn = MultiHeadAttention(embed_dim, num_heads, dropout=dropout, **common)
        self.norm3 = LayerNorm(embed_dim, epsilon, **common)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        *,
        mask: Tensor | None = None,
        key_padding_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        cache: DecoderCache | None = None,
        is_causal: bool = True,
    ) -> Tensor:
        """Features of shape (..., T, embed_dim), for a memory of shape (..., S, embed_dim).

        Masks are as in `MultiHeadAttention.forward`. Unlike in PyTorch a position sees only those
        before it unless `is_causal` is false.
        """
        own, cross = (None, None) if cache is None else cache

        def self_attention(x: Tensor) -> Any:
            return self.self_attn(
                x, mask=mask, key_padding_mask=key_padding_mask, cache=own, is_causal=is_causal
            )

        def cross_attention(x: Tensor) -> Any:
            return self.multihead_attn(
                x, memory, mask=memory_mask, key_padding_mask=memory_key_padding_mask, cache=cross
            )

        x = self._residual(x, self.norm1, self_attention)
        x = self._residual(x, self.norm2, cross_attention)
        return self._residual(x, self.norm3, self._feed_forward)


class TransformerEncoder(Module):
    """Layers of an encoder, one after another; causal, a decoder without memory such as GPT.

    Parameters
    ----------
    layers : sequence of TransformerEncoderLayer
        Each with weights of its own.
    norm : Module, optional
        Applied at the end: `LayerNorm` where layers have `norm_first`.

    Raises
    ------
    OperandTypeError
        If `layers` is one module.

    Examples
    --------
    >>> import burn
    >>> from burn import nn
    >>> layers = [nn.TransformerEncoderLayer(8, 2, 32, norm_first=True) for _ in range(3)]
    >>> encoder = nn.TransformerEncoder(layers, norm=nn.LayerNorm(8))
    >>> encoder(burn.ones((2, 5, 8))).shape
    (2, 5, 8)
    """

    def __init__(self, layers: Sequence[Module], *, norm: Module | None = None) -> None:
        self.layers = _checked(layers, "TransformerEncoder")
        self.norm = norm

    def new_cache(self, max_length: int) -> list[KeyValueCache]:
        """Caches of all layers, for a generation.

        Parameters
        ----------
        max_length : int
            Number of positions that they have room for.

        Returns
        -------
        list of KeyValueCache
            Pass it to each call.

        Examples
        --------
        >>> import burn
        >>> from burn import nn
        >>> encoder = nn.TransformerEncoder([nn.TransformerEncoderLayer(8, 2)])
        >>> cache = encoder.new_cache(16)
        >>> last = encoder(burn.ones((1, 4, 8)), cache=cache, is_causal=True)[:, -1:]
        >>> encoder(last, cache=cache, is_causal=True).shape
        (1, 1, 8)
        >>> cache
        [KeyValueCache(16, length=5)]
        """
        return [KeyValueCache(max_length) for _ in self.layers]

    def forward(
        self,
        x: Tensor,
        *,
        mask: Tensor | None = None,
        key_padding_mask: Tensor | None = None,
        cache: Sequence[KeyValueCache] | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Features of shape (..., T, embed_dim); masks as in `MultiHeadAttention.forward`."""
        for layer, item in zip(self.layers, _caches(cache, self.layers), strict=True):
            x = layer(
                x, mask=mask, key_padding_mask=key_padding_mask, cache=item, is_causal=is_causal
            )
        return x if self.norm is None else self.norm(x)


class TransformerDecoder(Module):
    """Layers of a decoder, one after another.

    Parameters
    ----------
    layers : sequence of TransformerDecoderLayer
        Each with weights of its own.
    norm : Module, optional
        Applied at the end: `LayerNorm` where layers have `norm_first`.

    Raises
    ------
    OperandTypeError
        If `layers` is one module.

    Examples
    --------
    >>> import burn
    >>> from burn import nn
    >>> decoder = nn.TransformerDecoder([nn.TransformerDecoderLayer(8, 2, 32) for _ in range(3)])
    >>> decoder(burn.ones((2, 3, 8)), burn.ones((2, 5, 8))).shape
    (2, 3, 8)
    """

    def __init__(self, layers: Sequence[Module], *, norm: Module | None = None) -> None:
        self.layers = _checked(layers, "TransformerDecoder")
        self.norm = norm

    def new_cache(self, max_length: int) -> list[DecoderCache]:
        """Caches of all layers, for a generation.

        Parameters
        ----------
        max_length : int
            Number of positions that they have room for.

        Returns
        -------
        list of DecoderCache
            Pass it to each call.
        """
        return [DecoderCache(KeyValueCache(max_length), CrossAttentionCache()) for _ in self.layers]

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        *,
        mask: Tensor | None = None,
        key_padding_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        cache: Sequence[DecoderCache] | None = None,
        is_causal: bool = True,
    ) -> Tensor:
        """Features of shape (..., T, embed_dim), as `TransformerDecoderLayer.forward`.

        With a cache `x` has the new positions only, and the keys and values of the memory are those
        of the first call.
        """
        for layer, item in zip(self.layers, _caches(cache, self.layers), strict=True):
            x = layer(
                x,
                memory,
                mask=mask,
                key_padding_mask=key_padding_mask,
                memory_mask=memory_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                cache=item,
                is_causal=is_causal,
            )
        return x if self.norm is None else self.norm(x)


def _checked(layers: Any, name: str) -> list[Module]:
    if isinstance(layers, Module):
        raise OperandTypeError(
            f"takes a list of layers, not one {type(layers).__name__}",
            hint="Make each layer: [nn.TransformerEncoderLayer(64, 4) for _ in range(6)]; copies "
            "of one would start with the same weights",
            operation=f"nn.{name}",
        )
    return list(layers)


def _caches(cache: Sequence[Any] | None, layers: Sequence[Module]) -> Sequence[Any]:
    if cache is None:
        return [None] * len(layers)
    if len(cache) != len(layers):
        raise ArgumentError(
            f"{len(cache)} caches for {len(layers)} layers",
            hint="Make them with new_cache(max_length)",
            operation="nn.TransformerEncoder",
        )
    return cache
