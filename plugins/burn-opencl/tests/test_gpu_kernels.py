"""The kernels for GPUs, on any device."""

import itertools
import types

import numpy as np
import pytest

import burn
from burn.nn import functional as F
from burn.plugin_api import Update, float32
from burn.testing import SAMPLES, Subject, check_sample, load_samples
from burn_opencl import gemm, linear_algebra
from burn_opencl.elementwise_variants import gpu_variant
from burn_opencl.icd_loader import found_devices
from burn_opencl.segments import updates_by_segments
from crossing import crossed

if not found_devices():
    pytest.skip("OpenCL is not tested: there is no device", allow_module_level=True)

load_samples()


@pytest.fixture(scope="module")
def device(with_kernels):
    """The device with the kernels that a GPU of many units gets, for tensors of all sizes."""
    with with_kernels("gpu", units=132, min_specialized_elements=0) as device:
        yield device


@pytest.fixture
def numbers():
    return np.random.default_rng(1)


OPS = (
    *("add", "where", "sum", "argmin", "softmax", "softmax_grad", "log_softmax_grad", "rms_norm"),
    *("layer_norm_grad", "cumsum", "cast", "conv", "matmul", "select_add", "scatter"),
)


@pytest.mark.parametrize("name", OPS)
def test_results_pass_the_samples_of_the_kit(device, name, everything):
    subject = Subject(device.backend, device.id)
    for sample in SAMPLES[name].samples[:: 1 if everything else 4]:
        for dtype in subject.dtypes(SAMPLES[name], sample):
            if dtype is float32:
                check_sample(subject, SAMPLES[name], sample, dtype)


OF_A_SIZE = [
    pytest.param(name, marks=pytest.mark.exhaustive) for name in ("float16", "uint32", "int8")
]
"""Dtypes of which the gate tries another of the same size."""


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool", *OF_A_SIZE])
def test_vectors_of_four_elements(device, numbers, dtype):
    x = burn.asarray(numbers.integers(0, 2, (50, 64)), device=device).astype(getattr(burn, dtype))
    y = burn.asarray(numbers.integers(0, 2, (51, 64)), device=device).astype(getattr(burn, dtype))
    a, b = (tensor.astype(burn.float32).numpy() for tensor in (x, y))
    for row, expected in ((y[1:], b[1:]), (y[3], b[3]), (y[1:, :1], b[1:, :1])):
        np.testing.assert_array_equal(burn.equal(x, row).numpy(), a == expected)
        chosen = burn.where(burn.equal(x, row), x, row).astype(burn.float32)
        np.testing.assert_array_equal(chosen.numpy(), np.where(a == expected, a, expected))


def test_layouts_select_the_variant():
    dense, row = (64, 1), (0, 1)
    codes = (11, 11, 11)
    assert "LOAD_VEC4S" in gpu_variant(codes, (50, 64), (dense, row, dense), (0, 0, 0)).definitions
    assert (
        "LOAD_VEC4S" not in gpu_variant(codes, (50, 64), (dense, row, dense), (0, 2, 0)).definitions
    )
    assert "LOAD_VEC4S" not in gpu_variant(codes, (50, 63), ((63, 1),) * 3, (0, 0, 0)).definitions
    transposed = gpu_variant(codes, (50, 64), (dense, (1, 50), dense), (0, 0, 0))
    assert "TILES" in transposed.definitions
    assert transposed.items == 2 * 2 * 256


@pytest.mark.parametrize("axes", list(itertools.permutations(range(3))))
def test_permuted_tensors_are_transposed_by_tiles(device, numbers, axes):
    for dtype in ("float32", "int16"):
        values = numbers.normal(size=(34, 45, 40)).astype(dtype)
        x = burn.permute_dims(burn.asarray(values, device=device), axes)
        moved = values.transpose(axes)
        np.testing.assert_array_equal(burn.reshape(x, (-1,)).numpy(), moved.ravel())
        other = numbers.normal(size=moved.shape).astype(dtype)
        found = x + burn.asarray(other, device=device)
        np.testing.assert_array_equal(found.numpy(), moved + other)
        found = x + burn.asarray(other[:, :1], device=device)
        np.testing.assert_array_equal(found.numpy(), moved + other[:, :1])


