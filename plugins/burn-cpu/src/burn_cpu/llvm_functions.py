"""Scalar functions in LLVM: polynomials that work on vectors, and calls of the C library.

Polynomials for float32 are those of S. Moshier's Cephes library, that of `tanh` is Eigen's.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from burn.plugin_api import float32, float64
from burn_cpu import erf
from burn_cpu.constants import EXP_COEFFICIENTS

if TYPE_CHECKING:
    from burn_cpu.llvm_text import Value
    from burn_cpu.llvm_writer import LlvmWriter

__all__ = ["LIBRARY", "of_floats"]

_NAMES: Final = (
    "fmod",
    "pow",
    "atan2",
    "hypot",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "expm1",
    "log",
    "log1p",
    "log2",
    "log10",
    "erf",
)

LIBRARY: Final = tuple([name + suffix for name in _NAMES for suffix in ("", "f")])
"""Functions of the C library that code may call."""


class _Floats:
    """Arithmetic on values of one type."""

    def __init__(self, writer: LlvmWriter, like: Value) -> None:
        self.writer = writer
        self.type = like.type
        self.bits = "i32" if like.type == "float" else "i64"
        self.lanes = like.lanes

    def number(self, value: float) -> Value:
        return self.writer.pooled(value, self.type, self.lanes)

    def integer(self, value: int) -> Value:
        return self.writer.constant(value, self.bits, self.lanes)

    def add(self, a: Value, b: Value | float) -> Value:
        return self._binary("fadd contract", a, b)

    def subtract(self, a: Value, b: Value | float) -> Value:
        return self._binary("fsub contract", a, b)

    def multiply(self, a: Value, b: Value | float) -> Value:
        return self._binary("fmul contract", a, b)

    def product(self, *factors: Value) -> Value:
        """A product that nothing contracts."""
        return functools.reduce(functools.partial(self._binary, "fmul"), factors)

    def divide(self, a: Value, b: Value) -> Value:
        return self._binary("fdiv", a, b)

    def _binary(self, instruction: str, a: Value, b: Value | float) -> Value:
        other = self.number(b) if isinstance(b, (int, float)) else b
        return self.writer.binary(instruction, a, other)

    def test(self, condition: str, a: Value, b: Value | float) -> Value:
        other = self.number(b) if isinstance(b, (int, float)) else b
        return self.writer.compare(f"fcmp {condition}", a, other)

    def select(self, condition: Value, a: Value | float, b: Value | float) -> Value:
        both = [
            self.number(tensor) if isinstance(tensor, (int, float)) else tensor for tensor in (a, b)
        ]
        return self.writer.select(condition, *both)

    def abs(self, x: Value) -> Value:
        return self.writer.intrinsic("fabs", x)

    def as_bits(self, x: Value) -> Value:
        return self.writer.convert("bitcast", x, self.bits)

    def of_bits(self, x: Value) -> Value:
        return self.writer.convert("bitcast", x, self.type)

    def within(self, x: Value, low: float, high: float) -> Value:
        """A value not below and not above bounds; NaN is kept."""
        x = self.select(self.test("olt", x, low), low, x)
        return self.select(self.test("ogt", x, high), high, x)

    def polynomial(self, x: Value, coefficients: Sequence[float]) -> Value:
        """By Horner's rule, the highest power first."""
        result = self.number(coefficients[0])
        for coefficient in coefficients[1:]:
            result = self.add(self.multiply(result, x), coefficient)
        return result


_EXP_64: Final = tuple(1.0 / math.factorial(n) for n in range(13, 1, -1))
"""`EXP_COEFFICIENTS` in float64: of the Taylor series."""


_LANES_AVX512: Final = 16


