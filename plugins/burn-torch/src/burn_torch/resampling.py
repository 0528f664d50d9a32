"""Interpolation, and sampling at the points of a grid, by torch's kernels on the CPU.

The kernels also multiply by weights of 0, which turns an infinity into NaN: the default of the op
computes where an operand is not finite. On an accelerator that test would wait for the device.
"""

from __future__ import annotations

import math
from typing import Any, Final, Unpack

import torch

from burn.plugin_api import REGISTRY, InterpolateAttributes, Meta, float32
from burn_torch.base import TorchOps
from burn_torch.dtypes import Tensor
from burn_torch.precision import in_float32
from burn_torch.settings import in_any_order

_aten: Final = torch.ops.aten
_Kernels = dict[tuple[str, int], Any]
_FORWARD: Final[_Kernels] = {
    ("linear", 1): _aten.upsample_linear1d.default,
    ("linear", 2): _aten.upsample_bilinear2d.default,
    ("linear", 3): _aten.upsample_trilinear3d.default,
    ("cubic", 2): _aten.upsample_bicubic2d.default,
}
_BACKWARD: Final[_Kernels] = {
    ("linear", 1): _aten.upsample_linear1d_backward.default,
    ("linear", 2): _aten.upsample_bilinear2d_backward.default,
    ("linear", 3): _aten.upsample_trilinear3d_backward.default,
    ("cubic", 2): _aten.upsample_bicubic2d_backward.default,
}
"""Without the mode nearest: torch rounds positions and so picks another element at times."""

_MODES: Final = ("bilinear", "nearest", "bicubic")
_PADDING_MODES: Final = ("zeros", "border", "reflection")
"""Modes in the order of torch's numbers for them."""


class ResamplingOps(TorchOps):
    """Tensors resampled to another spatial size or at other points."""

    @in_float32
    def interpolate(
        self,
        x: Tensor,
        *,
        output_size: tuple[int, ...],
        **attributes: Unpack[InterpolateAttributes],
    ) -> Tensor:
        """`torch.nn.functional.interpolate`, or the default."""
        kernel = _FORWARD.get((attributes["mode"], len(output_size)))
        if kernel is None or not x.numel() or not self._is_finite(x):
            return self.decomposed("interpolate", x, output_size=output_size, **attributes)
        meta = Meta(tuple(x.shape), float32)
        REGISTRY["interpolate"].infer(meta, output_size=output_size, **attributes)
        lead, spatial = _split(x, len(output_size))
        rows = x if len(lead) == 2 else x.reshape(1, math.prod(lead), *spatial)
        output: Tensor = kernel(
            rows,
            output_size,
            attributes["align_corners"],
            *_scales(attributes["scale"], output_size),
        )
        return output.reshape(*lead, *output_size)

    @in_float32
    @in_any_order
    def interpolate_grad(
        self,
        g: Tensor,
        *,
        input_size: tuple[int, ...],
        **attributes: Unpack[InterpolateAttributes],
    ) -> Tensor:
        """Torch's backward kernel, or the default."""
        kernel = _BACKWARD.get((attributes["mode"], len(input_size)))
        if kernel is None or not g.numel() or not self._is_finite(g):
            return self.decomposed("interpolate_grad", g, input_size=input_size, **attributes)
        meta = Meta(tuple(g.shape), float32)
        REGISTRY["interpolate_grad"].infer(meta, input_size=input_size, **attributes)
        lead, spatial = _split(g, len(input_size))
        channels = math.prod(lead)
        rows = g.reshape(1, channels, *spatial).contiguous()
        result: Tensor = kernel(
            rows,
            spatial,
            (1, channels, *input_size),
            attributes["align_corners"],
            *_scales(attributes["scale"], input_size),
        )
        return result.reshape(*lead, *input_size)

    @in_float32
    def grid_sample_2d(
        self,
        x: Tensor,
        grid: Tensor,
        *,
        mode: str = "bilinear",
        padding_mode: str = "zeros",
        align_corners: bool = False,
    ) -> Tensor:
        """`torch.grid_sampler`, or the default."""
        return self._grid_sample("grid_sample_2d", x, grid, mode, padding_mode, align_corners)

    @in_float32
    def grid_sample_3d(
        self,
        x: Tensor,
        grid: Tensor,
        *,
        mode: str = "bilinear",
        padding_mode: str = "zeros",
        align_corners: bool = False,
    ) -> Tensor:
        """`torch.grid_sampler`, or the default."""
        return self._grid_sample("grid_sample_3d", x, grid, mode, padding_mode, align_corners)

    def _grid_sample(
        self,
        name: str,
        x: Tensor,
        grid: Tensor,
        mode: str,
        padding_mode: str,
        align_corners: bool,
    ) -> Tensor:
        if (
            not (x.numel() and grid.numel())
            or x.dtype is not grid.dtype
            or x.dim() != int(name[-2]) + 2
            or not (mode in _MODES and padding_mode in _PADDING_MODES)
            or not (self._is_finite(x) and self._is_finite(grid))
        ):
            return self.decomposed(
                name,
                x,
                grid,
                mode=mode,
                padding_mode=padding_mode,
                align_corners=align_corners,
            )
        return torch.grid_sampler(
            x, grid, _MODES.index(mode), _PADDING_MODES.index(padding_mode), align_corners
        )

    def _is_finite(self, x: Tensor) -> bool:
        """Whether all elements are known to be finite; False on accelerators."""
        return self.on_host and math.isfinite(float(torch.sum(x)))


def _split(x: Tensor, count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The lengths of the leading axes and of the `count` spatial ones."""
    shape = tuple(x.shape)
    return shape[: len(shape) - count], shape[len(shape) - count :]


def _scales(scale: tuple[float, ...] | None, like: tuple[int, ...]) -> tuple[float | None, ...]:
    return (None,) * len(like) if scale is None else scale
