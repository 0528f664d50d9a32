"""Attention in blocks of queries, so that the scores of a block stay in the cache."""

from __future__ import annotations

import functools
import math
from typing import Any, Final, NamedTuple, Unpack

import numpy as np

from burn.plugin_api import (
    AttentionAttributes,
    AttentionShapes,
    Shape,
    attention_shapes,
    check_broadcasts_to_scores,
)
from burn_cpu.base import Array, CpuOps
from burn_cpu.blocks import in_blocks, row_products, row_sums, wide_dtype
from burn_cpu.compiled import kernels_for
from burn_cpu.constants import FLOAT32
from burn_cpu.threads import thread_count

_SCORES_PER_BLOCK: Final = 1 << 16
"""256 KiB of float32."""

_QUERIES_PER_BLOCK: Final = 128

_MAX_SMALL: Final = 1 << 17
"""Multiplications of the two products up to which one kernel does all: it is slower than BLAS, but
saves some forty calls of NumPy."""


_INTEGERS: Final[dict[int, Any]] = {4: np.dtype(np.int32), 8: np.dtype(np.int64)}


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
        """The scores of a block of queries are in memory at a time."""
        plan = _plan(query.shape, key.shape, value.shape, attributes["softcap"])
        family = kernels_for(query.dtype, "attention")
        if plan.is_small and family is not None:
            small = np.empty(plan.packed_output, FLOAT32)
            family.attention(
                *_small_operands(plan, (query, key, value), mask, bias),
                *_small_attributes(**attributes),
                small,
            )
            result = small.reshape(plan.shape.output)
            return result if query.dtype is FLOAT32 else result.astype(query.dtype)
        call = _Attention(plan, query, key, value, mask, bias, **attributes)
        if not key.shape[-2]:
            return np.zeros(plan.shape.output, query.dtype)
        result = np.empty(plan.shape.output, query.dtype)
        if not result.size:
            return result
        target = result.reshape(plan.packed_output)

        def work(block: int, _: int) -> None:
            heads, rows, keys = call.block(block)
            weights, _capped = call.weights(heads, rows, keys)
            if target.dtype is call.dtype:
                np.matmul(weights, call.value[heads, keys], out=target[heads, rows])
            else:
                target[heads, rows] = np.matmul(weights, call.value[heads, keys])

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
        plan = _plan(query.shape, key.shape, value.shape, attributes["softcap"])
        if g.shape != plan.shape.output:
            raise ValueError(f"g of shape {g.shape} for {plan.shape.output}")
        operands, batch = (query, key, value), plan.shape.batch
        wide = wide_dtype(query.dtype)
        results = [np.zeros((*batch, *operand.shape[-2:]), wide) for operand in operands]
        family = kernels_for(query.dtype, "attention")
        if plan.is_small and family is not None:
            family.attention_grad(
                *_small_operands(plan, operands, mask, bias),
                _matrices(plan, g),
                *_small_attributes(**attributes),
                *[result.reshape(plan.heads, *result.shape[-2:]) for result in results],
            )
            first, second, third = [result.astype(query.dtype, copy=False) for result in results]
            return first, second, third
        call = _Attention(plan, query, key, value, mask, bias, **attributes)
        if call.count and query.shape[-2] and key.shape[-2]:
            targets = [result.reshape(call.count, *result.shape[-2:]) for result in results]
            gradients = call.batched(g)

            def work(block: int, _: int) -> None:
                first = block * call.row_blocks
                for number in range(first, first + call.row_blocks):
                    call.add_gradients(number, gradients, *targets)

            in_blocks(work, call.head_blocks, 1)
        first, second, third = [result.astype(query.dtype, copy=False) for result in results]
        return first, second, third


class _Plan(NamedTuple):
    """What follows from the shapes of query, key and value."""

    shape: AttentionShapes
    heads: int
    packed_output: Shape
    packed: tuple[Shape, Shape, Shape] | None
    is_small: bool


@functools.lru_cache(maxsize=256)
def _plan(query: Shape, key: Shape, value: Shape, softcap: float | None) -> _Plan:
    shape = attention_shapes(query, key, value, softcap)
    count = math.prod(shape.batch)
    work = count * math.prod(shape.scores[-2:]) * (query[-1] + value[-1])
    matrices = [shape[-2:] for shape in (query, key, value, shape.output)]
    first, second, third, output = [(count, *matrix) for matrix in matrices]
    is_packed = query[:-2] == key[:-2] == value[:-2]
    return _Plan(
        shape,
        count,
        output,
        (first, second, third) if is_packed else None,
        bool(math.prod(shape.scores)) and work <= _MAX_SMALL,
    )


def _matrices(plan: _Plan, x: Array) -> Array:
    """Contiguous matrices along one batch axis in float32."""
    *batch, rows, columns = x.shape
    if tuple(batch) != plan.shape.batch:
        x = np.broadcast_to(x, (*plan.shape.batch, rows, columns))
    return np.ascontiguousarray(x.reshape(plan.heads, rows, columns), FLOAT32)


