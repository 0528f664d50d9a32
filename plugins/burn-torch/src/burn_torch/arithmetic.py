"""Elementwise ops: torch's functions themselves where they mean the same, and mends elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from burn_torch.complex_functions import COMPLEX_FUNCTIONS, with_complex
from burn_torch.defaults import DefaultOps
from burn_torch.dtypes import NUMBERS, Tensor, rounded
from burn_torch.precision import has_finite_sum

if TYPE_CHECKING:
    from burn.aliases import Scalar

_broadcast_tensors: Any = torch.broadcast_tensors

SAME: Final[dict[str, Callable[..., Any]]] = {
    name: getattr(torch, name)
    for name in (
        *("abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atanh", "bitwise_and"),
        *(
            "bitwise_not",
            "bitwise_or",
            "bitwise_xor",
            "ceil",
            "cos",
            "cosh",
            "divide",
            "erf",
            "exp",
            "expm1",
            "floor",
        ),
        *("isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2", "multiply", "negative"),
        *("reciprocal", "round", "sigmoid", "signbit", "sin", "sinh", "sqrt", "square"),
        *("subtract", "tan", "tanh", "trunc", "relu"),
    )
} | {name: getattr(torch._C._nn, name) for name in ("log_sigmoid", "mish", "silu")}
"""Ops that torch has under the same name and with the same meaning for every dtype, or most."""

_MIRRORED: Final = {
    "equal": (torch.eq, torch.eq),
    "not_equal": (torch.ne, torch.ne),
    "less": (torch.lt, torch.gt),
    "less_equal": (torch.le, torch.ge),
    "greater": (torch.gt, torch.lt),
    "greater_equal": (torch.ge, torch.le),
}
"""Comparisons, which torch refuses of a number with a tensor; and those with operands swapped."""

_OF_TENSORS: Final = {
    name: getattr(torch, name) for name in ("atan2", "copysign", "fmod", "hypot", "logaddexp")
}
"""Functions of two tensors, of which neither may be a number."""


def _comparison(
    function: Callable[..., Any], mirrored: Callable[..., Any]
) -> Callable[[Any, Any], Any]:
    def call(x1: Any, x2: Any) -> Any:
        return mirrored(x2, x1) if x1.__class__ in NUMBERS else function(x1, x2)

    return _marked(call, function)


def _extreme(function: Callable[..., Any], bound: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """The larger or the smaller of two operands, of which one may be a number."""

    def after_tensor(x1: Any, x2: Any) -> Any:
        if x2.__class__ not in NUMBERS:
            return function(x1, x2)
        try:
            return bound(x1, x2)
        except RuntimeError:  # torch refuses a number that rounds to an infinity
            return bound(x1, rounded(x2, x1.dtype))

    def call(x1: Any, x2: Any) -> Any:
        return after_tensor(x2, x1) if x1.__class__ in NUMBERS else after_tensor(x1, x2)

    return _marked(call, after_tensor)


def _marked(call: Any, after_tensor: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A function that says what will do where its first operand is known to be a tensor."""
    call.after_tensor = after_tensor
    return call  # type: ignore[no-any-return]  # a function


