"""Windows in plain Python, for the references of pooling."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

Places = tuple[int, ...]


def starts(
    length: int, kernel: int, stride: int, before: int, after: int, dilation: int, ceil_mode: bool
) -> list[int]:
    """First place of each window along an axis, found by moving on until the end is reached."""
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
    spatial: Places,
    *,
    kernel_size: Places,
    stride: Places,
    padding: tuple[tuple[int, int], ...],
    dilation: Places | None = None,
    ceil_mode: bool = False,
) -> Iterator[tuple[Places, list[Places]]]:
    """Each window's place in the result, and the places it holds, those of padding among them."""
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
    for place in itertools.product(*[range(len(axis)) for axis in axes]):
        held = [axis[number] for axis, number in zip(axes, place, strict=True)]
        yield place, list(itertools.product(*held))


def inside(place: Places, spatial: Places) -> bool:
    """Whether a place is no padding."""
    return all(0 <= number < length for number, length in zip(place, spatial, strict=True))
