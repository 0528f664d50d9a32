"""Attention in blocks of queries, so that the scores of a block stay in the cache."""

from __future__ import annotations

import math
from typing import Final, Unpack

import numpy as np

from burn.plugin_api import (
    AttentionAttributes,
    AttentionShapes,
    attention_shapes,
    check_broadcasts_to_scores,
)
from burn_cpu.base import Array, CpuOps
from burn_cpu.blocks import in_blocks, row_products, row_sums, wide_dtype
from burn_cpu.choice import fill
from burn_cpu.threads import thread_count

_SCORES_PER_BLOCK: Final = 1 << 16
"""256 KiB of float32."""

_QUERIES_PER_BLOCK: Final = 128


class AttentionOps(CpuOps):
    """Attention and its gradients."""

    def attention(
        self,
        query: Array,
        key: Array,
        value: Array,
        mask: Array | None,
        bias: Array | None,
        **attributes: Unpack[AttentionAttributes],
    ) -> Array:
        """Divides by the sums of the weights last: the output is smaller than the scores."""
        call = _Attention(query, key, value, mask, bias, **attributes)
        result = np.zeros(call.shape.output, query.dtype)
        if not result.size or not key.shape[-2]:
            return result
        target = result.reshape(call.count, *result.shape[-2:])

        def work(block: int, _: int) -> None:
            heads, rows, keys = call.block(block)
            weights, total, _capped = call.weights(heads, rows, keys)
            out = np.matmul(weights, call.value[heads, keys])
            out /= total
            target[heads, rows] = out

        in_blocks(work, call.head_blocks * call.row_blocks, 1)
        return result

    def attention_grad(
        self,
        query: Array,
        key: Array,
        value: Array,
        mask: Array | None,
        bias: Array | None,
        g: Array,
        **attributes: Unpack[AttentionAttributes],
    ) -> tuple[Array, Array, Array]:
        """Recomputes the weights. One thread takes all blocks of the same heads, one by one."""
        call = _Attention(query, key, value, mask, bias, **attributes)
        if g.shape != call.shape.output:
            raise ValueError(f"g of shape {g.shape} for {call.shape.output}")
        operands, batch = (query, key, value), call.shape.batch
        results = [np.zeros((*batch, *one.shape[-2:]), call.dtype) for one in operands]
        if call.count and query.shape[-2] and key.shape[-2]:
            targets = [one.reshape(call.count, *one.shape[-2:]) for one in results]
            gradients = call.batched(g)

            def work(block: int, _: int) -> None:
                first = block * call.row_blocks
                for number in range(first, first + call.row_blocks):
                    call.add_gradients(number, gradients, *targets)

            in_blocks(work, call.head_blocks, 1)
        first, second, third = [one.astype(query.dtype, copy=False) for one in results]
        return first, second, third