@pytest.mark.parametrize(
    ("shape", "dtype"),
    crossed(
        [(3, 20_004), (5, 8191), (3, 400, 64), (40_000,), (9001, 3), (60, 130)],
        ["float32", "float64", "int32"],
    ),
)
def test_reductions(device, numbers, shape, dtype):
    a = (numbers.normal(size=shape) * 9).astype(dtype)
    x = burn.asarray(a, device=device)
    for axis in (None, 0, -1):
        expected = a.astype(np.float64).sum(axis=axis)
        np.testing.assert_allclose(burn.sum(x, axis=axis).numpy(), expected, atol=0.2)
        np.testing.assert_array_equal(burn.max(x, axis=axis).numpy(), a.max(axis=axis))
        found = burn.argmax(x, axis=axis).numpy()
        np.testing.assert_array_equal(found, a.argmax(axis=axis))


TOLERANCES = {"float32": 1e-5, "float64": 1e-12, "float16": 2e-3}


@pytest.mark.parametrize(
    ("n", "dtype"), crossed([1, 3, 8, 10, 64, 819, 2000, 8192, 20_004], TOLERANCES)
)
def test_rows_of_all_lengths(device, numbers, n, dtype):
    allowed = TOLERANCES[dtype]
    a = numbers.normal(size=(150 if n < 64 else 3, n)).astype(dtype)
    x, wide = burn.asarray(a, device=device), a.astype(np.float64)
    powers = np.exp(wide)
    powers /= powers.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(F.softmax(x, axis=1).numpy(), powers, atol=allowed)
    logs = F.log_softmax(x, axis=1).numpy()
    np.testing.assert_allclose(logs, np.log(powers), atol=10 * allowed)
    spread = np.sqrt(wide.var(axis=1, keepdims=True) + 1e-3)
    normal = (wide - wide.mean(axis=1, keepdims=True)) / spread
    found = F.layer_norm(x, epsilon=1e-3).numpy()
    np.testing.assert_allclose(found, normal, atol=10 * allowed)


@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((9001,), 0),
        ((70_000,), 0),
        ((3, 20_004), 1),
        ((5, 70), 1),
        ((300, 7, 5), 0),
        ((60, 20_000), 0),
        ((80, 20_000), 0),
    ],
)
def test_scans(device, numbers, shape, axis):
    for dtype in ("float64", "int32"):
        a = (numbers.normal(size=shape) * 3).astype(dtype)
        x = burn.asarray(a, device=device)
        found = burn.cumulative_sum(x, axis=axis).numpy()
        np.testing.assert_allclose(found, a.cumsum(axis=axis), atol=1e-9)
        largest = burn.cummax(x, axis=axis)
        np.testing.assert_array_equal(largest.numpy(), np.maximum.accumulate(a, axis=axis))


@pytest.mark.parametrize(
    ("sizes", "dtype"),
    crossed(
        [(1000, 5000), (7, 3000), (3, 70_000), (1, 600)],
        ["float32", "int16", "float64"],
    ),
)
def test_scatter_by_segments(device, numbers, sizes, dtype):
    n, count = sizes
    launcher = device.backend.for_device(device.id).launcher
    assert updates_by_segments(launcher, Update("scatter", "add", 1, n, count, 1))
    a, b = (numbers.integers(-3, 4, size).astype(dtype) for size in sizes)
    indices = numbers.integers(-n, n, count)
    x, y, index = (burn.asarray(item, device=device) for item in (a, b, indices))
    for update, ufunc in (("add", np.add), ("max", np.maximum), ("min", np.minimum)):
        expected = a.copy()
        ufunc.at(expected, indices, b)
        found = burn.scatter(x, index, y, axis=0, update=update)
        np.testing.assert_array_equal(found.numpy(), expected)
    expected = a.copy()
    expected[indices] = b
    found = burn.scatter(x, index, y, axis=0, update="assign")
    np.testing.assert_array_equal(found.numpy(), expected)


