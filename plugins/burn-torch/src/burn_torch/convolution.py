"""Convolutions by torch's own kernels; padding that differs at both ends is made first."""

from __future__ import annotations

import contextlib
from typing import Any, Final, Unpack

import torch

from burn.ops.convolution_windows import (
    ConvRule,
    ConvTransposeRule,
    ConvWeightGradRule,
    check_bias,
    convolution,
    transposed_convolution,
    weight_gradient,
)
from burn.ops.pooling_windows import Pairs, PatchRule, Sizes
from burn.ops.unfolding import check_columns, patches
from burn_torch.defaults import DefaultOps
from burn_torch.dtypes import SHORT, Tensor
from burn_torch.precision import in_float32, on_host_in_float32
from burn_torch.settings import without_autocast

_backward: Final = torch.ops.aten.convolution_backward.default
_nothing: Final = contextlib.nullcontext()
_RANKS: Final = frozenset([1, 2, 3])
"""Numbers of spatial axes that torch has kernels for."""


class ConvolutionOps(DefaultOps):
    """Convolutions over one to three spatial axes; more go by the decomposition."""

    def _exactly(self, x: Tensor) -> contextlib.AbstractContextManager[Any]:
        """Context in which float32 is not rounded on the way, and stays float32."""
        reduced = x.dtype is torch.float32 and self.convolutions.is_reduced()
        casting = torch._C._is_any_autocast_enabled()
        if not reduced and not casting:
            return _nothing
        stack = contextlib.ExitStack()
        if reduced:
            stack.enter_context(self.convolutions.exact())
        if casting:
            stack.enter_context(without_autocast(self.place))
        return stack

    def _convolve(
        self,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        padding: list[int],
        rule: ConvRule,
        *,
        output_padding: Sizes | None = None,
    ) -> Tensor:
        """`torch.convolution`, which rounds 16-bit floats before it adds the bias, not after."""
        transposed = output_padding is not None
        extra = output_padding or [0] * len(padding)
        rest = (rule["stride"], padding, rule["dilation"], transposed, extra, rule["groups"])
        if bias is None or x.dtype not in SHORT:
            with self._exactly(x):
                return torch.convolution(x, weight, bias, *rest)
        with without_autocast(self.place), self.convolutions.of_16_bits():
            dtype = x.dtype
            x, weight, bias = (one.to(torch.float32) for one in (x, weight, bias))
            return torch.convolution(x, weight, bias, *rest).to(dtype)

    @on_host_in_float32
    def conv(
        self, x: Tensor, weight: Tensor, bias: Tensor | None, **rule: Unpack[ConvRule]
    ) -> Tensor:
        """`torch.convolution`."""
        plan = convolution(tuple(x.shape), tuple(weight.shape), **rule)
        check_bias(bias, plan.outputs)
        if len(plan.axes) not in _RANKS or not x.numel() or not weight.numel():
            return self.decomposed("conv", x, weight, bias, **rule)  # type: ignore[no-any-return]  # a primitive
        x, both = _padded(x, rule["padding"])
        return self._convolve(x, weight, bias, both, rule)

    @on_host_in_float32
    def conv_transpose(
        self, x: Tensor, weight: Tensor, bias: Tensor | None, **rule: Unpack[ConvTransposeRule]
    ) -> Tensor:
        """`torch.convolution`, transposed; the ends of the output that are not wanted are cut."""
        plan = transposed_convolution(tuple(x.shape), tuple(weight.shape), **rule)
        check_bias(bias, plan.inputs)
        if len(plan.axes) not in _RANKS or not x.numel() or not weight.numel():
            return self.decomposed("conv_transpose", x, weight, bias, **rule)  # type: ignore[no-any-return]  # a primitive
        padding = rule["padding"]
        both = [min(pair) for pair in padding]
        result = self._convolve(x, weight, bias, both, rule, output_padding=rule["output_padding"])
        for axis, ((before, _), same, length) in enumerate(
            zip(padding, both, plan.input_shape[2:], strict=True), start=2
        ):
            if result.shape[axis] != length:
                result = result.narrow(axis, before - same, length)
        return result

    @on_host_in_float32
    def conv_weight_grad(self, x: Tensor, g: Tensor, **rule: Unpack[ConvWeightGradRule]) -> Tensor:
        """What torch's own gradient calls."""
        plan = weight_gradient(tuple(x.shape), tuple(g.shape), **rule)
        if len(plan.axes) not in _RANKS or not x.numel() or not g.numel():
            return self.decomposed("conv_weight_grad", x, g, **rule)  # type: ignore[no-any-return]  # a primitive
        x, both = _padded(x, rule["padding"])
        none = (0,) * len(plan.axes)
        weight = x.new_empty(plan.weight_shape)
        with self._exactly(x):
            _, result, _ = _backward(
                g,
                x,
                weight,
                None,
                rule["stride"],
                both,
                rule["dilation"],
                False,  # noqa: FBT003 — torch's own order
                none,
                plan.groups,
                (False, True, False),
            )
        return result  # type: ignore[no-any-return]  # a tensor

    def unfold4d(self, x: Tensor, **rule: Unpack[PatchRule]) -> Tensor:
        """`torch.nn.functional.unfold`."""
        patches(tuple(x.shape), **rule)
        if not x.numel():
            return self.decomposed("unfold4d", x, **rule)  # type: ignore[no-any-return]  # a primitive
        x, both = _padded(x, rule["padding"])
        return torch._C._nn.im2col(x, rule["kernel_size"], rule["dilation"], both, rule["stride"])

    @in_float32
    def fold4d(self, x: Tensor, *, output_size: Sizes, **rule: Unpack[PatchRule]) -> Tensor:
        """`torch.nn.functional.fold`, with padding that is cut afterwards."""
        check_columns(tuple(x.shape), output_size, **rule)
        if not x.numel():
            return self.decomposed("fold4d", x, output_size=output_size, **rule)  # type: ignore[no-any-return]  # a primitive
        padding = rule["padding"]
        whole = [
            length + before + after
            for length, (before, after) in zip(output_size, padding, strict=True)
        ]
        numbers = rule["kernel_size"], rule["dilation"], (0, 0), rule["stride"]
        result = torch._C._nn.col2im(x, whole, *numbers)
        for axis, (length, (before, _)) in enumerate(zip(output_size, padding, strict=True), 2):
            result = result.narrow(axis, before, length)
        return result


def _padded(x: Tensor, padding: Pairs) -> tuple[Tensor, list[int]]:
    """A tensor with as much padding as both ends do not share, and what they share."""
    both = [min(pair) for pair in padding]
    rest: list[int] = []
    for (before, after), same in zip(reversed(padding), reversed(both), strict=True):
        rest += [before - same, after - same]
    return (torch.constant_pad_nd(x, rest) if any(rest) else x), both
