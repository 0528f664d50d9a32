"""Optimizers: PyTorch's numbers, the same tensor objects, and states that can be saved."""

import copy
import math
import pickle

import numpy as np
import pytest
import torch

import burn
from burn import nn, optim
from crossing import on_devices

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
    "adafactor": (lambda p: optim.Adafactor(p), theirs(torch.optim.Adafactor)),
    "adafactor, decay": (
        lambda p: optim.Adafactor(
            p,
            0.1,
            beta2_decay=-0.5,
            epsilon=1e-4,
            least_scale=0.01,
            clip_threshold=1.5,
            weight_decay=0.1,
            **WITHOUT_BIAS,
        ),
        theirs_in_groups(
            torch.optim.Adafactor,
            lr=0.1,
            beta2_decay=-0.5,
            eps=(1e-4, 0.01),
            d=1.5,
            weight_decay=0.1,
        ),
    ),
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
        theirs_in_groups(torch.optim.Adam, lr=0.01, betas=(0.8, 0.95), eps=1e-4, weight_decay=0.1),
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
"""Those that the gate tries on more devices than ``cpu:0``."""


@pytest.mark.parametrize(("name", "device"), on_devices(PAIRS, burn.Device.enumerate(), EVERYWHERE))
def test_50_steps_in_float64_are_those_of_torch(name, device):
    if not device.supports_dtype(burn.float64):
        pytest.skip(f"{device} has no float64")
    mine, other = PAIRS[name]
    assert_same(train(mine, device), train_torch(other))
    assert not np.array_equal(train_torch(other)["first.bias"], problem()[0]["first.bias"])


class NumpyAdan:
    """Algorithm 1 of arXiv:2208.06677, with its ``1 - beta``, without restarts."""

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
                item / (1 - (1 - b) ** self.count) for item, b in ((m, b1), (v, b2), (n, b3))
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


class NumpyLamb:
    """Algorithm 2 of You et al., with the norms as they are."""

    def __init__(self, parameters, rate, betas, epsilon, decay):
        self.parameters, self.rate, self.betas = parameters, rate, betas
        self.epsilon, self.decay, self.count = epsilon, decay, 0
        self.moments = dict.fromkeys(parameters, (0.0, 0.0))

    def step(self, gradients):
        self.count += 1
        b1, b2 = self.betas
        for name, g in gradients.items():
            x, (m, v) = self.parameters[name], self.moments[name]
            m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
            self.moments[name] = m, v
            unbiased = m / (1 - b1**self.count), v / (1 - b2**self.count)
            change = unbiased[0] / (np.sqrt(unbiased[1]) + self.epsilon) + self.decay * x
            norms = np.linalg.norm(x), np.linalg.norm(change)
            ratio = norms[0] / norms[1] if min(norms) > 0.0 else 1.0
            self.parameters[name] = x - self.rate * ratio * change


