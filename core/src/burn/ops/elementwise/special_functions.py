"""Special functions of one float tensor: error functions, gamma functions and Bessel functions.

Formulas: NIST Digital Library of Mathematical Functions (https://dlmf.nist.gov), chapters 5 (gamma
function), 7 (error functions), 10 (Bessel functions) and 25 (zeta function).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from burn.ops._precision import in_float32
from burn.ops.arguments import as_integer
from burn.ops.elementwise._special_series import (
    BERNOULLI,
    BINET,
    DIGAMMA,
    ERF,
    ERFC,
    I0_LARGE,
    I0_SMALL,
    I1_LARGE,
    I1_SMALL,
    LGAMMA,
    QUANTILE,
)
from burn.ops.elementwise.unary_functions import elementwise_function
from burn.ops.op import Context, Tag, op
from burn.ops.signature import Cotangent, FloatOperand, Gradients, Integer, Meta, Primitive
from burn.ops.table import OpTable

_FAR: Final = 28.0
"""From here on erfc is 0 in float64."""

_CENTRAL: Final = 0.85
_FAR_RADIUS: Final = 5.0
"""Root of the negative logarithm of the tail beyond a quantile, from where on it is far out."""

_LARGEST_ORDER: Final = 25
"""Of a derivative of digamma: beyond it, constants of its formulas overflow in float32."""


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


def _polynomial(ops: OpTable, x: Primitive, coefficients: Sequence[float]) -> Primitive:
    """By Horner's rule; the coefficient of the highest power, which is not the only one, is first.

    The first one may be infinite times 0: `x` is finite where the result is used.
    """
    value = ops.multiply(x, coefficients[0])
    for coefficient in coefficients[1:-1]:
        value = ops.multiply(ops.add(value, coefficient), x)
    return ops.add(value, coefficients[-1])


def _inside(ops: OpTable, x: Primitive) -> tuple[Primitive, Primitive]:
    """`x` clipped to [-1, 1], and its error function there."""
    near = ops.clip(x, -1.0, 1.0)
    t = ops.subtract(ops.multiply(ops.multiply(near, near), 2.0), 1.0)
    return near, ops.multiply(near, _chebyshev(ops, t, ERF))


def _tail(ops: OpTable, x: Primitive) -> Primitive:
    """The complementary error function of magnitudes above 1, and NaN of NaN."""
    far = ops.clip(ops.abs(x), 1.0, _FAR)
    t = ops.divide(ops.subtract(far, 3.75), ops.add(far, 3.75))
    # exp(-far**2) of two exponents: the first one is exact, so that no digit of the square is lost.
    high = ops.multiply(ops.floor(ops.multiply(far, 16.0)), 1.0 / 16.0)
    rest = ops.multiply(ops.subtract(far, high), ops.add(far, high))
    power = ops.multiply(
        ops.exp(ops.negative(ops.multiply(high, high))), ops.exp(ops.negative(rest))
    )
    scale = ops.add(ops.multiply(far, 2.0), 1.0)
    return ops.divide(ops.multiply(_chebyshev(ops, t, ERFC), power), scale)


def _erf(ops: OpTable, x: Primitive) -> Primitive:
    near, small = _inside(ops, x)
    large = ops.multiply(ops.sign(x), ops.subtract(1.0, _tail(ops, x)))
    return ops.where(ops.equal(near, x), small, large)


def _erfc(ops: OpTable, x: Primitive) -> Primitive:
    near, small = _inside(ops, x)
    tail = _tail(ops, x)
    large = ops.where(ops.less(x, 0.0), ops.subtract(2.0, tail), tail)
    return ops.where(ops.equal(near, x), ops.subtract(1.0, small), large)


def _erf_slope(ops: OpTable, x: Primitive) -> Primitive:
    return ops.multiply(ops.exp(ops.negative(ops.multiply(x, x))), 2.0 / math.sqrt(math.pi))


erf = elementwise_function(
    "erf",
    "Elementwise error function: ``2 / sqrt(pi)`` times the integral of ``exp(-t**2)`` up to x.",
    of="x",
    slope=_erf_slope,
    default=_erf,
    takes_complex=False,
)
erfc = elementwise_function(
    "erfc",
    "Elementwise ``1 - erf(x)``, whose digits are exact where it is small.",
    of="x",
    slope=lambda ops, x: ops.negative(_erf_slope(ops, x)),
    default=_erfc,
    takes_complex=False,
)


def _erfinv(ops: OpTable, x: Primitive) -> Primitive:
    """Algorithm AS 241 of M. J. Wichura (Applied Statistics 37, 1988), divided by ``sqrt(2)``.

    It has the normal quantile at ``(1 + x) / 2``, in float64 to 1e-15 of the value.
    """
    central, outer, farthest = QUANTILE

    def ratio(of: tuple[Sequence[float], Sequence[float]], at: Primitive) -> Primitive:
        return ops.divide(_polynomial(ops, at, of[0]), _polynomial(ops, at, of[1]))

    square = ops.multiply(ops.multiply(x, x), 0.25)
    quantile = ops.multiply(ops.multiply(x, 0.5), ratio(central, ops.subtract(0.180625, square)))
    magnitude = ops.abs(x)
    radius = ops.sqrt(ops.negative(ops.log(ops.multiply(ops.subtract(1.0, magnitude), 0.5))))
    tail = ratio(outer, ops.subtract(radius, 1.6))
    far = ratio(farthest, ops.subtract(radius, _FAR_RADIUS))
    tail = ops.where(ops.greater(radius, _FAR_RADIUS), far, tail)
    tail = ops.where(ops.equal(magnitude, 1.0), math.inf, tail)
    tail = ops.copysign(tail, x)
    quantile = ops.where(ops.less_equal(magnitude, _CENTRAL), quantile, tail)
    return ops.multiply(quantile, math.sqrt(0.5))


erfinv = elementwise_function(
    "erfinv",
    "Elementwise inverse of `erf`: at -1 and 1 it is infinite, beyond them NaN.",
    of="output",
    slope=lambda ops, y: ops.multiply(ops.exp(ops.multiply(y, y)), math.sqrt(math.pi) / 2.0),
    default=_erfinv,
    takes_complex=False,
)


def _angle(ops: OpTable, x: Primitive) -> Primitive:
    """Of ``pi * x`` the rest beyond a multiple of pi, without a rounding of the multiple."""
    return ops.multiply(ops.subtract(x, ops.round(x)), math.pi)


def _is_whole(ops: OpTable, x: Primitive) -> Primitive:
    """Whether a number is an integer, or infinite."""
    return ops.equal(ops.floor(x), x)


def _lgamma(ops: OpTable, x: Primitive) -> Primitive:
    a = ops.abs(x)
    below = ops.less(a, 1.0)
    # Below 1 of a + 1, less log(a). There (z - 1) (z - 2) is a (a - 1).
    z = ops.where(below, ops.add(a, 1.0), a)
    near = ops.minimum(z, 2.5)
    first = ops.where(below, a, ops.subtract(near, 1.0))
    t = ops.divide(ops.subtract(near, 1.75), 0.75)
    small = ops.multiply(ops.multiply(first, ops.subtract(first, 1.0)), _chebyshev(ops, t, LGAMMA))
    # Stirling's formula, in which Binet's function is the rest.
    far = ops.maximum(z, 2.5)
    inverse = ops.divide(1.0, far)
    t = ops.subtract(ops.multiply(ops.multiply(inverse, inverse), 12.5), 1.0)
    large = ops.multiply(ops.subtract(far, 0.5), ops.subtract(ops.log(far), 1.0))
    large = ops.add(large, 0.5 * math.log(2.0 * math.pi) - 0.5)
    large = ops.add(large, ops.multiply(inverse, _chebyshev(ops, t, BINET)))
    value = ops.where(ops.equal(near, z), small, large)
    value = ops.subtract(value, ops.log(ops.minimum(a, 1.0)))
    # gamma(x) gamma(-x) = -pi / (x sin(pi x)), DLMF 5.5
    sine = ops.abs(ops.sin(_angle(ops, a)))
    logarithms = ops.add(ops.log(a), ops.log(sine))
    reflected = ops.subtract(ops.subtract(math.log(math.pi), logarithms), value)
    reflected = ops.where(_is_whole(ops, a), math.inf, reflected)
    return ops.where(ops.less(x, 0.0), reflected, value)


lgamma = elementwise_function(
    "lgamma",
    "Elementwise logarithm of the magnitude of the gamma function; at its poles it is infinite.",
    of="x",
    slope=lambda ops, x: ops.digamma(x),
    default=_lgamma,
    takes_complex=False,
)


def _digamma(ops: OpTable, x: Primitive) -> Primitive:
    a = ops.abs(x)
    below = ops.less(a, 1.0)
    z = ops.where(below, ops.add(a, 1.0), a)
    inverse = ops.divide(1.0, z)
    t = ops.subtract(1.0, ops.divide(4.0, ops.add(z, 1.0)))
    rest = ops.multiply(ops.multiply(inverse, inverse), _chebyshev(ops, t, DIGAMMA))
    value = ops.subtract(ops.subtract(ops.log(z), ops.multiply(inverse, 0.5)), rest)
    # digamma(a + 1) = digamma(a) + 1 / a, and digamma(-a) = digamma(a + 1) + pi / tan(pi a)
    positive = ops.where(below, ops.subtract(value, ops.divide(1.0, x)), value)
    angle = _angle(ops, a)
    cotangent = ops.divide(ops.multiply(ops.cos(angle), math.pi), ops.sin(angle))
    negative = ops.add(ops.where(below, value, ops.add(value, inverse)), cotangent)
    negative = ops.where(_is_whole(ops, a), math.nan, negative)
    return ops.where(ops.less(x, 0.0), negative, positive)


digamma = elementwise_function(
    "digamma",
    "Elementwise derivative of `lgamma`: at 0 -inf, at -0 inf, at negative integers NaN.",
    of="x",
    slope=lambda ops, x: ops.polygamma(x, n=1),
    default=_digamma,
    takes_complex=False,
)


@op(Tag.ELEMENTWISE)
def polygamma(x: FloatOperand, *, n: Integer) -> Meta:
    """The n-th derivative of `digamma`: at its poles inf for an odd n, else -inf."""
    return x


@polygamma.requirement
def _(*, n: int) -> None:
    as_integer(n, "n", least=0, most=_LARGEST_ORDER)


@polygamma.decomposition
@in_float32
def _(ops: OpTable, x: Primitive, *, n: int) -> Primitive:
    """``(-1)**(n + 1) * n!`` times Hurwitz's zeta function of n + 1 (DLMF 25.11.12)."""
    if n == 0:
        return ops.digamma(x)
    sign = 1.0 if n % 2 else -1.0
    is_negative = ops.less(x, 0.0)
    a = ops.abs(ops.where(is_negative, ops.subtract(1.0, x), x))
    value = _zeta(ops, a, n)
    # Reflection (DLMF 5.15.6): the n-th derivative of pi / tan(pi x) is a polynomial of 1 / tan.
    angle = _angle(ops, x)
    cotangent = ops.divide(ops.cos(angle), ops.sin(angle))
    slope = ops.multiply(_polynomial(ops, cotangent, _slopes_of_cotangent(n)), math.pi ** (n + 1))
    value = ops.where(is_negative, ops.subtract(slope, ops.multiply(value, sign)), value)
    value = ops.where(ops.bitwise_and(_is_whole(ops, x), ops.less_equal(x, 0.0)), math.inf, value)
    return ops.multiply(value, sign)


