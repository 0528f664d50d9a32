"""Normalization by torch's own kernels."""

from __future__ import annotations

from typing import Final

import torch

from burn.plugin_api import check_channels, check_last_axis
from burn_torch.base import TorchOps
from burn_torch.dtypes import Tensor
from burn_torch.precision import in_float32

_layer_norm_backward: Final = torch.ops.aten.native_layer_norm_backward.default
_ALL: Final = [True, True, True]
"""The gradients by an operand, and by a factor and a bias of each of its parts."""
_batch_norm_backward: Final = torch.ops.aten.native_batch_norm_backward.default


class NormalizationOps(TorchOps):
    """Normalization of rows and of channels."""

    @in_float32
    def layer_norm(
        self, x: Tensor, gamma: Tensor | None, beta: Tensor | None, *, epsilon: float
    ) -> Tensor:
        """`torch.layer_norm`."""
        if not x.numel():
            check_last_axis(tuple(x.shape), gamma=gamma, beta=beta)
            return x
        return torch.layer_norm(x, x.shape[-1:], gamma, beta, epsilon)  # which checks the shapes

    @in_float32
    def layer_norm_grad(
        self, x: Tensor, gamma: Tensor | None, g: Tensor, *, epsilon: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Torch's backward kernel, with the statistics computed again."""
        if g.shape != x.shape or not x.numel():
            return self.decomposed("layer_norm_grad", x, gamma, g, epsilon=epsilon)
        row = x.shape[-1:]
        weight = x.new_ones(row) if gamma is None else gamma
        _, mean, inverse = torch.native_layer_norm(x, row, weight, None, epsilon)
        results: tuple[Tensor, Tensor, Tensor] = _layer_norm_backward(
            g, x, row, mean, inverse, weight, weight, _ALL
        )
        return results

    @in_float32
    def rms_norm(self, x: Tensor, gamma: Tensor | None, *, epsilon: float) -> Tensor:
        """`torch.rms_norm`."""
        length = check_last_axis(tuple(x.shape), gamma=gamma)
        return torch.rms_norm(x, (length,), gamma, epsilon) if x.numel() else x

    @in_float32
    def batch_norm(
        self,
        x: Tensor,
        gamma: Tensor | None,
        beta: Tensor | None,
        mean: Tensor,
        variance: Tensor,
        *,
        epsilon: float,
    ) -> Tensor:
        """Subtracts the mean first: torch's kernel of the CPU loses digits where it is large."""
        shape = tuple(x.shape)
        check_channels(shape, gamma=gamma, beta=beta, mean=mean, variance=variance)
        return _scaled(x, gamma, beta, mean, torch.rsqrt(variance + epsilon), epsilon)

    @in_float32
    def batch_norm_training(
        self, x: Tensor, gamma: Tensor | None, beta: Tensor | None, *, epsilon: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Torch's kernels of CUDA; elsewhere one temporary for the distances from the mean."""
        shape = tuple(x.shape)
        check_channels(shape, gamma=gamma, beta=beta)
        if not x.numel():
            return self.decomposed("batch_norm_training", x, gamma, beta, epsilon=epsilon)
        if x.is_cuda:
            mean, variance = torch.batch_norm_update_stats(x, None, None, 0.0)
            inverse = torch.rsqrt(variance + epsilon)
            return _scaled(x, gamma, beta, mean, inverse, epsilon), mean, variance
        axes = (0, *range(2, len(shape)))
        mean = torch.mean(x, axes)
        distance = x - _per_channel(mean, x)
        variance = torch.mean(torch.square(distance), axes)
        factor = torch.rsqrt(variance + epsilon)
        return _multiplied(distance, gamma, beta, factor), mean, variance

    @in_float32
    def batch_norm_grad(
        self,
        x: Tensor,
        gamma: Tensor | None,
        mean: Tensor,
        variance: Tensor,
        g: Tensor,
        *,
        epsilon: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Torch's backward kernel."""
        check_channels(tuple(x.shape), gamma=gamma, mean=mean, variance=variance)
        if g.shape != x.shape or not x.numel():
            return self.decomposed("batch_norm_grad", x, gamma, mean, variance, g, epsilon=epsilon)
        weight = x.new_ones(x.shape[1]) if gamma is None else gamma
        inverse, training = torch.rsqrt(variance + epsilon), True
        results = _batch_norm_backward(
            g, x, weight, None, None, mean, inverse, training, epsilon, (True, True, True)
        )
        return tuple(results)


def _scaled(
    x: Tensor,
    gamma: Tensor | None,
    beta: Tensor | None,
    mean: Tensor,
    factor: Tensor,
    epsilon: float,
) -> Tensor:
    """The distances from the mean, times a factor for each channel."""
    if x.is_cuda and x.numel():
        return torch.batch_norm_elemt(x, gamma, beta, mean, factor, epsilon)
    return _multiplied(x - _per_channel(mean, x), gamma, beta, factor)


def _multiplied(x: Tensor, gamma: Tensor | None, beta: Tensor | None, factor: Tensor) -> Tensor:
    """A tensor scaled in place."""
    x *= _per_channel(factor if gamma is None else factor * gamma, x)
    if beta is not None:
        x += _per_channel(beta, x)
    return x


def _per_channel(x: Tensor, like: Tensor) -> Tensor:
    """A vector with an element for each channel, to broadcast."""
    return x.reshape(-1, *[1] * (like.dim() - 2))