PAPERS = {
    "lamb": (
        lambda p: optim.Lamb(p, 0.02, weight_decay=0.1),
        lambda p: NumpyLamb(p, 0.02, (0.9, 0.999), 1e-6, 0.1),
    ),
    "lamb, other betas": (
        lambda p: optim.Lamb(p, 0.01, beta1=0.8, beta2=0.7, weight_decay=0.0),
        lambda p: NumpyLamb(p, 0.01, (0.8, 0.7), 1e-6, 0.0),
    ),
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
        tensors = {key: torch.tensor(value, requires_grad=True) for key, value in expected.items()}
        loss_of(tensors, torch.tensor(x), torch).backward()
        optimizer.step({key: tensor.grad.numpy() for key, tensor in tensors.items()})
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


class Net(nn.Module):
    """Two layers that share a weight, with a buffer."""

    buffers = ("seen",)

    def __init__(self, device=None, dtype=None):
        self.first = nn.Linear(4, 4, device=device, dtype=dtype)
        self.second = nn.Linear(4, 4, device=device, dtype=dtype)
        self.second.weight = self.first.weight
        self.last = nn.Linear(4, 2, device=device, dtype=dtype)
        self.seen = burn.zeros((), device=device, dtype=dtype)

    def forward(self, x):
        return self.last(burn.tanh(self.second(burn.tanh(self.first(x)))))


def net_and_input(device=CPU):
    device.seed(5)
    return Net(device=device.autodiff()), burn.random.normal((8, 4), device=device)


def loss_at(net, x):
    return ((net(x) - x[:, :2]) ** 2).mean()


def bits(tree):
    leaves = tree.parameters() if isinstance(tree, nn.Module) else burn.tree.leaves(tree)
    return [x.detach().inner().numpy().tobytes() for x in leaves]


OPTIMIZERS = {
    "sgd": lambda *p, **o: optim.SGD(*p, learning_rate=0.1, momentum=0.9, dampening=0.5, **o),
    "adam": lambda *p, **o: optim.Adam(*p, learning_rate=0.01, **o),
    "adamw": lambda *p, **o: optim.AdamW(*p, learning_rate=0.01, amsgrad=True, **o),
    "adagrad": lambda *p, **o: optim.Adagrad(*p, initial_total=0.1, **o),
    "rmsprop": lambda *p, **o: optim.RMSprop(*p, centered=True, momentum=0.5, **o),
    "adan": lambda *p, **o: optim.Adan(*p, learning_rate=0.01, **o),
    "lion": lambda *p, **o: optim.Lion(*p, **o),
    "lamb": lambda *p, **o: optim.Lamb(*p, **o),
    "adafactor": lambda *p, **o: optim.Adafactor(*p, **o),
    "adamw8bit": lambda *p, **o: optim.AdamW8bit(*p, block_size=5, least_size=4, **o),
}


@pytest.mark.parametrize("device", burn.Device.enumerate(), ids=str)
def test_a_step_keeps_objects_tied_weights_hooks_and_shared_parameters(device):
    net, x = net_and_input(device)
    before = net.parameters()
    weight, shared = net.first.weight, net.last.bias
    seen = []
    weight.register_hook(lambda g: seen.append(g.shape))
    shared.set_distributed_params(7)
    optimizer = optim.Adam(net, 0.01)
    first = loss_at(net, x)
    values = bits(net)
    for _ in range(3):
        optimizer.step(loss_at(net, x).backward())
    assert all(x is y for x, y in zip(net.parameters(), before, strict=True))
    assert net.second.weight is net.first.weight is weight
    assert len(net.parameters()) == 5
    assert all(x.is_require_grad and x.device is device.autodiff() for x in net.parameters())
    assert len(seen) == 3
    assert shared.distributed_params.param_id == 7
    assert not {*bits(net)} & {*values}
    assert loss_at(net, x).item() < first.item()


def test_views_and_other_names_show_the_step():
    x = burn.asarray([[1.0, 2.0]], device=CPU.autodiff()).require_grad()
    view, old = x[0], x.detach()
    optim.SGD([x], 0.5).step((x * x).sum().backward())
    assert view.tolist() == [0.0, 0.0]
    assert old.tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("device", burn.Device.enumerate(), ids=str)
@pytest.mark.parametrize("size", [3, 5000], ids=["small", "large"])
def test_a_step_changes_nothing_that_others_hold(device, size):
    """A backend may overwrite parameters and states, but not what something else refers to."""
    if size > 3 and not device.backend.overwrites_donated:
        size = 40  # as long as it takes where nothing is overwritten
    device.seed(1)
    x = burn.random.normal(size, device=device).to_device(device.autodiff()).require_grad()
    optimizer = optim.Adam({"x": x}, 0.1)
    for _ in range(2):
        optimizer.step((x * x).sum().backward())
    detached, exported = x.detach(), x.detach().inner()
    row, state = x.detach()[1:], optimizer.state_dict()
    held = [detached, exported, row, state["x.first_moment"], state["x.second_moment"][:2]]
    arrays = [item.detach().numpy() for item in held]
    values = [array.copy() for array in arrays]
    used = (x * x * x).sum()
    slope = 3.0 * values[1] ** 2
    optimizer.step((x * x).sum().backward())
    for item, array, value in zip(held, arrays, values, strict=True):
        np.testing.assert_array_equal(item.detach().numpy(), value)
        np.testing.assert_array_equal(array, value)
    assert (x.detach().numpy() != values[0]).all()
    (gradient,) = used.backward().values()
    np.testing.assert_allclose(gradient.numpy(), slope, rtol=1e-5)


def test_a_leaf_that_another_object_holds_too_becomes_two():
    x = burn.asarray([1.0], device=CPU.autodiff()).require_grad()
    other = copy.copy(x)
    gradients = (x * x).sum().backward()
    optim.SGD([x], 0.5).step(gradients)
    assert (x.item(), other.item()) == (0.0, 1.0)
    assert other.is_require_grad


def test_what_was_computed_before_a_step_has_the_old_values():
    x = burn.asarray([3.0], device=CPU.autodiff()).require_grad()
    square = x * x
    gradients = square.sum().backward(retain_graph=True)
    optim.SGD([x], 0.5).step(gradients)
    assert gradients.get(x) is None, "the new leaf has no gradient yet"
    assert [g.tolist() for g in square.sum().backward().values()] == [[6.0]]


def test_frozen_and_unused_parameters_are_left_out_and_count_no_steps():
    net, x = net_and_input()
    optimizer = optim.AdamW(net, 0.01)
    optimizer.step(loss_at(net, x).backward())
    net.freeze("last.*")
    frozen = bits([net.last.weight, net.last.bias])
    for _ in range(3):
        optimizer.step(loss_at(net, x).backward())
    assert bits([net.last.weight, net.last.bias]) == frozen
    state = optimizer.state_dict()
    assert (state["step"], state["first.weight.step"], state["last.weight.step"]) == (4, 4, 1)
    net.unfreeze()
    optimizer.step(loss_at(net, x).backward())
    state = optimizer.state_dict()
    assert (state["first.weight.step"], state["last.weight.step"]) == (5, 2)
    assert bits([net.last.weight])[0] != frozen[0]


def test_a_parameter_without_gradients_has_the_steps_of_torch():
    def run(library, x, y, optimizer, backward):
        for number in range(6):
            optimizer(backward((x * x).sum() if number % 2 else (x * y).sum()))

    x, y = (
        burn.asarray([2.0], dtype="float64", device=CPU.autodiff()).require_grad() for _ in "xy"
    )
    mine = optim.AdamW({"x": x, "y": y}, 0.1)
    run(burn, x, y, mine.step, lambda loss: loss.backward())
    a, b = (torch.tensor([2.0], dtype=torch.float64, requires_grad=True) for _ in "ab")
    other = torch.optim.AdamW([a, b], lr=0.1)

    def backward(loss):
        other.zero_grad()
        loss.backward()

    run(torch, a, b, lambda _: other.step(), backward)
    assert (x.item(), y.item()) == pytest.approx((a.item(), b.item()), abs=1e-12)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_state_that_is_saved_and_loaded_continues_to_the_bit(name):
    make = OPTIMIZERS[name]
    net, x = net_and_input()
    optimizer = make(net, groups={"*.bias": {"learning_rate": 0.001}})
    for _ in range(3):
        optimizer.step(loss_at(net, x).backward())
    other, _ = net_and_input()
    other.load_state_dict(net.state_dict())
    state = pickle.loads(pickle.dumps(optimizer.state_dict()))
    assert all(isinstance(value, (int, float, burn.Tensor)) for value in state.values())
    following = make(other, groups={"*.bias": {"learning_rate": 0.001}})
    following.load_state_dict(state)
    for item, of in ((net, optimizer), (other, following)):
        for _ in range(3):
            of.step(loss_at(item, x).backward())
    assert bits(net) == bits(other)
    assert bits(
        optimizer.state_dict()["first.weight." + optimizer._names_of(optimizer._slots[0])[0]]
    )


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_of_a_module_with_its_optimizer_belongs_together(copied):
    net, x = net_and_input()
    optimizer = optim.Adam(net, optim.schedules.cosine(0.01, 10), clip_norm=0.5)
    optimizer.step(loss_at(net, x).backward())
    other, following = copied((net, optimizer))
    assert bits(other) == bits(net)
    for item, of in ((net, optimizer), (other, following)):
        of.step(loss_at(item, x).backward())
    assert bits(other) == bits(net)
    assert other.first.weight is not net.first.weight
    following.step(loss_at(other, x).backward())
    assert bits(other) != bits(net)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_functional_form_gives_the_bits_of_step(name):
    make = OPTIMIZERS[name]
    options = {
        "groups": {"last.*": {"learning_rate": 0.02}},
        "weight_decay_mask": "*.weight",
        "clip_value": 0.5,
        "clip_norm": 0.4,
    }
    net, x = net_and_input()
    plain = copy.deepcopy(net).to(CPU)
    optimizer = make(net, **options)
    functional = make(**options)
    state = functional.init(plain)
    parameters = plain
    for _ in range(4):
        optimizer.step(loss_at(net, x).backward())
        gradients = burn.grad(loss_at)(parameters, x)
        parameters, state = functional.update(parameters, gradients, state)
        assert bits(parameters) == bits(net)
    assert isinstance(parameters, Net)
    assert state.step == 4
    assert not parameters.first.weight.is_tracked
    assert parameters.second.weight is parameters.first.weight
    assert bits(plain) != bits(parameters)


def test_step_takes_what_grad_returns():
    net, x = net_and_input()
    plain = copy.deepcopy(net).to(CPU)
    one, other = optim.Adam(net, 0.01), optim.Adam(plain, 0.01)
    for _ in range(2):
        one.step(burn.grad(loss_at)(net, x))
        other.step(burn.grad(loss_at)(plain, x))
    assert bits(net) == bits(plain)
    assert net.first.weight.is_require_grad
    assert plain.first.weight.device is CPU


def test_update_of_leaves_gives_leaves():
    parameters = leaves_on(CPU, problem()[0])
    x = burn.asarray(problem()[1][0], device=CPU)
    optimizer = optim.Adam(learning_rate=0.01)
    state = optimizer.init(parameters)
    gradients = loss_of(parameters, x, burn).backward()
    new, state = optimizer.update(parameters, gradients, state)
    assert all(item.is_require_grad for item in new.values())
    assert bits(new) != bits(parameters)
    loss_of(new, x, burn).backward()


def test_an_update_is_differentiated_by_what_the_gradients_depend_on():
    optimizer, x = optim.SGD(learning_rate=0.5), burn.asarray([3.0], device=CPU)
    state = optimizer.init([x])

    def moved(factor):
        return optimizer.update([x], [x * factor], state)[0][0].sum()

    assert burn.grad(moved)(burn.asarray(1.0, device=CPU)).item() == -1.5


@pytest.mark.parametrize("device", [CPU, CPU.autodiff()], ids=str)
def test_a_program_of_a_training_step_of_a_module(device):
    net, x = net_and_input()
    net.to(device)
    optimizer = optim.AdamW(learning_rate=0.01)

    def train_step(net, state, x, step):
        gradients = burn.grad(loss_at)(net, x)
        return optimizer.update(net, gradients, state, step=step)

    eager = traced = net, optimizer.init(net)
    program = burn.ir.trace(train_step, *eager, x, burn.ir.RuntimeNumber(1))
    for step in range(1, 5):
        eager, traced = train_step(*eager, x, step), program(*traced, x, step)
        assert bits(eager[0]) == bits(traced[0])
    assert traced[0].first.weight.device is device
    assert traced[0].first.weight.is_require_grad is device.is_autodiff


def test_an_update_can_be_differentiated():
    optimizer = optim.SGD(learning_rate=0.25, momentum=0.9)

    def loss_after_a_step(x):
        state = optimizer.init([x])
        gradients = burn.grad(lambda p: (p[0] ** 2).sum())([x])
        (moved,), _ = optimizer.update([x], gradients, state)
        return (moved**2).sum()  # a quarter of x**2

    x = burn.asarray([2.0, -4.0], device=CPU)
    assert burn.grad(loss_after_a_step)(x).tolist() == [1.0, -2.0]


@pytest.mark.parametrize("name", ["adam", "adan", "sgd"])
def test_an_update_is_traced_with_the_number_of_the_step(name):
    optimizer = OPTIMIZERS[name](clip_norm=1.0)
    values, inputs = problem()
    parameters = {name: burn.asarray(value, device=CPU) for name, value in values.items()}
    inputs = [burn.asarray(x, device=CPU) for x in inputs[:6]]

    def train_step(parameters, state, x, step, rate):
        gradients = burn.grad(lambda p: loss_of(p, x, burn))(parameters)
        return optimizer.update(parameters, gradients, state, step=step, learning_rate=rate)

    state = optimizer.init(parameters)
    examples = inputs[0], burn.ir.RuntimeNumber(2), burn.ir.RuntimeNumber(0.1)
    if name != "adam":
        with pytest.raises(burn.TraceError, match="the first step of"):
            burn.ir.trace(train_step, parameters, state, *examples)
    eager = train_step(parameters, state, inputs[0], 1, 0.3)
    program = burn.ir.trace(train_step, *eager, *examples)
    traced = eager
    for number, x in enumerate(inputs[1:], 2):
        eager = train_step(*eager, x, number, 0.3 / number)
        traced = program(*traced, x, number, 0.3 / number)
        assert bits(eager) == bits(traced)
    assert (eager[1].step, traced[1].step) == (6, None)
    with pytest.raises(burn.ArgumentError, match="does not know the number of its step"):
        optimizer.update(eager[0], eager[0], traced[1])
    if name != "adam":
        with pytest.raises(burn.ArgumentError, match="containers of the arguments"):
            program(parameters, state, *[inputs[0], 1, 0.3])


def test_vmap_trains_an_ensemble():
    optimizer = optim.Adam(learning_rate=0.1)
    x = burn.asarray([[1.0, 2.0], [3.0, -4.0]], device=CPU)

    def train_one(x):
        state = optimizer.init(x)
        for _ in range(3):
            x, state = optimizer.update(x, burn.grad(lambda x: (x**2).sum())(x), state)
        return x

    together = burn.vmap(train_one)(x)
    for row, alone in zip(together, x, strict=True):
        np.testing.assert_allclose(row.numpy(), train_one(alone).numpy(), rtol=1e-6)


def test_step_inside_of_a_trace_names_update():
    net, x = net_and_input()
    optimizer = optim.Adam(net)
    with pytest.raises(burn.TraceError, match=r"optimizer.update\(parameters"):
        burn.ir.trace(lambda x: optimizer.step(loss_at(net, x).backward()), x)


def test_groups_apply_in_order_and_the_mask_says_what_decays():
    values = {"a.weight": 1.0, "a.bias": 1.0, "b.weight": 1.0, "b.bias": 1.0}
    parameters = {
        name: burn.full((1,), value, device=CPU.autodiff()).require_grad()
        for name, value in values.items()
    }
    optimizer = optim.SGD(
        parameters,
        0.5,
        weight_decay=0.5,
        groups={"a.*": {"learning_rate": 0.25}, "*.bias": {"learning_rate": lambda n: 0.125 / n}},
        weight_decay_mask=lambda path, x: path != "b.weight" and x.ndim == 1,
    )
    zeros = {name: burn.zeros(1, device=CPU) for name in values}
    optimizer.step(zeros)
    assert {name: x.item() for name, x in parameters.items()} == {
        "a.weight": 1 - 0.25 * 0.5, "a.bias": 1 - 0.125 * 0.5,
        "b.weight": 1.0, "b.bias": 1 - 0.125 * 0.5,
    }  # fmt: skip
    optimizer.learning_rate = 0.0
    optimizer.step(zeros)
    assert parameters["a.weight"].item() == (1 - 0.125) ** 2
    assert parameters["a.bias"].item() == (1 - 0.0625) * (1 - 0.03125)
    assert optimizer.learning_rate == 0.0


def test_masks_by_patterns_decay_what_fits():
    parameters = [burn.ones(1, device=CPU.autodiff()).require_grad() for _ in range(3)]
    optimizer = optim.Lion(parameters, 0.5, weight_decay=1.0, weight_decay_mask=["0", "2"])
    optimizer.step([burn.zeros(1, device=CPU)] * 3)
    assert [x.item() for x in parameters] == [0.5, 1.0, 0.5]


def test_the_learning_rate_of_a_schedule_is_that_of_the_next_step():
    x = burn.asarray([1.0], device=CPU.autodiff()).require_grad()
    optimizer = optim.SGD([x], lambda step: 1.0 / step)
    rates = []
    for _ in range(3):
        rates.append(optimizer.learning_rate)
        optimizer.step([burn.ones(1, device=CPU)])
    assert rates == [1.0, 1 / 2, 1 / 3]
    assert x.item() == pytest.approx(1.0 - sum(rates), abs=1e-6)


def test_states_follow_a_module_to_another_dtype_and_device():
    net, x = net_and_input()
    expected = copy.deepcopy(net)
    optimizer, other = optim.Adam(net, 0.01), optim.Adam(expected, 0.01)
    optimizer.step(loss_at(net, x).backward())
    other.step(loss_at(expected, x).backward())
    for device in burn.Device.enumerate():
        if not device.supports_dtype(burn.float64):
            continue
        net.to(device.autodiff()).astype("float64")
        y = x.to_device(device).astype("float64")
        optimizer.step(loss_at(net, y).backward())
        moment = optimizer.state_dict()["first.weight.second_moment"]
        assert (moment.device, moment.dtype) == (device, burn.float64)
        other.step(loss_at(expected, x).backward())
    for mine, float32 in zip(net.parameters(), expected.parameters(), strict=True):
        np.testing.assert_allclose(mine.inner().numpy(), float32.inner().numpy(), rtol=0, atol=1e-5)


def test_parameters_of_several_dtypes_are_updated_at_once():
    device = CPU.autodiff()
    x, y = (
        burn.asarray([3.0], dtype=d, device=device).require_grad() for d in ("float32", "float64")
    )
    optimizer = optim.Adam([x, y], 0.5)
    for _ in range(2):
        optimizer.step((x * x + (y * y).astype("float32")).sum().backward())
    assert (x.dtype, y.dtype) == (burn.float32, burn.float64)
    assert x.item() == pytest.approx(y.item(), abs=1e-6)


def test_one_operation_updates_a_group():
    net, x = net_and_input()
    optimizer = optim.AdamW(net, groups={"last.*": {"weight_decay": 0.0}})
    for _ in range(2):
        gradients = loss_at(net, x).backward()
        with burn.profile() as profile:
            optimizer.step(gradients)
    calls = {row.name: row.calls for row in profile.by_op()}
    assert calls == {"adam_step": 2}


def leaf(value, **options):
    return burn.asarray(value, device=CPU.autodiff(), **options).require_grad()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: optim.Adam([]), burn.OperandTypeError, "no parameters"),
        (lambda: optim.Adam(nn.Sequential()), burn.OperandTypeError, "Adam: .*no parameters"),
        (lambda: optim.LBFGS(nn.Tanh()), burn.OperandTypeError, "LBFGS: .*no parameters"),
        (lambda: optim.SGD(nesterov=True), burn.ArgumentError, "nesterov=True without momentum"),
        (
            lambda: optim.SGD([leaf([1.0])], groups={"*": {"nesterov": True}}),
            burn.ArgumentError,
            "nesterov=True without momentum",
        ),
        (lambda: optim.Adam(learning_rate=-0.1), burn.ArgumentError, "learning_rate is -0.1"),
        (
            lambda: optim.Adam([leaf([1.0])], groups={"*": {"learning_rate": -0.1}}),
            burn.ArgumentError,
            "learning_rate is -0.1",
        ),
        (
            lambda: optim.Adam([leaf([1.0])], groups=[{"learning_rate": 0.1}]),
            burn.OperandTypeError,
            "groups must be a dict of patterns",
        ),
        (
            lambda: optim.Adam([leaf([1.0])], groups={"*": 0.1}),
            burn.OperandTypeError,
            "groups must be a dict of patterns",
        ),
        (lambda: optim.Adam([1.0]), burn.OperandTypeError, "'0' must be a tensor, not an object"),
        (lambda: optim.Adam({"n": burn.arange(2, device=CPU)}), burn.OperandTypeError, "int64"),
        (lambda: optim.Adam([leaf([1.0])] * 2), burn.ArgumentError, "'1' is there twice"),
        (lambda: optim.Adam([leaf([1.0])], -math.inf), burn.ArgumentError, "learning_rate is -inf"),
        (lambda: optim.Adam(beta1=1.0), burn.ArgumentError, "beta1 is 1.0"),
        (lambda: optim.Adam(weight_decay=-1.0), burn.ArgumentError, "weight_decay is -1.0"),
        (lambda: optim.Adam(amsgrad=2), burn.OperandTypeError, "amsgrad must be True or False"),
        (lambda: optim.Adam(clip_norm=0.0), burn.ArgumentError, "clip_norm is 0.0"),
        (lambda: optim.SGD(momentum="a"), burn.OperandTypeError, "momentum must be a number"),
        (
            lambda: optim.Adam([leaf([1.0])], groups={"*": {"lr": 0.1}}),
            burn.ArgumentError,
            "no option 'lr'. There are learning_rate, beta1",
        ),
        (
            lambda: optim.Adam({"a": leaf([1.0])}, groups={"b*": {"beta1": 0.1}}),
            burn.ArgumentError,
            r"no parameter is called 'b\*'. There are a",
        ),
        (
            lambda: optim.Adam({"a": leaf([1.0])}, weight_decay_mask="b"),
            burn.ArgumentError,
            "no parameter is called 'b'",
        ),
        (lambda: optim.Muon([leaf([1.0])]), burn.ShapeError, "not two axes"),
        (lambda: optim.Muon(adjustment="x"), burn.ArgumentError, "match_rms_adamw"),
        (lambda: optim.Muon(coefficients=(1.0,)), burn.OperandTypeError, "3 coefficients"),
        (lambda: optim.Muon(dtype="int8"), burn.DTypeError, "float dtype"),
        (lambda: optim.LBFGS([leaf([1.0])], line_search="a"), burn.ArgumentError, "strong_wolfe"),
        (lambda: optim.LBFGS([leaf([1.0])], iterations=0), burn.ArgumentError, "iterations is 0"),
    ],
)  # fmt: skip
def test_what_an_optimizer_refuses(make, error, message):
    with pytest.raises(error, match=message):
        make()


