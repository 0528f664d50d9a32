"""Elementwise functions of two or three numbers, and the sign bit that they need."""

from __future__ import annotations

import math

from burn.dtype import DType, Kind, bfloat16, bool_, float16, float32, float64
from burn.ops._precision import in_float32, is_scalar
from burn.ops.op import Context, Tag, op
from burn.ops.shapes import elementwise
from burn.ops.signature import (
    Cotangent,
    FloatOperand,
    FloatOrScalar,
    Gradients,
    Meta,
    NumericOrScalar,
    Primitive,
)
from burn.ops.table import OpTable


def _tensors(ops: OpTable, *operands: Primitive) -> list[Primitive]:
    """The operands, numbers among them as tensors without axes."""
    dtype = ops.dtype(next(operand for operand in operands if not is_scalar(operand)))
    return [
        ops.full(shape=(), fill_value=operand, dtype=dtype) if is_scalar(operand) else operand
        for operand in operands
    ]


@op(
    Tag.ELEMENTWISE | Tag.NO_GRADIENT,
    expression="copysign(1, x) < 0",
)
def signbit(x: FloatOperand) -> Meta:
    """Whether each element is negative, -0.0 included, as bool; of NaN the backend decides."""
    return Meta(x.shape, bool_)


@signbit.decomposition
def _(ops: OpTable, x: Primitive) -> Primitive:
    # The reciprocal tells the zeros apart; that of -inf is a zero itself.
    return ops.bitwise_or(ops.less(x, 0.0), ops.less(ops.divide(1.0, x), 0.0))


@op(Tag.ELEMENTWISE)
def copysign(x1: FloatOrScalar, x2: FloatOrScalar) -> Meta:
    """The magnitude of ``x1`` with the sign of ``x2``, which a zero has too."""
    return elementwise(x1, x2)


@copysign.decomposition
def _(ops: OpTable, x1: Primitive, x2: Primitive) -> Primitive:
    x1, x2 = _tensors(ops, x1, x2)
    magnitude = ops.abs(x1)
    return ops.where(ops.signbit(x2), ops.negative(magnitude), magnitude)


@copysign.gradient(saves={"x1": ("x1", "x2"), "x2": ()})
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    to_first = None
    if ctx.needs[0]:
        x1, x2 = ctx.saved
        sign = math.copysign(1.0, x2) if is_scalar(x2) else ops.copysign(1.0, x2)
        to_first = ops.multiply(g, ops.multiply(ops.sign(x1), sign))
    return to_first, ops.multiply(g, 0.0) if ctx.needs[1] else None


_FORMATS: dict[DType, tuple[int, int]] = {
    float16: (11, -24),
    bfloat16: (8, -133),
    float32: (24, -149),
    float64: (53, -1074),
}
"""Binary digits of a significand, and the exponent of the smallest number above 0."""


@op(Tag.ELEMENTWISE | Tag.NO_GRADIENT | Tag.UNTRACKED)
def nextafter(x1: FloatOrScalar, x2: FloatOrScalar) -> Meta:
    """The next number that the dtype represents after ``x1`` towards ``x2``."""
    return elementwise(x1, x2)