def _exp(f: _Floats, x: Value) -> Value:
    """``2**n * exp(t)``, where t is at most log(2) / 2; 2**n in two factors, as n may be large."""
    w = f.writer
    if f.type == "float":
        low, high, magic, bias, width = -104.0, 89.0, 12582912.0, 127, 23
        parts, coefficients = (0.693359375, -2.12194440e-4), EXP_COEFFICIENTS
    else:
        low, high, magic, bias, width = -746.0, 710.0, 6755399441055744.0, 1023, 52
        parts, coefficients = (6.93145751953125e-1, 1.42860682030941723212e-6), _EXP_64
    t = f.within(x, low, high)
    # Adding a large number rounds to an integer, which then is in the lowest bits.
    shifted = f.add(f.multiply(t, math.log2(math.e)), magic)
    whole = f.subtract(shifted, magic)
    for part in parts:
        t = f.subtract(t, f.multiply(whole, part))
    power = f.polynomial(t, coefficients)
    power = f.add(f.add(f.multiply(f.multiply(power, t), t), t), 1.0)
    if f.type == "float" and f.lanes == w.lanes == _LANES_AVX512:  # it has an instruction for it
        arguments = f"{power.typed}, {whole.typed}, {power.typed}, i16 -1, i32 4"
        return w.call("llvm.x86.avx512.mask.scalef.ps.512", arguments, "float", f.lanes)
    n = w.binary("sub", f.as_bits(shifted), f.as_bits(f.number(magic)))
    half = w.binary("ashr", n, f.integer(1))
    for exponent in (half, w.binary("sub", n, half)):
        biased = w.binary("add", exponent, f.integer(bias))
        power = f.multiply(power, f.of_bits(w.binary("shl", biased, f.integer(width))))
    return power


def _expm1(f: _Floats, x: Value) -> Value:
    coefficients = EXP_COEFFICIENTS if f.type == "float" else _EXP_64
    small = f.add(f.multiply(f.multiply(f.polynomial(x, coefficients), x), x), x)
    small = f.select(f.test("oeq", x, 0.0), x, small)  # the sign of a zero
    return f.select(f.test("olt", f.abs(x), 0.34), small, f.subtract(_exp(f, x), 1.0))


_LOG: Final = (7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1,
               1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1,
               3.3333331174e-1)  # fmt: skip


_LOG_64: Final = (1.479819860511658591e-1, 1.531383769920937332e-1, 1.818357216161805012e-1,
                  2.222219843214978396e-1, 2.857142874366239149e-1, 3.999999999940941908e-1,
                  6.666666666666735130e-1)  # fmt: skip
"""Of ``(log(1 + t) - log(1 - t)) / t - 2`` by t**2, as in FreeBSD's ``e_log.c``."""


def _log(f: _Floats, x: Value) -> Value:
    """Of ``2**n * m`` with m near 1 it is ``n * log(2) + log(m)``."""
    w, is_single = f.writer, f.type == "float"
    width, least = (23, 1.17549435e-38) if is_single else (52, 2.2250738585072014e-308)
    half_root = 0x3F3504F3 if is_single else 0x3FE6A09E667F3BCD  # the bits of the root of 1 / 2
    tiny = f.test("olt", x, least)  # subnormal numbers are scaled
    scaled = f.select(tiny, f.multiply(x, 2.0**width), x)
    bits = f.as_bits(scaled)
    above = w.binary("sub", bits, f.integer(half_root))
    exponent = w.binary("ashr", above, f.integer(width))
    mantissa = f.of_bits(w.binary("sub", bits, w.binary("shl", exponent, f.integer(width))))
    whole = w.convert("sitofp", exponent, f.type)
    whole = f.subtract(whole, f.select(tiny, float(width), 0.0))
    t = f.subtract(mantissa, 1.0)
    square = f.multiply(t, t)
    if is_single:
        rest = f.multiply(f.multiply(f.polynomial(t, _LOG), t), square)
        rest = f.add(rest, f.multiply(whole, -2.12194440e-4))
        rest = f.subtract(rest, f.multiply(square, 0.5))
        result = f.add(f.add(t, rest), f.multiply(whole, 0.693359375))
    else:
        half = f.multiply(square, 0.5)
        ratio = f.divide(t, f.add(t, 2.0))
        part = f.multiply(ratio, ratio)
        series = f.multiply(f.polynomial(part, _LOG_64), part)
        rest = f.add(
            f.multiply(ratio, f.add(half, series)), f.multiply(whole, 1.90821492927058770002e-10)
        )
        result = f.subtract(t, f.subtract(half, rest))
        result = f.add(f.multiply(whole, 6.93147180369123816490e-1), result)
    result = f.select(f.test("oeq", x, math.inf), math.inf, result)
    result = f.select(f.test("oeq", x, 0.0), -math.inf, result)
    return f.select(f.test("uge", x, 0.0), f.select(f.test("uno", x, x), x, result), math.nan)