def gradient_of(x):
    return (x * x).sum().backward()


def test_errors_of_steps_say_what_to_do():
    x, y = leaf([1.0]), leaf([2.0])
    plain = burn.ones(1, device=CPU)
    with pytest.raises(burn.ArgumentError, match=r"no parameter has a gradient\. Does the loss"):
        optim.Adam([x]).step(gradient_of(y))
    with pytest.raises(burn.ArgumentError, match="no parameter has a gradient"):
        optim.Adam({"x": x}).step({"x": None})
    with pytest.raises(burn.ArgumentError, match=r"paths of gradients: y, xx\. There are x"):
        optim.Adam({"x": x}).step({"y": plain, "x": plain, "xx": plain, "z": None})
    with pytest.raises(burn.ArgumentError, match=r"learning rate of a schedule is -0\.5"):
        optim.SGD([x], lambda step: -0.5).step(gradient_of(x))
    optimizer = optim.SGD([x])
    with pytest.raises(burn.ArgumentError, match=r"learning_rate is -0\.5"):
        optimizer.learning_rate = -0.5
    with pytest.raises(burn.ArgumentError, match=r"learning_rate is -0\.5"):
        optimizer.load_state_dict({"step": 0, "learning_rate": -0.5})
    with pytest.raises(burn.AutodiffError, match=r"'0' is on cpu:0.*module.to\("):
        optim.Adam([plain]).step(gradient_of(y))
    with pytest.raises(burn.AutodiffError, match="'0' is no leaf"):
        optim.Adam([x * 2]).step(gradient_of(x))
    with pytest.raises(burn.ArgumentError, match="this optimizer has no parameters"):
        optim.Adam().step(gradient_of(x))
    with pytest.raises(burn.OperandTypeError, match="gradient of '0' must be a tensor"):
        optim.Adam([x]).step([1.0])
    with pytest.raises(
        burn.ShapeError, match=r"gradient of '0' has shape \(2,\), and the parameter \(1,\)"
    ):
        optim.Adam([x]).step([burn.ones(2, device=CPU)])
    with pytest.raises(
        burn.DTypeError, match=r'gradient of .0. has dtype float64.*astype\("float32'
    ):
        optim.Adam([x]).step([burn.ones(1, dtype="float64", device=CPU)])
    with pytest.raises(burn.AutodiffError, match=r"is on .*from outside of that transform"):
        burn.grad(lambda z: optim.Adam([x]).step([z * 2]))(plain)
    with pytest.raises(burn.AutodiffError, match="inside of a transform"):
        burn.grad(lambda z: optim.Adam([z]).step([plain]))(plain)
    with pytest.raises(burn.AutodiffError, match="no leaf of an autodiff device"):
        optim.LBFGS([plain]).step(lambda: plain.sum())
    with pytest.raises(burn.AutodiffError, match="depends on none of the parameters"):
        optim.LBFGS([x]).step(lambda: (y * y).sum())
    with pytest.raises(burn.OperandTypeError, match="returned NoneType"):
        optim.LBFGS([x]).step(lambda: None)
    assert x.item() == 1.0


