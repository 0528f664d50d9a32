"""Indexing by NumPy's rules, and reading and writing at computed indices."""

import math

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings, strategies as st
from hypothesis.extra import numpy as hnp

import burn

CPU = "cpu"
AUTODIFF = burn.Device(CPU).autodiff()
DRAWS = settings().max_examples


def tensor(values, **options):
    return burn.asarray(values, device=CPU, **options)


def leaf(values):
    return burn.asarray(np.asarray(values, np.float64), device=AUTODIFF).require_grad()


def same(actual, expected):
    expected = np.asarray(expected)
    assert actual.shape == expected.shape
    np.testing.assert_array_equal(actual.numpy(), expected)


@st.composite
def shapes_and_keys(draw):
    """A shape, and a key that indexes it in every way that there is."""
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
    blocks = hnp.array_shapes(min_dims=0, max_dims=2, min_side=1, max_side=3)
    block = draw(blocks)
    parts, axis = [], 0
    while axis < len(shape):
        length = shape[axis]
        kind = draw(st.sampled_from(["slice", "int", "array", "mask", "new", "truth", "rest"]))
        if kind == "slice":
            parts.append(draw(st.slices(length)))
            axis += 1
        elif kind == "int" and length:
            parts.append(draw(st.integers(-length, length - 1)))
            axis += 1
        elif kind == "array" and length:
            indices = st.integers(-length, length - 1)
            parts.append(draw(hnp.arrays(np.int64, st.just(block) | blocks, elements=indices)))
            axis += 1
        elif kind == "mask":
            count = draw(st.integers(1, len(shape) - axis))
            lengths = [
                draw(st.sampled_from((length, length, length, 0)))
                for length in shape[axis:][:count]
            ]
            parts.append(draw(hnp.arrays(np.bool_, tuple(lengths))))
            axis += count
        elif kind == "new" and len(parts) < 8:
            parts.append(None)
        elif kind == "truth" and len(parts) < 8:
            parts.append(draw(st.booleans()))
        elif kind == "rest" and not any(part is Ellipsis for part in parts):
            if draw(st.booleans()):
                break
            parts.append(Ellipsis)
            axis += draw(st.integers(0, len(shape) - axis))
    return shape, tuple(parts)


def to_burn(part, as_list):
    if isinstance(part, np.ndarray):
        return part.tolist() if as_list and part.size and part.ndim else tensor(part)
    return part


def filled(shape):
    return np.arange(math.prod(shape), dtype=np.float64).reshape(shape)


@settings(max_examples=30 * DRAWS)
@given(shapes_and_keys(), st.booleans())
@example(((2, 3, 4), (0, slice(None), np.array([1, 2]))), False)
@example(((3, 3), (np.array([0, 2]), Ellipsis, np.array([0, 2]))), False)
@example(((3, 3), (np.array([0, 2]), None, np.array([0, 2]))), True)
@example(((0, 1), (np.zeros((0, 0), bool),)), False)
@example(((2, 3, 4), (np.zeros((2, 0), bool),)), False)
def test_every_key_selects_what_numpy_selects(case, as_list):
    shape, key = case
    array = filled(shape)
    ours = tuple(to_burn(part, as_list) for part in key)
    try:
        expected = array[key]
    except IndexError:
        with pytest.raises(burn.BurnError):
            tensor(array)[ours]
        return
    same(tensor(array)[ours], expected)


@settings(max_examples=20 * DRAWS)
@given(shapes_and_keys(), st.booleans(), st.sampled_from(["number", "whole", "last", "leading"]))
def test_every_key_assigns_what_numpy_assigns(case, as_list, kind):
    shape, key = case
    expected = filled(shape)
    ours = tuple(to_burn(part, as_list) for part in key)
    x = tensor(expected)
    try:
        target = expected[key].shape
    except IndexError:
        with pytest.raises(burn.BurnError):
            x[ours] = 1.0
        return
    value = {
        "number": np.float64(-1.0),
        "whole": -filled(target) - 1,
        "last": -filled(target[-1:]) - 1,
        "leading": -filled((1, *target)) - 1,
    }[kind]
    expected[key] = value.reshape(target) if kind == "leading" else value
    x[ours] = tensor(value)
    same(x, expected)


@settings(max_examples=5 * DRAWS)
@given(shapes_and_keys())
def test_the_gradient_of_a_selection_counts_how_often_each_element_was_taken(case):
    shape, key = case
    array = filled(shape)
    try:
        taken = array[key].astype(int)
    except IndexError:
        return
    x = leaf(array)
    part = x[tuple(to_burn(item, as_list=False) for item in key)]
    expected = np.bincount(taken.reshape(-1), minlength=array.size).reshape(shape)
    gradient = x.grad((part * 1.0).sum().backward())
    assert gradient is not None
    same(gradient, expected)


