"""Functions of complex numbers where torch departs from the standard, on the CPU or on CUDA.

Results for infinite and NaN parts, and for zeros, follow the special cases of the array API
standard (2025.12, "Element-wise Functions").
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import torch

from burn.plugin_api import DType, specializing
from burn_torch.dtypes import Tensor

Function = Callable[[Tensor], Tensor]


def with_complex(real_function: Function, complex_function: Function) -> Function:
    """A function that calls another one for complex tensors."""

    def call(x: Tensor) -> Tensor:
        return complex_function(x) if x.dtype.is_complex else real_function(x)

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
    """``log(x)`` where a part is not finite: torch's log1p returns NaN there."""
    return torch.where(torch.isfinite(x), torch.log1p(x), torch.log(x))


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
    "expm1": _expm1,
    "log1p": _log1p,
    "log2": _log2,
    "sqrt": _sqrt,
    "tan": _tan,
    "tanh": _tanh,
}
"""Functions that replace torch's for complex tensors, by the name of the op."""
