"""What the driver says of NVIDIA's GPUs, as a library that pretends; what CUDA shows of them."""

import ctypes
import subprocess
import sys

import pytest

from burn.plugins import nvidia
from burn.plugins.nvidia import Gpu, NoDriverError, find_gpus, in_cuda_order, shown, visible

GIB = 1 << 30
GPUS = [
    Gpu("NVIDIA T4", "GPU-aa11-1", 16 * GIB, (7, 5)),
    Gpu("NVIDIA H200", "GPU-bb22-2", 141 * GIB, (9, 0)),
    Gpu("NVIDIA H200", "GPU-bb33-3", 141 * GIB, (9, 0)),
]
PART = Gpu("NVIDIA MIG instance", "MIG-bb22", None, None)


class FakeNvml:
    """The functions that are called; `failing` names one of them, which gives an error."""

    def __init__(self, gpus, failing="", status=18, denied=()):
        self.gpus = gpus
        self.failing = failing
        self.status = status
        self.denied = denied
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
        answer = answers[name]
        return lambda *given: self.status if name == self.failing else (answer(*given) or 0)

    def open(self):
        self.is_open = True

    def close(self):
        self.is_open = False

    def driver_version(self, buffer, length):
        buffer.value = b"580.159.03"

    def cuda_version(self, version):
        version._obj.value = 12040

    def count(self, count):
        count._obj.value = len(self.gpus)

    def handle(self, number, handle):
        handle._obj.value = number.value + 1
        return 4 * (number.value in self.denied)

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


def test_the_driver_is_asked_for_all_that_a_probe_tells_and_closed():
    nvml = FakeNvml(GPUS)
    assert find_gpus(lambda: nvml) == (GPUS, "580.159.03", (12, 4))
    assert not nvml.is_open


def test_a_gpu_that_this_process_may_not_use_is_none():
    nvml = FakeNvml(GPUS, denied=(0, 2))
    assert find_gpus(lambda: nvml)[0] == GPUS[1:2]


@pytest.mark.parametrize(
    "function", ["nvmlInit_v2", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetName"]
)
def test_a_driver_that_fails_says_so_in_its_own_words(function):
    nvml = FakeNvml(GPUS, failing=function)
    with pytest.raises(NoDriverError, match=f"{function} says 'Driver/library version mismatch'"):
        find_gpus(lambda: nvml)
    assert not nvml.is_open


def test_without_a_driver_there_is_no_library_to_load(monkeypatch):
    def fail(name):
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(nvidia.ctypes, "CDLL", fail)
    for system in ("linux", "win32"):
        monkeypatch.setattr(nvidia.sys, "platform", system)
        with pytest.raises(NoDriverError, match="there is no NVIDIA driver"):
            find_gpus()


def test_the_most_capable_gpu_comes_first_as_in_cuda():
    assert in_cuda_order(GPUS, None) == [GPUS[1], GPUS[2], GPUS[0]]
    assert in_cuda_order(GPUS, "FASTEST_FIRST") == [GPUS[1], GPUS[2], GPUS[0]]
    assert in_cuda_order(GPUS, "PCI_BUS_ID") == GPUS


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (None, [0, 1, 2]),
        ("2,0", [2, 0]),
        (" 1 , 2", [1, 2]),
        ("0,7,1", [0]),
        ("0,-1,1", [0]),
        ("1x,2y", [1, 2]),
        ("GPU-bb33", [2]),
        ("GPU-bb", []),  # it might be either of two
        ("GPU-aa11-1,1", [0, 1]),
        ("GPU-bb33,GPU-aa11,GPU-zz", [2, 0]),
        ("1,1", []),
        ("-1", []),
        ("nonsense", []),
        ("", []),
    ],
)
def test_visible_devices_are_those_of_cuda(choice, expected):
    assert visible(GPUS, choice) == [GPUS[number] for number in expected]


def test_a_part_of_a_gpu_counts_as_one_and_is_the_only_one():
    assert visible(GPUS, "MIG-bb22") == [PART]
    assert visible(GPUS, "MIG-bb22,MIG-cc33") == [PART]
    assert visible([], "MIG-bb22") == []


def test_the_environment_says_which_gpus_there_are(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,2")
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    assert shown(GPUS) == [GPUS[1], GPUS[0]]
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    assert shown(GPUS) == [GPUS[0], GPUS[2]]
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert shown(GPUS) == GPUS


def test_asking_the_driver_imports_no_array_library():
    code = "import sys; from burn.plugins.nvidia import *\ntry: find_gpus()\n"
    code += "except NoDriverError: pass\nprint({'numpy'} & set(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "set()"
