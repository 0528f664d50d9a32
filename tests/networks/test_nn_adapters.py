"""Weights in other forms: low-rank matrices beside them, lengths and directions instead of them."""

import copy
import pickle

import numpy as np
import pytest
import torch

import burn
from burn import nn
from burn.quantization import QuantScheme, QuantValue, ScaleDType

CPU = burn.Device("cpu")
TRAINING = CPU.autodiff()
FOUR_BITS = QuantScheme(QuantValue.Q4F).per_block((1, 32), ScaleDType.F16)


class Branches(nn.Module):
    """Linear layers as an attribute, in a list, a dict and a tuple; two of them are one."""

    def __init__(self, device=TRAINING):
        self.first = nn.Linear(64, 32, device=device)
        self.several = [nn.Linear(32, 32, device=device), nn.ReLU()]
        self.named = {"last": nn.Linear(32, 4, device=device)}
        self.pair = (self.first, nn.LayerNorm(64, device=device))

    def forward(self, x):
        y = self.first(x) + self.pair[0](self.pair[1](x))
        for function in self.several:
            y = function(y)
        return self.named["last"](y)


def given(*shape, seed=0):
    values = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    return burn.asarray(values, device=CPU)


def values(tensor):
    return tensor.detach().inner().numpy()


def trained(model, steps=3):
    optimizer = burn.optim.AdamW(model, 0.01)
    for step in range(steps):
        optimizer.step((model(given(8, 64, seed=step)) ** 2).mean().backward())


def test_matrices_beside_linear_layers_learn_and_nothing_else_does():
    model = Branches()
    x, before, state = given(5, 64), values(model(given(5, 64))), model.state_dict()
    assert nn.add_lora(model, 4, alpha=8) is model
    assert model.pair[0] is model.first
    np.testing.assert_array_equal(values(model(x)), before)
    trained(model)
    learned = [path for path, parameter in model.named_parameters() if parameter.is_require_grad]
    layers = ("first", "several.0", "named.last")
    assert learned == [f"{layer}.{name}" for layer in layers for name in ("down", "up")]
    after = model.state_dict()
    for path, value in state.items():
        here = path.replace(".weight", ".base.weight").replace(".bias", ".base.bias")
        here = path if path.startswith("pair.1") else here
        assert after[here].tolist() == value.tolist()
    assert not np.allclose(values(model(x)), before)


def test_what_was_learned_is_added_to_the_weights():
    model = nn.add_lora(Branches(), 4)
    trained(model)
    x = given(5, 64)
    expected = values(model(x))
    change = values(model.first.up) @ values(model.first.down)
    weight = values(model.first.base.weight) + change
    assert nn.merge_lora(model) is model
    assert all(type(module) is not nn.LoRALinear for module in model.modules())
    assert model.pair[0] is model.first
    np.testing.assert_allclose(values(model.first.weight), weight, atol=1e-6)
    np.testing.assert_allclose(values(model(x)), expected, atol=1e-4)


def test_quantized_weights_stay_as_they_are_beside_what_learns():
    model = nn.Sequential(nn.Linear(64, 32, device=TRAINING), nn.ReLU())
    model.quantize(FOUR_BITS)
    codes = values(model[0].weight.dequantize())
    nn.add_lora(model, 2)
    trained(model)
    x = given(5, 64)
    expected = values(model(x))
    np.testing.assert_array_equal(values(model[0].base.weight.dequantize()), codes)
    nn.merge_lora(model)
    assert model[0].weight.dtype is burn.float32
    np.testing.assert_allclose(values(model(x)), expected, atol=1e-5)


def test_layers_are_selected_as_for_quantization():
    model = nn.add_lora(Branches(), 2, only=["several.*", lambda path, _: path == "first"])
    assert isinstance(model.first, nn.LoRALinear)
    assert isinstance(model.several[0], nn.LoRALinear)
    assert isinstance(model.named["last"], nn.Linear)
    assert not model.named["last"].weight.is_require_grad
    alone = nn.add_lora(nn.Linear(4, 2), 1)
    assert isinstance(alone, nn.LoRALinear)
    assert isinstance(nn.merge_lora(alone), nn.Linear)


