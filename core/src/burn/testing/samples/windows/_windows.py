"""Windows in plain Python, for the references of pooling."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

Index = tuple[int, ...]


def starts(
    length: int, kernel: int, stride: int, before: int, after: int, dilation: int, ceil_mode: bool
) -> list[int]:
    """Start of each window along an axis, found by moving on until the end is reached."""
    span = dilation * (kernel - 1) + 1
    found: list[int] = []
    start = -before
    while start + span <= length + after:
        found.append(start)
        start += stride
    if ceil_mode and start - stride + span < length + after and start < length:
        found.append(start)
    return found


def each_window(
    spatial: Index,
    *,
    kernel_size: Index,
    stride: Index,
    padding: tuple[tuple[int, int], ...],
    dilation: Index | None = None,
    ceil_mode: bool = False,
) -> Iterator[tuple[Index, list[Index]]]:
    """Each window's index in the result, and the indices of its elements, padding included."""
    dilation = dilation or (1,) * len(spatial)
    axes = [
        [
            [start + offset * spread for offset in range(kernel)]
            for start in starts(length, kernel, step, *edges, spread, ceil_mode)
        ]
        for length, kernel, step, edges, spread in zip(
            spatial, kernel_size, stride, padding, dilation, strict=True
        )
    ]
    for index in itertools.product(*[range(len(axis)) for axis in axes]):
        held = [axis[number] for axis, number in zip(axes, index, strict=True)]
        yield index, list(itertools.product(*held))


def inside(index: Index, spatial: Index) -> bool:
    """Whether an index is within the tensor, not in its padding."""
    return all(0 <= number < length for number, length in zip(index, spatial, strict=True))
