"""Errors of drivers become errors of burn, after which users can continue."""

import os
import subprocess
import sys
import threading

import numpy as np
import pyopencl as cl
import pytest

import burn
from burn.nn import functional as F
from burn.plugin_api import ExecutionError, OutOfMemoryError, TensorData
from burn_opencl import address_space, buffers, runtime as layer
from burn_opencl.backend import OpenClDevice
from burn_opencl.failures import build_error
from burn_opencl.icd_loader import found_devices
from burn_opencl.runtime import System

if not found_devices():
    pytest.skip("OpenCL is not tested: there is no device", allow_module_level=True)

STATUS = cl.status_code


class Injected(cl.Error):
    """An error of PyOpenCL with a code of our choice."""

    def __init__(self, code):
        super().__init__()
        self._code = code

    @property
    def code(self):
        return self._code

    def __str__(self):
        return f"clSomething failed: {STATUS.to_string(self._code, '%d')}"


@pytest.fixture(scope="module")
def device():
    return burn.Device("opencl")


@pytest.fixture(scope="module")
def own(device):
    """A separate object for the device, so that other tests keep a working one."""
    found = OpenClDevice(device.backend, device.id)
    before = device.ops.backend  # the device of users' tensors, restored at the end
    devices = device.backend._devices
    devices[device.id] = found
    yield found
    devices[device.id] = before


@pytest.fixture
def failing(monkeypatch):
    """Makes a function of PyOpenCL fail, each time or as often as said."""

    def fail(name, code, times=None):
        real, calls = getattr(cl, name), []

        def call(*arguments, **options):
            calls.append(name)
            if times is None or len(calls) <= times:
                raise Injected(code)
            return real(*arguments, **options)

        monkeypatch.setattr(layer.cl, name, call)
        return calls

    return fail


def upload(own, values):
    return own.from_data(TensorData(np.asarray(values, np.float32)), own.device)


def test_a_kernel_for_which_there_is_no_memory_is_launched_again_once_some_is_free(own, failing):
    x = upload(own, [1.0, 2.0])
    free = own.launcher.pool
    own.launcher.empty((1 << 20,), burn.float32)
    held = free.held
    calls = failing("enqueue_nd_range_kernel", STATUS.MEM_OBJECT_ALLOCATION_FAILURE, times=1)
    assert own.to_data(own.add(x, x)).array.tolist() == [2.0, 4.0]
    assert len(calls) == 2
    assert free.held < held


def test_out_of_resources_is_an_execution_error_with_sizes(own, failing):
    x = upload(own, np.ones(100))
    failing("enqueue_nd_range_kernel", STATUS.OUT_OF_RESOURCES)
    expected = (
        r"lacks memory or other resources for launching elementwise for \d+ items in groups of "
        r"\d+, on \d+ bytes: .*OUT_OF_RESOURCES; \d+ of its \d+ bytes are in use here"
    )
    with pytest.raises(ExecutionError, match=expected):
        own.exp(x)


def test_an_allocation_that_fails_is_an_execution_error_with_sizes(own, failing):
    failing("Buffer", STATUS.OUT_OF_HOST_MEMORY)
    with pytest.raises(ExecutionError, match=r"no room for \d+ bytes: \d+ of its \d+ bytes"):
        own.launcher.empty((12345, 678), burn.float32)


def test_errors_of_other_commands_are_execution_errors(own, failing):
    x = upload(own, [1.0])
    failing("enqueue_copy", STATUS.INVALID_VALUE)
    with pytest.raises(ExecutionError, match="failed while reading 4 bytes: OpenCL reports"):
        own.to_data(x)
    failing("enqueue_fill_buffer", STATUS.INVALID_VALUE)
    with pytest.raises(ExecutionError, match="failed while filling 20 bytes: OpenCL reports"):
        own.full(shape=(5,), fill_value=1.0, dtype=burn.float32, device=own.device)


LOST = (STATUS.DEVICE_NOT_AVAILABLE, STATUS.INVALID_COMMAND_QUEUE, STATUS.INVALID_CONTEXT, -9999)


@pytest.mark.parametrize("code", LOST)
def test_a_lost_device_is_reported_and_the_others_go_on(own, failing, code):
    x = upload(own, [1.0])
    failing("enqueue_nd_range_kernel", code)
    with pytest.raises(ExecutionError, match=r"is lost, found while launching") as caught:
        own.exp(x)
    assert "other devices go on" in str(caught.value)
    assert caught.value.__cause__ is None
    assert (burn.ones(2, device="cpu") + 1).tolist() == [2.0, 2.0]


def test_a_device_is_lost_that_cannot_finish_whatever_it_reports_first(own, failing, monkeypatch):
    class Broken:
        def finish(self):
            raise Injected(STATUS.INVALID_COMMAND_QUEUE)

    x = upload(own, [1.0])
    failing("enqueue_copy", STATUS.OUT_OF_RESOURCES)
    monkeypatch.setattr(own.launcher.runtime, "_queue", Broken())
    with pytest.raises(ExecutionError, match="is lost, found while reading 4 bytes"):
        own.to_data(x)


