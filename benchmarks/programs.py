"""A training step as a program: what it costs to trace it, and to run what was traced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import burn
from burn.nn import functional as F
from harness import Case

__all__ = ["programs"]

Parameters = list[burn.Tensor]
State = burn.optim.State


def programs() -> Iterator[Case]:
    """A step of Adam on a network of 4-16-2, batches of 8."""
    parameters, state, x, y = _example()
    program = burn.ir.trace(step, parameters, state, x, y, burn.ir.RuntimeNumber(1))
    against = "the eager step"
    yield Case(
        "trace of a tiny MLP's Adam step",
        lambda: burn.ir.trace(step, parameters, state, x, y, burn.ir.RuntimeNumber(1)),
        trainer(step),
        against,
        3.0,
    )
    yield Case("tiny MLP, Adam step as a program", trainer(program), trainer(step), against, 0.6)


OPTIMIZER = burn.optim.Adam()


def _example() -> tuple[Parameters, State, burn.Tensor, burn.Tensor]:
    """Parameters, what the optimizer keeps of them, inputs and targets."""
    device = burn.Device("cpu")
    device.seed(0)
    parameters = [
        burn.random.uniform((4, 16), -0.5, 0.5, device=device),
        burn.zeros(16, device=device),
        burn.random.uniform((16, 2), -0.25, 0.25, device=device),
        burn.zeros(2, device=device),
    ]
    x = burn.random.normal((8, 4), device=device)
    return parameters, OPTIMIZER.init(parameters), x, burn.random.integers(8, 0, 2, device=device)


def step(
    parameters: Parameters, state: State, x: burn.Tensor, y: burn.Tensor, count: int
) -> tuple[Parameters, State, burn.Tensor]:
    """Parameters and state after a step, and the loss before it."""
    tracked = x.device.autodiff()
    leaves = [burn.Tensor.from_inner(parameter, tracked).require_grad() for parameter in parameters]
    hidden = F.relu(F.linear(x, leaves[0], leaves[1]))
    loss = F.cross_entropy(F.linear(hidden, leaves[2], leaves[3]), y)
    gradients = loss.backward()
    slopes = [leaf.grad(gradients) for leaf in leaves]
    parameters, state = OPTIMIZER.update(parameters, slopes, state, step=count)
    return parameters, state, loss.detach()


def trainer(step: Callable[..., Any]) -> Callable[[], object]:
    """What makes the next step, each time that it is called."""
    parameters, state, x, y = _example()
    count = 0

    def next_step() -> None:
        nonlocal parameters, state, count
        count += 1
        parameters, state, _ = step(parameters, state, x, y, count)

    return next_step
