"""Derivatives of functions: closed forms, torch.func, nesting, state, and refusals."""

import asyncio
import contextvars
import copy
import functools
import gc
import pickle
import sys
import threading
from collections import OrderedDict
from typing import NamedTuple

import numpy as np
import pytest
import torch

import burn
from burn.devices import transforms
from burn.nn import functional as F

CPU = burn.Device("cpu")
AUTODIFF = CPU.autodiff()
DEVICES = burn.Device.enumerate()
FLOAT64 = [
    index
    for index in burn.Device.enumerate(dtype=burn.float64)
    if index.backend_name in ("cpu", "torch", "opencl", "cuda")
]
RANDOM = np.random.default_rng(0)

pytestmark = [
    pytest.mark.usefixtures("no_transform_is_left"),
    # The forward mode of torch compiles its decompositions in this way.
    pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated"),
]


def tensor(values, device=CPU, **options):
    return burn.asarray(values, device=device, **options)


def leaf(values):
    return tensor(values, AUTODIFF).require_grad()


def double(value, device=CPU):
    return tensor(value, device, dtype="float64")


def derivative(function, order):
    for _ in range(order):
        function = burn.grad(function)
    return function


# torch.func.


def mlp(parameters, x, library):
    (w1, b1), (w2, b2) = parameters
    hidden = library.tanh(x @ w1 + b1)
    return library.exp(library.sin(hidden @ w2 + b2))


def convolution(parameters, x, library):
    weight, bias = parameters
    convolved = library.conv2d(x.reshape((-1, *x.shape[-3:])), weight, bias)
    return library.gelu(convolved).sum(axis=(-1, -2))


def attention(parameters, x, library):
    wq, wk, wv = parameters
    return library.attention(x @ wq, x @ wk, x @ wv) * library.tanh(x)


class OfBurn:
    tanh, exp, sin, gelu = burn.tanh, burn.exp, burn.sin, F.gelu

    @staticmethod
    def conv2d(x, weight, bias):
        return F.conv2d(x, weight, bias, stride=2, padding=1)

    @staticmethod
    def attention(query, key, value):
        return F.attention(query, key, value, is_causal=True)


class OfTorch:
    tanh, exp, sin, gelu = torch.tanh, torch.exp, torch.sin, torch.nn.functional.gelu

    @staticmethod
    def conv2d(x, weight, bias):
        return torch.nn.functional.conv2d(x, weight, bias, stride=2, padding=1)

    @staticmethod
    def attention(query, key, value):
        scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
        length = query.shape[-2]
        later = torch.triu(torch.ones(length, length, dtype=torch.bool), 1)
        return torch.softmax(scores.masked_fill(later, -torch.inf), -1) @ value


def normal(*shape):
    return RANDOM.normal(size=shape) * 0.5


MODELS = {
    "mlp": (mlp, [[normal(3, 4), normal(4)], [normal(4, 2), normal(2)]], normal(5, 1, 3)),
    "convolution": (convolution, [normal(2, 2, 2, 3), normal(2)], normal(3, 1, 2, 4, 5)),
    "attention": (attention, [normal(3, 3), normal(3, 3), normal(3, 3)], normal(2, 1, 2, 4, 3)),
}
"""A function of parameters and an example, its parameters, and a batch of examples."""


class Model:
    """The functions that are compared, in burn on a device and in torch."""

    def __init__(self, name, device):
        self.function, parameters, examples = MODELS[name]
        to_burn, to_torch = self.maps(device)
        self.ours = burn.tree.map(to_burn, parameters)
        self.theirs = burn.tree.map(to_torch, parameters)
        self.our_batch, self.their_batch = to_burn(examples), to_torch(examples)
        self.direction = burn.tree.map(
            lambda parameter: RANDOM.normal(size=parameter.shape), parameters
        )
        self.our_direction = burn.tree.map(to_burn, self.direction)
        self.their_direction = burn.tree.map(to_torch, self.direction)

    @staticmethod
    def maps(device):
        return lambda item: double(item, device), torch.tensor

    def our_outputs(self, parameters, x):
        return self.function(parameters, x, OfBurn)

    def their_outputs(self, parameters, x):
        return self.function(parameters, x, OfTorch)

    def our_loss(self, parameters, x):
        return (self.our_outputs(parameters, x) ** 2).sum()

    def their_loss(self, parameters, x):
        return (self.their_outputs(parameters, x) ** 2).sum()


def assert_same(ours, theirs):
    ours, theirs = burn.tree.leaves(ours), burn.tree.leaves(theirs)
    for tensor, other in zip(ours, theirs, strict=True):
        assert tensor.dtype is burn.float64
        np.testing.assert_allclose(tensor.numpy(), other.detach().numpy(), rtol=1e-10, atol=1e-10)