def _log1p(f: _Floats, x: Value) -> Value:
    """By W. Kahan: the error of 1 + x is made up for."""
    # As an instruction of its own, which nothing may contract.
    sum = f.writer.binary("fadd", x, f.number(1.0))
    rest = f.writer.binary("fsub", sum, f.number(1.0))
    result = f.multiply(_log(f, sum), f.divide(x, rest))
    is_x = f.test("oeq", rest, 0.0)
    result = f.select(is_x, x, result)
    return f.select(f.test("oeq", x, math.inf), math.inf, result)


_SINE_64: Final = (1.58969099521155010221e-10, -2.50507602534068634195e-8,
                   2.75573137070700676789e-6, -1.98412698298579493134e-4,
                   8.33333333332248946124e-3, -1.66666666666666324348e-1)  # fmt: skip
_COSINE_64: Final = (-1.13596475577881948265e-11, 2.08757232129817482790e-9,
                     -2.75573143513906633035e-7, 2.48015872894767294178e-5,
                     -1.38888888888741095749e-3, 4.16666666666666019037e-2)  # fmt: skip
_SINE: Final = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_COSINE: Final = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)


class _Circular:
    """Sine and cosine: ``x = n * pi / 2 + t``, with polynomials of t, as in FreeBSD's ``k_sin.c``.

    Where a number is so large that t would lose digits the C library computes them all.
    """

    def __init__(self, f: _Floats, x: Value) -> None:
        w = f.writer
        self.f, self.x = f, x
        if f.type == "float":
            magic, self.limit = 12582912.0, 1024.0
            parts = (1.5703125, 4.837512969970703125e-4, 7.54978995489188216e-8)
            sine: Sequence[float] = _SINE
            cosine: Sequence[float] = _COSINE
        else:
            magic, self.limit = 6755399441055744.0, 1e6
            parts = (1.5707963109016418, 1.5893254712295857e-8, 6.1232339957367660e-17)
            sine, cosine = _SINE_64, _COSINE_64
        shifted = f.add(f.multiply(x, 2.0 / math.pi), magic)
        self.quarter = w.binary("sub", f.as_bits(shifted), f.as_bits(f.number(magic)))
        whole, t = f.subtract(shifted, magic), x
        for part in parts:
            t = f.subtract(t, f.multiply(whole, part))
        square = f.multiply(t, t)
        self.sine = f.add(f.multiply(f.multiply(f.polynomial(square, sine), square), t), t)
        power = f.multiply(f.multiply(f.polynomial(square, cosine), square), square)
        self.cosine = f.add(f.subtract(power, f.multiply(square, 0.5)), 1.0)

    def turned(self, quarters: int) -> Value:
        """The sine of x and so many quarters of a turn."""
        f, w = self.f, self.f.writer
        n = w.binary("add", self.quarter, f.integer(quarters))
        odd = w.compare("icmp ne", w.binary("and", n, f.integer(1)), f.integer(0))
        value = f.as_bits(w.select(odd, self.cosine, self.sine))
        top = 30 if f.type == "float" else 62
        sign = w.binary("shl", w.binary("and", n, f.integer(2)), f.integer(top))
        return f.of_bits(w.binary("xor", value, sign))

    def unless_large(self, name: str, value: Value) -> Value:
        """A value, or where an element is large or no number what the C library has for all."""
        f, w = self.f, self.f.writer
        large = f.test("ugt", f.abs(self.x), self.limit)
        if f.lanes > 1:
            bits = w.emit(f"bitcast {large.typed} to i{f.lanes}", f"i{f.lanes}")
            large = w.compare("icmp ne", bits, w.constant(0, f"i{f.lanes}"))
        dtype = float32 if f.type == "float" else float64
        variable = w.variable(value, dtype)
        with w.when(large):
            w.set(variable, w.in_lanes(_library(name, f.type), self.x))
        return w.get(variable)


def _sin(f: _Floats, x: Value) -> Value:
    circular = _Circular(f, x)
    return circular.unless_large("sin", circular.turned(0))


def _cos(f: _Floats, x: Value) -> Value:
    circular = _Circular(f, x)
    return circular.unless_large("cos", circular.turned(1))


