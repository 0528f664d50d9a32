"""Optimizer steps by torch's fused kernels on copies of the operands that they update."""

from __future__ import annotations

from typing import Any

import torch

from burn.plugin_api import check_same_shapes
from burn_torch.base import TorchOps
from burn_torch.dtypes import Tensor
from burn_torch.precision import in_float32

_fused = torch._fused_adamw_


class OptimizerOps(TorchOps):
    """Steps that write to new tensors only."""

    @in_float32
    def adam_step(
        self,
        parameter: Tensor,
        gradient: Tensor,
        first_moment: Tensor,
        second_moment: Tensor,
        *,
        step: int,
        learning_rate: float,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The kernel of `torch.optim.AdamW`."""
        check_same_shapes(parameter, gradient, first_moment, second_moment)
        results = [_copied(one) for one in (parameter, first_moment, second_moment)]
        if not parameter.numel():
            return results[0], results[1], results[2]  # the CUDA kernel refuses empty tensors
        count = torch.full((), step, dtype=torch.float32, device=parameter.device)
        _fused(
            results[:1],
            [gradient.contiguous()],
            results[1:2],
            results[2:],
            [],
            [count],
            lr=learning_rate,
            beta1=beta1,
            beta2=beta2,
            weight_decay=weight_decay,
            eps=epsilon,
            amsgrad=False,
            maximize=False,
        )
        return results[0], results[1], results[2]

    @in_float32
    def sgd_step(
        self,
        parameter: Tensor,
        gradient: Tensor,
        velocity: Tensor,
        *,
        learning_rate: float,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """The formula of the op by `torch.add` with a factor, which fuses two operations."""
        check_same_shapes(parameter, gradient, velocity)
        add: Any = torch.add
        if weight_decay:
            gradient = add(gradient, parameter, alpha=weight_decay)
        velocity = add(gradient, velocity, alpha=momentum) if momentum else gradient
        direction = add(gradient, velocity, alpha=momentum) if nesterov else velocity
        return add(parameter, direction, alpha=-learning_rate), velocity


def _copied(x: Tensor) -> Tensor:
    return x.clone(memory_format=torch.contiguous_format)
