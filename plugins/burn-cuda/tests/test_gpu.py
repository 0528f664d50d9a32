"""Tests that need a GPU; they run where there is one."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import burn
from burn.plugin_api import TensorData, uint8

GPUS = burn.Device.enumerate("cuda")

pytestmark = pytest.mark.skipif(not GPUS, reason="there is no NVIDIA GPU, or no CuPy for it")

FOLDER = Path(__file__).parent
MIB = 1 << 20


@pytest.fixture
def device():
    return burn.Device("cuda")


@pytest.fixture
def cupy():
    return pytest.importorskip("cupy")


@pytest.fixture
def torch():
    found = pytest.importorskip("torch", reason="torch is not installed")
    if not found.cuda.is_available():
        pytest.skip("this torch has no CUDA")
    return found


def keep_busy(device, rounds=20):
    """Queue some tenths of a second of work on the current stream."""
    x = burn.full((8192, 8192), 1 / 8192, dtype="float32", device=device)
    y = x
    for _ in range(rounds):
        y = y @ x
    return y


# Memory.


def test_too_much_memory_is_an_error_with_numbers_and_the_process_goes_on(device):
    with pytest.raises(burn.ExecutionError, match=r"no memory for 4,398,046,511,104 bytes"):
        burn.zeros((1 << 40,), device=device)
    assert burn.ones(3, device=device).sum().item() == 3.0


def test_memory_that_the_pools_keep_is_given_back_before_an_allocation_fails(device, cupy):
    device.memory_cleanup()
    backend = device.ops.backend
    size = int(cupy.cuda.runtime.memGetInfo()[0] * 0.6)

    def make(_):
        return device.ops.full(shape=(size,), fill_value=0, dtype=uint8)

    kept = backend.memory_persistent_allocations(device.id, None, make)
    del kept
    assert (
        cupy.cuda.runtime.memGetInfo()[0] < size
    )  # the persistent pool has it, which the next allocation does not use
    x = burn.zeros((size,), dtype="uint8", device=device)
    assert x[-1].item() == 0
    del x
    device.memory_cleanup()


def test_a_tensor_that_does_not_fit_beside_others_leaves_them_alone(device, cupy):
    device.memory_cleanup()
    size = int(cupy.cuda.runtime.memGetInfo()[0] * 0.6)
    x = burn.full((size,), 7, dtype="uint8", device=device)
    with pytest.raises(burn.ExecutionError, match=f"no memory for {size:,} bytes .* are in use"):
        burn.full((size,), 8, dtype="uint8", device=device)
    assert x[::MIB].sum().item() == 7 * len(range(0, size, MIB))
    del x
    device.memory_cleanup()


def test_memory_cleanup_gives_memory_back_to_the_driver(device, cupy):
    device.memory_cleanup()
    pool = cupy.get_default_memory_pool()
    before = pool.total_bytes()
    x = burn.ones((64 * MIB,), dtype="float32", device=device)
    del x
    assert pool.total_bytes() >= before + 256 * MIB
    free = cupy.cuda.runtime.memGetInfo()[0]
    device.memory_cleanup()
    assert pool.total_bytes() <= before
    assert cupy.cuda.runtime.memGetInfo()[0] >= free + 256 * MIB


def test_persistent_allocations_are_no_gaps_in_the_pool(device, cupy):
    backend = device.ops.backend
    values = np.arange(4 * MIB, dtype=np.float32)
    pool = cupy.get_default_memory_pool()
    before = pool.used_bytes()
    x = backend.memory_persistent_allocations(
        device.id, TensorData(values), lambda data: backend.from_data(data, device.id)
    )
    assert pool.used_bytes() == before
    tensor = burn.Tensor.from_primitive(x, device)
    assert (tensor * 2.0)[-1].item() == 2.0 * (4 * MIB - 1)
    y = burn.ones(MIB, device=device)
    assert pool.used_bytes() > before
    free = cupy.cuda.runtime.memGetInfo()[0]
    del tensor, x, y
    device.memory_cleanup()
    assert cupy.cuda.runtime.memGetInfo()[0] >= free + values.nbytes


# Uploads.


def test_staged_memory_is_uploaded_while_the_device_works(device, cupy):
    backend = device.ops.backend
    values = np.arange(4 * MIB, dtype=np.float32)
    staged = backend.staging(TensorData(values), device.id)
    values[:] = -1.0  # the caller's again
    with pytest.raises(ValueError, match="read-only"):
        staged.array[0] = 1.0
    burn.zeros(4 * MIB, device=device)  # memory that the pool then has
    busy = keep_busy(device)
    x = backend.from_data(staged, device.id)
    assert not cupy.cuda.get_current_stream().done, "nothing was left to do in the background"
    del staged
    gc.collect()
    # Memory of the host that is staged next is not that which still has to be read.
    others = [backend.staging(TensorData(values), device.id) for _ in range(3)]
    np.testing.assert_array_equal(backend.to_data(x).array, np.arange(4 * MIB, dtype=np.float32))
    assert all(other.array[5] == -1.0 for other in others)
    del busy


@pytest.mark.parametrize("count", [3, MIB])
def test_memory_of_the_host_may_change_as_soon_as_it_was_uploaded(device, count):
    busy = keep_busy(device, 5)
    values = np.arange(count, dtype=np.float32)
    x = burn.asarray(values, device=device)
    values[:] = -1.0
    np.testing.assert_array_equal(x.numpy(), np.arange(count, dtype=np.float32))
    del busy


def test_staged_tensors_of_all_layouts_arrive(device):
    backend = device.ops.backend
    values = np.arange(24, dtype=np.float16).reshape(4, 6)
    for array in (values, values.T, values[::-1, ::2], values[2:2], values[1, 2]):
        staged = backend.staging(TensorData(array), device.id)
        uploaded = backend.from_data(backend.staging(staged, device.id), device.id)
        np.testing.assert_array_equal(backend.to_data(uploaded).array, array)


# Failures.


def test_an_index_out_of_range_is_an_error_of_the_next_sync(device):
    x = burn.ones(4, device=device)
    burn.take(x, burn.asarray([9], device=device))
    with pytest.raises(IndexError, match="index 9"):
        device.sync()
    device.sync()


ILLEGAL = """
import burn, cupy
device = burn.Device("cuda")
x = burn.ones(4, device=device)
x.numpy()
kernel = cupy.RawKernel('extern "C" __global__ void wrong(long long* p) { p[1] = 7; }', "wrong")
try:
    kernel((1,), (1,), (0,))
