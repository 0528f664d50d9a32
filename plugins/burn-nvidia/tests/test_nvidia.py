"""What NVML says of GPUs, by functions that stand in for its own; what CUDA shows of them."""

import subprocess
import sys
from types import SimpleNamespace

import pynvml
import pytest

from burn_nvidia import Gpu, NoDriverError, find_gpus, gpus as module, visible_gpus
from burn_nvidia.gpus import in_cuda_order, select_visible

GIB = 1 << 30
GPUS = [
    Gpu("NVIDIA T4", "GPU-aa11-1", 16 * GIB, (7, 5)),
    Gpu("NVIDIA H200", "GPU-bb22-2", 141 * GIB, (9, 0)),
    Gpu("NVIDIA H200", "GPU-bb33-3", 141 * GIB, (9, 0)),
]
PART = Gpu("NVIDIA MIG instance", "MIG-bb22", None, None)


class FakeNvml:
    """The functions of pynvml that are called; a GPU is its own handle."""

    def __init__(self, monkeypatch, *, failing="", denied=()):
        self.is_open = False
        self.failing = failing
        self.denied = denied
        functions = {
            "nvmlInit": self.open,
            "nvmlShutdown": self.close,
            "nvmlSystemGetDriverVersion": lambda: "580.159.03",
            "nvmlSystemGetCudaDriverVersion": lambda: 12040,
            "nvmlDeviceGetCount": lambda: len(GPUS),
            "nvmlDeviceGetHandleByIndex": self.handle,
            "nvmlDeviceGetMemoryInfo": lambda gpu: SimpleNamespace(total=gpu.memory),
            "nvmlDeviceGetCudaComputeCapability": lambda gpu: list(gpu.capability),
            "nvmlDeviceGetName": lambda gpu: gpu.name,
            "nvmlDeviceGetUUID": lambda gpu: gpu.uuid,
        }
        for name, function in functions.items():
            monkeypatch.setattr(pynvml, name, self.fail if name == failing else function)
        monkeypatch.setattr(module, "_has_library", lambda: True)

    def open(self):
        self.is_open = True

    def close(self):
        self.is_open = False

    def handle(self, index):
        if index in self.denied:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NO_PERMISSION)
        return GPUS[index]

    def fail(self, *arguments):
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH)


def test_the_driver_is_asked_for_all_that_a_probe_tells_and_closed(monkeypatch):
    nvml = FakeNvml(monkeypatch)
    assert find_gpus() == (GPUS, "580.159.03", (12, 4))
    assert not nvml.is_open


def test_a_gpu_that_this_process_may_not_use_is_left_out(monkeypatch):
    FakeNvml(monkeypatch, denied=(0, 2))
    assert find_gpus()[0] == GPUS[1:2]


@pytest.mark.parametrize("function", ["nvmlInit", "nvmlDeviceGetCount", "nvmlDeviceGetName"])
def test_a_driver_that_fails_says_so_in_its_own_words(function, monkeypatch):
    nvml = FakeNvml(monkeypatch, failing=function)
    with pytest.raises(NoDriverError, match="RM has detected an NVML/RM version"):
        find_gpus()
    assert not nvml.is_open


def test_without_a_driver_there_is_no_library_to_load(monkeypatch):
    def fail(name, *arguments, **options):
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(module.ctypes, "CDLL", fail)
    monkeypatch.setattr(pynvml, "CDLL", fail)
    monkeypatch.setattr(pynvml, "nvmlLib", None)
    for system in ("linux", "win32"):
        monkeypatch.setattr(sys, "platform", system)
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
        ("GPU-bb", []),  # a prefix of two identifiers
        ("GPU-aa11-1,1", [0, 1]),
        ("GPU-bb33,GPU-aa11,GPU-zz", [2, 0]),
        ("1,1", []),
        ("-1", []),
        ("nonsense", []),
        ("", []),
    ],
)
def test_visible_devices_are_those_of_cuda(choice, expected):
    assert select_visible(GPUS, choice) == [GPUS[index] for index in expected]


def test_a_part_of_a_gpu_counts_as_one_and_is_the_only_one():
    assert select_visible(GPUS, "MIG-bb22") == [PART]
    assert select_visible(GPUS, "MIG-bb22,MIG-cc33") == [PART]
    assert select_visible([], "MIG-bb22") == []


def test_the_environment_says_which_gpus_there_are(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,2")
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    assert visible_gpus(GPUS) == [GPUS[1], GPUS[0]]
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    assert visible_gpus(GPUS) == [GPUS[0], GPUS[2]]
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert visible_gpus(GPUS) == GPUS


def test_asking_the_driver_imports_no_array_library():
    code = "import sys; from burn_nvidia import *\ntry: find_gpus()\n"
    code += "except NoDriverError: pass\nprint({'numpy', 'burn'} & set(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "set()"