@pytest.fixture(params=FLOAT64, ids=str)
def device(request):
    return request.param


@pytest.fixture(params=MODELS)
def model(request, device):
    return Model(request.param, device)


def test_gradients_are_those_of_torch(model):
    ours = burn.value_and_grad(model.our_loss, (0, 1))(model.ours, model.our_batch)
    gradients, value = torch.func.grad_and_value(model.their_loss, (0, 1))(
        model.theirs, model.their_batch
    )
    assert_same(ours, (value, gradients))


def test_products_of_the_hessian_and_a_vector_are_those_of_torch(model):
    x, y = model.our_batch, model.their_batch
    ours = burn.jvp(
        burn.grad(lambda p: model.our_loss(p, x)), (model.ours,), (model.our_direction,)
    )
    theirs = torch.func.jvp(
        torch.func.grad(lambda p: model.their_loss(p, y)), (model.theirs,), (model.their_direction,)
    )
    assert_same(ours, theirs)

    def slope(parameters):
        parts = burn.tree.map(
            lambda item, other: (item * other).sum(),
            burn.grad(model.our_loss)(parameters, x),
            model.our_direction,
        )
        return sum(burn.tree.leaves(parts))

    assert_same(burn.grad(slope)(model.ours), theirs[1])


def test_jacobians_are_those_of_torch(model):
    x, y = model.our_batch[0], model.their_batch[0]
    ours = burn.jacobian(model.our_outputs, (0, 1))(model.ours, x)
    assert_same(ours, torch.func.jacrev(model.their_outputs, (0, 1))(model.theirs, y))


def test_gradients_of_examples_are_those_of_torch(model):
    ours = burn.vmap(burn.grad(model.our_loss), in_axes=(None, 0))(model.ours, model.our_batch)
    theirs = torch.func.vmap(torch.func.grad(model.their_loss), in_dims=(None, 0))(
        model.theirs, model.their_batch
    )
    assert_same(ours, theirs)


def test_products_with_the_jacobian_are_those_of_torch(model):
    x, y = model.our_batch[0], model.their_batch[0]
    assert_same(
        burn.jvp(lambda p: model.our_outputs(p, x), (model.ours,), (model.our_direction,)),
        torch.func.jvp(
            lambda p: model.their_outputs(p, y), (model.theirs,), (model.their_direction,)
        ),
    )
    result, pullback = burn.vjp(lambda p: model.our_outputs(p, x), model.ours)
    expected, expected_pullback = torch.func.vjp(lambda p: model.their_outputs(p, y), model.theirs)
    assert_same(result, expected)
    assert_same(pullback(burn.cos(result)), expected_pullback(torch.cos(expected)))


def test_the_hessian_of_a_small_network_is_that_of_torch(device):
    model = Model("mlp", device)
    ours = burn.hessian(model.our_loss)(model.ours, model.our_batch)
    assert_same(ours, torch.func.hessian(model.their_loss)(model.theirs, model.their_batch))


def test_third_derivatives_are_those_of_torch(device):
    x = RANDOM.normal(size=3)

    def ours(x):
        return burn.sum(burn.exp(burn.sin(x)) * burn.flip(x) ** 3)

    def theirs(x):
        return torch.sum(torch.exp(torch.sin(x)) * torch.flip(x, (0,)) ** 3)

    assert_same(
        burn.jacobian(burn.hessian(ours))(double(x, device)),
        torch.func.jacrev(torch.func.hessian(theirs))(torch.tensor(x)),
    )


# Closed forms.

X = 0.7
TANH = np.tanh(X)
ORDERS = {
    "sin": (burn.sin, [np.sin(X), np.cos(X), -np.sin(X), -np.cos(X), np.sin(X)]),
    "exp": (burn.exp, [np.exp(X)] * 5),
    "log": (burn.log, [np.log(X), 1 / X, -1 / X**2, 2 / X**3, -6 / X**4]),
    "tanh": (
        burn.tanh,
        [
            TANH,
            1 - TANH**2,
            2 * TANH**3 - 2 * TANH,
            (1 - TANH**2) * (6 * TANH**2 - 2),
            (1 - TANH**2) * (16 * TANH - 24 * TANH**3),
        ],
    ),
    "power": (lambda x: x**5, [X**5, 5 * X**4, 20 * X**3, 60 * X**2, 120 * X]),
    "sqrt": (burn.sqrt, [X**0.5, X**-0.5 / 2, -(X**-1.5) / 4, 3 / 8 * X**-2.5, -15 / 16 * X**-3.5]),
}


