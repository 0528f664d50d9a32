"""Functions of complex numbers where torch departs from the standard, or squares leave the range.

Torch departs from it on the CPU or on CUDA.

Results for infinite and NaN parts, and for zeros, follow the special cases of the array API
standard (2025.12, "Element-wise Functions").
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any, Final

import torch

from burn.plugin_api import DType, Scalar, specializing
from burn_torch.dtypes import NUMBER_TYPES, Tensor

Function = Callable[..., Tensor]


def with_complex(real_function: Function, complex_function: Function) -> Function:
    """A function that calls another one for complex tensors."""

    def call(*operands: Any) -> Tensor:
        is_complex = any(
            operand.__class__ is complex
            if operand.__class__ in NUMBER_TYPES
            else operand.dtype.is_complex
            for operand in operands
        )
        return complex_function(*operands) if is_complex else real_function(*operands)

    def specialize(dtype: DType) -> Function:
        return complex_function if dtype.is_complex else real_function

    return specializing(call, specialize)


def _acos(x: Tensor) -> Tensor:
    """The imaginary part has the opposite sign of that of `x`, also where it is 0."""
    result = torch.acos(x)
    torch.view_as_real(result)[..., 1].copysign_(torch.neg(x.imag))
    return result


def _acosh(x: Tensor) -> Tensor:
    """The imaginary part is pi / 2 where the real part is 0 and the imaginary part NaN."""
    result = torch.acosh(x)
    torch.view_as_real(result)[..., 1].masked_fill_((x.real == 0.0) & x.imag.isnan(), 0.5 * math.pi)
    return result


def _cos(x: Tensor) -> Tensor:
    """As `_cosh`, with the opposite sign."""
    return _with_signed_zeros(torch.cos(x), x, -1.0)


def _cosh(x: Tensor) -> Tensor:
    """A zero imaginary part has the sign of the product of the parts of `x`."""
    return _with_signed_zeros(torch.cosh(x), x, 1.0)


def _with_signed_zeros(result: Tensor, x: Tensor, sign: float) -> Tensor:
    imag = torch.view_as_real(result)[..., 1]
    on_axis = ((x.real == 0.0) | (x.imag == 0.0)) & (imag == 0.0)
    one = torch.ones_like(imag)
    signs = torch.copysign(one, x.real) * torch.copysign(one, x.imag)
    imag.copy_(torch.where(on_axis, sign * signs * imag.abs(), imag))
    return result


def _sqrt(x: Tensor) -> Tensor:
    """The real part is positive or 0.0, not -0.0."""
    result = torch.sqrt(x)
    torch.view_as_real(result)[..., 0].abs_()
    return result


def _expm1(x: Tensor) -> Tensor:
    """``exp(x) - 1`` where a part is infinite: torch returns NaN there.

    That of a real number is real, also where it overflows.
    """
    far = torch.exp(x)
    torch.view_as_real(far)[..., 0].sub_(
        1.0
    )  # a complex subtraction would lose the sign of a zero imaginary part
    result = torch.where(torch.isfinite(x), torch.expm1(x), far)
    real, imag = torch.view_as_real(result).unbind(-1)
    real.add_(0.0)  # -0.0 becomes 0.0
    imag.copy_(torch.where(x.imag == 0.0, x.imag, imag))
    return result


def _log2(x: Tensor) -> Tensor:
    """``log(x) / log(2)`` by parts: a complex quotient returns NaN for infinities."""
    result = torch.log(x)
    torch.view_as_real(result).div_(math.log(2.0))
    return result


def _log1p(x: Tensor) -> Tensor:
    """By `log1p` of the squared magnitude less 1 near 0, where torch's may be NaN; else `log`."""
    real, imag = x.real, x.imag
    is_near = (real.abs() < 0.5) & (imag.abs() < 0.5)
    result = torch.log(torch.complex(real + 1.0, imag))
    near = 0.5 * torch.log1p(real * (real + 2.0) + imag * imag)
    parts = torch.view_as_real(result)[..., 0]
    parts.copy_(torch.where(is_near, near, parts))
    return result


def _larger_part(x: Tensor) -> Tensor:
    """The larger magnitude of the two parts, NaN if one is NaN."""
    return torch.maximum(x.real.abs(), x.imag.abs())


