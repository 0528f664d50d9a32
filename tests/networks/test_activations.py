"""Activation functions against torch, in values and gradients, and far from 0."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import burn
from burn.nn import functional

CPU = burn.Device("cpu")
AUTODIFF = CPU.autodiff()

POINTS = np.concatenate([np.linspace(-8.0, 8.0, 40), [0.0, -1.0, 1.0, -3.0, 3.0, 6.0, 0.5, -0.5]])
FAR = np.array([-1e30, -1e4, -745.0, -100.0, -50.0, 50.0, 100.0, 745.0, 1e4, 1e30])

PAIRS = {
    "relu": (functional.relu, F.relu),
    "relu6": (functional.relu6, F.relu6),
    "leaky_relu": (functional.leaky_relu, F.leaky_relu),
    "leaky_relu, steep": (
        lambda x: functional.leaky_relu(x, negative_slope=0.3),
        lambda x: F.leaky_relu(x, 0.3),
    ),
    "elu": (functional.elu, F.elu),
    "elu, alpha": (lambda x: functional.elu(x, alpha=0.3), lambda x: F.elu(x, 0.3)),
    "celu": (functional.celu, F.celu),
    "celu, alpha": (lambda x: functional.celu(x, alpha=2.5), lambda x: F.celu(x, 2.5)),
    "selu": (functional.selu, F.selu),
    "sigmoid": (functional.sigmoid, F.sigmoid),
    "log_sigmoid": (functional.log_sigmoid, F.logsigmoid),
    "softplus": (functional.softplus, lambda x: F.softplus(x, threshold=700)),
    "softplus, beta": (
        lambda x: functional.softplus(x, beta=3.0),
        lambda x: F.softplus(x, beta=3.0, threshold=700),
    ),
    "softsign": (functional.softsign, F.softsign),
    "silu": (functional.silu, F.silu),
    "mish": (functional.mish, F.mish),
    "gelu": (functional.gelu, F.gelu),
    "gelu, tanh": (
        lambda x: functional.gelu(x, approximate="tanh"),
        lambda x: F.gelu(x, approximate="tanh"),
    ),
    "hardtanh": (functional.hardtanh, F.hardtanh),
    "hardtanh, bounds": (
        lambda x: functional.hardtanh(x, low=-3.0, high=0.5),
        lambda x: F.hardtanh(x, -3.0, 0.5),
    ),
    # Not F.hardsigmoid, whose gradient in float64 has a sixth of float32 as its slope.
    "hard_sigmoid": (functional.hard_sigmoid, lambda x: F.hardtanh(x / 6.0 + 0.5, 0.0, 1.0)),
    "hard_swish": (functional.hard_swish, F.hardswish),
    "hard_shrink": (functional.hard_shrink, F.hardshrink),
    "hard_shrink, wide": (
        lambda x: functional.hard_shrink(x, lambd=3.0),
        lambda x: F.hardshrink(x, 3.0),
    ),
    "soft_shrink": (functional.soft_shrink, F.softshrink),
    "soft_shrink, wide": (
        lambda x: functional.soft_shrink(x, lambd=3.0),
        lambda x: F.softshrink(x, 3.0),
    ),
    "tanhshrink": (functional.tanhshrink, F.tanhshrink),
    "threshold": (
        lambda x: functional.threshold(x, threshold=0.5, value=-7.0),
        lambda x: F.threshold(x, 0.5, -7.0),
    ),
    "thresholded_relu": (functional.thresholded_relu, lambda x: F.threshold(x, 1.0, 0.0)),
    "softmax": (functional.softmax, lambda x: F.softmax(x, -1)),
    "softmin": (functional.softmin, lambda x: F.softmin(x, -1)),
    "log_softmax": (functional.log_softmax, lambda x: F.log_softmax(x, -1)),
    "glu": (functional.glu, F.glu),
}

for_each_pair = pytest.mark.parametrize("name", PAIRS)


def leaf(values):
    return burn.asarray(np.asarray(values, np.float64), device=AUTODIFF).require_grad()


def both(name, values):
    """Values and gradients of burn and torch, the gradients for weights that differ."""
    ours, theirs = PAIRS[name]
    x, y = leaf(values), torch.tensor(values, dtype=torch.float64, requires_grad=True)
    output, expected = ours(x), theirs(y)
    weights = np.linspace(0.5, 1.5, expected.numel()).reshape(expected.shape)
    gradient = x.grad((output * burn.asarray(weights, device=CPU)).sum().backward())
    (expected * torch.tensor(weights)).sum().backward()
    return output.inner().numpy(), expected.detach().numpy(), gradient.numpy(), y.grad.numpy()


@for_each_pair
def test_values_and_gradients_are_those_of_torch(name):
    output, expected, gradient, slopes = both(name, POINTS)
    np.testing.assert_allclose(output, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-9, atol=1e-11)


@for_each_pair
def test_far_from_0_nothing_overflows(name):
    output, expected, gradient, slopes = both(name, FAR)
    np.testing.assert_allclose(output, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-9, atol=1e-11)


@for_each_pair
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_every_float_dtype_stays_itself(name, dtype):
    ours, theirs = PAIRS[name]
    x = burn.asarray(np.linspace(-4.0, 4.0, 10), dtype=dtype, device=CPU)
    output = ours(x)
    assert str(output.dtype) == dtype
    expected = theirs(torch.tensor(x.astype("float64").numpy())).numpy()
    tolerance = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}[dtype]
    np.testing.assert_allclose(
        output.astype("float64").numpy(), expected, rtol=tolerance, atol=tolerance
    )


@for_each_pair
def test_nan_propagates(name):
    ours, _ = PAIRS[name]
    assert all(math.isnan(value) for value in ours(leaf([math.nan, math.nan])).tolist())


@for_each_pair
def test_integers_give_the_default_float_dtype(name):
    ours, _ = PAIRS[name]
    integers = burn.asarray([-1, 0, 1, 2], device=CPU)
    output = ours(integers)
    assert str(output.dtype) == "float32"
    expected = ours(integers.astype("float32"))
    assert output.tolist() == expected.tolist()


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4), (2, 3, 4, 5)])
@pytest.mark.parametrize("one", [True, False])
def test_prelu_has_a_slope_for_each_channel_or_one_for_all(shape, one):
    values = np.random.default_rng(0).normal(size=shape)
    slopes = np.array([0.25]) if one else np.array([0.1, -0.5, 2.0])
    x, alpha = leaf(values), leaf(slopes)
    gradients = (functional.prelu(x, alpha) * x).sum().backward()
    y, beta = (torch.tensor(item, requires_grad=True) for item in (values, slopes))
    (F.prelu(y, beta) * y).sum().backward()
    np.testing.assert_allclose(x.grad(gradients).numpy(), y.grad.numpy(), rtol=1e-12)
    np.testing.assert_allclose(alpha.grad(gradients).numpy(), beta.grad.numpy(), rtol=1e-12)


def test_prelu_of_one_number():
    assert (
        functional.prelu(burn.asarray(-2.0, device=CPU), burn.asarray([0.5], device=CPU)).item()
        == -1
    )
    assert functional.prelu(
        burn.asarray([-2.0], device=CPU), burn.asarray(0.5, device=CPU)
    ).tolist() == [-1.0]


def test_prelu_refuses_slopes_that_fit_no_channels():
    x = burn.ones((2, 3), device=CPU)
    with pytest.raises(burn.ShapeError, match=r"prelu: alpha has shape \(2,\)"):
        functional.prelu(x, burn.ones(2, device=CPU))
    with pytest.raises(burn.ShapeError, match="one for each channel"):
        functional.prelu(burn.ones(3, device=CPU), burn.ones(3, device=CPU))


def test_shrink_moves_by_another_amount_than_its_width():
    x = burn.asarray([-3.0, -1.0, 0.0, 1.0, 3.0], device=CPU)
    assert functional.shrink(x, lambd=1.5, bias=0.5).tolist() == [-2.5, 0.0, 0.0, 0.0, 2.5]


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_quiet_softmax_is_a_softmax_with_a_zero_that_is_left_out(axis):
    values = np.random.default_rng(1).normal(size=(3, 4)) * 5.0
    x, y = leaf(values), torch.tensor(values, requires_grad=True)
    shape = list(values.shape)
    shape[axis] = 1
    longer = torch.cat([y, torch.zeros(shape, dtype=torch.float64)], axis)
    expected = F.softmax(longer, axis).narrow(axis, 0, values.shape[axis])
    output = functional.quiet_softmax(x, axis=axis)
    np.testing.assert_allclose(output.inner().numpy(), expected.detach().numpy(), rtol=1e-12)
    gradient = x.grad((output * output).sum().backward())
    (expected * expected).sum().backward()
    np.testing.assert_allclose(gradient.numpy(), y.grad.numpy(), rtol=1e-10, atol=1e-14)


def test_quiet_softmax_may_choose_nothing():
    assert functional.quiet_softmax(burn.asarray([-1e4, -1e4], device=CPU)).tolist() == [0.0, 0.0]
    assert functional.quiet_softmax(burn.asarray([1e4, 0.0], device=CPU)).tolist() == [1.0, 0.0]


def test_glu_needs_an_even_length():
    with pytest.raises(burn.ShapeError, match=r"glu.*axis 1 of \(2, 3\) has no halves"):
        functional.glu(burn.ones((2, 3), device=CPU))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: functional.elu(x, alpha="1"),
        lambda x: functional.leaky_relu(x, negative_slope=x),
        lambda x: functional.softplus(x, beta=None),
        lambda x: functional.threshold(x, threshold=[1.0], value=0.0),
        lambda x: functional.hard_sigmoid(x, alpha=True),
    ],
)
def test_a_parameter_that_is_no_number_is_named(call):
    with pytest.raises(burn.OperandTypeError, match="must be a number, not"):
        call(burn.ones(2, device=CPU))


def test_softplus_refuses_a_beta_that_is_not_positive():
    with pytest.raises(burn.ArgumentError, match=r"beta is 0\.0"):
        functional.softplus(burn.ones(2, device=CPU), beta=0)


def test_an_activation_keeps_its_input_alone_for_the_gradient():
    # One node each: a composition of Tensor functions would keep every intermediate result.
    x = leaf(np.ones(3))
    for name, (function, _) in PAIRS.items():
        if name not in ("softmin", "glu"):
            node = function(x).primitive.node
            assert node.parents == (x.primitive.node,), name


def test_random_slopes_lie_between_their_bounds_and_a_seed_repeats_them():
    x = burn.full(1000, -1.0, device="cpu")
    burn.Device("cpu").seed(3)
    first = functional.rrelu(x, 0.25, 0.5, training=True).numpy()
    burn.Device("cpu").seed(3)
    assert (functional.rrelu(x, 0.25, 0.5, training=True).numpy() == first).all()
    assert -0.5 < first.min() < -0.49
    assert -0.26 < first.max() <= -0.25
    assert functional.rrelu(x, 0.25, 0.5).tolist() == [-0.375] * 1000
    assert functional.rrelu(-x, 0.25, 0.5, training=True).tolist() == [1.0] * 1000


def test_random_slopes_are_the_gradient():
    x = burn.asarray([-1.0, -2.0, 3.0], device=burn.Device("cpu").autodiff()).require_grad()
    y = functional.rrelu(x, training=True)
    slopes = x.grad(y.sum().backward())
    assert (slopes * x.detach().inner()).tolist() == y.detach().tolist()


def test_a_layer_of_random_slopes_draws_them_in_training_alone():
    layer = burn.nn.RReLU(0.25, 0.5)
    x = burn.full(100, -1.0, device=burn.Device("cpu").autodiff())
    assert len(set(layer(x).tolist())) > 1
    assert layer.eval()(x).tolist() == [-0.375] * 100