def test_the_gradient_of_an_assignment_goes_to_what_is_left_and_to_what_was_written_last():
    x, value = leaf([1.0, 2.0, 3.0]), leaf([4.0, 5.0])
    y = x * 2.0
    y[tensor([0, 0])] = value
    gradients = (y * tensor([1.0, 10.0, 100.0], dtype="float64")).sum().backward()
    assert x.grad(gradients).tolist() == [0.0, 20.0, 200.0]
    assert value.grad(gradients).tolist() == [0.0, 1.0]


def test_a_mask_assigns_and_has_gradients():
    x = leaf([1.0, -2.0, 3.0])
    y = x * 1.0
    y[x < 0] = 0.0
    assert x.grad(y.sum().backward()).tolist() == [1.0, 0.0, 1.0]
    z = tensor([[1.0, 2.0], [3.0, 4.0]])
    z[z > 1.5] = tensor([7.0, 8.0, 9.0])
    assert z.tolist() == [[1.0, 7.0], [8.0, 9.0]]


def test_names_and_views_of_the_object_see_an_assignment():
    x = tensor([1, 2, 3])
    same_object, view = x, x[1:]
    x[[0, 2]] = 9
    assert same_object.tolist() == [9, 2, 9]
    assert view.tolist() == [2, 9]


def test_values_that_are_assigned_take_the_dtype():
    x = tensor([1, 2, 3])
    x[[0, 1]] = tensor([1.9, 2.9])
    x[2:] = [7]
    assert x.tolist() == [1, 2, 7]
    assert x.dtype is burn.int64
    with pytest.raises(burn.OperandTypeError):
        x[[0]] = 1.5
    with pytest.raises(OverflowError):
        tensor([1], dtype="int8")[[0]] = 300


X = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


@pytest.mark.parametrize(
    ("key", "error"),
    [
        ([0, 2], burn.AxisError),
        ([-3], burn.AxisError),
        (([0], [0], [0]), burn.AxisError),
        (([0, 1], [0, 1, 2]), burn.ShapeError),
        ([0.5], burn.OperandTypeError),
        ([[0], [0, 1]], burn.OperandTypeError),
        ("a", burn.OperandTypeError),
        (([0], "a"), burn.OperandTypeError),
        ((..., [0], ...), burn.OperandTypeError),
        (np.array([1.0]), burn.OperandTypeError),
        ([True, False, True], burn.AxisError),
        (np.ones((2, 2), bool), burn.AxisError),
        (np.ones((2, 3, 1), bool), burn.AxisError),
        (tensor([0.5]), burn.OperandTypeError),
        (tensor([0, 2]), burn.OutOfRangeError),
        ((tensor([0]), tensor([3])), burn.OutOfRangeError),
        ((tensor([0]), tensor([-4])), burn.OutOfRangeError),
    ],
)
def test_a_wrong_key_is_an_error_for_reading_and_writing(key, error):
    with pytest.raises(error):
        tensor(X)[key]
    x = tensor(X)
    with pytest.raises(error):
        x[key] = 1.0
    assert x.tolist() == X


def test_a_value_that_does_not_fit_is_an_error():
    x = tensor(X)
    with pytest.raises(burn.ShapeError, match="cannot assign a value of shape"):
        x[[0, 1]] = tensor([1.0, 2.0])
    with pytest.raises(burn.ShapeError, match="cannot assign a value of shape"):
        x[x > 2] = tensor([1.0, 2.0])


INDICES = np.array([[2, 0, 1, 2], [0, 0, -1, -3]])
VALUES = np.array([[1.0, -2.0, 3.0, 4.0], [-5.0, 6.0, 7.0, -8.0]])
BASE = filled((3, 4)) - 5


@pytest.mark.parametrize(
    ("update", "reduce"), [("add", "sum"), ("multiply", "prod"), ("min", "amin"), ("max", "amax")]
)
def test_scatter_and_its_gradients_are_those_of_torch(update, reduce):
    x, value = torch.tensor(BASE, requires_grad=True), torch.tensor(VALUES, requires_grad=True)
    index = torch.tensor(INDICES % 3)
    expected = torch.scatter_reduce(x, 0, index, value, reduce)
    weights = filled((3, 4)) + 1
    (expected * torch.tensor(weights)).sum().backward()
    ours, our_value = leaf(BASE), leaf(VALUES)
    result = burn.scatter(ours, tensor(INDICES), our_value, axis=0, update=update)
    same(result.detach(), expected.detach().numpy())
    gradients = (result * tensor(weights)).sum().backward()
    same(ours.grad(gradients), x.grad.numpy())
    same(our_value.grad(gradients), value.grad.numpy())


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize(
    ("update", "reduce"),
    [("add", "sum"), ("multiply", "prod"), ("min", "amin"), ("max", "amax"), ("mean", "mean")],
)
def test_shorter_indices_and_values_scatter_as_in_torch(update, reduce, include_self):
    index = np.array([[1, 0, 1], [1, 3, 0]])
    values = filled((3, 4)) / 2
    x, value = torch.tensor(BASE, requires_grad=True), torch.tensor(values, requires_grad=True)
    expected = torch.scatter_reduce(
        x, 1, torch.tensor(index), value[:2, :3], reduce, include_self=include_self
    )
    weights = filled((3, 4)) + 1
    (expected * torch.tensor(weights)).sum().backward()
    ours, our_value = leaf(BASE), leaf(values)
    result = burn.scatter(
        ours, tensor(index), our_value, axis=1, update=update, include_self=include_self
    )
    np.testing.assert_allclose(result.detach().numpy(), expected.detach(), rtol=1e-14)
    gradients = (result * tensor(weights)).sum().backward()
    np.testing.assert_allclose(ours.grad(gradients).numpy(), x.grad, rtol=1e-13)
    np.testing.assert_allclose(our_value.grad(gradients).numpy(), value.grad, rtol=1e-13)


