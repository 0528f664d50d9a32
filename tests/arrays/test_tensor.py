"""The tensor that users hold: operators, promotion, indexing, conversion."""

import copy
import math
import operator
import pickle

import numpy as np
import pytest
from hypothesis import given, strategies as st

import burn

CPU = "cpu"
VALUES = np.arange(24.0).reshape(2, 3, 4)


def tensor(values, **options):
    return burn.asarray(values, device=CPU, **options)


ARITHMETIC = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
]
COMPARISON = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]
BITS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]


@pytest.mark.parametrize("function", ARITHMETIC + COMPARISON)
def test_operators_take_tensors_and_numbers_on_either_side(function):
    x, y = np.array([1.5, 2.0, 3.0]), np.array([2.0, 2.0, 0.5])
    for pair in [(tensor(x), tensor(y)), (tensor(x), 2.0), (2.0, tensor(x)), (tensor(x), 2)]:
        expected = function(*[p.numpy() if isinstance(p, burn.Tensor) else p for p in pair])
        result = function(*pair)
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("function", [*BITS, operator.floordiv, operator.mod, operator.add])
def test_operators_of_integers(function):
    x, y = np.array([7, -8, 3]), np.array([1, 2, 3])
    for a, b in [(x, y), (x, 2), (5, y)]:
        ours = [tensor(v) if isinstance(v, np.ndarray) else v for v in (a, b)]
        assert function(*ours).tolist() == function(a, b).tolist()


def test_a_number_takes_the_dtype_of_the_tensor():
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        x = tensor([1.0], dtype=dtype)
        for result in (x + 1, x * 2.5, 1 - x, x / 3, x**2, x == 1, burn.maximum(x, 0)):
            assert result.dtype.name in (dtype, "bool")
    x = tensor([1], dtype="int8")
    assert (x + 1).dtype is burn.int8
    assert (x + 1.5).dtype is burn.float32
    assert (x / 2).dtype is burn.float32
    assert (tensor([True]) & True).dtype is burn.bool
    assert (x * np.float64(2.0)).dtype is burn.float32
    assert (x + np.int64(2)).dtype is burn.int8


def test_tensors_promote_by_the_standard():
    a, b = tensor([1], dtype="int8"), tensor([1], dtype="uint8")
    assert (a + b).dtype is burn.int16
    assert (a + tensor([1.0], dtype="float16")).dtype is burn.float16
    assert burn.where(tensor([True]), a, tensor([0.5])).dtype is burn.float32
    assert burn.concat([a, b]).dtype is burn.int16
    assert (tensor([1]) / tensor([2])).tolist() == [0.5]
    assert burn.exp(tensor([0])).dtype is burn.float32
    assert burn.mean(tensor([1, 2])).item() == 1.5
    with pytest.raises(burn.DTypeError, match="uint64"):
        a + tensor([1], dtype="uint64")


def test_sums_of_small_integers_do_not_overflow():
    assert tensor([200, 200], dtype="uint8").sum().item() == 400
    assert tensor([200, 200], dtype="uint8").sum().dtype is burn.uint64
    assert tensor([True, True]).sum().item() == 2
    assert tensor([1.0, 2.0], dtype="float32").sum(dtype="float64").dtype is burn.float64
    assert tensor(np.ones(4096), dtype="bfloat16").sum().item() == 4096