@pytest.mark.parametrize("order", range(5))
@pytest.mark.parametrize("name", ORDERS)
def test_derivatives_to_fourth_order_are_the_closed_forms(name, order):
    function, expected = ORDERS[name]
    assert derivative(function, order)(double(X)).item() == pytest.approx(
        expected[order], rel=1e-12
    )


def test_mixed_derivatives_in_all_orders_of_arguments():
    def function(x, y):
        return burn.sin(x * y) * burn.exp(x)

    x, y = 0.3, 1.1
    # d/dx d/dy of sin(xy) exp(x), by hand.
    expected = np.exp(x) * ((1 + x) * np.cos(x * y) - x * y * np.sin(x * y))
    for first, second in ((0, 1), (1, 0), (-1, -2), (-2, -1)):
        mixed = burn.grad(burn.grad(function, first), second)
        assert mixed(double(x), double(y)).item() == pytest.approx(expected, rel=1e-12)


def test_jvp_and_vjp_of_each_other_are_of_higher_order():
    def tangent(x):
        return burn.jvp(burn.sin, (x,), (burn.ones_like(x),))[1]

    def pulled(x):
        y, pullback = burn.vjp(tangent, x)
        return pullback(burn.ones_like(y))[0]

    def third(x):
        return burn.jvp(pulled, (x,), (burn.ones_like(x),))[1]

    x = double([0.2, 0.9])
    np.testing.assert_allclose(tangent(x).numpy(), np.cos(x.numpy()), rtol=1e-13)
    np.testing.assert_allclose(pulled(x).numpy(), -np.sin(x.numpy()), rtol=1e-13)
    np.testing.assert_allclose(third(x).numpy(), -np.cos(x.numpy()), rtol=1e-13)


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_second_derivatives_on_every_device(device):
    x = tensor([0.5, 1.0], device)
    hessian = burn.hessian(lambda x: (burn.exp(x) * x).sum())(x)
    assert hessian.device is device
    expected = np.diag([np.exp(0.5) * 2.5, np.exp(1.0) * 3])
    np.testing.assert_allclose(hessian.numpy(), expected, rtol=1e-5, atol=1e-6)


# Perturbations are kept apart.


def test_derivatives_of_nested_functions_are_not_confused():
    assert burn.grad(lambda x: x * burn.grad(lambda y: x + y)(1.0))(2.0).item() == 1.0
    assert burn.grad(lambda x: x * burn.grad(lambda y: x * y)(1.0))(2.0).item() == 4.0
    inner = burn.grad(lambda x: burn.grad(lambda y: x * x * y * y)(x))
    assert inner(3.0).item() == 2 * 3 * 2 * 3 + 2 * 9  # d/dx of 2 x^2 y at y = x, all of x
    jvp = burn.jvp(lambda x: x * burn.jvp(lambda y: x + y, (2.0,), (1.0,))[1], (5.0,), (1.0,))
    assert [item.item() for item in jvp] == [5.0, 1.0]


def test_detached_values_are_constants_to_all_transforms():
    x = tensor([1.0, 2.0])
    assert burn.grad(lambda x: (x.detach() * x).sum())(x).tolist() == [1.0, 2.0]

    def outer(x):
        return burn.grad(lambda y: (y.detach() * x * y).sum())(x).sum()

    assert burn.grad(outer)(x).tolist() == [1.0, 2.0]
    examples = burn.vmap(burn.grad(lambda x: x.detach() * x))(x)
    assert examples.tolist() == [1.0, 2.0]
    weight = leaf([3.0, 4.0])
    gradient = burn.grad(lambda x: (weight.detach() * weight * x).sum())(x)
    assert weight.grad(gradient.sum().backward()).tolist() == [3.0, 4.0]


# Arguments and results.


class Pair(NamedTuple):
    first: object
    second: object


class Line:
    def __init__(self, slope, offset):
        self.slope, self.offset = slope, offset


burn.tree.register(
    Line, lambda line: ((line.slope, line.offset), None), lambda _, children: Line(*children)
)


def test_gradients_have_the_containers_of_the_argument():
    tree = {
        "list": [tensor([1.0, 2.0]), (tensor(3.0), None)],
        "pair": Pair(tensor(4.0), OrderedDict(a=tensor(5.0))),
        "line": Line(tensor(6.0), 7.0),
    }

    def function(tree):
        line = tree["line"]
        parts = [(leaf * leaf).sum() for leaf in burn.tree.leaves([tree["list"], tree["pair"]])]
        return sum(parts) + line.slope * line.offset

    gradients = burn.grad(function)(tree)
    assert burn.tree.flatten(gradients)[1] == burn.tree.flatten(tree)[1]
    assert gradients["list"][0].tolist() == [2.0, 4.0]
    assert gradients["pair"].second["a"].item() == 10.0
    assert isinstance(gradients["line"], Line)
    assert (gradients["line"].slope.item(), gradients["line"].offset.item()) == (7.0, 6.0)


