"""Properties of the backend beside the values of its ops, on emulated devices."""

import functools
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import burn
from burn.plugin_api import (
    BackendSpec,
    DeviceId,
    DeviceInfo,
    OutOfRangeError,
    TensorData,
    bfloat16,
    float32,
    int64,
    resolve,
)
from burn_cuda.backend import CudaBackend

sys.path.insert(0, str(Path(__file__).parent / "emulation"))

import emulated

pytestmark = pytest.mark.skipif(
    emulated.COMPILER is None, reason="there is no C++ compiler to emulate a GPU with"
)

FIRST, SECOND = DeviceId(0, 0), DeviceId(0, 1)


def upload(backend, array, device=FIRST):
    return backend.for_device(device).from_data(TensorData(np.asarray(array)), device)


def download(backend, x):
    return backend.to_data(x).array


@pytest.fixture
def backend():
    found = CudaBackend(emulated.Runtime, lambda: 1)
    resolve(found, FIRST)
    return found


def test_no_two_parts_of_the_backend_have_a_method_of_one_name():
    parts = [base for base in CudaBackend.__bases__ if base.__module__.startswith("burn_cuda")]
    names = [
        name
        for part in parts
        for name in vars(part)
        if callable(vars(part)[name]) and name[:2] != "__"
    ]
    assert len(names) > 100
    assert sorted(names) == sorted(set(names))


def test_each_device_has_an_object_of_its_own_that_stays_the_same():
    backend = CudaBackend(emulated.Runtime, lambda: 2)
    other = backend.for_device(SECOND)
    assert backend.for_device(FIRST) is backend
    assert other is not backend
    assert other is backend.for_device(SECOND) is other.for_device(SECOND)
    assert other.for_device(FIRST) is backend
    assert other.runtime.index == 1


def test_ops_run_on_their_own_device_not_on_the_current_one():
    backend = CudaBackend(emulated.Runtime, lambda: 2)
    other = backend.for_device(SECOND)
    for current in (backend, other):
        with current.runtime.current():  # and the emulated devices look whether it is theirs
            for own, device in ((backend, FIRST), (other, SECOND)):
                x = upload(backend, np.ones(4, np.float32), device)
                y = own.sum(own.add(x, x), axis=(0,), dtype=float32)
                assert own.runtime.owner(y) == device.index_id
                assert own.to_data(y).array == 8.0
            assert emulated.current_device() == current.index
    assert emulated.current_device() == 0


def test_few_elements_of_any_layout_go_by_one_kernel(backend):
    x = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    for operand in (x[:, :1], x[0], x[0, 0], x[::-1, ::2, ::2].copy()[:, :1, :1], x[:1, :, 1:2]):
        found = backend.add(upload(backend, x), upload(backend, operand))
        assert np.array_equal(backend.to_data(found).array, x + operand)
    assert len(backend.runtime.sources) == 1


def test_dense_operands_add_a_kernel_to_that_of_others(backend):
    x = upload(backend, np.ones((3, 4), np.float32))
    for _ in range(2):
        backend.exp(x.transpose())
    assert [name for _, name in backend.runtime.sources] == ["strided"]
    for _ in range(2):
        backend.exp(x)
    assert [name for _, name in backend.runtime.sources] == ["strided", "dense"]


@pytest.mark.parametrize("shape", [(130, 132), (130, 131), (5, 60, 64), (2, 3, 50, 4, 20)])
def test_many_elements_go_by_kernels_for_their_layout(backend, shape):
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    for operand in (x[..., :1], x[:1], x[..., ::-1].copy()[:1, ..., :1]):
        found = backend.add(upload(backend, x), upload(backend, operand))
        assert np.array_equal(backend.to_data(found).array, x + operand)
    turned = backend.exp(upload(backend, x).transpose())
    assert np.allclose(backend.to_data(turned).array, np.exp(x.T), rtol=1e-6)


