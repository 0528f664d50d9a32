"""Piecewise activation functions: rectifiers, and clipped and shrunk functions.

Formulas, and the slopes where pieces meet, are those of PyTorch 2 if it has the function.
"""

from __future__ import annotations

from burn.ops._precision import in_float32
from burn.ops.arguments import real_number
from burn.ops.op import Context, Tag, op
from burn.ops.shapes import elementwise
from burn.ops.signature import Cotangent, FloatOperand, Gradients, Meta, Number, Primitive
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
    """Gradient of `relu`: `g` where its output is positive, else 0."""
    return elementwise(output, g)


@relu_grad.decomposition
def _(ops: OpTable, output: Primitive, g: Primitive) -> Primitive:
    return ops.where(ops.greater(output, 0.0), g, 0.0)


@relu_grad.gradient(saves=("output",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    to_g = ops.relu_grad(ctx.saved[0], g)
    return (ops.multiply(to_g, 0.0) if ctx.needs[0] else None), to_g


@op(Tag.ELEMENTWISE)
def leaky_relu(x: FloatOperand, *, negative_slope: Number) -> Meta:
    """Elementwise `x` where it is positive, else ``negative_slope * x``."""
    return x


@leaky_relu.decomposition
def _(ops: OpTable, x: Primitive, *, negative_slope: float) -> Primitive:
    return ops.where(ops.greater(x, 0.0), x, ops.multiply(x, negative_slope))


@leaky_relu.gradient(saves=("x",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    positive = ops.greater(ctx.saved[0], 0.0)
    return (ops.where(positive, g, ops.multiply(g, ctx.attrs["negative_slope"])),)


@op(Tag.ELEMENTWISE)
def prelu(x: FloatOperand, alpha: FloatOperand) -> Meta:
    """Elementwise `x` where it is positive, else ``alpha * x`` (He et al., 2015, arXiv:1502.01852).

    The slopes broadcast with `x`.
    """
    return elementwise(x, alpha)


@prelu.decomposition
def _(ops: OpTable, x: Primitive, alpha: Primitive) -> Primitive:
    return ops.where(ops.greater(x, 0.0), x, ops.multiply(x, alpha))


@prelu.gradient(saves={"x": ("x", "alpha"), "alpha": ("x",)})
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    x, alpha = ctx.saved
    positive = ops.greater(x, 0.0)
    return (
        ops.where(positive, g, ops.multiply(g, alpha)) if ctx.needs[0] else None,
        ops.where(positive, 0.0, ops.multiply(g, x)) if ctx.needs[1] else None,
    )


@op(Tag.ELEMENTWISE)
def elu(x: FloatOperand, *, alpha: Number, scale: Number = 1.0, input_scale: Number = 1.0) -> Meta:
    """Elementwise ``scale * x`` where `x` is positive, else a decaying exponential.

    That is ``scale * alpha * (exp(input_scale * x) - 1)``. Other scales than 1 make of ELU
    (Clevert et al., 2016, arXiv:1511.07289) the functions CELU and SELU.
    """
    return x


@elu.decomposition
@in_float32
def _(
    ops: OpTable, x: Primitive, *, alpha: float, scale: float = 1.0, input_scale: float = 1.0
) -> Primitive:
    decay = ops.multiply(ops.expm1(ops.multiply(x, input_scale)), scale * alpha)
    return ops.where(ops.greater(x, 0.0), ops.multiply(x, scale), decay)


@elu.gradient(saves=("x",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    (x,) = ctx.saved
    scale, input_scale = ctx.attrs.get("scale", 1.0), ctx.attrs.get("input_scale", 1.0)
    # Of negative numbers alone: the exponential of a large one would make NaN of second gradients.
    decay = ops.exp(ops.multiply(ops.minimum(x, 0.0), input_scale))
    slope = ops.multiply(decay, scale * ctx.attrs["alpha"] * input_scale)
    return (ops.multiply(g, ops.where(ops.greater(x, 0.0), scale, slope)),)


@op(Tag.ELEMENTWISE)
def hardtanh(x: FloatOperand, *, low: Number, high: Number) -> Meta:
    """Elementwise `x`, but at least `low` and at most `high`; the slope there is 0.

    It differs from `clip` in the slope at the bounds.
    """
    return x


@hardtanh.requirement
def _(*, low: float, high: float) -> None:
    real_number(high, "high", least=real_number(low, "low"))


@hardtanh.decomposition
def _(ops: OpTable, x: Primitive, *, low: float, high: float) -> Primitive:
    return ops.clip(x, low, high)


@hardtanh.gradient(saves=("x",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    (x,) = ctx.saved
    low, high = ctx.attrs["low"], ctx.attrs["high"]
    inside = ops.bitwise_and(ops.greater(x, low), ops.less(x, high))
    return (ops.where(inside, g, 0.0),)


@op(Tag.ELEMENTWISE)
def hard_sigmoid(x: FloatOperand, *, alpha: Number, beta: Number) -> Meta:
    """Elementwise ``alpha * x + beta``, but at least 0 and at most 1; the slope there is 0."""
    return x


@hard_sigmoid.decomposition
@in_float32
def _(ops: OpTable, x: Primitive, *, alpha: float, beta: float) -> Primitive:
    return ops.clip(ops.add(ops.multiply(x, alpha), beta), 0.0, 1.0)


@hard_sigmoid.gradient(saves=("output",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    (output,) = ctx.saved
    inside = ops.bitwise_and(ops.greater(output, 0.0), ops.less(output, 1.0))
    return (ops.where(inside, ops.multiply(g, ctx.attrs["alpha"]), 0.0),)


@op(Tag.ELEMENTWISE)
def hard_swish(x: FloatOperand) -> Meta:
    """Elementwise ``x * min(max(x / 6 + 1 / 2, 0), 1)`` (Howard et al., 2019, arXiv:1905.02244).

    The slope at -3 is 0, and at 3 it is 1.
    """
    return x


@hard_swish.decomposition
@in_float32
def _(ops: OpTable, x: Primitive) -> Primitive:
    return ops.multiply(x, ops.hard_sigmoid(x, alpha=1.0 / 6.0, beta=0.5))


@hard_swish.gradient(saves=("x",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    (x,) = ctx.saved
    slope = ops.add(ops.multiply(x, 1.0 / 3.0), 0.5)
    slope = ops.where(ops.greater(x, -3.0), slope, 0.0)
    return (ops.multiply(g, ops.where(ops.less(x, 3.0), slope, 1.0)),)


@op(
    Tag.ELEMENTWISE,
    expression="where(abs(x) <= lambd, 0, x - sign(x) * bias)",
)
def shrink(x: FloatOperand, *, lambd: Number, bias: Number = 0.0) -> Meta:
    """Elementwise `x` moved by `bias` towards 0, but 0 within [-lambd, lambd]; NaN propagates."""
    return x


@shrink.requirement
def _(*, lambd: float, bias: float = 0.0) -> None:
    real_number(lambd, "lambd", least=0.0)
    real_number(bias, "bias")


@shrink.decomposition
@in_float32
def _(ops: OpTable, x: Primitive, *, lambd: float, bias: float = 0.0) -> Primitive:
    moved = ops.subtract(x, ops.multiply(ops.sign(x), bias)) if bias else x
    return ops.where(ops.less_equal(ops.abs(x), lambd), 0.0, moved)


@shrink.gradient(saves=("x",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    within = ops.less_equal(ops.abs(ctx.saved[0]), ctx.attrs["lambd"])
    return (ops.where(within, 0.0, g),)


@op(Tag.ELEMENTWISE)
def threshold(x: FloatOperand, *, threshold: Number, value: Number) -> Meta:
    """Elementwise `x` where it is above a threshold, else `value`; NaN propagates."""
    return x


@threshold.decomposition
def _(ops: OpTable, x: Primitive, *, threshold: float, value: float) -> Primitive:
    return ops.where(ops.less_equal(x, threshold), value, x)


@threshold.gradient(saves=("x",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    below = ops.less_equal(ctx.saved[0], ctx.attrs["threshold"])
    return (ops.where(below, 0.0, g),)
