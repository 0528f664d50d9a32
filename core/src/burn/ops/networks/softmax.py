"""Softmax and its variants along an axis. Each gradient is an op itself: one pass over the rows."""

from __future__ import annotations

from burn.ops._precision import in_float32
from burn.ops.arrays.indexing import check_same_shape
from burn.ops.batching import leading_axes
from burn.ops.op import Context, op
from burn.ops.shapes import check_axis
from burn.ops.signature import Axis, Cotangent, FloatOperand, Gradients, Meta, Primitive
from burn.ops.table import OpTable


@op(fuses="decomposition")
def softmax(x: FloatOperand, *, axis: Axis) -> Meta:
    """``exp(x) / sum(exp(x))`` along `axis`, without overflow."""
    check_axis(axis, len(x.shape))
    return x


@softmax.decomposition
@in_float32
def _(ops: OpTable, x: Primitive, *, axis: int) -> Primitive:
    powers = ops.exp(_shifted(ops, x, axis))
    return ops.divide(powers, _total(ops, powers, axis))


@softmax.gradient(saves=("output",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    return (ops.softmax_grad(ctx.saved[0], g, axis=ctx.attrs["axis"]),)


softmax.batching(leading_axes)


@op(outputs=("gradient",), fuses="decomposition")
def softmax_grad(output: FloatOperand, g: FloatOperand, *, axis: Axis) -> Meta:
    """Gradient of `softmax`: ``output * (g - sum(output * g))``."""
    _check_gradient(output, g, axis)
    return output


@softmax_grad.decomposition
@in_float32
def _(ops: OpTable, output: Primitive, g: Primitive, *, axis: int) -> Primitive:
    _check_gradient(output, g, axis)
    weighted = ops.multiply(output, g)
    return ops.subtract(weighted, ops.multiply(output, _total(ops, weighted, axis)))


softmax_grad.batching(leading_axes)


@op(fuses="decomposition")
def log_softmax(x: FloatOperand, *, axis: Axis) -> Meta:
    """``x - log(sum(exp(x)))`` along `axis`, without overflow."""
    check_axis(axis, len(x.shape))
    return x


@log_softmax.decomposition
@in_float32
def _(ops: OpTable, x: Primitive, *, axis: int) -> Primitive:
    shifted = _shifted(ops, x, axis)
    return ops.subtract(shifted, ops.log(_total(ops, ops.exp(shifted), axis)))


@log_softmax.gradient(saves=("output",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    return (ops.log_softmax_grad(ctx.saved[0], g, axis=ctx.attrs["axis"]),)


log_softmax.batching(leading_axes)


@op(outputs=("gradient",), fuses="decomposition")
def log_softmax_grad(output: FloatOperand, g: FloatOperand, *, axis: Axis) -> Meta:
    """Gradient of `log_softmax`: ``g - exp(output) * sum(g)``."""
    _check_gradient(output, g, axis)
    return output


@log_softmax_grad.decomposition
@in_float32
def _(ops: OpTable, output: Primitive, g: Primitive, *, axis: int) -> Primitive:
    _check_gradient(output, g, axis)
    return ops.subtract(g, ops.multiply(ops.exp(output), _total(ops, g, axis)))


log_softmax_grad.batching(leading_axes)


@op()
def quiet_softmax(x: FloatOperand, *, axis: Axis) -> Meta:
    """``exp(x) / (1 + sum(exp(x)))`` along `axis`, without overflow.

    It is a softmax with one more element, an unreturned 0, so that all outputs may be near 0
    (E. Miller, "Attention Is Off By One", 2023).
    """
    check_axis(axis, len(x.shape))
    return x


@quiet_softmax.decomposition
@in_float32
def _(ops: OpTable, x: Primitive, *, axis: int) -> Primitive:
    check_axis(axis, len(x.shape))
    if x.shape[axis] == 0:
        return x
    peak = ops.maximum(ops.max(x, axis=(axis,), keepdims=True), 0.0)
    powers = ops.exp(ops.subtract(x, peak))
    total = ops.add(_total(ops, powers, axis), ops.exp(ops.negative(peak)))
    return ops.divide(powers, total)


@quiet_softmax.gradient(saves=("output",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    # The element that is not returned is constant: the formula is that of `softmax`.
    return (ops.softmax_grad(ctx.saved[0], g, axis=ctx.attrs["axis"]),)


quiet_softmax.batching(leading_axes)


def _check_gradient(output: Meta | Primitive, g: Meta | Primitive, axis: int) -> None:
    check_axis(axis, len(output.shape))
    check_same_shape("g", tuple(g.shape), tuple(output.shape))


def _shifted(ops: OpTable, x: Primitive, axis: int) -> Primitive:
    """`x` minus its maximum along `axis`, whose exponentials cannot overflow."""
    if x.shape[axis] == 0:
        return x
    return ops.subtract(x, ops.max(x, axis=(axis,), keepdims=True))


def _total(ops: OpTable, x: Primitive, axis: int) -> Primitive:
    return ops.sum(x, axis=(axis,), keepdims=True, dtype=ops.dtype(x))
