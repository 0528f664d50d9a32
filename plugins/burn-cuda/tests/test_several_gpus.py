"""Tests that need several GPUs; they run where there are two or more."""

import itertools
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import burn
from burn.nn import functional as F
from burn.testing.suites.expectations import typical

GPUS = burn.Device.enumerate("cuda")

pytestmark = pytest.mark.skipif(
    len(GPUS) < 2, reason=f"there are {len(GPUS)} NVIDIA GPUs here, and it takes two"
)

ROOT = Path(__file__).parents[3]
PAIRS = list(itertools.permutations(GPUS[:4], 2))
pairs = pytest.mark.parametrize(("source", "target"), PAIRS, ids=lambda device: device.name)
DTYPES = [dtype.name for dtype in (GPUS[0].dtypes() if GPUS else [])]


@pytest.fixture
def cupy():
    return pytest.importorskip("cupy")


@pytest.fixture(autouse=True)
def _current_device_stays(cupy):
    """Nothing that is done to tensors changes which device CUDA calls of the program go to."""
    before = cupy.cuda.runtime.getDevice()
    yield
    assert cupy.cuda.runtime.getDevice() == before


@pytest.fixture(params=[0, 1], ids=["current 0", "current 1"])
def current(request, cupy):
    """The device that the program has made its current one."""
    with cupy.cuda.Device(request.param):
        yield request.param
        assert cupy.cuda.runtime.getDevice() == request.param


def no_host(monkeypatch, *devices):
    """Make it an error to read values of tensors on a device."""

    def refuse(*operands, **attributes):
        raise AssertionError("the values went through the host")

    for device in devices:
        monkeypatch.setattr(device.ops.backend, "to_data", refuse)


def matrix(device, size=4096):
    """A matrix whose products with itself are the matrix again: each row adds up to 1."""
    return burn.full((size, size), 1 / size, dtype="float32", device=device)


# Where ops run.


