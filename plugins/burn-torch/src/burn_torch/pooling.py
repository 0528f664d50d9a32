"""Pooling by torch's own kernels: over one to three axes, with equal padding at both ends."""

from __future__ import annotations

import math
from typing import Any, Final, Unpack

import torch

from burn.dtype import DType
from burn.ops.max_pooling import check_index_dtype, check_indices
from burn.ops.pooling_windows import (
    Pairs,
    Sizes,
    WindowRule,
    check_pooled,
    pooled_shape,
    spatial_axes,
    unpooled_shape,
    windows,
)
from burn_torch.defaults import DefaultOps
from burn_torch.dtypes import TORCH, Tensor
from burn_torch.precision import in_float32

_aten: Final = torch.ops.aten
_MAX: Final = {2: torch._C._nn.max_pool2d_with_indices, 3: torch._C._nn.max_pool3d_with_indices}
_AVG: Final = {2: torch._C._nn.avg_pool2d, 3: torch._C._nn.avg_pool3d}
_AVG_GRAD: Final[dict[int, Any]] = {
    2: _aten.avg_pool2d_backward.default,
    3: _aten.avg_pool3d_backward.default,
}
_ADAPTIVE: Final = {2: torch._C._nn.adaptive_avg_pool2d, 3: torch._C._nn.adaptive_avg_pool3d}
_ADAPTIVE_GRAD: Final[dict[int, Any]] = {
    2: _aten._adaptive_avg_pool2d_backward.default,
    3: _aten._adaptive_avg_pool3d_backward.default,
}