def test_hessians_have_the_containers_twice():
    tree = {"a": tensor([1.0, 2.0]), "b": [tensor(3.0)]}
    hessian = burn.hessian(lambda tree: (tree["a"] ** 2).sum() * tree["b"][0])(tree)
    assert hessian["a"]["a"].tolist() == [[6.0, 0.0], [0.0, 6.0]]
    assert hessian["a"]["b"][0].tolist() == [2.0, 4.0]
    assert hessian["b"][0]["a"].tolist() == [2.0, 4.0]
    assert hessian["b"][0]["b"][0].tolist() == 0.0


def test_jacobians_have_the_containers_of_the_result_and_then_of_the_argument():
    x, y = tensor([1.0, 2.0]), tensor([[1.0, 0.0, 2.0]])
    found = burn.jacobian(lambda x, y: {"sum": x.sum() * y, "none": None, "x": [x * x]}, (1, 0))(
        x, y
    )
    of_y, of_x = found["sum"]
    np.testing.assert_array_equal(of_y.numpy(), 3 * np.eye(3).reshape(1, 3, 1, 3))
    np.testing.assert_array_equal(of_x.numpy(), np.repeat(y.numpy()[..., None], 2, -1))
    assert found["none"] is None
    assert found["x"][0][1].tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert burn.jacobian(lambda x: x[:0])(x).shape == (0, 2)
    assert burn.jacobian(lambda x: tensor([1.0, 2.0, 3.0]))(x).tolist() == [[0.0, 0.0]] * 3
    assert burn.jacobian(lambda x: (x * 2).astype("float64"))(x).dtype is burn.float32


def test_arguments_are_chosen_by_their_positions():
    def function(x, y, *, scale):
        return x * y * y * scale

    def gradients(argnums):
        found = burn.grad(function, argnums)(2.0, 3.0, scale=10.0)
        return tuple(item.item() for item in found) if isinstance(found, tuple) else found.item()

    assert gradients(0) == 90.0
    assert gradients(1) == gradients(-1) == 120.0
    assert gradients((0,)) == gradients([0]) == (90.0,)
    assert gradients((1, 0)) == gradients((-1, -2)) == (120.0, 90.0)


def test_other_arguments_are_handed_on_as_they_are():
    def function(x, flag, *, name):
        assert flag is marker
        assert name == "n"
        return (x * x).sum()

    marker = object()
    assert burn.grad(function)(tensor([1.0]), marker, name="n").tolist() == [2.0]


def test_numbers_are_arguments_too():
    assert burn.grad(lambda x: x**3)(2.0).item() == 12.0
    assert burn.grad(lambda x: x**3)(np.float32(2.0)).item() == 12.0
    value, gradient = burn.value_and_grad(burn.sin)(0.0)
    assert (value.item(), gradient.item()) == (0.0, 1.0)


def test_auxiliary_results_come_out_as_the_caller_knows_tensors():
    x = tensor([1.0, 2.0])

    def function(x):
        return (x * x).sum(), {"y": x * 2, "name": "n", "index": x.argmax()}

    gradient, aux = burn.grad(function, has_aux=True)(x)
    assert gradient.tolist() == [2.0, 4.0]
    assert aux["y"].tolist() == [2.0, 4.0]
    assert aux["y"].device is CPU
    assert not aux["y"].is_tracked
    assert (aux["name"], aux["index"].item()) == ("n", 1)
    (value, aux), gradient = burn.value_and_grad(function, has_aux=True)(x)
    assert (value.item(), aux["index"].item()) == (5.0, 1)
    _, pullback, _ = burn.vjp(function, x, has_aux=True)
    assert pullback(2.0)[0].tolist() == [4.0, 8.0]
    second = burn.grad(lambda x: burn.grad(function, has_aux=True)(x)[1]["y"].sum())
    assert second(x).tolist() == [2.0, 2.0]


def test_constants_come_out_of_gradients_inside_a_batch():
    rows = tensor([[1.0, 2.0], [4.0, 3.0]])

    def function(x):
        return (x * x).sum(), {"index": burn.argmax(x), "detached": x.detach() * 2}

    gradient, aux = burn.vmap(burn.grad(function, has_aux=True))(rows)
    assert gradient.tolist() == (rows * 2).tolist()
    assert aux["index"].tolist() == [1, 0]
    assert aux["detached"].tolist() == (rows * 2).tolist()
    signs = burn.vmap(lambda x: burn.vjp(lambda x: burn.argmax(x), x)[0])(rows)
    assert signs.tolist() == [1, 0]


