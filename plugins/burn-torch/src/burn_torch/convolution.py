"""Convolutions by torch's own kernels; padding that differs at both ends is made first."""

from __future__ import annotations

import contextlib
from typing import Any, Final

import torch

from burn.ops.convolution_windows import (
    check_bias,
    convolution,
    transposed_convolution,
    weight_gradient,
)
from burn.ops.pooling_windows import Pairs, Sizes
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
        stride: Sizes,
        padding: list[int],
        dilation: Sizes,
        groups: int,
        *,
        output_padding: Sizes | None = None,
    ) -> Tensor:
        """`torch.convolution`, which rounds 16-bit floats before it adds the bias, not after."""
        transposed = output_padding is not None
        rest = (stride, padding, dilation, transposed, output_padding or [0] * len(stride), groups)
        if bias is None or x.dtype not in SHORT:
            with self._exactly(x):
                return torch.convolution(x, weight, bias, *rest)
        with without_autocast(self.place), self.convolutions.of_16_bits():
            dtype = x.dtype
            x, weight, bias = (one.to(torch.float32) for one in (x, weight, bias))
            return torch.convolution(x, weight, bias, *rest).to(dtype)

    @on_host_in_float32
    def conv(
        self,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        *,
        stride: Sizes,
        padding: Pairs,
        dilation: Sizes,
        groups: int,
    ) -> Tensor:
        """`torch.convolution`."""
        plan = convolution(
            tuple(x.shape),
            tuple(weight.shape),
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=groups,
        )
        check_bias(bias, plan.outputs)
        if len(stride) not in _RANKS or not x.numel() or not weight.numel():
            return self.decomposed(  # type: ignore[no-any-return]  # a primitive
                "conv", x, weight, bias,
                stride=stride, padding=padding, dilation=dilation, groups=groups,
            )  # fmt: skip
        x, both = _padded(x, padding)
        return self._convolve(x, weight, bias, stride, both, dilation, groups)

    @on_host_in_float32
    def conv_transpose(
        self,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        *,
        stride: Sizes,
        padding: Pairs,
        output_padding: Sizes,
        dilation: Sizes,
        groups: int,
    ) -> Tensor:
        """`torch.convolution`, transposed; the ends of the output that are not wanted are cut."""
        plan = transposed_convolution(
            tuple(x.shape),
            tuple(weight.shape),
            stride=stride,
            padding=padding,
            output_padding=output_padding,
            dilation=dilation,
            groups=groups,
        )
        check_bias(bias, plan.inputs)
        if len(stride) not in _RANKS or not x.numel() or not weight.numel():
            return self.decomposed(  # type: ignore[no-any-return]  # a primitive
                "conv_transpose", x, weight, bias,
                stride=stride, padding=padding, output_padding=output_padding,
                dilation=dilation, groups=groups,
            )  # fmt: skip
        both = [min(pair) for pair in padding]
        result = self._convolve(
            x, weight, bias, stride, both, dilation, groups, output_padding=output_padding
        )
        for axis, ((before, _), same, length) in enumerate(
            zip(padding, both, plan.input_shape[2:], strict=True), start=2
        ):
            if result.shape[axis] != length:
                result = result.narrow(axis, before - same, length)
        return result

    @on_host_in_float32
    def conv_weight_grad(
        self,
        x: Tensor,
        g: Tensor,
        *,
        kernel_size: Sizes,
        stride: Sizes,
        padding: Pairs,
        dilation: Sizes,
        groups: int,
    ) -> Tensor:
        """What torch's own gradient calls."""
        plan = weight_gradient(
            tuple(x.shape),
            tuple(g.shape),
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=groups,
        )
        if len(stride) not in _RANKS or not x.numel() or not g.numel():
            return self.decomposed(  # type: ignore[no-any-return]  # a primitive
                "conv_weight_grad", x, g,
                kernel_size=kernel_size, stride=stride, padding=padding,
                dilation=dilation, groups=groups,
            )  # fmt: skip
        x, both = _padded(x, padding)
        none = (0,) * len(stride)
        weight = x.new_empty(plan.weight_shape)
        with self._exactly(x):
            _, result, _ = _backward(
                g,
                x,
                weight,
                None,
                stride,
                both,
                dilation,
                False,  # noqa: FBT003 — torch's own order
                none,
                groups,
                (False, True, False),
            )
        return result  # type: ignore[no-any-return]  # a tensor

    def unfold4d(
        self,
        x: Tensor,
        *,
        kernel_size: Sizes,
        stride: Sizes,
        padding: Pairs,
        dilation: Sizes,
    ) -> Tensor:
        """`torch.nn.functional.unfold`."""
        patches(
            tuple(x.shape),
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
        )
        if not x.numel():
            return self.decomposed(  # type: ignore[no-any-return]  # a primitive
                "unfold4d", x,
                kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation,
            )  # fmt: skip
        x, both = _padded(x, padding)
        return torch._C._nn.im2col(x, kernel_size, dilation, both, stride)

    @in_float32
    def fold4d(
        self,
        x: Tensor,
        *,
        output_size: Sizes,
        kernel_size: Sizes,
        stride: Sizes,
        padding: Pairs,
        dilation: Sizes,
    ) -> Tensor:
        """`torch.nn.functional.fold`, with padding that is cut afterwards."""
        check_columns(
            tuple(x.shape),
            output_size,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
        )
        if not x.numel():
            return self.decomposed(  # type: ignore[no-any-return]  # a primitive
                "fold4d", x, output_size=output_size,
                kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation,
            )  # fmt: skip
        whole = [
            length + before + after
            for length, (before, after) in zip(output_size, padding, strict=True)
        ]
        result = torch._C._nn.col2im(x, whole, kernel_size, dilation, (0, 0), stride)
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
