"""A step of training 24 layers of linear, gelu and layer_norm, with and without checkpointing.

The three outputs of each layer together are 64 MiB. The step makes new leaves of the plain values,
as docs/users/autodiff.md does.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np

import burn
from burn.nn import functional as F
from harness import Case, Result

__all__ = ["checkpointing_memory", "checkpointing_time"]

LAYERS, BATCH, WIDTH = 24, 910, 256
STEPS = 10
NAME = f"{LAYERS} layers of linear, gelu, layer_norm"

Step = Callable[[], object]


def checkpointing_time() -> Case:
    """Seconds of a step, balanced checkpointing against none."""
    return Case(f"{NAME}: a step", _training(balanced=True), _training(), "all kept", 1.35)


def checkpointing_memory() -> Result:
    """The most that NumPy and Python hold during ten steps."""
    balanced, plain = _peak(_training(balanced=True)), _peak(_training())
    return Result(f"{NAME}: peak of {STEPS} steps", "all kept", balanced, plain, 0.6, "B")


def _training(*, balanced: bool = False) -> Step:
    device = burn.Device("cpu").autodiff()
    if balanced:
        device = device.gradient_checkpointing()
    generator = np.random.default_rng(0)

    def draw(*shape: int) -> burn.Tensor:
        values = generator.normal(scale=shape[0] ** -0.5, size=shape).astype(np.float32)
        return burn.asarray(values, device=device)

    x, target = draw(BATCH, WIDTH), draw(BATCH, WIDTH)
    ones, zeros = (burn.full(WIDTH, value, device=device) for value in (1.0, 0.0))
    parameters = [
        parameter.require_grad()
        for _ in range(LAYERS)
        for parameter in (draw(WIDTH, WIDTH), zeros, ones, zeros)
    ]

    def loss() -> burn.Tensor:
        h = x
        for weight, bias, gamma, beta in zip(*[iter(parameters)] * 4, strict=True):
            h = F.layer_norm(F.gelu(F.linear(h, weight, bias)), gamma, beta)
        return F.mse_loss(h, target)

    def step() -> None:
        gradients = loss().backward()
        for index, parameter in enumerate(parameters):
            value = parameter.inner() - 0.01 * parameter.grad_remove(gradients)
            parameters[index] = burn.Tensor.from_inner(value, device).require_grad()

    return step


def _peak(step: Step) -> float:
    step()  # what is made once, such as buffers of the backend, is not a step's
    tracemalloc.start()
    for _ in range(STEPS):
        step()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return float(peak)
