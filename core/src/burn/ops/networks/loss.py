"""Losses of probabilities, and of classes, whose labels do not count from the end."""

from __future__ import annotations

from typing import Final

from burn.errors import ShapeError
from burn.ops._precision import in_float32
from burn.ops.batching import leading_axes
from burn.ops.index_arithmetic import mark_invalid_labels
from burn.ops.op import Context, Tag, op
from burn.ops.shapes import broadcast_shapes, check_axis
from burn.ops.signature import (
    Axis,
    Cotangent,
    FloatOperand,
    Gradients,
    IndexOperand,
    Meta,
    Primitive,
)
from burn.ops.table import OpTable

_LEAST_LOGARITHM: Final = -100.0
_LEAST_VARIANCE: Final = 1e-12
"""Of a prediction: a slope divides by it. Both numbers are PyTorch's."""


@op(Tag.ELEMENTWISE)
def binary_cross_entropy(x: FloatOperand, target: FloatOperand) -> Meta:
    """``-(target * log(x) + (1 - target) * log(1 - x))``, with logarithms of -100 at least.

    The slope by the prediction is ``(x - target) / max(x * (1 - x), 1e-12)``.
    """
    return Meta(broadcast_shapes(x.shape, target.shape), x.dtype)


@binary_cross_entropy.decomposition
@in_float32
def _(ops: OpTable, x: Primitive, target: Primitive) -> Primitive:
    of_one = ops.multiply(target, ops.maximum(ops.log(x), _LEAST_LOGARITHM))
    log_of_zero = ops.maximum(ops.log1p(ops.negative(x)), _LEAST_LOGARITHM)
    return ops.subtract(ops.multiply(ops.subtract(target, 1.0), log_of_zero), of_one)


@binary_cross_entropy.gradient(saves={"x": ("x", "target"), "target": ("x",)})
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    x, target = ctx.saved
    to_x = to_target = None
    if ctx.needs[0]:
        to_x = ops.multiply(g, _slope(ops, x, target))
    if ctx.needs[1]:
        log_of_one = ops.maximum(ops.log(x), _LEAST_LOGARITHM)
        log_of_zero = ops.maximum(ops.log1p(ops.negative(x)), _LEAST_LOGARITHM)
        to_target = ops.multiply(g, ops.subtract(log_of_zero, log_of_one))
    return to_x, to_target


@in_float32
def _slope(ops: OpTable, x: Primitive, target: Primitive) -> Primitive:
    variance = ops.multiply(x, ops.subtract(1.0, x))
    return ops.divide(ops.subtract(x, target), ops.maximum(variance, _LEAST_VARIANCE))


@op(Tag.COMPUTE_BOUND | Tag.CHECKS_INDICES, fuses="decomposition")
def nll_loss(log_probs: FloatOperand, targets: IndexOperand, *, axis: Axis) -> Meta:
    """Negative log-probability of the target class, one per example.

    Classes lie along `axis` of the log-probabilities; `targets` has the other axes. A target is in
    [0, n) for n classes.
    """
    _check_targets(log_probs, targets, axis)
    return Meta(targets.shape, log_probs.dtype)


@nll_loss.decomposition
def _(ops: OpTable, log_probs: Primitive, targets: Primitive, *, axis: int) -> Primitive:
    _check_targets(log_probs, targets, axis)
    chosen = ops.gather(log_probs, _column(ops, targets, axis), axis=axis)
    return ops.negative(ops.reshape(chosen, shape=tuple(targets.shape)))


@nll_loss.gradient(saves=("targets",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    (targets,) = ctx.saved
    axis = ctx.attrs["axis"]
    column = _column(ops, targets, axis)
    zeros = ops.full(shape=ctx.shape(0), fill_value=0.0, dtype=ops.dtype(g))
    slope = ops.negative(ops.reshape(g, shape=tuple(column.shape)))
    return ops.scatter_add(zeros, column, slope, axis=axis), None


nll_loss.batching(leading_axes)


@op(Tag.COMPUTE_BOUND | Tag.CHECKS_INDICES, fuses="decomposition")
def cross_entropy(logits: FloatOperand, targets: IndexOperand, *, axis: Axis) -> Meta:
    """Negative log-likelihood of the target classes under ``softmax(logits)``, one per example.

    Classes lie along `axis` of the logits; `targets` has the other axes. A target is in [0, n) for
    n classes. The gradient is simpler than that of the parts.
    """
    _check_targets(logits, targets, axis)
    return Meta(targets.shape, logits.dtype)


@cross_entropy.decomposition
@in_float32
def _(ops: OpTable, logits: Primitive, targets: Primitive, *, axis: int) -> Primitive:
    _check_targets(logits, targets, axis)
    return ops.nll_loss(ops.log_softmax(logits, axis=axis), targets, axis=axis)


@cross_entropy.gradient(saves=("logits", "targets"))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    logits, targets = ctx.saved
    return ops.cross_entropy_grad(logits, targets, g, axis=ctx.attrs["axis"]), None


cross_entropy.batching(leading_axes)


@op(Tag.CHECKS_INDICES, fuses="decomposition")
def cross_entropy_grad(
    logits: FloatOperand, targets: IndexOperand, g: FloatOperand, *, axis: Axis
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


cross_entropy_grad.batching(leading_axes)


def _column(ops: OpTable, targets: Primitive, axis: int) -> Primitive:
    """Labels with an axis of length 1 where the logits have their classes."""
    shape = tuple(targets.shape)
    return ops.reshape(mark_invalid_labels(ops, targets), shape=(*shape[:axis], 1, *shape[axis:]))


def _check_targets(scores: Meta | Primitive, targets: Meta | Primitive, axis: int) -> None:
    shape = tuple(scores.shape)
    check_axis(axis, len(shape))
    expected = (*shape[:axis], *shape[axis + 1 :])
    if tuple(targets.shape) != expected:
        raise ShapeError(
            f"targets of shape {tuple(targets.shape)} do not fit scores of shape {shape} "
            f"with classes along axis {axis}",
            hint=f"Targets hold one class index per example: shape {expected}",
        )
