"""Convolutions with windows of 3 by 3 places by Winograd's transform: fewer multiplications."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn.plugin_api import ConvGeometry, Shape, float32
from burn_cuda.kernels import c_type
from burn_cuda.launcher import divider, packed

if TYPE_CHECKING:
    from burn_cuda.launcher import Launcher

__all__ = ["Winograd"]

Array = Any

_PRODUCTS: Final = 16
_FEWEST_CHANNELS: Final = 32
_LEAST_WORK: Final = 1 << 22
"""With fewer channels, or products of the transformed tiles, other ways are as fast."""

_MOST_BYTES: Final = 1 << 30
_SHARE: Final = 64
"""As of other convolutions: what tiles hold takes this part of the memory, or that many bytes."""

_BLOCKS: Final = 256
_SIDE: Final = 128
"""A GPU is busy with so many products of matrices with such sides."""


class Winograd:
    """The transforms of one device, and the products between them.

    Parameters
    ----------
    launcher : Launcher
        That of the device.
    """

    def __init__(self, launcher: Launcher) -> None:
        self.launcher = launcher

    def suits(self, plan: ConvGeometry, dtype: Any) -> bool:
        """Whether a convolution is of this kind, and large enough."""
        launcher = self.launcher
        if launcher.dtypes[dtype] is not float32 or launcher.runtime.tf32 or len(plan.axes) != 2:
            return False
        if any((axis.kernel, axis.stride, axis.dilation) != (3, 1, 1) for axis in plan.axes):
            return False
        each = (plan.outputs // plan.groups, plan.inputs // plan.groups)
        tiles = plan.batch * math.prod([-(-axis.count // 2) for axis in plan.axes])
        work = plan.groups * math.prod(each) * tiles
        return min(each) >= _FEWEST_CHANNELS and work >= _LEAST_WORK

    def forward(self, x: Array, weight: Array, bias: Array | None, plan: ConvGeometry) -> Array:
        """The convolution."""
        before = tuple([axis.before for axis in plan.axes])
        out = self.launcher.empty(plan.output_shape, x.dtype)
        self._correlate(x, weight, bias, out, plan, before, turned=False)
        return out

    def backward(self, g: Array, weight: Array, bias: Array | None, plan: ConvGeometry) -> Array:
        """The gradient by what a convolution is of: one with windows that are turned around."""
        before = tuple([2 - axis.before for axis in plan.axes])
        out = self.launcher.empty(plan.input_shape, g.dtype)
        self._correlate(g, weight, bias, out, plan, before, turned=True)
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
        turned: bool,
    ) -> None:
        launcher = self.launcher
        groups = plan.groups
        inputs, outputs = x.shape[1] // groups, out.shape[1] // groups
        factors = launcher.empty((_PRODUCTS, groups, outputs, inputs), x.dtype)
        n = groups * outputs * inputs
        numbers = (outputs, inputs, int(turned), n)
        self._run("weight_tiles", n, x.dtype, launcher.dense(weight), factors, *numbers)
        count = math.prod([-(-length // 2) for length in out.shape[2:]])
        vector = factors if bias is None else launcher.dense(bias)
        for start, stop in self._ranges(plan.batch, (x.shape[1] + out.shape[1]) * count):
            images = stop - start
            tiles = launcher.empty((_PRODUCTS, groups, inputs, images * count), x.dtype)
            sizes = (out.shape[2:], before, images)
            self._transform("input_tiles", x[start:stop], tiles, *sizes)
            products = launcher.empty((_PRODUCTS, groups, outputs, images * count), x.dtype)
            launcher.runtime.gemm(
                factors,
                tiles,
                products,
                (outputs, images * count, inputs),
                strides=(outputs * inputs, inputs * images * count, outputs * images * count),
                batch=_PRODUCTS * groups,
            )
            layout = _layout(out.shape[1:], out.shape[2:], (0, 0), images)
            n = images * out.shape[1] * count
            given = (products, vector, out[start:stop], layout, int(bias is not None), n)
            self._run("output_tiles", n, x.dtype, *given)

    def weight_gradient(self, x: Array, g: Array, plan: ConvGeometry) -> Array:
        """The gradient by the weight: the images in shares, and the sum of these."""
        launcher = self.launcher
        groups = plan.groups
        inputs, outputs = plan.inputs // groups, plan.outputs // groups
        count = math.prod([-(-length // 2) for length in g.shape[2:]])
        before = tuple([axis.before for axis in plan.axes])
        out = launcher.empty(plan.weight_shape, x.dtype)
        n = groups * outputs * inputs
        for start, stop in self._ranges(plan.batch, (x.shape[1] + g.shape[1]) * count):
            images = stop - start
            matrices = _PRODUCTS * groups * -(-inputs // _SIDE) * -(-outputs // _SIDE)
            wanted = min(-(-_BLOCKS // matrices), images)
            shares = next(one for one in range(wanted, images + 1) if images % one == 0)
            length = images // shares * count
            tiles = launcher.empty((shares, _PRODUCTS, groups, inputs, length), x.dtype)
            slopes = launcher.empty((shares, _PRODUCTS, groups, outputs, length), x.dtype)
            sizes = (g.shape[2:], before, images // shares)
            self._transform("input_tiles", x[start:stop], tiles, *sizes)
            self._transform("slope_tiles", g[start:stop], slopes, *sizes)
            products = launcher.empty((shares, _PRODUCTS, groups, outputs, inputs), x.dtype)
            launcher.runtime.gemm(
                slopes,
                tiles,
                products,
                (outputs, inputs, length),
                transposed=(False, True),
                strides=(outputs * length, inputs * length, outputs * inputs),
                batch=shares * _PRODUCTS * groups,
            )
            self._run("weight_sums", n, x.dtype, products, out, shares, int(start > 0), n)
        return out

    def _ranges(self, batch: int, each: int) -> list[tuple[int, int]]:
        """From which image to which, as many as have room at a time."""
        room = min(_MOST_BYTES, self.launcher.runtime.memory // _SHARE)
        most = max(1, min(room // (each * _PRODUCTS * float32.itemsize), ((1 << 31) - 1) // each))
        parts = -(-batch // most)
        step = -(-batch // parts)
        return [(start, min(start + step, batch)) for start in range(0, batch, step)]

    def _transform(
        self, name: str, x: Array, out: Array, covered: Shape, before: tuple[int, ...], share: int
    ) -> None:
        layout = _layout(x.shape[1:], covered, before, share)
        n = out.size // _PRODUCTS
        self._run(name, n, x.dtype, x, out, layout, n)

    def _run(self, name: str, threads: int, dtype: Any, *arguments: Any) -> None:
        launcher = self.launcher
        definitions: dict[str, str | int] = {"T": c_type(launcher.dtypes[dtype]), f"HAS_{name}": 1}
        launcher.run(launcher.kernel(name, "winograd.cu", **definitions), threads, *arguments)


def _layout(image: Shape, covered: Shape, before: tuple[int, ...], share: int) -> Array:
    """Tiles of images (channels, height, width) that cover so many places."""
    channels, height, width = image
    rows, columns = [-(-length // 2) for length in covered]
    numbers = (height, width, *before, columns, rows * columns, channels, share)
    dividers = [divider(one) for one in (columns, rows * columns, channels, share)]
    return packed(np.array([*numbers, *dividers], np.int64))
