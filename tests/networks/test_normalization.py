"""Normalization and dense layers against torch, in values and gradients."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import burn
from burn.nn import functional

CPU = burn.Device("cpu")
AUTODIFF = CPU.autodiff()
RANDOM = np.random.default_rng(3)


def leaf(values):
    return burn.asarray(np.asarray(values, np.float64), device=AUTODIFF).require_grad()


def compare(ours, theirs, *arrays, rtol=1e-9, atol=1e-11):
    """Values and gradients of two functions of float arrays, None among them passed on."""
    xs = [None if array is None else leaf(array) for array in arrays]
    ys = [None if array is None else torch.tensor(array, requires_grad=True) for array in arrays]
    output, expected = ours(*xs), theirs(*ys)
    assert output.shape == tuple(expected.shape)
    np.testing.assert_allclose(
        output.inner().numpy(), expected.detach().numpy(), rtol=rtol, atol=atol
    )
    weights = RANDOM.normal(size=output.shape)
    gradients = (output * burn.asarray(weights, device=CPU)).sum().backward()
    (expected * torch.tensor(weights)).sum().backward()
    for x, y in zip(xs, ys, strict=True):
        if x is not None:
            found = x.grad(gradients).numpy()
            np.testing.assert_allclose(found, y.grad.numpy(), rtol=rtol, atol=atol)


def normal(*shape):
    return RANDOM.normal(size=shape)


PARAMETERS = [(True, True), (True, False), (False, True), (False, False)]


def parameters(with_gamma, with_beta, *shape):
    return normal(*shape) if with_gamma else None, normal(*shape) if with_beta else None


@pytest.mark.parametrize(("with_gamma", "with_beta"), PARAMETERS)
@pytest.mark.parametrize("shape", [(5,), (3, 5), (2, 3, 5), (2, 1, 3, 5)])
@pytest.mark.parametrize("epsilon", [1e-5, 0.1])
def test_layer_norm_is_that_of_torch(shape, with_gamma, with_beta, epsilon):
    gamma, beta = parameters(with_gamma, with_beta, shape[-1])
    compare(
        lambda x, g, b: functional.layer_norm(x, g, b, epsilon=epsilon),
        lambda x, g, b: F.layer_norm(x, shape[-1:], g, b, epsilon),
        normal(*shape),
        gamma,
        beta,
    )


def test_layer_norm_over_several_axes_is_that_of_torch():
    compare(
        lambda x, g, b: functional.layer_norm(x, g, b, axis=(-2, -1)),
        lambda x, g, b: F.layer_norm(x, (3, 5), g, b),
        normal(4, 3, 5),
        normal(3, 5),
        normal(3, 5),
    )


def test_layer_norm_over_other_axes_than_the_last():
    compare(
        lambda x, g, b: functional.layer_norm(x, g, b, axis=1),
        lambda x, g, b: F.layer_norm(x.movedim(1, -1), (3,), g, b).movedim(-1, 1),
        normal(4, 3, 5),
        normal(3),
        normal(3),
    )
    compare(
        lambda x: functional.layer_norm(x, axis=(2, 0)),
        lambda x: F.layer_norm(x.permute(1, 2, 0), (5, 4)).permute(2, 0, 1),
        normal(4, 3, 5),
    )


@pytest.mark.parametrize("rows", [1, 7, 700])
def test_rows_of_any_number_are_normalized_alike(rows):
    compare(
        functional.layer_norm,
        lambda x, g, b: F.layer_norm(x, (96,), g, b),
        normal(rows, 96),
        normal(96),
        normal(96),
        rtol=1e-8,
    )


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_narrow_dtypes_are_normalized_in_float32(dtype):
    values = (normal(6, 300) + 3.0).astype(np.float32)
    x = burn.asarray(values, device=CPU).astype(dtype)
    output = functional.layer_norm(x)
    assert str(output.dtype) == dtype
    expected = F.layer_norm(torch.tensor(x.astype("float64").numpy()), (300,)).numpy()
    tolerance = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}[dtype]
    np.testing.assert_allclose(
        output.astype("float64").numpy(), expected, rtol=tolerance, atol=tolerance
    )


def test_a_mean_far_from_0_costs_few_digits():
    values = normal(4, 64).astype(np.float32) + np.float32(1000.0)
    output = functional.layer_norm(burn.asarray(values, device=CPU)).numpy()
    expected = F.layer_norm(torch.tensor(values.astype(np.float64)), (64,)).numpy()
    np.testing.assert_allclose(output, expected, atol=2e-4)


@pytest.mark.parametrize("with_gamma", [True, False])
@pytest.mark.parametrize("shape", [(5,), (3, 5), (2, 3, 5)])
def test_rms_norm_is_that_of_torch(shape, with_gamma):
    compare(
        lambda x, g: functional.rms_norm(x, g, epsilon=1e-3),
        lambda x, g: F.rms_norm(x, shape[-1:], g, 1e-3),
        normal(*shape),
        normal(shape[-1]) if with_gamma else None,
    )


@pytest.mark.parametrize(("with_gamma", "with_beta"), PARAMETERS)
@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 5), (2, 3, 4, 5), (2, 3, 2, 3, 2)])
def test_batch_norm_with_known_statistics_is_that_of_torch(shape, with_gamma, with_beta):
    gamma, beta = parameters(with_gamma, with_beta, 3)
    mean, variance = normal(3), np.exp(normal(3))
    compare(
        lambda x, g, b: functional.batch_norm(
            x, burn.asarray(mean, device=CPU), burn.asarray(variance, device=CPU), g, b
        ),
        lambda x, g, b: F.batch_norm(x, torch.tensor(mean), torch.tensor(variance), g, b),
        normal(*shape),
        gamma,
        beta,
    )


@pytest.mark.parametrize(("with_gamma", "with_beta"), PARAMETERS)
@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 5), (2, 3, 4, 5), (2, 3, 2, 3, 2)])
@pytest.mark.parametrize("momentum", [0.1, 1.0])
def test_batch_norm_in_training_is_that_of_torch(shape, with_gamma, with_beta, momentum):
    gamma, beta = parameters(with_gamma, with_beta, 3)
    mean, variance = normal(3), np.exp(normal(3))
    running = [burn.asarray(tensor, device=CPU) for tensor in (mean, variance)]
    moved = [torch.tensor(tensor) for tensor in (mean, variance)]
    after = []

    def ours(x, g, b):
        output, *statistics = functional.batch_norm_training(x, *running, g, b, momentum=momentum)
        after.extend(statistics)
        return output

    compare(
        ours,
        lambda x, g, b: F.batch_norm(x, *moved, g, b, training=True, momentum=momentum),
        normal(*shape),
        gamma,
        beta,
    )
    for found, expected in zip(after, moved, strict=True):
        assert not found.is_tracked
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12)
    for found, kept in zip(running, (mean, variance), strict=True):
        assert found.tolist() == kept.tolist()


def test_batch_norm_in_training_needs_two_elements():
    ones = burn.ones(3, device=CPU)
    with pytest.raises(burn.ShapeError, match="1 elements for each channel"):
        functional.batch_norm_training(burn.ones((1, 3), device=CPU), ones, ones)
    with pytest.raises(burn.ShapeError, match="0 elements for each channel"):
        functional.batch_norm_training(burn.ones((0, 3), device=CPU), ones, ones)


def test_running_statistics_must_fit_the_channels():
    ones = burn.ones(3, device=CPU)
    x = burn.ones((4, 3), device=CPU)
    with pytest.raises(burn.ShapeError, match=r"running_variance has shape \(1,\)"):
        functional.batch_norm_training(x, ones, burn.ones(1, device=CPU))


@pytest.mark.parametrize(("with_gamma", "with_beta"), PARAMETERS)
@pytest.mark.parametrize("groups", [1, 2, 6])
@pytest.mark.parametrize("shape", [(2, 6, 4), (2, 6, 3, 2)])
def test_group_norm_is_that_of_torch(shape, groups, with_gamma, with_beta):
    gamma, beta = parameters(with_gamma, with_beta, 6)
    compare(
        lambda x, g, b: functional.group_norm(x, groups, g, b),
        # torch has no gradient of a shift without a scale.
        lambda x, g, b: F.group_norm(x, groups, torch.ones_like(b) if g is None is not b else g, b),
        normal(*shape),
        gamma,
        beta,
    )


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 3, 4, 5)])
def test_instance_norm_is_that_of_torch(shape):
    compare(
        functional.instance_norm,
        lambda x, g, b: F.instance_norm(x, weight=g, bias=b),
        normal(*shape),
        normal(3),
        normal(3),
    )


def test_groups_must_divide_the_channels():
    x = burn.ones((2, 6, 4), device=CPU)
    for groups in (0, 4, 7, -1):
        with pytest.raises(burn.ShapeError, match="6 channels cannot be divided into"):
            functional.group_norm(x, groups)
    with pytest.raises(burn.OperandTypeError, match="groups must be an integer"):
        functional.group_norm(x, 2.0)
    with pytest.raises(burn.ShapeError, match="has no channels"):
        functional.instance_norm(burn.ones(3, device=CPU))


@pytest.mark.parametrize(
    "call",
    [
        functional.layer_norm,
        functional.rms_norm,
        functional.instance_norm,
        lambda x: functional.group_norm(x, 1),
        lambda x: functional.batch_norm(
            x, burn.zeros(x.shape[1], device=CPU), burn.ones(x.shape[1], device=CPU)
        ),
    ],
)
def test_nothing_is_normalized_to_nothing(call):
    for shape in ((0, 3, 2), (2, 0, 3), (2, 3, 0)):
        assert call(burn.ones(shape, device=CPU)).shape == shape


@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("shape", [(3,), (4, 3), (2, 4, 3), (2, 1, 4, 3), (0, 3)])
def test_linear_is_that_of_torch_with_the_weight_transposed(shape, with_bias):
    compare(
        functional.linear,
        lambda x, w, b: F.linear(x, w.T, b),
        normal(*shape),
        normal(3, 5),
        normal(5) if with_bias else None,
    )
    compare(
        lambda *operands: functional.linear(*operands, transposed=True),
        F.linear,
        normal(*shape),
        normal(5, 3),
        normal(5) if with_bias else None,
    )


@pytest.mark.parametrize("device", ["cpu", "torch/cpu"])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("lead", [(4,), (2, 4)])
def test_the_gradient_of_a_weight_has_its_memory_order(lead, transposed, device):
    device = burn.Device(device)
    x = burn.asarray(normal(*lead, 3), device=device)
    shape = (5, 3) if transposed else (3, 5)
    weight = burn.asarray(normal(*shape), device=device.autodiff()).require_grad()
    gradients = functional.linear(x, weight, transposed=transposed).sum().backward()
    assert weight.grad(gradients).numpy().flags.c_contiguous


def test_linear_says_which_layout_it_wants():
    with pytest.raises(burn.ShapeError, match="must have length 5, as weight has that many rows"):
        functional.linear(burn.ones((2, 3), device=CPU), burn.ones((5, 3), device=CPU))
    x, weight = burn.ones((2, 3), device=CPU), burn.ones((3, 5), device=CPU)
    with pytest.raises(burn.ShapeError, match="length 5, as weight has that many columns"):
        functional.linear(x, weight, transposed=True)
    with pytest.raises(burn.ShapeError, match="one element for each row of the weight"):
        functional.linear(x, weight.T, burn.ones(3, device=CPU), transposed=True)
    with pytest.raises(burn.OperandTypeError, match="transposed must be True or False"):
        functional.linear(x, weight, transposed="yes")


@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (0,)])
def test_embedding_is_that_of_torch(shape):
    indices = RANDOM.integers(0, 4, size=shape)
    compare(
        lambda weight: functional.embedding(weight, burn.asarray(indices, device=CPU)),
        lambda weight: F.embedding(torch.tensor(indices), weight),
        normal(4, 3),
    )


def test_the_gradient_of_an_embedding_adds_up():
    weight = leaf(np.zeros((3, 2)))
    rows = functional.embedding(weight, burn.asarray([[1, 1], [2, 1]], device=CPU))
    assert weight.grad(rows.sum().backward()).tolist() == [[0.0, 0.0], [3.0, 3.0], [1.0, 1.0]]


def test_an_embedding_has_no_row_beyond_its_last():
    weight = burn.ones((3, 2), device=CPU)
    with pytest.raises(burn.OutOfRangeError, match="3"):
        functional.embedding(weight, burn.asarray([0, 3], device=CPU)).numpy()


@pytest.mark.parametrize("device", burn.Device.enumerate(), ids=str)
@pytest.mark.parametrize("shape", [(2, 7, 5), (2, 6, 3, 4), (1, 5, 2, 2, 3), (2, 1, 3)])
@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_local_response_norm_is_that_of_torch(shape, size, device):
    array = np.random.default_rng(4).normal(size=shape)
    for options in ({}, {"alpha": 0.7, "beta": 0.4, "k": 2.0}):
        x = burn.asarray(array, device=device.autodiff()).require_grad()
        twin = torch.tensor(array, requires_grad=True)
        found = functional.local_response_norm(x, size, **options)
        expected = F.local_response_norm(twin, size, **options)
        np.testing.assert_allclose(found.inner().numpy(), expected.detach().numpy(), rtol=1e-11)
        (expected * expected).sum().backward()
        gradient = x.grad((found * found).sum().backward()).numpy()
        np.testing.assert_allclose(gradient, twin.grad.numpy(), rtol=1e-9, atol=1e-12)


def test_local_response_norm_refuses_what_has_no_channels():
    with pytest.raises(burn.ShapeError, match=r"local_response_norm: .* has no channels"):
        functional.local_response_norm(burn.ones(3, device="cpu"), 2)
    with pytest.raises(burn.ArgumentError, match="size is 0"):
        functional.local_response_norm(burn.ones((1, 3), device="cpu"), 0)
