"""Convolutions by torch's kernels; padding that differs between the ends is added before."""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Final, Unpack

import torch

from burn.plugin_api import (
    ConvAttributes,
    ConvTransposeAttributes,
    ConvWeightGradAttributes,
    Pairs,
    PatchAttributes,
    Sizes,
    check_columns,
    check_conv_bias,
    conv_geometry,
    conv_transpose_geometry,
    conv_weight_grad_geometry,
    image_windows,
)
from burn_torch.base import TorchOps
from burn_torch.dtypes import HALF_FLOATS, Tensor
from burn_torch.precision import in_float32, on_host_in_float32
from burn_torch.settings import without_autocast

_backward: Final = torch.ops.aten.convolution_backward.default
_NO_CONTEXT: Final = contextlib.nullcontext()
_SPATIAL_RANKS: Final = frozenset([1, 2, 3])
"""Numbers of spatial axes that torch has kernels for."""


class ConvolutionOps(TorchOps):
    """Convolutions over one to three spatial axes; the default for more."""

    def _exactly(self, x: Tensor) -> contextlib.AbstractContextManager[Any]:
        """Context in which torch neither rounds float32 operands nor casts them."""
        reduced = x.dtype is torch.float32 and self.convolutions.is_reduced()
        casting = torch._C._is_any_autocast_enabled()
        if not reduced and not casting:
            return _NO_CONTEXT
        stack = contextlib.ExitStack()
        if reduced:
            stack.enter_context(self.convolutions.exact())
        if casting:
            stack.enter_context(without_autocast(self.torch_device))
        return stack

    def _convolve(
        self,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        padding: list[int],
        attributes: ConvAttributes,
        *,
        output_padding: Sizes | None = None,
    ) -> Tensor:
        """`torch.convolution`; 16-bit floats with a bias in float32, as torch would round twice."""
        transposed = output_padding is not None
        extra = output_padding or [0] * len(padding)
        arguments = (
            attributes["stride"],
            padding,
            attributes["dilation"],
            transposed,
            extra,
            attributes["groups"],
        )
        if bias is None or x.dtype not in HALF_FLOATS:
            with self._exactly(x):
                return torch.convolution(x, weight, bias, *arguments)
        with without_autocast(self.torch_device), self.convolutions.of_16_bits():
            dtype = x.dtype
            x, weight, bias = (tensor.to(torch.float32) for tensor in (x, weight, bias))
            return torch.convolution(x, weight, bias, *arguments).to(dtype)

    @on_host_in_float32
    def conv(
        self, x: Tensor, weight: Tensor, bias: Tensor | None, **attributes: Unpack[ConvAttributes]
    ) -> Tensor:
        """`torch.convolution`."""
        plan = conv_geometry(tuple(x.shape), tuple(weight.shape), **attributes)
        check_conv_bias(bias, plan.outputs)
        if len(plan.axes) not in _SPATIAL_RANKS or not x.numel() or not weight.numel():
            return self.decomposed("conv", x, weight, bias, **attributes)
        x, both = _padded(x, attributes["padding"])
        return self._convolve(x, weight, bias, both, attributes)

    @on_host_in_float32
    def conv_transpose(
        self,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        **attributes: Unpack[ConvTransposeAttributes],
    ) -> Tensor:
        """`torch.convolution`, transposed; cut where padding differs between the ends."""
        plan = conv_transpose_geometry(tuple(x.shape), tuple(weight.shape), **attributes)
        check_conv_bias(bias, plan.inputs)
        if len(plan.axes) not in _SPATIAL_RANKS or not x.numel() or not weight.numel():
            return self.decomposed("conv_transpose", x, weight, bias, **attributes)
        padding = attributes["padding"]
        both = [min(pair) for pair in padding]
        result = self._convolve(
            x, weight, bias, both, attributes, output_padding=attributes["output_padding"]
        )
        for axis, ((before, _), same, length) in enumerate(
            zip(padding, both, plan.input_shape[2:], strict=True), start=2
        ):
            if result.shape[axis] != length:
                result = result.narrow(axis, before - same, length)
        return result

    @on_host_in_float32
    def conv_weight_grad(
        self, x: Tensor, g: Tensor, **attributes: Unpack[ConvWeightGradAttributes]
    ) -> Tensor:
        """Torch's backward kernel."""
        plan = conv_weight_grad_geometry(tuple(x.shape), tuple(g.shape), **attributes)
        if len(plan.axes) not in _SPATIAL_RANKS or not x.numel() or not g.numel():
            return self.decomposed("conv_weight_grad", x, g, **attributes)
        x, both = _padded(x, attributes["padding"])
        none = (0,) * len(plan.axes)
        weight = x.new_empty(plan.weight_shape)
        with self._exactly(x):
            _, result, _ = _backward(
                g,
                x,
                weight,
                None,
                attributes["stride"],
                both,
                attributes["dilation"],
                False,  # noqa: FBT003 — torch's own order
                none,
                plan.groups,
                (False, True, False),
            )
        return result  # type: ignore[no-any-return]  # a tensor

    def unfold4d(self, x: Tensor, **attributes: Unpack[PatchAttributes]) -> Tensor:
        """`torch.nn.functional.unfold`."""
        image_windows(tuple(x.shape), **attributes)
        if not x.numel():
            return self.decomposed("unfold4d", x, **attributes)
        x, both = _padded(x, attributes["padding"])
        return torch._C._nn.im2col(
            x, attributes["kernel_size"], attributes["dilation"], both, attributes["stride"]
        )

    @in_float32
    def fold4d(
        self, x: Tensor, *, output_size: Sizes, **attributes: Unpack[PatchAttributes]
    ) -> Tensor:
        """`torch.nn.functional.fold`; the padding is cut afterwards."""
        check_columns(tuple(x.shape), output_size, **attributes)
        if not x.numel():
            return self.decomposed("fold4d", x, output_size=output_size, **attributes)
        padding = attributes["padding"]
        whole = [
            length + before + after
            for length, (before, after) in zip(output_size, padding, strict=True)
        ]
        numbers = attributes["kernel_size"], attributes["dilation"], (0, 0), attributes["stride"]
        result = torch._C._nn.col2im(x, whole, *numbers)
        for axis, (length, (before, _)) in enumerate(zip(output_size, padding, strict=True), 2):
            result = result.narrow(axis, before, length)
        return result


def _padded(x: Tensor, padding: Pairs) -> tuple[Tensor, list[int]]:
    """A tensor padded by the difference between the ends, and the padding common to both."""
    both, extra = _parts(padding)
    return (torch.constant_pad_nd(x, extra) if extra else x), both


@functools.lru_cache(maxsize=256)
def _parts(padding: Pairs) -> tuple[list[int], list[int]]:
    """The padding common to both ends, and the rest in torch's order; empty if there is none."""
    both = [min(pair) for pair in padding]
    extra: list[int] = []
    for (before, after), same in zip(reversed(padding), reversed(both), strict=True):
        extra += [before - same, after - same]
    return both, extra if any(extra) else []
