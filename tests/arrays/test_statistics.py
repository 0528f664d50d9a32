"""Order, scans, spread and closeness: public functions against NumPy and torch."""

import math

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings, strategies as st
from hypothesis.extra import numpy as hnp

import burn

CPU = "cpu"
AUTODIFF = burn.Device(CPU).autodiff()


def tensor(values, **options):
    return burn.asarray(values, device=CPU, **options)


def leaf(values):
    return burn.asarray(np.asarray(values, np.float64), device=AUTODIFF).require_grad()


def gradient(function, values):
    x = leaf(values)
    return x.grad(function(x).sum().backward()).numpy()


def same(actual, expected):
    expected = np.asarray(expected)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-12, atol=1e-12)


RANDOM = np.random.default_rng(5)
MATRIX = RANDOM.normal(size=(4, 5))
CUBE = RANDOM.integers(-3, 4, size=(3, 4, 5)).astype(np.float64)
SPECIAL = np.array([[1.0, math.nan, 0.5], [math.inf, 2.0, -math.inf], [0.0, -0.0, 3.0]])

ARRAYS = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4),
    elements=st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.5, math.inf, -math.inf, math.nan]),
)


@pytest.mark.parametrize("array", [MATRIX, CUBE, SPECIAL, CUBE.astype(np.int32), CUBE > 0])
@pytest.mark.parametrize("axis", [0, -1])
def test_sort_and_argsort_are_those_of_numpy(array, axis):
    same(burn.sort(tensor(array), axis=axis), np.sort(array, axis=axis))
    same(burn.argsort(tensor(array), axis=axis), np.argsort(array, axis=axis, stable=True))
    values, indices = burn.sort_with_indices(tensor(array), axis=axis)
    same(values, np.sort(array, axis=axis))
    same(indices, np.argsort(array, axis=axis, stable=True))
    descending = burn.sort(tensor(array), axis=axis, descending=True)
    same(descending, np.flip(np.sort(array, axis=axis), axis))


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_topk_is_that_of_torch_on_distinct_elements(largest, axis):
    expected = torch.topk(torch.from_numpy(MATRIX), 3, dim=axis, largest=largest)
    values, indices = burn.topk(tensor(MATRIX), 3, axis=axis, largest=largest)
    same(values, expected.values)
    same(indices, expected.indices)
    same(burn.argtopk(tensor(MATRIX), 3, axis=axis, largest=largest), expected.indices)


def test_topk_takes_the_first_of_equals_and_nan_as_largest():
    x = tensor([1.0, math.nan, 2.0, 2.0, 1.0])
    assert burn.topk(x, 4).indices.tolist() == [1, 2, 3, 0]
    assert burn.topk(x, 2, largest=False).indices.tolist() == [0, 4]


def test_gradients_of_sort_and_topk_go_where_elements_came_from():
    weights = burn.arange(5, dtype="float64", device=CPU)
    slopes = gradient(lambda x: burn.sort(x, axis=-1) * weights, MATRIX)
    same(tensor(slopes), np.argsort(np.argsort(MATRIX)))
    slopes = gradient(lambda x: burn.topk(x, 2).values, MATRIX)
    assert (slopes.sum(axis=1) == 2).all()
    assert (MATRIX[slopes == 1].reshape(4, 2).min(1) > np.sort(MATRIX)[:, 2]).all()


@settings(deadline=None)
@given(ARRAYS, st.sampled_from(["left", "right"]))
def test_searchsorted_is_that_of_numpy(array, side):
    ordered = np.sort(array.reshape(-1))
    for queries in (array, array.T, np.float64(0.5)):
        found = burn.searchsorted(tensor(ordered), tensor(queries), side=side)
        same(found, np.searchsorted(ordered, queries, side))


def test_searchsorted_with_a_sorter_and_a_number():
    x = np.array([3.0, 1.0, 2.0])
    order = tensor(np.argsort(x))
    assert burn.searchsorted(tensor(x), 2.0, sorter=order).item() == 1
    wide = tensor(np.array([1, 2**63], np.uint64))
    assert burn.searchsorted(wide, 2**63).item() == 1
    assert burn.searchsorted(wide, 3).item() == 1
    assert burn.searchsorted(tensor(np.array([1, 3])), 2.5).item() == 1


@settings(deadline=None)
@given(ARRAYS)
def test_running_extrema_are_those_of_numpy(array):
    for axis in range(array.ndim):
        same(burn.cummax(tensor(array), axis=axis), np.maximum.accumulate(array, axis=axis))
        same(burn.cummin(tensor(array), axis=axis), np.minimum.accumulate(array, axis=axis))


