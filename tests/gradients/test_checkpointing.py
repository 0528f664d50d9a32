"""Gradient checkpointing: the same gradients, with less kept for them."""

import pickle
import tracemalloc
from functools import partial

import numpy as np
import pytest

import burn
from burn.autodiff import Autodiff
from burn.nn import functional as F

CPU = burn.Device("cpu")
PLAIN = CPU.autodiff()
CHECKPOINTING = PLAIN.gradient_checkpointing()


def network(device, dtype="float64"):
    generator = np.random.default_rng(0)

    def leaf(*shape):
        return burn.asarray(generator.normal(size=shape), dtype=dtype, device=device).require_grad()

    x, w, b = leaf(6, 8), leaf(8, 4), leaf(4)
    h = F.gelu(x @ w + b) * F.sigmoid(x @ w)
    h = burn.concat([burn.exp(-(h * h)), h.reshape((6, 4))], axis=1)
    h = F.softmax(h, axis=1) + burn.tanh(h[:, ::-1]).astype("float32").astype(dtype)
    indices = burn.asarray([0, 3, 3], device=CPU)
    loss = F.cross_entropy(burn.take(h, indices, axis=0), indices)
    return [x, w, b], loss + burn.maximum(h, 0.1).mean() + burn.prod(h, axis=0).sum()


def test_gradients_are_those_without_checkpointing_to_the_last_bit():
    results = []
    for device in (PLAIN, CHECKPOINTING):
        leaves, loss = network(device)
        gradients = loss.backward()
        results.append([leaf.grad(gradients).tolist() for leaf in leaves])
    assert results[0] == results[1]


def test_a_retained_graph_gives_the_same_gradients_again():
    parameters, loss = network(CHECKPOINTING)
    first, second = loss.backward(retain_graph=True), loss.backward()
    for parameter in parameters:
        assert parameter.grad(first).tolist() == parameter.grad(second).tolist()


def memory_of(work):
    """Bytes that are kept as long as the result of a function is, and the most that it used."""
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    result = work()
    after, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del result
    return after - before, peak - before


def leaves(device, *shapes, dtype="float32"):
    generator = np.random.default_rng(0)
    return [
        burn.asarray(generator.normal(size=shape), dtype=dtype, device=device).require_grad()
        for shape in shapes
    ]


def test_outputs_of_memory_bound_ops_are_not_kept():
    def chain(device):
        x = burn.ones(100_000, device=device).require_grad()
        y = x
        for _ in range(20):
            y = burn.tanh(y * 1.01)
        return x, y.sum()

    assert memory_of(lambda: chain(PLAIN))[0] > 20 * 400_000
    assert memory_of(lambda: chain(CHECKPOINTING))[0] < 2 * 400_000
    gradients = [
        x.grad(total.backward()).tolist() for x, total in map(chain, (PLAIN, CHECKPOINTING))
    ]
    assert gradients[0] == gradients[1]


SIDE = 200
BYTES = 4 * SIDE * SIDE  # of a matrix


def product_and_softmax(x, w):
    return F.softmax(x @ w, axis=1) @ w


def product_and_relu(x, w):
    return F.relu(x @ w) @ w


def columns_of_a_product(x, w):
    return burn.sin((x @ w)[:, :10])


def sums_along_a_network(x, w):
    for _ in range(6):
        x = x + F.layer_norm(x) @ w
    return x


def mixed_precision(x, w):
    return burn.tanh((x.astype("float16") @ w.astype("float16")).astype("float32"))


def several_uses(x, w):
    h = burn.concat([x @ w, burn.exp(x) * x], axis=1)
    return F.gelu(h) * F.sigmoid(h) + burn.maximum(h, 0.0) * 2.0


def channels(x, w):
    statistics = burn.zeros(20, device=x.device)
    return F.batch_norm_training((x @ w).reshape((10, 20, 200)), statistics, statistics).output


NETWORKS = [
    product_and_softmax,
    product_and_relu,
    columns_of_a_product,
    sums_along_a_network,
    mixed_precision,
    several_uses,
    channels,
]


