"""Steps of training as programs: each replay gives what the eager step gives, to the bit."""

import copy
import math

import numpy as np
import pytest

import burn
from burn.ir import Program, RuntimeNumber, trace
from burn.nn import functional as F
from burn.tree import flatten

CPU = burn.Device("cpu")
STEPS = 100
RANDOM = np.random.default_rng(0)


def values(*shape):
    array = RANDOM.normal(size=shape) / math.sqrt(shape[-1])
    return array.astype(np.float32)


def mlp(p, x):
    x = burn.tanh(F.linear(x, p["first"], p["first_bias"]))
    return F.linear(x, p["second"], p["second_bias"])


MLP = {
    "first": values(4, 16),
    "first_bias": values(16),
    "second": values(16, 2),
    "second_bias": values(2),
}


def convolutional(p, x):
    x = F.relu(F.conv2d(x, p["conv"], p["conv_bias"], padding=1))
    x = F.max_pool2d(x, 2)
    mean, variance = burn.mean(x, axis=(0, 2, 3)), burn.var(x, axis=(0, 2, 3))
    x = F.batch_norm(x, mean, variance, p["scale"], p["shift"])
    return F.linear(burn.reshape(x, (x.shape[0], -1)), p["linear"])


CONVOLUTIONAL = {
    "conv": values(4, 1, 3, 3),
    "conv_bias": values(4),
    "scale": values(4),
    "shift": values(4),
    "linear": values(64, 2),
}


def transformer(p, x):
    normal = F.layer_norm(x, p["scale"], p["shift"])
    q, k, v = (burn.matmul(normal, p[name]) for name in ("query", "key", "value"))
    q, k, v = (
        burn.permute_dims(burn.reshape(item, (2, 5, 2, 4)), (0, 2, 1, 3)) for item in (q, k, v)
    )
    mask = burn.triu(burn.ones((5, 5), dtype=bool, device=x.device), k=1)
    scores = burn.where(mask, -1e9, q @ k.mT / math.sqrt(4.0))
    mixed = burn.permute_dims(F.softmax(scores, axis=-1) @ v, (0, 2, 1, 3))
    x = x + burn.reshape(mixed, (2, 5, 8)) @ p["out"]
    return x + F.gelu(F.layer_norm(x, p["scale"], p["shift"]) @ p["up"]) @ p["down"]


TRANSFORMER = {
    **{name: values(8, 8) for name in ("query", "key", "value", "out")},
    "up": values(8, 16),
    "down": values(16, 8),
    "scale": values(8),
    "shift": values(8),
}


def with_dropout(p, x):
    x = burn.tanh(F.linear(x, p["first"], p["first_bias"]))
    kept = burn.random.bernoulli(x.shape, 0.75, device=x.device.hardware)
    x = burn.where(kept, x / 0.75, 0.0)
    x = x + burn.random.normal(x.shape, device=x.device.hardware) * 0.01
    return F.linear(x, p["second"], p["second_bias"])


MODELS = {
    "MLP": (mlp, MLP, values(8, 4), values(8, 2)),
    "convolutional network": (convolutional, CONVOLUTIONAL, values(3, 1, 8, 8), values(3, 2)),
    "attention block": (transformer, TRANSFORMER, values(2, 5, 8), values(2, 5, 8)),
    "MLP with dropout": (with_dropout, MLP, values(8, 4), values(8, 2)),
}


def stateless(model):
    """A step of Adam that takes and returns all that it changes."""

    def step(parameters, moments, x, y, number, rate):
        def loss(p):
            return F.mse_loss(model(p, x), y)

        value, gradients = burn.value_and_grad(loss)(parameters)
        stepped = {
            name: burn.optim.adam_step(
                parameters[name], gradients[name], *moments[name], step=number, learning_rate=rate
            )
            for name in parameters
        }
        return (
            {name: value[0] for name, value in stepped.items()},
            {name: value[1:] for name, value in stepped.items()},
            value,
        )

    return step


class Trainer:
    """A model and an optimizer with their state, which a step writes to."""

    def __init__(self, model, arrays, device):
        self.model, self.device = model, device
        self.parameters = tensors(arrays, device)
        self.moments = {
            name: (burn.zeros_like(p), burn.zeros_like(p)) for name, p in self.parameters.items()
        }

    def step(self, x, y, number):
        autodiff = self.device.autodiff()
        leaves = {
            name: burn.Tensor.from_inner(p, autodiff).require_grad()
            for name, p in self.parameters.items()
        }
        loss = F.mse_loss(self.model(leaves, x), y)
        gradients = loss.backward()
        for name, p in self.parameters.items():
            kept = (p, *self.moments[name])
            stepped = burn.optim.adam_step(
                p, gradients[leaves[name]], *self.moments[name], step=number, learning_rate=0.01
            )
            for item, new in zip(kept, stepped, strict=True):
                item[...] = new
        return loss.detach()

    @property
    def state(self):
        return bits((self.parameters, self.moments))


def tensors(arrays, device):
    return {name: burn.asarray(array, device=device) for name, array in arrays.items()}


def bits(tree):
    return [x.detach().numpy().tobytes() for x in flatten(tree)[0]]