def _tan(f: _Floats, x: Value) -> Value:
    circular = _Circular(f, x)
    return circular.unless_large("tan", f.divide(circular.turned(0), circular.turned(1)))


def _tanh(f: _Floats, x: Value) -> Value:
    if f.type == "double":
        power = _expm1(f, f.multiply(f.abs(x), -2.0))
        opposite = f.writer.emit(f"fneg {power.typed}", x.type, x.lanes)
        quotient = f.divide(opposite, f.add(power, 2.0))
        return f.writer.intrinsic("copysign", quotient, x)
    z = f.within(x, -7.90531110763549805, 7.90531110763549805)
    square = f.multiply(z, z)
    upper = f.polynomial(
        square,
        (-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
         1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03),
    )  # fmt: skip
    lower = f.polynomial(
        square, (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03,
                 4.89352518554385e-03)
    )  # fmt: skip
    result = f.divide(f.multiply(z, upper), lower)
    # What has 1 - tanh(x)**2 as a factor is 0 far from 0.
    result = f.select(f.test("oge", x, 9.0), 1.0, result)
    result = f.select(f.test("ole", x, -9.0), -1.0, result)
    return f.select(f.test("olt", f.abs(x), 0.0004), x, result)


def _erf(f: _Floats, x: Value) -> Value:
    if f.type == "double":
        return f.writer.in_lanes("erf", x)
    z = f.within(x, -erf.LIMIT, erf.LIMIT)
    square = f.multiply(z, z)
    upper, lower = f.polynomial(square, erf.NUMERATOR), f.polynomial(square, erf.DENOMINATOR)
    result = f.divide(f.multiply(z, upper), lower)
    result = f.select(f.test("oge", x, erf.LIMIT), 1.0, result)
    return f.select(f.test("ole", x, -erf.LIMIT), -1.0, result)


def _remainder(f: _Floats, x: Value, y: Value) -> Value:
    """With the sign of the divisor, of which a result of 0 has the sign too."""
    rest = f.writer.in_lanes(_library("fmod", f.type), x, y)
    negative, below = f.test("olt", rest, 0.0), f.test("olt", y, 0.0)
    differs = f.writer.binary("xor", negative, below)
    nonzero = f.select(differs, f.add(rest, y), rest)
    zero = f.writer.intrinsic("copysign", f.number(0.0), y)
    return f.select(f.test("oeq", rest, 0.0), zero, nonzero)


def _pow(f: _Floats, x: Value, y: Value) -> Value:
    """Of a constant exponent by multiplications where these are as accurate."""
    for exponent, compute in _POWERS.items():
        if y.text in {f.writer.constant(exponent, f.type, lanes).text for lanes in (1, f.lanes)}:
            return compute(f, x)
    return f.writer.in_lanes(_library("pow", f.type), x, y)


_POWERS: Final[dict[float, Callable[[_Floats, Value], Value]]] = {
    1.0: lambda _, x: x,
    2.0: lambda f, x: f.product(x, x),
    3.0: lambda f, x: f.product(x, x, x),
    4.0: lambda f, x: f.product(f.product(x, x), f.product(x, x)),
    -1.0: lambda f, x: f.divide(f.number(1.0), x),
    -2.0: lambda f, x: f.divide(f.number(1.0), f.product(x, x)),
}

_VECTORIZED: Final[dict[str, Callable[..., Value]]] = {
    "exp": _exp,
    "expm1": _expm1,
    "log": _log,
    "log1p": _log1p,
    "sin": _sin,
    "cos": _cos,
    "tan": _tan,
    "tanh": _tanh,
    "erf": _erf,
    "remainder": _remainder,
    "pow": _pow,
}


def _library(name: str, type: str) -> str:
    return name + ("f" if type == "float" else "")


def of_floats(writer: LlvmWriter, function: str, operands: tuple[Value, ...]) -> Value:
    """A function of floats that is no instruction."""
    widest = max(operands, key=lambda operand: operand.lanes)
    floats = _Floats(writer, widest)
    values = operands if function == "pow" else tuple(writer.same_lanes(*operands))
    if function in _VECTORIZED:
        return _VECTORIZED[function](floats, *values)
    return writer.in_lanes(_library(function, widest.type), *values)
