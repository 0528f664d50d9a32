"""What samples of deformable windows share. References loop over the sample points."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from burn.errors import ArgumentError, ShapeError
from burn.testing.arrays import expanded, floats, reversed_view, strided, transposed
from burn.testing.op_samples import Array, sample

__all__ = [
    "ERRORS",
    "OFFSET",
    "SAMPLES",
    "X",
    "between",
    "columns_shape",
    "mask_of",
    "numbers_of",
    "sample_points",
    "unfolded",
    "value_terms",
]


def numbers_of(**changed: Any) -> dict[str, Any]:
    """Attributes of windows in which nothing is special but what is said."""
    plain = {"stride": (1, 1), "padding": ((0, 0), (0, 0)), "dilation": (1, 1)}
    return {"kernel_size": (2, 2), **plain, "offset_groups": 1, **changed}


class _SamplePoint(NamedTuple):
    """A sample point: an element of a window, moved by its offset.

    `row` and `column` say where its value stands in the columns, `part` is the channel of the mask,
    and `window` where the window is. `corners` are the four elements around it: their indices (None
    outside the image), their weights, and the slopes of these down and across.
    """

    image: int
    channel: int
    row: int
    column: int
    part: int
    window: tuple[int, int]
    corners: list[tuple[Any, float, float, float]]


def sample_points(
    shape: tuple[int, ...], offset: Array, numbers: dict[str, Any]
) -> Iterator[_SamplePoint]:
    """The sample points of all windows."""
    images, channels, height, width = shape
    kernel, groups = numbers["kernel_size"], numbers["offset_groups"]
    counts = offset.shape[2:]
    for image, channel in np.ndindex(images, channels):
        group = channel // (channels // groups)
        for (i, j), index in itertools.product(np.ndindex(*kernel), np.ndindex(*counts)):
            part = (group * kernel[0] + i) * kernel[1] + j
            row = (channel * kernel[0] + i) * kernel[1] + j
            y, x = (
                position * numbers["dilation"][axis]
                + index[axis] * numbers["stride"][axis]
                - numbers["padding"][axis][0]
                + offset[(image, 2 * part + axis, *index)]
                for axis, position in enumerate((i, j))
            )
            corners = list(_corners(y, x, height, width))
            column = index[0] * counts[1] + index[1]
            yield _SamplePoint(image, channel, row, column, part, (index[0], index[1]), corners)


def _corners(
    y: float, x: float, height: int, width: int
) -> Iterator[tuple[Any, float, float, float]]:
    if math.isinf(y) or math.isinf(x):
        return
    if math.isnan(y) or math.isnan(x):
        yield (0, 0), math.nan, math.nan, math.nan
        return
    top, left = math.floor(y), math.floor(x)
    for row, column in itertools.product((top, top + 1), (left, left + 1)):
        down, across = 1.0 - abs(y - row), 1.0 - abs(x - column)
        inside = 0 <= row < height and 0 <= column < width
        yield (
            (row, column) if inside else None,
            down * across,
            across * (1.0 if row > top else -1.0),
            down * (1.0 if column > left else -1.0),
        )


def columns_shape(offset: Array, channels: int, numbers: dict[str, Any]) -> tuple[int, int, int]:
    """Shape of what the windows hold."""
    indices = numbers["kernel_size"][0] * numbers["kernel_size"][1]
    return (offset.shape[0], channels * indices, offset.shape[2] * offset.shape[3])


def unfolded(x: Array, offset: Array, mask: Array | None, **numbers: Any) -> Array:
    """Return what `deform_unfold4d` should."""
    columns = np.zeros(columns_shape(offset, x.shape[1], numbers))
    for sample_point in sample_points(x.shape, offset, numbers):
        value = sum(
            weight * x[(sample_point.image, sample_point.channel, *index)]
            for index, weight, _, _ in sample_point.corners
            if index is not None
        )
        if mask is not None:
            value *= mask[(sample_point.image, sample_point.part, *sample_point.window)]
        columns[sample_point.image, sample_point.row, sample_point.column] = value
    return columns


def value_terms(x: Array, mask: Array | None) -> tuple[Any, Any]:
    """For a value of a window."""
    # What the weights are made of is rounded at the size of the coordinates, not of the weights.
    reach = max(x.shape[2:]) * float(np.abs(x).max(initial=0.0))
    return 4, reach * (1.0 if mask is None else float(np.abs(mask).max(initial=0.0)))


def mask_of(*shape: int) -> Array:
    """Factors that are not near 0."""
    return floats(*shape, low=0.2, high=1.5, phase=0.6)


def between(*shape: int, low: float = -1.9, high: float = 1.9) -> Array:
    """Offsets that lead between elements, where the slopes exist."""
    offset = floats(*shape, low=low, high=high, phase=0.45)
    near = np.abs(offset - np.round(offset)) < 0.05
    return np.where(near, offset + 0.1, offset)


X = floats(2, 2, 4, 5)

SAMPLES = [
    sample("images", X, between(2, 8, 3, 4), mask_of(2, 4, 3, 4), **numbers_of()),
    sample("without a mask", X, between(2, 8, 3, 4), None, **numbers_of()),
    sample(
        "padding",
        floats(1, 2, 3, 3),
        between(1, 8, 4, 5),
        mask_of(1, 4, 4, 5),
        **numbers_of(padding=((1, 1), (2, 1))),
    ),
    sample("stride", X, between(2, 8, 2, 2), None, **numbers_of(stride=(2, 3))),
    sample(
        "dilation",
        X,
        between(2, 12, 2, 1),
        mask_of(2, 6, 2, 1),
        **numbers_of(dilation=(2, 2), kernel_size=(2, 3)),
    ),
    sample(
        "groups",
        floats(2, 4, 3, 4),
        between(2, 16, 2, 3),
        mask_of(2, 8, 2, 3),
        **numbers_of(offset_groups=2),
    ),
    sample(
        "a group for each channel",
        floats(1, 3, 3, 3),
        between(1, 12, 3, 2),
        None,
        **numbers_of(offset_groups=3, kernel_size=(1, 2)),
    ),
    sample("far outside", X, between(2, 8, 3, 4, low=-9.0, high=9.0), None, **numbers_of()),
    sample(
        "1x1 images",
        floats(2, 1, 1, 1),
        between(2, 2, 1, 1, low=-0.9, high=0.9),
        None,
        **numbers_of(kernel_size=(1, 1)),
    ),
    sample(
        "empty batch", floats(0, 2, 4, 5), floats(0, 8, 3, 4), floats(0, 4, 3, 4), **numbers_of()
    ),
    sample(
        "no channels", floats(2, 0, 4, 5), between(2, 8, 3, 4), mask_of(2, 4, 3, 4), **numbers_of()
    ),
    sample(
        "transposed",
        transposed(X),
        transposed(between(2, 8, 3, 4)),
        transposed(mask_of(2, 4, 3, 4)),
        **numbers_of(),
    ),
    sample("strided", strided(X), strided(between(2, 8, 3, 4)), None, **numbers_of()),
    sample(
        "reversed",
        reversed_view(X),
        reversed_view(between(2, 8, 3, 4)),
        expanded(mask_of(1, 4, 1, 1), 2, 4, 3, 4),
        **numbers_of(),
    ),
    sample(
        "positions that are elements",
        X,
        np.round(floats(2, 8, 3, 4)),
        None,
        **numbers_of(),
        differentiable=False,
    ),
    sample(
        "offsets that are no numbers",
        floats(1, 1, 2, 2),
        np.array([[[[np.nan, np.inf], [-np.inf, 0.5]], [[0.0, 0.0], [np.nan, np.inf]]]]),
        None,
        **numbers_of(kernel_size=(1, 1)),
    ),
]

OFFSET = floats(2, 8, 3, 4)

ERRORS = [
    ("unbatched", ShapeError, floats(2, 4, 5), OFFSET, None, numbers_of()),
    ("offset", ShapeError, X, floats(2, 4, 3, 4), None, numbers_of()),
    ("offset of another batch", ShapeError, X, floats(1, 8, 3, 4), None, numbers_of()),
    ("offset of other windows", ShapeError, X, floats(2, 8, 4, 3), None, numbers_of()),
    ("mask", ShapeError, X, OFFSET, floats(2, 8, 3, 4), numbers_of()),
    ("mask to be repeated", ShapeError, X, OFFSET, floats(1, 4, 3, 4), numbers_of()),
    ("groups of channels", ShapeError, X, floats(2, 24, 3, 4), None, numbers_of(offset_groups=3)),
    ("no groups", ArgumentError, X, floats(2, 0, 3, 4), None, numbers_of(offset_groups=0)),
    ("kernel too long", ShapeError, X, OFFSET, None, numbers_of(kernel_size=(5, 2))),
    ("stride 0", ArgumentError, X, OFFSET, None, numbers_of(stride=(1, 0))),
]
