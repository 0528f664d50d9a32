"""Optimizers: PyTorch's numbers, the same tensor objects, and states that can be saved."""

import copy
import math
import pickle

import numpy as np
import pytest
import torch

import burn
from burn import nn, optim

STEPS = 50

CPU = burn.Device("cpu")

SHAPES = {"first.weight": (6, 4), "first.bias": (6,), "second.weight": (3, 6), "second.bias": (3,)}

WITHOUT_BIAS = {"groups": {"*.bias": {"weight_decay": 0.0, "learning_rate": 0.02}}}

MATRICES = {name: shape for name, shape in SHAPES.items() if len(shape) == 2}


def problem(shapes=SHAPES):
    generator = np.random.default_rng(3)
    values = {name: generator.normal(size=shape) for name, shape in shapes.items()}
    inputs = generator.normal(size=(STEPS, 8, 4))
    return values, inputs


def loss_of(parameters, x, library):
    """Of a network without or with biases, in either library."""
    zero = {"first.bias": 0.0, "second.bias": 0.0}
    parameters = zero | parameters
    hidden = library.tanh(x @ parameters["first.weight"].T + parameters["first.bias"])
    y = hidden @ parameters["second.weight"].T + parameters["second.bias"]
    return ((y - x[:, :3] * x[:, 1:]) ** 2).mean()


def leaves_on(device, values):
    return {
        name: burn.asarray(value, device=device.autodiff()).require_grad()
        for name, value in values.items()
    }


def train(make, device=CPU, shapes=SHAPES, steps=STEPS):
    values, inputs = problem(shapes)
    parameters = leaves_on(device, values)
    optimizer = make(parameters)
    for x in inputs[:steps]:
        optimizer.step(loss_of(parameters, burn.asarray(x, device=device), burn).backward())
    return {name: x.inner().numpy() for name, x in parameters.items()}


def train_torch(make, shapes=SHAPES, steps=STEPS):
    values, inputs = problem(shapes)
    parameters = {name: torch.tensor(value, requires_grad=True) for name, value in values.items()}
    optimizer = make(parameters)
    for x in inputs[:steps]:
        optimizer.zero_grad()
        loss_of(parameters, torch.tensor(x), torch).backward()
        optimizer.step()
    return {name: x.detach().numpy() for name, x in parameters.items()}


def assert_same(mine, theirs, tolerance=1e-9):
    for name, value in theirs.items():
        np.testing.assert_allclose(mine[name], value, rtol=0, atol=tolerance, err_msg=name)


def theirs(kind, **options):
    return lambda parameters: kind(list(parameters.values()), **options)


def theirs_in_groups(kind, **options):
    """As `WITHOUT_BIAS`."""

    def make(parameters):
        weights = [x for name, x in parameters.items() if "weight" in name]
        biases = [x for name, x in parameters.items() if "bias" in name]
        return kind(
            [{"params": weights}, {"params": biases, "weight_decay": 0.0, "lr": 0.02}], **options
        )

    return make