_contiguous: Final = np.ascontiguousarray
_NO_MASK: Final = np.empty((0, 0, 0), np.bool_)
_NO_BIAS: Final = np.empty((0, 0, 0), np.float32)


def _small_operands(
    plan: _Plan, operands: tuple[Array, ...], mask: Array | None, bias: Array | None
) -> list[Array]:
    """Operands of the kernels that do all."""
    if plan.packed is None:
        found = [_matrices(plan, operand) for operand in operands]
    else:
        query, key, value = operands
        first, second, third = plan.packed
        found = [
            _contiguous(query.reshape(first), FLOAT32),
            _contiguous(key.reshape(second), FLOAT32),
            _contiguous(value.reshape(third), FLOAT32),
        ]
    if mask is None and bias is None:
        return [*found, _NO_MASK, _NO_BIAS]
    scores = plan.shape.scores
    check_broadcasts_to_scores(scores, mask=mask, bias=bias)
    for item, none in ((mask, _NO_MASK), (bias, _NO_BIAS)):
        if item is None:
            found.append(none)
        else:
            full = np.broadcast_to(item, scores).reshape(plan.heads, *scores[-2:])
            found.append(np.ascontiguousarray(full, none.dtype))
    return found


def _small_attributes(*, scale: float, softcap: float | None, is_causal: bool) -> tuple[Any, ...]:
    return float(scale), softcap or 0.0, is_causal


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
        plan: _Plan,
        query: Array,
        key: Array,
        value: Array,
        mask: Array | None,
        bias: Array | None,
        **attributes: Unpack[AttentionAttributes],
    ) -> None:
        self.shape = shape = plan.shape
        check_broadcasts_to_scores(shape.scores, mask=mask, bias=bias)
        self.kernels = kernels_for(query.dtype, "attention")
        self.dtype = wide_dtype(query.dtype)
        self.count = plan.heads
        self.scale = self.dtype.type(attributes["scale"])
        self.query = np.multiply(self.batched(query), self.scale)
        self.key = self.batched(key)
        self.value = self.batched(value)
        self.softcap = attributes["softcap"]
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

    def weights(self, heads: slice, rows: slice, keys: slice) -> tuple[Array, Array | None]:
        """Weights, and the tanh of a soft cap (None without one)."""
        scores = np.matmul(self.query[heads, rows], self.key[heads, keys].swapaxes(1, 2))
        capped = None
        if self.softcap is not None:
            cap = self.dtype.type(self.softcap)
            scores /= cap
            np.tanh(scores, out=scores)
            capped = scores.copy()
            scores *= cap
        if self.mask is not None:
            _fill(scores, self._part(self.mask, heads, rows, keys), -np.inf)
        offset = self.offset + rows.start + 1 if self.is_causal else keys.stop
        if self.bias is not None:
            _exclude(scores, offset)
            scores += self._part(self.bias, heads, rows, keys)
            offset = keys.stop
        if self.kernels is not None:
            self.kernels.weights(scores, offset)
        else:
            _exclude(scores, offset)
            _normalize(scores)
        return scores, capped

    def add_gradients(
        self, number: int, g: Array, query_grad: Array, key_grad: Array, value_grad: Array
    ) -> None:
        """Add the contribution of one block to the gradients."""
        heads, rows, keys = self.block(number)
        weights, capped = self.weights(heads, rows, keys)
        part = g[heads, rows]
        slope = np.matmul(part, self.value[heads, keys].swapaxes(1, 2))
        if self.kernels is not None:
            self.kernels.slopes(weights, slope)
        else:
            slope -= row_products(weights, slope)
            slope *= weights
        value_grad[heads, keys] += np.matmul(weights.swapaxes(1, 2), part)
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


def _exclude(scores: Array, offset: int) -> None:
    """Give -inf to keys that a query does not see: the first sees `offset`, each other one more."""
    rows, keys = scores.shape[-2:]
    if offset < keys:
        _fill(scores, np.arange(keys) >= np.arange(offset, offset + rows)[:, None], -np.inf)


def _normalize(scores: Array) -> None:
    """Replace scores by their softmax."""
    peak = np.maximum.reduce(scores, axis=-1, keepdims=True)
    peak[peak == -np.inf] = 0.0  # a query without keys
    scores -= peak
    np.exp(scores, out=scores)
    total = row_sums(scores)
    total[total == 0.0] = 1.0
    scores /= total


def _fill(x: Array, mask: Array, value: float) -> None:
    """Write a number to the elements of `x` where `mask` is true.

    The bits as integers times the mask are up to ten times as fast as a selection.
    """
    bits = _INTEGERS[x.itemsize]
    number = np.asarray(value, x.dtype).view(bits)[()]
    target = x.view(bits)
    target ^= number
    target *= np.logical_not(mask)
    target ^= number
