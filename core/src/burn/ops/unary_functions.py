"""Elementwise functions of one float tensor, each with its derivative.

Formulas of derivatives and identities: NIST Digital Library of Mathematical Functions
(https://dlmf.nist.gov), chapters 4 (elementary functions) and 7 (error function).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from burn.ops._precision import for_reals, in_float32
from burn.ops.op import Context, Op, Tag, register, rename_function
from burn.ops.signature import Cotangent, FloatOperand, Gradients, InexactOperand, Meta, Primitive
from burn.ops.table import OpTable

Formula: TypeAlias = Callable[[OpTable, Primitive], Primitive]


def _function(
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


exp = _function(
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


expm1 = _function(
    "expm1",
    "Elementwise ``e ** x - 1``, exact near 0.",
    of="output",
    slope=lambda ops, y: ops.add(y, 1.0),
    default=_expm1,
)
log = _function(
    "log",
    "Elementwise natural logarithm. 0 gives -inf, a negative number NaN.",
    of="x",
    slope=lambda ops, x: ops.divide(1.0, x),
)
log1p = _function(
    "log1p",
    "Elementwise ``log(1 + x)``, exact near 0.",
    of="x",
    slope=lambda ops, x: ops.divide(1.0, ops.add(x, 1.0)),
)
log2 = _function(
    "log2",
    "Elementwise logarithm to the base 2.",
    of="x",
    slope=lambda ops, x: ops.divide(1.0 / math.log(2.0), x),
    default=lambda ops, x: ops.multiply(ops.log(x), 1.0 / math.log(2.0)),
)
log10 = _function(
    "log10",
    "Elementwise logarithm to the base 10.",
    of="x",
    slope=lambda ops, x: ops.divide(1.0 / math.log(10.0), x),
    default=lambda ops, x: ops.multiply(ops.log(x), 1.0 / math.log(10.0)),
)
sqrt = _function(
    "sqrt",
    "Elementwise square root. A negative number gives NaN.",
    of="output",
    slope=lambda ops, y: ops.divide(0.5, y),
)
sin = _function(
    "sin",
    "Elementwise sine of radians.",
    of="x",
    slope=lambda ops, x: ops.cos(x),
)
cos = _function(
    "cos",
    "Elementwise cosine of radians.",
    of="x",
    slope=lambda ops, x: ops.negative(ops.sin(x)),
)
tan = _function(
    "tan",
    "Elementwise tangent of radians.",
    of="output",
    slope=_one_plus_square,
    default=lambda ops, x: ops.divide(ops.sin(x), ops.cos(x)),
)
tanh = _function(
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


sinh = _function(
    "sinh",
    "Elementwise hyperbolic sine.",
    of="x",
    slope=lambda ops, x: ops.cosh(x),
    default=_sinh,
)
cosh = _function(
    "cosh",
    "Elementwise hyperbolic cosine.",
    of="x",
    slope=lambda ops, x: ops.sinh(x),
    default=lambda ops, x: ops.add(*_half_of_exp_and_inverse(ops, x)),
)


def _one_minus_square_root(ops: OpTable, x: Primitive) -> Primitive:
    """``sqrt(1 - x**2)`` without cancellation near 1."""
    return ops.sqrt(ops.multiply(ops.subtract(1.0, x), ops.add(x, 1.0)))


asin = _function(
    "asin",
    "Elementwise inverse sine in radians. Beyond [-1, 1] it is NaN.",
    of="x",
    slope=lambda ops, x: ops.divide(1.0, _one_minus_square_root(ops, x)),
    default=lambda ops, x: ops.atan(ops.divide(x, _one_minus_square_root(ops, x))),
)
acos = _function(
    "acos",
    "Elementwise inverse cosine in radians. Beyond [-1, 1] it is NaN.",
    of="x",
    slope=lambda ops, x: ops.divide(-1.0, _one_minus_square_root(ops, x)),
    # acos x = 2 atan(sqrt((1 - x) / (1 + x))), DLMF 4.23 with half angles: exact at both ends.
    default=lambda ops, x: ops.multiply(
        ops.atan(ops.sqrt(ops.divide(ops.subtract(1.0, x), ops.add(x, 1.0)))), 2.0
    ),
)
atan = _function(
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


asinh = _function(
    "asinh",
    "Elementwise inverse hyperbolic sine.",
    of="x",
    slope=lambda ops, x: ops.divide(1.0, ops.sqrt(_one_plus_square(ops, x))),
    default=_asinh,
)
acosh = _function(
    "acosh",
    "Elementwise inverse hyperbolic cosine. Below 1 it is NaN.",
    of="x",
    slope=lambda ops, x: ops.divide(
        1.0, ops.sqrt(ops.multiply(ops.subtract(x, 1.0), ops.add(x, 1.0)))
    ),
    default=_acosh,
)
atanh = _function(
    "atanh",
    "Elementwise inverse hyperbolic tangent. Beyond [-1, 1] it is NaN.",
    of="x",
    slope=lambda ops, x: ops.divide(1.0, _one_minus_square(ops, x)),
    default=_atanh,
)

_ERF_SERIES: Final = (
    0.9754769393826541,
    -0.14226120510371365,
    0.010035582187599796,
    -0.0005768764699767485,
    2.741993125219606e-05,
    -1.1043175507344507e-06,
    3.8488755420345036e-08,
    -1.1808582533875466e-09,
    3.2334215826050907e-11,
    -7.991015947004549e-13,
    1.7990725113961456e-14,
    -3.718635487818693e-16,
    7.103599003714253e-18,
)
"""Chebyshev coefficients in ``2 x**2 - 1`` of ``erf(x) / x`` on [-1, 1]."""

_ERFC_SERIES: Final = (
    1.1775789345674017,
    -0.004590054580646478,
    -0.08424913336651792,
    0.05920993999819189,
    -0.026658668435305753,
    0.009074997670705265,
    -0.002413163540417608,
    0.0004907758365258086,
    -6.916973302501207e-05,
    4.13902798607301e-06,
    7.74038306619849e-07,
    -2.1886401049234397e-07,
    1.076499946567091e-08,
    4.521959811218287e-09,
    -7.754400208831351e-10,
    -6.318088340886684e-11,
    2.86879501093067e-11,
    1.9455868545777347e-13,
    -9.65469674843344e-13,
    3.25254814814874e-14,
    3.3478119482868056e-14,
    -1.864562880419313e-15,
    -1.2507950530688648e-15,
    7.418235256624044e-17,
    5.068148904796111e-17,
    -2.2370566594359995e-18,
    -2.187342944303018e-18,
)
"""Chebyshev coefficients in ``(x - 3.75) / (x + 3.75)`` of ``(1 + 2 x) exp(x**2) erfc(x)``, x >= 1.