except cupy.cuda.driver.CUDADriverError as error:
    print("launch:", error)
for what in (device.sync, x.numpy, lambda: x + 1.0, lambda: burn.zeros(1 << 20, device=device)):
    try:
        what()
    except burn.ExecutionError as error:
        print("ExecutionError:", error)
print("still here")
"""


def test_an_illegal_access_in_a_kernel_is_an_error_that_says_so():
    result = subprocess.run(
        [sys.executable, "-c", ILLEGAL], capture_output=True, text=True, check=False, timeout=100
    )
    lines = result.stdout.splitlines()
    assert lines[-1] == "still here", result.stderr
    assert "illegal memory access" in lines[0]
    assert lines[0].startswith("ExecutionError: cuda:0 failed at what was queued on it")
    assert "start it anew" in lines[0]
    assert lines[1].startswith("ExecutionError: to_data(float32[4])")
    assert any(line.startswith("ExecutionError: add(float32[4], 1.0)") for line in lines)


BLOCKING = """
import burn
device = burn.Device("cuda")
x = burn.ones(4, device=device)
code = 'extern "C" __global__ void wrong(long long* p) { p[1] = 7; }'
kernel = device.ops.backend.runtime.compile(code, "wrong")

def negative(x):
    kernel((1,), (1,), (0,))
    return x

device.ops.negative = negative
try:
    -x
except burn.ExecutionError as error:
    print("ExecutionError:", error)
