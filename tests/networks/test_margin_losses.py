"""Losses of margins, distances and likelihoods against torch, on every device and at the edges."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import burn
from burn.nn import functional

CPU = burn.Device("cpu")
RANDOM = np.random.default_rng(8)
REDUCTIONS = ("mean", "sum", "none")
DEVICES = [device for device in burn.Device.enumerate() if device.supports_dtype(burn.float64)]

FLOAT32_EPSILON = 1e-8
"""Relative tolerance where torch divides by 1e-12, which it has in float32."""

for_each_device = pytest.mark.parametrize("device", DEVICES, ids=str)


def normal(*shape):
    return RANDOM.normal(size=shape)


def compare(name, *arrays, constants=(), device=CPU, rtol=1e-9, **options):
    """A function of both libraries: values, and gradients by the arrays, for each reduction.

    `constants` are the last operands, without gradients; tensors among the options are arrays.
    """
    for reduction in REDUCTIONS if name.endswith("loss") or "entropy" in name else (None,):
        ours, theirs = dict(options), dict(options)
        if reduction:
            ours["reduction"] = theirs["reduction"] = reduction
        for key, value in options.items():
            if isinstance(value, np.ndarray):
                ours[key] = burn.asarray(value, device=device)
                theirs[key] = torch.tensor(value)
        xs = [burn.asarray(array, device=device.autodiff()).require_grad() for array in arrays]
        ys = [torch.tensor(array, requires_grad=True) for array in arrays]
        output = getattr(functional, name)(
            *xs, *[burn.asarray(constant, device=device) for constant in constants], **ours
        )
        expected = getattr(F, name)(
            *ys, *[torch.tensor(constant) for constant in constants], **theirs
        )
        assert output.shape == tuple(expected.shape)
        wanted = expected.detach().numpy()
        np.testing.assert_allclose(output.inner().numpy(), wanted, rtol=1e-10, atol=1e-12)
        cotangent = np.linspace(0.5, 1.5, math.prod(output.shape)).reshape(output.shape)
        gradients = (output * burn.asarray(cotangent, device=device)).sum().backward()
        (expected * torch.tensor(cotangent)).sum().backward()
        for x, y in zip(xs, ys, strict=True):
            found = x.grad(gradients).numpy()
            np.testing.assert_allclose(found, y.grad.numpy(), rtol=rtol, atol=1e-12)


def signs(*shape):
    return np.where(RANDOM.random(shape) < 0.5, -1.0, 1.0)


@for_each_device
def test_binary_cross_entropy_of_probabilities(device):
    x, y = RANDOM.random((4, 3)), RANDOM.random((4, 3))
    compare("binary_cross_entropy", x, y, device=device)
    compare("binary_cross_entropy", x, y, weight=RANDOM.random(3), device=device)
    compare("binary_cross_entropy", x[0, 0], y[0, 0], device=device)


@for_each_device
def test_binary_cross_entropy_is_finite_where_the_prediction_is_certain(device):
    x = np.array([0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1e-30, 1e-60, 1.0 - 2.0**-53])
    y = np.array([0.0, 1.0, 0.0, 1.0, 0.3, 0.3, 1.0, 1.0, 0.0])
    compare("binary_cross_entropy", x, constants=[y], device=device, rtol=FLOAT32_EPSILON)


def test_binary_cross_entropy_in_16_bits_is_that_of_float32():
    x = RANDOM.random(50)
    wide, narrow = [
        functional.binary_cross_entropy(
            burn.asarray(x, dtype="float16", device=CPU).astype(dtype),
            burn.asarray(x > 0.5, device=CPU),
            reduction="none",
        )
        for dtype in ("float32", "float16")
    ]
    assert narrow.dtype is burn.float16
    np.testing.assert_array_equal(narrow.numpy(), wide.astype("float16").numpy())


@for_each_device
@pytest.mark.parametrize("margin", [0.0, 0.3, -0.5])
def test_cosine_embedding_loss(device, margin):
    x, y = normal(7, 4), normal(7, 4)
    for target in (signs(7), np.array([1, -1, 1, -1, 0, 1, -1])):
        compare("cosine_embedding_loss", x, y, constants=[target], margin=margin, device=device)
    compare("cosine_embedding_loss", x[0], y[0], constants=[np.array(-1.0)], margin=margin)


def test_cosine_embedding_loss_of_zeros_has_finite_gradients():
    zeros, target = np.zeros((2, 3)), np.array([1.0, -1.0])
    options = {"margin": -0.5, "rtol": FLOAT32_EPSILON}
    compare("cosine_embedding_loss", zeros, normal(2, 3), constants=[target], **options)
    compare("cosine_embedding_loss", zeros, zeros, constants=[target], **options)


@for_each_device
@pytest.mark.parametrize("margin", [0.0, 1.0, -0.25])
def test_losses_of_scores_and_distances(device, margin):
    x, y, target = normal(3, 5), normal(3, 5), signs(3, 5)
    # Differences of exactly the margin too, where the slope jumps.
    y[0] = x[0] - target[0] * margin
    compare("margin_ranking_loss", x, y, constants=[target], margin=margin, device=device)
    x[0] = margin
    compare("hinge_embedding_loss", x, constants=[target], margin=margin, device=device)
    compare("soft_margin_loss", x, constants=[target], device=device)


def test_targets_may_be_integers():
    x, y = normal(6), normal(6)
    target = np.array([1, -1, 1, 1, -1, -1])
    compare("margin_ranking_loss", x, y, constants=[target], margin=0.5)
    compare("hinge_embedding_loss", x, constants=[target])
    compare("soft_margin_loss", x, constants=[target])


def test_soft_margin_loss_does_not_overflow():
    x = burn.asarray([-1e4, 1e4], device=CPU)
    losses = functional.soft_margin_loss(x, burn.asarray([1, 1], device=CPU), reduction="none")
    assert losses.tolist() == [1e4, 0.0]


@for_each_device
@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("with_weight", [False, True])
def test_multi_margin_loss(device, p, with_weight):
    options = {"p": p, "margin": 0.75, "device": device}
    if with_weight:
        options["weight"] = RANDOM.random(5)
    x, target = normal(6, 5), np.array([0, 4, 2, 2, 1, 3])
    x[0, 1] = x[0, 0] - 0.75  # where the slope jumps
    compare("multi_margin_loss", x, constants=[target], **options)
    compare("multi_margin_loss", x[0], constants=[target[0]], **options)


def test_multi_margin_loss_refuses_what_is_no_class():
    x = burn.ones((2, 3), device=CPU)
    for wrong in ([0, 3], [-1, 0]):
        with pytest.raises(burn.OutOfRangeError):
            functional.multi_margin_loss(x, burn.asarray(wrong, device=CPU)).item()
    good = burn.asarray([0, 1], device=CPU)
    with pytest.raises(burn.ArgumentError, match="p is 3"):
        functional.multi_margin_loss(x, good, p=3)
    with pytest.raises(burn.ShapeError, match="there are 3 classes"):
        functional.multi_margin_loss(x, good, weight=burn.ones(2, device=CPU))
    with pytest.raises(burn.ShapeError, match=r"multi_margin_loss: target has shape \(\)"):
        functional.multi_margin_loss(burn.ones((), device=CPU), burn.asarray(0, device=CPU))


@for_each_device
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("swap", [False, True])
def test_triplet_margin_loss(device, p, swap):
    arrays = [normal(6, 4) for _ in range(3)]
    compare("triplet_margin_loss", *arrays, p=p, swap=swap, device=device)
    compare("triplet_margin_loss", *arrays, p=p, swap=swap, margin=0.2, eps=1e-3)
    compare("triplet_margin_loss", *[array[0] for array in arrays], p=p, swap=swap)


@for_each_device
@pytest.mark.parametrize("p", [1.0, 2.0, 2.5, math.inf])
def test_pairwise_distance(device, p):
    x, y = normal(5, 4), normal(5, 4)
    x[0] = y[0]
    compare("pairwise_distance", x, y, p=p, device=device)
    compare("pairwise_distance", x, y[:1], p=p, eps=0.5, device=device)


def test_pairwise_distance_along_another_axis():
    x, y = normal(3, 4), normal(3, 4)
    ours = functional.pairwise_distance(
        burn.asarray(x, device=CPU), burn.asarray(y, device=CPU), axis=0, keepdims=True
    )
    theirs = F.pairwise_distance(torch.tensor(x.T), torch.tensor(y.T), keepdim=True)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy().T, rtol=1e-12)


@for_each_device
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("log_input", [False, True])
def test_poisson_nll_loss(device, full, log_input):
    x, counts = RANDOM.random((3, 4)) + 0.1, RANDOM.poisson(2.0, (3, 4)).astype(np.float64)
    counts[0] = [0.0, 1.0, 2.0, 7.0]
    options = {"full": full, "log_input": log_input, "device": device}
    compare("poisson_nll_loss", x, constants=[counts], **options)
    if not full:  # of integers torch computes the logarithms in float32
        compare("poisson_nll_loss", x, constants=[counts.astype(np.int64)], **options)
    compare("poisson_nll_loss", x, constants=[counts], eps=0.1, **options)


def test_poisson_nll_loss_of_no_counts_has_finite_gradients():
    x = burn.asarray([0.5, 0.5], device=CPU.autodiff()).require_grad()
    y = burn.asarray([0.0, 3.0], device=CPU.autodiff()).require_grad()
    gradients = functional.poisson_nll_loss(x, y, full=True).backward()
    assert np.isfinite(x.grad(gradients).numpy()).all()
    assert np.isfinite(y.grad(gradients).numpy()).all()


@for_each_device
@pytest.mark.parametrize("full", [False, True])
def test_gaussian_nll_loss(device, full):
    x, y, variance = normal(3, 4), normal(3, 4), RANDOM.random((3, 4)) + 0.1
    variance[0, 0], variance[1, 2] = 0.0, 1e-9  # they count as eps
    for item in (variance, variance[:, 1], variance[:, 1:2]):
        compare("gaussian_nll_loss", x, y, item, full=full, device=device)
        compare("gaussian_nll_loss", x, y, item, full=full, eps=0.2, device=device)


def test_gaussian_nll_loss_of_one_variance():
    x, y = normal(5), normal(5)
    ours = functional.gaussian_nll_loss(
        burn.asarray(x, device=CPU), burn.asarray(y, device=CPU), 0.5
    )
    theirs = F.gaussian_nll_loss(torch.tensor(x), torch.tensor(y), torch.full((5,), 0.5).double())
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-12)
    with pytest.raises(burn.ShapeError, match=r"variance has shape \(2,\)"):
        functional.gaussian_nll_loss(
            burn.ones(3, device=CPU), burn.ones(3, device=CPU), burn.ones(2, device=CPU)
        )


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0])
def test_lp_loss_is_a_power_of_the_error(p):
    x, y = normal(3, 4), normal(3, 4)
    x[0] = y[0]
    for reduction in REDUCTIONS:
        leaf = burn.asarray(x, device=CPU.autodiff()).require_grad()
        loss = functional.lp_loss(leaf, burn.asarray(y, device=CPU), p, reduction=reduction)
        twin = torch.tensor(x, requires_grad=True)
        losses = (twin - torch.tensor(y)).abs() ** p
        expected = losses if reduction == "none" else getattr(losses, reduction)()
        np.testing.assert_allclose(loss.inner().numpy(), expected.detach().numpy(), rtol=1e-12)
        expected.sum().backward()
        found = leaf.grad(loss.sum().backward()).numpy()
        np.testing.assert_allclose(found, twin.grad.numpy(), rtol=1e-12)
    for wrong in (0.0, -1.0, math.inf):
        with pytest.raises(burn.ArgumentError, match="lp_loss: p is"):
            functional.lp_loss(leaf, leaf, wrong)


OF_TWO = ["binary_cross_entropy", "hinge_embedding_loss", "poisson_nll_loss", "soft_margin_loss"]


@pytest.mark.parametrize("name", OF_TWO)
def test_they_do_not_broadcast(name):
    with pytest.raises(burn.ShapeError, match=f"{name}: shapes .* differ"):
        getattr(functional, name)(burn.ones((3, 1), device=CPU), burn.ones(3, device=CPU))


@pytest.mark.parametrize(
    "name", ["margin_ranking_loss", "triplet_margin_loss", "cosine_embedding_loss"]
)
def test_the_third_operand_fits_the_others(name):
    x = burn.ones((3, 2), device=CPU)
    with pytest.raises(burn.ShapeError, match=name):
        getattr(functional, name)(x, x, burn.ones(2, device=CPU))


def test_losses_of_several_classes_are_those_of_torch():
    x = normal(3, 4)
    for classes in ([[2, 0, -1, 1], [3, 2, 1, -1], [-1, 0, 1, 2]], [[0, 1, 2, 3]] * 3):
        compare("multilabel_margin_loss", x, constants=[np.array(classes)])
    targets, weight = RANDOM.uniform(size=(3, 4)), RANDOM.uniform(size=4)
    compare("multilabel_soft_margin_loss", 9.0 * x, constants=[targets])
    compare("multilabel_soft_margin_loss", x, constants=[targets], weight=weight)
    layer = burn.nn.MultiLabelSoftMarginLoss(burn.asarray(weight, device=CPU))
    ours = layer(burn.asarray(x, device=CPU), burn.asarray(targets, device=CPU))
    theirs = F.multilabel_soft_margin_loss(*map(torch.tensor, (x, targets, weight)))
    assert ours.item() == pytest.approx(theirs.item())
    assert burn.nn.MultiLabelMarginLoss()(burn.zeros((1, 2)), burn.asarray([[1, -1]])).item() == 0.5
