"""Elementwise ops: torch's functions, corrected where their results differ from burn's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import torch

from burn.plugin_api import Scalar
from burn_torch.base import TorchOps
from burn_torch.complex_functions import COMPLEX_FUNCTIONS, complex_sign, with_complex
from burn_torch.dtypes import NUMBER_TYPES, Tensor, rounded
from burn_torch.precision import has_finite_sum, in_float32

_broadcast_tensors: Any = torch.broadcast_tensors

SAME_AS_TORCH: Final[dict[str, Callable[..., Any]]] = {
    name: getattr(torch, name)
    for name in (
        *("abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atanh", "bitwise_and"),
        *(
            "bitwise_left_shift",
            "bitwise_not",
            "bitwise_or",
            "bitwise_right_shift",
            "bitwise_xor",
            "ceil",
            "cos",
            "cosh",
            "digamma",
            "divide",
            "erf",
            "erfc",
            "erfinv",
            "exp",
            "exp2",
            "expm1",
            "floor",
        ),
        *("isfinite", "isinf", "isnan", "lgamma", "log", "log10", "log1p", "log2", "multiply"),
        *("negative", "reciprocal", "round", "rsqrt", "sigmoid", "signbit", "sin", "sinc", "sinh"),
        *("sqrt", "square"),
        *("subtract", "tan", "tanh", "trunc", "relu"),
    )
} | {name: getattr(torch._C._nn, name) for name in ("log_sigmoid", "mish", "silu")}
"""Ops that are torch's functions of the same name, for real numbers at least."""

_COMPARISONS: Final = {
    "equal": (torch.eq, torch.eq),
    "not_equal": (torch.ne, torch.ne),
    "less": (torch.lt, torch.gt),
    "less_equal": (torch.le, torch.ge),
    "greater": (torch.gt, torch.lt),
    "greater_equal": (torch.ge, torch.le),
}
"""Comparisons, and the same with operands swapped: torch takes no number as first operand."""

_OF_TENSORS: Final = {
    name: getattr(torch, name)
    for name in ("atan2", "copysign", "fmod", "hypot", "logaddexp", "xlogy")
}
"""Functions of torch that take two tensors and no number."""


def _comparison(
    function: Callable[..., Any], swapped: Callable[..., Any]
) -> Callable[[Any, Any], Any]:
    def call(x1: Any, x2: Any) -> Any:
        try:
            return function(x1, x2)
        except TypeError:
            if x1.__class__ not in NUMBER_TYPES:
                raise
            return swapped(x2, x1)

    return call