def arguments(name, device):
    model, arrays, *data = MODELS[name]
    parameters = tensors(arrays, device)
    moments = {
        key: (burn.zeros_like(parameter), burn.zeros_like(parameter))
        for key, parameter in parameters.items()
    }
    return model, parameters, moments, [burn.asarray(array, device=device) for array in data]


def rate_of(number):
    return 0.02 / math.sqrt(number)


@pytest.mark.parametrize("name", MODELS)
def test_replays_of_a_step_are_the_eager_steps(name):
    model, parameters, moments, data = arguments(name, CPU)
    step = stateless(model)
    program = trace(step, parameters, moments, *data, RuntimeNumber(1), RuntimeNumber(0.1))
    states = []
    for run in (step, program):
        CPU.seed(7)
        p, m, losses = parameters, moments, []
        for number in range(1, STEPS + 1):
            p, m, loss = run(p, m, *data, number, rate_of(number))
            losses.append(loss)
        assert losses[-1].item() < losses[0].item()
        states.append(bits((p, m, losses)))
    assert states[0] == states[1]


@pytest.mark.parametrize("name", MODELS)
def test_replays_of_a_step_that_was_saved_are_the_eager_steps(name):
    model, parameters, moments, data = arguments(name, CPU)
    step = stateless(model)
    program = trace(step, parameters, moments, *data, RuntimeNumber(1), RuntimeNumber(0.1))
    saved = Program.from_bytes(program.to_bytes())
    CPU.seed(7)
    p, m = parameters, moments
    for number in range(1, 6):
        p, m, loss = step(p, m, *data, number, rate_of(number))
    CPU.seed(7)
    state = flatten((parameters, moments))[0]
    for number in range(1, 6):
        *state, saved_loss = saved(*state, *data, number, rate_of(number))
    assert bits((state, saved_loss)) == bits((p, m, loss))


@pytest.mark.parametrize("name", MODELS)
def test_replays_of_a_step_that_writes_to_its_state_are_the_eager_steps(name):
    model, arrays, *data = MODELS[name]
    x, y = (burn.asarray(array, device=CPU) for array in data)
    eager, traced = Trainer(model, arrays, CPU), Trainer(model, arrays, CPU)
    program = trace(traced.step, x, y, RuntimeNumber(1))
    assert traced.state == eager.state
    found = []
    for run in (eager.step, program):
        CPU.seed(7)
        found.append([bits(run(x, y, number)) for number in range(1, STEPS + 1)])
    assert found[0] == found[1]
    assert traced.state == eager.state


@pytest.mark.parametrize("device", ["torch/cpu", "opencl"])
@pytest.mark.parametrize("name", MODELS)
def test_a_program_of_another_device_runs_on_each(name, device):
    model, parameters, moments, data = arguments(name, CPU)
    step = stateless(model)
    program = trace(step, parameters, moments, *data, RuntimeNumber(1), RuntimeNumber(0.1))
    model, parameters, moments, data = arguments(name, device)
    results = []
    for run in (step, program):
        burn.Device(device).seed(7)
        p, m = parameters, moments
        for number in range(1, 4):
            p, m, loss = run(p, m, *data, number, rate_of(number))
        results.append(flatten((p, m, loss))[0])
    for tensor, other in zip(*results, strict=True):
        assert tensor.device == other.device
        assert tensor.device == burn.Device(device)
        np.testing.assert_allclose(tensor.numpy(), other.numpy(), rtol=1e-5, atol=1e-6)


def test_a_program_gives_parameters_their_new_values_as_leaves():
    layer = burn.nn.Linear(3, 2, device=burn.Device("cpu").autodiff())
    other = copy.deepcopy(layer)
    x = burn.asarray([[1.0, -2.0, 0.5], [0.0, 3.0, 1.0]], device="cpu")

    def step(model):
        loss = (model(x) ** 2).mean()
        gradients = loss.backward()
        for parameter in model.parameters():
            parameter.assign(parameter.inner() - 0.1 * parameter.grad(gradients))
        return loss.detach()

    weight, seen = layer.weight, []
    layer.parameters()  # makes the leaf that the hook is for
    weight.register_hook(lambda gradient: seen.append(gradient.shape))
    program = burn.ir.trace(lambda: step(layer))
    for _ in range(3):
        assert program().tolist() == step(other).tolist()
        assert layer.weight.tolist() == other.weight.tolist()
    assert layer.weight is weight
    assert weight.is_require_grad
    before = len(seen)
    step(layer)
    assert len(seen) == before + 1


def test_a_leaf_that_the_function_makes_is_one_for_each_call_of_the_program():
    leaf = burn.asarray([1.0, 2.0], device=burn.Device("cpu").autodiff()).require_grad()

    def f(x):
        return (x * 2.0).detach().require_grad(), x, x * 3.0

    program = burn.ir.trace(f, leaf)
    for made, same, computed in (f(leaf), program(leaf)):
        assert (made.is_require_grad, same.is_require_grad) == (True, True)
        assert (computed.is_tracked, computed.is_require_grad) == (True, False)
        assert (made * made).sum().backward()[made].tolist() == [4.0, 8.0]
    first, second = program(leaf)[0], program(leaf)[0]
    assert (first * second).sum().backward()[first].tolist() == second.tolist()
