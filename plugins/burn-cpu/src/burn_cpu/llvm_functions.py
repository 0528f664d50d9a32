"""Scalar functions in LLVM: polynomials that work on vectors, and calls of the C library.

Polynomials for float32 are those of S. Moshier's Cephes library, that of `tanh` is Eigen's.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

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
    n = w.binary("sub", f.as_bits(shifted), f.as_bits(f.number(magic)))
    whole = f.subtract(shifted, magic)
    for part in parts:
        t = f.subtract(t, f.multiply(whole, part))
    power = f.polynomial(t, coefficients)
    power = f.add(f.add(f.multiply(f.multiply(power, t), t), t), 1.0)
    half = w.binary("ashr", n, f.integer(1))
    for exponent in (half, w.binary("sub", n, half)):
        biased = w.binary("add", exponent, f.integer(bias))
        power = f.multiply(power, f.of_bits(w.binary("shl", biased, f.integer(width))))
    return power


def _expm1(f: _Floats, x: Value) -> Value:
    if f.type == "double":
        return f.writer.in_lanes("expm1", x)
    small = f.add(f.multiply(f.multiply(f.polynomial(x, EXP_COEFFICIENTS), x), x), x)
    small = f.select(f.test("oeq", x, 0.0), x, small)  # the sign of a zero
    return f.select(f.test("olt", f.abs(x), 0.34), small, f.subtract(_exp(f, x), 1.0))


_LOG: Final = (7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1,
               1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1,
               3.3333331174e-1)  # fmt: skip


def _log(f: _Floats, x: Value) -> Value:
    if f.type == "double":
        return f.writer.in_lanes("log", x)
    w = f.writer
    tiny = f.test("olt", x, 1.17549435e-38)  # subnormal numbers are scaled
    scaled = f.select(tiny, f.multiply(x, 8388608.0), x)
    bits = f.as_bits(scaled)
    above = w.binary("sub", bits, f.integer(0x3F3504F3))  # the root of 1 / 2
    exponent = w.binary("ashr", above, f.integer(23))
    mantissa = f.of_bits(w.binary("sub", bits, w.binary("shl", exponent, f.integer(23))))
    whole = w.convert("sitofp", exponent, f.type)
    whole = f.subtract(whole, f.select(tiny, 23.0, 0.0))
    t = f.subtract(mantissa, 1.0)
    square = f.multiply(t, t)
    rest = f.multiply(f.multiply(f.polynomial(t, _LOG), t), square)
    rest = f.add(rest, f.multiply(whole, -2.12194440e-4))
    rest = f.subtract(rest, f.multiply(square, 0.5))
    result = f.add(f.add(t, rest), f.multiply(whole, 0.693359375))
    result = f.select(f.test("oeq", x, math.inf), math.inf, result)
    result = f.select(f.test("oeq", x, 0.0), -math.inf, result)
    return f.select(f.test("uge", x, 0.0), f.select(f.test("uno", x, x), x, result), math.nan)


def _log1p(f: _Floats, x: Value) -> Value:
    """By W. Kahan: the error of 1 + x is made up for."""
    if f.type == "double":
        return f.writer.in_lanes("log1p", x)
    # As an instruction of its own, which nothing may contract.
    sum = f.writer.binary("fadd", x, f.number(1.0))
    rest = f.writer.binary("fsub", sum, f.number(1.0))
    result = f.multiply(_log(f, sum), f.divide(x, rest))
    is_x = f.test("oeq", rest, 0.0)
    result = f.select(is_x, x, result)
    return f.select(f.test("oeq", x, math.inf), math.inf, result)


def _tanh(f: _Floats, x: Value) -> Value:
    if f.type == "double":
        return f.writer.in_lanes("tanh", x)
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