def test_integer_arithmetic_wraps_and_division_by_zero_is_zero():
    assert (tensor([127], dtype="int8") + 1).tolist() == [-128]
    assert (tensor([5, -5]) // 0).tolist() == [0, 0]
    assert (tensor([5, -5]) % 0).tolist() == [0, 0]
    assert (tensor([-7, 7]) % 3).tolist() == [2, 1]
    assert (tensor([-7, 7]) // 3).tolist() == [-3, 2]
    assert (tensor([2, 1, -1, 0]) ** tensor([-1, -2, -3, -1])).tolist() == [0, 1, -1, 0]
    with pytest.raises(ValueError, match="integer to the power -1"):
        tensor([2]) ** -1


def test_a_cast_saturates():
    x = tensor([1.9, -1.9, 300.0, -300.0, math.nan, math.inf, -math.inf])
    assert x.astype("int8").tolist() == [1, -1, 127, -128, 0, 127, -128]
    assert x.astype("uint8").tolist() == [1, 0, 255, 0, 0, 255, 0]
    assert x.astype("int64").tolist()[5:] == [2**63 - 1, -(2**63)]
    assert tensor([300, -1]).astype("uint8").tolist() == [44, 255]
    assert x.astype("bool").tolist() == [True] * 7


KEYS = [
    0,
    -1,
    (1, 2),
    (slice(None), 1),
    (..., -1),
    (0, ..., slice(1, 3)),
    slice(None, None, -1),
    (slice(1, None), slice(None, None, -2), slice(3, 0, -1)),
    (slice(5, 9),),
    (None, 0, None),
    (slice(0, 0), 1),
    (1, 1, 1),
    ...,
    (),
    (slice(-10, 10, 7), slice(10, -10, -1)),
]


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_indexing_is_numpys(key):
    result = tensor(VALUES)[key]
    assert result.shape == VALUES[key].shape
    assert result.tolist() == VALUES[key].tolist()


@pytest.mark.parametrize("key", [key for key in KEYS if key != ()], ids=repr)
def test_assignment_is_numpys(key):
    ours, theirs = tensor(VALUES), VALUES.copy()
    ours[key] = -1.0
    theirs[key] = -1.0
    assert ours.tolist() == theirs.tolist()
    value = np.arange(theirs[key].size, dtype=float).reshape(theirs[key].shape)
    ours[key] = tensor(value)
    theirs[key] = value
    assert ours.tolist() == theirs.tolist()


bounds = st.one_of(st.none(), st.integers(-8, 8))


@given(
    length=st.integers(0, 6),
    start=bounds,
    stop=bounds,
    step=st.one_of(st.none(), st.integers(-4, 4).filter(bool)),
)
def test_any_slice_is_numpys(length, start, stop, step):
    values = np.arange(length)
    piece = slice(start, stop, step)
    assert tensor(values)[piece].tolist() == values[piece].tolist()


def test_indexing_with_a_tensor_selects_along_the_first_axis():
    index = tensor([[1, 0], [-1, 1]])
    assert tensor(VALUES)[index].tolist() == VALUES[index.numpy()].tolist()


def test_assignment_is_seen_by_names_and_views_and_not_by_arrays():
    x = tensor([[1.0, 2.0], [3.0, 4.0]])
    name, row, transposed, array = x, x[0], x.T, x.numpy()
    x[0, 0] = 9.0
    x *= 2
    assert name is x
    assert x.tolist() == [[18.0, 4.0], [6.0, 8.0]]
    assert row.tolist() == [18.0, 4.0]
    assert transposed.tolist() == [[18.0, 6.0], [4.0, 8.0]]
    assert array.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_what_gives_all_of_a_tensor_gives_another_object():
    x = tensor([1.0, 2.0])
    others = [+x, x.astype(x.dtype), x.flatten(), burn.clip(x), burn.real(x)]
    x[0] = 5.0
    assert all(other.tolist() == [1.0, 2.0] for other in others)


def test_an_in_place_operator_keeps_shape_and_dtype():
    x = tensor([1, 2])
    with pytest.raises(burn.OperandTypeError, match="change the dtype"):
        x += 0.5
    with pytest.raises(burn.ShapeError, match="change the shape"):
        x += tensor([[1], [2]])
    assert x.tolist() == [1, 2]


def test_memory_of_others_is_copied_and_numpy_gets_a_read_only_view():
    array = np.zeros(3)
    x = tensor(array)
    array[0] = 5.0
    assert x.tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="read-only"):
        x.numpy()[0] = 1.0


def test_numpy_leaves_operators_to_tensors_and_reads_host_tensors():
    x = tensor([1.0, 2.0])
    assert isinstance(np.float64(2) * x, burn.Tensor)
    assert np.asarray(x).tolist() == [1.0, 2.0]
    assert np.sum(np.asarray(x, dtype="float64")) == 3.0
    with pytest.raises(TypeError):
        np.ones(2) + x


def test_one_element_is_a_python_number():
    x = tensor([[2.5]])
    assert float(x) == 2.5
    assert int(x) == 2
    assert bool(x)
    assert x.item() == 2.5
    assert [10, 20, 30][tensor(1)] == 20
    for call in (lambda: bool(tensor([])), lambda: float(tensor([1.0, 2.0]))):
        with pytest.raises(burn.ShapeError):
            call()
    with pytest.raises(TypeError):
        operator.index(tensor(1.0))


def test_equality_is_elementwise_and_hash_is_identity():
    x, y = tensor([1.0]), tensor([1.0])
    assert (x == y).tolist() == [True]
    assert len({x, y, x}) == 2
    assert (x == None) is False  # noqa: E711 — Python's own comparison is what is tested
    assert x != "text"


def test_iteration_length_and_properties():
    x = tensor(VALUES)
    assert len(x) == 2
    assert [row.shape for row in x] == [(3, 4), (3, 4)]
    assert (x.shape, x.ndim, x.size, x.dtype) == ((2, 3, 4), 3, 24, burn.float64)
    assert x.mT.shape == (2, 4, 3)
    assert x[0].T.tolist() == VALUES[0].T.tolist()
    for call in (lambda: len(tensor(1)), lambda: iter(tensor(1))):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(burn.ShapeError, match="mT"):
        _ = x.T


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "bool"])
def test_a_tensor_survives_pickling_and_copying(dtype):
    x = tensor([[1, 0], [3, 4]], dtype=dtype)
    for again in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
        assert again.tolist() == x.tolist()
        assert again.dtype is x.dtype
        assert again.device is x.device


