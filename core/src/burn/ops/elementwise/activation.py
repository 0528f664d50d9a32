"""Smooth activation functions, each with a gradient rule that saves memory or time.

Piecewise ones are in `burn.ops.elementwise.rectifier`, those of whole rows in
`burn.ops.networks.softmax`.
"""

from __future__ import annotations

import math
from typing import Annotated, Final, Literal, TypeAlias

from burn.errors import ArgumentError, ShapeError
from burn.ops._precision import in_float32
from burn.ops.arguments import real_number
from burn.ops.batching import leading_axes
from burn.ops.index_arithmetic import narrow
from burn.ops.op import Context, Tag, op
from burn.ops.shapes import check_axis, elementwise
from burn.ops.signature import (
    Axis,
    Cotangent,
    FloatOperand,
    Gradients,
    Meta,
    Number,
    Primitive,
    Role,
)
from burn.ops.table import OpTable
from burn.public_calls import shown_value


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
def softplus(x: FloatOperand, *, beta: Number = 1.0) -> Meta:
    """Elementwise ``log(1 + exp(beta * x)) / beta``, without overflow; `beta` is positive."""
    return x


@softplus.requirement
def _(*, beta: float = 1.0) -> None:
    real_number(beta, "beta", above=0.0, below=math.inf)


@softplus.decomposition
@in_float32
def _(ops: OpTable, x: Primitive, *, beta: float = 1.0) -> Primitive:
    rest = ops.log1p(ops.exp(ops.multiply(ops.abs(x), -beta)))
    return ops.add(ops.maximum(x, 0.0), ops.divide(rest, beta))


