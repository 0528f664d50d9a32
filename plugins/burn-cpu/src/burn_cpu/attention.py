"""Attention in blocks of queries: the scores of a block stay in the cache."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from burn.ops.attention import AttentionShape, check_attention, check_on_scores
from burn_cpu.base import Array, CpuOps
from burn_cpu.blocks import in_blocks, row_products, row_sums, wide_dtype
from burn_cpu.choice import fill
from burn_cpu.threads import thread_count

_SCORES: Final = 1 << 16
"""Scores that are worked on together: 256 KiB of float32."""

_ROWS: Final = 128
"""Queries of a block."""


class AttentionOps(CpuOps):
    """Attention and its gradients."""

    def attention(
        self,
        query: Array,
        key: Array,
        value: Array,
        mask: Array | None,
        bias: Array | None,
        *,
        scale: float,
        softcap: float | None = None,
        is_causal: bool = False,
    ) -> Array:
        """The division by the sums is left to the end, where there are fewer numbers."""
        call = _Attention(query, key, value, mask, bias, scale, softcap, is_causal=is_causal)
        result = np.zeros(call.shape.output, query.dtype)
        if not result.size or not key.shape[-2]:
            return result
        target = result.reshape(call.count, *result.shape[-2:])

        def work(block: int, _: int) -> None:
            heads, rows, keys = call.block(block)
            weights, total, _bent = call.weights(heads, rows, keys)
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
        *,
        scale: float,
        softcap: float | None = None,
        is_causal: bool = False,
    ) -> tuple[Array, Array, Array]:
        """The weights are computed again. Blocks of the same heads follow each other."""
        call = _Attention(query, key, value, mask, bias, scale, softcap, is_causal=is_causal)
        if g.shape != call.shape.output:
            raise ValueError(f"g of shape {g.shape} for {call.shape.output}")
        operands, batch = (query, key, value), call.shape.batch
        results = [np.zeros((*batch, *one.shape[-2:]), call.dtype) for one in operands]
        if call.count and query.shape[-2] and key.shape[-2]:
            targets = [one.reshape(call.count, *one.shape[-2:]) for one in results]
            slopes = call.batched(g)

            def work(block: int, _: int) -> None:
                first = block * call.row_blocks
                for number in range(first, first + call.row_blocks):
                    call.add_gradients(number, slopes, *targets)

            in_blocks(work, call.head_blocks, 1)
        first, second, third = [one.astype(query.dtype, copy=False) for one in results]
        return first, second, third


class _Attention:
    """One call: its operands as batches of matrices, and how they are divided into blocks.

    Attributes
    ----------
    query : array, shape (count, T, D)
        Scaled, and in the dtype that is computed in, like key and value.
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
        scale: float,
        softcap: float | None,
        *,
        is_causal: bool,
    ) -> None:
        shape = check_attention(query.shape, key.shape, value.shape, softcap)
        check_on_scores(shape.scores, mask=mask, bias=bias)
        self.shape: AttentionShape = shape
        self.dtype = wide_dtype(query.dtype)
        self.count = math.prod(shape.batch)
        self.scale = self.dtype.type(scale)
        self.query = np.multiply(self.batched(query), self.scale)
        self.key = self.batched(key)
        self.value = self.batched(value)
        self.softcap = softcap
        self.mask = None if mask is None else np.broadcast_to(mask, shape.scores)
        self.bias = None if bias is None else np.broadcast_to(bias, shape.scores)
        self.is_causal = is_causal
        queries, keys = shape.scores[-2:]
        self.offset = keys - queries
        self.rows = max(1, min(queries, _ROWS))
        self.row_blocks = -(-queries // self.rows)
        heads = max(1, _SCORES // max(1, self.rows * keys))
        heads = min(heads, max(1, self.count // (2 * thread_count())))
        if len(shape.batch) > 1 and (mask is not None or bias is not None):
            # Then a block of heads is of one element of the other axes: one part of a mask.
            heads = math.gcd(heads, shape.batch[-1])
        self.heads = heads
        self.head_blocks = -(-self.count // heads)

    def batched(self, x: Array) -> Array:
        """A batch of matrices along one axis, in the dtype that is computed in."""
        full = np.broadcast_to(x, (*self.shape.batch, *x.shape[-2:]))
        return full.reshape(self.count, *x.shape[-2:]).astype(self.dtype, copy=False)

    def block(self, number: int) -> tuple[slice, slice, slice]:
        """Heads and queries of a block, and the keys that any of them sees."""
        head, row = divmod(number, self.row_blocks)
        queries, keys = self.shape.scores[-2:]
        heads = slice(head * self.heads, min((head + 1) * self.heads, self.count))
        rows = slice(row * self.rows, min((row + 1) * self.rows, queries))
        if self.is_causal:
            keys = min(keys, max(1, rows.stop + self.offset))
        return heads, rows, slice(0, keys)

    def weights(self, heads: slice, rows: slice, keys: slice) -> tuple[Array, Array, Array | None]:
        """Exponentials of scores, their sums, and the hyperbolic tangent of a soft cap."""
        scores = np.matmul(self.query[heads, rows], self.key[heads, keys].swapaxes(1, 2))
        bent = None
        if self.softcap is not None:
            cap = self.dtype.type(self.softcap)
            scores /= cap
            np.tanh(scores, out=scores)
            bent = scores.copy()
            scores *= cap
        if self.mask is not None:
            fill(scores, self._part(self.mask, heads, rows, keys), -np.inf)
        if self.is_causal and keys.stop > rows.start + self.offset + 1:
            place = np.arange(rows.start, rows.stop)[:, None] + self.offset
            fill(scores, np.arange(keys.stop) > place, -np.inf)
        if self.bias is not None:
            scores += self._part(self.bias, heads, rows, keys)
        peak = np.maximum.reduce(scores, axis=-1, keepdims=True)
        peak[peak == -np.inf] = 0.0  # a query without keys
        scores -= peak
        np.exp(scores, out=scores)
        total = row_sums(scores)
        total[total == 0.0] = 1.0
        return scores, total, bent

    def add_gradients(
        self, number: int, g: Array, to_query: Array, to_key: Array, to_value: Array
    ) -> None:
        """Add what one block has to do with the gradients."""
        heads, rows, keys = self.block(number)
        weights, total, bent = self.weights(heads, rows, keys)
        weights /= total
        part = g[heads, rows]
        slope = np.matmul(part, self.value[heads, keys].swapaxes(1, 2))
        to_value[heads, keys] += np.matmul(weights.swapaxes(1, 2), part)
        slope -= row_products(weights, slope)
        slope *= weights
        if bent is not None:
            np.multiply(bent, bent, out=bent)
            slope *= np.subtract(self.dtype.type(1), bent, out=bent)
        # The query was scaled; the gradient by it is not yet.
        to_key[heads, keys] += np.matmul(slope.swapaxes(1, 2), self.query[heads, rows])
        found = np.matmul(slope, self.key[heads, keys])
        to_query[heads, rows] = np.multiply(found, self.scale, out=found)

    def _part(self, x: Array, heads: slice, rows: slice, keys: slice) -> Array:
        """The part of a mask or bias for a block; it may be repeated along many axes."""
        batch = self.shape.batch
        if len(batch) == 0:
            return x[rows, keys]
        if len(batch) == 1:
            return x[heads, rows, keys]
        place = np.unravel_index(heads.start, batch)
        inner = slice(int(place[-1]), int(place[-1]) + heads.stop - heads.start)
        return x[(*map(int, place[:-1]), inner, rows, keys)]
