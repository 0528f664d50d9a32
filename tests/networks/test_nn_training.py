"""Models train as the same models of torch do: the loss of each step, and all values at the end."""

import functools
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import burn
from burn.nn import functional as F

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import burn_models
import torch_models

FEW_STEPS, STEPS = 6, 20
"""Steps in the gate, and with ``--all``."""

CLASSES = 5
VOCABULARY = 11

DEVICES = [
    device
    for device in burn.Device.enumerate()
    if device.backend_name not in ("pure", "strict") and device.supports_dtype(burn.float64)
]


def images(generator, size):
    return generator.normal(size=(4, 3, size, size)), generator.integers(0, CLASSES, 4)


def tokens(generator):
    drawn = generator.integers(0, VOCABULARY, (3, 8))
    return drawn[:, :-1].copy(), drawn[:, 1:].copy()


def adam(burn_model, torch_model):
    return (
        burn.optim.Adam(burn_model, learning_rate=0.002),
        torch.optim.Adam(torch_model.parameters(), lr=0.002),
    )


def sgd(burn_model, torch_model):
    return (
        burn.optim.SGD(burn_model, learning_rate=0.05, momentum=0.9),
        torch.optim.SGD(torch_model.parameters(), lr=0.05, momentum=0.9),
    )


MODELS = {
    # In smaller images two stages normalize four numbers, which multiplies errors of rounding:
    # losses of torch then differ by 1e-9 if the images are scaled by 1 + 2**-52.
    "ResNet-18": (lambda module: module.ResNet18(CLASSES, 8), lambda g: images(g, 32), adam),
    "GPT-2": (lambda module: module.GPT(VOCABULARY, 7, 12, 2, 2), tokens, adam),
    "LSTM": (lambda module: module.LanguageModel(VOCABULARY, 12), tokens, sgd),
    "ViT": (lambda module: module.ViT(8, 4, 12, 2, 2, CLASSES), lambda g: images(g, 8), adam),
}


def of_torch(name):
    """A model of torch in float64, and a batch."""
    make, draw, _ = MODELS[name]
    torch.manual_seed(0)
    return make(torch_models).double(), draw(np.random.default_rng(0))


def values(state):
    """The arrays of a state dict, without the numbers of batches, which only torch counts."""
    return {
        path: x.numpy() for path, x in state.items() if not path.endswith("num_batches_tracked")
    }


@functools.cache
def trained_by_torch(name, steps):
    """The losses of all steps, and the values at the end."""
    model, (x, y) = of_torch(name)
    _, optimizer = MODELS[name][-1](None, model)
    losses = []
    for _ in range(steps):
        scores = model(torch.tensor(x)).reshape(y.size, -1)
        loss = torch.nn.functional.cross_entropy(scores, torch.tensor(y).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, values(model.state_dict())


def cases():
    """Every model on every device; the gate has each on the CPU, and the fastest on the others."""
    for name in MODELS:
        for device in DEVICES:
            in_gate = device is burn.Device("cpu") or name == "LSTM"
            marks = () if in_gate else pytest.mark.exhaustive
            yield pytest.param(name, device, id=f"{name}-{device}", marks=marks)


@pytest.mark.parametrize(("name", "device"), list(cases()))
def test_losses_and_values_of_steps_in_float64_are_those_of_torch(name, device, everything):
    steps = STEPS if everything else FEW_STEPS
    make, _, optimizers = MODELS[name]
    theirs, (x, y) = of_torch(name)
    model = make(burn_models).to(device.autodiff()).astype("float64")
    model.load_state_dict(theirs.state_dict())
    optimizer, _ = optimizers(model, theirs)
    x, y = burn.asarray(x, device=device), burn.asarray(y, device=device)
    losses = []
    for _ in range(steps):
        loss = F.cross_entropy(model(x), y)
        optimizer.step(loss.backward())
        losses.append(loss.item())
    expected_losses, expected = trained_by_torch(name, steps)
    assert losses[-1] < losses[0] * (0.9 if everything else 1.0)
    np.testing.assert_allclose(losses, expected_losses, rtol=0, atol=1e-9)
    found = values(model.state_dict())
    assert found.keys() == expected.keys()
    for path, array in found.items():
        np.testing.assert_allclose(array, expected[path], rtol=0, atol=1e-9, err_msg=path)
