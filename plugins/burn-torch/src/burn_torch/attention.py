"""Scaled dot-product attention."""

from __future__ import annotations

import math
from typing import Any, Final, Unpack

import torch

from burn.plugin_api import AttentionAttributes, attention_shapes, check_broadcasts_to_scores
from burn_torch.base import TorchOps
from burn_torch.dtypes import Tensor
from burn_torch.precision import on_host_in_float32
from burn_torch.settings import in_any_order

_attention = torch._C._nn.scaled_dot_product_attention

_aten: Final = torch.ops.aten
_forward: Final[Any] = torch._scaled_dot_product_flash_attention_for_cpu
_backward: Final = _aten._scaled_dot_product_flash_attention_for_cpu_backward.default
_forward_on_cuda: Final = _aten._efficient_attention_forward.default
_backward_on_cuda: Final = _aten._efficient_attention_backward.default


class AttentionOps(TorchOps):
    """torch's fused kernels, where they compute the same as the op."""

    @on_host_in_float32
    def attention(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        bias: Tensor | None,
        **attributes: Unpack[AttentionAttributes],
    ) -> Tensor:
        """Torch's mask is True for keys that take part; its causal mask aligns the first key."""
        softcap, is_causal = attributes["softcap"], attributes["is_causal"]
        if mask is None and bias is None and softcap is None and _are_alike(query, key, value):
            with self.exact_products():
                return _attention(
                    query, key, value, None, 0.0, is_causal, scale=attributes["scale"]
                )
        shape = attention_shapes(tuple(query.shape), tuple(key.shape), tuple(value.shape), softcap)
        check_broadcasts_to_scores(shape.scores, mask=mask, bias=bias)
        queries, keys = shape.scores[-2:]
        if softcap is not None or 0 in (*shape.scores, *shape.output, query.shape[-1]):
            return self.decomposed("attention", query, key, value, mask, bias, **attributes)
        if is_causal and (queries != keys or mask is not None or bias is not None):
            beyond = torch.ones(queries, keys, dtype=torch.bool, device=query.device)
            beyond = beyond.triu(keys - queries + 1)
            mask = beyond if mask is None else mask | beyond
            is_causal = False
        torch_mask: Tensor | None
        if bias is not None:
            torch_mask = bias if mask is None else torch.where(mask, -math.inf, bias)
        else:
            torch_mask = None if mask is None else ~mask
        batch = shape.batch
        query, key, value = (_with_heads(tensor, batch) for tensor in (query, key, value))
        if torch_mask is not None:
            torch_mask = _with_heads(torch_mask.expand(shape.scores), batch)
        with self.exact_products():
            result: Tensor = _attention(
                query, key, value, torch_mask, 0.0, is_causal, scale=attributes["scale"]
            )
        if torch_mask is not None and not self.on_host:
            # Kernels of accelerators differ for a query without keys.
            if torch_mask.dtype is not torch.bool:
                torch_mask = torch_mask != -math.inf
            result = torch.where(torch_mask.any(-1, keepdim=True), result, 0.0)
        return result.reshape(shape.output)

    @on_host_in_float32
    @in_any_order
    def attention_grad(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        bias: Tensor | None,
        g: Tensor,
        **attributes: Unpack[AttentionAttributes],
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Fused kernels, forward again and backward; the default where torch has none."""
        softcap, is_causal = attributes["softcap"], attributes["is_causal"]
        if (
            mask is None
            and bias is None
            and softcap is None
            and _are_alike(query, key, value)
            and g.shape == query.shape
            and (self.on_host or _is_aligned(query))
        ):
            with self.exact_products():
                fused = _fused_gradients if self.on_host else _fused_gradients_of_cuda
                return fused(query, key, value, g, is_causal=is_causal, scale=attributes["scale"])
        shape = attention_shapes(tuple(query.shape), tuple(key.shape), tuple(value.shape), softcap)
        queries, keys = shape.scores[-2:]
        if (
            not self.on_host
            or mask is not None
            or bias is not None
            or softcap is not None
            or (is_causal and queries != keys)
            or query.shape[-1] != value.shape[-1]
            or g.shape != shape.output
            or 0 in (*shape.scores, query.shape[-1])
        ):
            return self.decomposed("attention_grad", query, key, value, mask, bias, g, **attributes)
        batch = shape.batch
        query, key, value, g = (_with_heads(tensor, batch) for tensor in (query, key, value, g))
        gradients = _fused_gradients(
            query, key, value, g, is_causal=is_causal, scale=attributes["scale"]
        )
        return tuple([gradient.reshape(*batch, *gradient.shape[-2:]) for gradient in gradients])  # type: ignore[return-value]  # three


def _are_alike(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Whether all are (examples, heads, positions, features) of one shape, with an element."""
    shape = query.shape
    return len(shape) == 4 and shape == key.shape and shape == value.shape and query.numel() > 0


def _is_aligned(query: Tensor) -> bool:
    """Whether the kernels of CUDA compute gradients by a query."""
    return query.is_cuda and query.dtype is not torch.float64 and not query.shape[-1] % 8


def _with_neighbours(x: Tensor) -> Tensor:
    """A tensor in which the features of a position are neighbours, as kernels read them."""
    return x if x.stride(-1) == 1 else x.contiguous()


def _fused_gradients(
    query: Tensor, key: Tensor, value: Tensor, g: Tensor, *, is_causal: bool, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients by the kernels of the CPU."""
    query, key, value, g = map(_with_neighbours, (query, key, value, g))
    output, sums = _forward(query, key, value, 0.0, is_causal, scale=scale)
    return _backward(g, query, key, value, output, sums, 0.0, is_causal, scale=scale)  # type: ignore[no-any-return]  # tensors


def _fused_gradients_of_cuda(
    query: Tensor, key: Tensor, value: Tensor, g: Tensor, *, is_causal: bool, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients by the kernels of CUDA that keep no scores."""
    # They take (examples, positions, heads, features).
    query, key, value, g = (
        _with_neighbours(tensor).transpose(1, 2) for tensor in (query, key, value, g)
    )
    count, mask_type, with_sums = query.shape[1], int(is_causal), True
    output, sums, seed, offset, _, _ = _forward_on_cuda(
        *(query, key, value, None, None, None, None, None, 0.0, mask_type, with_sums), scale=scale
    )
    to_query, to_key, to_value, _ = _backward_on_cuda(
        *(g, query, key, value, None, output, None, None, count, count, sums, 0.0, seed, offset),
        *(mask_type, False),
        scale=scale,
        num_splits_key=1,  # with several splits the order of sums varies
    )
    return to_query.transpose(1, 2), to_key.transpose(1, 2), to_value.transpose(1, 2)


def _with_heads(x: Tensor, batch: tuple[int, ...]) -> Tensor:
    """A tensor as (examples, heads, positions, features)."""
    heads = batch[-1] if batch else 1
    return x.expand(*batch, *x.shape[-2:]).reshape(-1, heads, *x.shape[-2:])