def _zeta(ops: OpTable, a: Primitive, n: int) -> Primitive:
    """``n! * zeta(n + 1, a)``: terms of its series, and the others by the Euler-Maclaurin formula.

    The factorial is in the bases of the powers, which overflow no sooner than their products.
    """
    factorial = math.factorial(n)
    s = n + 1
    count = 10 + n
    scale = factorial ** (-1.0 / s)
    total = ops.pow(ops.multiply(a, scale), -float(s))
    for index in range(1, count):
        total = ops.add(total, ops.pow(ops.multiply(ops.add(a, float(index)), scale), -float(s)))
    end = ops.add(a, float(count))
    inverse = ops.divide(1.0, end)
    rising, coefficients = float(s), []
    for order, bernoulli in enumerate(BERNOULLI):
        coefficients.append(bernoulli * rising)
        rising *= (s + 2 * order + 1) * (s + 2 * order + 2)
    square = ops.multiply(inverse, inverse)
    rest = ops.multiply(_polynomial(ops, square, coefficients[::-1]), inverse)
    rest = ops.add(ops.multiply(ops.add(rest, 0.5), inverse), 1.0 / n)
    power = ops.pow(ops.multiply(end, factorial ** (-1.0 / n)), -float(n))
    return ops.add(total, ops.multiply(power, rest))


