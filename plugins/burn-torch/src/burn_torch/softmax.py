"""Softmax along an axis and its gradients."""

from __future__ import annotations

import torch

from burn_torch.base import TorchOps
from burn_torch.dtypes import HALF_FLOATS, Tensor
from burn_torch.precision import in_float32


class SoftmaxOps(TorchOps):
    """torch's kernels, forward and backward."""

    def softmax(self, x: Tensor, *, axis: int) -> Tensor:
        """`torch.softmax`."""
        if not 0 <= axis < x.dim():
            raise IndexError(f"axis {axis} of {x.dim()}")
        if x.dtype in HALF_FLOATS:
            return torch.softmax(x, axis, dtype=torch.float32).to(x.dtype)
        return torch.softmax(x, axis)

    def log_softmax(self, x: Tensor, *, axis: int) -> Tensor:
        """`torch.log_softmax`."""
        if not 0 <= axis < x.dim():
            raise IndexError(f"axis {axis} of {x.dim()}")
        if x.dtype in HALF_FLOATS:
            return torch.log_softmax(x, axis, dtype=torch.float32).to(x.dtype)
        return torch.log_softmax(x, axis)

    @in_float32
    def softmax_grad(self, output: Tensor, g: Tensor, *, axis: int) -> Tensor:
        """Torch's backward kernel."""
        _check(output, g, axis)
        return torch._softmax_backward_data(g, output, axis, output.dtype)

    @in_float32
    def log_softmax_grad(self, output: Tensor, g: Tensor, *, axis: int) -> Tensor:
        """Torch's backward kernel."""
        _check(output, g, axis)
        return torch._log_softmax_backward_data(g, output, axis, output.dtype)


def _check(output: Tensor, g: Tensor, axis: int) -> None:
    if output.shape != g.shape or not 0 <= axis < output.dim():
        raise ValueError(f"a gradient of shape {g.shape} for {output.shape} along axis {axis}")