def test_shorter_indices_gather_and_assign_as_in_torch():
    index = np.array([[1, 0], [1, 3], [0, 0]])[:2]
    base = torch.tensor(BASE)
    same(burn.gather(tensor(BASE), tensor(index), axis=1), base.gather(1, torch.tensor(index)))
    expected = base.scatter(1, torch.tensor(index)[:, ::2], 7.0)
    same(burn.scatter(tensor(BASE), tensor(index)[:, ::2], 7.0, axis=1), expected)
    expected = base.scatter_add(1, torch.tensor(index), base)
    same(burn.scatter_add(tensor(BASE), tensor(index), tensor(BASE), axis=1), expected)


def test_a_scatter_leaves_the_tensor_that_it_starts_from_alone():
    x = tensor(BASE)
    burn.scatter(x, tensor([[1]]), 9.0, axis=1)
    burn.gather(x, tensor([[1]]), axis=1)[0, 0] = 9.0
    same(x, BASE)


def test_of_several_assignments_the_last_wins():
    x = np.zeros((3, 4))
    for position in np.ndindex(INDICES.shape):
        x[INDICES[position], position[1]] = VALUES[position]
    zeros = tensor(np.zeros((3, 4)))
    same(burn.scatter(zeros, tensor(INDICES), tensor(VALUES), axis=0), x)
    same(burn.put_along_axis(zeros, tensor(INDICES), tensor(VALUES), axis=0), x)
    backwards = tensor(INDICES[::-1].copy())[::-1]
    same(burn.scatter(zeros, backwards, tensor(VALUES), axis=0), x)


def test_put_along_axis_broadcasts_like_numpys():
    expected = BASE.copy()
    np.put_along_axis(expected, np.array([[1], [0], [3]]), 7.0, axis=1)
    same(burn.put_along_axis(tensor(BASE), tensor([[1], [0], [3]]), 7.0, axis=1), expected)
    expected = BASE.copy()
    np.put_along_axis(expected, np.array([[1]]), np.array([[1.0], [2.0], [3.0]]), axis=1)
    ours = burn.put_along_axis(tensor(BASE), tensor([[1]]), tensor([[1.0], [2.0], [3.0]]), axis=1)
    same(ours, expected)


def test_select_assign_writes_whole_slices():
    x = tensor(BASE)
    value = tensor(filled((3, 2)))
    expected = BASE.copy()
    expected[:, [3, 0]] = filled((3, 2))
    same(burn.select_assign(x, tensor([3, 0]), value, axis=-1), expected)
    same(burn.select_assign(x, tensor([1, 1]), value, axis=1, update="max")[:, 1], [1.0, 3.0, 5.0])


def test_gather_nd_and_scatter_nd_index_the_first_axes():
    rows = np.array([[0, 1], [2, -1], [0, 1]])
    same(burn.gather_nd(tensor(BASE), tensor(rows)), BASE[rows[:, 0], rows[:, 1]])
    same(burn.gather_nd(tensor(BASE), tensor(rows[:, :1])), BASE[rows[:, 0]])
    expected = BASE.copy()
    np.add.at(expected, (rows[:, 0], rows[:, 1]), [1.0, 2.0, 3.0])
    value = tensor([1.0, 2.0, 3.0], dtype="float64")
    same(burn.scatter_nd(tensor(BASE), tensor(rows), value, update="add"), expected)


def test_mask_fill_puts_a_number_where_the_mask_is_true():
    x = tensor(BASE)
    same(burn.mask_fill(x, x < 0, 0.0), np.maximum(BASE, 0))


