"""16-bit floats computed in float32, where torch is slow or rounds more than once."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from types import MethodType
from typing import Any

import torch

from burn.plugin_api import specializing
from burn_torch.dtypes import HALF_FLOATS, Tensor

__all__ = ["for_each_dtype", "has_finite_sum", "in_float32", "on_host_in_float32"]


def has_finite_sum(x: Tensor) -> bool:
    """Whether the sum is finite, which implies that all elements are; the cheapest test."""
    total = torch.sum(x, dtype=torch.float32) if x.dtype is torch.float16 else torch.sum(x)
    return math.isfinite(total.item())


def in_float32(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: a method computes 16-bit floats in float32 and rounds once."""

    @functools.wraps(method)
    def call(self: Any, x: Tensor, *operands: Any, **attributes: Any) -> Any:
        if x.dtype in HALF_FLOATS:
            return _widened(method, self, x, operands, attributes)
        return method(self, x, *operands, **attributes)

    return _with_own(call, method)


def on_host_in_float32(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: `in_float32` on the CPU, where 16-bit products take a thousand times as long.

    Accelerators multiply 16-bit floats and add them up in float32.
    """

    @functools.wraps(method)
    def call(self: Any, x: Tensor, *operands: Any, **attributes: Any) -> Any:
        if x.dtype in HALF_FLOATS and self.on_host:
            return _widened(method, self, x, operands, attributes)
        return method(self, x, *operands, **attributes)

    return _with_own(call, method)


def for_each_dtype(method: Any) -> Callable[..., Any] | None:
    """A bound method of these decorators, which itself runs for all but 16-bit floats.

    None for another method.
    """
    own = getattr(method, "own", None)
    if own is None:
        return None
    exact = MethodType(own, method.__self__)
    call = functools.partial(method)
    return specializing(call, lambda dtype: method if dtype.itemsize == 2 else exact)


def _with_own(call: Any, method: Callable[..., Any]) -> Callable[..., Any]:
    call.own = method
    return call  # type: ignore[no-any-return]  # a function


def _widened(
    method: Callable[..., Any],
    self: Any,
    x: Tensor,
    operands: tuple[Any, ...],
    attributes: dict[str, Any],
) -> Any:
    dtype = x.dtype
    wide = [
        tensor.to(torch.float32) if isinstance(tensor, Tensor) and tensor.dtype is dtype else tensor
        for tensor in (x, *operands)
    ]
    result = method(self, *wide, **attributes)
    if result.__class__ is tuple:
        return tuple([_narrowed(item, dtype) for item in result])
    return _narrowed(result, dtype)


def _narrowed(x: Tensor, dtype: torch.dtype) -> Tensor:
    return x.to(dtype) if x.dtype is torch.float32 else x