The variable is that of M. M. Shepherd and J. G. Laframboise, "Chebyshev approximation of
(1 + 2x) exp(x**2) erfc x in 0 <= x < infinity", Mathematics of Computation 36 (1981).
"""


def _chebyshev(ops: OpTable, t: Primitive, series: Sequence[float]) -> Primitive:
    """Sum of a Chebyshev series by Clenshaw's recurrence."""
    twice = ops.multiply(t, 2.0)
    later = ops.multiply(t, 0.0)
    current = ops.add(later, series[-1])
    for coefficient in reversed(series[1:-1]):
        current, later = (
            ops.add(ops.subtract(ops.multiply(twice, current), later), coefficient),
            current,
        )
    return ops.add(ops.subtract(ops.multiply(t, current), later), series[0])


def _erf(ops: OpTable, x: Primitive) -> Primitive:
    a = ops.minimum(ops.abs(x), 6.0)  # erf(6) is 1 in float64
    near = ops.clip(x, -1.0, 1.0)
    t = ops.subtract(ops.multiply(ops.multiply(near, near), 2.0), 1.0)
    small = ops.multiply(near, _chebyshev(ops, t, _ERF_SERIES))
    far = ops.maximum(a, 1.0)
    t = ops.divide(ops.subtract(far, 3.75), ops.add(far, 3.75))
    tail = ops.multiply(
        _chebyshev(ops, t, _ERFC_SERIES), ops.exp(ops.negative(ops.multiply(far, far)))
    )
    tail = ops.divide(tail, ops.add(ops.multiply(far, 2.0), 1.0))
    large = ops.multiply(ops.sign(x), ops.subtract(1.0, tail))
    return ops.where(ops.equal(near, x), small, large)


erf = _function(
    "erf",
    "Elementwise error function: ``2 / sqrt(pi)`` times the integral of ``exp(-t**2)`` up to x.",
    of="x",
    slope=lambda ops, x: ops.multiply(
        ops.exp(ops.negative(ops.multiply(x, x))), 2.0 / math.sqrt(math.pi)
    ),
    default=_erf,
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
