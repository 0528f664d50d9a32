"""Kernels of attention: of few elements the whole op, else what is not a product of matrices."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from burn_cpu.base import Array
from burn_cpu.compiled_base import ONE, ZERO, compiled, exp, float32, with_wide_vectors

_NEGATIVE_INFINITY: Final = float32(-np.inf)


@compiled
def peak(row: Array) -> Any:
    """The largest element of a row, or NaN where it has one; NaN with a sign may be passed over.

    It is found among the bits as integers, as LLVM vectorizes no maximum of numbers that may be
    NaN: the largest integer, or the smallest one where all numbers are negative.
    """
    bits = row.view(np.int32)
    top = np.int32(-(2**31))
    for i in range(len(bits)):
        top = max(top, bits[i])
    if top < 0:
        for i in range(len(bits)):
            top = min(top, bits[i])
    return np.int32(top).view(np.float32)


@compiled
def _normalize(row: Array) -> None:
    """Replace scores by their softmax, or by 0 where all are -inf."""
    with_wide_vectors()
    top = peak(row)
    if top == _NEGATIVE_INFINITY:
        top = ZERO
    total = ZERO
    for i in range(len(row)):
        power = exp(row[i] - top)
        row[i] = power
        total += power
    factor = ONE if total == ZERO else ONE / total
    for i in range(len(row)):
        row[i] *= factor


@compiled
def weights(scores: Array, offset: int) -> None:
    """Replace scores (heads, queries, keys) by weights.

    The first query sees `offset` keys, and each query one more than that before it; the weights of
    all other keys are 0.
    """
    with_wide_vectors()
    heads, queries, keys = scores.shape
    for head in range(heads):
        for query in range(queries):
            seen = max(0, min(keys, offset + query))
            row = scores[head, query]
            _normalize(row[:seen])
            row[seen:] = ZERO


@compiled
def slopes(weights: Array, slope: Array) -> None:
    """Replace gradients by the weights, in `slope`, by those by the scores."""
    with_wide_vectors()
    heads, queries, keys = weights.shape
    for head in range(heads):
        for query in range(queries):
            row, result = weights[head, query], slope[head, query]
            level = ZERO
            for i in range(keys):
                level += row[i] * result[i]
            for i in range(keys):
                result[i] = (result[i] - level) * row[i]


@compiled
def _transpose(matrix: Array, out: Array) -> None:
    rows, columns = matrix.shape
    for row in range(rows):
        for column in range(columns):
            out[column, row] = matrix[row, column]


@compiled
def _add_multiple(factor: Any, vector: Array, out: Array) -> None:
    for i in range(len(vector)):
        out[i] += factor * vector[i]


@compiled
def _products(features: Array, by_feature: Array, out: Array) -> None:
    """Products of one vector with some vectors, of which each feature is a row."""
    out[:] = ZERO
    for d in range(len(features)):
        _add_multiple(features[d], by_feature[d, : len(out)], out)


@compiled
def _weigh(
    scores: Array, mask: Array, bias: Array, scale: Any, cap: Any, position: Any, tanh: Array
) -> None:
    """Replace products by weights. With a cap of 0 there is none; else `tanh` is written too."""
    head, query = position
    for s in range(len(scores)):
        scores[s] *= scale
    if cap > ZERO:
        for s in range(len(scores)):
            tanh[s] = math.tanh(scores[s] / cap)
            scores[s] = tanh[s] * cap
    if len(mask):
        for s in range(len(scores)):
            if mask[head, query, s]:
                scores[s] = _NEGATIVE_INFINITY
    if len(bias):
        for s in range(len(scores)):
            scores[s] += bias[head, query, s]
    _normalize(scores)


@compiled
def attention(
    query: Array, key: Array, value: Array, mask: Array, bias: Array,
    scale: float, cap: float, is_causal: bool, out: Array,
) -> None:  # fmt: skip
    """Attention of matrices along one batch axis; a mask or bias of no elements is none."""
    heads, queries, width = query.shape
    keys = key.shape[1]
    by_feature = np.empty((width, keys), np.float32)
    scores, tanh = np.empty(keys, np.float32), np.empty(keys, np.float32)
    for h in range(heads):
        _transpose(key[h], by_feature)
        for t in range(queries):
            seen = max(0, keys - queries + t + 1) if is_causal else keys
            row, result = scores[:seen], out[h, t]
            _products(query[h, t], by_feature, row)
            _weigh(row, mask, bias, np.float32(scale), np.float32(cap), (h, t), tanh)
            result[:] = ZERO
            for s in range(seen):
                _add_multiple(row[s], value[h, s], result)


@compiled
def attention_grad(
    query: Array, key: Array, value: Array, mask: Array, bias: Array, g: Array,
    scale: float, cap: float, is_causal: bool,
    query_grad: Array, key_grad: Array, value_grad: Array,
) -> None:  # fmt: skip
    """Gradients of `attention`; those by keys and values are added to zeros."""
    heads, queries, width = query.shape
    keys, columns = value.shape[1:]
    by_feature = np.empty((width, keys), np.float32)
    by_column = np.empty((columns, keys), np.float32)
    scores, slope = np.empty(keys, np.float32), np.empty(keys, np.float32)
    tanh, factor = np.empty(keys, np.float32), np.float32(scale)
    for h in range(heads):
        _transpose(key[h], by_feature)
        _transpose(value[h], by_column)
        for t in range(queries):
            seen = max(0, keys - queries + t + 1) if is_causal else keys
            row, rise, result = scores[:seen], slope[:seen], query_grad[h, t]
            _products(query[h, t], by_feature, row)
            _weigh(row, mask, bias, factor, np.float32(cap), (h, t), tanh)
            _products(g[h, t], by_column, rise)
            level = ZERO
            for s in range(seen):
                level += row[s] * rise[s]
            for s in range(seen):
                rise[s] = (rise[s] - level) * row[s] * factor
            if cap > ZERO:
                for s in range(seen):
                    rise[s] *= ONE - tanh[s] * tanh[s]
            result[:] = ZERO
            for s in range(seen):
                _add_multiple(rise[s], key[h, s], result)
                _add_multiple(rise[s], query[h, t], key_grad[h, s])
                _add_multiple(row[s], g[h, t], value_grad[h, s])