def test_errors_of_updates_say_what_to_do():
    optimizer = optim.Adam(learning_rate=lambda step: 0.1)
    x = burn.ones(2, device=CPU)
    state = optimizer.init([x])
    with pytest.raises(burn.OperandTypeError, match=r"optimizer.init\(parameters\)"):
        optimizer.update([x, x + 1], [x, x], state)
    with pytest.raises(burn.OperandTypeError, match=r"optimizer\.init"):
        optimizer.update([x], [x], None)
    with pytest.raises(burn.OperandTypeError, match="a list of 2 where"):
        optimizer.update([x], [x, x], state)
    with pytest.raises(burn.DTypeError, match="has dtype float64"):
        optimizer.update([x], [x.astype("float64")], state)
    with pytest.raises(burn.ShapeError, match="update: the gradient of '0' has shape"):
        optimizer.update([x], [burn.ones(3, device=CPU)], state)
    with pytest.raises(burn.ArgumentError, match=r"update: learning_rate is -0\.5"):
        optimizer.update([x], [x], state, learning_rate=-0.5)
    with pytest.raises(burn.ArgumentError, match="step is 0"):
        optimizer.update([x], [x], state, step=0)
    with pytest.raises(burn.TraceError, match="Pass step=step"):
        burn.ir.trace(lambda x: optimizer.update([x], [x], state)[0], x)
    with pytest.raises(burn.TraceError, match="Pass learning_rate=rate"):
        burn.ir.trace(
            lambda x, step: optimizer.update([x], [x], state, step=step)[0],
            x,
            burn.ir.RuntimeNumber(1),
        )


