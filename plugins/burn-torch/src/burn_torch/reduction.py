"""Reductions and scans."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import torch

from burn.plugin_api import DType
from burn_torch.base import TorchOps
from burn_torch.dtypes import HALF_FLOATS, SIGNED_OF_UNSIGNED, TORCH_DTYPES, Tensor
from burn_torch.precision import in_float32
from burn_torch.settings import in_any_order

if TYPE_CHECKING:
    from collections.abc import Sequence

_SUM_DTYPES: Final = frozenset(
    [torch.float32, torch.float64, torch.int64, torch.float16, torch.bfloat16]
)
"""Dtypes whose sum torch returns in the same dtype."""

_sum, _amax, _amin = torch.sum, torch.amax, torch.amin


class ReductionOps(TorchOps):
    """Reductions over axes; torch reduces over all axes for an empty tuple."""

    def sum(
        self, x: Tensor, *, axis: tuple[int, ...], keepdims: bool = False, dtype: DType
    ) -> Tensor:
        """`torch.sum`, which adds 16-bit floats up in float32."""
        native = TORCH_DTYPES[dtype]
        if axis:
            if min(axis) < 0 or not x.dim():
                raise IndexError(f"axis {axis} of {x.dim()}")
            if x.dtype is native and native in _SUM_DTYPES:
                return _sum(x, axis, keepdims)
            if dtype.is_float and x.dtype.is_floating_point:
                return _sum(x, axis, keepdims, dtype=native)
        return self._reduced_in(_sum, x, axis, dtype, keepdims=keepdims)

    def prod(
        self, x: Tensor, *, axis: tuple[int, ...], keepdims: bool = False, dtype: DType
    ) -> Tensor:
        """`torch.prod`, which takes one axis; 16-bit floats in float32."""
        return self._reduced_in(_product, x, axis, dtype, keepdims=keepdims)

    def _reduced_in(
        self,
        function: Callable[..., Tensor],
        x: Tensor,
        axis: tuple[int, ...],
        dtype: DType,
        *,
        keepdims: bool,
    ) -> Tensor:
        """A reduction of elements cast to `dtype`; unsigned ones as signed ones of their size."""
        _check_axes(axis, x)
        native = TORCH_DTYPES[dtype]
        bits = SIGNED_OF_UNSIGNED.get(native, native)
        if x.dtype is not bits:
            x = self.cast(x, dtype=dtype)
            x = x.view(bits) if native in SIGNED_OF_UNSIGNED else x
        if native in HALF_FLOATS:
            x = x.to(torch.float32)
        if axis:
            x = function(x, axis, keepdims, dtype=x.dtype)
        return x.view(native) if native in SIGNED_OF_UNSIGNED else x.to(native)

    def max(self, x: Tensor, *, axis: tuple[int, ...], keepdims: bool = False) -> Tensor:
        """`torch.amax`."""
        return _extremum(_amax, x, axis, keepdims=keepdims)

    def min(self, x: Tensor, *, axis: tuple[int, ...], keepdims: bool = False) -> Tensor:
        """`torch.amin`."""
        return _extremum(_amin, x, axis, keepdims=keepdims)

    def any(self, x: Tensor, *, axis: tuple[int, ...], keepdims: bool = False) -> Tensor:
        """`torch.any`."""
        return _truth(torch.any, x, axis, keepdims=keepdims)

    def all(self, x: Tensor, *, axis: tuple[int, ...], keepdims: bool = False) -> Tensor:
        """`torch.all`."""
        return _truth(torch.all, x, axis, keepdims=keepdims)

    def argmax(self, x: Tensor, *, axis: int, keepdims: bool = False, dtype: DType) -> Tensor:
        """`torch.argmax`; booleans as 0 and 1."""
        return _index_of(torch.argmax, x, axis, dtype, keepdims=keepdims)

    def argmin(self, x: Tensor, *, axis: int, keepdims: bool = False, dtype: DType) -> Tensor:
        """`torch.argmin`; booleans as 0 and 1."""
        return _index_of(torch.argmin, x, axis, dtype, keepdims=keepdims)

    def mean(self, x: Tensor, *, axis: tuple[int, ...], keepdims: bool = False) -> Tensor:
        """`torch.mean`; 16-bit floats in float32."""
        _check_axes(axis, x)
        if not axis:
            return x
        if x.dtype in HALF_FLOATS:
            return torch.mean(x, axis, keepdims, dtype=torch.float32).to(x.dtype)
        return torch.mean(x, axis, keepdims)

    @in_float32
    def var(
        self, x: Tensor, *, axis: tuple[int, ...], keepdims: bool = False, correction: float = 0.0
    ) -> Tensor:
        """`torch.var`; the default where the divisor is not positive, of which torch warns."""
        return self._deviation("var", torch.var, x, axis, correction, keepdims=keepdims)

    @in_float32
    def std(
        self, x: Tensor, *, axis: tuple[int, ...], keepdims: bool = False, correction: float = 0.0
    ) -> Tensor:
        """`torch.std`, as `var`."""
        return self._deviation("std", torch.std, x, axis, correction, keepdims=keepdims)

    def _deviation(
        self,
        name: str,
        function: Callable[..., Tensor],
        x: Tensor,
        axis: tuple[int, ...],
        correction: float,
        *,
        keepdims: bool,
    ) -> Tensor:
        _check_axes(axis, x)
        count = math.prod([x.shape[number] for number in axis])
        if not axis or not x.numel() or count <= correction:
            return self.decomposed(name, x, axis=axis, keepdims=keepdims, correction=correction)
        return function(x, axis, correction=correction, keepdim=keepdims)

    @in_float32
    def logsumexp(self, x: Tensor, *, axis: tuple[int, ...], keepdims: bool = False) -> Tensor:
        """`torch.logsumexp`, which takes no axes for all of them."""
        _check_axes(axis, x)
        return torch.logsumexp(x, axis, keepdims) if axis else x

    @in_float32
    @in_any_order
    def logcumsumexp(self, x: Tensor, *, axis: int) -> Tensor:
        """`torch.logcumsumexp`."""
        _check_axes((axis,), x)
        return torch.logcumsumexp(x, axis)

    @in_any_order
    def cumsum(self, x: Tensor, *, axis: int) -> Tensor:
        """`torch.cumsum`; 16-bit floats in float32."""
        return _scan(torch.cumsum, x, axis)

    def cumprod(self, x: Tensor, *, axis: int) -> Tensor:
        """`torch.cumprod`; 16-bit floats in float32."""
        return _scan(torch.cumprod, x, axis)

    def cummax(self, x: Tensor, *, axis: int) -> Tensor:
        """`torch.cummax`."""
        _check_axes((axis,), x)
        return torch.cummax(x, axis)[0]

    def cummin(self, x: Tensor, *, axis: int) -> Tensor:
        """`torch.cummin`."""
        _check_axes((axis,), x)
        return torch.cummin(x, axis)[0]


def _check_axes(axis: Sequence[int], x: Tensor) -> None:
    """Refuse negative axes, and axes of a tensor without axes, which torch accepts."""
    if axis and (min(axis) < 0 or not x.dim()):  # torch refuses those that are too large
        raise IndexError(f"axis {axis} of {x.dim()}")


def _product(x: Tensor, axis: Sequence[int], keepdims: bool, *, dtype: torch.dtype) -> Tensor:
    if len(axis) == 1:
        return torch.prod(x, axis[0], keepdims, dtype=dtype)
    if len(set(axis)) < len(axis):
        raise IndexError(f"axes {axis}")
    kept = [number for number in range(x.dim()) if number not in axis]
    shape = [x.shape[number] for number in kept]
    count = math.prod([x.shape[number] for number in axis])
    rows = x.permute(*kept, *axis).reshape(*shape, count)
    result = torch.prod(rows, len(kept), dtype=dtype)
    if not keepdims:
        return result
    return result.reshape([1 if number in axis else n for number, n in enumerate(x.shape)])


def _extremum(
    function: Callable[..., Tensor], x: Tensor, axis: tuple[int, ...], *, keepdims: bool
) -> Tensor:
    _check_axes(axis, x)
    return function(x, axis, keepdims) if axis else x


def _truth(
    function: Callable[..., Any], x: Tensor, axis: tuple[int, ...], *, keepdims: bool
) -> Tensor:
    _check_axes(axis, x)
    truth = x if x.dtype is torch.bool else x != 0
    return function(truth, axis, keepdims) if axis else truth


def _index_of(
    function: Callable[..., Tensor], x: Tensor, axis: int, dtype: DType, *, keepdims: bool
) -> Tensor:
    _check_axes((axis,), x)
    if x.dtype is torch.bool:
        x = x.to(torch.uint8)
    indices = function(x, axis, keepdims)
    native = TORCH_DTYPES[dtype]
    return indices if native is torch.int64 else indices.to(native)


def _scan(function: Callable[..., Tensor], x: Tensor, axis: int) -> Tensor:
    _check_axes((axis,), x)
    if x.dtype in HALF_FLOATS:
        return function(x, axis, dtype=torch.float32).to(x.dtype)
    return function(x, axis, dtype=x.dtype)
