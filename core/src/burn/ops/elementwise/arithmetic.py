"""Arithmetic of two tensors, or of a tensor and a number."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from burn.dtype import Kind
from burn.errors import ArgumentError
from burn.ops._precision import for_reals, in_float32, is_scalar
from burn.ops.op import Context, Tag, op
from burn.ops.shapes import elementwise
from burn.ops.signature import (
    Cotangent,
    FloatOperand,
    Gradients,
    InexactOperand,
    InexactOrScalar,
    Meta,
    Number,
    NumberOperand,
    NumberOrScalar,
    NumericOperand,
    NumericOrScalar,
    Primitive,
)
from burn.ops.table import OpTable

Compare: TypeAlias = Callable[[Primitive, Primitive], Primitive]


@op(Tag.ELEMENTWISE)
def add(x1: NumberOrScalar, x2: NumberOrScalar) -> Meta:
    """Elementwise sum ``x1 + x2``. Integers wrap around."""
    return elementwise(x1, x2)


@add.gradient()
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    return g, g


@op(Tag.ELEMENTWISE)
def subtract(x1: NumberOrScalar, x2: NumberOrScalar) -> Meta:
    """Elementwise difference ``x1 - x2``. Integers wrap around."""
    return elementwise(x1, x2)


@subtract.gradient()
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    return g, ops.negative(g) if ctx.needs[1] else None


@op(Tag.ELEMENTWISE)
def multiply(x1: NumberOrScalar, x2: NumberOrScalar) -> Meta:
    """Elementwise product ``x1 * x2``. Integers wrap around."""
    return elementwise(x1, x2)


@multiply.gradient(saves={"x1": ("x2",), "x2": ("x1",)})
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    x1, x2 = ctx.saved
    return (
        ops.multiply(g, x2) if ctx.needs[0] else None,
        ops.multiply(g, x1) if ctx.needs[1] else None,
    )


@op(Tag.ELEMENTWISE)
def axpby(x1: FloatOperand, x2: FloatOperand, *, a: Number, b: Number) -> Meta:
    """Elementwise linear combination ``x1 * a + x2 * b``: the axpby of BLAS."""
    return elementwise(x1, x2)


@axpby.decomposition
@in_float32
def _(ops: OpTable, x1: Primitive, x2: Primitive, *, a: float, b: float) -> Primitive:
    return ops.add(ops.multiply(x1, a), ops.multiply(x2, b))


@axpby.gradient()
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    return (
        ops.multiply(g, ctx.attrs["a"]) if ctx.needs[0] else None,
        ops.multiply(g, ctx.attrs["b"]) if ctx.needs[1] else None,
    )


@op(Tag.ELEMENTWISE)
def divide(x1: InexactOrScalar, x2: InexactOrScalar) -> Meta:
    """Elementwise quotient ``x1 / x2``, following IEEE 754 where ``x2`` is zero."""
    return elementwise(x1, x2)


@divide.gradient(saves={"x1": ("x2",), "x2": ("x2", "output")})
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    x2, output = ctx.saved
    quotient = ops.divide(g, x2)
    return (
        quotient if ctx.needs[0] else None,
        ops.negative(ops.multiply(quotient, output)) if ctx.needs[1] else None,
    )


@op(
    Tag.ELEMENTWISE,
    expression={
        # The floor of the exact quotient, computed as NumPy does it.
        Kind.FLOAT: """
            rest = fmod(x1, x2)
            ratio = (x1 - rest) / x2
            below = where((rest != 0) & ((rest < 0) != (x2 < 0)), ratio - 1, ratio)
            whole = floor(below)
            result = where(below - whole > 0.5, whole + 1, whole)
            where(x2 == 0, x1 / x2, where(below == 0, copysign(0, x1 / x2), result))
        """,
    },
)
def floor_divide(x1: NumericOrScalar, x2: NumericOrScalar) -> Meta:
    """Largest integer not above ``x1 / x2``. An integer divided by zero gives 0."""
    return elementwise(x1, x2)


@floor_divide.gradient()
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    zero = ops.multiply(g, 0.0)
    return zero, zero


@op(Tag.ELEMENTWISE)
def remainder(x1: NumericOrScalar, x2: NumericOrScalar) -> Meta:
    """Elementwise ``x1 - floor(x1 / x2) * x2``: the sign of the divisor. Integer ``x % 0`` is 0."""
    return elementwise(x1, x2)


@remainder.gradient(saves={"x1": (), "x2": ("x1", "x2")})
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    if not ctx.needs[1]:
        return g, None
    x1, x2 = ctx.saved
    return g, ops.negative(ops.multiply(g, ops.floor_divide(x1, x2)))


@op(Tag.ELEMENTWISE)
def pow(x1: NumberOrScalar, x2: NumberOrScalar) -> Meta:
    """Elementwise power ``x1 ** x2``.

    Integers are exact and wrap around. A negative integer exponent held by a tensor gives the
    truncated reciprocal: 0, 1 or -1 (0 for the base 0).
    """
    return elementwise(x1, x2)


@pow.number_requirement(Kind.INTEGER)
def _(x1: Primitive, x2: Primitive) -> None:
    if is_scalar(x2) and x2 < 0:
        raise ArgumentError(
            f"an integer to the power {x2} is no integer",
            hint="Convert the tensor to a float dtype first",
        )


@pow.gradient(saves={"x1": ("x1", "x2"), "x2": ("x1", "output")})
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    base, exponent, output = ctx.saved
    to_base = to_exponent = None
    if ctx.needs[0]:
        to_base = ops.multiply(g, _power_slope(ops, base, exponent))
    if ctx.needs[1]:
        # d/dy x**y = x**y log x, which is 0 where x is 0: take the logarithm of 1 there.
        if is_scalar(base):
            logarithm = math.log(base or 1.0) if base >= 0 else math.nan
        else:
            logarithm = ops.log(ops.where(ops.equal(base, 0.0), 1.0, base))
        to_exponent = ops.multiply(g, ops.multiply(output, logarithm))
    return to_base, to_exponent


def _power_slope(ops: OpTable, base: Primitive, exponent: Primitive) -> Primitive:
    """Derivative of ``base ** exponent`` by the base, which is 0 where the exponent is 0."""
    if not is_scalar(exponent):
        lowered = ops.where(ops.equal(exponent, 0.0), 1.0, ops.subtract(exponent, 1.0))
        return ops.multiply(exponent, ops.pow(base, lowered))
    if exponent == 0:
        return 0.0
    if exponent == 2:
        return ops.multiply(base, 2.0)
    return ops.multiply(ops.pow(base, exponent - 1.0), exponent)


@op(Tag.ELEMENTWISE)
def maximum(x1: NumericOrScalar, x2: NumericOrScalar) -> Meta:
    """Elementwise larger value. NaN propagates; equal operands share the gradient."""
    return elementwise(x1, x2)


@maximum.decomposition
def _(ops: OpTable, x1: Primitive, x2: Primitive) -> Primitive:
    return _choose(ops, ops.less, x1, x2)


@maximum.gradient(saves=("x1", "x2"))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    return _share(ops, ops.less, ctx, g)


@op(Tag.ELEMENTWISE)
def minimum(x1: NumericOrScalar, x2: NumericOrScalar) -> Meta:
    """Elementwise smaller value. NaN propagates; equal operands share the gradient."""
    return elementwise(x1, x2)


@minimum.decomposition
def _(ops: OpTable, x1: Primitive, x2: Primitive) -> Primitive:
    return _choose(ops, ops.greater, x1, x2)


@minimum.gradient(saves=("x1", "x2"))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    return _share(ops, ops.greater, ctx, g)


def _choose(ops: OpTable, loses: Compare, x1: Primitive, x2: Primitive) -> Primitive:
    """The operand that does not lose, or the one that is NaN."""
    if is_scalar(x2):
        x1, x2 = x2, x1
    take_second = ops.bitwise_or(loses(x1, x2), ops.not_equal(x2, x2))
    return ops.where(take_second, x2, x1)


def _share(ops: OpTable, loses: Compare, ctx: Context, g: Cotangent) -> Gradients:
    x1, x2 = ctx.saved
    to_second = ops.where(ops.equal(x1, x2), ops.multiply(g, 0.5), ops.where(loses(x1, x2), g, 0.0))
    return ops.subtract(g, to_second) if ctx.needs[0] else None, to_second


@op(Tag.ELEMENTWISE)
def clip(x: NumericOperand, low: NumericOrScalar, high: NumericOrScalar) -> Meta:
    """Elementwise ``minimum(maximum(x, low), high)``; at a bound the gradient is that of `x`."""
    return elementwise(x, low, high)


@clip.decomposition
def _(ops: OpTable, x: Primitive, low: Primitive, high: Primitive) -> Primitive:
    return ops.minimum(ops.maximum(x, low), high)


@clip.gradient(saves=("x", "low", "high"))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    x, low, high = ctx.saved
    # Where the bounds cross, the upper one wins whatever x is.
    above = ops.greater(ops.maximum(x, low), high)
    below = ops.bitwise_and(ops.less(x, low), ops.bitwise_not(above))
    inside = ops.bitwise_not(ops.bitwise_or(below, above))
    return (
        ops.where(inside, g, 0.0),
        ops.where(below, g, 0.0) if ctx.needs[1] else None,
        ops.where(above, g, 0.0) if ctx.needs[2] else None,
    )


@op(Tag.ELEMENTWISE)
def negative(x: NumberOperand) -> Meta:
    """Elementwise ``-x``. Integers wrap around."""
    return x


@negative.decomposition
def _(ops: OpTable, x: Primitive) -> Primitive:
    # 0 - x would lose the sign of zero; -1 does not fit an unsigned dtype.
    return ops.subtract(0, x) if ops.dtype(x).kind is Kind.UINT else ops.multiply(x, -1)


@negative.gradient()
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    return (ops.negative(g),)


@op(Tag.ELEMENTWISE | Tag.SELECTION)
def abs(x: NumberOperand) -> Meta:
    """Elementwise absolute value, of a complex number its magnitude.

    The smallest integer of a signed dtype stays itself.
    """
    return Meta(x.shape, x.dtype.component)


@abs.gradient(saves=("x",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    (x,) = ctx.saved
    return (ops.multiply(g, ops.sign(x)),)


@op(
    Tag.ELEMENTWISE,
    expression={
        Kind.FLOAT: "where(x > 0, 1, where(x < 0, -1, where(x == 0, 0, x)))",
        Kind.INT: "where(x > 0, 1, where(x < 0, -1, 0))",
        Kind.UINT: "where(x > 0, 1, 0)",
    },
)
def sign(x: NumberOperand) -> Meta:
    """Elementwise sign: -1, 0 or 1; NaN stays NaN. Of a complex number ``x / abs(x)``, or 0."""
    return x


@sign.decomposition
@for_reals
def _(ops: OpTable, x: Primitive) -> Primitive:
    dtype = ops.dtype(x)
    signs = ops.subtract(
        ops.cast(ops.greater(x, 0), dtype=dtype), ops.cast(ops.less(x, 0), dtype=dtype)
    )
    return ops.where(ops.equal(x, x), signs, x) if dtype.is_float else signs


@sign.gradient()
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    return (ops.multiply(g, 0.0),)


@op(Tag.ELEMENTWISE)
def square(x: NumberOperand) -> Meta:
    """Elementwise ``x * x``."""
    return x


@square.decomposition
def _(ops: OpTable, x: Primitive) -> Primitive:
    return ops.multiply(x, x)


@square.gradient(saves=("x",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    (x,) = ctx.saved
    return (ops.multiply(g, ops.multiply(x, 2.0)),)


@op(Tag.ELEMENTWISE)
def reciprocal(x: InexactOperand) -> Meta:
    """Elementwise ``1 / x``."""
    return x


@reciprocal.decomposition
def _(ops: OpTable, x: Primitive) -> Primitive:
    return ops.divide(1.0, x)


@reciprocal.gradient(saves=("output",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    (output,) = ctx.saved
    return (ops.negative(ops.multiply(g, ops.multiply(output, output))),)
