"""Pooling by torch's kernels: over one to three axes, with equal padding at both ends."""

from __future__ import annotations

import functools
import math
from typing import Any, Final, NamedTuple, Unpack

import torch

from burn.plugin_api import (
    AvgPoolAttributes,
    DType,
    MaxPoolAttributes,
    Pairs,
    Shape,
    Sizes,
    check_pool_index_dtype,
    check_pool_indices,
    check_pooled,
    pool_windows,
    pooled_shape,
    split_spatial_axes,
    unpooled_shape,
)
from burn_torch.base import TorchOps
from burn_torch.dtypes import TORCH_DTYPES, Tensor
from burn_torch.precision import has_finite_sum, in_float32
from burn_torch.settings import in_any_order

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


class PoolingOps(TorchOps):
    """Largest elements and means of windows."""

    def max_pool(self, x: Tensor, **attributes: Unpack[MaxPoolAttributes]) -> Tensor:
        """`torch.max_pool2d` or `torch.max_pool3d`, which compute no indices."""
        call = _max_pool_call(x.shape, None, **attributes)
        if call.arguments is None or not x.dtype.is_floating_point:
            return self.decomposed("max_pool", x, **attributes)
        function = torch.max_pool3d if len(call.rows) == 5 else torch.max_pool2d
        output = function(x.reshape(call.rows), *call.arguments)
        return output if call.rows == x.shape else output.reshape(call.pooled)

    def max_pool_with_indices(
        self, x: Tensor, *, index_dtype: DType, **attributes: Unpack[MaxPoolAttributes]
    ) -> tuple[Tensor, Tensor]:
        """Torch's kernel; it finds the last NaN of a window, so the first is searched for again."""
        call = _max_pool_call(x.shape, index_dtype, **attributes)
        if call.arguments is None or not x.dtype.is_floating_point:
            return self.decomposed(
                "max_pool_with_indices", x, index_dtype=index_dtype, **attributes
            )
        is_as_it_is = call.rows == x.shape
        rows = x if is_as_it_is else x.reshape(call.rows)
        kernel = _MAX[len(call.rows) - 2]
        output, indices = kernel(rows, *call.arguments)
        if not self.on_host or not has_finite_sum(output):
            # 1 where there is NaN, of the smallest dtype that the kernels take
            flags = torch.empty_like(rows, dtype=torch.bfloat16)
            _, first = kernel(torch.ne(rows, rows, out=flags), *call.arguments)
            indices = torch.where(torch.isnan(output), first, indices)
        native = TORCH_DTYPES[index_dtype]
        indices = indices if native is torch.int64 else indices.to(native)
        if is_as_it_is:
            return output, indices
        return output.reshape(call.pooled), indices.reshape(call.pooled)

    @in_float32
    @in_any_order
    def max_pool_grad(self, g: Tensor, indices: Tensor, *, input_size: Sizes) -> Tensor:
        """Adds the gradients at the indices."""
        shape = check_pool_indices(tuple(g.shape), tuple(indices.shape), input_size)
        lead = shape[: len(shape) - len(input_size)]
        length = math.prod(input_size)
        rows = g.reshape(*lead, math.prod(g.shape[len(lead) :]))

        def add(indices: Tensor) -> Tensor:
            # On an accelerator in no fixed order, as torch's own kernel: of a few elements each.
            return g.new_zeros((*lead, length)).scatter_add_(len(lead), indices, rows)

        return self.indexed(add, indices.reshape(rows.shape), length).reshape(shape)

    @in_float32
    def avg_pool(
        self, x: Tensor, *, count_include_pad: bool, **attributes: Unpack[AvgPoolAttributes]
    ) -> Tensor:
        """`torch.nn.functional.avg_pool2d` or 3d."""
        plan = pool_windows(tuple(x.shape), **attributes)
        both = _symmetric(x, attributes["padding"])
        if both is None or _is_short(tuple(x.shape), attributes["kernel_size"]):
            return self.decomposed("avg_pool", x, count_include_pad=count_include_pad, **attributes)
        rows = _with_channels(x, len(plan))
        output = _AVG[max(len(plan), 2)](
            rows,
            *_window_arguments(attributes, both),
            attributes["ceil_mode"],
            count_include_pad,
        )
        return output.reshape(pooled_shape(tuple(x.shape), plan))

    @in_float32
    @in_any_order
    def avg_pool_grad(
        self,
        g: Tensor,
        *,
        input_size: Sizes,
        count_include_pad: bool,
        **attributes: Unpack[AvgPoolAttributes],
    ) -> Tensor:
        """Torch's backward kernel."""
        plan = pool_windows(input_size, **attributes)
        check_pooled(tuple(g.shape), input_size, plan)
        both = _symmetric(g, attributes["padding"])
        if both is None or _is_short(input_size, attributes["kernel_size"]):
            return self.decomposed(
                "avg_pool_grad",
                g,
                input_size=input_size,
                count_include_pad=count_include_pad,
                **attributes,
            )
        shape = unpooled_shape(tuple(g.shape), input_size)
        like = _with_channels(g.new_empty(1).expand(shape), len(plan))
        result = _AVG_GRAD[max(len(plan), 2)](
            _with_channels(g, len(plan)),
            like,
            *_window_arguments(attributes, both),
            attributes["ceil_mode"],
            count_include_pad,
            None,
        )
        return result.reshape(shape)  # type: ignore[no-any-return]  # a tensor

    @in_float32
    def adaptive_avg_pool(self, x: Tensor, *, output_size: Sizes) -> Tensor:
        """`torch.nn.functional.adaptive_avg_pool2d` or 3d."""
        count = len(output_size)
        lead, _ = split_spatial_axes(tuple(x.shape), count)
        if count > 3 or not x.numel() or min(output_size) < 1:
            return self.decomposed("adaptive_avg_pool", x, output_size=output_size)
        sizes = _at_least_two(output_size, 1)
        output = _ADAPTIVE[len(sizes)](_with_channels(x, count), sizes)
        return output.reshape(*lead, *output_size)

    @in_float32
    @in_any_order
    def adaptive_avg_pool_grad(self, g: Tensor, *, input_size: Sizes) -> Tensor:
        """Torch's backward kernel."""
        shape = unpooled_shape(tuple(g.shape), input_size)
        count = len(input_size)
        if count > 3 or not g.numel():
            return self.decomposed("adaptive_avg_pool_grad", g, input_size=input_size)
        like = _with_channels(g.new_empty(1).expand(shape), count)
        result = _ADAPTIVE_GRAD[max(count, 2)](_with_channels(g, count), like)
        return result.reshape(shape)  # type: ignore[no-any-return]  # a tensor


