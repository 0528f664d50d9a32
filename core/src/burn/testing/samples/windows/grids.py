"""Samples of sampling at positions, and of grids of affine maps."""

from __future__ import annotations

import itertools
import math
from typing import Any, Final

import numpy as np

from burn.errors import ArgumentError, ShapeError
from burn.testing.arrays import expanded, floats, strided, transposed
from burn.testing.op_samples import Array, Sample, error, reference, sample
from burn.testing.samples.windows.resampling import keys


def _unnormalized(coordinate: float, length: int, *, align_corners: bool) -> float:
    if align_corners:
        return (coordinate + 1.0) / 2.0 * (length - 1)
    return ((coordinate + 1.0) * length - 1.0) / 2.0


def _reflected(position: float, length: int, *, align_corners: bool) -> float:
    """Mirrored until it is in the image, one mirror after the other."""
    low, high = (0.0, length - 1.0) if align_corners else (-0.5, length - 0.5)
    if low == high:
        return low
    while not low <= position <= high:
        position = 2.0 * low - position if position < low else 2.0 * high - position
    return position


def _inside(position: float, length: int, padding_mode: str, *, align_corners: bool) -> float:
    if padding_mode == "zeros":
        return position
    if padding_mode == "reflection":
        position = _reflected(position, length, align_corners=align_corners)
    return min(max(position, 0.0), length - 1.0)


def _weights(
    coordinate: float, length: int, *, mode: str, padding_mode: str, align_corners: bool
) -> list[tuple[int, float]]:
    """Elements along an axis, and their weights; those beyond the image are left out."""
    position = _unnormalized(coordinate, length, align_corners=align_corners)
    if math.isnan(position):
        return [(0, math.nan)]
    if math.isinf(position):
        if padding_mode == "reflection":
            return [(0, math.nan)]
        position = math.copysign(1e6, position)
    options: Any = {"padding_mode": padding_mode, "align_corners": align_corners}
    if mode == "bicubic":
        first = math.floor(position)
        indices = [(index, keys(position - index)) for index in range(first - 1, first + 3)]
        return [
            (int(kept), weight)
            for index, weight in indices
            if 0 <= (kept := _inside(float(index), length, **options)) <= length - 1
        ]
    position = _inside(position, length, **options)
    if mode == "nearest":
        indices = [(round(position), 1.0)]
    else:
        first = math.floor(position)
        indices = [(first, first + 1.0 - position), (first + 1, position - first)]
    return [(index, weight) for index, weight in indices if 0 <= index < length]