@softplus.gradient(saves=("x",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    scaled = ops.multiply(ctx.saved[0], ctx.attrs.get("beta", 1.0))
    return (ops.multiply(g, ops.sigmoid(scaled)),)


@op(Tag.ELEMENTWISE)
def log_sigmoid(x: FloatOperand) -> Meta:
    """Elementwise ``log(sigmoid(x))``, without overflow and exact far from 0."""
    return x


@log_sigmoid.decomposition
@in_float32
def _(ops: OpTable, x: Primitive) -> Primitive:
    rest = ops.log1p(ops.exp(ops.negative(ops.abs(x))))
    return ops.subtract(ops.minimum(x, 0.0), rest)


@log_sigmoid.gradient(saves=("x",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    return (ops.multiply(g, ops.sigmoid(ops.negative(ctx.saved[0]))),)


@op(Tag.ELEMENTWISE)
def silu(x: FloatOperand) -> Meta:
    """Elementwise ``x * sigmoid(x)``, also known as swish."""
    return x


@silu.decomposition
@in_float32
def _(ops: OpTable, x: Primitive) -> Primitive:
    return ops.multiply(x, ops.sigmoid(x))


@silu.gradient(saves=("x",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    (x,) = ctx.saved
    s = ops.sigmoid(x)
    bend = ops.multiply(x, ops.subtract(1.0, s))
    return (ops.multiply(g, ops.multiply(s, ops.add(bend, 1.0))),)


@op(Tag.ELEMENTWISE)
def mish(x: FloatOperand) -> Meta:
    """Elementwise ``x * tanh(softplus(x))`` (Misra, 2019, arXiv:1908.08681)."""
    return x


@mish.decomposition
@in_float32
def _(ops: OpTable, x: Primitive) -> Primitive:
    # The tangent of log(1 + exp(x)), which is 1 for all x above 30.
    growth = ops.exp(ops.minimum(x, 30.0))
    n = ops.multiply(growth, ops.add(growth, 2.0))
    return ops.multiply(x, ops.divide(n, ops.add(n, 2.0)))


@mish.gradient(saves=("x",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    (x,) = ctx.saved
    t = ops.tanh(ops.softplus(x))
    bend = ops.multiply(ops.multiply(x, ops.sigmoid(x)), ops.subtract(1.0, ops.multiply(t, t)))
    return (ops.multiply(g, ops.add(t, bend)),)


Approximation: TypeAlias = Annotated[Literal["none", "tanh"], Role.CHOICE]


@op(Tag.ELEMENTWISE)
def gelu(x: FloatOperand, *, approximate: Approximation = "none") -> Meta:
    """Gaussian error linear unit (Hendrycks and Gimpel, 2016, arXiv:1606.08415).

    ``x * (1 + erf(x / sqrt(2))) / 2``; with ``approximate="tanh"`` their approximation
    ``x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2``.
    """
    return x


def _check_approximation(approximate: str) -> None:
    if approximate not in ("none", "tanh"):
        raise ArgumentError(
            f"approximate is {shown_value(approximate)}", hint='Use "none" or "tanh"'
        )


_TANH_SCALE: Final = math.sqrt(2.0 / math.pi)
_TANH_CUBIC: Final = 0.044715


def _gelu_gate(ops: OpTable, x: Primitive) -> Primitive:
    # (1 + tanh(y)) / 2 is sigmoid(2 y), which is exact where it is small.
    cubic = ops.add(ops.multiply(ops.multiply(x, x), _TANH_CUBIC), 1.0)
    return ops.sigmoid(ops.multiply(ops.multiply(x, cubic), 2.0 * _TANH_SCALE))


@gelu.decomposition
@in_float32
def _(ops: OpTable, x: Primitive, *, approximate: str = "none") -> Primitive:
    _check_approximation(approximate)
    if approximate == "tanh":
        return ops.multiply(x, _gelu_gate(ops, x))
    curve = ops.erf(ops.multiply(x, math.sqrt(0.5)))
    return ops.multiply(ops.multiply(x, 0.5), ops.add(curve, 1.0))


@gelu.gradient(saves=("x",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    return (ops.gelu_grad(ctx.saved[0], g, **ctx.attrs),)


@op(Tag.ELEMENTWISE, outputs=("gradient",))
def gelu_grad(x: FloatOperand, g: FloatOperand, *, approximate: Approximation = "none") -> Meta:
    """Gradient of `gelu`: `g` times the derivative of the exact or the approximate form."""
    return elementwise(x, g)


@gelu_grad.decomposition
@in_float32
def _(ops: OpTable, x: Primitive, g: Primitive, *, approximate: str = "none") -> Primitive:
    _check_approximation(approximate)
    if approximate == "tanh":
        gate = _gelu_gate(ops, x)
        steep = ops.add(ops.multiply(ops.multiply(x, x), 3.0 * _TANH_CUBIC), 1.0)
        inner = ops.multiply(ops.multiply(x, steep), 2.0 * _TANH_SCALE)
        bend = ops.multiply(ops.multiply(inner, gate), ops.subtract(1.0, gate))
        slope = ops.add(gate, bend)
    else:
        area = ops.multiply(ops.add(ops.erf(ops.multiply(x, math.sqrt(0.5))), 1.0), 0.5)
        bell = ops.exp(ops.multiply(ops.multiply(x, x), -0.5))
        density = ops.multiply(ops.multiply(bell, 1.0 / math.sqrt(2.0 * math.pi)), x)
        slope = ops.add(area, density)
    return ops.multiply(g, slope)


@op(Tag.ELEMENTWISE)
def softsign(x: FloatOperand) -> Meta:
    """Elementwise ``x / (1 + abs(x))``."""
    return x


@softsign.decomposition
@in_float32
def _(ops: OpTable, x: Primitive) -> Primitive:
    return ops.divide(x, ops.add(ops.abs(x), 1.0))


@softsign.gradient(saves=("x",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    width = ops.add(ops.abs(ctx.saved[0]), 1.0)
    return (ops.divide(ops.divide(g, width), width),)


@op(Tag.ELEMENTWISE)
def tanhshrink(x: FloatOperand) -> Meta:
    """Elementwise ``x - tanh(x)``."""
    return x


@tanhshrink.decomposition
@in_float32
def _(ops: OpTable, x: Primitive) -> Primitive:
    return ops.subtract(x, ops.tanh(x))


@tanhshrink.gradient(saves=("x",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    t = ops.tanh(ctx.saved[0])
    return (ops.multiply(g, ops.multiply(t, t)),)


@op()
def glu(x: FloatOperand, *, axis: Axis) -> Meta:
    """Gated linear unit (Dauphin et al., 2017, arXiv:1612.08083).

    The first half of `x` along `axis` times the sigmoid of the second half.
    """
    half = _half(x, axis)
    return Meta((*x.shape[:axis], half, *x.shape[axis + 1 :]), x.dtype)


@glu.decomposition
@in_float32
def _(ops: OpTable, x: Primitive, *, axis: int) -> Primitive:
    half = _half(x, axis)
    gate = ops.sigmoid(narrow(ops, x, axis, half, half))
    return ops.multiply(narrow(ops, x, axis, 0, half), gate)


@glu.gradient(saves=("x",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    (x,) = ctx.saved
    axis = ctx.attrs["axis"]
    half = _half(x, axis)
    gate = ops.sigmoid(narrow(ops, x, axis, half, half))
    opened = ops.multiply(g, gate)
    bend = ops.multiply(narrow(ops, x, axis, 0, half), ops.subtract(1.0, gate))
    return (ops.concat([opened, ops.multiply(opened, bend)], axis=axis),)


glu.batching(leading_axes)


def _half(x: Meta | Primitive, axis: int) -> int:
    """Half of the length of an axis."""
    check_axis(axis, len(x.shape))
    length = int(x.shape[axis])
    if length % 2:
        raise ShapeError(
            f"axis {axis} of {tuple(x.shape)} has no halves: its length is {length}",
            hint="Half of the axis are values, the other half are gates: its length must be even",
        )
    return length // 2
