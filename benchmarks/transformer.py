"""A step of training one transformer block, in burn and in torch, each as a user would write it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

import burn
from burn.nn import functional as F

__all__ = ["burn_block", "torch_block"]

Step = Callable[[], object]


def burn_block(x: np.ndarray, target: np.ndarray, heads: int) -> Step:
    """Adam on a block with normalization before attention and before the perceptron."""
    device = burn.Device("cpu")
    tracked = device.autodiff()
    batch, length, width = x.shape
    inputs, wanted = burn.asarray(x, device=device), burn.asarray(target, device=device)
    generator = np.random.default_rng(0)

    def weight(*shape: int) -> burn.Tensor:
        values = generator.normal(scale=shape[0] ** -0.5, size=shape).astype(np.float32)
        return burn.asarray(values, device=tracked).require_grad()

    def fill(value: float, count: int) -> burn.Tensor:
        return burn.full(count, value, dtype="float32", device=tracked).require_grad()

    parameters = {
        "gamma1": fill(1.0, width),
        "beta1": fill(0.0, width),
        "in": weight(width, 3 * width),
        "in_bias": fill(0.0, 3 * width),
        "out": weight(width, width),
        "out_bias": fill(0.0, width),
        "gamma2": fill(1.0, width),
        "beta2": fill(0.0, width),
        "up": weight(width, 4 * width),
        "up_bias": fill(0.0, 4 * width),
        "down": weight(4 * width, width),
        "down_bias": fill(0.0, width),
    }
    moments = {
        name: (burn.zeros_like(value.inner()), burn.zeros_like(value.inner()))
        for name, value in parameters.items()
    }
    count = 0

    def step() -> None:
        nonlocal count
        count += 1
        p = parameters
        normal = F.layer_norm(inputs, p["gamma1"], p["beta1"])
        joined = F.linear(normal, p["in"], p["in_bias"])
        split = joined.reshape((batch, length, 3, heads, width // heads))
        query, key, value = burn.unstack(split.permute_dims((2, 0, 3, 1, 4)))
        mixed = F.attention(query, key, value).permute_dims((0, 2, 1, 3))
        mixed = F.linear(mixed.reshape((batch, length, width)), p["out"], p["out_bias"])
        hidden = inputs + mixed
        normal = F.layer_norm(hidden, p["gamma2"], p["beta2"])
        wide = F.gelu(F.linear(normal, p["up"], p["up_bias"]))
        output = hidden + F.linear(wide, p["down"], p["down_bias"])
        gradients = F.mse_loss(output, wanted).backward()
        with burn.no_grad():
            for name, parameter in p.items():
                moved, *moments[name] = burn.optim.adam_step(
                    parameter, parameter.grad(gradients), *moments[name], step=count
                )
                p[name] = moved.require_grad()

    return step


class _Block(torch.nn.Module):
    """The same in torch."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.joined = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        split = self.joined(self.norm1(x)).reshape(batch, length, 3, self.heads, -1)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind()
        mixed = torch.nn.functional.scaled_dot_product_attention(query, key, value)
        hidden = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return hidden + self.down(torch.nn.functional.gelu(self.up(self.norm2(hidden))))


def torch_block(x: np.ndarray, target: np.ndarray, heads: int) -> Step:
    """The same in torch."""
    torch.manual_seed(0)
    inputs, wanted = torch.tensor(x), torch.tensor(target)
    block = _Block(x.shape[-1], heads)
    optimizer = torch.optim.Adam(block.parameters())

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(block(inputs), wanted).backward()
        optimizer.step()

    return step