def _slopes_of_cotangent(n: int) -> list[float]:
    """The n-th derivative of the cotangent c, up to its sign: coefficients of powers of c.

    The first one is of the highest power. The derivative of c is ``-(1 + c**2)``.
    """
    powers = [0, 1]
    for _ in range(n):
        slopes = [order * power for order, power in enumerate(powers)][1:]
        powers = [*slopes, 0, 0]
        for order, slope in enumerate(slopes):
            powers[order + 2] += slope
    return [float(power) for power in powers[::-1]]


@polygamma.gradient(saves=("x",))
def _(ops: OpTable, ctx: Context, g: Cotangent) -> Gradients:
    return (ops.multiply(g, ops.polygamma(ctx.saved[0], n=ctx.attrs["n"] + 1)),)


def _bessel(
    ops: OpTable, a: Primitive, small: Sequence[float], large: Sequence[float], *, odd: bool
) -> Primitive:
    """A modified Bessel function of magnitudes, from its series up to 8 and beyond."""
    near = ops.minimum(a, 8.0)
    inside = _chebyshev(ops, ops.subtract(ops.multiply(near, 0.25), 1.0), small)
    inside = ops.multiply(ops.multiply(inside, near) if odd else inside, ops.exp(near))
    far = ops.clip(a, 8.0, 1000.0)  # of which the power is infinite in float64
    outside = _chebyshev(ops, ops.subtract(ops.divide(16.0, far), 1.0), large)
    half = ops.exp(ops.multiply(far, 0.5))
    outside = ops.multiply(ops.multiply(half, ops.divide(outside, ops.sqrt(far))), half)
    return ops.where(ops.equal(near, a), inside, outside)