@nextafter.decomposition
def _(ops: OpTable, x1: Primitive, x2: Primitive) -> Primitive:
    """Algorithm 2 of Rump, Zimmermann, Boldo and Melquiond (2009), doi:10.1007/s10543-009-0218-z.

    It adds a little more than half of the distance to the next number and leaves the rest to
    rounding; where that distance would be subnormal, on a scaled number.
    """
    x1, x2 = _tensors(ops, x1, x2)
    digits, smallest = _FORMATS[ops.dtype(x1)]
    unit = 2.0**-digits
    least = math.ldexp(1.0, smallest)
    fraction = unit * (1.0 + 2.0 * unit)
    upwards = ops.less(x1, x2)

    def moved(x: Primitive, distance: Primitive | float) -> Primitive:
        return ops.where(upwards, ops.add(x, distance), ops.subtract(x, distance))

    magnitude = ops.abs(x1)
    scaled = ops.multiply(x1, 1.0 / unit)
    middle = ops.multiply(moved(scaled, ops.multiply(ops.abs(scaled), fraction)), unit)
    large = moved(x1, ops.multiply(magnitude, fraction))
    result = ops.where(ops.less(magnitude, math.ldexp(1.0, smallest + 2 * digits)), middle, large)
    small = moved(x1, least)
    result = ops.where(ops.less(magnitude, math.ldexp(1.0, smallest + digits)), small, result)
    # From infinity the next number is the largest one, which no distance leads to.
    largest = (2.0 - 2.0 * unit) * math.ldexp(1.0, 2 - smallest - digits)
    result = ops.where(ops.equal(magnitude, math.inf), ops.multiply(ops.sign(x1), largest), result)
    result = ops.where(ops.equal(result, 0.0), ops.copysign(result, x1), result)
    result = ops.where(ops.equal(x1, x2), x2, result)
    return ops.where(ops.bitwise_or(ops.isnan(x1), ops.isnan(x2)), ops.add(x1, x2), result)


@op(Tag.ELEMENTWISE)
def atan2(x1: FloatOrScalar, x2: FloatOrScalar) -> Meta:
    """Angle in radians from -pi to pi between the first axis and the point (``x2``, ``x1``)."""
    return elementwise(x1, x2)


@atan2.decomposition
@in_float32
def _(ops: OpTable, x1: Primitive, x2: Primitive) -> Primitive:
    x1, x2 = _tensors(ops, x1, x2)
    y, x = ops.abs(x1), ops.abs(x2)
    long, short = ops.maximum(x, y), ops.minimum(x, y)
    ratio = ops.divide(short, ops.where(ops.equal(long, 0.0), 1.0, long))
    ratio = ops.where(ops.equal(short, math.inf), 1.0, ratio)
    angle = ops.atan(ratio)  # of the first octant; NaN stays NaN
    angle = ops.where(ops.less(x, y), ops.subtract(math.pi / 2, angle), angle)
    angle = ops.where(ops.signbit(x2), ops.subtract(math.pi, angle), angle)
    return ops.copysign(angle, x1)


@atan2.gradient(saves=("x1", "x2"))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    x1, x2 = ctx.saved
    length = ops.hypot(x1, x2)
    length = ops.where(ops.equal(length, 0.0), 1.0, length)
    g = ops.divide(g, length)
    return (
        ops.multiply(g, ops.divide(x2, length)) if ctx.needs[0] else None,
        ops.negative(ops.multiply(g, ops.divide(x1, length))) if ctx.needs[1] else None,
    )


@op(Tag.ELEMENTWISE)
def hypot(x1: FloatOrScalar, x2: FloatOrScalar) -> Meta:
    """``sqrt(x1**2 + x2**2)`` where the squares may be too large or small; inf beside NaN too."""
    return elementwise(x1, x2)


@hypot.decomposition
@in_float32
def _(ops: OpTable, x1: Primitive, x2: Primitive) -> Primitive:
    x1, x2 = map(ops.abs, _tensors(ops, x1, x2))
    infinite = ops.bitwise_or(ops.equal(x1, math.inf), ops.equal(x2, math.inf))
    long, short = ops.maximum(x1, x2), ops.minimum(x1, x2)
    ratio = ops.divide(short, ops.where(ops.equal(long, 0.0), 1.0, long))
    length = ops.multiply(long, ops.sqrt(ops.add(ops.multiply(ratio, ratio), 1.0)))
    return ops.where(infinite, math.inf, length)


@hypot.gradient(saves=("x1", "x2", "output"))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    x1, x2, output = ctx.saved
    g = ops.divide(g, ops.where(ops.equal(output, 0.0), 1.0, output))
    return (
        ops.multiply(g, x1) if ctx.needs[0] else None,
        ops.multiply(g, x2) if ctx.needs[1] else None,
    )


@op(Tag.ELEMENTWISE)
def logaddexp(x1: FloatOrScalar, x2: FloatOrScalar) -> Meta:
    """``log(exp(x1) + exp(x2))`` without overflow."""
    return elementwise(x1, x2)