def _extreme(function: Callable[..., Any], bound: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """The maximum or minimum of two operands, of which one may be a number."""

    def call(x1: Any, x2: Any) -> Any:
        if x2.__class__ in NUMBER_TYPES:
            try:
                return bound(x1, x2)
            except RuntimeError:  # torch refuses a number beyond the range of the dtype
                return bound(x1, rounded(x2, x1.dtype))
        try:
            return function(x1, x2)
        except TypeError:
            if x1.__class__ not in NUMBER_TYPES:
                raise
            return call(x2, x1)

    return call


def as_tensors(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    """Two operands; a number becomes a tensor without axes of the other's dtype."""
    if x1.__class__ in NUMBER_TYPES:
        return number_like(x1, x2), x2
    return (x1, number_like(x2, x1)) if x2.__class__ in NUMBER_TYPES else (x1, x2)


def number_like(number: Scalar, like: Tensor) -> Tensor:
    """A number as a tensor without axes, of the dtype and device of another tensor."""
    return torch.full((), rounded(number, like.dtype), dtype=like.dtype, device=like.device)


def _with_tensors(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    def call(x1: Any, x2: Any) -> Any:
        if x1.__class__ in NUMBER_TYPES or x2.__class__ in NUMBER_TYPES:
            x1, x2 = as_tensors(x1, x2)
        return function(x1, x2)

    return call


def elementwise_functions() -> dict[str, Callable[..., Any]]:
    """The ops that a function of torch computes, by name."""
    return {
        **SAME_AS_TORCH,
        **{
            name: with_complex(SAME_AS_TORCH[name], other)
            for name, other in COMPLEX_FUNCTIONS.items()
        },
        **{name: _comparison(*pair) for name, pair in _COMPARISONS.items()},
        "maximum": _extreme(torch.maximum, torch.clamp_min),
        "minimum": _extreme(torch.minimum, torch.clamp_max),
        **{name: _with_tensors(function) for name, function in _OF_TENSORS.items()},
    }


class ArithmeticOps(TorchOps):
    """Elementwise ops that are not a function of torch as it is."""

    def where(self, condition: Tensor, x1: Tensor | Scalar, x2: Tensor | Scalar) -> Tensor:
        """`torch.where`; two numbers are refused, as the dtype is unknown."""
        try:
            if x1.__class__ in NUMBER_TYPES and x2.__class__ in NUMBER_TYPES:
                raise TypeError("a choice between two numbers")
            return torch.where(condition, x1, x2)
        except RuntimeError:  # torch refuses a number beyond the range of the dtype
            return torch.where(condition, *as_tensors(x1, x2))

    @in_float32
    def axpby(self, x1: Tensor, x2: Tensor, *, a: float, b: float) -> Tensor:
        """`torch.add`, which multiplies the second operand."""
        return torch.add(torch.mul(x1, a), x2, alpha=b)

    def sign(self, x: Tensor) -> Tensor:
        """`torch.sign`, which returns 0 for NaN."""
        if x.dtype.is_floating_point:
            return torch.where(torch.isnan(x), x, torch.sign(x))
        return complex_sign(x) if x.dtype.is_complex else torch.sign(x)

    def round(self, x: Tensor) -> Tensor:
        """`torch.round`; complex numbers by their parts."""
        if not x.dtype.is_complex:
            return torch.round(x)
        return torch.view_as_complex(torch.round(torch.view_as_real(x)))

    def clip(self, x: Tensor, low: Tensor | Scalar, high: Tensor | Scalar) -> Tensor:
        """`torch.clamp` for two numbers; otherwise `maximum` and `minimum`."""
        if low.__class__ in NUMBER_TYPES and high.__class__ in NUMBER_TYPES:
            try:
                return torch.clamp(x, low, high)  # type: ignore[arg-type]  # two numbers
            except RuntimeError:  # torch refuses a number beyond the range of the dtype
                return torch.clamp(x, rounded(low, x.dtype), rounded(high, x.dtype))
        result: Tensor = self.ops.minimum(self.ops.maximum(x, low), high)
        return result

    def floor_divide(self, x1: Tensor | Scalar, x2: Tensor | Scalar) -> Tensor:
        """`torch.floor_divide`; 0 for integers divided by 0."""
        dtype = x1.dtype if isinstance(x1, Tensor) else x2.dtype  # type: ignore[union-attr]  # one is a tensor
        if dtype.is_floating_point:
            return torch.floor_divide(x1, x2)  # type: ignore[arg-type]  # takes numbers too
        if x2.__class__ in NUMBER_TYPES:
            if x2 in (
                0,
                -1,
            ):  # the smallest integer divided by -1 overflows, which is a fault on x86
                return torch.zeros_like(x1) if x2 == 0 else torch.neg(x1)  # type: ignore[arg-type]  # a tensor
            return torch.floor_divide(x1, x2)  # type: ignore[arg-type]  # likewise
        safe, zero, minus = _safe_divisor(x2)  # type: ignore[arg-type]  # likewise
        quotient = torch.floor_divide(x1, safe)  # type: ignore[arg-type]  # takes numbers too
        if minus is not None:
            opposite = -x1 if isinstance(x1, Tensor) else torch.neg(number_like(x1, safe))
            quotient = torch.where(minus, opposite, quotient)
        return torch.where(zero, 0, quotient)

    def remainder(self, x1: Tensor | Scalar, x2: Tensor | Scalar) -> Tensor:
        """`torch.remainder`; 0 for integers modulo 0. A zero gets the sign of the divisor."""
        remainder = _exact_remainder(torch.remainder, np.remainder, x1, x2)
        return remainder.copysign_(x2) if remainder.dtype.is_floating_point else remainder

    def fmod(self, x1: Tensor | Scalar, x2: Tensor | Scalar) -> Tensor:
        """`torch.fmod`; 0 for integers modulo 0."""
        return _exact_remainder(torch.fmod, np.fmod, x1, x2)

    def pow(self, x1: Tensor | Scalar, x2: Tensor | Scalar) -> Tensor:
        """`torch.pow`, whose square root for an exponent of 0.5 is wrong for -0.0 and -inf."""
        if x2.__class__ in NUMBER_TYPES:
            dtype = x1.dtype  # type: ignore[union-attr]  # a tensor
            x2 = rounded(x2, dtype)
            if x2 in (0.5, -0.5) and dtype.is_floating_point:
                limits = (x1 == 0.0) | (x1 == -math.inf)
                x1 = torch.where(limits, torch.abs(x1), x1)  # type: ignore[arg-type]  # a tensor
            if dtype is torch.float16 and self.on_host:  # 30 times as fast
                return torch.pow(x1.to(torch.float32), x2).to(dtype)  # type: ignore[union-attr]  # a tensor
        elif x1.__class__ not in NUMBER_TYPES and not x2.dim() and x2.dtype.is_floating_point:  # type: ignore[union-attr]  # a tensor
            x2 = x2.expand(x1.shape or (1,))  # type: ignore[union-attr]  # a tensor; else it counts as a number
            return torch.pow(x1, x2).reshape(x1.shape)  # type: ignore[union-attr]  # a tensor
        return torch.pow(x1, x2)  # type: ignore[arg-type]  # takes numbers too

    def nextafter(self, x1: Tensor | Scalar, x2: Tensor | Scalar) -> Tensor:
        """`torch.nextafter`; the default where torch has no kernel."""
        x1, x2 = as_tensors(x1, x2)
        if x1.dtype is torch.float16 or (x1.dtype is torch.bfloat16 and not self.on_host):
            return self.decomposed("nextafter", x1, x2)
        return torch.nextafter(x1, x2)

    def real(self, x: Tensor) -> Tensor:
        """`torch.real`; a real tensor is returned as it is."""
        return torch.real(x) if x.dtype.is_complex else x

    def imag(self, x: Tensor) -> Tensor:
        """`torch.imag`; zeros for a real tensor."""
        return torch.imag(x) if x.dtype.is_complex else torch.zeros_like(x)

    def conj(self, x: Tensor) -> Tensor:
        """A copy: torch's lazy conjugate bit would be seen outside of this backend."""
        return torch.conj_physical(x) if x.dtype.is_complex else x

    def complex(self, real: Tensor, imag: Tensor) -> Tensor:
        """`torch.complex`, 16-bit floats in float32."""
        if real.dtype.itemsize < 4:
            real, imag = real.to(torch.float32), imag.to(torch.float32)
        real, imag = _broadcast_tensors(real, imag)
        return torch.complex(real, imag)


def _exact_remainder(
    function: Callable[..., Any], numpy: Callable[..., Any], x1: Any, x2: Any
) -> Tensor:
    like = x2 if x1.__class__ in NUMBER_TYPES else x1
    if not like.dtype.is_floating_point:
        if x2.__class__ in NUMBER_TYPES:
            if x2 in (0, -1):
                return torch.zeros_like(x1)
        else:
            x2, _, _ = _safe_divisor(x2)  # modulo 1 it is 0, as modulo 0 and -1
    if x1.__class__ in NUMBER_TYPES:
        x1 = number_like(x1, x2)
    result: Tensor = function(x1, x2)
    if not like.dtype.is_floating_point or like.device.type != "cpu" or has_finite_sum(result):
        return result
    # torch returns NaN where the quotient overflows; NumPy does not.
    x1, x2 = as_tensors(x1, x2)
    wide = torch.float64 if result.dtype is torch.float64 else torch.float32
    with np.errstate(all="ignore"):
        exact = numpy(x1.to(wide).numpy(), x2.to(wide).numpy())
    return torch.from_numpy(np.asarray(exact)).to(result.dtype)


def _safe_divisor(x: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
    """A divisor with 1 for 0 and -1, which fault on x86, and masks of both (None if unsigned)."""
    zero = x == 0
    if x.dtype is torch.uint8:
        return torch.where(zero, 1, x), zero, None
    minus = x == -1
    return torch.where(zero | minus, 1, x), zero, minus
