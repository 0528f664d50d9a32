"""Largest elements of windows put back where they came from: the inverse of maximum pooling."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from burn.docstrings import documented_as
from burn.errors import ArgumentError, ShapeError
from burn.functions import calls
from burn.functions.creation import zeros
from burn.functions.manipulation import reshape
from burn.functions.nn._spatial_arguments import Padding, PerAxis, as_padding, per_axis
from burn.functions.normalize import check_tensor, number_dtype, rank_of
from burn.functions.quantization import numbers_of
from burn.functions.spatial_words import SIGNALS, VOLUMES
from burn.ops.shapes import size
from burn.public_calls import shown_value

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["max_unpool1d", "max_unpool2d", "max_unpool3d"]

UnpooledSize: TypeAlias = tuple[int, ...] | None


def max_unpool2d(
    x: Tensor,
    indices: Tensor,
    /,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: Padding = 0,
    output_size: UnpooledSize = None,
) -> Tensor:
    """The largest elements of windows at their indices in images, and zeros elsewhere.

    Parameters
    ----------
    x : Tensor, shape (..., rows, columns)
        The largest elements, as `max_pool2d_with_indices` gives them.
    indices : Tensor, shape (..., rows, columns)
        Their indices: ``row * W + column``.
    kernel_size, stride, padding
        As of the pooling.
    output_size : tuple of int, optional
        Lengths of the spatial axes of the result, or its whole shape; several have the same
        windows. By default ``(windows - 1) * stride + kernel_size - padding`` along each axis,
        where padding is that of both ends.

    Returns
    -------
    Tensor, shape (..., H, W)
        In the dtype of `x`. Of several elements with one index the last one counts.

    Raises
    ------
    ShapeError
        If the shapes of `x` and `indices` differ, or `x` has too few axes.
    ArgumentError
        If `output_size` differs from the default by a stride or more.
    OutOfRangeError
        If an index is beyond the result; on an asynchronous device at the next read.

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.asarray([[1.0, 3.0], [4.0, 2.0]], device="cpu")
    >>> pooled = F.max_pool2d_with_indices(x, 2)
    >>> F.max_unpool2d(pooled.values, pooled.indices, 2).tolist()
    [[0.0, 0.0], [4.0, 0.0]]
    """
    return _max_unpool(x, indices, kernel_size, stride, padding, output_size, 2)


@documented_as(max_unpool2d, SIGNALS)
def max_unpool1d(
    x: Tensor,
    indices: Tensor,
    /,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: Padding = 0,
    output_size: UnpooledSize = None,
) -> Tensor:
    """The largest elements of windows at their indices in signals, and zeros elsewhere.

    The parameters are those of `max_unpool2d`, with `x` of shape (..., windows).

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.asarray([1.0, 3.0, 2.0, 0.0], device="cpu")
    >>> pooled = F.max_pool1d_with_indices(x, 2)
    >>> F.max_unpool1d(pooled.values, pooled.indices, 2).tolist()
    [0.0, 3.0, 2.0, 0.0]
    """
    return _max_unpool(x, indices, kernel_size, stride, padding, output_size, 1)


@documented_as(max_unpool2d, VOLUMES)
def max_unpool3d(
    x: Tensor,
    indices: Tensor,
    /,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: Padding = 0,
    output_size: UnpooledSize = None,
) -> Tensor:
    """The largest elements of windows at their indices in volumes, and zeros elsewhere.

    The parameters are those of `max_unpool2d`, with `x` of shape (..., planes, rows, columns).

    Examples
    --------
    >>> import burn, burn.nn.functional as F
    >>> x = burn.asarray([[[1.0, 3.0], [4.0, 2.0]]], device="cpu")
    >>> pooled = F.max_pool3d_with_indices(x, (1, 2, 2))
    >>> F.max_unpool3d(pooled.values, pooled.indices, (1, 2, 2)).tolist()
    [[[0.0, 0.0], [4.0, 0.0]]]
    """
    return _max_unpool(x, indices, kernel_size, stride, padding, output_size, 3)


def _max_unpool(
    x: Tensor,
    indices: Tensor,
    kernel_size: PerAxis,
    stride: PerAxis | None,
    padding: Padding,
    output_size: UnpooledSize,
    axis_count: int,
) -> Tensor:
    operation = f"max_unpool{axis_count}d"
    rank = rank_of(x, operation)
    check_tensor(indices, "indices", operation)
    if x.shape != indices.shape or rank < axis_count:
        raise ShapeError(
            f"x of shape {x.shape} and indices of shape {indices.shape}",
            hint=f"Both have the shape that the pooling gave, with {axis_count} axes at the end",
            operation=operation,
        )
    kernel = per_axis(kernel_size, axis_count, "kernel_size", operation)
    steps = kernel if stride is None else per_axis(stride, axis_count, "stride", operation)
    ends = as_padding(padding, axis_count, operation)
    lead, windows = x.shape[: rank - axis_count], x.shape[rank - axis_count :]
    lengths = tuple(
        [
            (count - 1) * step + span - before - after
            for count, step, span, (before, after) in zip(windows, steps, kernel, ends, strict=True)
        ]
    )
    if output_size is not None:
        lengths = _asked_for(output_size, lead, lengths, steps, operation)
    if min(lengths) < 0:
        raise ArgumentError(
            f"windows {windows} of length {kernel}, {steps} apart, with padding {ends}",
            hint="No tensor has such windows",
            operation=operation,
        )
    x = numbers_of(x)
    flat = zeros((*lead, size(lengths)), dtype=number_dtype(x), device=x.device)
    updated = calls.scatter(
        flat,
        reshape(indices, (*lead, size(windows))),
        reshape(x, (*lead, size(windows))),
        axis=len(lead),
        update="assign",
    )
    return reshape(updated, (*lead, *lengths), copy=True)


def _asked_for(
    output_size: tuple[int, ...],
    lead: tuple[int, ...],
    lengths: tuple[int, ...],
    steps: tuple[int, ...],
    operation: str,
) -> tuple[int, ...]:
    """The lengths that a caller gives, which the windows must fit."""
    count = len(lengths)
    asked = tuple(output_size) if isinstance(output_size, (tuple, list)) else ()
    if len(asked) == len(lead) + count and asked[: len(lead)] == lead:
        asked = asked[len(lead) :]
    asked = per_axis(asked, count, "output_size", operation)
    for number, length, step in zip(asked, lengths, steps, strict=True):
        if abs(number - length) >= max(step, 1):
            raise ArgumentError(
                f"output_size is {shown_value(output_size)}",
                hint=f"It differs by less than the stride {steps} from {lengths}",
                operation=operation,
            )
    return asked