def test_repr_shows_values_device_and_what_is_not_default():
    assert repr(burn.ones(2, device=CPU)) == "Tensor([1., 1.], device='cpu:0')"
    assert "dtype=int8" in repr(tensor([1], dtype="int8"))
    assert "shape=(0, 3)" in repr(burn.zeros((0, 3), device=CPU))
    assert "..." in repr(burn.zeros(5000, device=CPU))
    leaf = burn.ones(1, device=burn.Device(CPU).autodiff()).require_grad()
    assert "require_grad" in repr(leaf)
    assert "tracked" in repr(leaf * 2)


def test_integers_beyond_int64_keep_every_digit():
    large = 2**63 + 1
    for values in ([0, large], [[large], [0]], (large, 2)):
        assert tensor(values, dtype="uint64").numpy().tolist() == np.array(values, object).tolist()
    assert tensor([-1, large], dtype="float64").numpy().tolist() == [-1.0, 2.0**63]
    for options in ({}, {"dtype": "uint64"}, {"dtype": "int64"}):
        with pytest.raises(burn.ScalarRangeError):
            tensor([-1, large], **options)


def test_python_numbers_become_default_dtypes_and_arrays_keep_theirs():
    assert tensor([1, 2]).dtype is burn.int64
    assert tensor([1, 2.0]).dtype is burn.float32
    assert tensor(True).dtype is burn.bool
    assert tensor(np.ones(2)).dtype is burn.float64
    assert tensor(np.ones(2, ">f4")).tolist() == [1.0, 1.0]
    assert tensor([tensor(1.5), 2]).tolist() == [1.5, 2.0]
    assert burn.asarray(tensor([1.5]), dtype="int32").dtype is burn.int32


@pytest.mark.parametrize(
    "arguments", [(5,), (2, 8, 3), (5, 0, -2), (0, 1, 0.25), (3, 3), (1.0, 2.0, 0.3), (0, -3)]
)
def test_arange_is_numpys(arguments):
    assert burn.arange(*arguments, device=CPU).tolist() == pytest.approx(
        np.arange(*arguments).tolist()
    )


def test_creation_functions():
    assert burn.full((2,), 7, device=CPU).dtype is burn.int64
    assert burn.full((2,), 7.5, device=CPU).dtype is burn.float32
    assert burn.full((), True, device=CPU).dtype is burn.bool
    assert burn.eye(2, 3, k=1, device=CPU).tolist() == np.eye(2, 3, k=1).tolist()
    x = tensor([[1, 2]], dtype="int16")
    for function in (burn.zeros_like, burn.ones_like, burn.empty_like):
        assert (function(x).shape, function(x).dtype) == ((1, 2), burn.int16)


