"""Interpolation and sampling against PyTorch; burn's Lanczos; what they refuse."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch.nn import functional

import burn
from burn.nn import functional as F

CPU = "cpu"
RANDOM = np.random.default_rng(6)
SHAPES = {1: (2, 3, 7), 2: (2, 3, 7, 6), 3: (1, 2, 3, 4, 5)}
LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}


def normal(*shape):
    return RANDOM.normal(size=shape)


def tensor(array, *, track=False):
    device = burn.Device(CPU).autodiff() if track else burn.Device(CPU)
    x = burn.asarray(array, device=device)
    return x.require_grad() if track else x


def assert_close(actual, expected, **tolerances):
    np.testing.assert_allclose(actual, expected, **{"rtol": 1e-9, "atol": 1e-11} | tolerances)


def weights(shape):
    return np.linspace(0.5, 1.5, math.prod(shape)).reshape(shape)


def assert_same(ours, theirs, *arrays):
    """Compare values and the gradients of all operands."""
    operands = [tensor(array, track=True) for array in arrays]
    y = ours(*operands)
    twins = [torch.from_numpy(array).requires_grad_() for array in arrays]
    expected = theirs(*twins)
    assert_close(y.detach().numpy(), expected.detach().numpy())
    gradients = (y * tensor(weights(y.shape))).sum().backward()
    (expected * torch.from_numpy(weights(expected.shape))).sum().backward()
    for x, twin in zip(operands, twins, strict=True):
        assert_close(x.grad(gradients).numpy(), twin.grad.numpy())


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 2, 5, 8, 14])
def test_nearest_elements_are_those_of_torch(rank, size):
    for mode in ("nearest", "nearest-exact"):
        assert_same(
            lambda x, mode=mode: F.interpolate(x, size, mode=mode),
            lambda x, mode=mode: functional.interpolate(x, size, mode=mode),
            normal(*SHAPES[rank]),
        )


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 2, 5, 7, 13])
def test_linear_interpolation_is_that_of_torch(rank, size, align_corners):
    options = {"size": size, "mode": LINEAR[rank], "align_corners": align_corners}
    assert_same(
        lambda x: F.interpolate(x, **options),
        lambda x: functional.interpolate(x, **options),
        normal(*SHAPES[rank]),
    )


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("size", [(1, 1), (2, 9), (7, 6), (13, 4), (20, 30)])
def test_cubic_interpolation_is_that_of_torch(size, align_corners):
    options = {"size": size, "mode": "bicubic", "align_corners": align_corners}
    assert_same(
        lambda x: F.interpolate(x, **options),
        lambda x: functional.interpolate(x, **options),
        normal(*SHAPES[2]),
    )


@pytest.mark.parametrize("recompute_scale_factor", [False, True])
@pytest.mark.parametrize("scale_factor", [2, 0.5, 1.3, (0.7, 2.9)])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
def test_scales_are_those_of_torch(mode, scale_factor, recompute_scale_factor):
    options = {"scale_factor": scale_factor, "mode": mode}
    assert_same(
        lambda x: F.interpolate(x, recompute_scale_factor=recompute_scale_factor, **options),
        lambda x: functional.interpolate(
            x, recompute_scale_factor=recompute_scale_factor or None, **options
        ),
        normal(*SHAPES[2]),
    )


def test_scales_do_not_matter_where_corners_are_aligned():
    options = {"scale_factor": 1.3, "mode": "bilinear", "align_corners": True}
    assert_same(
        lambda x: F.interpolate(x, **options),
        lambda x: functional.interpolate(x, **options),
        normal(*SHAPES[2]),
    )


def test_nearest_elements_are_exact_for_all_sizes():
    for length, size in itertools.product([1, 2, 3, 10, 49, 100], [1, 3, 7, 10, 48, 98, 100]):
        x = burn.reshape(burn.arange(length, device=CPU, dtype="float64"), (1, 1, length))
        found = F.interpolate(x, size)[0, 0].tolist()
        assert found == [index * length // size for index in range(size)]


def test_modes_have_one_name_for_all_ranks():
    x = tensor(normal(2, 3, 5, 4))
    linear = F.interpolate(x, (8, 9), mode="linear")
    bilinear = F.interpolate(x, (8, 9), mode="bilinear")
    np.testing.assert_allclose(linear.numpy(), bilinear.numpy(), rtol=1e-6, atol=1e-6)
    cubic = F.interpolate(x, (8, 9), mode="cubic")
    bicubic = F.interpolate(x, (8, 9), mode="bicubic")
    np.testing.assert_allclose(cubic.numpy(), bicubic.numpy(), rtol=1e-6, atol=1e-6)


def numbered(*shape):
    return tensor(np.arange(math.prod(shape), dtype=np.float64).reshape(shape))


def lanczos(x, size, *, align_corners=True):
    return F.interpolate(x, size, mode="lanczos3", align_corners=align_corners).numpy()


def test_lanczos_agrees_with_the_figures_of_the_original():
    # The tests of burn for Rust: burn-backend-tests, interpolation with Lanczos3.
    found = lanczos(numbered(2, 1, 7, 5), (8, 7))
    row = [8.7971, 9.3656, 10.1889, 10.7971, 11.4053, 12.2286, 12.7971]
    assert_close(found[0, 0, 2], row, atol=6e-5)
    row = [60.9178, 61.4863, 62.3096, 62.9178, 63.5260, 64.3493, 64.9178]
    assert_close(found[1, 0, 6], row, atol=6e-5)
    found = lanczos(numbered(1, 1, 45, 14), (4, 6))
    row = [205.5606, 208.1713, 210.7408, 213.3802, 215.9498, 218.5606]
    assert_close(found[0, 0, 1], row, atol=6e-5)
    found = lanczos(numbered(1, 1, 4, 4), (8, 8))
    row = [1.1889, 1.4861, 2.0053, 2.5020, 2.8758, 3.3725, 3.8917, 4.1889]
    assert_close(found[0, 0, 1], row, atol=6e-5)
    found = lanczos(numbered(1, 1, 4, 4), (8, 8), align_corners=False)
    row = [-0.4626, -0.2276, 0.3055, 0.9087, 1.3512, 1.9543, 2.4875, 2.7225]
    assert_close(found[0, 0, 0], row, atol=6e-5)
    row = [11.3377, 11.5726, 12.1058, 12.7089, 13.1514, 13.7546, 14.2877, 14.5227]
    assert_close(found[0, 0, 6], row, atol=6e-5)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(1, 1), (4, 5), (2, 30)])
def test_smoothed_images_are_those_of_torch(mode, size, align_corners):
    options = {"size": size, "mode": mode, "align_corners": align_corners, "antialias": True}
    assert_same(
        lambda x: F.interpolate(x, **options),
        lambda x: functional.interpolate(x, **options),
        normal(2, 3, 11, 9),
    )


@pytest.mark.parametrize("scale_factor", [0.37, (0.5, 1.7)])
def test_scales_of_smoothed_images_are_those_of_torch(scale_factor):
    options = {"scale_factor": scale_factor, "mode": "bilinear", "antialias": True}
    assert_same(
        lambda x: F.interpolate(x, **options),
        lambda x: functional.interpolate(x, **options),
        normal(1, 2, 11, 9),
    )


def test_a_smoothed_axis_that_keeps_its_length_is_kept():
    array = normal(1, 2, 5, 6)
    for mode in ("linear", "cubic", "lanczos3"):
        kept = F.interpolate(tensor(array), (5, 6), mode=mode, antialias=True)
        assert_close(kept.numpy(), array)


def test_an_infinite_element_is_in_the_results_that_weight_it_alone():
    array = normal(1, 1, 12)
    array[0, 0, 0] = math.inf
    found = F.interpolate(tensor(array), 4, mode="linear", antialias=True).numpy()[0, 0]
    assert np.isfinite(found).tolist() == [False, True, True, True]


@pytest.mark.parametrize("align_corners", [False, True])
def test_lanczos_keeps_what_is_constant_and_what_keeps_its_size(align_corners):
    x = tensor(np.full((1, 1, 5, 6), 2.5))
    larger = F.interpolate(x, (9, 11), mode="lanczos3", align_corners=align_corners)
    assert_close(larger.numpy(), np.full((1, 1, 9, 11), 2.5))
    array = normal(1, 2, 5, 6)
    same = F.interpolate(tensor(array), (5, 6), mode="lanczos3", align_corners=align_corners)
    assert np.array_equal(same.numpy(), array)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic", "lanczos3"])
def test_an_infinite_element_stays_where_it_is(mode):
    array = normal(1, 1, 9, 9)
    array[0, 0, 4, 4] = math.inf
    found = F.interpolate(tensor(array), (18, 18), mode=mode).numpy()[0, 0]
    assert np.isfinite(found[:2]).all()
    assert np.isfinite(found[:, -2:]).all()
    assert not np.isfinite(found).all()


@pytest.mark.parametrize("shape", [(0, 2, 3, 4), (2, 0, 3, 4)])
def test_an_empty_batch_gives_an_empty_result(shape):
    assert F.interpolate(tensor(np.zeros(shape)), 5).shape == (*shape[:2], 5, 5)
    grid = tensor(np.zeros((shape[0], 2, 2, 2)))
    assert F.grid_sample_2d(tensor(np.zeros(shape)), grid).shape == (*shape[:2], 2, 2)


def test_one_element_fills_any_size():
    x = tensor(np.array([[[[3.0]]]]))
    for mode in ("nearest", "bilinear", "bicubic", "lanczos3"):
        assert_close(F.interpolate(x, (2, 3), mode=mode).numpy(), np.full((1, 1, 2, 3), 3.0))


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_sampling_is_that_of_torch(mode, padding_mode, align_corners):
    options = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
    for shape, reach in (((2, 3, 5, 7), 1.0), ((2, 1, 4, 3), 5.0), ((2, 2, 1, 6), 1.5)):
        grid = RANDOM.uniform(-reach, reach, (2, 6, 5, 2))
        assert_same(
            lambda x, y: F.grid_sample_2d(x, y, **options),
            lambda x, y: functional.grid_sample(x, y, **options),
            normal(*shape),
            grid,
        )


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_sampling_of_volumes_is_that_of_torch(mode, padding_mode, align_corners):
    options = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
    assert_same(
        lambda x, y: F.grid_sample_3d(x, y, **options),
        lambda x, y: functional.grid_sample(x, y, **options),
        normal(2, 2, 3, 4, 5),
        RANDOM.uniform(-1.6, 1.6, (2, 3, 4, 2, 3)),
    )


def test_points_far_away_and_infinite_ones():
    array = np.arange(1.0, 13.0).reshape(1, 1, 3, 4)
    x = tensor(array)
    grid = tensor(np.array([[[[1e30, 0.0], [math.inf, 0.0], [-math.inf, 0.0], [math.nan, 0.0]]]]))
    for mode in ("bilinear", "nearest", "bicubic"):
        zeros = F.grid_sample_2d(x, grid, mode=mode)
        assert zeros.tolist()[0][0][0][:3] == [0.0, 0.0, 0.0]
        border = F.grid_sample_2d(x, grid, mode=mode, padding_mode="border")
        assert_close(border.numpy()[0, 0, 0, :3], [8.0, 8.0, 5.0])
        assert math.isnan(zeros.numpy()[0, 0, 0, 3])
        assert math.isnan(border.numpy()[0, 0, 0, 3])
        leaf = tensor(array, track=True)
        outside = F.grid_sample_2d(leaf, grid[:, :, :3], mode=mode).sum().backward()
        assert not leaf.grad(outside).numpy().any()


@pytest.mark.filterwarnings("ignore:Since version 1.3.0, affine_grid")
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("size", [(2, 1, 4, 5), (2, 3, 1, 6)])
def test_affine_grids_are_those_of_torch(size, align_corners):
    assert_same(
        lambda x: F.affine_grid_2d(x, size, align_corners=align_corners),
        lambda x: functional.affine_grid(x, size, align_corners=align_corners),
        normal(2, 2, 3),
    )


@pytest.mark.filterwarnings("ignore:Since version 1.3.0, affine_grid")
@pytest.mark.parametrize("align_corners", [False, True])
def test_affine_grids_of_volumes_are_those_of_torch(align_corners):
    size = (2, 1, 3, 4, 5)
    assert_same(
        lambda x: F.affine_grid_3d(x, size, align_corners=align_corners),
        lambda x: functional.affine_grid(x, size, align_corners=align_corners),
        normal(2, 3, 4),
    )


@pytest.mark.parametrize("align_corners", [False, True])
def test_the_identity_samples_the_image_itself(align_corners):
    array = normal(1, 2, 4, 5)
    identity = tensor(np.array([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]))
    grid = F.affine_grid_2d(identity, array.shape, align_corners=align_corners)
    found = F.grid_sample_2d(tensor(array), grid, align_corners=align_corners)
    assert_close(found.numpy(), array)


X = np.ones((1, 2, 5, 6))
GRID = np.zeros((1, 3, 3, 2))

REFUSED = [
    (lambda: F.interpolate(tensor(X)), burn.ArgumentError, "Give one of them"),
    (lambda: F.interpolate(tensor(X), 2, 2.0), burn.ArgumentError, "Give one of them"),
    (lambda: F.interpolate(tensor(X), 0), burn.ShapeError, "(0, 0)"),
    (lambda: F.interpolate(tensor(X), scale_factor=0.1), burn.ShapeError, "(0, 0)"),
    (lambda: F.interpolate(tensor(X), scale_factor=-1), burn.ArgumentError, "(0, inf)"),
    (lambda: F.interpolate(tensor(X), scale_factor="2"), burn.OperandTypeError, "scale_factor"),
    (lambda: F.interpolate(tensor(X), (2, 3, 4)), burn.ArgumentError, "size has 3"),
    (lambda: F.interpolate(tensor(X), 2.5), burn.OperandTypeError, "size"),
    (lambda: F.interpolate(tensor(X), 2, mode="area"), burn.ArgumentError, "'area'"),
    (lambda: F.interpolate(tensor(X), 2, mode="trilinear"), burn.ArgumentError, "'linear'"),
    (lambda: F.interpolate(tensor(X), 2, align_corners=True), burn.ArgumentError, "nearest"),
    (lambda: F.interpolate(tensor(X), 2, antialias=True), burn.ArgumentError, "'lanczos3'"),
    (
        lambda: F.interpolate(tensor(X[:, :, :0]), 2, mode="linear", antialias=True),
        burn.ShapeError,
        "1 or more",
    ),
    (lambda: F.interpolate(tensor(X[0, 0]), 2), burn.ShapeError, "no spatial axes"),
    (lambda: F.interpolate(tensor(X[:, :, :0]), 2), burn.ShapeError, "no elements"),
    (lambda: F.interpolate(X, 2), burn.OperandTypeError, "must be a tensor"),
    (lambda: F.grid_sample_2d(tensor(X), tensor(GRID[0])), burn.ShapeError, "grid"),
    (
        lambda: F.grid_sample_2d(tensor(X), tensor(GRID), mode="linear"),
        burn.ArgumentError,
        "bilinear",
    ),
    (
        lambda: F.grid_sample_2d(tensor(X), tensor(GRID), padding_mode="wrap"),
        burn.ArgumentError,
        "reflection",
    ),
    (lambda: F.affine_grid_2d(tensor(X), (1, 1, 2, 2)), burn.ShapeError, "(N, 2, 3)"),
    (
        lambda: F.affine_grid_2d(tensor(np.ones((2, 2, 3))), (1, 1, 2, 2)),
        burn.ShapeError,
        "maps",
    ),
    (lambda: F.affine_grid_2d(tensor(np.ones((1, 2, 3))), (1, 2)), burn.ArgumentError, "4"),
]


@pytest.mark.parametrize(("call", "error", "text"), REFUSED)
def test_what_is_refused_is_an_error_that_says_why(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)
