"""Convolutions with 3x3 kernels by Winograd's transform F(2x2, 3x3): fewer multiplications.

A tile of 4x4 elements gives 2x2 outputs. An element that is infinite, NaN or far larger than its
neighbours therefore affects the outputs of its tiles that do not depend on it: up to one position
beyond the outputs that do (Lavin and Gray, 2016, arXiv:1509.09308). ``BURN_CUDA_WINOGRAD=0``
switches it off.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn.plugin_api import ConvGeometry, Shape, divider, float32
from burn_cuda.kernels import THREADS, c_type
from burn_cuda.launcher import packed

if TYPE_CHECKING:
    from burn_cuda.launcher import Launcher

__all__ = ["Winograd"]

Array = Any

_TILE_ELEMENTS: Final = 16
"""Elements of a transformed tile, for each of which there is one matrix product."""

_MIN_CHANNELS: Final = 32
_MIN_MULTIPLICATIONS: Final = 1 << 22
"""With fewer channels, or multiplications of transformed tiles, im2col is as fast."""

_MAX_TILE_BYTES: Final = 1 << 30
_TILE_MEMORY_SHARE: Final = 64
"""Transformed tiles take at most this part of the memory of the GPU, and these bytes."""

_WANTED_BLOCKS: Final = 256
_BLOCK_SIDE: Final = 128
"""Blocks of a matrix product, of this many rows and columns, that keep a GPU busy."""


class Winograd:
    """The transforms of one device and the matrix products between them.

    Parameters
    ----------
    launcher : Launcher
        The launcher of the device.
    """

    def __init__(self, launcher: Launcher) -> None:
        self.launcher = launcher
        self._kernels: dict[str, Any] = {}

    def suits(self, plan: ConvGeometry, dtype: Any) -> bool:
        """Whether a convolution is of this kind, large enough, and in full float32."""
        runtime = self.launcher.runtime
        if not runtime.winograd or runtime.tf32 or dtype != float32.numpy:
            return False
        return _is_suited(plan, _MIN_CHANNELS, _MIN_MULTIPLICATIONS)

    def forward(self, x: Array, weight: Array, bias: Array | None, plan: ConvGeometry) -> Array:
        """The convolution."""
        before = tuple([axis.before for axis in plan.axes])
        out = self.launcher.empty(plan.output_shape, x.dtype)
        self._correlate(x, weight, bias, out, plan, before, rotated=False)
        return out

    def backward(self, g: Array, weight: Array, bias: Array | None, plan: ConvGeometry) -> Array:
        """The gradient with respect to the input: a convolution with rotated kernels."""
        before = tuple([2 - axis.before for axis in plan.axes])
        out = self.launcher.empty(plan.input_shape, g.dtype)
        self._correlate(g, weight, bias, out, plan, before, rotated=True)
        return out

    def _correlate(
        self,
        x: Array,
        weight: Array,
        bias: Array | None,
        out: Array,
        plan: ConvGeometry,
        before: tuple[int, ...],
        *,
        rotated: bool,
    ) -> None:
        launcher = self.launcher
        groups = plan.groups
        inputs, outputs = x.shape[1] // groups, out.shape[1] // groups
        factors = launcher.empty((_TILE_ELEMENTS, groups, outputs, inputs), x.dtype)
        weight, numbers = launcher.dense(weight), (outputs, inputs, int(rotated))
        count = math.prod([-(-length // 2) for length in out.shape[2:]])
        vector = factors if bias is None else launcher.dense(bias)
        for start, stop in self._ranges(plan.batch, (x.shape[1] + out.shape[1]) * count):
            images = stop - start
            tiles = launcher.empty((_TILE_ELEMENTS, groups, inputs, images * count), x.dtype)
            n = 0 if start else groups * outputs * inputs  # once for all ranges
            layout = _layout(x.shape[1:], out.shape[2:], before, images)
            first = (weight, factors, *numbers)
            self._transform(
                "input_and_weight_tiles", first, n, _range(x, start, stop), tiles, layout
            )
            products = launcher.empty((_TILE_ELEMENTS, groups, outputs, images * count), x.dtype)
            launcher.runtime.gemm(
                factors,
                tiles,
                products,
                (outputs, images * count, inputs),
                strides=(outputs * inputs, inputs * images * count, outputs * images * count),
                batch=_TILE_ELEMENTS * groups,
            )
            layout = _layout(out.shape[1:], out.shape[2:], (0, 0), images)
            n = images * out.shape[1] * count
            given = (products, vector, _range(out, start, stop), layout, int(bias is not None), n)
            self._run("output_tiles", n, *given)

    def weight_gradient(self, x: Array, g: Array, plan: ConvGeometry) -> Array:
        """The gradient with respect to the weight: the sum over parts of the batch."""
        launcher = self.launcher
        groups = plan.groups
        inputs, outputs = plan.inputs // groups, plan.outputs // groups
        count = math.prod([-(-length // 2) for length in g.shape[2:]])
        before = tuple([axis.before for axis in plan.axes])
        out = launcher.empty(plan.weight_shape, x.dtype)
        n = groups * outputs * inputs
        for start, stop in self._ranges(plan.batch, (x.shape[1] + g.shape[1]) * count):
            images = stop - start
            matrices = (
                _TILE_ELEMENTS * groups * -(-inputs // _BLOCK_SIDE) * -(-outputs // _BLOCK_SIDE)
            )
            wanted = min(-(-_WANTED_BLOCKS // matrices), images)
            parts = next(index for index in range(wanted, images + 1) if images % index == 0)
            length = images // parts * count
            tiles = launcher.empty((parts, _TILE_ELEMENTS, groups, inputs, length), x.dtype)
            gradients = launcher.empty((parts, _TILE_ELEMENTS, groups, outputs, length), x.dtype)
            layout, gradient_layout = [
                _layout(tensor.shape[1:], g.shape[2:], before, images // parts) for tensor in (x, g)
            ]
            first = (_range(g, start, stop), gradients, gradient_layout)
            size = gradients.size // _TILE_ELEMENTS
            self._transform(
                "input_and_gradient_tiles", first, size, _range(x, start, stop), tiles, layout
            )
            products = launcher.empty((parts, _TILE_ELEMENTS, groups, outputs, inputs), x.dtype)
            launcher.runtime.gemm(
                gradients,
                tiles,
                products,
                (outputs, inputs, length),
                transposed=(False, True),
                strides=(outputs * length, inputs * length, outputs * inputs),
                batch=parts * _TILE_ELEMENTS * groups,
            )
            self._run("weight_sums", n, products, out, parts, int(start > 0), n)
        return out

    def _ranges(self, batch: int, each: int) -> list[tuple[int, int]]:
        """Ranges of images whose transformed tiles fit into the memory."""
        room = min(_MAX_TILE_BYTES, self.launcher.runtime.memory // _TILE_MEMORY_SHARE)
        most = max(
            1, min(room // (each * _TILE_ELEMENTS * float32.itemsize), ((1 << 31) - 1) // each)
        )
        parts = -(-batch // most)
        step = -(-batch // parts)
        return [(start, min(start + step, batch)) for start in range(0, batch, step)]

    def _transform(
        self, name: str, first: tuple[Any, ...], count: int, x: Array, tiles: Array, layout: Any
    ) -> None:
        """Compute `count` tiles of what is first, and those of an input."""
        blocks, n = -(-count // THREADS), tiles.size // _TILE_ELEMENTS
        given = (*first, blocks, count, x, tiles, layout, n)
        self._run(name, blocks * THREADS + n, *given)

    def _run(self, name: str, threads: int, *arguments: Any) -> None:
        kernel = self._kernels.get(name)
        if kernel is None:
            definitions: dict[str, str | int] = {"T": c_type(float32), f"HAS_{name}": 1}
            kernel = self.launcher.kernel(name, "winograd.cu", **definitions)
            self._kernels[name] = kernel
        self.launcher.run(kernel, threads, *arguments)


def _range(x: Array, start: int, stop: int) -> Array:
    """Some of the images."""
    return x if stop - start == x.shape[0] else x[start:stop]


@functools.lru_cache(maxsize=1024)
def _is_suited(plan: ConvGeometry, min_channels: int, min_multiplications: int) -> bool:
    if len(plan.axes) != 2:
        return False
    if any((axis.kernel, axis.stride, axis.dilation) != (3, 1, 1) for axis in plan.axes):
        return False
    each = (plan.outputs // plan.groups, plan.inputs // plan.groups)
    tiles = plan.batch * math.prod([-(-axis.count // 2) for axis in plan.axes])
    work = plan.groups * math.prod(each) * tiles
    return min(each) >= min_channels and work >= min_multiplications


@functools.lru_cache(maxsize=1024)
def _layout(image: Shape, covered: Shape, before: tuple[int, ...], share: int) -> Array:
    """The struct `Tiles` of the kernels: tiles of images (channels, height, width)."""
    channels, height, width = image
    rows, columns = [-(-length // 2) for length in covered]
    numbers = (height, width, *before, columns, rows * columns, channels, share)
    dividers = [divider(number) for number in (columns, rows * columns, channels, share)]
    return packed(np.array([*numbers, *dividers], np.int64))
