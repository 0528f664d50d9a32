"""Rearranging, padding, windows, triangles and grids: public functions against NumPy and torch."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

import burn

CPU = "cpu"
AUTODIFF = burn.Device(CPU).autodiff()


def tensor(values, **options):
    return burn.asarray(values, device=CPU, **options)


def gradient(function, values):
    x = burn.asarray(np.asarray(values, np.float64), device=AUTODIFF).require_grad()
    return x.grad(function(x).sum().backward()).tolist()


def same(actual, expected):
    expected = np.asarray(expected)
    assert actual.shape == expected.shape
    np.testing.assert_array_equal(actual.numpy(), expected)


def filled(*shape):
    return np.arange(math.prod(shape), dtype=np.float64).reshape(shape)


CUBE = filled(2, 3, 4)
ARRAYS = hnp.arrays(
    st.sampled_from([np.float64, np.int32]),
    hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4),
    elements=st.integers(-9, 9),
)


@settings(deadline=None)
@given(ARRAYS, st.data())
def test_roll_is_that_of_numpy(array, data):
    rank = array.ndim
    axis = data.draw(st.none() | st.integers(-rank, rank - 1) | st.just(tuple(range(rank))))
    shift = data.draw(st.integers(-9, 9))
    same(burn.roll(tensor(array), shift, axis=axis), np.roll(array, shift, axis=axis))


def test_roll_by_several_shifts_and_of_a_number():
    expected = np.roll(CUBE, (1, -2), axis=(0, 2))
    same(burn.roll(tensor(CUBE), (1, -2), axis=(0, 2)), expected)
    same(burn.roll(tensor(CUBE), (1, 1), axis=1), np.roll(CUBE, (1, 1), axis=1))
    same(burn.roll(tensor(3.0), 1), 3.0)


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("repeats", [0, 1, 3])
def test_repeat_is_that_of_numpy(axis, repeats):
    for array in (CUBE, CUBE[:, :0], CUBE > 3):
        expected = np.repeat(array, repeats, axis=axis)
        same(burn.repeat(tensor(array), repeats, axis=axis), expected)


def test_repeat_by_counts_and_its_gradient():
    counts = [2, 0, 1]
    expected = np.repeat(CUBE, counts, axis=1)
    same(burn.repeat(tensor(CUBE), counts, axis=1), expected)
    same(burn.repeat(tensor(CUBE), tensor(counts), axis=1), expected)
    same(burn.repeat(tensor(CUBE), tensor([2]), axis=1), np.repeat(CUBE, 2, axis=1))
    assert gradient(lambda x: burn.repeat(x, counts), [1.0, 2.0, 3.0]) == [2.0, 0.0, 1.0]
    assert gradient(lambda x: burn.repeat(x, 2), [1.0, 2.0]) == [2.0, 2.0]


@pytest.mark.parametrize("counts", [2, (), (2,), (1, 3), (2, 1, 0), (2, 1, 3, 2), (0,)])
def test_tile_is_that_of_numpy(counts):
    for array in (CUBE, CUBE[0, 0], np.array(5.0)):
        same(burn.tile(tensor(array), counts), np.tile(array, counts))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_parts_are_those_of_numpy_and_torch(axis):
    length = CUBE.shape[axis]
    x, theirs = tensor(CUBE), torch.from_numpy(CUBE)
    for sections in (1, length, [1], [0, 2], [2, 1], [-1], [9]):
        expected = np.split(CUBE, sections, axis=axis)
        for ours, part in zip(burn.split(x, sections, axis=axis), expected, strict=True):
            same(ours, part)
    for chunks in (1, 2, 3, 9):
        expected = torch.chunk(theirs, chunks, dim=axis)
        for ours, part in zip(burn.chunk(x, chunks, axis=axis), expected, strict=True):
            same(ours, part)
    sizes = [1, 0, length - 1]
    expected = torch.split(theirs, sizes, dim=axis)
    for ours, part in zip(burn.split_with_sizes(x, sizes, axis=axis), expected, strict=True):
        same(ours, part)
    for ours, part in zip(burn.unstack(x, axis=axis), np.unstack(CUBE, axis=axis), strict=True):
        same(ours, part)
    same(burn.narrow(x, 1, length - 1, axis=axis), torch.narrow(theirs, axis, 1, length - 1))


def test_parts_of_nothing():
    assert burn.unstack(tensor(np.zeros((0, 2)))) == ()
    assert [part.shape for part in burn.chunk(tensor([]), 3)] == [(0,)]
    assert burn.narrow(tensor([]), 0, 0, axis=0).shape == (0,)


@pytest.mark.parametrize("axes", [(0, 2), (-1, 0), (1, 1)])
def test_swapaxes_is_that_of_numpy(axes):
    same(burn.swapaxes(tensor(CUBE), *axes), np.swapaxes(CUBE, *axes))


@settings(deadline=None)
@given(
    hnp.arrays(np.float64, hnp.array_shapes(max_dims=3, max_side=4), elements=st.integers(0, 9)),
    st.sampled_from(["constant", "edge", "reflect", "symmetric", "wrap"]),
    st.data(),
)
def test_pad_is_that_of_numpy(array, mode, data):
    width = st.integers(0, 6)
    pairs = data.draw(st.lists(st.tuples(width, width), min_size=array.ndim, max_size=array.ndim))
    same(burn.pad(tensor(array), pairs, mode), np.pad(array, pairs, mode))


def test_pad_widths_are_read_as_numpy_reads_them():
    for width in (1, (1, 2), ((1, 2),), ((1, 0), (0, 2), (3, 1))):
        expected = np.pad(CUBE, width, constant_values=-1)
        same(burn.pad(tensor(CUBE), width, constant_values=-1), expected)
    same(burn.pad(tensor([1, 2]), 0), [1, 2])
    same(burn.pad(tensor(2.0), 3), 2.0)


@pytest.mark.parametrize(
    ("mode", "theirs"), [("edge", "replicate"), ("reflect", "reflect"), ("wrap", "circular")]
)
def test_gradients_of_padding_are_those_of_torch(mode, theirs):
    x = torch.tensor(filled(1, 2, 5), requires_grad=True)
    torch.nn.functional.pad(x, (3, 2), mode=theirs).sum().backward()
    ours = gradient(lambda x: burn.pad(x, ((0, 0), (0, 0), (3, 2)), mode), filled(1, 2, 5))
    assert ours == x.grad.tolist()


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("step", [1, 2])
def test_unfold_is_that_of_torch(axis, step):
    x = torch.tensor(filled(4, 5, 3), requires_grad=True)
    expected = x.unfold(axis, 2, step)
    expected.sum().backward()
    same(burn.unfold(tensor(filled(4, 5, 3)), 2, axis=axis, step=step), expected.detach())
    ours = gradient(lambda x: burn.unfold(x, 2, axis=axis, step=step), filled(4, 5, 3))
    assert ours == x.grad.tolist()


@pytest.mark.parametrize("k", [-5, -1, 0, 2, 5])
def test_triangles_are_those_of_numpy(k):
    for array in (CUBE, filled(4, 3), filled(0, 3), CUBE > 3, CUBE.astype(np.int8)):
        same(burn.tril(tensor(array), k=k), np.tril(array, k=k))
        same(burn.triu(tensor(array), k=k), np.triu(array, k=k))
    ones = np.ones((2, 3, 4), bool)
    same(burn.tril_mask((2, 3, 4), k=k, device=CPU), ~np.tril(ones, k=k))
    same(burn.triu_mask((2, 3, 4), k=k, device=CPU), ~np.triu(ones, k=k))
    same(burn.diag_mask((3, 4), k=k, device=CPU), ~np.eye(3, 4, k=k, dtype=bool))


def test_a_triangle_hides_nan_and_its_gradient():
    x = [[1.0, math.nan], [2.0, 3.0]]
    assert burn.tril(tensor(x)).tolist() == [[1.0, 0.0], [2.0, 3.0]]
    assert gradient(burn.tril, x) == [[1.0, 0.0], [1.0, 1.0]]


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_meshgrid_is_that_of_numpy(indexing, count):
    vectors = [filled(length) for length in (2, 3, 1)[:count]]
    ours = burn.meshgrid(*[tensor(vector) for vector in vectors], indexing=indexing)
    for our, expected in zip(ours, np.meshgrid(*vectors, indexing=indexing), strict=True):
        same(our, expected)


def test_a_cartesian_grid_holds_its_own_indices():
    grid = burn.cartesian_grid((2, 3), device=CPU)
    same(grid, np.moveaxis(np.indices((2, 3)), 0, -1))


@pytest.mark.parametrize("axis", [0, 1, -1, 2])
def test_one_hot_puts_the_classes_along_an_axis(axis):
    indices = np.array([[0, 2], [-1, 1]])
    expected = np.moveaxis(np.eye(3)[indices], -1, axis)
    same(burn.one_hot(tensor(indices), 3, axis=axis), expected)
    same(burn.one_hot(tensor(indices), 3, axis=axis, dtype="int8"), expected)
    same(burn.one_hot_fill(tensor(indices), 3, 5, -1, axis=axis), np.where(expected == 1, 5, -1))
    assert burn.one_hot(tensor([3, -4], dtype="int8"), 3).tolist() == [[0.0] * 3] * 2


@pytest.mark.parametrize("num", [0, 1, 2, 7])
@pytest.mark.parametrize("endpoint", [True, False])
def test_linspace_is_that_of_numpy(num, endpoint):
    expected = np.linspace(-1, 2.5, num, endpoint=endpoint)
    same(burn.linspace(-1, 2.5, num, dtype="float64", device=CPU, endpoint=endpoint), expected)
    single = burn.linspace(-1, 2.5, num, device=CPU, endpoint=endpoint)
    same(single, expected.astype(np.float32))
    assert single.dtype is burn.float32


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: burn.roll(x, 1, axis=2), burn.AxisError, "roll"),
        (lambda x: burn.roll(x, (1, 2, 3), axis=(0, 1)), burn.ArgumentError, "roll"),
        (lambda x: burn.repeat(x, -1), burn.ArgumentError, "repeat"),
        (lambda x: burn.repeat(x, [1, -1], axis=0), burn.ArgumentError, "repeat"),
        (lambda x: burn.repeat(x, [1, 2, 3], axis=0), burn.ShapeError, "repeat"),
        (lambda x: burn.repeat(x, [0.5, 1], axis=0), burn.DTypeError, "repeat"),
        (lambda x: burn.tile(x, (-1,)), burn.ArgumentError, "tile"),
        (lambda x: burn.tile([1], 2), burn.OperandTypeError, "tile"),
        (lambda x: burn.split(x, 2, axis=1), burn.ArgumentError, "split"),
        (lambda x: burn.chunk(x, 0), burn.ArgumentError, "chunk"),
        (lambda x: burn.split_with_sizes(x, [1, 2]), burn.ShapeError, "split_with_sizes"),
        (lambda x: burn.narrow(x, 1, 2, axis=0), burn.AxisError, "narrow"),
        (lambda x: burn.narrow(x, -1, 1, axis=0), burn.AxisError, "narrow"),
        (lambda x: burn.unstack(tensor(1.0)), burn.AxisError, "unstack"),
        (lambda x: burn.swapaxes(x, 0, 2), burn.AxisError, "swapaxes"),
        (lambda x: burn.expand_dims(x, 3), burn.AxisError, "expand_dims"),
        (lambda x: burn.expand_dims(x, (0, 4)), burn.AxisError, "expand_dims"),
        (lambda x: burn.expand_dims(x, (1, -3)), burn.AxisError, "expand_dims"),
        (lambda x: burn.expand_dims(x, (0.5,)), burn.OperandTypeError, "expand_dims"),
        (lambda x: burn.moveaxis(x, 2, 0), burn.AxisError, "moveaxis"),
        (lambda x: burn.moveaxis(x, (0, 1), 0), burn.AxisError, "moveaxis"),
        (lambda x: burn.moveaxis(x, (0, -2), (0, 1)), burn.AxisError, "moveaxis"),
        (lambda x: burn.moveaxis(x, (0, 1), (1, 1)), burn.AxisError, "moveaxis"),
        (lambda x: burn.pad(x, -1), burn.ShapeError, "pad"),
        (lambda x: burn.pad(x, ((1, 1), (1, 1), (1, 1))), burn.ShapeError, "pad"),
        (lambda x: burn.pad(x, "wide"), burn.ShapeError, "pad"),
        (lambda x: burn.pad(x, 1, "mean"), burn.ArgumentError, "pad"),
        (lambda x: burn.pad(x[:, :0], 1, "edge"), burn.ShapeError, "pad"),
        (lambda x: burn.unfold(x, 4, axis=1), burn.ShapeError, "unfold"),
        (lambda x: burn.unfold(x, 1, axis=1, step=0), burn.ArgumentError, "unfold"),
        (lambda x: burn.tril(x[0]), burn.ShapeError, "tril"),
        (lambda x: burn.triu(x, k=0.5), burn.OperandTypeError, "triu"),
        (lambda x: burn.triu_mask((3,), device=CPU), burn.ShapeError, "triu_mask"),
        (lambda x: burn.meshgrid(x), burn.ShapeError, "meshgrid"),
        (lambda x: burn.meshgrid(x[0], indexing="yx"), burn.ArgumentError, "meshgrid"),
        (lambda x: burn.meshgrid(x[0], x[0] > 1), burn.DTypeError, "meshgrid"),
        (lambda x: burn.one_hot(x, 3), burn.DTypeError, "one_hot"),
        (lambda x: burn.one_hot(tensor([1]), -1), burn.ArgumentError, "one_hot"),
        (lambda x: burn.one_hot(tensor([1]), 2, axis=2), burn.AxisError, "one_hot"),
        (lambda x: burn.linspace(0, 1, -1), burn.ArgumentError, "linspace"),
        (lambda x: burn.linspace(0, math.inf, 2), burn.ArgumentError, "linspace"),
        (lambda x: burn.linspace(0, x, 2), burn.OperandTypeError, "linspace"),
        (lambda x: burn.cartesian_grid((), device=CPU), burn.ShapeError, "cartesian_grid"),
    ],
)
def test_bad_input_is_an_error_that_names_the_operation(call, error, message):
    with pytest.raises(error) as caught:
        call(tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    assert message in str(caught.value)


@pytest.mark.parametrize("name", ["column_stack", "dstack", "hstack", "vstack"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 3, 4)])
def test_stacks_are_those_of_numpy(name, shape):
    arrays = [filled(*shape), filled(*shape) + 1]
    expected = getattr(np, name)(arrays)
    same(getattr(burn, name)([tensor(array) for array in arrays]), expected)


@pytest.mark.parametrize("axes", [(0, 1), (1, 0), (2, 0), (-1, 1)])
def test_turns_are_those_of_numpy(axes):
    for k in range(-5, 6):
        same(burn.rot90(tensor(CUBE), k, axes), np.rot90(CUBE, k, axes))


@pytest.mark.parametrize("axes", [(-2, -1), (0, 1), (0, 2), (2, 0), (1, 0)])
def test_vectors_on_diagonals_are_those_of_torch(axes):
    for offset in (-2, 0, 1):
        x = filled(2, 3)
        expected = torch.diag_embed(torch.tensor(x), offset, *axes).numpy()
        same(burn.diag_embed(tensor(x), offset=offset, axis1=axes[0], axis2=axes[1]), expected)


@pytest.mark.parametrize("name", ["tril_indices", "triu_indices"])
def test_indices_of_triangles_are_those_of_numpy(name):
    for n, m, k in itertools.product(range(4), (None, 0, 2, 5), range(-6, 7)):
        actual = getattr(burn, name)(n, k, m, device=CPU)
        for item, expected in zip(actual, getattr(np, name)(n, k, m), strict=True):
            same(item, expected)
    with pytest.raises(burn.OutOfMemoryError, match=name):
        getattr(burn, name)(10**15, device=CPU)


@pytest.mark.parametrize("indexing", ["xy", "ij"])
def test_a_sparse_grid_is_that_of_numpy(indexing):
    vectors = [filled(length) for length in (3, 2, 4)]
    options = {"indexing": indexing, "sparse": True}
    ours = burn.meshgrid(*[tensor(vector) for vector in vectors], **options)
    for our, expected in zip(ours, np.meshgrid(*vectors, **options), strict=True):
        same(our, expected)


def test_axes_are_flattened_from_one_to_another():
    for start, end in [(0, -1), (1, 2), (0, 1), (1, 1), (-1, -1)]:
        expected = torch.tensor(CUBE).flatten(start, end).numpy()
        same(burn.flatten(tensor(CUBE), start, end), expected)
        same(tensor(CUBE).flatten(start, end), expected)
    same(burn.flatten(tensor(3.0)), [3.0])
    with pytest.raises(burn.AxisError, match="stands after"):
        burn.flatten(tensor(CUBE), 2, 1)