@pytest.mark.parametrize("device", GPUS[:2], ids=lambda device: device.name)
def test_ops_run_where_their_operands_are(device, current, cupy):
    generator = np.random.default_rng(0)
    a = generator.standard_normal((40, 60)).astype(np.float32)
    x = burn.asarray(a, device=device)
    image = burn.asarray(generator.standard_normal((2, 3, 9, 8)), device=device)
    indices = burn.asarray([5, 0, 5], device=device)
    made = [
        x + x,
        x * 2.0,
        x @ x.T,
        x.sum(axis=0),
        x.T + x[:, :1].T,
        burn.sort(x, axis=1),
        burn.take(x, indices, axis=0),
        burn.cumulative_sum(x, axis=0),
        F.softmax(x, axis=1),
        F.conv2d(image, image, padding=2),
        burn.nonzero(x)[0],
        burn.random.normal((3, 4), device=device),
        burn.arange(4, device=device),
        x.astype("bfloat16"),
        burn.from_dlpack(x),
    ]
    for tensor in made:
        assert tensor.device is device
        assert tensor.primitive.data.device_id == device.index
    np.testing.assert_allclose(made[2].numpy(), a @ a.T, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(made[5].numpy(), np.sort(a, axis=1))
    np.testing.assert_allclose(made[7].numpy(), a.cumsum(0), rtol=1e-4, atol=1e-4)
    assert "cuda:1" in repr(x) or device.index == 0


def test_the_device_of_an_index_out_of_range_reports_it(current):
    first, second = GPUS[:2]
    wrong = burn.take(burn.arange(3, device=second), burn.asarray([8], device=second))
    first.sync()
    burn.ones(2, device=first).numpy()
    with pytest.raises(IndexError, match="index 8"):
        second.sync()
    del wrong


def test_tensors_of_two_gpus_do_not_meet(current):
    x, y = [burn.ones(2, device=device) for device in GPUS[:2]]
    with pytest.raises(burn.DeviceMismatchError, match=r"cuda:0 .* cuda:1"):
        x + y
    with pytest.raises(burn.DeviceMismatchError):
        burn.concat([y, x])
    assert (x + y.to_device(x.device)).tolist() == [2.0, 2.0]


# Transfers.


@pairs
@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_of_all_layouts_go_from_gpu_to_gpu(source, target, dtype, current, monkeypatch):
    values = typical(burn.DType.of(dtype), 4, 6)
    x = burn.asarray(values, device=source)
    views = [
        (x, values),
        (x.T, values.T),
        (x[1:3, 2:], values[1:3, 2:]),
        (x[::-1, ::-2], values[::-1, ::-2]),
        (x[2, 3], values[2, 3]),
        (burn.broadcast_to(x[:1], (3, 6)), np.tile(values[:1], (3, 1))),
        (x[2:2], values[2:2]),
    ]
    with monkeypatch.context() as patch:
        no_host(patch, source, target)
        moved = [view.to_device(target) for view, _ in views]
        back = [there.to_device(source) for there in moved]
    for there, again, (_, expected) in zip(moved, back, views, strict=True):
        assert there.device is target
        assert there.primitive.data.device_id == target.index
        np.testing.assert_array_equal(there.numpy(), expected)
        np.testing.assert_array_equal(again.numpy(), expected)


@pairs
def test_gpus_read_each_other_s_memory_where_they_can(source, target, cupy):
    runtime = cupy.cuda.runtime
    burn.ones(3, device=source).to_device(target).numpy()
    with cupy.cuda.Device(target.index):
        if not runtime.deviceCanAccessPeer(target.index, source.index):
            pytest.skip("the two have no way to each other's memory")
        with pytest.raises(runtime.CUDARuntimeError, match=r"(?i)already"):
            runtime.deviceEnablePeerAccess(source.index)


@pairs
def test_a_transfer_never_reads_too_early_nor_is_memory_used_again_too_early(source, target):
    x = matrix(source)
    device = target.ops.backend.runtime.device
    there = []
    for number in range(100):
        y = x
        for _ in range(3):
            y = y @ x
        y = y * 4096.0 + float(number)
        there.append(y.to_device(target))
        del y  # its memory is free now: the next array may get it
        burn.full((4096, 4096), -1.0, dtype="float32", device=source) * 2.0
        if len(there) == 10:
            for position, item in enumerate(there, number - 9):
                corner = item[::17, ::13].numpy()
                np.testing.assert_allclose(corner, position + 1.0, rtol=1e-5)
            there.clear()
    assert device.id == target.index


@pairs
def test_work_on_the_source_goes_on_after_a_transfer(source, target):
    for number in range(20):
        y = matrix(source) @ matrix(source) * 4096.0
        there = y.to_device(target)
        y += float(number)  # a new tensor in new memory, or in old
        doubled = there * 2.0
        assert y[7, 7].item() == pytest.approx(1.0 + number, rel=1e-5)
        assert doubled[9, 9].item() == pytest.approx(2.0, rel=1e-5)
        back = doubled.to_device(source)
        del doubled, there
        burn.zeros((4096, 4096), dtype="float32", device=target) + 1.0
        assert back[9, 9].item() == pytest.approx(2.0, rel=1e-5)


@pairs
def test_transfers_keep_to_the_streams_of_the_program(source, target, cupy):
    streams = []
    for device in (source, target):
        with cupy.cuda.Device(device.index):
            streams.append(cupy.cuda.Stream(non_blocking=True))
    for number in range(10):
        with cupy.cuda.Device(source.index), streams[0]:
            y = matrix(source)
            for _ in range(4):
                y = y @ matrix(source)
            y = y * 4096.0 + float(number)
            with cupy.cuda.Device(target.index), streams[1]:
                there = y.to_device(target) * 2.0
                del y
                assert there[5, 5].item() == pytest.approx(2.0 * number + 2.0, rel=1e-5)


@pairs
def test_a_gpu_that_received_a_tensor_reports_the_failure_of_its_sender(source, target):
    x = burn.take(burn.arange(3, device=source), burn.asarray([7], device=source))
    there = x.to_device(target)
    with pytest.raises(IndexError, match="index 7"):
        there.numpy()
    assert there.sum().item() >= 0
    source.sync()


@pairs
def test_gradients_come_back_through_a_transfer(source, target, current, monkeypatch):
    values = np.linspace(-1.0, 1.0, 12, dtype=np.float64).reshape(3, 4)
    near, far = source.autodiff(), target.autodiff()
    with monkeypatch.context() as patch:
        no_host(patch, source, target)
        x = burn.asarray(values, device=near).require_grad()
        y = burn.sin(x.T.to_device(far) * 2.0)
        z = (y.to_device(near) * x.T).sum()
        gradients = z.backward()
    gradient = x.grad(gradients)
    assert gradient.device is source
    expected = np.sin(2 * values) + 2 * values * np.cos(2 * values)
    np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-12)