@settings(deadline=None)
@given(ARRAYS)
@example(MATRIX)
def test_the_gradient_of_a_running_extremum_is_that_of_torch(array):
    for axis in range(array.ndim):
        for ours, theirs in ((burn.cummax, torch.cummax), (burn.cummin, torch.cummin)):
            x = torch.from_numpy(array.copy()).requires_grad_()
            theirs(x, axis).values.sum().backward()
            same(tensor(gradient(lambda x, f=ours, axis=axis: f(x, axis=axis), array)), x.grad)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_sums_and_products_may_start_from_nothing(axis):
    for ours, theirs in (
        (burn.cumulative_sum, np.cumulative_sum),
        (burn.cumulative_prod, np.cumulative_prod),
    ):
        expected = theirs(MATRIX, axis=axis, include_initial=True)
        same(ours(tensor(MATRIX), axis=axis, include_initial=True), expected)
    assert burn.cumulative_sum(tensor([], dtype="int64"), include_initial=True).tolist() == [0]


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
@pytest.mark.parametrize("keepdims", [True, False])
@pytest.mark.parametrize("correction", [0, 1, 0.5])
def test_var_and_std_are_those_of_numpy(axis, keepdims, correction):
    options = {"axis": axis, "correction": correction, "keepdims": keepdims}
    variance, deviation = np.var(CUBE, **options), np.std(CUBE, **options)
    same(burn.var(tensor(CUBE), **options), variance)
    same(burn.std(tensor(CUBE), **options), deviation)
    both = burn.var_mean(tensor(CUBE), **options)
    same(both.variance, variance)
    same(both.mean, np.mean(CUBE, axis=axis, keepdims=keepdims))


def test_the_gradient_of_std_is_0_without_spread():
    assert gradient(lambda x: burn.std(x), [2.0, 2.0]).tolist() == [0.0, 0.0]
    x = torch.from_numpy(MATRIX).requires_grad_()
    torch.std(x, 1, correction=1).sum().backward()
    same(tensor(gradient(lambda x: burn.std(x, axis=1, correction=1), MATRIX)), x.grad)


def test_var_of_integers_is_a_float():
    assert burn.var(tensor([1, 2, 3, 4])).dtype is burn.float32
    assert burn.var(tensor([1, 2, 3, 4])).item() == 1.25


def test_cov_is_that_of_numpy():
    same(burn.cov(tensor(MATRIX)), np.cov(MATRIX))
    same(burn.cov(tensor(MATRIX), rowvar=False), np.cov(MATRIX, rowvar=False))
    same(burn.cov(tensor(MATRIX), correction=0), np.cov(MATRIX, ddof=0))
    same(burn.cov(tensor(MATRIX[0])), np.cov(MATRIX[0]))


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (2, 1, 0)])
@pytest.mark.parametrize("keepdims", [True, False])
def test_median_is_that_of_numpy(axis, keepdims):
    for array in (CUBE, CUBE[:, :3, :4], CUBE.astype(np.int64)):
        expected = np.median(array, axis=axis, keepdims=keepdims)
        same(burn.median(tensor(array), axis=axis, keepdims=keepdims), expected)
    with_nan = CUBE.copy()
    with_nan[1, 2, 3] = math.nan
    expected = np.median(with_nan, axis=axis, keepdims=keepdims)
    same(burn.median(tensor(with_nan), axis=axis, keepdims=keepdims), expected)


def test_median_of_a_number_and_of_nothing():
    assert burn.median(tensor(2.5)).item() == 2.5
    assert math.isnan(burn.median(tensor([])).item())
    assert burn.median(tensor(np.zeros((0, 3))), axis=1).shape == (0,)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("array", [MATRIX, MATRIX[:, :4], SPECIAL])
def test_median_with_indices_is_that_of_torch(axis, array):
    expected = torch.median(torch.from_numpy(array), dim=axis)
    values, indices = burn.median_with_indices(tensor(array), axis=axis)
    same(values, expected.values)
    same(indices, expected.indices)


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("keepdims", [True, False])
def test_extrema_with_indices_take_the_first(axis, keepdims):
    for ours, theirs, arg_function in (
        (burn.max_with_indices, np.max, np.argmax),
        (burn.min_with_indices, np.min, np.argmin),
    ):
        values, indices = ours(tensor(CUBE), axis=axis, keepdims=keepdims)
        same(values, theirs(CUBE, axis=axis, keepdims=keepdims))
        same(indices, arg_function(CUBE, axis=axis, keepdims=keepdims))
    slopes = gradient(lambda x: burn.max_with_indices(x, axis=0).values, [[1.0], [1.0]])
    assert slopes.tolist() == [[1.0], [0.0]]


