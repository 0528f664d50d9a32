"""Samples of images cut into patches, and put together again."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from burn.errors import ArgumentError, ShapeError
from burn.testing.arrays import expanded, floats, reversed_view, strided, transposed
from burn.testing.op_samples import Array, Sample, error, reference, sample


def _numbers(**changed: Any) -> dict[str, Any]:
    plain = {"stride": (1, 1), "padding": ((0, 0), (0, 0)), "dilation": (1, 1)}
    return {"kernel_size": (2, 2), **plain, **changed}


def _counts(size: tuple[int, ...], numbers: dict[str, Any]) -> list[int]:
    """Number of windows along each axis, by trying one after the other."""
    counts = []
    for axis, length in enumerate(size):
        before, after = numbers["padding"][axis]
        last = numbers["dilation"][axis] * (numbers["kernel_size"][axis] - 1)
        starts = range(-before, length + after - last, numbers["stride"][axis])
        counts.append(len(starts))
    return counts


def _indices(
    channels: int, size: tuple[int, ...], numbers: dict[str, Any]
) -> Iterator[tuple[int, int, Any]]:
    """Row and column of each element of the columns, and where in the images it is from."""
    kernel = numbers["kernel_size"]
    counts = _counts(size, numbers)
    windows = list(itertools.product(*map(range, counts)))
    rows = itertools.product(range(channels), *map(range, kernel))
    for row, (channel, *index) in enumerate(rows):
        for column, window in enumerate(windows):
            y, x = [
                window[axis] * numbers["stride"][axis]
                - numbers["padding"][axis][0]
                + index[axis] * numbers["dilation"][axis]
                for axis in range(2)
            ]
            if 0 <= y < size[0] and 0 <= x < size[1]:
                yield row, column, (slice(None), channel, y, x)


def _unfold(x: Array, **numbers: Any) -> Array:
    kernel, counts = numbers["kernel_size"], _counts(x.shape[2:], numbers)
    shape = (x.shape[0], x.shape[1] * kernel[0] * kernel[1], counts[0] * counts[1])
    columns = np.zeros(shape)
    for row, column, index in _indices(x.shape[1], x.shape[2:], numbers):
        columns[:, row, column] = x[index]
    return columns


def _fold(x: Array, *, output_size: tuple[int, ...], **numbers: Any) -> Array:
    kernel = numbers["kernel_size"]
    channels = x.shape[1] // (kernel[0] * kernel[1])
    images = np.zeros((x.shape[0], channels, *output_size))
    for row, column, index in _indices(channels, output_size, numbers):
        images[index] += x[:, row, column]
    return images


def _fold_terms(x: Array, **attributes: Any) -> tuple[Any, Any]:
    kernel = attributes["kernel_size"]
    return kernel[0] * kernel[1], _fold(abs(x), **attributes)


_X = floats(2, 2, 4, 5)

_SAMPLES = [
    sample("images", _X, **_numbers()),
    sample("padding", _X, **_numbers(padding=((1, 1), (2, 2)))),
    sample("padding at one end", _X, **_numbers(kernel_size=(3, 2), padding=((0, 2), (1, 0)))),
    sample("stride", _X, **_numbers(stride=(2, 3))),
    sample("stride larger than the kernel", _X, **_numbers(stride=(3, 4), kernel_size=(1, 2))),
    sample("dilation", _X, **_numbers(dilation=(3, 2), kernel_size=(2, 3))),
    sample(
        "everything",
        floats(1, 2, 6, 7),
        **_numbers(kernel_size=(3, 2), stride=(2, 1), dilation=(2, 3), padding=((1, 2), (0, 1))),
    ),
    sample("kernel equal to the image", _X, **_numbers(kernel_size=(4, 5))),
    sample("kernel of one", _X, **_numbers(kernel_size=(1, 1))),
    sample("1x1 images", floats(3, 2, 1, 1), **_numbers(kernel_size=(1, 1))),
    sample(
        "more padding than kernel",
        floats(1, 1, 2, 2),
        **_numbers(kernel_size=(2, 1), padding=((3, 1), (0, 4)), stride=(1, 3)),
    ),
    sample(
        "windows that miss the image",
        floats(1, 1, 2, 2),
        **_numbers(kernel_size=(1, 1), padding=((3, 0), (2, 1)), stride=(9, 5)),
    ),
    sample("empty batch", floats(0, 2, 3, 4), **_numbers()),
    sample("no channels", floats(2, 0, 3, 4), **_numbers()),
    sample("transposed", transposed(_X), **_numbers(padding=((1, 1),) * 2)),
    sample("strided", strided(_X), **_numbers()),
    sample("reversed", reversed_view(_X), **_numbers()),
    sample("expanded", expanded(floats(4, 1), 2, 2, 4, 5), **_numbers()),
    sample("NaN", np.where(_X > 1.5, np.nan, _X), **_numbers(padding=((1, 0), (0, 1)))),
]

reference(
    "unfold4d",
    samples=_SAMPLES,
    errors=[
        error("unbatched", ShapeError, floats(2, 4, 5), **_numbers()),
        error("kernel of one axis", ShapeError, _X, **_numbers(kernel_size=(2,))),
        error("volumes", ShapeError, floats(1, 2, 3, 3, 3), **_numbers()),
        error("kernel too long", ShapeError, _X, **_numbers(kernel_size=(5, 1))),
        error("dilated too far", ShapeError, _X, **_numbers(dilation=(1, 5))),
        error("empty image", ShapeError, floats(2, 2, 0, 4), **_numbers(padding=((1, 1),) * 2)),
        error("no kernel", ArgumentError, _X, **_numbers(kernel_size=(2, 0))),
        error("stride 0", ArgumentError, _X, **_numbers(stride=(0, 1))),
        error("negative padding", ArgumentError, _X, **_numbers(padding=((0, -1), (0, 0)))),
        error("one dilation", ArgumentError, _X, **_numbers(dilation=(1,))),
    ],
    exact=True,
)(_unfold)


def _folded(one: Sample) -> Sample:
    """A sample of `unfold4d` as one of its adjoint."""
    (x,) = one.operands
    columns = _unfold(x, **one.attributes)
    views = {"transposed": transposed, "strided": strided, "reversed": reversed_view}
    array = views.get(one.note, np.asarray)(floats(*columns.shape))
    if one.note == "NaN":
        array = np.where(array > 1.9, np.nan, array)
    return sample(one.note, array, output_size=x.shape[2:], **one.attributes)


_COLUMNS = floats(2, 8, 12)

reference(
    "fold4d",
    samples=[
        *[_folded(sample) for sample in _SAMPLES],
        sample(
            "ones that 16-bit addition would lose",
            np.ones((1, 25, 25)),
            output_size=(5, 5),
            **_numbers(kernel_size=(5, 5), padding=((2, 2),) * 2),
        ),
    ],
    errors=[
        error("four axes", ShapeError, _X, output_size=(4, 5), **_numbers()),
        error("rows", ShapeError, floats(2, 7, 12), output_size=(4, 5), **_numbers()),
        error("columns", ShapeError, _COLUMNS, output_size=(4, 4), **_numbers()),
        error("one length", ShapeError, _COLUMNS, output_size=(4,), **_numbers()),
        error("negative length", ShapeError, _COLUMNS, output_size=(4, -5), **_numbers()),
        error("kernel too long", ShapeError, _COLUMNS, output_size=(1, 13), **_numbers()),
        error(
            "no kernel", ShapeError, _COLUMNS, output_size=(4, 5), **_numbers(kernel_size=(0, 2))
        ),
        error("stride 0", ArgumentError, _COLUMNS, output_size=(4, 5), **_numbers(stride=(0, 1))),
    ],
    terms=_fold_terms,
)(_fold)
