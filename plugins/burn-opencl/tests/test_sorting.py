"""Sorts of all lengths, with the kernels for CPUs and those for GPUs."""

import itertools

import numpy as np
import pytest

import burn
from burn_opencl.icd_loader import found_devices

if not found_devices():
    pytest.skip("OpenCL is not tested: there is no device", allow_module_level=True)


@pytest.fixture(params=["cpu", "gpu"], scope="module")
def device(request, with_kernels):
    """The device with the kernels of a kind."""
    with with_kernels(request.param, units=2 if request.param == "cpu" else 132) as device:
        yield device


@pytest.fixture
def numbers():
    return np.random.default_rng(1)


def values(numbers, dtype, shape):
    """Elements with repetitions; floats with zeros, infinities and NaN of both signs."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        a = (numbers.normal(size=shape) * 9).astype(dtype)
        special = [np.nan, -0.0, 0.0, np.inf, -np.inf, -np.nan, 0.0, -0.0]
        a[..., 1::9][..., : len(special)] = special[: a[..., 1::9].shape[-1]]
    elif kind.kind == "b":
        a = numbers.integers(0, 2, shape).astype(bool)
    else:
        info = np.iinfo(dtype)
        a = numbers.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    a[..., ::7] = a[..., :1]
    return a


def expected_order(a, *, descending):
    """What a stable sort gives, by NumPy."""
    if not descending:
        return a.argsort(axis=-1, kind="stable")
    # Turned around twice: the last comes first, and of equal ones the first again.
    order = a[..., ::-1].argsort(axis=-1, kind="stable")[..., ::-1]
    return a.shape[-1] - 1 - order


def bits(a):
    return np.sort(a.view(f"u{a.itemsize}"), axis=-1)


# Those of one width share kernels, which take long to compile.
WIDTHS = (
    ("bool", "int8", "uint8"),
    ("int16", "uint16", "float16"),
    ("int32", "uint32", "float32"),
    ("int64", "uint64", "float64"),
)
# Around the limits of ranking (64, 256) and of the tile of a group (1792 to 4096).
SHAPES = ((1,), (9,), (3, 64), (3, 65), (40, 20), (3, 257), (1793,), (2, 3073), (4097,), (9000,))
# Above the limits of one item of a CPU (32,768), and of counts that groups of a GPU sum.
LONG = ((2, 33_000), (140_000,))


@pytest.mark.parametrize("dtypes", WIDTHS, ids="-".join)
def test_rows_of_all_lengths(device, numbers, dtypes, everything):
    shapes = [*itertools.product(dtypes, SHAPES)]
    if not everything:  # a shape of each kernel for dtypes other than float32
        shapes = [shape for shape in shapes if "float32" in shape or shape[1] in SHAPES[::3]]
    shapes += itertools.product({"float32"}.intersection(dtypes), LONG)
    for dtype, shape in shapes:
        a = values(numbers, dtype, shape)
        x = burn.asarray(a, device=device)
        for descending in (False, True):
            order = expected_order(a, descending=descending)
            found = burn.argsort(x, axis=-1, descending=descending).numpy()
            np.testing.assert_array_equal(found, order)
            result = burn.sort(x, axis=-1, descending=descending).numpy()
            np.testing.assert_array_equal(result, np.take_along_axis(a, order, -1))
            if a.dtype.kind == "f":  # zeros and NaN come out with the sign that they had
                np.testing.assert_array_equal(bits(result), bits(a))


def test_bfloat16(device, numbers):
    a = values(numbers, "float32", (2, 3000))
    x = burn.asarray(a, device=device).astype(burn.bfloat16)
    rounded = x.astype(burn.float32).numpy()
    order = expected_order(rounded, descending=False)
    np.testing.assert_array_equal(burn.argsort(x, axis=-1).numpy(), order)
    found = burn.sort(x, axis=-1).astype(burn.float32).numpy()
    np.testing.assert_array_equal(found, np.take_along_axis(rounded, order, -1))


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_the_first_of_rows(device, numbers, dtype):
    # In a whole row, in parts of one, and by a sort of it where they are many.
    for shape in ((9,), (40, 70), (3, 700), (2, 5000), (33_000,)):
        a = values(numbers, dtype, shape)
        x = burn.asarray(a, device=device)
        n = shape[-1]
        for largest in (False, True):
            order = expected_order(a, descending=largest)
            for k in {1, min(n, 40), n // 7, n - 1, n}:
                found = burn.argtopk(x, k, axis=-1, largest=largest).numpy()
                np.testing.assert_array_equal(found, order[..., :k])


def test_the_first_of_what_is_in_order_the_other_way(device):
    x = burn.arange(5000, device=device)  # each element comes before all that were seen
    indices = burn.argtopk(burn.stack([x] * 9), 3, axis=-1)
    assert indices.tolist() == [[4999, 4998, 4997]] * 9


def test_other_axes_and_views(device, numbers):
    a = values(numbers, "float32", (70, 5, 90))
    x = burn.asarray(a, device=device)
    for axis, (y, b) in itertools.product(range(3), ((x, a), (x[1:], a[1:]))):
        order = expected_order(np.moveaxis(b, axis, -1), descending=False)
        order = np.moveaxis(order, -1, axis)
        expected = np.take_along_axis(b, order, axis)
        np.testing.assert_array_equal(burn.argsort(y, axis=axis).numpy(), order)
        np.testing.assert_array_equal(burn.sort(y, axis=axis).numpy(), expected)
        found = burn.topk(y, 4, axis=axis, largest=False)
        np.testing.assert_array_equal(found.indices.numpy(), order.take(range(4), axis))
        np.testing.assert_array_equal(found.values.numpy(), expected.take(range(4), axis))


def test_keys_that_are_equal_in_all_digits(device):
    for n in (300, 10_000):
        x = burn.full((2, n), 3.0, device=device)
        np.testing.assert_array_equal(burn.argsort(x).numpy(), [range(n)] * 2)
        assert (burn.sort(x).numpy() == 3.0).all()


def test_an_axis_too_long_for_indices_of_32_bits_is_an_error(device):
    x = burn.expand_dims(burn.ones(1, device=device), axis=0)
    long = burn.broadcast_to(x[0], ((1 << 32) + 1,))
    with pytest.raises(burn.ExecutionError, match="along an axis of 4294967297 elements"):
        burn.sort(long)