"""


def test_an_illegal_access_names_the_operation_where_launches_are_waited_for():
    result = subprocess.run(
        [sys.executable, "-c", BLOCKING],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        env={**os.environ, "CUDA_LAUNCH_BLOCKING": "1"},
    )
    assert result.stdout.startswith("ExecutionError: negative(float32[4]): "), result.stderr
    assert "ILLEGAL_ADDRESS" in result.stdout


def test_subnormal_numbers_are_kept(device):
    x = burn.asarray(np.array([1e-40], np.float32), device=device)
    assert (x * 0.5).item() > 0.0


# Other libraries, and streams.


def test_memory_is_shared_with_torch(device, torch):
    theirs = torch.arange(6.0, device="cuda")
    ours = burn.from_dlpack(theirs, device=device)
    theirs += 1.0
    assert ours.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert torch.from_dlpack(ours).data_ptr() == theirs.data_ptr()
    half = torch.ones(3, device="cuda", dtype=torch.bfloat16)
    assert burn.from_dlpack(half, device=device).dtype is burn.bfloat16


def test_torch_and_cuda_move_tensors_without_a_copy(device, torch):
    there = burn.Device.enumerate("torch/cuda")
    if not there:
        pytest.skip("burn-torch has no CUDA device here")
    x = burn.asarray(np.arange(12, dtype=np.float32).reshape(3, 4), device=device)
    for view in (x, x.T, x[1:, ::2]):
        moved = view.to_device(there[0])
        assert moved.primitive.data_ptr() == view.primitive.data.ptr
        back = moved.to_device(device)
        assert back.primitive.data.ptr == view.primitive.data.ptr
        assert back.tolist() == view.tolist()
    y = burn.exp(burn.ones(5, device=there[0]))
    assert y.to_device(device).primitive.data.ptr == y.primitive.data_ptr()


def test_a_tensor_of_torch_on_a_stream_of_its_own_is_not_read_too_early(device, torch):
    own = torch.cuda.Stream()
    for number in range(5):
        with torch.cuda.stream(own):
            x = torch.full((8192, 8192), 1 / 8192, device="cuda")
            y = x
            for _ in range(4):
                y = y @ x
            y = y * 8192.0 + number
            ours = burn.from_dlpack(y, device=device)
            total = ours[::512, ::512].mean() + 0.0
        assert abs(total.item() - (number + 1.0)) < 1e-3


def test_torch_does_not_read_a_tensor_of_another_stream_too_early(device, torch, cupy):
    for number in range(5):
        with cupy.cuda.Stream(non_blocking=True):
            y = keep_busy(device, 4) * 8192.0 + float(number)
            theirs = torch.from_dlpack(y)
            total = theirs[::512, ::512].mean()
        assert abs(total.item() - (number + 1.0)) < 1e-3


class Interface:
    """An array with `__cuda_array_interface__` alone, like numba's."""

    def __init__(self, array, stream, **changes):
        self.array = array
        self.__cuda_array_interface__ = {
            **array.__cuda_array_interface__,
            "version": 3,
            "stream": stream.ptr or 1,
            **changes,
        }


def test_cupy_computes_with_primitives_and_its_arrays_become_tensors(device, cupy):
    x = burn.asarray(np.arange(12, dtype=np.float32).reshape(3, 4), device=device)
    for view in (x, x.T, x[1:, ::-2]):
        array = cupy.asarray(view.primitive)
        assert array.data.ptr == view.primitive.address
        np.testing.assert_array_equal(cupy.asnumpy(array + 1), view.numpy() + 1)
        np.testing.assert_allclose(
            cupy.asnumpy(cupy.cbrt(view.primitive)), np.cbrt(view.numpy()), rtol=1e-6
        )
        back = burn.Tensor.from_primitive(array, device)
        assert back.primitive.address == array.data.ptr
        np.testing.assert_array_equal((back * 2).numpy(), view.numpy() * 2)


def test_an_array_with_the_cuda_array_interface_is_shared(device, cupy):
    theirs = cupy.arange(12, dtype=cupy.float32).reshape(3, 4)
    for view in (theirs, theirs.T, theirs[1:, ::2], theirs[2:2]):
        ours = burn.asarray(Interface(view, cupy.cuda.Stream.null), copy=False, device=device)
        assert ours.device is device
        assert ours.primitive.data.ptr == view.data.ptr or not view.size
        assert ours.tolist() == view.tolist()


def test_the_stream_of_the_cuda_array_interface_is_waited_for(device, cupy):
    for number in range(5):
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            y = (keep_busy(device, 4) * 8192.0 + float(number)).primitive
            given = Interface(y, stream)
        ours = burn.asarray(given, copy=False, device=device)
        assert abs(ours[::512, ::512].mean().item() - (number + 1.0)) < 1e-3


# Several threads, several processes.


def test_two_processes_of_16_threads_share_a_gpu():
    command = [sys.executable, str(FOLDER / "many_threads.py"), "cuda"]
    running = [
        subprocess.Popen(
            [*command, str(seed)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for seed in range(2)
    ]
    try:
        for process in running:
            out, errors = process.communicate(timeout=100)
            assert process.returncode == 0, errors
            assert out.split()[0] == "16"
    finally:
        for process in running:
            process.kill()
