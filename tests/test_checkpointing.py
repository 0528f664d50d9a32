"""Gradient checkpointing: the same gradients, with less kept for them."""

import pickle
import tracemalloc

import numpy as np
import pytest

import burn
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


def kept_by(device):
    """Bytes that a chain of cheap ops keeps for its backward pass."""
    x = burn.ones(100_000, device=device).require_grad()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    y = x
    for _ in range(20):
        y = burn.tanh(y * 1.01)
    total = y.sum()
    del y
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    gradients = total.backward()
    return after - before, x.grad(gradients)


def test_outputs_of_memory_bound_ops_are_not_kept():
    plain, expected = kept_by(PLAIN)
    little, gradient = kept_by(CHECKPOINTING)
    assert plain > 20 * 400_000
    assert little < 400_000
    assert gradient.tolist() == expected.tolist()


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
