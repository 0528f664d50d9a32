"""Activation functions, and the gradients that torch has kernels for."""

from __future__ import annotations

import functools
from typing import Any, Final

import torch

from burn_torch.base import TorchOps
from burn_torch.dtypes import Tensor
from burn_torch.precision import has_finite_sum

_nn = torch._C._nn
_gelu_backward: Final = torch.ops.aten.gelu_backward.default
_broadcast_tensors: Any = torch.broadcast_tensors
_SOFTPLUS_THRESHOLD: Final = 60.0
"""Above it torch's softplus is the identity; torch's default of 20 is too low for float64."""


_FEW: Final = 16384
"""Elements of which torch's kernel computes gelu in less time than oneDNN, on the CPU."""


class ActivationOps(TorchOps):
    """Activation functions by torch's kernels."""

    def relu_grad(self, output: Tensor, g: Tensor) -> Tensor:
        """A selection: torch's own kernel passes the gradient where `output` is NaN."""
        return torch.where(output > 0.0, g, self._zero(g.dtype))

    def _zero(self, dtype: torch.dtype) -> Tensor:
        """The number 0 on the device, where torch would fill a tensor with it for each call."""
        zero = self._zeros.get(dtype)
        if zero is None:
            zero = self._zeros[dtype] = torch.zeros((), dtype=dtype, device=self.torch_device)
        return zero

    @functools.cached_property
    def _zeros(self) -> dict[torch.dtype, Tensor]:
        return {}

    def leaky_relu(self, x: Tensor, *, negative_slope: float) -> Tensor:
        """`torch.nn.functional.leaky_relu`."""
        return _nn.leaky_relu(x, negative_slope)

    def elu(
        self, x: Tensor, *, alpha: float, scale: float = 1.0, input_scale: float = 1.0
    ) -> Tensor:
        """The kernel of torch's elu, selu and celu."""
        return torch.ops.aten.elu.default(x, alpha, scale, input_scale)  # type: ignore[no-any-return]  # a tensor

    def hardtanh(self, x: Tensor, *, low: float, high: float) -> Tensor:
        """`torch.clamp`."""
        return torch.clamp(x, low, high)

    def hard_swish(self, x: Tensor) -> Tensor:
        """`torch.nn.functional.hardswish`, which divides float64 by 6 in float32 on CUDA."""
        if x.dtype is torch.float64 and not self.on_host:
            return torch.clamp(x + 3.0, 0.0, 6.0).mul_(x).div_(6.0)
        return _nn.hardswish(x)

    def threshold(self, x: Tensor, *, threshold: float, value: float) -> Tensor:
        """`torch.threshold`."""
        return torch.threshold(x, threshold, value)

    def gelu(self, x: Tensor, *, approximate: str = "none") -> Tensor:
        """`torch.nn.functional.gelu`; the default where its result is not finite on the CPU.

        There oneDNN computes contiguous floats, and returns NaN for an infinity. For few elements
        torch's own kernel, which a transpose leads to, takes half the time.
        """
        if not self.on_host or approximate != "none" or x.dtype is torch.float64:
            return _nn.gelu(x, approximate=approximate)
        if x.dim() > 1 and x.numel() <= _FEW and not (turned := x.mT).is_contiguous():
            return _nn.gelu(turned).mT
        result: Tensor = _nn.gelu(x)
        return result if has_finite_sum(result) else self.decomposed("gelu", x)

    def gelu_grad(self, x: Tensor, g: Tensor, *, approximate: str = "none") -> Tensor:
        """Torch's backward kernel, which does not broadcast its operands."""
        if x.shape != g.shape:
            x, g = (broadcast_tensor.contiguous() for broadcast_tensor in _broadcast_tensors(x, g))
        if self.on_host and x.dim() > 1 and x.numel() <= _FEW:  # see `gelu`
            return _gelu_backward(g.mT, x.mT, approximate=approximate).mT  # type: ignore[no-any-return]  # a tensor
        return _gelu_backward(g, x, approximate=approximate)  # type: ignore[no-any-return]  # a tensor

    def softplus(self, x: Tensor, *, beta: float = 1.0) -> Tensor:
        """`torch.nn.functional.softplus`, linear only where rounding hides the difference."""
        return _nn.softplus(x, beta, _SOFTPLUS_THRESHOLD)

    def glu(self, x: Tensor, *, axis: int) -> Tensor:
        """`torch.nn.functional.glu`."""
        if not 0 <= axis < x.dim():
            raise IndexError(f"axis {axis} of {x.dim()}")
        return _nn.glu(x, axis)