PAIRS = {
    "sgd": (lambda p: optim.SGD(p, 0.05), theirs(torch.optim.SGD, lr=0.05)),
    "momentum": (
        lambda p: optim.SGD(p, 0.05, momentum=0.9, dampening=0.3, weight_decay=0.1),
        theirs(torch.optim.SGD, lr=0.05, momentum=0.9, dampening=0.3, weight_decay=0.1),
    ),
    "nesterov": (
        lambda p: optim.SGD(p, 0.05, momentum=0.9, weight_decay=0.1, nesterov=True, **WITHOUT_BIAS),
        theirs_in_groups(torch.optim.SGD, lr=0.05, momentum=0.9, weight_decay=0.1, nesterov=True),
    ),
    "adam": (lambda p: optim.Adam(p, 0.01), theirs(torch.optim.Adam, lr=0.01)),
    "adam, decay": (
        lambda p: optim.Adam(
            p, 0.01, beta1=0.8, beta2=0.95, epsilon=1e-4, weight_decay=0.1, **WITHOUT_BIAS
        ),
        theirs_in_groups(
            torch.optim.Adam, lr=0.01, betas=(0.8, 0.95), eps=1e-4, weight_decay=0.1
        ),
    ),
    "adamw": (lambda p: optim.AdamW(p, 0.01), theirs(torch.optim.AdamW, lr=0.01)),
    "adamw, groups": (
        lambda p: optim.AdamW(p, 0.01, weight_decay=0.3, **WITHOUT_BIAS),
        theirs_in_groups(torch.optim.AdamW, lr=0.01, weight_decay=0.3),
    ),
    "amsgrad": (
        lambda p: optim.Adam(p, 0.05, beta2=0.9, weight_decay=0.1, amsgrad=True),
        theirs(torch.optim.Adam, lr=0.05, betas=(0.9, 0.9), weight_decay=0.1, amsgrad=True),
    ),
    "amsgrad, decoupled": (
        lambda p: optim.AdamW(p, 0.05, beta2=0.9, weight_decay=0.1, amsgrad=True),
        theirs(torch.optim.AdamW, lr=0.05, betas=(0.9, 0.9), weight_decay=0.1, amsgrad=True),
    ),
    "adagrad": (lambda p: optim.Adagrad(p), theirs(torch.optim.Adagrad)),
    "adagrad, decay": (
        lambda p: optim.Adagrad(
            p, 0.1, learning_rate_decay=0.1, weight_decay=0.1, initial_total=0.5, **WITHOUT_BIAS
        ),
        theirs_in_groups(
            torch.optim.Adagrad,
            lr=0.1,
            lr_decay=0.1,
            weight_decay=0.1,
            initial_accumulator_value=0.5,
        ),
    ),
    "rmsprop": (lambda p: optim.RMSprop(p), theirs(torch.optim.RMSprop)),
    "rmsprop, momentum": (
        lambda p: optim.RMSprop(p, 0.005, momentum=0.9, weight_decay=0.1, **WITHOUT_BIAS),
        theirs_in_groups(torch.optim.RMSprop, lr=0.005, momentum=0.9, weight_decay=0.1),
    ),
    "rmsprop, centered": (
        lambda p: optim.RMSprop(p, 0.005, alpha=0.9, epsilon=1e-3, centered=True),
        theirs(torch.optim.RMSprop, lr=0.005, alpha=0.9, eps=1e-3, centered=True),
    ),
    "rmsprop, both": (
        lambda p: optim.RMSprop(p, 0.005, momentum=0.5, centered=True),
        theirs(torch.optim.RMSprop, lr=0.005, momentum=0.5, centered=True),
    ),
}

EVERYWHERE = ("momentum", "adam, decay", "rmsprop, both")
"""Those that the gate tries on every device."""


def cases():
    for name in PAIRS:
        for device in burn.Device.enumerate():
            is_short = device == CPU or name in EVERYWHERE
            yield pytest.param(
                name,
                device,
                id=f"{name}-{device}",
                marks=() if is_short else pytest.mark.exhaustive,
            )


@pytest.mark.parametrize(("name", "device"), list(cases()))
def test_50_steps_in_float64_are_those_of_torch(name, device):
    if not device.supports_dtype(burn.float64):
        pytest.skip(f"{device} has no float64")
    mine, other = PAIRS[name]
    assert_same(train(mine, device), train_torch(other))
    assert not np.array_equal(train_torch(other)["first.bias"], problem()[0]["first.bias"])


class NumpyAdan:
    """Algorithm 1 of arXiv:2208.06677, with its ``1 - beta``, and the restart condition left out."""

    def __init__(self, parameters, rate, betas, epsilon, decay):
        self.parameters = parameters
        self.rate, self.betas, self.epsilon, self.decay = rate, betas, epsilon, decay
        self.states = {name: [np.zeros_like(x) for _ in range(3)] for name, x in parameters.items()}
        self.before, self.count = None, 0

    def step(self, gradients):
        self.count += 1
        b1, b2, b3 = [1.0 - beta for beta in self.betas]
        for name, g in gradients.items():
            change = np.zeros_like(g) if self.before is None else g - self.before[name]
            m, v, n = self.states[name]
            m = (1 - b1) * m + b1 * g
            v = (1 - b2) * v + b2 * change
            n = (1 - b3) * n + b3 * (g + (1 - b2) * change) ** 2
            self.states[name] = m, v, n
            m, v, n = [
                one / (1 - (1 - b) ** self.count) for one, b in ((m, b1), (v, b2), (n, b3))
            ]
            eta = self.rate / (np.sqrt(n) + self.epsilon)
            moved = self.parameters[name] - eta * (m + (1 - b2) * v)
            self.parameters[name] = moved / (1 + self.rate * self.decay)
        self.before = gradients


class NumpyLion:
    """Algorithm 2 of arXiv:2302.06675."""

    def __init__(self, parameters, rate, betas, decay):
        self.parameters = parameters
        self.rate, self.betas, self.decay = rate, betas, decay
        self.moments = {name: np.zeros_like(x) for name, x in parameters.items()}

    def step(self, gradients):
        b1, b2 = self.betas
        for name, g in gradients.items():
            m, x = self.moments[name], self.parameters[name]
            c = b1 * m + (1 - b1) * g
            self.parameters[name] = x - self.rate * (np.sign(c) + self.decay * x)
            self.moments[name] = b2 * m + (1 - b2) * g