class _MaxPoolCall(NamedTuple):
    """How a tensor of some shape is pooled."""

    rows: Shape
    """Its shape with two spatial axes, or three, behind the channels."""
    pooled: Shape
    """The shape of the output."""
    arguments: tuple[Any, ...] | None
    """What a kernel takes beside the tensor; None where torch has no kernel."""


@functools.lru_cache(maxsize=1024)
def _max_pool_call(
    shape: torch.Size, index_dtype: DType | None, **attributes: Unpack[MaxPoolAttributes]
) -> _MaxPoolCall:
    windows = pool_windows(tuple(shape), **attributes)
    if index_dtype is not None:
        check_pool_index_dtype(windows, index_dtype)
    count = len(windows)
    lead, spatial = tuple(shape)[:-count], tuple(shape)[-count:]
    if count == 1 or len(lead) != 2:
        lead = (1, math.prod(lead))
    rows = (*lead, *_at_least_two(spatial, 1))
    padding = attributes["padding"]
    arguments = None
    if count <= 3 and 0 not in shape and all(before == after for before, after in padding):
        arguments = (
            *_window_arguments(attributes, tuple([before for before, _ in padding])),
            _at_least_two(attributes["dilation"]),
            attributes["ceil_mode"],
        )
    return _MaxPoolCall(rows, pooled_shape(tuple(shape), windows), arguments)


def _symmetric(x: Tensor, padding: Pairs) -> Sizes | None:
    """Padding equal at both ends of every axis; None where torch has no kernel."""
    if len(padding) > 3 or not x.numel() or any(before != after for before, after in padding):
        return None
    return tuple([before for before, _ in padding])


def _is_short(shape: Sizes, kernel: Sizes) -> bool:
    """Whether torch's means of three axes refuse a tensor: one is shorter than the windows."""
    pairs = zip(reversed(shape), reversed(kernel), strict=False)
    return len(kernel) == 3 and any(length < size for length, size in pairs)


def _with_channels(x: Tensor, count: int) -> Tensor:
    """A tensor as channels of two spatial axes, or of three."""
    spatial = tuple(x.shape)[x.dim() - count :]
    lead = math.prod(x.shape[: x.dim() - count])
    return x.reshape(1, lead, *((1, *spatial) if count == 1 else spatial))


def _at_least_two(sizes: Sizes, first: int = 1) -> Sizes:
    return (first, *sizes) if len(sizes) == 1 else sizes


def _window_arguments(
    attributes: AvgPoolAttributes | MaxPoolAttributes, padding: Sizes
) -> tuple[Sizes, Sizes, Sizes]:
    """Kernel size, stride and padding for a kernel of two axes or more."""
    sizes = _at_least_two(attributes["kernel_size"]), _at_least_two(attributes["stride"])
    return (*sizes, _at_least_two(padding, 0))
