"""Dropout: what it drops, how often, its gradients, and the same draws on every device."""

import math

import numpy as np
import pytest
import torch

import burn
from burn.generator import get_state
from burn.nn import functional as F

CPU = burn.Device("cpu")
DEVICES = [device for device in burn.Device.enumerate() if device.supports_dtype(burn.float32)]
CHANNELS = {
    "dropout1d": (F.dropout1d, 1, (40, 30, 3)),
    "dropout2d": (F.dropout2d, 2, (40, 30, 2, 3)),
    "dropout3d": (F.dropout3d, 3, (40, 30, 2, 1, 3)),
}


def values(*shape):
    return np.random.default_rng(3).normal(size=shape) + 3.0


def drawn(function, array, seed=0, **options):
    device = burn.Device(options.pop("device", CPU))
    device.seed(seed)
    x = burn.asarray(array, device=device)
    return function(x, **options).numpy()


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_an_element_is_dropped_with_the_probability_and_else_scaled(p, dtype):
    count = 200_000
    CPU.seed(4)
    result = F.dropout(burn.ones(count, dtype=dtype, device=CPU), p)
    assert result.dtype is burn.DType.of(dtype)
    numbers = result.astype("float64").numpy()
    scale = burn.asarray(1.0 / (1.0 - p), dtype=dtype, device=CPU).item()
    assert set(numbers.tolist()) == {0.0, scale}
    share = (numbers == 0.0).mean()
    # Five deviations of the mean: an error of the probability of 0.004 would show.
    assert abs(share - p) < 5.0 * math.sqrt(p * (1.0 - p) / count)


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("name", ["dropout", *CHANNELS])
def test_every_device_drops_the_same_elements_for_a_seed(name, device):
    function, _, shape = CHANNELS.get(name, (F.dropout, 0, (60, 7)))
    array = values(*shape).astype(np.float32)
    expected = drawn(function, array, 5, p=0.3)
    found = drawn(function, array, 5, p=0.3, device=device)
    np.testing.assert_array_equal(found == 0.0, expected == 0.0)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert (drawn(function, array, 6, p=0.3, device=device) != found).any()


@pytest.mark.parametrize("name", CHANNELS)
def test_a_channel_is_dropped_as_a_whole(name):
    function, axis_count, shape = CHANNELS[name]
    array = values(*shape)
    found = drawn(function, array, p=0.25)
    axes = tuple(range(-axis_count, 0))
    kept = (found != 0.0).any(axis=axes, keepdims=True)
    np.testing.assert_allclose(found, np.where(kept, array / 0.75, 0.0))
    assert 0.15 < 1.0 - kept.mean() < 0.35
    # Without the batch too.
    assert drawn(function, array[0], p=0.25).shape == shape[1:]
    with pytest.raises(burn.ShapeError, match=f"{name}: .* has no channels"):
        function(burn.ones(shape[-axis_count:], device=CPU))


ALL = {"dropout": F.dropout, "alpha_dropout": F.alpha_dropout} | {
    name: function for name, (function, _, _) in CHANNELS.items()
}


@pytest.mark.parametrize("name", ALL)
def test_without_training_or_probability_it_is_the_tensor_itself_and_draws_nothing(name):
    x = burn.ones((2, 2, 2, 2, 2), device=CPU)
    before = get_state(CPU.generator)
    assert ALL[name](x, training=False) is x
    assert ALL[name](x, 0.0) is x
    assert ALL[name](x, 1.0, training=False) is x
    assert get_state(CPU.generator) == before
    assert not ALL[name](x, 1.0).numpy().any()


@pytest.mark.parametrize("name", ALL)
def test_a_probability_is_between_0_and_1(name):
    x = burn.ones((2, 2, 2, 2), device=CPU)
    for wrong in (-0.1, 1.5, math.nan):
        with pytest.raises(burn.ArgumentError, match=rf"{name}: p is .*\[0, 1\]"):
            ALL[name](x, wrong)
        with pytest.raises(burn.ArgumentError, match="p is"):
            ALL[name](x, wrong, training=False)
    with pytest.raises(burn.OperandTypeError, match="training must be True or False"):
        ALL[name](x, training="yes")


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("p", [0.4, 1.0])
def test_the_gradient_is_that_of_the_factors(name, p):
    leaf = burn.ones((3, 4, 2, 2, 2), dtype="float64", device=CPU.autodiff()).require_grad()
    CPU.seed(1)
    result = ALL[name](leaf, p)
    gradient = leaf.grad(result.sum().backward()).numpy()
    CPU.seed(1)
    shifted = ALL[name](burn.full((3, 4, 2, 2, 2), 2.0, dtype="float64", device=CPU), p)
    np.testing.assert_allclose(gradient, shifted.numpy() - result.inner().numpy(), atol=1e-12)


def test_integers_become_floats():
    x = burn.arange(3, device=CPU)
    assert F.dropout(x).dtype is F.dropout(x, training=False).dtype is burn.float32


def test_alpha_dropout_has_the_factors_of_torch_and_keeps_mean_and_variance():
    x = values(4000) - 3.0
    CPU.seed(2)
    found = F.alpha_dropout(burn.asarray(x, device=CPU), 0.3).numpy()
    torch.manual_seed(0)
    expected = torch.nn.functional.alpha_dropout(torch.from_numpy(x), 0.3, training=True).numpy()

    def dropped(numbers):
        each, counts = np.unique(numbers, return_counts=True)
        return each[counts.argmax()]

    assert dropped(found) == pytest.approx(dropped(expected), rel=1e-12)
    both = (found != dropped(found)) & (expected != dropped(expected))
    np.testing.assert_allclose(found[both], expected[both], rtol=1e-9, atol=1e-12)
    assert abs(found.mean() - x.mean()) < 0.1
    assert abs(found.std() - x.std()) < 0.1


def test_an_example_of_a_batch_is_dropped_as_in_a_loop():
    x = burn.asarray(values(5, 6), device=CPU)
    CPU.seed(3)
    batched = burn.vmap(lambda row: F.dropout(row, 0.5))(x).numpy()
    CPU.seed(3)
    one_by_one = np.stack([F.dropout(row, 0.5).numpy() for row in x])
    np.testing.assert_array_equal(batched, one_by_one)


def test_a_checkpoint_drops_the_same_when_it_runs_again():
    leaf = burn.asarray(values(50), device=CPU.autodiff()).require_grad()
    CPU.seed(9)
    plain = leaf.grad((F.dropout(leaf * 2.0) ** 2).sum().backward()).numpy()
    CPU.seed(9)
    again = burn.checkpoint(lambda x: (F.dropout(x * 2.0) ** 2).sum())(leaf)
    np.testing.assert_array_equal(leaf.grad(again.backward()).numpy(), plain)


def test_each_run_of_a_trace_draws_anew():
    x = burn.asarray(values(64), device=CPU)
    program = burn.ir.trace(lambda item: F.dropout(item, 0.5), x)
    CPU.seed(7)
    expected = [F.dropout(x, 0.5).numpy() for _ in range(2)]
    CPU.seed(7)
    found = [program(x).numpy() for _ in range(2)]
    for item, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(item, other)
    assert (found[0] != found[1]).any()