@settings(deadline=None)
@given(
    hnp.arrays(
        st.sampled_from([np.float64, np.int32, np.bool_]),
        hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4),
        elements=st.integers(0, 1),
    )
)
def test_nonzero_and_argwhere_are_those_of_numpy(array):
    for ours, expected in zip(burn.nonzero(tensor(array)), np.nonzero(array), strict=True):
        same(ours, expected)
    same(burn.argwhere(tensor(array)), np.argwhere(array))


@settings(deadline=None)
@given(
    hnp.arrays(
        st.sampled_from([np.float64, np.float32, np.int8, np.bool_]),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
        elements=st.integers(0, 1),
    )
)
def test_unique_elements_are_those_of_numpy(array):
    expected = np.unique_all(array)
    found = burn.unique_all(tensor(array))
    assert found._fields == expected._fields
    for ours, theirs in zip(found, expected, strict=True):
        same(ours, theirs)
    same(burn.unique_values(tensor(array)), expected.values)
    same(burn.unique_counts(tensor(array)).counts, expected.counts)
    same(burn.unique_inverse(tensor(array)).inverse_indices, expected.inverse_indices)


def test_unique_slices_are_those_of_torch_and_have_gradients():
    x = np.array([[1.0, 2.0, 1.0], [0.0, 5.0, 0.0], [1.0, 2.0, 1.0]])
    for axis in (0, 1):
        found = burn.unique(tensor(x), axis=axis, return_inverse=True, return_counts=True)
        expected = torch.unique(torch.tensor(x), dim=axis, return_inverse=True, return_counts=True)
        for ours, theirs in zip(found, expected, strict=True):
            same(ours, theirs)
    rows = leaf(x)
    gradient = rows.grad(burn.unique(rows, axis=0).sum().backward())
    same(gradient, [[1.0] * 3, [1.0] * 3, [0.0] * 3])


def test_nan_is_unique_once_or_each_time():
    x = tensor([[math.nan, 1.0], [math.nan, 1.0], [0.0, 1.0]])
    assert burn.unique(x).shape == (3,)
    assert burn.unique(x, equal_nan=False).shape == (4,)
    assert burn.unique(x, axis=0).shape == (2, 2)
    assert burn.unique(x, axis=0, equal_nan=False).shape == (3, 2)


def test_every_nan_is_unique_and_values_have_gradients():
    assert burn.unique_counts(tensor([math.nan, 1.0, math.nan])).counts.tolist() == [1, 1, 1]
    x = leaf([3.0, 1.0, 3.0])
    assert x.grad(burn.unique_values(x).sum().backward()).tolist() == [1.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x, i: burn.scatter(x, i, x, axis=0), burn.ShapeError, "scatter"),
        (lambda x, i: burn.scatter(x, i, x, axis=2), burn.AxisError, "scatter"),
        (lambda x, i: burn.scatter(x, x, x, axis=0), burn.DTypeError, "scatter"),
        (lambda x, i: burn.select_assign(x, i, x, axis=0), burn.ShapeError, "select_assign"),
        (
            lambda x, i: burn.select_assign(x, i, x[:1], axis=0, update="mean"),
            burn.ArgumentError,
            "select_assign",
        ),
        (lambda x, i: burn.gather_nd(x, i[0]), burn.ShapeError, "gather_nd"),
        (lambda x, i: burn.scatter_nd(x, i, x), burn.ShapeError, "scatter_nd"),
        (lambda x, i: burn.gather_nd([1], i), burn.OperandTypeError, "gather_nd"),
        (lambda x, i: burn.mask_fill(x, x, 0.0), burn.DTypeError, "mask_fill"),
        (lambda x, i: burn.put_along_axis(x, i, 1.0, axis=0), burn.ShapeError, "put_along_axis"),
        (lambda x, i: burn.nonzero(x[0, 0]), burn.ShapeError, "nonzero"),
        (lambda x, i: burn.unique_all([1]), burn.OperandTypeError, "unique_all"),
        (lambda x, i: burn.take(x, i, axis=0) + burn.take(x, i + 5, axis=0), IndexError, "take"),
    ],
)
def test_bad_input_is_an_error_that_names_the_operation(call, error, message):
    with pytest.raises(error) as caught:
        call(tensor(X), tensor([0]))
    assert message in str(caught.value)


@pytest.mark.parametrize("shape", [(3, 2), (1, 2), (1,)])
def test_an_array_without_axes_is_an_integer_of_a_key(shape):
    values = np.arange(math.prod(shape)).reshape(shape)
    zero, last = np.array(0), np.array(-1, np.int8)
    keys = [zero, (last,), (..., last), (zero, None), (slice(None), last)[-len(shape) :]]
    for key in keys:
        x = burn.asarray(values, device="cpu")
        assert x[key].tolist() == values[key].tolist()
        expected = values.copy()
        expected[key] = 7
        part = x[key]
        x[key] = 7
        assert x.tolist() == expected.tolist()
        assert part.tolist() == values[key].tolist()
