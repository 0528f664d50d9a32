"""What is known of GPUs without CuPy: the driver's answers, as a library that pretends."""

import ctypes
import dataclasses
import importlib.metadata
import subprocess
import sys

import pytest

import burn
from burn.dtype import DTypeUsage, bfloat16, float16, float32
from burn.plugins import State
from burn_cuda import plugin
from burn_cuda.nvml import Gpu, NoDriverError, find_gpus, load_library, visible
from burn_cuda.usage import usage_of

GIB = 1 << 30
GPUS = [
    Gpu("NVIDIA T4", "GPU-aa11-1", 16 * GIB, (7, 5)),
    Gpu("NVIDIA H200", "GPU-bb22-2", 141 * GIB, (9, 0)),
    Gpu("NVIDIA H200", "GPU-bb33-3", 141 * GIB, (9, 0)),
]


class FakeNvml:
    """The functions that the probe calls; `failing` names one of them, which gives an error."""

    def __init__(self, gpus, cuda=13000, failing=""):
        self.gpus = gpus
        self.cuda = cuda
        self.failing = failing
        self.is_open = False

        def describe(status):
            return b"Driver/library version mismatch"

        self.nvmlErrorString = describe

    def __getattr__(self, name):
        answers = {
            "nvmlInit_v2": self.open,
            "nvmlShutdown": self.close,
            "nvmlSystemGetDriverVersion": self.driver_version,
            "nvmlSystemGetCudaDriverVersion": self.cuda_version,
            "nvmlDeviceGetCount_v2": self.count,
            "nvmlDeviceGetHandleByIndex_v2": self.handle,
            "nvmlDeviceGetMemoryInfo": self.memory,
            "nvmlDeviceGetCudaComputeCapability": self.capability,
            "nvmlDeviceGetName": self.name,
            "nvmlDeviceGetUUID": self.uuid,
        }
        return lambda *arguments: 18 if name == self.failing else (answers[name](*arguments) or 0)

    def open(self):
        self.is_open = True

    def close(self):
        self.is_open = False

    def driver_version(self, buffer, length):
        buffer.value = b"580.159.03"

    def cuda_version(self, version):
        version._obj.value = self.cuda

    def count(self, count):
        count._obj.value = len(self.gpus)

    def handle(self, number, handle):
        handle._obj.value = number.value + 1

    def gpu(self, handle):
        return self.gpus[ctypes.cast(handle, ctypes.c_void_p).value - 1]

    def memory(self, handle, memory):
        memory._obj.total = self.gpu(handle).memory

    def capability(self, handle, major, minor):
        major._obj.value, minor._obj.value = self.gpu(handle).capability

    def name(self, handle, buffer, length):
        buffer.value = self.gpu(handle).name.encode()

    def uuid(self, handle, buffer, length):
        buffer.value = self.gpu(handle).uuid.encode()


@pytest.fixture
def machine(monkeypatch):
    """Sets up a machine: its driver, the CuPy that is installed, and what is visible."""

    def set_up(nvml, *, wheels=("cupy-cuda13x",), choice=None, order=None):
        def find():
            return find_gpus(lambda: nvml)

        def version(name):
            if name in wheels:
                return "14.2.0"
            raise importlib.metadata.PackageNotFoundError(name)

        monkeypatch.setattr(plugin, "find_gpus", find)
        monkeypatch.setattr(plugin.importlib.metadata, "version", version)
        monkeypatch.setattr(plugin, "_has_module", lambda name: False)
        for variable, value in (("CUDA_VISIBLE_DEVICES", choice), ("CUDA_DEVICE_ORDER", order)):
            if value is None:
                monkeypatch.delenv(variable, raising=False)
            else:
                monkeypatch.setenv(variable, value)
        return plugin._look()

    return set_up


def test_each_gpu_is_a_device_with_what_the_driver_knows(machine):
    nvml = FakeNvml(GPUS[1:])
    devices, reason = machine(nvml)
    assert [(one.type, one.index, one.hardware) for one in devices] == [
        ("cuda", 0, "NVIDIA H200"),
        ("cuda", 1, "NVIDIA H200"),
    ]
    assert devices[0].memory == 141 * GIB
    assert devices[0].driver == "NVIDIA 580.159.03, CUDA 13.0"
    assert not reason
    assert not nvml.is_open


