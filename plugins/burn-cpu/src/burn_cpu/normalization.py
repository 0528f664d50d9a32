"""Normalization of blocks of rows, or of images, that stay in the cache."""

from __future__ import annotations

import functools
import math
from typing import Any, Final

import numpy as np

from burn.plugin_api import check_channels, check_last_axis
from burn_cpu.base import Array, CpuOps
from burn_cpu.blocks import (
    BLOCK_ELEMENTS,
    in_blocks,
    map_rows,
    packed,
    row_products,
    row_sums,
    wide_dtype,
)
from burn_cpu.compiled import kernels_for
from burn_cpu.constants import FLOAT32, constant

_MIN_ROW_ELEMENTS: Final = 8
"""For shorter rows the decomposition is faster."""


class NormalizationOps(CpuOps):
    """Normalizations that read memory once or twice."""

    def layer_norm(
        self, x: Array, gamma: Array | None, beta: Array | None, *, epsilon: float
    ) -> Array:
        """All passes over one block before the next block."""
        family = kernels_for(x.dtype, "rows")
        if family is not None:
            length = x.shape[-1]
            parameters = (_filled(gamma, 1.0, length), _filled(beta, 0.0, length), epsilon)
            return packed(family.layer_norm, x, length=length, parameters=parameters)
        length = check_last_axis(x.shape, gamma=gamma, beta=beta)
        if length < _MIN_ROW_ELEMENTS:
            return self.ops.decomposed("layer_norm", x, gamma, beta, epsilon=epsilon)
        scale, shift = _widened(wide_dtype(x.dtype), gamma, beta)
        return map_rows(lambda rows, out: _layer_norm(rows, scale, shift, epsilon, out), x)

    def layer_norm_grad(
        self, x: Array, gamma: Array | None, g: Array, *, epsilon: float
    ) -> tuple[Array, Array, Array]:
        """Sums over the rows of each block are added up in order at the end."""
        length = x.shape[-1]
        if g.shape != x.shape:
            raise ValueError(f"g of shape {g.shape} for {x.shape}")
        family = kernels_for(x.dtype, "rows")
        if not x.size or (family is None and length < _MIN_ROW_ELEMENTS):
            return self.ops.decomposed("layer_norm_grad", x, gamma, g, epsilon=epsilon)  # type: ignore[no-any-return]  # three arrays
        dtype, wide = x.dtype, wide_dtype(x.dtype)
        if family is not None:
            kernel, scale = family.layer_norm_grad, _filled(gamma, 1.0, length)
        else:
            check_last_axis(x.shape, gamma=gamma)
            kernel, (scale,) = _layer_norm_grad, _widened(wide, gamma)
        result = np.empty(x.shape, dtype)
        if wide is dtype and x.size <= BLOCK_ELEMENTS:
            total = np.empty((2, length), dtype)
            kernel(x.ravel(), g.ravel(), scale, epsilon, result.ravel(), total)
            return result, total[0], total[1]
        sources, slopes, target = x.reshape(-1), g.reshape(-1), result.reshape(-1)
        step = length * max(1, BLOCK_ELEMENTS // length)
        sums = np.empty((-(-x.size // step), 2, length), wide)

        def work(start: int, stop: int) -> None:
            source = np.ascontiguousarray(sources[start:stop], wide)
            slope = np.ascontiguousarray(slopes[start:stop], wide)
            out = target[start:stop] if wide is dtype else np.empty(source.shape, wide)
            kernel(source, slope, scale, epsilon, out, sums[start // step])
            if wide is not dtype:
                target[start:stop] = out

        in_blocks(work, x.size, step)
        gamma_grad, beta_grad = np.add.reduce(sums, axis=0).astype(dtype, copy=False)
        return result, gamma_grad, beta_grad

    def rms_norm(self, x: Array, gamma: Array | None, *, epsilon: float) -> Array:
        """Two passes over each row by a compiled kernel."""
        family = kernels_for(x.dtype, "rows")
        if family is None:
            return self.ops.decomposed("rms_norm", x, gamma, epsilon=epsilon)
        length = x.shape[-1]
        parameters = (_filled(gamma, 1.0, length), epsilon)
        return packed(family.rms_norm, x, length=length, parameters=parameters)

    def batch_norm_training(
        self, x: Array, gamma: Array | None, beta: Array | None, *, epsilon: float
    ) -> tuple[Array, Array, Array]:
        """Combines the moments of images to those of the batch (Chan et al., 1983)."""
        channels = check_channels(x.shape, gamma=gamma, beta=beta)
        images = _images(x)
        if images is None:
            return self.ops.decomposed("batch_norm_training", x, gamma, beta, epsilon=epsilon)  # type: ignore[no-any-return]  # three arrays
        count, _, pixels = images.shape
        dtype = x.dtype
        means, squares = np.empty((2, count, channels), dtype)
        step = max(1, BLOCK_ELEMENTS // (channels * pixels))
        size = dtype.type(pixels)

        def measure(start: int, stop: int) -> None:
            part = images[start:stop]
            mean = row_sums(part) / size
            distance = np.subtract(part, mean)
            means[start:stop] = mean[..., 0]
            squares[start:stop] = row_products(distance, distance)[..., 0]

        in_blocks(measure, count, step)
        mean = np.add.reduce(means, axis=0) / dtype.type(count)
        means -= mean
        within = np.add.reduce(squares, axis=0)
        between = np.add.reduce(means * means, axis=0) * size
        variance = (within + between) / dtype.type(count * pixels)
        factor = _factor(variance, gamma, epsilon)
        result = np.empty(x.shape, dtype)
        target = result.reshape(images.shape)

        def normalize(start: int, stop: int) -> None:
            out = np.subtract(images[start:stop], mean[:, None], out=target[start:stop])
            out *= factor[:, None]
            if beta is not None:
                out += beta[:, None]

        in_blocks(normalize, count, step)
        return result, mean, variance

    def batch_norm_grad(
        self,
        x: Array,
        gamma: Array | None,
        mean: Array,
        variance: Array,
        g: Array,
        *,
        epsilon: float,
    ) -> tuple[Array, Array, Array]:
        """Two passes over `x` and `g`."""
        channels = check_channels(x.shape, gamma=gamma, mean=mean, variance=variance)
        if g.shape != x.shape:
            raise ValueError(f"g of shape {g.shape} for {x.shape}")
        images, slopes = _images(x), _images(g)
        if images is None or slopes is None:
            return self.ops.decomposed(  # type: ignore[no-any-return]  # three arrays
                "batch_norm_grad", x, gamma, mean, variance, g, epsilon=epsilon
            )
        count, _, pixels = images.shape
        dtype = x.dtype
        inverse = _factor(variance, None, epsilon)
        sums, products = np.empty((2, count, channels), dtype)
        step = max(1, BLOCK_ELEMENTS // (channels * pixels))

        def measure(start: int, stop: int) -> None:
            part = slopes[start:stop]
            distance = np.subtract(images[start:stop], mean[:, None])
            sums[start:stop] = row_sums(part)[..., 0]
            products[start:stop] = row_products(part, distance)[..., 0]

        in_blocks(measure, count, step)
        beta_grad = np.add.reduce(sums, axis=0)
        gamma_grad = np.add.reduce(products, axis=0) * inverse
        size = dtype.type(count * pixels)
        factor = _factor(variance, gamma, epsilon)
        distance_factor = -factor * inverse * gamma_grad / size
        offset = -factor * beta_grad / size
        result = np.empty(x.shape, dtype)
        target = result.reshape(images.shape)

        def spread(start: int, stop: int) -> None:
            out = np.multiply(slopes[start:stop], factor[:, None], out=target[start:stop])
            distance = np.subtract(images[start:stop], mean[:, None])
            distance *= distance_factor[:, None]
            out += distance
            out += offset[:, None]

        in_blocks(spread, count, step)
        return result, gamma_grad, beta_grad


def _filled(parameter: Array | None, value: float, length: int) -> Array:
    """A parameter as an array for a compiled kernel; `value` where it is None."""
    if parameter is None:
        return _repeated(value, length)
    if parameter.shape != (length,):
        raise ValueError(f"a parameter of shape {parameter.shape} for {length} elements")
    return _contiguous(parameter, FLOAT32)


_contiguous: Final = np.ascontiguousarray


@functools.lru_cache(maxsize=64)
def _repeated(value: float, length: int) -> Array:
    return np.full(length, value, FLOAT32)


def _widened(dtype: Any, *parameters: Array | None) -> list[Array | None]:
    return [
        None if parameter is None else parameter.astype(dtype, copy=False)
        for parameter in parameters
    ]


def _layer_norm(
    rows: Array, scale: Array | None, shift: Array | None, epsilon: float, out: Array
) -> None:
    np.multiply(*_normalized(rows, out, epsilon), out=out)
    if scale is not None:
        out *= scale
    if shift is not None:
        out += shift


def _layer_norm_grad(
    x: Array, g: Array, scale: Array | None, epsilon: float, result: Array, sums: Array
) -> None:
    """Gradient by the rows; the gradients by scale and shift are written to `sums`."""
    layout = -1, sums.shape[1]
    rows, slopes, out = x.reshape(layout), g.reshape(layout), result.reshape(layout)
    count = constant(rows.shape[-1], rows.dtype)
    distance, inverse = _normalized(rows, np.empty(rows.shape, rows.dtype), epsilon)
    np.multiply(slopes, inverse, out=out)
    np.einsum("rn,rn->n", out, distance, out=sums[0])
    np.add.reduce(slopes, axis=0, out=sums[1])
    if scale is not None:
        out *= scale
    # Subtract the components along the mean and the variance of each row.
    along_variance = row_products(out, distance)
    along_variance *= inverse
    along_variance *= inverse
    along_variance /= count
    out -= row_sums(out) / count
    distance *= along_variance
    out -= distance


def _normalized(rows: Array, out: Array, epsilon: float) -> tuple[Array, Array]:
    """Distances from the means of rows, written to `out`, and inverse standard deviations."""
    count = constant(rows.shape[-1], rows.dtype)
    mean = row_sums(rows)
    mean /= count
    np.subtract(rows, mean, out=out)
    variance = row_products(out, out)
    variance /= count
    variance += constant(epsilon, rows.dtype)
    np.sqrt(variance, out=variance)
    return out, np.reciprocal(variance, out=variance)


def _images(x: Array) -> Array | None:
    """A view (images, channels, pixels); None where there are too few pixels per channel."""
    count, channels, *lengths = x.shape
    pixels = math.prod(lengths)
    if pixels < _MIN_ROW_ELEMENTS or not x.size or x.dtype.itemsize < 4:
        return None
    return x.reshape(count, channels, pixels)


def _factor(variance: Array, gamma: Array | None, epsilon: float) -> Array:
    number = variance.dtype.type
    inverse = number(1) / np.sqrt(variance + number(epsilon))
    return inverse if gamma is None else inverse * gamma