def _grid_sample(
    x: Array,
    grid: Array,
    *,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> Array:
    options: Any = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
    lengths = x.shape[2:]
    result = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for image, *point in np.ndindex(grid.shape[:-1]):
        coordinates = reversed(grid[(image, *point)].tolist())
        axes = [
            _weights(coordinate, length, **options)
            for coordinate, length in zip(coordinates, lengths, strict=True)
        ]
        for elements in itertools.product(*axes):
            weight = math.prod([weight for _, weight in elements])
            indices = [index for index, _ in elements]
            result[(image, slice(None), *point)] += weight * x[(image, slice(None), *indices)]
    return result


def _terms(x: Array, grid: Array, **options: Any) -> tuple[int, Array]:
    """Rounding of a position moves a sample by a fraction of the image and of its range."""
    del options
    largest = np.max(np.abs(x[np.isfinite(x)]), initial=0.0)
    shape = (*x.shape[:2], *grid.shape[1:-1])
    return 16, np.full(shape, 2.0 * max(x.shape[2:]) * largest)


def _grid(*shape: int, reach: float = 1.0, phase: float = 0.21) -> Array:
    return floats(*shape, 2, low=-reach, high=reach, phase=phase)


_MODES: Final = ("bilinear", "nearest", "bicubic")
_PADDING: Final = ("zeros", "border", "reflection")


def _modes() -> list[Sample]:
    return [
        sample(
            f"{mode}, {padding}{', corners' if corners else ''}",
            floats(1, 1, 3, 4),
            _grid(1, 3, 3, reach=2.9),
            mode=mode,
            padding_mode=padding,
            align_corners=corners,
            differentiable=mode == "bilinear" or (padding == "zeros" and not corners),
        )
        for mode in _MODES
        for padding in _PADDING
        for corners in (False, True)
    ]


def _not_finite() -> list[Sample]:
    grid = np.array([[[math.nan, 0.1], [math.inf, 0.1], [-math.inf, 0.1], [0.3, math.nan]]])
    return [
        sample(
            f"positions that are not finite, {mode}, {padding}",
            floats(1, 1, 3, 4),
            grid[None],
            mode=mode,
            padding_mode=padding,
        )
        for mode in _MODES
        for padding in _PADDING
    ]


reference(
    "grid_sample_2d",
    samples=[
        *_modes(),
        *_not_finite(),
        sample("images and channels", floats(2, 2, 3, 2), _grid(2, 1, 2)),
        sample("one element", floats(1, 2, 1, 1), _grid(1, 2, 2), padding_mode="reflection"),
        *[
            sample(
                f"one element, corners, {mode}",
                floats(1, 2, 1, 1),
                _grid(1, 2, 2),
                mode=mode,
                padding_mode="reflection",
                align_corners=True,
            )
            for mode in _MODES
        ],
        sample("empty batch", floats(0, 2, 3, 3), _grid(0, 2, 2)),
        sample("no channels", floats(1, 0, 3, 3), _grid(1, 2, 2), mode="bicubic"),
        sample("no positions", floats(1, 2, 3, 3), _grid(1, 0, 2), mode="nearest"),
        sample("layouts", strided(floats(1, 2, 3, 4)), transposed(_grid(1, 2, 3))),
        sample("expanded", expanded(floats(2, 3), 2, 2, 2, 3), _grid(2, 1, 2)),
    ],
    errors=[
        error("other batch", ShapeError, floats(2, 1, 3, 3), _grid(1, 2, 2)),
        error("three coordinates", ShapeError, floats(1, 1, 3, 3), floats(1, 2, 2, 3)),
        error("grid without axes", ShapeError, floats(1, 1, 3, 3), floats(2)),
        error("no channels axis", ShapeError, floats(1, 3, 3), _grid(1, 2, 2)),
        error("empty images", ShapeError, floats(1, 1, 0, 3), _grid(1, 2, 2)),
        error("mode", ArgumentError, floats(1, 1, 3, 3), _grid(1, 2, 2), mode="linear"),
        error("padding", ArgumentError, floats(1, 1, 3, 3), _grid(1, 2, 2), padding_mode="wrap"),
    ],
    terms=_terms,
)(_grid_sample)


def _volume_grid(*shape: int, reach: float = 1.0) -> Array:
    return floats(*shape, 3, low=-reach, high=reach, phase=0.21)


reference(
    "grid_sample_3d",
    samples=[
        *[
            sample(
                f"{mode}, {padding}{', corners' if corners else ''}",
                floats(1, 1, 3, 4, 2),
                _volume_grid(1, 2, 3, 2, reach=2.9),
                mode=mode,
                padding_mode=padding,
                align_corners=corners,
                differentiable=mode == "bilinear" or (padding == "zeros" and not corners),
            )
            for mode in _MODES[:2]
            for padding in _PADDING
            for corners in (False, True)
        ],
        sample(
            "positions that are not finite",
            floats(1, 1, 2, 3, 4),
            np.array([[math.nan, 0.1, 0.2], [math.inf, 0.1, 0.2], [0.1, 0.2, -math.inf]])[
                None, None, None
            ],
        ),
        sample("volumes and channels", floats(2, 2, 2, 3, 2), _volume_grid(2, 1, 2, 1)),
        sample("one element", floats(1, 2, 1, 1, 1), _volume_grid(1, 1, 2, 2)),
        sample("empty batch", floats(0, 2, 3, 3, 2), _volume_grid(0, 2, 2, 1)),
        sample("no positions", floats(1, 2, 3, 3, 2), _volume_grid(1, 0, 2, 2), mode="nearest"),
        sample("layouts", strided(floats(1, 2, 3, 4, 2)), transposed(_volume_grid(1, 2, 3, 1))),
    ],
    errors=[
        error("other batch", ShapeError, floats(2, 1, 3, 3, 3), _volume_grid(1, 2, 2, 2)),
        error("two coordinates", ShapeError, floats(1, 1, 3, 3, 3), floats(1, 2, 2, 2, 2)),
        error("images", ShapeError, floats(1, 1, 3, 3), _grid(1, 2, 2)),
        error("empty volumes", ShapeError, floats(1, 1, 2, 0, 3), _volume_grid(1, 2, 2, 2)),
        error(
            "mode",
            ArgumentError,
            floats(1, 1, 3, 3, 3),
            _volume_grid(1, 2, 2, 2),
            mode="bicubic",
        ),
    ],
    terms=_terms,
)(_grid_sample)


def _affine_grid(
    theta: Array, *, output_size: tuple[int, ...], align_corners: bool = False
) -> Array:

    def coordinate(number: int, count: int) -> float:
        if align_corners:
            return -1.0 + 2.0 * number / (count - 1) if count > 1 else 0.0
        return (2.0 * number + 1.0) / count - 1.0

    result = np.zeros((len(theta), *output_size, len(output_size)))
    for point in np.ndindex(output_size):
        coordinates = [
            coordinate(number, count)
            for number, count in zip(reversed(point), reversed(output_size), strict=True)
        ]
        result[(slice(None), *point)] = theta @ np.array([*coordinates, 1.0])
    return result


def _affine_terms(theta: Array, **options: Any) -> tuple[int, Any]:
    del options
    return 4, 4.0 * np.max(np.abs(theta), initial=0.0)


reference(
    "affine_grid_2d",
    samples=[
        sample("two maps", floats(2, 2, 3), output_size=(3, 4)),
        sample("corners", floats(2, 2, 3), output_size=(3, 4), align_corners=True),
        sample("one position", floats(1, 2, 3), output_size=(1, 1), align_corners=True),
        sample("one row", floats(1, 2, 3), output_size=(1, 5)),
        sample("no maps", floats(0, 2, 3), output_size=(2, 2)),
        sample("no positions", floats(1, 2, 3), output_size=(0, 2)),
        sample("layout", transposed(floats(3, 2, 3)), output_size=(2, 2)),
    ],
    errors=[
        error("other matrices", ShapeError, floats(1, 3, 3), output_size=(2, 2)),
        error("one matrix", ShapeError, floats(2, 3), output_size=(2, 2)),
        error("three lengths", ArgumentError, floats(1, 2, 3), output_size=(2, 2, 2)),
        error("negative length", ShapeError, floats(1, 2, 3), output_size=(2, -1)),
    ],
    terms=_affine_terms,
)(_affine_grid)

reference(
    "affine_grid_3d",
    samples=[
        sample("two maps", floats(2, 3, 4), output_size=(2, 3, 4)),
        sample("corners", floats(2, 3, 4), output_size=(2, 3, 1), align_corners=True),
        sample("no maps", floats(0, 3, 4), output_size=(2, 2, 1)),
        sample("no positions", floats(1, 3, 4), output_size=(2, 0, 2)),
        sample("strided", strided(floats(1, 3, 4)), output_size=(2, 1, 2)),
    ],
    errors=[
        error("other matrices", ShapeError, floats(1, 2, 3), output_size=(2, 2, 2)),
        error("one matrix", ShapeError, floats(3, 4), output_size=(2, 2, 2)),
        error("two lengths", ArgumentError, floats(1, 3, 4), output_size=(2, 2)),
        error("negative length", ShapeError, floats(1, 3, 4), output_size=(2, 2, -1)),
    ],
    terms=_affine_terms,
)(_affine_grid)
