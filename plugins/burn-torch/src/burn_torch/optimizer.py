"""Optimizer steps by torch's fused kernels on copies of the operands that they update."""

from __future__ import annotations

from typing import Any, Unpack

import torch

from burn.plugin_api import AdamAttributes, SgdAttributes, check_same_shapes
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
        **attributes: Unpack[AdamAttributes],
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The kernel of `torch.optim.AdamW`."""
        check_same_shapes(parameter, gradient, first_moment, second_moment)
        results = [_copied(one) for one in (parameter, first_moment, second_moment)]
        if not parameter.numel():
            return results[0], results[1], results[2]  # the CUDA kernel refuses empty tensors
        count = torch.full((), attributes["step"], dtype=torch.float32, device=parameter.device)
        _fused(
            results[:1],
            [gradient.contiguous()],
            results[1:2],
            results[2:],
            [],
            [count],
            lr=attributes["learning_rate"],
            beta1=attributes["beta1"],
            beta2=attributes["beta2"],
            weight_decay=attributes["weight_decay"],
            eps=attributes["epsilon"],
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
        **attributes: Unpack[SgdAttributes],
    ) -> tuple[Tensor, Tensor]:
        """The formula of the op by `torch.add` with a factor, which fuses two operations."""
        check_same_shapes(parameter, gradient, velocity)
        momentum, weight_decay = attributes["momentum"], attributes["weight_decay"]
        add: Any = torch.add
        if weight_decay:
            gradient = add(gradient, parameter, alpha=weight_decay)
        velocity = add(gradient, velocity, alpha=momentum) if momentum else gradient
        direction = add(gradient, velocity, alpha=momentum) if attributes["nesterov"] else velocity
        return add(parameter, direction, alpha=-attributes["learning_rate"]), velocity


def _copied(x: Tensor) -> Tensor:
    return x.clone(memory_format=torch.contiguous_format)
