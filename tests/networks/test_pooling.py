"""Pooling against PyTorch; edge shapes; what it refuses."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch.nn import functional

import burn
from burn.nn import functional as F
from crossing import on_devices

CPU = "cpu"
RANDOM = np.random.default_rng(5)
SHAPES = {1: (2, 3, 11), 2: (2, 3, 9, 11), 3: (1, 2, 5, 6, 7)}


def normal(*shape):
    return RANDOM.normal(size=shape)


def tensor(array, *, dtype=None):
    return burn.asarray(array, device=CPU, dtype=dtype)


def assert_close(actual, expected, rtol=1e-10):
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=1e-12)


def gradients(function, array, device=CPU):
    """Value of a function of a tensor, and its gradient for some cotangent, in burn."""
    x = burn.asarray(array, device=burn.Device(device).autodiff()).require_grad()
    y = function(x)
    cotangent = burn.asarray(weights(y.shape), device=device)
    return y.detach().numpy(), x.grad((y * cotangent).sum().backward()).numpy()


def torch_gradients(function, array):
    x = torch.from_numpy(array).requires_grad_()
    y = function(x)
    (y * torch.from_numpy(weights(y.shape))).sum().backward()
    return y.detach().numpy(), x.grad.numpy()


def weights(shape):
    return np.linspace(0.5, 1.5, math.prod(shape)).reshape(shape)


def options(**choices):
    return [
        dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())
    ]


def fitting(plans):
    """Those with at most half of the kernel as padding."""
    return [plan for plan in plans if plan["padding"] <= plan["kernel_size"] // 2]


MAXIMA = options(
    kernel_size=[1, 2, 3],
    stride=[1, 2, 4],
    padding=[0, 1],
    dilation=[1, 2],
    ceil_mode=[False, True],
)
MEANS = options(
    kernel_size=[1, 2, 3],
    stride=[1, 2, 4],
    padding=[0, 1],
    ceil_mode=[False, True],
    count_include_pad=[False, True],
)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_maxima_their_indices_and_gradients_are_those_of_torch(rank):
    array = normal(*SHAPES[rank])
    ours, theirs = getattr(F, f"max_pool{rank}d"), getattr(functional, f"max_pool{rank}d")
    with_indices = getattr(F, f"max_pool{rank}d_with_indices")
    for plan in fitting(MAXIMA):
        values, gradient = gradients(lambda x, plan=plan: ours(x, **plan), array)
        expected, wanted = torch_gradients(lambda x, plan=plan: theirs(x, **plan), array)
        assert np.array_equal(values, expected), plan
        assert_close(gradient, wanted)
        found = with_indices(tensor(array), **plan)
        _, wanted = theirs(torch.from_numpy(array), return_indices=True, **plan)
        assert np.array_equal(found.values.numpy(), expected), plan
        assert np.array_equal(found.indices.numpy(), wanted.numpy()), plan


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_means_and_their_gradients_are_those_of_torch(rank):
    array = normal(*SHAPES[rank])
    ours, theirs = getattr(F, f"avg_pool{rank}d"), getattr(functional, f"avg_pool{rank}d")
    for plan in fitting(MEANS):
        values, gradient = gradients(lambda x, plan=plan: ours(x, **plan), array)
        expected, wanted = torch_gradients(lambda x, plan=plan: theirs(x, **plan), array)
        assert_close(values, expected)
        assert_close(gradient, wanted)


@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("divisor", [1, 5])
def test_sums_may_have_a_divisor_of_their_own_as_in_torch(rank, divisor):
    array = normal(*SHAPES[rank])
    ours, theirs = getattr(F, f"avg_pool{rank}d"), getattr(functional, f"avg_pool{rank}d")
    for plan in fitting(MEANS)[::5]:
        plan |= {"divisor_override": divisor}
        values, gradient = gradients(lambda x, plan=plan: ours(x, **plan), array)
        expected, wanted = torch_gradients(lambda x, plan=plan: theirs(x, **plan), array)
        assert_close(values, expected)
        assert_close(gradient, wanted)


@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize("ceil_mode", [False, True])
def test_means_of_dilated_windows_are_sums_over_counts(include, ceil_mode):
    array = normal(1, 2, 6, 5)
    windows = {"kernel_size": 2, "stride": (2, 1), "padding": ((1, 0), (0, 1)), "dilation": (3, 2)}
    rows = [range(i * 2 - 1, i * 2 + 3, 3) for i in range(2 + ceil_mode)]
    columns = [range(j, j + 3, 2) for j in range(4)]
    expected = np.zeros((1, 2, len(rows), len(columns)))
    for i, j in np.ndindex(len(rows), len(columns)):
        inside = [(a, b) for a in rows[i] for b in columns[j] if 0 <= a < 6 and b < 5]
        counted = inside if not include else [a for a in rows[i] if a < 6] * 2
        expected[:, :, i, j] = sum(array[:, :, a, b] for a, b in inside) / len(counted)
    found = F.avg_pool2d(tensor(array), **windows, ceil_mode=ceil_mode, count_include_pad=include)
    assert_close(found.numpy(), expected)


def test_an_infinite_element_is_in_the_means_of_its_windows_alone():
    array = normal(1, 9)
    array[0, 4] = math.inf
    means = F.avg_pool1d(tensor(array), 3, 1, dilation=2).numpy()[0]
    assert np.isfinite(means).tolist() == [False, True, False, True, False]


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 12])
def test_adaptive_means_and_their_gradients_are_those_of_torch(rank, size):
    array = normal(*SHAPES[rank])
    name = f"adaptive_avg_pool{rank}d"
    values, gradient = gradients(lambda x: getattr(F, name)(x, size), array)
    expected, wanted = torch_gradients(lambda x: getattr(functional, name)(x, size), array)
    assert_close(values, expected)
    assert_close(gradient, wanted)


SIZES = list(itertools.product([1, 2, 3], [1, 2, 3, 5, 7, 12]))


@pytest.mark.parametrize(
    ("sizes", "device"), on_devices(SIZES, burn.Device.enumerate(), [(1, 7), (2, 3), (3, 2)])
)
def test_adaptive_maxima_and_their_gradients_are_those_of_torch(sizes, device):
    rank, size = sizes
    array = normal(*SHAPES[rank])
    name = f"adaptive_max_pool{rank}d"
    # Equal elements and NaN too: of those the first counts.
    for values in (array, np.round(array), np.where(array > 1.5, math.nan, array)):
        found, gradient = gradients(lambda x: getattr(F, name)(x, size), values, device)
        expected, wanted = torch_gradients(lambda x: getattr(functional, name)(x, size), values)
        assert np.array_equal(found, expected, equal_nan=True)
        if not np.isnan(values).any():  # of those torch takes the last
            assert_close(gradient, wanted)


def test_adaptive_maxima_have_a_number_for_each_axis():
    array = normal(2, 3, 7, 8)
    for size in ((None, 3), (3, None), (4, 5), (7, 8)):
        expected = functional.adaptive_max_pool2d(torch.from_numpy(array), size)
        assert np.array_equal(F.adaptive_max_pool2d(tensor(array), size).numpy(), expected.numpy())
    integers = np.arange(42).reshape(6, 7)
    assert F.adaptive_max_pool2d(tensor(integers), (1, 2)).tolist() == [[38, 41]]
    batched = burn.vmap(lambda x: F.adaptive_max_pool2d(x, (2, 3)))(tensor(array))
    assert np.array_equal(batched.numpy(), F.adaptive_max_pool2d(tensor(array), (2, 3)).numpy())


def test_adaptive_maxima_need_elements_and_windows():
    for shape, size, error in [
        ((), 1, burn.ShapeError),
        ((3,), 1, burn.ShapeError),
        ((2, 0, 3), 1, burn.ShapeError),
        ((2, 3, 3), 0, burn.ArgumentError),
        ((2, 3, 3), (2, -1), burn.ArgumentError),
        ((2, 3, 3), (1, 2, 3), burn.ArgumentError),
    ]:
        with pytest.raises(error, match="adaptive_max_pool2d"):
            F.adaptive_max_pool2d(tensor(np.ones(shape)), size)


@pytest.mark.parametrize(
    "plan",
    [
        {"kernel_size": (3, 2), "stride": (1, 3), "padding": (1, 0)},
        {"kernel_size": (2, 5), "stride": (3, 1), "padding": (0, 2), "ceil_mode": True},
        {"kernel_size": (9, 11)},
        {"kernel_size": (9, 11), "padding": (4, 5), "stride": 1},
        {"kernel_size": 1, "stride": (5, 7)},
    ],
    ids=str,
)
def test_each_axis_has_its_own_numbers(plan):
    array = normal(*SHAPES[2])
    for name in ("max_pool2d", "avg_pool2d"):
        values, gradient = gradients(lambda x, name=name: getattr(F, name)(x, **plan), array)
        expected, wanted = torch_gradients(
            lambda x, name=name: getattr(functional, name)(x, **plan), array
        )
        assert_close(values, expected)
        assert_close(gradient, wanted)


def test_adaptive_means_keep_an_axis_for_none():
    array = normal(2, 3, 6, 8)
    expected = functional.adaptive_avg_pool2d(torch.from_numpy(array), (None, 3))
    assert_close(F.adaptive_avg_pool2d(tensor(array), (None, 3)).numpy(), expected.numpy())


def test_padding_may_be_on_one_side():
    array = normal(2, 3, 6, 7)
    padding = ((1, 0), (0, 1))
    padded = functional.pad(torch.from_numpy(array), (0, 1, 1, 0), value=-math.inf)
    largest, gradient = gradients(lambda x: F.max_pool2d(x, 3, 2, padding), array)
    expected, wanted = torch_gradients(
        lambda x: functional.max_pool2d(functional.pad(x, (0, 1, 1, 0), value=-math.inf), 3, 2),
        array,
    )
    assert np.array_equal(largest, functional.max_pool2d(padded, 3, 2).numpy())
    assert np.array_equal(largest, expected)
    assert_close(gradient, wanted)
    means, gradient = gradients(lambda x: F.avg_pool2d(x, 3, 2, padding), array)
    expected, wanted = torch_gradients(
        lambda x: functional.avg_pool2d(functional.pad(x, (0, 1, 1, 0)), 3, 2), array
    )
    assert_close(means, expected)
    assert_close(gradient, wanted)


@pytest.mark.parametrize("lead", [(), (4,), (2, 3), (2, 1, 2, 2)])
def test_any_axes_may_stand_before_the_spatial_ones(lead):
    array = normal(*lead, 6, 6)
    flat = torch.from_numpy(array.reshape(1, -1, 6, 6))
    expected = functional.max_pool2d(flat, 2).numpy().reshape(*lead, 3, 3)
    assert np.array_equal(F.max_pool2d(tensor(array), 2).numpy(), expected)
    expected = functional.avg_pool2d(flat, 3, 1, 1).numpy().reshape(*lead, 6, 6)
    assert_close(F.avg_pool2d(tensor(array), 3, 1, 1).numpy(), expected)


POOLINGS = {
    "max_pool2d": lambda x: F.max_pool2d(x, 2),
    "max_pool2d_with_indices": lambda x: F.max_pool2d_with_indices(x, 2).values,
    "avg_pool2d": lambda x: F.avg_pool2d(x, 2),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 2),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, 2),
}


@pytest.mark.parametrize("name", POOLINGS)
@pytest.mark.parametrize("lead", [(0, 3), (2, 0)])
def test_an_empty_batch_gives_an_empty_result(name, lead):
    values, gradient = gradients(POOLINGS[name], np.zeros((*lead, 4, 4)))
    assert values.shape == (*lead, 2, 2)
    assert gradient.shape == (*lead, 4, 4)


def test_an_image_of_one_element():
    x = tensor(np.array([[[[3.0]]]]))
    assert F.max_pool2d(x, 1).tolist() == [[[[3.0]]]]
    assert F.max_pool2d(x, 2, 1, 1).tolist() == [[[[3.0, 3.0], [3.0, 3.0]]]]
    assert F.avg_pool2d(x, 2, 1, 1).tolist() == [[[[0.75, 0.75], [0.75, 0.75]]]]
    mean = F.avg_pool2d(x, 2, 1, 1, count_include_pad=False)
    assert mean.tolist() == [[[[3.0, 3.0], [3.0, 3.0]]]]
    assert F.adaptive_avg_pool2d(x, (2, 1)).tolist() == [[[[3.0], [3.0]]]]


def test_padding_is_never_the_largest():
    x = tensor(np.full((1, 1, 3, 3), -math.inf))
    values, indices = F.max_pool2d_with_indices(x, 3, 2, 1)
    assert values.tolist() == [[[[-math.inf] * 2] * 2]]
    assert indices.tolist() == [[[[0, 1], [3, 4]]]]
    x = tensor(np.zeros((1, 3), np.uint8))
    assert F.max_pool1d_with_indices(x, 2, 1, 1).indices.tolist() == [[0, 0, 1, 2]]


def test_nan_is_the_largest_and_the_first_one_counts():
    array = normal(1, 1, 8, 8)
    array[0, 0, 3, 2:5] = math.nan
    array[0, 0, 6, 6] = math.inf
    values, indices = F.max_pool2d_with_indices(tensor(array), 3, 2, 1)
    expected = functional.max_pool2d(torch.from_numpy(array), 3, 2, 1).numpy()
    assert np.array_equal(values.numpy(), expected, equal_nan=True)
    chosen = array.reshape(-1)[indices.numpy()]
    assert np.array_equal(chosen, expected, equal_nan=True)
    row = indices.numpy()[0, 0, 1]
    assert row.tolist()[1:3] == [3 * 8 + 2, 3 * 8 + 3]


def test_the_gradient_goes_to_the_first_of_equals():
    values, gradient = gradients(lambda x: F.max_pool2d(x, 2), np.ones((4, 4)))
    assert values.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert np.array_equal(gradient != 0.0, np.array([[1, 0, 1, 0], [0, 0, 0, 0]] * 2) == 1)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint16"])
def test_integers_have_maxima(dtype):
    array = RANDOM.integers(0, 100, (2, 5, 6)).astype(dtype)
    values, indices = F.max_pool2d_with_indices(tensor(array), 2, padding=1)
    expected, wanted = functional.max_pool2d(
        torch.from_numpy(array.astype(np.float64)), 2, padding=1, return_indices=True
    )
    assert str(values.dtype) == dtype
    assert np.array_equal(values.numpy(), expected.numpy())
    assert np.array_equal(indices.numpy(), wanted.numpy())
    assert F.avg_pool2d(tensor(array), 2).dtype is burn.float32


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_many_images_are_pooled_like_one(dtype):
    # More channels than one block, and elements that are not finite.
    x = tensor(normal(70, 3, 33, 31), dtype=dtype)
    array = x.astype("float32").numpy().copy()
    array[40, 1, 5:8, 6] = math.nan
    x = tensor(array, dtype=dtype)
    twin = torch.from_numpy(array)
    expected, wanted = functional.max_pool2d(twin, 3, 2, 1, return_indices=True)
    values, indices = F.max_pool2d_with_indices(x, 3, 2, 1)
    assert np.array_equal(values.astype("float32").numpy(), expected.numpy(), equal_nan=True)
    assert np.array_equal(
        F.max_pool2d(x, 3, 2, 1).astype("float32").numpy(), expected.numpy(), equal_nan=True
    )
    finite = np.isfinite(expected.numpy())
    assert np.array_equal(indices.numpy()[finite], wanted.numpy()[finite])
    mean = functional.avg_pool2d(twin, 3, 2, 1).numpy()
    rtol = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-5}[dtype]
    ours = F.avg_pool2d(x, 3, 2, 1).astype("float32").numpy()
    np.testing.assert_allclose(ours, mean, rtol=rtol, atol=rtol)


X = np.ones((1, 2, 5, 6))

REFUSED = [
    (
        lambda: F.max_pool2d(tensor(X), 7, 2),
        burn.ShapeError,
        "stride) + 1 = floor((5 + 0 - 1 * (7 - 1) - 1) / 2) + 1 = 0",
    ),
    (
        lambda: F.avg_pool2d(tensor(X), (3, 9), 1, (1, 1)),
        burn.ShapeError,
        "floor((6 + 2 - 1 * (9 - 1) - 1) / 1) + 1 = 0",
    ),
    (
        lambda: F.max_pool1d(tensor(np.ones(1)), 2, 1, 1, 2),
        burn.ShapeError,
        "nothing but padding",
    ),
    (lambda: F.max_pool2d(tensor(X), 3, padding=2), burn.ArgumentError, "at most half"),
    (lambda: F.max_pool2d(tensor(X), 2, 0), burn.ArgumentError, "stride is 0"),
    (lambda: F.max_pool2d(tensor(X), 0, 1), burn.ArgumentError, "kernel_size is 0"),
    (lambda: F.max_pool2d(tensor(X), (2, 2, 2)), burn.ArgumentError, "kernel_size has 3"),
    (lambda: F.max_pool2d(tensor(X), 2.0), burn.OperandTypeError, "kernel_size"),
    (lambda: F.max_pool2d(tensor(X), 2, padding=(1, 1, 0)), burn.ArgumentError, "padding is"),
    (lambda: F.max_pool2d(tensor(X[:, :, :0]), 2), burn.ShapeError, "no elements"),
    (lambda: F.max_pool2d(tensor(X[0, 0, 0]), 2), burn.ShapeError, "2 spatial axes"),
    (lambda: F.max_pool2d(X, 2), burn.OperandTypeError, "must be a tensor"),
    (lambda: F.max_pool2d_with_indices(X, 2), burn.OperandTypeError, "must be a tensor"),
    (lambda: F.avg_pool2d(tensor(X), 2, dilation=0), burn.ArgumentError, "dilation is 0"),
    (lambda: F.avg_pool2d(tensor(X), 2, dilation=9), burn.ShapeError, "no window fits"),
    (lambda: F.avg_pool2d(tensor(X), 2, divisor_override=0), burn.ArgumentError, "1 or more"),
    (
        lambda: F.avg_pool2d(tensor(X, dtype="int32"), 2, dilation=2),
        burn.DTypeError,
        "must be floats",
    ),
    (lambda: F.adaptive_avg_pool2d(tensor(X), -1), burn.ArgumentError, "output_size"),
    (lambda: F.adaptive_avg_pool2d(tensor(X), (1, 2, 3)), burn.ArgumentError, "3 values"),
    (lambda: F.adaptive_avg_pool3d(tensor(X[0, 0]), 1), burn.ShapeError, "3 spatial axes"),
]


@pytest.mark.parametrize(("call", "error", "text"), REFUSED)
def test_what_is_refused_is_an_error_with_the_numbers(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_indices_of_adaptive_maxima_are_those_of_torch(rank):
    array = normal(*SHAPES[rank])
    ours = getattr(F, f"adaptive_max_pool{rank}d_with_indices")
    theirs = getattr(functional, f"adaptive_max_pool{rank}d")
    for size in (1, 2, 3, 4):
        found = ours(tensor(array), size)
        values, indices = theirs(torch.from_numpy(array), size, return_indices=True)
        assert np.array_equal(found.values.numpy(), values.numpy()), size
        assert np.array_equal(found.indices.numpy(), indices.numpy()), size


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_maxima_go_back_where_those_of_torch_go(rank):
    array = normal(*SHAPES[rank])
    pool, other = (
        getattr(F, f"max_pool{rank}d_with_indices"),
        getattr(functional, f"max_pool{rank}d"),
    )
    ours, theirs = getattr(F, f"max_unpool{rank}d"), getattr(functional, f"max_unpool{rank}d")
    for plan in [(2, None, 0), (3, 2, 1), (3, 1, 0)]:
        found = pool(tensor(array), *plan)
        values, indices = other(torch.from_numpy(array), *plan, return_indices=True)
        expected = theirs(values, indices, *plan, array.shape[2:]).numpy()
        for size in (array.shape[2:], array.shape):
            result = ours(found.values, found.indices, *plan, size)
            assert np.array_equal(result.numpy(), expected), plan
    found = pool(tensor(array), 2)
    maxima = found.values.numpy().copy()
    values, gradient = gradients(
        lambda x: ours(x, found.indices, 2, output_size=array.shape), maxima
    )
    indices = torch.from_numpy(found.indices.numpy().copy())
    expected, wanted = torch_gradients(
        lambda x: theirs(x, indices, 2, output_size=array.shape), maxima
    )
    assert np.array_equal(values, expected)
    assert np.array_equal(gradient, wanted)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_norms_of_windows_and_their_gradients_are_those_of_torch(rank):
    array = normal(*SHAPES[rank])
    ours, theirs = getattr(F, f"lp_pool{rank}d"), getattr(functional, f"lp_pool{rank}d")
    for order, size, stride, ceil_mode in itertools.product(
        (1, 2.0, 3.0), (2, 3), (None, 2), (0, 1)
    ):
        x = array if order == 2.0 else np.abs(array)  # PyTorch takes no magnitudes
        plan = (order, size, stride, bool(ceil_mode))
        values, gradient = gradients(lambda x, plan=plan: ours(x, *plan), x)
        expected, wanted = torch_gradients(lambda x, plan=plan: theirs(x, *plan), x)
        assert_close(values, expected)
        assert_close(gradient, wanted)


def test_the_norm_of_zeros_has_the_gradient_zero():
    _, gradient = gradients(lambda x: F.lp_pool1d(x, 3, 2), np.zeros((1, 1, 4)))
    assert gradient.tolist() == [[[0.0] * 4]]


def test_powers_of_16_bits_do_not_leave_their_range():
    x = tensor(np.array([300.0, -400.0]), dtype="float16")
    assert F.lp_pool1d(x, 2, 2).tolist() == [500.0]