def test_users_see_no_error_of_pyopencl(device, failing):
    x = burn.ones(4, device=device)
    real = layer.cl.enqueue_nd_range_kernel
    for code in (STATUS.OUT_OF_RESOURCES, STATUS.INVALID_KERNEL_ARGS, STATUS.INVALID_CONTEXT):
        failing("enqueue_nd_range_kernel", code)
        for call in (lambda: x + x, lambda: F.softmax(x, axis=0), lambda: x @ x):
            with pytest.raises(burn.BurnError):
                call()
    layer.cl.enqueue_nd_range_kernel = real
    assert (x + x).tolist() == [2.0] * 4


LOGS = {
    "PoCL": "error: pocl/tempfile.cl:2:12: use of undeclared identifier 'y'",
    "NVIDIA": "<kernel>:2:12: error: use of undeclared identifier 'y'",
    "AMD": "comgr-1/input/CompileSource:2:12: error: use of undeclared identifier 'y'",
    "Intel": "1:2:12: error: use of undeclared identifier 'y'",
    "an old one": '"OCL.cl", line 2: error: identifier "y" is undefined',
    "a fatal one": "input.cl:2:1: fatal error: no",
}


@pytest.mark.parametrize("driver", LOGS)
def test_the_line_that_a_compiler_names_is_shown(driver):
    error = build_error("a device", "int x;\n  x = y;\nint z;", f"log\n{LOGS[driver]}\nmore")
    assert "line 2: x = y;" in str(error)
    assert LOGS[driver] in str(error)


def test_a_log_without_a_line_number_is_shown():
    assert "something odd" in str(build_error("a device", "int x;", "something odd"))


def test_a_platform_that_does_not_list_its_devices_costs_the_others_nothing(monkeypatch):
    class Broken:
        def get_devices(self):
            raise Injected(STATUS.OUT_OF_HOST_MEMORY)

    real = cl.get_platforms()
    monkeypatch.setattr(layer.cl, "get_platforms", lambda: [Broken(), *real])
    assert sum(map(len, System().devices.values())) == len(found_devices())


def test_a_loader_without_drivers_has_no_devices(monkeypatch):
    def fail():
        raise Injected(-1001)

    monkeypatch.setattr(layer.cl, "get_platforms", fail)
    assert not any(System().devices.values())


# Uploads


@pytest.fixture
def with_pinned_memory(own, monkeypatch):
    """The device as one whose memory is not the host's."""
    monkeypatch.setattr(own.launcher.runtime, "is_cpu", False)
    return own


def test_staging_copies_to_read_only_memory(with_pinned_memory):
    own = with_pinned_memory
    for dtype in (np.float32, np.uint8, np.bool_, burn.bfloat16.numpy):
        values = np.arange(12).reshape(3, 4).astype(dtype)
        staged = own.staging(TensorData(values[:, ::2]), own.device)
        expected = values[:, ::2].copy()
        values[...] = 0
        assert type(staged.array).__name__ == "Pinned"
        assert not staged.array.flags.writeable
        found = own.to_data(own.from_data(staged, own.device)).array
        np.testing.assert_array_equal(found, expected)
    # Staged data are not copied again.
    again = own.staging(staged, own.device)
    assert again.array is staged.array


def test_a_cpu_needs_no_staging(device, own):
    if not own.launcher.runtime.is_cpu:
        pytest.skip("the device is no processor")
    data = TensorData(np.ones(3, np.float32))
    assert own.staging(data, own.device).array is data.array


def test_staging_without_pinned_memory_gives_the_values(with_pinned_memory, failing):
    own = with_pinned_memory
    own.uploads.release()
    failing("enqueue_map_buffer", STATUS.MAP_FAILURE)
    data = TensorData(np.ones(1000, np.float32))
    assert own.staging(data, own.device).array is data.array


def test_pinned_memory_is_used_again_once_its_uploads_are_done(with_pinned_memory, monkeypatch):
    own = with_pinned_memory
    runtime, made = own.launcher.runtime, []
    real = runtime.pinned
    monkeypatch.setattr(runtime, "pinned", lambda size: made.append(size) or real(size))
    for number in range(20):
        staged = own.staging(TensorData(np.full(5000, number, np.float32)), own.device)
        x = own.from_data(staged, own.device)
        del staged
        assert own.to_data(x).array.tolist() == [number] * 5000
    assert len(made) <= 2
    own.memory_cleanup(own.device)
    own.staging(TensorData(np.ones(5000, np.float32)), own.device)
    assert len(made) <= 3