def tensors_of(optimizer):
    return bits([x for x in optimizer.state_dict().values() if isinstance(x, burn.Tensor)])


def test_a_state_that_does_not_fit_changes_nothing():
    x = leaf([1.0, 2.0])
    optimizer = optim.Adam({"x": x}, 0.25)
    optimizer.step(gradient_of(x))
    state, before = optimizer.state_dict(), tensors_of(optimizer)
    wrong = {
        "lacks x.second_moment": {k: v for k, v in state.items() if k != "x.second_moment"},
        "unknown here, y.step": state | {"y.step": 1},
        "x.first_moment has shape": state | {"x.first_moment": burn.ones(3, device=CPU)},
        "x.step is 0": state | {"x.step": 0},
        "lacks step. Load it into": {k: v for k, v in state.items() if k != "step"},
        "lacks step, x.step": {"weight": state["x.first_moment"]}
        | {"x.first_moment": x, "x.second_moment": x},
        "not an object of type list": [state],
    }
    for message, value in wrong.items():
        with pytest.raises((burn.ArgumentError, burn.OperandTypeError), match=message):
            optimizer.load_state_dict(value)
        assert tensors_of(optimizer) == before
    with pytest.raises(burn.ArgumentError, match=r"lacks x\.velocity"):
        optim.SGD({"x": x}, momentum=0.9).load_state_dict(state)
    other = optim.Adam({"x": x}, optim.schedules.constant(0.5))
    other.load_state_dict(state)
    assert other.learning_rate == 0.5, "a schedule stays"


def test_adafactor_keeps_a_row_and_a_column_of_a_matrix_alone():
    net, x = net_and_input()
    optimizer = optim.Adafactor(net)
    optimizer.step(loss_at(net, x).backward())
    state = optimizer.state_dict()
    rows, columns = net.first.weight.shape
    assert state["first.weight.row_moment"].shape == (rows, 1)
    assert state["first.weight.column_moment"].shape == (1, columns)
    assert state["first.bias.row_moment"].shape == (rows,)
    assert state["first.bias.column_moment"].shape == (0,)
    state["first.weight.row_moment"] = state["first.weight.row_moment"][1:]
    with pytest.raises(burn.ArgumentError, match=r"row_moment has shape .* it should have"):
        optimizer.load_state_dict(state)


def test_moments_in_8_bits_are_near_those_of_floats():
    net, x = net_and_input()
    other = copy.deepcopy(net)
    exact, coded = optim.AdamW(net, 0.01), optim.AdamW8bit(other, 0.01, least_size=0)
    for _ in range(20):
        for item, optimizer in ((net, exact), (other, coded)):
            optimizer.step(loss_at(item, x).backward())
    moved = 0.0
    for mine, theirs, first in zip(
        other.parameters(), net.parameters(), net_and_input()[0].parameters(), strict=True
    ):
        change = theirs.detach().numpy() - first.detach().numpy()
        error = np.abs(mine.detach().numpy() - theirs.detach().numpy())
        assert error.max() < 0.1 * np.abs(change).max()
        moved = max(moved, np.abs(change).max())
    assert moved > 0.05