@pytest.mark.parametrize("shape", [(70, 1000), (70, 1001), (6, 20000)])
def test_rows_of_many_elements_are_read_in_packs(backend, shape):
    x = np.random.default_rng(0).integers(-100, 100, size=shape).astype(np.int8)
    found = backend.sum(upload(backend, x), axis=(1,), dtype=int64)
    assert np.array_equal(backend.to_data(found).array, x.sum(1, dtype=np.int64))
    index = backend.argmax(upload(backend, x), axis=1, dtype=int64)
    assert np.array_equal(backend.to_data(index).array, x.argmax(1))


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("interpolate", {"output_size": (5, 8), "mode": "linear"}),
        ("interpolate", {"output_size": (4, 9), "mode": "nearest"}),
        ("adaptive_avg_pool", {"output_size": (2, 3)}),
        (
            "avg_pool",
            {
                "kernel_size": (3, 2),
                "stride": (2, 1),
                "padding": ((1, 1), (0, 1)),
                "ceil_mode": False,
                "count_include_pad": False,
            },
        ),
    ],
)
def test_many_images_give_what_each_of_them_gives(backend, name, attributes):
    image = np.random.default_rng(0).normal(size=(1, 1, 7, 6)).astype(np.float32)
    one = backend.to_data(getattr(backend, name)(upload(backend, image), **attributes)).array
    many = upload(backend, np.repeat(image, (1 << 14) // one.size + 1, axis=1))
    found = backend.to_data(getattr(backend, name)(many, **attributes)).array
    assert found.size >= 1 << 14
    assert np.array_equal(found, np.broadcast_to(one, found.shape))
    kernels = {source for source, kernel in backend.runtime.sources if kernel == "weighted_sums"}
    assert len(kernels) == 2


def test_each_object_of_the_backend_answers_for_all_devices():
    backend = CudaBackend(emulated.Runtime, lambda: 2)
    values = TensorData(np.arange(3.0))
    for asked in (backend, backend.for_device(SECOND)):
        for device in (FIRST, SECOND):
            x = asked.from_data(values, device)
            assert asked.device_of(x) == device
            assert asked.to_data(x).array.tolist() == [0.0, 1.0, 2.0]
            made = asked.memory_persistent_allocations(
                device, 2.0, functools.partial(filled, asked.for_device(device))
            )
            assert asked.device_of(made) == device


def filled(backend, number):
    return backend.full(shape=(2,), fill_value=number, dtype=float32, device=FIRST)


@pytest.fixture
def devices():
    """Two emulated devices as a user has them."""

    def probe():
        return [DeviceInfo("cuda", index, hardware="none") for index in range(2)]

    def load():
        return CudaBackend(emulated.Runtime, lambda: 2)

    spec = BackendSpec("emulated", load=load, probe=probe, device_types=("cuda",))
    with burn.registered(spec):
        yield burn.Device("emulated:0"), burn.Device("emulated:1")


def test_an_array_of_the_library_below_becomes_a_tensor_in_its_memory(devices):
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    for array in (values, values.T, values[1:, ::-2]):
        x = burn.Tensor.from_primitive(array, devices[0])
        assert x.primitive.address == array.ctypes.data
        np.testing.assert_array_equal((x * 2).numpy(), array * 2)
        tracked = burn.Tensor.from_primitive(array, devices[0].autodiff())
        np.testing.assert_array_equal(tracked.numpy(), array)
    x[0] = 7.0  # it has the memory of another library, so this copies
    assert values.max() == 11.0


@pytest.mark.parametrize("way", [(0, 1), (1, 0)])
def test_a_tensor_goes_from_device_to_device_without_the_host(devices, way):
    source, target = [devices[index] for index in way]
    values = np.arange(24, dtype=np.float32).reshape(4, 6)
    x = burn.asarray(values, device=source)
    driver = target.ops.backend.runtime
    for view, expected in (
        (x, values),
        (x.T, values.T),
        (x[::-1, ::2], values[::-1, ::2]),
        (burn.broadcast_to(x[:1], (3, 6)), np.tile(values[:1], (3, 1))),
        (x[2:2], values[2:2]),
        (x[1, 2], values[1, 2]),
    ):
        driver.received.clear()
        there = view.to_device(target)
        assert driver.received == [expected.shape]
        assert there.device is target
        np.testing.assert_array_equal(there.numpy(), expected)
        assert (there + there).to_device(source).tolist() == (expected + expected).tolist()
    assert emulated.current_device() == 0


def test_gradients_come_back_from_the_other_device(devices):
    near, far = [device.autodiff() for device in devices]
    x = burn.asarray([0.5, -1.0], device=near).require_grad()
    y = burn.exp(x.to_device(far) * 2.0).to_device(near) * x
    gradient = x.grad(y.sum().backward())
    assert gradient.device is devices[0]
    values = np.array([0.5, -1.0])
    expected = np.exp(2 * values) * (1 + 2 * values)
    np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-5)


def test_tensors_of_two_devices_do_not_meet(devices):
    x, y = [burn.ones(2, device=device) for device in devices]
    with pytest.raises(burn.DeviceMismatchError, match=r"emulated:0 .* emulated:1"):
        x + y


def test_a_device_that_received_a_tensor_reports_the_failure_of_its_sender(devices):
    x = burn.arange(3, device=devices[0])
    wrong = burn.take(x, burn.asarray([7], device=devices[0]))
    unrelated = burn.ones(2, device=devices[1])
    unrelated.numpy()
    there = wrong.to_device(devices[1])
    with pytest.raises(IndexError, match="index 7"):
        there.numpy()
    unrelated.numpy()
    devices[0].sync()


def test_threads_have_their_own_current_device(devices):
    wrong = []

    def work(index):
        x = burn.full((5, 5), float(index), device=devices[index])
        for _ in range(20):
            x = (x @ x + index).to_device(devices[1 - index]).to_device(devices[index]) * 0.1
            if emulated.current_device() != 0:
                wrong.append(index)

    threads = [threading.Thread(target=work, args=(index,)) for index in (0, 1, 0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong
    assert not any(thread.is_alive() for thread in threads)


def test_the_next_read_reports_an_index_out_of_range_once(backend):
    x = upload(backend, np.arange(3.0))
    indices = upload(backend, np.array([0, 7]))
    y = backend.select(x, indices, axis=0)
    with pytest.raises(OutOfRangeError, match=r"select\(\.\.\.\): index 7 .* length 3"):
        backend.to_data(x)  # of something else: the flag is that of the device
    assert backend.to_data(y).array[0] == 0.0
    backend.sync(FIRST)


def test_an_index_out_of_range_names_the_op_that_was_called(backend):
    ops = resolve(backend, FIRST)
    weight = upload(backend, np.ones((3, 2), np.float32))
    ops.embedding(weight, upload(backend, np.array([[-4]])))
    with pytest.raises(OutOfRangeError, match="embedding"):
        backend.sync(FIRST)
    logits = upload(backend, np.zeros((1, 3), np.float32))
    ops.cross_entropy(logits, upload(backend, np.array([3])), axis=1)
    with pytest.raises(OutOfRangeError, match="cross_entropy"):
        backend.sync(FIRST)


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((130, 257), (1, 0)),
        ((4, 70, 90), (0, 2, 1)),
        ((70, 4, 90), (2, 1, 0)),
        ((3, 40, 5, 60), (0, 3, 2, 1)),
        ((40, 5, 60, 7), (2, 3, 1, 0)),
    ],
)
def test_a_transposed_array_is_copied_in_tiles(backend, shape, axes):
    array = np.arange(np.prod(shape), dtype=np.int16).reshape(shape)
    moved = backend.permute(upload(backend, array), axes=axes)
    dense = backend.reshape(moved, shape=(array.size,))
    np.testing.assert_array_equal(download(backend, dense), array.transpose(axes).reshape(-1))
    twice = download(backend, backend.add(moved, moved))
    np.testing.assert_array_equal(twice, 2 * array.transpose(axes))


@pytest.mark.parametrize("length", [1, 31, 4096, 4097, 50_000])
def test_scans_go_over_the_ends_of_warps_blocks_and_parts(backend, length):
    array = np.random.default_rng(0).integers(-5, 6, length)
    x = upload(backend, array)
    sums = download(backend, backend.cumsum(x, axis=0))
    np.testing.assert_array_equal(sums, array.cumsum())
    largest = download(backend, backend.cummax(x, axis=0))
    np.testing.assert_array_equal(largest, np.maximum.accumulate(array))


@pytest.mark.parametrize(("rows", "columns"), [(1, 20_000), (3, 5000), (300, 7), (70, 1030)])
def test_reductions_of_long_and_of_many_rows(backend, rows, columns):
    array = np.random.default_rng(0).permutation(rows * columns).reshape(rows, columns)
    x = upload(backend, array)
    for axis in (0, 1):
        total = backend.sum(x, axis=(axis,), dtype=int64)
        np.testing.assert_array_equal(download(backend, total), array.sum(axis))
        index = backend.argmax(x, axis=axis, dtype=int64)
        np.testing.assert_array_equal(download(backend, index), array.argmax(axis))
    # The same shape, laid out otherwise: what was remembered of the first must not be used.
    moved = backend.permute(upload(backend, array.T.copy()), axes=(1, 0))
    total = backend.sum(moved, axis=(0,), dtype=int64)
    np.testing.assert_array_equal(download(backend, total), array.sum(0))


def test_bfloat16_is_rounded_to_the_nearest_even(backend):
    numbers = np.array([1.0, 1.00390625, 1.01171875, -3.4e38, np.inf, np.nan, 1e-40], np.float32)
    x = download(backend, backend.cast(upload(backend, numbers), dtype=bfloat16))
    expected = numbers.astype(bfloat16.numpy)
    np.testing.assert_array_equal(x.astype(np.float32), expected.astype(np.float32))


BRANCHES = {
    **dict.fromkeys(("sqrt", "log", "log1p", "exp", "expm1", "tan", "tanh")),
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
}


@pytest.mark.parametrize("name", BRANCHES)
def test_functions_of_complex_numbers_have_the_branch_cuts_of_numpy(backend, name):
    parts = (2.0, -2.0, 0.5, -0.5, 0.0, -0.0, 1.0, -1.0)
    numbers = np.array([complex(re, im) for re in parts for im in (0.0, -0.0, 2.0, -2.0)])
    with np.errstate(all="ignore"):
        expected = getattr(np, BRANCHES[name] or name)(numbers)
    found = backend.to_data(getattr(backend, name)(upload(backend, numbers))).array
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-15)


