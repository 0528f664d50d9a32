"""Arguments that have a number for each spatial axis: kernel sizes, strides, padding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from burn.errors import ArgumentError, ShapeError
from burn.functions.normalize import as_flag, rank_of
from burn.ops.arguments import as_integer
from burn.public_calls import shown_value

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = [
    "OutputSize",
    "Padding",
    "PerAxis",
    "adaptive_sizes",
    "as_padding",
    "check_batch",
    "per_axis",
    "pooling_attributes",
]

PerAxis: TypeAlias = int | tuple[int, ...]
"""One integer for all spatial axes, or one for each."""

Padding: TypeAlias = int | tuple[int | tuple[int, int], ...]
"""Like `PerAxis`, where a pair has the padding before and after the elements of an axis."""

OutputSize: TypeAlias = int | tuple[int | None, ...]
"""Like `PerAxis`, where None keeps the length of an axis."""

_MAX_SPATIAL: Final = 2**31 - 1
"""The largest stride, dilation, size or padding: what libraries take, which hold them in int32."""

_LAYOUTS: Final = {1: "(N, C, L)", 2: "(N, C, H, W)", 3: "(N, C, D, H, W)"}


def per_axis(value: Any, axis_count: int, name: str, operation: str) -> tuple[int, ...]:
    """An integer for each spatial axis."""
    if value.__class__ is int and value <= _MAX_SPATIAL:
        return (value,) * axis_count
    values = value if isinstance(value, (tuple, list)) else (value,) * axis_count
    if len(values) != axis_count:
        raise ArgumentError(
            f"{name} has {len(values)} value{'s' if len(values) != 1 else ''} for "
            f"{axis_count} spatial axes",
            hint=f"Give a number, or {axis_count}: one for each axis",
            operation=operation,
        )
    return tuple([_spatial(value, name, operation) for value in values])


def _spatial(value: Any, name: str, operation: str) -> int:
    return as_integer(value, name, operation, most=_MAX_SPATIAL)


def as_padding(padding: Any, axis_count: int, operation: str) -> tuple[tuple[int, int], ...]:
    """The padding before and after the elements of each spatial axis."""
    if padding.__class__ is int and padding <= _MAX_SPATIAL:
        return ((padding, padding),) * axis_count
    values = padding if isinstance(padding, (tuple, list)) else (padding,) * axis_count
    pairs = [value if isinstance(value, (tuple, list)) else (value, value) for value in values]
    if len(pairs) != axis_count or any(len(pair) != 2 for pair in pairs):
        raise ArgumentError(
            f"padding is {shown_value(padding)}",
            hint=f"Give a number, or {axis_count} numbers or pairs: one for each spatial axis",
            operation=operation,
        )
    return tuple(
        [
            (_spatial(before, "padding", operation), _spatial(after, "padding", operation))
            for before, after in pairs
        ]
    )


def adaptive_sizes(
    x: Tensor, output_size: OutputSize, axis_count: int, operation: str
) -> tuple[int, ...]:
    """The number of windows along each spatial axis."""
    rank = rank_of(x, operation)
    sizes: Any = output_size
    if not isinstance(sizes, (tuple, list)):
        sizes = (sizes,) * axis_count
    if len(sizes) == axis_count <= rank:
        lengths = x.shape[rank - axis_count :]
        sizes = [old if new is None else new for new, old in zip(sizes, lengths, strict=True)]
    return per_axis(tuple(sizes), axis_count, "output_size", operation)


def check_batch(operation: str, axis_count: int, x: Tensor) -> None:
    """Raise ShapeError unless `x` has the axes of a batch and of channels."""
    rank = rank_of(x, operation)
    if rank == axis_count + 2:
        return
    raise ShapeError(
        f"x has shape {x.shape} where a batch {_LAYOUTS[axis_count]} is needed",
        hint="x[None] adds a batch of one" if rank == axis_count + 1 else "",
        operation=operation,
    )


def pooling_attributes(
    operation: str,
    axis_count: int,
    kernel_size: PerAxis,
    stride: PerAxis | None,
    padding: Padding,
    ceil_mode: bool,
    **others: PerAxis,
) -> dict[str, Any]:
    """Arguments of a pooling as attributes of its op; `others` are those that some have."""
    kernel = per_axis(kernel_size, axis_count, "kernel_size", operation)
    attributes: dict[str, Any] = {
        "kernel_size": kernel,
        "stride": kernel if stride is None else per_axis(stride, axis_count, "stride", operation),
        "padding": as_padding(padding, axis_count, operation),
        "ceil_mode": as_flag(ceil_mode, "ceil_mode", operation),
    }
    for name, value in others.items():
        attributes[name] = per_axis(value, axis_count, name, operation)
    return attributes