PAPERS = {
    "adan": (
        lambda p: optim.Adan(p, 0.01, weight_decay=0.1, epsilon=1e-6),
        lambda p: NumpyAdan(p, 0.01, (0.98, 0.92, 0.99), 1e-6, 0.1),
    ),
    "adan, other betas": (
        lambda p: optim.Adan(p, 0.02, beta1=0.8, beta2=0.7, beta3=0.9),
        lambda p: NumpyAdan(p, 0.02, (0.8, 0.7, 0.9), 1e-8, 0.0),
    ),
    "lion": (
        lambda p: optim.Lion(p, 0.003, weight_decay=0.1),
        lambda p: NumpyLion(p, 0.003, (0.9, 0.99), 0.1),
    ),
}


@pytest.mark.parametrize("name", PAPERS)
def test_50_steps_in_float64_are_those_of_the_paper(name):
    mine, other = PAPERS[name]
    values, inputs = problem()
    expected = dict(values)
    optimizer = other(expected)
    for x in inputs:
        tensors = {key: torch.tensor(one, requires_grad=True) for key, one in expected.items()}
        loss_of(tensors, torch.tensor(x), torch).backward()
        optimizer.step({key: one.grad.numpy() for key, one in tensors.items()})
    assert_same(train(mine), expected)


MUON = {
    "usual": ({}, {}),
    "others": (
        {
            "momentum": 0.7, "nesterov": False, "weight_decay": 0.2, "iterations": 3,
            "coefficients": (2.0, -1.5, 0.5), "adjustment": "match_rms_adamw",
        },
        {
            "momentum": 0.7, "nesterov": False, "weight_decay": 0.2, "ns_steps": 3,
            "ns_coefficients": (2.0, -1.5, 0.5), "adjust_lr_fn": "match_rms_adamw",
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MUON)
def test_muon_in_float64_is_that_of_torch(name, monkeypatch):
    # The dtype is none of torch's arguments. What bfloat16() returns is written to.
    monkeypatch.setattr(torch.Tensor, "bfloat16", lambda x: x.clone())
    mine, other = MUON[name]
    assert_same(
        train(lambda p: optim.Muon(p, 0.02, dtype="float64", **mine), shapes=MATRICES),
        train_torch(theirs(torch.optim.Muon, lr=0.02, **other), shapes=MATRICES),
    )


def test_a_step_of_muon_in_bfloat16_is_near_that_of_torch():
    mine = train(lambda p: optim.Muon(p, 0.02), shapes=MATRICES, steps=1)
    other = train_torch(theirs(torch.optim.Muon, lr=0.02), shapes=MATRICES, steps=1)
    assert_same(mine, other, 0.02 * 0.1)  # an eighth of the largest change
    assert np.abs(mine["first.weight"] - problem()[0]["first.weight"]).max() > 0.005


LBFGS = {
    "fixed": ({"iterations": 6}, {"max_iter": 6}),
    "short history": (
        {"iterations": 5, "history": 3, "learning_rate": 0.5},
        {"max_iter": 5, "history_size": 3, "lr": 0.5},
    ),
    "strong wolfe": ({"line_search": "strong_wolfe"}, {"line_search_fn": "strong_wolfe"}),
    "few evaluations": (
        {"line_search": "strong_wolfe", "evaluations": 7, "learning_rate": 40.0},
        {"line_search_fn": "strong_wolfe", "max_eval": 7, "lr": 40.0},
    ),
}


def rosenbrock(x, y):
    return ((1 - x) ** 2).sum() + 10 * ((y - x**2) ** 2).sum()


@pytest.mark.parametrize("name", LBFGS)
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_lbfgs_is_that_of_torch(name, steps):
    mine, other = LBFGS[name]
    starts = [np.array([[-1.2, 0.8], [0.3, -0.4]]), np.array([[1.0, -1.0], [0.5, 2.0]])]
    parameters = [burn.asarray(x, device=CPU.autodiff()).require_grad() for x in starts]
    optimizer = optim.LBFGS(parameters, **mine)
    tensors = [torch.tensor(x, requires_grad=True) for x in starts]
    expected = torch.optim.LBFGS(tensors, **other)

    def closure():
        expected.zero_grad()
        loss = rosenbrock(*tensors)
        loss.backward()
        return loss

    for _ in range(steps):
        loss = optimizer.step(lambda: rosenbrock(*parameters))
        np.testing.assert_allclose(loss.item(), expected.step(closure).item(), rtol=1e-8, atol=1e-9)
    for x, y in zip(parameters, tensors, strict=True):
        np.testing.assert_allclose(x.inner().numpy(), y.detach().numpy(), rtol=0, atol=1e-8)
        assert x.is_require_grad