@pytest.mark.parametrize("staged", [False, True])
def test_the_caller_may_write_to_its_memory_at_once(own, monkeypatch, staged):
    monkeypatch.setattr(own.launcher.runtime, "is_cpu", not staged)
    values, made = np.empty(20_000, np.float32), []
    for number in range(100):
        values[:] = number
        data = TensorData(values)
        made.append(own.from_data(own.staging(data, own.device) if staged else data, own.device))
    values[:] = -1
    for number, item in enumerate(made):
        assert (own.to_data(item).array == number).all()


def test_pending_uploads_are_limited(own, monkeypatch):
    monkeypatch.setattr("burn_opencl.staging._MAX_PENDING_BYTES", 1 << 16)
    waited = []
    runtime = own.launcher.runtime
    real = runtime.wait_for
    monkeypatch.setattr(runtime, "wait_for", lambda work: waited.append(1) or real(work))
    monkeypatch.setattr(runtime, "is_done", lambda work: False)
    for _ in range(10):
        upload(own, np.ones(1 << 12))
    assert len(waited) >= 5
    own.uploads.release()
    assert own.uploads._bytes == 0


def test_a_failed_upload_is_raised_once_and_no_later_than_by_sync(own, monkeypatch):
    class Failed:
        command_execution_status = -5

        def wait(self):
            raise Injected(STATUS.EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)

    own.uploads.release()
    monkeypatch.setattr(own.launcher.runtime, "write_soon", lambda memory, values: Failed())
    upload(own, [1.0])
    with pytest.raises(ExecutionError, match="failed while uploading"):
        own.sync(own.device)
    own.sync(own.device)


def test_uploads_of_many_threads_keep_their_values(own):
    wrong = []

    def work(seed):
        values = np.random.default_rng(seed).normal(size=3000).astype(np.float32)
        found = [own.to_data(upload(own, values)).array for _ in range(30)]
        wrong.extend([seed for item in found if not np.array_equal(item, values)])

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_memory_that_a_limited_address_space_does_not_leave_is_refused(own, monkeypatch):
    pool = own.launcher.pool
    if not pool._runtime.is_cpu:
        return  # the memory of a GPU is no address space of the process
    left = [1 << 26]
    for module in (layer, buffers):
        monkeypatch.setattr(module, "bytes_left", lambda: left[0])
    size = 1 << 25
    held = pool.take(size)
    left[0] -= 1
    with pytest.raises(OutOfMemoryError, match=rf"no room for \d+ bytes.*leaves {left[0]} bytes"):
        pool.take(size)
    del held
    pool.take(size)  # what was freed is taken again


def test_a_limited_address_space_that_is_too_small_for_the_compiler_refuses_to_build(
    own, monkeypatch
):
    driver = own.launcher.runtime
    if not driver.is_cpu:
        return  # the compiler of a GPU is no concern of ours
    left, relieved = [1 << 26], []
    monkeypatch.setattr(address_space, "bytes_left", lambda: left[0])
    monkeypatch.setattr(driver, "relieve", lambda: relieved.append(left[0]))
    source = "kernel void nothing() {}"
    with pytest.raises(OutOfMemoryError, match=r"compiles no kernel .* RLIMIT_AS leaves 67108864"):
        driver.build(source)
    assert relieved == [1 << 26]
    monkeypatch.setattr(driver, "relieve", lambda: left.__setitem__(0, 1 << 28))
    program = driver.build(source)  # the pool has freed what was not in use
    assert driver.binary(program) is None
    left[0] = 1 << 30
    assert driver.binary(program)


_ENDS_SHORT_OF_MEMORY = """
import resource
import burn

assert float(burn.ones(64, device="opencl/cpu").sum()) == 64
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (20 << 20), -1))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not say what is left")
def test_a_program_that_ends_with_little_address_space_asks_for_no_binary(tmp_path):
    if not any(device.type == "cpu" for device in found_devices()):
        return
    environment = os.environ | {"BURN_CACHE": str(tmp_path)}
    subprocess.run([sys.executable, "-c", _ENDS_SHORT_OF_MEMORY], env=environment, check=True)


_LIMITED = """
import resource
import burn

device = burn.Device("opencl/cpu")
x = burn.ones(1 << 20, device=device)
assert float(x.sum()) == 1 << 20
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (400 << 20), -1))
for size in (1 << 24, 1 << 20, 1 << 16):
    kept = []
    try:
        while True:
            kept.append(burn.ones(size, device=device))
            if len(kept) > (1 << 29) // size:
                break
    except burn.ExecutionError as error:
        assert "RLIMIT_AS leaves" in str(error), error
    kept.clear()
    assert float(x.sum()) == 1 << 20
print("ends")
"""


@pytest.mark.exhaustive
@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not say what is left")
def test_a_limited_address_space_ends_no_process():
    if not any(device.type == "cpu" for device in found_devices()):
        return
    printed = subprocess.check_output([sys.executable, "-c", _LIMITED], text=True)
    assert printed.split() == ["ends"]