def test_dropout_is_before_the_matrices_alone():
    layer = nn.LoRALinear(nn.Linear(64, 8, device=TRAINING), 2, dropout=1.0)
    layer.up = burn.ones_like(layer.up)
    x = given(3, 64)
    np.testing.assert_array_equal(values(layer(x)), values(layer.base(x)))
    assert not np.allclose(values(layer.eval()(x)), values(layer.base(x)))


def test_models_with_matrices_beside_layers_are_copied_and_saved():
    model = nn.add_lora(Branches(), 2)
    trained(model, 1)
    x = given(2, 64)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(values(other(x)), values(model(x)))
    fresh = nn.add_lora(Branches(), 2)
    fresh.load_state_dict(model.state_dict())
    np.testing.assert_array_equal(values(fresh(x)), values(model(x)))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: nn.LoRALinear(nn.ReLU(), 2), burn.OperandTypeError, "type ReLU"),
        (lambda: nn.LoRALinear(nn.Linear(2, 2), 0), burn.ArgumentError, "rank"),
        (lambda: nn.LoRALinear(nn.Linear(2, 2), 1, alpha=0.0), burn.ArgumentError, "alpha"),
        (lambda: nn.LoRALinear(nn.Linear(2, 2), 1, dropout=2.0), burn.ArgumentError, "dropout"),
        (lambda: nn.add_lora(nn.Embedding(4, 2), 1), burn.ArgumentError, "no Linear"),
        (lambda: nn.add_lora(nn.Linear(4, 2), 1, only="x"), burn.ArgumentError, "'x'"),
        (lambda: nn.WeightNorm(nn.ReLU()), burn.OperandTypeError, "no weight of floats"),
        (lambda: nn.WeightNorm(nn.Linear(2, 2), axis=2), burn.AxisError, "axis 2"),
    ],
)
def test_what_has_no_other_form_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("kind", ["Linear(6, 4)", "Conv1d(6, 4, 3)", "Embedding(7, 4)"])
def test_lengths_and_directions_are_those_of_torch(kind, axis):
    name, arguments = kind.split("(")
    arguments = [int(word) for word in arguments.strip(")").split(",")]
    theirs = getattr(torch.nn, name)(*arguments)
    layer = getattr(nn, name)(*arguments, device=TRAINING)
    layer.load_state_dict(theirs.state_dict())
    theirs = torch.nn.utils.parametrizations.weight_norm(theirs, dim=axis)
    ours = nn.WeightNorm(layer, axis)
    shape = {"Linear": (5, 6), "Conv1d": (2, 6, 8), "Embedding": (5,)}[name]
    x = np.arange(5) if name == "Embedding" else given(*shape).numpy().copy()
    for _ in range(3):
        output, expected = ours(burn.asarray(x, device=CPU)), theirs(torch.tensor(x))
        np.testing.assert_allclose(values(output), expected.detach().numpy(), atol=1e-5)
        burn.optim.SGD(ours, 0.1).step((output**2).mean().backward())
        optimizer = torch.optim.SGD(theirs.parameters(), 0.1)
        optimizer.zero_grad()
        (expected**2).mean().backward()
        optimizer.step()
    merged = ours.merged()
    assert merged is layer
    assert "weight" in dict(merged.named_parameters())
    output = merged(burn.asarray(x, device=CPU))
    np.testing.assert_allclose(values(output), theirs(torch.tensor(x)).detach().numpy(), atol=1e-5)
    with pytest.raises(burn.ArgumentError, match="merged before"):
        ours.merged()


def test_a_direction_of_zeros_is_a_weight_of_zeros():
    layer = nn.Linear(3, 2, bias=False, device=TRAINING)
    layer.weight = burn.zeros_like(layer.weight)
    layer = nn.WeightNorm(layer)
    output = layer(given(4, 3))
    gradients = output.sum().backward()
    assert not values(output).any()
    assert np.isfinite(layer.direction.grad(gradients).numpy()).all()


def test_models_of_lengths_and_directions_are_compiled_copied_and_saved():
    model = nn.Sequential(nn.WeightNorm(nn.Linear(64, 32, device=TRAINING)), nn.ReLU())
    trained(model, 2)
    x = given(3, 64)
    np.testing.assert_allclose(values(burn.compile(model)(x)), values(model(x)), atol=1e-6)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(values(other(x)), values(model(x)))
    gradients = burn.grad(lambda model: (model(x) ** 2).mean())(model)
    assert gradients[0].magnitude.shape == (32, 1)
