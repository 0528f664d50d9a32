"""Interpolation that smooths an axis before it makes it shorter."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn.errors import ArgumentError, ShapeError
from burn.functions.nn._weighted_sums import AxisSums, float_numbers, sums_along_axes
from burn.ops.shapes import check_shape
from burn.public_calls import public_operation

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from burn.tensor.tensor import Tensor

__all__ = ["interpolate_smoothed"]

_CUBIC_COEFFICIENT: Final = -0.5
"""The free parameter of cubic convolution where it smooths, as in PyTorch and Pillow."""

_REACH: Final = {"linear": 1.0, "cubic": 2.0, "lanczos3": 3.0}
"""Distance at which the weights of a mode become 0, in elements of the shorter axis."""


def interpolate_smoothed(
    x: Tensor,
    output_size: tuple[int, ...],
    mode: str,
    align_corners: bool,
    scale: tuple[float, ...] | None,
) -> Tensor:
    """Values of the last axes of `x`; see `burn.nn.functional.interpolate`.

    The weights of a mode are stretched by the ratio of lengths where it is above 1, as in Pillow's
    ``Image.resize``, and divided by their sum.
    """
    if mode not in _REACH:
        raise ArgumentError(
            f"antialias has no meaning in the mode {mode!r}",
            hint=f"Use one of {', '.join(map(repr, _REACH))}",
            operation="interpolate",
        )
    x = float_numbers(x, "interpolate")
    lengths = tuple(x.shape)[x.ndim - len(output_size) :]
    if min(*lengths, *output_size) < 1:
        raise ShapeError(
            f"cannot interpolate {tuple(x.shape)} to the size {output_size}",
            hint="Each length is 1 or more, but for the batch and the channels",
            operation="interpolate",
        )
    try:
        check_shape((*tuple(x.shape)[: x.ndim - len(lengths)], *output_size))
    except ShapeError as error:
        error.operation = public_operation("interpolate")
        raise
    scales = scale or (None,) * len(lengths)
    sums = [
        _smoothing(length, count, mode, align_corners, scale)
        for length, count, scale in zip(lengths, output_size, scales, strict=True)
    ]
    result: Tensor = sums_along_axes(x, sums).astype(x.dtype, copy=False)
    return result


@functools.lru_cache(maxsize=256)
def _smoothing(
    length: int, count: int, mode: str, align_corners: bool, scale: float | None
) -> AxisSums:
    """The elements that each of `count` results weights, of an axis of `length` elements."""
    if align_corners:
        ratio = (length - 1) / (count - 1) if count > 1 else 0.0
    else:
        ratio = length / count if scale is None else 1.0 / scale
    stretch = max(ratio, 1.0)
    reach = _REACH[mode] * stretch
    centres = ratio * (np.arange(count) + 0.5)
    first = np.maximum(np.floor(centres - reach + 0.5), 0.0).astype(np.int64)
    stop = np.minimum(np.floor(centres + reach + 0.5), length).astype(np.int64)
    indices = first[:, None] + np.arange(max(math.ceil(2.0 * reach) + 1, 1))
    distances = np.abs(indices + 0.5 - centres[:, None]) / stretch
    weights = np.where(indices < stop[:, None], _weights(distances, mode), 0.0)
    used = (weights != 0.0).any(axis=0)
    weights = weights[:, used] / np.sum(weights, axis=1, keepdims=True)
    return np.minimum(indices[:, used], length - 1), weights


def _weights(distance: NDArray[np.float64], mode: str) -> Any:
    """Weights of elements by their distance, which is 0 or more."""
    if mode == "linear":
        return np.maximum(1.0 - distance, 0.0)
    if mode == "lanczos3":
        return np.where(distance < 3.0, np.sinc(distance) * np.sinc(distance / 3.0), 0.0)
    a = _CUBIC_COEFFICIENT
    near = ((a + 2.0) * distance - (a + 3.0)) * distance * distance + 1.0
    far = ((a * distance - 5.0 * a) * distance + 8.0 * a) * distance - 4.0 * a
    return np.where(distance < 1.0, near, np.where(distance < 2.0, far, 0.0))
