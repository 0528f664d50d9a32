"""Means of windows that `avg_pool` has not: of dilated ones, and with a divisor of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burn.errors import BurnError
from burn.functions import calls
from burn.functions.creation import asarray
from burn.functions.nn._spatial_arguments import Padding, PerAxis, per_axis, pooling_attributes
from burn.functions.nn._weighted_sums import float_numbers, sums_along_axes
from burn.functions.normalize import as_flag
from burn.ops.arguments import as_integer
from burn.ops.windows.dilated_windows import dilated_windows
from burn.public_calls import public_operation

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["window_means"]


def window_means(
    operation: str,
    axis_count: int,
    x: Tensor,
    kernel_size: PerAxis,
    stride: PerAxis | None,
    padding: Padding,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
    dilation: PerAxis,
) -> Tensor:
    """Mean of each window along the last axes; see `burn.nn.functional.avg_pool2d`."""
    attributes = pooling_attributes(operation, axis_count, kernel_size, stride, padding, ceil_mode)
    spread = per_axis(dilation, axis_count, "dilation", operation)
    count_include_pad = as_flag(count_include_pad, "count_include_pad", operation)
    if divisor_override is None and set(spread) == {1}:
        return calls.avg_pool(x, **attributes, count_include_pad=count_include_pad)
    divisor: Any = None
    if divisor_override is not None:
        divisor = as_integer(divisor_override, "divisor_override", operation, least=1)
    x = float_numbers(x, operation)
    try:
        sums, counts = dilated_windows(
            tuple(x.shape), **attributes, dilation=spread, count_include_pad=count_include_pad
        )
    except BurnError as error:
        error.operation = public_operation(operation)
        raise
    total = sums_along_axes(x, sums)
    if divisor is None:
        divisor = asarray(counts, dtype=total.dtype, device=x.device)
    means: Tensor = (total / divisor).astype(x.dtype, copy=False)
    return means