class _Attention:
    """One call: its operands as batches of matrices, and their division into blocks.

    Attributes
    ----------
    query : array, shape (count, T, D)
        The queries times `scale`; like key and value in the dtype to compute in.
    key : array, shape (count, S, D)
        The keys.
    value : array, shape (count, S, V)
        The values.
    head_blocks, row_blocks : int
        Number of blocks of heads, and of blocks of queries for each of them.
    """

    def __init__(
        self,
        query: Array,
        key: Array,
        value: Array,
        mask: Array | None,
        bias: Array | None,
        **attributes: Unpack[AttentionAttributes],
    ) -> None:
        softcap = attributes["softcap"]
        shape = attention_shapes(query.shape, key.shape, value.shape, softcap)
        check_broadcasts_to_scores(shape.scores, mask=mask, bias=bias)
        self.shape: AttentionShapes = shape
        self.dtype = wide_dtype(query.dtype)
        self.count = math.prod(shape.batch)
        self.scale = self.dtype.type(attributes["scale"])
        self.query = np.multiply(self.batched(query), self.scale)
        self.key = self.batched(key)
        self.value = self.batched(value)
        self.softcap = softcap
        self.mask = None if mask is None else np.broadcast_to(mask, shape.scores)
        self.bias = None if bias is None else np.broadcast_to(bias, shape.scores)
        self.is_causal = attributes["is_causal"]
        queries, keys = shape.scores[-2:]
        self.offset = keys - queries
        self.rows = max(1, min(queries, _QUERIES_PER_BLOCK))
        self.row_blocks = -(-queries // self.rows)
        heads = max(1, _SCORES_PER_BLOCK // max(1, self.rows * keys))
        heads = min(heads, max(1, self.count // (2 * thread_count())))
        if len(shape.batch) > 1 and (mask is not None or bias is not None):
            # A block of heads then lies within one index of the other batch axes of the mask.
            heads = math.gcd(heads, shape.batch[-1])
        self.heads = heads
        self.head_blocks = -(-self.count // heads)

    def batched(self, x: Array) -> Array:
        """Matrices along one batch axis, in the dtype to compute in."""
        full = np.broadcast_to(x, (*self.shape.batch, *x.shape[-2:]))
        return full.reshape(self.count, *x.shape[-2:]).astype(self.dtype, copy=False)

    def block(self, number: int) -> tuple[slice, slice, slice]:
        """Heads and queries of a block, and the keys that any of its queries sees."""
        head, row = divmod(number, self.row_blocks)
        queries, keys = self.shape.scores[-2:]
        heads = slice(head * self.heads, min((head + 1) * self.heads, self.count))
        rows = slice(row * self.rows, min((row + 1) * self.rows, queries))
        if self.is_causal:
            keys = min(keys, max(1, rows.stop + self.offset))
        return heads, rows, slice(0, keys)

    def weights(self, heads: slice, rows: slice, keys: slice) -> tuple[Array, Array, Array | None]:
        """Exponentials of scores, their sums, and the tanh of a soft cap (None without one)."""
        scores = np.matmul(self.query[heads, rows], self.key[heads, keys].swapaxes(1, 2))
        capped = None
        if self.softcap is not None:
            cap = self.dtype.type(self.softcap)
            scores /= cap
            np.tanh(scores, out=scores)
            capped = scores.copy()
            scores *= cap
        if self.mask is not None:
            fill(scores, self._part(self.mask, heads, rows, keys), -np.inf)
        if self.is_causal and keys.stop > rows.start + self.offset + 1:
            last_key = np.arange(rows.start, rows.stop)[:, None] + self.offset
            fill(scores, np.arange(keys.stop) > last_key, -np.inf)
        if self.bias is not None:
            scores += self._part(self.bias, heads, rows, keys)
        peak = np.maximum.reduce(scores, axis=-1, keepdims=True)
        peak[peak == -np.inf] = 0.0  # a query without keys
        scores -= peak
        np.exp(scores, out=scores)
        total = row_sums(scores)
        total[total == 0.0] = 1.0
        return scores, total, capped

    def add_gradients(
        self, number: int, g: Array, query_grad: Array, key_grad: Array, value_grad: Array
    ) -> None:
        """Add the contribution of one block to the gradients."""
        heads, rows, keys = self.block(number)
        weights, total, capped = self.weights(heads, rows, keys)
        weights /= total
        part = g[heads, rows]
        slope = np.matmul(part, self.value[heads, keys].swapaxes(1, 2))
        value_grad[heads, keys] += np.matmul(weights.swapaxes(1, 2), part)
        slope -= row_products(weights, slope)
        slope *= weights
        if capped is not None:
            np.multiply(capped, capped, out=capped)
            slope *= np.subtract(self.dtype.type(1), capped, out=capped)
        # self.query is scaled already; the gradient by the query is not.
        key_grad[heads, keys] += np.matmul(slope.swapaxes(1, 2), self.query[heads, rows])
        found = np.matmul(slope, self.key[heads, keys])
        query_grad[heads, rows] = np.multiply(found, self.scale, out=found)

    def _part(self, x: Array, heads: slice, rows: slice, keys: slice) -> Array:
        """The part of a mask or bias for a block, without copying what broadcasts."""
        batch = self.shape.batch
        if len(batch) == 0:
            return x[rows, keys]
        if len(batch) == 1:
            return x[heads, rows, keys]
        *outer, first = map(int, np.unravel_index(heads.start, batch))
        return x[(*outer, slice(first, first + heads.stop - heads.start), rows, keys)]