def as_tensors(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    """Two operands, a number among them as a tensor without axes of the other's dtype."""
    if x1.__class__ in NUMBERS:
        return number_like(x1, x2), x2
    return (x1, number_like(x2, x1)) if x2.__class__ in NUMBERS else (x1, x2)


def number_like(number: Scalar, like: Tensor) -> Tensor:
    """A number as a tensor without axes."""
    return torch.full((), rounded(number, like.dtype), dtype=like.dtype, device=like.device)


def _with_tensors(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    def call(x1: Any, x2: Any) -> Any:
        if x1.__class__ in NUMBERS or x2.__class__ in NUMBERS:
            x1, x2 = as_tensors(x1, x2)
        return function(x1, x2)

    return call


def elementwise_functions() -> dict[str, Callable[..., Any]]:
    """Methods of the ops for which a function of torch will do."""
    return {
        **SAME,
        **{name: with_complex(SAME[name], other) for name, other in COMPLEX_FUNCTIONS.items()},
        **{name: _comparison(*pair) for name, pair in _MIRRORED.items()},
        "maximum": _extreme(torch.maximum, torch.clamp_min),
        "minimum": _extreme(torch.minimum, torch.clamp_max),
        **{name: _with_tensors(function) for name, function in _OF_TENSORS.items()},
    }


class ArithmeticOps(DefaultOps):
    """Elementwise ops beside torch's functions."""

    def where(self, condition: Tensor, x1: Tensor | Scalar, x2: Tensor | Scalar) -> Tensor:
        """`torch.where`; of two numbers nobody knows the dtype."""
        try:
            if x1.__class__ in NUMBERS and x2.__class__ in NUMBERS:
                raise TypeError("a choice between two numbers")
            return torch.where(condition, x1, x2)
        except RuntimeError:  # torch refuses a number that rounds to an infinity
            return torch.where(condition, *as_tensors(x1, x2))

    def sign(self, x: Tensor) -> Tensor:
        """`torch.sign`, which makes 0 of NaN."""
        if x.dtype.is_floating_point:
            return torch.where(torch.isnan(x), x, torch.sign(x))
        return torch.sgn(x) if x.dtype.is_complex else torch.sign(x)

    def round(self, x: Tensor) -> Tensor:
        """`torch.round`; complex numbers by their parts."""
        if not x.dtype.is_complex:
            return torch.round(x)
        return torch.view_as_complex(torch.round(torch.view_as_real(x)))

    def clip(self, x: Tensor, low: Tensor | Scalar, high: Tensor | Scalar) -> Tensor:
        """`torch.clamp`; bounds of two kinds one after the other."""
        if low.__class__ in NUMBERS and high.__class__ in NUMBERS:
            try:
                return torch.clamp(x, low, high)  # type: ignore[arg-type]  # two numbers
            except RuntimeError:  # torch refuses a number that rounds to an infinity
                return torch.clamp(x, rounded(low, x.dtype), rounded(high, x.dtype))
        return self.minimum(self.maximum(x, low), high)  # type: ignore[attr-defined, no-any-return]  # set by name

    def floor_divide(self, x1: Tensor | Scalar, x2: Tensor | Scalar) -> Tensor:
        """`torch.floor_divide`; of integers by 0 it is 0."""
        dtype = x1.dtype if isinstance(x1, Tensor) else x2.dtype  # type: ignore[union-attr]  # one is a tensor
        if dtype.is_floating_point:
            return torch.floor_divide(x1, x2)  # type: ignore[arg-type]  # takes numbers too
        if x2.__class__ in NUMBERS:
            if x2 in (0, -1):  # the quotient of the smallest integer by -1 is no integer
                return torch.zeros_like(x1) if x2 == 0 else torch.neg(x1)  # type: ignore[arg-type]  # a tensor
            return torch.floor_divide(x1, x2)  # type: ignore[arg-type]  # likewise
        safe, zero, minus = _safe_divisor(x2)  # type: ignore[arg-type]  # likewise
        quotient = torch.floor_divide(x1, safe)  # type: ignore[arg-type]  # takes numbers too
        if minus is not None:
            opposite = -x1 if isinstance(x1, Tensor) else torch.neg(number_like(x1, safe))
            quotient = torch.where(minus, opposite, quotient)
        return torch.where(zero, 0, quotient)

    def remainder(self, x1: Tensor | Scalar, x2: Tensor | Scalar) -> Tensor:
        """`torch.remainder`; of integers by 0 it is 0. A zero has the divisor's sign too."""
        rest = _rest(torch.remainder, np.remainder, x1, x2)
        return rest.copysign_(x2) if rest.dtype.is_floating_point else rest

    def fmod(self, x1: Tensor | Scalar, x2: Tensor | Scalar) -> Tensor:
        """`torch.fmod`; of integers by 0 it is 0."""
        return _rest(torch.fmod, np.fmod, x1, x2)

    def bitwise_left_shift(self, x1: Tensor | Scalar, x2: Tensor | Scalar) -> Tensor:
        """`torch.bitwise_left_shift`, by a number that is not negative."""
        return torch.bitwise_left_shift(x1, _bits(x2))

    def bitwise_right_shift(self, x1: Tensor | Scalar, x2: Tensor | Scalar) -> Tensor:
        """`torch.bitwise_right_shift`, by a number that is not negative."""
        return torch.bitwise_right_shift(x1, _bits(x2))

    def pow(self, x1: Tensor | Scalar, x2: Tensor | Scalar) -> Tensor:
        """`torch.pow`, which takes a square root for an exponent of 0.5 and loses signs by it."""
        if x2.__class__ in NUMBERS:
            dtype = x1.dtype  # type: ignore[union-attr]  # a tensor
            if not dtype.is_floating_point and not dtype.is_complex and x2 < 0:  # type: ignore[operator]  # real
                raise ValueError(f"an integer to the power {x2}")
            x2 = rounded(x2, dtype)
            if x2 in (0.5, -0.5) and dtype.is_floating_point:
                limits = (x1 == 0.0) | (x1 == -math.inf)
                x1 = torch.where(limits, torch.abs(x1), x1)  # type: ignore[arg-type]  # a tensor
            if dtype is torch.float16 and self.on_host:  # thirty times as fast
                return torch.pow(x1.to(torch.float32), x2).to(dtype)  # type: ignore[union-attr]  # a tensor
        elif x1.__class__ not in NUMBERS and not x2.dim() and x2.dtype.is_floating_point:  # type: ignore[union-attr]  # a tensor
            x2 = x2.expand(x1.shape or (1,))  # type: ignore[union-attr]  # a tensor; else it counts as a number
            return torch.pow(x1, x2).reshape(x1.shape)  # type: ignore[union-attr]  # a tensor
        return torch.pow(x1, x2)  # type: ignore[arg-type]  # takes numbers too

    def nextafter(self, x1: Tensor | Scalar, x2: Tensor | Scalar) -> Tensor:
        """`torch.nextafter`, or the op's own steps where it has no kernel."""
        x1, x2 = as_tensors(x1, x2)
        if x1.dtype is torch.float16 or (x1.dtype is torch.bfloat16 and not self.on_host):
            return self.decomposed("nextafter", x1, x2)  # type: ignore[no-any-return]  # a primitive
        return torch.nextafter(x1, x2)

    def real(self, x: Tensor) -> Tensor:
        """`torch.real`; a real number is its own."""
        return torch.real(x) if x.dtype.is_complex else x

    def imag(self, x: Tensor) -> Tensor:
        """`torch.imag`; 0 for a real number."""
        return torch.imag(x) if x.dtype.is_complex else torch.zeros_like(x)

    def conj(self, x: Tensor) -> Tensor:
        """A copy: the mark that torch has for it would leave this backend."""
        return torch.conj_physical(x) if x.dtype.is_complex else x

    def complex(self, real: Tensor, imag: Tensor) -> Tensor:
        """`torch.complex`, 16-bit floats in float32."""
        if real.dtype.itemsize < 4:
            real, imag = real.to(torch.float32), imag.to(torch.float32)
        real, imag = _broadcast_tensors(real, imag)
        return torch.complex(real, imag)


def _bits(count: Any) -> Any:
    if count.__class__ is int and count < 0:
        raise ValueError(f"a shift by {count} bits")
    return count


def _rest(function: Callable[..., Any], numpy: Callable[..., Any], x1: Any, x2: Any) -> Tensor:
    like = x2 if x1.__class__ in NUMBERS else x1
    if not like.dtype.is_floating_point:
        if x2.__class__ in NUMBERS:
            if x2 in (0, -1):
                return torch.zeros_like(x1)
        else:
            x2, _, _ = _safe_divisor(x2)  # by 1 nothing is left, as by 0 and -1
    if x1.__class__ in NUMBERS:
        x1 = number_like(x1, x2)
    rest: Tensor = function(x1, x2)
    if not like.dtype.is_floating_point or like.device.type != "cpu" or has_finite_sum(rest):
        return rest
    # torch gives NaN where the quotient is too large; the C library does not.
    x1, x2 = as_tensors(x1, x2)
    wide = torch.float64 if rest.dtype is torch.float64 else torch.float32
    with np.errstate(all="ignore"):
        exact = numpy(x1.to(wide).numpy(), x2.to(wide).numpy())
    return torch.from_numpy(np.asarray(exact)).to(rest.dtype)


def _safe_divisor(x: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
    """A divisor with 1 in place of 0 and -1, by which processors fail; and where these were."""
    zero = x == 0
    if x.dtype is torch.uint8:
        return torch.where(zero, 1, x), zero, None
    minus = x == -1
    return torch.where(zero | minus, 1, x), zero, minus
