"""A training step as a program: what it costs to trace it, and to run what was traced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import burn
from burn.nn import functional as F
from harness import Case

__all__ = ["programs"]

Parameters = list[burn.Tensor]
State = tuple[Parameters, Parameters, Parameters]


def programs() -> Iterator[Case]:
    """A step of Adam on a network of 4-16-2, batches of 8."""
    state, x, y = _example()
    program = burn.ir.trace(step, state, x, y, burn.ir.RuntimeNumber(1))
    against = "the eager step"
    yield Case(
        "trace of a tiny MLP's Adam step",
        lambda: burn.ir.trace(step, state, x, y, burn.ir.RuntimeNumber(1)),
        trainer(step),
        against,
        3.0,
    )
    yield Case("tiny MLP, Adam step as a program", trainer(program), trainer(step), against, 0.6)


def _example() -> tuple[State, burn.Tensor, burn.Tensor]:
    """Parameters, both moments, inputs and targets."""
    generator = np.random.default_rng(0)
    x = burn.asarray(generator.normal(size=(8, 4)).astype(np.float32), device="cpu")
    y = burn.asarray(generator.integers(0, 2, 8), device="cpu")
    burn.random.seed(0, device="cpu")
    parameters = [
        burn.random.uniform((4, 16), -0.5, 0.5, device="cpu"),
        burn.zeros(16, device="cpu"),
        burn.random.uniform((16, 2), -0.25, 0.25, device="cpu"),
        burn.zeros(2, device="cpu"),
    ]
    moments = [burn.zeros_like(one) for one in parameters]
    return (parameters, moments, [*moments]), x, y


def step(state: State, x: burn.Tensor, y: burn.Tensor, count: int) -> tuple[State, burn.Tensor]:
    """The state after a step, and the loss before it."""
    tracked = x.device.autodiff()
    leaves = [burn.Tensor.from_inner(one, tracked).require_grad() for one in state[0]]
    first, first_bias, last, last_bias = leaves
    loss = F.cross_entropy(F.relu(x @ first + first_bias) @ last + last_bias, y)
    gradients = loss.backward()
    moved = [
        burn.optim.adam_step(parameter, leaf.grad(gradients), *moments, step=count)
        for leaf, parameter, *moments in zip(leaves, *state, strict=True)
    ]
    parameters, first_moments, second_moments = map(list, zip(*moved, strict=True))
    return (parameters, first_moments, second_moments), loss.detach()


def trainer(step: Callable[..., Any]) -> Callable[[], object]:
    """What makes the next step, each time that it is called."""
    state, x, y = _example()
    count = 0

    def next_step() -> None:
        nonlocal state, count
        count += 1
        state, _ = step(state, x, y, count)

    return next_step