def test_threads_work_on_a_gpu_each_and_send_tensors(cupy):
    wrong = []

    def work(number):
        own, other = GPUS[number % 2], GPUS[1 - number % 2]
        try:
            with cupy.cuda.Device(1 - own.index):  # the wrong one on purpose
                x = matrix(own, 512)
                for step in range(60):
                    y = (x @ x) * 512.0 + float(number)
                    there = y.to_device(other)
                    del y
                    z = (there + float(step)).to_device(own)
                    found = z[3, 5].item()
                    if abs(found - (1.0 + number + step)) > 1e-3:
                        wrong.append((number, step, found))
                if cupy.cuda.runtime.getDevice() != 1 - own.index:
                    wrong.append((number, "current device"))
        except BaseException as error:  # noqa: BLE001 — any failure: it fails the test
            wrong.append((number, repr(error)))

    threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong
    assert not any(thread.is_alive() for thread in threads)


# Memory of one of several.


def test_memory_of_each_gpu_is_its_own(current, cupy):
    first, second = GPUS[:2]
    for device in (first, second):
        device.memory_cleanup()
    x = burn.ones(1 << 26, dtype="float32", device=second)
    del x
    with cupy.cuda.Device(1):
        kept = cupy.get_default_memory_pool().total_bytes()
    first.memory_cleanup()
    with cupy.cuda.Device(1):
        assert cupy.get_default_memory_pool().total_bytes() == kept >= 1 << 28
    second.memory_cleanup()
    with cupy.cuda.Device(1):
        assert cupy.get_default_memory_pool().total_bytes() < 1 << 28
    with pytest.raises(burn.ExecutionError, match=r"no memory for .* on cuda:1"):
        burn.zeros((1 << 40,), device=second)


def test_arrays_of_other_libraries_stay_where_they_are(current, cupy):
    with cupy.cuda.Device(1):
        theirs = cupy.arange(6, dtype=cupy.float32)
    ours = burn.from_dlpack(theirs)
    assert ours.device is GPUS[1]
    assert ours.primitive.data.ptr == theirs.data.ptr

    class Interface:
        __cuda_array_interface__ = theirs.__cuda_array_interface__

    ours = burn.asarray(Interface(), copy=False, device=GPUS[1])
    assert ours.primitive.data.ptr == theirs.data.ptr
    assert ours.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    moved = burn.asarray(theirs, device=GPUS[0])
    assert moved.device is GPUS[0]
    assert moved.tolist() == ours.tolist()
    copied = burn.asarray(Interface(), device=GPUS[0])
    assert copied.primitive.data.device_id == 0
    assert copied.tolist() == ours.tolist()


def test_torch_and_cuda_share_memory_of_the_second_gpu(current):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    there = [index for index in burn.Device.enumerate("torch/cuda") if index.index == 1]
    if not there:
        pytest.skip("burn-torch has no second CUDA device here")
    theirs = torch.arange(6.0, device="cuda:1")
    ours = burn.from_dlpack(theirs, device=GPUS[1])
    assert ours.primitive.data.ptr == theirs.data_ptr()
    moved = (ours * 2.0).to_device(there[0])
    assert moved.primitive.device.index == 1
    assert moved.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    assert moved.to_device(GPUS[1]).primitive.data.ptr == moved.primitive.data_ptr()


def test_digits_are_learned_on_the_second_gpu(tmp_path):
    for package in ("sklearn", "matplotlib", "rich"):
        pytest.importorskip(package, reason="examples/requirements.txt is not installed")
    result = subprocess.run(
        [sys.executable, "digits.py", "--device", "cuda:1", "--picture", str(tmp_path / "p.png")],
        cwd=ROOT / "examples",
        capture_output=True,
        text=True,
        check=True,
        timeout=200,
    )
    assert "on cuda:1" in result.stdout
    accuracy = re.search(r"accuracy on the held-out images: ([0-9.]+)", result.stdout)
    assert float(accuracy.group(1)) > 0.97