def test_a_pullback_is_called_as_often_as_one_likes():
    x = tensor([1.0, 2.0])
    result, pullback = burn.vjp(lambda x, y: [x * y, x.sum()], x, x)
    assert [tensor.tolist() for tensor in result] == [[1.0, 4.0], 3.0]
    assert [tensor.tolist() for tensor in pullback([x, 1.0])] == [[2.0, 5.0], [1.0, 4.0]]
    assert [tensor.tolist() for tensor in pullback([None, 2.0])] == [[2.0, 2.0], [0.0, 0.0]]
    assert [tensor.tolist() for tensor in pullback([None, None])] == [[0.0, 0.0]] * 2
    twice = burn.grad(lambda g: (pullback([g, 1.0])[0] * x).sum())(x)
    assert twice.tolist() == [1.0, 4.0]


def test_a_gradient_of_nothing_is_zero():
    assert burn.grad(lambda x: tensor(1.0))(tensor([1.0, 2.0])).tolist() == [0.0, 0.0]
    assert burn.grad(lambda x, y: x * 2, (0, 1))(1.0, 2.0)[1].item() == 0.0


def test_names_and_docstrings_are_those_of_the_function():
    def function(x):
        """What it does."""
        return x

    for transform in (burn.grad, burn.value_and_grad, burn.jacobian, burn.hessian, burn.vmap):
        made = transform(function)
        assert (made.__name__, made.__doc__) == ("function", "What it does.")
    assert burn.checkpoint(function).__name__ == "function"


# Devices and leaves.


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_results_are_on_the_device_of_the_arguments(device):
    for item in (device, device.autodiff(), device.autodiff().gradient_checkpointing()):
        inside = []

        def function(x, inside=inside):
            inside.append(x.device)
            return burn.tanh(x * x).sum()

        value, gradient = burn.value_and_grad(function)(tensor([0.5, 1.0], item))
        assert str(value.device) == str(gradient.device) == str(item)
        assert not gradient.is_tracked
        assert inside[0].is_checkpointing is item.is_checkpointing
        expected = (1 - np.tanh([0.25, 1.0]) ** 2) * [1.0, 2.0]
        np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-5)


def test_gradients_of_leaves_outside_go_through_gradients():
    weight, x = leaf([3.0, 4.0]), tensor([1.0, 2.0])
    value, gradient = burn.value_and_grad(lambda x: (weight * x * x).sum())(x)
    assert gradient.is_tracked
    penalty = value + (gradient * gradient).sum()
    found = weight.grad(penalty.backward())
    assert found.tolist() == [1 + 8 * 3 * 1, 4 + 8 * 4 * 4]


def test_a_leaf_may_be_the_argument():
    x = leaf([1.0, 2.0])
    gradient = burn.grad(lambda x: (x**3).sum())(x)
    assert gradient.is_tracked
    assert x.grad(gradient.sum().backward()).tolist() == [6.0, 12.0]
    hessian = burn.hessian(lambda x: (x**3).sum())(x)
    assert x.grad(hessian.sum().backward()).tolist() == [6.0, 6.0]


def test_no_grad_outside_gives_values_and_inside_constants():
    weight, x = leaf([3.0, 4.0]), tensor([1.0, 2.0])
    with burn.no_grad():
        gradient = burn.grad(lambda x: (weight * x * x).sum())(x)
        assert gradient.tolist() == [6.0, 16.0]
        assert not gradient.is_tracked
        _, tangent = burn.jvp(lambda x: weight * x * x, (x,), (x,))
        assert tangent.tolist() == [6.0, 32.0]
        assert not tangent.is_tracked

    def function(x):
        with burn.no_grad():
            y = x * x
        return (y * x).sum()

    assert burn.grad(function)(x).tolist() == [1.0, 4.0]


def test_a_copy_of_a_device_is_the_device_inside_of_a_function_too():
    def function(x):
        assert copy.deepcopy({"device": x.device})["device"] is copy.copy(x.device) is x.device
        return x * x

    assert burn.grad(function)(3.0).item() == 6.0