def test_moments_in_8_bits_take_a_byte_an_element_where_there_are_many():
    device = burn.Device("cpu").autodiff()
    net = nn.Linear(100, 90, device=device)
    optimizer = optim.AdamW8bit(net, block_size=256)
    optimizer.step((net(burn.ones((2, 100), device="cpu")) ** 2).mean().backward())
    state = optimizer.state_dict()
    codes = [
        value for name, value in state.items() if name.startswith("weight.") and "codes" in name
    ]
    scales = [
        value for name, value in state.items() if name.startswith("weight.") and "scal" in name
    ]
    assert [(code.shape, code.dtype) for code in codes] == [((36, 256), burn.uint8)] * 2
    assert [(scale.shape, scale.dtype) for scale in scales] == [((36, 1), burn.float32)] * 2
    assert state["bias.first_codes"].shape == (0,)
    assert state["bias.first_scales"].shape == (90,)
    net.astype("float64")
    optimizer.step((net(burn.ones((2, 100), dtype="float64", device="cpu")) ** 2).mean().backward())
    state = optimizer.state_dict()
    assert state["weight.first_codes"].dtype is burn.uint8
    assert state["weight.first_scales"].dtype is burn.float64


@pytest.mark.parametrize("kind", [optim.Lamb, optim.Adafactor, optim.AdamW8bit])
def test_steps_of_several_ops_are_compiled_with_the_number_of_the_step(kind):
    net, x = net_and_input()
    other = copy.deepcopy(net)
    options = {"least_size": 4} if kind is optim.AdamW8bit else {}
    plain, compiled = kind(net, 0.1, **options), kind(other, 0.1, **options)

    @burn.compile
    def step(x):
        compiled.step(loss_at(other, x).backward())

    for _ in range(4):
        plain.step(loss_at(net, x).backward())
        step(x)
    for mine, theirs in zip(net.parameters(), other.parameters(), strict=True):
        assert_same({"": theirs.detach().numpy()}, {"": mine.detach().numpy()}, 1e-6)


def test_lbfgs_goes_on_from_a_saved_state():
    x, y = leaf([-1.2, 1.0]), leaf([-1.2, 1.0])
    options = {"iterations": 3, "line_search": "strong_wolfe"}

    def loss_of_one(x):
        return (1 - x[0]) ** 2 + 10 * (x[1] - x[0] ** 2) ** 2

    one, other = optim.LBFGS([x], **options), optim.LBFGS([y], **options)
    for _ in range(2):
        one.step(lambda: loss_of_one(x))
    y.assign(x.detach())
    other.load_state_dict(pickle.loads(pickle.dumps(one.state_dict())))
    one.step(lambda: loss_of_one(x))
    other.step(lambda: loss_of_one(y))
    assert bits([x]) == bits([y])
    with pytest.raises(burn.ArgumentError, match="change"):
        other.load_state_dict({k: v for k, v in one.state_dict().items() if k != "change"})


def test_clipping_is_that_of_torch_and_keeps_the_gradients():
    generator = np.random.default_rng(1)
    shapes = SHAPES | {"large": (300, 300)}
    arrays = {name: generator.normal(size=shape) * 2 for name, shape in shapes.items()}
    tensors = [torch.tensor(array, requires_grad=True) for array in arrays.values()]
    for item in tensors:
        item.grad = item.detach().clone()
    for limit in (1.0, 1e6):
        gradients = {name: burn.asarray(array, device=CPU) for name, array in arrays.items()}
        clipped, norm = optim.clip_by_global_norm(gradients, limit)
        for item, array in zip(tensors, arrays.values(), strict=True):
            item.grad = torch.tensor(array)
        expected = torch.nn.utils.clip_grad_norm_(tensors, limit)
        assert norm.item() == pytest.approx(expected.item(), abs=1e-12)
        for item, tensor in zip(clipped.values(), tensors, strict=True):
            np.testing.assert_allclose(item.numpy(), tensor.grad.numpy(), rtol=0, atol=1e-12)
        assert bits(gradients) == [array.tobytes() for array in arrays.values()]
    clipped = optim.clip_by_value(gradients, 0.5)
    for item, array in zip(clipped.values(), arrays.values(), strict=True):
        np.testing.assert_array_equal(item.numpy(), np.clip(array, -0.5, 0.5))


def test_clipping_of_what_backward_returns():
    x, y = leaf([3.0], dtype="float16"), leaf([4.0], dtype="float64")
    gradients = (x.astype("float64") * 3 + y * 4).sum().backward()
    clipped, norm = optim.clip_by_global_norm(gradients, 1.0)
    assert norm.item() == pytest.approx(5.0)
    assert clipped[x].item() == pytest.approx(0.6, abs=1e-3)
    assert clipped[y].item() == pytest.approx(0.8, abs=1e-6)
    assert (clipped[x].dtype, clipped[y].dtype) == (burn.float16, burn.float64)
    assert gradients[y].item() == 4.0
    assert optim.clip_by_value(gradients, 3.5)[y].item() == 3.5
    optimizer = optim.SGD([x, y], 1.0, clip_value=3.5, clip_norm=1.0)
    optimizer.step(gradients)
    assert y.item() == pytest.approx(4.0 - 3.5 / np.hypot(3.0, 3.5), abs=1e-5)
    for function in (optim.clip_by_value, optim.clip_by_global_norm):
        with pytest.raises(burn.ArgumentError, match=r"limit is -1\.0"):
            function(gradients, -1.0)


def test_accumulated_gradients_are_those_of_the_whole_batch():
    net, x = net_and_input()
    accumulator = optim.GradientAccumulator()
    for part in burn.split(x, 2):
        accumulator.add(loss_at(net, part).backward())
    gradients, whole = accumulator.take(), loss_at(net, x).backward()
    for parameter in net.parameters():
        np.testing.assert_allclose(
            gradients[parameter].numpy(), whole[parameter].numpy(), rtol=0, atol=1e-6
        )
    assert len(accumulator) == 0
    with pytest.raises(burn.ArgumentError, match="no gradients were added"):
        accumulator.take()
    accumulator.add({"x": burn.ones(1, device=CPU)})
    accumulator.add({"x": burn.ones(1, device=CPU)})
    with pytest.raises(burn.OperandTypeError, match="got Gradients after dict"):
        accumulator.add(whole)
    assert accumulator.take(mean=False)["x"].item() == 2.0