class PoolingOps(DefaultOps):
    """Largest elements and means of windows."""

    def max_pool(self, x: Tensor, **rule: Unpack[WindowRule]) -> Tensor:
        """`torch.max_pool2d` and its like, which note no places."""
        plan = windows(tuple(x.shape), **rule)
        both = _symmetric(x, rule["padding"])
        if both is None or not x.dtype.is_floating_point:
            return self.decomposed("max_pool", x, **rule)  # type: ignore[no-any-return]  # a primitive
        count = len(plan)
        function = torch.max_pool3d if count == 3 else torch.max_pool2d
        sizes = (*_of_windows(rule, both), _at_least_two(rule["dilation"]))
        output = function(_with_channels(x, count), *sizes, rule.get("ceil_mode", False))
        return output.reshape(pooled_shape(tuple(x.shape), plan))

    def max_pool_with_indices(
        self, x: Tensor, *, index_dtype: DType, **rule: Unpack[WindowRule]
    ) -> tuple[Tensor, Tensor]:
        """Torch's kernel, which finds the last NaN of a window where the first is wanted."""
        plan = windows(tuple(x.shape), **rule)
        check_index_dtype(plan, index_dtype)
        both = _symmetric(x, rule["padding"])
        if both is None or not x.dtype.is_floating_point:
            return self.decomposed(  # type: ignore[no-any-return]  # primitives
                "max_pool_with_indices", x, index_dtype=index_dtype, **rule
            )
        shape = pooled_shape(tuple(x.shape), plan)
        count = len(plan)
        rows = _with_channels(x, count)
        arguments = (*_of_windows(rule, both), _at_least_two(rule["dilation"]))
        ceil_mode = rule.get("ceil_mode", False)
        kernel = _MAX[max(count, 2)]
        output, places = kernel(rows, *arguments, ceil_mode)
        missing = torch.isnan(output)
        if not self.on_host or bool(missing.any()):
            _, first = kernel(torch.isnan(rows).to(torch.float32), *arguments, ceil_mode)
            places = torch.where(missing, first, places)
        native = TORCH[index_dtype]
        places = places if native is torch.int64 else places.to(native)
        return output.reshape(shape), places.reshape(shape)

    def max_pool_grad(self, g: Tensor, indices: Tensor, *, input_size: Sizes) -> Tensor:
        """Added where the largest elements were."""
        shape = check_indices(tuple(g.shape), tuple(indices.shape), input_size)
        lead = shape[: len(shape) - len(input_size)]
        zeros = g.new_zeros((*lead, math.prod(input_size)))
        flat = (*lead, math.prod(g.shape[len(lead) :]))
        total = self.scatter_add(  # type: ignore[attr-defined]  # of IndexingOps
            zeros, indices.reshape(flat), g.reshape(flat), axis=len(lead)
        )
        return total.reshape(shape)  # type: ignore[no-any-return]  # a tensor

    @in_float32
    def avg_pool(
        self, x: Tensor, *, count_include_pad: bool = True, **rule: Unpack[WindowRule]
    ) -> Tensor:
        """`torch.nn.functional.avg_pool2d` and its like."""
        plan = windows(tuple(x.shape), **rule)
        both = _symmetric(x, rule["padding"])
        if both is None:
            return self.decomposed(  # type: ignore[no-any-return]  # a primitive
                "avg_pool", x, count_include_pad=count_include_pad, **rule
            )
        rows = _with_channels(x, len(plan))
        output = _AVG[max(len(plan), 2)](
            rows, *_of_windows(rule, both), rule.get("ceil_mode", False), count_include_pad
        )
        return output.reshape(pooled_shape(tuple(x.shape), plan))

    @in_float32
    def avg_pool_grad(
        self,
        g: Tensor,
        *,
        input_size: Sizes,
        count_include_pad: bool = True,
        **rule: Unpack[WindowRule],
    ) -> Tensor:
        """What torch's own gradient calls."""
        plan = windows(input_size, **rule)
        check_pooled(tuple(g.shape), input_size, plan)
        both = _symmetric(g, rule["padding"])
        if both is None:
            return self.decomposed(  # type: ignore[no-any-return]  # a primitive
                "avg_pool_grad",
                g,
                input_size=input_size,
                count_include_pad=count_include_pad,
                **rule,
            )
        shape = unpooled_shape(tuple(g.shape), input_size)
        like = _with_channels(g.new_empty(1).expand(shape), len(plan))
        result = _AVG_GRAD[max(len(plan), 2)](
            _with_channels(g, len(plan)),
            like,
            *_of_windows(rule, both),
            rule.get("ceil_mode", False),
            count_include_pad,
            None,
        )
        return result.reshape(shape)  # type: ignore[no-any-return]  # a tensor

    @in_float32
    def adaptive_avg_pool(self, x: Tensor, *, output_size: Sizes) -> Tensor:
        """`torch.nn.functional.adaptive_avg_pool2d` and its like."""
        count = len(output_size)
        lead, _ = spatial_axes(tuple(x.shape), count)
        if count > 3 or not x.numel() or min(output_size) < 1:
            return self.decomposed("adaptive_avg_pool", x, output_size=output_size)  # type: ignore[no-any-return]  # a primitive
        sizes = _at_least_two(output_size, 1)
        output = _ADAPTIVE[len(sizes)](_with_channels(x, count), sizes)
        return output.reshape(*lead, *output_size)

    @in_float32
    def adaptive_avg_pool_grad(self, g: Tensor, *, input_size: Sizes) -> Tensor:
        """What torch's own gradient calls."""
        shape = unpooled_shape(tuple(g.shape), input_size)
        count = len(input_size)
        if count > 3 or not g.numel():
            return self.decomposed("adaptive_avg_pool_grad", g, input_size=input_size)  # type: ignore[no-any-return]  # a primitive
        like = _with_channels(g.new_empty(1).expand(shape), count)
        result = _ADAPTIVE_GRAD[max(count, 2)](_with_channels(g, count), like)
        return result.reshape(shape)  # type: ignore[no-any-return]  # a tensor


def _symmetric(x: Tensor, padding: Pairs) -> Sizes | None:
    """Padding that is the same at both ends of every axis; None where torch has no kernel."""
    if len(padding) > 3 or not x.numel() or any(before != after for before, after in padding):
        return None
    return tuple([before for before, _ in padding])


def _with_channels(x: Tensor, count: int) -> Tensor:
    """A tensor as channels of two spatial axes, or of three."""
    spatial = tuple(x.shape)[x.dim() - count :]
    lead = math.prod(x.shape[: x.dim() - count])
    return x.reshape(1, lead, *((1, *spatial) if count == 1 else spatial))


def _at_least_two(sizes: Sizes, first: int = 1) -> Sizes:
    return (first, *sizes) if len(sizes) == 1 else sizes


def _of_windows(rule: WindowRule, padding: Sizes) -> tuple[Sizes, Sizes, Sizes]:
    """Numbers of windows over two axes or more."""
    sizes = _at_least_two(rule["kernel_size"]), _at_least_two(rule["stride"])
    return (*sizes, _at_least_two(padding, 0))
