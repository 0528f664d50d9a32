"""Quantiles, counts, modes, and statistics without NaN: gradients and rules against torch."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

import burn
from burn.testing import MockDevice, mock_backend

CPU = "cpu"
AUTODIFF = burn.Device(CPU).autodiff()
RANDOM = np.random.default_rng(24)
MATRIX = RANDOM.normal(size=(4, 7))
HOLES = np.where(RANDOM.random((4, 7)) < 0.3, math.nan, MATRIX)


def tensor(values, **options):
    return burn.asarray(values, device=CPU, **options)


def same(actual, expected):
    expected = np.asarray(expected)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-12, atol=1e-12)


def same_gradients(ours, theirs, *arrays):
    """Both functions give the same for the arrays, and the same gradients."""
    leaves = [burn.asarray(array, device=AUTODIFF).require_grad() for array in arrays]
    others = [torch.tensor(array, requires_grad=True) for array in arrays]
    result, expected = ours(*leaves), theirs(*others)
    same(result.detach(), expected.detach().numpy())
    weights = RANDOM.normal(size=expected.shape)
    gradients = (result * tensor(weights)).sum().backward()
    (expected * torch.tensor(weights)).sum().backward()
    for leaf, other in zip(leaves, others, strict=True):
        same(leaf.grad(gradients), other.grad.numpy())


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("skip_nan", [False, True])
def test_quantiles_and_their_gradients_are_those_of_torch(method, skip_nan):
    name = "nanquantile" if skip_nan else "quantile"
    parts = [0.0, 0.3, 0.55, 1.0]
    same_gradients(
        lambda x: getattr(burn, name)(x, parts, axis=1, method=method),
        lambda x: getattr(torch, name)(
            x, torch.tensor(parts, dtype=torch.float64), dim=1, interpolation=method
        ),
        HOLES if skip_nan else MATRIX,
    )


def test_a_tensor_of_parts_has_the_slope_between_two_elements_as_gradient():
    x, parts = np.array([0.0, 1.0, 4.0, 9.0]), np.array([[0.1, 0.5], [0.9, 0.2]])
    leaf = burn.asarray(parts, device=AUTODIFF).require_grad()
    result = burn.quantile(tensor(x), leaf)
    same(result.detach(), np.quantile(x, parts))
    same(leaf.grad(result.sum().backward()), [[3.0, 9.0], [15.0, 3.0]])


def test_a_quantile_between_infinities_or_far_numbers_is_no_nan():
    largest = np.finfo(np.float64).max
    assert burn.quantile(tensor([1.0, math.inf, math.inf]), [0.5, 0.8]).tolist() == [math.inf] * 2
    assert burn.quantile(tensor([-math.inf, 1.0]), 0.5).item() == -math.inf
    assert burn.quantile(tensor([-largest, largest], dtype="float64"), 0.5).item() == 0.0
    assert math.isnan(burn.quantile(tensor([-math.inf, math.inf]), 0.5).item())


def test_a_quantile_of_equal_elements_is_that_element():
    same(burn.quantile(tensor([0.1] * 6, dtype="float64"), [0.05, 0.3, 0.77]), [0.1] * 3)


@pytest.mark.parametrize("name", ["nansum", "nanmean"])
def test_gradients_without_nan_are_those_of_torch(name):
    axis = getattr(torch, name)
    same_gradients(lambda x: getattr(burn, name)(x, axis=1), lambda x: axis(x, dim=1), HOLES)


@pytest.mark.parametrize("name", ["nanvar", "nanstd", "nanprod", "nanmax", "nanmedian", "nanmean"])
def test_gradients_of_nan_alone_are_0(name):
    x = burn.asarray([[math.nan, 1.0, 3.0], [math.nan] * 3], device=AUTODIFF).require_grad()
    result = getattr(burn, name)(x, axis=1)
    gradient = x.grad(burn.nansum(result).backward()).numpy()
    assert (gradient[1] == 0.0).all()
    assert gradient[0, 0] == 0.0
    assert np.isfinite(gradient).all()


def test_a_given_mean_has_a_gradient():
    mean = MATRIX.mean(axis=1, keepdims=True) + 0.25
    same_gradients(
        lambda x, m: burn.var(x, axis=1, mean=m, correction=1),
        lambda x, m: ((x - m) ** 2).sum(dim=1) / 6,
        MATRIX,
        mean,
    )
    same(burn.std(tensor(MATRIX), axis=1, mean=tensor(mean)), MATRIX.std(axis=1, mean=mean))
    flat = burn.asarray([2.0, 2.0], device=AUTODIFF).require_grad()
    deviation = burn.std(flat, mean=burn.asarray(2.0, device=CPU))
    assert flat.grad(deviation.backward()).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("k", [1, 4, 7])
def test_kthvalue_and_its_gradient_are_those_of_torch(k):
    same_gradients(
        lambda x: burn.kthvalue(x, k, axis=1).values,
        lambda x: torch.kthvalue(x, k, dim=1).values,
        MATRIX,
    )
    same(burn.kthvalue(tensor(MATRIX), k).indices, torch.tensor(MATRIX).kthvalue(k).indices)


def test_a_mode_is_that_of_torch_and_its_index_the_first():
    x = RANDOM.integers(0, 4, (6, 9))
    values, indices = burn.mode(tensor(x), axis=1)
    same(values, torch.mode(torch.tensor(x), dim=1).values)
    same(values, stats.mode(x, axis=1).mode)
    same(
        indices, [row.tolist().index(value) for row, value in zip(x, values.tolist(), strict=True)]
    )


def test_cov_and_corrcoef_and_their_gradients_are_those_of_torch():
    weights = RANDOM.random(7)
    same_gradients(
        lambda x, w: burn.cov(x, correction=0, aweights=w),
        lambda x, w: torch.cov(x, correction=0, aweights=w),
        MATRIX,
        weights,
    )
    same_gradients(burn.corrcoef, torch.corrcoef, MATRIX)
    batch = RANDOM.normal(size=(2, 3, 3, 5))
    same(burn.cov(tensor(batch))[1, 2], np.cov(batch[1, 2]))


def test_weights_of_counts_have_gradients():
    x = np.array([0, 2, 1, 2])
    same_gradients(
        lambda w: burn.bincount(tensor(x), weights=w),
        lambda w: (
            torch.bincount(torch.tensor(x), weights=w.detach()) * 0
            + torch.zeros(3, dtype=torch.float64).scatter_add(0, torch.tensor(x), w)
        ),
        RANDOM.random(4),
    )
    leaf = burn.asarray([1.0, 2.0, 3.0, 4.0], device=AUTODIFF).require_grad()
    counts, _ = burn.histogram(tensor([0.5, 3.0, 1.0, 7.0]), 2, range=(0, 4), weights=leaf)
    assert leaf.grad(counts[1].backward()).tolist() == [0.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("density", [False, True])
def test_a_histogram_is_that_of_torch(density):
    x = RANDOM.normal(size=200)
    counts, edges = burn.histogram(tensor(x), 9, range=(-2.0, 2.5), density=density)
    expected, borders = torch.histogram(torch.tensor(x), 9, range=(-2.0, 2.5), density=density)
    same(counts, expected)
    same(edges, borders)


def test_integers_on_the_edges_of_bins_are_in_the_bins_above_but_for_the_last():
    x = np.arange(1, 12)
    for device in ("cpu", "torch/cpu"):
        counts, edges = burn.histogram(burn.asarray(x, device=device), 10)
        assert counts.tolist() == np.histogram(x, 10)[0].tolist()
        assert edges.tolist() == list(range(1, 12))


def test_float16_is_counted_and_averaged_in_float32():
    x = burn.ones(4096, dtype="float16", device=CPU)
    assert burn.nanmean(x).item() == 1.0
    counts, _ = burn.histogram(x, [0.0, 2.0], weights=x)
    assert counts.tolist() == [4096.0]


def test_rows_are_searched_like_those_of_torch():
    rows = np.sort(RANDOM.integers(0, 9, (3, 2, 6)).astype(np.float64))
    sought = RANDOM.integers(-1, 10, (3, 2, 4)).astype(np.float64)
    for side in ("left", "right"):
        expected = torch.searchsorted(torch.tensor(rows), torch.tensor(sought), side=side)
        same(burn.searchsorted(tensor(rows), tensor(sought), side=side), expected)
    mapped = burn.vmap(burn.searchsorted)(tensor(rows[0]), tensor(sought[0]))
    same(mapped, burn.searchsorted(tensor(rows[0]), tensor(sought[0])).numpy())


def test_devices_without_64_bit_types_have_them_all():
    devices = [MockDevice("npu", without=("float64", "int64", "uint64"))]
    with burn.registered(mock_backend("acme", devices)):
        x = burn.asarray([[3.0, 1.0, math.nan], [2.0, 2.0, 5.0]], dtype="float32", device="acme")
        assert burn.nanquantile(x, 0.5, axis=1).tolist() == [2.0, 2.0]
        assert burn.quantile(x, burn.asarray([0.5], device="acme"), axis=1).shape == (1, 2)
        assert burn.histogram(x[1], 3).counts.tolist() == [2, 0, 1]
        assert burn.bincount(burn.asarray([1, 1], device="acme")).tolist() == [0, 2]
        assert burn.mode(x[1]).values.item() == 2.0
        assert burn.unique(x, axis=0).shape == (2, 3)
        assert burn.nanargmax(x, axis=1).tolist() == [0, 2]
        assert burn.searchsorted(x[:, :2], x[:, :1]).tolist() == [[2], [0]]
        assert burn.random.choice(x, 2, axis=1, replace=False).shape == (2, 2)
        assert burn.scatter(x, burn.asarray([[0]], device="acme"), 7.0, axis=1)[0, 0].item() == 7.0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: burn.quantile(x, "half"), burn.OperandTypeError, "quantile: q must be"),
        (lambda x: burn.quantile(x, tensor([1])), burn.DTypeError, "quantile: q must be"),
        (lambda x: burn.quantile(x * 1j, 0.5), burn.DTypeError, "quantile: complex"),
        (lambda x: burn.nanmedian(x, axis=2), burn.AxisError, "nanmedian: axis 2"),
        (lambda x: burn.nanmax(x[:0]), burn.ShapeError, "nanmax"),
        (lambda x: burn.nanvar(x, mean=1.0), burn.OperandTypeError, "nanvar: mean"),
        (lambda x: burn.var(x, mean=x[None]), burn.ShapeError, "var: a mean of shape"),
        (lambda x: burn.histogram(x, "auto"), burn.OperandTypeError, "histogram: bins"),
        (lambda x: burn.bincount(x), burn.DTypeError, "bincount: x must be integers"),
        (lambda x: burn.mode(x[:, :0]), burn.ShapeError, "mode: there is no mode"),
        (lambda x: burn.corrcoef(1.0), burn.OperandTypeError, "corrcoef: x must be a tensor"),
        (lambda x: burn.cov(x, aweights=[1.0]), burn.OperandTypeError, "cov: aweights"),
    ],
)
def test_bad_input_is_an_error_that_names_the_function(call, error, message):
    with pytest.raises(error) as caught:
        call(tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    assert message in str(caught.value)