def test_max_abs_and_count_nonzero_are_those_of_numpy():
    same(burn.max_abs(tensor(CUBE), axis=(0, 2)), np.max(np.abs(CUBE), axis=(0, 2)))
    for array in (CUBE, CUBE > 0, CUBE.astype(np.int8), SPECIAL):
        for axis in (None, 0, -1, (0, 1)):
            same(burn.count_nonzero(tensor(array), axis=axis), np.count_nonzero(array, axis=axis))
    assert burn.count_nonzero(tensor([0, 3])).dtype is burn.int64


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_diff_is_that_of_numpy(axis, n):
    same(burn.diff(tensor(MATRIX), axis=axis, n=n), np.diff(MATRIX, axis=axis, n=n))
    joined = burn.diff(
        tensor(MATRIX), axis=axis, n=n, prepend=tensor(MATRIX), append=tensor(MATRIX)
    )
    same(joined, np.diff(MATRIX, axis=axis, n=n, prepend=MATRIX, append=MATRIX))


@settings(deadline=None)
@given(ARRAYS)
def test_closeness_is_that_of_numpy(array):
    other = array[::-1] * (1 + 1e-6)
    for equal_nan in (False, True):
        found = burn.isclose(tensor(array), tensor(other), equal_nan=equal_nan)
        same(found, np.isclose(array, other, equal_nan=equal_nan))
        everywhere = burn.allclose(tensor(array), tensor(array), equal_nan=equal_nan)
        assert everywhere is np.allclose(array, array, equal_nan=equal_nan)
    assert burn.contains_nan(tensor(array)).item() is bool(np.isnan(array).any())


def test_closeness_of_integers_and_numbers():
    assert burn.isclose(tensor([200, 0], dtype="uint8"), 200).tolist() == [True, False]
    assert burn.allclose(2.0, tensor(2.0))
    assert not burn.allclose(tensor([1.0]), 1.1)
    assert burn.allclose(tensor([1.0]), 1.1, atol=0.2)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: burn.sort(x, axis=2), burn.AxisError, "sort"),
        (lambda x: burn.sort(tensor(1.0)), burn.AxisError, "sort"),
        (lambda x: burn.sort([1.0]), burn.OperandTypeError, "sort"),
        (lambda x: burn.topk(x, 4), burn.ArgumentError, "topk"),
        (lambda x: burn.topk(x, -1), burn.ArgumentError, "topk: k is -1"),
        (lambda x: burn.argtopk(x, 1.5), burn.OperandTypeError, "argtopk"),
        (lambda x: burn.searchsorted(x, x[:1]), burn.ShapeError, "searchsorted"),
        (lambda x: burn.searchsorted(x[0], x, side="top"), burn.ArgumentError, "searchsorted"),
        (lambda x: burn.cummax(x), burn.AxisError, "cummax"),
        (lambda x: burn.cummin(x, axis=2), burn.AxisError, "cummin"),
        (lambda x: burn.cummax(x > 0, axis=0), burn.DTypeError, "cummax"),
        (lambda x: burn.var(x, axis=5), burn.AxisError, "var"),
        (lambda x: burn.std(x, correction="one"), burn.OperandTypeError, "std"),
        (lambda x: burn.cov(x[0, 0]), burn.ShapeError, "cov"),
        (lambda x: burn.median(x, axis=3), burn.AxisError, "median"),
        (lambda x: burn.median_with_indices(x[:, :0], axis=1), burn.ShapeError, "median_with"),
        (lambda x: burn.max_with_indices(x[:, :0], axis=1), burn.ShapeError, "argmax"),
        (lambda x: burn.max_with_indices(x, axis=7), burn.AxisError, "max_with_indices"),
        (lambda x: burn.diff(x, n=-1), burn.ArgumentError, "diff"),
        (lambda x: burn.diff(tensor(1.0)), burn.AxisError, "diff"),
        (lambda x: burn.isclose(1.0, 2.0), burn.OperandTypeError, "isclose"),
        (lambda x: burn.count_nonzero(x, axis=2), burn.AxisError, "count_nonzero"),
    ],
)
def test_bad_input_is_an_error_that_names_the_operation(call, error, message):
    with pytest.raises(error) as caught:
        call(tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    assert message in str(caught.value)