def test_accumulation_of_passes_that_use_different_parameters():
    x, y = leaf([1.0]), leaf([1.0])
    accumulator = optim.GradientAccumulator()
    for loss in ((x * 2).sum(), (y * 4).sum(), (x * y).sum()):
        accumulator.add(loss.backward())
    total = accumulator.take(mean=False)
    assert (total[x].item(), total[y].item()) == (3.0, 5.0)


def test_a_moving_average_is_that_of_the_formula():
    net, x = net_and_input()
    optimizer = optim.SGD(net, 0.1)
    average = optim.ExponentialMovingAverage(net, decay=lambda n: min(0.9, n / (n + 1)))
    expected = [parameter.inner().numpy() for parameter in net.parameters()]
    for count in range(1, 4):
        optimizer.step(loss_at(net, x).backward())
        net.seen.assign(burn.asarray(float(count), device=CPU))
        average.update()
        decay = min(0.9, count / (count + 1))
        expected = [
            decay * old + (1 - decay) * new.inner().numpy()
            for old, new in zip(expected, net.parameters(), strict=True)
        ]
    own, weight = bits(net), net.first.weight
    with average.applied():
        for parameter, value in zip(net.parameters(), expected, strict=True):
            np.testing.assert_allclose(parameter.inner().numpy(), value, rtol=1e-5)
        inside = bits(net)
        assert net.first.weight is weight
    assert bits(net) == own
    other = Net(device=CPU)
    other.load_state_dict(average.averages())
    assert bits(other) == inside
    assert other.seen.item() == 3.0
    with pytest.raises(ZeroDivisionError), average.applied():
        1 / 0  # noqa: B018 — raises
    assert bits(net) == own
    following = optim.ExponentialMovingAverage(net, decay=lambda n: min(0.9, n / (n + 1)))
    following.load_state_dict(pickle.loads(pickle.dumps(average.state_dict())))
    optimizer.step(loss_at(net, x).backward())
    average.update()
    following.update()
    assert bits(following.averages()) == bits(average.averages())
    with pytest.raises(burn.ArgumentError, match=r"do not both have .*seen, step"):
        average.load_state_dict(net.state_dict())


def test_an_average_follows_its_module():
    net, _ = net_and_input()
    average = optim.ExponentialMovingAverage(net, 0.5)
    net.astype("float64").to(CPU)
    average.update()
    with average.applied():
        assert net.first.weight.dtype is burn.float64
        assert net.first.weight.device is CPU
    with pytest.raises(burn.ArgumentError, match="decay is 2"):
        optim.ExponentialMovingAverage(net, 2)


def test_averages_of_a_module_that_got_or_lost_parameters_are_refused():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)).to(CPU.autodiff())
    average = optim.ExponentialMovingAverage(net, 0.5)
    last, weight = net[1], net[0].weight
    changes = {
        "1.weight, 1.bias": lambda: setattr(net, "1", nn.Tanh()),
        "1.1.weight, 1.1.bias": lambda: setattr(net, "1", nn.Sequential(last, nn.Linear(2, 1))),
        "0.weight": lambda: setattr(net[0], "weight", burn.zeros((2, 2), device=CPU)),
    }
    for paths, change in changes.items():
        change()
        for use in (average.update, average.averages, average.applied().__enter__):
            with pytest.raises(
                burn.ArgumentError, match=rf"ExponentialMovingAverage.*lost .*: {paths}\."
            ):
                use()
        net[1], net[0].weight = last, weight
    average.update()
    assert average.state_dict()["step"] == 1, "refused updates do not count"
    net[0], net[1] = net[1], net[0]
    assert bits(average.averages()) == bits(net.state_dict()), "parameters may move"


def test_averages_are_read_without_a_change_of_the_module(monkeypatch):
    net, x = net_and_input()
    average = optim.ExponentialMovingAverage(net, 0.5)
    optim.SGD(net, 0.1).step(loss_at(net, x).backward())
    average.update()
    net.freeze("second.weight")
    gradients = loss_at(net, x).backward()
    with average.applied():
        inside = net.state_dict()
    nodes = [parameter.primitive for parameter in net.parameters()]
    found = average.averages()
    assert all(
        parameter.primitive is node for parameter, node in zip(net.parameters(), nodes, strict=True)
    )
    assert list(found) == list(inside)
    assert bits(found) == bits(inside)
    assert found["second.weight"] is found["first.weight"]
    assert bits(found) != bits(net.state_dict())
    assert gradients


@pytest.mark.parametrize("device", burn.Device.enumerate(), ids=str)
def test_steps_on_applied_averages_are_an_error_and_the_own_values_are_kept(device):
    net, x = net_and_input(device)
    average, other = (optim.ExponentialMovingAverage(net, 0.5) for _ in "ab")
    optimizer = optim.SGD(net.last, 0.1)
    optimizer.step(loss_at(net, x).backward())
    average.update()
    own = bits(net)
    with (
        pytest.raises(
            burn.ArgumentError, match=r"applied: .* which are lost: last.weight, last.bias\. "
        ),
        average.applied(),
    ):
        optimizer.step(loss_at(net, x).backward())
    assert bits(net) == own
    with average.applied(), other.applied():
        loss_at(net, x).backward()
        net.freeze("first.*")
        net.eval()
    assert bits(net) == own


def trained_otherwise(device):
    """Values after clipping, Muon, averages, accumulation and LBFGS in float32."""
    values, inputs = problem(MATRICES)
    values = {name: np.float32(value) for name, value in values.items()}
    inputs = [burn.asarray(np.float32(x), device=device) for x in inputs[:3]]
    parameters = leaves_on(device, values)
    optimizer = optim.Muon(parameters, 0.02, dtype="float32", clip_value=0.1, clip_norm=0.2)
    for _ in range(2):
        accumulator = optim.GradientAccumulator()
        for x in inputs:
            accumulator.add(loss_of(parameters, x, burn).backward())
        optimizer.step(accumulator.take())
    by_muon = [x.inner().numpy() for x in parameters.values()]
    minimizer = optim.LBFGS(parameters, iterations=3, line_search="strong_wolfe")
    losses = [minimizer.step(lambda: loss_of(parameters, inputs[0], burn)).item() for _ in "ab"]
    return by_muon, losses


@pytest.mark.parametrize("device", burn.Device.enumerate(), ids=str)
def test_the_other_optimizers_agree_on_every_device(device):
    (mine, losses), (expected, expected_losses) = trained_otherwise(device), trained_otherwise(CPU)
    for x, y in zip(mine, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-4)
    assert losses == pytest.approx(expected_losses, rel=1e-2)
    assert losses[1] < losses[0]


def test_representations_name_the_options():
    x = leaf([1.0])
    assert repr(optim.SGD([x], 0.5)) == (
        "SGD(1 parameters, learning_rate=0.5, momentum=0.0, dampening=0.0, weight_decay=0.0, "
        "nesterov=False)"
    )
    assert repr(optim.Adam().init([x])) == "State(step=0, of 1 parameters)"