def test_magnitudes_of_complex_numbers_neither_overflow_nor_vanish(backend):
    numbers = np.array(
        [3e38 + 1e38j, 3e-42 + 4e-42j, -5 + 12j, complex(np.inf, np.nan)], np.complex64
    )
    found = backend.to_data(backend.abs(upload(backend, numbers))).array
    np.testing.assert_allclose(found, [3.1622777e38, 5e-42, 13.0, np.inf], rtol=1e-3)
    assert found.dtype == np.float32
    roots = np.array([1e308 + 1e308j, 3e-320 + 4e-320j])
    found = backend.to_data(backend.sqrt(upload(backend, roots))).array
    np.testing.assert_allclose(found, np.sqrt(roots), rtol=1e-3)


def test_threads_that_need_one_kernel_at_the_same_time_each_get_it(monkeypatch, tmp_path):
    """The emulation compiles it for the first of them, or for several, which is as well."""
    monkeypatch.setattr(emulated, "CACHE", tmp_path / "kernels")
    source = 'extern "C" __global__ void one(float* x) { x[0] = 1.0f; }'
    together = threading.Barrier(4, timeout=60)

    def compute(_):
        together.wait()
        launch = emulated.compiled(source, "one")
        x = np.zeros(1, np.float32)
        launch((1,), (1,), (x.ctypes.data,))()
        return float(x[0])

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(compute, range(4))) == [1.0] * 4
    assert {path.suffix for path in emulated.CACHE.iterdir()} == {".so"}
