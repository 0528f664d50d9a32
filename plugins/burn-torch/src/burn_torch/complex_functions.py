"""Functions of complex numbers where torch departs from the standard, on the CPU or on CUDA.

What they give for infinite and NaN parts, and for zeros, is from the special cases of the array API
standard (2025.12, "Element-wise Functions").
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import torch

from burn_torch.dtypes import Tensor

Function = Callable[[Tensor], Tensor]


def with_complex(function: Function, of_complex: Function) -> Function:
    """A function that is another one for complex tensors."""

    def call(x: Tensor) -> Tensor:
        return of_complex(x) if x.dtype.is_complex else function(x)

    # Core asks for the callable for operands of one dtype: it is spared the question.
    call.specialize = lambda dtype: of_complex if dtype.is_complex else function  # type: ignore[attr-defined]  # functions take attributes
    return call


def _acos(x: Tensor) -> Tensor:
    """The imaginary part has the sign that the number's has not, also where it is 0."""
    result = torch.acos(x)
    torch.view_as_real(result)[..., 1].copysign_(torch.neg(x.imag))
    return result


def _acosh(x: Tensor) -> Tensor:
    """Of 0 and NaN the imaginary part is that of the axis."""
    result = torch.acosh(x)
    torch.view_as_real(result)[..., 1].masked_fill_((x.real == 0.0) & x.imag.isnan(), 0.5 * math.pi)
    return result


def _cos(x: Tensor) -> Tensor:
    """As `_cosh`, with the axes exchanged: the sign is the opposite one."""
    return _with_signed_zeros(torch.cos(x), x, -1.0)


def _cosh(x: Tensor) -> Tensor:
    """A zero imaginary part has the sign of the product of the number's parts."""
    return _with_signed_zeros(torch.cosh(x), x, 1.0)


def _with_signed_zeros(result: Tensor, x: Tensor, sign: float) -> Tensor:
    imag = torch.view_as_real(result)[..., 1]
    on_axis = ((x.real == 0.0) | (x.imag == 0.0)) & (imag == 0.0)
    one = torch.ones_like(imag)
    signs = torch.copysign(one, x.real) * torch.copysign(one, x.imag)
    imag.copy_(torch.where(on_axis, sign * signs * imag.abs(), imag))
    return result


def _sqrt(x: Tensor) -> Tensor:
    """The real part is not negative, nor is it -0.0."""
    result = torch.sqrt(x)
    torch.view_as_real(result)[..., 0].abs_()
    return result


def _expm1(x: Tensor) -> Tensor:
    """``exp(x) - 1`` has the limits, of which torch makes NaN."""
    far = torch.exp(x)
    torch.view_as_real(far)[..., 0].sub_(1.0)  # the imaginary part keeps the sign of a zero
    result = torch.where(torch.isfinite(x), torch.expm1(x), far)
    torch.view_as_real(result)[..., 0].add_(0.0)  # of a negative zero too it is a positive one
    return result


def _log2(x: Tensor) -> Tensor:
    """The logarithm over that of 2, each part by itself: a quotient makes NaN of infinity."""
    result = torch.log(x)
    torch.view_as_real(result).div_(math.log(2.0))
    return result


def _log1p(x: Tensor) -> Tensor:
    """Far out it is the logarithm, which has the limits."""
    return torch.where(torch.isfinite(x), torch.log1p(x), torch.log(x))


def _tanh(x: Tensor) -> Tensor:
    """Far out on the real axis it is 1 or -1, on the side of the axis where the number is.

    On an axis it stays there, or on it and NaN.
    """
    return _at_limits(torch.tanh(x), x.real, x.imag, (0, 1))


def _tan(x: Tensor) -> Tensor:
    """As `_tanh`, but far out on the imaginary axis."""
    return _at_limits(torch.tan(x), x.imag, x.real, (1, 0))


def _at_limits(result: Tensor, far: Tensor, near: Tensor, order: tuple[int, int]) -> Tensor:
    """`result`, but where one part is infinite and the other finite, their signs as 1 and 0.

    Where one part is 0 and the other not finite, the zero stays. `order` says which parts of the
    result belong to them.
    """
    parts = torch.view_as_real(result)
    limit = torch.isinf(far) & torch.isfinite(near)
    for part, source, other, magnitude in zip(
        order, (far, near), (near, far), (1.0, 0.0), strict=True
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
"""What takes the place of torch's functions for complex tensors."""
