"""Samples of pooling that is composed of others, of what undoes it, and of random slopes."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn.errors import ArgumentError, OutOfRangeError, ShapeError
from burn.testing.arrays import floats
from burn.testing.function_samples import call, function_reference, wrong
from burn.testing.op_samples import Array

_LENGTHS = {1: (7,), 2: (5, 4), 3: (4, 3, 2)}
"""Spatial lengths of the samples, by their number."""


def _windows(x: Array, kernel: int, stride: int, count: int) -> Array:
    """The windows of the last axes, each flat along a new last axis."""
    axes = tuple(range(x.ndim - count, x.ndim))
    found = np.lib.stride_tricks.sliding_window_view(x, (kernel,) * count, axes)
    steps = (slice(None),) * (x.ndim - count) + (slice(None, None, stride),) * count
    return found[steps].reshape(*found[steps].shape[: x.ndim], kernel**count)


def _lp_pool(count: int) -> None:
    x = floats(2, *_LENGTHS[count])

    @function_reference(
        f"nn.functional.lp_pool{count}d",
        samples=[
            call("lengths", x, 2.0, 2),
            call("sums", x, 1.0, 2, 1),
            call("cubes", x, 3, 2, 1),
            call("zeros", np.zeros((1, *_LENGTHS[count])), 2.0, 2, differentiable=False),
            call("no channel", x[:0], 2.0, 2),
        ],
        errors=[
            wrong("order 0", ArgumentError, x, 0.0, 2),
            wrong("too large", ShapeError, x, 2.0, 9),
        ],
        magnitude=lambda x, *_: 16.0 * np.abs(x).max(initial=0.0),
    )
    def _(x: Array, norm_type: float, kernel_size: int, stride: int | None = None) -> Array:
        found = _windows(np.abs(x), kernel_size, stride or kernel_size, count)
        result: Array = np.sum(found**norm_type, -1) ** (1.0 / norm_type)
        return result


def _adaptive_windows(length: int, count: int) -> list[slice]:
    return [slice(i * length // count, -(-(i + 1) * length // count)) for i in range(count)]


def _adaptive(count: int) -> None:
    x = floats(2, *_LENGTHS[count])

    @function_reference(
        f"nn.functional.adaptive_max_pool{count}d_with_indices",
        samples=[call("to two", x, 2), call("to three", x, (3,) * count), call("one", x, 1)],
        errors=[
            wrong("no window", ArgumentError, x, 0),
            wrong("no element", ShapeError, x[..., :0], 2),
        ],
    )
    def _(x: Array, output_size: int | tuple[int, ...]) -> tuple[Array, Array]:
        lengths = x.shape[1:]
        sizes = output_size if isinstance(output_size, tuple) else (output_size,) * count
        values = np.zeros((len(x), *sizes), x.dtype)
        indices = np.zeros(values.shape, np.int64)
        numbers = np.arange(np.prod(lengths)).reshape(lengths)
        for index in np.ndindex(sizes):
            parts = [
                _adaptive_windows(length, size)[i]
                for length, size, i in zip(lengths, sizes, index, strict=True)
            ]
            window = x[(slice(None), *parts)].reshape(len(x), -1)
            best = np.argmax(window, -1)
            values[(slice(None), *index)] = window[np.arange(len(x)), best]
            indices[(slice(None), *index)] = numbers[tuple(parts)].reshape(-1)[best]
        return values, indices


def _unpool(count: int) -> None:
    shape = (2, *[2] * count)
    x = floats(*shape)
    indices = np.arange(2**count).reshape((1, *[2] * count))[:, ::-1] + np.zeros(shape, np.int64)

    @function_reference(
        f"nn.functional.max_unpool{count}d",
        samples=[
            call("twice", x, indices, 2),
            call("a size", x, indices, 2, 2, 0, (5,) * count),
            call("padded", x, indices, 3, 2, 1),
        ],
        errors=[
            wrong("other indices", ShapeError, x, indices[:1], 2),
            wrong("a size too large", ArgumentError, x, indices, 2, 2, 0, (6,) * count),
            wrong("out of range", OutOfRangeError, x, indices + 999, 2, in_data=True),
        ],
        exact=True,
    )
    def _(
        x: Array,
        indices: Array,
        kernel_size: int,
        stride: int | None = None,
        padding: int = 0,
        output_size: tuple[int, ...] | None = None,
    ) -> Array:
        length = (2 - 1) * (stride or kernel_size) + kernel_size - 2 * padding
        lengths = output_size or (length,) * count
        flat = np.zeros((len(x), int(np.prod(lengths))), x.dtype)
        np.put_along_axis(flat, indices.reshape(len(x), -1), x.reshape(len(x), -1), 1)
        return flat.reshape(len(x), *lengths)


for _count in _LENGTHS:
    _lp_pool(_count)
    _adaptive(_count)
    _unpool(_count)


@function_reference(
    "nn.functional.rrelu",
    samples=[
        call("the mean slope", floats(2, 3)),
        call("bounds", floats(4), 0.25, 0.75),
        call("one slope", floats(3, 2), 0.5, 0.5, training=True),
    ],
    errors=[wrong("bounds exchanged", ArgumentError, floats(2), 0.5, 0.25)],
)
def _(x: Array, lower: float = 1 / 8, upper: float = 1 / 3, **_: Any) -> Array:
    return np.where(x < 0.0, x * ((lower + upper) / 2.0), x)