def test_tensors_of_two_devices_in_one_function():
    x, y = tensor([1.0, 2.0]), tensor([3.0, 4.0], "torch/cpu")

    def function(x, y):
        return (x * y.to_device("cpu")).sum() + (
            burn.sin(x.to_device("torch/cpu")) * y
        ).sum().to_device("cpu")

    of_x, of_y = burn.grad(function, (0, 1))(x, y)
    assert (of_x.device.name, of_y.device.name) == ("cpu:0", "torch/cpu:0")
    np.testing.assert_allclose(of_x.numpy(), y.numpy() * (1 + np.cos(x.numpy())), rtol=1e-6)
    np.testing.assert_allclose(of_y.numpy(), x.numpy() + np.sin(x.numpy()), rtol=1e-6)
    with pytest.raises(burn.DeviceMismatchError, match="Move one of them"):
        burn.grad(lambda x: (x * y).sum())(x)


# Threads, tasks, generators, exceptions.


def test_transforms_belong_to_their_thread_and_task():
    started, seen = threading.Barrier(2), []

    def function(x):
        started.wait(10)
        seen.append(len(transforms()))
        return (x * x).sum()

    results = []

    def work():
        results.append(burn.grad(burn.grad(lambda x: x * function(x)))(2.0).item())

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [12.0, 12.0]
    assert seen == [2, 2]

    async def step(x):
        await asyncio.sleep(0)
        gradient = burn.grad(lambda x: (x * x).sum())(x)
        await asyncio.sleep(0)
        assert transforms() == ()
        return gradient

    async def all_steps():
        return await asyncio.gather(*[step(tensor([float(n)])) for n in range(4)])

    assert [item.item() for item in asyncio.run(all_steps())] == [0.0, 2.0, 4.0, 6.0]


def test_a_new_thread_inside_knows_no_transforms_but_its_results_are_constants():
    x = tensor([1.0, 2.0])

    def function(x):
        found = []
        thread = threading.Thread(target=lambda: found.append(len(transforms())))
        thread.start()
        thread.join()
        assert found == [0]
        copied = contextvars.copy_context()
        assert copied.run(lambda: len(transforms())) == 1
        return (x * x).sum()

    assert burn.grad(function)(x).tolist() == [2.0, 4.0]


def test_generators_run_with_the_transforms_of_the_caller():
    def powers(x):
        y = x
        while True:
            yield y
            y = y * x

    generator = None

    def function(x):
        nonlocal generator
        generator = powers(x)
        return sum(next(generator) for _ in range(3))

    assert burn.grad(function)(2.0).item() == 1 + 4 + 12
    assert transforms() == ()
    next(generator)


def test_the_state_is_restored_after_an_exception():
    class MineError(Exception):
        pass

    def fail(x):
        raise MineError

    x = tensor([1.0])
    calls = [
        lambda: burn.grad(fail)(x),
        lambda: burn.vjp(fail, x),
        lambda: burn.jvp(fail, (x,), (x,)),
        lambda: burn.jacobian(fail)(x),
        lambda: burn.hessian(fail)(x),
        lambda: burn.grad(lambda x: burn.vmap(fail)(x).sum())(x),
        lambda: burn.grad(lambda x: burn.checkpoint(fail)(x).sum())(x),
    ]
    for call in calls:
        with pytest.raises(MineError):
            call()
        assert transforms() == ()
        assert burn.ones(1).device.layers == ()
    assert burn.grad(lambda x: x * x)(3.0).item() == 6.0


# Writes, and tensors that are kept.


def test_writes_inside_leave_the_tensors_of_the_caller_alone():
    x = tensor([1.0, 2.0])

    def function(x):
        x[0] = 5.0
        x += x
        return (x * x).sum()

    assert burn.grad(function)(x).tolist() == [0.0, 16.0]
    assert x.tolist() == [1.0, 2.0]
    weight = leaf([1.0, 2.0])
    assert burn.grad(function)(weight).tolist() == [0.0, 16.0]
    assert weight.tolist() == [1.0, 2.0]

    def made_inside(x):
        made = burn.zeros(3, device=CPU)
        made[1:] = x * x
        return (made * made).sum()

    assert burn.grad(made_inside)(x).tolist() == [4.0, 32.0]


@pytest.mark.parametrize("device", [CPU, AUTODIFF], ids=str)
def test_writes_of_results_to_tensors_from_outside_are_errors(device):
    outside, x = tensor([1.0, 2.0], device), tensor([3.0, 4.0])

    def function(x):
        outside[0] = x[0]
        return (x * outside).sum()

    with pytest.raises(burn.AutodiffError, match=r"burn\.grad computes to a tensor from outside"):
        burn.grad(function)(x)
    assert outside.tolist() == [1.0, 2.0]


