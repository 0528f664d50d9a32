"""Elementwise functions (chapter "Element-wise Functions" of the array API standard)."""

from __future__ import annotations

import builtins
import math
from typing import TYPE_CHECKING

from burn.functions.common import Operand, dispatch, of_one, of_one_real, of_two, of_two_tensors
from burn.functions.normalize import rank_of

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "angle",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "ceil",
    "clip",
    "complex",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "deg2rad",
    "divide",
    "equal",
    "erf",
    "exp",
    "expm1",
    "floor",
    "floor_divide",
    "fmod",
    "greater",
    "greater_equal",
    "hypot",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "nextafter",
    "not_equal",
    "positive",
    "pow",
    "rad2deg",
    "real",
    "reciprocal",
    "remainder",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "trunc",
]

add = of_two("add")
subtract = of_two("subtract")
multiply = of_two("multiply")
divide = of_two("divide")
floor_divide = of_two("floor_divide")
remainder = of_two("remainder")
pow = of_two("pow")
maximum = of_two("maximum")
minimum = of_two("minimum")
atan2 = of_two("atan2")
copysign = of_two("copysign")
fmod = of_two("fmod")
hypot = of_two("hypot")
logaddexp = of_two("logaddexp")
nextafter = of_two("nextafter")

equal = of_two("equal")
not_equal = of_two("not_equal")
less = of_two("less")
less_equal = of_two("less_equal")
greater = of_two("greater")
greater_equal = of_two("greater_equal")

bitwise_and = of_two("bitwise_and")
bitwise_or = of_two("bitwise_or")
bitwise_xor = of_two("bitwise_xor")
bitwise_invert = of_one("bitwise_not")
bitwise_left_shift = of_two("bitwise_left_shift")
bitwise_right_shift = of_two("bitwise_right_shift")

abs = of_one("abs")
negative = of_one("negative")
sign = of_one("sign")
square = of_one("square")
reciprocal = of_one("reciprocal")
exp = of_one("exp")
expm1 = of_one("expm1")
log = of_one("log")
log1p = of_one("log1p")
log2 = of_one("log2")
log10 = of_one("log10")
sqrt = of_one("sqrt")
sin = of_one("sin")
cos = of_one("cos")
tan = of_one("tan")
sinh = of_one("sinh")
cosh = of_one("cosh")
tanh = of_one("tanh")
asin = of_one("asin")
acos = of_one("acos")
atan = of_one("atan")
asinh = of_one("asinh")
acosh = of_one("acosh")
atanh = of_one("atanh")
erf = of_one("erf")
floor = of_one_real("floor")
ceil = of_one_real("ceil")
trunc = of_one_real("trunc")
round = of_one_real("round")
isnan = of_one("isnan")
isinf = of_one("isinf")
isfinite = of_one("isfinite")
signbit = of_one("signbit")
real = of_one("real")
imag = of_one("imag")
conj = of_one("conj")
complex = of_two_tensors("complex")


def deg2rad(x: Tensor, /) -> Tensor:
    """Degrees as radians."""
    return multiply(x, math.pi / 180.0)


def angle(x: Tensor, /) -> Tensor:
    """Angle in radians of each complex number: ``atan2(imag(x), real(x))``."""
    return atan2(imag(x), real(x))


def rad2deg(x: Tensor, /) -> Tensor:
    """Radians as degrees."""
    return multiply(x, 180.0 / math.pi)


def positive(x: Tensor, /) -> Tensor:
    """``+x``: the same value as another tensor."""
    rank_of(x, "positive")
    return dispatch.wrap(x.primitive, x.tensor_type)


def clip(x: Tensor, /, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """Elementwise value nearest to `x` between two bounds.

    Parameters
    ----------
    x : Tensor
        Numeric tensor.
    min, max : Tensor or number, optional
        Bounds, broadcast to `x`; None for none. Where `min` is above `max`, the result is `max`.
    """
    if min is None:
        return positive(x) if max is None else minimum(x, max)
    if max is None:
        return maximum(x, min)
    return dispatch.execute("clip", x, min, max)  # type: ignore[no-any-return]  # one output


def logical_not(x: Tensor, /) -> Tensor:
    """Elementwise "not"; a number counts as whether it is not 0."""
    return bitwise_invert(_truth(x, "logical_not"))


def logical_and(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise "and"; a number counts as whether it is not 0."""
    return bitwise_and(_truth(x1, "logical_and"), _truth(x2, "logical_and"))


def logical_or(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise "or"; a number counts as whether it is not 0."""
    return bitwise_or(_truth(x1, "logical_or"), _truth(x2, "logical_or"))


def logical_xor(x1: Operand, x2: Operand, /) -> Tensor:
    """Elementwise "exclusive or"; a number counts as whether it is not 0."""
    return bitwise_xor(_truth(x1, "logical_xor"), _truth(x2, "logical_xor"))


def _truth(x: Operand, operation: str) -> Tensor:
    if isinstance(x, (bool, int, float, builtins.complex)):
        return bool(x)  # type: ignore[return-value]  # a number beside a tensor is fine
    rank_of(x, operation)
    return x if x.dtype.is_bool else not_equal(x, 0)
