"""Training steps agree with the same network written in torch."""

import itertools

import numpy as np
import pytest
import torch

import burn
from burn.nn import functional as F

STEPS = 20


def network():
    """Weights, and batches, of a small classifier, in float64."""
    generator = np.random.default_rng(7)
    weights = [
        generator.normal(size=(12, 16)) / 4,
        generator.normal(size=16) / 4,
        generator.normal(size=(16, 5)) / 4,
        generator.normal(size=5) / 4,
    ]
    inputs = generator.normal(size=(STEPS, 32, 12))
    targets = generator.integers(0, 5, size=(STEPS, 32))
    return weights, inputs, targets


def train_burn(device, activation, step):
    weights, inputs, targets = network()
    tracked = device.autodiff()
    parameters = [burn.asarray(w, device=tracked).require_grad() for w in weights]
    states = [None] * len(parameters)
    for number in range(STEPS):
        w1, b1, w2, b2 = parameters
        x = burn.asarray(inputs[number], device=device)
        hidden = activation(x @ w1 + b1)
        target = burn.asarray(targets[number], device=device)
        gradients = F.cross_entropy(hidden @ w2 + b2, target).backward()
        with burn.no_grad():
            for index, parameter in enumerate(parameters):
                moved, states[index] = step(
                    parameter, parameter.grad(gradients), states[index], number + 1
                )
                parameters[index] = moved.require_grad()
    return [parameter.inner().numpy() for parameter in parameters]


def train_torch(activation, make_optimizer):
    weights, inputs, targets = network()
    parameters = [torch.tensor(w, requires_grad=True) for w in weights]
    optimizer = make_optimizer(parameters)
    for number in range(STEPS):
        w1, b1, w2, b2 = parameters
        hidden = activation(torch.tensor(inputs[number]) @ w1 + b1)
        loss = torch.nn.functional.cross_entropy(hidden @ w2 + b2, torch.tensor(targets[number]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [parameter.detach().numpy() for parameter in parameters]


def adam(weight_decay):
    def step(parameter, gradient, state, number):
        first, second = state or (burn.zeros_like(gradient), burn.zeros_like(gradient))
        parameter, first, second = burn.optim.adam_step(
            parameter,
            gradient,
            first,
            second,
            step=number,
            learning_rate=0.01,
            weight_decay=weight_decay,
        )
        return parameter, (first, second)

    return step


def sgd(**options):
    def step(parameter, gradient, velocity, number):
        if velocity is None:
            velocity = burn.zeros_like(gradient)
        return burn.optim.sgd_step(parameter, gradient, velocity, learning_rate=0.05, **options)

    return step


ACTIVATIONS = {
    "relu": (F.relu, torch.relu),
    "gelu": (F.gelu, torch.nn.functional.gelu),
    "sigmoid": (F.sigmoid, torch.sigmoid),
    "tanh": (burn.tanh, torch.tanh),
}

OPTIMIZERS = {
    "adam": (adam(0.0), lambda p: torch.optim.Adam(p, lr=0.01)),
    "adamw": (adam(0.1), lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1)),
    "sgd": (sgd(), lambda p: torch.optim.SGD(p, lr=0.05)),
    "nesterov": (
        sgd(momentum=0.9, nesterov=True, weight_decay=0.01),
        lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
    ),
}


def networks():
    """In the gate each activation and each optimizer is tried once on each device."""
    usual = list(zip(ACTIVATIONS, OPTIMIZERS, strict=True))
    for pair in itertools.product(ACTIVATIONS, OPTIMIZERS):
        yield pytest.param(*pair, marks=() if pair in usual else pytest.mark.exhaustive)


@pytest.mark.parametrize("device", burn.Device.enumerate(), ids=str)
@pytest.mark.parametrize(("activation", "optimizer"), list(networks()))
def test_weights_after_20_steps_in_float64_are_those_of_torch(device, activation, optimizer):
    if not device.supports_dtype(burn.float64):
        pytest.skip(f"{device} has no float64")
    ours, theirs = ACTIVATIONS[activation]
    step, make_optimizer = OPTIMIZERS[optimizer]
    expected = train_torch(theirs, make_optimizer)
    for mine, other in zip(train_burn(device, ours, step), expected, strict=True):
        np.testing.assert_allclose(mine, other, rtol=0, atol=1e-9)


def test_softmax_regression_learns_without_leaving_burn():
    device = burn.Device("cpu")
    burn.random.seed(3, device=device)
    x = burn.random.normal((256, 4), device=device)
    truth = burn.random.normal((4, 3), device=device)
    y = (x @ truth).argmax(axis=1)
    w = burn.zeros((4, 3), device=device.autodiff()).require_grad()
    velocity = burn.zeros((4, 3), device=device)
    for _ in range(200):
        gradients = F.cross_entropy(x @ w, y).backward()
        with burn.no_grad():
            w, velocity = burn.optim.sgd_step(
                w, w.grad(gradients), velocity, learning_rate=0.5, momentum=0.9
            )
            w = w.require_grad()
    accuracy = ((x @ w.inner()).argmax(axis=1) == y).astype("float32").mean()
    assert accuracy.item() > 0.97
