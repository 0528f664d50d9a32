"""A step of training a small convolutional network, in burn and in torch, as a user would."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import torch

import burn
from burn.nn import functional as F

__all__ = ["burn_cnn", "torch_cnn"]

Step = Callable[[], object]

CHANNELS = (1, 32, 64)
"""Of the images, and of what the two convolutions give."""

CLASSES = 10


def burn_cnn(images: np.ndarray, labels: np.ndarray) -> Step:
    """Adam on two of convolution, batch normalization and pooling, and a linear layer."""
    device = burn.Device("cpu")
    tracked = device.autodiff()
    inputs, targets = burn.asarray(images, device=device), burn.asarray(labels, device=device)
    generator = np.random.default_rng(0)

    def weight(fan_in: int, *shape: int) -> burn.Tensor:
        bound = fan_in**-0.5
        values = generator.uniform(-bound, bound, shape).astype(np.float32)
        return burn.asarray(values, device=tracked).require_grad()

    def fill(value: float, count: int) -> burn.Tensor:
        return burn.full(count, value, dtype="float32", device=tracked).require_grad()

    parameters: dict[str, burn.Tensor] = {}
    running: list[list[burn.Tensor]] = []
    for layer, (before, after) in enumerate(itertools.pairwise(CHANNELS)):
        parameters[f"kernel{layer}"] = weight(9 * before, after, before, 3, 3)
        parameters[f"bias{layer}"] = fill(0.0, after)
        parameters[f"gamma{layer}"] = fill(1.0, after)
        parameters[f"beta{layer}"] = fill(0.0, after)
        running.append([burn.zeros(after, device=device), burn.ones(after, device=device)])
    pixels = images.shape[-1] // 4
    features = CHANNELS[-1] * pixels * pixels
    parameters["weight"] = weight(features, features, CLASSES)
    parameters["bias"] = fill(0.0, CLASSES)
    moments = {
        name: (burn.zeros_like(value.inner()), burn.zeros_like(value.inner()))
        for name, value in parameters.items()
    }
    count = 0

    def step() -> None:
        nonlocal count
        count += 1
        p = parameters
        hidden = inputs
        for layer, statistics in enumerate(running):
            hidden = F.conv2d(hidden, p[f"kernel{layer}"], p[f"bias{layer}"], padding=1)
            hidden, *running[layer] = F.batch_norm_training(
                hidden, *statistics, p[f"gamma{layer}"], p[f"beta{layer}"]
            )
            hidden = F.max_pool2d(F.relu(hidden), 2)
        scores = F.linear(hidden.reshape((len(images), -1)), p["weight"], p["bias"])
        gradients = F.cross_entropy(scores, targets).backward()
        with burn.no_grad():
            for name, parameter in p.items():
                moved, *moments[name] = burn.optim.adam_step(
                    parameter, parameter.grad(gradients), *moments[name], step=count
                )
                p[name] = moved.require_grad()

    return step


def torch_cnn(images: np.ndarray, labels: np.ndarray) -> Step:
    """The same in torch."""
    torch.manual_seed(0)
    inputs, targets = torch.tensor(images), torch.tensor(labels)
    layers: list[torch.nn.Module] = []
    for before, after in itertools.pairwise(CHANNELS):
        layers += [
            torch.nn.Conv2d(before, after, 3, padding=1),
            torch.nn.BatchNorm2d(after),
            torch.nn.ReLU(),
            torch.nn.MaxPool2d(2),
        ]
    pixels = images.shape[-1] // 4
    layers += [torch.nn.Flatten(), torch.nn.Linear(CHANNELS[-1] * pixels * pixels, CLASSES)]
    network = torch.nn.Sequential(*layers)
    optimizer = torch.optim.Adam(network.parameters())

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(inputs), targets).backward()
        optimizer.step()

    return step