def complex_sign(x: Tensor) -> Tensor:
    """``x / abs(x)`` of numbers whose larger part is 1: no square is 0 or infinite.

    NaN where a part is infinite or NaN, and 0 without signs where both are 0.
    """
    longer = _larger_part(x)
    is_zero = longer == 0.0
    scaled = torch.view_as_real(x) / longer.masked_fill(is_zero, 1.0).unsqueeze(-1)
    length = torch.hypot(scaled[..., 0], scaled[..., 1]).masked_fill_(is_zero, 1.0)
    return torch.view_as_complex(scaled / length.unsqueeze(-1)).masked_fill_(is_zero, 0.0)


def _divide(x1: Tensor | Scalar, x2: Tensor | Scalar) -> Tensor:
    return _in_range(torch.divide(x1, x2), x1, x2)  # type: ignore[arg-type]  # one is a tensor


def _reciprocal(x: Tensor) -> Tensor:
    return _in_range(torch.reciprocal(x), 1.0, x)


def _in_range(quotient: Tensor, x1: Tensor | Scalar, x2: Tensor | Scalar) -> Tensor:
    """A quotient, by numbers of moderate size where the squares of the operands leave the range.

    On the CPU it is read whether that is so; elsewhere a read would wait for the device.
    """
    if quotient.device.type == "cpu" and quotient.all() and cmath.isfinite(quotient.sum().item()):
        return quotient
    dividend, divisor = (
        tensor.to(quotient.dtype)
        if isinstance(tensor, Tensor)
        else torch.full((), tensor, dtype=quotient.dtype, device=quotient.device)
        for tensor in (x1, x2)
    )
    up, down = _root_of_scale(dividend), _root_of_scale(divisor)
    scaled = torch.view_as_real(torch.divide(dividend * (up * up), divisor * (down * down)))
    factor = (down / up).unsqueeze(-1)
    is_ordinary = (
        torch.isfinite(dividend) & torch.isfinite(divisor) & (dividend != 0.0) & (divisor != 0.0)
    )
    return torch.where(is_ordinary, torch.view_as_complex(scaled * factor * factor), quotient)


def _root_of_scale(x: Tensor) -> Tensor:
    """A power of two to multiply numbers by twice, so that their squares are finite."""
    longer = _larger_part(x)
    limit, root = (2.0**60, 2.0**50) if longer.dtype == torch.float32 else (2.0**500, 2.0**300)
    scale = torch.ones_like(longer).masked_fill_(longer < 1.0 / limit, root)
    return scale.masked_fill_(longer > limit, 1.0 / root)


def _tanh(x: Tensor) -> Tensor:
    """1 or -1 where the real part is infinite; the imaginary part is a zero with its sign.

    A part that is 0 stays 0 where the other is not finite.
    """
    return _at_limits(torch.tanh(x), x.real, x.imag, (0, 1))


def _tan(x: Tensor) -> Tensor:
    """As `_tanh`, with the roles of the real and the imaginary part exchanged."""
    return _at_limits(torch.tan(x), x.imag, x.real, (1, 0))


def _at_limits(result: Tensor, infinite: Tensor, finite: Tensor, order: tuple[int, int]) -> Tensor:
    """`result` with its limits where `infinite` is infinite and `finite` is finite.

    The limits are 1 and 0 with the signs of the two parts. Where one part is 0 and the other is not
    finite, the zero stays. `order` has the part of the result, 0 or 1, that belongs to each.
    """
    parts = torch.view_as_real(result)
    limit = torch.isinf(infinite) & torch.isfinite(finite)
    for part, source, other, magnitude in zip(
        order, (infinite, finite), (finite, infinite), (1.0, 0.0), strict=True
    ):
        signs = torch.copysign(torch.full_like(source, magnitude), source)
        stays = (source == 0.0) & ~torch.isfinite(other) & ~limit
        kept = torch.where(stays, source, parts[..., part])
        parts[..., part].copy_(torch.where(limit, signs, kept))
    return result


COMPLEX_FUNCTIONS: Final[dict[str, Function]] = {
    "acos": _acos,
    "acosh": _acosh,
    "cos": _cos,
    "cosh": _cosh,
    "divide": _divide,
    "expm1": _expm1,
    "log1p": _log1p,
    "log2": _log2,
    "reciprocal": _reciprocal,
    "sqrt": _sqrt,
    "tan": _tan,
    "tanh": _tanh,
}
"""Functions that replace torch's for complex tensors, by the name of the op."""
