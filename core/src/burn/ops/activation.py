"""Activation functions, each a decomposition with a gradient rule that saves memory or time."""

from __future__ import annotations

import math

from burn.errors import ArgumentError
from burn.ops.op import Context, Tag, op
from burn.ops.precision import in_float32
from burn.ops.shapes import check_axis, elementwise
from burn.ops.signature import Cotangent, FloatOperand, Gradients, Meta, Primitive
from burn.ops.table import OpTable


@op(Tag.ELEMENTWISE)
def relu(x: FloatOperand) -> Meta:
    """Elementwise ``max(x, 0)``; NaN propagates and the slope at 0 is 0."""
    return x


@relu.decomposition
def _(ops: OpTable, x: Primitive) -> Primitive:
    return ops.maximum(x, 0.0)


@relu.gradient(saves=("output",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    return (ops.relu_grad(ctx.saved[0], g),)


@op(Tag.ELEMENTWISE, outputs=("gradient",))
def relu_grad(output: FloatOperand, g: FloatOperand) -> Meta:
    """Gradient that passes a `relu`: `g` where its output is positive, else 0."""
    return elementwise(output, g)


@relu_grad.decomposition
def _(ops: OpTable, output: Primitive, g: Primitive) -> Primitive:
    return ops.where(ops.greater(output, 0.0), g, 0.0)


@relu_grad.gradient(saves=("output",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    to_g = ops.relu_grad(ctx.saved[0], g)
    return (ops.multiply(to_g, 0.0) if ctx.needs[0] else None), to_g


@op(Tag.ELEMENTWISE)
def sigmoid(x: FloatOperand) -> Meta:
    """Elementwise logistic function ``1 / (1 + exp(-x))``."""
    return x


@sigmoid.decomposition
def _(ops: OpTable, x: Primitive) -> Primitive:
    # (1 + tanh(x / 2)) / 2 would lose the small values; exp(-|x|) cannot overflow.
    decay = ops.exp(ops.negative(ops.abs(x)))
    numerator = ops.where(ops.less(x, 0.0), decay, 1.0)
    return ops.divide(numerator, ops.add(decay, 1.0))


@sigmoid.gradient(saves=("output",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    (output,) = ctx.saved
    slope = ops.multiply(output, ops.subtract(1.0, output))
    return (ops.multiply(g, slope),)


@op(Tag.ELEMENTWISE)
def gelu(x: FloatOperand, *, approximate: str = "none") -> Meta:
    """Gaussian error linear unit (Hendrycks and Gimpel, 2016, arXiv:1606.08415).

    ``x * (1 + erf(x / sqrt(2))) / 2``; with ``approximate="tanh"`` their approximation
    ``x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2``.
    """
    _check_approximation(approximate)
    return x


def _check_approximation(approximate: str) -> None:
    if approximate not in ("none", "tanh"):
        raise ArgumentError(f"approximate is {approximate!r}", hint='Use "none" or "tanh"')


_TANH_SCALE = math.sqrt(2.0 / math.pi)
_TANH_CUBIC = 0.044715


def _gelu_inner(ops: OpTable, x: Primitive) -> Primitive:
    cubic = ops.add(ops.multiply(ops.multiply(x, x), _TANH_CUBIC), 1.0)
    return ops.multiply(ops.multiply(x, cubic), _TANH_SCALE)


@gelu.decomposition
@in_float32
def _(ops: OpTable, x: Primitive, *, approximate: str = "none") -> Primitive:
    _check_approximation(approximate)
    if approximate == "tanh":
        bent = ops.tanh(_gelu_inner(ops, x))
    else:
        bent = ops.erf(ops.multiply(x, math.sqrt(0.5)))
    return ops.multiply(ops.multiply(x, 0.5), ops.add(bent, 1.0))


@gelu.gradient(saves=("x",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    (x,) = ctx.saved
    if ctx.attrs.get("approximate", "none") == "tanh":
        t = ops.tanh(_gelu_inner(ops, x))
        steep = ops.add(ops.multiply(ops.multiply(x, x), 3.0 * _TANH_CUBIC), 1.0)
        inner = ops.multiply(ops.multiply(x, steep), 0.5 * _TANH_SCALE)
        bend = ops.multiply(inner, ops.subtract(1.0, ops.multiply(t, t)))
        slope = ops.add(ops.multiply(ops.add(t, 1.0), 0.5), bend)
    else:
        area = ops.multiply(ops.add(ops.erf(ops.multiply(x, math.sqrt(0.5))), 1.0), 0.5)
        bell = ops.exp(ops.multiply(ops.multiply(x, x), -0.5))
        density = ops.multiply(ops.multiply(bell, 1.0 / math.sqrt(2.0 * math.pi)), x)
        slope = ops.add(area, density)
    return (ops.multiply(g, slope),)


@op(Tag.COMPUTE_BOUND)
def softmax(x: FloatOperand, *, axis: int) -> Meta:
    """``exp(x) / sum(exp(x))`` along `axis`, without overflow."""
    check_axis(axis, len(x.shape))
    return x


@softmax.decomposition
@in_float32
def _(ops: OpTable, x: Primitive, *, axis: int) -> Primitive:
    shifted = _shifted(ops, x, axis)
    powers = ops.exp(shifted)
    return ops.divide(powers, _total(ops, powers, axis))


@softmax.gradient(saves=("output",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    (output,) = ctx.saved
    weighted = ops.multiply(g, output)
    mean = _total(ops, weighted, ctx.attrs["axis"])
    return (ops.subtract(weighted, ops.multiply(output, mean)),)


@op(Tag.COMPUTE_BOUND)
def log_softmax(x: FloatOperand, *, axis: int) -> Meta:
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
    (output,) = ctx.saved
    total = _total(ops, g, ctx.attrs["axis"])
    return (ops.subtract(g, ops.multiply(ops.exp(output), total)),)


def _shifted(ops: OpTable, x: Primitive, axis: int) -> Primitive:
    """`x` less its maximum along `axis`, so that its exponentials cannot overflow."""
    if x.shape[axis] == 0:
        return x
    return ops.subtract(x, ops.max(x, axis=(axis,), keepdims=True))


def _total(ops: OpTable, x: Primitive, axis: int) -> Primitive:
    return ops.sum(x, axis=(axis,), keepdims=True, dtype=ops.dtype(x))