i0 = elementwise_function(
    "i0",
    "Elementwise modified Bessel function of the first kind, of order 0.",
    of="x",
    slope=lambda ops, x: ops.i1(x),
    default=lambda ops, x: _bessel(ops, ops.abs(x), I0_SMALL, I0_LARGE, odd=False),
    takes_complex=False,
)


def _i1_slope(ops: OpTable, x: Primitive) -> Primitive:
    is_zero = ops.equal(x, 0.0)
    ratio = ops.divide(ops.i1(x), ops.where(is_zero, 1.0, x))
    return ops.subtract(ops.i0(x), ops.where(is_zero, 0.5, ratio))


i1 = elementwise_function(
    "i1",
    "Elementwise modified Bessel function of the first kind, of order 1: the derivative of `i0`.",
    of="x",
    slope=_i1_slope,
    default=lambda ops, x: ops.copysign(_bessel(ops, ops.abs(x), I1_SMALL, I1_LARGE, odd=True), x),
    takes_complex=False,
)


@op(Tag.ELEMENTWISE)
def sinc(x: FloatOperand) -> Meta:
    """Elementwise ``sin(pi * x) / (pi * x)``, which is 1 at 0.

    It has no gradient rule: the gradients of its decomposition hold, at 0 those of all orders.
    """
    return x


@sinc.decomposition
@in_float32
def _(ops: OpTable, x: Primitive) -> Primitive:
    near = ops.clip(x, -0.25, 0.25)
    square = ops.square(ops.multiply(near, math.pi))
    series = [(-1.0) ** order / math.factorial(2 * order + 1) for order in range(10)]
    small = _polynomial(ops, square, series[::-1])
    # The sine has the period 2, of whole numbers, in which nothing is rounded.
    rest = ops.subtract(x, ops.multiply(ops.round(ops.multiply(x, 0.5)), 2.0))
    is_near = ops.equal(near, x)
    divisor = ops.where(is_near, 1.0, ops.multiply(x, math.pi))
    large = ops.divide(ops.sin(ops.multiply(rest, math.pi)), divisor)
    return ops.where(is_near, small, large)
