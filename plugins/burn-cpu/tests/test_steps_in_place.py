"""Steps of optimizers overwrite parameters and states, unless something else uses their memory."""

import numpy as np
import pytest

import burn
from burn import nn, optim
from burn.plugin_api import DeviceId, Donated, registry, resolve
from burn_cpu.backend import CpuBackend

WIDTHS = {"small": 3, "large": 80}  # weights are joined, or not


def network(width):
    device = burn.Device("cpu")
    device.seed(0)
    return nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width)).to(
        device.autodiff()
    )


@pytest.fixture(params=WIDTHS, ids=str)
def net(request):
    return network(WIDTHS[request.param])


@pytest.fixture(scope="module")
def backend():
    return resolve(registry.entry("cpu").load(), DeviceId(0)).backend


def loss_of(net):
    return (net(burn.ones((2, net[0].weight.shape[0]), device="cpu")) ** 2).sum()


def addresses(net, optimizer):
    states = [x for slot in optimizer._slots for x in slot.states]
    arrays = [x.inner().primitive for x in net.parameters()] + [x.primitive for x in states]
    return [array.__array_interface__["data"][0] for array in arrays]


OPTIMIZERS = [
    optim.SGD,
    lambda net: optim.SGD(net, 0.01, momentum=0.9, nesterov=True),
    optim.Adam,
    lambda net: optim.Adam(net, weight_decay=0.1, amsgrad=True),
    optim.AdamW,
    optim.Adagrad,
    lambda net: optim.RMSprop(net, momentum=0.5, centered=True),
    optim.Adan,
    optim.Lion,
]


@pytest.mark.parametrize("make", [item for item in OPTIMIZERS if item is not optim.Adan])
def test_steps_overwrite_parameters_and_states(net, make):
    # Adan holds the last gradients too, which are new at each step.
    optimizer = make(net)
    for _ in range(2):
        optimizer.step(loss_of(net).backward())
    before = addresses(net, optimizer)
    optimizer.step(loss_of(net).backward())
    assert addresses(net, optimizer) == before


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_steps_in_place_are_those_of_new_arrays(net, make, monkeypatch):
    other = network(net[0].weight.shape[0])
    optimizer, reference = make(net), make(other)
    for _ in range(3):
        optimizer.step(loss_of(net).backward())
        with monkeypatch.context() as patch:
            patch.setattr(CpuBackend, "overwrites_donated", False)
            reference.step(loss_of(other).backward())
    for x, y in zip(net.parameters(), other.parameters(), strict=True):
        np.testing.assert_array_equal(x.inner().numpy(), y.inner().numpy())


def test_what_else_refers_to_a_parameter_keeps_its_value(net):
    optimizer = optim.Adam(net)
    for _ in range(2):
        optimizer.step(loss_of(net).backward())
    weight = net[0].weight
    export = weight.inner().primitive
    view = export[:1]
    tensor = weight.detach()
    kept = export.copy()
    loss = loss_of(net)
    optimizer.step(loss.backward())
    assert not np.array_equal(weight.inner().numpy(), kept)
    for other in (export, tensor.numpy()):
        np.testing.assert_array_equal(other, kept)
    np.testing.assert_array_equal(view, kept[:1])
    del export, tensor, other
    kept = weight.inner().numpy().copy()
    view = weight.inner().primitive[1:]
    optimizer.step(loss_of(net).backward())
    assert not np.array_equal(weight.inner().numpy(), kept)
    np.testing.assert_array_equal(view, kept[1:])


def test_a_graph_that_lives_on_keeps_its_values(net):
    optimizer = optim.SGD(net, 0.1)
    optimizer.step(loss_of(net).backward())
    x = burn.ones((2, net[0].weight.shape[0]), device=burn.Device("cpu").autodiff()).require_grad()
    loss = (net(x) ** 2).sum()
    expected = x.grad((net(x) ** 2).sum().backward()).numpy()
    optimizer.step(loss_of(net).backward())
    np.testing.assert_allclose(x.grad(loss.backward()).numpy(), expected, rtol=1e-5, atol=1e-7)


def test_parameters_that_were_exchanged_are_found(backend):
    values = [np.full(4, number, np.float32) for number in (1.0, 2.0)]
    numbers = {"learning_rate": 1.0, "momentum": 0.0, "dampening": 0.0, "weight_decay": 0.0}
    gradients = [np.zeros(4, np.float32), np.ones(4, np.float32)]

    def step(arrays):
        return backend.sgd_step(Donated(arrays, 9, None), gradients, [], nesterov=False, **numbers)

    first, second = step(values)
    assert [first[0], second[0]] == [1.0, 1.0]
    second, first = step([second, first])
    assert [first[0], second[0]] == [0.0, 1.0]
    assert all(tensor.tolist() == [tensor[0]] * 4 for tensor in (first, second))
