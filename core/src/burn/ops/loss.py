"""Losses that are ops of their own because their gradient is simpler than that of their parts."""

from __future__ import annotations

from burn.errors import ShapeError
from burn.ops.op import Context, Tag, op
from burn.ops.precision import in_float32
from burn.ops.shapes import check_axis
from burn.ops.signature import Cotangent, FloatOperand, Gradients, IndexOperand, Meta, Primitive
from burn.ops.table import OpTable


@op(Tag.COMPUTE_BOUND)
def cross_entropy(logits: FloatOperand, targets: IndexOperand, *, axis: int) -> Meta:
    """Negative log-likelihood of the target classes under ``softmax(logits)``, one per example.

    Classes lie along `axis` of the logits; `targets` has the other axes.
    """
    _check_targets(logits, targets, axis)
    return Meta(targets.shape, logits.dtype)


@cross_entropy.decomposition
@in_float32
def _(ops: OpTable, logits: Primitive, targets: Primitive, *, axis: int) -> Primitive:
    likelihoods = ops.log_softmax(logits, axis=axis)
    chosen = ops.gather(likelihoods, _column(ops, targets, axis), axis=axis)
    return ops.negative(ops.reshape(chosen, shape=tuple(targets.shape)))


@cross_entropy.gradient(saves=("logits", "targets"))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    logits, targets = ctx.saved
    return ops.cross_entropy_grad(logits, targets, g, axis=ctx.attrs["axis"]), None


@op(Tag.COMPUTE_BOUND)
def cross_entropy_grad(
    logits: FloatOperand, targets: IndexOperand, g: FloatOperand, *, axis: int
) -> Meta:
    """Gradient of `cross_entropy` by the logits: ``g * (softmax(logits) - one_hot(targets))``."""
    _check_targets(logits, targets, axis)
    if g.shape != targets.shape:
        raise ShapeError(f"g has shape {g.shape} where {targets.shape} is needed")
    return logits


@cross_entropy_grad.decomposition
@in_float32
def _(ops: OpTable, logits: Primitive, targets: Primitive, g: Primitive, *, axis: int) -> Primitive:
    column = _column(ops, targets, axis)
    g = ops.reshape(g, shape=tuple(column.shape))
    weighted = ops.multiply(ops.softmax(logits, axis=axis), g)
    return ops.scatter_add(weighted, column, ops.negative(g), axis=axis)


def _column(ops: OpTable, targets: Primitive, axis: int) -> Primitive:
    """Give the targets an axis of length 1 where the logits have their classes."""
    shape = tuple(targets.shape)
    return ops.reshape(targets, shape=(*shape[:axis], 1, *shape[axis:]))


def _check_targets(logits: Meta, targets: Meta, axis: int) -> None:
    check_axis(axis, len(logits.shape))
    expected = (*logits.shape[:axis], *logits.shape[axis + 1 :])
    if targets.shape != expected:
        raise ShapeError(
            f"targets of shape {targets.shape} do not fit logits of shape {logits.shape} "
            f"with classes along axis {axis}",
            hint=f"Targets hold one class index per example: shape {expected}",
        )