@logaddexp.decomposition
@in_float32
def _(ops: OpTable, x1: Primitive, x2: Primitive) -> Primitive:
    x1, x2 = _tensors(ops, x1, x2)
    distance = ops.abs(_difference(ops, x1, x2))
    return ops.add(ops.maximum(x1, x2), ops.log1p(ops.exp(ops.negative(distance))))


@logaddexp.gradient(saves=("x1", "x2"))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    difference = _difference(ops, *ctx.saved)
    return (
        ops.multiply(g, ops.sigmoid(difference)) if ctx.needs[0] else None,
        ops.multiply(g, ops.sigmoid(ops.negative(difference))) if ctx.needs[1] else None,
    )


def _difference(ops: OpTable, x1: Primitive, x2: Primitive) -> Primitive:
    """``x1 - x2``, which of two equal infinities is 0."""
    return ops.where(ops.equal(x1, x2), 0.0, ops.subtract(x1, x2))


@op(Tag.ELEMENTWISE)
def fmod(x1: NumericOrScalar, x2: NumericOrScalar) -> Meta:
    """Exact ``x1 - trunc(x1 / x2) * x2``: the sign of the dividend. Integer ``fmod(x, 0)`` is 0."""
    return elementwise(x1, x2)


@fmod.decomposition
def _(ops: OpTable, x1: Primitive, x2: Primitive) -> Primitive:
    x1, x2 = _tensors(ops, x1, x2)
    dtype = ops.dtype(x1)
    if dtype.is_float:
        dividend, divisor = ops.abs(x1), ops.abs(x2)
        rest = ops.remainder(dividend, divisor)
        unchanged = ops.bitwise_and(ops.isfinite(x1), ops.equal(divisor, math.inf))
        return ops.copysign(ops.where(unchanged, dividend, rest), x1)
    rest = ops.remainder(x1, x2)
    if dtype.kind is Kind.UINT:
        return rest
    differ = ops.less(ops.multiply(ops.sign(rest), ops.sign(x1)), 0)
    return ops.where(differ, ops.subtract(rest, x2), rest)


@fmod.gradient(saves={"x1": (), "x2": ("x1", "x2")})
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    if not ctx.needs[1]:
        return g, None
    x1, x2 = ctx.saved
    return g, ops.negative(ops.multiply(g, ops.trunc(ops.divide(x1, x2))))


@op(
    Tag.ELEMENTWISE,
    expression={
        Kind.INT: """
            whole = floor_divide(x1, x2)
            negative = (x1 < 0) != (x2 < 0)
            where(negative & (remainder(x1, x2) != 0), whole + 1, whole)
        """,
        Kind.UINT: "floor_divide(x1, x2)",
        # A whole number but for rounding, as what is divided is a multiple of the divisor.
        Kind.FLOAT: """
            whole = round((x1 - fmod(x1, x2)) / x2)
            where(x2 == 0, x1 / x2, where(whole == 0, copysign(0, x1 / x2), whole))
        """,
    },
)
def trunc_divide(x1: NumericOrScalar, x2: NumericOrScalar) -> Meta:
    """Exact ``x1 / x2``, rounded towards 0. An integer divided by zero gives 0."""
    return elementwise(x1, x2)


@trunc_divide.decomposition
def _(ops: OpTable, x1: Primitive, x2: Primitive) -> Primitive:
    x1, x2 = _tensors(ops, x1, x2)
    dtype = ops.dtype(x1)
    if dtype.is_float:
        quotient = ops.floor_divide(ops.abs(x1), ops.abs(x2))
        sign = ops.multiply(ops.copysign(1.0, x1), ops.copysign(1.0, x2))
        return ops.copysign(quotient, sign)
    quotient = ops.floor_divide(x1, x2)
    if dtype.kind is Kind.UINT:
        return quotient
    # The floor is below the quotient where that is negative, unless they are equal.
    negative = ops.bitwise_xor(ops.less(x1, 0), ops.less(x2, 0))
    differ = ops.bitwise_and(negative, ops.not_equal(ops.remainder(x1, x2), 0))
    return ops.add(quotient, ops.cast(differ, dtype=dtype))