@pytest.mark.parametrize("network", NETWORKS)
def test_nothing_is_kept_that_would_not_be_kept_without_checkpointing(network):
    def loss(device):
        x, w = leaves(device, (SIDE, SIDE), (SIDE, SIDE))
        return x, w, (network(x, w) ** 2).mean()

    found = []
    for device in (PLAIN, CHECKPOINTING):
        x, w, total = loss(device)
        gradients = total.backward()
        found.append([x.grad(gradients).tolist(), w.grad(gradients).tolist()])
    assert found[0] == found[1]
    plain, balanced = (memory_of(partial(loss, item))[0] for item in (PLAIN, CHECKPOINTING))
    assert balanced < plain + BYTES / 10


class Counting(type(CPU.backend)):
    """Counts the calls of two functions."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def relu(self, x):
        self.calls.append("relu")
        return self.ops.decomposed("relu", x)

    def gelu(self, x, **attributes):
        self.calls.append("gelu")
        return self.ops.decomposed("gelu", x, **attributes)


def test_a_value_is_computed_again_once_and_only_if_that_keeps_less():
    backend = Counting()
    autodiff = Autodiff(backend)
    ops = autodiff.for_device(CPU.id, checkpointing=True)
    w = autodiff.require_grad(np.eye(8), CPU.id)
    # The rule of relu saves its output: keeping the product as well would be for nothing.
    h = ops.relu(ops.matmul(np.ones((8, 8)), w))
    # The product is the operand that the rule of gelu saves: two rules get the output from it.
    x = ops.matmul(h, w)
    y = ops.gelu(x)
    y = ops.multiply(ops.multiply(y, y), y)
    loss = ops.sum(y, axis=(0, 1), keepdims=False, dtype=burn.float64)
    assert backend.calls == ["relu", "gelu"]
    autodiff.backward(loss)
    assert backend.calls == ["relu", "gelu", "gelu"]


def training(device, layers=12, batch=128, width=64):
    """Steps of gradient descent, written as `docs/users/autodiff.md` does."""
    x, target = (leaf.inner() for leaf in leaves(device, (batch, width), (batch, width)))
    shapes = [(width, width), (width,), (width,), (width,)] * layers
    parameters = leaves(device, *shapes)

    def step():
        h = burn.Tensor.from_inner(x, device)
        for weight, bias, gamma, beta in zip(*[iter(parameters)] * 4, strict=True):
            h = F.layer_norm(F.gelu(F.linear(h, weight, bias)), gamma, beta)
        loss = F.mse_loss(h, target)
        del h
        gradients = loss.backward()
        for index, parameter in enumerate(parameters):
            value = parameter.inner() - 0.01 * parameter.grad_remove(gradients)
            parameters[index] = burn.Tensor.from_inner(value, device).require_grad()

    return step


def test_every_step_of_a_training_keeps_less():
    peaks = []
    for device in (PLAIN, CHECKPOINTING):
        step = training(device)
        step()
        peaks.append([memory_of(step)[1] for _ in range(3)])
    assert max(peaks[1]) < 0.6 * min(peaks[0])


def test_long_chains_of_recipes_need_no_recursion():
    x = burn.ones(1, dtype="float64", device=CHECKPOINTING).require_grad()
    y = x
    for _ in range(20_000):
        y = burn.sin(y)
    assert x.grad(y.sum().backward()).shape == (1,)


def test_the_handle_is_interned_and_survives_pickling():
    assert PLAIN.gradient_checkpointing() is CHECKPOINTING
    assert CHECKPOINTING.gradient_checkpointing() is CHECKPOINTING
    assert CHECKPOINTING == CPU
    assert pickle.loads(pickle.dumps(CHECKPOINTING)) is CHECKPOINTING
    assert str(CHECKPOINTING) == "autodiff<cpu:0, checkpointing>"
    with pytest.raises(burn.ArgumentError, match="no autodiff"):
        CPU.gradient_checkpointing()
    with pytest.raises(burn.ArgumentError, match="autodiff already"):
        CHECKPOINTING.autodiff()


def test_tracked_tensors_of_two_strategies_do_not_mix():
    x = burn.ones(2, device=PLAIN).require_grad()
    y = burn.ones(2, device=CHECKPOINTING).require_grad()
    for mix in (lambda: x * y, lambda: burn.concat([y, x]), lambda: burn.where(x > 0, x, y)):
        with pytest.raises(burn.AutodiffError, match="two strategies") as caught:
            mix()
        assert str(PLAIN) in str(caught.value)
        assert str(CHECKPOINTING) in str(caught.value)
    gradients = (burn.exp(x).to_device(CHECKPOINTING) * burn.exp(y)).sum().backward()
    assert x.grad(gradients).tolist() == pytest.approx([np.e**2] * 2)
    assert y.grad(gradients).tolist() == pytest.approx([np.e**2] * 2)


@pytest.mark.parametrize(("tracking", "other"), [(PLAIN, CHECKPOINTING), (CHECKPOINTING, PLAIN)])
def test_an_untracked_operand_follows_the_tracked_one(tracking, other):
    x = burn.ones(2, device=tracking).require_grad()
    for y in (burn.ones(2, device=other), burn.ones(2, device=tracking.inner())):
        for result in (x * y, y * x, burn.where(y > 0, y, x), burn.concat([y, x])):
            assert result.device is tracking


def test_what_a_transform_tracks_follows_leaves_outside():
    def penalty(weight, x):
        gradient = burn.vmap(burn.grad(lambda x: burn.tanh(x * weight).sum()))(x)
        value = burn.jvp(lambda x: burn.exp(x * weight), (x,), (gradient,))[1]
        assert gradient.device is value.device is weight.device
        return weight.grad((gradient * value * weight).sum().backward()).tolist()

    constants = [burn.ones((3, 2), device=item) for item in (PLAIN.inner(), PLAIN, CHECKPOINTING)]
    results = [
        penalty(burn.asarray([0.5, 2.0], device=tracking).require_grad(), x)
        for tracking in (PLAIN, CHECKPOINTING)
        for x in constants
    ]
    assert results == [results[0]] * 6


def test_transforms_of_arguments_of_two_strategies_checkpoint():
    def inner(x, y):
        return burn.grad(lambda y: (x * x * y * y).sum())(y)

    x, y = burn.ones(2, device=PLAIN), burn.ones(2, device=CHECKPOINTING)
    for function, arguments in ((inner, (x, y)), (inner, (y, x))):
        jacobian = burn.jacobian(function)(*arguments)
        assert jacobian.tolist() == [[4.0, 0.0], [0.0, 4.0]]
        assert jacobian.device is CHECKPOINTING


def test_the_strategy_is_that_of_the_device_a_tensor_returns_to():
    gradient = burn.ones(2, device=CHECKPOINTING.inner())
    assert burn.Tensor.from_inner(gradient, CHECKPOINTING).device is CHECKPOINTING
    assert burn.Tensor.from_inner(gradient).device is PLAIN
    leaf = burn.ones(2, device=CHECKPOINTING).require_grad()
    assert burn.Tensor.from_inner(leaf).device is CHECKPOINTING
    assert not burn.Tensor.from_inner(leaf).is_tracked
    assert leaf.to_device(CHECKPOINTING) is leaf
    assert burn.asarray(leaf, device=CHECKPOINTING).device is CHECKPOINTING
    assert burn.asarray(gradient, device=CHECKPOINTING).device is CHECKPOINTING
    with pytest.raises(burn.ArgumentError, match="not below"):
        burn.Tensor.from_inner(gradient, CHECKPOINTING.inner())
    with pytest.raises(burn.DeviceMismatchError, match="other hardware"):
        burn.Tensor.from_inner(gradient, "autodiff<torch/cpu>")


def test_a_device_and_a_tensor_show_the_strategy():
    assert CHECKPOINTING.gradient_checkpointing_strategy == "balanced"
    assert PLAIN.gradient_checkpointing_strategy is None
    for device in (PLAIN, CHECKPOINTING):
        assert repr(device) == f"Device({str(device)!r})"
        assert burn.Device(str(device)) is device
        assert repr(str(device)) in repr(burn.ones(2, device=device))