def test_shape_functions_are_numpys():
    x = tensor(VALUES)
    pairs = [
        (burn.expand_dims(x, axis=-1), np.expand_dims(VALUES, -1)),
        (burn.expand_dims(x, axis=(-1, 1)), np.expand_dims(VALUES, (-1, 1))),
        (burn.expand_dims(x, axis=()), VALUES),
        (burn.squeeze(x[:1], axis=0), VALUES[0]),
        (burn.moveaxis(x, 0, -1), np.moveaxis(VALUES, 0, -1)),
        (burn.moveaxis(x, (0, -1), (1, 0)), np.moveaxis(VALUES, (0, -1), (1, 0))),
        (burn.moveaxis(x, (2, 0, 1), (0, 1, 2)), np.moveaxis(VALUES, (2, 0, 1), (0, 1, 2))),
        (burn.permute_dims(x, (2, 0, 1)), VALUES.transpose(2, 0, 1)),
        (burn.flip(x), np.flip(VALUES)),
        (burn.flip(x, axis=1), np.flip(VALUES, 1)),
        (burn.stack([x, x], axis=1), np.stack([VALUES, VALUES], 1)),
        (burn.concat([x, x], axis=-1), np.concatenate([VALUES, VALUES], -1)),
        (burn.concat([x, x], axis=None), np.concatenate([VALUES, VALUES], None)),
        (burn.flatten(x), VALUES.ravel()),
        (burn.broadcast_to(x[:1], (5, 3, 4)), np.broadcast_to(VALUES[:1], (5, 3, 4))),
        (burn.cumulative_sum(x, axis=1), np.cumsum(VALUES, 1)),
        (burn.cumulative_prod(x, axis=-1), np.cumprod(VALUES, -1)),
        (burn.clip(x, 3, tensor(VALUES[0] + 2)), np.clip(VALUES, 3, VALUES[0] + 2)),
        (burn.clip(x, max=4), np.clip(VALUES, None, 4)),
        (x @ x.mT, VALUES @ VALUES.swapaxes(1, 2)),
        (x @ x[0, 0], VALUES @ VALUES[0, 0]),
        (x[0, 0] @ x.mT, VALUES[0, 0] @ VALUES.swapaxes(1, 2)),
        (x[0, 0] @ x[0, 1], VALUES[0, 0] @ VALUES[0, 1]),
    ]
    for ours, theirs in pairs:
        assert ours.shape == theirs.shape
        assert ours.tolist() == theirs.tolist()


def test_taking_and_adding_at_indices():
    x = tensor(VALUES[0])
    rows = tensor([2, 0, 2])
    assert burn.take(x, rows, axis=0).tolist() == VALUES[0][[2, 0, 2]].tolist()
    indices = tensor([[0], [-1], [2]])
    expected = np.take_along_axis(VALUES[0], np.array([[0], [-1], [2]]), 1)
    assert burn.take_along_axis(x, indices, axis=1).tolist() == expected.tolist()
    ones = burn.ones_like(x)
    assert (
        burn.select_add(x, rows, ones, axis=0).tolist()
        == (VALUES[0] + np.array([[1.0], [0.0], [2.0]])).tolist()
    )
    added = burn.scatter_add(
        x, tensor([[0, 0], [1, 1], [3, 0]]), burn.ones((3, 2), device=CPU), axis=1
    )
    expected = VALUES[0].copy()
    np.add.at(expected, (np.arange(3)[:, None], np.array([[0, 0], [1, 1], [3, 0]])), 1.0)
    assert added.tolist() == expected.tolist()


def test_logic_takes_booleans_and_numbers():
    a, b = tensor([True, False]), tensor([2, 0])
    assert burn.logical_and(a, b).tolist() == [True, False]
    assert burn.logical_or(a, b).tolist() == [True, False]
    assert burn.logical_xor(a, tensor([1, 1])).tolist() == [False, True]
    assert burn.logical_not(b).tolist() == [False, True]
    assert (~a).tolist() == [False, True]