def test_updates_along_an_axis_in_the_middle(device, numbers):
    a, b = numbers.normal(size=(2, 9, 3)), numbers.normal(size=(2, 700, 3))
    indices = numbers.integers(-9, 9, (2, 700, 3))
    x, y, index = (burn.asarray(item, device=device) for item in (a, b, indices))
    expected, selected = a.copy(), a.copy()
    for row, column in itertools.product(range(2), range(3)):
        np.add.at(expected[row, :, column], indices[row, :, column], b[row, :, column])
        np.add.at(selected[row, :, column], indices[0, :, 0], b[row, :, column])
    found = burn.scatter(x, index, y, axis=1, update="add")
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)
    ops = device.backend.for_device(device.id)
    vector = burn.asarray(indices[0, :, 0].copy(), device=device)
    total = ops.select_add(x.primitive, vector.primitive, y.primitive, axis=1)
    np.testing.assert_allclose(ops.to_data(total).array, selected, atol=1e-12)


def test_sums_at_repeated_indices_are_reproducible(device, numbers):
    indices = numbers.integers(0, 5, 10_000)
    values = numbers.normal(size=10_000).astype(np.float32)
    x, index = burn.zeros(5, device=device), burn.asarray(indices, device=device)
    y = burn.asarray(values, device=device)
    first, second = (burn.scatter(x, index, y, axis=0, update="add").numpy() for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("tile", "transposed"),
    crossed({*gemm._TILES, *gemm._FLOAT64_TILES}, list(itertools.product((False, True), repeat=2))),
)
def test_products_in_tiles(device, numbers, monkeypatch, tile, transposed):
    monkeypatch.setattr(gemm, "_TILES", (tile,))
    monkeypatch.setattr(gemm, "_FLOAT64_TILES", (tile,))
    monkeypatch.setattr(gemm, "_SMALLEST_TILE", tile)
    for (m, k, n), dtype in (
        ((130, 70, 131), "float32"),
        ((64, 36, 132), "float16"),
        ((3, 50, 67), "float64"),
    ):
        shapes = [
            (2, b, a) if is_transposed else (2, a, b)
            for is_transposed, a, b in zip(transposed, (m, k), (k, n), strict=True)
        ]
        values = [numbers.normal(size=shape).astype(dtype) for shape in shapes]
        x, y = (
            burn.permute_dims(
                burn.asarray(value, device=device), (0, 2, 1) if is_transposed else (0, 1, 2)
            )
            for value, is_transposed in zip(values, transposed, strict=True)
        )
        a, b = (
            value.astype(np.float64).transpose((0, 2, 1) if is_transposed else (0, 1, 2))
            for value, is_transposed in zip(values, transposed, strict=True)
        )
        allowed = {"float32": 1e-4, "float16": 0.05, "float64": 1e-12}[dtype]
        np.testing.assert_allclose((x @ y).numpy(), a @ b, atol=allowed)


@pytest.mark.parametrize(
    "shapes",
    [
        ((1, 5000), (5000, 1)),
        ((2, 70, 2050), (2, 2050, 3)),
        ((3, 5, 2050), (2050, 6)),  # one product of 15 rows
    ],
)
def test_long_inner_axes_are_split(device, numbers, monkeypatch, shapes):
    def checked(launcher, product, out, parts=1, chunk=0):
        assert out.size == product.matrices * parts * product.m * product.n
        multiply_tiles(launcher, product, out, parts, chunk)

    multiply_tiles = linear_algebra.multiply_tiles
    monkeypatch.setattr(linear_algebra, "multiply_tiles", checked)
    for dtype, allowed in (("float32", 1e-4), ("float16", 2e-3), ("float64", 1e-12)):
        a, b = (numbers.normal(size=shape).astype(dtype) for shape in shapes)
        x, y = (burn.asarray(tensor, device=device) for tensor in (a, b))
        found, again = (x @ y).numpy(), (x @ y).numpy()
        expected = a.astype(np.float64) @ b.astype(np.float64)
        np.testing.assert_allclose(found, expected, rtol=10 * allowed, atol=50 * allowed)
        np.testing.assert_array_equal(found, again)


def test_products_of_few_tiles_are_split():
    def parts(m, inner, n):
        x = types.SimpleNamespace(dtype=float32)
        product = gemm.Gemm(1, m, inner, n, x, x, (0, inner, 1), (0, n, 1))
        launcher = types.SimpleNamespace(runtime=types.SimpleNamespace(units=132))
        count, chunk = gemm.split_inner(launcher, product)
        assert (count - 1) * chunk < inner <= count * chunk
        return count

    assert parts(64, 8192, 64) == 16
    assert parts(512, 4096, 512) > 1
    assert parts(64, 600, 64) == 1
    assert parts(4096, 4096, 4096) == 1