def test_the_most_capable_gpu_comes_first_as_in_cuda(machine):
    devices, _ = machine(FakeNvml(GPUS))
    assert [one.hardware for one in devices] == ["NVIDIA H200", "NVIDIA H200", "NVIDIA T4"]
    devices, _ = machine(FakeNvml(GPUS), order="PCI_BUS_ID")
    assert [one.hardware for one in devices] == ["NVIDIA T4", "NVIDIA H200", "NVIDIA H200"]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (None, [0, 1, 2]),
        ("2,0", [2, 0]),
        (" 1 , 2", [1, 2]),
        ("0,7,1", [0]),
        ("GPU-bb33", [2]),
        ("GPU-bb", []),  # it might be either of two
        ("GPU-aa11-1,1", [0, 1]),
        ("1,1", []),
        ("-1", []),
        ("MIG-bb22-2/1/0", []),
        ("", []),
    ],
)
def test_visible_devices_are_those_of_cuda(choice, expected):
    assert visible(GPUS, choice) == [GPUS[number] for number in expected]


def test_without_a_driver_there_is_no_device_and_a_reason(monkeypatch):
    def none():
        raise NoDriverError("there is no NVIDIA driver")

    monkeypatch.setattr(plugin, "find_gpus", none)
    assert plugin._look() == ([], "there is no NVIDIA driver")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"choice": ""}, "no NVIDIA GPU is visible under CUDA_VISIBLE_DEVICES=''"),
        ({"wheels": ()}, "CuPy is not installed. In a checkout of burn for Python: "),
    ],
)
def test_a_machine_on_which_nothing_runs_says_why(machine, options, words):
    devices, reason = machine(FakeNvml(GPUS), **options)
    assert devices == []
    assert reason.startswith(words)
    assert "\n" not in reason


def test_a_driver_that_is_too_old_is_told(machine):
    devices, reason = machine(FakeNvml(GPUS, cuda=12040))
    assert devices == []
    assert reason.startswith("the NVIDIA driver is too old: it runs CUDA 12.4, and cupy-cuda13x")
    devices, _ = machine(FakeNvml(GPUS, cuda=12040), wheels=("cupy-cuda12x",))
    assert len(devices) == 3


@pytest.mark.parametrize("function", ["nvmlInit_v2", "nvmlDeviceGetName"])
def test_a_driver_that_fails_costs_no_more_than_its_devices(machine, function):
    devices, reason = machine(FakeNvml(GPUS, failing=function))
    assert devices == []
    assert function in reason
    assert "version mismatch" in reason


def test_a_driver_that_answers_nonsense_is_no_exception(machine):
    devices, reason = machine(object())
    assert devices == []
    assert "AttributeError" in reason


def test_the_reason_is_told_to_whoever_asks_for_a_gpu(machine, monkeypatch):
    _, reason = machine(FakeNvml(GPUS), choice="")
    (spec,) = plugin.burn_backends()
    without = dataclasses.replace(spec, name="nowhere")
    with burn.registered(without) as entry:
        assert entry.state is State.NO_HARDWARE
        with pytest.raises(burn.DeviceUnavailableError) as caught:
            burn.Device("nowhere")
    assert reason in str(caught.value)


def test_the_real_driver_is_asked_without_an_exception():
    devices, reason = plugin._look()
    assert bool(devices) != bool(reason)
    try:
        load_library()
    except NoDriverError:
        assert "driver" in reason


def test_tensor_cores_are_told_by_the_compute_capability():
    assert DTypeUsage.ACCELERATED in usage_of((9, 0))[bfloat16]
    assert DTypeUsage.ACCELERATED in usage_of((7, 5))[float16]
    assert DTypeUsage.ACCELERATED not in usage_of((7, 5))[bfloat16]
    assert usage_of((6, 0))[bfloat16] is DTypeUsage.GENERAL
    assert DTypeUsage.ACCELERATED not in usage_of((9, 0))[float32]


def test_looking_for_devices_imports_neither_cupy_nor_the_backend():
    code = "import sys; from burn_cuda.plugin import _look; _look(); "
    code += "print(sorted({'cupy', 'numpy', 'burn_cuda.backend'} & set(sys.modules)))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
