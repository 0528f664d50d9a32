"""Scaled dot-product attention (Vaswani et al., 2017, arXiv:1706.03762).

Nothing of the size of the scores is kept for the gradient: they are computed again from the
operands, as in FlashAttention (Dao et al., 2022, arXiv:2205.14135, appendix B). A native
implementation may do the same in blocks of queries.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypedDict, Unpack

from burn.errors import ArgumentError, ShapeError
from burn.ops._precision import in_float32
from burn.ops.arrays.indexing import check_same_shape
from burn.ops.batching import BatchedCall, aligned_axes, expanded
from burn.ops.index_arithmetic import positions
from burn.ops.linalg.linear_algebra import transpose_matrices
from burn.ops.op import Context, Tag, op
from burn.ops.shapes import broadcast_shapes, size
from burn.ops.signature import (
    Cotangent,
    Flag,
    FloatOperand,
    Gradients,
    Meta,
    Number,
    OptionalBool,
    OptionalFloat,
    OptionalNumber,
    Primitive,
    Shape,
)
from burn.ops.table import OpTable

_ATTENTION = Tag.CONTRACTION | Tag.COMPUTE_BOUND


class AttentionAttributes(TypedDict):
    """The attributes of `attention` and of its gradients."""

    scale: Number
    softcap: OptionalNumber
    is_causal: Flag


@op(_ATTENTION, fuses="decomposition")
def attention(
    query: FloatOperand,
    key: FloatOperand,
    value: FloatOperand,
    mask: OptionalBool,
    bias: OptionalFloat,
    **attributes: Unpack[AttentionAttributes],
) -> Meta:
    """``softmax(scores) @ value``, where the scores are ``query @ key.T * scale``.

    Shapes are (..., T, D) of the query, (..., S, D) of the key and (..., S, V) of the value; the
    axes before broadcast, and `mask` and `bias` broadcast with the scores, (..., T, S). In this
    order: `softcap` c limits scores to ``c * tanh(scores / c)``; keys are excluded where `mask` is
    true, and under `is_causal` those after the query, where the last query is aligned with the last
    key; `bias` is added. A query whose keys are all excluded gives 0.
    """
    shape = _checked_shapes(query, key, value, mask, bias, attributes["softcap"])
    return Meta(shape.output, query.dtype)


@attention.decomposition
@in_float32
def _(
    ops: OpTable,
    query: Primitive,
    key: Primitive,
    value: Primitive,
    mask: Primitive | None,
    bias: Primitive | None,
    **attributes: Unpack[AttentionAttributes],
) -> Primitive:
    _checked_shapes(query, key, value, mask, bias, attributes["softcap"])
    weights, _ = _weights(ops, query, key, mask, bias, **attributes)
    return ops.matmul(weights, value)


@attention.gradient(saves=("query", "key", "value", "mask", "bias"))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    operands = ctx.saved
    to_query = to_key = to_value = to_bias = None
    if any(ctx.needs[:3]):
        to_query, to_key, to_value = ops.attention_grad(*operands, g, **ctx.attrs)
    if ctx.needs[4]:
        to_bias = ops.attention_bias_grad(*operands, g, **ctx.attrs)
    return (
        to_query if ctx.needs[0] else None,
        to_key if ctx.needs[1] else None,
        to_value if ctx.needs[2] else None,
        None,
        to_bias,
    )


@op(
    Tag.COMPUTE_BOUND,
    outputs=("query_gradient", "key_gradient", "value_gradient"),
    fuses="decomposition",
)
def attention_grad(
    query: FloatOperand,
    key: FloatOperand,
    value: FloatOperand,
    mask: OptionalBool,
    bias: OptionalFloat,
    g: FloatOperand,
    **attributes: Unpack[AttentionAttributes],
) -> tuple[Meta, Meta, Meta]:
    """Gradients of `attention` by query, key and value.

    The axes before the last two are those that all operands broadcast to.
    """
    shape = _checked_shapes(query, key, value, mask, bias, attributes["softcap"])
    check_same_shape("g", g.shape, shape.output)
    return (
        Meta((*shape.batch, *query.shape[-2:]), query.dtype),
        Meta((*shape.batch, *key.shape[-2:]), query.dtype),
        Meta((*shape.batch, *value.shape[-2:]), query.dtype),
    )


@attention_grad.decomposition
@in_float32
def _(
    ops: OpTable,
    query: Primitive,
    key: Primitive,
    value: Primitive,
    mask: Primitive | None,
    bias: Primitive | None,
    g: Primitive,
    **attributes: Unpack[AttentionAttributes],
) -> tuple[Primitive, Primitive, Primitive]:
    shape = _checked_shapes(query, key, value, mask, bias, attributes["softcap"])
    check_same_shape("g", tuple(g.shape), shape.output)
    weights, tanh = _weights(ops, query, key, mask, bias, **attributes)
    slope = _score_gradient(ops, weights, value, g)
    if tanh is not None:
        slope = ops.multiply(slope, ops.subtract(1.0, ops.multiply(tanh, tanh)))
    slope = ops.multiply(slope, attributes["scale"])
    return (
        ops.matmul(slope, key),
        ops.matmul(transpose_matrices(ops, slope), query),
        ops.matmul(transpose_matrices(ops, weights), g),
    )


@op(Tag.COMPUTE_BOUND, outputs=("gradient",), fuses="decomposition")
def attention_bias_grad(
    query: FloatOperand,
    key: FloatOperand,
    value: FloatOperand,
    mask: OptionalBool,
    bias: OptionalFloat,
    g: FloatOperand,
    **attributes: Unpack[AttentionAttributes],
) -> Meta:
    """Gradient of `attention` by its bias, in the shape of the scores."""
    shape = _checked_shapes(query, key, value, mask, bias, attributes["softcap"])
    check_same_shape("g", g.shape, shape.output)
    return Meta(shape.scores, query.dtype)


@attention_bias_grad.decomposition
@in_float32
def _(
    ops: OpTable,
    query: Primitive,
    key: Primitive,
    value: Primitive,
    mask: Primitive | None,
    bias: Primitive | None,
    g: Primitive,
    **attributes: Unpack[AttentionAttributes],
) -> Primitive:
    shape = _checked_shapes(query, key, value, mask, bias, attributes["softcap"])
    check_same_shape("g", tuple(g.shape), shape.output)
    weights, _ = _weights(ops, query, key, mask, bias, **attributes)
    return ops.expand(_score_gradient(ops, weights, value, g), shape=shape.scores)


def _batched(ops: OpTable, batch: BatchedCall, *operands: Primitive, **attributes: Any) -> Any:
    """`aligned_axes` for operands that must broadcast to the scores, or equal the output."""
    tensors, flags = list(operands), list(batch.is_batched)
    for index, name in enumerate(batch.op.operands):
        if name in ("query", "g"):
            tensors[index] = expanded(ops, batch, tensors[index], flags[index])
            flags[index] = True
    return aligned_axes(ops, batch._replace(is_batched=tuple(flags)), *tensors, **attributes)


attention.batching(_batched)
attention_grad.batching(_batched)
attention_bias_grad.batching(_batched)


@attention.cost
def _(output: Meta, query: Meta, key: Meta, value: Meta, *operands: Any, **attributes: Any) -> int:
    # The products of matrices alone, as everywhere: T. Dao, "FlashAttention-2" (2023,
    # arXiv:2307.08691), section 4.1. A causal mask does not halve them.
    return _products(query, key, value, with_keys=1, with_values=1)


@attention_grad.cost
def _(outputs: Any, query: Meta, key: Meta, value: Meta, *operands: Any, **attributes: Any) -> int:
    # The scores again, the gradients by weights and values, and those by queries and keys.
    return _products(query, key, value, with_keys=3, with_values=2)


@attention_bias_grad.cost
def _(output: Meta, query: Meta, key: Meta, value: Meta, *operands: Any, **attributes: Any) -> int:
    return _products(query, key, value, with_keys=1, with_values=1)


def _products(query: Meta, key: Meta, value: Meta, *, with_keys: int, with_values: int) -> int:
    """Operations of products with a query's or key's features, and with those of a value."""
    scores = size(attention_shapes(query.shape, key.shape, value.shape, None).scores)
    return 2 * scores * (with_keys * query.shape[-1] + with_values * value.shape[-1])


def _weights(
    ops: OpTable,
    query: Primitive,
    key: Primitive,
    mask: Primitive | None,
    bias: Primitive | None,
    *,
    scale: float,
    softcap: float | None,
    is_causal: bool,
) -> tuple[Primitive, Primitive | None]:
    """The softmax of the scores, and the tanh of the soft cap or None without one."""
    scores = ops.multiply(ops.matmul(query, transpose_matrices(ops, key)), scale)
    tanh = None
    if softcap is not None:
        tanh = ops.tanh(ops.divide(scores, softcap))
        scores = ops.multiply(tanh, softcap)
    queries, keys = scores.shape[-2], scores.shape[-1]
    if mask is not None:
        scores = ops.where(mask, -math.inf, scores)
    if is_causal:
        scores = ops.where(_causal_mask(ops, queries, keys), -math.inf, scores)
    if bias is not None:
        scores = ops.add(scores, bias)
    last = len(scores.shape) - 1
    if mask is None and bias is None and not (is_causal and queries > keys):
        return ops.softmax(scores, axis=last), tanh
    excluded = ops.all(ops.equal(scores, -math.inf), axis=(last,), keepdims=True)
    weights = ops.softmax(ops.where(excluded, 0.0, scores), axis=last)
    return ops.where(excluded, 0.0, weights), tanh


def _causal_mask(ops: OpTable, queries: int, keys: int) -> Primitive:
    """Whether a key comes after a query, where the last query is aligned with the last key."""
    query_positions = positions(ops, (queries, keys), 0, start=keys - queries)
    return ops.less(query_positions, positions(ops, (queries, keys), 1))


def _score_gradient(ops: OpTable, weights: Primitive, value: Primitive, g: Primitive) -> Primitive:
    """Gradient by the scores as the softmax sees them."""
    return ops.softmax_grad(
        *_broadcast(ops, weights, ops.matmul(g, transpose_matrices(ops, value))),
        axis=len(g.shape) - 1,
    )


def _broadcast(ops: OpTable, x1: Primitive, x2: Primitive) -> tuple[Primitive, Primitive]:
    shape = broadcast_shapes(tuple(x1.shape), tuple(x2.shape))
    return ops.expand(x1, shape=shape), ops.expand(x2, shape=shape)


class AttentionShapes(NamedTuple):
    """Shapes that follow from those of query, key and value."""

    batch: Shape
    scores: Shape
    output: Shape


def _checked_shapes(
    query: Meta | Primitive,
    key: Meta | Primitive,
    value: Meta | Primitive,
    mask: Meta | Primitive | None,
    bias: Meta | Primitive | None,
    softcap: float | None,
) -> AttentionShapes:
    """Shapes of an attention.

    Raises
    ------
    ShapeError
        If those of the operands do not fit each other.
    """
    shapes = attention_shapes(tuple(query.shape), tuple(key.shape), tuple(value.shape), softcap)
    check_broadcasts_to_scores(shapes.scores, mask=mask, bias=bias)
    return shapes


def attention_shapes(
    query: Shape, key: Shape, value: Shape, softcap: float | None
) -> AttentionShapes:
    """Shapes of an attention.

    Raises
    ------
    ShapeError
        If those of query, key and value do not fit each other.
    ArgumentError
        If the soft cap is not positive.
    """
    shapes = f"query {query}, key {key} and value {value}"
    if min(len(query), len(key), len(value)) < 2:
        raise ShapeError(f"{shapes}: each has two axes or more", hint="(..., length, features)")
    if query[-1] != key[-1]:
        raise ShapeError(
            f"{shapes}: a query has {query[-1]} features and a key {key[-1]}",
            hint="The last axes of query and key must have one length",
        )
    if key[-2] != value[-2]:
        raise ShapeError(
            f"{shapes}: there are {key[-2]} keys and {value[-2]} values",
            hint="The last axes but one of key and value must have one length",
        )
    if softcap is not None and not softcap > 0.0:
        raise ArgumentError(f"softcap is {softcap}", hint="It must be positive, or None")
    batch = broadcast_shapes(query[:-2], key[:-2], value[:-2])
    return AttentionShapes(batch, (*batch, query[-2], key[-2]), (*batch, query[-2], value[-1]))


def check_broadcasts_to_scores(scores: Shape, **operands: Meta | Primitive | None) -> None:
    """Raise ShapeError unless a mask and a bias broadcast to the shape of the scores."""
    for name, operand in operands.items():
        if operand is not None:
            shape = tuple(operand.shape)
            if len(shape) > len(scores) or any(
                length not in (1, expected)
                for length, expected in zip(reversed(shape), reversed(scores), strict=False)
            ):
                raise ShapeError(
                    f"{name} has shape {shape}, which does not broadcast to that of the scores, "
                    f"{scores}",
                    hint="The scores have an element for each query and key: (..., T, S)",
                )