def test_tensors_that_are_kept_do_not_mix_with_other_transforms():
    kept, x = [], tensor([1.0, 2.0])
    burn.grad(lambda x: (kept.append(x), (x * x).sum())[1])(x)
    assert kept[0].tolist() == [1.0, 2.0]
    with pytest.raises(burn.AutodiffError):
        burn.grad(lambda x: (x * kept[0]).sum())(x)
    with pytest.raises(burn.DeviceMismatchError, match="belong to two transforms"):
        burn.vmap(lambda x: x + kept[0].sum())(x)
    # One whose graph lives on is a constant to others.
    burn.vjp(lambda x: (kept.append(x * 1), x * x)[1], x)
    assert burn.grad(lambda x: (x * kept[1]).sum())(x).tolist() == [1.0, 2.0]


def test_an_argument_that_belongs_to_another_transform_is_an_error():
    kept, x = [], tensor([1.0, 2.0])
    burn.vjp(lambda x: (kept.append(x), x * x)[1], x)
    message = r"belongs to a transform that does not run here.*copy_context"
    for call in (
        lambda: burn.grad(lambda x: (x * x).sum())(kept[0]),
        lambda: burn.vjp(burn.sin, kept[0]),
        lambda: burn.vmap(burn.sin)(kept[0]),
    ):
        with pytest.raises(burn.AutodiffError, match=message):
            call()

    def in_a_thread(x, context):
        found = []
        work = functools.partial(burn.grad(lambda y: (y * y * x).sum()), x)
        thread = threading.Thread(target=lambda: found.append(context.run(work)))
        thread.start()
        thread.join()
        return found[0].sum()

    # d/dx of 2 * x * x
    gradient = burn.grad(lambda x: in_a_thread(x, contextvars.copy_context()))(x)
    assert gradient.tolist() == [4.0, 8.0]


def test_backward_inside_of_a_transform_is_an_error():
    for function in (
        lambda x: (x * x).sum().backward(),
        lambda x: (leaf([1.0]) * x).sum().backward(),
    ):
        with pytest.raises(burn.AutodiffError, match=r"burn\.grad or burn\.vjp"):
            burn.grad(function)(tensor([1.0]))


# Refusals.


def square(x):
    return (x * x).sum()


def product(x, y):
    return (x * y).sum()


MISUSES = {
    "a tensor": (lambda x: burn.grad(square(x), x), "grad: takes a function, not .* type Tensor"),
    "no arguments": (lambda x: burn.grad(lambda: x)(), "no argument 0 among 0 positional"),
    "a keyword": (lambda x: burn.grad(square)(x=x), "keyword arguments are constants"),
    "no such argument": (lambda x: burn.grad(square, 1)(x), "no argument 1 among 1 positional"),
    "a bool": (lambda x: burn.grad(square, True)(x), "no argument True among"),
    "a name": (lambda x: burn.grad(square, "x")(x), "argnums is 'x'"),
    "an argument twice": (lambda x: burn.grad(product, (0, -2))(x, x), "has an argument twice"),
    "an int": (lambda x: burn.grad(lambda x: x * x)(3), "argument 0 is an object of type int"),
    "an array": (lambda x: burn.grad(square)(x.numpy()), "type ndarray.*Pass float tensors"),
    "a text in a list": (lambda x: burn.grad(square)([x, "a"]), r"argument 0\[1\] is an object of"),
    "integers in a second argument": (
        lambda x: burn.grad(product, (0, 1))(x, [x, x.astype("int32")]),
        r"argument 1\[1\] is a tensor of int32",
    ),
    "integers": (lambda x: burn.grad(square)(x.astype("int32")), "tensor of int32; only float"),
    "complex numbers": (
        lambda x: burn.grad(lambda x: burn.real(x).sum())(x.astype("complex64")),
        "argument 0 is a tensor of complex64",
    ),
    "several elements": (lambda x: burn.grad(burn.sin)(x), r"shape \(2,\), not one number.*\.sum"),
    "a pair": (lambda x: burn.grad(lambda x: (square(x), x))(x), "returns a tuple.*has_aux"),
    "nothing": (lambda x: burn.grad(lambda x: None)(x), "not one tensor"),
    "a number": (lambda x: burn.grad(lambda x: 3.0)(x), "result is an object of type float"),
    "an integer result": (lambda x: burn.grad(burn.argmax)(x), "returns int64; only floats"),
    "no pair": (lambda x: burn.grad(square, has_aux=True)(x), "With has_aux it returns a pair"),
    "a Hessian of several": (lambda x: burn.hessian(burn.sin)(x), "not one number"),
    "a Jacobian of integers": (lambda x: burn.jacobian(burn.argmax)(x), "jacobian: .*int64; only"),
    "a jvp of integers": (lambda x: burn.jvp(burn.argmax, (x,), (x,)), "jvp: .*int64; only"),
    "primals": (lambda x: burn.jvp(square, x, x), r"primals is .* Tensor.*burn\.jvp\(function, \("),
    "tangents": (lambda x: burn.jvp(square, (x,), x), "tangents is an object of type Tensor"),
    "too many tangents": (
        lambda x: burn.jvp(square, (x,), (x, x)),
        "a tuple of 2 where a tuple of 1",
    ),
    "the shape of a tangent": (
        lambda x: burn.jvp(square, (x,), (burn.ones(3, device=CPU),)),
        r"tangents\[0\] is float32\[3\], and the argument float32\[2\]",
    ),
    "the dtype of a tangent": (
        lambda x: burn.jvp(square, (x,), (x.astype("float64"),)),
        r"tangents\[0\] is float64\[2\], and the argument float32\[2\]",
    ),
    "containers of gradients": (
        lambda x: burn.vjp(lambda x: (x, x), x)[1](x),
        "vjp: Tensor where a tuple of 2 is expected",
    ),
    "the shape of a gradient": (
        lambda x: burn.vjp(burn.sin, x)[1](burn.ones(3, device=CPU)),
        r"vjp: gradient 0 .*3.*, and the result .*2",
    ),
    "the dtype of a gradient": (
        lambda x: burn.vjp(burn.sin, x)[1](x.astype("float64")),
        "vjp: gradient 0 .*float64.*, and the result .*float32",
    ),
    "an array for a gradient": (
        lambda x: burn.vjp(burn.sin, x)[1](x.numpy()),
        "vjp: gradient 0 is an object of type ndarray",
    ),
    "pickling inside": (
        lambda x: burn.grad(lambda x: [pickle.dumps(x), square(x)][1])(x),
        "would lose its graph",
    ),
    "NumPy inside": (lambda x: burn.grad(lambda x: x.numpy().sum())(x), "would drop its gradient"),
}