@trunc_divide.gradient()
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    zero = ops.multiply(g, 0.0)
    return zero, zero


@op(Tag.ELEMENTWISE)
def heaviside(x1: FloatOrScalar, x2: FloatOrScalar) -> Meta:
    """0 where ``x1`` is negative, 1 where it is positive, ``x2`` where it is 0; NaN of NaN."""
    return elementwise(x1, x2)


@heaviside.decomposition
def _(ops: OpTable, x1: Primitive, x2: Primitive) -> Primitive:
    x1, x2 = _tensors(ops, x1, x2)
    step = ops.where(ops.less(x1, 0.0), 0.0, ops.where(ops.greater(x1, 0.0), 1.0, x1))
    return ops.where(ops.equal(x1, 0.0), x2, step)


@heaviside.gradient(saves={"x1": (), "x2": ("x1",)})
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    to_second = None
    if ctx.needs[1]:
        (x1,) = ctx.saved
        if is_scalar(x1):
            to_second = g if x1 == 0 else ops.multiply(g, 0.0)
        else:
            to_second = ops.where(ops.equal(x1, 0.0), g, 0.0)
    return ops.multiply(g, 0.0), to_second


@op(Tag.ELEMENTWISE)
def xlogy(x1: FloatOrScalar, x2: FloatOrScalar) -> Meta:
    """``x1 * log(x2)``, which is 0 where ``x1`` is, whatever number ``x2`` is."""
    return elementwise(x1, x2)


@xlogy.decomposition
@in_float32
def _(ops: OpTable, x1: Primitive, x2: Primitive) -> Primitive:
    x1, x2 = _tensors(ops, x1, x2)
    return ops.multiply(x1, ops.log(_logarithm_operand(ops, x1, x2)))


def _logarithm_operand(ops: OpTable, x1: Primitive, x2: Primitive) -> Primitive:
    """``x2``, but 1 where its logarithm is not finite and ``x1`` is 0."""
    is_limit = ops.bitwise_or(ops.less_equal(x2, 0.0), ops.equal(x2, math.inf))
    return ops.where(ops.bitwise_and(ops.equal(x1, 0.0), is_limit), 1.0, x2)


@xlogy.gradient(saves=("x1", "x2"))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    x1, x2 = _tensors(ops, *ctx.saved)
    operand = _logarithm_operand(ops, x1, x2)
    return (
        ops.multiply(g, ops.log(operand)) if ctx.needs[0] else None,
        ops.multiply(g, ops.divide(x1, operand)) if ctx.needs[1] else None,
    )


@op(Tag.ELEMENTWISE)
def lerp(start: FloatOrScalar, end: FloatOrScalar, weight: FloatOrScalar) -> Meta:
    """``start + weight * (end - start)``, which is exactly ``end`` for a weight of 1."""
    return elementwise(start, end, weight)


@lerp.decomposition
@in_float32
def _(ops: OpTable, start: Primitive, end: Primitive, weight: Primitive) -> Primitive:
    start, end, weight = _tensors(ops, start, end, weight)
    difference = ops.subtract(end, start)
    from_start = ops.add(start, ops.multiply(weight, difference))
    from_end = ops.subtract(end, ops.multiply(ops.subtract(1.0, weight), difference))
    return ops.where(ops.less(ops.abs(weight), 0.5), from_start, from_end)


@lerp.gradient(saves={"start": ("weight",), "end": ("weight",), "weight": ("start", "end")})
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    start, end, weight = ctx.saved
    to_start = to_weight = None
    if ctx.needs[0]:
        rest = 1.0 - weight if is_scalar(weight) else ops.subtract(1.0, weight)
        to_start = ops.multiply(g, rest)
    if ctx.needs[2]:
        both = is_scalar(start) and is_scalar(end)
        to_weight = ops.multiply(g, end - start if both else ops.subtract(end, start))
    return to_start, ops.multiply(g, weight) if ctx.needs[1] else None, to_weight
