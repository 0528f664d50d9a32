"""Elementwise functions of one float tensor, each with its derivative.

Formulas of derivatives and identities: NIST Digital Library of Mathematical Functions
(https://dlmf.nist.gov), chapter 4 (elementary functions).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from burn.ops._precision import for_reals, in_float32
from burn.ops.op import Context, Op, Tag, register, rename_function
from burn.ops.signature import Cotangent, FloatOperand, Gradients, InexactOperand, Meta, Primitive
from burn.ops.table import OpTable

Formula: TypeAlias = Callable[[OpTable, Primitive], Primitive]


def elementwise_function(
    name: str,
    doc: str,
    *,
    of: str,
    slope: Formula,
    default: Formula | None = None,
    takes_complex: bool = True,
) -> Op:
    """Define an elementwise float op whose derivative is ``slope`` of its input or output."""
    definition = register(Op(_rule(name, doc, takes_complex=takes_complex), Tag.ELEMENTWISE))
    if default is not None:
        definition.decomposition(for_reals(in_float32(default)))

    rename_function(slope, f"{name}.slope")

    @definition.gradient(saves=(of,))
    def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
        return (ops.multiply(g, slope(ops, ctx.saved[0])),)

    return definition


def _rule(name: str, doc: str, *, takes_complex: bool) -> Callable[[Meta], Meta]:
    """The shape and dtype rule of an elementwise op whose output is like its operand."""

    def rule(x: InexactOperand) -> Meta:
        return x

    def rule_of_reals(x: FloatOperand) -> Meta:
        return x

    chosen = rule if takes_complex else rule_of_reals
    chosen.__name__ = name
    chosen.__doc__ = doc
    return chosen


def _step(
    name: str, doc: str, *, default: Formula | None = None, takes_complex: bool = False
) -> Op:
    """Define an elementwise float op that is constant but for jumps, with gradient 0."""
    definition = register(Op(_rule(name, doc, takes_complex=takes_complex), Tag.ELEMENTWISE))
    if default is not None:
        definition.decomposition(default)

    @definition.gradient()
    def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
        return (ops.multiply(g, 0.0),)

    return definition


def _one_minus_square(ops: OpTable, y: Primitive) -> Primitive:
    return ops.subtract(1.0, ops.multiply(y, y))


def _one_plus_square(ops: OpTable, y: Primitive) -> Primitive:
    return ops.add(ops.multiply(y, y), 1.0)


exp = elementwise_function(
    "exp",
    "Elementwise exponential ``e ** x``.",
    of="output",
    slope=lambda _, y: y,
)


def _expm1(ops: OpTable, x: Primitive) -> Primitive:
    # e**x - 1 = 2 t / (1 - t) with t = tanh(x / 2) (DLMF 4.35.E22) keeps every digit near 0;
    # elsewhere the difference itself does. The argument is clipped so that 0 * inf cannot arise.
    near = ops.clip(x, -1.0, 1.0)
    t = ops.tanh(ops.multiply(near, 0.5))
    small = ops.divide(ops.multiply(t, 2.0), ops.subtract(1.0, t))
    return ops.where(ops.equal(near, x), small, ops.subtract(ops.exp(x), 1.0))


expm1 = elementwise_function(
    "expm1",
    "Elementwise ``e ** x - 1``, exact near 0.",
    of="output",
    slope=lambda ops, y: ops.add(y, 1.0),
    default=_expm1,
)
exp2 = elementwise_function(
    "exp2",
    "Elementwise power ``2 ** x``.",
    of="output",
    slope=lambda ops, y: ops.multiply(y, math.log(2.0)),
    default=lambda ops, x: ops.pow(2.0, x),
    takes_complex=False,
)
log = elementwise_function(
    "log",
    "Elementwise natural logarithm. 0 gives -inf, a negative number NaN.",
    of="x",
    slope=lambda ops, x: ops.divide(1.0, x),
)
log1p = elementwise_function(
    "log1p",
    "Elementwise ``log(1 + x)``, exact near 0.",
    of="x",
    slope=lambda ops, x: ops.divide(1.0, ops.add(x, 1.0)),
)
log2 = elementwise_function(
    "log2",
    "Elementwise logarithm to the base 2.",
    of="x",
    slope=lambda ops, x: ops.divide(1.0 / math.log(2.0), x),
    default=lambda ops, x: ops.multiply(ops.log(x), 1.0 / math.log(2.0)),
)
log10 = elementwise_function(
    "log10",
    "Elementwise logarithm to the base 10.",
    of="x",
    slope=lambda ops, x: ops.divide(1.0 / math.log(10.0), x),
    default=lambda ops, x: ops.multiply(ops.log(x), 1.0 / math.log(10.0)),
)
sqrt = elementwise_function(
    "sqrt",
    "Elementwise square root. A negative number gives NaN.",
    of="output",
    slope=lambda ops, y: ops.divide(0.5, y),
)
rsqrt = elementwise_function(
    "rsqrt",
    "Elementwise ``1 / sqrt(x)``. 0 gives inf, a negative number NaN.",
    of="output",
    slope=lambda ops, y: ops.multiply(ops.multiply(y, ops.multiply(y, y)), -0.5),
    default=lambda ops, x: ops.divide(1.0, ops.sqrt(x)),
    takes_complex=False,
)
cbrt = elementwise_function(
    "cbrt",
    "Elementwise cube root, which of a negative number is negative.",
    of="output",
    slope=lambda ops, y: ops.divide(1.0 / 3.0, ops.multiply(y, y)),
    default=lambda ops, x: ops.copysign(ops.pow(ops.abs(x), 1.0 / 3.0), x),
    takes_complex=False,
)
sin = elementwise_function(
    "sin",
    "Elementwise sine of radians.",
    of="x",
    slope=lambda ops, x: ops.cos(x),
)
cos = elementwise_function(
    "cos",
    "Elementwise cosine of radians.",
    of="x",
    slope=lambda ops, x: ops.negative(ops.sin(x)),
)
tan = elementwise_function(
    "tan",
    "Elementwise tangent of radians.",
    of="output",
    slope=_one_plus_square,
    default=lambda ops, x: ops.divide(ops.sin(x), ops.cos(x)),
)
tanh = elementwise_function(
    "tanh",
    "Elementwise hyperbolic tangent.",
    of="output",
    slope=_one_minus_square,
)


def _half_of_exp_and_inverse(ops: OpTable, x: Primitive) -> tuple[Primitive, Primitive]:
    """Half of ``e**x`` and half of ``e**-x``, overflowing no sooner than their sum does."""
    half = ops.exp(ops.multiply(x, 0.5))
    inverse = ops.exp(ops.multiply(x, -0.5))
    return (
        ops.multiply(ops.multiply(half, 0.5), half),
        ops.multiply(ops.multiply(inverse, 0.5), inverse),
    )


def _sinh(ops: OpTable, x: Primitive) -> Primitive:
    # With u = e**x - 1: sinh x = (u + u / (u + 1)) / 2 near 0, where the difference cancels.
    near = ops.clip(x, -1.0, 1.0)
    u = ops.expm1(near)
    small = ops.multiply(ops.add(u, ops.divide(u, ops.add(u, 1.0))), 0.5)
    return ops.where(ops.equal(near, x), small, ops.subtract(*_half_of_exp_and_inverse(ops, x)))


sinh = elementwise_function(
    "sinh",
    "Elementwise hyperbolic sine.",
    of="x",
    slope=lambda ops, x: ops.cosh(x),
    default=_sinh,
)
cosh = elementwise_function(
    "cosh",
    "Elementwise hyperbolic cosine.",
    of="x",
    slope=lambda ops, x: ops.sinh(x),
    default=lambda ops, x: ops.add(*_half_of_exp_and_inverse(ops, x)),
)


def _one_minus_square_root(ops: OpTable, x: Primitive) -> Primitive:
    """``sqrt(1 - x**2)`` without cancellation near 1."""
    return ops.sqrt(ops.multiply(ops.subtract(1.0, x), ops.add(x, 1.0)))


asin = elementwise_function(
    "asin",
    "Elementwise inverse sine in radians. Beyond [-1, 1] it is NaN.",
    of="x",
    slope=lambda ops, x: ops.divide(1.0, _one_minus_square_root(ops, x)),
    default=lambda ops, x: ops.atan(ops.divide(x, _one_minus_square_root(ops, x))),
)
acos = elementwise_function(
    "acos",
    "Elementwise inverse cosine in radians. Beyond [-1, 1] it is NaN.",
    of="x",
    slope=lambda ops, x: ops.divide(-1.0, _one_minus_square_root(ops, x)),
    # acos x = 2 atan(sqrt((1 - x) / (1 + x))), DLMF 4.23 with half angles: exact at both ends.
    default=lambda ops, x: ops.multiply(
        ops.atan(ops.sqrt(ops.divide(ops.subtract(1.0, x), ops.add(x, 1.0)))), 2.0
    ),
)
atan = elementwise_function(
    "atan",
    "Elementwise inverse tangent in radians.",
    of="x",
    slope=lambda ops, x: ops.divide(1.0, _one_plus_square(ops, x)),
)


def _asinh(ops: OpTable, x: Primitive) -> Primitive:
    # With a = |x|: log1p(a + a**2 / (1 + sqrt(1 + a**2))) up to 1, where nothing cancels, and
    # log(a) + log1p(sqrt(1 + 1 / a**2)) above, where nothing overflows.
    a = ops.abs(x)
    near = ops.minimum(a, 1.0)
    square = ops.multiply(near, near)
    root = ops.sqrt(ops.add(square, 1.0))
    small = ops.log1p(ops.add(near, ops.divide(square, ops.add(root, 1.0))))
    far = ops.maximum(a, 1.0)
    root = ops.sqrt(_one_plus_square(ops, ops.divide(1.0, far)))
    large = ops.add(ops.log(far), ops.log1p(root))
    return ops.copysign(ops.where(ops.equal(near, a), small, large), x)


def _acosh(ops: OpTable, x: Primitive) -> Primitive:
    # With d = x - 1: log1p(d + sqrt(d (d + 2))) up to 2, log(x) + log1p(sqrt(1 - 1 / x**2)) above.
    near = ops.minimum(x, 2.0)
    d = ops.subtract(near, 1.0)
    small = ops.log1p(ops.add(d, ops.sqrt(ops.multiply(d, ops.add(d, 2.0)))))
    far = ops.maximum(x, 2.0)
    root = ops.sqrt(_one_minus_square(ops, ops.divide(1.0, far)))
    large = ops.add(ops.log(far), ops.log1p(root))
    return ops.where(ops.equal(near, x), small, large)


def _atanh(ops: OpTable, x: Primitive) -> Primitive:
    # Of |x|: towards -1 the argument of the logarithm would cancel.
    a = ops.abs(x)
    ratio = ops.divide(ops.multiply(a, 2.0), ops.subtract(1.0, a))
    return ops.copysign(ops.multiply(ops.log1p(ratio), 0.5), x)


asinh = elementwise_function(
    "asinh",
    "Elementwise inverse hyperbolic sine.",
    of="x",
    slope=lambda ops, x: ops.divide(1.0, ops.sqrt(_one_plus_square(ops, x))),
    default=_asinh,
)
acosh = elementwise_function(
    "acosh",
    "Elementwise inverse hyperbolic cosine. Below 1 it is NaN.",
    of="x",
    slope=lambda ops, x: ops.divide(
        1.0, ops.sqrt(ops.multiply(ops.subtract(x, 1.0), ops.add(x, 1.0)))
    ),
    default=_acosh,
)
atanh = elementwise_function(
    "atanh",
    "Elementwise inverse hyperbolic tangent. Beyond [-1, 1] it is NaN.",
    of="x",
    slope=lambda ops, x: ops.divide(1.0, _one_minus_square(ops, x)),
    default=_atanh,
)


def _logit(ops: OpTable, x: Primitive) -> Primitive:
    # Near 1/2 the quotient is near 1, where its logarithm has few digits.
    near = ops.clip(x, 0.25, 0.75)
    odds = ops.subtract(ops.multiply(near, 2.0), 1.0)
    middle = ops.subtract(ops.log1p(odds), ops.log1p(ops.negative(odds)))
    outer = ops.log(ops.divide(x, ops.subtract(1.0, x)))
    return ops.where(ops.equal(near, x), middle, outer)


logit = elementwise_function(
    "logit",
    "Elementwise ``log(x / (1 - x))``: the inverse of `sigmoid`. Beyond [0, 1] it is NaN.",
    of="x",
    slope=lambda ops, x: ops.divide(1.0, ops.multiply(x, ops.subtract(1.0, x))),
    default=_logit,
    takes_complex=False,
)

floor = _step("floor", "Elementwise largest integer not above x.")
ceil = _step(
    "ceil",
    "Elementwise smallest integer not below x.",
    default=lambda ops, x: ops.negative(ops.floor(ops.negative(x))),
)
trunc = _step(
    "trunc",
    "Elementwise nearest integer towards 0.",
    default=lambda ops, x: ops.where(ops.less(x, 0.0), ops.ceil(x), ops.floor(x)),
)
round = _step(
    "round",
    "Elementwise nearest integer; halves go to the even one. Complex numbers round by their parts.",
    takes_complex=True,
)