@pytest.mark.parametrize("name", MISUSES)
def test_errors_say_what_is_wrong(name):
    function, message = MISUSES[name]
    with pytest.raises(burn.BurnError, match=message):
        function(tensor([1.0, 2.0]))


# Long runs.


def grad_of_grad(x):
    return burn.grad(burn.grad(lambda x: burn.sin(x) * x))(x)


def pulled(x):
    y, pullback = burn.vjp(lambda x: burn.sin(x) * x, x)
    return pullback(y)[0]


def pushed(x):
    return burn.jvp(burn.sin, (x,), (x,))[1]


def test_many_gradients_of_gradients_leave_nothing_behind(many):
    x = tensor(0.5)
    assert_no_growth(lambda: grad_of_grad(x), many)


@pytest.mark.parametrize("function", [pulled, pushed], ids=lambda item: item.__name__)
def test_many_steps_leave_nothing_behind(function, many):
    x = tensor(0.5)
    assert_no_growth(lambda: function(x), many)


def assert_no_growth(step, count):
    """Without the collector, steps add less than two blocks of memory each, and no cycle."""
    gc.collect()
    gc.disable()
    try:
        for _ in range(50):
            step()
        before = sys.getallocatedblocks()
        for _ in range(count):
            step()
        # CPython keeps up to 2000 tuples of a length for later.
        assert sys.getallocatedblocks() - before < 3000
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_numbers_of_numpy_are_numbers():
    x, y = tensor([1.0, 2.0]), tensor([3.0, 4.0])
    product = lambda x, y: (x * y).sum()  # noqa: E731 — a name for two calls
    assert burn.grad(product, np.int64(1))(x, y).tolist() == [1.0, 2.0]
    first, second = burn.grad(product, (np.int32(0), 1), has_aux=np.False_)(x, y)
    assert (first.tolist(), second.tolist()) == ([3.0, 4.0], [1.0, 2.0])
    assert burn.vmap(lambda x: x, np.int64(0), np.int8(0), fallback=np.True_)(x).tolist() == [1, 2]
    assert burn.grad(burn.sin)(np.float32(0.0)).item() == 1.0
    with pytest.raises(burn.ArgumentError, match="argnums is None"):
        burn.grad(product, None)(x, y)


def test_a_number_is_on_the_device_of_the_tensors():
    x = tensor([1.0, 2.0], "torch/cpu")
    gradients = burn.grad(lambda scale, x: (scale * x).sum(), (0, 1))(2.0, x)
    assert [gradient.device.name for gradient in gradients] == ["torch/cpu:0"] * 2
    assert gradients[0].item() == 3.0