def test_a_module_that_grows_after_its_optimizer_is_an_error():
    net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2)).to(CPU.autodiff())
    optimizer, of_list = optim.SGD(net, 0.5), optim.SGD(net.parameters(), 0.5)
    other = nn.Linear(2, 2).to(CPU.autodiff())
    optimizer.step(other(net(burn.ones((1, 2), device=CPU))).sum().backward())
    net[1] = nn.Linear(3, 4).to(CPU.autodiff())
    before = net[0].weight.tolist()
    gradients = net(burn.ones((1, 2), device=CPU)).sum().backward()
    message = r"SGD.step: the module has parameters .*: 1.weight, 1.bias\. .*list of parameters"
    with pytest.raises(burn.ArgumentError, match=message):
        optimizer.step(gradients)
    assert net[0].weight.tolist() == before
    of_list.step(gradients)
    assert net[0].weight.tolist() != before
    net[1].freeze()
    optimizer.step(net(burn.ones((1, 2), device=CPU)).sum().backward())


def test_lbfgs_refuses_parameters_that_its_module_got_later():
    net = nn.Sequential(nn.Linear(2, 2), nn.Tanh()).to(CPU.autodiff())
    optimizer, of_list = optim.LBFGS(net), optim.LBFGS(net.parameters())
    x = burn.ones((1, 2), device=CPU)
    optimizer.step(lambda: (net(x) ** 2).sum())
    net[1] = nn.Linear(2, 1).to(CPU.autodiff())
    before = bits(net)
    with pytest.raises(burn.ArgumentError, match=r"LBFGS.step: .* after its optimizer: 1.weight"):
        optimizer.step(lambda: (net(x) ** 2).sum())
    assert bits(net) == before
    of_list.step(lambda: (net(x) ** 2).sum())
    assert bits(net) != before


@pytest.mark.parametrize("wrong", [math.nan, 0.0, -1.0, math.inf, "a"])
def test_lbfgs_refuses_a_wrong_learning_rate_at_any_time(wrong):
    optimizer = optim.LBFGS([leaf([1.0])], 0.5)
    state = optimizer.state_dict() | {"learning_rate": wrong}
    for change in (
        lambda: setattr(optimizer, "learning_rate", wrong),
        lambda: optimizer.load_state_dict(state),
        lambda: optim.LBFGS([leaf([1.0])], wrong),
    ):
        with pytest.raises((burn.ArgumentError, burn.OperandTypeError), match="learning_rate"):
            change()
        assert optimizer.learning_rate == 0.5
    optimizer.learning_rate = 0.25
    assert repr(optimizer) == "LBFGS(1 parameters, learning_rate=0.25)"


def test_gradients_by_paths_of_a_module_are_for_several_optimizers():
    net, x = net_and_input()
    named = net.named_parameters()
    of_matrices = optim.Muon([(path, p) for path, p in named if p.ndim == 2])
    of_others = optim.SGD([(path, p) for path, p in named if p.ndim != 2])
    of_first = optim.SGD(net.first)
    gradients, before = burn.grad(loss_at)(net, x), bits(net)
    of_matrices.step(gradients)
    of_others.step(gradients)
    assert not {*before} & {*bits(net)}
    with pytest.raises(burn.ArgumentError, match=r"paths of gradients: first.weight, first.bias"):
        of_first.step(gradients)


@pytest.mark.parametrize("wrong", [None, 3, {"weight": 0.5}])
def test_only_gradients_are_accumulated(wrong):
    accumulator = optim.GradientAccumulator()
    with pytest.raises(burn.OperandTypeError, match=r"add: .*loss.backward\(\)"):
        accumulator.add(wrong)
    assert len(accumulator) == 0


@pytest.mark.parametrize("kind", [optim.SGD, optim.LBFGS])
def test_attributes_of_other_libraries_are_answered_with_ours(kind):
    optimizer = kind([leaf([1.0])], 0.5)
    hints = {
        "lr": "Read or set learning_rate",
        "zero_grad": r"backward\(\) returns new gradients",
        "param_groups": "groups=",
        "add_param_group": "groups=",
    }
    for name, hint in hints.items():
        message = f"{kind.__name__}: there is no attribute '{name}'.*{hint}"
        with pytest.raises(burn.MissingAttributeError, match=message):
            getattr(optimizer, name)
        with pytest.raises(AttributeError, match=message):
            setattr(optimizer, name, 0.1)
        assert not hasattr(optimizer, name)
    with pytest.raises(AttributeError, match="object has no attribute 'steps'"):
        optimizer.steps  # noqa: B018 — raises
    assert optimizer.learning_rate == 0.5


@pytest.mark.parametrize(
    ("make", "hint"),
    [
        (lambda p: optim.Adam(p, lr=0.1), "'lr'. Pass learning_rate"),
        (lambda p: optim.SGD(p, lr=0.1), "'lr'. Pass learning_rate"),
        (lambda p: optim.Adam(p, betas=(0.9, 0.99)), "'betas'. Pass beta1 and beta2"),
        (lambda p: optim.AdamW(p, b1=0.9), "'b1'. Pass beta1"),
        (lambda p: optim.Lion(params=p), "'params'. Pass parameters"),
        (lambda p: optim.RMSprop(p, eps=1e-6), "'eps'. Pass epsilon"),
        (lambda p: optim.Adagrad(p, lr_decay=0.1), "'lr_decay'. Pass learning_rate_decay"),
        (lambda p: optim.Muon(p, ns_steps=3), "'ns_steps'. Pass iterations"),
        (lambda p: optim.Adam(p, fused=True), "'fused'. Leave it out"),
        (lambda p: optim.Adam(p, spam=1), "'spam'$"),
        (lambda p: optim.LBFGS(p, max_iter=3), "'max_iter'. Pass iterations"),
        (lambda p: optim.LBFGS(p, lr=0.1), "'lr'. Pass learning_rate"),
    ],
)
def test_keywords_of_other_libraries_are_answered_with_ours(make, hint):
    with pytest.raises(burn.OperandTypeError, match=rf"^[A-Z]\w+: there is no keyword .*{hint}"):
        make([leaf([1.0])])


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("lr_scheduler", "schedules"),
        ("clip_grad_norm_", "clip_by_global_norm"),
        ("clip_grad_value_", "clip_by_value"),
        ("NAdam", "Adam"),
        ("RAdam", "Adam"),
        ("GradScaler", "LossScaler"),
        ("adamw", "AdamW"),
        ("swa_utils", "ExponentialMovingAverage"),
    ],
)
def test_names_of_other_libraries_are_answered_with_ours(name, ours):
    assert ours in optim.__all__
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'\. .*\b{ours}\b"):
        getattr(optim, name)
    assert not hasattr(optim, name)
    with pytest.raises(AttributeError, match=r"no attribute 'spam'$"):
        optim.spam  # noqa: B018 — raises
